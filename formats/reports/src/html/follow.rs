//! Follows the records of a recording and keeps the single things that the page shows: the longest time slices and
//! collections, and the newest of everything else.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use beamline_formats::profile::Native;
use beamline_formats::ring::{Event, Group, Id, Kind, NameId, Names, Record, SocketWait, Value};

use super::clock::{Clock, PARTS};
use super::races::Coming;
use crate::events::{Activation, DirtyCall, End, Passing, Slice, SocketSpan, Span, Spans};

/// Longer texts are cut.
const TEXT_MAX: usize = 160;

/// The beginning of a text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A time slice that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LongSlice {
    pub(super) ns: u64,
    pub(super) start_ns: u64,
    pub(super) who: Id,
    pub(super) segment: usize,
    pub(super) from: NameId,
    pub(super) to: End,
}

/// A call that a dirty scheduler has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LongDirty {
    /// With its waiting for the scheduler.
    pub(super) ns: u64,
    pub(super) start_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) who: Id,
    pub(super) function: NameId,
    pub(super) kind: Native,
    pub(super) scheduler: u64,
}

impl LongDirty {
    fn of(call: &DirtyCall, now: u64) -> Option<LongDirty> {
        Some(LongDirty {
            ns: now.saturating_sub(call.queued_ns),
            start_ns: call.queued_ns,
            wait_ns: call.start_ns?.saturating_sub(call.queued_ns),
            who: call.who,
            function: call.function,
            kind: call.kind,
            scheduler: call.scheduler,
        })
    }
}

/// A collection that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LongCollection {
    pub(super) ns: u64,
    pub(super) start_ns: u64,
    pub(super) who: Id,
    pub(super) is_major: bool,
    pub(super) reclaimed: u64,
    pub(super) used: u64,
}

/// A wait for a socket that has ended, or lasts until the end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LongWait {
    pub(super) ns: u64,
    pub(super) start_ns: u64,
    pub(super) who: Id,
    pub(super) socket: Id,
    pub(super) what: SocketWait,
    /// Why it was in vain; or empty.
    pub(super) outcome: String,
}

impl LongWait {
    fn of(wait: &SocketSpan, now: u64, outcome: &str) -> LongWait {
        LongWait {
            ns: now.saturating_sub(wait.start_ns),
            start_ns: wait.start_ns,
            who: wait.who,
            socket: wait.socket,
            what: wait.what,
            outcome: outcome.to_owned(),
        }
    }
}

/// A call that has ended, or goes on at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LongCall {
    pub(super) ns: u64,
    pub(super) start_ns: u64,
    pub(super) who: Id,
    pub(super) function: NameId,
    pub(super) own_ns: u64,
    pub(super) own_words: u64,
}

impl LongCall {
    /// A call of a process that ends now.
    pub(super) fn of(who: Id, call: &Activation, now: u64) -> LongCall {
        LongCall {
            ns: now.saturating_sub(call.start_ns),
            start_ns: call.start_ns,
            who,
            function: call.function,
            own_ns: call.own_ns,
            own_words: call.own_words(),
        }
    }
}

/// An event that takes no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) at_ns: u64,
    pub(super) who: Id,
    pub(super) kind: Kind,
    pub(super) text: String,
}

/// A message: one that was not seen to be sent has no sender, one that was not seen to come has not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) sent_ns: Option<u64>,
    pub(super) received_ns: Option<u64>,
    pub(super) from: Id,
    pub(super) to: Id,
    /// It was sent to nobody.
    pub(super) is_lost: bool,
    /// The label of the token that it was sent with, if it had one.
    pub(super) label: Option<NameId>,
    /// When it was taken from the queue: known of those with a token.
    pub(super) taken_ns: Option<u64>,
    /// It is no message: the process that has the token has printed it.
    pub(super) is_print: bool,
    pub(super) text: String,
}

