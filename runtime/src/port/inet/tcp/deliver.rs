//! Delivers packets. Source: `tcp_deliver()`, `tcp_reply_data()`.

use std::borrow::Cow;
use std::ops::Range;

use super::super::messages;
use super::super::options::Settings;
use super::input::{Input, Next, NoPacket, Over};
use super::{Due, Tcp};
use crate::heap::Heap;
use crate::port::driver::Context;
use crate::sys::chance::poll::Interest;
use crate::term::{Term, am};
use crate::value::packet::{Line, Packet, Type};

/// A packet: all bytes of the buffer, or some of them.
pub(super) struct Taken<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// The part of it that the receiver gets.
    pub(super) body: Range<usize>,
}

impl Input {
    /// The first `length` bytes that count. A packet that fills most of the buffer takes it over.
    pub(super) fn take(&mut self, length: usize, kind: Type) -> Taken<'_> {
        let (start, end) = (self.start, self.start + length);
        let body = kind.body(&self.bytes[start..end]);
        let fills = length >= self.bytes.capacity() - self.bytes.capacity() / 4;
        if start == 0 && end == self.bytes.len() && fills {
            let bytes = std::mem::take(&mut self.bytes);
            return Taken {
                bytes: Cow::Owned(bytes),
                body,
            };
        }
        self.start = end;
        Taken {
            bytes: Cow::Borrowed(&self.bytes[start..end]),
            body,
        }
    }

    /// Nothing is left of the packet that was delivered.
    pub(super) fn finish(&mut self) {
        self.missing = 0;
        if self.start == self.bytes.len() {
            self.clear();
        }
    }
}

impl Taken<'_> {
    /// Its body as its receiver gets it.
    fn data<'h>(self, heap: &'h Heap, settings: &Settings, binary: bool) -> Term<'h> {
        let header = settings.header;
        match self.bytes {
            Cow::Owned(bytes) if self.body == (0..bytes.len()) => {
                messages::data(heap, Cow::Owned(bytes), binary, header)
            }
            bytes => messages::data(heap, Cow::Borrowed(&bytes[self.body]), binary, header),
        }
    }
}

impl Tcp {
    /// Delivers packets, as many as the owner or a waiting process is to get. `length`: of the first one, 0 where that
    /// is not known. How many there were.
    pub(super) fn deliver(
        &mut self,
        port: &mut Context<'_>,
        mut length: usize,
    ) -> Result<usize, Over> {
        if length == 0 {
            if self.input.is_empty() || self.input.missing > 0 {
                return Ok(0);
            }
            length = self.next_length();
        }
        let mut count = 0;
        while length > 0 {
            self.inet.count_received(port, length);
            self.deliver_one(port, length)?;
            count += 1;
            length = 0;
            if !self.inet.settings.is_active() {
                self.cancel_due(port, Due::Receive);
                self.inet.unwatch(port, Interest::Read);
                self.input.restart();
            } else if !self.input.is_empty() {
                length = self.next_length();
            }
        }
        Ok(count)
    }

    /// The length of the next packet; 0 where it is not whole, or none.
    fn next_length(&mut self) -> usize {
        match self.input.next(&self.inet.settings) {
            // The error is reported when more comes, as for a packet whose end has not come.
            Err(NoPacket) => 0,
            Ok(Next::Whole(length)) => length,
            Ok(Next::Missing(missing)) => {
                self.input.missing = missing;
                0
            }
            Ok(Next::Unknown(_)) => 0,
        }
    }

    /// Sends a packet to the process that is to get it.
    fn deliver_one(&mut self, port: &mut Context<'_>, length: usize) -> Result<(), Over> {
        if let Some(connection) = port.state.connection.clone() {
            return self.deliver_packet(port, &connection, length);
        }
        let settings = &self.inet.settings;
        let is_active = settings.is_active();
        let in_headers = self.input.in_headers;
        let binary = settings.is_binary && (!settings.is_port_data || self.has_binary_data);
        let waiting = self.inet.waiting.take_if(|_| !is_active);
        if !is_active && waiting.is_none() {
            return Err(Over);
        }
        let packet = self.input.take(length, settings.packet);
        let (owner, id) = (port.state.owner, port.term());
        let mut line = Line::Other;
        if settings.is_port_data {
            port.tell_owner(|heap| {
                let data = packet.data(heap, settings, binary);
                heap.tuple(&[am::data.term(), data])
            });
        } else if let Some(waiting) = waiting {
            waiting.record_end(self.inet.id, "");
            messages::tell_waiting(port, &waiting, |heap| {
                let parsed = parse(heap, &packet, settings.packet, in_headers, id);
                let data = match parsed {
                    Some((term, is)) => {
                        line = is;
                        term
                    }
                    None => packet.data(heap, settings, binary),
                };
                heap.tuple(&[am::ok.term(), data])
            });
        } else {
            port.tell(owner, |heap| {
                match parse(heap, &packet, settings.packet, in_headers, id) {
                    Some((term, is)) => {
                        line = is;
                        match settings.packet {
                            Type::SslTls => term,
                            _ => heap.tuple(&[am::http.term(), id, term]),
                        }
                    }
                    None => {
                        let data = packet.data(heap, settings, binary);
                        heap.tuple(&[am::tcp.term(), id, data])
                    }
                }
            });
        }
        self.input.finish();
        match line {
            Line::Start => self.input.in_headers = true,
            Line::End => self.input.in_headers = false,
            Line::Other => {}
        }
        if is_active && self.inet.settings.is_last_of_count() {
            messages::tell_owner(port, am::tcp_passive);
        }
        Ok(())
    }
}

/// What is in a packet, if its type says so.
fn parse<'h>(
    heap: &'h Heap,
    packet: &Taken<'_>,
    kind: Type,
    in_headers: bool,
    id: Term<'h>,
) -> Option<(Term<'h>, Line)> {
    let headers = in_headers || matches!(kind, Type::Http { headers: true, .. });
    let packet = Packet {
        heap,
        bytes: &packet.bytes,
        of: None,
    };
    let parsed = packet.parse(kind, headers, id)?;
    Some((parsed.term, parsed.line))
}
