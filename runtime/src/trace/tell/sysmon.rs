//! Detects system events and tells their receivers, where the limits of all sessions say so. Source: `monitor_*()` in
//! `erl_trace.c`, OTP 29.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::exec::exception;
use crate::heap::{Heap, Message};
use crate::loader::module::Mfa;
use crate::process::{self, Peer, Process, SYSTEM, Signal};
use crate::term::{Port, am};
use crate::trace::record;
pub(crate) use crate::trace::session::monitor::Monitor;
use crate::trace::session::monitor::{BUSY_PORT, LARGE_HEAP, LONG_GC, LONG_QUEUE, LONG_SCHEDULE};
use crate::trace::session::system_event::{HeapInfo, Long};
pub(crate) use crate::trace::session::system_event::{Limits, PortOp, SystemEvent};
use crate::trace::session::{self, Shared};

/// Tells of an event of `who` where it exceeds what a session has set: `{monitor, Who, Event, What}`.
fn tell(who: impl Into<Peer>, event: &SystemEvent) {
    tell_those(who.into(), event, |_, monitor| {
        event.exceeds(&monitor.limits)
    });
}

fn tell_those(who: Peer, event: &SystemEvent, wants: impl Fn(&Shared, &Monitor) -> bool) {
    for session in session::all() {
        let monitor = *session.monitor.lock();
        if !wants(&session, &monitor) {
            continue;
        }
        if monitor.is_recorded {
            record::system(who, event);
        }
        // What happens to the receiver itself is not told.
        let Some(receiver) = monitor.receiver.filter(|it| Peer::from(*it) != who) else {
            continue;
        };
        let heap = Heap::detached();
        let (name, what) = (event.name().term(), event.term(&heap));
        let message = Message::of_tuple(&[am::monitor.term(), who.term(&heap), name, what]);
        // Gone: then nobody wants it.
        let _ = process::send(receiver, Signal::own(message, SYSTEM));
    }
}

/// Milliseconds that each collection lasts longer, for tests
/// (`erts_debug:set_internal_state(test_long_gc_sleep, _)`).
static TEST_SLEEP: AtomicU64 = AtomicU64::new(0);

/// Has each collection that is watched last longer.
pub(crate) fn set_test_sleep(milliseconds: u64) {
    TEST_SLEEP.store(milliseconds, Ordering::Relaxed);
}

/// When a collection begins; `None` where nobody cares how long it takes.
pub(crate) fn collection_begins() -> Option<i64> {
    let watched = LONG_GC.load(Ordering::Relaxed) != 0 || LARGE_HEAP.load(Ordering::Relaxed) != 0;
    watched.then(crate::sys::chance::clock::counter_ns)
}

/// A collection that began at `start` has ended.
#[cold]
pub(crate) fn collected(p: &Process, start: i64) {
    let sleep = TEST_SLEEP.load(Ordering::Relaxed);
    if sleep != 0 {
        std::thread::sleep(std::time::Duration::from_millis(sleep));
    }
    let (ms, heap) = (milliseconds_since(start), HeapInfo::of(p));
    let limit = LONG_GC.load(Ordering::Relaxed);
    if limit != 0 && ms > limit {
        tell(p.pid(), &SystemEvent::LongGc { ms, heap });
    }
    let limit = LARGE_HEAP.load(Ordering::Relaxed);
    if limit != 0 && heap.words() >= limit {
        tell(p.pid(), &SystemEvent::LargeHeap { heap });
    }
}

fn milliseconds_since(start: i64) -> u64 {
    let ns = crate::sys::chance::clock::counter_ns() - start;
    u64::try_from(ns / 1_000_000).unwrap_or(0)
}

/// A time slice that is watched: when it began, and in which function.
pub(crate) struct TimeSlice {
    start: i64,
    from: Option<Mfa>,
}

