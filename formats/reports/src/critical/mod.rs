//! The critical path between two calls: what made the time from the one to the end of the other as long as it was, from process to
//! process and from node to node.
//!
//! The path is found from its end. Its process ran then, since it had got a message that it waited for; before, the message was on its way;
//! before, the sender ran; and so on, back to the first call. What others did meanwhile made nothing later and is not on the path. Source:
//! C.-Q. Yang, B. P. Miller: Critical Path Analysis for the Execution of Parallel and Distributed Programs, ICDCS 1988.
//!
//! Memory: 56 bytes for each time slice until the end of the path.

mod costs;
mod text;
mod walk;

use beamline_formats::ring::{Error, Event, Id, Losses, NameId, Record, Recording};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::choice::Choice;
use crate::events::rests::Rests;
use crate::events::{MEANWHILE_NEEDS, Stacks, Step, scan};
use walk::{Piece, walk};

/// The calls between which the path lies.
#[derive(Clone, Debug)]
pub struct Request {
    /// The first call of such a function begins it.
    pub from: Choice,
    /// The end of the next call of such a function ends it, in whichever process that is.
    pub to: Choice,
}

/// What a process does in a part of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// A scheduler runs it.
    Runs,
    /// A message that it waits for is on its way.
    Message,
    /// It could run, and waits for a scheduler.
    IsReady,
    /// It waits for something else than a message of a process: for a timer, a port, a socket.
    Waits,
    /// Nothing of it is recorded yet: its emulator starts, or the recording began later than the process.
    Unseen,
}

/// A part of the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// When it began, since the recording was begun.
    pub start_ns: u64,
    /// How long it took.
    pub time_ns: u64,
    /// The pid.
    pub process: String,
    /// What the process is called in reports.
    pub name: String,
    /// What it did.
    pub doing: Doing,
    /// The sender of the message that is on its way.
    pub sender: Option<String>,
    /// The function in which it was for most of the time; empty where no recorded call was open.
    pub function: String,
}

/// The time of a process or of a function on the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The process, with its name; or the function, empty where no recorded call was open.
    pub of: String,
    /// Time in which it ran.
    pub run_ns: u64,
    /// Time in which it did not.
    pub wait_ns: u64,
}

impl Share {
    fn time_ns(&self) -> u64 {
        self.run_ns.saturating_add(self.wait_ns)
    }
}

/// A critical path.
#[derive(Clone, Debug, Serialize)]
pub struct CriticalPath {
    from: String,
    to: String,
    losses: Losses,
    /// When the first call began, since the recording was begun.
    start_ns: u64,
    /// From there to the end of the last call: the times of the parts, and those of each table, add up to it.
    time_ns: u64,
    /// The process that made the first call, if the path does not lead back to it.
    not_from: Option<String>,
    /// The dearest first.
    processes: Vec<Share>,
    /// The dearest first.
    functions: Vec<Share>,
    /// By time, without a gap.
    parts: Vec<Part>,
}

/// A moment in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    at_ns: u64,
    who: Id,
}

/// How far the last call has come.
enum Last {
    /// So many calls of its function are open in this process.
    Open {
        who: Id,
        calls: usize,
    },
    Ended(Moment),
}

/// Reads what the path is found from.
struct Reader<'r> {
    recording: &'r Recording,
    request: &'r Request,
    stacks: Stacks,
    rests: Rests,
    /// When and by whom each process was started.
    births: FxHashMap<Id, Moment>,
    /// When each process ran first.
    first_runs: FxHashMap<Id, u64>,
    /// Of each function that was called, whether it is that of the first and that of the last call.
    functions: FxHashMap<NameId, (bool, bool)>,
    steps: Vec<Step>,
    first: Option<Moment>,
    last: Option<Last>,
}

