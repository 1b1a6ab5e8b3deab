//! What comes to a process in its turn: signals are held until the recorded run has them next.

use beamline_orders::{Message, Set, Setting, SystemMessage};

use super::{Plan, ReplayState, SystemNotice, collections, plan, spent, stop};
use crate::heap::Message as HeapMessage;
use crate::process::order::Source;
use crate::process::signal::{ExitSignal as Exit, Sender};
use crate::process::{Control, Exiting, Process, Signal, exists, order};
use crate::term::{Atom, Pid, am};

impl ReplayState {
    /// The held signal whose turn it is, with the recorded reason. A signal that ends the process (`traps` says whether
    /// signals become messages) comes after its last step, when it has spent as much by `now`.
    fn take_due(&mut self, plan: &'static Plan, traps: bool, now: &spent::Now) -> Option<Signal> {
        let steps = self.steps(plan);
        if self.cursor.is_over() {
            if let Some(input) = self.input.take() {
                input.go_on();
            }
            return self.held.pop();
        }
        // What comes next is no message. The messages behind it wait, also those that are here: a link or a collection that
        // comes late would find other words, or miss the exit signal that it is for.
        if let Some(due) = self.cursor.due_signal(steps) {
            let signal = self.held.take_signal(plan, due)?;
            self.cursor.advance_delivery(steps);
            return Some(signal);
        }
        if let Some(due) = self.cursor.due(steps) {
            if let Some(content) = plan.said_outside(self.cursor.process, due) {
                return self.take_outside(plan, due, content);
            }
            return match self.held.take(plan, due) {
                Some((source, signal)) => Some(plan.corrected(due, source, signal)),
                None => self.tell_input(due),
            };
        }
        self.take_last(plan, traps, now).map(Signal::Exit)
    }
}

impl ReplayState {
    /// Whether there may be something for [`ReplayState::take_due`].
    fn may_take(&self, plan: &'static Plan) -> bool {
        if let Some(due) = self.cursor.due_signal(self.steps(plan)) {
            return collections::is_collection(due) || self.held.has_signal(plan, due);
        }
        let Some(due) = self.cursor.due(self.steps(plan)) else {
            let is_free = self.cursor.is_over() || self.has_made_all(plan);
            return is_free && !self.held.is_empty();
        };
        match plan.said_outside(self.cursor.process, due) {
            Some(_) => self.has_outside(plan, due),
            None => self.held.has(plan, due) || self.tell_input(due).is_some(),
        }
    }

    /// The message that says that there is input, if that is due, and the process waits for input.
    fn tell_input(&self, due: &Message) -> Option<Signal> {
        let is_of_nobody = matches!(
            due,
            Message::SystemMessage(SystemMessage {
                of: None,
                gone: false,
                set: None,
                ..
            })
        );
        let input = self.input.as_ref().filter(|_| is_of_nobody)?;
        Some(input.tell())
    }
}

impl Plan {
    /// The signal with the recorded reason: a monitor or link that comes late finds the process gone, and would hear
    /// `noproc`. An exit signal is a message, as it was there, even if the process does not trap exits yet.
    fn corrected(&self, recorded: &Message, source: Source, signal: Signal) -> Signal {
        let (Message::SystemMessage(SystemMessage { gone, .. }), Source::SystemMessage { of, .. }) =
            (recorded, source)
        else {
            return signal;
        };
        match signal {
            Signal::MonitorDown {
                reference,
                reason,
                is_gone,
            } => Signal::MonitorDown {
                reference,
                reason: self.reason(of, *gone, (reason, is_gone)),
                is_gone: *gone,
            },
            Signal::Exit(mut exit) => {
                exit.reason = self.reason(of, *gone, (exit.reason, exit.is_gone));
                exit.is_gone = *gone;
                exit.traps = Some(true);
                Signal::Exit(exit)
            }
            other => other,
        }
    }

    /// The reason of an exit signal, as it was in the recorded run: a link that found its process gone may find it
    /// alive in the replay, and the other way round.
    pub(super) fn reason_of(&self, exit: &Exit, was_gone: bool) -> HeapMessage {
        let reason = HeapMessage::copy_of(exit.reason.term());
        match exit.linked && !order::is_explored() {
            true => self.reason(exit.from.pid(), was_gone, (reason, exit.is_gone)),
            false => reason,
        }
    }

    /// The recorded reason: `noproc` where the process was gone then, else that of its end, whichever came now.
    fn reason(
        &self,
        of: Option<Pid>,
        was_gone: bool,
        (reason, is_gone): (HeapMessage, bool),
    ) -> HeapMessage {
        match of {
            _ if is_gone == was_gone => reason,
            _ if was_gone => HeapMessage::copy_of(Atom::term(am::noproc)),
            Some(pid) => match self.ends.lock().get(&pid) {
                Some(end) => HeapMessage::copy_of(end.term()),
                None => reason,
            },
            None => reason,
        }
    }
}

