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
//!
//! A folder names only those before it: `model` ◀ `read` ◀ `write`. `write` names `read`, because a request reads the
//! tokens of the rings that lie in its folder already.

mod model;
mod read;
pub mod seal;
#[cfg(test)]
mod tests;
mod write;

pub use model::description::{Description, Host, Sampling, Settings};
pub use model::error::Error;
pub use model::event::{
    DIRTY_CPU, DIRTY_IO, Event, FIELDS_MAX, Group, KINDS, Kind, Rename, Value, table,
};
pub use model::file_names::{numbered, part_of};
pub use model::id::{Again, Id, Label, NODES, NameId, Near};
pub use model::kept::{Kept, Why};
pub use model::layout::{VERSION, WhenFull};
pub use model::names::{Frame, Function, Name, Names, Node, Process};
pub use model::shared_access::{Shared, Touch};
pub use model::signal::SignalKind;
pub use model::socket::{Socket, SocketEnd, SocketKind, SocketWait};
pub use model::time::{Anchor, Clock};
pub use read::losses::{Losses, Lost};
pub use read::reader::{Counts, Loss, Merged, RawRecord, Record, Recording, SegmentReader};
pub use read::tally::Tally;
pub use write::dump::{Dump, Watch, Window, monotonic_ns};
pub use write::request::{Request, System};
pub use write::stream::{Drain, Took};
pub use write::trigger::Trigger;
pub use write::writer::{Growing, Ring, RingOptions, Segment, least_bytes, lock};
