//! Samples an emulator: finds its code, opens the events of its threads, and makes frames of what comes.

use std::path::PathBuf;

use rustc_hash::FxHashSet;

use crate::code::{Code, ListAt, find_list};
use crate::elf::Libraries;
use crate::emulator::{Emulator, Refusal, Thread, ThreadKind};
use crate::memory::{ProcessMemory, mappings};
use crate::perf::{self, Came, Event, Moment};
use crate::process::{Pid, Processes};
use crate::stack::{Known, Look, Walker};

/// The threads that are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// The ordinary schedulers.
    Normal,
    /// The ordinary and the dirty schedulers.
    Dirty,
    /// All threads.
    All,
}

impl Threads {
    fn has(self, kind: ThreadKind) -> bool {
        match self {
            Threads::Normal => kind == ThreadKind::Scheduler,
            Threads::Dirty => kind != ThreadKind::Other,
            Threads::All => true,
        }
    }
}

/// An emulator whose code is known.
pub struct Target {
    /// The emulator.
    pub emulator: Emulator,
    memory: ProcessMemory,
    list: ListAt,
    code: Code,
    processes: Processes,
    libraries: Libraries,
    walker: Walker,
    /// The code was read last at this time, and after how many samples that knew an address not.
    read_ns: u64,
}

/// The list of code is not read again before so much time has passed.
const AGAIN_NS: u64 = 100_000_000;

impl Target {
    /// Finds the code of an emulator.
    ///
    /// # Errors
    /// Why it cannot be looked at.
    pub fn of(emulator: Emulator) -> Result<Target, Refusal> {
        let pid = emulator.pid;
        let memory = ProcessMemory::open(pid);
        let memory = memory.map_err(|e| Refusal::of(pid, "read the memory", e))?;
        let data = emulator.data()?;
        let list = find_list(&memory, &data).ok_or(Refusal::NoList(pid))?;
        let code = Code::read(&memory, list).map_err(|damage| Refusal::Damaged(pid, damage))?;
        let maps = mappings(pid).map_err(|e| Refusal::of(pid, "see the memory", e))?;
        let mut processes = Processes::default();
        processes.learn(&memory, &code);
        Ok(Target {
            libraries: Libraries::of(maps, PathBuf::from(format!("/proc/{pid}/root"))),
            emulator,
            memory,
            list,
            code,
            processes,
            walker: Walker::default(),
            read_ns: 0,
        })
    }

    /// Its code.
    #[must_use]
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// How many atoms are known by their text.
    #[must_use]
    pub fn atoms(&self) -> usize {
        self.processes.atoms()
    }

    fn look(&mut self, thread: &Thread, moment: &Moment) -> Look {
        self.read_again(moment);
        let is_dirty = !matches!(thread.kind, ThreadKind::Scheduler);
        let mut known = Known {
            memory: &self.memory,
            code: &self.code,
            processes: &mut self.processes,
            libraries: &mut self.libraries,
        };
        self.walker.look(&mut known, thread.tid, is_dirty, moment)
    }

    /// Reads code again where a moment is at an address that nothing is known of.
    fn read_again(&mut self, moment: &Moment) {
        let ip = moment.registers.ip;
        let is_known = self.code.at(ip).is_some() || self.libraries.at(ip).is_some();
        if is_known || moment.time_ns < self.read_ns.saturating_add(AGAIN_NS) {
            return;
        }
        self.read_ns = moment.time_ns;
        // If the list cannot be read now, what is known of it stays.
        if self.code.refresh(&self.memory, self.list).is_ok() {
            self.processes.learn(&self.memory, &self.code);
        }
        let pid = self.emulator.pid;
        if let Ok(maps) = mappings(pid) {
            self.libraries = Libraries::of(maps, PathBuf::from(format!("/proc/{pid}/root")));
        }
    }

    /// What is told of the process of a look.
    fn named(&self, look: &Look) -> Option<Named> {
        let of = look.process?;
        let initial = self.processes.function(of.initial);
        Some(Named {
            pid: of.pid,
            registered: self
                .processes
                .registered(&self.memory, &of)
                .map(|name| name.to_string()),
            initial: initial
                .map(|(module, name, arity)| (module.to_string(), name.to_string(), arity)),
        })
    }
}

/// What is told of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its pid.
    pub pid: Pid,
    /// Its registered name.
    pub registered: Option<String>,
    /// The function it starts in.
    pub initial: Option<(String, String, u8)>,
}

/// What sampling tells.
#[derive(Debug)]
pub enum Told<'t> {
    /// A process was seen first.
    Process(&'t Named),
    /// A thread was seen.
    Sample {
        /// When, in monotonic nanoseconds.
        time_ns: u64,
        /// The thread.
        thread: &'t Thread,
        /// What it did.
        look: &'t Look,
    },
    /// So many samples found no room.
    Lost {
        /// The thread.
        thread: &'t Thread,
        /// How many.
        count: u64,
    },
}

/// Samples an emulator.
pub struct Sampler {
    target: Target,
    threads: Vec<Thread>,
    events: Vec<Event>,
    known: FxHashSet<Pid>,
}

/// How long is waited for a sample before the caller is asked whether to go on.
const WAIT_NS: u64 = 50_000_000;

impl Sampler {
    /// Begins to sample.
    ///
    /// # Errors
    /// When this user may not, or the emulator has no such threads.
    pub fn start(target: Target, threads: Threads, rate_hz: u64) -> Result<Sampler, Refusal> {
        let pid = target.emulator.pid;
        let mut all = target.emulator.threads()?;
        all.retain(|thread| threads.has(thread.kind));
        let period_ns = 1_000_000_000 / rate_hz.max(1);
        let mut events = Vec::new();
        for thread in &all {
            let event = Event::open(thread.tid, period_ns);
            events.push(event.map_err(|e| Refusal::of(pid, "open performance events", e))?);
        }
        for event in &events {
            let enabled = event.enable();
            enabled.map_err(|e| Refusal::of(pid, "start performance events", e))?;
        }
        Ok(Sampler {
            target,
            threads: all,
            events,
            known: FxHashSet::default(),
        })
    }

    /// The emulator.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Tells of what comes, until `goes_on` says no, or the emulator has ended.
    ///
    /// # Errors
    /// What `tell` returns, or the system says.
    pub fn run<E: From<std::io::Error>>(
        &mut self,
        mut goes_on: impl FnMut() -> bool,
        mut tell: impl FnMut(&Told<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while goes_on() {
            let ended = perf::wait(&self.events, WAIT_NS)?;
            for index in 0..self.events.len() {
                self.take(index, &mut tell)?;
            }
            if ended.iter().all(|ended| *ended) {
                break;
            }
        }
        Ok(())
    }

    fn take<E>(
        &mut self,
        index: usize,
        tell: &mut impl FnMut(&Told<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let thread = &self.threads[index];
        while let Some(came) = self.events[index].take_next() {
            let moment = match came {
                Came::Lost(count) => {
                    tell(&Told::Lost { thread, count })?;
                    continue;
                }
                Came::Moment(moment) => moment,
            };
            let look = self.target.look(thread, &moment);
            if let Some(pid) = look.pid()
                && self.known.insert(pid)
                && let Some(named) = self.target.named(&look)
            {
                tell(&Told::Process(&named))?;
            }
            let time_ns = moment.time_ns;
            let look = &look;
            tell(&Told::Sample {
                time_ns,
                thread,
                look,
            })?;
        }
        Ok(())
    }
}