impl Process {
    /// Handles a signal now, or holds it until its turn.
    pub(in crate::process) fn handle_in_turn(&mut self, signal: Signal) -> Result<(), Exiting> {
        let source = self.source_of(&signal);
        let link = signal.of_link().filter(|_| !order::is_explored());
        if source.is_none() && link.is_none() {
            return self.handle_now(signal);
        }
        let (Some(plan), Some(mut follows)) = (plan(), self.replay_state()) else {
            return self.handle_now(signal);
        };
        let Some(source) = source else {
            follows.held.put_of_link(signal);
            drop(follows);
            return self.deliver_due();
        };
        match signal {
            Signal::Message { sender, from, .. }
                if sender.is_outside() && plan.has_contents() && plan.index(from).is_none() =>
            {
                follows.held.put_outside(signal);
            }
            signal => follows.held.push(plan, source, signal),
        }
        if follows.waits_to_try() {
            self.shared.wake();
        }
        drop(follows);
        self.deliver_due()
    }

    /// Takes the held signals of links: the process ends.
    pub(in crate::process) fn held_of_links(&self) -> impl Iterator<Item = Signal> + use<> {
        let links = self
            .replay_state()
            .map(|mut follows| follows.held.take_links());
        links.into_iter().flatten()
    }

    /// The source of the message that a signal is or becomes; `None` for a signal that becomes none.
    pub(in crate::process) fn source_of(&self, signal: &Signal) -> Option<Source> {
        match signal {
            Signal::Message {
                sender: Sender::Answer,
                ..
            } => None,
            Signal::Message {
                from,
                sender,
                number,
                ..
            } => Some(Source::of(*sender, *from, *number)),
            Signal::Traced(traced) => Some(traced.source()),
            Signal::AliasMessage { .. } => Some(Source::NOTICE),
            Signal::Exit(exit) if exit.traps == Some(false) => None,
            Signal::Exit(exit) => Some(Source::exit_of(exit.from.pid(), exit.is_gone)),
            Signal::MonitorDown {
                reference, is_gone, ..
            } => {
                let relations = self.some_relations()?;
                let origin = relations.origins.get(reference)?;
                Some(Source::down_of(
                    origin.target.process(),
                    *is_gone,
                    *reference,
                ))
            }
            _ => None,
        }
    }

    /// Handles the held signals whose turn it is.
    ///
    /// # Errors
    /// When a signal ends the process.
    #[inline]
    pub(in crate::process) fn deliver_due(&mut self) -> Result<(), Exiting> {
        match order::is_followed() {
            true => self.deliver_those_due(),
            false => Ok(()),
        }
    }

    fn deliver_those_due(&mut self) -> Result<(), Exiting> {
        let plan = plan().filter(|_| !stop::has_stopped());
        let Some(plan) = plan else { return Ok(()) };
        loop {
            // Before each signal: the recorded collection found none of those that came behind it.
            self.collect_in_turn(false)?;
            let traps = self.flags.get().trap_exit;
            let now = spent::Now::of(self);
            if order::is_explored() && self.awaits_end() && !self.may_end_here() {
                return Ok(());
            }
            let due = self
                .replay_state()
                .and_then(|mut follows| follows.take_due(plan, traps, &now));
            match due {
                Some(mut signal) => {
                    self.prepare_for(&mut signal);
                    self.handle_now(signal)?;
                }
                None => return Ok(()),
            }
            // A message does so itself where it is delivered; another signal may be the last before the place.
            self.stop_behind();
        }
    }

    /// A built-in function is about to give up a monitor, link or timer of which a message could still come. `Some`: in
    /// the recorded run it had come before, so the function is to be called again later.
    pub(crate) fn wait_for_notice(
        &self,
        word: impl FnOnce(&Process) -> Option<SystemNotice>,
    ) -> Option<Control<'static>> {
        if !order::is_followed() {
            return None;
        }
        let (pid, exit, monitor) = match word(self)? {
            SystemNotice::Exit(pid) => (Some(pid), true, None),
            SystemNotice::Down(pid, monitor) => (pid, false, monitor),
            SystemNotice::Any => (None, false, None),
        };
        let (plan, follows) = (plan()?, self.replay_state()?);
        let (me, of) = (follows.cursor.process, pid.and_then(|pid| plan.index(pid)));
        // A recorded `noproc` is for a monitor or link that comes later, which finds the process gone.
        let is_found_later = || pid.is_some_and(exists) || plan.comes_later(me, of);
        let tells = |due: &Message| match due {
            Message::Sent { .. } => false,
            // An answer of that process.
            Message::SystemMessage(told) if pid.is_some() && plan.has_content(me, told) => false,
            Message::SystemMessage(told) => match told.set.map(Set::what) {
                Some(Setting::Monitor(number)) => monitor == Some(number),
                _ => {
                    told.of == of
                        && told.exit == exit
                        && !(told.gone && is_found_later())
                        && !plan.ends_behind(of, me)
                }
            },
        };
        let is_due = follows
            .cursor
            .all_due_messages(follows.steps(plan))
            .any(tells);
        drop(follows);
        // It may be here already, held for its turn; nothing else would wake the process then.
        if is_due {
            self.wake_if_held_is_due();
        }
        is_due.then_some(Control::Wait)
    }

    /// Wakes a process that is about to wait, if the turn of a held signal has come meanwhile.
    #[inline]
    pub(in crate::process) fn wake_if_held_is_due(&self) {
        if order::is_followed() {
            self.wake_if_it_may_take();
        }
    }

    fn wake_if_it_may_take(&self) {
        if let (Some(plan), Some(follows)) = (plan(), self.replay_state())
            && follows.may_take(plan)
        {
            self.shared.wake();
        }
    }
}
