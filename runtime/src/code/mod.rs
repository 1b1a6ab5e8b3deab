//! The parts of code: specific instructions, native functions, and the entries through which code is called.
//!
//! Invariants:
//! - C1: code words never move; once active they change only by atomic stores of whole instruction words.
//! - C2: code words live as long as the module they belong to (`loader/module.rs`). It is dropped once it has been
//!   purged and every scheduler has passed a quiescent point since; a purge goes through only when no process runs the
//!   code or will return to it, and no export or fun leads there.
//! - C3: a library of NIFs is open as long as the module whose heads name its NIFs, and while a process is in one.

pub(crate) mod bif;
pub(crate) mod entry;
pub(crate) mod machine_code;
pub(crate) mod nif;
pub(crate) mod op;
pub(crate) mod operand;
pub(crate) mod published;
pub(crate) mod record;
pub(crate) mod stubs;

pub(crate) use entry::{Export, FunEntry};
