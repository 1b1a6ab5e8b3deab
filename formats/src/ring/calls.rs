//! Calls and returns of a recording into call paths: the same as the runtime's own call trees.
//!
//! A process has a current node, a call path. A call goes on to the callee's node below it, a return back to the
//! node that the call was made from. A function that is on the path already goes back to its node, so recursion
//! folds. Time goes to the current node while the process runs; so do words and reductions, as far as they are told.

use std::collections::HashMap;
use std::sync::mpsc;
use std::thread;

use super::Error;
use super::counter::Counted;
use super::event::{Event, Group};
use super::id::{Id, NameId};
use super::names::Names;
use super::reader::{Record, Recording};
use super::shares::Shares;
use super::total::{Total, sum};
use crate::profile::{Cost, Count, Function, Header, Node, Process, Profile, Type};

/// No node: outside of all recorded calls.
const ROOT: u32 = u32::MAX;

struct Path {
    parent: u32,
    function: NameId,
    calls: u64,
    time_ns: u64,
    /// Time in which the process did not run.
    wait_ns: u64,
    words: i64,
    reductions: i64,
    /// The function that was called from here last, and where that led.
    last: (NameId, u32),
}

/// A process, as far as its calls are known.
struct Caller {
    paths: Vec<Path>,
    known: HashMap<(u32, NameId), u32>,
    /// The nodes that calls that have not returned were made from.
    stack: Vec<u32>,
    current: u32,
    is_running: bool,
    since_ns: u64,
    reductions: u64,
    words_so_far: Total,
    reductions_so_far: Total,
    last_root: (NameId, u32),
    /// What was counted, if that was.
    shares: Option<Box<Shares>>,
}

impl Caller {
    fn new(is_running: bool) -> Caller {
        Caller {
            paths: Vec::new(),
            known: HashMap::new(),
            stack: Vec::new(),
            current: ROOT,
            is_running,
            since_ns: 0,
            reductions: 0,
            words_so_far: Total::default(),
            reductions_so_far: Total::default(),
            last_root: (NameId::NONE, ROOT),
            shares: None,
        }
    }

    fn charge(&mut self, now: u64) {
        if self.is_running
            && let Some(shares) = &mut self.shares
        {
            let path = (self.current != ROOT).then_some(self.current as usize);
            shares.spend(path, now.saturating_sub(self.since_ns));
        }
        if let Some(path) = self.paths.get_mut(self.current as usize) {
            let passed = now.saturating_sub(self.since_ns);
            let sum = if self.is_running {
                &mut path.time_ns
            } else {
                &mut path.wait_ns
            };
            *sum = sum.saturating_add(passed);
        }
        self.since_ns = now;
    }

    fn words(&mut self, total: u64) {
        let came = self.words_so_far.now(total);
        if let Some(path) = self.paths.get_mut(self.current as usize) {
            path.words = path.words.wrapping_add(came);
        }
    }

    fn reductions(&mut self, total: u64) {
        self.reductions = self.reductions.max(total);
        let came = self.reductions_so_far.now(total);
        if let Some(path) = self.paths.get_mut(self.current as usize) {
            path.reductions = path.reductions.wrapping_add(came);
        }
    }

    /// Makes the node of a callee the current one.
    fn enter(&mut self, function: NameId) {
        let from = self.current;
        let last = match self.paths.get(from as usize) {
            Some(path) if path.function == function => (function, from),
            Some(path) => path.last,
            None => self.last_root,
        };
        let to = if last.0 == function && last.1 != ROOT {
            last.1
        } else {
            self.find(from, function)
        };
        if let Some(path) = self.paths.get_mut(to as usize) {
            path.calls += 1;
        }
        self.current = to;
    }

    fn find(&mut self, from: u32, function: NameId) -> u32 {
        let to = match self.known.get(&(from, function)) {
            Some(to) => *to,
            None => {
                let to = self.on_path(from, function);
                let to = to.unwrap_or_else(|| self.add(from, function));
                self.known.insert((from, function), to);
                to
            }
        };
        match self.paths.get_mut(from as usize) {
            Some(path) => path.last = (function, to),
            None => self.last_root = (function, to),
        }
        to
    }

    fn on_path(&self, from: u32, function: NameId) -> Option<u32> {
        let mut at = from;
        while let Some(path) = self.paths.get(at as usize) {
            if path.function == function {
                return Some(at);
            }
            at = path.parent;
        }
        None
    }

    fn add(&mut self, parent: u32, function: NameId) -> u32 {
        // More paths than that do not fit into memory.
        let index = u32::try_from(self.paths.len()).unwrap_or(ROOT);
        self.paths.push(Path {
            parent,
            function,
            calls: 0,
            time_ns: 0,
            wait_ns: 0,
            words: 0,
            reductions: 0,
            last: (NameId::NONE, ROOT),
        });
        index
    }

