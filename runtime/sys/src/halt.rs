//! Halts the machine. One request ends it, after what must be written first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

struct State {
    code: Option<Exit>,
}

/// How the machine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this exit code.
    Code(i32),
    /// As a program that is aborted.
    Abort,
}

static STATE: Mutex<State> = Mutex::new(State { code: None });
static CHANGED: Condvar = Condvar::new();
/// Is there a request? Read before each time slice.
static IS_REQUESTED: AtomicBool = AtomicBool::new(false);

fn state() -> std::sync::MutexGuard<'static, State> {
    STATE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Asks for the end of the machine with exit code `code`. The first request counts.
pub fn request(code: i32) {
    end(Exit::Code(code));
}

/// Asks for the end of the machine from a thread that may hold any lock and has no memory. Tells whether it has asked.
pub(crate) fn try_end(exit: Exit) -> bool {
    let state = STATE.try_lock();
    let asked = state.map(|mut state| *state.code.get_or_insert(exit));
    IS_REQUESTED.store(true, Ordering::Relaxed);
    CHANGED.notify_all();
    asked.is_ok()
}

/// Asks for the end of the machine. The first request counts.
pub fn end(exit: Exit) {
    state().code.get_or_insert(exit);
    IS_REQUESTED.store(true, Ordering::Relaxed);
    CHANGED.notify_all();
}

/// How the machine is asked to end, if it is.
pub fn requested() -> Option<Exit> {
    state().code
}

/// Is the machine asked to end? A load.
#[inline]
pub fn is_requested() -> bool {
    IS_REQUESTED.load(Ordering::Relaxed)
}

/// Waits for a request, calls `at_end`, in this order, and tells the exit code.
pub fn wait(at_end: &[fn()]) -> i32 {
    let guard = CHANGED.wait_while(state(), |state| state.code.is_none());
    let guard = guard.unwrap_or_else(std::sync::PoisonError::into_inner);
    let exit = guard.code;
    drop(guard);
    at_end.iter().for_each(|write| write());
    match exit {
        Some(Exit::Code(code)) => code,
        _ => std::process::abort(),
    }
}
