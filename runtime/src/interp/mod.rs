//! The interpreter, which runs specific instructions.
//!
//! Invariants:
//! - I1: code words are what the loader emitted: an instruction, its operands, and at every label an instruction. Code
//!   that a process may still run is not freed.
//! - I2: when the loop hands the process to anybody (a BIF, a slow instruction, the collector), heap top, stack top and
//!   reductions are stored in it, and taken again afterwards: swapped out and in.
//! - I3: registers the compiler calls live hold terms of this process; all others may hold anything.
#![expect(
    unsafe_code,
    reason = "the interpreter reads code words and registers unchecked"
)]

mod arms;
pub(crate) mod bits;
pub(crate) mod debugger;
pub(crate) mod helpers;
mod regs;
mod run;
mod table;

pub(crate) use run::run;
#[cfg(all(test, not(loom)))]
mod deaths;
pub(crate) mod maps;
pub(crate) mod records;
pub(crate) mod slow;
#[cfg(test)]
mod testing;
