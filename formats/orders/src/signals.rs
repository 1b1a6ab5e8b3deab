//! The signals other than messages that the processes of a trace have sent, and when these have trapped exits, as far as
//! that was recorded.

use std::collections::{BTreeMap, VecDeque};

use beamline_formats::ring::SignalKind;
use rustc_hash::FxHashMap;

use super::{
    Message, Process, ProcessIndex, Site, Step, StepIndex, SystemMessage, SystemMessageAt, Trace,
};

/// A signal other than a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentSignal {
    pub(super) kind: SignalKind,
    /// The receiver's place.
    pub(super) to: ProcessIndex,
    /// How many steps its sender had made itself by then.
    pub(super) steps: usize,
    /// The end of its sender has sent it.
    pub(super) is_of_end: bool,
    /// Where in the code it was sent.
    pub(super) site: Option<Site>,
}

/// A signal, by its sender and its place among the signals of that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignalAt {
    /// The sender's place.
    pub of: ProcessIndex,
    pub(super) at: usize,
}

/// What was recorded of the signals of all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SentSignals {
    /// Of each process, in their order.
    all: BTreeMap<ProcessIndex, Vec<SentSignal>>,
    /// When each process began to trap exits, or ceased to: how many steps it had made itself by then.
    traps: FxHashMap<ProcessIndex, Vec<(usize, bool)>>,
}

impl SentSignals {
    /// A process sends a signal.
    pub(super) fn insert(&mut self, of: ProcessIndex, signal: SentSignal) {
        self.all.entry(of).or_default().push(signal);
    }

    /// A process that has made `steps` steps itself begins to trap exits, or ceases to.
    pub(super) fn insert_traps(&mut self, of: ProcessIndex, steps: usize, traps: bool) {
        self.traps.entry(of).or_default().push((steps, traps));
    }

    /// Those of a process.
    pub(super) fn of(&self, process: ProcessIndex) -> &[SentSignal] {
        self.all.get(&process).map_or(&[], Vec::as_slice)
    }

    pub(super) fn get(&self, signal: SignalAt) -> Option<&SentSignal> {
        self.of(signal.of).get(signal.at)
    }

    /// All exit signals, those of one process in their order.
    fn exits(&self) -> impl Iterator<Item = (SignalAt, &SentSignal)> {
        let all = self.all.iter().flat_map(|(of, all)| {
            let at = |at| SignalAt { of: *of, at };
            (0..).map(at).zip(all)
        });
        all.filter(|(_, signal)| signal.kind.is_exit())
    }

    /// When a process began to trap exits, or ceased to, in its order.
    pub(super) fn traps(&self, process: ProcessIndex) -> &[(usize, bool)] {
        self.traps.get(&process).map_or(&[], Vec::as_slice)
    }

    /// These signals, where processes have other places.
    pub(super) fn moved(self, place: impl Fn(ProcessIndex) -> Option<ProcessIndex>) -> SentSignals {
        let all = self.all.into_iter().filter_map(|(of, all)| {
            let all = all.into_iter().filter_map(|signal| {
                let to = place(signal.to)?;
                Some(SentSignal { to, ..signal })
            });
            Some((place(of)?, all.collect()))
        });
        let all = all.collect();
        let traps = self.traps.into_iter();
        let traps = traps.filter_map(|(of, all)| Some((place(of)?, all)));
        SentSignals {
            all,
            traps: traps.collect(),
        }
    }
}

/// What has become of exit signals. Those of one process to another one come in their order, so the n-th of them that has
/// become a message, was lost or has ended the receiver is the n-th one that was sent.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// The messages that they are.
    pub(super) messages: FxHashMap<SystemMessageAt, SignalAt>,
    /// The signals that have ended processes.
    pub(super) ends: FxHashMap<ProcessIndex, SignalAt>,
    /// Those that have not come to their receivers, by these.
    pub(super) left: FxHashMap<ProcessIndex, Vec<SignalAt>>,
}

/// Two processes, of which one sends signals to the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    to: ProcessIndex,
    from: ProcessIndex,
}

impl Arrived {
    pub(super) fn of(trace: &Trace, sent: &SentSignals) -> Arrived {
        let mut lines: BTreeMap<Line, VecDeque<SignalAt>> = BTreeMap::new();
        for (place, signal) in sent.exits() {
            let (to, from) = (signal.to, place.of);
            let line = lines.entry(Line { to, from }).or_default();
            line.push_back(place);
        }
        let mut arrived = Arrived::default();
        for (to, process) in trace.processes.entries() {
            for step in &process.steps {
                let from = step.signal_sender();
                let line = from.and_then(|from| lines.get_mut(&Line { to, from }));
                let Some(signal) = line.and_then(VecDeque::pop_front) else {
                    continue;
                };
                match step {
                    Step::Deliver(Message::SystemMessage(told)) => {
                        arrived.messages.insert(told.at(to), signal);
                    }
                    Step::Spent(_) => drop(arrived.ends.insert(to, signal)),
                    _ => {}
                }
            }
        }
        for (Line { to, .. }, line) in lines {
            arrived.left.entry(to).or_default().extend(line);
        }
        arrived
    }
}

