//! Takes the values of histograms from the records of a recording.

use std::collections::{BTreeMap, HashMap};

use beamline_formats::ring::{Error, Event, Group, Id, Losses, NameId, Names, Record, Recording};
use rustc_hash::FxHashMap;

use super::{By, Histograms, Of, Request, Values};
use crate::choice::Choice;
use crate::events::{Activation, Passing, SLICE_REDUCTIONS, Span, Spans, Step, follow};

/// The process or function that a value is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Function(NameId),
    Process(Id),
}

/// The values of each row; none where they are not asked for.
#[derive(Default)]
struct Rows {
    all: Vec<(Key, Option<Values>)>,
    known: FxHashMap<Key, usize>,
    /// The row that a value was added to last.
    last: usize,
}

impl Rows {
    fn add(&mut self, key: Key, value: u64, is_meant: impl FnOnce() -> bool) {
        if self.all.get(self.last).is_none_or(|(last, _)| *last != key) {
            let new = self.all.len();
            self.last = *self.known.entry(key).or_insert(new);
            if self.last == new {
                self.all.push((key, is_meant().then(Values::default)));
            }
        }
        if let (_, Some(values)) = &mut self.all[self.last] {
            values.add(value);
        }
    }
}

/// Measures what is asked for, of the spans of a recording.
pub(crate) struct Measure<'r> {
    names: &'r Names,
    request: Request,
    rows: Rows,
    waiting: Waiting,
}

