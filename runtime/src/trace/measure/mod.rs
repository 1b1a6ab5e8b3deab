//! Measures processes: a process has a meter for each session and measure, and the meter charges the nodes of its arena.

pub(crate) mod meter;
pub(in crate::trace) mod meters;
