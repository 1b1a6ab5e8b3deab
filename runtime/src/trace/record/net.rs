//! Sockets in recordings: what is opened, connected and closed, which bytes cross it, and which processes wait for it.
//!
//! Both kinds of sockets, those behind ports and those of the module `socket`, have a [`SocketId`] and record with it what
//! happens to them. The names of a recording hold what a socket is and its addresses, so that a ring that has lost its
//! oldest records can still say whose bytes are in the others.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use beamline_formats::ring::{Id, Name, SocketEnd, SocketKind, SocketWait};

use super::{Recorder, RingEvent, id_of, namer, recorder};
use crate::term::{Pid, Port};

/// The outcome of a wait whose process has ended.
pub(crate) const EXITED: &str = "exited";

/// Sockets are recorded.
static ASKED: AtomicBool = AtomicBool::new(false);

/// The number of the newest socket.
static NEWEST: AtomicU64 = AtomicU64::new(0);

/// Sockets are recorded from now on.
pub(super) fn begin() {
    ASKED.store(true, Ordering::Release);
}

#[inline]
fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// A socket, as recordings know it. Sockets have their numbers whether they are recorded or not: a recording may begin later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SocketId(u64);

impl SocketId {
    /// The id of a socket that is opened now.
    pub(crate) fn new() -> SocketId {
        SocketId(NEWEST.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn id(self) -> Id {
        Id::Socket(self.0)
    }

    /// What a socket is, of its family and type as the system numbers them.
    fn kind(family: i32, kind: i32) -> SocketKind {
        match (family, kind) {
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM) => SocketKind::Tcp,
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM) => SocketKind::Udp,
            (libc::AF_UNIX, libc::SOCK_STREAM) => SocketKind::LocalStream,
            (libc::AF_UNIX, libc::SOCK_DGRAM) => SocketKind::LocalDatagram,
            _ => SocketKind::Other,
        }
    }

    /// Writes a record about `who`, if the recorder records sockets now.
    #[inline]
    fn record<'a>(self, who: Option<Pid>, event: impl FnOnce(Id) -> RingEvent<'a>) {
        if is_asked() {
            self.write(who, event(self.id()));
        }
    }

    #[cold]
    fn write(self, who: Option<Pid>, event: RingEvent<'_>) {
        if let Some(recorder) = recorder() {
            recorder.write(who.map_or(Id::None, id_of), &event);
        }
    }

    /// Names the socket, also before the recording has begun.
    #[inline]
    fn name(self, name: impl FnOnce(&Recorder, Id)) {
        if is_asked()
            && let Some(recorder) = namer()
        {
            name(recorder, self.id());
        }
    }

    /// `owner` has opened the socket, which is behind `port` if there is one.
    pub(crate) fn record_open(self, owner: Pid, (family, kind): (i32, i32), port: Option<Port>) {
        self.name_socket((family, kind), port, Id::None);
        self.record(Some(owner), |socket| RingEvent::NetOpen { socket });
    }

    /// `owner` gets the connection, which `listener` has accepted.
    pub(crate) fn record_accept(
        self,
        owner: Pid,
        (family, kind): (i32, i32),
        port: Option<Port>,
        listener: SocketId,
    ) {
        let listener = listener.id();
        self.name_socket((family, kind), port, listener);
        let event = |socket| RingEvent::NetAccept { socket, listener };
        self.record(Some(owner), event);
    }

    fn name_socket(self, (family, kind): (i32, i32), port: Option<Port>, listener: Id) {
        self.name(|recorder, id| {
            recorder.ring.name(Name::Socket {
                id,
                kind: SocketId::kind(family, kind),
                port: port.map_or(Id::None, |port| Id::Port(port.0)),
                listener,
            });
        });
    }

    /// The socket has got an address, which is asked for only where it is recorded.
    pub(crate) fn record_address<A: Display>(
        self,
        end: SocketEnd,
        address: impl FnOnce() -> Option<A>,
    ) {
        self.name(|recorder, id| {
            if let Some(address) = address() {
                let text = &address.to_string();
                recorder.ring.name(Name::Address { id, end, text });
            }
        });
    }

    /// `by` connects the socket to `peer`.
    pub(crate) fn record_connect(self, by: Pid, peer: impl Display) {
        self.record_address(SocketEnd::Peer, || Some(peer));
        self.record(Some(by), |socket| RingEvent::NetConnect { socket });
    }

    /// `who` waits for something.
    pub(crate) fn record_wait(self, who: Pid, what: SocketWait) {
        let what = what.number();
        self.record(Some(who), |socket| RingEvent::NetWait { socket, what });
    }

    /// `who` waits for it no more. `outcome`: why it cannot go on, or empty.
    pub(crate) fn record_ready(self, who: Pid, what: SocketWait, outcome: &str) {
        let what = what.number();
        self.record(Some(who), |socket| RingEvent::NetReady {
            socket,
            what,
            outcome,
        });
    }

    /// `who` gets bytes that have come.
    #[inline]
    pub(crate) fn record_in(self, who: Pid, bytes: usize) {
        let bytes = bytes as u64;
        self.record(Some(who), |socket| RingEvent::NetIn { socket, bytes });
    }

    /// `who` sends bytes.
    #[inline]
    pub(crate) fn record_out(self, who: Pid, bytes: usize) {
        let bytes = bytes as u64;
        self.record(Some(who), |socket| RingEvent::NetOut { socket, bytes });
    }

    /// The socket is closed. `reason`: why, where it is not closed by its owner's wish.
    pub(crate) fn record_close(self, owner: Option<Pid>, reason: &str) {
        self.record(owner, |socket| RingEvent::NetClose { socket, reason });
    }
}
