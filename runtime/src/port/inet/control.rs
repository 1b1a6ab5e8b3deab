//! Requests that sockets of both drivers have. Source: `inet_ctl()`.

use std::os::fd::{AsFd, AsRawFd};

use beamline_formats::ring::SocketEnd;
use rustix::io::Errno;

use super::request::{Answer, Refusal, Request, take_counted, take_u16, take_u32};
use super::{Inet, address, interfaces, options, status};
use crate::port::driver::Context;
use crate::sys::chance::{outside, poll};
use crate::sys::socket::{self, Address, Socket, services};

/// The kinds of sockets that `prim_inet` asks for. Source: `INET_TYPE_STREAM` and those behind it.
const KINDS: [(u8, i32); 2] = [(1, libc::SOCK_STREAM), (2, libc::SOCK_DGRAM)];

/// What a driver opens.
pub(super) struct Opens {
    pub(super) kinds: &'static [i32],
    /// Protocols, by what `prim_inet` calls them. Source: `INET_PROTO_DEFAULT` and those behind it.
    pub(super) protocols: &'static [(u8, i32)],
}

impl Opens {
    fn kind(&self, code: u8) -> Result<i32, Errno> {
        let row = KINDS.iter().find(|row| row.0 == code);
        let kind = row.map(|row| row.1);
        kind.filter(|kind| self.kinds.contains(kind))
            .ok_or(Errno::INVAL)
    }
}

impl Inet {
    /// Opens the socket: its family, its kind, its protocol.
    pub(super) fn open(&mut self, port: &Context<'_>, opens: &Opens, data: &[u8]) -> Answer {
        let &[family, kind, protocol] = data else {
            return Err(Errno::INVAL.into());
        };
        let family = address::family_of(family)?;
        let kind = opens.kind(kind)?;
        let row = opens.protocols.iter().find(|row| row.0 == protocol);
        let (_, protocol) = *row.ok_or(Errno::PROTONOSUPPORT)?;
        if self.status != status::CLOSED {
            return Err(Refusal::BadSequence);
        }
        let protocol = if family == libc::AF_UNIX { 0 } else { protocol };
        let open = || socket::open(family, kind, protocol);
        let fd = match &self.settings.netns {
            None => open(),
            Some(path) => socket::namespace::within(path, open),
        }?;
        self.begin(port, Socket::own(fd), family, kind);
        Ok(Vec::new())
    }

    fn begin(&mut self, port: &Context<'_>, socket: Socket, family: i32, kind: i32) {
        self.socket = Some(socket);
        self.status = status::OPEN;
        self.family = family;
        self.kind = kind;
        self.id
            .record_open(port.state.owner, (family, kind), Some(port.port.id));
        outside::take(|| "socket".to_owned());
    }

    /// Works with a socket that the program has: its family, its kind, its number, whether it is bound.
    pub(super) fn open_descriptor(
        &mut self,
        port: &Context<'_>,
        opens: &Opens,
        data: &[u8],
    ) -> Answer {
        if data.len() != 6 && data.len() != 10 {
            return Err(Errno::INVAL.into());
        }
        let family = address::family_of(data[0])?;
        let kind = opens.kind(data[1])?;
        let (fd, rest) = take_u32(&data[2..])?;
        let is_bound = take_u32(rest).map_or(1, |(bound, _)| bound) != 0;
        let socket = Socket::lent(fd.cast_signed())?;
        // Of two ports with a descriptor, the last one gets what comes.
        poll::forget(fd.cast_signed());
        if is_bound && socket::name(&socket)?.family() != family {
            return Err(Errno::INVAL.into());
        }
        rustix::io::ioctl_fionbio(&socket, true)?;
        let is_connected = kind == libc::SOCK_STREAM && socket::peer(&socket).is_ok();
        self.begin(port, socket, family, kind);
        if is_connected {
            self.id
                .record_address(SocketEnd::Peer, || socket::peer(self.socket.as_ref()?).ok());
            self.status |= status::ACTIVE;
        }
        Ok(Vec::new())
    }

