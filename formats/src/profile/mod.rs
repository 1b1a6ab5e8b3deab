//! The profile of one run, or of several merged, as plain data.
//!
//! The runtime hands counts to a [`Writer`] when the run ends. The command that started it reads the files back
//! ([`Profile::read`]) and puts them together ([`Profile::merge`]). `docs/internals/ProfileFile.md` describes the file
//! format.

mod layout;
mod lifetime;
mod matched;
mod merge;
mod native_functions;
mod origin;
mod pattern;
mod reader;
mod request;
mod span;
mod tracing;
mod view;
mod writer;

pub use layout::VERSION;
pub use layout::seal;
pub use lifetime::{CommandLock, EmulatorLock, Measuring, wait_for_command};
pub use matched::{Matched, Outcome};
pub use native_functions::Native;
pub use native_functions::WAITS_FOR_DIRTY;
pub use origin::{CodeFile, Libraries, Modules, Origin};
pub use pattern::{ParsePatternError, Pattern};
pub use reader::ReadError;
pub use request::Request;
pub use request::files_in;
pub use span::Span;
pub use tracing::{Paid, TakenOut, TracingCost};
pub use view::{LeftOut, Rest, Scope, View};
pub use writer::{AtomicFile, Writer};

use std::collections::BTreeMap;
use std::fmt;

use beamline_settings::names;
use serde::{Deserialize, Serialize};

use crate::name;

/// The measure of a run's breakpoints; the names are those of OTP's `trace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// Calls of each function, of all processes together.
    CallCount,
    /// Calls and own time of each function, per process.
    CallTime,
    /// Calls and words allocated in each function, per process.
    CallMemory,
}

names!(Type {
    CallCount = "call_count", "The calls of each function, of all processes together";
    CallTime = "call_time", "Calls and own time of each function";
    CallMemory = "call_memory", "Calls and allocated words of each function";
});

/// The description of a whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// What was measured.
    pub kind: Type,
    /// The emulator's command line, program first.
    pub command: Vec<String>,
    /// The machine's name.
    pub host: String,
    /// The OTP release whose libraries ran, such as `29.1.1`.
    pub otp: String,
    /// From the start of the emulator to the writing of the profile, in nanoseconds.
    pub run_ns: u64,
    /// The emulator's process number in the operating system.
    pub os_pid: u32,
    /// The name of its node when the profile was written; empty without one.
    pub node: String,
    /// Processes that existed in this run, alive or dead.
    pub processes: u64,
    /// The functions that were measured; none: all.
    pub patterns: Vec<Pattern>,
    /// What the tracing of a call takes here.
    pub tracing: TracingCost,
}

/// A function that was called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Function {
    /// The module, unquoted.
    pub module: String,
    /// The name, unquoted.
    pub name: String,
    /// The number of arguments.
    pub arity: u32,
}

impl Function {
    /// What stands in a call path where that was cut at so many frames, which no function does: it has no module.
    #[must_use]
    pub fn cut_at(frames: u32) -> Function {
        Function {
            module: String::new(),
            name: format!("cut at {frames} frames"),
            arity: 0,
        }
    }

    /// Whether it marks where a path was cut.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.module.is_empty()
    }
}

impl Header {
    /// What to call the emulator where there are several: its node, or else the number of its process.
    #[must_use]
    pub fn emulator(&self) -> String {
        match self.node.as_str() {
            "" => format!("OS process {}", self.os_pid),
            node => format!("node {node}"),
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name::mfa(&self.module, &self.name, self.arity))
    }
}

/// An Erlang process that called something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Index into [`Profile::runs`].
    pub run: u32,
    /// The pid as Erlang writes it, such as `<0.86.0>`.
    pub pid: String,
    /// The registered name, or else the initial call.
    pub name: String,
    /// Reductions over the whole life of the process.
    pub reductions: u64,
}

/// The numbers of one place; a number that the type of run does not measure is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// How often it was called.
    pub calls: u64,
    /// Own time in nanoseconds: without that of traced functions it called, and without what tracing took.
    pub time_ns: u64,
    /// Own words allocated on the process heap.
    pub words: u64,
    /// Time in nanoseconds in which a call waited for a dirty scheduler: it is no part of its time.
    pub dirty_wait_ns: u64,
    /// Time in nanoseconds that tracing took where own time was measured: it is no part of it.
    pub tracing_ns: u64,
}

impl Cost {
    /// Adds another cost; stays at the largest number instead of starting again from 0.
    pub fn add(&mut self, other: Cost) {
        self.calls = self.calls.saturating_add(other.calls);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        self.words = self.words.saturating_add(other.words);
        self.dirty_wait_ns = self.dirty_wait_ns.saturating_add(other.dirty_wait_ns);
        self.tracing_ns = self.tracing_ns.saturating_add(other.tracing_ns);
    }
}

/// The cost of one function in one process, or in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Index into [`Profile::functions`].
    pub function: u32,
    /// Index into [`Profile::runs`]: that of the process, where there is one.
    pub run: u32,
    /// Index into [`Profile::processes`]; `None` where calls are not told apart by process.
    pub process: Option<u32>,
    /// What it cost.
    pub cost: Cost,
}

/// One call path of one process: a node of its call tree.
///
/// A path is the stack, in which recursion is folded ([`crate::paths`]). So a function may be on a path more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Index into [`Profile::processes`].
    pub process: u32,
    /// Index of the caller's node, smaller than this node's own; `None` for a first call.
    pub parent: Option<u32>,
    /// Index into [`Profile::functions`].
    pub function: u32,
    /// Own cost, without that of the nodes below.
    pub cost: Cost,
    /// Own reductions.
    pub reductions: u64,
    /// Time in which the process was here and did not run, in nanoseconds, its waiting for dirty schedulers included:
    /// known of recordings, and not kept in files.
    pub wait_ns: u64,
}

/// The counts of one run, or of several that measured the same.
///
/// Every index in it is valid, and every node's parent comes before it and belongs to the same
/// process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The runs it was made from.
    pub runs: Vec<Header>,
    /// Every function named by a count or a node.
    pub functions: Vec<Function>,
    /// Every process named by a count or a node.
    pub processes: Vec<Process>,
    /// The cost per function and process.
    pub counts: Vec<Count>,
    /// The call trees of all processes.
    pub nodes: Vec<Node>,
    /// Modules of these functions that are not the program's own, with whose they are.
    pub origins: BTreeMap<String, Origin>,
    /// Those of the functions that are native code.
    pub natives: BTreeMap<Function, Native>,
}

impl Profile {
    /// Whose a module is.
    #[must_use]
    pub fn origin(&self, module: &str) -> Origin {
        self.origins.get(module).copied().unwrap_or_default()
    }

    /// Whether calls were counted: nobody counts those of samples.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        self.nodes.iter().any(|node| node.cost.calls > 0)
    }

    /// What kind of native code a function is, if it is any.
    #[must_use]
    pub fn native(&self, function: &Function) -> Option<Native> {
        self.natives.get(function).copied()
    }

    /// Notes that a function is native code. It is dirty if it ever was.
    pub fn add_native(&mut self, function: &Function, native: Native) {
        let known = self.natives.entry(function.clone()).or_insert(native);
        *known = native.max(*known);
    }
}

#[cfg(test)]
mod tests;
