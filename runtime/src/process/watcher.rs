//! Monitors that ports, resources of libraries and the runtime itself have on processes.

use std::sync::Weak;

use super::refs::RefNumbers;
use super::{Process, Signal, deliver, send};
use crate::heap::MagicBinary;
use crate::term::{Pid, Port};

/// A monitor of what is no process.
pub(crate) struct Watcher {
    /// Called when the process exits.
    pub(crate) told: Box<dyn FnOnce() + Send>,
    /// Whose it is.
    pub(crate) by: WatchedBy,
}

/// What has a [`Watcher`].
pub(crate) enum WatchedBy {
    /// A resource of a library.
    Object(Weak<MagicBinary>),
    /// A port.
    Port(Port),
    /// The runtime itself: programs do not see it.
    Runtime,
}

/// Has `watcher` hear, by this reference, when the process exits; whether it is there.
pub(crate) fn watch(pid: Pid, reference: RefNumbers, watcher: Watcher) -> bool {
    let request = Signal::request(move |p: Option<&mut Process>| match p {
        Some(p) => {
            p.relations().watchers.insert(reference, watcher);
        }
        None => (watcher.told)(),
    });
    send(pid, request).is_ok()
}

/// The process need not tell any more.
pub(crate) fn unwatch(pid: Pid, reference: RefNumbers) {
    let forget = move |p: Option<&mut Process>| {
        if let Some(p) = p {
            p.relations().watchers.remove(&reference);
        }
    };
    deliver(pid, Signal::request(forget));
}