    /// Does what is asked for, where it is not the business of one driver. `pending`: bytes that wait to be sent.
    pub(super) fn control(
        &mut self,
        port: &mut Context<'_>,
        request: Request,
        data: &[u8],
        pending: usize,
    ) -> Answer {
        match request {
            Request::GetOptions => options::get(self, data),
            Request::GetStatistics => {
                let answer = self.statistics.answer(data, pending);
                Ok(answer.ok_or(Errno::INVAL)?)
            }
            Request::GetInterfaces => self.if_open(interfaces::names),
            Request::GetInterfaceAddresses => self.if_open(interfaces::addresses),
            Request::GetInterface => {
                self.if_open(|| interfaces::items(self.socket()?.as_fd(), data))
            }
            Request::SetInterface => self.if_open(|| Err(Errno::NOTSUP)),
            Request::GetStatus => Ok(self.status.to_be_bytes().to_vec()),
            Request::GetType => self.get_type(),
            Request::GetDescriptor => match &self.socket {
                Some(socket) if self.is_open() => Ok(socket.as_raw_fd().to_be_bytes().to_vec()),
                _ => Err(Errno::INVAL.into()),
            },
            Request::GetHostName => host_name(data),
            Request::Name => told(self.told_name.as_ref(), || socket::name(self.socket()?)),
            Request::GetLocalAddresses if data.len() == 4 => {
                self.if_open(|| encoded(&socket::name(self.socket()?)?))
            }
            Request::Peer if !self.is(status::ACTIVE) => Err(Errno::NOTCONN.into()),
            Request::Peer => told(self.told_peer.as_ref(), || socket::peer(self.socket()?)),
            Request::GetPeerAddresses if data.len() == 4 => {
                self.if_open(|| encoded(&socket::peer(self.socket()?)?))
            }
            Request::SetName => {
                self.told_name = self.to_be_told(data)?;
                Ok(Vec::new())
            }
            Request::SetPeer => {
                self.told_peer = self.to_be_told(data)?;
                Ok(Vec::new())
            }
            Request::Bind => self.bind(data),
            Request::IgnoreDescriptor => self.ignore(port, data),
            Request::GetServiceByName => {
                let (name, rest) = take_counted(data)?;
                let (protocol, _) = take_counted(rest)?;
                let found = services::port_of(name, protocol).ok_or(Errno::INVAL)?;
                Ok(found.to_be_bytes().to_vec())
            }
            Request::GetServiceByPort => {
                let (number, rest) = take_u16(data)?;
                let (protocol, _) = take_counted(rest)?;
                Ok(services::name_of(number, protocol).ok_or(Errno::INVAL)?)
            }
            Request::GetLocalAddresses | Request::GetPeerAddresses => Err(Errno::INVAL.into()),
            _ => Err(Refusal::BadPort),
        }
    }

    fn if_open(&self, answer: impl FnOnce() -> Result<Vec<u8>, Errno>) -> Answer {
        if !self.is_open() {
            return Err(Refusal::BadPort);
        }
        Ok(answer()?)
    }

    fn get_type(&self) -> Answer {
        let family = address::tag_of(self.family).ok_or(Errno::INVAL)?;
        let row = KINDS.iter().find(|row| row.1 == self.kind);
        let (kind, _) = row.ok_or(Errno::INVAL)?;
        Ok([0, 0, 0, family, 0, 0, 0, *kind].to_vec())
    }

    /// The address to answer from now on; `None` for the true one.
    fn to_be_told(&self, data: &[u8]) -> Result<Option<Address>, Refusal> {
        match data {
            [] => Ok(None),
            [_] => Err(Errno::INVAL.into()),
            _ => Ok(Some(address::decode(self.family, data)?.0)),
        }
    }

    /// Binds the socket: the number of the port that it has then.
    fn bind(&mut self, data: &[u8]) -> Answer {
        if data.len() < 2 {
            return Err(Errno::INVAL.into());
        }
        if self.status != status::OPEN {
            return Err(Refusal::BadPort);
        }
        let (local, _) = address::decode(self.family, data)?;
        let socket = self.socket()?;
        socket::bind(socket, &local)?;
        let number = match address::port_of(&local) {
            Some(0) => address::port_of(&socket::name(socket)?),
            number => number,
        };
        self.id
            .record_address(SocketEnd::Own, || socket::name(socket).ok());
        Ok(number.unwrap_or(0).to_be_bytes().to_vec())
    }

    /// Does not use the descriptor of a connection for a while, or does again.
    fn ignore(&mut self, port: &mut Context<'_>, data: &[u8]) -> Answer {
        if !self.is_connected() {
            return Err(Errno::NOTCONN.into());
        }
        if self.kind != libc::SOCK_STREAM {
            return Err(Errno::INVAL.into());
        }
        match (data.first(), self.ignored.take()) {
            (Some(1), None) => {
                let fd = self.socket()?.as_raw_fd();
                let watched = port.watched(fd);
                port.unwatch(fd);
                self.ignored = Some(watched);
            }
            (Some(0), Some(watched)) => {
                for interest in watched {
                    self.watch(port, interest);
                }
            }
            (_, ignored) => {
                self.ignored = ignored;
                return Err(Errno::INVAL.into());
            }
        }
        Ok(Vec::new())
    }
}

fn encoded(told: &Address) -> Result<Vec<u8>, Errno> {
    address::encode(told).ok_or(Errno::INVAL)
}

/// The address that was set as the answer, or the true one.
fn told(fixed: Option<&Address>, of: impl FnOnce() -> Result<Address, Errno>) -> Answer {
    Ok(match fixed {
        Some(fixed) => encoded(fixed)?,
        None => encoded(&of()?)?,
    })
}

fn host_name(data: &[u8]) -> Answer {
    if !data.is_empty() {
        return Err(Errno::INVAL.into());
    }
    Ok(crate::sys::chance::names::host_name())
}
