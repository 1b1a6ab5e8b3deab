//! The driver `tcp_inet`: connections, and sockets that listen for them. Source: `tcp_inet_ctl()` and those behind it.

mod accept;
mod connection;
mod deliver;
mod input;
mod output;
mod sendfile;

use std::collections::VecDeque;
use std::os::fd::RawFd;

use beamline_formats::ring::{SocketEnd, SocketWait};
use rustix::io::Errno;
use rustix::net::Shutdown;

use super::control::Opens;
use super::options::{Active, Settings};
use super::request::{Answer, Refusal, Request, respond, take_u16, take_u32};
use super::{
    Inet, address, deadline, error_atom, messages, options, refuse_in_exploration, split_tag,
    status,
};
use crate::port::Connection;
use crate::port::driver::{Context, Driver, End};
use crate::port::open::Error;
use crate::process::refs::RefNumbers;
use crate::sched::timers;
use crate::sys::chance::clock::monotonic_ns;
use crate::sys::chance::poll::Interest;
use crate::sys::socket;
use crate::term::{Pid, am};
use crate::value::iolist::{Bytes, Output as Sent};
use accept::Accepting;
use input::Input;
use output::Output;
use sendfile::SendFile;

const OPENS: Opens = Opens {
    kinds: &[libc::SOCK_STREAM],
    protocols: &[(0, 0), (1, libc::IPPROTO_TCP), (4, libc::IPPROTO_MPTCP)],
};

/// The largest packet that a process may ask for. Source: `TCP_MAX_PACKET_SIZE`.
const MAX_REQUEST: u32 = 0x400_0000;

/// Reads of a connection before others have their turn. To wait for the descriptor costs several times as much as a read.
const READS_AT_ONCE: usize = 16;

/// What is to happen at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// The connect has taken too long.
    Connect,
    /// The accept of this number has.
    Accept(u16),
    Receive,
    Send,
    /// What was held back is sent.
    DelayedSend,
}

/// How a connection has ended, where no process has had that as an answer yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ended {
    /// The next send is answered with `closed`.
    for_send: bool,
    /// The next receive is answered with `closed`.
    for_receive: bool,
    /// The peer has reset the connection, and the answer is to say so.
    is_reset: bool,
}

/// A port of the driver.
pub(in crate::port) struct Tcp {
    inet: Inet,
    /// The port was opened so that its data comes as binaries, which one for a connection that was accepted is not.
    has_binary_data: bool,
    input: Input,
    output: Output,
    accepting: VecDeque<Accepting>,
    due: Vec<(u64, Due)>,
    sendfile: Option<SendFile>,
    ended: Ended,
    /// The owner has got `tcp_closed`.
    is_close_told: bool,
    /// What is to be shut down once all is sent.
    pending_shutdown: Option<Shutdown>,
    /// What is sent is shut down.
    is_write_shut: bool,
    /// Processes that get a message when all is sent.
    subscribers: Vec<Pid>,
}

impl Tcp {
    /// A port without a socket.
    ///
    /// # Errors
    /// Sockets are refused in this run.
    pub(in crate::port) fn open(has_binary_data: bool) -> Result<Tcp, Error> {
        refuse_in_exploration()?;
        Ok(Tcp {
            has_binary_data,
            ..Tcp::with(Settings::default())
        })
    }

    fn with(settings: Settings) -> Tcp {
        Tcp {
            inet: Inet::new(settings),
            has_binary_data: false,
            input: Input::default(),
            output: Output::default(),
            accepting: VecDeque::new(),
            due: Vec::new(),
            sendfile: None,
            ended: Ended::default(),
            is_close_told: false,
            pending_shutdown: None,
            is_write_shut: false,
            subscribers: Vec::new(),
        }
    }

    fn is_busy(&self) -> bool {
        self.inet.is(status::BUSY)
    }

    fn set_busy(&mut self, port: &mut Context<'_>, busy: bool) {
        if busy {
            self.inet.status |= status::BUSY;
        } else {
            self.inet.status &= !status::BUSY;
        }
        port.set_busy(busy);
    }

    /// Has something happen at a time.
    fn set_due(&mut self, port: &mut Context<'_>, at: u64, what: Due) {
        self.due.push((at, what));
        self.set_timer(port);
    }

    fn cancel_due(&mut self, port: &mut Context<'_>, what: Due) {
        let before = self.due.len();
        self.due.retain(|row| row.1 != what);
        if self.due.len() != before {
            self.set_timer(port);
        }
    }

    fn set_timer(&self, port: &mut Context<'_>) {
        port.set_timer(self.due.iter().map(|row| row.0).min());
    }

