//! Who hears what is traced, and the messages they get: one row an event, one builder for all. Source:
//! `erl_tracer_nif.c`, `send_to_tracer_nif_raw()` in `erl_trace.c`, OTP 29.

use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use super::flags;
use crate::heap::{Heap, Message};
use crate::process::{self, Signal, ports};
use crate::term::{Atom, Pid, Port, Term, View, am};

macro_rules! events {
    ($($(#[doc = $doc:literal])* $name:ident => $atom:ident, $flags:expr;)*) => {
        /// What tracers are told of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event { $($(#[doc = $doc])* $name,)* }

        impl Event {
            /// Its atom in messages.
            pub(crate) fn tag(self) -> Atom {
                match self { $(Event::$name => am::$atom,)* }
            }
            /// The flags any of which asks for it.
            pub(crate) fn flags(self) -> u32 {
                match self { $(Event::$name => $flags,)* }
            }
        }
    };
}

events! {
    /// `{trace, Tracee, send, Message, To}`
    Send => send, flags::SEND;
    /// `{trace, Tracee, send_to_non_existing_process, Message, To}`
    SendToNonExisting => send_to_non_existing_process, flags::SEND;
    /// `{trace, Tracee, 'receive', Message}`
    Receive => receive, flags::RECEIVE;
    /// `{trace, Pid, call, {M, F, Args | Arity}}`
    Call => call, flags::CALL;
    /// `{trace, Pid, return_to, {M, F, Arity} | undefined}`
    ReturnTo => return_to, flags::CALL;
    /// `{trace, Pid, return_from, {M, F, Arity}, Value}`
    ReturnFrom => return_from, flags::CALL;
    /// `{trace, Pid, exception_from, {M, F, Arity}, {Class, Value}}`
    ExceptionFrom => exception_from, flags::CALL;
    /// `{trace, Pid, spawn, Child, {M, F, Args}}`
    Spawn => spawn, flags::PROCS;
    /// `{trace, Pid, spawned, Parent, {M, F, Args}}`
    Spawned => spawned, flags::PROCS;
    /// `{trace, Pid, exit, Reason}`
    Exit => exit, flags::PROCS;
    /// `{trace, Tracee, register, Name}`
    Register => register, flags::PROCS | flags::PORTS;
    /// `{trace, Tracee, unregister, Name}`
    Unregister => unregister, flags::PROCS | flags::PORTS;
    /// `{trace, Pid, link, Other}`
    Link => link, flags::PROCS;
    /// `{trace, Pid, unlink, Other}`
    Unlink => unlink, flags::PROCS;
    /// `{trace, Tracee, getting_linked, Other}`
    GettingLinked => getting_linked, flags::PROCS | flags::PORTS;
    /// `{trace, Tracee, getting_unlinked, Other}`
    GettingUnlinked => getting_unlinked, flags::PROCS | flags::PORTS;
    /// `{trace, Port, open, Pid, Driver}`
    Open => open, flags::PORTS;
    /// `{trace, Port, closed, Reason}`
    Closed => closed, flags::PORTS;
    /// `{trace, Pid, in, {M, F, Arity} | 0}`
    In => in_, flags::RUNNING | flags::RUNNING_PROCS;
    /// `{trace, Pid, out, {M, F, Arity} | 0}`
    Out => out, flags::RUNNING | flags::RUNNING_PROCS;
    /// `{trace, Pid, out_exited, 0}`
    OutExited => out_exited, flags::EXITING;
    /// `{trace, Pid, in_exiting, 0}`
    InExiting => in_exiting, flags::EXITING;
    /// `{trace, Pid, out_exiting, 0}`
    OutExiting => out_exiting, flags::EXITING;
    /// `{trace, Port, in, Command | 0}`
    PortIn => in_, flags::RUNNING_PORTS;
    /// `{trace, Port, out, Command | 0}`
    PortOut => out, flags::RUNNING_PORTS;
    /// `{trace, Pid, gc_minor_start, Info}`
    GcMinorStart => gc_minor_start, flags::GARBAGE_COLLECTION;
    /// `{trace, Pid, gc_minor_end, Info}`
    GcMinorEnd => gc_minor_end, flags::GARBAGE_COLLECTION;
    /// `{trace, Pid, gc_major_start, Info}`
    GcMajorStart => gc_major_start, flags::GARBAGE_COLLECTION;
    /// `{trace, Pid, gc_major_end, Info}`
    GcMajorEnd => gc_major_end, flags::GARBAGE_COLLECTION;
    /// `{trace, Pid, gc_max_heap_size, Info}`
    GcMaxHeapSize => gc_max_heap_size, flags::GARBAGE_COLLECTION;
}

/// An event with what is told of it.
#[derive(Clone, Copy)]
pub(super) struct Report<'a> {
    pub(super) event: Event,
    pub(super) term: Term<'a>,
    /// The fifth element.
    pub(super) extra: Option<Term<'a>>,
    /// What a match specification has said, if that is not `true`.
    pub(super) result: Option<Term<'a>>,
}

impl<'a> Report<'a> {
    pub(super) fn new(event: Event, term: Term<'a>) -> Report<'a> {
        Report {
            event,
            term,
            extra: None,
            result: None,
        }
    }
    pub(super) fn with(self, extra: Term<'a>) -> Report<'a> {
        let extra = Some(extra);
        Report { extra, ..self }
    }
}

/// What a tracer says to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It wants to hear of it.
    Trace,
    /// It does not.
    Discard,
    /// It is gone: its flags are to go too.
    Remove,
}

/// Who gets trace messages: `erl_tracer`'s two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracer {
    /// A process.
    Process(Pid),
    /// A port: it gets messages in the external term format.
    Port(Port),
    /// Rust code that reads counters: it hears nothing, and is always there.
    Nobody,
    /// The recorder, which is always there too.
    Recorder,
}

/// The elements of a message.
type Parts<'a> = SmallVec<[Term<'a>; 8]>;

