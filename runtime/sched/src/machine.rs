//! The data that scheduler threads share and that know no process: how they sleep, their timers, their counters.

mod dirty;
pub mod online;
pub mod timers;
pub mod wall_time;

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic;

use crossbeam_utils::CachePadded;

use self::dirty::DirtySchedulers;
pub use self::dirty::{DirtyNumbers, dirty_schedulers, set_dirty_schedulers};
use self::online::Online;
use self::timers::Timers;
use self::wall_time::WallTime;
use super::parker::{BusyWait, Parking};
use super::seat::Seat;
use super::thread_progress::ThrPrgr;
use super::wakeup::Threshold;
use beamline_runtime_base::sync::{AtomicU64, Ordering};
use beamline_runtime_sys::chance::processors;

// No model looks at it: a number that is set before there is any thread.
static SCHEDULERS: atomic::AtomicUsize = atomic::AtomicUsize::new(0);
static WAKING: OnceLock<Waking> = OnceLock::new();
static MACHINE: OnceLock<Machine> = OnceLock::new();

/// How schedulers wake each other, and how they wait for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waking {
    /// `+swt`
    pub threshold: Threshold,
    /// `+sbwt`, where it is given.
    pub busy_wait: Option<BusyWait>,
}

/// All that the schedulers share, but for what waits to be run (`process/run_queues.rs`).
pub struct Machine {
    schedulers: usize,
    /// How they sleep.
    pub parking: Parking,
    /// When one wakes another for its own work.
    pub threshold: Threshold,
    /// What is to be done later.
    pub timers: Timers,
    /// Which of them run processes.
    pub online: Online,
    /// Those for dirty work.
    pub dirty: DirtySchedulers,
    /// What all of them have passed.
    pub progress: ThrPrgr,
    /// Of each, by its number.
    pub counters: Box<[CachePadded<Counters>]>,
    /// Which thread each of them is, by its number.
    pub seats: Box<[CachePadded<Seat>]>,
    /// How long they have worked, those for dirty work behind the others: for computations, then for I/O.
    pub wall_time: WallTime,
}

/// The counters of a scheduler, for `erlang:statistics/1`.
#[derive(Default)]
pub struct Counters {
    /// Time slices of processes.
    pub context_switches: AtomicU64,
    /// What those have used.
    pub reductions: AtomicU64,
    collections: AtomicU64,
    uniques: AtomicU64,
}

thread_local! {
    /// The scheduler that this thread is, plus one; 0 for other threads.
    static ID: Cell<usize> = const { Cell::new(0) };
}

/// Sets how many schedulers there are (`+S`). Only before the first process is made.
pub fn set_schedulers(count: usize) {
    SCHEDULERS.store(count.clamp(1, 1024), Ordering::Relaxed);
}

/// Sets how schedulers wake each other. Only before the first process is made.
pub fn set_waking(waking: Waking) {
    // The first call wins.
    let _ = WAKING.set(waking);
}

/// How many schedulers there are.
#[inline]
#[must_use]
pub fn schedulers() -> usize {
    machine().schedulers
}

/// What the schedulers share; made when it is first asked for.
#[inline]
pub fn machine() -> &'static Machine {
    MACHINE.get_or_init(|| {
        let schedulers = match SCHEDULERS.load(Ordering::Relaxed) {
            0 => processors::available(),
            count => count,
        };
        let dirty = DirtySchedulers::new(schedulers);
        let waking = WAKING.get().copied().unwrap_or_default();
        Machine {
            schedulers,
            parking: Parking::new(schedulers, waking.busy_wait),
            threshold: waking.threshold,
            timers: Timers::new(schedulers),
            online: Online::new(schedulers),
            progress: ThrPrgr::register(schedulers),
            counters: (0..schedulers).map(|_| CachePadded::default()).collect(),
            seats: (0..schedulers).map(|_| CachePadded::default()).collect(),
            wall_time: WallTime::new(schedulers, dirty.all()),
            dirty,
        }
    })
}

/// Thread progress of the schedulers.
#[inline]
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
pub fn become_scheduler(id: usize) {
    ID.with(|own| own.set(id + 1));
}

/// Makes this thread no scheduler, until it becomes one again.
pub fn leave_scheduler() {
    ID.with(|own| own.set(0));
}

/// Counts a collection, for `erlang:statistics(garbage_collection)`.
#[inline]
pub fn count_collection() {
    if let Some(id) = current_id() {
        machine().counters[id]
            .collections
            .fetch_add(1, Ordering::Relaxed);
    }
}

/// The next of the numbers that scheduler `id`, this thread, gives once each.
#[inline]
#[must_use]
pub fn next_unique(id: usize) -> u64 {
    let uniques = &machine().counters[id].uniques;
    // Only this thread writes it.
    let unique = uniques.load(Ordering::Relaxed);
    uniques.store(unique + 1, Ordering::Relaxed);
    unique
}

/// Schedulers that neither sleep for want of work nor are suspended; may be stale.
#[inline]
pub fn schedulers_at_work() -> usize {
    machine().wall_time.at_work(schedulers())
}

/// Wakes a scheduler that has nothing to run, if there is one.
#[inline]
pub fn wake_one() {
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
