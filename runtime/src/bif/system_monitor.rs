//! The BIFs behind `erlang:system_monitor/0,1,2` and `trace:system/3`. Source: `erl_bif_trace.c`, OTP 29.

use super::trace::session_of;
use super::{BifResult, Raise, badarg, bifs};
use crate::process::{self, Process};
use crate::term::{Pid, Term, View, am};
use crate::trace::sysmon::Monitor;
use crate::trace::{Handle, TracerId};

bifs! {
    bif erts_internal:"system_monitor"/1 => system_monitor_1;
    bif erts_internal:"system_monitor"/3 => system_monitor_3;
}

/// The least `large_heap` that is monitored, in words.
const MIN_LARGE_HEAP: u64 = 16_384;

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
    let mut list = Vec::new();
    if monitor.busy_dist_port {
        list.push(am::busy_dist_port.term());
    }
    if monitor.busy_port {
        list.push(am::busy_port.term());
    }
    let limits = [
        (am::large_heap, monitor.large_heap),
        (am::long_schedule, monitor.long_schedule),
        (am::long_gc, monitor.long_gc),
    ];
    let limits = limits.into_iter().filter(|(_, limit)| *limit != 0);
    list.extend(limits.map(|(key, limit)| p.tuple(&[key.term(), p.unsigned(limit)])));
    if let Some((off, on)) = monitor.long_message_queue {
        let both = p.tuple(&[p.unsigned(off), p.unsigned(on)]);
        list.push(p.tuple(&[am::long_message_queue.term(), both]));
    }
    p.list(&list)
}

fn system_monitor_3<'p>(p: &'p Process, [of, receiver, list]: [Term<'p>; 3]) -> BifResult<'p> {
    let session = session(of)?;
    if !list.is_nil() && list.as_cons().is_none() {
        return Err(badarg());
    }
    match session.tracer() {
        None => with_receiver(p, &session, receiver, list),
        Some(TracerId::Process(tracer)) if receiver == am::session => {
            // What is not named stays as it is.
            let mut monitor = session.monitor();
            monitor.receiver = Some(tracer);
            change(&mut monitor, list)?;
            session.set_monitor(monitor);
            Ok(am::ok.term())
        }
        Some(_) => Err(badarg()),
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
            return Err(badarg());
        }
        monitor.receiver = Some(pid);
        change(&mut monitor, list)?;
    }
    let before = current(p, &session.monitor());
    session.set_monitor(monitor);
    Ok(before)
}

fn limit(value: Term<'_>, least: u64) -> Result<u64, Raise<'static>> {
    if value == am::false_ {
        return Ok(0);
    }
    Ok(unsigned(value)?.max(least))
}

fn unsigned(value: Term<'_>) -> Result<u64, Raise<'static>> {
    match value.view() {
        View::Small(n) => u64::try_from(n).map_err(|_| badarg()),
        View::Big(big) if !big.is_negative() && big.limbs().len() == 1 => Ok(big.limbs()[0]),
        _ => Err(badarg()),
    }
}

fn change(monitor: &mut Monitor, list: Term<'_>) -> Result<(), Raise<'static>> {
    for item in list.list_iter() {
        let item = item.map_err(|_| badarg())?;
        let (key, value) = match item.view() {
            View::Atom(key) => (key, Term::bool(true)),
            View::Tuple(pair) => match *pair.elements() {
                [key, value] => (key.as_atom().ok_or_else(badarg)?, value),
                _ => return Err(badarg()),
            },
            _ => return Err(badarg()),
        };
        match key {
            am::long_gc => monitor.long_gc = limit(value, 1)?,
            am::long_schedule => monitor.long_schedule = limit(value, 1)?,
            am::large_heap => monitor.large_heap = limit(value, MIN_LARGE_HEAP)?,
            am::long_message_queue => monitor.long_message_queue = queue_limits(value)?,
            am::busy_port => monitor.busy_port = value.as_bool().ok_or_else(badarg)?,
            am::busy_dist_port => {
                monitor.busy_dist_port = value.as_bool().ok_or_else(badarg)?;
            }
            _ => return Err(badarg()),
        }
    }
    Ok(())
}

fn queue_limits(value: Term<'_>) -> Result<Option<(u64, u64)>, Raise<'static>> {
    if value == am::false_ {
        return Ok(None);
    }
    match *value.as_tuple().ok_or_else(badarg)?.elements() {
        [off, on] => {
            let (off, on) = (unsigned(off)?, unsigned(on)?);
            (off < on).then_some(Some((off, on))).ok_or_else(badarg)
        }
        _ => Err(badarg()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::Atom;

    #[test]
    fn limits_are_checked_and_raised_to_the_least() {
        let p = &Process::new(233);
        let pair = |key: Atom, value: Term<'_>| {
            let mut monitor = Monitor::default();
            let item = p.tuple(&[key.term(), p.copy_in(value)]);
            change(&mut monitor, p.list(&[item])).map(|()| monitor).ok()
        };
        let of = |key, value| pair(key, Term::small(value));
        assert_eq!(of(am::long_gc, 0).map(|m| m.long_gc), Some(1));
        assert_eq!(of(am::long_schedule, 7).map(|m| m.long_schedule), Some(7));
        assert_eq!(of(am::large_heap, 5).map(|m| m.large_heap), Some(16_384));
        assert_eq!(of(am::long_gc, -1), None);
        assert_eq!(of(am::busy_port, 1), None);
        let queue = |off, on| {
            let limits = p.tuple(&[Term::small(off), Term::small(on)]);
            pair(am::long_message_queue, limits).map(|m| m.long_message_queue)
        };
        assert_eq!(queue(2, 3), Some(Some((2, 3))));
        assert_eq!(queue(3, 3), None);
        assert_eq!(queue(-1, 3), None);
    }
}
