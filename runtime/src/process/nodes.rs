//! Takes messages, links, monitors and exit signals from processes to processes of other nodes.

use super::refs::RefNumbers;
use super::{NotSent, Peer, Process, Signal};
use crate::hook::Hook;
use crate::term::{Atom, Pid, Term};

/// To whom something of another node goes.
#[derive(Clone, Copy)]
pub(crate) enum Remote<'a> {
    /// A pid, or a reference that may be an alias.
    Term(Term<'a>),
    /// A name, at a node.
    Name(Atom, Atom),
}

/// A process of another node that is monitored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoteProcess {
    /// By its pid.
    Process(Peer),
    /// By a name, at a node.
    Name(Atom, Atom),
}

impl RemoteProcess {
    /// The name of its node.
    pub(crate) fn node(self) -> Option<Atom> {
        match self {
            RemoteProcess::Process(peer) => peer.node_name(),
            RemoteProcess::Name(_, node) => Some(node),
        }
    }
}

/// How a message is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    /// Goes before others through an alias that allows it.
    pub(crate) priority: bool,
    /// To a node without a connection, one is asked for.
    pub(crate) connects: bool,
    /// Its sender waits where the receiver's connection is busy.
    pub(crate) waits: bool,
}

impl Sending {
    /// As `!` sends it.
    pub(crate) const PLAIN: Sending = Sending {
        priority: false,
        connects: true,
        waits: true,
    };
}

/// The functions that take signals and messages to other nodes.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    /// Takes a message. Error: there is no connection, and none is asked for, or it is busy.
    pub(crate) message:
        for<'p> fn(&'p Process, Remote<'p>, Term<'p>, Sending) -> Result<(), NotSent>,
    /// Takes what a process of this node has to say of a link to a process of another.
    pub(crate) signal: fn(Peer, Signal),
    /// Takes an exit signal of `exit/2`, to a pid or an alias; with priority or not.
    pub(crate) exit: for<'p> fn(&'p Process, Term<'p>, Term<'p>, bool) -> Result<(), NotSent>,
    /// Has this process monitor another, by this reference. It hears `noconnection` where that cannot be.
    pub(crate) monitor: fn(RemoteProcess, RefNumbers, Pid),
    /// No more.
    pub(crate) demonitor: fn(RemoteProcess, RefNumbers, Pid),
    /// Has a process wait until the connection to a node takes data: what controls it. `None` where it does already.
    pub(crate) room: fn(&Process, Atom) -> Option<Peer>,
}

/// Hook: other nodes get what processes send them.
pub(crate) static NODES: Hook<Hooks> = Hook::new("the way to other nodes");

/// Sends a message to another node.
///
/// # Errors
/// There is no connection, and none is to be made; or it is busy.
pub(super) fn send<'p>(
    p: &'p Process,
    to: Remote<'p>,
    message: Term<'p>,
    sending: Sending,
) -> Result<(), NotSent> {
    (NODES.get().message)(p, to, message, sending)
}

/// Sends a signal of a link to a process of another node.
pub(super) fn deliver(to: Peer, signal: Signal) {
    (NODES.get().signal)(to, signal);
}

/// Sends an exit signal to a process of another node.
///
/// # Errors
/// [`NotSent::TooLarge`], or [`NotSent::Encoding`].
pub(crate) fn send_exit<'p>(
    p: &'p Process,
    to: Term<'p>,
    reason: Term<'p>,
    priority: bool,
) -> Result<(), NotSent> {
    (NODES.get().exit)(p, to, reason, priority)
}

/// Has `p`, which has sent a signal to `node`, wait until the connection takes data: what controls it. `None` where it
/// does already, or where `p` does not wait.
pub(crate) fn wait_for_room(p: &Process, node: Atom) -> Option<Peer> {
    let waits = !p.flags.get().async_dist;
    waits.then(|| (NODES.get().room)(p, node)).flatten()
}

/// Has the process `by` monitor one of another node.
pub(super) fn monitor(target: RemoteProcess, reference: RefNumbers, by: Pid) {
    (NODES.get().monitor)(target, reference, by);
}

/// Ends a monitor of a process of another node.
pub(super) fn demonitor(target: RemoteProcess, reference: RefNumbers, by: Pid) {
    (NODES.get().demonitor)(target, reference, by);
}
