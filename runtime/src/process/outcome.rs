//! The outcomes of a process's time slice.

use super::Exiting;

/// How a time slice of a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its time slice is used up: `pc` and `live` say where to go on.
    Yield,
    /// It waits ([`super::Process::wait`] says for what); `pc` and `live` say where to go on.
    Wait,
    /// It exits.
    Exit(Exiting),
}
