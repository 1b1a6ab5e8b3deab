//! The recorder: a tracer that writes what it hears into a ring file, from the thread on which it happens, without
//! a message or a term. `beamline record` asks for it in the environment.
//!
//! Calls come from breakpoints of a kind of its own, which ask no match specification; their returns are seen
//! by a frame of a kind of its own, and a tail call stays one. All other events come as to any tracer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use beamline_formats::profile::Pattern;
use beamline_formats::ring::{
    Anchor, Clock, Description, Error, Event as Told, Group, Id, Kind, Name, NameId, Options,
    Request, Ring, Segment, Settings, System, Trigger,
};
use beamline_formats::variable::Variable as _;
use parking_lot::{Mutex, RwLock};

use super::breakpoint::kind;
use super::meter::Measures;
use super::profile::is_wanted;
use super::session::{self, OnLoad, Profiled, Shared};
use super::tracer::{Event, Report, TracerId};
use super::{flags, sysmon};
use crate::code::module::{Mfa, all_versions, function_at};
use crate::process::Process;
use crate::sys::ticks::{self, Ticks};
use crate::sys::time;
use crate::term::{Atom, Pid, Term, View, am};

/// A run that is recorded.
struct Recorder {
    ring: Arc<Ring>,
    clock: Ticks,
    schedulers: usize,
    groups: Vec<Group>,
    patterns: Vec<Pattern>,
    triggers: Vec<Trigger>,
    sees_returns: bool,
    sees_tokens: bool,
    /// Written by all threads that are no schedulers.
    others: Mutex<Segment>,
    atoms: RwLock<HashMap<Atom, NameId>>,
    functions: RwLock<HashMap<Mfa, NameId>>,
    /// Labels of sequential tracing, as far as there was room for them.
    labels: RwLock<HashMap<String, NameId>>,
}

static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// There is a recorder, and its recording has not ended.
static ON: AtomicBool = AtomicBool::new(false);

fn recorder() -> Option<&'static Recorder> {
    RECORDER.get().filter(|_| ON.load(Ordering::Relaxed))
}

/// The segment that this thread writes.
enum Own {
    Unknown,
    Mine(Segment),
    Shared,
}

thread_local! {
    static OWN: RefCell<Own> = const { RefCell::new(Own::Unknown) };
}

/// Starts the recording that the environment asks for, if it does: call before any module is loaded. Where
/// there can be none, that is said on standard error, and the program runs without.
///
/// # Errors
/// One line when what the environment asks for cannot be understood.
pub fn start_from_environment(
    emulator: Vec<String>,
    otp: String,
    schedulers: usize,
) -> Result<(), String> {
    let Some(request) = Request::from_environment()? else {
        return Ok(());
    };
    let pid = std::process::id();
    let mut path = request.free_file(pid);
    let mut made = create(&request, &path, emulator.clone(), otp.clone(), schedulers);
    if matches!(made, Err(Error::Busy)) && path == request.file {
        // Another emulator of this run was faster.
        path = request.file_beside(pid);
        made = create(&request, &path, emulator, otp, schedulers);
    }
    match made {
        Ok(ring) => drop(begin(&request, ring, schedulers)),
        Err(error) => {
            let path = path.display();
            eprintln!("beamline: {path}: {error}; the program runs and is not recorded");
        }
    }
    Ok(())
}

fn anchor() -> Anchor {
    Anchor {
        ticks: Ticks::clock().now(),
        ns: time::os_monotonic_time().cast_unsigned(),
    }
}

pub(super) fn create(
    request: &Request,
    path: &std::path::Path,
    emulator: Vec<String>,
    otp: String,
    schedulers: usize,
) -> Result<Arc<Ring>, Error> {
    let options = Options {
        schedulers: schedulers as u32,
        ring_bytes: request.ring_bytes,
        when_full: request.when_full,
        token: request.token,
        clock: Clock {
            counter: Ticks::clock().is_counter(),
            ns_per_4g: ticks::to_ns(1 << 32),
            anchor,
            unix_ns: time::os_system_time().cast_unsigned(),
        },
        description: Description {
            beamline: request.beamline.clone(),
            otp,
            command: request.command.clone(),
            emulator,
            host: request.host.clone(),
            settings: Settings {
                events: request.events.iter().map(|g| g.name().to_owned()).collect(),
                patterns: request.patterns.iter().map(ToString::to_string).collect(),
                when_full: request.when_full,
            },
        },
    };
    Ring::create(path, &options)
}