impl Message {
    /// Nothing is known of it but its text.
    fn of(text: &str) -> Message {
        Message {
            sent_ns: None,
            received_ns: None,
            from: Id::None,
            to: Id::None,
            is_lost: false,
            label: None,
            taken_ns: None,
            is_print: false,
            text: cut(text),
        }
    }

    /// When it was first heard of.
    pub(super) fn start_ns(&self) -> u64 {
        let first = self.sent_ns.or(self.received_ns).or(self.taken_ns);
        first.unwrap_or(0)
    }
}

/// The sender of a message with a token, its label and its serial.
type TokenKey = (Id, NameId, u64);

/// Messages with tokens, by their numbers.
#[derive(Default)]
struct Tokens {
    /// What each process has sent last, if nothing has told that it had a token.
    newest: HashMap<Id, (Option<u64>, String)>,
    /// Those that have not been taken.
    waiting: HashMap<TokenKey, VecDeque<u64>>,
}

impl Tokens {
    fn sent(&mut self, by: Id, number: u64, text: &str) {
        let (newest, of) = self.newest.entry(by).or_default();
        *newest = Some(number);
        of.clear();
        of.push_str(text);
    }

    /// The number of a message that has a token, if another record has told of it just now.
    fn told_already(&mut self, by: Id, text: &str) -> Option<u64> {
        let (newest, of) = self.newest.get_mut(&by)?;
        newest.take().filter(|_| of == text)
    }

    fn queue(&mut self, key: TokenKey, number: u64) {
        self.waiting.entry(key).or_default().push_back(number);
    }

    fn taken(&mut self, key: TokenKey) -> Option<u64> {
        let waiting = self.waiting.get_mut(&key)?;
        let first = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&key);
        }
        first
    }

    /// Messages that never come are not kept in mind for ever.
    fn forget(&mut self, left: u64, most: usize) {
        if self.waiting.len() > 2 * most + 1024 {
            self.waiting.retain(|_, numbers| {
                numbers.retain(|number| *number >= left);
                !numbers.is_empty()
            });
        }
    }
}

pub(super) trait Lasting: Ord {
    fn ns(&self) -> u64;
}

impl Lasting for LongSlice {
    fn ns(&self) -> u64 {
        self.ns
    }
}

impl Lasting for LongCall {
    fn ns(&self) -> u64 {
        self.ns
    }
}

impl Lasting for LongWait {
    fn ns(&self) -> u64 {
        self.ns
    }
}

impl Lasting for LongDirty {
    fn ns(&self) -> u64 {
        self.ns
    }
}

impl Lasting for LongCollection {
    fn ns(&self) -> u64 {
        self.ns
    }
}

/// The longest of what was added.
pub(super) struct Longest<T> {
    most: usize,
    all: BinaryHeap<Reverse<T>>,
    /// How many were left out, and the longest of them.
    pub(super) left: u64,
    pub(super) left_ns: u64,
}

impl<T: Lasting> Longest<T> {
    pub(super) fn new(most: usize) -> Longest<T> {
        Longest {
            most,
            all: BinaryHeap::new(),
            left: 0,
            left_ns: 0,
        }
    }

    pub(super) fn add(&mut self, value: T) {
        if self.all.len() < self.most {
            self.all.push(Reverse(value));
            return;
        }
        self.left += 1;
        // Most are shorter than all that are kept.
        let left = match self.all.peek_mut() {
            Some(mut shortest) if shortest.0 < value => {
                std::mem::replace(&mut *shortest, Reverse(value)).0
            }
            _ => value,
        };
        self.left_ns = self.left_ns.max(left.ns());
    }

    /// In order of time.
    pub(super) fn sorted(&self, start_ns: impl Fn(&T) -> u64) -> Vec<&T> {
        let mut all: Vec<&T> = self.all.iter().map(|Reverse(value)| value).collect();
        all.sort_by(|a, b| start_ns(a).cmp(&start_ns(b)).then_with(|| a.cmp(b)));
        all
    }
}

