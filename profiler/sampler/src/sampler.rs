//! Samples an emulator: finds its code, looks at its threads, and makes frames of what it sees.

use std::io;
use std::path::PathBuf;

use rustc_hash::FxHashSet;

use crate::clock::monotonic_ns;
use crate::code::{Code, ListAt, find_list};
use crate::elf::Libraries;
use crate::emulator::{Emulator, Kind, Refusal, Thread, ThreadKind};
use crate::machine::Around;
use crate::memory::{Memory as _, ProcessMemory, mappings};
use crate::perf::{self, Came, Event, Moment};
use crate::process::{Pid, Processes};
use crate::published::{Lacks, Machine};
use crate::stack::{Does, Known, Look, Walker};
use crate::stops::{Cost, Glance, Stops};

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

/// What an emulator tells of its code and its processes.
enum Tables {
    /// OTP's emulator.
    Otp {
        list: ListAt,
        processes: Box<Processes>,
        walker: Walker,
    },
    /// Our own runtime.
    Beamline { machine: Box<Machine> },
}

impl Tables {
    /// Finds those of an emulator, and its code.
    fn of(emulator: &Emulator, memory: &ProcessMemory) -> Result<(Tables, Code), Refusal> {
        let pid = emulator.pid;
        let data = emulator.data()?;
        match emulator.kind {
            Kind::Otp => {
                let list = find_list(memory, &data).ok_or(Refusal::NoList(pid))?;
                let code = Code::read(memory, list);
                let code = code.map_err(|damage| Refusal::Damaged(pid, damage))?;
                let mut processes = Box::new(Processes::new(emulator.table_bits()));
                processes.learn(memory, &code);
                let walker = Walker::default();
                let tables = Tables::Otp {
                    list,
                    processes,
                    walker,
                };
                Ok((tables, code))
            }
            Kind::Beamline => {
                let (machine, code) =
                    Machine::find(memory, &data).map_err(|lacks| match lacks {
                        Lacks::Code => Refusal::Unpublished(pid),
                        Lacks::Version => Refusal::Version(pid),
                    })?;
                let machine = Box::new(machine);
                Ok((Tables::Beamline { machine }, code))
            }
        }
    }

    /// A word of the emulator that is there as long as it is.
    fn address(&self) -> u64 {
        match self {
            Tables::Otp { list, .. } => list.0,
            Tables::Beamline { machine } => machine.at,
        }
    }

    /// Reads code again. If that cannot be read now, what is known of it stays.
    fn refresh(&mut self, memory: &ProcessMemory, code: &mut Code) {
        match self {
            Tables::Otp {
                list, processes, ..
            } => {
                if code.refresh(memory, *list).is_ok() {
                    processes.learn(memory, code);
                }
            }
            Tables::Beamline { machine } => {
                machine.refresh(memory, code);
            }
        }
    }

    /// Code is not read again before this has passed: our own runtime compiles all the time, and only what is new is read.
    fn again_ns(&self) -> u64 {
        match self {
            Tables::Otp { .. } => AGAIN_NS,
            Tables::Beamline { .. } => AGAIN_NS / 20,
        }
    }
}

/// An emulator whose code is known.
pub struct Target {
    /// The emulator.
    pub emulator: Emulator,
    memory: ProcessMemory,
    tables: Tables,
    code: Code,
    libraries: Libraries,
    /// The code was read last at this time, and after how many samples that knew an address not.
    read_ns: u64,
    /// The process has started another program.
    is_gone: bool,
    /// It is not read again because of a stack before this has passed.
    wait_ns: u64,
}

/// The list of code is not read again before this has passed, or where reading it has not helped, at most this.
const AGAIN_NS: u64 = 100_000_000;
const WAIT_MAX_NS: u64 = 1_000_000_000;

