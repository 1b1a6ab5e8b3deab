//! Tracer modules other than `erl_tracer`: their functions are NIFs, and are asked and told where the event happens.
//! Source: `ErtsTracerNif`, `call_enabled_tracer()` and `send_to_tracer_nif_raw()` in `erl_trace.c`, OTP 29.
//!
//! A tracer is a module with a state. Each pair that has ever been named has a row that stays: a process names its
//! tracer by the row, in one word, and its functions get the state without a copy.

use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;

use super::tracer::{EventOptions, Question, Timestamp, Verdict};
use crate::exec::nif::Callable;
use crate::hash::HashMap;
use crate::heap::{Heap, Message};
use crate::loader::module::{Module, versions};
use crate::process::event::Event;
use crate::term::{Atom, Term, View, am, compare};
use crate::value::map;

/// A tracer module with a state.
pub(crate) struct TracerModule {
    module: Atom,
    /// Its row in [`ALL`].
    number: usize,
    /// `{Module, State}`
    told: Message,
}

impl PartialEq for TracerModule {
    fn eq(&self, other: &TracerModule) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for TracerModule {}

impl std::fmt::Debug for TracerModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.told.term().display())
    }
}

/// The kinds of events for which a module may have functions of their own, by the end of their names.
const GROUPS: [&str; 8] = [
    "send",
    "receive",
    "call",
    "running_procs",
    "running_ports",
    "garbage_collection",
    "procs",
    "ports",
];

/// The number of an event's group; none where only `enabled` and `trace` are called.
fn group(event: Event, tracee: Term<'_>) -> Option<usize> {
    let name = match event {
        Event::Send | Event::SendToNonExisting => "send",
        Event::Receive => "receive",
        Event::Call | Event::ReturnTo | Event::ReturnFrom | Event::ExceptionFrom => "call",
        Event::In | Event::Out | Event::OutExited | Event::InExiting | Event::OutExiting => {
            "running_procs"
        }
        Event::PortIn | Event::PortOut => "running_ports",
        Event::GcMinorStart
        | Event::GcMinorEnd
        | Event::GcMajorStart
        | Event::GcMajorEnd
        | Event::GcMaxHeapSize => "garbage_collection",
        Event::Spawn
        | Event::Spawned
        | Event::Exit
        | Event::Register
        | Event::Unregister
        | Event::Link
        | Event::Unlink
        | Event::GettingLinked
        | Event::GettingUnlinked
        | Event::Open
        | Event::Closed => match tracee.view() {
            View::Port(_) => "ports",
            _ => "procs",
        },
        Event::SeqTrace => return None,
    };
    GROUPS.iter().position(|group| *group == name)
}

/// The functions of a module.
struct Functions {
    enabled: Callable,
    trace: Callable,
    /// `enabled_*` and `trace_*` of [`GROUPS`].
    of_groups: [(Option<Callable>, Option<Callable>); GROUPS.len()],
}

impl Functions {
    fn of(code: &Arc<Module>) -> Option<Functions> {
        let find = |name: &str, arity| Callable::of(code, Atom::existing(name)?, arity);
        Some(Functions {
            enabled: find("enabled", 3)?,
            trace: find("trace", 5)?,
            of_groups: GROUPS.map(|group| {
                (
                    find(&format!("enabled_{group}"), 3),
                    find(&format!("trace_{group}"), 5),
                )
            }),
        })
    }
}

/// The functions of the tracer modules that are loaded.
static FUNCTIONS: OnceLock<RwLock<HashMap<Atom, Arc<Functions>>>> = OnceLock::new();

fn functions() -> &'static RwLock<HashMap<Atom, Arc<Functions>>> {
    FUNCTIONS.get_or_init(RwLock::default)
}

/// The functions of a module, if it is a tracer module and is loaded.
fn functions_of(module: Atom) -> Option<Arc<Functions>> {
    if let Some(known) = functions().read().get(&module) {
        return Some(known.clone());
    }
    let code = versions(module).current?;
    let found = Arc::new(Functions::of(&code)?);
    functions().write().insert(module, found.clone());
    // It may have gone before it was here to be forgotten.
    let now = versions(module).current;
    if now.is_none_or(|now| !Arc::ptr_eq(&now, &code)) {
        unloaded(module);
    }
    Some(found)
}

