//! Values that consist of several terms: maps, numbers, I/O lists. The modules here read them, and build them on a
//! heap.

pub mod file_name;
pub mod iolist;
pub mod map;
pub mod number;
pub(crate) mod timestamp;
