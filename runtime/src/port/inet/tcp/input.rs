//! What has been received and not been delivered. Source: `tcp_recv()`, `tcp_remain()`.

use rustix::io::Errno;

use super::super::options::Settings;
use super::super::{error_atom, status};
use super::Tcp;
use crate::port::driver::{Context, End};
use crate::sys::chance::poll::Interest;
use crate::sys::socket;
use crate::term::am;
use crate::value::packet::{Length, Limits, Type, length};

/// Bytes that have been received. There is no buffer while there are none.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// Those from `start` on count.
    pub(super) bytes: Vec<u8>,
    pub(super) start: usize,
    /// Bytes that the buffer is to hold.
    pub(super) size: usize,
    /// How many are missing of the packet that it begins with; 0 where that is not known.
    pub(super) missing: usize,
    /// The last read has filled what it was given: there is probably more.
    pub(super) was_filled: bool,
    /// The start line of an HTTP message has come, and its headers follow.
    pub(super) in_headers: bool,
}

/// What is known of the packet that the buffer begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is whole, with this number of bytes.
    Whole(usize),
    /// This number of bytes is missing.
    Missing(usize),
    /// Its length is not known: this number of bytes is to be read next.
    Unknown(usize),
}

/// What is there is no packet, or too large for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoPacket;

