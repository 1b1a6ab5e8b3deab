//! Tracing. It sits beside the interpreter, which calls it only where a breakpoint or a flag word says so.
//!
//! Everything goes through a [`Session`]: OTP's `trace` module with its BIFs ([`Handle`]), the profile of a run
//! ([`profile`]), and the tests. `docs/internals/tracing.md` describes how tracing works.
//!
//! A folder names only those before it:
//! `costs` ◀ `session` ◀ `measure` `breakpoint` ◀ `run` ◀ `record` ◀ `tell` ◀ `calls`.
//!
//! | folder | what it has |
//! |---|---|
//! | `costs` | counters of functions, and trees of nodes: what calls have cost |
//! | `session` | sessions: the processes, functions and events that each traces, and its tracers |
//! | `measure` | the meters of processes, which charge nodes |
//! | `breakpoint` | the data at a traced function's entry, and its changes while processes run |
//! | `run` | what a request asks of a whole run: profile, totals, when they begin and end, of which functions |
//! | `record` | the recorder, which writes events to a ring file |
//! | `tell` | reports events to tracers, to receivers of system events, and to the recorder |
//! | `calls` | counts, measures, records and reports a call that hits a breakpoint, and its return |
//!
//! Events reach these folders from processes through [`Tracing`] (`probes.rs`), and from code through `calls`.

pub(crate) mod breakpoint;
pub(crate) mod calls;
pub(crate) mod costs;
mod handle;
pub(crate) mod measure;
mod probes;
pub(crate) mod record;
mod run;
mod session;
mod tell;
#[cfg(all(test, not(loom)))]
pub(crate) mod tests;

pub use breakpoint::change::{Pattern, Switch};
pub(crate) use breakpoint::change::{Setting, exports_staged, find_entry, freed, loaded, unloaded};
pub use costs::node::Counted;
pub use handle::Session;
pub(crate) use handle::{At, Handle, StrongRef};
pub(crate) use probes::Tracing;
pub(crate) use record::net::{EXITED, SocketId};
pub(crate) use run::{profile, replay_stopped, totals, trial};
pub(crate) use session::flags::{self, Tracee};
pub use session::kind::Kinds;
pub(crate) use session::permission::{Progress, begun, release, seize, settle};
pub(crate) use session::spec::{BadSpec, Spec};
pub(crate) use session::tracer::{self, Event, TracerId};
pub(crate) use session::{EventPattern, NoSlot};
pub(crate) use tell::report::{set_cpu_timestamp, trace_message};
pub(crate) use tell::{dump, events, ports, seq, sysmon, sysprof};

/// Whether this run is profiled or recorded.
pub(crate) fn is_measured() -> bool {
    profile::is_asked() || record::is_asked()
}
