//! What native code of libraries a thread runs, and the line that names it where a signal ends the program.
//!
//! After the line the signal does what it does by default, so that core dump and exit status are those of the crash.
//!
//! Invariants:
//! - CR1: what `RUNNING` points to lives until a [`Running`] puts back what was there before.
//! - CR2: the handler reads a word of its thread and text that does not change, and calls `writev`, `sigaction` and `raise`
//!   alone, which are safe in a signal handler.
#![expect(unsafe_code, reason = "signal handlers")]

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering, compiler_fence};

use libc::c_int;

/// Native code of a library: what is said of it.
pub struct Native(Box<str>);

thread_local! {
    /// What this thread runs; null where it runs none.
    static RUNNING: AtomicPtr<Native> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// Where this thread says what native code it runs, and null where it runs none: for compiled code, which says it itself.
#[must_use]
pub fn running() -> *const AtomicPtr<Native> {
    RUNNING.with(|running| &raw const *running)
}

/// The thread runs native code, until this is dropped.
pub struct Running<'n> {
    before: *mut Native,
    native: std::marker::PhantomData<&'n Native>,
}

impl Native {
    /// `what` is in the library in `file`.
    #[must_use]
    pub fn new(what: &str, file: &str) -> Native {
        Native(format!("{what} of {file}").into())
    }

    /// The thread runs it from now on.
    #[inline]
    #[must_use]
    pub fn running(&self) -> Running<'_> {
        let this = ptr::from_ref(self).cast_mut();
        // What a handler on this thread sees is in the order of the program.
        let before = RUNNING.with(|running| {
            let before = running.load(Ordering::Relaxed);
            running.store(this, Ordering::Relaxed);
            before
        });
        compiler_fence(Ordering::SeqCst);
        Running {
            before,
            native: std::marker::PhantomData,
        }
    }
}

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        RUNNING.with(|running| running.store(self.before, Ordering::Relaxed));
    }
}

/// Ends the program as a panic does, for a fault of the native code that the thread runs.
pub fn abort(fault: &str) -> ! {
    let running = RUNNING.with(|running| running.swap(ptr::null_mut(), Ordering::Relaxed));
    // SAFETY: CR1.
    let what = unsafe { running.as_ref() }.map_or("a thread of native code", |it| &it.0);
    crate::complain!("beamline: {what}: {fault}");
    std::process::abort()
}

/// The signals of faults, and what they say.
const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, ": ended by SIGSEGV\n"),
    (libc::SIGBUS, ": ended by SIGBUS\n"),
    (libc::SIGILL, ": ended by SIGILL\n"),
    (libc::SIGFPE, ": ended by SIGFPE\n"),
    (libc::SIGABRT, ": ended by SIGABRT\n"),
];

/// What they did before.
static BEFORE: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

extern "C" fn handler(signal: c_int, about: *const libc::siginfo_t, _: *const libc::c_void) {
    let native = RUNNING.with(|running| running.swap(ptr::null_mut(), Ordering::Relaxed));
    let at = SIGNALS.iter().position(|row| row.0 == signal);
    let (Some(at), Some(before)) = (at, BEFORE.get()) else {
        return;
    };
    // SAFETY: CR1, CR2: whole structures; a signal that somebody has sent is sent once more, others come again when the
    // instruction is.
    unsafe {
        match native.as_ref() {
            Some(native) => {
                write_line(["beamline: ", &native.0, SIGNALS[at].1]);
                set(signal, &default_action());
            }
            None => set(signal, &before[at]),
        }
        if (*about).si_code <= 0 {
            libc::raise(signal);
        }
    }
}

fn write_line(parts: [&str; 3]) {
    let parts = parts.map(|part| libc::iovec {
        iov_base: part.as_ptr().cast_mut().cast(),
        iov_len: part.len(),
    });
    // SAFETY: CR2: texts that live as long as the call.
    unsafe { libc::writev(libc::STDERR_FILENO, parts.as_ptr(), parts.len() as c_int) };
}

fn default_action() -> libc::sigaction {
    // SAFETY: zeros are such a structure: the default, and no flags.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn action_of(signal: c_int) -> libc::sigaction {
    let mut now = default_action();
    // SAFETY: CR2: the old action is read, and none is set.
    unsafe { libc::sigaction(signal, ptr::null(), &raw mut now) };
    now
}

fn set(signal: c_int, action: &libc::sigaction) {
    // SAFETY: CR2: a whole structure.
    unsafe { libc::sigaction(signal, action, ptr::null_mut()) };
}

/// Has crashes of native code named from now on. A signal for which a program has chosen something does that.
pub fn watch() {
    let mut is_first = false;
    let before = BEFORE.get_or_init(|| {
        is_first = true;
        SIGNALS.map(|(signal, _)| action_of(signal))
    });
    if !is_first {
        return;
    }
    let ours = libc::sigaction {
        sa_sigaction: handler as *const () as libc::sighandler_t,
        // The stack may be what is exhausted.
        sa_flags: libc::SA_SIGINFO | libc::SA_ONSTACK,
        ..default_action()
    };
    for ((signal, _), before) in SIGNALS.iter().zip(before) {
        // Rust's own handlers of these two look for an overflow of the stack.
        let is_fault = [libc::SIGSEGV, libc::SIGBUS].contains(signal);
        if is_fault || before.sa_sigaction == libc::SIG_DFL {
            set(*signal, &ours);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> *mut Native {
        RUNNING.with(|running| running.load(Ordering::Relaxed))
    }

    #[test]
    fn a_thread_runs_what_was_called_last() {
        let (outer, inner) = (Native::new("m:f/1", "m.so"), Native::new("n:g/2", "n.so"));
        let address = |native: &Native| ptr::from_ref(native).cast_mut();
        let first = outer.running();
        assert_eq!(running(), address(&outer));
        let second = inner.running();
        assert_eq!(running(), address(&inner));
        drop(second);
        assert_eq!(running(), address(&outer));
        drop(first);
        assert!(running().is_null());
    }
}
