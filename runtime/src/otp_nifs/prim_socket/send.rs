//! Sending: `nif_send/4`, `nif_sendto/5`, `nif_sendmsg/5`, `nif_sendmmsg/4`, `nif_sendv/3`.

use std::borrow::Cow;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::SendFlags;
use smallvec::SmallVec;

use super::answers::{Done, End, badarg, closed, error_invalid, int, raise_invalid, result, wrong};
use super::counts::Count;
use super::names::{self, get};
use super::state::{Does, Socket, State};
use super::{IOV_MAX, address, control};
use crate::bif::BifResult;
use crate::otp_nifs::{error, object, ok};
use crate::process::Process;
use crate::sys::errno::errno_name;
use crate::sys::socket::{self, Address, messages};
use crate::term::atom::atom;
use crate::term::{Bits, Term, View, am};

/// Messages that one call sends at most.
const MESSAGES_MAX: usize = 1024;

/// What a call asks for.
#[derive(Clone, Copy)]
struct Asked<'p> {
    p: &'p Process,
    reference: Term<'p>,
    flags: i32,
}

/// The binaries of a list, and what is behind them.
struct Parts<'p> {
    binaries: SmallVec<[Bits<'p>; 8]>,
    bytes: usize,
    /// There is more than one call takes.
    has_more: bool,
}

impl<'p> Parts<'p> {
    /// `None` where the list is none of binaries, or too long for a message of a socket that is no stream.
    fn of(list: Term<'p>, is_stream: bool) -> Option<Parts<'p>> {
        let mut parts = Parts {
            binaries: SmallVec::new(),
            bytes: 0,
            has_more: false,
        };
        let mut rest = list;
        while let View::Cons(cell) = rest.view() {
            let bits = cell.head().as_binary();
            let bytes = bits.as_ref().map_or(0, |bits| bits.bit_len() / 8);
            if parts.binaries.len() == IOV_MAX {
                // Empty ones behind the last are nothing that waits.
                if bits.is_none() || bytes > 0 {
                    parts.has_more = true;
                    return is_stream.then_some(parts);
                }
            } else {
                parts.binaries.push(bits?);
                parts.bytes = parts.bytes.checked_add(bytes)?;
            }
            rest = cell.tail();
        }
        rest.is_nil().then_some(parts)
    }

    fn send(
        &self,
        send: impl FnOnce(&[IoSlice<'_>]) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let bytes: SmallVec<[Cow<'_, [u8]>; 8]> =
            self.binaries.iter().map(|bits| bits.bytes()).collect();
        let slices: SmallVec<[IoSlice<'_>; 8]> =
            bytes.iter().map(|bytes| IoSlice::new(bytes)).collect();
        send(&slices)
    }
}

impl<'p> Asked<'p> {
    fn new(p: &'p Process, reference: Term<'p>, flags: Term<'p>) -> Done<'p, Asked<'p>> {
        if reference.as_ref().is_none() {
            return Err(badarg());
        }
        let flags = int(p, flags)?;
        Ok(Asked {
            p,
            reference,
            flags,
        })
    }

    fn flags(&self) -> SendFlags {
        SendFlags::from_bits_retain(self.flags.cast_unsigned())
    }

    /// The caller may write now, or waits for its turn.
    fn enter(&self, state: &mut State) -> Done<'p, ()> {
        enter(self.p, state, self.reference)
    }

    fn fd<'s>(&self, state: &'s State) -> Done<'p, BorrowedFd<'s>> {
        state.fd().ok_or_else(|| closed(self.p))
    }

    /// A call has taken what it has of `bytes`, behind which there is more, perhaps.
    fn sent(
        &self,
        state: &mut State,
        sent: Result<usize, Errno>,
        bytes: usize,
        has_more: bool,
    ) -> Term<'p> {
        let p = self.p;
        if let Ok(n) = sent {
            state.id.record_out(p.pid(), n);
        }
        match sent {
            Err(Errno::AGAIN | Errno::INTR) => {
                self.wait(state);
                names::select()
            }
            Err(errno) => self.failed(state, errno),
            Ok(n) if n < bytes && state.kind != libc::SOCK_STREAM => {
                state.counts.end_write(n);
                state.give_up_turn(Does::Write, Some(p));
                ok(p, p.unsigned(n as u64))
            }
            Ok(n) if n < bytes => {
                state.counts.write_part(n);
                self.wait(state);
                p.tuple(&[names::select(), p.unsigned(n as u64)])
            }
            Ok(n) if has_more => {
                state.counts.write_part(n);
                state.hold_turn(Does::Write, p, names::iov());
                p.tuple(&[names::iov(), p.unsigned(n as u64)])
            }
            Ok(n) => {
                state.counts.end_write(n);
                state.give_up_turn(Does::Write, Some(p));
                am::ok.term()
            }
        }
    }

