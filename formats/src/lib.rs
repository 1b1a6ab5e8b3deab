//! Profile and recording data types, reports and exports.
//!
//! Nothing here knows the runtime: it writes these types when a run ends, and whoever reports
//! works from the files alone.
//!
//! * [`profile`]: one run's counts as plain data, with a file format of its own;
//! * [`table`]: the text table, as OTP's `tprof` prints it;
//! * [`flamegraph`]: folded stacks, the pictures drawn from them, and what two profiles differ in;
//! * [`export`]: recordings and profiles for other programs;
//! * [`histogram`]: how long single things took;
//! * [`html`]: a recording as one page for a browser;
//! * [`choice`]: which functions or processes a report is of;
//! * [`chance`]: where runs take what no program determines, and the clocks of the tools;
//! * [`fuzz`]: what reads foreign files, as functions for fuzzers;
//! * [`gate`]: what workloads did, compared with a baseline, within limits;
//! * [`json`]: the export for other programs;
//! * [`ring`]: recordings, event by event;
//! * [`paths`]: call paths, in which recursion folds;
//! * [`totals`]: what an emulator did in all, for gates on counts;
//! * [`variable`]: what is asked of emulators, in environment variables;
//! * [`name`]: how atoms and functions are written.
//!
//! Layers, each of which imports only those before it:
//! `name` `paths` `variable` ◀ `chance` `profile` ◀ `json` `ring` `table` ◀ `choice` `totals` ◀ `flamegraph` `histogram`
//! ◀ `export` `gate` `html` ◀ `fuzz`

pub mod chance;
pub mod choice;
pub mod export;
pub mod flamegraph;
pub mod fuzz;
pub mod gate;
pub mod histogram;
pub mod html;
pub mod json;
pub mod name;
pub mod paths;
pub mod profile;
pub mod ring;
pub mod table;
#[cfg(test)]
mod tests;
pub mod totals;
pub mod variable;
