//! The samples of the last seconds, and the tables that are made of them. It knows nothing of a terminal.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use beamline_formats::name;
use beamline_formats::ring::Id;
use beamline_reports::events::{Share, Stopped};
use beamline_sampler::emulator::{Thread, ThreadKind};
use beamline_sampler::sampler::{Named, Told};
use beamline_sampler::stack::{self, Frame, Look};
use serde::{Serialize, Serializer};

use crate::samples::id;

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Does {
    /// It ran Erlang code.
    Erlang,
    /// It ran a BIF, or another C function of the emulator for a process.
    Bif,
    /// It ran a C function of another library: a NIF, or what one calls.
    Library,
    /// It collected.
    Collection,
    /// It scheduled, polled, or looked for work.
    Runtime,
}

impl Does {
    /// All of them, in the order of columns.
    pub(super) const ALL: [Does; 5] = [
        Does::Erlang,
        Does::Bif,
        Does::Library,
        Does::Collection,
        Does::Runtime,
    ];

    fn of(look: &Look) -> Does {
        match look.does {
            stack::Does::Erlang => Does::Erlang,
            stack::Does::Collection => Does::Collection,
            stack::Does::Runtime => Does::Runtime,
            stack::Does::Native => match look.frames.first() {
                Some(Frame::Outside { library, .. }) if is_foreign(library) => Does::Library,
                _ => Does::Bif,
            },
        }
    }
}

/// A library that is no part of the emulator.
fn is_foreign(library: &str) -> bool {
    library != "runtime" && !library.starts_with("beam.")
}

/// A look at a thread. Names are by their number.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// When, in monotonic nanoseconds.
    pub(super) at_ns: u64,
    /// The thread's number in the system.
    pub(super) tid: u32,
    /// What it did.
    pub(super) does: Does,
    /// The process it ran for.
    pub(super) process: Option<Id>,
    /// Its functions, the newest first.
    pub(super) stack: Rc<[u32]>,
}

/// The samples of the last seconds.
pub(super) struct Model {
    /// How long samples are kept.
    window_ns: u64,
    /// The time that a sample stands for.
    period_ns: u64,
    begin_ns: u64,
    samples: VecDeque<Seen>,
    names: Vec<String>,
    known: HashMap<String, u32>,
    processes: HashMap<Id, String>,
    /// In the order of their kinds and numbers.
    threads: Vec<Thread>,
    lost: u64,
    stopped: Stopped,
}

/// A function, or a caller or callee of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Function {
    /// By its number; not for other programs.
    #[serde(skip)]
    pub(super) number: u32,
    /// Its name.
    pub(super) name: String,
    /// Samples in which it was the newest of the stack.
    pub(super) own: Share,
    /// Samples in which it was in the stack.
    pub(super) total: Share,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Process {
    /// Its pid and what it is called.
    pub(super) name: String,
    /// Samples of it.
    pub(super) share: Share,
    /// The function that was the newest of its stacks most often.
    pub(super) function: String,
}

/// A thread, and parts of the time, in percent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Scheduler {
    /// Its name.
    pub(super) name: String,
    /// In the order of [`Does::ALL`].
    #[serde(serialize_with = "by_name")]
    pub(super) does: [f64; Does::ALL.len()],
    /// It ran not, or in the kernel.
    pub(super) idle: f64,
}

/// Each part under the name of what was done.
fn by_name<S: Serializer>(parts: &[f64; Does::ALL.len()], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(Does::ALL.into_iter().zip(parts))
}

/// What is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct View {
    /// The time that the samples are of.
    pub(super) span_ns: u64,
    /// How many.
    pub(super) samples: u64,
    /// Samples that found no room.
    pub(super) lost: u64,
    /// What stopping threads has cost.
    pub(super) stopped: Stopped,
    /// The functions.
    pub(super) functions: Vec<Function>,
    /// The processes.
    pub(super) processes: Vec<Process>,
    /// The threads.
    pub(super) schedulers: Vec<Scheduler>,
}

