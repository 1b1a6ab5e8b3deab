//! What a recording consists of, shared by writers and readers: events, names, ids, and the layout of the files.

pub(in crate::ring) mod description;
pub(in crate::ring) mod error;
pub(in crate::ring) mod event;
pub(in crate::ring) mod file_names;
pub(in crate::ring) mod frame;
pub(in crate::ring) mod id;
pub(in crate::ring) mod kept;
pub(in crate::ring) mod layout;
pub(in crate::ring) mod names;
pub(in crate::ring) mod shared_access;
pub(in crate::ring) mod signal;
pub(in crate::ring) mod socket;
pub(in crate::ring) mod time;
