//! Forks this process, where nothing but the calling thread is at work.
//!
//! Invariants:
//! - FK1: whoever forks knows that no other thread of the process holds a lock or waits for a turn: the child has none of
//!   them.
#![expect(unsafe_code, reason = "a system call")]

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Forks: the number of the child, or nothing in the child.
///
/// # Safety
/// FK1: other threads rest, or are gone.
///
/// # Errors
/// The system's: there is no memory, or there are too many processes.
pub unsafe fn fork() -> io::Result<Option<i32>> {
    // SAFETY: FK1: as promised.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}

/// Ends this process at once: nothing is written, and nobody is told.
pub fn leave(code: i32) -> ! {
    // SAFETY: the call touches nothing of this process.
    unsafe { libc::_exit(code) }
}

/// Waits for the end of a child: its exit code, or the signal that killed it.
///
/// # Errors
/// The signal's number.
pub fn wait(pid: i32) -> Result<i32, i32> {
    match super::spawn::wait(pid) {
        signal if signal > 128 => Err(signal - 128),
        code => Ok(code),
    }
}

/// What this process writes to its standard output and error goes nowhere from now on.
///
/// # Errors
/// The system's.
pub fn mute() -> io::Result<()> {
    let nowhere = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nowhere.as_fd())?;
    rustix::stdio::dup2_stderr(nowhere.as_fd())?;
    Ok(())
}

/// What a terminal's keys send ends this process no more: its parent ends it.
pub fn ignore_keys() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