/// The callers and callees of a function, by samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Neighbours {
    /// Callers, the most frequent first.
    pub(super) callers: Vec<(String, Share)>,
    /// Called functions; the function itself where it is the newest.
    pub(super) callees: Vec<(String, Share)>,
}

fn thread_name(thread: &Thread) -> String {
    match thread.kind {
        ThreadKind::Scheduler => format!("scheduler {}", thread.number),
        ThreadKind::DirtyCpu => format!("dirty CPU {}", thread.number),
        ThreadKind::DirtyIo => format!("dirty I/O {}", thread.number),
        ThreadKind::Other => thread.name.clone(),
    }
}

fn frame_text(frame: &Frame) -> String {
    match frame {
        Frame::Erlang {
            module,
            name,
            arity,
            ..
        } => name::mfa(module, name, u32::from(*arity)),
        Frame::Outside { library, name } => format!("[{library}] {name}"),
        Frame::Cut => "(stack was cut)".to_owned(),
    }
}

/// The largest first; of the same size by name.
fn sorted(counts: HashMap<String, u64>, all: u64) -> Vec<(String, Share)> {
    let mut rows: Vec<(String, u64)> = counts.into_iter().collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let share = |(name, count)| (name, Share::of(count, all));
    rows.into_iter().map(share).collect()
}

impl Model {
    /// Of these threads, from now on.
    pub(super) fn new(window_ns: u64, period_ns: u64, begin_ns: u64, threads: &[Thread]) -> Model {
        let mut model = Model {
            window_ns,
            period_ns,
            begin_ns,
            samples: VecDeque::new(),
            names: Vec::new(),
            known: HashMap::new(),
            processes: HashMap::new(),
            threads: Vec::new(),
            lost: 0,
            stopped: Stopped::default(),
        };
        threads.iter().for_each(|thread| model.thread(thread));
        model
    }

    /// A thread, from now on, or its new name.
    fn thread(&mut self, thread: &Thread) {
        self.threads.retain(|known| known.tid != thread.tid);
        self.threads.push(thread.clone());
        let order = |of: &Thread| (of.kind, of.number, of.tid);
        self.threads.sort_by_key(order);
    }

