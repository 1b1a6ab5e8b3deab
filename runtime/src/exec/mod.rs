//! What running code takes, whatever engine runs it: exceptions, stack traces, operators.
//!
//! Invariants: H1 of `heap/mod.rs` and T1 of `term/mod.rs`.
#![expect(unsafe_code, reason = "stacks are words")]

pub(crate) mod arith;
#[cfg(test)]
mod arith_property;
pub(crate) mod exception;
