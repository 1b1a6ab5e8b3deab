//! Asks an emulator to follow a recorded run.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use beamline_formats::profile::Libraries;
use beamline_settings::variable::Variable;
use serde::{Deserialize, Serialize};

use super::{Stop, Trace};

/// The run to follow, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// A recording or a trace: absolute.
    pub file: PathBuf,
    /// A file that the first emulator of the command makes: only it follows.
    pub claim: PathBuf,
    /// A process that cannot follow runs free; else the emulator ends.
    pub goes_on: bool,
    /// Where it stops, if anywhere.
    pub stop: Option<Halt>,
}

/// Where a replay stops, and what is known to tell of it then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Halt {
    /// Where.
    pub at: Stop,
    /// As the user has written it.
    pub text: String,
    /// A shell looks at it then; else the emulator ends.
    pub shell: bool,
    /// Whose modules tell most.
    pub libraries: Libraries,
}

impl Request {
    /// Whether this emulator is the one that follows.
    ///
    /// # Errors
    /// One line where the claim cannot be made.
    pub fn claim(&self) -> Result<bool, String> {
        claim(&self.claim)
    }

    /// The trace to follow, as it is in the file: a log has no deliveries.
    ///
    /// # Errors
    /// One line with the file's name.
    pub fn trace(&self) -> Result<Trace, String> {
        let trace = Trace::load(&self.file);
        trace.map_err(|error| format!("{}: {error}", self.file.display()))
    }
}

/// Makes the file of a claim: whether it was not there.
pub(super) fn claim(file: &Path) -> Result<bool, String> {
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    match made {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

impl Variable for Request {
    const VARIABLE: &'static str = "BEAMLINE_REPLAY";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_claim_is_won() {
        let folder = tempfile::tempdir().expect("a folder");
        let request = Request {
            file: folder.path().join("trace"),
            claim: folder.path().join("claim"),
            goes_on: false,
            stop: None,
        };
        assert_eq!(request.claim(), Ok(true));
        assert_eq!(request.claim(), Ok(false));
        let error = request.trace().expect_err("there is no trace");
        let name = request.file.display().to_string();
        assert!(error.starts_with(&format!("{name}: ")), "{error}");
        let claim = request.file.join("claim");
        let request = Request { claim, ..request };
        assert!(request.claim().is_err_and(|error| !error.contains('\n')));
    }
}
