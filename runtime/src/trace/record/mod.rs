//! The recorder: a tracer that writes events to a ring file. It does so on the thread on which they happen, without a
//! message or a term. `beamline record` asks for it in the environment.
//!
//! Calls come from breakpoints of a kind of its own, which have no match specification. A frame of a kind of its own
//! sees their returns, and a tail call stays one. All other events come as to any tracer.

mod counters;
pub(crate) mod dist;
mod held;
pub(crate) mod native_functions;
pub(in crate::trace) mod net;
mod order;
pub(in crate::trace) mod reports;
pub(in crate::trace) mod spent;

use std::cell::RefCell;
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use beamline_formats::profile::{Native, Origin, Pattern};
use beamline_formats::ring::{
    Anchor, Clock, DIRTY_CPU, DIRTY_IO, Description, Event as RingEvent, Group, Id, Name, NameId,
    Request, Ring, RingOptions, Segment, Settings, Trigger,
};
use beamline_settings::variable::Variable as _;
use parking_lot::{Mutex, RwLock};

use super::breakpoint::change::end_later;
use super::breakpoint::{Called, current_native};
use super::costs::account::Measures;
use super::costs::known::{self, Known};
use super::costs::nature::of_dirty;
use super::measure::meters::note_known;
use super::run::origin::Origins;
use super::run::patterns::is_wanted;
use super::run::{patterns, span};
use super::session::system_event::SystemEvent;
use super::session::tracer::{Event, Report, TracerId};
use super::session::{self, OnLoad, Profiled, Shared};
use super::session::{flags, kind, monitor};
use crate::exec::dirty;
use crate::hash::HashMap;
use crate::loader::module::{Mfa, function_at};
use crate::process::{Dirty, Peer, Process};
use crate::sys::chance::ticks::{self, Ticks};
use crate::sys::chance::{self, clock};
use crate::sys::stderr::complain;
use crate::term::{Atom, Pid, Term, am};
use counters::Counting;
pub(in crate::trace) use native_functions::found_native;
pub(crate) use order::time_passes;
pub(in crate::trace) use order::{
    accessed, how_of, is_in_application, ordered, ordered_again, part_of, sited,
};
pub(in crate::trace) use reports::{Passed, Passes};
use spent::SpentWanted;

/// A run that is recorded.
struct Recorder {
    ring: Arc<Ring>,
    clock: Ticks,
    schedulers: usize,
    groups: Vec<Group>,
    patterns: Vec<Pattern>,
    /// The folder of the request: for notes on patterns that match nothing, and on the span.
    folder: PathBuf,
    triggers: Vec<Trigger>,
    sees_returns: bool,
    sees_tokens: bool,
    spends: SpentWanted,
    counting: Option<Counting>,
    /// Those of schedulers that no thread writes now.
    laid_down: Box<[Mutex<Option<Segment>>]>,
    /// Written by all threads that are no schedulers.
    others: Mutex<Segment>,
    atoms: RwLock<HashMap<Atom, NameId>>,
    functions: RwLock<HashMap<Mfa, NameId>>,
    modules: RwLock<HashMap<Atom, NameId>>,
    /// The functions that the recording knows as native code.
    natives: RwLock<HashMap<NameId, Native>>,
    /// Whose the modules are, where their calls are recorded.
    origins: Option<Origins>,
    /// Labels of sequential tracing, as far as there was room for them.
    labels: RwLock<HashMap<String, NameId>>,
}

static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// There is a recorder, and its recording has begun and not ended.
static ON: AtomicBool = AtomicBool::new(false);

/// There is a recorder, and its recording has not ended: names are never too early.
static NAMES: AtomicBool = AtomicBool::new(false);

fn recorder() -> Option<&'static Recorder> {
    RECORDER.get().filter(|_| ON.load(Ordering::Relaxed))
}

/// The recorder, also before it begins to record.
fn namer() -> Option<&'static Recorder> {
    RECORDER.get().filter(|_| NAMES.load(Ordering::Relaxed))
}

