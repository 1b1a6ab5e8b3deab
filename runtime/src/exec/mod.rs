//! What any engine needs to run code: calls by name, of funs and of BIFs, guards, exceptions and their handlers, stack
//! traces, operators.
//!
//! Invariants: H1 of `heap/mod.rs`, T1 of `term/mod.rs`, P2 of `process/mod.rs`, I1 and I3 of `interp/mod.rs`.
#![expect(unsafe_code, reason = "stacks are words")]

pub(crate) mod arith;
#[cfg(test)]
mod arith_property;
pub(crate) mod bif;
pub(crate) mod call;
pub(crate) mod dirty;
pub(crate) mod exception;
pub(crate) mod guard;
pub(crate) mod nif;
pub(crate) mod raise;
pub(crate) mod stack_dump;
