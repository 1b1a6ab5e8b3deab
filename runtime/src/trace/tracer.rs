//! Tracers: what they are asked and told, with one row for each event, and `erl_tracer`'s messages, with one builder
//! for all. Source: `erl_tracer_nif.c`, `send_to_tracer_nif_raw()` in `erl_trace.c`, OTP 29.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::flags;
use super::tracer_module::TracerModule;
use crate::heap::{Heap, Message};
pub(crate) use crate::process::event::Event;
use crate::process::{self, Signal, ports};
use crate::term::{Atom, Pid, Port, Term, View, am, compare};

/// An event, and what a tracer gets of it.
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

/// A tracer's answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It wants to hear of it.
    Trace,
    /// It does not.
    Discard,
    /// It is gone: its flags are to go too.
    Remove,
}

/// The questions that a tracer answers before it gets anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// `trace_status`: is it there at all? The only one to be answered with [`Verdict::Remove`].
    Status,
    /// Does it want to hear of such an event?
    Of(Event),
}

/// Time stamps, as a tracer is asked to make them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timestamp {
    /// `timestamp`: `erlang:now()`'s triple.
    Now,
    /// `cpu_timestamp`: the same, of processor time.
    Cpu,
    /// `strict_monotonic`: `{MonotonicTime, UniqueInteger}`.
    StrictMonotonic,
    /// `monotonic`
    Monotonic,
}

/// The options of an event: the map of `erl_tracer`'s last argument.
#[derive(Clone, Copy, Default)]
pub(crate) struct EventOptions<'a> {
    pub(crate) extra: Option<Term<'a>>,
    /// What a match specification has said, if that is not `true`.
    pub(crate) match_spec_result: Option<Term<'a>>,
    pub(crate) scheduler_id: Option<Term<'a>>,
    pub(crate) timestamp: Option<Timestamp>,
}

impl EventOptions<'_> {
    /// What the flags of a tracee ask for.
    fn of(flags: u32) -> EventOptions<'static> {
        let timestamp = if flags & flags::TIMESTAMP != 0 {
            Some(match CPU_TIMESTAMP.load(Ordering::Relaxed) {
                true => Timestamp::Cpu,
                false => Timestamp::Now,
            })
        } else if flags & flags::STRICT_MONOTONIC_TIMESTAMP != 0 {
            Some(Timestamp::StrictMonotonic)
        } else {
            (flags & flags::MONOTONIC_TIMESTAMP != 0).then_some(Timestamp::Monotonic)
        };
        let scheduler_id = || {
            let id = crate::sched::current_id().map_or(0, |id| id + 1);
            Term::small(id as i64)
        };
        EventOptions {
            scheduler_id: (flags & flags::SCHEDULER_ID != 0).then(scheduler_id),
            timestamp,
            ..EventOptions::default()
        }
    }
}