impl<'r> Reader<'r> {
    fn new(recording: &'r Recording, request: &'r Request) -> Reader<'r> {
        Reader {
            recording,
            request,
            stacks: Stacks::new(recording),
            rests: Rests::new(recording.names()),
            births: FxHashMap::default(),
            first_runs: FxHashMap::default(),
            functions: FxHashMap::default(),
            steps: Vec::new(),
            first: None,
            last: None,
        }
    }

    fn add(&mut self, record: &Record<'_>) {
        if matches!(self.last, Some(Last::Ended(_))) {
            return;
        }
        let now = Moment {
            at_ns: record.time_ns,
            who: record.subject,
        };
        self.rests.add(record);
        match record.event {
            Event::Spawn { child, .. } => _ = self.births.entry(child).or_insert(now),
            Event::Spawned { parent, .. } => {
                let by = Moment { who: parent, ..now };
                self.births.entry(now.who).or_insert(by);
            }
            Event::In { .. } => _ = self.first_runs.entry(now.who).or_insert(now.at_ns),
            _ => {}
        }
        let mut steps = std::mem::take(&mut self.steps);
        self.stacks.add(record, |step| steps.push(step));
        for step in steps.drain(..) {
            match step {
                Step::Begin(call) => self.begin(now, call.function),
                Step::End(call) => self.end(now, call.function),
            }
        }
        self.steps = steps;
    }

    /// Whether calls of a function begin the path, and whether they end it.
    fn ends_of(&mut self, function: NameId) -> (bool, bool) {
        let (request, names) = (self.request, self.recording.names());
        *self.functions.entry(function).or_insert_with(|| {
            let [from, to] = [&request.from, &request.to];
            (from.has_name(names, function), to.has_name(names, function))
        })
    }

    fn begin(&mut self, now: Moment, function: NameId) {
        let (is_first, is_last) = self.ends_of(function);
        if is_first {
            self.first.get_or_insert(now);
        }
        if !is_last || self.first.is_none() {
            return;
        }
        match &mut self.last {
            None => {
                self.last = Some(Last::Open {
                    who: now.who,
                    calls: 1,
                });
            }
            Some(Last::Open { who, calls }) if *who == now.who => *calls += 1,
            Some(_) => {}
        }
    }

    fn end(&mut self, now: Moment, function: NameId) {
        let (_, is_last) = self.ends_of(function);
        if let Some(Last::Open { who, calls }) = &mut self.last
            && *who == now.who
            && is_last
        {
            *calls -= 1;
            if *calls == 0 {
                self.last = Some(Last::Ended(now));
            }
        }
    }

    /// One line: there is no path, and why.
    fn nothing(&self) -> String {
        let names = self.recording.names();
        let called = || self.functions.keys().copied();
        let nothing = |choice: &Choice| choice.matches_no_call(names, called());
        let Request { from, to } = self.request;
        match &self.last {
            _ if self.first.is_none() => nothing(from),
            None if !self.functions.values().any(|(_, is_last)| *is_last) => nothing(to),
            None => format!("{to} was not called after {from}"),
            Some(_) => format!("the call of {to} after {from} has not ended"),
        }
    }
}

impl CriticalPath {
    /// Finds it in a recording.
    ///
    /// # Errors
    /// One line: a damaged block, events that were not recorded, a function that was not called.
    pub fn read(recording: &Recording, request: &Request) -> Result<CriticalPath, String> {
        if let Some(line) = recording.lacks("a critical path", &MEANWHILE_NEEDS) {
            return Err(line);
        }
        let mut reader = Reader::new(recording, request);
        let losses = scan(recording, |record| {
            reader.add(record);
            Ok::<(), Error>(())
        });
        let losses = losses.map_err(|e| e.to_string())?;
        let (Some(first), Some(Last::Ended(last))) = (reader.first, &reader.last) else {
            return Err(reader.nothing());
        };
        let pieces = walk(&reader, first.at_ns, *last);
        let costs = costs::read(recording, &pieces).map_err(|e| e.to_string())?;
        let who = |id: Id| {
            let name = recording.names().process_text(id);
            format!("{id} {name}").trim_end().to_owned()
        };
        let begins_in = pieces.first().map(|piece| piece.who);
        Ok(CriticalPath {
            from: request.from.to_string(),
            to: request.to.to_string(),
            losses,
            start_ns: first.at_ns,
            time_ns: last.at_ns.saturating_sub(first.at_ns),
            not_from: begins_in
                .is_some_and(|id| id != first.who)
                .then(|| who(first.who)),
            processes: shares(&costs.processes, who),
            functions: shares(&costs.functions, |function| {
                function_text(recording, function)
            }),
            parts: pieces
                .iter()
                .zip(&costs.within)
                .map(|(piece, within)| part(recording, piece, *within))
                .collect(),
        })
    }
}

fn function_text(recording: &Recording, function: NameId) -> String {
    match function {
        NameId::NONE => String::new(),
        function => recording.names().function_text(function),
    }
}

fn part(recording: &Recording, piece: &Piece, function: NameId) -> Part {
    Part {
        start_ns: piece.start_ns,
        time_ns: piece.end_ns - piece.start_ns,
        process: piece.who.to_string(),
        name: recording.names().process_text(piece.who),
        doing: piece.doing,
        sender: piece.sender.map(|id| id.to_string()),
        function: function_text(recording, function),
    }
}

/// The rows of a table.
fn shares<K: Copy>(of: &FxHashMap<K, costs::Spent>, text: impl Fn(K) -> String) -> Vec<Share> {
    let rows = of.iter().map(|(key, spent)| Share {
        of: text(*key),
        run_ns: spent.run_ns,
        wait_ns: spent.wait_ns,
    });
    let mut rows: Vec<Share> = rows.collect();
    rows.sort_by(|a, b| {
        let by_time = b.time_ns().cmp(&a.time_ns());
        by_time.then_with(|| a.of.cmp(&b.of))
    });
    rows
}

#[cfg(test)]
mod tests;
