//! Writes recordings: the emulator writes a ring, and the command takes its contents out to a stream.

pub(in crate::ring) mod dump;
mod map;
mod prefault;
pub(in crate::ring) mod request;
pub(in crate::ring) mod stream;
pub(in crate::ring) mod trigger;
pub(in crate::ring) mod writer;
