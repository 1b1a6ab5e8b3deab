//! The part of a run that is measured.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Pattern;

/// When the measuring of a run begins and ends. By default it is all of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// It begins after these milliseconds.
    pub delay_ms: u64,
    /// It ends after these milliseconds more; none: with the emulator.
    pub duration_ms: Option<u64>,
    /// It begins with the first call of one of these functions.
    pub from: Option<Pattern>,
    /// It ends when the first call of one of these functions returns that was made meanwhile.
    pub until: Option<Pattern>,
    /// It begins when the file [`Span::switch`] has a byte, and ends when that has two.
    pub by_signal: bool,
}

impl Span {
    /// Whether nothing comes before it.
    #[must_use]
    pub fn begins_at_once(&self) -> bool {
        self.delay_ms == 0 && self.from.is_none() && !self.by_signal
    }

    /// The file with a byte for each signal that came, in the folder of a request.
    #[must_use]
    pub fn switch(folder: &Path) -> PathBuf {
        folder.join("switch")
    }
}