/// A tracer: the two functions of OTP's behaviour `erl_tracer`. Both are called in the context of whoever is traced.
pub(crate) trait Tracer {
    /// `enabled/3`. Asked before `trace`, so that what nobody wants to hear is not put together.
    fn enabled(&self, question: Question, tracee: Term<'_>) -> Verdict;

    /// `trace/5`. `tracee` is the token's label in a sequential trace.
    fn trace(&self, event: Event, tracee: Term<'_>, message: Term<'_>, options: &EventOptions<'_>);
}

/// The receiver of trace messages: the state of a tracer module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TracerId {
    /// `erl_tracer` with a process.
    Process(Pid),
    /// `erl_tracer` with a port: it gets messages in the external term format.
    Port(Port),
    /// `erl_tracer` with what is neither, which is never there: a number of [`STRANGERS`].
    Stranger(u32),
    /// Another module, in C, with its state.
    Module(&'static TracerModule),
    /// Rust code that reads counters: it hears nothing, and is always there.
    Nobody,
    /// The recorder, which is always there too.
    Recorder,
}

/// States of `erl_tracer` that are no process and no port. `trace:info` gives them back as they were.
static STRANGERS: OnceLock<Mutex<Vec<&'static Message>>> = OnceLock::new();

fn strangers() -> &'static Mutex<Vec<&'static Message>> {
    STRANGERS.get_or_init(Mutex::default)
}

/// Time stamps asked for by `timestamp` are of processor time.
static CPU_TIMESTAMP: AtomicBool = AtomicBool::new(false);

/// Sets whether `timestamp` asks for processor time.
pub(crate) fn set_cpu_timestamp(on: bool) {
    CPU_TIMESTAMP.store(on, Ordering::Relaxed);
}

impl TracerId {
    pub(super) const NOBODY: TracerId = TracerId::Nobody;

    /// The tracer that a pid, a port or `{Module, State}` names, if the module is a tracer module.
    pub(crate) fn of(term: Term<'_>) -> Option<TracerId> {
        match term.view() {
            View::Pid(pid) => Some(TracerId::Process(pid)),
            View::Port(port) => Some(TracerId::Port(port)),
            View::Tuple(tuple) => match *tuple.elements() {
                [module, state] => TracerId::of_module(module, state),
                _ => None,
            },
            _ => None,
        }
    }

    /// The tracer of an option `{prefix, Tracer}` or `{prefix, Module, State}`.
    pub(crate) fn of_option(prefix: Atom, option: Term<'_>) -> Option<TracerId> {
        match *option.as_tuple()?.elements() {
            [name, to] if name == prefix => match to.view() {
                View::Pid(_) | View::Port(_) => Some(TracerId::of_state(to)),
                _ => None,
            },
            [name, module, state] if name == prefix => TracerId::of_module(module, state),
            _ => None,
        }
    }

    fn of_module(module: Term<'_>, state: Term<'_>) -> Option<TracerId> {
        match module.as_atom()? {
            am::erl_tracer => Some(TracerId::of_state(state)),
            module => TracerModule::of(module, state).map(TracerId::Module),
        }
    }

    fn of_state(state: Term<'_>) -> TracerId {
        match state.view() {
            View::Pid(pid) => TracerId::Process(pid),
            View::Port(port) => TracerId::Port(port),
            _ => {
                let mut known = strangers().lock();
                let at = known
                    .iter()
                    .position(|known| compare::eq_exact(known.term(), state));
                let at = at.unwrap_or_else(|| {
                    known.push(Box::leak(Box::new(Message::copy_of(state))));
                    known.len() - 1
                });
                TracerId::Stranger(at as u32)
            }
        }
    }

    /// As it stands on stacks: an immediate. See [`TracerId::on_stack`].
    pub(super) fn to_stack(self) -> Term<'static> {
        match self {
            TracerId::Module(module) => Term::small(module.number() as i64),
            other => other.term(),
        }
    }

    /// The tracer that stands on a stack.
    pub(super) fn on_stack(term: Term<'_>) -> Option<TracerId> {
        match term.view() {
            View::Small(number) => {
                let number = usize::try_from(number).ok()?;
                TracerModule::of_number(number).map(TracerId::Module)
            }
            _ => TracerId::of(term),
        }
    }

    /// As a term of this heap.
    pub(crate) fn told(self, heap: &Heap) -> Term<'_> {
        heap.copy_in(self.term())
    }

    fn term(self) -> Term<'static> {
        match self {
            TracerId::Process(pid) => pid.term(),
            TracerId::Port(port) => port.term(),
            TracerId::Stranger(number) => strangers().lock()[number as usize].term(),
            TracerId::Module(module) => module.term(),
            TracerId::Nobody | TracerId::Recorder => am::undefined.term(),
        }
    }

    /// Is it there, as far as `tracee` is concerned?
    pub(super) fn is_there(self, tracee: Term<'_>) -> bool {
        self.enabled(Question::Status, tracee) != Verdict::Remove
    }

    /// Whether it is not always there.
    pub(super) fn may_go(self) -> bool {
        !matches!(self, TracerId::Nobody | TracerId::Recorder)
    }

    /// What it says to an event of `tracee`, one that is gone included.
    pub(super) fn wants(self, event: Event, tracee: Term<'_>) -> Verdict {
        if let TracerId::Module(module) = self {
            // ERTS asks for the status before calls only; a module may answer `remove` to anything.
            return match event == Event::Call && !self.is_there(tracee) {
                true => Verdict::Remove,
                false => module.enabled(Question::Of(event), tracee),
            };
        }
        match self.enabled(Question::Of(event), tracee) {
            Verdict::Trace => Verdict::Trace,
            _ if self.is_there(tracee) => Verdict::Discard,
            _ => Verdict::Remove,
        }
    }

    /// Tells it of an event of `tracee`, whose flags say how.
    pub(super) fn report(self, flags: u32, tracee: Term<'_>, report: &Report<'_>) {
        let options = EventOptions {
            extra: report.extra,
            match_spec_result: report.result,
            ..EventOptions::of(flags)
        };
        self.trace(report.event, tracee, report.term, &options);
    }

    /// Sends it a message; one to a tracer that is gone goes nowhere.
    pub(crate) fn tell(self, message: Message) {
        match self {
            TracerId::Process(to) => {
                let from = Pid(crate::sched::ptab::INVALID_DATA);
                let _ = process::send(to, Signal::own(message, from));
            }
            TracerId::Port(port) => {
                let options = crate::external::EncodeOptions::default();
                if let Ok(bytes) = crate::external::encode(message.term(), options) {
                    ports::command(port, bytes);
                }
            }
            TracerId::Stranger(_) | TracerId::Module(_) | TracerId::Nobody | TracerId::Recorder => {
            }
        }
    }
}

