//! Data types of profiles and recordings, with their reports and exports.
//!
//! This crate knows nothing of the runtime. The runtime writes these types when a run ends, and reports work from the
//! files alone.
//!
//! * [`profile`]: one run's counts as plain data, with a file format of its own;
//! * [`table`]: the text table, as OTP's `tprof` prints it;
//! * [`flamegraph`]: folded stacks, the pictures drawn from them, and the difference between two profiles;
//! * [`export`]: recordings and profiles for other programs;
//! * [`histogram`]: how long single things took;
//! * [`html`]: a recording as one page for a browser;
//! * [`choice`]: the functions or processes that a user chooses for a report;
//! * [`chance`]: where runs take what no program determines, and the clocks of the tools;
//! * [`engine`]: what runs code;
//! * [`fuzz`]: the readers of foreign files, as functions for fuzzers;
//! * [`gate`]: what workloads did, compared with a baseline, within limits;
//! * [`json`]: a profile as JSON, for other programs;
//! * [`order`]: what processes did to each other in a run, as traces;
//! * [`ring`]: recordings, event by event;
//! * [`native_code`]: asks for machine code as text;
//! * [`paths`]: call paths, in which recursion folds;
//! * [`perf`]: what the profiler `perf` is told of compiled code;
//! * [`totals`]: what an emulator did in all, for gates on counts;
//! * [`variable`]: requests to emulators, in environment variables;
//! * [`name`]: the text of atoms, functions, numbers and times;
//! * [`random`]: numbers that are the same for the same seed;
//! * `names`: sets of values that the command line names;
//! * `rank`: whether times of two versions differ, or by chance.
//!
//! The modules are in layers. Each imports only those before it:
//! `name` `names` `paths` `random` `rank` `variable` ◀ `chance` `engine` `perf` `profile` ◀ `json` `native_code` `ring` `table` ◀ `choice` `order` `totals` ◀ `flamegraph` `histogram`
//! ◀ `export` `gate` `html` ◀ `fuzz`

pub mod chance;
pub mod choice;
pub mod engine;
pub mod export;
pub mod flamegraph;
pub mod fuzz;
pub mod gate;
pub mod histogram;
pub mod html;
pub mod json;
pub mod name;
mod names;
pub mod native_code;
pub mod order;
pub mod paths;
pub mod perf;
pub mod profile;
pub mod random;
mod rank;
pub mod ring;
pub mod table;
#[cfg(test)]
mod tests;
pub mod totals;
pub mod variable;
