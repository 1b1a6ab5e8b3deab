//! Reports events to tracers: as `erl_tracer`'s messages, which one builder makes, by calls of a tracer module, or as
//! records. Source: `erl_tracer_nif.c`, `send_to_tracer_nif_raw()` in `erl_trace.c`, OTP 29.

use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use crate::heap::{Heap, Message};
use crate::process::{self, Signal, ports};
use crate::term::{Atom, Pid, Term, am};
use crate::trace::record;
use crate::trace::session::flags;
use crate::trace::session::tracer::{Event, EventOptions, Report, Timestamp, TracerId};

/// Time stamps asked for by `timestamp` are of processor time.
static CPU_TIMESTAMP: AtomicBool = AtomicBool::new(false);

/// Sets whether `timestamp` asks for processor time.
pub(crate) fn set_cpu_timestamp(on: bool) {
    CPU_TIMESTAMP.store(on, Ordering::Relaxed);
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

impl TracerId {
    /// Tells it of an event of `tracee`, whose flags say how.
    pub(in crate::trace) fn report(self, flags: u32, tracee: Term<'_>, report: &Report<'_>) {
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

    /// `trace/5`. `tracee` is the token's label in a sequential trace.
    fn trace(self, event: Event, tracee: Term<'_>, message: Term<'_>, options: &EventOptions<'_>) {
        match self {
            TracerId::Recorder => {
                let report = Report {
                    event,
                    term: message,
                    extra: options.extra,
                    result: options.match_spec_result,
                };
                record::report(tracee, &report);
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
    pub(in crate::trace) fn term(self, heap: &Heap) -> Term<'_> {
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
