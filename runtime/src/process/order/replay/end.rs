//! The end of the emulator. A replay does what the processes did until one of them halted it, and no more: the process
//! that halts it waits until all others have made their steps, and a process that has made its last one stands still.
//!
//! A trace that lacks the answer of `erlang:halt/2` was cut: nobody knows what came behind it, and processes run free
//! there.

use std::sync::atomic::{AtomicUsize, Ordering};

use beamline_orders::{Step as Recorded, Trace};
use parking_lot::Mutex;

use super::{Plan, ReplayState, plan};
use crate::process::order::answer::HALTS;
use crate::process::shared::lookup;
use crate::process::{Control, Process};
use crate::sched::ptab::pin;
use crate::term::Pid;

/// What is known of the end.
pub(super) struct End {
    /// The recorded run ended so.
    is_known: bool,
    /// Processes that have begun and have steps to make.
    at_work: AtomicUsize,
    /// The process that waits to halt the emulator.
    halting: Mutex<Option<Pid>>,
}

impl End {
    /// Of a replay that follows a trace to its end, or may leave it (`is_free`).
    pub(super) fn of(trace: &Trace, is_free: bool) -> End {
        let halts = |step: &Recorded| matches!(step, Recorded::Answer { function, .. } if HALTS.is(function));
        let all = trace.processes.iter();
        End {
            is_known: !is_free && all.flat_map(|process| &process.steps).any(halts),
            at_work: AtomicUsize::new(0),
            halting: Mutex::new(None),
        }
    }

    /// A process has made its last step, or is gone.
    fn end_work(&self) {
        if self.at_work.fetch_sub(1, Ordering::AcqRel) != LAST + 1 {
            return;
        }
        let halting = *self.halting.lock();
        if let Some(pid) = halting
            && let Some(shared) = lookup(pid, &pin())
        {
            shared.wake();
        }
    }
}

/// Only the process that halts the emulator has a step to make.
const LAST: usize = 1;

impl ReplayState {
    /// It begins: whether it has steps to make before the end.
    pub(super) fn begin_work(&mut self, plan: &Plan) {
        self.is_at_work = plan.end.is_known && !self.is_over(plan);
        if self.is_at_work {
            plan.end.at_work.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// All its steps and accesses are made, and all its messages have come.
    pub(super) fn is_over(&self, plan: &Plan) -> bool {
        let has_any_left = || {
            self.accesses
                .has_any_left(&plan.accesses, self.cursor.process)
        };
        self.cursor.is_over() && !has_any_left()
    }

    /// It has no steps to make any more.
    pub(super) fn end_work(&mut self, end: &End) {
        if std::mem::take(&mut self.is_at_work) {
            end.end_work();
        }
    }
}

impl Process {
    /// It has made a step: if that was its last one, its time slice is over.
    pub(super) fn rest_behind_last(&self) {
        let (Some(plan), Some(mut follows)) =
            (plan().filter(|it| it.end.is_known), self.replay_state())
        else {
            return;
        };
        if follows.is_at_work && follows.is_over(plan) {
            follows.end_work(&plan.end);
            drop(follows);
            self.give_up_slice();
        }
    }

    /// Whether it stands still, as the recorded process did no more before the emulator ended.
    pub(super) fn has_made_last(&self) -> bool {
        plan().is_some_and(|plan| {
            plan.end.is_known
                && !self.is_exiting()
                && self.replay_state().is_some_and(|it| it.is_over(plan))
        })
    }

    /// It is about to halt the emulator, as the recorded process did: whether others have still to make steps.
    pub(in crate::process) fn wait_to_halt(&self) -> Option<Control<'static>> {
        let plan = plan().filter(|plan| plan.end.is_known)?;
        self.replay_state()?.answer(plan, &HALTS)?;
        let others_work = || plan.end.at_work.load(Ordering::Acquire) > LAST;
        if !others_work() {
            return None;
        }
        *plan.end.halting.lock() = Some(self.pid());
        others_work().then_some(Control::Wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_known_where_a_process_halts_and_nobody_runs_free() {
        let trace = |steps: &str| -> Trace {
            let text = format!("{{p0, [spawn(p0.1){steps}]}}\n{{p0.1, [send(l0.1:1)]}}\n");
            text.parse().expect("a trace")
        };
        let halted = trace(", answer(erlang:halt/2, 3)");
        assert!(End::of(&halted, false).is_known);
        assert!(!End::of(&halted, true).is_known);
        assert!(!End::of(&trace(", answer(erlang:time/0, 3)"), false).is_known);
        assert!(!End::of(&trace(""), false).is_known);
    }
}
