//! Where in the code the steps of a trace are.

use std::fmt;

use rustc_hash::FxHashMap;

use super::signals::SentSignals;
use super::{Accesses, Message, Messages, Pair, PerProcess, ProcessIndex, Race, Trace};

/// A place in the code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The function, as its language writes it.
    pub function: String,
    /// 0 where it is not known.
    pub line: u32,
    /// The module is no library's.
    pub is_of_application: bool,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.function),
            line => write!(f, "{}, line {line}", self.function),
        }
    }
}

/// A step that has a place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// The process's sending of this number.
    Send(ProcessIndex, u32),
    /// The process takes this message.
    Receive(ProcessIndex, Message),
    /// The process's time-out of this number, from 1.
    Timeout(ProcessIndex, u32),
}

impl At {
    /// The receive of a race.
    fn of_receive(process: ProcessIndex, messages: &Messages) -> At {
        match messages.taken {
            Some(message) => At::Receive(process, message),
            None => At::Timeout(process, messages.timeout),
        }
    }

    /// This step, where processes have other places.
    fn moved(self, place: impl Fn(ProcessIndex) -> Option<ProcessIndex>) -> Option<At> {
        Some(match self {
            At::Send(process, number) => At::Send(place(process)?, number),
            At::Receive(process, message) => At::Receive(place(process)?, message.moved(place)?),
            At::Timeout(process, number) => At::Timeout(place(process)?, number),
        })
    }
}

/// The places in the code of the steps of a trace, as far as they were recorded.
#[derive(Debug, Default)]
pub struct Sites {
    steps: FxHashMap<At, Site>,
    /// What accesses are to, and where they are.
    pub accesses: Accesses,
    /// Signals other than messages.
    pub(super) signals: SentSignals,
    /// Whether receives have clauses for other messages than those that they took, as far as they have tried.
    clauses: FxHashMap<(At, Message), bool>,
}

impl Sites {
    pub(super) fn insert(&mut self, at: At, site: Site) {
        self.steps.insert(at, site);
    }

    /// A receive has a clause for a message, or has none.
    pub(super) fn insert_clause(&mut self, at: At, message: Message, has_one: bool) {
        self.clauses.insert((at, message.without_what()), has_one);
    }

    /// Whether the receive of a race has a clause for the message that could have come first; `None` where it has not tried.
    pub(super) fn has_clause(&self, process: ProcessIndex, both: &Messages) -> Option<bool> {
        let at = At::of_receive(process, both);
        self.clauses.get(&(at, both.other.without_what())).copied()
    }

    /// No place is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.accesses.is_empty()
    }

    /// Where a step is.
    #[must_use]
    pub fn get(&self, at: At) -> Option<&Site> {
        self.steps.get(&at)
    }

    /// Where a message was sent, if a process has sent it.
    pub fn of_sending(&self, message: Message) -> Option<&Site> {
        match message {
            Message::Sent { from, number } => self.get(At::Send(from, number)),
            Message::SystemMessage(_) => None,
        }
    }

    /// Where the receive of a race is.
    fn of_receive(&self, process: ProcessIndex, messages: &Messages) -> Option<&Site> {
        self.get(At::of_receive(process, messages))
    }

    /// The places of a race: of messages, those of the receive, and of the sends of what was taken and of the other
    /// message; of accesses, nothing, that of the first one, and that of the other one; of an exit signal, nothing, that
    /// of what came first, and that of the signal.
    #[must_use]
    pub fn of_race(&self, race: &Race) -> [Option<&Site>; 3] {
        let of_sending = |message| self.of_sending(message);
        match &race.pair {
            Pair::Messages(messages) => [
                self.of_receive(race.process, messages),
                messages.taken.and_then(of_sending),
                of_sending(messages.other),
            ],
            Pair::Accesses(both) => [
                None,
                self.accesses.site(both.first),
                self.accesses.site(both.second),
            ],
            Pair::End(end) => [
                None,
                self.of_act(race.process, end.before),
                self.signals
                    .get(end.signal)
                    .and_then(|signal| signal.site.as_ref()),
            ],
        }
    }

    /// These sites for another trace of the same processes, such as that of a replay. Their references tell which is
    /// which.
    #[must_use]
    pub fn of_other(self, from: &Trace, to: &Trace) -> Sites {
        let all = |trace: &Trace| {
            let all = trace.processes.indexes();
            all.map(|at| (trace.reference(at), at))
                .collect::<PerProcess<_>>()
        };
        let to: FxHashMap<_, ProcessIndex> = all(to).into_iter().collect();
        let places = all(from).map(|(name, _)| to.get(name).copied());
        let place = |at: ProcessIndex| places[at];
        let steps = self.steps.into_iter();
        let steps = steps.filter_map(|(at, site)| Some((at.moved(place)?, site)));
        let clauses = self
            .clauses
            .into_iter()
            .filter_map(|((at, message), has_one)| {
                Some(((at.moved(place)?, message.moved(place)?), has_one))
            });
        Sites {
            steps: steps.collect(),
            accesses: self.accesses.moved(place),
            signals: self.signals.moved(place),
            clauses: clauses.collect(),
        }
    }

    /// What the places tell of a race.
    pub(super) fn tell(&self, race: &mut Race) {
        if self.is_empty() {
            return;
        }
        let all = self.of_race(race);
        // Whoever is stopped by a library, when all is stopped say, could have been stopped earlier.
        let telling = match race.pair {
            Pair::End(_) => &all[2..],
            Pair::Messages(_) | Pair::Accesses(_) => &all[..],
        };
        race.is_of_application = telling.iter().flatten().any(|site| site.is_of_application);
        if let Pair::Messages(messages) = &mut race.pair {
            let later = self.get(At::Receive(race.process, messages.other));
            let is_same = messages.is_same_message() || all[0].is_some() && all[0] == later;
            messages.is_same_receive = Some(is_same);
            messages.has_clause = self.has_clause(race.process, messages);
        }
    }
}
