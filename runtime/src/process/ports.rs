//! Takes messages, links and monitors from processes to ports.
//!
//! Where a port is gone, this module answers in its stead.

use super::probe::Tracee;
use super::signal::{Signal, deliver_to_peer};
use super::{NotSent, Peer, Process, deliver as deliver_to_process};
use crate::hook::Hook;
use crate::term::{Pid, Port, Term};

/// A function that is called with the tracing data of each port.
type Visit<'a> = &'a mut dyn FnMut(&Tracee);

/// The functions that take signals and messages to ports.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    /// Takes a link or monitor signal; gives it back when the port is gone.
    pub(crate) signal: fn(Port, Signal) -> Result<(), Signal>,
    /// Takes a message of `Process` (`{Owner, {command, _}}` and the like).
    pub(crate) message: fn(&Process, Port, Term<'_>) -> Result<(), NotSent>,
    /// Takes an exit signal of `exit/2`.
    pub(crate) exit: fn(&Process, Port, Term<'_>),
    /// Has a port, if it is there, take data from nobody in particular.
    pub(crate) command: fn(Port, Vec<u8>),
    /// Has a port that controls a connection to another node send what waits for it.
    pub(crate) serve_connection: fn(Port),
    /// Whether there is such a port.
    pub(crate) exists: fn(Port) -> bool,
    /// Opens a port for a connection that the recorded run accepted for this process, which is linked to it.
    pub(crate) opens_again: fn(Pid, Port),
    /// Calls it with what each port knows of tracing.
    pub(crate) each_tracee: fn(Visit<'_>),
}

/// Hook: ports take what processes send them.
pub(crate) static PORTS: Hook<Hooks> = Hook::new("the way to ports");

/// Sends a message to a port; to one that is gone it goes nowhere.
pub(super) fn send(p: &Process, to: Port, message: Term<'_>) -> Result<(), NotSent> {
    (PORTS.get().message)(p, to, message)
}

/// Sends a port an exit signal.
pub(crate) fn send_exit(p: &Process, to: Port, reason: Term<'_>) {
    (PORTS.get().exit)(p, to, reason);
}

/// Has a port take data from nobody in particular.
pub(crate) fn command(port: Port, data: Vec<u8>) {
    (PORTS.get().command)(port, data);
}

/// Has a port that controls a connection to another node send what waits for it.
pub(crate) fn serve_connection(port: Port) {
    (PORTS.get().serve_connection)(port);
}

/// Whether there is such a port.
pub(crate) fn exists(port: Port) -> bool {
    (PORTS.get().exists)(port)
}

/// Sends `signal` to a port.
pub(super) fn deliver(to: Port, signal: Signal) {
    let Err(refused) = (PORTS.get().signal)(to, signal) else {
        return;
    };
    let me = Peer::from(to);
    match refused {
        Signal::Link { from } => {
            deliver_to_peer(from, Signal::link_to_gone(me));
        }
        Signal::Unlink { from, id } => {
            deliver_to_peer(from, Signal::UnlinkAck { from: me, id });
        }
        Signal::Monitor { reference, from } => {
            deliver_to_process(from, Signal::down_of_gone(reference));
        }
        _ => {}
    }
}
