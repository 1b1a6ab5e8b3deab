//! Traces: what processes did to each other in a run, each process's steps in their order. A log is a trace without
//! deliveries.
//!
//! The notation and its meaning are those of prefix-based tracing: `docs/replay.md`. Processes and messages have
//! references that are the same in every run: a process is known by its parent and the number of its spawn, a message
//! by its sender and the number of its sending.
//!
//! * [`Trace`] has the steps of all processes: read of a recording, of text or of JSON, written as either, and checked;
//! * [`Races`] finds what could have come in another order;
//! * [`Explorer`] decides which runs are made next, until there is no other order.
//!
//! This crate does no I/O but to read recordings. The machine makes and steers runs, and this crate judges them.
//!
//! The modules are in layers. Each imports only those before it:
//! `index` ◀ `accesses` `check` `kinds` `literal` `reference` `request` `signals` ◀ `step` ◀
//! `parse` `races` `read` `sites` `text` `value` ◀ `explore` `json` `stop`

mod accesses;
mod check;
mod explore;
mod index;
mod json;
mod kinds;
mod literal;
mod parse;
mod races;
mod read;
mod reference;
mod request;
mod signals;
mod sites;
mod step;
mod stop;
mod text;
mod value;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use rustc_hash::FxHashMap;

pub use accesses::{Accesses, Common};
pub use explore::{
    Answer, Ask, Call, Candidate, Draw, Drawing, End, Ended, EndedAt, Ends, ExitCall, Explorer,
    Job, LEFT_OUT, Lots, Next, PROGRAMS, Ran, Reply, Run, Scenario, SharedAccess, ThroughAlias,
    Touch, Traps, Waiting, Watch, Who, receive, send,
};
pub use index::{PerProcess, ProcessIndex, StepAt, StepIndex};
pub use kinds::Kind;
pub use races::{Accessed, Act, EarlierEnd, Messages, Pair, RACES_MAX, Race, Races};
pub use read::UNFOLLOWED;
pub use request::{Halt, Request};
pub use signals::SignalAt;
pub use sites::{At, Site, Sites};
pub use step::{Class, Step};
pub use stop::Stop;
pub use value::Value;

/// The steps of all processes of a run, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Parents come before their children.
    pub processes: PerProcess<Process>,
}

/// What a process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// How it came to be.
    pub origin: Origin,
    /// Its pid in the recorded run, as [`beamline_formats::ring::Id::Process`] holds it, where that is known.
    pub pid: Option<u64>,
    /// What reports call it: its name, or the function that it began with.
    pub known_as: Option<String>,
    /// Its steps.
    pub steps: Vec<Step>,
}

impl Process {
    /// The step at this place.
    #[must_use]
    pub fn step(&self, at: StepIndex) -> Option<&Step> {
        self.steps.get(at.index())
    }

    /// The steps before this place.
    ///
    /// # Panics
    /// If it has fewer steps.
    #[must_use]
    pub fn before(&self, place: StepIndex) -> &[Step] {
        &self.steps[..place.index()]
    }

    /// The place behind all its steps.
    #[must_use]
    pub fn end(&self) -> StepIndex {
        StepIndex::new(self.steps.len())
    }

    /// Its steps, each with its place.
    fn numbered(&self) -> impl Iterator<Item = (StepIndex, &Step)> {
        self.numbered_from(StepIndex::FIRST)
    }

    /// Its steps from this place on, each with its place.
    fn numbered_from(&self, place: StepIndex) -> impl Iterator<Item = (StepIndex, &Step)> {
        let steps = self.steps.get(place.index()..).unwrap_or(&[]);
        place.onward().zip(steps)
    }

    /// The place of the first step that is so.
    fn position(&self, is_so: impl FnMut(&Step) -> bool) -> Option<StepIndex> {
        self.steps.iter().position(is_so).map(StepIndex::new)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.steps.iter().any(Step::is_exit)
    }

    /// The exit signal that ended it, where it is known that one did.
    #[must_use]
    pub fn ended_by(&self) -> Option<Signal> {
        let mut steps = self.steps.iter();
        steps.find_map(|step| match step {
            Step::Exit(by) => *by,
            _ => None,
        })
    }
}

/// How a process came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The runtime made it: the number of its pid.
    Root(u64),
    /// A process of the trace made it.
    Child {
        /// The place of its parent among the processes.
        of: ProcessIndex,
        /// Which of the parent's spawns it was, from 1.
        number: u32,
    },
}