impl Target {
    /// Finds the code of an emulator.
    ///
    /// # Errors
    /// Why it cannot be looked at.
    pub fn of(emulator: Emulator) -> Result<Target, Refusal> {
        let pid = emulator.pid;
        let memory = ProcessMemory::open(pid);
        let memory = memory.map_err(|e| Refusal::of(pid, "read the memory", e))?;
        let (tables, code) = Tables::of(&emulator, &memory)?;
        let maps = mappings(pid).map_err(|e| Refusal::of(pid, "see the memory", e))?;
        Ok(Target {
            libraries: Libraries::of(maps, PathBuf::from(format!("/proc/{pid}/root"))),
            emulator,
            memory,
            wait_ns: tables.again_ns(),
            tables,
            code,
            read_ns: 0,
            is_gone: false,
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
        match &self.tables {
            Tables::Otp { processes, .. } => processes.atoms(),
            Tables::Beamline { machine } => machine.atoms(),
        }
    }

    fn look(&mut self, thread: &Thread, moment: &Moment) -> Look {
        let ip = moment.registers.ip;
        let again_ns = self.tables.again_ns();
        let has_lost = match &self.tables {
            Tables::Beamline { machine } => machine.has_lost(&self.memory),
            Tables::Otp { .. } => false,
        };
        if has_lost || self.code.at(ip).is_none() && self.libraries.file_at(ip).is_none() {
            self.read_again(moment.time_ns, again_ns);
        }
        let look = self.walk(thread, moment);
        // C code that was called by code that has been loaded since.
        if !self.code.take_missed() || !self.read_again(moment.time_ns, self.wait_ns) {
            return look;
        }
        let again = self.walk(thread, moment);
        // Or a process has changed its stack while that was read, which reading code again does not help.
        self.wait_ns = match self.code.take_missed() {
            true => (2 * self.wait_ns).min(WAIT_MAX_NS),
            false => again_ns,
        };
        again
    }

    /// Asks whether the process still is this emulator. Where it has started another program, events and threads stay, and the
    /// memory that was opened is gone.
    fn is_there(&mut self) -> bool {
        self.is_gone = self.is_gone || self.memory.words::<1>(self.tables.address()).is_none();
        !self.is_gone
    }

    /// What a moment shows, with the code as it is known.
    fn walk(&mut self, thread: &Thread, moment: &Moment) -> Look {
        let (memory, code, libraries) = (&self.memory, &self.code, &mut self.libraries);
        match &mut self.tables {
            Tables::Otp {
                processes, walker, ..
            } => {
                let is_dirty = !matches!(thread.kind, ThreadKind::Scheduler);
                let mut known = Known {
                    memory,
                    code,
                    processes,
                    libraries,
                };
                walker.look(&mut known, thread.tid, is_dirty, moment)
            }
            Tables::Beamline { machine } => {
                let program = &self.emulator.program.to_string_lossy();
                let mut around = Around {
                    memory,
                    code,
                    machine,
                    libraries,
                    program,
                };
                around.look(thread, moment)
            }
        }
    }

    /// Reads code again, if that was not done within `wait_ns` before; whether it was read.
    fn read_again(&mut self, time_ns: u64, wait_ns: u64) -> bool {
        if time_ns < self.read_ns.saturating_add(wait_ns) {
            return false;
        }
        self.read_ns = time_ns;
        self.tables.refresh(&self.memory, &mut self.code);
        let pid = self.emulator.pid;
        if let Ok(maps) = mappings(pid) {
            self.libraries = Libraries::of(maps, PathBuf::from(format!("/proc/{pid}/root")));
        }
        true
    }

    /// The facts about the process of a look.
    fn named(&mut self, look: &Look) -> Option<Named> {
        let seen = look.process?;
        let memory = &self.memory;
        let (registered, initial) = match &mut self.tables {
            Tables::Otp { processes, .. } => {
                let of = processes.at(memory, seen.at);
                let of = of.filter(|of| of.pid == seen.pid)?;
                (
                    processes.registered(memory, &of),
                    processes.function(of.initial),
                )
            }
            Tables::Beamline { machine } => {
                let of = machine.process(memory, seen.at);
                let of = of.filter(|of| of.pid == seen.pid)?;
                (
                    machine.registered(memory, &of),
                    machine.initial(memory, seen.at),
                )
            }
        };
        Some(Named {
            pid: seen.pid,
            registered: registered.map(|name| name.to_string()),
            initial: initial
                .map(|(module, name, arity)| (module.to_string(), name.to_string(), arity)),
        })
    }
}

/// The facts about a process that a recording has.
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
    /// A thread has come since, or has got another name: it is looked at from now on.
    Thread(&'t Thread),
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
    /// Samples found no room.
    Lost {
        /// The thread.
        thread: &'t Thread,
        /// How many.
        count: u64,
    },
    /// Threads were stopped, at this cost since the last such report.
    Stopped(Cost),
}

/// How threads are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By performance events: the kernel copies what it sees, and stops nobody.
    Events,
    /// Each running thread is stopped for a moment.
    Stops,
}

impl How {
    /// In a few words.
    #[must_use]
    pub fn means(self) -> &'static str {
        match self {
            How::Events => "performance events, user code",
            How::Stops => "threads stopped for a look, user code",
        }
    }