impl<'r> Measure<'r> {
    /// Of this recording, which has what is asked for: no value yet.
    pub(crate) fn new(recording: &'r Recording, request: &Request) -> Measure<'r> {
        Measure {
            names: recording.names(),
            request: request.clone(),
            rows: Rows::default(),
            waiting: Waiting::default(),
        }
    }

    /// What is measured.
    pub(crate) fn of(&self) -> Of {
        self.request.of
    }

    fn value(&mut self, id: Id, function: NameId, value: u64) -> u64 {
        let key = match self.request.by {
            By::Function => Key::Function(function),
            By::Process => Key::Process(id),
        };
        let (only, names) = (self.request.only.as_ref(), self.names);
        self.rows.add(key, value, || {
            only.is_none_or(|only| match key {
                Key::Function(function) => only.has_name(names, function),
                Key::Process(id) => only.has_process(names, id),
            })
        });
        value
    }

    fn since(&mut self, record: &Record<'_>, start_ns: u64, function: NameId) -> u64 {
        let value = record.time_ns.saturating_sub(start_ns);
        self.value(record.subject, function, value)
    }

    /// Follows what a record means. The result is the value that it has given, if it has.
    pub(crate) fn add(&mut self, record: &Record<'_>, span: &Span) -> Option<u64> {
        let value = match (self.request.of, *span) {
            (_, Span::Call(Step::End(call))) => return self.call(record, &call),
            (
                Of::GcPause,
                Span::CollectionEnds {
                    collection: Some(collection),
                    ..
                },
            ) => self.since(record, collection.start_ns, collection.within),
            (
                Of::RunSlice,
                Span::SliceEnds {
                    slice: Some(slice), ..
                },
            ) if !slice.is_of_port() => self.since(record, slice.start_ns, slice.from),
            (Of::DirtyWait, Span::DirtyBegins(call)) => {
                self.since(record, call.queued_ns, call.function)
            }
            (Of::QueueWait, _) => {
                let (start_ns, function) = self.waiting.add(record)?;
                self.since(record, start_ns, function)
            }
            (Of::MessageLatency, Span::Message(Passing::Ends(sent))) => {
                self.since(record, sent.at_ns, NameId::NONE)
            }
            _ => return None,
        };
        Some(value)
    }

    fn call(&mut self, record: &Record<'_>, call: &Activation) -> Option<u64> {
        match self.request.of {
            Of::CallTime => Some(self.since(record, call.start_ns, call.function)),
            Of::OwnTime => Some(self.value(record.subject, call.function, call.own_ns)),
            Of::Words => Some(self.value(record.subject, call.function, call.own_words())),
            _ => None,
        }
    }

    fn open(&self, spans: &Spans) -> u64 {
        let open = match self.request.of {
            Of::CallTime | Of::OwnTime | Of::Words => spans.open_calls(),
            Of::GcPause => spans.open_collections(),
            Of::RunSlice => {
                let open = spans.open_slices();
                open.iter().filter(|slice| !slice.is_of_port()).count()
            }
            Of::DirtyWait => {
                let open = spans.open_dirty();
                open.iter().filter(|call| call.start_ns.is_none()).count()
            }
            Of::QueueWait => self.waiting.since.len(),
            Of::MessageLatency => return spans.open_messages(),
        };
        open as u64
    }

    /// What was measured; `spans` are those that were followed.
    ///
    /// # Errors
    /// One line: there is nothing that was asked for.
    pub(crate) fn finish(self, spans: &Spans, losses: Losses) -> Result<Histograms, String> {
        let open = self.open(spans);
        let (names, request) = (self.names, self.request);
        let mut seen = Vec::new();
        let mut rows: BTreeMap<String, Values> = BTreeMap::new();
        for (key, values) in self.rows.all {
            seen.push(key);
            if let Some(values) = values {
                rows.entry(text(names, key)).or_default().merge(&values);
            }
        }
        if let (Some(only), true) = (&request.only, rows.is_empty()) {
            return Err(nothing(names, only, request.by, &seen));
        }
        if rows.is_empty() {
            return Err(format!(
                "the recording has no data for {}",
                request.of.name()
            ));
        }
        Ok(Histograms {
            of: request.of,
            by: request.by,
            losses: vec![losses],
            rows,
            open,
        })
    }
}

/// Processes that wait in a run queue, each from when it is ready. A process is ready when its time slice ends with all
/// reductions used, or else when the first message comes. What else may wake it, such as a timeout, is not recorded.
#[derive(Default)]
struct Waiting {
    /// Since when, and in what function.
    since: HashMap<Id, (u64, NameId)>,
    /// The processes that wait for something, and in what function; and the reductions that each has had at the end of
    /// its last time slice.
    out: HashMap<Id, NameId>,
    reductions: HashMap<Id, u64>,
}

impl Waiting {
    /// Since when a process that runs now was ready, and in what function.
    fn add(&mut self, record: &Record<'_>) -> Option<(u64, NameId)> {
        let id = record.subject;
        match record.event {
            Event::Out {
                function,
                reductions,
                ..
            } => {
                let before = self.reductions.insert(id, reductions).unwrap_or(0);
                self.since.remove(&id);
                if reductions.saturating_sub(before) >= SLICE_REDUCTIONS {
                    self.since.insert(id, (record.time_ns, function));
                } else {
                    self.out.insert(id, function);
                }
            }
            // It waits for a dirty scheduler: a message does not make it ready, and the end of its call does.
            Event::DirtyQueued { .. } => {
                self.since.remove(&id);
                self.out.remove(&id);
            }
            Event::DirtyOut { function } => {
                self.since.insert(id, (record.time_ns, function));
            }
            Event::Receive { .. } => {
                if let Some(function) = self.out.remove(&id) {
                    self.since.insert(id, (record.time_ns, function));
                }
            }
            Event::In { .. } | Event::InExiting {} => {
                self.out.remove(&id);
                return self.since.remove(&id);
            }
            _ => {}
        }
        None
    }
}

/// What a recording must have that it has not: one line that says how to get it.
fn missing(recording: &Recording, request: &Request) -> Option<String> {
    let mut needs = request.of.needs().to_vec();
    if request.of == Of::GcPause && request.by == By::Function {
        needs.extend([Group::Calls, Group::Returns]);
    }
    let what = format!("{} by {}", request.of.name(), request.by.name());
    recording.lacks(&what, &needs)
}

impl Histograms {
    /// Measures a recording.
    ///
    /// # Errors
    /// One line: a damaged block, events that were not recorded, nothing that was asked for.
    pub fn read(recording: &Recording, request: &Request) -> Result<Histograms, String> {
        if (request.of, request.by) == (Of::MessageLatency, By::Function) {
            return Err("message-latency is measured by process only: use --by process".into());
        }
        if let Some(line) = missing(recording, request) {
            return Err(line);
        }
        let mut spans = Spans::new();
        let of_calls = matches!(request.of, Of::CallTime | Of::OwnTime | Of::Words);
        if of_calls || (request.of, request.by) == (Of::GcPause, By::Function) {
            spans = spans.with_calls(recording);
        }
        if request.of == Of::MessageLatency {
            spans = spans.with_messages(recording);
        }
        let mut measure = Measure::new(recording, request);
        let losses = follow(recording, &mut spans, |record, span| {
            measure.add(record, span);
            Ok::<(), Error>(())
        });
        measure.finish(&spans, losses.map_err(|e| e.to_string())?)
    }
}

fn nothing(names: &Names, only: &Choice, by: By, seen: &[Key]) -> String {
    let functions: Vec<_> = seen
        .iter()
        .filter_map(|key| match key {
            Key::Function(function) => names.function(*function),
            Key::Process(id) => names.function(names.process(*id)?.function),
        })
        .collect();
    let others = seen.iter().filter_map(|key| match key {
        Key::Process(id) => {
            let name = names.process(*id)?.name;
            (name != NameId::NONE).then(|| names.atom(name).to_owned())
        }
        Key::Function(_) => None,
    });
    let others: Vec<String> = others.collect();
    let functions = functions
        .iter()
        .map(|f| (f.module.as_str(), f.name.as_str(), u32::from(f.arity)));
    only.matches_nothing(by.name(), functions, others)
}

fn text(names: &Names, key: Key) -> String {
    match key {
        Key::Function(function) => names.function_text(function),
        Key::Process(id) => {
            let text = format!("{id} {}", names.process_text(id));
            text.trim_end().to_owned()
        }
    }
}
