//! Sending files: `nif_sendfile/1,4,5`.
//!
//! A file that is not sent at once stays with the socket, under a descriptor of its own, until its end was sent.

use std::os::fd::AsFd;

use rustix::io::Errno;

use super::answers::{Done, badarg, closed, error_invalid, number, raise_invalid, result, size};
use super::names;
use super::send::enter;
use super::state::{Does, File, Socket, State};
use crate::bif::BifResult;
use crate::otp_nifs::prim_file;
use crate::otp_nifs::{error, object, ok};
use crate::process::Process;
use crate::sys::errno::errno_name;
use crate::term::atom::atom;
use crate::term::{Term, am};

/// Bytes that one call of the system is asked to send, so that others have the socket meanwhile.
const PART: usize = 0x3fff_ffff;

/// What a call asks for.
#[derive(Clone, Copy)]
struct Asked<'p> {
    p: &'p Process,
    reference: Term<'p>,
    offset: u64,
    /// 0 for all that there is.
    count: usize,
}

/// How far a file was sent.
enum Sent {
    All(u64),
    /// The socket takes no more for now.
    Part(u64),
}

/// Sends the file of `state` from `offset` on.
fn send(state: &mut State, mut offset: u64, count: usize) -> Result<Sent, Errno> {
    let (mut left, mut sent) = (count, 0);
    loop {
        let part = if count == 0 { PART } else { left.min(PART) };
        let fd = state.fd().ok_or(Errno::BADF)?;
        let file = state.file.as_ref().ok_or(Errno::BADF)?.0.as_fd();
        let taken = rustix::fs::sendfile(fd, file, Some(&mut offset), part);
        let n = *taken.as_ref().unwrap_or(&0) as u64;
        sent += n;
        let counts = state.counts.files();
        counts.calls += 1;
        if n > 0 {
            counts.parts += 1;
            counts.bytes += n;
            counts.parts_most = counts.parts_most.max(sent);
            counts.so_far += n;
            counts.most = counts.most.max(counts.so_far);
        }
        match taken {
            Ok(0) => return Ok(Sent::All(sent)),
            Ok(n) if count > 0 => {
                left -= n;
                if left == 0 {
                    return Ok(Sent::All(sent));
                }
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Sent::Part(sent)),
            Err(errno) => return Err(errno),
        }
    }
}

impl<'p> Asked<'p> {
    fn new(p: &'p Process, [reference, offset, count]: [Term<'p>; 3]) -> Done<'p, Asked<'p>> {
        if reference.as_ref().is_none() {
            return Err(badarg());
        }
        let offset = number(p, offset, |offset| offset.as_i64().map(i64::cast_unsigned))?;
        let count = size(p, count)?;
        Ok(Asked {
            p,
            reference,
            offset,
            count,
        })
    }

    fn fail(&self, state: &mut State, reason: Term<'p>) -> Term<'p> {
        state.counts.files().fails += 1;
        state.file = None;
        state.fail_all(Does::Write, Some(self.p), reason);
        error(self.p, reason)
    }

    fn send_rest(&self, state: &mut State) -> Term<'p> {
        let p = self.p;
        let sent = send(state, self.offset, self.count);
        if let Ok(Sent::All(n) | Sent::Part(n)) = sent {
            state.id.record_out(p.pid(), n as usize);
        }
        match sent {
            Ok(Sent::All(n)) => {
                state.file = None;
                state.give_up_turn(Does::Write, Some(p));
                ok(p, p.unsigned(n))
            }
            Ok(Sent::Part(n)) => {
                state.wait(Does::Write, p, self.reference);
                state.counts.files().waits += 1;
                p.tuple(&[names::select(), p.unsigned(n)])
            }
            Err(errno) => self.fail(state, atom(errno_name(errno.raw_os_error()))),
        }
    }

    fn start(&self, state: &mut State, file: Term<'p>) -> Done<'p> {
        enter(self.p, state, self.reference)?;
        if state.file.is_some() {
            return Err(error_invalid(self.p, names::state()));
        }
        match prim_file::duplicate(file) {
            Some(Ok(fd)) => state.file = Some(File(fd)),
            Some(Err(errno)) => {
                let reason = atom(errno_name(errno.raw_os_error()));
                return Ok(self.fail(state, reason));
            }
            None => {
                let reason = names::invalid(self.p, atom("efile"));
                return Ok(self.fail(state, reason));
            }
        }
        let counts = state.counts.files();
        counts.tries += 1;
        counts.so_far = 0;
        Ok(self.send_rest(state))
    }

    fn go_on(&self, state: &mut State) -> Done<'p> {
        if !state.is_open() {
            return Err(closed(self.p));
        }
        if state.connector.is_some() {
            return Err(error_invalid(self.p, names::state()));
        }
        let current = state.turns(Does::Write).current.as_ref();
        let is_mine = current.is_some_and(|current| current.pid == self.p.pid());
        if !is_mine || state.file.is_none() {
            return Err(raise_invalid(self.p, names::state()));
        }
        Ok(self.send_rest(state))
    }
}

pub(super) fn nif_sendfile_5<'p>(
    p: &'p Process,
    [socket, reference, offset, count, file]: [Term<'p>; 5],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    if file.as_ref().is_none() {
        return Err(crate::bif::badarg().into());
    }
    result(
        Asked::new(p, [reference, offset, count])
            .and_then(|asked| socket.with(|state| asked.start(state, file))),
    )
}

pub(super) fn nif_sendfile_4<'p>(
    p: &'p Process,
    [socket, reference, offset, count]: [Term<'p>; 4],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    result(
        Asked::new(p, [reference, offset, count])
            .and_then(|asked| socket.with(|state| asked.go_on(state))),
    )
}

pub(super) fn nif_sendfile_1<'p>(p: &'p Process, [socket]: [Term<'p>; 1]) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let file = socket.with(|state| state.file.take());
    result(match file {
        Some(_) => Ok(am::ok.term()),
        None => Err(error_invalid(p, names::state())),
    })
}
