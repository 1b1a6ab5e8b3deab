//! Makes code of `.beam` files, and changes code while processes run.

pub(crate) mod debug;
pub(crate) mod disasm;
pub(crate) mod load;
pub(crate) mod module;
pub(crate) mod permission;
pub(crate) mod purge;
pub(crate) mod types;
