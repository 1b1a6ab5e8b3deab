//! System events: long collections, large heaps, long turns, long message queues, busy ports. Each session says
//! which of them it wants; one number for all of them says whether to look at all. Source: `monitor_*()` in
//! `erl_trace.c`, `system_monitor()` in `erl_bif_trace.c`, OTP 29.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::events;
use super::record;
use super::session::{self, Shared};
use crate::heap::{Heap, Message};
use crate::process::{self, Process, SYSTEM, Signal};
use crate::term::{Atom, Pid, Term, am};

/// What a session wants to hear of; 0 is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Monitor {
    pub(crate) receiver: Option<Pid>,
    /// The recorder's.
    pub(crate) is_recorded: bool,
    /// Milliseconds.
    pub(crate) long_gc: u64,
    /// Milliseconds.
    pub(crate) long_schedule: u64,
    /// Words.
    pub(crate) large_heap: u64,
    /// Messages at which a queue is long no more, and at which it is.
    pub(crate) long_message_queue: Option<(u64, u64)>,
    pub(crate) busy_port: bool,
    /// There are no other nodes to be busy with: it never comes.
    pub(crate) busy_dist_port: bool,
}

/// The least limits of all sessions; 0 where there is none.
static LONG_GC: AtomicU64 = AtomicU64::new(0);
static LONG_SCHEDULE: AtomicU64 = AtomicU64::new(0);
static LARGE_HEAP: AtomicU64 = AtomicU64::new(0);
static LONG_QUEUE: AtomicU64 = AtomicU64::new(0);
static BUSY_PORT: AtomicBool = AtomicBool::new(false);
/// Some session has a receiver.
static ANY: AtomicBool = AtomicBool::new(false);

/// Call after a session's monitor has changed.
pub(super) fn update() {
    let all: Vec<Monitor> = session::all().iter().map(|s| *s.monitor.lock()).collect();
    let least = |of: fn(&Monitor) -> u64| {
        let limits = all.iter().map(of).filter(|limit| *limit != 0);
        limits.min().unwrap_or(0)
    };
    LONG_GC.store(least(|m| m.long_gc), Ordering::Relaxed);
    LONG_SCHEDULE.store(least(|m| m.long_schedule), Ordering::Relaxed);
    LARGE_HEAP.store(least(|m| m.large_heap), Ordering::Relaxed);
    let queue = least(|m| m.long_message_queue.map_or(0, |(_, on)| on));
    LONG_QUEUE.store(queue, Ordering::Relaxed);
    BUSY_PORT.store(all.iter().any(|m| m.busy_port), Ordering::Relaxed);
    let any = all.iter().any(|m| m.receiver.is_some());
    ANY.store(any, Ordering::Relaxed);
}

/// A process is no more: who it would have told is told nothing.
pub(crate) fn exited(pid: Pid) {
    if !ANY.load(Ordering::Relaxed) {
        return;
    }
    for session in session::all() {
        let mut monitor = session.monitor.lock();
        if monitor.receiver == Some(pid) {
            *monitor = Monitor::default();
        }
    }
    update();
}

