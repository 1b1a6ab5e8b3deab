//! Emulators that outlive the command: each ends its profile when the command ends, and is waited for until then.

use std::path::Path;
use std::thread;
use std::time::Duration;

use beamline_formats::profile::{CommandLock, Measuring};
use beamline_settings::chance;

/// How long an emulator may take to write its profile.
const WRITING_MAX: Duration = Duration::from_secs(10);

/// How long an emulator may take to end, once it has written its profile: a peer ends a moment after its origin.
const ENDING_MAX: Duration = Duration::from_secs(1);

/// How often is looked at them.
const PAUSE: Duration = Duration::from_millis(2);

/// What is to be said of an emulator when the command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outlived {
    /// It goes on, and what it does is not in its profile any more.
    GoesOn,
    /// It goes on, and has written no profile.
    IsSilent,
    /// It has ended without a profile.
    Unwritten,
}

impl Outlived {
    /// The line about the emulator with this process number, whose node has this name.
    pub(crate) fn line(self, os_pid: u32, node: Option<&str>) -> String {
        let emulator = match node {
            Some(node) => format!("{node} (process {os_pid})"),
            None => format!("process {os_pid}"),
        };
        match self {
            Outlived::GoesOn => {
                format!("{emulator} goes on; the profile has what it did until the command ended")
            }
            Outlived::IsSilent => format!(
                "{emulator} goes on, and did not write its profile within {WRITING_MAX:?}: what it did is missing"
            ),
            Outlived::Unwritten => {
                format!("{emulator} ended without writing its profile: what it did is missing")
            }
        }
    }
}

/// Has the emulators of a command that has ended write their profiles to this folder, and waits for them. Gives the process
/// numbers of those of which something is to be said.
///
/// # Errors
/// One line when the folder cannot be read.
pub(super) fn end(command: CommandLock, folder: &Path) -> Result<Vec<(u32, Outlived)>, String> {
    drop(command);
    let all = Measuring::all(folder)?;
    wait_until(WRITING_MAX, || {
        all.iter().all(|one| one.has_written() || !one.is_running())
    });
    wait_until(ENDING_MAX, || {
        all.iter()
            .all(|one| !one.has_written() || !one.is_running())
    });
    let outlived = all.iter().filter_map(|one| Some((one.os_pid, of(one)?)));
    Ok(outlived.collect())
}

fn of(emulator: &Measuring) -> Option<Outlived> {
    // In this order: it may write and end between the two looks.
    match (emulator.is_running(), emulator.has_written()) {
        (true, true) => Some(Outlived::GoesOn),
        (true, false) => Some(Outlived::IsSilent),
        (false, false) => Some(Outlived::Unwritten),
        (false, true) => None,
    }
}

fn wait_until(limit: Duration, is_so: impl Fn() -> bool) {
    let begun = chance::now();
    while !is_so() && begun.elapsed() < limit {
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use beamline_formats::profile::EmulatorLock;

    use super::*;

    #[test]
    fn a_node_is_named_where_its_profile_names_it() {
        let line = Outlived::GoesOn.line(7, Some("b@host"));
        assert!(line.starts_with("b@host (process 7) goes on;"), "{line}");
        let line = Outlived::Unwritten.line(7, None);
        assert!(line.starts_with("process 7 ended without"), "{line}");
    }

    #[test]
    fn who_has_written_and_ended_is_not_spoken_of() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let command = CommandLock::take(folder).unwrap();
        let locks = [1, 2, 3].map(|os_pid| EmulatorLock::take(folder, os_pid).unwrap());
        let [ended, killed, running] = locks;
        ended.note_written().unwrap();
        running.note_written().unwrap();
        drop((ended, killed));
        let outlived = end(command, folder).unwrap();
        assert_eq!(outlived, [(2, Outlived::Unwritten), (3, Outlived::GoesOn)]);
        drop(running);
    }
}