/// The code of a module is current no more.
pub(in crate::trace) fn unloaded(module: Atom) {
    if let Some(all) = FUNCTIONS.get() {
        all.write().remove(&module);
    }
}

/// Every pair of module and state that has been named.
static ALL: Mutex<Vec<&'static TracerModule>> = Mutex::new(Vec::new());

impl TracerModule {
    /// The tracer of this module with this state; none where the module is not loaded, or is no tracer module.
    pub(in crate::trace) fn of(module: Atom, state: Term<'_>) -> Option<&'static TracerModule> {
        functions_of(module)?;
        let mut all = ALL.lock();
        let is_it = |known: &&&'static TracerModule| {
            known.module == module && compare::eq_exact(known.state(), state)
        };
        if let Some(known) = all.iter().find(is_it) {
            return Some(known);
        }
        let new: &'static TracerModule = Box::leak(Box::new(TracerModule {
            module,
            number: all.len(),
            told: Message::of_tuple(&[module.term(), state]),
        }));
        all.push(new);
        Some(new)
    }

    /// The one of a row.
    pub(in crate::trace) fn of_number(number: usize) -> Option<&'static TracerModule> {
        ALL.lock().get(number).copied()
    }

    /// Its row.
    pub(in crate::trace) fn number(&self) -> usize {
        self.number
    }

    /// As a term.
    pub(in crate::trace) fn term(&self) -> Term<'_> {
        self.told.term()
    }

    fn state(&self) -> Term<'_> {
        let told = self.told.term().as_tuple();
        told.expect("a pair").elements()[1]
    }

    /// `enabled/3` of the module, or what it has in its place.
    pub(in crate::trace) fn enabled(&self, question: Question, tracee: Term<'_>) -> Verdict {
        let is_status = question == Question::Status;
        let Some(functions) = functions_of(self.module) else {
            return match is_status {
                true => Verdict::Remove,
                false => Verdict::Discard,
            };
        };
        let (tag, own) = match question {
            Question::Status => (am::trace_status, None),
            Question::Of(event) => {
                let group = group(event, tracee);
                let own = group.and_then(|group| functions.of_groups[group].0.as_ref());
                (event.tag(), own)
            }
        };
        let scratch = Heap::detached();
        let asked = own.unwrap_or(&functions.enabled);
        let answer = asked.call(&scratch, &[tag.term(), self.state(), tracee]);
        match answer.and_then(Term::as_atom) {
            Some(am::discard) if !is_status => Verdict::Discard,
            Some(am::remove) => Verdict::Remove,
            Some(am::trace) => Verdict::Trace,
            _ if is_status => Verdict::Trace,
            _ => Verdict::Remove,
        }
    }

    /// `trace/5` of the module, or what it has in its place.
    pub(in crate::trace) fn trace(
        &self,
        event: Event,
        tracee: Term<'_>,
        message: Term<'_>,
        options: &EventOptions<'_>,
    ) {
        let Some(functions) = functions_of(self.module) else {
            return;
        };
        let own = group(event, tracee);
        let own = own.and_then(|group| functions.of_groups[group].1.as_ref());
        let scratch = Heap::detached();
        let options = map_of(&scratch, options);
        let tag = event.tag().term();
        let told = own.unwrap_or(&functions.trace);
        // What it answers is of no interest.
        let _answer = told.call(&scratch, &[tag, self.state(), tracee, message, options]);
    }
}

/// The map of `trace/5`'s last argument.
fn map_of<'h>(scratch: &'h Heap, options: &EventOptions<'h>) -> Term<'h> {
    let timestamp = options.timestamp.map(|stamp| match stamp {
        Timestamp::Now => am::timestamp,
        Timestamp::Cpu => am::cpu_timestamp,
        Timestamp::StrictMonotonic => am::strict_monotonic,
        Timestamp::Monotonic => am::monotonic,
    });
    let all = [
        (am::extra, options.extra),
        (am::match_spec_result, options.match_spec_result),
        (am::scheduler_id, options.scheduler_id),
        (am::timestamp, timestamp.map(Atom::term)),
    ];
    let pairs = all.into_iter();
    let pairs = pairs.filter_map(|(key, value)| Some((key.term(), value?)));
    let pairs: SmallVec<[(Term<'h>, Term<'h>); 4]> = pairs.collect();
    map::from_pairs(scratch, &pairs)
}
