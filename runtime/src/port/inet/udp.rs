//! The driver `udp_inet`: datagrams. Source: `packet_inet_ctl()` and those behind it.

use std::borrow::Cow;
use std::io::IoSlice;
use std::os::fd::{AsFd, RawFd};

use beamline_formats::ring::{SocketEnd, SocketWait};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::control::Opens;
use super::options::{Active, Settings};
use super::request::{Answer, Refusal, Request, respond, take_u32};
use super::{
    Inet, address, deadline, error_atom, messages, options, refuse_in_exploration, status,
};
use crate::heap::Heap;
use crate::port::driver::{Context, Driver, End};
use crate::port::open::Error;
use crate::sys::chance::poll::Interest;
use crate::sys::socket::control::{Control, Message};
use crate::sys::socket::{self, Address};
use crate::term::{Atom, Pid, Term, am};

const OPENS: Opens = Opens {
    kinds: &[libc::SOCK_STREAM, libc::SOCK_DGRAM],
    protocols: &[(0, 0), (2, libc::IPPROTO_UDP)],
};

/// Control messages that go with datagrams: level, name, the option of `prim_inet`, what it is called.
const CONTROL: [(i32, i32, u8, &str); 3] = [
    (libc::IPPROTO_IP, libc::IP_TOS, 9, "tos"),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, 41, "tclass"),
    (libc::IPPROTO_IP, libc::IP_TTL, 46, "ttl"),
];

/// A port of the driver.
pub(in crate::port) struct Udp(Inet);

/// A datagram that has been received.
struct Datagram {
    bytes: Vec<u8>,
    from: Option<Address>,
    /// What came with it, where that was asked for.
    control: Option<Control>,
}

impl Udp {
    /// A port without a socket.
    ///
    /// # Errors
    /// Sockets are refused in this run.
    pub(in crate::port) fn open() -> Result<Udp, Error> {
        refuse_in_exploration()?;
        Ok(Udp(Inet::new(Settings::default())))
    }

    /// Notes where datagrams go that name no place, and that none come from elsewhere.
    fn connect(&mut self, data: &[u8]) -> Answer {
        let inet = &mut self.0;
        if !inet.is_open() {
            return Err(Refusal::BadPort);
        }
        let socket = inet.socket.as_ref().ok_or(Errno::BADF)?;
        if data.is_empty() {
            let _ = socket::disconnect(socket);
            inet.status &= !status::ACTIVE;
            return Ok(Vec::new());
        }
        let (_, rest) = take_u32(data)?;
        let (remote, _) = address::decode(inet.family, rest)?;
        if inet.status & status::ACTIVE != 0 {
            // Its own address does not follow the new one else.
            let _ = socket::disconnect(socket);
        }
        if let Err(error) = socket::connect(socket, &remote) {
            let _ = socket::disconnect(socket);
            inet.status &= !status::ACTIVE;
            return Err(error.into());
        }
        inet.id.record_address(SocketEnd::Peer, || Some(&remote));
        inet.remote = Some(remote);
        inet.status |= status::ACTIVE;
        Ok(Vec::new())
    }

    fn receive(&mut self, port: &mut Context<'_>, caller: Pid, data: &[u8]) -> Answer {
        if !self.0.is_open() {
            return Err(Refusal::BadPort);
        }
        if self.0.settings.is_active() || data.len() != 8 {
            return Err(Errno::INVAL.into());
        }
        let (timeout, _) = take_u32(data)?;
        let number = self.0.wait(caller).ok_or(Errno::ALREADY)?;
        if !self.read(port) {
            self.0.record_wait(SocketWait::Data);
            port.set_timer(deadline(timeout));
        }
        Ok(number.to_be_bytes().to_vec())
    }

    fn set_options(&mut self, port: &mut Context<'_>, data: &[u8]) -> Answer {
        let old = self.0.settings.active;
        options::set(&mut self.0, port, data)?;
        let active = self.0.settings.active;
        if self.0.is_open() && self.0.kind == libc::SOCK_DGRAM && active != old {
            match active {
                Active::Passive => {
                    port.set_timer(None);
                    self.0.unwatch(port, Interest::Read);
                }
                _ => self.0.watch(port, Interest::Read),
            }
        }
        Ok(Vec::new())
    }

