//! The drivers behind `gen_tcp`, `gen_udp` and `inet`: `tcp_inet` and `udp_inet`. Source: `inet_drv.c` and
//! `prim_inet.erl`, OTP 29.
//!
//! A port is a socket. `prim_inet` asks for what is to be done with `port_control/3` ([`request`]), and is answered at
//! once, or with a message `{inet_async, Port, Number, Answer}` when it has happened ([`Waiting`]). What is to be sent comes
//! with `port_command/3`, and is answered with `{inet_reply, Port, Status, Tag}`.

mod address;
mod control;
mod interfaces;
mod messages;
pub(super) mod names;
mod options;
pub(super) mod replayed;
mod request;
mod statistics;
pub(super) mod tcp;
pub(super) mod udp;

use std::os::fd::{AsRawFd, RawFd};

use beamline_formats::ring::SocketWait;
use rustix::io::Errno;

use super::driver::{Context, End};
use super::open::Error;
use crate::process::order::explore;
use crate::process::refs::RefNumbers;
use crate::sched::timers;
use crate::sys::chance::poll::Interest;
use crate::sys::errno;
use crate::sys::socket::{Address, Socket};
use crate::term::{Atom, Pid};
use crate::trace::SocketId;
use options::Settings;
use statistics::Statistics;

/// What a socket is, in the bits that `getstatus` answers. Source: `INET_F_OPEN` and those behind it.
mod status {
    pub(super) const CLOSED: u32 = 0;
    pub(super) const OPEN: u32 = 0x1;
    pub(super) const ACTIVE: u32 = 0x4;
    pub(super) const LISTEN: u32 = 0x8;
    pub(super) const CONNECTING: u32 = 0x10;
    pub(super) const ACCEPTING: u32 = 0x20;
    pub(super) const BUSY: u32 = 0x80;
    pub(super) const MANY_ACCEPT: u32 = 0x100;
}

/// A process that waits for `{inet_async, Port, Number, Answer}`.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u16,
    caller: Pid,
    /// Set where the port learns of its exit.
    monitor: Option<RefNumbers>,
    /// What for, once it had to wait and that was recorded.
    recorded: Option<SocketWait>,
}

impl Waiting {
    fn record(&mut self, socket: SocketId, what: SocketWait) {
        socket.record_wait(self.caller, what);
        self.recorded = Some(what);
    }

    /// It is answered: with what it waits for, or with the reason `outcome`.
    fn record_end(&self, socket: SocketId, outcome: &str) {
        if let Some(what) = self.recorded {
            socket.record_ready(self.caller, what, outcome);
        }
    }
}

/// Whom an `{inet_reply, ...}` is for, and what is in it.
#[derive(Debug)]
struct Sender {
    caller: Pid,
    /// A term, in the external format.
    tag: Vec<u8>,
    /// It waits for room, as is recorded.
    waits: bool,
}

/// What a socket of either driver has.
struct Inet {
    socket: Option<Socket>,
    /// The socket in recordings.
    id: SocketId,
    /// Why the connection is lost, if it is: for recordings.
    lost: Option<Atom>,
    /// [`status`].
    status: u32,
    /// `AF_INET` and the like; -1 before it is opened.
    family: i32,
    /// `SOCK_STREAM` or `SOCK_DGRAM`; -1 before it is opened.
    kind: i32,
    settings: Settings,
    statistics: Statistics,
    /// What a process waits for: a connect, an accept or a receive. Each port has one at a time, or several accepts.
    waiting: Option<Waiting>,
    /// Of [`Waiting::number`].
    last_number: u16,
    /// The process that has sent, until it is answered.
    sender: Option<Sender>,
    /// Where a datagram goes that names no other place.
    remote: Option<Address>,
    /// What `sockname` and `peername` are to answer.
    told_name: Option<Address>,
    told_peer: Option<Address>,
    /// `ignorefd`: something else works with the descriptor; what was watched before.
    ignored: Option<Vec<Interest>>,
}

/// Is the run explored? There is no such driver then. `kernel` opens a socket when it starts, to ask for the name of the host,
/// and does without.
///
/// # Errors
/// `badarg`, which is `eprotonosupport` to programs.
fn refuse_in_exploration() -> Result<(), Error> {
    match explore::refuse("sockets") {
        true => Err(Error::Badarg),
        false => Ok(()),
    }
}

impl Inet {
    fn new(settings: Settings) -> Inet {
        Inet {
            socket: None,
            id: SocketId::new(),
            lost: None,
            status: status::CLOSED,
            family: -1,
            kind: -1,
            settings,
            statistics: Statistics::default(),
            waiting: None,
            last_number: 0,
            sender: None,
            remote: None,
            told_name: None,
            told_peer: None,
            ignored: None,
        }
    }

