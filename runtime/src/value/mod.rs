//! What several terms are together: maps, numbers, I/O lists. Reading them, and building them on a heap.

pub mod file_name;
pub mod iolist;
pub mod map;
pub mod number;
pub(crate) mod timestamp;