    fn answer(&mut self, port: &mut Context<'_>, request: Request, data: &[u8]) -> Answer {
        let caller = port.caller.ok_or(Refusal::NoProcess)?;
        match request {
            Request::Open | Request::OpenDescriptor => {
                let answer = match request {
                    Request::Open => self.0.open(port, &OPENS, data),
                    _ => self.0.open_descriptor(port, &OPENS, data),
                }?;
                if self.0.settings.is_active() {
                    self.0.watch(port, Interest::Read);
                }
                Ok(answer)
            }
            Request::Close => {
                self.0.close(port);
                Ok(Vec::new())
            }
            Request::Connect => self.connect(data),
            Request::ReceiveFrom => self.receive(port, caller, data),
            Request::SetOptions => self.set_options(port, data),
            _ => self.0.control(port, request, data, 0),
        }
    }

    /// Sends what is in `data`: an address, control messages, and the bytes.
    fn send(&mut self, data: &[u8]) -> Result<(), Errno> {
        let inet = &mut self.0;
        if !inet.is_open() {
            return Err(Errno::INVAL);
        }
        let (to, rest) = address::decode(inet.family, data)?;
        let (length, rest) = take_u32(rest)?;
        let (control, bytes) = rest.split_at_checked(length as usize).ok_or(Errno::INVAL)?;
        let control = control_messages(control)?;
        inet.count_sent(bytes.len());
        let to = (inet.status & status::ACTIVE == 0).then_some(&to);
        let socket = inet.socket()?;
        match (&control, to) {
            (None, None) => rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)?,
            (None, Some(to)) => socket::send_to(socket, bytes, SendFlags::NOSIGNAL, to)?,
            (Some(control), to) => {
                let flags = SendFlags::NOSIGNAL.bits().cast_signed();
                socket::messages::send(socket, &[IoSlice::new(bytes)], to, control.bytes(), flags)?
            }
        };
        Ok(())
    }

    /// Receives a datagram.
    fn take(&self) -> Result<Datagram, Errno> {
        let inet = &self.0;
        let socket = inet.socket()?.as_fd();
        let limit = inet.settings.buffer;
        let mut bytes = Vec::with_capacity(limit);
        let mut control = None;
        let from = if inet.status & status::ACTIVE != 0 {
            socket::receive_behind(socket, &mut bytes, limit)?;
            inet.remote.clone()
        } else if inet.settings.control != 0 {
            let control = control.insert(Control::default());
            socket::messages::receive_with(socket, &mut bytes, control, 0)?.from
        } else {
            socket::receive_from(socket, &mut bytes, RecvFlags::empty())?
        };
        bytes.shrink_to_fit();
        Ok(Datagram {
            bytes,
            from,
            control,
        })
    }

    /// Receives and delivers; whether a process has waited for that.
    fn read(&mut self, port: &mut Context<'_>) -> bool {
        for _ in 0..self.0.settings.read_packets {
            let datagram = match self.take() {
                Ok(datagram) => datagram,
                Err(Errno::AGAIN | Errno::INTR) => {
                    if !self.0.settings.is_active() {
                        self.0.watch(port, Interest::Read);
                    }
                    return false;
                }
                Err(error) => {
                    self.failed(port, error);
                    return true;
                }
            };
            port.took_input(datagram.bytes.len());
            self.0.count_received(port, datagram.bytes.len());
            self.deliver(port, datagram);
            if !self.0.settings.is_active() {
                port.set_timer(None);
                self.0.unwatch(port, Interest::Read);
                return true;
            }
        }
        true
    }

    fn failed(&mut self, port: &mut Context<'_>, error: Errno) {
        if self.0.settings.is_active() {
            messages::tell_owner_error(port, am::udp_error, error);
        } else {
            self.0.answer_error(port, error_atom(error));
            port.set_timer(None);
            self.0.unwatch(port, Interest::Read);
        }
    }

    fn deliver(&mut self, port: &Context<'_>, datagram: Datagram) {
        let Datagram {
            bytes,
            from,
            control,
        } = datagram;
        let from = address::encode_source(from.as_ref());
        let settings = &self.0.settings;
        let (binary, header) = (settings.is_binary, settings.header);
        if !settings.is_active() {
            self.0.answer(port, |heap| {
                let data = [&from[..], &bytes].concat();
                let data = messages::data(heap, data.into(), binary, header + from.len());
                let data = match &control {
                    Some(control) => heap.tuple(&[data, control_list(heap, control)]),
                    None => data,
                };
                heap.tuple(&[am::ok.term(), data])
            });
            return;
        }
        if settings.is_port_data {
            port.tell_owner(|heap| {
                let data = [&from[..], &bytes].concat();
                let data = messages::data(heap, data.into(), binary, header);
                heap.tuple(&[am::data.term(), data])
            });
        } else {
            let (owner, id) = (port.state.owner, port.term());
            port.tell(owner, |heap| {
                let [host, number] = address::terms(heap, &from);
                let data = messages::data(heap, Cow::Owned(bytes), binary, header);
                match &control {
                    Some(control) => {
                        let control = control_list(heap, control);
                        heap.tuple(&[am::udp.term(), id, host, number, control, data])
                    }
                    None => heap.tuple(&[am::udp.term(), id, host, number, data]),
                }
            });
        }
        if self.0.settings.is_last_of_count() {
            messages::tell_owner(port, am::udp_passive);
        }
    }
}

