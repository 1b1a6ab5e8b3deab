//! What is to be sent. Source: `tcp_sendv()`, `tcp_inet_output()`.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
use smallvec::SmallVec;

use super::super::{error_atom, status};
use super::connection::sent_of;
use super::{Due, Tcp, after};
use crate::dist::HEAD_ROOM;
use crate::port::Connection;
use crate::port::driver::{Context, End};
use crate::sys::chance::poll::{self, Interest};
use crate::term::am;
use crate::value::iolist::{Bytes, Output as Sent};
use crate::value::packet::Type;

/// Pieces that are sent by one call.
const MAX_PIECES: usize = 64;

/// Bytes that are to be sent: those from `start` on.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Bytes,
    start: usize,
}

impl Piece {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// What is sent at once, in pieces.
type Pieces = SmallVec<[Piece; 3]>;

/// The pieces of `data` behind `start`, which is in its first part, with `head` before them.
fn pieces(data: Sent, start: usize, head: &[u8]) -> Pieces {
    let mut pieces: Pieces = data
        .parts
        .into_iter()
        .map(|bytes| Piece { bytes, start: 0 })
        .collect();
    if let Some(Piece {
        bytes: Bytes::Own(bytes),
        start: first,
    }) = pieces.first_mut()
    {
        match start.checked_sub(head.len()) {
            Some(at) => {
                bytes[at..start].copy_from_slice(head);
                *first = at;
            }
            None => _ = bytes.splice(..start, head.iter().copied()),
        }
    }
    pieces.retain(|piece| !piece.rest().is_empty());
    pieces
}

/// Bytes that are not sent yet, in pieces.
#[derive(Debug, Default)]
pub(super) struct Output {
    pieces: VecDeque<Piece>,
    bytes: usize,
}

impl Output {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub(super) fn clear(&mut self) {
        *self = Output::default();
    }

    fn push(&mut self, pieces: Pieces) {
        self.bytes += bytes_of(&pieces);
        self.pieces.extend(pieces);
    }

    /// Sends as many of the first `limit` bytes as the system takes now: how many.
    pub(super) fn send(&mut self, fd: impl AsFd, limit: usize) -> Result<usize, Errno> {
        let sent = send_first(fd, self.pieces.iter(), limit)?;
        self.drop_first(sent);
        Ok(sent)
    }

    /// Drops the first `bytes`, which are sent.
    fn drop_first(&mut self, mut bytes: usize) {
        self.bytes -= bytes;
        while let Some(first) = self.pieces.front_mut() {
            let sent = bytes.min(first.rest().len());
            first.start += sent;
            bytes -= sent;
            if !first.rest().is_empty() {
                break;
            }
            self.pieces.pop_front();
        }
    }
}

fn bytes_of(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.rest().len()).sum()
}

