//! Modules: how a `.beam` file becomes code, and how code changes while processes run.

pub(crate) mod debug;
pub mod disasm;
pub mod load;
pub mod module;
pub(crate) mod purge;
