//! Tracers: the questions to them, their answers, and the reports that they get. Source: `erl_tracer_nif.c`, OTP 29.

use std::sync::OnceLock;

use parking_lot::Mutex;

use super::tracer_module::TracerModule;
use crate::heap::{Heap, Message};
pub(crate) use crate::process::event::Event;
use crate::process::{self, ports};
use crate::term::{Atom, Pid, Port, Term, View, am, compare};

/// An event, and what a tracer gets of it.
#[derive(Clone, Copy)]
pub(in crate::trace) struct Report<'a> {
    pub(in crate::trace) event: Event,
    pub(in crate::trace) term: Term<'a>,
    /// The fifth element.
    pub(in crate::trace) extra: Option<Term<'a>>,
    /// What a match specification has said, if that is not `true`.
    pub(in crate::trace) result: Option<Term<'a>>,
}

impl<'a> Report<'a> {
    pub(in crate::trace) fn new(event: Event, term: Term<'a>) -> Report<'a> {
        Report {
            event,
            term,
            extra: None,
            result: None,
        }
    }
    pub(in crate::trace) fn with(self, extra: Term<'a>) -> Report<'a> {
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

impl TracerId {
    pub(in crate::trace) const NOBODY: TracerId = TracerId::Nobody;

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
    pub(in crate::trace) fn to_stack(self) -> Term<'static> {
        match self {
            TracerId::Module(module) => Term::small(module.number() as i64),
            other => other.term(),
        }
    }

    /// The tracer that stands on a stack.
    pub(in crate::trace) fn on_stack(term: Term<'_>) -> Option<TracerId> {
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
    pub(in crate::trace) fn is_there(self, tracee: Term<'_>) -> bool {
        self.enabled(Question::Status, tracee) != Verdict::Remove
    }

    /// Whether it is not always there.
    pub(in crate::trace) fn may_go(self) -> bool {
        !matches!(self, TracerId::Nobody | TracerId::Recorder)
    }

    /// What it says to an event of `tracee`, one that is gone included.
    pub(in crate::trace) fn wants(self, event: Event, tracee: Term<'_>) -> Verdict {
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

    /// `enabled/3` of `erl_tracer`, and of our own tracers. Asked before `trace`, so that what nobody wants to
    /// hear is not put together.
    pub(crate) fn enabled(&self, question: Question, tracee: Term<'_>) -> Verdict {
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
}