    fn leave(&mut self, calls: u64) {
        for _ in 0..calls {
            let Some(caller) = self.stack.pop() else {
                self.current = ROOT;
                break;
            };
            self.current = caller;
        }
    }
}

/// What a record means for calls.
enum What {
    Call(NameId),
    TailCall(NameId),
    /// The newest so many calls end.
    Leave(u64),
    In,
    /// With the reductions that the process has had in all, where that is known.
    Out {
        reductions: u64,
    },
    Exit,
    /// So many in all.
    Words(u64),
    Reductions(u64),
    /// The turn that ends has taken so much.
    Counted(Box<Counted>),
}

/// A record that means something for calls.
struct Step {
    time_ns: u64,
    subject: Id,
    what: What,
}

impl Step {
    #[inline]
    fn of(record: &Record<'_>) -> Option<Step> {
        let what = match record.event {
            Event::Call { function } => What::Call(function),
            Event::TailCall { function } => What::TailCall(function),
            Event::Return { .. } => What::Leave(1),
            Event::Unwind { calls } => What::Leave(calls),
            Event::In { .. } => What::In,
            Event::Out { reductions, .. } => What::Out { reductions },
            Event::OutExited {} => What::Out { reductions: 0 },
            Event::Exit { .. } => What::Exit,
            Event::Words { total } => What::Words(total),
            Event::Reductions { total } => What::Reductions(total),
            Event::Counted {
                first,
                second,
                third,
                fourth,
            } => What::Counted(Box::new([first, second, third, fourth])),
            _ => return None,
        };
        Some(Step {
            time_ns: record.time_ns,
            subject: record.subject,
            what,
        })
    }
}

/// Steps that are handed over at once.
const BATCH: usize = 4096;

/// Batches on their way: the reader may be so far ahead.
const BATCHES: usize = 8;

/// All processes of a recording.
struct Callers {
    all: Vec<(Id, Caller)>,
    known: HashMap<Id, usize>,
    /// Whose record came last.
    last: usize,
    /// Whether a process runs is known.
    has_turns: bool,
    /// What turns have taken is known.
    has_counters: bool,
    /// The reductions of call paths are known.
    has_reductions: bool,
}

impl Callers {
    fn of(&mut self, id: Id) -> &mut Caller {
        // Records of one process come in a row, as long as it runs.
        if self.all.get(self.last).is_none_or(|(last, _)| *last != id) {
            let new = self.all.len();
            self.last = *self.known.entry(id).or_insert(new);
            if self.last == new {
                let mut caller = Caller::new(!self.has_turns);
                caller.shares = self.has_counters.then(Box::default);
                self.all.push((id, caller));
            }
        }
        &mut self.all[self.last].1
    }

    fn add(&mut self, step: &Step) {
        let (has_turns, has_reductions) = (self.has_turns, self.has_reductions);
        let caller = self.of(step.subject);
        caller.charge(step.time_ns);
        if has_turns {
            // Who calls runs, even if the record of that is lost.
            caller.is_running = !matches!(step.what, What::Out { .. } | What::Exit);
        }
        match &step.what {
            What::Call(function) => {
                caller.stack.push(caller.current);
                caller.enter(*function);
            }
            What::TailCall(function) => caller.enter(*function),
            What::Leave(calls) => caller.leave(*calls),
            What::In => {}
            // At its very end a process tells none.
            What::Out { reductions } if has_reductions && *reductions > 0 => {
                caller.reductions(*reductions);
            }
            What::Out { reductions } => caller.reductions = caller.reductions.max(*reductions),
            What::Words(total) => caller.words(*total),
            What::Reductions(total) => caller.reductions(*total),
            What::Exit => caller.leave(u64::MAX),
            What::Counted(counted) => {
                if let Some(shares) = &mut caller.shares {
                    shares.share(counted);
                }
            }
        }
    }