impl Input {
    pub(super) fn clear(&mut self) {
        *self = Input {
            in_headers: self.in_headers,
            was_filled: self.was_filled,
            ..Input::default()
        };
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Has somebody asked for bytes, or are there some?
    fn is_begun(&self) -> bool {
        self.size != 0
    }

    pub(super) fn forget_length(&mut self) {
        self.missing = 0;
        self.rest();
    }

    /// Gives up the memory that nothing is in, and the buffer, where no length is to be kept.
    fn rest(&mut self) {
        if self.is_empty() {
            self.bytes = Vec::new();
            if self.missing == 0 {
                self.clear();
            }
        }
    }

    /// Has room for what is to be read.
    fn make_room(&mut self) {
        let room = self.size.saturating_sub(self.bytes.len());
        self.bytes.reserve_exact(room);
    }

    /// Bytes that are there.
    pub(super) fn length(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Puts bytes before those that are there.
    pub(super) fn push_front(&mut self, bytes: &[u8]) {
        let rest = &self.bytes[self.start..];
        self.bytes = [bytes, rest].concat();
        self.start = 0;
        self.size = self.size.max(self.bytes.len());
        self.missing = 0;
    }

    /// Moves what is there to the start of the buffer.
    pub(super) fn restart(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
    }

    /// Makes room for `length` bytes from the first one that counts.
    fn expand(&mut self, length: usize) {
        let size = self.start + length;
        if self.size < size {
            self.size = size;
        }
    }

    /// Bytes that are to be read of a packet whose length does not show yet, where no more may be read. 0 where more may.
    /// Source: `packet_header_length()`.
    fn head_missing(&self, settings: &Settings) -> usize {
        if settings.read_ahead {
            return 0;
        }
        let head: usize = match settings.packet {
            Type::Raw => return 0,
            Type::Length(head) => head,
            Type::SunRm | Type::Tpkt => 4,
            Type::Asn1 => 2,
            Type::SslTls => 5,
            Type::Cdr => 12,
            Type::Fcgi => 8,
            Type::Line | Type::Http { .. } => 1,
        };
        head.saturating_sub(self.length()).max(1)
    }

    /// What packet the bytes that are there begin.
    pub(super) fn next(&mut self, settings: &Settings) -> Result<Next, NoPacket> {
        let limits = Limits {
            packet: settings.packet_size,
            line: self.size,
            delimiter: settings.delimiter,
        };
        let bytes = &self.bytes[self.start..];
        let there = bytes.len();
        let kind = match settings.packet {
            Type::Http { headers, binary } => Type::Http {
                headers: headers || self.in_headers,
                binary,
            },
            kind => kind,
        };
        match length(kind, bytes, limits) {
            Length::Invalid => Err(NoPacket),
            Length::Bytes(length) if length <= there => Ok(Next::Whole(length)),
            Length::Bytes(length) => {
                if i32::try_from(self.start + length).is_err() {
                    return Err(NoPacket);
                }
                self.expand(length);
                Ok(Next::Missing(length - there))
            }
            Length::More => self.room_for_more(settings),
        }
    }

    fn room_for_more(&mut self, settings: &Settings) -> Result<Next, NoPacket> {
        let head = self.head_missing(settings);
        let (there, room) = (self.length(), self.size.saturating_sub(self.bytes.len()));
        if head != 0 {
            self.restart();
            self.expand(there + head);
            return Ok(Next::Unknown(head));
        }
        if room == 0 && self.start == 0 {
            // The packet fills the buffer.
            if settings.packet_size <= there {
                return Err(NoPacket);
            }
            self.expand(settings.packet_size);
            return Ok(Next::Unknown(settings.packet_size - there));
        }
        self.restart();
        Ok(Next::Unknown(self.size - there))
    }

    /// Makes a buffer, where there is none: bytes that are to be read.
    fn begin(&mut self, settings: &Settings, request: usize) -> usize {
        let size = if request > 0 {
            request
        } else {
            settings.buffer
        };
        self.size = size;
        self.start = 0;
        self.missing = request;
        match (request, self.head_missing(settings)) {
            (0, 0) => size,
            (0, head) => head,
            _ => request,
        }
    }
}

/// Nothing more can be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Over;

impl Tcp {
    /// Reads, and delivers what is whole. `request`: bytes that a process has asked for, 0 for a packet. How many packets
    /// were delivered.
    pub(super) fn read(&mut self, port: &mut Context<'_>, request: usize) -> Result<usize, Over> {
        let settings = &self.inet.settings;
        let mut wanted = if !self.input.is_begun() {
            self.input.begin(settings, request)
        } else if request > 0 {
            let there = self.input.length();
            if there >= request {
                return self.deliver(port, request);
            }
            self.input.expand(request);
            self.input.missing = request - there;
            self.input.missing
        } else if self.input.missing == 0 {
            match self.input.next(settings) {
                Err(NoPacket) => return self.lost(port, Errno::MSGSIZE),
                Ok(Next::Whole(length)) => return self.deliver(port, length),
                Ok(Next::Missing(missing)) => {
                    self.input.missing = missing;
                    missing
                }
                Ok(Next::Unknown(wanted)) => wanted,
            }
        } else {
            self.input.missing
        };
        loop {
            self.input.make_room();
            let received = match self.inet.socket() {
                Ok(socket) => socket::receive_behind(socket, &mut self.input.bytes, wanted),
                Err(error) => Err(error),
            };
            let received = match received {
                Ok(0) => return self.closed_by_peer(port),
                Ok(received) => received,
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.input.rest();
                    return Ok(0);
                }
                Err(Errno::CONNRESET) if !self.inet.settings.show_econnreset => {
                    return self.closed_by_peer(port);
                }
                Err(error) => return self.lost(port, error),
            };
            port.took_input(received);
            self.input.was_filled = received == wanted;
            if self.input.missing > 0 {
                self.input.missing -= received.min(self.input.missing);
                return match self.input.missing {
                    0 => self.deliver(port, self.input.length()),
                    _ => Ok(0),
                };
            }
            match self.input.next(&self.inet.settings) {
                Err(NoPacket) => return self.lost(port, Errno::MSGSIZE),
                Ok(Next::Whole(length)) => return self.deliver(port, length),
                Ok(Next::Missing(missing)) => {
                    self.input.missing = missing;
                    wanted = missing;
                }
                Ok(Next::Unknown(more)) => wanted = more,
            }
        }
    }

    /// Answers a waiting sender that the connection is closed; whether there was one.
    fn fail_senders(&mut self, port: &mut Context<'_>) -> bool {
        if !self.is_busy() {
            return false;
        }
        self.output.clear();
        self.cancel_due(port, super::Due::Send);
        self.set_busy(port, false);
        self.inet.reply_error(port, am::closed);
        true
    }

    /// The peer has closed the connection.
    fn closed_by_peer(&mut self, port: &mut Context<'_>) -> Result<usize, Over> {
        let mut is_told = self.fail_senders(port);
        is_told |= self.abort_file(port, Errno::NOTCONN);
        if !is_told {
            self.ended.for_send = true;
        }
        self.input.clear();
        self.inet.lost = Some(am::closed);
        if self.inet.settings.is_active() {
            self.tell_closed(port);
            if self.inet.settings.exit_on_close {
                self.exit(port, End::Normal);
            } else {
                self.inet.unwatch(port, Interest::Read);
            }
        } else {
            self.end_passive(port, am::closed);
        }
        Err(Over)
    }

    /// The connection is lost, or what has come is no packet.
    fn lost(&mut self, port: &mut Context<'_>, error: Errno) -> Result<usize, Over> {
        self.fail_senders(port);
        self.abort_file(port, error);
        self.input.clear();
        self.inet.lost = Some(error_atom(error));
        if self.inet.settings.is_active() {
            Tcp::tell_error(port, error);
            self.tell_closed(port);
            if self.inet.settings.exit_on_close {
                self.exit(port, End::Error(error));
            } else {
                self.inet.unwatch(port, Interest::Read);
            }
        } else {
            self.end_passive(port, error_atom(error));
        }
        Err(Over)
    }

    /// Answers a waiting receiver why nothing comes.
    fn end_passive(&mut self, port: &mut Context<'_>, reason: crate::term::Atom) {
        self.due.clear();
        self.set_timer(port);
        if self.inet.settings.exit_on_close {
            self.close(port);
        } else {
            self.inet.unwatch(port, Interest::Read);
        }
        debug_assert!(!self.inet.is(status::LISTEN), "it is a connection");
        self.inet.answer_error(port, reason);
    }
}