/// Records from now on; gives the session, unless there are too many.
pub(super) fn begin(request: &Request, ring: Arc<Ring>, schedulers: usize) -> Option<Arc<Shared>> {
    let patterns = request.patterns.clone();
    let profiled = Profiled {
        measures: Measures::default(),
        only_count: false,
        wanted: Box::new(move |mfa| is_wanted(&patterns, mfa)),
        counters: Mutex::default(),
        accounts: Mutex::default(),
    };
    let name = Atom::new("beamline_record");
    let session = session::create(name, None, Some(profiled))?;
    let others = ring.segment(schedulers)?;
    let groups = request.events.clone();
    let recorder = Recorder {
        ring,
        clock: Ticks::clock(),
        schedulers,
        others: Mutex::new(others),
        atoms: RwLock::default(),
        functions: RwLock::default(),
        labels: RwLock::default(),
        sees_returns: groups.contains(&Group::Returns),
        sees_tokens: groups.contains(&Group::Seq),
        groups,
        patterns: request.patterns.clone(),
        triggers: request.triggers.clone(),
    };
    let recorder = RECORDER.get_or_init(|| recorder);
    ON.store(true, Ordering::Release);
    if recorder.has(Group::Calls) {
        *session.on_load.lock() = Some(OnLoad::counting(kind::RECORD));
    }
    if recorder.has(Group::System) {
        *session.monitor.lock() = monitor(&request.system);
        sysmon::update();
    }
    let (processes, ports) = recorder.flags();
    let tracer = Some(TracerId::Recorder);
    session.new_processes.lock().change(true, processes, tracer);
    session.new_ports.lock().change(true, ports, tracer);
    flags::update_new();
    if let Some(milliseconds) = request.duration_ms {
        let ended = session.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(milliseconds));
            end();
            super::end_later(ended);
        });
    }
    Some(session)
}

fn monitor(system: &System) -> sysmon::Monitor {
    sysmon::Monitor {
        is_recorded: true,
        long_gc: system.long_gc_ms,
        long_schedule: system.long_schedule_ms,
        large_heap: system.large_heap_words,
        long_message_queue: system.long_message_queue,
        busy_port: system.busy_port,
        ..sysmon::Monitor::default()
    }
}

/// Ends the recording, where there is one: also what is called when the machine ends.
pub fn end() {
    if ON.swap(false, Ordering::AcqRel)
        && let Some(recorder) = RECORDER.get()
    {
        recorder.ring.end();
        recorder.say_what_was_not_called();
    }
}

/// A function's name in the recording, found at its first call.
#[derive(Default)]
pub(super) struct Called {
    name: AtomicU32,
}

impl Called {
    #[inline(always)]
    fn name(&self, recorder: &Recorder, mfa: impl FnOnce() -> Mfa) -> NameId {
        match self.name.load(Ordering::Relaxed) {
            0 => {
                let name = recorder.function(mfa());
                self.name.store(name.0, Ordering::Relaxed);
                name
            }
            name => NameId(name),
        }
    }
}

/// What is to be done about the return of a call.
pub(super) enum OnReturn {
    /// It is seen already, or nobody wants to see it.
    Nothing,
    /// A frame is to be pushed that names the function.
    Push(NameId),
}

