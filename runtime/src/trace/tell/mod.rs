//! Events of processes, ports and the system: whether somebody wants to hear of one, and how it gets there.

pub(in crate::trace) mod actions;
pub(crate) mod dump;
pub(crate) mod events;
pub(crate) mod ports;
pub(crate) mod report;
pub(crate) mod seq;
pub(crate) mod sysmon;
pub(crate) mod sysprof;
