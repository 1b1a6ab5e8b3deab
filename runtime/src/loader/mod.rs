//! Makes code of `.beam` files, and changes code while processes run.

pub(crate) mod debug;
pub mod disasm;
pub mod load;
pub mod module;
pub(crate) mod purge;