/// The control messages that a sender asks for: options with numbers. `None` where there are none.
fn control_messages(mut options: &[u8]) -> Result<Option<Control>, Errno> {
    if options.is_empty() {
        return Ok(None);
    }
    let mut control = Control::default();
    while let Some((&code, rest)) = options.split_first() {
        let (value, rest) = take_u32(rest)?;
        options = rest;
        let row = CONTROL.iter().find(|row| row.2 == code);
        let &(level, kind, ..) = row.ok_or(Errno::INVAL)?;
        let data = &value.to_ne_bytes();
        if !control.push(Message { level, kind, data }) {
            return Err(Errno::INVAL);
        }
    }
    Ok(Some(control))
}

/// The control messages that are known, as a list of pairs.
fn control_list<'h>(heap: &'h Heap, control: &Control) -> Term<'h> {
    let pair = |message: Message<'_>| {
        let is_it = |row: &&(i32, i32, u8, &str)| (row.0, row.1) == (message.level, message.kind);
        let row = CONTROL.iter().find(is_it)?;
        let value = message.number().unwrap_or(0);
        Some(heap.tuple(&[Atom::new(row.3).term(), heap.unsigned(value)]))
    };
    let pairs: Vec<_> = control.messages().filter_map(pair).collect();
    heap.list(&pairs)
}

impl Driver for Udp {
    fn is_socket(&self) -> bool {
        true
    }

    fn output(&mut self, port: &mut Context<'_>, data: Vec<u8>) -> Result<(), End> {
        let start = self.0.take_sender(port, &data)?;
        match self.send(&data[start..]) {
            Ok(()) => self.0.reply_ok(port),
            Err(error) => self.0.reply_errno(port, error),
        }
        Ok(())
    }

    fn control(
        &mut self,
        port: &mut Context<'_>,
        command: u32,
        data: &[u8],
    ) -> Option<Result<Vec<u8>, End>> {
        Some(Ok(respond(command, |request| {
            self.answer(port, request, data)
        })))
    }

    fn timeout(&mut self, port: &mut Context<'_>) -> Result<(), End> {
        self.0.unwatch(port, Interest::Read);
        self.0.answer_error(port, am::timeout);
        Ok(())
    }

    fn ready(&mut self, port: &mut Context<'_>, fd: RawFd, interest: Interest) -> Result<(), End> {
        if self.0.fd() == Some(fd) && interest == Interest::Read {
            self.read(port);
            if self.0.settings.is_active() {
                self.0.watch(port, Interest::Read);
            }
        }
        Ok(())
    }

    fn stop(&mut self, port: &mut Context<'_>) {
        self.0.answer_error(port, am::closed);
        self.0.close(port);
    }
}