    /// As a profile, with what was counted for each node.
    fn profile(self, names: &Names, header: Header) -> (Profile, Vec<Counted>) {
        let mut counted = Vec::new();
        let mut profile = Profile {
            runs: vec![header],
            ..Profile::default()
        };
        let mut functions = HashMap::new();
        let mut callers = self.all;
        callers.retain(|(_, caller)| !caller.paths.is_empty());
        callers.sort_by_key(|(id, _)| *id);
        for (id, caller) in callers {
            let index = u32::try_from(profile.processes.len()).unwrap_or(u32::MAX);
            profile.processes.push(Process {
                run: 0,
                pid: id.to_string(),
                name: names.process_text(id),
                reductions: caller.reductions,
            });
            let first = u32::try_from(profile.nodes.len()).unwrap_or(u32::MAX);
            let mut costs: HashMap<u32, Cost> = HashMap::new();
            for (at, path) in caller.paths.iter().enumerate() {
                counted.extend(caller.shares.as_ref().map(|shares| shares.of(at)));
                let function = *functions.entry(path.function).or_insert_with(|| {
                    profile.functions.push(function_of(names, path.function));
                    u32::try_from(profile.functions.len() - 1).unwrap_or(u32::MAX)
                });
                let cost = Cost {
                    calls: path.calls,
                    time_ns: path.time_ns,
                    words: sum(path.words),
                };
                costs.entry(function).or_default().add(cost);
                profile.nodes.push(Node {
                    process: index,
                    parent: (path.parent != ROOT).then(|| first + path.parent),
                    function,
                    cost,
                    reductions: sum(path.reductions),
                    wait_ns: path.wait_ns,
                });
            }
            let mut costs: Vec<_> = costs.into_iter().collect();
            costs.sort_unstable_by_key(|(function, _)| *function);
            let process = Some(index);
            let counts = costs.into_iter().map(|(function, cost)| Count {
                function,
                process,
                cost,
            });
            profile.counts.extend(counts);
        }
        (profile, counted)
    }
}

fn function_of(names: &Names, name: NameId) -> Function {
    match names.function(name) {
        Some(function) => Function {
            module: function.module.clone(),
            name: function.name.clone(),
            arity: u32::from(function.arity),
        },
        None => Function {
            module: "?".into(),
            name: "?".into(),
            arity: 0,
        },
    }
}

impl Recording {
    /// Since when nothing is missing, in nanoseconds: 0 unless the oldest records were overwritten.
    ///
    /// # Errors
    /// When a block is damaged.
    pub fn whole_since_ns(&self) -> Result<u64, Error> {
        let mut since = 0;
        for index in (0..self.segments()).filter(|index| self.is_wrapped(*index)) {
            if let Some(record) = self.whole_segment(index).read()? {
                since = since.max(record.time_ns);
            }
        }
        Ok(since)
    }

    /// Hands over all steps from `since` on; the time of the last record.
    fn read_steps(
        &self,
        since: u64,
        full: &mpsc::SyncSender<Vec<Step>>,
        free: &mpsc::Receiver<Vec<Step>>,
    ) -> Result<u64, Error> {
        let mut merged = self.merged()?;
        let mut last = since;
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(record) = merged.read()? {
            if record.time_ns < since {
                continue;
            }
            last = record.time_ns;
            batch.extend(Step::of(&record));
            if batch.len() == BATCH {
                let next = free
                    .try_recv()
                    .unwrap_or_else(|_| Vec::with_capacity(BATCH));
                // Whoever takes them ends later.
                let _ = full.send(std::mem::replace(&mut batch, next));
            }
        }
        let _ = full.send(batch);
        Ok(last)
    }

    /// Calls, time, words and reductions of each function and call path, as far as they were recorded. Where the oldest records were overwritten, from when on
    /// nothing is missing; what was called before that is not known.
    ///
    /// # Errors
    /// When a block is damaged.
    pub fn profile(&self) -> Result<Profile, Error> {
        self.profile_and_counters().map(|(profile, _)| profile)
    }

    /// The same, with what was counted for each of the profile's nodes, if that was.
    pub(super) fn profile_and_counters(&self) -> Result<(Profile, Vec<Counted>), Error> {
        let since = self.whole_since_ns()?;
        let mut callers = Callers {
            all: Vec::new(),
            known: HashMap::new(),
            last: 0,
            has_turns: self.has(Group::Scheduling),
            has_counters: self.has(Group::Counters),
            has_reductions: self.has(Group::Reductions),
        };
        // One thread takes records apart, the other follows calls.
        let (full, batches) = mpsc::sync_channel::<Vec<Step>>(BATCHES);
        let (empty, free) = mpsc::channel::<Vec<Step>>();
        let read = thread::scope(|scope| {
            let reader = scope.spawn(move || self.read_steps(since, &full, &free));
            for mut batch in batches {
                batch.iter().for_each(|step| callers.add(step));
                batch.clear();
                // The reader has ended when nobody wants it.
                let _ = empty.send(batch);
            }
            reader.join()
        });
        let last = read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let end = self.end_ns().map_or(last, |end| end.max(last));
        let header = Header {
            kind: Type::CallTime,
            command: self.description().command.clone(),
            host: self.description().host.name.clone(),
            otp: self.description().otp.clone(),
            run_ns: end.saturating_sub(since),
            os_pid: u32::try_from(self.os_pid()).unwrap_or(0),
            processes: self.names().processes() as u64,
        };
        Ok(callers.profile(self.names(), header))
    }
}