    /// The number of a name.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.known.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        self.known.insert(name.to_owned(), number);
        number
    }

    /// The name of a number.
    pub(super) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }

    /// Takes what a sampler tells.
    pub(super) fn tell(&mut self, told: &Told<'_>) {
        match told {
            Told::Thread(thread) => self.thread(thread),
            Told::Process(named) => self.process(named),
            Told::Sample {
                time_ns,
                thread,
                look,
            } => {
                let frames = look.frames.iter();
                let stack: Vec<u32> = frames.map(|of| self.number(&frame_text(of))).collect();
                self.add(Seen {
                    at_ns: *time_ns,
                    tid: thread.tid,
                    does: Does::of(look),
                    process: look.pid().map(id),
                    stack: stack.into(),
                });
            }
            Told::Lost { count, .. } => self.lost += count,
            Told::Stopped(cost) => {
                self.stopped.looks += cost.looks;
                self.stopped.ns += cost.ns;
            }
        }
    }

    fn process(&mut self, named: &Named) {
        let id = id(named.pid);
        let initial = named.initial.as_ref().map(|(module, name, arity)| {
            let called = name::mfa(module, name, u32::from(*arity));
            format!("{id} {called}")
        });
        let registered = named.registered.as_ref();
        let registered = registered.map(|name| format!("{id} {name}"));
        if let Some(text) = registered.or(initial) {
            self.processes.insert(id, text);
        }
    }

    /// Takes a sample, and leaves those that are too old.
    pub(super) fn add(&mut self, seen: Seen) {
        let oldest = seen.at_ns.saturating_sub(self.window_ns);
        self.samples.push_back(seen);
        self.forget(oldest);
    }

    fn forget(&mut self, before_ns: u64) {
        // Threads bring theirs in turns, so the order is nearly that of time.
        while self.samples.front().is_some_and(|of| of.at_ns < before_ns) {
            self.samples.pop_front();
        }
    }

    /// What is to be shown now.
    pub(super) fn view(&mut self, now_ns: u64) -> View {
        self.forget(now_ns.saturating_sub(self.window_ns));
        let span_ns = now_ns.saturating_sub(self.begin_ns).min(self.window_ns);
        View {
            span_ns,
            samples: self.samples.len() as u64,
            lost: self.lost,
            stopped: self.stopped,
            functions: self.functions(),
            processes: self.processes(),
            schedulers: self.schedulers(span_ns),
        }
    }

    fn functions(&self) -> Vec<Function> {
        let all = self.samples.len() as u64;
        let mut counts: HashMap<u32, (u64, u64)> = HashMap::new();
        for seen in &self.samples {
            if let Some(newest) = seen.stack.first() {
                counts.entry(*newest).or_default().0 += 1;
            }
            let each: HashSet<u32> = seen.stack.iter().copied().collect();
            for number in each {
                counts.entry(number).or_default().1 += 1;
            }
        }
        let functions = counts.into_iter().map(|(number, (own, total))| Function {
            number,
            name: self.name(number).to_owned(),
            own: Share::of(own, all),
            total: Share::of(total, all),
        });
        let mut functions: Vec<Function> = functions.collect();
        functions.sort_by(|a, b| {
            let key = |of: &Function| (of.own.samples, of.total.samples);
            key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name))
        });
        functions
    }

    fn processes(&self) -> Vec<Process> {
        let all = self.samples.len() as u64;
        let mut counts: HashMap<Option<Id>, HashMap<u32, u64>> = HashMap::new();
        for seen in &self.samples {
            let of = counts.entry(seen.process).or_default();
            let newest = seen.stack.first().copied().unwrap_or(u32::MAX);
            *of.entry(newest).or_default() += 1;
        }
        let rows = counts.into_iter().map(|(id, of)| {
            let most = of.iter().max_by_key(|(number, count)| (**count, **number));
            Process {
                name: id.map_or("(no process)".to_owned(), |id| self.process_text(id)),
                share: Share::of(of.values().sum(), all),
                function: most.map_or("", |(number, _)| self.name(*number)).to_owned(),
            }
        });
        let mut rows: Vec<Process> = rows.collect();
        rows.sort_by(|a, b| {
            let by_share = b.share.samples.cmp(&a.share.samples);
            by_share.then_with(|| a.name.cmp(&b.name))
        });
        rows
    }

    fn process_text(&self, id: Id) -> String {
        let known = self.processes.get(&id).cloned();
        known.unwrap_or_else(|| id.to_string())
    }

    fn schedulers(&self, span_ns: u64) -> Vec<Scheduler> {
        let mut counts: HashMap<(u32, Does), u64> = HashMap::new();
        for seen in &self.samples {
            *counts.entry((seen.tid, seen.does)).or_default() += 1;
        }
        let rows = self.threads.iter().map(|thread| {
            let does = Does::ALL.map(|does| {
                let count = counts.get(&(thread.tid, does)).copied().unwrap_or(0);
                100.0 * (count * self.period_ns) as f64 / span_ns.max(1) as f64
            });
            let busy: f64 = does.iter().sum();
            Scheduler {
                name: thread_name(thread),
                does,
                idle: (100.0 - busy).max(0.0),
            }
        });
        rows.collect()
    }

    /// The callers and callees of a function. Of a stack that has it more than once, its newest call counts.
    pub(super) fn neighbours(&self, function: u32) -> Neighbours {
        let (mut callers, mut callees) = (HashMap::new(), HashMap::new());
        let mut all = 0;
        for seen in &self.samples {
            let Some(at) = seen.stack.iter().position(|of| *of == function) else {
                continue;
            };
            all += 1;
            let caller = seen
                .stack
                .get(at + 1)
                .map_or("(nobody)", |of| self.name(*of));
            *callers.entry(caller.to_owned()).or_default() += 1;
            let callee = at.checked_sub(1).and_then(|at| seen.stack.get(at));
            let callee = callee.map_or("(itself)", |of| self.name(*of));
            *callees.entry(callee.to_owned()).or_default() += 1;
        }
        Neighbours {
            callers: sorted(callers, all),
            callees: sorted(callees, all),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
