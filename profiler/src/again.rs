//! Runs a recorded command again: by this binary, so that it is recorded like any other run.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use beamline_formats::ring::Recording;

use crate::options::EnvironmentArgs;

/// A command that follows a recorded run.
pub(crate) struct Again<'a> {
    pub(crate) environment: &'a EnvironmentArgs,
    pub(crate) command: &'a [String],
    /// What it follows.
    pub(crate) file: &'a Path,
}

impl Again<'_> {
    /// Runs it, and records these events to a file. Nothing of what it prints is seen.
    ///
    /// # Errors
    /// One line: it could not be started.
    pub(crate) fn record(&self, events: &str, to: &Path) -> Result<Output, String> {
        let exe =
            std::env::current_exe().map_err(|error| format!("beamline's own file: {error}"))?;
        let mut arguments: Vec<OsString> = vec!["record".into(), "--events".into(), events.into()];
        arguments.extend(["-o".into(), to.into(), "--replay".into(), self.file.into()]);
        arguments.extend(self.environment.written());
        arguments.push("--".into());
        arguments.extend(self.command.iter().map(OsString::from));
        let mut command = Command::new(exe);
        command.args(arguments).stdin(Stdio::null());
        command
            .output()
            .map_err(|error| format!("the command cannot run again: {error}"))
    }
}

/// The command of a recording; nothing for another file.
///
/// # Errors
/// One line: it cannot be read.
pub(crate) fn recorded_command(file: &Path) -> Result<Option<Vec<String>>, String> {
    if !Recording::is_one(file) {
        return Ok(None);
    }
    let recording =
        Recording::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(Some(recording.description().command.clone()))
}
