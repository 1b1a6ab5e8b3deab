//! What the operating system gives. Each module is one system interface, made safe.

pub mod chance;
pub mod counters;
pub mod environment;
pub mod errno;
pub mod file;
pub mod halt;
pub(crate) mod libm;
pub mod locale;
pub mod memory;
pub mod pcre2;
pub mod signal;
pub mod spawn;
pub(crate) mod static_cell;
pub(crate) mod stderr;
pub mod time;
pub mod zlib;
