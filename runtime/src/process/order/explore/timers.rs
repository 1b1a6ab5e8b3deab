//! Timers of an explored run that send a message to a process. Each is a process of its own, whose end sends the message:
//! the order of this end and of the calls that cancel or read the timer is one of accesses, and the message is one of those
//! that tell of an end.
//!
//! A timer that was cancelled ends at once, and sends nothing: a run has both orders in its trace, or a prefix of it.

use beamline_orders::LEFT_OUT;

use super::watches::{Watch, access_end_of, end_of, note_watch};
use super::{born, kept, note_unexplored};
use crate::process::order::access::Access;
use crate::process::order::is_explored;
use crate::process::refs::RefNumbers;
use crate::process::registry::{Named, look_for, name_of};
use crate::process::spawn::SystemLimit;
use crate::process::user_timers::Receiver;
use crate::process::{Control, Outcome, Process, SpawnOptions, exists, lookup, user_timers};
use crate::sched::ptab::pin;
use crate::sched::timers::deadline_after;
use crate::sys::chance::clock;
use crate::term::{Atom, Pid, Term, am};

/// A timer, as a process.
pub(crate) struct Timer {
    pub(crate) pid: Pid,
    reference: RefNumbers,
    /// Its receiver.
    receiver: Receiver,
    /// Its time has come, or nobody waits for it any more.
    is_due: bool,
    /// A call has cancelled it.
    is_cancelled: bool,
    /// It has ended.
    has_ended: bool,
}

impl Timer {
    /// A call has tried to cancel it: see [`note_cancelled`].
    fn note_cancelled(&mut self, was_there: bool, exists: impl Fn(Pid) -> bool) {
        let has_ended = |receiver: Pid| !exists(receiver);
        self.is_cancelled |= was_there || self.receiver.process().is_some_and(has_ended);
    }

    /// Whether somebody could still get its message.
    fn is_left(&self, exists: impl Fn(Pid) -> bool) -> bool {
        let may_be_there = match self.receiver {
            Receiver::Pid(pid) => exists(pid),
            Receiver::Name(_) => true,
        };
        !self.has_ended && may_be_there
    }
}

/// Named among what is not explored: messages of timers that go off when the run has ended.
const LATER: &str = "timers that go off later";

/// `p` is about to start a timer.
///
/// # Errors
/// As [`Process::yield_if_killed_first`].
pub(crate) fn wait_to_start_timer(p: &Process) -> Result<(), Control<'static>> {
    match is_explored() {
        true => p.yield_if_killed_first(),
        false => Ok(()),
    }
}

/// `p` has started a timer.
///
/// # Errors
/// There are as many processes as there may be.
pub(crate) fn start_timer(
    p: &Process,
    receiver: Receiver,
    reference: RefNumbers,
) -> Result<(), SystemLimit> {
    let is_for_left_out = || match receiver {
        Receiver::Pid(pid) => is_left_out(pid),
        Receiver::Name(name) => LEFT_OUT.contains(&name.name()),
    };
    if !is_explored() || is_left_out(p.pid()) || is_for_left_out() {
        return Ok(());
    }
    let function = Atom::new("start_timer");
    let options = SpawnOptions::default();
    let child = p.bear(am::erlang, function, Term::NIL, &options, false)?;
    let pid = child.pid();
    born(pid, || "timer".to_owned());
    kept(|kept| {
        // A timer is no process that could be left over, or that keeps a run going.
        kept.alive.remove(&pid);
        kept.timers.push(Timer {
            pid,
            reference,
            receiver,
            is_due: false,
            is_cancelled: false,
            has_ended: false,
        });
    });
    child.process.psd().native = Some(Box::new(wait_until_due));
    child.start();
    if !user_timers::is_there(reference) {
        note_due(reference);
    }
    Ok(())
}

fn is_left_out(pid: Pid) -> bool {
    name_of(Named::Process(pid)).is_some_and(|name| LEFT_OUT.contains(&name.name()))
}

/// The time slice of a timer. If its end is in the prefix of the run, its time has come, whatever the clock says.
fn wait_until_due(p: &mut Process) -> Outcome {
    let state = |timer: &mut Timer| (timer.is_due, timer.reference);
    let Some((is_due, reference)) = timer_that_is(p.pid(), state) else {
        return Outcome::Wait;
    };
    if !is_due && !p.has_steps_to_follow() {
        return Outcome::Wait;
    }
    if let Some(deadline_ns) = user_timers::deadline_ns(reference) {
        clock::advance_to(deadline_ns);
    }
    Outcome::Exit(p.exit_with(am::normal.term()))
}

/// Moves the clock past the time-out of a receive: it times out because the prefix says so.
pub(in crate::process) fn time_has_passed(timeout: Term<'_>) {
    if is_explored()
        && let Some(milliseconds) = timeout.as_index()
    {
        clock::advance_to(deadline_after(milliseconds as u64));
    }
}

fn timer<T>(is_it: impl Fn(&Timer) -> bool, with: impl FnOnce(&mut Timer) -> T) -> Option<T> {
    match is_explored() {
        true => kept(|kept| kept.timers.iter_mut().find(|timer| is_it(timer)).map(with))?,
        false => None,
    }
}

