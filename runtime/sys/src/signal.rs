//! Catches the system's signals. The handler only writes to a pipe, and a thread tells of the signal.
//!
//! Invariants:
//! - G1: `PIPE` is set before a handler is installed, and the descriptor in it is never closed.
//! - G2: the handler calls `write` alone, which is safe in a signal handler, and keeps `errno`.
#![expect(unsafe_code, reason = "signal handlers")]

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::spawn;

/// What a signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Nothing.
    Ignore,
    /// What the system does by default.
    Default,
    /// The function given to [`start`] gets it.
    Handle,
    /// The function given to [`start`] gets it the first time; after that the system does what it does by default.
    HandleOnce,
}

/// Signals that programs may name.
const NAMES: &[(&str, i32)] = &[
    ("sighup", libc::SIGHUP),
    ("sigquit", libc::SIGQUIT),
    ("sigabrt", libc::SIGABRT),
    ("sigalrm", libc::SIGALRM),
    ("sigterm", libc::SIGTERM),
    ("sigusr1", libc::SIGUSR1),
    ("sigusr2", libc::SIGUSR2),
    ("sigchld", libc::SIGCHLD),
    ("sigstop", libc::SIGSTOP),
    ("sigtstp", libc::SIGTSTP),
    ("sigcont", libc::SIGCONT),
    ("sigwinch", libc::SIGWINCH),
];

/// The number of the signal `name`.
#[must_use]
pub fn number(name: &str) -> Option<i32> {
    NAMES.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// The signal of a terminal's Ctrl-C, which programs may not name.
pub const INTERRUPT: (&str, i32) = ("sigint", libc::SIGINT);

/// The name of signal `number`.
#[must_use]
pub fn name(number: i32) -> Option<&'static str> {
    let mut all = NAMES.iter().chain([&INTERRUPT]);
    all.find(|row| row.1 == number).map(|row| row.0)
}

/// The writing end; -1 before [`start`].
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// What the handler tells: the signal, whether the system has sent it of itself, and the process that it is about.
type Told = [u8; 6];

extern "C" fn handler(signal: libc::c_int, about: *const libc::siginfo_t, _: *const libc::c_void) {
    // SAFETY: G1, G2: what the system tells of the signal, a few bytes from the stack into a pipe that is never closed.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        let [a, b, c, d] = (*about).si_pid().to_ne_bytes();
        let told: Told = [signal as u8, u8::from((*about).si_code > 0), a, b, c, d];
        libc::write(
            PIPE.load(Ordering::Relaxed),
            told.as_ptr().cast(),
            told.len(),
        );
        *errno = saved;
    }
}

/// The name of the signal, if it is one to tell of. The end of a program that we have started is none: in ERTS another
/// program starts them, which hears of their ends.
fn news(told: &Told) -> Option<&'static str> {
    let &[signal, of_itself, a, b, c, d] = told;
    let process = i32::from_ne_bytes([a, b, c, d]);
    let is_program =
        i32::from(signal) == libc::SIGCHLD && of_itself != 0 && spawn::is_ours(process);
    name(signal.into()).filter(|_| !is_program)
}

/// Starts the thread that calls `tell` with the name of each signal that is handled. The first call counts.
///
/// # Panics
/// When the system refuses a pipe or a thread.
pub fn start(tell: fn(&'static str)) {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).expect("two descriptors are free");
        rustix::io::ioctl_fionbio(&write, true).expect("a pipe can be non-blocking");
        PIPE.store(write.into_raw_fd(), Ordering::Relaxed);
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                debug_assert!(read.as_raw_fd() >= 0);
                // Each signal is written whole, and whole ones are read.
                let mut signals = [0; 16 * size_of::<Told>()];
                while let Ok(n) =
                    rustix::io::retry_on_intr(|| rustix::io::read(&read, &mut signals))
                {
                    let (told, _) = signals[..n].as_chunks();
                    told.iter().filter_map(news).for_each(tell);
                }
            })
            .expect("a thread can be started");
    });
}

/// Says what `signal` does from now on. `false` when the system refuses.
///
/// # Panics
/// When it is to be handled before [`start`].
pub fn set(signal: i32, disposition: Disposition) -> bool {
    let action = match disposition {
        Disposition::Ignore => libc::SIG_IGN,
        Disposition::Default => libc::SIG_DFL,
        Disposition::Handle | Disposition::HandleOnce => {
            assert!(PIPE.load(Ordering::Relaxed) >= 0, "signals are listened to");
            handler as *const () as libc::sighandler_t
        }
    };
    let flags = match disposition {
        Disposition::HandleOnce => libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_RESETHAND,
        Disposition::Handle => libc::SA_SIGINFO | libc::SA_RESTART,
        Disposition::Ignore | Disposition::Default => libc::SA_RESTART,
    };
    let mut new = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: G1, G2: a whole structure, with the flag that the handler is called by.
    unsafe {
        let new = new.assume_init_mut();
        new.sa_sigaction = action;
        new.sa_flags = flags;
        libc::sigemptyset(&raw mut new.sa_mask);
        libc::sigaction(signal, new, std::ptr::null_mut()) == 0
    }
}

/// Leaves the signals that come from outside to other threads: this one runs on stacks that no handler may run on.
/// Faults of the thread itself still come to it, and are handled on a stack of their own.
pub fn leave_to_others() {
    let faults = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGABRT,
    ];
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is filled first, and is the thread's own.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        for fault in faults {
            libc::sigdelset(all.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::clock::outside_now;
    use std::sync::Mutex;
    use std::time::Duration;

    static TOLD: Mutex<Vec<&str>> = Mutex::new(Vec::new());

    #[test]
    fn a_handled_signal_is_told_by_name() {
        start(|name| TOLD.lock().unwrap().push(name));
        assert!(set(libc::SIGUSR2, Disposition::Handle));
        // SAFETY: G2: the handler is installed.
        unsafe { libc::raise(libc::SIGUSR2) };
        let deadline = outside_now() + Duration::from_secs(10);
        while TOLD.lock().unwrap().is_empty() && outside_now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(*TOLD.lock().unwrap(), ["sigusr2"]);
        let is_default = || {
            let mut now = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: G2: the old action is read, and none is set.
            unsafe {
                libc::sigaction(libc::SIGUSR2, std::ptr::null(), now.as_mut_ptr());
                now.assume_init().sa_sigaction == libc::SIG_DFL
            }
        };
        assert!(set(libc::SIGUSR2, Disposition::HandleOnce) && !is_default());
        // SAFETY: G2: the handler is installed.
        unsafe { libc::raise(libc::SIGUSR2) };
        assert!(is_default());
        assert!(set(libc::SIGUSR2, Disposition::Ignore));
        assert!(!set(libc::SIGSTOP, Disposition::Ignore));
        assert_eq!(
            (number("sigterm"), number("sigkill")),
            (Some(libc::SIGTERM), None)
        );
    }
}