    /// What is asked of the system, for a refusal.
    #[must_use]
    pub fn asks(self) -> &'static str {
        match self {
            How::Events => "open performance events",
            How::Stops => "stop threads",
        }
    }
}

/// Where moments come from.
enum Source {
    /// The events, and how long a thread runs from one moment to the next.
    Events(Vec<Event>, u64),
    Stops(Stops),
}

impl Source {
    fn open(pid: u32, threads: &[Thread], how: How, rate_hz: u64) -> Result<Source, Refusal> {
        let refused = |error| Refusal::of(pid, how.asks(), error);
        match how {
            How::Events => {
                let period_ns = 1_000_000_000 / rate_hz.max(1);
                let mut source = Source::Events(Vec::new(), period_ns);
                for thread in threads {
                    source.add(thread.tid).map_err(refused)?;
                }
                Ok(source)
            }
            How::Stops => {
                let threads: Vec<u32> = threads.iter().map(|thread| thread.tid).collect();
                let stops = Stops::of(pid, &threads, rate_hz).map_err(refused)?;
                Ok(Source::Stops(stops))
            }
        }
    }

    /// Has moments of this thread come, too.
    fn add(&mut self, tid: u32) -> io::Result<()> {
        match self {
            Source::Events(events, period_ns) => {
                let event = Event::open(tid, *period_ns)?;
                event.enable()?;
                events.push(event);
                Ok(())
            }
            Source::Stops(stops) => stops.watch(tid),
        }
    }
}

/// Samples an emulator.
pub struct Sampler {
    target: Target,
    wanted: Threads,
    threads: Vec<Thread>,
    /// When it began, and when its threads were listed last.
    begun_ns: u64,
    listed_ns: u64,
    source: Source,
    /// How it looks.
    pub how: How,
    /// How often it looks at a second of a thread's running time.
    pub rate_hz: u64,
    known: FxHashSet<Pid>,
}

/// How long is waited for a sample before the caller is asked whether to go on.
const WAIT_NS: u64 = 50_000_000;

/// How often threads are listed: in the first seconds, in which an emulator that has just begun starts its schedulers,
/// and later.
const LIST_NS: [u64; 2] = [50_000_000, 1_000_000_000];
const FIRST_NS: u64 = 5_000_000_000;

/// The cost of stops is recorded after this many.
const STOPS_EACH: u64 = 64;

impl Sampler {
    /// Begins to sample, in the given way, or else in the first that the system allows: by events, or by stopping threads.
    ///
    /// # Errors
    /// When this user may not, or the emulator has no such threads.
    pub fn start(
        target: Target,
        threads: Threads,
        how: Option<How>,
        rate_hz: impl Fn(How) -> u64,
    ) -> Result<Sampler, Refusal> {
        let pid = target.emulator.pid;
        let mut all = target.emulator.threads()?;
        all.retain(|thread| threads.has(thread.kind));
        let open = |how| Ok((how, Source::open(pid, &all, how, rate_hz(how))?));
        let opened = match how {
            Some(how) => open(how),
            None => match open(How::Events) {
                // Where neither is allowed, the user hears of the better one.
                Err(refusal @ Refusal::NotAllowed(..)) => open(How::Stops).map_err(|_| refusal),
                opened => opened,
            },
        };
        let (how, source) = opened?;
        Ok(Sampler {
            target,
            wanted: threads,
            threads: all,
            begun_ns: monotonic_ns(),
            listed_ns: monotonic_ns(),
            source,
            how,
            rate_hz: rate_hz(how),
            known: FxHashSet::default(),
        })
    }