    /// Does what has been due the longest, if something is.
    fn take_due(&mut self) -> Option<Due> {
        let now = monotonic_ns();
        let rows = self.due.iter().enumerate();
        let (at, (time, _)) = rows.min_by_key(|(_, row)| row.0)?;
        (*time <= now).then(|| self.due.remove(at).1)
    }

    /// Closes the connection: what has been received and what is to be sent is lost.
    fn close(&mut self, port: &mut Context<'_>) {
        self.input.clear();
        self.output.clear();
        self.sendfile = None;
        self.subscribers.clear();
        self.inet.close(port);
    }

    /// Answers every waiting process with `closed`.
    fn end_waits(&mut self, port: &mut Context<'_>) {
        self.end_accepts(port);
        self.inet.answer_error(port, am::closed);
        self.due.clear();
        self.set_timer(port);
    }

    /// The port ends, as the peer has closed the connection or it is lost.
    fn exit(&mut self, port: &mut Context<'_>, why: End) {
        self.output.clear();
        self.sendfile = None;
        port.exit(why);
    }

    /// `{tcp_closed, Port}`, once.
    fn tell_closed(&mut self, port: &Context<'_>) {
        if !std::mem::replace(&mut self.is_close_told, true) {
            messages::tell_owner(port, am::tcp_closed);
        }
    }

    fn tell_error(port: &Context<'_>, error: Errno) {
        messages::tell_owner_error(port, am::tcp_error, error);
    }

    fn listen(&mut self, data: &[u8]) -> Answer {
        if !self.inet.is_open() {
            return Err(Refusal::BadPort);
        }
        let (backlog, _) = take_u16(data)?;
        let socket = self.inet.socket()?;
        rustix::net::listen(socket, backlog.cast_signed().into())?;
        // One that was not bound has its address now.
        self.inet
            .id
            .record_address(SocketEnd::Own, || socket::name(socket).ok());
        self.inet.status = status::OPEN | status::LISTEN;
        Ok(Vec::new())
    }

    /// Connects: no answer where that is done at once, else the number of the message with the outcome.
    fn connect(&mut self, port: &mut Context<'_>, caller: Pid, data: &[u8]) -> Answer {
        if !self.inet.is_open() {
            return Err(Refusal::BadPort);
        }
        if self.inet.is_connected() {
            return Err(Errno::ISCONN.into());
        }
        if self.inet.is(status::CONNECTING) {
            return Err(Errno::INVAL.into());
        }
        let (timeout, rest) = take_u32(data)?;
        let (remote, _) = address::decode(self.inet.family, rest)?;
        self.inet.id.record_connect(caller, &remote);
        let connected = socket::connect(self.inet.socket()?, &remote);
        self.inet.remote = Some(remote);
        match connected {
            Ok(()) => {
                self.inet.status = status::OPEN | status::ACTIVE;
                self.inet
                    .id
                    .record_ready(caller, SocketWait::Connection, "");
                if self.inet.settings.is_active() {
                    self.inet.watch(port, Interest::Read);
                }
                Ok(Vec::new())
            }
            Err(Errno::INPROGRESS | Errno::AGAIN) => {
                self.inet.status = status::OPEN | status::CONNECTING;
                if let Some(at) = deadline(timeout) {
                    self.set_due(port, at, Due::Connect);
                }
                let number = self.inet.wait(caller).ok_or(Errno::ALREADY)?;
                self.inet.record_wait(SocketWait::Connection);
                self.inet.watch(port, Interest::Write);
                Ok(number.to_be_bytes().to_vec())
            }
            Err(error) => {
                let outcome = error_atom(error);
                self.inet
                    .id
                    .record_ready(caller, SocketWait::Connection, outcome.name());
                Err(error.into())
            }
        }
    }

    /// Reads what has come, a few times where there is much, and waits for more if more is wanted.
    fn read_ready(&mut self, port: &mut Context<'_>) {
        for _ in 0..READS_AT_ONCE {
            self.input.was_filled = false;
            if self.read(port, 0).is_err() {
                return;
            }
            if !self.input.was_filled || !self.inet.settings.is_active() {
                break;
            }
        }
        if self.inet.settings.is_active() || self.inet.waiting.is_some() {
            self.inet.watch(port, Interest::Read);
        }
    }

    /// The connect has come to its end.
    fn connected(&mut self, port: &mut Context<'_>) {
        self.cancel_due(port, Due::Connect);
        let done = self.inet.socket().and_then(socket::take_error);
        if let Err(error) = done {
            self.inet.status = status::OPEN;
            return self.inet.answer_error(port, error_atom(error));
        }
        self.inet.status = status::OPEN | status::ACTIVE;
        if self.inet.settings.is_active() {
            self.inet.watch(port, Interest::Read);
        }
        self.inet.answer_ok(port);
    }

