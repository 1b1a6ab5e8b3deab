//! The BIFs behind `erlang:system_monitor/0,1,2` and `trace:system/3`. Source: `erl_bif_trace.c`, OTP 29.

use super::trace::session_of;
use super::{BifResult, Raise, badarg, bifs};
use crate::process::{self, Process};
use crate::term::{Pid, Term, View, am};
use crate::trace::sysmon::{Limits, Monitor};
use crate::trace::{Handle, TracerId};

bifs! {
    all unrecorded;
    bif erts_internal:"system_monitor"/1 => system_monitor_1;
    bif erts_internal:"system_monitor"/3 => system_monitor_3;
}

fn session(term: Term<'_>) -> Result<Handle, Raise<'static>> {
    if term == am::legacy {
        return Ok(Handle::legacy());
    }
    session_of(term, false).ok_or_else(badarg)
}

fn system_monitor_1<'p>(p: &'p Process, [of]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(current(p, &session(of)?.monitor()))
}

/// `{Receiver, Events}` or `undefined`.
fn current<'p>(p: &'p Process, monitor: &Monitor) -> Term<'p> {
    match monitor.receiver {
        Some(receiver) => p.tuple(&[receiver.term(), events(p, monitor)]),
        None => am::undefined.term(),
    }
}

/// All that is monitored, as a list.
pub(super) fn events<'p>(p: &'p Process, monitor: &Monitor) -> Term<'p> {
    p.list(&monitor.limits.terms(p))
}

fn system_monitor_3<'p>(p: &'p Process, [of, receiver, list]: [Term<'p>; 3]) -> BifResult<'p> {
    let session = session(of)?;
    if !list.is_nil() && list.as_cons().is_none() {
        return Err(badarg().into());
    }
    match session.tracer() {
        None => with_receiver(p, &session, receiver, list),
        Some(TracerId::Process(tracer)) if receiver == am::session => {
            // What is not named stays as it is.
            let mut monitor = session.monitor();
            monitor.receiver = Some(tracer);
            change(&mut monitor.limits, list)?;
            session.set_monitor(monitor);
            Ok(am::ok.term())
        }
        Some(_) => Err(badarg().into()),
    }
}

/// As `erlang:system_monitor/2`: what is not named ends.
fn with_receiver<'p>(
    p: &'p Process,
    session: &Handle,
    receiver: Term<'p>,
    list: Term<'p>,
) -> BifResult<'p> {
    let mut monitor = Monitor::default();
    if !(receiver == am::undefined || list.is_nil()) {
        list.as_cons().ok_or_else(badarg)?;
        let pid: Pid = receiver.as_pid().ok_or_else(badarg)?;
        if !process::exists(pid) {
            return Err(badarg().into());
        }
        monitor.receiver = Some(pid);
        change(&mut monitor.limits, list)?;
    }
    let before = current(p, &session.monitor());
    session.set_monitor(monitor);
    Ok(before)
}

/// Takes over each `Event` or `{Event, Limit}` of the list.
fn change(limits: &mut Limits, list: Term<'_>) -> Result<(), Raise<'static>> {
    for item in list.list_iter() {
        let item = item.map_err(|_| badarg())?;
        let (name, value) = match item.view() {
            View::Atom(name) => (name, Term::bool(true)),
            View::Tuple(pair) => match *pair.elements() {
                [name, value] => (name.as_atom().ok_or_else(badarg)?, value),
                _ => return Err(badarg()),
            },
            _ => return Err(badarg()),
        };
        limits.set(name, value).ok_or_else(badarg)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::Atom;

    #[test]
    fn limits_are_checked_and_raised_to_the_least() {
        let p = &Process::new(233);
        let pair = |key: Atom, value: Term<'_>| {
            let mut limits = Limits::default();
            let item = p.tuple(&[key.term(), p.copy_in(value)]);
            change(&mut limits, p.list(&[item])).map(|()| limits).ok()
        };
        let of = |key, value| pair(key, Term::small(value));
        assert_eq!(of(am::long_gc, 0).map(|of| of.long_gc.0), Some(1));
        assert_eq!(
            of(am::long_schedule, 7).map(|of| of.long_schedule.0),
            Some(7)
        );
        assert_eq!(
            of(am::large_heap, 5).map(|of| of.large_heap.0),
            Some(16_384)
        );
        assert_eq!(of(am::long_gc, -1), None);
        assert_eq!(of(am::busy_port, 1), None);
        assert_eq!(of(am::timeout, 1), None);
        let queue = |off, on| {
            let limits = p.tuple(&[Term::small(off), Term::small(on)]);
            pair(am::long_message_queue, limits).map(|of| of.long_message_queue)
        };
        assert_eq!(queue(2, 3), Some(Some((2, 3))));
        assert_eq!(queue(3, 3), None);
        assert_eq!(queue(-1, 3), None);
    }
}
