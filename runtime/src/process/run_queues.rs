//! The run queues of processes, one for each scheduler.
//!
//! A scheduler that wakes a process puts it in its own queue, so that two processes that talk stay together. Who
//! wakes another one for what waits, says `sched/wakeup.rs`.
//!
//! Source: `erl_process.c`, OTP 29. Invariant: S2 of `process/shared.rs`.

use std::sync::OnceLock;

use crossbeam_utils::CachePadded;

use super::{ProcRef, ProcShared};
use crate::sched::run_queue::{RunQueue, victims};
use crate::sched::{Machine, current_id, machine, schedulers};
use crate::sync::{AtomicUsize, Ordering};

/// The queues of all schedulers.
pub(crate) struct RunQueues {
    machine: &'static Machine,
    queues: Box<[CachePadded<RunQueue<ProcRef>>]>,
    /// Those who run on one scheduler only, and are not stolen.
    bound: Box<[CachePadded<RunQueue<ProcRef>>]>,
    /// Where the next process goes that is woken from outside.
    next_foreign: AtomicUsize,
}

/// The run queues.
pub(crate) fn run_queues() -> &'static RunQueues {
    static QUEUES: OnceLock<RunQueues> = OnceLock::new();
    QUEUES.get_or_init(|| RunQueues {
        machine: machine(),
        queues: (0..schedulers()).map(|_| CachePadded::default()).collect(),
        bound: (0..schedulers()).map(|_| CachePadded::default()).collect(),
        next_foreign: AtomicUsize::new(0),
    })
}

/// Puts a process that was just woken in a run queue.
#[inline]
pub(crate) fn enqueue(process: ProcRef) {
    run_queues().place(process);
}

/// As [`enqueue`], from a thread that is no scheduler: in the queue of this scheduler, if it runs processes.
pub(super) fn enqueue_near(process: ProcRef, scheduler: usize) {
    run_queues().place_near(process, Some(scheduler));
}

/// A queued process has got a higher priority: it goes to where it stands now. One that does not wait in
/// a queue is put at its place by whoever puts it there.
pub(crate) fn promote(process: &ProcShared) {
    let priority = process.run_priority();
    // SAFETY: S2: an item of a queue is queued while its queue is locked.
    let is_it = |item: &ProcRef| std::ptr::eq(unsafe { item.get() }, process);
    let queues = run_queues();
    for queue in queues.queues.iter().chain(&queues.bound) {
        if queue.promote(priority, is_it) {
            return;
        }
    }
}

/// Lengths of the run queues.
#[must_use]
pub(crate) fn run_queue_lengths() -> Vec<usize> {
    let queues = run_queues().queues.iter().zip(&run_queues().bound);
    queues
        .map(|(queue, bound)| queue.len() + bound.len())
        .collect()
}

impl RunQueues {
    /// Moves what waits for scheduler `id` to the first one's queue. Passes on a wake-up, too, that may
    /// have been made for it.
    pub(crate) fn give_away(&self, id: usize) {
        while let Some(process) = self.queues[id].pop().or_else(|| self.bound[id].pop()) {
            // SAFETY: S2: it was queued and is queued again.
            let priority = unsafe { process.get() }.run_priority();
            self.queues[0].push(priority, process);
        }
        self.machine.parking.wake_one();
    }

    /// Puts a process in the queue of the scheduler it is bound to, else of the one of this thread, else
    /// of any.
    pub(crate) fn place(&self, process: ProcRef) {
        self.place_near(process, None);
    }

    /// As [`RunQueues::place`]; a thread that is no scheduler prefers the queue of `near`.
    fn place_near(&self, process: ProcRef, near: Option<usize>) {
        // SAFETY: S2: it is queued from here on.
        let shared = unsafe { process.get() };
        let (priority, limit) = (shared.run_priority(), self.machine.online.limit());
        let here = current_id().filter(|id| *id < limit);
        if let Some(id) = shared.bound_to().filter(|id| *id < limit) {
            self.bound[id].push(priority, process);
            if here != Some(id) {
                self.machine.parking.wake(id);
            }
            if id >= self.machine.online.limit() {
                // Taken offline meanwhile: it may have looked into its queue before.
                self.give_away(id);
            }
            return;
        }
        if let Some(id) = here {
            // It runs here, unless so much piles up that another one is woken for it, or another one has nothing to do.
            self.queues[id].push(priority, process);
            return;
        }
        let next = || self.next_foreign.fetch_add(1, Ordering::Relaxed) % limit;
        let id = near.filter(|id| *id < limit).unwrap_or_else(next);
        self.queues[id].push(priority, process);
        if !self.machine.parking.wake(id) {
            self.machine.parking.wake_one();
        }
    }

    /// How many wait for scheduler `id`; may be stale.
    pub(crate) fn waiting(&self, id: usize) -> usize {
        self.queues[id].len() + self.bound[id].len()
    }

    /// What runs next of those that wait for scheduler `id`: the higher priority first; of the same one,
    /// those that are bound to it and others in turn.
    fn pop(&self, id: usize) -> Option<ProcRef> {
        let (others, bound) = (&self.queues[id], &self.bound[id]);
        if bound.is_empty() {
            return others.pop();
        }
        let taken = self.machine.counters[id]
            .context_switches
            .load(Ordering::Relaxed);
        let bound_first = match (bound.top(), others.top()) {
            (Some(bound), Some(others)) => {
                bound < others || bound == others && taken.is_multiple_of(2)
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
    pub(crate) fn find(&self, id: usize) -> Option<ProcRef> {
        if let Some(process) = self.pop(id) {
            return Some(process);
        }
        victims(id, self.queues.len()).find_map(|victim| {
            let stolen = self.queues[victim].steal_half(&self.queues[id])?;
            Some(stolen)
        })
    }

    /// Whether there is something that scheduler `id` may run.
    pub(crate) fn has_work(&self, id: usize) -> bool {
        !self.bound[id].is_empty() || self.queues.iter().any(|queue| !queue.is_empty())
    }
}
