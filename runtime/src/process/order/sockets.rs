//! Which ports are sockets, while the order of a run is recorded or followed. A replay opens no sockets, so what the ends of
//! such ports tell is recorded. A port that is gone is still known: links to it and monitors of it tell of that.

use parking_lot::RwLock;

use super::is_active;
use crate::heap::{Heap, Message};
use crate::process::refs::RefNumbers;
use crate::process::{Monitored, Peer, Process};
use crate::term::{Atom, Port, Term, am};

/// A bit for each number of a port.
static SOCKETS: RwLock<Vec<u64>> = RwLock::new(Vec::new());

/// The word of a port's bit, and the bit.
fn place(port: Port) -> (usize, u64) {
    let bit = 1 << (port.0 % u64::from(u64::BITS));
    ((port.0 / u64::from(u64::BITS)) as usize, bit)
}

/// A port has been made, which is a socket.
pub(crate) fn made(port: Port) {
    if is_active() {
        note(port);
    }
}

/// Notes that this port is a socket.
fn note(port: Port) {
    let (at, bit) = place(port);
    let mut sockets = SOCKETS.write();
    if sockets.len() <= at {
        sockets.resize(at + 1, 0);
    }
    sockets[at] |= bit;
}

/// Is or was this port a socket?
fn is_socket(port: Port) -> bool {
    let (at, bit) = place(port);
    SOCKETS.read().get(at).is_some_and(|word| word & bit != 0)
}

/// Is or was this a port that is a socket?
fn is_socket_peer(peer: Peer) -> bool {
    peer.port().is_some_and(is_socket)
}

impl Process {
    /// The exit signal of a link comes next: if it is of a socket, what it tells is recorded.
    pub(in crate::process) fn record_exit_of_socket(&self, from: Peer, reason: Term<'_>) {
        if is_active() && is_socket_peer(from) {
            let message = Heap::detached().into_message(|heap| {
                heap.tuple(&[Atom::term(am::EXIT), from.term(heap), heap.copy_in(reason)])
            });
            self.record_content(message.term());
        }
    }

    /// What the monitor `reference` tells comes next: if that is of a socket, it is recorded.
    pub(in crate::process) fn record_down_of_socket(
        &self,
        reference: RefNumbers,
        reason: Term<'_>,
    ) {
        if is_active() && self.monitors_socket(reference) {
            let down = self.down_message(reference, Message::copy_of(reason));
            down.iter()
                .for_each(|down| self.record_content(down.term()));
        }
    }

    /// Is this one of its monitors, and of a socket?
    fn monitors_socket(&self, reference: RefNumbers) -> bool {
        let relations = self.some_relations();
        let origin = relations.as_ref().and_then(|it| it.origins.get(&reference));
        match origin.map(|origin| origin.target) {
            Some(Monitored::Port(port) | Monitored::NamedPort(_, _, Some(port))) => is_socket(port),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_stays_known() {
        // No other test has so many ports.
        let [one, other] = [100_000, 100_001].map(Port);
        assert!(!is_socket(one));
        note(one);
        assert!(is_socket(one) && is_socket_peer(one.into()));
        assert!(!is_socket(other) && !is_socket(Port(1 << 40)));
    }
}