/// An exit signal that ends a process, or becomes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// The end of the process at this place sends it.
    End(ProcessIndex),
    /// A call of `exit/2` does, which is this access.
    Call(Access),
}

impl Signal {
    /// This signal, where processes have other places; `None` where its process has none.
    fn moved(self, place: impl Fn(ProcessIndex) -> Option<ProcessIndex>) -> Option<Signal> {
        Some(match self {
            Signal::End(of) => Signal::End(place(of)?),
            Signal::Call(call) => Signal::Call(Access {
                of: place(call.of)?,
                ..call
            }),
        })
    }
}

/// What a process has spent by its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spent {
    /// Reductions that it has made.
    pub reductions: u64,
    /// Words that it has allocated.
    pub words: u64,
    /// A signal ends it: it does not end by itself.
    pub by_signal: bool,
    /// The process that the signal is of, if that is known.
    pub of: Option<ProcessIndex>,
    /// That process was gone already when it was linked to.
    pub gone: bool,
}

/// An access to what processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// The place of the process that makes it.
    pub of: ProcessIndex,
    /// Which of its accesses, from 1.
    pub number: u64,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Message {
    /// A process sent it.
    Sent {
        /// The sender's place.
        from: ProcessIndex,
        /// Which of its sendings, from 1.
        number: u32,
    },
    /// No process did.
    SystemMessage(SystemMessage),
}

/// What a process hears of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Heard {
    /// The other process has linked itself.
    Link,
    /// It has unlinked itself.
    Unlink,
    /// It has heard that this process has.
    Unlinked,
}

impl Heard {
    const ALL: [(Heard, &str); 3] = [
        (Heard::Link, "link"),
        (Heard::Unlink, "unlink"),
        (Heard::Unlinked, "unlinked"),
    ];

    /// The one of this number in a record.
    pub(crate) fn of_number(number: u64) -> Option<Heard> {
        let at = usize::try_from(number).ok()?;
        Heard::ALL.get(at).map(|(heard, _)| *heard)
    }

    fn name(self) -> &'static str {
        Heard::ALL[self as usize].1
    }

    fn of_name(name: &str) -> Option<Heard> {
        let found = Heard::ALL.iter().find(|(_, its)| *its == name);
        found.map(|(heard, _)| *heard)
    }
}

/// A message that no process has sent: of a timer, a port, a monitor, a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SystemMessage {
    /// Which of those of its receiver, from 1.
    pub number: u32,
    /// The process whose end it tells.
    pub of: Option<ProcessIndex>,
    /// That process was gone already when it was asked for.
    pub gone: bool,
    /// It is an exit signal that has become a message, not one of a monitor, a timer or a port.
    pub exit: bool,
    /// The timer or the monitor whose message it is, where that is known.
    pub set: Option<Set>,
}

/// A message that no process has sent, by its receiver and its number among those of that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SystemMessageAt {
    to: ProcessIndex,
    number: u32,
}

/// What a process has set, in one word: a [`Setting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Set {
    by: ProcessIndex,
    number: NonZeroU32,
}

/// What a process has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// A timer: of the process at this place, and which of its timers, from 1.
    Timer {
        /// The place of the process.
        by: ProcessIndex,
        /// Which of its timers.
        number: u32,
    },
    /// A monitor of the receiver itself: its reference is the one of this number, from 1, of the references and unique
    /// integers that the receiver makes.
    Monitor(u32),
}

impl Set {
    /// In place of a process: a monitor.
    const MONITOR: ProcessIndex = ProcessIndex::MAX;

    /// Of the process at this place, its timer of this number, from 1; `None` where there can be none.
    #[must_use]
    pub fn timer(by: ProcessIndex, number: u32) -> Option<Set> {
        let number = NonZeroU32::new(number).filter(|_| by != Set::MONITOR)?;
        Some(Set { by, number })
    }

    /// The receiver's monitor of this number; `None` where there can be none.
    #[must_use]
    pub fn monitor(number: u32) -> Option<Set> {
        let (by, number) = (Set::MONITOR, NonZeroU32::new(number)?);
        Some(Set { by, number })
    }

    /// What it is.
    #[must_use]
    pub fn what(self) -> Setting {
        let number = self.number.get();
        match self.by {
            Set::MONITOR => Setting::Monitor(number),
            by => Setting::Timer { by, number },
        }
    }

    /// This setting, where processes have other places; `None` where its process has none.
    fn moved(self, place: impl Fn(ProcessIndex) -> Option<ProcessIndex>) -> Option<Set> {
        match self.what() {
            Setting::Timer { by, number } => Set::timer(place(by)?, number),
            Setting::Monitor(_) => Some(self),
        }
    }
}

