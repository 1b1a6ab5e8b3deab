//! Emulators in the background.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use beamline_formats::profile::{Measuring, Request};
use beamline_formats::ring;
use beamline_settings::variable::Variable as _;

use super::wait::wait_until;
use crate::emulator::DETACHED;

/// How long an emulator may take until it says that it measures.
const STARTING_MAX: Duration = Duration::from_secs(10);

/// Starts the emulator in the background, where it takes a session of its own. Blocks until it has said that it measures,
/// if it is to: the command may end at once, and looks then for who measures.
///
/// # Errors
/// What the operating system says: it does not start.
pub(super) fn start(emulator: &mut Command) -> io::Result<()> {
    let mut started = emulator
        .env(DETACHED, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let Some(folder) = folder_of_measuring() else {
        return Ok(());
    };
    wait_until(STARTING_MAX, || {
        Measuring::has_begun(&folder, started.id()) || !matches!(started.try_wait(), Ok(None))
    });
    Ok(())
}

/// Where an emulator of this environment says that it measures, if it does. What cannot be understood is told by the
/// emulator.
fn folder_of_measuring() -> Option<PathBuf> {
    if let Ok(Some(request)) = Request::from_environment() {
        return Some(request.folder);
    }
    let request = ring::Request::from_environment().ok()??;
    request.ends_with_command().then_some(request.folder)
}
