//! Emulators that outlive the command: each ends its profile or its recording when the command ends, and is waited for until
//! then.

use std::path::Path;
use std::time::Duration;

use beamline_formats::profile::{CommandLock, Measuring, Profile};

use super::What;
use super::wait::wait_until;

/// How long an emulator may take to write its profile, or to end its recording.
const WRITING_MAX: Duration = Duration::from_secs(10);

/// How long an emulator may take to end, once it has done that: a peer ends a moment after its origin.
const ENDING_MAX: Duration = Duration::from_secs(1);

/// What is to be said of an emulator when the command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlived {
    /// It goes on, and what it does is not measured any more.
    GoesOn,
    /// It goes on, and has not written what it has measured.
    IsSilent,
    /// It has ended without writing that.
    Unwritten,
}

impl Outlived {
    /// The line about the emulator with this process number, whose node has this name and which makes `what`; none where
    /// nothing is missing.
    fn line(self, os_pid: u32, node: Option<&str>, what: Made) -> Option<String> {
        let emulator = match node {
            Some(node) => format!("{node} (process {os_pid})"),
            None => format!("process {os_pid}"),
        };
        match (self, what) {
            (Outlived::GoesOn, _) => Some(format!(
                "{emulator} goes on: the {} has what it did until the command ended; to have all of it, start it in the foreground",
                what.name()
            )),
            (Outlived::IsSilent, _) => Some(format!(
                "{emulator} goes on, and did not end its {} within {WRITING_MAX:?}: what it did may be missing",
                what.name()
            )),
            (Outlived::Unwritten, Made::Profile) => Some(format!(
                "{emulator} ended without writing its profile: what it did is missing"
            )),
            // What it had recorded is there.
            (Outlived::Unwritten, Made::Recording) => None,
        }
    }
}

/// The lines about emulators that [`end`] has given. The profile has the names of their nodes.
pub(super) fn lines(
    outlived: &[(u32, Outlived)],
    what: &What,
    profile: Option<&Profile>,
) -> Vec<String> {
    let made = match what {
        What::Record(_) => Made::Recording,
        What::Profile(_) | What::Run => Made::Profile,
    };
    let runs = profile.map_or(&[][..], |profile| &profile.runs);
    let lines = outlived.iter().filter_map(|(os_pid, outlived)| {
        let run = runs.iter().find(|run| run.os_pid == *os_pid);
        let node = run.map(|run| run.node.as_str());
        outlived.line(*os_pid, node.filter(|node| !node.is_empty()), made)
    });
    lines.collect()
}

/// What emulators make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Profile,
    Recording,
}

impl Made {
    fn name(self) -> &'static str {
        match self {
            Made::Profile => "profile",
            Made::Recording => "recording",
        }
    }
}

/// Has the emulators of a command that has ended write what they have measured, and waits for them. Gives the process
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

#[cfg(test)]
mod tests {
    use beamline_formats::profile::EmulatorLock;

    use super::*;

    #[test]
    fn a_node_is_named_where_its_profile_names_it() {
        let line = |of: Outlived, node, what| of.line(7, node, what).unwrap_or_default();
        let goes_on = line(Outlived::GoesOn, Some("b@host"), Made::Recording);
        assert!(
            goes_on.starts_with("b@host (process 7) goes on: the recording"),
            "{goes_on}"
        );
        let killed = line(Outlived::Unwritten, None, Made::Profile);
        assert!(killed.starts_with("process 7 ended without"), "{killed}");
        assert_eq!(line(Outlived::Unwritten, None, Made::Recording), "");
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