/// The newest of what was added.
pub(super) struct Newest<T> {
    most: usize,
    pub(super) all: VecDeque<T>,
    /// How many were left out.
    pub(super) left: u64,
}

impl<T> Newest<T> {
    fn new(most: usize) -> Newest<T> {
        Newest {
            most,
            all: VecDeque::new(),
            left: 0,
        }
    }

    /// Gives the number of what was added, from 0.
    fn add(&mut self, value: T) -> u64 {
        self.all.push_back(value);
        if self.all.len() > self.most {
            self.all.pop_front();
            self.left += 1;
        }
        self.left + self.all.len() as u64 - 1
    }

    /// What was added with this number, if it is still there.
    fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let at = number.checked_sub(self.left)?;
        self.all.get_mut(usize::try_from(at).ok()?)
    }
}

/// The life of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) born_ns: Option<u64>,
    pub(super) ended_ns: Option<u64>,
    pub(super) reason: String,
    pub(super) slices: u64,
    pub(super) busy_ns: u64,
    pub(super) collections: u64,
    pub(super) gc_ns: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// Follows the records of a recording, and keeps what the page shows one by one.
pub(super) struct Follow<'r> {
    names: &'r Names,
    pub(super) slices: Longest<LongSlice>,
    pub(super) dirty: Longest<LongDirty>,
    pub(super) waits: Longest<LongWait>,
    pub(super) collections: Longest<LongCollection>,
    pub(super) marks: Newest<Mark>,
    pub(super) messages: Newest<Message>,
    pub(super) lives: HashMap<Id, Life>,
    /// Time in which each scheduler ran processes, in each part of the time.
    pub(super) use_ns: Vec<Vec<u64>>,
    clock: Clock,
    /// Numbers of messages by their numbers on the way.
    sent: HashMap<u64, u64>,
    tokens: Tokens,
    /// Numbers of the messages that are looked for by their comings.
    comings: HashMap<Coming, Option<u64>>,
}

impl<'r> Follow<'r> {
    /// Keeps `most` of each kind of thing.
    pub(super) fn new(names: &'r Names, segments: usize, most: usize, clock: Clock) -> Follow<'r> {
        Follow {
            comings: HashMap::new(),
            names,
            slices: Longest::new(most),
            dirty: Longest::new(most),
            waits: Longest::new(most),
            collections: Longest::new(most),
            marks: Newest::new(most),
            messages: Newest::new(most),
            lives: HashMap::new(),
            use_ns: vec![vec![0; PARTS]; segments],
            clock,
            sent: HashMap::new(),
            tokens: Tokens::default(),
        }
    }

    /// Looks for these messages, too.
    pub(super) fn look_for(self, comings: HashMap<Coming, Option<u64>>) -> Follow<'r> {
        Follow { comings, ..self }
    }

    /// The place among the newest messages of one that is looked for, if it is there.
    pub(super) fn place_of(&self, coming: Coming) -> Option<u64> {
        let number = (*self.comings.get(&coming)?)?;
        number.checked_sub(self.messages.left)
    }

