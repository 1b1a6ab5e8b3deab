//! Ends what a command has started, all of it and at once: when a signal asks for the end, when its time is over, and
//! when the command itself has ended.
//!
//! The command is a process group of its own. Processes that leave the group and lose their parents become children of
//! this one, which ends them too.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, set_child_subreaper, waitpid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// Runs commands one after the other, until a signal asks for the end of all.
#[derive(Clone, Debug)]
pub struct Guard {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The group of the command that runs.
    group: Option<Pid>,
    /// What asked for the end.
    signal: Option<i32>,
    /// The command's time was over.
    is_late: bool,
}

/// How a command ended.
#[derive(Debug)]
pub(super) enum End {
    /// By itself.
    Own(ExitStatus),
    /// Its time was over.
    Late,
    /// A signal asked for the end of all.
    Signal(i32),
}

impl Guard {
    /// Waits for signals from here on.
    ///
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<Guard> {
        let state = Arc::new(Mutex::new(State::default()));
        let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
        // Any number switches it on. Where the system does not know of it, processes that left their group live on.
        let _ = set_child_subreaper(Some(Pid::INIT));
        let guard = Guard { state };
        let waiting = guard.clone();
        thread::spawn(move || {
            for signal in signals.forever() {
                waiting.end_by(|state| state.signal = Some(signal));
            }
        });
        Ok(guard)
    }

    /// The signal that has asked for the end of all.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.with(|state| state.signal)
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes why, and ends the command that runs.
    fn end_by(&self, note: impl FnOnce(&mut State)) {
        self.with(|state| {
            note(state);
            if let Some(group) = state.group {
                // The group may have ended by itself.
                let _ = kill_process_group(group, Signal::KILL);
            }
        });
    }

    /// Runs a command to its end, or until this time is over.
    pub(super) fn run(&self, command: &mut Command, time: Option<Duration>) -> io::Result<End> {
        let mut child = self.with(|state| -> io::Result<_> {
            if state.signal.is_some() {
                return Ok(None);
            }
            let child = command.process_group(0).spawn()?;
            state.is_late = false;
            state.group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            Ok(Some(child))
        })?;
        let status = match &mut child {
            Some(child) => {
                let (ended, end) = channel::<()>();
                let late = self.clone();
                let watch = time.map(|time| {
                    thread::spawn(move || {
                        if end.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                            late.end_by(|state| state.is_late = true);
                        }
                    })
                });
                let status = child.wait();
                drop(ended);
                if let Some(watch) = watch {
                    // It does not panic, and nothing hangs on it.
                    let _ = watch.join();
                }
                Some(status)
            }
            None => None,
        };
        let (signal, is_late) = self.with(|state| {
            if let Some(group) = state.group.take() {
                // What it left behind; nobody, mostly.
                let _ = kill_process_group(group, Signal::KILL);
            }
            (state.signal, state.is_late)
        });
        end_children();
        match (signal, status) {
            (Some(signal), _) => Ok(End::Signal(signal)),
            (None, _) if is_late => Ok(End::Late),
            (None, Some(status)) => status.map(End::Own),
            (None, None) => Err(io::ErrorKind::Interrupted.into()),
        }
    }
}

/// Ends all children of this process, and those that become its children by that.
fn end_children() {
    for _ in 0..ROUNDS {
        let children = children();
        if children.is_empty() {
            return;
        }
        for child in children {
            let _ = kill_process(child, Signal::KILL);
            let _ = waitpid(Some(child), WaitOptions::empty());
        }
    }
}

/// Generations of children that are ended.
const ROUNDS: usize = 100;

fn children() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let files = threads
        .flatten()
        .map(|thread| thread.path().join("children"));
    let texts = files.filter_map(|file| fs::read_to_string(file).ok());
    let texts: Vec<String> = texts.collect();
    let numbers = texts.iter().flat_map(|text| text.split_whitespace());
    numbers
        .filter_map(|number| Pid::from_raw(number.parse().ok()?))
        .collect()
}
