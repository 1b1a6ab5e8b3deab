//! Loaded code: modules, exports, funs, and how they change while processes run.
//!
//! Invariant C1: code words never move and are never freed; once active they change only by atomic
//! stores of whole instruction words.

pub mod entry;
pub mod load;
pub mod module;
pub mod op;
pub(crate) mod purge;
pub mod record;

pub use entry::{Export, FunEntry};
