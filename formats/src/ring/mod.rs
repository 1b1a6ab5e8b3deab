//! Recordings: the events of a run, one by one, in a memory-mapped file.
//!
//! A ring file has a segment for each scheduler. Only that scheduler writes to it, so no writer waits for another or
//! shares a cache line with it. Records are a few words long and carry a timestamp of the processor's clock. Names
//! stand in a part of their own that nobody overwrites. Whatever ends the program, the file can be read up to its last
//! whole record and says what was lost. `docs/FORMAT.md` specifies the format to the byte.
//!
//! * [`Ring`] makes a file, and [`Segment`] writes to it;
//! * [`Recording`] reads a file;
//! * [`Event`] is what a record tells;
//! * [`Summary`] is what a person wants to know first.

pub(crate) mod batch;
mod beside;
mod blocks;
pub(crate) mod calls;
mod counter;
mod counters;
mod description;
mod dump;
mod error;
mod event;
mod id;
mod in_transit;
mod layout;
mod living;
mod losses;
mod map;
mod names;
pub(crate) mod part;
pub(crate) mod pass;
mod prefault;
mod reader;
mod request;
#[cfg(test)]
pub(crate) mod sample;
mod sampled;
pub(crate) mod seal;
mod shares;
mod signal;
mod spans;
pub(crate) mod spool;
mod stacks;
mod stream;
pub(crate) mod summary;
mod tally;
#[cfg(test)]
pub(crate) mod tests;
mod time;
mod total;
mod touch;
mod trigger;
mod writer;

pub use beside::{numbered, part_of};
pub use blocks::{Block, BlockCaller, LIMIT_NS, Unfinished};
pub use counter::{COUNTERS_MAX, Counted, Counter};
pub use counters::{CounterCost, Counters};
pub use description::{Description, Host, Sampling, Settings};
pub use dump::{Dump, Kept, Watch, Why, Window, monotonic_ns};
pub use error::Error;
pub use event::{DIRTY_CPU, DIRTY_IO, Event, Group, KINDS, Kind, Value, table};
pub(crate) use id::Again;
pub use id::{Id, Label, NameId, Near};
pub use in_transit::{InTransit, Passing, Sent};
pub use layout::{VERSION, WhenFull};
pub use losses::{Losses, Lost};
pub use names::{Frame, Function, Name, Names, Process};
pub use reader::{Counts, Loss, Merged, Record, Recording, SegmentReader};
pub use request::{Request, System};
pub use sampled::{Does, Looked, Row, Sampled, Share, Stopped, ThreadKind};
pub use signal::SignalKind;
pub use spans::{Collection, DirtyCall, End, Slice, Span, Spans};
pub use stacks::{Activation, Stacks, Step};
pub use stream::{Drain, Took};
pub use summary::{DirtyUse, FunctionCost, Longest, Shown, Summary, Use};
pub use tally::Tally;
pub use touch::{Shared, Touch};
pub use trigger::Trigger;
pub use writer::{Anchor, Clock, Growing, Ring, RingOptions, Segment, least_bytes, lock};
