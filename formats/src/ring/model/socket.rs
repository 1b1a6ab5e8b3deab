//! What the names of a recording tell of a socket.

use super::id::Id;

macro_rules! numbered {
    ($(#[doc = $about:literal])* $type:ident { $($(#[doc = $doc:literal])* $number:literal = $name:ident,)* }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type { $($(#[doc = $doc])* $name = $number,)* }

        impl $type {
            /// Its number in records and names.
            #[must_use]
            pub fn number(self) -> u64 {
                self as u64
            }

            /// The one of this number, if there is one.
            #[must_use]
            pub fn of(number: u64) -> Option<$type> {
                match number { $($number => Some($type::$name),)* _ => None }
            }
        }
    };
}

numbered! {
    /// What a socket is.
    SocketKind {
        /// A stream over TCP.
        1 = Tcp,
        /// Datagrams over UDP.
        2 = Udp,
        /// A stream on this machine.
        3 = LocalStream,
        /// Datagrams on this machine.
        4 = LocalDatagram,
        /// Anything else.
        5 = Other,
    }
}

numbered! {
    /// Whose address it is.
    SocketEnd {
        /// The socket's own.
        1 = Own,
        /// That of its peer.
        2 = Peer,
    }
}

numbered! {
    /// What a process waits for.
    SocketWait {
        /// The socket is connected.
        1 = Connection,
        /// Somebody connects.
        2 = Accept,
        /// Data comes.
        3 = Data,
        /// There is room to send.
        4 = Room,
    }
}

impl SocketKind {
    /// As people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SocketKind::Tcp => "tcp",
            SocketKind::Udp => "udp",
            SocketKind::LocalStream => "local",
            SocketKind::LocalDatagram => "local datagram",
            SocketKind::Other => "socket",
        }
    }
}

impl SocketWait {
    /// As it follows *waits*.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            SocketWait::Connection => "to be connected",
            SocketWait::Accept => "for a connection",
            SocketWait::Data => "for data",
            SocketWait::Room => "for room to send",
        }
    }
}

/// What the names of a recording tell of a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Socket {
    /// What it is, if that is known.
    pub kind: Option<SocketKind>,
    /// The port that it is behind; nobody for a socket of the module `socket`.
    pub port: Id,
    /// The socket that accepted it; nobody for one that was opened.
    pub listener: Id,
    /// Its own address, where it is bound to one that it asked for; else empty.
    pub own: String,
    /// The address of its peer, where it has one; else empty.
    pub peer: String,
}

impl Socket {
    /// Its kind and the address that tells it from others.
    #[must_use]
    pub fn text(&self) -> String {
        let kind = self.kind.map_or("socket", SocketKind::name);
        match (self.peer.as_str(), self.own.as_str()) {
            ("", "") => kind.to_owned(),
            ("", own) => format!("{kind} at {own}"),
            (peer, _) if self.listener != Id::None => format!("{kind} from {peer}"),
            (peer, _) => format!("{kind} to {peer}"),
        }
    }
}
