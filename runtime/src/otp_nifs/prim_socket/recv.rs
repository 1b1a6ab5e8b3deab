//! Receiving: `nif_recv/4`, `nif_recvfrom/4`, `nif_recvmsg/5`, `nif_recvmmsg/6`.

use std::cell::RefCell;

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::answers::{
    Done, End, badarg, closed, error_invalid, int, number, raise_invalid, result, size,
};
use super::counts::Count;
use super::names::{self, flag_names};
use super::state::{Does, Socket, State};
use super::{address, control};
use crate::bif::BifResult;
use crate::otp_nifs::{error, object, ok};
use crate::process::Process;
use crate::sys::errno::errno_name;
use crate::sys::socket::messages::{self, Received};
use crate::term::atom::atom;
use crate::term::{Term, am};

/// Reads up to so many bytes go through a buffer of the thread's, which leaves nothing but the binary.
const BUFFERED: usize = 64 * 1024;

/// Messages that one call takes at most.
const MESSAGES_MAX: u32 = 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A binary of what `read` puts into a space of `bytes`, how many they are, and what else `read` gives.
fn binary_of<'p, T>(
    p: &'p Process,
    bytes: usize,
    read: impl FnOnce(&mut [u8]) -> Result<(usize, T), Errno>,
) -> Result<(Term<'p>, usize, T), Errno> {
    if bytes > BUFFERED {
        let mut space = vec![0; bytes];
        let (n, more) = read(&mut space)?;
        space.truncate(n);
        space.shrink_to_fit();
        return Ok((p.binary_from_vec(space), n.min(bytes), more));
    }
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        let (n, more) = read(&mut buffer[..bytes])?;
        let n = n.min(bytes);
        Ok((p.binary(&buffer[..n]), n, more))
    })
}

/// What a call asks for.
#[derive(Clone, Copy)]
struct Asked<'p> {
    p: &'p Process,
    /// By which its caller waits; `zero` where it does not.
    reference: Term<'p>,
    flags: i32,
}

impl<'p> Asked<'p> {
    fn new(p: &'p Process, reference: Term<'p>, flags: Term<'p>) -> Done<'p, Asked<'p>> {
        if reference.as_ref().is_none() && !reference.same(atom("zero")) {
            return Err(badarg());
        }
        let flags = int(p, flags)?;
        Ok(Asked {
            p,
            reference,
            flags,
        })
    }

    fn waits(&self) -> bool {
        self.reference.as_atom().is_none()
    }

    fn flags(&self) -> RecvFlags {
        RecvFlags::from_bits_retain(self.flags.cast_unsigned())
    }