    /// Receives for `caller`: a number of bytes, or a packet.
    fn receive(&mut self, port: &mut Context<'_>, caller: Pid, data: &[u8]) -> Answer {
        if !self.inet.is_connected() {
            if !std::mem::take(&mut self.ended.for_receive) {
                return Err(Errno::NOTCONN.into());
            }
            self.ended.for_send = false;
            return Err(match std::mem::take(&mut self.ended.is_reset) {
                true => Errno::CONNRESET.into(),
                false => Refusal::Closed,
            });
        }
        let settings = &self.inet.settings;
        let (timeout, rest) = take_u32(data)?;
        let (length, rest) = take_u32(rest)?;
        let is_raw = settings.packet == crate::value::packet::Type::Raw;
        if settings.is_active() || !rest.is_empty() || (!is_raw && length != 0) {
            return Err(Errno::INVAL.into());
        }
        if length > MAX_REQUEST {
            return Err(Errno::NOMEM.into());
        }
        let number = self.inet.wait(caller).ok_or(Errno::ALREADY)?;
        if self.read(port, length as usize) == Ok(0) {
            if timeout == 0 {
                self.inet.answer_error(port, am::timeout);
            } else {
                self.inet.record_wait(SocketWait::Data);
                if let Some(at) = deadline(timeout) {
                    self.set_due(port, at, Due::Receive);
                }
                self.inet.watch(port, Interest::Read);
            }
        }
        Ok(number.to_be_bytes().to_vec())
    }

    /// Takes back what a process has received.
    fn unreceive(&mut self, port: &mut Context<'_>, data: &[u8]) -> Answer {
        if !self.inet.is_connected() {
            return Err(Errno::NOTCONN.into());
        }
        self.input.push_front(data);
        if self.inet.settings.is_active() {
            let _ = self.deliver(port, 0);
        }
        Ok(Vec::new())
    }

    fn shutdown(&mut self, data: &[u8]) -> Answer {
        if !self.inet.is_connected() {
            return Err(Errno::NOTCONN.into());
        }
        let how = match data {
            [0] => Shutdown::Read,
            [1] => Shutdown::Write,
            [2] => Shutdown::Both,
            _ => return Err(Errno::INVAL.into()),
        };
        if how != Shutdown::Read && !self.output.is_empty() {
            self.pending_shutdown = Some(how);
            return Ok(Vec::new());
        }
        rustix::net::shutdown(self.inet.socket()?, how)?;
        self.is_write_shut |= how != Shutdown::Read;
        Ok(Vec::new())
    }

    /// Sets options, and does what follows from them.
    fn set_options(&mut self, port: &mut Context<'_>, data: &[u8]) -> Answer {
        let (old_active, old_packet) = (self.inet.settings.active, self.inet.settings.packet);
        let done = options::set(&mut self.inet, port, data);
        if self.inet.settings.is_active()
            && self.inet.status == status::CLOSED
            && self.inet.kind >= 0
        {
            if std::mem::take(&mut self.ended.is_reset) {
                Tcp::tell_error(port, Errno::CONNRESET);
            }
            self.tell_closed(port);
            if self.inet.settings.exit_on_close {
                self.exit(port, End::Normal);
            }
        }
        done?;
        if !self.inet.is_connected() {
            return Ok(Vec::new());
        }
        let settings = &self.inet.settings;
        let (active, packet) = (settings.active, settings.packet);
        let was_passive = old_active == Active::Passive;
        let is_counted = matches!(active, Active::Once | Active::Times);
        if was_passive && is_counted && packet == old_packet {
            if self.read(port, 0).is_ok() && self.inet.settings.is_active() {
                self.inet.watch(port, Interest::Read);
            }
            return Ok(Vec::new());
        }
        if active != old_active {
            match active {
                Active::Passive => self.inet.unwatch(port, Interest::Read),
                _ => self.inet.watch(port, Interest::Read),
            }
        }
        if active != Active::Passive && (was_passive || packet != old_packet) {
            if !was_passive {
                self.input.forget_length();
            }
            let _ = self.deliver(port, 0);
        }
        Ok(Vec::new())
    }

    /// Answers how many bytes are not sent yet; if there are any, `caller` gets a message when all are.
    fn subscribe(&mut self, caller: Pid, data: &[u8]) -> Answer {
        let mut answer = Vec::new();
        for code in data {
            if *code != 1 {
                return Err(Errno::INVAL.into());
            }
            let pending = self.output.bytes();
            if pending > 0 && !self.subscribers.contains(&caller) {
                self.subscribers.push(caller);
            }
            answer.push(*code);
            answer.extend((pending as u32).to_be_bytes());
        }
        Ok(answer)
    }