/// A call by `p`; `is_tail` says whether a frame on top of its stack sees the return.
#[inline]
pub(super) fn called(
    p: &Process,
    called: &Called,
    mfa: impl FnOnce() -> Mfa,
    is_tail: impl FnOnce() -> bool,
) -> OnReturn {
    let Some(recorder) = recorder() else {
        return OnReturn::Nothing;
    };
    let function = called.name(recorder, mfa);
    let sees_returns = recorder.sees_returns;
    if sees_returns && is_tail() {
        recorder.tell(p.pid(), &Told::TailCall { function });
        return OnReturn::Nothing;
    }
    recorder.tell(p.pid(), &Told::Call { function });
    match sees_returns {
        true => OnReturn::Push(function),
        false => OnReturn::Nothing,
    }
}

/// The call that was recorded under this name has returned.
#[inline]
pub(super) fn returned(p: &Process, function: NameId) {
    if let Some(recorder) = recorder() {
        recorder.tell(p.pid(), &Told::Return { function });
    }
}

/// An exception ends so many recorded calls; or all, where the whole stack goes.
pub(super) fn unwound(p: &Process, calls: u64) {
    if let Some(recorder) = recorder().filter(|_| calls > 0) {
        recorder.tell(p.pid(), &Told::Unwind { calls });
    }
}

/// `p` gives its stack up.
pub(crate) fn hibernates(p: &Process) {
    if let Some(recorder) = recorder()
        && recorder.sees_returns
    {
        unwound(p, u64::MAX);
    }
}

/// Are calls recorded, with their returns?
#[inline(always)]
pub(super) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A process was made that begins with this call.
pub(crate) fn born(pid: Pid, parent: Option<Pid>, call: (Atom, Atom, u8)) {
    if let Some(recorder) = recorder() {
        let (module, function, arity) = call;
        let function = recorder.function(Mfa {
            module,
            function,
            arity,
        });
        let (id, parent) = (id_of(pid), parent.map_or(Id::None, id_of));
        recorder.ring.name(Name::Process {
            id,
            parent,
            function,
        });
    }
}

/// A name was given to a process.
pub(crate) fn registered(pid: Pid, name: Atom) {
    if let Some(recorder) = recorder() {
        let name = recorder.atom(name);
        let id = id_of(pid);
        recorder.ring.name(Name::Registered { id, name });
    }
}

/// A scheduler starts to run `p`.
pub(super) fn scheduled_in(p: &Process) {
    if let Some(recorder) = recorder() {
        let function = recorder.current(p);
        recorder.tell(p.pid(), &Told::In { function });
    }
}

/// A scheduler has stopped running `p`.
pub(super) fn scheduled_out(p: &Process) {
    if let Some(recorder) = recorder() {
        let told = Told::Out {
            function: recorder.current(p),
            messages: p.mailbox.len() as u64,
            reductions: p.reductions(),
        };
        recorder.tell(p.pid(), &told);
    }
}

/// The heap of `p` is being collected: `words` is the need, or what was given back.
pub(super) fn collection(p: &Process, event: Event, words: usize) {
    let (words, used) = (words as u64, (p.used_words() + p.old_words().1) as u64);
    let told = match event {
        Event::GcMinorStart => Told::GcMinorStart { need: words, used },
        Event::GcMinorEnd => Told::GcMinorEnd {
            reclaimed: words,
            used,
        },
        Event::GcMajorStart => Told::GcMajorStart { need: words, used },
        Event::GcMajorEnd => Told::GcMajorEnd {
            reclaimed: words,
            used,
        },
        _ => Told::GcMaxHeapSize { used },
    };
    if let Some(recorder) = recorder() {
        recorder.tell(p.pid(), &told);
    }
}

/// Any other event, of a process or port.
pub(super) fn report(tracee: Term<'_>, report: &Report<'_>) {
    if let Some(recorder) = recorder() {
        recorder.report(recorder.id(tracee), report);
    }
}

/// The message queue of a process is long, or no longer so.
pub(super) fn queue(pid: Pid, is_long: bool, messages: usize) {
    if let Some(recorder) = recorder() {
        let told = Told::LongMessageQueue {
            is_long: u64::from(is_long),
            messages: messages as u64,
        };
        recorder.tell(pid, &told);
        if is_long {
            recorder.happened(Kind::LongMessageQueue, id_of(pid), "");
        }
    }
}