/// `erl_tracer`, and our own tracers. Source: `erl_tracer_nif.c`.
impl Tracer for TracerId {
    fn enabled(&self, question: Question, tracee: Term<'_>) -> Verdict {
        let alive = match *self {
            TracerId::Process(pid) => process::exists(pid),
            TracerId::Port(port) => ports::exists(port),
            TracerId::Stranger(_) => false,
            TracerId::Module(module) => return module.enabled(question, tracee),
            TracerId::Nobody => return Verdict::Discard,
            TracerId::Recorder => return Verdict::Trace,
        };
        match question {
            _ if alive && !tracee.same(self.term()) => Verdict::Trace,
            Question::Status if !alive => Verdict::Remove,
            _ => Verdict::Discard,
        }
    }

    fn trace(&self, event: Event, tracee: Term<'_>, message: Term<'_>, options: &EventOptions<'_>) {
        match self {
            TracerId::Recorder => {
                let report = Report {
                    event,
                    term: message,
                    extra: options.extra,
                    result: options.match_spec_result,
                };
                super::record::report(tracee, &report);
            }
            TracerId::Process(_) | TracerId::Port(_) => {
                self.tell(trace_message(event.tag(), tracee, message, options));
            }
            TracerId::Module(module) => module.trace(event, tracee, message, options),
            TracerId::Stranger(_) | TracerId::Nobody => {}
        }
    }
}

/// The message that says all of an event.
pub(crate) fn trace_message(
    tag: Atom,
    tracee: Term<'_>,
    message: Term<'_>,
    options: &EventOptions<'_>,
) -> Message {
    let scratch = Heap::detached();
    let mut parts: SmallVec<[Term<'_>; 8]> = SmallVec::new();
    let tag = tag.term();
    match options.extra {
        Some(extra) => parts.extend([am::trace.term(), tracee, tag, message, extra]),
        None if tag == am::seq_trace => parts.extend([tag, tracee, message]),
        None => parts.extend([am::trace.term(), tracee, tag, message]),
    }
    parts.extend(options.match_spec_result);
    parts.extend(options.scheduler_id);
    if let Some(stamp) = options.timestamp {
        parts.push(stamp.term(&scratch));
        if parts[0] == am::trace {
            parts[0] = am::trace_ts.term();
        }
    }
    Message::of_tuple(&parts)
}

impl Timestamp {
    /// The time now.
    pub(super) fn term(self, heap: &Heap) -> Term<'_> {
        use crate::process::refs::unique_monotonic;
        use crate::sched::clock::now_microseconds;
        use crate::value::timestamp::triple;
        let monotonic = || heap.integer(crate::sched::clock::erlang_monotonic_ns());
        match self {
            Timestamp::Now => triple(heap, now_microseconds()),
            Timestamp::Cpu => triple(heap, crate::sys::chance::clock::cpu_ns() / 1000),
            Timestamp::StrictMonotonic => {
                heap.tuple(&[monotonic(), heap.integer(unique_monotonic())])
            }
            Timestamp::Monotonic => monotonic(),
        }
    }
}
