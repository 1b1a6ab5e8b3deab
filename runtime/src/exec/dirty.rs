//! Native functions on dirty schedulers: which threads these are, and BIFs that run there.
//!
//! A BIF hands what is to be done to [`on`], each time it is called. What is still to be run, and what it has come to,
//! rest as work of the process.

use std::cell::Cell;
use std::ffi::c_int;

use super::nif;
use crate::process::order::director::may_timing_show;
use crate::process::{BifResult, Control, Dirty, Holds, Leave, Leaves, Process, Raise, work};
use crate::sched;
use crate::sys::chance;
use crate::term::Term;

thread_local! {
    /// The dirty schedulers that this thread is one of, and its number among all schedulers, from 1.
    static DIRTY: Cell<Option<(Dirty, usize)>> = const { Cell::new(None) };
}

/// Makes this thread the dirty scheduler of this kind and number.
pub(crate) fn become_dirty(dirty: Dirty, number: usize) {
    DIRTY.set(Some((dirty, number)));
}

/// Makes this thread no dirty scheduler any more.
pub(crate) fn end_dirty() {
    DIRTY.set(None);
}

/// The dirty scheduler that this thread is: its kind, and its number among all schedulers.
pub(crate) fn scheduler() -> Option<(Dirty, usize)> {
    DIRTY.get()
}

/// The dirty schedulers that this thread is one of.
pub(crate) fn kind() -> Option<Dirty> {
    DIRTY.get().map(|(kind, _)| kind)
}

/// The kind of this thread as `enif_thread_type()` tells it: 1 an ordinary scheduler, 2 and 3 a dirty CPU and a dirty
/// I/O one, 0 another.
pub(crate) fn kind_of_thread() -> c_int {
    match (kind(), sched::current_id()) {
        (Some(Dirty::Cpu), _) => 2,
        (Some(Dirty::Io), _) => 3,
        (None, Some(_)) => 1,
        (None, None) => 0,
    }
}

/// The dirty schedulers that something is to run on, as an ordinary one sees it. In a virtual run it runs on the
/// ordinary one: there is one scheduler, and its order is that of the run.
pub(super) fn from_ordinary<T>(dirty: Option<T>) -> Option<T> {
    dirty.filter(|_| !chance::form().is_virtual())
}

/// What a BIF does, with its arguments.
pub(crate) type Body = for<'p> fn(&'p Process, &[Term<'p>]) -> BifResult<'p>;

/// The call of a BIF that is not run yet.
struct ToRun<'p> {
    args: Vec<Term<'p>>,
    on: Option<Leaves>,
    body: Body,
    holds: Holds,
}

work! { struct ToRun { args; on, body, holds } }

/// What the call of a BIF on a dirty scheduler has come to.
enum Ended<'p> {
    Value { value: Term<'p> },
    Error { reason: Term<'p> },
}

work! {
    enum Ended {
        Value { value; }
        Error { reason; }
    }
}

/// The result of a BIF that calls `body` on the dirty schedulers `dirty`, or on this one.
pub(crate) fn on<'p>(p: &'p Process, dirty: Dirty, body: Body, args: &[Term<'p>]) -> BifResult<'p> {
    begin_or_go_on(p, Some(long(dirty)), body, args, None)
}

/// As [`on`], for a BIF whose calls are usually short, and may hold something.
pub(super) fn briefly_on<'p>(
    p: &'p Process,
    dirty: Dirty,
    body: Body,
    args: &[Term<'p>],
    holds: Holds,
) -> BifResult<'p> {
    let leaves = Leaves {
        to: dirty,
        is_short: true,
        is_due: !may_timing_show(),
    };
    begin_or_go_on(p, Some(leaves), body, args, holds)
}

pub(super) fn long(to: Dirty) -> Leaves {
    Leaves {
        to,
        is_short: false,
        is_due: false,
    }
}

/// As [`on`], for a BIF that begins on an ordinary scheduler.
pub(crate) fn on_ordinary<'p>(p: &'p Process, body: Body, args: &[Term<'p>]) -> BifResult<'p> {
    begin_or_go_on(p, None, body, args, None)
}

fn begin_or_go_on<'p>(
    p: &'p Process,
    on: Option<Leaves>,
    body: Body,
    args: &[Term<'p>],
    holds: Holds,
) -> BifResult<'p> {
    match p.take_work_if::<Ended<'_>>().map(|it| *it) {
        Some(Ended::Value { value }) => return Ok(value),
        Some(Ended::Error { reason }) => return Err(Raise::Error(reason).into()),
        None => {}
    }
    let to_run = p.take_work_if::<ToRun<'_>>().map(|it| *it);
    let to_run = to_run.unwrap_or_else(|| ToRun {
        args: args.to_vec(),
        on,
        body,
        holds,
    });
    match from_ordinary(to_run.on) {
        None => (to_run.body)(p, &to_run.args),
        Some(leaves) => {
            p.put_off(to_run);
            Err(Control::Dirty(leaves).into())
        }
    }
}

/// The BIF goes on with a call of `body` on other schedulers, `None` for ordinary ones.
pub(crate) fn continue_on<'p>(
    p: &'p Process,
    on: Option<Dirty>,
    body: Body,
    args: &[Term<'p>],
) -> BifResult<'p> {
    let (args, on) = (args.to_vec(), on.map(long));
    let holds = None;
    let to_run = ToRun {
        args,
        on,
        body,
        holds,
    };
    Err(p.put_off(to_run).into())
}

/// Runs, on a dirty scheduler, the call that the process has left for. What that gives rests in the process, for an
/// ordinary scheduler.
pub(crate) fn run(p: &Process) {
    let Some(to_run) = p.take_work_if::<ToRun<'_>>() else {
        return nif::call_dirty(p);
    };
    match (to_run.body)(p, &to_run.args) {
        Ok(value) => {
            p.put_off(Ended::Value { value });
        }
        Err(Leave::Raise(Raise::Error(reason))) => {
            p.put_off(Ended::Error { reason });
        }
        Err(Leave::Control(Control::Yield)) => {}
        Err(_) => unreachable!("such a BIF returns, goes on, or raises an error"),
    }
}