/// A system event of `id`, as its message tells it.
pub(super) fn system(id: Term<'_>, event: Atom, what: Term<'_>) {
    if let Some(recorder) = recorder() {
        recorder.system(recorder.id(id), event, what);
    }
}

/// What happens to a message with a sequential trace token.
pub(super) enum Passes {
    Sent,
    Received,
    Printed,
}

/// A sequential trace token, where it goes with a message or what is printed.
pub(super) struct Passed<'t> {
    pub(super) how: Passes,
    pub(super) label: Term<'t>,
    /// The serial its sender got last, and its own.
    pub(super) serial: (u64, u64),
    pub(super) from: Pid,
    pub(super) to: Term<'t>,
    pub(super) message: Term<'t>,
}

/// Are tokens of sequential tracing recorded?
pub(super) fn sees_tokens() -> bool {
    recorder().is_some_and(|recorder| recorder.sees_tokens)
}

/// A token has been passed on.
pub(super) fn passed(passed: &Passed<'_>) {
    if let Some(recorder) = recorder().filter(|recorder| recorder.sees_tokens) {
        recorder.passed(passed);
    }
}

/// The value of `key` in a list of pairs.
fn value<'h>(pairs: Term<'h>, key: Atom) -> Option<Term<'h>> {
    pairs.list_iter().flatten().find_map(|pair| {
        let [name, value] = *pair.as_tuple()?.elements() else {
            return None;
        };
        (name == key).then_some(value)
    })
}

fn number(term: Option<Term<'_>>) -> u64 {
    term.and_then(Term::as_index).unwrap_or(0) as u64
}

fn id_of(pid: Pid) -> Id {
    Id::Process(pid.0)
}

/// Parts of a term, and bytes of its text, that a record holds.
const PARTS: i64 = 24;
const TEXT: usize = 120;

fn text_of(term: Term<'_>) -> String {
    let bytes = term.display_cut(PARTS).to_bytes();
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    text.truncate(text.floor_char_boundary(TEXT));
    text
}

fn is_meant(pattern: &Pattern, mfa: &Mfa) -> bool {
    pattern.matches(mfa.module.name(), mfa.function.name(), u32::from(mfa.arity))
}

impl Recorder {
    /// Names the patterns that chose nothing.
    fn say_what_was_not_called(&self) {
        let called = self.functions.read();
        for pattern in &self.patterns {
            if called.keys().any(|mfa| is_meant(pattern, mfa)) {
                continue;
            }
            let all = all_versions();
            let functions = all.iter().flat_map(|code| {
                let functions = code.functions.iter();
                functions.map(|entry| code.mfa(*entry))
            });
            let functions: Vec<Mfa> = functions.collect();
            if functions.iter().any(|mfa| is_meant(pattern, mfa)) {
                eprintln!("beamline: no function of {pattern} was called");
                continue;
            }
            let names = functions
                .iter()
                .map(|mfa| (mfa.module.name(), mfa.function.name(), mfa.arity.into()));
            let near = pattern.near(names).join(", ");
            let near = match near.as_str() {
                "" => near,
                _ => format!("; near it: {near}"),
            };
            eprintln!("beamline: no function that was loaded is {pattern}{near}");
        }
    }

    fn has(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }

    /// Flags of new processes and ports.
    fn flags(&self) -> (u32, u32) {
        let (mut processes, mut ports) = (0, 0);
        for group in &self.groups {
            processes |= match group {
                Group::Calls | Group::Returns => flags::CALL,
                Group::Messages => flags::SEND | flags::RECEIVE,
                Group::Processes => flags::PROCS,
                Group::Scheduling => flags::RUNNING | flags::EXITING,
                Group::Gc => flags::GARBAGE_COLLECTION,
                Group::Ports | Group::System | Group::Seq => 0,
            };
            ports |= match group {
                Group::Messages => flags::SEND | flags::RECEIVE,
                Group::Ports => flags::PORTS | flags::RUNNING_PORTS,
                _ => 0,
            };
        }
        (processes, ports)
    }

