//! Signals that have come to a process before their turn.

use std::collections::{BTreeMap, VecDeque};

use beamline_orders::{Heard, Message, ProcessIndex, Step as Recorded};

use super::Plan;
use crate::hash::HashMap;
use crate::process::Signal;
use crate::process::order::Source;
use crate::term::{Pid, am};

/// Signals that are messages, or become messages, or end the process, by the order in which they came.
#[derive(Default)]
pub(super) struct Held {
    all: BTreeMap<u64, (Source, Signal)>,
    /// Those that recorded processes have sent: by the sender's place and the number of the sending.
    sent: HashMap<(ProcessIndex, u32), u64>,
    /// The others.
    others: VecDeque<u64>,
    /// Signals of links.
    links: VecDeque<Signal>,
    /// Messages from outside, which come from the recording as long as it has any.
    outside: VecDeque<Signal>,
    next: u64,
}

impl Held {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.outside.is_empty() && self.links.is_empty()
    }

    pub(super) fn push(&mut self, plan: &Plan, source: Source, signal: Signal) {
        let at = self.next;
        self.next += 1;
        let sender = match source {
            Source::Sent(sending) => plan.index(sending.from).map(|from| (from, sending.number)),
            Source::Timer(_) | Source::SystemMessage { .. } => None,
        };
        match sender {
            Some(sender) => drop(self.sent.insert(sender, at)),
            None => self.others.push_back(at),
        }
        self.all.insert(at, (source, signal));
    }

    /// A message has come from outside.
    pub(super) fn put_outside(&mut self, signal: Signal) {
        self.outside.push_back(signal);
    }

    /// Drops the next of these messages: the recording has another one in its place.
    pub(super) fn drop_outside(&mut self) {
        self.outside.pop_front();
    }

    /// Takes the signal that came first.
    pub(super) fn pop(&mut self) -> Option<Signal> {
        // Before the others: an exit signal of a link counts only if the link is there.
        if let Some(link) = self.links.pop_front() {
            return Some(link);
        }
        let Some((_, (_, signal))) = self.all.pop_first() else {
            return self.outside.pop_front();
        };
        // Their numbers lead nowhere any more: `pop` takes signals without looking them up.
        if self.all.is_empty() {
            self.sent.clear();
            self.others.clear();
        }
        Some(signal)
    }

    /// The recorded message, if it has come.
    pub(super) fn take(&mut self, plan: &Plan, due: &Message) -> Option<(Source, Signal)> {
        match due {
            Message::Sent { from, number } => {
                let at = self.sent.remove(&(*from, *number))?;
                self.all.remove(&at)
            }
            Message::SystemMessage(_) => {
                self.take_other(|source, signal| !signal.is_from_outside() && plan.is(due, source))
            }
        }
    }

    /// The recorded message, if it has come; it stays held.
    pub(super) fn get(&self, plan: &Plan, due: &Message) -> Option<&(Source, Signal)> {
        match due {
            Message::Sent { from, number } => self.all.get(self.sent.get(&(*from, *number))?),
            Message::SystemMessage(_) => {
                let mut others = self.others();
                others.find(|(source, signal)| !signal.is_from_outside() && plan.is(due, source))
            }
        }
    }

    /// Whether the recorded message has come.
    pub(super) fn has(&self, plan: &Plan, due: &Message) -> bool {
        self.get(plan, due).is_some()
    }

    /// The process whose answer is due, if the answer has come, which is taken.
    pub(super) fn take_answer(&mut self, plan: &Plan, due: &Message) -> Option<Pid> {
        let is_it =
            |source: &Source, signal: &Signal| signal.is_from_outside() && plan.is(due, source);
        match self.take_other(is_it)? {
            (Source::SystemMessage { of, .. }, _) => of,
            _ => None,
        }
    }

    /// Whether the answer that is due has come.
    pub(super) fn has_answer(&self, plan: &Plan, due: &Message) -> bool {
        let mut others = self.others();
        others.any(|(source, signal)| signal.is_from_outside() && plan.is(due, source))
    }

    /// The signal that is due and no message, if it has come: an exit signal that the recorded process has lost, or one of a
    /// link.
    pub(super) fn take_signal(&mut self, plan: &Plan, due: &Recorded) -> Option<Signal> {
        match *due {
            Recorded::Heard(what, of) => {
                let mut links = self.links.iter();
                let at = links.position(|signal| plan.tells(signal, what, of))?;
                self.links.remove(at)
            }
            Recorded::Lost(of) => {
                match self.take_other(|_, signal| may_be_lost(plan, signal, of))? {
                    (_, Signal::Exit(mut exit)) => {
                        exit.reason = plan.reason_of(&exit, false);
                        exit.traps = Some(false);
                        Some(Signal::Exit(exit))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether the signal that is due has come.
    pub(super) fn has_signal(&self, plan: &Plan, due: &Recorded) -> bool {
        match *due {
            Recorded::Heard(what, of) => {
                let mut links = self.links.iter();
                links.any(|signal| plan.tells(signal, what, of))
            }
            Recorded::Lost(of) => {
                let mut others = self.others();
                others.any(|(_, signal)| may_be_lost(plan, signal, of))
            }
            _ => false,
        }
    }

    /// A signal of a link has come.
    pub(super) fn put_of_link(&mut self, signal: Signal) {
        self.links.push_back(signal);
    }

    /// All signals of links, in the order in which they came.
    pub(super) fn take_links(&mut self) -> VecDeque<Signal> {
        std::mem::take(&mut self.links)
    }

    fn others(&self) -> impl Iterator<Item = &(Source, Signal)> {
        self.others.iter().filter_map(|at| self.all.get(at))
    }

    /// Whether `is_it` is true of a signal that no recorded process has sent.
    pub(super) fn any(&self, is_it: impl Fn(&Signal) -> bool) -> bool {
        self.others().any(|(_, signal)| is_it(signal))
    }

    /// Takes the first signal of which `is_it` is true, of those that no recorded process has sent.
    pub(super) fn take_other(
        &mut self,
        is_it: impl Fn(&Source, &Signal) -> bool,
    ) -> Option<(Source, Signal)> {
        let all = &self.all;
        let found = self.others.iter().position(|at| {
            all.get(at)
                .is_some_and(|(source, signal)| is_it(source, signal))
        });
        let at = self.others.remove(found?)?;
        self.all.remove(&at)
    }
}

impl Plan {
    /// Does the signal tell this of the link to a recorded process?
    fn tells(&self, signal: &Signal, what: Heard, of: ProcessIndex) -> bool {
        signal
            .of_link()
            .is_some_and(|(heard, pid)| heard == what && self.index(pid) == Some(of))
    }
}

fn may_be_lost(plan: &Plan, signal: &Signal, of: ProcessIndex) -> bool {
    match signal {
        Signal::Exit(exit) => {
            plan.index_of(exit) == Some(of) && plan.reason_of(exit, false).term() == am::normal
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FIGURE, PIDS, plan, sent};
    use super::*;
    use crate::process::Peer;
    use crate::term::Term;

    fn message() -> Signal {
        Signal::message(Term::NIL, PIDS[0])
    }

    fn due(from: usize, number: u32) -> Message {
        let from = ProcessIndex::new(from);
        Message::Sent { from, number }
    }

    #[test]
    fn a_message_is_found_by_its_sender_and_number_whatever_came_first() {
        let plan = plan(FIGURE);
        let mut held = Held::default();
        for (from, number) in [(2, 2), (3, 1), (2, 1)] {
            held.push(&plan, sent(from, number), message());
        }
        assert_eq!(held.len(), 3);
        assert!(held.has(&plan, &due(2, 1)) && !held.has(&plan, &due(0, 1)));
        let taken = held.take(&plan, &due(2, 1)).map(|(source, _)| source);
        assert_eq!(taken, Some(sent(2, 1)));
        assert!(held.take(&plan, &due(2, 1)).is_none(), "it is taken once");
        // One that is left is still found by its number when others are gone.
        assert!(held.take(&plan, &due(3, 1)).is_some());
        assert!(held.has(&plan, &due(2, 2)));
    }

    #[test]
    fn behind_the_last_step_links_come_first_and_messages_from_outside_last() {
        let plan = plan(FIGURE);
        let mut held = Held::default();
        held.put_outside(Signal::from_outside(crate::heap::Message::copy_of(
            Term::NIL,
        )));
        held.push(&plan, sent(2, 2), message());
        held.push(&plan, sent(2, 1), message());
        let from = Peer::from(PIDS[1]);
        held.put_of_link(Signal::Link { from });
        let kinds: Vec<_> = std::iter::from_fn(|| held.pop())
            .map(|signal| match signal {
                Signal::Link { .. } => "link",
                signal if signal.is_from_outside() => "outside",
                _ => "message",
            })
            .collect();
        assert_eq!(kinds, ["link", "message", "message", "outside"]);
        assert!(held.is_empty());
        // Numbers of messages that were popped lead nowhere.
        assert!(!held.has(&plan, &due(2, 1)) && held.take(&plan, &due(2, 1)).is_none());
    }

    #[test]
    fn news_of_a_link_is_that_of_the_recorded_process() {
        let plan = plan(FIGURE);
        let mut held = Held::default();
        for pid in [PIDS[1], PIDS[2]] {
            let from = Peer::from(pid);
            held.put_of_link(Signal::Link { from });
        }
        let news = |what, of| Recorded::Heard(what, ProcessIndex::new(of));
        let link = |of| news(Heard::Link, of);
        assert!(!held.has_signal(&plan, &link(3)));
        assert!(!held.has_signal(&plan, &news(Heard::Unlink, 2)));
        assert!(held.take_signal(&plan, &link(2)).is_some());
        assert!(held.take_signal(&plan, &link(2)).is_none());
        assert!(held.has_signal(&plan, &link(1)));
    }
}