/// Whether there is a recording of this run.
pub(in crate::trace) fn is_asked() -> bool {
    RECORDER.get().is_some()
}

/// The segment that this thread writes.
enum ThreadSegment {
    Unknown,
    Mine(Segment),
    Shared,
}

/// This thread has become scheduler `id`: it writes that one's segment.
pub(crate) fn sit_down(id: usize) {
    if let Some(recorder) = RECORDER.get() {
        let laid_down = recorder.laid_down.get(id).and_then(|it| it.lock().take());
        OWN.set(laid_down.map_or(ThreadSegment::Unknown, ThreadSegment::Mine));
    }
}

/// This thread is scheduler `id` no more.
pub(crate) fn stand_up(id: usize) {
    if let Some(recorder) = RECORDER.get()
        && let ThreadSegment::Mine(segment) = OWN.replace(ThreadSegment::Shared)
        && let Some(place) = recorder.laid_down.get(id)
    {
        *place.lock() = Some(segment);
    }
}

thread_local! {
    static OWN: RefCell<ThreadSegment> = const { RefCell::new(ThreadSegment::Unknown) };
}

/// Starts the recording that the environment asks for, if it does: call before any module is loaded. Where
/// there can be none, that is said on standard error, and the program runs without.
///
/// # Errors
/// One line when what the environment asks for cannot be understood.
pub(crate) fn start_from_environment(
    emulator: Vec<String>,
    otp: String,
    schedulers: usize,
) -> Result<(), String> {
    let Some(mut request) = Request::from_environment()? else {
        return Ok(());
    };
    request.counters = counters::available(&request.counters);
    request.libraries.add_those_of(&emulator);
    let options = ring_options(&request, emulator, otp, schedulers);
    match request.create_ring(&options) {
        Ok(ring) => drop(begin(&request, ring, schedulers)),
        Err((path, error)) => {
            let path = path.display();
            complain!("beamline: {path}: {error}; the program runs and is not recorded");
        }
    }
    Ok(())
}

fn anchor() -> Anchor {
    Anchor {
        ticks: Ticks::clock().now(),
        ns: clock::outside_monotonic_ns(),
    }
}

pub(in crate::trace) fn ring_options(
    request: &Request,
    emulator: Vec<String>,
    otp: String,
    schedulers: usize,
) -> RingOptions {
    RingOptions {
        schedulers: schedulers as u32,
        ring_bytes: request.ring_bytes,
        when_full: request.when_full,
        token: request.token,
        clock: Clock {
            counter: Ticks::clock().is_counter(),
            ns_per_4g: ticks::to_ns(1 << 32),
            anchor,
            unix_ns: clock::outside_system_ns(),
        },
        description: Description {
            beamline: request.beamline.clone(),
            otp,
            command: request.command.clone(),
            emulator,
            host: request.host.clone(),
            deterministic: chance::form().is_virtual(),
            settings: Settings {
                events: request.events.iter().map(|g| g.name().to_owned()).collect(),
                patterns: request.patterns.clone(),
                counters: request
                    .counters
                    .iter()
                    .map(|c| c.name().to_owned())
                    .collect(),
                when_full: request.when_full,
                sampling: None,
            },
        },
    }
}