    #[inline]
    fn tell(&self, pid: Pid, told: &Told<'_>) {
        self.write(id_of(pid), told);
    }

    #[inline]
    fn write(&self, subject: Id, told: &Told<'_>) {
        let ticks = self.clock.now();
        let done = OWN.try_with(|own| match &mut *own.borrow_mut() {
            Own::Mine(segment) => {
                segment.write(ticks, subject, told);
                true
            }
            Own::Shared => false,
            own @ Own::Unknown => {
                let id = crate::sched::current_id().filter(|id| *id < self.schedulers);
                match id.and_then(|id| self.ring.segment(id)) {
                    Some(mut segment) => {
                        segment.write(ticks, subject, told);
                        *own = Own::Mine(segment);
                        true
                    }
                    None => {
                        *own = Own::Shared;
                        false
                    }
                }
            }
        });
        if !matches!(done, Ok(true)) {
            self.others.lock().write(ticks, subject, told);
        }
    }

    fn atom(&self, atom: Atom) -> NameId {
        known(&self.atoms, atom, || {
            self.ring.name(Name::Atom(atom.name()))
        })
    }

    fn function(&self, mfa: Mfa) -> NameId {
        known(&self.functions, mfa, || {
            let (module, name) = (self.atom(mfa.module), self.atom(mfa.function));
            let arity = mfa.arity;
            self.ring.name(Name::Function {
                module,
                name,
                arity,
            })
        })
    }

    /// The function that `p` is in.
    fn current(&self, p: &Process) -> NameId {
        let pc = p.pc.get();
        if pc.is_null() {
            let (module, function, arity) = p.initial_call.get();
            return self.function(Mfa {
                module,
                function,
                arity,
            });
        }
        function_at(pc).map_or(NameId::NONE, |mfa| self.function(mfa))
    }

    fn id(&self, term: Term<'_>) -> Id {
        match term.view() {
            View::Pid(pid) => id_of(pid),
            View::Port(port) => Id::Port(port.0),
            _ => term
                .as_atom()
                .map_or(Id::None, |name| Id::Name(self.atom(name))),
        }
    }

    fn name(&self, term: Term<'_>) -> NameId {
        term.as_atom().map_or(NameId::NONE, |name| self.atom(name))
    }

    /// The function of `{M, F, Args}`.
    fn call(&self, term: Option<Term<'_>>) -> NameId {
        let function = term.and_then(Term::as_tuple).and_then(|call| {
            let [module, function, args] = *call.elements() else {
                return None;
            };
            Some(Mfa {
                module: module.as_atom()?,
                function: function.as_atom()?,
                arity: args.list_iter().count() as u8,
            })
        });
        function.map_or(NameId::NONE, |mfa| self.function(mfa))
    }

    /// The function of `{M, F, Arity}`.
    fn place(&self, term: Option<Term<'_>>) -> NameId {
        let function = term.and_then(Term::as_tuple).and_then(|place| {
            let [module, function, arity] = *place.elements() else {
                return None;
            };
            Some(Mfa {
                module: module.as_atom()?,
                function: function.as_atom()?,
                arity: arity.as_index()? as u8,
            })
        });
        function.map_or(NameId::NONE, |mfa| self.function(mfa))
    }

    /// The name of a label: its text, whatever term it is.
    fn label(&self, label: Term<'_>) -> NameId {
        let text = text_of(label);
        if let Some(name) = self.labels.read().get(&text) {
            return *name;
        }
        // One that two threads see first has two names, and the same text.
        let name = self.ring.name(Name::Label(&text));
        if name != NameId::NONE {
            self.labels.write().insert(text, name);
        }
        name
    }

    fn passed(&self, passed: &Passed<'_>) {
        let (label, text) = (self.label(passed.label), text_of(passed.message));
        let ((last, serial), text) = (passed.serial, text.as_str());
        let from = id_of(passed.from);
        let to = self.id(passed.to);
        let (subject, told) = match passed.how {
            Passes::Sent => (
                from,
                Told::SeqSend {
                    to,
                    label,
                    last,
                    serial,
                    text,
                },
            ),
            Passes::Received => (
                to,
                Told::SeqReceive {
                    from,
                    label,
                    last,
                    serial,
                    text,
                },
            ),
            Passes::Printed => (
                from,
                Told::SeqPrint {
                    label,
                    last,
                    serial,
                    text,
                },
            ),
        };
        self.write(subject, &told);
    }

