//! Distribution: connections to other nodes, and the signals that cross them.
//!
//! A node that is or was talked to has an [`entry::DistEntry`]. OTP's own `net_kernel`, `dist_util` and carriers set
//! connections up; this module takes over once the handshake is done. What goes out is encoded by its sender
//! ([`output`]), queued, and pulled by the connection's controller: a port, or a process. What comes in is decoded by
//! the controller's thread ([`input`]) and sent on to its receiver.
//!
//! Order of locks: a port's, then an entry's. An entry's lock is not held while signals are sent.
//!
//! Source: `dist.c`, `erl_node_tables.c`, OTP 29, and the description of the distribution protocol in ERTS's documentation.

mod atom_cache;
pub(crate) mod capabilities;
pub(crate) mod entry;
mod input;
pub(crate) mod node_monitors;
mod operation;
mod output;
mod queue;
pub(crate) mod spawn;
pub(crate) mod this_node;
mod unsent;

pub(crate) use input::receive;
pub(crate) use output::hooks;
pub(crate) use queue::{HEAD_ROOM, Packet, busy_limit, set_busy_limit};
