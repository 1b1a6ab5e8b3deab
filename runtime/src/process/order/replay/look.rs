//! A stopped replay is looked at: the machine's own processes run free and serve a shell, and the program stands still
//! for ever.
//!
//! A process that stands still handles what is asked of it, and an exit signal ends it, whether it traps exits or not:
//! it cannot react. A message is kept for good, except one of OTP's `sys` to a process that waits for its next message:
//! that one runs until it has answered.

use super::plan;
use super::stop::{begin_to_look, has_stopped};
use crate::hash::HashSet;
use crate::heap::Message as HeapMessage;
use crate::process::order::Answers;
use crate::process::seq_token::Mark;
use crate::process::{Exiting, Process, Signal, WaitFor, deliver, order};
use crate::term::{Atom, Pid};

/// From now on only these stand still: `others` run free.
pub(crate) fn look(standing: HashSet<Pid>, others: &[Pid]) {
    order::set_free();
    begin_to_look(standing);
    if let Some(plan) = plan() {
        plan.accesses.let_go();
    }
    for pid in others {
        let free = |p: Option<&mut Process>| {
            if let Some(p) = p {
                // One that a signal ends is found to exit by whoever has made the request.
                let _ = p.go_free();
            }
        };
        deliver(*pid, Signal::request(free));
    }
}

impl Process {
    /// It follows nothing any more: what was held for it comes, and it looks again for what it waits for.
    fn go_free(&mut self) -> Result<(), Exiting> {
        let mut held = Vec::new();
        if let Some(mut follows) = self.replay_state() {
            follows.cursor.finish();
            if let Some(input) = follows.input.take() {
                input.go_on();
            }
            while let Some(signal) = follows.held.pop() {
                held.push(signal);
            }
        }
        if !self.is_hibernated() {
            self.wait_for = WaitFor::Signal;
        }
        held.into_iter()
            .try_for_each(|signal| self.handle_now(signal))
    }

    /// Handles a signal while it stands still.
    pub(in crate::process) fn handle_standing(&mut self, signal: Signal) -> Result<(), Exiting> {
        match signal {
            Signal::Exit(exit) => {
                self.change_flags(|flags| flags.trap_exit = false);
                self.handle_now(Signal::Exit(exit))
            }
            Signal::Message { message, .. } if self.answers_to(&message) => {
                self.own_order().answers = Answers::Now;
                self.mailbox.put(message, Mark::KEEPS, true);
                Ok(())
            }
            Signal::Traced(traced) if self.answers_to(&traced.message) => {
                self.own_order().answers = Answers::Now;
                self.mailbox.put(traced.message, Mark::KEEPS, true);
                Ok(())
            }
            signal if self.source_of(&signal).is_some() => Ok(()),
            signal => self.handle_now(signal),
        }
    }

    /// Whether a message is a request of `sys`, and the process waits for one.
    fn answers_to(&self, message: &HeapMessage) -> bool {
        let tag = message.term().as_tuple().and_then(|tuple| {
            let tag = tuple.elements().first()?.as_atom();
            tag.filter(|_| tuple.arity() == 3)
        });
        self.wait_for == WaitFor::Message && tag == Some(Atom::new("system"))
    }

    /// It has sent: the answer, where it answers.
    pub(in crate::process) fn note_answer(&self) {
        if has_stopped() {
            let answers = &mut self.own_order().answers;
            if *answers == Answers::Now {
                *answers = Answers::HasSent;
            }
        }
    }

    /// It looks for a message, or waits: whether it stands still again, as it has answered.
    pub(in crate::process) fn stand_again(&self) -> bool {
        has_stopped()
            && self.order.get().is_some()
            && self.own_order().answers == Answers::HasSent
            && {
                self.own_order().answers = Answers::Nothing;
                true
            }
    }

    /// It waits, and so it answers no more.
    pub(crate) fn end_answers(&self) {
        if self.order.get().is_some() {
            self.own_order().answers = Answers::Nothing;
        }
    }
}