    fn system(&self, subject: Id, event: Atom, what: Term<'_>) {
        let ms = || number(value(what, am::timeout));
        let told = match event {
            am::long_gc => Told::LongGc { ms: ms() },
            am::long_schedule => Told::LongSchedule {
                ms: ms(),
                from: self.place(value(what, am::in_)),
                to: self.place(value(what, am::out)),
            },
            am::large_heap => Told::LargeHeap {
                words: number(value(what, am::heap_block_size))
                    + number(value(what, am::old_heap_block_size)),
            },
            am::busy_port => Told::BusyPort {
                port: self.id(what),
            },
            _ => return,
        };
        self.write(subject, &told);
        if let Some(kind) = told.kind() {
            self.happened(kind, subject, "");
        }
    }

    /// Says so where it is waited for.
    fn happened(&self, kind: Kind, who: Id, reason: &str) {
        if self.triggers.iter().any(|wanted| wanted.is(kind, reason)) {
            self.ring.trigger(kind, who);
        }
    }

    fn report(&self, subject: Id, report: &Report<'_>) {
        let term = report.term;
        let extra = |report: &Report<'_>| self.id(report.extra.unwrap_or(Term::NIL));
        let text;
        let told = match report.event {
            Event::Send | Event::SendToNonExisting | Event::Receive => {
                text = text_of(term);
                match report.event {
                    Event::Send => Told::Send {
                        to: extra(report),
                        text: &text,
                    },
                    Event::Receive => Told::Receive { text: &text },
                    _ => Told::SendToNonExisting {
                        to: extra(report),
                        text: &text,
                    },
                }
            }
            Event::Spawn => Told::Spawn {
                child: self.id(term),
                function: self.call(report.extra),
            },
            Event::Spawned => Told::Spawned {
                parent: self.id(term),
                function: self.call(report.extra),
            },
            Event::Exit | Event::Closed => {
                text = text_of(term);
                match report.event {
                    Event::Exit => Told::Exit { text: &text },
                    _ => Told::Closed { text: &text },
                }
            }
            event => match self.simple(event, report) {
                Some(told) => told,
                None => return,
            },
        };
        self.write(subject, &told);
        if let Told::Exit { text } = told {
            self.happened(Kind::Exit, subject, text);
        }
    }

    /// Events without a text.
    fn simple(&self, event: Event, report: &Report<'_>) -> Option<Told<'static>> {
        let (name, other) = (|| self.name(report.term), || self.id(report.term));
        Some(match event {
            Event::Register => Told::Register { name: name() },
            Event::Unregister => Told::Unregister { name: name() },
            Event::Link => Told::Link { other: other() },
            Event::Unlink => Told::Unlink { other: other() },
            Event::GettingLinked => Told::GettingLinked { other: other() },
            Event::GettingUnlinked => Told::GettingUnlinked { other: other() },
            Event::InExiting => Told::InExiting {},
            Event::OutExiting => Told::OutExiting {},
            Event::OutExited => Told::OutExited {},
            Event::Open => Told::Open {
                owner: other(),
                driver: self.name(report.extra?),
            },
            Event::PortIn => Told::PortIn { command: name() },
            Event::PortOut => Told::PortOut { command: name() },
            // Calls come by themselves; so do turns and collections.
            _ => return None,
        })
    }
}

/// The name of `key`, made when it is asked for first.
fn known<K: Copy + Eq + Hash>(
    all: &RwLock<HashMap<K, NameId>>,
    key: K,
    make: impl FnOnce() -> NameId,
) -> NameId {
    if let Some(name) = all.read().get(&key) {
        return *name;
    }
    let name = make();
    *all.write().entry(key).or_insert(name)
}
