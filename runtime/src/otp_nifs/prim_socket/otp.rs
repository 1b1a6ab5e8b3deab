//! The options that the runtime has itself (level `otp`).

use super::answers::{Done, closed, error_invalid, raise_invalid, wrong};
use super::names::{self, DOMAINS, name_of};
use super::state::State;
use super::{RECEIVE_BYTES, RECEIVE_CONTROL, SEND_CONTROL};
use crate::heap::Message;
use crate::otp_nifs::ok;
use crate::process::Process;
use crate::term::atom::atom;
use crate::term::{Term, am};
use std::os::fd::AsRawFd;

const DEBUG: i32 = 1001;
const TELLS_WRAPS: i32 = 1002;
const OWNER: i32 = 1003;
const RECEIVE: i32 = 1004;
const RECEIVED_CONTROL: i32 = 1006;
const SENT_CONTROL: i32 = 1007;
const FD: i32 = 1008;
const META: i32 = 1009;
const IS_REGISTERED: i32 = 1010;
const SELECTS_READ: i32 = 1011;
const DOMAIN: i32 = 1999;

/// A size, or `default`.
fn size(value: Term<'_>, default: usize) -> Option<usize> {
    if value.same(atom("default")) {
        return Some(default);
    }
    let size = usize::try_from(value.as_u64()?).ok()?;
    (size > 0 && isize::try_from(size).is_ok()).then_some(size)
}

/// How many times a stream is read at once, and for how many bytes: a size, or both.
fn receives(value: Term<'_>) -> Option<(u32, usize)> {
    if let Some(bytes) = size(value, RECEIVE_BYTES) {
        return Some((0, bytes));
    }
    let [times, bytes] = value.as_tuple()?.elements().try_into().ok()?;
    let times = u32::try_from(times.as_small()?).ok()?;
    Some((times, size(bytes, RECEIVE_BYTES)?)).filter(|_| times > 0)
}

fn unknown<'p>(p: &'p Process, option: i32) -> super::answers::End<'p> {
    raise_invalid(
        p,
        p.tuple(&[atom("otp_socket_option"), p.integer(option.into())]),
    )
}

fn set_owner<'p>(p: &'p Process, state: &mut State, value: Term<'p>) -> Done<'p> {
    if state.owner != Some(p.pid()) {
        return Err(error_invalid(p, atom("not_owner")));
    }
    let pid = value.as_pid().ok_or_else(|| wrong(p, names::value()))?;
    if !state.set_owner(pid, Some(p)) {
        state.close_without_owner(Some(p));
    }
    Ok(am::ok.term())
}

/// Sets an option.
pub(super) fn set<'p>(p: &'p Process, state: &mut State, option: i32, value: Term<'p>) -> Done<'p> {
    if !matches!(option, DEBUG..=OWNER | RECEIVE | RECEIVED_CONTROL | SENT_CONTROL | META..=SELECTS_READ)
    {
        return Err(unknown(p, option));
    }
    if !state.is_open() {
        return Err(closed(p));
    }
    let wrong = || wrong(p, names::value());
    let truth = || value.as_bool().ok_or_else(wrong);
    let settings = &mut state.settings;
    match option {
        OWNER => return set_owner(p, state, value),
        META if state.owner != Some(p.pid()) => return Err(error_invalid(p, atom("not_owner"))),
        META => state.meta = Some(Message::copy_of(value)),
        DEBUG => settings.is_debugged = truth()?,
        TELLS_WRAPS => settings.tells_wraps = truth()?,
        SELECTS_READ => settings.selects_read = truth()?,
        RECEIVE => {
            (settings.receive_times, settings.receive_bytes) = receives(value).ok_or_else(wrong)?;
        }
        RECEIVED_CONTROL => {
            settings.receive_control = size(value, RECEIVE_CONTROL).ok_or_else(wrong)?;
        }
        SENT_CONTROL => settings.send_control = size(value, SEND_CONTROL).ok_or_else(wrong)?,
        // Nobody takes a socket out of the registry again.
        _ if !truth()? => return Err(wrong()),
        _ if settings.is_registered => {}
        _ => {
            settings.is_registered = true;
            state.register("add");
        }
    }
    Ok(am::ok.term())
}

/// An option's value.
pub(super) fn get<'p>(p: &'p Process, state: &State, option: i32) -> Done<'p> {
    if !matches!(option, DEBUG..=RECEIVE | RECEIVED_CONTROL..=SELECTS_READ | DOMAIN) {
        return Err(unknown(p, option));
    }
    let settings = &state.settings;
    if option == IS_REGISTERED {
        return Ok(ok(p, Term::bool(settings.is_registered)));
    }
    let fd = state.fd().ok_or_else(|| closed(p))?;
    let size = |n: usize| p.unsigned(n as u64);
    let value = match option {
        DEBUG => Term::bool(settings.is_debugged),
        TELLS_WRAPS => Term::bool(settings.tells_wraps),
        SELECTS_READ => Term::bool(settings.selects_read),
        OWNER => owner(state),
        RECEIVE if settings.receive_times == 0 => size(settings.receive_bytes),
        RECEIVE => {
            let times = Term::small(settings.receive_times.into());
            p.tuple(&[times, size(settings.receive_bytes)])
        }
        RECEIVED_CONTROL => size(settings.receive_control),
        SENT_CONTROL => size(settings.send_control),
        FD => Term::small(fd.as_raw_fd().into()),
        META => match &state.meta {
            Some(meta) => p.copy_in_all(meta.term()),
            None => am::undefined.term(),
        },
        _ => name_of(p, DOMAINS, state.domain),
    };
    Ok(ok(p, value))
}

/// The owner, or `undefined`.
pub(super) fn owner(state: &State) -> Term<'static> {
    match state.owner {
        Some(owner) => owner.term(),
        None => am::undefined.term(),
    }
}