    /// The caller may read now, or waits for its turn.
    fn enter(&self, state: &mut State) -> Done<'p, ()> {
        let p = self.p;
        if !state.is_open() {
            return Err(closed(p));
        }
        if state.turns(Does::Accept).current.is_some() {
            return Err(error_invalid(p, names::state()));
        }
        let current = state.turns(Does::Read).current.as_ref();
        if current.is_some_and(|current| current.pid != p.pid()) {
            if !self.waits() {
                return Err(End::Answer(am::timeout.term()));
            }
            return Err(match state.queue_up(Does::Read, p, self.reference) {
                true => End::Answer(names::select()),
                false => raise_invalid(p, names::state()),
            });
        }
        state.count(Count::ReadTries, 1);
        Ok(())
    }

    fn fail(&self, state: &mut State, reason: Term<'p>) -> Term<'p> {
        state.count(Count::ReadFails, 1);
        state.lost = reason.as_atom();
        state.fail_all(Does::Read, Some(self.p), reason);
        error(self.p, reason)
    }

    /// Nothing was read.
    fn failed(&self, state: &mut State, errno: Errno) -> Term<'p> {
        state.times_read = 0;
        match errno {
            Errno::AGAIN if self.waits() => {
                state.count(Count::ReadWaits, 1);
                state.wait(Does::Read, self.p, self.reference);
                names::select()
            }
            Errno::AGAIN => {
                state.give_up_turn(Does::Read, Some(self.p));
                am::timeout.term()
            }
            errno => self.fail(state, atom(errno_name(errno.raw_os_error()))),
        }
    }

    /// All was read that was asked for.
    fn complete(&self, state: &mut State, what: Term<'p>) -> Term<'p> {
        if state.settings.selects_read && self.waits() {
            state.wait(Does::Read, self.p, self.reference);
            return self.p.tuple(&[names::select_read(), what]);
        }
        state.give_up_turn(Does::Read, Some(self.p));
        ok(self.p, what)
    }

    /// `n` bytes were read of `length` that were asked for, if any, with room for `room`.
    fn read(
        &self,
        state: &mut State,
        length: usize,
        room: usize,
        n: usize,
        data: Term<'p>,
    ) -> Term<'p> {
        let is_stream = state.kind == libc::SOCK_STREAM;
        if n == 0 && is_stream {
            return self.fail(state, names::closed());
        }
        state.counts.read_part(n);
        state.id.record_in(self.p.pid(), n);
        if n < room {
            state.times_read = 0;
            state.counts.end_read();
            if is_stream && length > 0 {
                return self.partial(state, data);
            }
            state.count(Count::Reads, 1);
            return self.complete(state, data);
        }
        if length == 0 && is_stream {
            state.times_read += 1;
            if state.times_read < state.settings.receive_times {
                state.hold_turn(Does::Read, self.p, self.reference);
                return self.p.tuple(&[names::more(), data]);
            }
        }
        state.times_read = 0;
        state.counts.end_read();
        state.count(Count::Reads, 1);
        self.complete(state, data)
    }

    /// Some of what was asked for was read.
    fn partial(&self, state: &mut State, data: Term<'p>) -> Term<'p> {
        let what = match self.waits() {
            true => {
                state.wait(Does::Read, self.p, self.reference);
                names::select()
            }
            false => {
                state.count(Count::Reads, 1);
                state.give_up_turn(Does::Read, Some(self.p));
                am::timeout.term()
            }
        };
        self.p.tuple(&[what, data])
    }

    fn recv(&self, state: &mut State, length: usize) -> Done<'p> {
        self.enter(state)?;
        let room = state.room(length);
        let fd = state.fd().ok_or_else(|| closed(self.p))?;
        let read = binary_of(self.p, room, |space| {
            rustix::net::recv(fd, space, self.flags()).map(|(n, _)| (n, ()))
        });
        Ok(match read {
            Ok((data, n, ())) => self.read(state, length, room, n, data),
            Err(errno) => self.failed(state, errno),
        })
    }

    fn recv_from(&self, state: &mut State, length: usize) -> Done<'p> {
        self.enter(state)?;
        let room = state.room(length);
        let fd = state.fd().ok_or_else(|| closed(self.p))?;
        let read = binary_of(self.p, room, |space| {
            messages::receive_from(fd, space, self.flags())
        });
        Ok(match read {
            Ok((_, 0, _)) if state.kind == libc::SOCK_STREAM => self.fail(state, names::closed()),
            Ok((data, n, from)) => {
                state.times_read = 0;
                state.counts.read_message(n);
                state.id.record_in(self.p.pid(), n);
                let from = address::encode_some(self.p, from.as_ref());
                self.complete(state, self.p.tuple(&[from, data]))
            }
            Err(errno) => self.failed(state, errno),
        })
    }

    /// A message, as a map, and how long its data is.
    fn message(
        &self,
        state: &State,
        room: usize,
        control: usize,
    ) -> Result<(Term<'p>, usize), Errno> {
        let fd = state.fd().ok_or(Errno::BADF)?;
        let mut headers = vec![0; control];
        let (data, n, received) = binary_of(self.p, room, |space| {
            messages::receive(fd, space, &mut headers, self.flags)
        })?;
        Ok((self.message_term(data, &headers, &received), n))
    }

    fn message_term(&self, data: Term<'p>, headers: &[u8], received: &Received) -> Term<'p> {
        let p = self.p;
        let mut pairs = vec![
            ("iov", p.list(&[data])),
            ("ctrl", control::encode(p, headers)),
            ("flags", flag_names(p, received.flags)),
        ];
        if let Some(from) = &received.from {
            pairs.push(("addr", address::encode(p, from.bytes())));
        }
        names::map(p, &pairs)
    }

    fn recv_message(&self, state: &mut State, room: usize, control: usize) -> Done<'p> {
        self.enter(state)?;
        Ok(match self.message(state, room, control) {
            Ok((_, 0)) if state.kind == libc::SOCK_STREAM => self.fail(state, names::closed()),
            Ok((message, n)) => {
                state.times_read = 0;
                state.counts.read_message(n);
                state.id.record_in(self.p.pid(), n);
                self.complete(state, message)
            }
            Err(errno) => self.failed(state, errno),
        })
    }

    fn recv_messages(&self, state: &mut State, most: u32, room: usize, control: usize) -> Done<'p> {
        self.enter(state)?;
        let mut messages = Vec::new();
        while messages.len() < most.min(MESSAGES_MAX) as usize {
            match self.message(state, room, control) {
                Ok((message, n)) => {
                    state.counts.read_message(n);
                    state.id.record_in(self.p.pid(), n);
                    messages.push(message);
                }
                Err(errno) if messages.is_empty() => return Ok(self.failed(state, errno)),
                // The next call gets the error.
                Err(_) => break,
            }
        }
        Ok(self.complete(state, self.p.list(&messages)))
    }
}

pub(super) fn nif_recv_4<'p>(
    p: &'p Process,
    [socket, length, flags, reference]: [Term<'p>; 4],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    result(Asked::new(p, reference, flags).and_then(|asked| {
        let length = size(p, length)?;
        socket.with(|state| asked.recv(state, length))
    }))
}

pub(super) fn nif_recvfrom_4<'p>(
    p: &'p Process,
    [socket, length, flags, reference]: [Term<'p>; 4],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    result(Asked::new(p, reference, flags).and_then(|asked| {
        let length = size(p, length)?;
        socket.with(|state| asked.recv_from(state, length))
    }))
}

/// The room for data and for control messages, which is the socket's where a call names none.
fn rooms(state: &State, room: usize, control: usize) -> (usize, usize) {
    let control = match control {
        0 => state.settings.receive_control,
        control => control,
    };
    (state.room(room), control)
}

pub(super) fn nif_recvmsg_5<'p>(
    p: &'p Process,
    [socket, room, control, flags, reference]: [Term<'p>; 5],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    result(Asked::new(p, reference, flags).and_then(|asked| {
        let (room, control) = (size(p, room)?, size(p, control)?);
        socket.with(|state| {
            let (room, control) = rooms(state, room, control);
            asked.recv_message(state, room, control)
        })
    }))
}

pub(super) fn nif_recvmmsg_6<'p>(
    p: &'p Process,
    [socket, most, room, control, flags, reference]: [Term<'p>; 6],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    result(Asked::new(p, reference, flags).and_then(|asked| {
        let most = number(p, most, |most| {
            u32::try_from(most.as_u64()?).ok().filter(|most| *most > 0)
        })?;
        let (room, control) = (size(p, room)?, size(p, control)?);
        socket.with(|state| {
            let (room, control) = rooms(state, room, control);
            asked.recv_messages(state, most, room, control)
        })
    }))
}
