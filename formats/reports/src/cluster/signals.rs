//! The signals that crossed the connections of a node, as its recording has them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use beamline_formats::ring::{Error, Event, Id, Record, Recording};
use serde::Serialize;

use crate::events::scan;

/// Operations of the distribution protocol that bring a message.
const MESSAGES: [u64; 9] = [2, 6, 12, 16, 22, 23, 33, 34, 37];
/// Those that ask for a process.
const SPAWN_REQUESTS: [u64; 2] = [29, 30];
/// Those that answer that.
const SPAWN_REPLIES: [u64; 2] = [31, 32];
/// Those that tell of the end of a process that is monitored.
const MONITOR_EXITS: [u64; 2] = [21, 28];

/// What a process of one node asked of another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// A call of `gen_server` or a behaviour like it.
    Call,
    /// A call of `erpc`, which `rpc` makes, too.
    Erpc,
    /// A process to be started.
    Spawn,
    /// A message with a reference that came back.
    Message,
}

impl Asked {
    /// As a table has it.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Asked::Call => "call",
            Asked::Erpc => "erpc",
            Asked::Spawn => "spawn",
            Asked::Message => "message",
        }
    }
}

/// How a signal has to do with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It asks with this reference.
    Asks(u64, Asked),
    /// A message with this reference, or the end of what was monitored by it.
    Answers(u64),
    /// The process that was asked for by this reference has been started, or not.
    Spawned(u64),
    /// It has no reference of this node.
    None,
}

/// The most messages of a process that wait for the record that belongs to theirs.
const WAITING: usize = 4096;

/// The record of a message beside that of its signal: of its sending, or of its coming into the receiver's queue.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) at_ns: u64,
    pub(crate) text: Box<str>,
}

/// A signal, on one side of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Signal {
    /// Since the recording was begun.
    pub(crate) at_ns: u64,
    /// The process of this side.
    pub(crate) who: Id,
    pub(crate) operation: u64,
    /// Of its terms.
    pub(crate) bytes: u64,
    pub(crate) role: Role,
    /// The message's own record, if messages were recorded.
    pub(crate) message: Option<Message>,
}

impl Signal {
    pub(crate) fn is_message(&self) -> bool {
        MESSAGES.contains(&self.operation)
    }

    /// Whether the other side may have recorded the same signal as this.
    pub(crate) fn may_be(&self, other: &Signal) -> bool {
        (self.operation, self.bytes) == (other.operation, other.bytes)
    }
}

/// The signals of a connection, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// Those that left.
    pub(crate) left: BTreeMap<u64, Signal>,
    /// Those that came.
    pub(crate) came: BTreeMap<u64, Signal>,
}

impl Lane {
    /// When the first signal crossed.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        let all = self.left.values().chain(self.came.values());
        all.map(|signal| signal.at_ns).min()
    }
}

/// All connections of a recording, by their numbers.
pub(crate) type Lanes = BTreeMap<u64, Lane>;

/// Reads the signals of a recording.
///
/// # Errors
/// When a block is damaged.
pub(crate) fn read(recording: &Recording) -> Result<Lanes, Error> {
    let mut reader = Reader::default();
    scan(recording, |record| {
        reader.add(record);
        Ok::<(), Error>(())
    })?;
    Ok(reader.lanes)
}

/// A signal that has come: connection, number, and what it says.
type Coming = (u64, u64, Box<str>);

#[derive(Default)]
struct Reader {
    lanes: Lanes,
    /// Messages of each process that may be on their way to another node.
    sent: HashMap<Id, VecDeque<Message>>,
    /// Messages of other nodes to each process that are not in its queue yet.
    coming: HashMap<Id, VecDeque<Coming>>,
}

fn push<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() >= WAITING {
        queue.pop_front();
    }
    queue.push_back(item);
}

impl Reader {
    fn add(&mut self, record: &Record<'_>) {
        let (at_ns, who) = (record.time_ns, record.subject);
        match record.event {
            Event::DistUp { connection, .. } => _ = self.lanes.entry(connection).or_default(),
            Event::DistOut {
                connection,
                number,
                operation,
                bytes,
                text,
            } => {
                let mut signal = Signal {
                    at_ns,
                    who,
                    operation,
                    bytes,
                    role: asks(operation, text),
                    message: None,
                };
                if signal.is_message() {
                    signal.message = self.take_sent(who, text);
                }
                let lane = self.lanes.entry(connection).or_default();
                lane.left.insert(number, signal);
            }
            Event::DistIn {
                connection,
                number,
                operation,
                bytes,
                text,
            } => {
                let signal = Signal {
                    at_ns,
                    who,
                    operation,
                    bytes,
                    role: answers(operation, text),
                    message: None,
                };
                if signal.is_message() {
                    let coming = self.coming.entry(who).or_default();
                    push(coming, (connection, number, text.into()));
                }
                let lane = self.lanes.entry(connection).or_default();
                lane.came.insert(number, signal);
            }
            // What is for another node has no id here.
            Event::Send { to: Id::None, text } => {
                let text = text.into();
                let sent = self.sent.entry(who).or_default();
                push(sent, Message { at_ns, text });
            }
            Event::Receive { text } => self.receive(at_ns, who, text),
            Event::Exit { .. } => {
                self.coming.remove(&who);
            }
            _ => {}
        }
    }

