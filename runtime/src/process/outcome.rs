//! The outcomes of a process's time slice.

use super::Exiting;

/// The dirty schedulers that a native function runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dirty {
    /// Those for long computations.
    Cpu,
    /// Those for calls that wait.
    Io,
}

/// How a process leaves an ordinary scheduler for a dirty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// The dirty schedulers that the call is for.
    pub to: Dirty,
    /// The call is usually shorter than it takes to wake a thread.
    pub is_short: bool,
    /// The call is made in any case, also where its process is suspended or ends: the order of a run is asked for, and what
    /// the call does has its place in it.
    pub is_due: bool,
}

/// How a time slice of a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its time slice is used up: `pc` and `live` say where to go on.
    Yield,
    /// It goes on on a dirty scheduler, at the entry of a native function; `live` says with which registers.
    Dirty(Leaves),
    /// It waits ([`super::Process::wait`] says for what); `pc` and `live` say where to go on.
    Wait,
    /// It exits.
    Exit(Exiting),
}
