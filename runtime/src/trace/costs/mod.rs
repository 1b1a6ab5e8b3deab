//! The numbers of processes' calls: counters of functions, and trees of nodes that meters charge. Any thread may read
//! them, and stops no process.

pub(crate) mod account;
pub(crate) mod count;
pub(crate) mod in_line;
pub(in crate::trace) mod known;
pub(in crate::trace) mod nature;
pub(crate) mod node;
pub(in crate::trace) mod text;
