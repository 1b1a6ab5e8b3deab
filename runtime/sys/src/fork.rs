//! Forks this process, where nothing but the calling thread is at work.
//!
//! Invariants:
//! - FK1: whoever forks knows that no other thread of the process holds a lock or waits for a turn: the child has none of
//!   them.
#![expect(unsafe_code, reason = "a system call")]

use std::fs::{File, remove_file};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use super::chance::names::own_pid;

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

/// Ends this process at once: nothing is written, and no hook runs.
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

/// What this process has written to its standard output since it was captured.
#[derive(Debug)]
pub struct Captured {
    file: File,
    /// Where it would have gone.
    stdout: OwnedFd,
}

impl Captured {
    /// What this process writes to its standard output goes to a file from now on, which has no name once it is open; it is
    /// made in this folder.
    ///
    /// # Errors
    /// The system's.
    pub fn begin(folder: &Path) -> io::Result<Captured> {
        let path = folder.join(format!("output-{}", own_pid()));
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        remove_file(&path)?;
        let stdout = rustix::io::dup(rustix::stdio::stdout())?;
        rustix::stdio::dup2_stdout(file.as_fd())?;
        Ok(Captured { file, stdout })
    }

    /// Writes it where it would have gone.
    ///
    /// # Errors
    /// The system's.
    pub fn tell(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut to = File::from(self.stdout.try_clone()?);
        io::copy(&mut self.file, &mut to)?;
        Ok(())
    }

    /// Its first `max` bytes, and how many there are.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&mut self, max: u64) -> io::Result<(Vec<u8>, u64)> {
        let length = self.file.seek(SeekFrom::End(0))?;
        self.file.seek(SeekFrom::Start(0))?;
        let mut bytes = Vec::new();
        self.file.by_ref().take(max).read_to_end(&mut bytes)?;
        Ok((bytes, length))
    }
}

/// A signal ends this process after this time.
pub fn end_after(time: Duration) {
    // No time at all would be no end.
    let time = time.max(Duration::from_micros(1));
    // SAFETY: the signal set lives in this call, and no handler is installed.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGALRM);
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
    set_timer(time);
}

/// No signal ends this process any more because of its time.
pub fn end_by_itself() {
    set_timer(Duration::ZERO);
}

fn set_timer(time: Duration) {
    let value = libc::itimerval {
        it_interval: libc::timeval {
            tv_sec: 0,
            tv_usec: 0,
        },
        it_value: libc::timeval {
            tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_usec: time.subsec_micros() as libc::suseconds_t,
        },
    };
    // SAFETY: the value lives in this call.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &value, std::ptr::null_mut()) };
}

/// The signal that ends a process after its time.
pub const LATE: i32 = libc::SIGALRM;

/// This process has nothing to read from its standard input.
///
/// # Errors
/// The system's.
pub fn close_input() -> io::Result<()> {
    rustix::stdio::dup2_stdin(File::open("/dev/null")?.as_fd())?;
    Ok(())
}

/// What a terminal's keys send ends this process no more: its parent ends it.
pub fn ignore_keys() {
    for signal in [libc::SIGINT, libc::SIGQUIT] {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
