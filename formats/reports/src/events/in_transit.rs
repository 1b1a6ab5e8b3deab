//! Messages in transit: finds for each received message the record of its sending.
//!
//! A receive record does not tell the sender. Signals between two processes keep their order, so the first message with
//! a text that was sent to a process is the first one with that text that it receives.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use beamline_formats::ring::{Event, Id, NameId, Names, Record};

/// The most messages in transit that are kept. Of more, the oldest counts as never received.
const MOST: usize = 1 << 20;

/// A message that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it was sent, since the recording was begun.
    pub at_ns: u64,
    /// The number of messages sent before it, plus 1.
    pub number: u64,
    /// The process or port that sent it.
    pub from: Id,
}

/// What a record tells of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It is sent.
    Begins(Sent),
    /// It is in the receiver's queue.
    Ends(Sent),
}

type Key = (Id, u64);

/// The messages in transit of a recording.
#[derive(Default)]
pub struct InTransit {
    sent: HashMap<Key, VecDeque<Sent>>,
    /// All messages that were sent, the oldest first. Those that were received are among them.
    order: VecDeque<(Key, u64)>,
    /// The process that has each registered name.
    registered: HashMap<NameId, Id>,
    number: u64,
    lost: u64,
}

impl InTransit {
    /// No message is in transit yet. The registered names at the beginning come from the names of the recording.
    #[must_use]
    pub fn new(names: &Names) -> InTransit {
        // Of several processes with one name, the last has it until a record says otherwise.
        let mut registered: Vec<(NameId, Id)> = names.registered().collect();
        registered.sort_unstable();
        InTransit {
            registered: registered.into_iter().collect(),
            ..InTransit::default()
        }
    }

    /// Follows a record. The result tells of a message that is sent, or of one that is received and whose sending was
    /// seen.
    pub fn add(&mut self, record: &Record<'_>) -> Option<Passing> {
        match record.event {
            Event::Send { to, text } => Some(Passing::Begins(self.send(record, to, text))),
            Event::Receive { text } => self.receive(record.subject, text).map(Passing::Ends),
            Event::Register { name } => {
                self.registered.insert(name, record.subject);
                None
            }
            _ => None,
        }
    }

    fn send(&mut self, record: &Record<'_>, to: Id, text: &str) -> Sent {
        let to = match to {
            Id::Name(name) => self.registered.get(&name).copied().unwrap_or(to),
            to => to,
        };
        self.number += 1;
        let (key, number) = (key(to, text), self.number);
        let sent = Sent {
            at_ns: record.time_ns,
            number,
            from: record.subject,
        };
        self.sent.entry(key).or_default().push_back(sent);
        self.order.push_back((key, number));
        if self.order.len() > MOST
            && let Some((oldest, number)) = self.order.pop_front()
        {
            let first = self.sent.get(&oldest).and_then(|sent| sent.front());
            if first.is_some_and(|first| first.number == number) {
                self.take(oldest);
                self.lost += 1;
            }
        }
        sent
    }

    fn receive(&mut self, by: Id, text: &str) -> Option<Sent> {
        let sent = self.take(key(by, text));
        // Where a message goes that is sent to an alias is not recorded: it is known by its text, which has the
        // alias in it when it answers a call.
        sent.or_else(|| self.take(key(Id::None, text)))
    }

    fn take(&mut self, key: Key) -> Option<Sent> {
        let sent = self.sent.get_mut(&key)?;
        let first = sent.pop_front();
        if sent.is_empty() {
            self.sent.remove(&key);
        }
        first
    }

    /// The number of messages that were sent and whose receipt was not seen.
    #[must_use]
    pub fn left(&self) -> u64 {
        let waiting: usize = self.sent.values().map(VecDeque::len).sum();
        waiting as u64 + self.lost
    }
}

fn key(id: Id, text: &str) -> Key {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    (id, hasher.finish())
}