/// A time slice of `p` begins; `None` where nobody cares how long it takes.
#[inline]
pub(crate) fn slice_begins(p: &Process) -> Option<TimeSlice> {
    if LONG_SCHEDULE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let from = exception::current_function(p);
    let start = crate::sys::chance::clock::counter_ns();
    Some(TimeSlice { start, from })
}

/// It has ended.
#[cold]
pub(crate) fn slice_ended(p: &Process, slice: &TimeSlice) {
    let ms = milliseconds_since(slice.start);
    let limit = LONG_SCHEDULE.load(Ordering::Relaxed);
    if limit != 0 && ms > limit {
        let (from, to) = (slice.from, exception::current_function(p));
        let of = Long::Process { from, to };
        tell(p.pid(), &SystemEvent::LongSchedule { ms, of });
    }
}

/// A port's work that is watched, until this is dropped. What its driver does for a process that calls it is in the
/// time slice of that process.
pub(crate) struct PortWork {
    port: Port,
    operation: PortOp,
    start: i64,
}

/// `port` begins to do something; `None` where nobody cares how long it takes.
#[inline]
pub(crate) fn port_works(port: Port, operation: PortOp) -> Option<PortWork> {
    (LONG_SCHEDULE.load(Ordering::Relaxed) != 0).then(|| PortWork {
        port,
        operation,
        start: crate::sys::chance::clock::counter_ns(),
    })
}

impl Drop for PortWork {
    fn drop(&mut self) {
        let ms = milliseconds_since(self.start);
        let limit = LONG_SCHEDULE.load(Ordering::Relaxed);
        if limit != 0 && ms > limit {
            let of = Long::Port(self.operation);
            tell(self.port, &SystemEvent::LongSchedule { ms, of });
        }
    }
}

/// `p` has got messages.
#[inline]
pub(crate) fn queue_grew(p: &mut Process) {
    let limit = LONG_QUEUE.load(Ordering::Relaxed);
    if limit != 0 && p.mailbox.len() as u64 >= limit {
        queue_is_long(p);
    }
}

#[cold]
fn queue_is_long(p: &mut Process) {
    let messages = p.mailbox.len() as u64;
    let told = &mut p.long_queues;
    let mut new = Vec::new();
    for session in session::all() {
        let on = session.monitor.lock().limits.long_message_queue;
        if on.is_some_and(|(_, on)| messages >= on) && !told.contains(&session.id) {
            told.push(session.id);
            new.push(session.id);
        }
    }
    tell_of_queue(p, true, &new);
}

/// A message has left the queue of `p`, which was long.
#[cold]
pub(crate) fn queue_shrank(p: &mut Process) {
    let messages = p.mailbox.len() as u64;
    let mut over = Vec::new();
    p.long_queues.retain(|id| {
        let session = session::all().into_iter().find(|s| s.id == *id);
        match session.and_then(|s| s.monitor.lock().limits.long_message_queue) {
            Some((off, _)) if messages > off => true,
            Some(_) => {
                over.push(*id);
                false
            }
            None => false,
        }
    });
    tell_of_queue(p, false, &over);
}

/// Tells these sessions that the queue of `p` is long, or no longer so.
fn tell_of_queue(p: &Process, is_long: bool, sessions: &[u64]) {
    if !sessions.is_empty() {
        let messages = p.mailbox.len() as u64;
        let event = SystemEvent::LongMessageQueue { is_long, messages };
        tell_those(p.pid().into(), &event, |session, _| {
            sessions.contains(&session.id)
        });
    }
}

/// `p` waits for a connection to another node that is busy.
pub(crate) fn busy_dist_port(p: &Process, controller: Peer) {
    if BUSY_PORT.load(Ordering::Relaxed) {
        tell(p.pid(), &SystemEvent::BusyDistPort { controller });
    }
}

/// `p` waits for a port that is busy.
pub(crate) fn busy_port(p: &Process, port: Port) {
    if BUSY_PORT.load(Ordering::Relaxed) {
        tell(p.pid(), &SystemEvent::BusyPort { port });
    }
}