// Traces have millions of messages.
const _: () = assert!(size_of::<Message>() <= 24);

impl Message {
    /// The message of this number to its receiver that no process has sent, whatever it tells.
    fn told(number: u32) -> Message {
        Message::SystemMessage(SystemMessage::of_nobody(number))
    }
}

impl SystemMessage {
    /// The message, where this process receives it.
    fn at(self, to: ProcessIndex) -> SystemMessageAt {
        let number = self.number;
        SystemMessageAt { to, number }
    }

    /// The message of this number, which tells of nobody.
    fn of_nobody(number: u32) -> SystemMessage {
        SystemMessage {
            number,
            of: None,
            gone: false,
            exit: false,
            set: None,
        }
    }
}

impl Trace {
    /// The log: the trace without deliveries.
    #[must_use]
    pub fn log(&self) -> Trace {
        let mut log = self.clone();
        for process in &mut log.processes {
            process
                .steps
                .retain(|step| !matches!(step, Step::Deliver(_)));
        }
        log
    }

    /// Does it tell when messages came? A log does not.
    #[must_use]
    pub fn has_deliveries(&self) -> bool {
        let mut steps = self.processes.iter().flat_map(|process| &process.steps);
        steps.any(|step| matches!(step, Step::Deliver(_)))
    }

    /// The trace with deliveries before the receives, as late as can be, in each process that has none. What one sender
    /// sent comes in its order, and so does what no process sent.
    #[must_use]
    pub fn with_deliveries(mut self) -> Trace {
        for process in &mut self.processes {
            let has_any = |step: &Step| matches!(step, Step::Deliver(_));
            if !process.steps.iter().any(has_any) {
                process.steps = delivered(std::mem::take(&mut process.steps));
            }
        }
        self
    }

    /// Only the processes that `name` names: a reference such as `p0.4`, or what reports call them.
    #[must_use]
    pub fn select(&self, name: &str) -> Vec<ProcessIndex> {
        let places = self.processes.indexes();
        places
            .filter(|&at| {
                let known_as = self.processes[at].known_as.as_deref();
                known_as == Some(name) || self.reference(at).to_string() == name
            })
            .collect()
    }
}

/// The steps, with deliveries before the receives.
fn delivered(steps: Vec<Step>) -> Vec<Step> {
    let received = steps.iter().filter_map(|step| match step {
        Step::Receive(message) => Some(message.in_its_line()),
        _ => None,
    });
    let mut to_come: FxHashMap<_, BTreeMap<_, _>> = FxHashMap::default();
    for (line, number, message) in received {
        to_come.entry(line).or_default().insert(number, message);
    }
    let mut all = Vec::with_capacity(steps.len() * 2);
    for step in steps {
        if let Step::Receive(message) = &step {
            let (line, number, _) = message.in_its_line();
            let messages = to_come.entry(line).or_default();
            while let Some(first) = messages
                .first_entry()
                .filter(|first| *first.key() <= number)
            {
                all.push(Step::Deliver(first.remove()));
            }
        }
        all.push(step);
    }
    all
}

impl Message {
    /// Sort key: sender (`None` for the system), sequence number, message.
    fn in_its_line(self) -> (Option<ProcessIndex>, u32, Message) {
        match self {
            Message::Sent { from, number } => (Some(from), number, self),
            Message::SystemMessage(SystemMessage { number, .. }) => (None, number, self),
        }
    }
}

impl Message {
    /// One that no process has sent, whatever it tells.
    fn without_what(self) -> Message {
        match self {
            Message::Sent { .. } => self,
            Message::SystemMessage(told) => Message::told(told.number),
        }
    }

    /// The message, with the places that processes have got; `None` where its sender has none.
    fn moved(self, place: impl Fn(ProcessIndex) -> Option<ProcessIndex>) -> Option<Message> {
        Some(match self {
            Message::Sent { from, number } => Message::Sent {
                from: place(from)?,
                number,
            },
            Message::SystemMessage(told) => Message::SystemMessage(SystemMessage {
                of: told.of.and_then(&place),
                set: told.set.and_then(|set| set.moved(&place)),
                ..told
            }),
        })
    }
}

/// The steps, with the places that processes have got; without those that need a process that has none.
fn moved(steps: Vec<Step>, place: impl Fn(ProcessIndex) -> Option<ProcessIndex>) -> Vec<Step> {
    let steps = steps.into_iter();
    steps.filter_map(|step| step.moved(&place)).collect()
}

#[cfg(test)]
mod tests;
