//! The scheduler threads.
//!
//! Each has a run queue. It runs what is in it, a time slice at a time; steals when it is empty; sleeps
//! when there is nothing to steal. Who wakes a process puts it in the queue of the scheduler it runs on
//! itself, so that two processes that talk stay together; a queue with more than one process calls for
//! a thief.
//!
//! Source: `erl_process.c`, OTP 29. Invariants: S1, S2 of `process/shared.rs` and P2 of
//! `process/mod.rs`.
#![expect(
    unsafe_code,
    reason = "processes are taken from and put to their resting place"
)]

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{self, AtomicBool};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::clock::{self, monotonic_ns};
use super::online::Online;
use super::outside;
use super::parker::{Parking, Woken};
use super::run_queue::{RunQueue, is_surplus, victims};
use super::run_state::EndRun;
use super::thread_progress::ThrPrgr;
use super::timers::Timers;
use super::wall_time::WallTime;
use crate::heap::Heap;
use crate::process::{Exiting, ProcRef, ProcShared, Process, X_REGISTERS};
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::sys::poll;
use crate::term::RawTerm;
use crate::trace::{sysmon, sysprof, totals};

/// How the turn of a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its time slice is used up: `pc` and `live` say where to go on.
    Yield,
    /// It waits ([`Process::wait`] says for what); `pc` and `live` say where to go on.
    Wait,
    /// It exits.
    Exit(Exiting),
}

/// Runs a process, whose registers are set, from its `pc` on.
pub type Engine = fn(&mut Process) -> Outcome;

static ENGINE: OnceLock<Engine> = OnceLock::new();
// No model looks at it: a number that is set before there is any thread.
static SCHEDULERS: atomic::AtomicUsize = atomic::AtomicUsize::new(0);
static MACHINE: OnceLock<Machine> = OnceLock::new();

/// All that the schedulers share.
pub(crate) struct Machine {
    queues: Box<[CachePadded<RunQueue<ProcRef>>]>,
    /// Those who run on one scheduler only, and are not stolen.
    bound: Box<[CachePadded<RunQueue<ProcRef>>]>,
    pub(super) parking: Parking,
    pub(super) timers: Timers,
    pub(super) online: Online,
    pub(super) progress: ThrPrgr,
    counters: Box<[CachePadded<Counters>]>,
    pub(super) wall_time: WallTime,
    started: AtomicBool,
    /// Where the next process goes that is woken from outside.
    next_foreign: AtomicUsize,
}

/// What a scheduler counts, for `erlang:statistics/1`.
#[derive(Default)]
struct Counters {
    context_switches: AtomicU64,
    reductions: AtomicU64,
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
    machine().queues.len()
}