/// Records from now on; gives the session, unless there are too many.
pub(in crate::trace) fn begin(
    request: &Request,
    ring: Arc<Ring>,
    schedulers: usize,
) -> Option<Arc<Shared>> {
    let patterns = request.patterns.clone();
    let profiled = Profiled {
        measures: Measures::default(),
        only_count: false,
        wanted: Box::new(move |mfa| is_wanted(&patterns, mfa)),
        counters: Mutex::default(),
        accounts: Mutex::default(),
        natives: Mutex::default(),
    };
    let name = Atom::new("beamline_record");
    let session = session::create(name, None, Some(profiled), None).ok()?;
    let others = ring.segment(schedulers)?;
    let groups = request.events.clone();
    let recorder = Recorder {
        ring,
        clock: Ticks::clock(),
        schedulers,
        laid_down: (0..schedulers).map(|_| Mutex::default()).collect(),
        others: Mutex::new(others),
        atoms: RwLock::default(),
        functions: RwLock::default(),
        labels: RwLock::default(),
        modules: RwLock::default(),
        natives: RwLock::default(),
        origins: [Group::Calls, Group::Sites]
            .iter()
            .any(|group| groups.contains(group))
            .then(|| Origins::new(&request.libraries)),
        folder: request.folder.clone(),
        sees_returns: groups.contains(&Group::Returns),
        sees_tokens: groups.contains(&Group::Seq),
        spends: SpentWanted::of(&groups),
        groups,
        patterns: request.patterns.clone(),
        triggers: request.triggers.clone(),
        counting: Counting::begin(&request.counters),
    };
    let recorder = RECORDER.get_or_init(|| recorder);
    recorder.ask();
    NAMES.store(true, Ordering::Release);
    ON.store(request.span.begins_at_once(), Ordering::Release);
    if recorder.has(Group::Calls) {
        *session.on_load.lock() = Some(OnLoad::counting(kind::RECORD));
    }
    if recorder.has(Group::System) {
        *session.monitor.lock() = reports::monitor(&request.system);
        monitor::update();
    }
    let (processes, ports) = recorder.flags();
    let tracer = Some(TracerId::Recorder);
    session.new_processes.lock().change(true, processes, tracer);
    session.new_ports.lock().change(true, ports, tracer);
    flags::update_new();
    let ended = session.clone();
    let switch = span::Switch {
        begin: Box::new(begin_later),
        end: Box::new(move || {
            end();
            end_later(ended.clone());
        }),
    };
    span::follow(&request.span, &request.folder, switch);
    if request.ends_with_command() {
        span::end_with_command(&request.folder);
    }
    Some(session)
}

/// Begins what was to be recorded later.
fn begin_later() {
    ON.store(true, Ordering::SeqCst);
    if !NAMES.load(Ordering::SeqCst) {
        // The machine has ended the recording meanwhile.
        ON.store(false, Ordering::SeqCst);
    }
}

