//! What a recording or a profile tells a person or another program.
//!
//! The runtime does not depend on this crate. It works from the files alone.
//!
//! * [`events`]: what the events of a recording mean together: calls, spans, waits, losses, the summary;
//! * [`table`]: the text table, as OTP's `tprof` prints it;
//! * [`flamegraph`]: folded stacks, the pictures drawn from them, and the difference between two profiles;
//! * [`export`]: recordings and profiles for other programs;
//! * [`histogram`]: how long single things took;
//! * [`occurrences`]: every call of a function, or every way from one to another: how long each took, and what was done in it;
//! * [`critical`]: what made the time between two calls as long as it was, from process to process;
//! * [`html`]: a recording as one page for a browser;
//! * [`choice`]: the functions or processes that a user chooses for a report;
//! * [`fuzz`]: the readers of foreign files, as functions for fuzzers;
//! * [`cluster`]: the recordings of several nodes, read together: their clocks, what crossed between them, calls with replies;
//! * [`apart`]: the call paths of several emulators, each below a frame for its emulator;
//! * [`gate`]: what workloads did, compared with a baseline, within limits;
//! * [`json`]: a profile as JSON, for other programs;
//! * `sums`: what call paths and functions cost with all that they called;
//! * `rank`: whether times of two versions differ, or by chance.
//!
//! The modules are in layers. Each imports only those before it:
//! `apart` `rank` `sums` ◀ `events` `json` `table` ◀ `choice` `cluster` ◀ `flamegraph` `histogram` ◀ `occurrences` `export` `gate` `html` ◀ `critical` `fuzz`

pub mod apart;
pub mod choice;
pub mod cluster;
pub mod critical;
pub mod events;
pub mod export;
pub mod flamegraph;
pub mod fuzz;
pub mod gate;
pub mod histogram;
pub mod html;
pub mod json;
pub mod occurrences;
mod rank;
mod sums;
pub mod table;
#[cfg(test)]
mod tests;