fn timer_of<T>(reference: RefNumbers, with: impl FnOnce(&mut Timer) -> T) -> Option<T> {
    timer(|timer| timer.reference == reference, with)
}

fn timer_that_is<T>(pid: Pid, with: impl FnOnce(&mut Timer) -> T) -> Option<T> {
    timer(|timer| timer.pid == pid, with)
}

/// Whether it is a timer.
pub(crate) fn is_timer(pid: Pid) -> bool {
    timer_that_is(pid, |_| ()).is_some()
}

/// The receiver of a timer that is about to go off.
pub(crate) fn receiver_of_timer(pid: Pid) -> Option<Pid> {
    timer_that_is(pid, |timer| timer.receiver)?.process()
}

/// The access with which a timer ends, before it goes off: a write of what `cancel_timer` reads.
///
/// # Errors
/// As [`Process::access`].
pub(super) fn wait_to_go_off(p: &Process) -> Result<(), Control<'static>> {
    let end = end_of(p.pid(), Access::Write);
    match timer_that_is(p.pid(), |timer| timer.receiver) {
        Some(Receiver::Name(name)) => p.access_all(&[end, look_for(name)]),
        _ => p.access(end),
    }
}

/// `p` is about to cancel a timer, or to read it.
///
/// # Errors
/// As [`access_end_of`].
pub(crate) fn access_timer(p: &Process, reference: RefNumbers) -> Result<(), Control<'static>> {
    match timer_of(reference, |timer| timer.pid) {
        Some(pid) => access_end_of(p, pid),
        None => Ok(()),
    }
}

/// Lets a timer end: its time has come, or nobody waits for it any more. Whether there is such a timer.
pub(in crate::process) fn note_due(reference: RefNumbers) -> bool {
    let found = timer_of(reference, |timer| {
        timer.is_due = true;
        timer.pid
    });
    if let Some(pid) = found
        && let Some(process) = lookup(pid, &pin())
    {
        process.wake();
    }
    found.is_some()
}

/// A call has tried to cancel a timer. If it was there, nobody hears of its end. Nor does anybody if its receiver has
/// ended: then it is not found, but it would have gone off for nobody.
pub(crate) fn note_cancelled(reference: RefNumbers, was_there: bool) {
    timer_of(reference, |timer| timer.note_cancelled(was_there, exists));
}

/// `p` has ended: if it is a timer, it goes off.
pub(in crate::process) fn note_gone_off(p: &Process) {
    let ended = timer_that_is(p.pid(), |timer| {
        timer.has_ended = true;
        (timer.reference, timer.receiver, timer.is_cancelled)
    });
    let Some((reference, receiver, is_cancelled)) = ended else {
        return;
    };
    // A receiver that has ended meanwhile could have got the message before.
    if let Some(receiver) = receiver.process().filter(|_| !is_cancelled) {
        note_watch(Watch::new(receiver, p.pid(), Some(reference)));
    }
    user_timers::go_off(reference, Some(p.pid()));
}

/// No process is left: timers that nobody waits for go off, as they could have done before. Whether there are any.
pub(crate) fn go_off_for_nobody() -> bool {
    let left = kept(|kept| {
        let left = kept.timers.iter().filter(|timer| !timer.is_due);
        left.map(|timer| timer.reference).collect::<Vec<_>>()
    });
    let left = left.unwrap_or_default();
    for reference in &left {
        note_due(*reference);
    }
    !left.is_empty()
}

/// The run ends: notes whether timers are left whose receivers are still there.
pub(crate) fn note_timers_left() {
    let is_left = |timer: &Timer| timer.is_left(exists);
    if kept(|kept| kept.timers.iter().any(is_left)) == Some(true) {
        note_unexplored(LATER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GONE: Pid = Pid(1);
    const THERE: Pid = Pid(2);

    fn timer_for(receiver: Receiver) -> Timer {
        Timer {
            pid: Pid(9),
            reference: [1, 0, 0],
            receiver,
            is_due: false,
            is_cancelled: false,
            has_ended: false,
        }
    }

    #[test]
    fn a_timer_is_cancelled_where_it_was_found_or_its_receiver_is_gone() {
        for (receiver, was_there, is_cancelled) in [
            (THERE, true, true),
            // Its time had come: the message is on its way.
            (THERE, false, false),
            (GONE, false, true),
        ] {
            let mut timer = timer_for(Receiver::Pid(receiver));
            timer.note_cancelled(was_there, |pid| pid != GONE);
            assert_eq!(timer.is_cancelled, is_cancelled, "{receiver:?} {was_there}");
            // A later call that does not find it takes nothing back.
            timer.note_cancelled(false, |_| true);
            assert_eq!(timer.is_cancelled, is_cancelled);
        }
    }

    #[test]
    fn a_timer_is_left_over_where_somebody_could_still_get_its_message() {
        let name = Receiver::Name(Atom::new("nobody_yet"));
        for (receiver, has_ended, is_left) in [
            (Receiver::Pid(THERE), false, true),
            (Receiver::Pid(THERE), true, false),
            (Receiver::Pid(GONE), false, false),
            // A process may take the name later.
            (name, false, true),
        ] {
            let mut timer = timer_for(receiver);
            timer.has_ended = has_ended;
            assert_eq!(timer.is_left(|pid| pid != GONE), is_left);
        }
    }
}
