//! What the events of a recording mean together.
//!
//! * [`scan`] hands all records on, in order of time;
//! * [`Stacks`], [`Spans`], [`InTransit`] follow what is open: calls, time slices and collections, messages;
//! * [`meanwhile`] gives waits what others did until they ended them;
//! * [`Summary`] is what a person wants to know first.

pub(crate) mod batch;
mod blocks;
pub(crate) mod calls;
mod connections;
mod counters;
mod in_transit;
mod living;
mod meanwhile;
pub(crate) mod part;
pub(crate) mod pass;
pub(crate) mod rests;
#[cfg(test)]
pub(crate) mod sample;
mod sampled;
mod shares;
mod spans;
pub(crate) mod spool;
mod stacks;
pub(crate) mod summary;
mod total;

pub use blocks::{Block, BlockCaller, LIMIT_NS, Unfinished};
pub use calls::{profile, profile_and_losses};
pub use connections::{Connection, Peer, Times, Waited};
pub use counters::{CounterCost, Counters};
pub use in_transit::{InTransit, Passing, Sent};
pub(crate) use meanwhile::MEANWHILE;
pub use meanwhile::{NEEDS as MEANWHILE_NEEDS, meanwhile};
pub use pass::scan;
pub(crate) use sampled::Tallies;
pub use sampled::{Change, Changes, Does, Looked, Moved, Row, Sampled, Share, Stopped, ThreadKind};
pub(crate) use spans::SLICE_REDUCTIONS;
pub use spans::{Collection, DirtyCall, End, Slice, SocketSpan, Span, Spans, follow};
pub use stacks::{Activation, Stacks, Step};
pub use summary::{DirtyUse, FunctionCost, Longest, Shown, Summary, Use};
