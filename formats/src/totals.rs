//! The totals of an emulator: what it did in all, in one small file for gates on counts.
//!
//! A [`Request`] in an environment variable asks for it. The emulator writes its [`Totals`] when it ends.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use beamline_settings::variable::Variable;
use serde::{Deserialize, Serialize};

use crate::profile::{AtomicFile, files_in};

/// Where an emulator writes its totals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The folder for files of totals.
    pub folder: PathBuf,
}

impl Variable for Request {
    const VARIABLE: &'static str = "BEAMLINE_TOTALS";
}

/// The numbers of a part of the processes, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Reductions.
    pub reductions: u64,
    /// Words allocated on the heaps of processes.
    pub words: u64,
    /// Messages sent by processes.
    pub messages: u64,
    /// Collections, minor and major.
    pub collections: u64,
    /// Processes that were made.
    pub processes: u64,
}

impl Counted {
    /// The metrics, each with its name.
    #[must_use]
    pub fn metrics(&self) -> [(&'static str, u64); 5] {
        [
            ("reductions", self.reductions),
            ("words", self.words),
            ("messages", self.messages),
            ("collections", self.collections),
            ("processes", self.processes),
        ]
    }

    /// Adds what another emulator did.
    pub fn add(&mut self, other: &Counted) {
        self.reductions += other.reductions;
        self.words += other.words;
        self.messages += other.messages;
        self.collections += other.collections;
        self.processes += other.processes;
    }
}

/// Which processes are the workload's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// The process that did what the command line asks for.
    pub begun_by: (u64, u64),
    /// The newest process there was then: what was made after it is the workload's, too. Both are serial and
    /// number of a pid.
    pub after: (u64, u64),
}

impl Workload {
    /// Is the process with this pid, as Erlang writes it, the workload's?
    #[must_use]
    pub fn has(&self, pid: &str) -> bool {
        let mut parts = pid.trim_matches(['<', '>']).split('.').skip(1);
        let mut part = || parts.next()?.parse::<u64>().ok();
        let (Some(number), Some(serial)) = (part(), part()) else {
            return false;
        };
        (serial, number) == self.begun_by || (serial, number) > self.after
    }
}

/// The totals of an emulator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// The OTP release whose libraries ran.
    pub otp: String,
    /// Whether it ran deterministically.
    pub deterministic: bool,
    /// All processes, from the start.
    pub whole: Counted,
    /// The processes of the workload, from where `init` does what the command line asks for (`-s`, `-run`,
    /// `-eval`) on.
    pub workload: Counted,
    /// The processes of the workload; `None` where `init` was not asked for anything.
    pub processes: Option<Workload>,
    /// What the run took from outside and cannot be the same everywhere.
    pub outside: Vec<String>,
    /// It ended because all its processes waited for what could not come any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_ever: bool,
}

impl Totals {
    /// How the names of these files end.
    pub(crate) const FILE_EXTENSION: &'static str = "totals";

    /// Writes the file of the emulator with this process number to a folder.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write(&self, folder: &Path, os_pid: u32) -> std::io::Result<()> {
        let path = folder.join(format!("{os_pid}.{}", Self::FILE_EXTENSION));
        let mut file = AtomicFile::create(&path)?;
        serde_json::to_writer(&mut file, self)?;
        file.flush()?;
        file.commit()
    }

    /// The totals of all emulators that wrote theirs to a folder, in order of their process numbers.
    ///
    /// # Errors
    /// One line when the folder or a file cannot be read.
    pub fn read_all(folder: &Path) -> Result<Vec<Totals>, String> {
        let files = files_in(folder, Self::FILE_EXTENSION)?;
        files.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Result<Totals, String> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        serde_json::from_slice(&bytes).map_err(|e| format!("{}: {e}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use beamline_settings::random::Numbers;

    use super::*;

    #[test]
    fn a_workload_has_its_first_process_and_those_after() {
        let workload = Workload {
            begun_by: (0, 9),
            after: (0, 60),
        };
        for (pid, has) in [
            ("<0.9.0>", true),
            ("<0.8.0>", false),
            ("<0.60.0>", false),
            ("<0.61.0>", true),
            ("<0.3.1>", true),
            ("what", false),
        ] {
            assert_eq!(workload.has(pid), has, "{pid}");
        }
    }

    #[test]
    fn damaged_totals_are_errors_or_results() {
        let whole = serde_json::to_vec(&totals()).unwrap();
        for length in 0..whole.len() {
            assert!(serde_json::from_slice::<Totals>(&whole[..length]).is_err());
        }
        let mut random = Numbers(11);
        for _ in 0..10_000 {
            let mut bytes = whole.clone();
            for _ in 0..=random.index(3) {
                let at = random.index(bytes.len());
                bytes[at] = random.index(256) as u8;
            }
            if let Err(error) = serde_json::from_slice::<Totals>(&bytes) {
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
            }
        }
    }

    #[test]
    fn totals_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let totals = totals();
        totals.write(folder.path(), 7).unwrap();
        assert_eq!(Totals::read_all(folder.path()), Ok(vec![totals]));
        std::fs::write(folder.path().join("8.totals"), "{").unwrap();
        let error = Totals::read_all(folder.path()).unwrap_err();
        assert!(error.contains("8.totals"), "{error}");
    }

    fn totals() -> Totals {
        Totals {
            otp: "29.1".into(),
            deterministic: true,
            whole: Counted {
                reductions: 5,
                ..Counted::default()
            },
            workload: Counted::default(),
            processes: None,
            outside: vec!["the file a".into()],
            waits_for_ever: true,
        }
    }
}
