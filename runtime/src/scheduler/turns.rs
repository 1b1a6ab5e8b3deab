//! Gives processes their turns in a run by chance (`process/order/turns.rs`): which one makes the next step is drawn by
//! lot.
//!
//! Of those that can run, each first gets to its next step, without a turn: that shows to nobody. When all wait for their
//! turns, one is drawn.
//!
//! Invariant: S2 of `process/shared.rs`: a process that waits for a turn here is queued as far as anybody knows.

use std::cell::RefCell;

use beamline_orders::{Candidate, Drawing, LEFT_OUT, Lots, Who};

use super::Scheduler;
use crate::process::ProcRef;
use crate::process::order::turns;
use crate::process::registry::{Named, whereis};
use crate::sys::chance::clock;
use crate::term::{Atom, Pid};

/// The processes that wait for a turn, and how one of them is drawn.
struct Waiting {
    drawing: Drawing,
    processes: Vec<(Pid, ProcRef)>,
}

thread_local! {
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
}

/// A run begins that these lots decide.
pub(super) fn begin(lots: Lots) {
    let pids = LEFT_OUT
        .iter()
        .filter_map(|name| match whereis(Atom::new(name)) {
            Some(Named::Process(pid)) => Some(pid),
            _ => None,
        });
    turns::begin(pids.collect());
    let waiting = Waiting {
        drawing: Drawing::new(lots),
        processes: Vec::new(),
    };
    WAITING.with_borrow_mut(|known| *known = Some(waiting));
}

/// How many steps were drawn.
pub(super) fn drawn() -> u64 {
    WAITING.with_borrow(|waiting| {
        let waiting = waiting.as_ref();
        waiting.map_or(0, |waiting| waiting.drawing.made())
    })
}

impl Waiting {
    /// Draws the process that goes on; `None` where time passes instead.
    fn draw(&mut self, has_timer: bool) -> Option<ProcRef> {
        let steps = self.processes.iter();
        let steps: Vec<(Pid, turns::Step)> = steps
            .map(|(pid, _)| (*pid, turns::next_of(*pid).unwrap_or_default()))
            .collect();
        let candidates = steps.iter().map(|(pid, step)| Candidate {
            who: Who::Process(pid.0),
            touches: &step.touches,
            idles: step.idles,
        });
        let mut candidates: Vec<Candidate<'_>> = candidates.collect();
        if has_timer && self.drawing.is_time_drawn() {
            candidates.push(Candidate {
                who: Who::Time,
                touches: &[],
                idles: false,
            });
        }
        let at = self.drawing.draw(&candidates);
        (at < self.processes.len()).then(|| self.processes.remove(at).1)
    }
}

impl Scheduler {
    /// The process that runs next.
    pub(super) fn next_in_turn(&self) -> Option<ProcRef> {
        turns::give(false);
        loop {
            while let Some(process) = self.queues.find(self.id) {
                // SAFETY: S2: it was queued.
                let pid = unsafe { process.get() }.pid();
                if turns::next_of(pid).is_none() {
                    return Some(process);
                }
                WAITING.with_borrow_mut(|waiting| {
                    let waiting = waiting.as_mut();
                    waiting.map(|waiting| waiting.processes.push((pid, process)))
                });
            }
            let next = self.machine.timers.next_ns(self.id);
            let drawn = WAITING.with_borrow_mut(|waiting| {
                let waiting = waiting.as_mut()?;
                let is_any = !waiting.processes.is_empty();
                is_any.then(|| waiting.draw(next != u64::MAX))
            })?;
            if let Some(process) = drawn {
                turns::give(true);
                return Some(process);
            }
            clock::advance_to(next);
            self.expire_timers();
        }
    }
}