/// Sends as many of the first `limit` bytes as the system takes by one call: how many. Without `SIGPIPE` where the peer
/// reads no more.
fn send_first<'a>(
    fd: impl AsFd,
    pieces: impl Iterator<Item = &'a Piece>,
    limit: usize,
) -> Result<usize, Errno> {
    let mut slices: SmallVec<[IoSlice<'_>; MAX_PIECES]> = SmallVec::new();
    let mut left = limit;
    for piece in pieces.take(MAX_PIECES) {
        let bytes = piece.rest();
        let bytes = &bytes[..bytes.len().min(left)];
        left -= bytes.len();
        slices.push(IoSlice::new(bytes));
        if left == 0 {
            break;
        }
    }
    sendmsg(
        fd,
        &slices,
        &mut SendAncillaryBuffer::default(),
        SendFlags::NOSIGNAL,
    )
}

/// Sends as many of the bytes as the system takes now: how many.
fn send_all(fd: impl AsFd, pieces: &[Piece]) -> Result<usize, Errno> {
    let mut sent = 0;
    for pieces in pieces.chunks(MAX_PIECES) {
        match send_first(&fd, pieces.iter(), usize::MAX) {
            Ok(some) => {
                sent += some;
                if some < bytes_of(pieces) {
                    break;
                }
            }
            // What has failed here fails the next time too.
            Err(_) if sent > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// The head of a packet of this length.
fn head(kind: Type, length: usize) -> SmallVec<[u8; 4]> {
    let bytes = (length as u32).to_be_bytes();
    match kind {
        Type::Length(head) => SmallVec::from_slice(&bytes[4 - head..]),
        _ => SmallVec::new(),
    }
}

impl Tcp {
    /// Sends what is in `data` behind `start`, and answers the sender, or will.
    pub(super) fn send(&mut self, port: &mut Context<'_>, data: Sent, start: usize) {
        if !self.inet.is_connected() {
            return self.refuse_send(port);
        }
        if self.pending_shutdown.is_some() {
            return self.send_failed(port, Errno::PIPE);
        }
        let head = head(self.inet.settings.packet, data.len() - start);
        let pieces = pieces(data, start, &head);
        let bytes = bytes_of(&pieces);
        self.inet.count_sent(bytes);
        if self.sendfile.is_some() || !self.output.is_empty() {
            return self.queue(port, pieces);
        }
        if bytes == 0 {
            return self.inet.reply_ok(port);
        }
        let mut sent = 0;
        if self.inet.settings.delay_send && self.inet.ignored.is_none() {
            self.set_due(port, after(0), Due::DelayedSend);
        } else if self.inet.ignored.is_none() {
            match self.inet.socket().and_then(|fd| send_all(fd, &pieces)) {
                Ok(n) => sent = n,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return self.send_error(port, error),
            }
        }
        if sent < bytes {
            self.output.push(pieces);
            self.output.drop_first(sent);
            if !self.inet.settings.delay_send {
                self.inet.watch(port, Interest::Write);
            }
        }
        self.inet.reply_ok(port);
    }

    /// Not connected any more, or never.
    fn refuse_send(&mut self, port: &Context<'_>) {
        if !std::mem::take(&mut self.ended.for_send) {
            self.inet.reply_errno(port, Errno::NOTCONN);
        } else if self.ended.is_reset {
            self.inet.reply_errno(port, Errno::CONNRESET);
        } else {
            self.inet.reply_error(port, am::closed);
        }
    }

    /// Queues bytes behind others. Where there are too many the sender waits.
    fn queue(&mut self, port: &mut Context<'_>, pieces: Pieces) {
        self.output.push(pieces);
        if self.output.bytes() < self.inet.settings.high {
            return self.inet.reply_ok(port);
        }
        match self.inet.settings.send_timeout {
            0 => self.inet.reply_error(port, am::timeout),
            timeout => {
                self.set_busy(port, true);
                self.inet.record_busy();
                if timeout != u32::MAX {
                    self.set_due(port, after(timeout), Due::Send);
                }
            }
        }
    }

    /// A sender has waited too long.
    pub(super) fn send_timed_out(&mut self, port: &mut Context<'_>) {
        self.set_busy(port, false);
        self.inet.reply_error(port, am::timeout);
        if !self.inet.settings.send_timeout_close {
            return;
        }
        if !self.inet.settings.is_active() {
            return self.close(port);
        }
        self.tell_closed(port);
        if self.inet.settings.exit_on_close {
            self.exit(port, End::Normal);
        } else {
            self.close(port);
        }
    }

    /// There is room for bytes that wait to be sent.
    pub(super) fn write(&mut self, port: &mut Context<'_>) {
        if self.sendfile.is_some() {
            return self.write_file(port);
        }
        while !self.output.is_empty() {
            let Ok(socket) = self.inet.socket() else {
                return;
            };
            match self.output.send(socket, usize::MAX) {
                Ok(_) => self.go_on_if_low(port),
                Err(Errno::AGAIN | Errno::INTR) => {
                    return self.inet.watch(port, Interest::Write);
                }
                Err(error) => return self.send_error(port, error),
            }
        }
        self.all_sent(port);
    }

    /// Senders that wait go on, where few enough bytes are left.
    pub(super) fn go_on_if_low(&mut self, port: &mut Context<'_>) {
        if self.output.bytes() <= self.inet.settings.low && self.is_busy() {
            self.set_busy(port, false);
            self.cancel_due(port, Due::Send);
            self.inet.reply_ok(port);
            self.send_packets(port);
        }
    }

    /// Nothing waits to be sent any more.
    pub(super) fn all_sent(&mut self, port: &mut Context<'_>) {
        self.inet.unwatch(port, Interest::Write);
        let id = port.term();
        for pid in std::mem::take(&mut self.subscribers) {
            port.tell(pid, |heap| heap.tuple(&[am::empty_out_q.term(), id]));
        }
        let Some(how) = self.pending_shutdown.take() else {
            return;
        };
        match self
            .inet
            .socket()
            .and_then(|fd| rustix::net::shutdown(fd, how))
        {
            Ok(()) => self.is_write_shut = true,
            Err(error) => self.send_failed(port, error),
        }
    }

    /// Sends all that waits, before the machine ends, also for this connection to another node.
    pub(super) fn write_all(&mut self, connection: Option<&Connection>) {
        loop {
            if self.write_output().is_err() {
                return;
            }
            let packet = connection.and_then(|it| it.entry.next_packet(it.number));
            let Some(packet) = packet.map(sent_of) else {
                return;
            };
            let head = head(self.inet.settings.packet, packet.len() - HEAD_ROOM);
            self.output.push(pieces(packet, HEAD_ROOM, &head));
        }
    }

    /// Sends what waits in the port, for as long as that takes.
    fn write_output(&mut self) -> Result<(), Errno> {
        while !self.output.is_empty() {
            let socket = self.inet.socket()?;
            match self.output.send(socket, usize::MAX) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => poll::wait_writable(socket.as_raw_fd()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sending has failed.
    pub(super) fn send_error(&mut self, port: &mut Context<'_>, error: Errno) {
        let is_reset = error == Errno::PIPE && !self.is_write_shut;
        let error = if is_reset { Errno::CONNRESET } else { error };
        self.send_failed(port, error);
    }

    /// A send has failed: the connection is lost, and its sender gets an error.
    pub(super) fn send_failed(&mut self, port: &mut Context<'_>, error: Errno) {
        let shows_reset = error == Errno::CONNRESET && self.inet.settings.show_econnreset;
        if self.is_busy() {
            self.cancel_due(port, Due::Send);
            self.set_busy(port, false);
        }
        self.inet.lost = Some(error_atom(error));
        let reason = if shows_reset {
            error_atom(error)
        } else {
            am::closed
        };
        if self.inet.settings.is_active() {
            if shows_reset {
                Tcp::tell_error(port, error);
            }
            self.tell_closed(port);
            if self.sendfile.is_none() {
                self.inet.reply_error(port, reason);
            }
            if self.inet.settings.exit_on_close {
                self.exit(port, End::Normal);
            } else {
                self.close(port);
            }
            return;
        }
        self.end_waits(port);
        if self.inet.sender.is_none() {
            // No send waits for an answer, so the next one gets the error.
            self.ended.for_send = true;
        } else if self.sendfile.is_none() {
            self.inet.reply_error(port, reason);
        }
        self.close(port);
        self.ended.for_receive = true;
        self.ended.is_reset |= shows_reset;
        debug_assert!(!self.inet.is(status::ACTIVE) || self.inet.fd().is_some());
    }
}