    fn answer(&mut self, port: &mut Context<'_>, request: Request, data: &[u8]) -> Answer {
        let caller = port.caller.ok_or(Refusal::NoProcess)?;
        match request {
            Request::Open => self.inet.open(port, &OPENS, data),
            Request::OpenDescriptor => self.inet.open_descriptor(port, &OPENS, data),
            Request::Listen => self.listen(data),
            Request::Connect => self.connect(port, caller, data),
            Request::Accept => self.accept(port, caller, data),
            Request::Close => {
                self.end_waits(port);
                self.close(port);
                Ok(Vec::new())
            }
            Request::Receive => self.receive(port, caller, data),
            Request::Unreceive => self.unreceive(port, data),
            Request::Shutdown => self.shutdown(data),
            Request::SendFile => self.send_file(port, data),
            Request::SetOptions => self.set_options(port, data),
            Request::Subscribe => self.subscribe(caller, data),
            _ => self.inet.control(port, request, data, self.output.bytes()),
        }
    }

    /// The connect has taken too long.
    fn connect_timed_out(&mut self, port: &mut Context<'_>) {
        self.close(port);
        self.inet.answer_error(port, am::timeout);
    }

    fn happen(&mut self, port: &mut Context<'_>, due: Due) {
        match due {
            Due::Connect => self.connect_timed_out(port),
            Due::Accept(number) => self.accept_timed_out(port, number),
            Due::Receive => {
                self.input.forget_length();
                self.inet.unwatch(port, Interest::Read);
                self.inet.answer_error(port, am::timeout);
            }
            Due::Send => self.send_timed_out(port),
            Due::DelayedSend => self.write(port),
        }
    }
}

impl Driver for Tcp {
    fn output(&mut self, port: &mut Context<'_>, data: Vec<u8>) -> Result<(), End> {
        self.output_vector(port, data.into())
    }

    fn output_vector(&mut self, port: &mut Context<'_>, data: Sent) -> Result<(), End> {
        let data = with_own_tag(data);
        let start = match data.parts.first() {
            Some(first) => self.inet.take_sender(port, first)?,
            None => return Err(Errno::INVAL.into()),
        };
        self.send(port, data, start);
        Ok(())
    }

    fn has_outputv(&self) -> bool {
        true
    }

    fn is_socket(&self) -> bool {
        true
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
        while port.end.is_none()
            && let Some(due) = self.take_due()
        {
            self.happen(port, due);
        }
        self.set_timer(port);
        Ok(())
    }

    fn process_exited(&mut self, port: &mut Context<'_>, monitor: RefNumbers) {
        self.accepter_exited(port, monitor);
    }

    fn ready(&mut self, port: &mut Context<'_>, fd: RawFd, interest: Interest) -> Result<(), End> {
        if self.inet.fd() != Some(fd) {
            return Ok(());
        }
        match interest {
            Interest::Read if !self.accepting.is_empty() => self.accept_ready(port),
            Interest::Read if self.inet.is_connected() => self.read_ready(port),
            Interest::Write if self.inet.is(status::CONNECTING) => self.connected(port),
            Interest::Write if self.inet.is_connected() => self.write(port),
            _ => {}
        }
        Ok(())
    }

    fn queued_bytes(&self) -> usize {
        self.output.bytes()
    }

    fn sets_busy(&self) -> bool {
        true
    }

    fn is_busy_softly(&self) -> bool {
        true
    }

    fn serve_connection(&mut self, port: &mut Context<'_>) {
        self.send_packets(port);
    }

    fn must_flush(&self) -> bool {
        let is_lost = self.inet.settings.linger_zero || self.sendfile.is_some();
        !self.output.is_empty() && self.inet.is_connected() && !is_lost
    }

    fn flush(&mut self, connection: Option<&Connection>) {
        if self.must_flush() || connection.is_some() {
            self.write_all(connection);
        }
    }

    fn stop(&mut self, port: &mut Context<'_>) {
        self.end_waits(port);
        self.close(port);
    }
}

/// What is sent, with its tag in the first part, which is its own: as it is, where it comes from `prim_inet`.
fn with_own_tag(data: Sent) -> Sent {
    match data.parts.first() {
        Some(Bytes::Own(first)) if split_tag(first).is_ok() => data,
        _ => data.into_bytes().into(),
    }
}

/// Milliseconds from now.
fn after(milliseconds: u32) -> u64 {
    timers::deadline_after(milliseconds.into())
}
