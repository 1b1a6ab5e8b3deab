//! The collections of a process that others ask for. When such a request comes is chance, and what it sweeps changes
//! when later collections come and what they cost. So these collections are made where they were in the recorded run,
//! whether or not the request has come, and a request is only answered.

use beamline_orders::{Step as Recorded, StepIndex};

use super::{Plan, ReplayState, plan};
use crate::process::{Control, Exiting, Process, order};

/// How many there are among these steps.
pub(super) fn count(steps: &[Recorded]) -> usize {
    let collections = steps.iter().filter(|step| is_collection(step));
    collections.count()
}

/// Is it one?
pub(super) fn is_collection(step: &Recorded) -> bool {
    matches!(step, Recorded::Collect { .. })
}

impl ReplayState {
    /// Whether it has made the accesses that are recorded right before this step: a call makes its access before it
    /// leaves for a dirty scheduler, and is charged for when it is back.
    fn has_made_accesses_before(&self, plan: &Plan, step: StepIndex) -> bool {
        let process = self.cursor.process;
        match plan.trace.processes[process].before(step).last() {
            Some(Recorded::Accesses(number)) => plan.accesses.made(process) >= *number,
            _ => true,
        }
    }
}

impl Process {
    /// Makes the collections that others asked for in the recorded run when it had got as far as now: behind what has
    /// come to it, and after the recorded number of reductions, or where it is about to go on behind them (`is_last`).
    /// They cost nothing. Only y registers and what the process has saved survive.
    ///
    /// # Errors
    /// When the heap is too large afterwards.
    #[inline]
    pub(in crate::process) fn collect_in_turn(&mut self, is_last: bool) -> Result<(), Exiting> {
        while let Some(major) = self.next_collection(is_last) {
            let reds = self.fcalls.get();
            let collected = self.collect_for_others(major);
            self.fcalls.set(reds);
            collected?;
            self.stop_behind();
        }
        Ok(())
    }

    /// Whether a collection is due, or recorded signals that have to come before it.
    #[inline]
    pub(crate) fn awaits_collection(&self) -> bool {
        order::is_followed() && !self.is_away() && self.has_come_to_collection(self.reductions())
    }

    /// Whether a call is to be made again: in the recorded run, the process was collected while the call waited for others, or
    /// was on a dirty scheduler.
    pub(crate) fn wait_to_collect_in_call(&self) -> Option<Control<'static>> {
        // A call is charged for when it is begun.
        let reductions = self.reductions() + 1;
        let collects = order::is_followed() && self.has_come_to_collection(reductions);
        if collects {
            self.wake_if_held_is_due();
        }
        collects.then_some(Control::Wait)
    }

    fn has_come_to_collection(&self, reductions: u64) -> bool {
        let follows = self
            .replay_state()
            .filter(|follows| follows.collections > 0);
        let (Some(plan), Some(follows)) = (plan(), follows) else {
            return false;
        };
        let steps = follows.steps(plan);
        let is_due = |(at, step): (StepIndex, &Recorded)| match step {
            Recorded::Collect {
                reductions: due, ..
            } => *due <= reductions && follows.has_made_accesses_before(plan, at),
            _ => false,
        };
        let mut all = follows.cursor.all_due(steps);
        all.any(is_due)
    }

    #[inline]
    fn next_collection(&self, is_last: bool) -> Option<bool> {
        match order::is_followed() && !self.is_away() {
            true => self.take_collection(is_last),
            false => None,
        }
    }

    fn take_collection(&self, is_last: bool) -> Option<bool> {
        let (plan, mut follows) = (plan()?, self.replay_state()?);
        let steps = follows.steps(plan);
        match follows.cursor.due_signal(steps) {
            Some(&Recorded::Collect { reductions, major })
                if is_last
                    || reductions <= self.reductions()
                        && follows.has_made_accesses_before(plan, follows.cursor.delivery()) =>
            {
                follows.cursor.advance_delivery(steps);
                follows.collections -= 1;
                drop(follows);
                plan.count_progress();
                Some(major)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;

    #[test]
    fn only_collections_that_others_asked_for_are_counted() {
        let plan = plan("{p0, [spawn(p0.1), collect(40, major), send(l0:1), collect(90, minor)]}");
        let steps = &plan.trace.processes.iter().next().expect("p0").steps;
        assert_eq!(count(steps), 2);
        assert_eq!(steps.iter().position(is_collection), Some(1));
        assert_eq!(count(&steps[..1]), 0);
    }
}
