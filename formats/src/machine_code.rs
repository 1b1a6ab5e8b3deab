//! Asks emulators for the machine code of functions.

use std::path::PathBuf;

use beamline_settings::variable::Variable;
use serde::{Deserialize, Serialize};

use crate::profile::Pattern;

/// Which functions an emulator writes the machine code of, as text, when it compiles them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The functions.
    pub pattern: Pattern,
    /// The folder for files of text.
    pub folder: PathBuf,
}

impl Request {
    /// The file of the emulator with this number.
    #[must_use]
    pub fn file(&self, pid: u32) -> PathBuf {
        self.folder.join(format!("{pid}.txt"))
    }
}

impl Variable for Request {
    const VARIABLE: &'static str = "BEAMLINE_NATIVE_CODE";
}