/// Ends the recording, where there is one: also what is called when the machine ends.
pub(crate) fn end() {
    let is_end = NAMES.swap(false, Ordering::SeqCst);
    let was_on = ON.swap(false, Ordering::SeqCst);
    if let Some(recorder) = RECORDER.get().filter(|_| is_end) {
        if was_on && recorder.has(Group::Gc) {
            held::tables(recorder);
        }
        if was_on && let Some(counted) = recorder.counting.as_ref().and_then(Counting::all) {
            let [first, second, third, fourth] = counted;
            let ring_event = RingEvent::CountedAll {
                first,
                second,
                third,
                fourth,
            };
            recorder.write(Id::None, &ring_event);
        }
        recorder.ring.end();
        recorder.say_what_was_not_called();
        span::note_written();
    }
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

/// What to do for the return of a call.
pub(in crate::trace) enum OnReturn {
    /// It is seen already, or nobody wants to see it.
    Nothing,
    /// A frame is to be pushed that names the function.
    Push(NameId),
}

/// A call by `p`; `is_tail` says whether a frame on top of its stack sees the return.
#[inline]
pub(in crate::trace) fn called(
    p: &Process,
    called: &Called,
    mfa: impl Fn() -> Mfa,
    is_tail: impl FnOnce() -> bool,
) -> OnReturn {
    let Some(recorder) = recorder() else {
        return OnReturn::Nothing;
    };
    let function = called.name(recorder, &mfa);
    recorder.spent(p, Some(&mfa));
    let sees_returns = recorder.sees_returns;
    if sees_returns && is_tail() {
        recorder.tell(p.pid(), &RingEvent::TailCall { function });
        return OnReturn::Nothing;
    }
    recorder.tell(p.pid(), &RingEvent::Call { function });
    match sees_returns {
        true => OnReturn::Push(function),
        false => OnReturn::Nothing,
    }
}

/// The call that was recorded under this name has returned.
#[inline]
pub(in crate::trace) fn returned(p: &Process, function: NameId) {
    if let Some(recorder) = recorder() {
        recorder.spent(p, None);
        recorder.tell(p.pid(), &RingEvent::Return { function });
    }
}

/// An exception ends `calls` recorded calls; or all, where the whole stack goes.
pub(in crate::trace) fn unwound(p: &Process, calls: u64) {
    if let Some(recorder) = recorder().filter(|_| calls > 0) {
        recorder.spent(p, None);
        recorder.tell(p.pid(), &RingEvent::Unwind { calls });
    }
}

/// `p` gives its stack up.
pub(crate) fn record_hibernation(p: &Process) {
    if let Some(recorder) = recorder()
        && recorder.sees_returns
    {
        unwound(p, u64::MAX);
    }
}

/// Are calls recorded, with their returns?
#[inline(always)]
pub(in crate::trace) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A process was made that begins with this call.
pub(crate) fn born(pid: Pid, parent: Option<Pid>, call: (Atom, Atom, u8), args: Term<'_>) {
    if let Some(recorder) = namer() {
        recorder.record_initial_call(pid, parent, first_called(call, args));
    }
}

/// The function that a process is known by whose first call this is.
pub(in crate::trace) fn first_called(call: (Atom, Atom, u8), args: Term<'_>) -> Mfa {
    fun_of(call, args).unwrap_or_else(|| mfa_of(call))
}

/// `erlang:apply/2` says nothing of what a process does: the function of its fun does.
fn fun_of(call: (Atom, Atom, u8), args: Term<'_>) -> Option<Mfa> {
    if call != (am::erlang, am::apply, 2) {
        return None;
    }
    let fun = args.list_iter().next()?.ok()?.as_fun()?;
    function_at(fun.entry()?.address())
}

fn mfa_of((module, function, arity): (Atom, Atom, u8)) -> Mfa {
    Mfa {
        module,
        function,
        arity,
    }
}

/// `p` puts something into its dictionary: `proc_lib` does so with what a process is known by.
#[inline]
pub(crate) fn note_dictionary_put(p: &Process, key: Term<'_>, value: Term<'_>) {
    let recorder = namer();
    if recorder.is_none() && p.meters.is_none() {
        return;
    }
    let Some(known) = key.as_atom().and_then(|key| known::of(key, value)) else {
        return;
    };
    note_known(p, &known);
    match (recorder, known) {
        (Some(recorder), Known::Call(called)) => {
            recorder.record_initial_call(p.pid(), p.parent().pid(), called);
        }
        (Some(recorder), Known::Label(text)) => {
            let (id, label) = (id_of(p.pid()), recorder.label_text(text));
            recorder.ring.name(Name::Labelled { id, label });
        }
        (None, _) => {}
    }
}

/// A name was given to a process.
pub(crate) fn registered(pid: Pid, name: Atom) {
    if let Some(recorder) = namer() {
        let name = recorder.atom(name);
        let id = id_of(pid);
        recorder.ring.name(Name::Registered { id, name });
    }
}

/// A scheduler starts to run `p`.
pub(in crate::trace) fn scheduled_in(p: &Process) {
    if let Some(recorder) = recorder() {
        let function = recorder.current(p);
        recorder.tell(p.pid(), &RingEvent::In { function });
        recorder.slice_begins();
    }
}

/// A scheduler has stopped running `p`.
pub(in crate::trace) fn scheduled_out(p: &Process) {
    if let Some(recorder) = recorder() {
        let ring_event = RingEvent::Out {
            function: recorder.current(p),
            messages: p.mailbox.len() as u64,
            reductions: p.reductions(),
        };
        recorder.record_counters(id_of(p.pid()));
        recorder.tell(p.pid(), &ring_event);
    }
}

/// `p` is about to wait for a dirty scheduler.
pub(in crate::trace) fn dirty_waits(p: &Process, dirty: Dirty) {
    let Some(recorder) = recorder() else { return };
    if let Some(mfa) = current_native(p) {
        let function = recorder.function(mfa);
        recorder.native(function, of_dirty(dirty));
    }
    let kind = kind_number(dirty);
    recorder.tell(p.pid(), &RingEvent::DirtyQueued { kind });
}

/// A dirty scheduler, this thread, begins or ends the call that `p` stands in for.
pub(in crate::trace) fn record_dirty_switch(p: &Process, event: Event) {
    let (Some(recorder), Some((dirty, number))) = (recorder(), dirty::scheduler()) else {
        return;
    };
    let function = recorder.current(p);
    if event == Event::In {
        let ring_event = RingEvent::DirtyIn {
            function,
            kind: kind_number(dirty),
            scheduler: number as u64,
        };
        recorder.tell(p.pid(), &ring_event);
        recorder.slice_begins();
    } else {
        recorder.record_counters(id_of(p.pid()));
        recorder.tell(p.pid(), &RingEvent::DirtyOut { function });
    }
}

/// The number of a kind of dirty schedulers in records.
fn kind_number(dirty: Dirty) -> u64 {
    match dirty {
        Dirty::Cpu => DIRTY_CPU,
        Dirty::Io => DIRTY_IO,
    }
}

/// The heap of `p` is being collected: `words` is the need, or what was given back.
pub(in crate::trace) fn collection(p: &Process, event: Event, words: usize) {
    let (words, used) = (words as u64, (p.used_words() + p.old_words().1) as u64);
    let ring_event = match event {
        Event::GcMinorStart => RingEvent::GcMinorStart { need: words, used },
        Event::GcMinorEnd => RingEvent::GcMinorEnd {
            reclaimed: words,
            used,
        },
        Event::GcMajorStart => RingEvent::GcMajorStart { need: words, used },
        Event::GcMajorEnd => RingEvent::GcMajorEnd {
            reclaimed: words,
            used,
        },
        _ => RingEvent::GcMaxHeapSize { used },
    };
    if let Some(recorder) = recorder() {
        recorder.tell(p.pid(), &ring_event);
        if matches!(event, Event::GcMinorEnd | Event::GcMajorEnd) {
            held::binaries(recorder, p, event == Event::GcMajorEnd);
        }
    }
}

/// Any other event, of a process or port.
pub(in crate::trace) fn report(tracee: Term<'_>, report: &Report<'_>) {
    if let Some(recorder) = recorder() {
        let subject = recorder.id(tracee);
        match report.event {
            Event::OutExiting | Event::OutExited => recorder.record_counters(subject),
            _ => {}
        }
        recorder.report(subject, report);
        if report.event == Event::InExiting {
            recorder.slice_begins();
        }
    }
}

/// A system event of a process or a port.
pub(in crate::trace) fn system(who: Peer, event: &SystemEvent) {
    if let Some(recorder) = recorder() {
        who.with_term(|who| recorder.system(recorder.id(who), event));
    }
}

/// A process has made another, `relative`, or has been made by it, to begin with this call: module, function
/// and arguments.
pub(in crate::trace) fn spawned(pid: Pid, event: Event, relative: Pid, call: [Term<'_>; 3]) {
    if let Some(recorder) = recorder() {
        recorder.spawned(id_of(pid), event, id_of(relative), call);
    }
}

/// Are tokens of sequential tracing recorded?
pub(in crate::trace) fn sees_tokens() -> bool {
    recorder().is_some_and(|recorder| recorder.sees_tokens)
}

/// A token has been passed on.
pub(in crate::trace) fn passed(passed: &Passed<'_>) {
    if let Some(recorder) = recorder().filter(|recorder| recorder.sees_tokens) {
        recorder.passed(passed);
    }
}

pub(crate) fn id_of(pid: Pid) -> Id {
    Id::Process(pid.0)
}

impl Recorder {
    /// Names the patterns that chose nothing.
    fn say_what_was_not_called(&self) {
        let called = self.functions.read();
        patterns::tell(&self.patterns, &self.folder, |pattern| {
            called.keys().any(|mfa| patterns::is_meant(pattern, mfa))
        });
    }

    /// Has those asked for what no tracer gets.
    fn ask(&self) {
        if self.has(Group::Order) {
            order::begin(self.has(Group::Sites));
        }
        if self.has(Group::Net) {
            net::begin();
        }
        if self.has(Group::Dist) {
            dist::begin();
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
                Group::Calls | Group::Returns | Group::Words | Group::Reductions => flags::CALL,
                Group::Messages => flags::SEND | flags::RECEIVE,
                Group::Processes => flags::PROCS,
                Group::Scheduling => flags::RUNNING | flags::EXITING,
                Group::Gc => flags::GARBAGE_COLLECTION,
                Group::Ports
                | Group::Net
                | Group::Dist
                | Group::System
                | Group::Seq
                | Group::Counters
                | Group::Order
                | Group::Sites
                | Group::Samples => 0,
            };
            ports |= match group {
                Group::Messages => flags::SEND | flags::RECEIVE,
                Group::Ports => flags::PORTS | flags::RUNNING_PORTS,
                _ => 0,
            };
        }
        (processes, ports)
    }

    fn slice_begins(&self) {
        if let Some(counting) = &self.counting {
            counting.slice_begins();
        }
    }

    fn record_counters(&self, subject: Id) {
        if let Some(counted) = self.counting.as_ref().and_then(Counting::counted) {
            let [first, second, third, fourth] = counted;
            let ring_event = RingEvent::Counted {
                first,
                second,
                third,
                fourth,
            };
            self.write(subject, &ring_event);
        }
    }

    #[inline]
    fn tell(&self, pid: Pid, event: &RingEvent<'_>) {
        self.write(id_of(pid), event);
    }

    #[inline]
    fn write(&self, subject: Id, event: &RingEvent<'_>) {
        let ticks = self.clock.now();
        let done = OWN.try_with(|own| match &mut *own.borrow_mut() {
            ThreadSegment::Mine(segment) => {
                segment.write(ticks, subject, event);
                true
            }
            ThreadSegment::Shared => false,
            own @ ThreadSegment::Unknown => {
                let id = crate::sched::current_id().filter(|id| *id < self.schedulers);
                match id.and_then(|id| self.ring.segment(id)) {
                    Some(mut segment) => {
                        segment.write(ticks, subject, event);
                        *own = ThreadSegment::Mine(segment);
                        true
                    }
                    None => {
                        *own = ThreadSegment::Shared;
                        false
                    }
                }
            }
        });
        if !matches!(done, Ok(true)) {
            self.others.lock().write(ticks, subject, event);
        }
    }

    fn atom(&self, atom: Atom) -> NameId {
        known(&self.atoms, atom, || {
            self.ring.name(Name::Atom(atom.name()))
        })
    }

    fn function(&self, mfa: Mfa) -> NameId {
        known(&self.functions, mfa, || {
            let (module, name) = (self.module(mfa.module), self.atom(mfa.function));
            let arity = mfa.arity;
            self.ring.name(Name::Function {
                module,
                name,
                arity,
            })
        })
    }

    fn module(&self, module: Atom) -> NameId {
        known(&self.modules, module, || {
            let (name, origin) = (self.atom(module), self.origin(module));
            if origin != Origin::App {
                self.ring.name(Name::Module { name, origin });
            }
            name
        })
    }

    /// Whose a module is, where that is asked for.
    fn origin(&self, module: Atom) -> Origin {
        let origins = self.origins.as_ref();
        origins.map_or(Origin::App, |origins| origins.of(module))
    }

    /// The call that a process is known by from now on.
    fn record_initial_call(&self, pid: Pid, parent: Option<Pid>, called: Mfa) {
        let function = self.function(called);
        let (id, parent) = (id_of(pid), parent.map_or(Id::None, id_of));
        self.ring.name(Name::Process {
            id,
            parent,
            function,
        });
    }

    /// The function that `p` is in.
    fn current(&self, p: &Process) -> NameId {
        let pc = p.pc.get();
        if pc.is_null() {
            return self.function(mfa_of(p.initial_call.get()));
        }
        function_at(pc).map_or(NameId::NONE, |mfa| self.function(mfa))
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
