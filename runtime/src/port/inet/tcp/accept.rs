//! Accepts connections. Processes that wait for one get them in the order in which they have asked.

use std::os::fd::OwnedFd;

use beamline_formats::ring::{SocketEnd, SocketWait};
use rustix::io::Errno;

use super::super::messages::{tell_accepted, tell_failed};
use super::super::request::{Answer, Refusal, take_u32};
use super::super::{Inet, Waiting, deadline, error_atom, status};
use super::{Due, Tcp};
use crate::port::driver::Context;
use crate::process::refs::RefNumbers;
use crate::sys::chance::poll::Interest;
use crate::sys::socket::{self, Address, Socket};
use crate::term::{Atom, Pid, Port, am};
use crate::trace::EXITED;

/// A process that waits for a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepting(Waiting);

impl Tcp {
    /// Takes a connection for `caller`, or has it wait: the number of the message with the outcome.
    pub(super) fn accept(&mut self, port: &mut Context<'_>, caller: Pid, data: &[u8]) -> Answer {
        let (timeout, rest) = take_u32(data)?;
        if !self.inet.is(status::OPEN | status::LISTEN) || !rest.is_empty() {
            return Err(Errno::INVAL.into());
        }
        if self.accepting.is_empty() {
            match socket::accept(self.inet.socket()?) {
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
                Ok((fd, peer)) => {
                    let accepted = self.accepted(port, caller, fd, peer);
                    let accepted = accepted.ok_or(Refusal::SystemLimit)?;
                    let waiting = self.inet.next_waiting(caller, None);
                    tell_accepted(port, &waiting, accepted);
                    return Ok(waiting.number.to_be_bytes().to_vec());
                }
            }
        }
        let monitor = port.monitor(caller).ok_or(Refusal::NoProcess)?;
        let mut waiting = self.inet.next_waiting(caller, Some(monitor));
        waiting.record(self.inet.id, SocketWait::Accept);
        if let Some(at) = deadline(timeout) {
            self.set_due(port, at, Due::Accept(waiting.number));
        }
        self.accepting.push_back(Accepting(waiting));
        self.set_accepting(port);
        Ok(waiting.number.to_be_bytes().to_vec())
    }

    /// A port for a connection, with the options of this one, that belongs to `owner`. `None`: there is no room for it.
    fn accepted(
        &self,
        port: &Context<'_>,
        owner: Pid,
        fd: OwnedFd,
        peer: Option<Address>,
    ) -> Option<Port> {
        let mut settings = self.inet.settings.clone();
        settings.become_accepted();
        let mut tcp = Tcp::with(settings);
        tcp.inet = Inet {
            socket: Some(Socket::own(fd)),
            status: status::OPEN | status::ACTIVE,
            family: self.inet.family,
            kind: self.inet.kind,
            remote: peer,
            ..tcp.inet
        };
        let id = tcp.inet.id;
        id.record_address(SocketEnd::Peer, || tcp.inet.remote.as_ref());
        let accepted = port.create(owner, Box::new(tcp))?;
        let kind = (self.inet.family, self.inet.kind);
        id.record_accept(owner, kind, Some(accepted), self.inet.id);
        Some(accepted)
    }

    /// Says in the status whether a process waits, and watches the socket if so.
    fn set_accepting(&mut self, port: &mut Context<'_>) {
        let waits = match self.accepting.len() {
            0 => 0,
            1 => status::ACCEPTING | (self.inet.status & status::MANY_ACCEPT),
            _ => status::ACCEPTING | status::MANY_ACCEPT,
        };
        self.inet.status &= !(status::ACCEPTING | status::MANY_ACCEPT);
        self.inet.status |= waits;
        match waits {
            0 => self.inet.unwatch(port, Interest::Read),
            _ => self.inet.watch(port, Interest::Read),
        }
    }

    /// The first that waits waits no more.
    fn next_accepting(&mut self, port: &mut Context<'_>) -> Option<Waiting> {
        let Accepting(waiting) = self.accepting.pop_front()?;
        self.forget(port, &waiting);
        Some(waiting)
    }

    fn forget(&mut self, port: &mut Context<'_>, waiting: &Waiting) {
        self.cancel_due(port, Due::Accept(waiting.number));
        if let Some(monitor) = waiting.monitor {
            port.demonitor(monitor, waiting.caller);
        }
    }

    /// There is a connection, or there was.
    pub(super) fn accept_ready(&mut self, port: &mut Context<'_>) {
        while !self.accepting.is_empty() {
            let taken = match self.inet.socket() {
                Ok(listener) => socket::accept(listener),
                Err(error) => Err(error),
            };
            if matches!(taken, Err(Errno::AGAIN)) {
                break;
            }
            let Some(waiting) = self.next_accepting(port) else {
                break;
            };
            match taken {
                Err(error) => {
                    self.fail_accept(port, &waiting, error_atom(error));
                    break;
                }
                Ok((fd, peer)) => match self.accepted(port, waiting.caller, fd, peer) {
                    Some(accepted) => {
                        waiting.record_end(self.inet.id, "");
                        tell_accepted(port, &waiting, accepted);
                    }
                    None => self.fail_accept(port, &waiting, am::system_limit),
                },
            }
        }
        self.set_accepting(port);
    }

    fn fail_accept(&self, port: &Context<'_>, waiting: &Waiting, reason: Atom) {
        waiting.record_end(self.inet.id, reason.name());
        tell_failed(port, waiting, reason);
    }

    fn end_accept(
        &mut self,
        port: &mut Context<'_>,
        tells: Option<Atom>,
        is_it: impl Fn(&Waiting) -> bool,
    ) {
        let at = self.accepting.iter().position(|it| is_it(&it.0));
        if let Some(Accepting(waiting)) = at.and_then(|at| self.accepting.remove(at)) {
            self.forget(port, &waiting);
            match tells {
                Some(reason) => self.fail_accept(port, &waiting, reason),
                None => waiting.record_end(self.inet.id, EXITED),
            }
            self.set_accepting(port);
        }
    }

    pub(super) fn accept_timed_out(&mut self, port: &mut Context<'_>, number: u16) {
        self.end_accept(port, Some(am::timeout), |waiting| waiting.number == number);
    }

    pub(super) fn accepter_exited(&mut self, port: &mut Context<'_>, monitor: RefNumbers) {
        self.end_accept(port, None, |waiting| waiting.monitor == Some(monitor));
    }

    /// All waiting processes get the error `closed` in place of a connection.
    pub(super) fn end_accepts(&mut self, port: &mut Context<'_>) {
        if self.accepting.is_empty() {
            return;
        }
        while let Some(waiting) = self.next_accepting(port) {
            self.fail_accept(port, &waiting, am::closed);
        }
        self.set_accepting(port);
    }
}