pub(crate) fn machine() -> &'static Machine {
    MACHINE.get_or_init(|| {
        let wanted = match SCHEDULERS.load(Ordering::Relaxed) {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            count => count,
        };
        Machine {
            queues: (0..wanted).map(|_| CachePadded::default()).collect(),
            bound: (0..wanted).map(|_| CachePadded::default()).collect(),
            parking: Parking::new(wanted),
            timers: Timers::new(wanted),
            online: Online::new(wanted),
            progress: ThrPrgr::register(wanted),
            counters: (0..wanted).map(|_| CachePadded::default()).collect(),
            wall_time: WallTime::new(wanted),
            started: AtomicBool::new(false),
            next_foreign: AtomicUsize::new(0),
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

/// Says what runs processes. The first call counts.
pub fn set_engine(engine: Engine) {
    let _ = ENGINE.set(engine);
}

/// Starts the scheduler threads, once.
///
/// # Panics
/// When the system refuses a thread.
pub fn start() {
    let machine = machine();
    if machine.started.swap(true, Ordering::AcqRel) {
        return;
    }
    for id in 0..machine.queues.len() {
        std::thread::Builder::new()
            .name(format!("{}_scheduler", id + 1))
            .stack_size(STACK_BYTES)
            .spawn(move || run_scheduler(id))
            .expect("a thread for each scheduler");
    }
}

/// Stack of a scheduler's thread: match specifications are compiled and run by recursion.
const STACK_BYTES: usize = 8 << 20;

/// Puts a process that was just woken in a run queue.
#[inline]
pub(crate) fn enqueue(process: ProcRef) {
    machine().place(process);
}

/// A queued process has got a higher priority: it goes to where it stands now. One that does not wait in
/// a queue is put at its place by who puts it there.
pub(crate) fn promote(process: &ProcShared) {
    let priority = process.run_priority();
    // SAFETY: S2: an item of a queue is queued while its queue is locked.
    let is_it = |item: &ProcRef| std::ptr::eq(unsafe { item.get() }, process);
    let machine = machine();
    for queue in machine.queues.iter().chain(&machine.bound) {
        if queue.promote(priority, is_it) {
            return;
        }
    }
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

/// Lengths of the run queues.
#[must_use]
pub fn run_queue_lengths() -> Vec<usize> {
    let queues = machine().queues.iter().zip(&machine().bound);
    queues
        .map(|(queue, bound)| queue.len() + bound.len())
        .collect()
}

/// How often a deterministic run looks outside while it waits.
const LOOK_OUTSIDE: Duration = Duration::from_millis(1);

/// Turns between looks at the clock while there is work.
const TURNS_A_CLOCK: u32 = 16;

fn run_scheduler(id: usize) {
    ID.with(|own| own.set(id + 1));
    let machine = machine();
    let mut registers: Box<[RawTerm]> = vec![RawTerm::NONE; X_REGISTERS].into();
    let mut turns = 0;
    machine.progress.active(id);
    loop {
        machine.progress.quiescent(id);
        machine.progress.poll();
        if id >= machine.online.limit() {
            machine.suspend(id);
        }
        turns += 1;
        if turns % TURNS_A_CLOCK == 0 {
            machine.expire_timers(id);
        }
        if let Some(process) = machine.find(id) {
            machine.run_process(id, process, registers.as_mut_ptr());
        } else {
            turns = 0;
            machine.idle(id);
        }
    }
}

impl Machine {
    pub(super) fn schedulers(&self) -> usize {
        self.queues.len()
    }

    /// Moves what waits for scheduler `id` to the first one's queue. Passes on a wake-up, too, that may
    /// have been made for it.
    pub(super) fn give_away(&self, id: usize) {
        while let Some(process) = self.queues[id].pop().or_else(|| self.bound[id].pop()) {
            // SAFETY: S2: it was queued and is queued again.
            let priority = unsafe { process.get() }.run_priority();
            self.queues[0].push(priority, process);
        }
        self.parking.wake_one();
    }

    pub(super) fn expire_timers(&self, id: usize) {
        let next = self.timers.next_ns(id);
        if next == u64::MAX {
            return;
        }
        let now = monotonic_ns();
        if now >= next {
            self.timers.expire(id, now);
        }
    }

    /// Puts a process in the queue of the scheduler it is bound to, else of the one of this thread, else
    /// of any.
    fn place(&self, process: ProcRef) {
        // SAFETY: S2: it is queued from here on.
        let shared = unsafe { process.get() };
        let (priority, limit) = (shared.run_priority(), self.online.limit());
        let here = current_id().filter(|id| *id < limit);
        if let Some(id) = shared.bound_to().filter(|id| *id < limit) {
            self.bound[id].push(priority, process);
            if here != Some(id) {
                self.parking.wake(id);
            }
            if id >= self.online.limit() {
                // Taken offline meanwhile: it may have looked into its queue before.
                self.give_away(id);
            }
            return;
        }
        if let Some(id) = here {
            let len = self.queues[id].push(priority, process);
            if is_surplus(len) {
                self.parking.wake_one();
            }
            return;
        }
        let id = self.next_foreign.fetch_add(1, Ordering::Relaxed) % limit;
        self.queues[id].push(priority, process);
        if !self.parking.wake(id) {
            self.parking.wake_one();
        }
    }

    /// What runs next of those that wait for scheduler `id`: the higher priority first; of the same one,
    /// those that are bound to it and others in turn.
    fn pop(&self, id: usize) -> Option<ProcRef> {
        let (others, bound) = (&self.queues[id], &self.bound[id]);
        if bound.is_empty() {
            return others.pop();
        }
        let turn = self.counters[id].context_switches.load(Ordering::Relaxed);
        let bound_first = match (bound.top(), others.top()) {
            (Some(bound), Some(others)) => {
                bound < others || bound == others && turn.is_multiple_of(2)
            }
            (bound, _) => bound.is_some(),
        };
        if bound_first {
            bound.pop().or_else(|| others.pop())
        } else {
            others.pop().or_else(|| bound.pop())
        }
    }

    /// Something to run: from the own queues, else from another's.
    fn find(&self, id: usize) -> Option<ProcRef> {
        if let Some(process) = self.pop(id) {
            return Some(process);
        }
        victims(id, self.queues.len()).find_map(|victim| {
            let stolen = self.queues[victim].steal_half(&self.queues[id])?;
            Some(stolen)
        })
    }

    fn has_work(&self, id: usize) -> bool {
        !self.bound[id].is_empty() || self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// Sleeps until there is work, or a timer is due.
    fn idle(&self, id: usize) {
        self.expire_timers(id);
        self.parking.announce(id);
        if self.has_work(id) {
            self.parking.retract(id);
            return;
        }
        sysprof::scheduler(id, false);
        self.progress.inactive(id);
        self.progress.poll_inactive();
        if self.has_work(id) {
            // What was due, or was just told, has woken a process.
            self.parking.retract(id);
            self.progress.active(id);
            sysprof::scheduler(id, true);
            return;
        }
        if clock::is_virtual() {
            self.sleep_virtual(id);
        } else {
            self.wall_time.idle(id, || self.sleep(id));
        }
        self.progress.active(id);
        sysprof::scheduler(id, true);
        self.expire_timers(id);
    }

    fn sleep(&self, id: usize) {
        match self.timers.next_ns(id) {
            u64::MAX => {
                self.parking.sleep(id, None);
            }
            next => {
                let wait = next.saturating_sub(monotonic_ns());
                self.parking.sleep(id, Some(Duration::from_nanos(wait)));
            }
        }
    }

    /// Nothing can run: what is ready outside is taken in; else time jumps to the next timer, unless a program
    /// or a descriptor is waited for: then it goes on as it does outside.
    fn sleep_virtual(&self, id: usize) {
        if poll::take_ready() {
            self.parking.retract(id);
            return;
        }
        let next = self.timers.next_ns(id);
        if next != u64::MAX && !outside::has_programs() && !poll::is_waited_for() {
            self.parking.retract(id);
            clock::advance_to(next);
            return;
        }
        let woken = self.parking.sleep(id, Some(LOOK_OUTSIDE));
        if woken == Woken::TimedOut {
            let later = monotonic_ns() + LOOK_OUTSIDE.as_nanos() as u64;
            clock::advance_to(later.min(next));
        }
    }

    /// One turn of a process taken from a run queue.
    fn run_process(&self, id: usize, process: ProcRef, x: *mut RawTerm) {
        // SAFETY: S2: it was queued, and runs from here until its turn ends.
        let shared = unsafe { process.get() };
        shared.run_state.begin_run();
        // SAFETY: S1: its turn has begun.
        let home = unsafe { shared.take_home() };
        let mut p = home.expect("a process that is queued rests at home");
        let before = p.reductions();
        let watched = sysmon::turn_begins(&p);
        totals::turn_begins(&p);
        // SAFETY: P2: the scheduler's registers outlive the turn.
        let outcome = unsafe { turn(&mut p, x) };
        if let Some(watched) = watched {
            sysmon::turn_ended(&p, &watched);
        }
        totals::turn_ended(&p);
        let counters = &self.counters[id];
        add(&counters.context_switches, 1);
        add(&counters.reductions, p.reductions() - before);
        p.new_slice();
        if matches!(outcome, Outcome::Exit(_)) && p.terminate() {
            // `p` holds what is shared until it is dropped.
            shared.run_state.end_last_run();
            drop(p);
            return;
        }
        let again = outcome != Outcome::Wait || p.has_unhandled_signals();
        let place = sysprof::turn_ends(&p);
        // SAFETY: S1: its turn ends with the next line.
        unsafe { shared.put_home(p) };
        let end = match place {
            Some(place) => sysprof::end_run(shared, again, &place),
            None => shared.run_state.end_run(again),
        };
        if end == EndRun::Requeue {
            self.place(process);
        }
    }
}

/// Adds to a counter that only this thread changes.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// Handles the signals of a process and runs it, if it has something to run for.
///
/// # Safety
/// P2: `x` points to [`X_REGISTERS`] words that outlive the turn.
unsafe fn turn(p: &mut Process, x: *mut RawTerm) -> Outcome {
    let lifted = p.shared().end_lift();
    let was_exiting = p.is_exiting();
    let fetched = p.fetch_at_turn();
    if let Some(priority) = lifted
        && p.has_unhandled_signals()
    {
        p.shared().lift(priority);
    }
    if let Err(exiting) = fetched.and_then(|()| p.run_system_tasks()) {
        if !was_exiting && p.shared().tracee.has(crate::trace::events::RUNNING) {
            crate::trace::events::scheduled_in(p);
        }
        return Outcome::Exit(exiting);
    }
    if p.is_suspended() || !p.is_ready() {
        return Outcome::Wait;
    }
    if lifted.is_some() {
        // It got this turn for its signals; its code runs with its own priority.
        return Outcome::Yield;
    }
    p.resume_receive();
    // Where every safepoint collects, the first turn is none: the words a process is made with are its first
    // function's.
    let is_spared = Heap::is_zealous() && p.reductions() == 0;
    if !is_spared
        && p.wants_collection()
        && let Err(exiting) = p.garbage_collect(0, 0)
    {
        return Outcome::Exit(exiting);
    }
    // SAFETY: P2.
    unsafe { p.restore_registers(x) };
    if p.shared().tracee.has(crate::trace::flags::ALL) {
        crate::trace::events::scheduled_in(p);
    }
    let native = p.take_native();
    let outcome = match native {
        Some(mut body) => {
            let outcome = body(p);
            p.put_native(body);
            outcome
        }
        None => match ENGINE.get() {
            Some(run) => run(p),
            None => unreachable!("code runs only once the interpreter has been set"),
        },
    };
    p.save_registers();
    if let Outcome::Exit(exiting) = outcome {
        p.note_uncaught(exiting);
    }
    outcome
}
