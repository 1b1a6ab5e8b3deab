//! Loaded code: modules, exports, funs, and how they change while processes run.
//!
//! Invariants:
//! - C1: code words never move; once active they change only by atomic stores of whole instruction words.
//! - C2: code words live as long as their [`module::Module`]. It is dropped once it has been purged and every
//!   scheduler has passed a quiescent point since; a purge goes through only when no process runs the code or will
//!   return to it, and no export or fun leads there.

pub(crate) mod debug;
pub mod entry;
pub mod load;
pub mod module;
pub mod op;
pub(crate) mod purge;
pub mod record;

pub use entry::{Export, FunEntry};
