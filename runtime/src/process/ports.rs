//! The way from processes to ports: messages, links, monitors.
//!
//! Ports set the hooks when the first one is opened; until then no port exists, and what is sent to one
//! is answered as by a port that is gone.

use std::sync::OnceLock;

use super::signal::{Peer, Signal, deliver_to_peer};
use super::{NotSent, Process, deliver as deliver_to_process};
use crate::heap::Message;
use crate::term::{Port, Term, am};

/// What takes signals and messages to ports.
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
    /// Whether there is such a port.
    pub(crate) exists: fn(Port) -> bool,
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// Says who takes what is sent to ports. The first call counts.
pub(crate) fn set_hooks(hooks: Hooks) {
    let _ = HOOKS.set(hooks);
}

/// Sends a message to a port; to one that is gone it goes nowhere.
pub(super) fn send(p: &Process, to: Port, message: Term<'_>) -> Result<(), NotSent> {
    match HOOKS.get() {
        Some(hooks) => (hooks.message)(p, to, message),
        None => Ok(()),
    }
}

/// Sends a port an exit signal.
pub(crate) fn send_exit(p: &Process, to: Port, reason: Term<'_>) {
    if let Some(hooks) = HOOKS.get() {
        (hooks.exit)(p, to, reason);
    }
}

/// Has a port take data from nobody in particular.
pub(crate) fn command(port: Port, data: Vec<u8>) {
    if let Some(hooks) = HOOKS.get() {
        (hooks.command)(port, data);
    }
}

/// Whether there is such a port.
pub(crate) fn exists(port: Port) -> bool {
    HOOKS.get().is_some_and(|hooks| (hooks.exists)(port))
}

/// Sends `signal` to a port.
pub(super) fn deliver(to: Port, signal: Signal) {
    let refused = match HOOKS.get() {
        Some(hooks) => match (hooks.signal)(to, signal) {
            Ok(()) => return,
            Err(signal) => signal,
        },
        None => signal,
    };
    let me = Peer::from(to);
    match refused {
        Signal::Link { from } => {
            deliver_to_peer(from, Signal::link_exit(me, am::noproc.term()));
        }
        Signal::Unlink { from, id } => {
            deliver_to_peer(from, Signal::UnlinkAck { from: me, id });
        }
        Signal::Monitor { reference, from } => {
            let reason = Message::copy_of(am::noproc.term());
            deliver_to_process(from, Signal::MonitorDown { reference, reason });
        }
        _ => {}
    }
}
