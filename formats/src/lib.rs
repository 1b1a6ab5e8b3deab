//! Profiles and recordings: their data, how they are written, and how they are read.
//!
//! This crate knows nothing of the runtime, which writes these files, nor of the reports that are made of them. It is
//! all that the runtime and the reports share, so that a change of a report does not build the runtime again.
//!
//! * [`profile`]: one run's counts as plain data, with a file format of its own;
//! * [`ring`]: recordings, event by event;
//! * [`machine_code`]: asks for machine code as text;
//! * [`paths`]: call paths, in which recursion folds;
//! * [`totals`]: what an emulator did in all, for gates on counts;
//! * [`name`]: the text of atoms, functions, numbers and times.
//!
//! The modules are in layers. Each imports only those before it:
//! `name` `paths` ◀ `profile` ◀ `machine_code` `ring` ◀ `totals`

pub mod machine_code;
pub mod name;
pub mod paths;
pub mod profile;
pub mod ring;
pub mod totals;
