//! Sends files. Source: `tcp_inet_sendfile()`.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::super::error_atom;
use super::super::request::Answer;
use super::Tcp;
use crate::port::driver::Context;
use crate::sys::chance::poll::Interest;
use crate::sys::file;
use crate::term::{Term, am};

/// Bytes that the system is to send at once.
const CHUNK_BYTES: u64 = (1 << 30) - 1;

/// A file that is sent.
#[derive(Debug)]
pub(super) struct SendFile {
    file: OwnedFd,
    offset: u64,
    /// Bytes that are to be sent.
    left: u64,
    sent: u64,
    /// Bytes that were queued before it.
    behind: usize,
}

/// How far a file has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Done,
    /// The system takes no more now.
    Waits,
}

impl Tcp {
    /// Sends a part of a file: its descriptor, the place of its first byte, its length.
    pub(super) fn send_file(&mut self, port: &mut Context<'_>, data: &[u8]) -> Answer {
        let invalid = Errno::INVAL;
        let (fd, rest) = data.split_first_chunk::<4>().ok_or(invalid)?;
        let (offset, rest) = rest.split_first_chunk().ok_or(invalid)?;
        let length = <[u8; 8]>::try_from(rest).map_err(|_| invalid)?;
        if !self.inet.is_connected() {
            return Err(Errno::NOTCONN.into());
        }
        if self.sendfile.is_some() {
            return Err(invalid.into());
        }
        self.sendfile = Some(SendFile {
            file: file::duplicate(i32::from_ne_bytes(*fd))?,
            offset: u64::from_be_bytes(*offset),
            left: u64::from_be_bytes(length),
            sent: 0,
            behind: self.output.bytes(),
        });
        self.write_file(port);
        Ok(Vec::new())
    }

    /// Sends what was queued before the file, and as much of the file as the system takes.
    pub(super) fn write_file(&mut self, port: &mut Context<'_>) {
        match self.progress() {
            Ok(Progress::Waits) => self.inet.watch(port, Interest::Write),
            Ok(Progress::Done) => self.file_sent(port),
            Err(error) => {
                self.tell_file_failed(port, error);
                self.send_error(port, error);
                self.sendfile = None;
            }
        }
    }

    fn progress(&mut self) -> Result<Progress, Errno> {
        let Some(sending) = &mut self.sendfile else {
            return Ok(Progress::Done);
        };
        let socket = self.inet.socket.as_ref().ok_or(Errno::NOTCONN)?;
        while sending.behind > 0 {
            match self.output.send(socket, sending.behind) {
                Ok(sent) => sending.behind -= sent,
                Err(Errno::AGAIN) => return Ok(Progress::Waits),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        while sending.left > 0 {
            let bytes = sending.left.min(CHUNK_BYTES) as usize;
            let offset = Some(&mut sending.offset);
            match rustix::fs::sendfile(socket, &sending.file, offset, bytes) {
                // The file has come to its end.
                Ok(0) => sending.left = 0,
                Ok(sent) => {
                    sending.sent += sent as u64;
                    sending.left -= sent as u64;
                }
                Err(Errno::AGAIN) => return Ok(Progress::Waits),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Progress::Done)
    }

    /// `{sendfile, Port, {ok, Low, High}}`.
    fn file_sent(&mut self, port: &mut Context<'_>) {
        let Some(sending) = self.sendfile.take() else {
            return;
        };
        self.go_on_if_low(port);
        if self.output.is_empty() {
            self.all_sent(port);
        } else {
            self.inet.watch(port, Interest::Write);
        }
        let (owner, id) = (port.state.owner, port.term());
        self.inet.id.record_out(owner, sending.sent as usize);
        let (low, high) = (sending.sent as u32, (sending.sent >> 32) as u32);
        port.tell(owner, |heap| {
            let [low, high] = [low, high].map(|half| Term::small(half.into()));
            let sent = heap.tuple(&[am::ok.term(), low, high]);
            heap.tuple(&[am::sendfile.term(), id, sent])
        });
    }

    /// Tells that a file is not sent, if there is one; whether there is.
    pub(super) fn abort_file(&mut self, port: &Context<'_>, error: Errno) -> bool {
        let sends = self.sendfile.is_some();
        if sends {
            self.tell_file_failed(port, error);
        }
        sends
    }

    /// `{sendfile, Port, {error, Reason}}`.
    fn tell_file_failed(&self, port: &Context<'_>, error: Errno) {
        let reason = match error {
            Errno::CONNRESET | Errno::NOTCONN | Errno::PIPE => am::closed,
            error => error_atom(error),
        };
        let (owner, id) = (port.state.owner, port.term());
        port.tell(owner, |heap| {
            let error = heap.tuple(&[am::error.term(), reason.term()]);
            heap.tuple(&[am::sendfile.term(), id, error])
        });
    }
}
