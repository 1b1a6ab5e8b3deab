//! How a process's turn ends.

use super::Exiting;

/// How the turn of a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its time slice is used up: `pc` and `live` say where to go on.
    Yield,
    /// It waits ([`super::Process::wait`] says for what); `pc` and `live` say where to go on.
    Wait,
    /// It exits.
    Exit(Exiting),
}
