//! Every occurrence of a part of a run: from a call of one function to the end of a call, in one process.
//!
//! Without a function that ends it, an occurrence is the outermost call of the first function. With one, it ends when the
//! next call of that function in the same process does. Which call of another process would belong to it, a recording
//! does not say when several occurrences are open at once, so no occurrence goes from process to process.

use std::str::FromStr;

use beamline_formats::ring::{Error, Event, Group, Id, Losses, NameId, Record, Recording};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::choice::Choice;
use crate::events::calls::{Costs, Does, does_after};
use crate::events::{Stacks, Step, scan};
use crate::histogram::{Row, Values};

#[cfg(test)]
mod tests;
mod text;

pub(crate) use text::{WIDTH, columns};

/// How many of the slowest occurrences are kept.
const SLOWEST: usize = 10;

/// The functions between whose calls an occurrence lies.
#[derive(Clone, Debug)]
pub struct Request {
    /// A call of such a function begins an occurrence.
    pub from: Choice,
    /// The end of a call of such a function ends it; none: the end of the call that began it.
    pub until: Option<Choice>,
    /// The occurrence whose functions are wanted; none: those of all.
    pub nth: Option<Nth>,
}

/// One occurrence among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nth {
    /// By when it began, from 1.
    Number(u64),
    /// The one that took the longest.
    Slowest,
}

impl FromStr for Nth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("slowest", _) => Ok(Nth::Slowest),
            (_, Ok(number)) if number > 0 => Ok(Nth::Number(number)),
            _ => Err(format!(
                "'{text}' is not an occurrence; use 1 or more, or slowest"
            )),
        }
    }
}

/// One occurrence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Occurrence {
    /// Its number among all, by when they began, from 1.
    pub nth: u64,
    /// The pid.
    pub process: String,
    /// What the process is called in reports.
    pub name: String,
    /// When it began, since the recording was begun.
    pub start_ns: u64,
    /// How long it took.
    pub time_ns: u64,
    /// The part of that in which the process ran.
    pub run_ns: u64,
    /// The part in which it did not.
    pub wait_ns: u64,
}

/// What a function cost within occurrences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Within {
    /// The function; empty where no recorded call was open.
    pub function: String,
    /// Its calls that began within them.
    pub calls: u64,
    /// Time in the function itself while the process ran.
    pub run_ns: u64,
    /// Time in which the process waited in it.
    pub wait_ns: u64,
}

impl Within {
    fn time_ns(&self) -> u64 {
        self.run_ns.saturating_add(self.wait_ns)
    }
}

/// All occurrences in a recording.
#[derive(Clone, Debug, Serialize)]
pub struct Occurrences {
    from: String,
    until: Option<String>,
    losses: Losses,
    /// How long they took, in nanoseconds.
    times: Row,
    /// How many had begun and did not end.
    unfinished: u64,
    /// The longest first.
    slowest: Vec<Occurrence>,
    /// The one that was asked for.
    chosen: Option<Occurrence>,
    /// By function, the dearest first: of the chosen one, or of all. Their times add up to how long the occurrences took.
    functions: Vec<Within>,
    /// The recording says when processes ran.
    #[serde(skip)]
    has_slices: bool,
}

/// An occurrence that has not ended.
struct Open {
    number: u64,
    start_ns: u64,
    costs: Costs,
    /// What was done in it, by function.
    within: FxHashMap<NameId, Costs>,
    /// Open calls, begun within it, of the function that ends it.
    ends: usize,
}

/// A process, as far as an occurrence is concerned.
#[derive(Default)]
struct Whose {
    open: Option<Box<Open>>,
    does: Option<Does>,
    since_ns: u64,
}

impl Whose {
    fn charge(&mut self, now: u64, top: NameId) {
        let passed = now.saturating_sub(self.since_ns);
        self.since_ns = now;
        if let Some(open) = &mut self.open {
            let does = self.does.unwrap_or(Does::Runs);
            open.costs.spend(does, passed);
            open.within.entry(top).or_default().spend(does, passed);
        }
    }
}

/// An occurrence that has ended, with its process.
struct Ended {
    id: Id,
    open: Box<Open>,
    end_ns: u64,
}

impl Ended {
    fn time_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.open.start_ns)
    }
}

