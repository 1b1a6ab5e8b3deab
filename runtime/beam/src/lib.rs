//! Reads compiled code as it lies in a `.beam` file. It takes bytes, and gives a checked module or an error.
//!
//! This crate does no I/O and knows no terms. Literals, attributes and compile information stay bytes of the external
//! term format, and atoms are rows of the module's own table. Everything that a file says is checked here, so that
//! later code may index without looking: see [`BeamModule`].
//!
//! Each module names only those before it:
//! `genop` `operand` ◀ `error` `module` `samples` ◀ `reader` ◀ `chunks` ◀ `code` ◀ `debug` `tables`
//! ◀ `decode` `disasm`

pub mod chunks;
mod code;
mod debug;
mod decode;
pub mod disasm;
pub mod error;
pub mod genop;
pub mod module;
pub mod operand;
mod reader;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
mod tables;

pub use error::{BeamError, BeamErrorKind};
pub use genop::Op;
pub use module::BeamModule;
pub use operand::Arg;

#[cfg(test)]
mod tests;
