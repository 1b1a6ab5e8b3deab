//! How far a process has come in the steps that it follows.

use std::collections::VecDeque;

use beamline_formats::name;
use beamline_orders::{Class, Message, ProcessIndex, Step as Recorded, StepIndex, Trace};

use super::Plan;
use crate::process::order::{Source, Step};
use crate::term::Atom;

/// What becomes of a receive that has looked at all messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiveVerdict {
    /// It does what it does without a replay.
    Free,
    /// It waits for a message that came before its next step, and is not here yet.
    Due,
    /// It waits for the message that its next step takes, or for the signal that ends it.
    Wait,
    /// It times out.
    Timeout,
}

/// A process's place in the trace.
///
/// It has two places, because the process makes its own steps when it gets there, and messages come when others send them.
/// A delivery is due when it stands before the next own step. One behind that step has to wait, however early it comes:
/// the process would see it too soon.
pub(super) struct Cursor {
    /// The recorded process.
    pub(super) process: ProcessIndex,
    /// Its next step that is no delivery.
    step: StepIndex,
    /// Its next delivery: due when it comes before that step.
    delivery: StepIndex,
    end: StepIndex,
    /// The recorded messages in the queue, in its order; `None` for one that was not recorded.
    queue: VecDeque<Option<Message>>,
    /// How many messages have come that no process has sent, where the replay is to stop.
    pub(super) told: u32,
}

impl Cursor {
    pub(super) fn new(trace: &Trace, process: ProcessIndex) -> Cursor {
        let recorded = &trace.processes[process];
        Cursor {
            process,
            step: next_own(&recorded.steps, StepIndex::FIRST),
            delivery: next_delivery(&recorded.steps, StepIndex::FIRST),
            end: recorded.end(),
            queue: VecDeque::new(),
            told: 0,
        }
    }

    /// All its steps are made, and all its messages have come.
    pub(super) fn is_over(&self) -> bool {
        self.step == self.end && self.delivery == self.end
    }

    /// Whether all steps before this one are made, and all that was to come before it has come.
    pub(super) fn has_come_to(&self, step: StepIndex) -> bool {
        self.step >= step && self.delivery >= step
    }

    /// From now on, nothing is followed.
    pub(super) fn finish(&mut self) {
        (self.step, self.delivery) = (self.end, self.end);
    }

