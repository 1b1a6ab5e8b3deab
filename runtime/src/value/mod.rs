//! Values that consist of several terms: maps, numbers, I/O lists. The modules here read them, and build them on a
//! heap.

pub(crate) mod file_name;
pub(crate) mod iolist;
pub(crate) mod map;
pub(crate) mod number;
pub(crate) mod packet;
pub(crate) mod timestamp;
