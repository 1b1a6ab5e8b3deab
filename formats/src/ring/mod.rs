//! Recordings: the events of a run, one by one, in a memory-mapped file.
//!
//! A ring file has a segment for each scheduler. Only that scheduler writes to it, so no writer waits for another or
//! shares a cache line with it. Records are a few words long and carry a timestamp of the processor's clock. Names
//! stand in a part of their own that nobody overwrites. Whatever ends the program, the file can be read up to its last
//! whole record and says what was lost. `docs/FORMAT.md` specifies the format to the byte.
//!
//! * [`Ring`] makes a file, and [`Segment`] writes to it;
//! * [`Recording`] reads a file;
//! * [`Event`] is what a record tells.

mod description;
mod dump;
mod error;
mod event;
mod file_names;
mod groups;
mod id;
mod layout;
mod losses;
mod map;
mod names;
mod prefault;
mod reader;
mod request;
pub mod seal;
mod shared_access;
mod signal;
mod socket;
mod stream;
mod tally;
#[cfg(test)]
mod tests;
mod time;
mod trigger;
mod writer;

pub use description::{Description, Host, Sampling, Settings};
pub use dump::{Dump, Kept, Watch, Why, Window, monotonic_ns};
pub use error::Error;
pub use event::{DIRTY_CPU, DIRTY_IO, Event, FIELDS_MAX, Group, KINDS, Kind, Rename, Value, table};
pub use file_names::{numbered, part_of};
pub use id::{Again, Id, Label, NODES, NameId, Near};
pub use layout::{VERSION, WhenFull};
pub use losses::{Losses, Lost};
pub use names::{Frame, Function, Name, Names, Node, Process};
pub use reader::{Counts, Loss, Merged, RawRecord, Record, Recording, SegmentReader};
pub use request::{Request, System};
pub use shared_access::{Shared, Touch};
pub use signal::SignalKind;
pub use socket::{Socket, SocketEnd, SocketKind, SocketWait};
pub use stream::{Drain, Took};
pub use tally::Tally;
pub use trigger::Trigger;
pub use writer::{Anchor, Clock, Growing, Ring, RingOptions, Segment, least_bytes, lock};
