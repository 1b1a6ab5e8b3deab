//! The chart of a finding: its run as an HTML page, with lanes of its messages and with its races.
//!
//! A page is made of a recording, so the run is written as one. A run of an exploration has no times: each step comes a
//! millisecond after the steps that have led to it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use beamline_formats::ring::{
    Anchor, Clock, Description, Error, Event, Group, Id, Label, Name, NameId, Recording, Ring,
    RingOptions, Segment, Settings, WhenFull, least_bytes,
};
use beamline_orders::{
    Answer, Message, Origin, PerProcess, ProcessIndex, Run, Step, SystemMessage, Trace,
};
use beamline_reports::html::{Notice, Page};

use super::search::is_left_out;

/// What a step takes.
const STEP_NS: u64 = 1_000_000;

/// Most messages and races of a page.
const MOST: usize = 10_000;

/// Room for a record, with its text.
const RECORD_BYTES: u64 = 256;

/// Writes the chart of a run.
///
/// # Errors
/// One line.
pub(super) fn write(
    path: &Path,
    command: &[String],
    answer: &Answer,
    finding: String,
) -> Result<(), String> {
    let shown = path.display();
    let failed = |error: String| format!("{shown}: {error}");
    let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    let ring = folder.path().join("run.ring");
    record(&ring, command, answer).map_err(failed)?;
    let recording = Recording::open(&ring).map_err(|error| failed(error.to_string()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let page = Page::read(&recording, &name, MOST).map_err(|error| failed(error.to_string()))?;
    let page = page.with_notice(Notice {
        text: finding,
        about: "A run of beamline explore. A step comes a millisecond after those that led to it."
            .to_owned(),
        tab: "messages",
    });
    let file = File::create(path).map_err(|error| failed(error.to_string()))?;
    let mut out = BufWriter::new(file);
    page.write(&mut out)
        .and_then(|()| out.flush())
        .map_err(|error| failed(error.to_string()))
}

/// Writes a run as a recording.
fn record(path: &Path, command: &[String], answer: &Answer) -> Result<(), String> {
    let run = answer.run()?;
    let chart = Chart::of(&run);
    let mut events = chart.events();
    let count = events.len() as u64;
    let options = options(command, least_bytes(1).max(8 * count * RECORD_BYTES));
    let ring = Ring::create(path, &options).map_err(|error| error.to_string())?;
    chart.name_processes(&ring);
    events.sort_by_key(|event| event.ns);
    let mut segment = ring.segment(0).ok_or("the recording has no segment")?;
    for event in &events {
        event
            .write(&mut segment)
            .map_err(|error| error.to_string())?;
    }
    drop(segment);
    ring.end();
    Ok(())
}

fn options(command: &[String], ring_bytes: u64) -> RingOptions {
    let events = [Group::Messages, Group::Processes, Group::Order];
    RingOptions {
        schedulers: 1,
        ring_bytes,
        when_full: WhenFull::Stop,
        token: 1,
        clock: Clock {
            counter: false,
            ns_per_4g: 1 << 32,
            anchor: Anchor::default,
            unix_ns: 0,
        },
        description: Description {
            command: command.to_vec(),
            settings: Settings {
                events: events.iter().map(|group| group.name().to_owned()).collect(),
                ..Settings::default()
            },
            ..Description::default()
        },
    }
}

/// What happens in a run, and when.
struct Timed<'r> {
    ns: u64,
    who: Id,
    event: Happens<'r>,
}

enum Happens<'r> {
    Sends(Id, String),
    Gets(String),
    Spawns(Id),
    Begins(Id),
    Exits(&'r str),
    /// A step of the order.
    Order(Event<'static>),
}

impl Timed<'_> {
    fn write(&self, segment: &mut Segment) -> Result<(), Error> {
        let function = NameId::NONE;
        let event = match &self.event {
            Happens::Sends(to, text) => Event::Send { to: *to, text },
            Happens::Gets(text) => Event::Receive { text },
            Happens::Spawns(child) => Event::Spawn {
                child: *child,
                function,
            },
            Happens::Begins(parent) => Event::Spawned {
                parent: *parent,
                function,
            },
            Happens::Exits(text) => Event::Exit { text },
            Happens::Order(event) => *event,
        };
        match segment.write(self.ns, self.who, &event) {
            true => Ok(()),
            false => Err(Error::Settings("the run has no room".into())),
        }
    }
}

/// When the steps of a run were made: how many others led to each.
struct Chart<'r> {
    run: &'r Run,
    trace: &'r Trace,
    /// Of each process, when its steps were made.
    times: PerProcess<Vec<u64>>,
    causes: Causes,
}

