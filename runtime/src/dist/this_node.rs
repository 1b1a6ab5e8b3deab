//! The name of this node, and its end.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use super::entry::{DistEntry, Phase};
use super::node_monitors;
use crate::process::order::director::may_have_other_nodes;
use crate::process::refs::make_ref;
use crate::process::registry::{self, Named};
use crate::process::watcher::{WatchedBy, Watcher, watch};
use crate::term::counted::{self, is_alive, node_name, set_this_node};
use crate::term::{Atom, Pid, Term, am};
use crate::trace::record::dist;

/// Why this node gets no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It has one, or it is none, or there is no `net_kernel`.
    BadName,
    /// The order of this run is recorded or explored, and what other nodes do is no part of that.
    Ordered,
}

/// The first creation that a program may have. Source: `setnode_2()`.
const FIRST_CREATION: u32 = 4;

/// Numbers given to connections so far. A name of this node takes one, too.
static CONNECTIONS: AtomicU32 = AtomicU32::new(0);

/// The `net_kernel` for which this node has its name, and with which it loses it.
static KERNEL: Mutex<Option<Pid>> = Mutex::new(None);

/// The number of a new connection.
pub(super) fn next_connection() -> u32 {
    CONNECTIONS.fetch_add(1, Ordering::Relaxed) + 1
}

/// Is it the name of a node: two parts, and `@` between them?
pub(crate) fn is_node_name(name: Atom) -> bool {
    let parts = name.name().split_once('@');
    parts.is_some_and(|(alive, host)| !alive.is_empty() && !host.is_empty() && !host.contains('@'))
}

/// The process that is registered as `net_kernel`.
pub(crate) fn net_kernel() -> Option<Pid> {
    match registry::whereis(am::net_kernel)? {
        Named::Process(pid) => Some(pid),
        Named::Port(_) => None,
    }
}

/// Gives this node a name, until `net_kernel` ends.
///
/// # Errors
/// [`Refused`].
pub(crate) fn set_name(name: Atom, creation: u32) -> Result<(), Refused> {
    if !may_have_other_nodes() {
        return Err(Refused::Ordered);
    }
    let mut kernel = KERNEL.lock();
    if is_alive() || !is_node_name(name) || name == am::nonode_at_nohost {
        return Err(Refused::BadName);
    }
    let pid = net_kernel().ok_or(Refused::BadName)?;
    let mut creation = creation.max(FIRST_CREATION);
    while counted::Node::is_named(name, creation) {
        creation = creation.wrapping_add(1).max(FIRST_CREATION);
    }
    let watcher = Watcher {
        told: Box::new(lose_name),
        by: WatchedBy::Runtime,
    };
    set_this_node(name, creation);
    dist::named(name, creation);
    *kernel = Some(pid);
    drop(kernel);
    if !watch(pid, make_ref(), watcher) {
        lose_name(am::noproc.term());
        return Err(Refused::BadName);
    }
    node_monitors::tell_up(name, next_connection(), true);
    Ok(())
}

/// `net_kernel` has ended: all connections end, and the name goes.
fn lose_name(reason: Term<'_>) {
    if KERNEL.lock().take().is_none() {
        return;
    }
    let reason = if reason == am::no_network {
        am::no_network
    } else {
        am::net_kernel_terminated
    };
    for entry in DistEntry::all() {
        match entry.phase() {
            Phase::Connected => _ = entry.end_controller(reason),
            Phase::Pending => _ = entry.abort(entry.connection()),
            Phase::Idle => {}
        }
    }
    let name = node_name();
    set_this_node(am::nonode_at_nohost, 0);
    node_monitors::tell_down(name, 0, true, reason.term());
}
