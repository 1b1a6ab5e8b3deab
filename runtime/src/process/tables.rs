//! The ETS tables that processes own, as who records a run asks for them.

use crate::hook::Hook;
use crate::term::{Atom, Pid};

/// What an ETS table takes.
pub(crate) struct TableSize {
    pub(crate) owner: Pid,
    pub(crate) name: Atom,
    pub(crate) words: usize,
    pub(crate) objects: usize,
}

/// Hook: the tables that there are when the emulator ends.
pub(crate) static TABLES: Hook<fn() -> Vec<TableSize>> = Hook::new("the tables at the end");
