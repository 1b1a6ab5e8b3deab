//! Sockets that are ports, in a replay, which opens none. What they sent, and what their ends told, comes from the recording.
//! A connection that the recorded run accepted has a port here, too: with the same number, from the message that tells of it.

use beamline_orders::{Set, Setting, SystemMessage};

use crate::heap::Message as HeapMessage;
use crate::process::order::answer::WRITTEN;
use crate::process::ports::PORTS;
use crate::process::signal::ExitSignal as Exit;
use crate::process::{Peer, Process, Signal};
use crate::term::{Port, Term, View};

/// What the message that a listening socket sends begins with.
const ACCEPTS: &str = "inet_async";

/// The connection of which a message of a listening socket tells: `{inet_async, Socket, Number, {ok, Port}}`.
fn connection(message: Term<'_>) -> Option<Port> {
    let [tag, _, _, answer] = message.as_tuple()?.elements() else {
        return None;
    };
    let [_, accepted] = answer.as_tuple()?.elements() else {
        return None;
    };
    match accepted.view() {
        View::Port(port) if tag.as_atom()?.name() == ACCEPTS => Some(port),
        _ => None,
    }
}

/// The number of the port of the connection of which this content tells, if it does.
pub(super) fn accepted(content: &[u8]) -> Option<u64> {
    /// The tag is in the first bytes. Most contents are something else, and need not be read.
    const HEAD_BYTES: usize = 16;
    let head = content.get(..HEAD_BYTES)?;
    let has_tag = head
        .windows(ACCEPTS.len())
        .any(|at| at == ACCEPTS.as_bytes());
    let reader = has_tag.then(|| Process::new(0))?;
    let message = (WRITTEN.get().read)(&reader, content)?;
    connection(message).map(|port| port.0)
}

/// The signal that a recorded content was: of a link or a monitor, or a message.
pub(super) fn signal_of(told: &SystemMessage, content: HeapMessage) -> Signal {
    let signal = match told.set.map(Set::what) {
        Some(Setting::Monitor(_)) => down(told, content.term()),
        None if told.exit => exit(told, content.term()),
        _ => None,
    };
    signal.unwrap_or_else(|| Signal::from_outside(content))
}

/// `{Tag, Monitor, port, Port, Reason}`.
fn down(told: &SystemMessage, content: Term<'_>) -> Option<Signal> {
    let [_, monitor, _, _, reason] = content.as_tuple()?.elements() else {
        return None;
    };
    Some(Signal::MonitorDown {
        reference: monitor.as_ref()?.numbers(),
        reason: HeapMessage::copy_of(*reason),
        is_gone: told.gone,
    })
}

/// `{'EXIT', Port, Reason}`: whether they are linked now is known where it arrives.
fn exit(told: &SystemMessage, content: Term<'_>) -> Option<Signal> {
    let [_, from, reason] = content.as_tuple()?.elements() else {
        return None;
    };
    Some(Signal::Exit(Box::new(Exit {
        is_gone: told.gone,
        traps: Some(true),
        ..Exit::new(Peer::of(*from)?, *reason)
    })))
}

impl Process {
    /// Does what a socket had done before this signal of it came: a connection has a port, and the end of a link is one.
    pub(super) fn prepare_for(&self, signal: &mut Signal) {
        match signal {
            Signal::Message {
                sender, message, ..
            } if sender.is_outside() => {
                let port = connection(message.term());
                if let Some(port) = port.filter(|port| !(PORTS.get().exists)(*port)) {
                    (PORTS.get().opens_again)(self.pid(), port);
                    self.relations().linked_by(port.into());
                }
            }
            Signal::Exit(exit) if exit.from.pid().is_none() && exit.traps == Some(true) => {
                let relations = self.some_relations();
                let link = relations.as_ref().and_then(|it| it.links.get(&exit.from));
                exit.linked = link.is_some_and(|link| link.unlinking == 0);
            }
            _ => {}
        }
    }
}
