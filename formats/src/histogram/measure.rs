//! Measures the records of a recording.

use std::collections::{BTreeMap, HashMap};

use super::{By, Histograms, Of, Request, Values};
use crate::choice::Choice;
use crate::ring::{
    Error, Event, Group, Id, NameId, Names, OnTheWay, Passing, Record, Recording, Stacks, Step,
};

/// Reductions of a turn; source: `CONTEXT_REDS` of OTP's `erl_vm.h`.
const TURN_REDUCTIONS: u64 = 4000;

/// Who a value is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Function(NameId),
    Process(Id),
}

struct Measure<'r> {
    names: &'r Names,
    request: &'r Request,
    rows: HashMap<Key, Option<Values>>,
    /// Since when, and in what function.
    since: HashMap<Id, (u64, NameId)>,
    /// Who waits for something, in what function; and the reductions that each has had at the end of its last turn.
    out: HashMap<Id, NameId>,
    reductions: HashMap<Id, u64>,
    stacks: Option<Stacks>,
    on_the_way: OnTheWay,
    last_ns: u64,
}

/// The row of a value; none where it is not asked for.
fn row<'a>(
    rows: &'a mut HashMap<Key, Option<Values>>,
    names: &Names,
    only: Option<&Choice>,
    key: Key,
) -> Option<&'a mut Values> {
    let row = rows.entry(key).or_insert_with(|| {
        let is_meant = only.is_none_or(|only| match key {
            Key::Function(function) => only.has_name(names, function),
            Key::Process(id) => only.has_process(names, id),
        });
        is_meant.then(Values::default)
    });
    row.as_mut()
}

impl Measure<'_> {
    fn value(&mut self, id: Id, function: NameId, value: u64) {
        let key = match self.request.by {
            By::Function => Key::Function(function),
            By::Process => Key::Process(id),
        };
        let only = self.request.only.as_ref();
        if let Some(values) = row(&mut self.rows, self.names, only, key) {
            values.add(value);
        }
    }

    fn begin(&mut self, record: &Record<'_>, function: NameId) {
        self.since
            .insert(record.subject, (record.time_ns, function));
    }

    fn end(&mut self, record: &Record<'_>) {
        if let Some((since, function)) = self.since.remove(&record.subject) {
            let value = record.time_ns.saturating_sub(since);
            self.value(record.subject, function, value);
        }
    }

    fn add(&mut self, record: &Record<'_>) {
        self.last_ns = record.time_ns;
        if let Some(mut stacks) = self.stacks.take() {
            self.calls(&mut stacks, record);
            self.stacks = Some(stacks);
        }
        let id = record.subject;
        match (self.request.of, record.event) {
            (Of::GcPause, Event::GcMinorStart { .. } | Event::GcMajorStart { .. }) => {
                let top = self.stacks.as_ref().and_then(|stacks| stacks.top(id));
                self.begin(record, top.unwrap_or_default());
            }
            (Of::GcPause, Event::GcMinorEnd { .. } | Event::GcMajorEnd { .. }) => self.end(record),
            (Of::RunSlice, Event::In { function }) => self.begin(record, function),
            (Of::RunSlice, Event::InExiting {}) => self.begin(record, NameId::NONE),
            (Of::RunSlice, Event::Out { .. } | Event::OutExiting {} | Event::OutExited {}) => {
                self.end(record);
            }
            (Of::QueueWait, _) => self.waiting(record),
            (Of::MessageLatency, _) => {
                if let Some(Passing::Ends(sent)) = self.on_the_way.add(record) {
                    self.value(id, NameId::NONE, record.time_ns.saturating_sub(sent.at_ns));
                }
            }
            _ => {}
        }
    }

    /// A process waits in a run queue from when it is ready: it is that when its turn ends with all reductions used, or
    /// else when the first message comes. What else may wake it, such as a time that is over, is not recorded.
    fn waiting(&mut self, record: &Record<'_>) {
        let id = record.subject;
        match record.event {
            Event::Out {
                function,
                reductions,
                ..
            } => {
                let before = self.reductions.insert(id, reductions).unwrap_or(0);
                self.since.remove(&id);
                if reductions.saturating_sub(before) >= TURN_REDUCTIONS {
                    self.begin(record, function);
                } else {
                    self.out.insert(id, function);
                }
            }
            Event::Receive { .. } => {
                if let Some(function) = self.out.remove(&id) {
                    self.begin(record, function);
                }
            }
            Event::In { .. } | Event::InExiting {} => {
                self.out.remove(&id);
                self.end(record);
            }
            _ => {}
        }
    }

    fn calls(&mut self, stacks: &mut Stacks, record: &Record<'_>) {
        let of = self.request.of;
        stacks.add(record, |step| {
            if let Step::End(call) = step {
                match of {
                    Of::CallTime => {
                        let value = record.time_ns.saturating_sub(call.start_ns);
                        self.value(record.subject, call.function, value);
                    }
                    Of::OwnTime => self.value(record.subject, call.function, call.own_ns),
                    Of::Words => self.value(record.subject, call.function, call.own_words()),
                    _ => {}
                }
            }
        });
    }

    fn open(&mut self) -> u64 {
        let calls = match (self.request.of, &mut self.stacks) {
            (Of::CallTime | Of::OwnTime | Of::Words, Some(stacks)) => {
                stacks.open(self.last_ns).count()
            }
            _ => 0,
        };
        (calls + self.since.len()) as u64 + self.on_the_way.left()
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
            return Err("message-latency is known by process only: use --by process".into());
        }
        if let Some(line) = missing(recording, request) {
            return Err(line);
        }
        let of_calls = matches!(request.of, Of::CallTime | Of::OwnTime | Of::Words);
        let by_calls = request.of == Of::GcPause && request.by == By::Function;
        let mut measure = Measure {
            names: recording.names(),
            request,
            rows: HashMap::new(),
            since: HashMap::new(),
            out: HashMap::new(),
            reductions: HashMap::new(),
            stacks: (of_calls || by_calls).then(|| Stacks::new(recording)),
            on_the_way: OnTheWay::new(recording.names()),
            last_ns: 0,
        };
        let losses = recording.scan(|record| {
            measure.add(record);
            Ok::<(), Error>(())
        });
        let losses = losses.map_err(|e| e.to_string())?;
        let open = measure.open();
        let names = recording.names();
        let mut seen = Vec::new();
        let mut rows: BTreeMap<String, Values> = BTreeMap::new();
        for (key, values) in measure.rows {
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
                "there is nothing in it to make {} of",
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
