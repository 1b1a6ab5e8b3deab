//! What is asked of a whole run, in the environment: sessions that the runtime makes for itself.

pub(in crate::trace) mod origin;
pub(in crate::trace) mod patterns;
pub(crate) mod profile;
pub(crate) mod replay_stopped;
pub(in crate::trace) mod span;
pub(crate) mod totals;
pub(crate) mod trial;