/// Time stamps asked for by `timestamp` are of processor time.
static CPU_TIMESTAMP: AtomicBool = AtomicBool::new(false);

/// Sets whether `timestamp` asks for processor time.
pub(crate) fn set_cpu_timestamp(on: bool) {
    CPU_TIMESTAMP.store(on, Ordering::Relaxed);
}

impl Tracer {
    pub(super) const NOBODY: Tracer = Tracer::Nobody;

    /// The tracer that a pid, a port or `{Module, State}` names. No module but `erl_tracer` is loaded.
    pub(crate) fn of(term: Term<'_>) -> Option<Tracer> {
        match term.view() {
            View::Pid(pid) => Some(Tracer::Process(pid)),
            View::Port(port) => Some(Tracer::Port(port)),
            View::Tuple(tuple) => match *tuple.elements() {
                [module, state] if module == am::erl_tracer => Tracer::of_state(state),
                _ => None,
            },
            _ => None,
        }
    }

    /// The tracer of an option `{prefix, Tracer}` or `{prefix, Module, State}`.
    pub(crate) fn of_option(prefix: Atom, option: Term<'_>) -> Option<Tracer> {
        match *option.as_tuple()?.elements() {
            [name, to] if name == prefix => Tracer::of_state(to),
            [name, module, state] if name == prefix && module == am::erl_tracer => {
                Tracer::of_state(state)
            }
            _ => None,
        }
    }

    fn of_state(state: Term<'_>) -> Option<Tracer> {
        match state.view() {
            View::Pid(pid) => Some(Tracer::Process(pid)),
            View::Port(port) => Some(Tracer::Port(port)),
            _ => None,
        }
    }

    /// As it is told.
    pub(crate) fn term(self) -> Term<'static> {
        match self {
            Tracer::Process(pid) => pid.term(),
            Tracer::Port(port) => port.term(),
            Tracer::Nobody | Tracer::Recorder => am::undefined.term(),
        }
    }

    /// Is it there?
    pub(crate) fn is_alive(self) -> bool {
        match self {
            Tracer::Process(pid) => process::exists(pid),
            Tracer::Port(port) => ports::exists(port),
            Tracer::Nobody | Tracer::Recorder => true,
        }
    }

    /// What it says to any event of `tracee`.
    pub(super) fn status(self, tracee: Term<'_>) -> Verdict {
        if self == Tracer::Recorder {
            Verdict::Trace
        } else if self == Tracer::Nobody || tracee.same(self.term()) {
            Verdict::Discard
        } else if self.is_alive() {
            Verdict::Trace
        } else {
            Verdict::Remove
        }
    }

    /// Tells it of an event of `tracee`, whose flags say how.
    pub(super) fn report(self, flags: u32, tracee: Term<'_>, report: &Report<'_>) {
        if self == Tracer::Recorder {
            return super::record::report(tracee, report);
        }
        let scratch = Heap::detached();
        let mut parts = Parts::new();
        parts.push(am::trace.term());
        parts.push(tracee);
        parts.push(report.event.tag().term());
        parts.push(report.term);
        parts.extend(report.extra);
        parts.extend(report.result);
        self.finish(&scratch, flags, parts);
    }

    /// Tells it of an information transfer of a sequential trace.
    pub(super) fn report_seq(self, flags: u32, label: Term<'_>, info: Term<'_>) {
        let parts = [am::seq_trace.term(), label, info];
        self.finish(&Heap::detached(), flags, Parts::from_slice(&parts));
    }

    fn finish<'a>(self, scratch: &'a Heap, flags: u32, mut parts: Parts<'a>) {
        if flags & flags::SCHEDULER_ID != 0 {
            let id = crate::sched::current_id().map_or(0, |id| id + 1);
            parts.push(Term::small(id as i64));
        }
        if let Some(stamp) = timestamp(scratch, flags) {
            parts.push(stamp);
            if parts[0] == am::trace {
                parts[0] = am::trace_ts.term();
            }
        }
        self.tell(Message::of_tuple(&parts));
    }

    /// Sends it a message; one to a tracer that is gone goes nowhere.
    pub(super) fn tell(self, message: Message) {
        match self {
            Tracer::Process(to) => {
                let from = Pid(crate::sched::ptab::INVALID_DATA);
                let _ = process::send(to, Signal::own(message, from));
            }
            Tracer::Port(port) => {
                let options = crate::term::external::EncodeOptions::default();
                if let Ok(bytes) = crate::term::external::encode(message.term(), options) {
                    ports::command(port, bytes);
                }
            }
            Tracer::Nobody | Tracer::Recorder => {}
        }
    }
}

/// The time stamp that `flags` ask for. Source: `erl_tracer_nif.c`.
fn timestamp(heap: &Heap, flags: u32) -> Option<Term<'_>> {
    use crate::sched::clock::erlang_monotonic_ns;
    if flags & flags::TIMESTAMP != 0 {
        let microseconds = if CPU_TIMESTAMP.load(Ordering::Relaxed) {
            crate::sys::time::process_cpu_time_ns() / 1000
        } else {
            crate::bif::time::now_microseconds()
        };
        return Some(crate::bif::time::triple(heap, microseconds));
    }
    if flags & flags::STRICT_MONOTONIC_TIMESTAMP != 0 {
        let time = heap.integer(erlang_monotonic_ns());
        let count = heap.integer(crate::bif::time::unique_monotonic());
        return Some(heap.tuple(&[time, count]));
    }
    (flags & flags::MONOTONIC_TIMESTAMP != 0).then(|| heap.integer(erlang_monotonic_ns()))
}