/// Finds occurrences.
struct Finder<'r> {
    recording: &'r Recording,
    request: &'r Request,
    nth: Option<u64>,
    stacks: Stacks,
    all: FxHashMap<Id, Whose>,
    /// Of each function that was called, whether it begins and whether it ends an occurrence.
    functions: FxHashMap<NameId, (bool, bool)>,
    steps: Vec<Step>,
    begun: u64,
    times: Values,
    unfinished: u64,
    slowest: Vec<Occurrence>,
    chosen: Option<Occurrence>,
    within: FxHashMap<NameId, Costs>,
}

impl<'r> Finder<'r> {
    fn new(recording: &'r Recording, request: &'r Request, nth: Option<u64>) -> Finder<'r> {
        Finder {
            recording,
            request,
            nth,
            stacks: Stacks::new(recording),
            all: FxHashMap::default(),
            functions: FxHashMap::default(),
            steps: Vec::new(),
            begun: 0,
            times: Values::default(),
            unfinished: 0,
            slowest: Vec::new(),
            chosen: None,
            within: FxHashMap::default(),
        }
    }

    fn add(&mut self, record: &Record<'_>) {
        let (id, now) = (record.subject, record.time_ns);
        let top = self.stacks.top(id).unwrap_or(NameId::NONE);
        let does = does_after(&record.event);
        if let Some(whose) = self.all.get_mut(&id) {
            whose.charge(now, top);
            whose.does = does.or(whose.does);
        }
        let mut steps = std::mem::take(&mut self.steps);
        self.stacks.add(record, |step| steps.push(step));
        for step in steps.drain(..) {
            match step {
                Step::Begin(call) => self.begin(id, now, call.function),
                Step::End(call) => self.end(id, now, call.function),
            }
        }
        self.steps = steps;
        if matches!(record.event, Event::Exit { .. }) {
            let open = self.all.remove(&id).and_then(|whose| whose.open);
            self.unfinished += u64::from(open.is_some());
        }
    }

    fn bounds(&mut self, function: NameId) -> (bool, bool) {
        let (request, names) = (self.request, self.recording.names());
        *self.functions.entry(function).or_insert_with(|| {
            let begins = request.from.has_name(names, function);
            let until = request.until.as_ref();
            let ends = until.map_or(begins, |until| until.has_name(names, function));
            (begins, ends)
        })
    }

    fn begin(&mut self, id: Id, now: u64, function: NameId) {
        let (begins, ends) = self.bounds(function);
        if begins {
            let whose = self.all.entry(id).or_default();
            if whose.open.is_none() {
                self.begun += 1;
                // Whoever calls runs.
                (whose.since_ns, whose.does) = (now, Some(Does::Runs));
                whose.open = Some(Box::new(Open {
                    number: self.begun,
                    start_ns: now,
                    costs: Costs::default(),
                    within: FxHashMap::default(),
                    ends: 0,
                }));
            }
        }
        let whose = self.all.get_mut(&id);
        if let Some(open) = whose.and_then(|whose| whose.open.as_mut()) {
            open.within.entry(function).or_default().calls += 1;
            open.ends += usize::from(ends);
        }
    }

    fn end(&mut self, id: Id, now: u64, function: NameId) {
        let Some(whose) = self.all.get_mut(&id) else {
            return;
        };
        let is_end = self.functions.get(&function).is_some_and(|(_, ends)| *ends);
        // A call that was open before the occurrence began does not end it.
        let Some(open) = whose.open.as_mut().filter(|open| is_end && open.ends > 0) else {
            return;
        };
        open.ends -= 1;
        if open.ends == 0
            && let Some(open) = whose.open.take()
        {
            self.ended(&Ended {
                id,
                open,
                end_ns: now,
            });
        }
    }

    fn ended(&mut self, of: &Ended) {
        self.times.add(of.time_ns());
        if self.nth.is_none_or(|nth| nth == of.open.number) {
            for (function, costs) in &of.open.within {
                let sum = self.within.entry(*function).or_default();
                sum.calls += costs.calls;
                sum.spend(Does::Runs, costs.time_ns);
                sum.spend(Does::Waits, costs.wait_ns);
            }
        }
        if self.nth == Some(of.open.number) {
            self.chosen = Some(self.occurrence(of));
        }
        let is_slow = |least: &Occurrence| of.time_ns() > least.time_ns;
        if self.slowest.len() == SLOWEST && !self.slowest.last().is_some_and(is_slow) {
            return;
        }
        let slow = self.occurrence(of);
        let before = |other: &Occurrence| other.time_ns >= slow.time_ns;
        let at = self.slowest.partition_point(before);
        self.slowest.insert(at, slow);
        self.slowest.truncate(SLOWEST);
    }

    fn occurrence(&self, of: &Ended) -> Occurrence {
        Occurrence {
            nth: of.open.number,
            process: of.id.to_string(),
            name: self.recording.names().process_text(of.id),
            start_ns: of.open.start_ns,
            time_ns: of.time_ns(),
            run_ns: of.open.costs.time_ns,
            wait_ns: of.open.costs.wait_ns,
        }
    }

    fn functions(&self) -> Vec<Within> {
        let names = self.recording.names();
        let rows = self.within.iter().map(|(function, costs)| Within {
            function: match *function {
                NameId::NONE => String::new(),
                function => names.function_text(function),
            },
            calls: costs.calls,
            run_ns: costs.time_ns,
            wait_ns: costs.wait_ns,
        });
        let mut rows: Vec<Within> = rows.collect();
        rows.sort_by(|a, b| {
            let by_time = b.time_ns().cmp(&a.time_ns());
            by_time.then_with(|| a.function.cmp(&b.function))
        });
        rows
    }

    /// One line: no occurrence has ended, and why.
    fn nothing(&self) -> String {
        let names = self.recording.names();
        let called = || self.functions.keys().copied();
        let nothing = |choice: &Choice| choice.matches_no_call(names, called());
        let is_called = |is: fn(&(bool, bool)) -> bool| self.functions.values().any(is);
        match &self.request.until {
            _ if !is_called(|(begins, _)| *begins) => nothing(&self.request.from),
            Some(until) if !is_called(|(_, ends)| *ends) => nothing(until),
            Some(until) => format!(
                "no call of {until} ended in a process after a call of {}: an occurrence begins and ends in one process",
                self.request.from
            ),
            None => format!("no call of {} has ended", self.request.from),
        }
    }
}

