//! Connections to other nodes: packets are taken from their queue, and those that come are given to them.

use smallvec::SmallVec;

use super::Tcp;
use super::input::Over;
use crate::dist::{self, HEAD_ROOM, Packet};
use crate::port::Connection;
use crate::port::driver::{Context, End};
use crate::process::logger;
use crate::value::iolist::{Bytes, Output as Sent};

impl Tcp {
    /// Sends what waits for the connection, until the port is busy or nothing waits any more.
    pub(super) fn send_packets(&mut self, port: &mut Context<'_>) {
        let Some(Connection { entry, number }) = port.state.connection.clone() else {
            return;
        };
        while !self.is_busy()
            && port.end.is_none()
            && let Some(packet) = entry.next_packet(number)
        {
            self.send(port, sent_of(packet), HEAD_ROOM);
        }
    }

    /// Gives a packet of this length to the connection. What that has to answer is sent once the packet has been looked at.
    pub(super) fn deliver_packet(
        &mut self,
        port: &mut Context<'_>,
        Connection { entry, number }: &Connection,
        length: usize,
    ) -> Result<(), Over> {
        // The makers of answers do not send them: they would wait for this port's lock, which is held here.
        let serves = entry.begin_to_serve(*number);
        let taken = self.input.take(length, self.inet.settings.packet);
        let packet = &taken.bytes[taken.body];
        let done = dist::receive(entry, *number, packet);
        if done.is_err() {
            logger::log_system_error(&format!(
                "Got invalid data on distribution channel from {}, offending packet is: {packet:?}\n",
                entry.name.name(),
            ));
        }
        self.input.finish();
        if serves {
            self.send_packets(port);
        }
        if done.is_err() {
            self.exit(port, End::Killed);
            return Err(Over);
        }
        Ok(())
    }
}

/// A packet as a port sends it, behind [`HEAD_ROOM`].
pub(super) fn sent_of(packet: Packet) -> Sent {
    let Packet { head, body } = packet;
    let body = body.into_iter();
    let body = body.map(|(bytes, range)| Bytes::Shared(bytes, range));
    let parts: SmallVec<[Bytes; 3]> = std::iter::once(Bytes::Own(head)).chain(body).collect();
    parts.into()
}
