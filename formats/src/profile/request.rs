//! The request that tells an emulator what to measure. The command hands it over in an environment variable.

use std::path::{Path, PathBuf};

use beamline_settings::variable::Variable;
use serde::{Deserialize, Serialize};

use super::{Libraries, Pattern, Span, Type};

/// What an emulator measures, and where its profile file goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What to measure.
    #[serde(rename = "type")]
    pub kind: Type,
    /// The functions to trace; an empty list means all.
    pub patterns: Vec<Pattern>,
    /// Whether call paths are recorded as well.
    pub call_tree: bool,
    /// The part of the run that is measured.
    pub span: Span,
    /// The folder for profile files, and for notes on patterns.
    pub folder: PathBuf,
    /// Where modules are that are not the program's own.
    pub libraries: Libraries,
}

impl Variable for Request {
    const VARIABLE: &'static str = "BEAMLINE_PROFILE";
}

impl Request {
    /// The profile file of the emulator with this process number.
    #[must_use]
    pub fn file(&self, os_pid: u32) -> PathBuf {
        self.folder
            .join(format!("{os_pid}.{}", Self::FILE_EXTENSION))
    }

    /// How the names of profile files end.
    pub(crate) const FILE_EXTENSION: &'static str = "blprof";

    /// The finished profile files in a folder, in order of their names.
    ///
    /// # Errors
    /// One line when the folder cannot be read.
    pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
        files_in(folder, Self::FILE_EXTENSION)
    }
}

/// The files in a folder whose names end so, in order of their names.
pub fn files_in(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let fail = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_some_and(|e| e == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
