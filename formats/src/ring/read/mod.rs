//! Reads recordings, rings and streams, and says what is missing in them.

mod frames;
mod groups;
pub(in crate::ring) mod losses;
pub(in crate::ring) mod reader;
pub(in crate::ring) mod tally;
