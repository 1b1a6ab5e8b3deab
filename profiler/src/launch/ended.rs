//! How a command ended, and what is told of it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use beamline_formats::profile::{Matched, Outcome, Profile};
use beamline_formats::totals::Totals;

use super::outlived::Outlived;
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
    /// Emulators whose profiles are missing or end before they do, by process number.
    pub(super) outlived: Vec<(u32, Outlived)>,
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

    /// Says which emulators' profiles are missing or end before they do.
    pub(crate) fn tell_outlived(&self) {
        let runs = self
            .profile
            .as_ref()
            .map_or(&[][..], |profile| &profile.runs);
        for (os_pid, outlived) in &self.outlived {
            let run = runs.iter().find(|run| run.os_pid == *os_pid);
            let node = run.map(|run| run.node.as_str());
            let node = node.filter(|node| !node.is_empty());
            report::error(&outlived.line(*os_pid, node));
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
