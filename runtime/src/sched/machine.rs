//! What the scheduler threads share that knows no process: how they sleep, their timers, their counters.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic;

use crossbeam_utils::CachePadded;

use super::online::Online;
use super::parker::Parking;
use super::thread_progress::ThrPrgr;
use super::timers::Timers;
use super::wall_time::WallTime;
use crate::sync::{AtomicU64, Ordering};
use crate::sys::chance::processors;

// No model looks at it: a number that is set before there is any thread.
static SCHEDULERS: atomic::AtomicUsize = atomic::AtomicUsize::new(0);
static MACHINE: OnceLock<Machine> = OnceLock::new();

/// All that the schedulers share, but for what waits to be run (`process/run_queues.rs`).
pub(crate) struct Machine {
    schedulers: usize,
    pub(crate) parking: Parking,
    pub(crate) timers: Timers,
    pub(crate) online: Online,
    pub(crate) progress: ThrPrgr,
    pub(crate) counters: Box<[CachePadded<Counters>]>,
    pub(crate) wall_time: WallTime,
}

/// What a scheduler counts, for `erlang:statistics/1`.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) context_switches: AtomicU64,
    pub(crate) reductions: AtomicU64,
    collections: AtomicU64,
}

thread_local! {
    /// The scheduler that this thread is, plus one; 0 for other threads.
    static ID: Cell<usize> = const { Cell::new(0) };
}

/// Sets how many schedulers there are (`+S`). Only before the first process is made.
pub fn set_schedulers(count: usize) {
    SCHEDULERS.store(count.clamp(1, 1024), Ordering::Relaxed);
}

/// How many schedulers there are.
#[must_use]
pub fn schedulers() -> usize {
    machine().schedulers
}

pub(crate) fn machine() -> &'static Machine {
    MACHINE.get_or_init(|| {
        let schedulers = match SCHEDULERS.load(Ordering::Relaxed) {
            0 => processors::available(),
            count => count,
        };
        Machine {
            schedulers,
            parking: Parking::new(schedulers),
            timers: Timers::new(schedulers),
            online: Online::new(schedulers),
            progress: ThrPrgr::register(schedulers),
            counters: (0..schedulers).map(|_| CachePadded::default()).collect(),
            wall_time: WallTime::new(schedulers),
        }
    })
}

/// Thread progress of the schedulers.
#[must_use]
pub fn thread_progress() -> &'static ThrPrgr {
    &machine().progress
}

/// The scheduler this thread is, from 0.
#[inline]
#[must_use]
pub fn current_id() -> Option<usize> {
    ID.with(Cell::get).checked_sub(1)
}

/// Makes this thread the scheduler `id`.
pub(crate) fn become_scheduler(id: usize) {
    ID.with(|own| own.set(id + 1));
}

/// Counts a collection, for `erlang:statistics(garbage_collection)`.
pub(crate) fn count_collection() {
    if let Some(id) = current_id() {
        machine().counters[id]
            .collections
            .fetch_add(1, Ordering::Relaxed);
    }
}

/// Schedulers that neither sleep for want of work nor are suspended; may be stale.
pub(crate) fn schedulers_at_work() -> usize {
    schedulers().saturating_sub(machine().wall_time.idle_now())
}

/// Wakes a scheduler that has nothing to run, if there is one.
pub(crate) fn wake_one() {
    machine().parking.wake_one();
}

/// Totals over all schedulers: context switches, reductions, collections.
#[must_use]
pub fn totals() -> [u64; 3] {
    let sum = |get: fn(&Counters) -> &AtomicU64| {
        let counters = machine().counters.iter();
        counters.map(|c| get(c).load(Ordering::Relaxed)).sum()
    };
    [
        sum(|c| &c.context_switches),
        sum(|c| &c.reductions),
        sum(|c| &c.collections),
    ]
}
