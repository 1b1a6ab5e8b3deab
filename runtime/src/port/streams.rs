//! The driver of descriptors: those of a program that was started, and the machine's own (`{fd, In, Out}`). Source: the
//! `spawn` and `fd` drivers of `sys_drivers.c`, OTP 29.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::io::Errno;

use super::Connection;
use super::driver::{Context, Driver, End};
use super::framing::{Framing, Input, Piece};
use crate::sys::chance::poll::{self, Interest};
use crate::sys::file;
use crate::term::Term;
use crate::term::atom::atom;

/// Bytes of one read. Source: `ERTS_SYS_READ_BUF_SZ`.
const READ_BYTES: usize = 64 * 1024;

/// A descriptor of a port.
pub(super) enum Descriptor {
    /// Closed with the port.
    Own(OwnedFd),
    /// The program's: `{fd, In, Out}`.
    Lent(RawFd),
}

impl Descriptor {
    fn raw(&self) -> RawFd {
        match self {
            Descriptor::Own(fd) => fd.as_raw_fd(),
            Descriptor::Lent(fd) => *fd,
        }
    }

    fn is_lent(&self) -> bool {
        matches!(self, Descriptor::Lent(_))
    }
}

/// The options that say what the owner hears, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    pub(super) framing: Framing,
    pub(super) binary: bool,
    pub(super) eof: bool,
    pub(super) exit_status: bool,
}

/// A port of the driver.
pub(super) struct Streams {
    mode: Mode,
    input: Option<Descriptor>,
    reader: Input,
    output: Option<Descriptor>,
    queue: VecDeque<Vec<u8>>,
    /// Bytes of the queue's first piece that are written.
    written: usize,
    queued_bytes: usize,
    /// Exit status of the program that has ended.
    exited: Option<i32>,
}

impl Streams {
    /// A port that reads `input` and writes `output`; without one of them it does not.
    pub(super) fn new(
        mode: Mode,
        input: Option<Descriptor>,
        output: Option<Descriptor>,
    ) -> Streams {
        Streams {
            mode,
            input,
            reader: Input::new(mode.framing),
            output,
            queue: VecDeque::new(),
            written: 0,
            queued_bytes: 0,
            exited: None,
        }
    }

    fn wait_for_input(&self, port: &mut Context<'_>) {
        if let Some(input) = &self.input {
            port.watch(input.raw(), Interest::Read);
        }
    }

    fn take_input(&mut self, port: &mut Context<'_>) -> Result<(), End> {
        let Some(input) = &self.input else {
            return Ok(());
        };
        // Where others read it too, what there was may be gone: nobody is to wait for more here.
        if !matches!(input, Descriptor::Lent(fd) if !poll::is_readable(*fd)) {
            let mut space = [MaybeUninit::uninit(); READ_BYTES];
            match file::read(input.raw(), &mut space) {
                Ok([]) => {
                    self.input = None;
                    return self.end_of_input(port);
                }
                Ok(bytes) => {
                    port.took_input(bytes.len());
                    let pieces = self.reader.push(bytes);
                    self.deliver(port, pieces);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.wait_for_input(port);
        Ok(())
    }

    /// Sends `{Port, {data, Data}}` for each piece.
    fn deliver(&self, port: &Context<'_>, pieces: impl IntoIterator<Item = Piece>) {
        let binary = self.mode.binary;
        for piece in pieces {
            port.tell_owner(|heap| {
                let (tag, bytes) = match piece {
                    Piece::Data(bytes) => (None, bytes),
                    Piece::Eol(bytes) => (Some("eol"), bytes),
                    Piece::NoEol(bytes) => (Some("noeol"), bytes),
                };
                let data = if binary {
                    heap.binary_from_vec(bytes)
                } else {
                    heap.byte_list(&bytes)
                };
                let data = match tag {
                    Some(tag) => heap.tuple(&[atom(tag), data]),
                    None => data,
                };
                heap.tuple(&[atom("data"), data])
            });
        }
    }

    /// There is nothing more to read, or nothing to read and the program has ended. What is left of a line comes behind the
    /// exit status. Source: `ready_input()` in `sys_drivers.c`, `driver_failure_term()` in `io.c`.
    fn end_of_input(&mut self, port: &Context<'_>) -> Result<(), End> {
        if self.mode.exit_status {
            let Some(status) = self.exited else {
                // Goes on when the program ends.
                return Ok(());
            };
            port.tell_owner(|heap| heap.tuple(&[atom("exit_status"), Term::small(status.into())]));
        }
        let rest = self.reader.finish();
        self.deliver(port, rest);
        if self.mode.eof {
            port.tell_owner(|_| atom("eof"));
            return Ok(());
        }
        Err(End::Normal)
    }

    /// Writes as much of the queue as the descriptor takes; waits for room for the rest.
    fn write_queue(&mut self, port: &mut Context<'_>) -> Result<(), End> {
        let Some(fd) = self.output.as_ref().map(Descriptor::raw) else {
            return Ok(());
        };
        while let Some(piece) = self.queue.front() {
            let left = piece.len() - self.written;
            match file::write(fd, &piece[self.written..]) {
                Ok(n) => {
                    self.queued_bytes -= n;
                    if n == left {
                        self.queue.pop_front();
                        self.written = 0;
                    } else {
                        self.written += n;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    port.watch(fd, Interest::Write);
                    break;
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}

impl Driver for Streams {
    fn start(&mut self, port: &mut Context<'_>) {
        self.wait_for_input(port);
    }

    fn has_outputv(&self) -> bool {
        // The driver of descriptors, and not that of programs.
        [&self.input, &self.output]
            .into_iter()
            .flatten()
            .any(Descriptor::is_lent)
    }

    fn output(&mut self, port: &mut Context<'_>, data: Vec<u8>) -> Result<(), End> {
        let header = self.mode.framing.header(data.len()).ok_or(Errno::INVAL)?;
        if self.output.is_none() {
            // Opened for input only: what is sent to it goes nowhere.
            return Ok(());
        }
        let waits = !self.queue.is_empty();
        for piece in [header, data] {
            if !piece.is_empty() {
                self.queued_bytes += piece.len();
                self.queue.push_back(piece);
            }
        }
        if waits {
            return Ok(());
        }
        self.write_queue(port)
    }

    fn ready(&mut self, port: &mut Context<'_>, _fd: RawFd, interest: Interest) -> Result<(), End> {
        match interest {
            Interest::Read => self.take_input(port),
            Interest::Write => self.write_queue(port),
            Interest::Error => Ok(()),
        }
    }

    fn program_ended(&mut self, port: &mut Context<'_>, status: i32) -> Result<(), End> {
        self.exited = Some(status);
        if self.mode.exit_status && self.input.is_none() {
            return self.end_of_input(port);
        }
        Ok(())
    }

    fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    fn must_flush(&self) -> bool {
        matches!(self.output, Some(Descriptor::Lent(_))) && !self.queue.is_empty()
    }

    fn flush(&mut self, _connection: Option<&Connection>) {
        if let Some(Descriptor::Lent(fd)) = self.output {
            for piece in self.queue.drain(..) {
                let from = std::mem::take(&mut self.written);
                if file::write_all(fd, &piece[from..]).is_err() {
                    break;
                }
            }
            self.queued_bytes = 0;
        }
    }
}
