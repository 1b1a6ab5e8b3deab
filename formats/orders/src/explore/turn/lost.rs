//! Exit signals that may come too late, because the receiver has given up the link.
//!
//! Where a process gives up a link behind the end of the other one, the signal has come by then, and is a message, or it comes
//! later, and is lost.

use rustc_hash::FxHashSet;

use super::super::super::{Message, ProcessIndex, Signal, Step};
use super::Analysis;

impl Analysis<'_> {
    /// Notes whose exit signals could be lost because of this step of a process, which gives up a link.
    pub(super) fn note_lost(
        &self,
        process: ProcessIndex,
        step: &Step,
        lost: &mut FxHashSet<ProcessIndex>,
    ) {
        let Step::Accesses(number) = *step else {
            return;
        };
        let links = self.run.watches.iter().filter(|it| it.is_link);
        let given_up = links.filter(|it| it.by == process && it.unlinks == Some(number));
        lost.extend(given_up.map(|link| link.whom));
    }

    /// Whether a message is one of these signals.
    pub(super) fn could_be_lost(
        &self,
        process: ProcessIndex,
        message: Message,
        lost: &FxHashSet<ProcessIndex>,
    ) -> bool {
        let mut lost = lost.iter();
        lost.any(|of| self.causes.is_of_signal(process, message, Signal::End(*of)))
    }

    /// Whether a process waits without a time-out for a signal that could have been lost: then it could have waited for
    /// ever, which is not explored.
    pub(in super::super) fn waits_for_what_could_be_lost(&self) -> bool {
        let mut processes = self.run.trace.processes.entries();
        processes.any(|(process, made)| {
            let (mut lost, mut nth) = (FxHashSet::default(), 0);
            made.steps.iter().any(|step| {
                let waits = match step {
                    Step::Receive(message) => {
                        !self.run.timed.contains(&(process, nth))
                            && self.could_be_lost(process, *message, &lost)
                    }
                    _ => false,
                };
                nth += u32::from(matches!(step, Step::Receive(_) | Step::Timeout));
                self.note_lost(process, step, &mut lost);
                waits
            })
        })
    }
}