/// When that happened which leads to steps of other processes.
#[derive(Default)]
struct Causes {
    sent: HashMap<Message, u64>,
    begun: HashMap<ProcessIndex, u64>,
    ended: HashMap<ProcessIndex, u64>,
    /// Of each process, when it had made a number of accesses: that number, and the time.
    made: HashMap<ProcessIndex, Vec<(u64, u64)>>,
}

impl<'r> Chart<'r> {
    fn of(run: &'r Run) -> Chart<'r> {
        let trace = &run.trace;
        let mut chart = Chart {
            run,
            trace,
            times: trace.processes.map(|_| Vec::new()),
            causes: Causes::default(),
        };
        for (at, process) in trace.processes.entries() {
            if matches!(process.origin, Origin::Root(_)) {
                chart.causes.begun.insert(at, 0);
            }
        }
        let all = trace.processes.indexes();
        loop {
            let count_progress = all
                .clone()
                .fold(false, |moved, at| chart.follow(at) | moved);
            if count_progress {
                continue;
            }
            // What leads to a step may be no step, mostly where an access was not told: then it comes without.
            match all
                .clone()
                .filter(|at| chart.next(*at).is_some())
                .min_by_key(|at| chart.lacks(*at))
            {
                Some(at) => chart.make(at, 0),
                None => return chart,
            }
        }
    }

    fn next(&self, at: ProcessIndex) -> Option<&'r Step> {
        self.trace.processes[at].steps.get(self.times[at].len())
    }

    /// What the next step of a process waits for; the least of it is likeliest to have no step.
    fn lacks(&self, at: ProcessIndex) -> u8 {
        match self.next(at) {
            _ if !self.causes.begun.contains_key(&at) => 2,
            Some(Step::After { .. }) => 0,
            _ => 1,
        }
    }

    /// Makes the steps of a process until one is led to by a step that was not made; whether any was.
    fn follow(&mut self, at: ProcessIndex) -> bool {
        let before = self.times[at].len();
        while let Some(step) = self.next(at) {
            match self.cause(at, step) {
                Some(cause) => self.make(at, cause),
                None => break,
            }
        }
        self.times[at].len() > before
    }

    /// When that happened which leads to a step from elsewhere; `None` where it has not yet.
    fn cause(&self, at: ProcessIndex, step: &Step) -> Option<u64> {
        let causes = &self.causes;
        let has_ended = |of: &ProcessIndex| self.trace.processes[*of].has_ended();
        match step {
            _ if self.times[at].is_empty() && !causes.begun.contains_key(&at) => None,
            Step::Deliver(message @ Message::Sent { .. }) => causes.sent.get(message).copied(),
            Step::Deliver(Message::SystemMessage(SystemMessage { of: Some(of), .. }))
                if has_ended(of) =>
            {
                causes.ended.get(of).copied()
            }
            Step::After { other, .. } => {
                let made = causes.made.get(&other.of)?.iter();
                let made = made.filter(|(number, _)| *number >= other.number);
                made.map(|(_, time)| *time).min()
            }
            _ => Some(0),
        }
    }

    /// The next step of a process is made behind its cause.
    fn make(&mut self, at: ProcessIndex, cause: u64) {
        let Some(step) = self.next(at) else { return };
        let begun = self.causes.begun.get(&at).copied().unwrap_or(0);
        let now = self.times[at].last().copied().unwrap_or(begun);
        let time = now.max(cause) + 1;
        self.times[at].push(time);
        let causes = &mut self.causes;
        match step {
            Step::Send(number) => {
                let (from, number) = (at, *number);
                causes.sent.insert(Message::Sent { from, number }, time);
            }
            Step::Spawn(child) => drop(causes.begun.insert(*child, time)),
            Step::Exit(_) => drop(causes.ended.insert(at, time)),
            Step::Accesses(number) => causes.made.entry(at).or_default().push((*number, time)),
            _ => {}
        }
    }

    fn id(&self, at: ProcessIndex) -> Id {
        self.run.ids.get(at).map_or(Id::None, |id| Id::Process(*id))
    }

    /// Whether it is the emulator's own, whose messages to others of these are left out.
    fn is_left_out(&self, at: ProcessIndex) -> bool {
        let process = &self.trace.processes[at];
        matches!(process.origin, Origin::Root(_))
            && process.known_as.as_deref().is_some_and(is_left_out)
    }