/// Tells the receivers of all sessions that want it: `{monitor, Id, Event, What}`.
fn tell(id: Term<'_>, event: Atom, what: Term<'_>, wants: impl Fn(&Shared, &Monitor) -> bool) {
    for session in session::all() {
        let monitor = *session.monitor.lock();
        if !wants(&session, &monitor) {
            continue;
        }
        if monitor.is_recorded {
            record::system(id, event, what);
        }
        let receiver = monitor.receiver;
        // What happens to the receiver itself is not told.
        let Some(receiver) = receiver.filter(|receiver| !receiver.term().same(id)) else {
            continue;
        };
        let message = Message::of_tuple(&[am::monitor.term(), id, event.term(), what]);
        let from = SYSTEM;
        // Gone: then nobody wants it.
        let _ = process::send(receiver, Signal::own(message, from));
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
    watched.then(crate::sched::clock::counter_ns)
}

/// A collection that began at `start` has ended.
#[cold]
pub(crate) fn collected(p: &Process, start: i64) {
    let heap = Heap::detached();
    let sleep = TEST_SLEEP.load(Ordering::Relaxed);
    if sleep != 0 {
        std::thread::sleep(std::time::Duration::from_millis(sleep));
    }
    let ms = milliseconds_since(start);
    let limit = LONG_GC.load(Ordering::Relaxed);
    if limit != 0 && ms > limit {
        let time = heap.tuple(&[am::timeout.term(), heap.unsigned(ms)]);
        let info = heap.cons(time, events::heap_info(&heap, p));
        let wants = |_: &Shared, m: &Monitor| m.long_gc != 0 && ms > m.long_gc;
        tell(p.pid().term(), am::long_gc, info, wants);
    }
    let (old, _) = p.old_words();
    let words = (p.block_words() + old) as u64;
    let limit = LARGE_HEAP.load(Ordering::Relaxed);
    if limit != 0 && words >= limit {
        let info = events::heap_info(&heap, p);
        let wants = |_: &Shared, m: &Monitor| m.large_heap != 0 && words >= m.large_heap;
        tell(p.pid().term(), am::large_heap, info, wants);
    }
}

fn milliseconds_since(start: i64) -> u64 {
    let ns = crate::sched::clock::counter_ns() - start;
    u64::try_from(ns / 1_000_000).unwrap_or(0)
}

/// A turn that is watched: when it began, and in which function.
pub(crate) struct Turn {
    start: i64,
    place: Message,
}

/// A turn of `p` begins; `None` where nobody cares how long it takes.
#[inline]
pub(crate) fn turn_begins(p: &Process) -> Option<Turn> {
    if LONG_SCHEDULE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let place = Message::copy_of(place(p));
    let start = crate::sched::clock::counter_ns();
    Some(Turn { start, place })
}

fn place(p: &Process) -> Term<'_> {
    crate::exec::exception::where_is(p, am::current_function)
}

/// It has ended.
#[cold]
pub(crate) fn turn_ended(p: &Process, turn: &Turn) {
    let ms = milliseconds_since(turn.start);
    let limit = LONG_SCHEDULE.load(Ordering::Relaxed);
    if limit == 0 || ms <= limit {
        return;
    }
    let heap = Heap::detached();
    let pair = |key: Atom, value: Term<'_>| {
        let value = heap.copy_in(value);
        heap.tuple(&[key.term(), value])
    };
    let info = heap.list(&[
        pair(am::timeout, heap.unsigned(ms)),
        pair(am::in_, turn.place.term()),
        pair(am::out, place(p)),
    ]);
    let wants = |_: &Shared, m: &Monitor| m.long_schedule != 0 && ms > m.long_schedule;
    tell(p.pid().term(), am::long_schedule, info, wants);
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
    let len = p.mailbox.len() as u64;
    let pid = p.shared().pid();
    let told = &mut p.long_queues;
    let mut new = Vec::new();
    for session in session::all() {
        let on = session.monitor.lock().long_message_queue;
        if on.is_some_and(|(_, on)| len >= on) && !told.contains(&session.id) {
            told.push(session.id);
            if session.monitor.lock().is_recorded {
                record::queue(pid, true, len as usize);
            }
            new.push(session.id);
        }
    }
    if !new.is_empty() {
        let wants = |session: &Shared, _: &Monitor| new.contains(&session.id);
        let long = Term::bool(true);
        tell(p.pid().term(), am::long_message_queue, long, wants);
    }
}

/// A message has left the queue of `p`, which was long.
#[cold]
pub(crate) fn queue_shrank(p: &mut Process) {
    let len = p.mailbox.len() as u64;
    let mut over = Vec::new();
    let pid = p.shared().pid();
    p.long_queues.retain(|id| {
        let session = session::all().into_iter().find(|s| s.id == *id);
        let monitor = session.map(|s| *s.monitor.lock()).unwrap_or_default();
        let (off, is_recorded) = (monitor.long_message_queue, monitor.is_recorded);
        match off {
            Some((off, _)) if len > off => true,
            Some(_) => {
                over.push(*id);
                if is_recorded {
                    record::queue(pid, false, len as usize);
                }
                false
            }
            None => false,
        }
    });
    if !over.is_empty() {
        let wants = |session: &Shared, _: &Monitor| over.contains(&session.id);
        let long = Term::bool(false);
        tell(p.pid().term(), am::long_message_queue, long, wants);
    }
}

/// `p` waits for a port that is busy.
pub(crate) fn busy_port(p: &Process, port: Term<'_>) {
    if BUSY_PORT.load(Ordering::Relaxed) {
        let wants = |_: &Shared, m: &Monitor| m.busy_port;
        tell(p.pid().term(), am::busy_port, port, wants);
    }
}