    fn wait(&self, state: &mut State) {
        state.wait(Does::Write, self.p, self.reference);
        state.count(Count::WriteWaits, 1);
    }

    fn failed(&self, state: &mut State, errno: Errno) -> Term<'p> {
        let reason = atom(errno_name(errno.raw_os_error()));
        state.count(Count::WriteFails, 1);
        // An argument that is wrong says nothing of the socket.
        if errno != Errno::INVAL {
            state.lost = reason.as_atom();
            state.fail_all(Does::Write, Some(self.p), reason);
        }
        error(self.p, reason)
    }

    fn send(&self, state: &mut State, data: Bits<'p>, to: Option<&Address>) -> Done<'p> {
        self.enter(state)?;
        let (fd, bytes) = (self.fd(state)?, data.bytes());
        let sent = match to {
            None => rustix::net::send(fd, &bytes, self.flags()),
            Some(to) => socket::send_to(fd, &bytes, self.flags(), to),
        };
        Ok(self.sent(state, sent, bytes.len(), false))
    }

    fn send_vector(&self, state: &mut State, list: Term<'p>) -> Done<'p> {
        self.enter(state)?;
        let parts = Parts::of(list, state.kind == libc::SOCK_STREAM);
        let parts = parts.ok_or_else(|| wrong(self.p, names::iov()))?;
        let fd = self.fd(state)?;
        let sent = parts.send(|slices| rustix::io::writev(fd, slices));
        Ok(self.sent(state, sent, parts.bytes, parts.has_more))
    }

    /// The address and the control messages of a message, as the kernel has them.
    fn heads(&self, state: &State, message: Term<'p>) -> Done<'p, (Option<Address>, Vec<u8>)> {
        let p = self.p;
        let to = get(message, "addr").map(address::decode);
        let to = match to {
            None => None,
            Some(Some(to)) => Some(to),
            Some(None) => return Err(wrong(p, names::addr())),
        };
        let control = match get(message, "ctrl") {
            None => Vec::new(),
            Some(headers) => control::decode(headers, state.settings.send_control)
                .ok_or_else(|| wrong(p, names::ctrl()))?,
        };
        Ok((to, control))
    }

    fn send_message(&self, state: &mut State, message: Term<'p>, list: Term<'p>) -> Done<'p> {
        self.enter(state)?;
        let parts = Parts::of(list, state.kind == libc::SOCK_STREAM);
        let (to, control) = self.heads(state, message)?;
        let parts = parts.ok_or_else(|| wrong(self.p, names::iov()))?;
        let fd = self.fd(state)?;
        let sent =
            parts.send(|slices| messages::send(fd, slices, to.as_ref(), &control, self.flags));
        Ok(self.sent(state, sent, parts.bytes, parts.has_more))
    }

    fn send_messages(&self, state: &mut State, list: Term<'p>) -> Done<'p> {
        self.enter(state)?;
        let p = self.p;
        let mut all = Vec::new();
        for message in list.list_iter() {
            let message = message.map_err(|_| badarg())?;
            if all.len() == MESSAGES_MAX {
                break;
            }
            let list = get(message, "iov").ok_or_else(badarg)?;
            let parts = Parts::of(list, false).ok_or_else(|| wrong(p, names::iov()))?;
            all.push((self.heads(state, message)?, parts));
        }
        let mut short = Vec::new();
        for (index, ((to, control), parts)) in all.iter().enumerate() {
            let fd = self.fd(state)?;
            let sent =
                parts.send(|slices| messages::send(fd, slices, to.as_ref(), control, self.flags));
            match sent {
                Ok(n) => {
                    state.counts.end_write(n);
                    state.id.record_out(p.pid(), n);
                    if n < parts.bytes {
                        let pair = [p.unsigned(index as u64), p.unsigned(n as u64)];
                        short.push(p.tuple(&pair));
                    }
                }
                Err(_) if index == 0 => return Ok(self.sent(state, sent, parts.bytes, false)),
                // The next call gets the error.
                Err(_) => break,
            }
        }
        state.give_up_turn(Does::Write, Some(p));
        Ok(match short.is_empty() {
            true => am::ok.term(),
            false => ok(p, p.list(&short)),
        })
    }
}

/// The caller may write now, or waits for its turn.
pub(super) fn enter<'p>(p: &'p Process, state: &mut State, reference: Term<'p>) -> Done<'p, ()> {
    if !state.is_open() {
        return Err(closed(p));
    }
    if state.connector.is_some() {
        return Err(error_invalid(p, names::state()));
    }
    let current = state.turns(Does::Write).current.as_ref();
    if current.is_some_and(|current| current.pid != p.pid()) {
        return Err(match state.queue_up(Does::Write, p, reference) {
            true => End::Answer(names::select()),
            false => raise_invalid(p, names::state()),
        });
    }
    state.count(Count::WriteTries, 1);
    Ok(())
}

pub(super) fn nif_send_4<'p>(
    p: &'p Process,
    [socket, data, flags, reference]: [Term<'p>; 4],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let data = data.as_binary().ok_or_else(crate::bif::badarg)?;
    result(
        Asked::new(p, reference, flags)
            .and_then(|asked| socket.with(|state| asked.send(state, data, None))),
    )
}

pub(super) fn nif_sendto_5<'p>(
    p: &'p Process,
    [socket, data, to, flags, reference]: [Term<'p>; 5],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let data = data.as_binary().ok_or_else(crate::bif::badarg)?;
    result(Asked::new(p, reference, flags).and_then(|asked| {
        let to = address::decode(to).ok_or_else(|| wrong(p, names::sockaddr()))?;
        socket.with(|state| asked.send(state, data, Some(&to)))
    }))
}

pub(super) fn nif_sendmsg_5<'p>(
    p: &'p Process,
    [socket, message, flags, reference, list]: [Term<'p>; 5],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    if message.as_map().is_none() {
        return Err(crate::bif::badarg().into());
    }
    result(
        Asked::new(p, reference, flags)
            .and_then(|asked| socket.with(|state| asked.send_message(state, message, list))),
    )
}

pub(super) fn nif_sendmmsg_4<'p>(
    p: &'p Process,
    [socket, list, flags, reference]: [Term<'p>; 4],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    if !address::is_list(list) {
        return Err(crate::bif::badarg().into());
    }
    result(
        Asked::new(p, reference, flags)
            .and_then(|asked| socket.with(|state| asked.send_messages(state, list))),
    )
}

pub(super) fn nif_sendv_3<'p>(
    p: &'p Process,
    [socket, list, reference]: [Term<'p>; 3],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    result(
        Asked::new(p, reference, Term::small(0))
            .and_then(|asked| socket.with(|state| asked.send_vector(state, list))),
    )
}
