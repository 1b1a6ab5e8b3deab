//! Monitors that ports, resources of libraries and the runtime itself have on processes.

use std::sync::{Arc, Weak};

use super::refs::RefNumbers;
use super::{Peer, Process, Signal, deliver, send};
use crate::heap::{MagicBinary, Message};
use crate::term::{Atom, Pid, Port, Term};

/// A monitor of what is no process.
pub(crate) struct Watcher {
    /// Called with the reason when the process exits; with `noproc` where it is gone already.
    pub(crate) told: Box<dyn FnOnce(Term<'_>) + Send>,
    /// Whose it is.
    pub(crate) by: WatchedBy,
}

/// What has a [`Watcher`].
pub(crate) enum WatchedBy {
    /// A resource of a library.
    Object(Weak<MagicBinary>),
    /// A port.
    Port(Port),
    /// A process of another node, by this reference.
    Process(Peer, Arc<Message>),
    /// The runtime itself: programs do not see it.
    Runtime,
}

impl WatchedBy {
    /// The name of the other node whose process it is.
    pub(super) fn node_name(&self) -> Option<Atom> {
        match self {
            WatchedBy::Process(peer, _) => peer.node_name(),
            _ => None,
        }
    }
}

/// Has `watcher` hear, by this reference, when the process exits; whether it is there.
pub(crate) fn watch(pid: Pid, reference: RefNumbers, watcher: Watcher) -> bool {
    send(pid, Signal::Watch(Box::new((reference, watcher)))).is_ok()
}

/// As [`watch`]; where the process is gone, the watcher is called at once.
pub(crate) fn watch_or_tell(pid: Pid, reference: RefNumbers, watcher: Watcher) {
    deliver(pid, Signal::Watch(Box::new((reference, watcher))));
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
