//! Waits for a command's end, whatever signals come meanwhile, and for what emulators say in files.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;

use beamline_settings::chance;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};

use crate::report;

/// How often is looked at what is waited for.
const PAUSE: Duration = Duration::from_millis(2);

/// Blocks until something is so, but no longer than this.
pub(super) fn wait_until(limit: Duration, mut is_so: impl FnMut() -> bool) {
    let begun = chance::now();
    while !is_so() && begun.elapsed() < limit {
        thread::sleep(PAUSE);
    }
}

/// Starts a command and waits for its end.
///
/// The keys of a terminal (Ctrl-C, Ctrl-\) signal the command as well. The other signals that ask for an end are passed
/// on, and the keys' signals, too, if another process sent them. After the first Ctrl-C, a command that `is_measured` can
/// write what it has measured, and the second one ends it.
///
/// The file `switch` gets a byte for each SIGUSR2.
pub(super) fn wait(
    command: &mut Command,
    is_measured: bool,
    switch: Option<PathBuf>,
) -> io::Result<ExitStatus> {
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    if switch.is_some() {
        signals.add_signal(SIGUSR2)?;
    }
    let handle = signals.handle();
    let mut child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let forwarder = thread::spawn(move || {
        let mut interrupts = 0_u32;
        for origin in signals.forever() {
            if let Some(switch) = switch.as_deref().filter(|_| origin.signal == SIGUSR2) {
                turn(switch);
            }
            interrupts += u32::from(is_measured && origin.signal == SIGINT);
            if let (Some(pid), Some(passed)) = (pid, passed(&origin, interrupts)) {
                // A command that has just ended needs no signal any more.
                let _ = kill_process(pid, passed);
            }
        }
    });
    let status = child.wait();
    handle.close();
    // The thread ends with its signals; a panic in it would be no reason to lose the profile.
    let _ = forwarder.join();
    status
}

/// Tells the emulators of a signal.
fn turn(switch: &Path) {
    let file = File::options().append(true).create(true).open(switch);
    if let Err(error) = file.and_then(|mut file| file.write_all(b"!")) {
        report::error(&format!("{}: {error}", switch.display()));
    }
}

/// The signal for the command when this one came, after `interrupts` interrupts.
fn passed(origin: &Origin, interrupts: u32) -> Option<Signal> {
    let is_of_terminal = !matches!(origin.cause, Cause::Sent(_));
    match origin.signal {
        SIGTERM => Some(Signal::TERM),
        SIGHUP => Some(Signal::HUP),
        // Those of the terminal come to the emulator too, which may have a menu for them.
        SIGINT if is_of_terminal => None,
        SIGINT if interrupts > 1 => Some(Signal::KILL),
        SIGINT => Some(Signal::INT),
        SIGQUIT if !is_of_terminal => Some(Signal::QUIT),
        _ => None,
    }
}