    /// Follows what a record means.
    pub(super) fn add(&mut self, record: &Record<'_>, span: &Span) {
        let Some(kind) = record.event.kind() else {
            return;
        };
        match (kind.group(), *span) {
            (
                _,
                Span::SliceEnds {
                    slice: Some(slice),
                    end,
                    ..
                },
            ) => self.slice(&slice, record.time_ns, end),
            (_, Span::DirtyEnds(Some(call))) => {
                let call = LongDirty::of(&call, record.time_ns);
                call.into_iter().for_each(|call| self.dirty.add(call));
            }
            (_, Span::CollectionEnds { .. }) => self.collection(record, span),
            (_, Span::SocketWaitEnds(wait)) => {
                let Event::NetReady { outcome, .. } = record.event else {
                    return;
                };
                let wait = LongWait::of(&wait, record.time_ns, outcome);
                self.waits.add(wait);
            }
            (Group::Net, _) => match kind {
                // Bytes across a socket show as numbers in the table of sockets, and have no marks.
                Kind::NetIn | Kind::NetOut | Kind::NetWait | Kind::NetReady => {}
                _ => self.mark(record, kind),
            },
            (Group::Gc | Group::Ports | Group::System, Span::Moment) => self.mark(record, kind),
            (Group::Messages, Span::Message(passing)) => self.message(record, Some(passing)),
            (Group::Messages, _) => self.message(record, None),
            (Group::Processes, _) => {
                self.process(record);
                self.mark(record, kind);
            }
            (Group::Seq, _) => {
                self.token(record);
                self.mark(record, kind);
            }
            _ => {}
        }
    }

    fn life(&mut self, who: Id) -> &mut Life {
        self.lives.entry(who).or_default()
    }

    fn slice(&mut self, slice: &Slice, now: u64, to: End) {
        let ns = now.saturating_sub(slice.start_ns);
        let life = self.life(slice.who);
        life.slices += 1;
        life.busy_ns = life.busy_ns.saturating_add(ns);
        if matches!(slice.who, Id::Process(_)) {
            self.spread(slice.segment, slice.start_ns, now);
        }
        self.slices.add(LongSlice {
            ns,
            start_ns: slice.start_ns,
            who: slice.who,
            segment: slice.segment,
            from: slice.from,
            to,
        });
    }

    /// Adds a span to the parts of the time that it is in.
    fn spread(&mut self, segment: usize, from: u64, to: u64) {
        let clock = self.clock;
        let Some(parts) = self.use_ns.get_mut(segment) else {
            return;
        };
        for (part, ns) in clock.pieces(0, from, to) {
            parts[part] += ns;
        }
    }

    fn collection(&mut self, record: &Record<'_>, span: &Span) {
        let Span::CollectionEnds {
            collection: Some(collection),
            is_major,
            reclaimed,
            used,
        } = *span
        else {
            return;
        };
        let ns = record.time_ns.saturating_sub(collection.start_ns);
        let life = self.life(collection.who);
        life.collections += 1;
        life.gc_ns = life.gc_ns.saturating_add(ns);
        self.collections.add(LongCollection {
            ns,
            start_ns: collection.start_ns,
            who: collection.who,
            is_major,
            reclaimed,
            used,
        });
    }

    fn process(&mut self, record: &Record<'_>) {
        let now = record.time_ns;
        match record.event {
            Event::Spawn { child, .. } => {
                self.life(child).born_ns.get_or_insert(now);
            }
            Event::Spawned { .. } => {
                self.life(record.subject).born_ns.get_or_insert(now);
            }
            Event::Exit { text } => {
                let life = self.life(record.subject);
                (life.ended_ns, life.reason) = (Some(now), cut(text));
            }
            _ => {}
        }
    }

    fn message(&mut self, record: &Record<'_>, passing: Option<Passing>) {
        let now = record.time_ns;
        match record.event {
            Event::Send { to, text } | Event::SendToNonExisting { to, text } => {
                self.life(record.subject).sent += 1;
                let number = self.messages.add(Message {
                    sent_ns: Some(now),
                    from: record.subject,
                    to,
                    is_lost: matches!(record.event, Event::SendToNonExisting { .. }),
                    ..Message::of(text)
                });
                self.tokens.sent(record.subject, number, text);
                if let Some(Passing::Begins(sent)) = passing {
                    self.sent.insert(sent.number, number);
                }
            }
            Event::Receive { text } => {
                let life = self.life(record.subject);
                life.received += 1;
                let coming = (record.subject, life.received);
                let number = self.add_arrival(record, passing, text);
                if let Some(wanted) = self.comings.get_mut(&coming) {
                    *wanted = number;
                }
            }
            _ => {}
        }
        // Messages that never come are not kept in mind for ever.
        if self.sent.len() > 2 * self.messages.most + 1024 {
            let left = self.messages.left;
            self.sent.retain(|_, number| *number >= left);
        }
    }

