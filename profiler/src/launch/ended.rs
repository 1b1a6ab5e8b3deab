//! How a command ended, and what is told of it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use beamline_formats::profile::{Matched, Outcome, Profile};
use beamline_formats::totals::Totals;

use crate::report;

/// The end of a command, and what its emulators recorded.
#[derive(Debug)]
pub struct Ended {
    /// The command's own end.
    pub status: ExitStatus,
    /// The profiles of all its emulators; none where nothing was recorded.
    pub profile: Option<Profile>,
    /// What its emulators did in all, where that was asked for.
    pub totals: Vec<Totals>,
    /// A line about each emulator whose profile is missing, or that goes on without being measured.
    pub(super) outlived: Vec<String>,
    /// What became of the patterns of functions.
    pub patterns: Vec<Matched>,
    /// From start to end; of a source file without its compilation.
    pub time: Duration,
}

impl Ended {
    /// Ends this process as the command ended: with its code, or by its signal.
    #[must_use]
    pub(crate) fn exit_code(&self) -> ExitCode {
        if let Some(signal) = self.status.signal() {
            // Returns for a signal that ends nothing; the shell's number stands for it then.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            return ExitCode::from(u8::try_from(128 + signal).unwrap_or(1));
        }
        let code = self.status.code().unwrap_or(1);
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    }

    /// Says which emulators' profiles are missing, and which profiles and recordings end before their emulators do.
    pub(crate) fn tell_outlived(&self) {
        for line in &self.outlived {
            report::error(line);
        }
    }

    /// Says which patterns chose nothing. Returns whether one of them means nothing that there is.
    pub(crate) fn tell_patterns(&self) -> bool {
        for line in self.patterns.iter().filter_map(Matched::told) {
            report::error(&line);
        }
        let mut outcomes = self.patterns.iter().map(|matched| &matched.outcome);
        outcomes.any(|outcome| matches!(outcome, Outcome::MeansNothing { .. }))
    }

    /// As [`Ended::exit_code`]; but where all went well, a pattern that means nothing is a wrong command line. Says so.
    #[must_use]
    pub(crate) fn exit_code_of_patterns(&self) -> ExitCode {
        match self.tell_patterns() && self.status.success() {
            true => ExitCode::from(2),
            false => self.exit_code(),
        }
    }
}
