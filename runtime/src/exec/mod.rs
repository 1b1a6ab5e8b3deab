//! What running code takes, whatever engine runs it: exceptions, stack traces, operators.
#![expect(unsafe_code, reason = "stacks are words")]

pub(crate) mod arith;
#[cfg(test)]
mod arith_property;
pub(crate) mod exception;
