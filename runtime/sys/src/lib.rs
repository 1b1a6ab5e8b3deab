//! The interfaces to the operating system. Each module is one of them, made safe.
//!
//! Each module names only those before it:
//! `chance` `errno` `halt` `libm` `locale` `pcre2` `spawn` `static_cell` `stderr` `time` `zlib` `zstd`
//! ◀ `code_memory` `counters` `crash` `environment` `file` `fork` `memory` `msacc` `signal`
//! ◀ `socket` `terminal`

pub mod chance;
pub mod code_memory;
pub mod counters;
pub mod crash;
pub mod environment;
pub mod errno;
pub mod file;
pub mod fork;
pub mod halt;
pub mod libm;
pub mod locale;
pub mod memory;
pub mod msacc;
pub mod pcre2;
pub mod signal;
pub mod socket;
pub mod spawn;
pub mod static_cell;
pub mod stderr;
pub mod terminal;
pub mod time;
pub mod zlib;
pub mod zstd;
