//! The process that knows all sockets (`socket_registry`), and whether new sockets register with it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::process::registry::{Named, whereis};
use crate::term::{Atom, Pid};

static IS_USED: AtomicBool = AtomicBool::new(true);

/// Are new sockets told to the registry, unless they say otherwise?
pub(super) fn is_used() -> bool {
    IS_USED.load(Ordering::Relaxed)
}

/// Has new sockets told to the registry, or not.
pub(super) fn set_used(is_used: bool) {
    IS_USED.store(is_used, Ordering::Relaxed);
}

/// The registry, if it runs.
pub(super) fn find() -> Option<Pid> {
    static NAME: OnceLock<Atom> = OnceLock::new();
    match whereis(*NAME.get_or_init(|| Atom::new("socket_registry")))? {
        Named::Process(pid) => Some(pid),
        Named::Port(_) => None,
    }
}