    /// The sending of a message that leaves: the first of its sender that says the same.
    fn take_sent(&mut self, who: Id, text: &str) -> Option<Message> {
        let sent = self.sent.get_mut(&who)?;
        let at = sent.iter().position(|of| text.starts_with(&*of.text))?;
        sent.remove(at)
    }

    /// A message gets into a queue: the first that has come for this process and says the same.
    fn receive(&mut self, at_ns: u64, who: Id, text: &str) {
        let Some(coming) = self.coming.get_mut(&who) else {
            return;
        };
        let Some(at) = coming.iter().position(|(_, _, it)| it.starts_with(text)) else {
            return;
        };
        let Some((connection, number, _)) = coming.remove(at) else {
            return;
        };
        let lane = self.lanes.entry(connection).or_default();
        if let Some(signal) = lane.came.get_mut(&number) {
            let text = text.into();
            signal.message = Some(Message { at_ns, text });
        }
    }
}

/// The first reference in the text that the node itself has made, as a number.
fn own_reference(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("#Ref<0.")?;
    let (numbers, _) = rest.split_once('>')?;
    let mut hasher = DefaultHasher::new();
    numbers.hash(&mut hasher);
    Some(hasher.finish())
}

/// What a signal that leaves has to do with questions.
fn asks(operation: u64, text: &str) -> Role {
    let asked = if SPAWN_REQUESTS.contains(&operation) {
        match text.contains("{erpc,execute_") {
            true => Asked::Erpc,
            false => Asked::Spawn,
        }
    } else if MESSAGES.contains(&operation) {
        match text.contains("'$gen_call'") {
            true => Asked::Call,
            false => Asked::Message,
        }
    } else {
        return Role::None;
    };
    own_reference(text).map_or(Role::None, |reference| Role::Asks(reference, asked))
}

/// What a signal that comes has to do with questions.
fn answers(operation: u64, text: &str) -> Role {
    let Some(reference) = own_reference(text) else {
        return Role::None;
    };
    if SPAWN_REPLIES.contains(&operation) {
        Role::Spawned(reference)
    } else if MESSAGES.contains(&operation) || MONITOR_EXITS.contains(&operation) {
        Role::Answers(reference)
    } else {
        Role::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_are_known_by_the_reference_of_who_asks() {
        let reference = own_reference("#Ref<0.1.2.3>").expect("its own");
        assert_eq!(own_reference("#Ref<9.1.2.3>"), None);
        for (operation, text, expect) in [
            (
                6,
                "{'$gen_call',{<0.9.0>,[alias|#Ref<0.1.2.3>]},get} '' srv",
                Asked::Call,
            ),
            (
                29,
                "#Ref<0.1.2.3> {erpc,execute_call,4} [monitor] []",
                Asked::Erpc,
            ),
            (29, "#Ref<0.1.2.3> {m,f,1} [] []", Asked::Spawn),
            (22, "{ask,#Ref<0.1.2.3>}", Asked::Message),
        ] {
            assert_eq!(
                asks(operation, text),
                Role::Asks(reference, expect),
                "{text}"
            );
        }
        // A monitor has the reference of the call, and asks nothing.
        assert_eq!(asks(19, "srv #Ref<0.1.2.3>"), Role::None);
        assert_eq!(
            asks(33, "{[alias|#Ref<9.1.2.3>],ok} #Ref<9.1.2.3>"),
            Role::None
        );
        assert_eq!(
            answers(33, "{[alias|#Ref<0.1.2.3>],ok} #Ref<0.1.2.3>"),
            Role::Answers(reference)
        );
        assert_eq!(
            answers(28, "#Ref<0.1.2.3> noproc"),
            Role::Answers(reference)
        );
        assert_eq!(answers(31, "#Ref<0.1.2.3> 2"), Role::Spawned(reference));
    }
}
