//! Which ports are sockets, while the order of a run is recorded or followed. A replay opens no sockets, so what the ends of
//! such ports tell is recorded. A port that is gone is still known: links to it and monitors of it tell of that.

use parking_lot::RwLock;

use crate::process::Peer;
use crate::term::Port;

/// A bit for each number of a port.
static SOCKETS: RwLock<Vec<u64>> = RwLock::new(Vec::new());

/// The word of a port's bit, and the bit.
fn place(port: Port) -> (usize, u64) {
    let bit = 1 << (port.0 % u64::from(u64::BITS));
    ((port.0 / u64::from(u64::BITS)) as usize, bit)
}

/// Notes that this port is a socket.
pub(crate) fn note(port: Port) {
    let (at, bit) = place(port);
    let mut sockets = SOCKETS.write();
    if sockets.len() <= at {
        sockets.resize(at + 1, 0);
    }
    sockets[at] |= bit;
}

/// Is or was this port a socket?
pub(in crate::process) fn is_socket(port: Port) -> bool {
    let (at, bit) = place(port);
    SOCKETS.read().get(at).is_some_and(|word| word & bit != 0)
}

/// Is or was this a port that is a socket?
pub(in crate::process) fn is_socket_peer(peer: Peer) -> bool {
    peer.port().is_some_and(is_socket)
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