impl Step {
    /// The process whose exit signal comes with this step.
    fn signal_sender(&self) -> Option<ProcessIndex> {
        match self {
            Step::Deliver(Message::SystemMessage(SystemMessage {
                of,
                exit: true,
                gone: false,
                ..
            })) => *of,
            Step::Lost(of) => Some(*of),
            Step::Spent(spent) => spent.of,
            _ => None,
        }
    }
}

/// Where among the steps of a process those are that it has made itself, and where its steps end.
#[derive(Debug)]
pub(super) struct OwnSteps {
    places: Vec<StepIndex>,
    end: StepIndex,
}

impl OwnSteps {
    pub(super) fn of_process(process: &Process) -> OwnSteps {
        let own = process.numbered().filter(|(_, step)| step.is_own());
        OwnSteps {
            places: own.map(|(at, _)| at).collect(),
            end: process.end(),
        }
    }

    /// The first place where something can stand that it did when it had made `own` steps: right behind the last of
    /// these.
    pub(super) fn first_behind(&self, own: usize) -> StepIndex {
        let before = own.checked_sub(1);
        before.map_or(StepIndex::FIRST, |before| {
            self.places.get(before).map_or(self.end, |at| at.next())
        })
    }

    /// The last such place: right before the next one.
    pub(super) fn last_behind(&self, own: usize) -> StepIndex {
        self.places.get(own).copied().unwrap_or(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::parsed;

    /// The places of `p0` and `p0.1`.
    fn both() -> [ProcessIndex; 2] {
        [0, 1].map(ProcessIndex::new)
    }

    /// Signals of `p0` to `p0.1`.
    fn sent(kinds: &[SignalKind]) -> SentSignals {
        let [from, to] = both();
        let mut sent = SentSignals::default();
        for kind in kinds {
            let signal = SentSignal {
                kind: *kind,
                to,
                steps: 1,
                is_of_end: false,
                site: None,
            };
            sent.insert(from, signal);
        }
        sent
    }

    #[test]
    fn exit_signals_come_in_the_order_in_which_they_were_sent() {
        use SignalKind::{Exit, Kill, Monitor, Normal};
        let sent = sent(&[Monitor, Exit, Normal, Kill]);
        let [of, to] = both();
        for (steps, message, end, left) in [
            (
                "deliver(t0.1:7, p0, exit), lost(p0), spent(1, 2, signal, p0), exit",
                Some((7, 1)),
                Some(3),
                vec![],
            ),
            ("lost(p0), deliver(t0.1:7, p0)", None, None, vec![2, 3]),
            (
                "lost(p0), deliver(t0.1:7, p0, exit)",
                Some((7, 2)),
                None,
                vec![3],
            ),
            ("deliver(t0.1:7, p0, exit, gone)", None, None, vec![1, 2, 3]),
            ("spent(1, 2, signal), exit", None, None, vec![1, 2, 3]),
            ("lost(p0.1), timeout", None, None, vec![1, 2, 3]),
        ] {
            let trace = parsed(&format!("{{p0, [spawn(p0.1)]}}\n{{p0.1, [{steps}]}}"));
            let arrived = Arrived::of(&trace, &sent);
            let signal = |at| SignalAt { of, at };
            let messages = message.map(|(number, at)| (SystemMessageAt { to, number }, signal(at)));
            assert_eq!(arrived.messages, messages.into_iter().collect(), "{steps}");
            let ends = end.map(|at| (to, signal(at)));
            assert_eq!(arrived.ends, ends.into_iter().collect(), "{steps}");
            let behind = arrived.left.get(&to).into_iter().flatten();
            let behind: Vec<usize> = behind.map(|signal| signal.at).collect();
            assert_eq!(behind, left, "{steps}");
        }
    }

    #[test]
    fn what_a_process_did_between_two_own_steps_has_a_first_and_a_last_place() {
        let steps = "spawn(p0.1), deliver(t0:1), receive(t0:1), timeout, spent(1, 2), exit";
        let trace = parsed(&format!("{{p0, [{steps}]}}\n{{p0.1, []}}"));
        let own = OwnSteps::of_process(&trace.processes[both()[0]]);
        for (count, first, last) in [
            (0, 0, 0),
            (1, 1, 2),
            (2, 3, 3),
            (3, 4, 5),
            (4, 6, 6),
            (5, 6, 6),
        ] {
            let places = (own.first_behind(count), own.last_behind(count));
            let expected = (StepIndex::new(first), StepIndex::new(last));
            assert_eq!(places, expected, "{count}");
        }
    }

    #[test]
    fn signals_have_the_new_places_of_processes() {
        let [first, second] = both();
        let mut sent = sent(&[SignalKind::Link, SignalKind::Kill]);
        sent.insert_traps(second, 3, true);
        let swapped = sent
            .clone()
            .moved(|place| Some(if place == first { second } else { first }));
        let kinds =
            |signals: &[SentSignal]| signals.iter().map(|signal| signal.kind).collect::<Vec<_>>();
        let all = swapped.of(second);
        assert_eq!(kinds(all), [SignalKind::Link, SignalKind::Kill]);
        assert!(all.iter().all(|signal| signal.to == first));
        assert_eq!(
            (swapped.of(first), swapped.traps(first)),
            (&[][..], &[(3, true)][..])
        );
        let without_receiver = sent.moved(|place| (place == first).then_some(first));
        assert_eq!(without_receiver.of(first), []);
        assert_eq!(without_receiver.traps(second), []);
    }
}