impl Occurrences {
    /// Finds all of them in a recording.
    ///
    /// # Errors
    /// One line: a damaged block, events that were not recorded, nothing that was asked for.
    pub fn read(recording: &Recording, request: &Request) -> Result<Occurrences, String> {
        let needs = [Group::Calls, Group::Returns];
        if let Some(line) = recording.lacks("spans", &needs) {
            return Err(line);
        }
        match request.nth {
            None => Occurrences::find(recording, request, None),
            Some(Nth::Number(number)) => Occurrences::find(recording, request, Some(number)),
            // Which one it is, only the end of the recording says.
            Some(Nth::Slowest) => {
                let all = Occurrences::find(recording, request, None)?;
                let slowest = all.slowest.first().map(|slowest| slowest.nth);
                Occurrences::find(recording, request, slowest)
            }
        }
    }

    fn find(
        recording: &Recording,
        request: &Request,
        nth: Option<u64>,
    ) -> Result<Occurrences, String> {
        let mut finder = Finder::new(recording, request, nth);
        let losses = scan(recording, |record| {
            finder.add(record);
            Ok::<(), Error>(())
        });
        let losses = losses.map_err(|e| e.to_string())?;
        if finder.begun == finder.unfinished || finder.times.is_empty() {
            return Err(finder.nothing());
        }
        if let (Some(nth), None) = (nth, &finder.chosen) {
            return Err(match nth > finder.begun {
                true => format!("there is no occurrence {nth}: there are {}", finder.begun),
                false => format!("occurrence {nth} had not ended when the recording did"),
            });
        }
        let open = finder.all.values().filter(|whose| whose.open.is_some());
        Ok(Occurrences {
            from: request.from.to_string(),
            until: request.until.as_ref().map(Choice::to_string),
            losses,
            times: Row::of("all", &finder.times),
            unfinished: finder.unfinished + open.count() as u64,
            functions: finder.functions(),
            slowest: finder.slowest,
            chosen: finder.chosen,
            has_slices: recording.has(Group::Scheduling),
        })
    }
}