    /// The recorded message that is to come next, before its next step.
    pub(super) fn due<'t>(&self, steps: &'t [Recorded]) -> Option<&'t Message> {
        self.all_due_messages(steps).next()
    }

    /// The recorded steps, with their places, from the next delivery up to its next own step: what it waits for.
    pub(super) fn all_due<'t>(
        &self,
        steps: &'t [Recorded],
    ) -> impl Iterator<Item = (StepIndex, &'t Recorded)> {
        let due = steps.get(self.delivery.index()..self.step.index());
        self.delivery.onward().zip(due.unwrap_or(&[]))
    }

    /// The recorded messages that are to come before its next step.
    pub(super) fn all_due_messages<'t>(
        &self,
        steps: &'t [Recorded],
    ) -> impl Iterator<Item = &'t Message> {
        self.all_due(steps).filter_map(|(_, step)| match step {
            Recorded::Deliver(message) => Some(message),
            _ => None,
        })
    }

    /// The next delivery, if it is due and no message: an exit signal that is lost, news of a link, or a collection.
    pub(super) fn due_signal<'t>(&self, steps: &'t [Recorded]) -> Option<&'t Recorded> {
        let due = steps
            .get(self.delivery.index())
            .filter(|_| self.delivery < self.step);
        due.filter(|due| !matches!(due, Recorded::Deliver(_)))
    }

    /// The signal that was due has come: goes on to the next delivery.
    pub(super) fn advance_delivery(&mut self, steps: &[Recorded]) {
        self.delivery = next_delivery(steps, self.delivery.next());
    }

    /// The place of what is to come next.
    pub(super) fn delivery(&self) -> StepIndex {
        self.delivery
    }

    /// The place of its next step.
    pub(super) fn step(&self) -> StepIndex {
        self.step
    }

    /// Whether the recorded message is at this place of the queue.
    pub(super) fn is_at(&self, at: usize, message: &Message) -> bool {
        self.queue
            .get(at)
            .is_some_and(|it| it.as_ref() == Some(message))
    }

    /// Where the recorded message is in the queue, if it is.
    pub(super) fn place_of(&self, message: &Message) -> Option<usize> {
        self.queue
            .iter()
            .position(|it| it.as_ref() == Some(message))
    }

    /// Its next step.
    pub(super) fn next<'t>(&self, steps: &'t [Recorded]) -> Option<&'t Recorded> {
        steps.get(self.step.index())
    }

    /// Its next step is made.
    pub(super) fn go_on(&mut self, steps: &[Recorded]) {
        self.step = next_own(steps, self.step.next());
    }

    /// Whether no run can follow this prefix: its last step is a receive for which all has come, and which has not been
    /// made, or has been made otherwise.
    pub(super) fn refuses(&self, steps: &[Recorded]) -> bool {
        let next = self.next(steps);
        let is_receive = matches!(next, Some(Recorded::Receive(_) | Recorded::Timeout));
        is_receive && self.due(steps).is_none() && next_own(steps, self.step.next()) == self.end
    }

    pub(super) fn turn(&self, steps: &[Recorded]) -> ReceiveVerdict {
        if self.due(steps).is_some() {
            return ReceiveVerdict::Due;
        }
        match self.next(steps) {
            None => ReceiveVerdict::Free,
            Some(Recorded::Timeout) => ReceiveVerdict::Timeout,
            // A message that is to be received is in the queue, or is wrong; and a process whose next step is its end
            // waits for the signal.
            Some(_) => ReceiveVerdict::Wait,
        }
    }

    /// The process makes a step, which has to be the next recorded one. Behind the last one, and where a signal that
    /// comes late was to end the process, any step is right.
    ///
    /// # Errors
    /// The step that it was to make.
    pub(super) fn make(&mut self, plan: &Plan, step: Step) -> Result<(), Recorded> {
        let steps = &plan.trace.processes[self.process].steps;
        let Some(next) = self.next(steps) else {
            return Ok(());
        };
        let is_it = match (next, step) {
            (Recorded::Spawn(child), Step::Spawn(pid)) => {
                plan.indexes.write().insert(pid, *child);
                true
            }
            (Recorded::Send(number), Step::Send(made)) => *number == made,
            (Recorded::Timeout, Step::Timeout) | (Recorded::Exit(_), Step::Exit) => true,
            // The signal that ended it is late here. What the process does meanwhile shows to nobody: a sending or an access
            // waits for the signal.
            (Recorded::Exit(_), _) => return Ok(()),
            (Recorded::Miss(module), Step::Miss(missed)) => is_module(module, missed),
            (Recorded::Load { module, .. }, Step::Load { module: made, .. }) => {
                is_module(module, made)
            }
            _ => false,
        };
        if !is_it {
            return Err(next.clone());
        }
        self.go_on(steps);
        Ok(())
    }

    /// A message has come: whether it is the one that was due.
    pub(super) fn deliver(&mut self, plan: &Plan, source: &Source, at: usize) -> bool {
        let steps = &plan.trace.processes[self.process].steps;
        let due = self.due(steps).filter(|due| plan.is(due, source)).copied();
        // One that was not recorded has its place, too: receives say by places which message they take.
        self.queue.insert(at.min(self.queue.len()), due);
        if due.is_some() {
            self.advance_delivery(steps);
        }
        due.is_some()
    }

    /// The message at this place is dropped.
    pub(super) fn drop_at(&mut self, at: usize) {
        self.queue.remove(at);
    }

    /// The message at this place is received.
    ///
    /// # Errors
    /// The step that it was to make, and what was received.
    pub(super) fn receive(
        &mut self,
        steps: &[Recorded],
        at: usize,
    ) -> Result<(), (Recorded, Option<Message>)> {
        let received = self.queue.remove(at).flatten();
        match self.next(steps) {
            // As in `make`: behind the last step, any receive is right.
            None | Some(Recorded::Exit(_)) => Ok(()),
            Some(Recorded::Receive(message)) if received == Some(*message) => {
                self.go_on(steps);
                Ok(())
            }
            Some(next) => Err((next.clone(), received)),
        }
    }

    /// Whether the recorded process missed this module here. A process that is to end misses no more modules, if the
    /// trace says where its end is.
    pub(super) fn may_miss(&self, steps: &[Recorded], module: Atom, knows_end: bool) -> bool {
        match self.next(steps) {
            None => true,
            Some(Recorded::Exit(_)) => !knows_end,
            Some(Recorded::Miss(missed)) => is_module(missed, module),
            Some(_) => false,
        }
    }

    pub(super) fn may_load(
        &self,
        steps: &[Recorded],
        mut modules: impl Iterator<Item = (Atom, u64)>,
    ) -> bool {
        let mut recorded = steps[self.step.index()..]
            .iter()
            .filter(|step| is_own(step));
        modules.all(|(loaded, now)| match recorded.next() {
            Some(Recorded::Load { module, misses }) if is_module(module, loaded) => now >= *misses,
            // Another module than the recorded one: the step itself reports that.
            _ => true,
        })
    }
}

/// Is it the module of this name? Names of modules that scripts become have the time in them, which does not count.
fn is_module(recorded: &str, module: Atom) -> bool {
    recorded == name::stable(module.name())
}

fn is_delivery(step: &Recorded) -> bool {
    step.class() == Class::Comes
}

/// Is it a step of this cursor? Accesses have a cursor of their own (`access.rs`).
fn is_own(step: &Recorded) -> bool {
    matches!(step.class(), Class::Own | Class::Answer)
}

fn next_own(steps: &[Recorded], from: StepIndex) -> StepIndex {
    next(steps, from, is_own)
}

fn next_delivery(steps: &[Recorded], from: StepIndex) -> StepIndex {
    next(steps, from, is_delivery)
}

/// The place of the next step that is so, from this one on; without one, that behind all steps.
fn next(steps: &[Recorded], from: StepIndex, is_so: impl Fn(&Recorded) -> bool) -> StepIndex {
    let left = &steps[from.index()..];
    let passed = left.iter().position(is_so).unwrap_or(left.len());
    StepIndex::new(from.index() + passed)
}