    /// A message gets into a queue: its number, if it is shown.
    fn add_arrival(
        &mut self,
        record: &Record<'_>,
        passing: Option<Passing>,
        text: &str,
    ) -> Option<u64> {
        let now = Some(record.time_ns);
        let Some(Passing::Ends(sent)) = passing else {
            return Some(self.messages.add(Message {
                received_ns: now,
                to: record.subject,
                ..Message::of(text)
            }));
        };
        // What was sent too long ago to be shown is not shown when it comes.
        let number = self.sent.remove(&sent.number)?;
        let message = self.messages.get_mut(number)?;
        (message.received_ns, message.to) = (now, record.subject);
        Some(number)
    }

    /// A message with a token is sent or taken, or something is printed. Where messages are recorded too, what is sent
    /// has two records, this one after the other.
    fn token(&mut self, record: &Record<'_>) {
        let (now, who) = (record.time_ns, record.subject);
        match record.event {
            Event::SeqSend {
                to,
                label,
                serial,
                text,
                ..
            } => {
                let number = self.tokens.told_already(who, text).unwrap_or_else(|| {
                    self.messages.add(Message {
                        sent_ns: Some(now),
                        from: who,
                        to,
                        ..Message::of(text)
                    })
                });
                if let Some(message) = self.messages.get_mut(number) {
                    message.label = Some(label);
                }
                self.tokens.queue((who, label, serial), number);
            }
            Event::SeqReceive {
                from,
                label,
                serial,
                text,
                ..
            } => {
                let number = self.tokens.taken((from, label, serial));
                let number = number.unwrap_or_else(|| {
                    self.messages.add(Message {
                        from,
                        label: Some(label),
                        ..Message::of(text)
                    })
                });
                if let Some(message) = self.messages.get_mut(number) {
                    (message.taken_ns, message.to) = (Some(now), who);
                }
            }
            Event::SeqPrint { label, text, .. } => {
                self.messages.add(Message {
                    sent_ns: Some(now),
                    from: who,
                    to: who,
                    label: Some(label),
                    is_print: true,
                    ..Message::of(text)
                });
            }
            _ => {}
        }
        self.tokens.forget(self.messages.left, self.messages.most);
    }

    fn mark(&mut self, record: &Record<'_>, kind: Kind) {
        let mut text = String::new();
        for (name, value) in record.event.values() {
            let value = match value {
                Value::Number(number) => number.to_string(),
                Value::Text(text) => text.to_owned(),
                Value::Id(Id::Name(name)) => beamline_formats::name::module(self.names.atom(name)),
                Value::Id(id @ Id::Socket(_)) => self.names.socket_text(id),
                Value::Id(id) => id.to_string(),
                Value::Name(name) => self.names.text(name),
                Value::Label(label) => label.to_string(),
            };
            let comma = if text.is_empty() { "" } else { ", " };
            text.push_str(&format!("{comma}{name} {value}"));
        }
        self.marks.add(Mark {
            at_ns: record.time_ns,
            who: record.subject,
            kind,
            text: cut(&text),
        });
    }

    /// Ends the time slices, the calls on dirty schedulers and the waits that have not ended.
    pub(super) fn finish(&mut self, spans: &Spans, end_ns: u64) {
        let (open, dirty) = (spans.open_slices(), spans.open_dirty());
        for wait in spans.open_waits() {
            self.waits.add(LongWait::of(&wait, end_ns, ""));
        }
        for slice in open {
            self.slice(&slice, end_ns, End::Open);
        }
        let dirty = dirty.iter().filter_map(|call| LongDirty::of(call, end_ns));
        dirty.for_each(|call| self.dirty.add(call));
    }
}