    /// The emulator.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The threads that it looks at.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Tells of what comes, until `goes_on` says no, or the emulator has ended.
    ///
    /// # Errors
    /// What `tell` returns, or the system says.
    pub fn run<E: From<io::Error>>(
        &mut self,
        mut goes_on: impl FnMut() -> bool,
        mut tell: impl FnMut(&Told<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut is_there = true;
        while is_there && goes_on() && !self.target.is_gone {
            self.list_again(&mut tell)?;
            is_there = match &mut self.source {
                Source::Events(events, _) => {
                    let ended = perf::wait(events, WAIT_NS)?;
                    for index in 0..ended.len() {
                        self.take(index, &mut tell)?;
                    }
                    self.drop_ended(&ended)
                }
                Source::Stops(stops) => !stops.wait(WAIT_NS) || self.turn(&mut tell)?,
            };
        }
        match &mut self.source {
            Source::Stops(stops) => tell(&Told::Stopped(stops.take_cost(0).unwrap_or_default())),
            Source::Events(..) => Ok(()),
        }
    }

    /// Looks from now on at threads that have come, or have got their names, since they were listed.
    fn list_again<E: From<io::Error>>(
        &mut self,
        tell: &mut impl FnMut(&Told<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let now_ns = monotonic_ns();
        let pause_ns = LIST_NS[usize::from(now_ns > self.begun_ns + FIRST_NS)];
        if now_ns < self.listed_ns + pause_ns {
            return Ok(());
        }
        self.listed_ns = now_ns;
        if !self.target.is_there() {
            return Ok(());
        }
        // An emulator that has ended has no threads, and the next wait says so.
        let all = self.target.emulator.threads().unwrap_or_default();
        for thread in all.iter().filter(|thread| self.wanted.has(thread.kind)) {
            let mut known = self.threads.iter_mut();
            match known.find(|known| known.tid == thread.tid) {
                Some(known) if known == thread => continue,
                Some(known) => *known = thread.clone(),
                None => match self.source.add(thread.tid) {
                    Ok(()) => self.threads.push(thread.clone()),
                    Err(error) if has_ended(&error) => continue,
                    Err(error) => return Err(error.into()),
                },
            }
            tell(&Told::Thread(thread))?;
        }
        Ok(())
    }

    /// Forgets the events of threads that have ended; whether any is left.
    fn drop_ended(&mut self, ended: &[bool]) -> bool {
        let Source::Events(events, _) = &mut self.source else {
            return true;
        };
        for (index, _) in ended.iter().enumerate().filter(|(_, ended)| **ended).rev() {
            let event = events.remove(index);
            self.threads.retain(|thread| thread.tid != event.tid);
        }
        !events.is_empty()
    }

    /// Tells of what has come of an event.
    fn take<E>(
        &mut self,
        index: usize,
        tell: &mut impl FnMut(&Told<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Source::Events(events, _) = &mut self.source else {
            return Ok(());
        };
        let event = &mut events[index];
        let Some(thread) = self.threads.iter().find(|thread| thread.tid == event.tid) else {
            return Ok(());
        };
        while let Some(came) = event.take_next() {
            match came {
                Came::Lost(count) => tell(&Told::Lost { thread, count })?,
                Came::Moment(moment) => {
                    tell_moment(&mut self.target, &mut self.known, thread, &moment, tell)?;
                }
            }
        }
        Ok(())
    }

    /// Looks at each thread once; whether any is there.
    fn turn<E>(&mut self, tell: &mut impl FnMut(&Told<'_>) -> Result<(), E>) -> Result<bool, E> {
        let Source::Stops(stops) = &mut self.source else {
            return Ok(false);
        };
        let Some(glances) = stops.turn() else {
            return Ok(false);
        };
        for (tid, glance) in glances {
            let Some(thread) = self.threads.iter().find(|thread| thread.tid == tid) else {
                continue;
            };
            match glance {
                Glance::Idle => {}
                Glance::Ended => self.threads.retain(|thread| thread.tid != tid),
                Glance::Held => tell(&Told::Lost { thread, count: 1 })?,
                Glance::Moment(moment) => {
                    tell_moment(&mut self.target, &mut self.known, thread, &moment, tell)?;
                }
            }
        }
        if let Some(cost) = stops.take_cost(STOPS_EACH) {
            tell(&Told::Stopped(cost))?;
        }
        Ok(true)
    }
}

/// Whether an error says that there is no such thread any more.
fn has_ended(error: &io::Error) -> bool {
    let no_process = rustix::io::Errno::SRCH.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(no_process)
}

/// Tells of a thread that was seen.
fn tell_moment<E>(
    target: &mut Target,
    known: &mut FxHashSet<Pid>,
    thread: &Thread,
    moment: &Moment,
    tell: &mut impl FnMut(&Told<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let look = &target.look(thread, moment);
    // What another program does looks like the runtime's own work.
    if look.does == Does::Runtime && !target.is_there() {
        return Ok(());
    }
    if let Some(pid) = look.pid()
        && known.insert(pid)
        && let Some(named) = target.named(look)
    {
        tell(&Told::Process(&named))?;
    }
    let time_ns = moment.time_ns;
    tell(&Told::Sample {
        time_ns,
        thread,
        look,
    })
}
