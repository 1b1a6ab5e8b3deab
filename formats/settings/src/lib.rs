//! What the command and the machine tell each other, and what both take from outside.
//!
//! This crate lies below all others: it has the few values that the command sets and a run obeys.
//!
//! * [`chance`]: where runs take what no program determines, and the clocks of the tools;
//! * [`counter`]: counters of the processor that a recording reads;
//! * [`emulator_flags`]: which flags of OTP's emulator have their value in the next argument;
//! * [`engine`]: what runs code;
//! * [`perf`]: what the profiler `perf` learns of compiled code;
//! * [`published`]: what a running machine keeps in its memory for whoever looks at it from outside;
//! * [`random`]: numbers that are the same for the same seed;
//! * [`variable`]: requests to emulators, in environment variables;
//! * `names`: sets of values that the command line names, as a macro.
//!
//! The modules are in layers. Each imports only those before it:
//! `counter` `emulator_flags` `names` `published` `random` `variable` ◀ `chance` `engine` `perf`

pub mod chance;
pub mod counter;
pub mod emulator_flags;
pub mod engine;
mod names;
pub mod perf;
pub mod published;
pub mod random;
pub mod variable;