    /// Has it all of these in its status?
    fn is(&self, status: u32) -> bool {
        self.status & status == status
    }

    fn is_open(&self) -> bool {
        self.is(status::OPEN)
    }

    fn is_connected(&self) -> bool {
        self.is(status::OPEN | status::ACTIVE)
    }

    /// The socket.
    ///
    /// # Errors
    /// It is closed.
    fn socket(&self) -> Result<&Socket, Errno> {
        self.socket.as_ref().ok_or(Errno::BADF)
    }

    fn fd(&self) -> Option<RawFd> {
        self.socket.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Has the driver called when the socket is ready.
    fn watch(&mut self, port: &mut Context<'_>, interest: Interest) {
        match (&mut self.ignored, &self.socket) {
            (Some(held), Some(_)) => {
                if !held.contains(&interest) {
                    held.push(interest);
                }
            }
            (None, Some(socket)) => port.watch(socket.as_raw_fd(), interest),
            (_, None) => {}
        }
    }

    fn unwatch(&self, port: &mut Context<'_>, interest: Interest) {
        if let Some(fd) = self.fd() {
            port.unwatch_for(fd, interest);
        }
    }

    /// Closes the socket, but for one that was given: that is only not used any more.
    fn close(&mut self, port: &mut Context<'_>) {
        let Some(fd) = self.fd() else {
            return;
        };
        port.unwatch(fd);
        let reason = self.lost.take();
        let reason = reason.as_ref().map_or("", |reason| reason.name());
        self.id.record_close(Some(port.state.owner), reason);
        if self.socket.as_ref().is_some_and(|socket| !socket.is_lent()) {
            self.socket = None;
            self.status = status::CLOSED;
        }
    }

    /// The number of the next message, with the process that gets it.
    fn next_waiting(&mut self, caller: Pid, monitor: Option<RefNumbers>) -> Waiting {
        self.last_number = self.last_number.wrapping_add(1);
        Waiting {
            number: self.last_number,
            caller,
            monitor,
            recorded: None,
        }
    }

    /// Notes that `caller` waits: the number of its message. `None` where another process waits already.
    fn wait(&mut self, caller: Pid) -> Option<u16> {
        if self.waiting.is_some() {
            return None;
        }
        let waiting = self.next_waiting(caller, None);
        self.waiting = Some(waiting);
        Some(waiting.number)
    }

    /// The waiting process has to wait, as nothing is there.
    fn record_wait(&mut self, what: SocketWait) {
        if let Some(waiting) = &mut self.waiting {
            waiting.record(self.id, what);
        }
    }

    /// The sender has to wait until there is room.
    fn record_busy(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.waits = true;
            self.id.record_wait(sender.caller, SocketWait::Room);
        }
    }

    /// Counts bytes that a process sends.
    fn count_sent(&mut self, bytes: usize) {
        self.statistics.count_sent(bytes);
        if let Some(sender) = &self.sender {
            self.id.record_out(sender.caller, bytes);
        }
    }

    /// Counts a packet that the waiting process gets, or else the owner.
    fn count_received(&mut self, port: &Context<'_>, bytes: usize) {
        self.statistics.count_received(bytes);
        let waiting = self.waiting.filter(|_| !self.settings.is_active());
        let receiver = waiting.map_or(port.state.owner, |waiting| waiting.caller);
        self.id.record_in(receiver, bytes);
    }

    /// Notes the sender of `data`, whose answer carries the tag at its start; gives where the bytes to be sent begin.
    ///
    /// # Errors
    /// It has no tag: the port ends.
    fn take_sender(&mut self, port: &Context<'_>, data: &[u8]) -> Result<usize, End> {
        let caller = port.caller.unwrap_or(port.state.owner);
        let (tag, rest) = split_tag(data)?;
        self.sender = Some(Sender {
            caller,
            tag: tag.to_vec(),
            waits: false,
        });
        Ok(data.len() - rest.len())
    }
}

/// What is behind the tag of data to be sent.
pub(super) fn payload(data: &[u8]) -> Option<&[u8]> {
    split_tag(data).ok().map(|(_, rest)| rest)
}

/// The name of an error, as an atom.
fn error_atom(error: Errno) -> Atom {
    Atom::new(errno::errno_name(error.raw_os_error()))
}

/// A time to wait, as `prim_inet` sends it.
fn deadline(milliseconds: u32) -> Option<u64> {
    (milliseconds != u32::MAX).then(|| timers::deadline_after(milliseconds.into()))
}

/// The term that an answer to a sender holds, and the data behind it.
///
/// # Errors
/// There is none.
fn split_tag(data: &[u8]) -> Result<(&[u8], &[u8]), Errno> {
    let (length, rest) = request::take_u16(data)?;
    rest.split_at_checked(length.into()).ok_or(Errno::INVAL)
}