    fn events(&self) -> Vec<Timed<'r>> {
        let mut events = Vec::new();
        for (at, process) in self.trace.processes.entries() {
            let mut order = Order::default();
            for (step, time) in process.steps.iter().zip(&self.times[at]) {
                let ns = time * STEP_NS;
                events.extend(order.event(self, step).map(|event| Timed {
                    ns,
                    who: self.id(at),
                    event: Happens::Order(event),
                }));
                self.add(at, step, ns, &mut events);
            }
        }
        events
    }

    fn add(&self, at: ProcessIndex, step: &Step, ns: u64, events: &mut Vec<Timed<'r>>) {
        let who = self.id(at);
        let mut add = |ns, who, event| events.push(Timed { ns, who, event });
        match step {
            Step::Send(number) => {
                let message = Message::Sent {
                    from: at,
                    number: *number,
                };
                let to = self.run.receivers[at]
                    .get(*number as usize - 1)
                    .copied()
                    .flatten();
                if let Some(to) = to.filter(|to| !(self.is_left_out(at) && self.is_left_out(*to))) {
                    let text = self.trace.message(to, &message);
                    add(ns, who, Happens::Sends(self.id(to), text));
                }
            }
            Step::Deliver(message @ Message::Sent { from, .. })
                if !(self.is_left_out(at) && self.is_left_out(*from)) =>
            {
                add(ns, who, Happens::Gets(self.trace.message(at, message)));
            }
            Step::Deliver(message @ Message::SystemMessage(told)) => {
                let label = self.trace.message(at, message);
                let (from, text) = match told.of {
                    Some(of) if told.gone => (
                        self.id(of),
                        format!("{label}, {} was gone", self.trace.name(of)),
                    ),
                    Some(of) if told.exit => (
                        self.id(of),
                        format!("{label}, an exit signal of {}", self.trace.name(of)),
                    ),
                    Some(of) => (
                        self.id(of),
                        format!("{label}, the end of {}", self.trace.name(of)),
                    ),
                    None => (Id::None, label),
                };
                let ended = told.of.and_then(|of| self.causes.ended.get(&of));
                if let Some(ended) = ended {
                    add(ended * STEP_NS, from, Happens::Sends(who, text.clone()));
                }
                add(ns, who, Happens::Gets(text));
            }
            Step::Spawn(child) => {
                add(ns, who, Happens::Spawns(self.id(*child)));
                add(ns, self.id(*child), Happens::Begins(who));
            }
            Step::Exit(_) => {
                let why = self.run.exits.iter().find(|(one, _)| *one == at);
                add(
                    ns,
                    who,
                    Happens::Exits(why.map_or("normal", |(_, why)| why)),
                );
            }
            _ => {}
        }
    }

    /// Processes are called as in the text of the finding.
    fn name_processes(&self, ring: &Ring) {
        for (at, process) in self.trace.processes.entries() {
            let id = self.id(at);
            let parent = match process.origin {
                Origin::Child { of, .. } => self.id(of),
                Origin::Root(_) => Id::None,
            };
            let function = NameId::NONE;
            ring.name(Name::Process {
                id,
                parent,
                function,
            });
            let known_as = process.known_as.as_deref().unwrap_or("");
            let text = format!("{} {known_as}", self.trace.name(at));
            let label = ring.name(Name::Label(text.trim_end()));
            ring.name(Name::Labelled { id, label });
        }
    }
}

/// Writes the steps of a process as a recording has them.
#[derive(Default)]
struct Order {
    /// Messages that have not been taken.
    queue: Vec<Message>,
    /// Accesses that the events have so far.
    accesses: u64,
}

impl Order {
    /// The event of a step; `None` where a run of an exploration needs none.
    fn event(&mut self, chart: &Chart<'_>, step: &Step) -> Option<Event<'static>> {
        Some(match step {
            Step::Spawn(child) => Event::OrderSpawn {
                child: chart.id(*child),
            },
            Step::Send(_) => Event::OrderSent { count: 1 },
            Step::Deliver(message) => {
                self.queue.push(*message);
                match *message {
                    Message::Sent { from, number } => Event::OrderDelivery {
                        label: Label {
                            // Its low bits.
                            from: chart.run.ids[from] as u32,
                            number,
                        },
                    },
                    Message::SystemMessage(told) => {
                        let of = told.of.map_or(Id::None, |of| chart.id(of));
                        Event::order_told(of, told.gone, told.exit, None)
                    }
                }
            }
            Step::Receive(message) => {
                let at = self.queue.iter().position(|other| other == message)?;
                self.queue.remove(at);
                Event::OrderReceive { at: at as u64 }
            }
            Step::Timeout => Event::OrderTimeout {},
            Step::After { access, other } => Event::OrderAfter {
                of: chart.id(other.of),
                number: other.number,
                since: self.since(*access),
            },
            Step::Accesses(number) => Event::OrderAccesses {
                count: self.since(*number),
            },
            Step::Exit(_) => Event::OrderExit {},
            _ => return None,
        })
    }

    /// How many accesses were made since the last one that an event has, up to this one.
    fn since(&mut self, access: u64) -> u64 {
        access - std::mem::replace(&mut self.accesses, access).min(access)
    }
}
