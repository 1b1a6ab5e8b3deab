//! Halting: one request ends the machine; what must be written first is written by hooks.

use std::sync::{Condvar, Mutex};

use crate::bif::{BifResult, Raise, badarg, bifs};
use crate::process::Process;
use crate::sys::stderr::complain;
use crate::term::{Term, View, am};

bifs! {
    bif erlang:"halt"/2 => halt_2;
}

struct State {
    code: Option<Exit>,
    hooks: Vec<fn()>,
}

/// How the machine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(i32),
    Abort,
}

static STATE: Mutex<State> = Mutex::new(State {
    code: None,
    hooks: Vec::new(),
});
static CHANGED: Condvar = Condvar::new();

fn state() -> std::sync::MutexGuard<'static, State> {
    STATE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Has `hook` called before the machine ends, in the order of these calls.
pub fn add_hook(hook: fn()) {
    state().hooks.push(hook);
}

/// Asks for the end of the machine with exit code `code`. The first request counts.
pub fn request(code: i32) {
    end(Exit::Code(code));
}

/// Asks for the end of the machine from a thread that may hold any lock and has no memory. Tells whether it has asked.
pub(crate) fn try_end(exit: Exit) -> bool {
    let state = STATE.try_lock();
    let asked = state.map(|mut state| *state.code.get_or_insert(exit));
    CHANGED.notify_all();
    asked.is_ok()
}

fn end(exit: Exit) {
    state().code.get_or_insert(exit);
    CHANGED.notify_all();
}

/// Waits for a request, runs the hooks, and tells the exit code.
pub(crate) fn wait() -> i32 {
    let guard = CHANGED.wait_while(state(), |state| state.code.is_none());
    let mut guard = guard.unwrap_or_else(std::sync::PoisonError::into_inner);
    let hooks = std::mem::take(&mut guard.hooks);
    let exit = guard.code;
    drop(guard);
    hooks.iter().for_each(|hook| hook());
    match exit {
        Some(Exit::Code(code)) => code,
        _ => std::process::abort(),
    }
}

/// Source: `halt_2()` in `bif.c`.
fn halt_2<'p>(p: &'p Process, [status, options]: [Term<'p>; 2]) -> BifResult<'p> {
    for option in options.list_iter() {
        let pair = option
            .ok()
            .and_then(Term::as_tuple)
            .filter(|t| t.arity() == 2)
            .ok_or_else(badarg)?;
        let key = pair.get(0).as_atom().ok_or_else(badarg)?;
        match key {
            am::flush => drop(pair.get(1).as_bool().ok_or_else(badarg)?),
            am::flush_timeout => {
                let ok = pair.get(1).as_index().is_some() || pair.get(1) == am::infinity;
                if !ok {
                    return Err(badarg());
                }
            }
            _ => return Err(badarg()),
        }
    }
    crate::trace::totals::halting(p);
    match status.view() {
        // Exit codes are a byte; ERTS hands the rest to the system, which cuts it.
        View::Small(code @ 0..) => request((code & 0xff) as i32),
        View::Big(big) if !big.is_negative() => request((big.limbs()[0] & 0xff) as i32),
        View::Atom(am::abort) => end(Exit::Abort),
        View::Cons(_) | View::Nil => {
            let slogan = slogan(status).ok_or_else(badarg)?;
            complain!("{slogan}");
            request(1);
        }
        _ => return Err(badarg()),
    }
    if crate::sched::clock::is_virtual() {
        // Nothing else is done, in any run.
        loop {
            std::thread::park();
        }
    }
    Err(Raise::Wait)
}

/// The text of a crash, at most 1023 characters.
fn slogan(text: Term<'_>) -> Option<String> {
    let chars = text.list_iter().take(1023).map(|c| {
        c.ok()
            .and_then(Term::as_small)
            .and_then(|c| u32::try_from(c).ok())
            .and_then(char::from_u32)
    });
    chars.collect()
}
