//! Opening, naming, connecting, accepting and closing.

use std::os::fd::AsFd;
use std::sync::Arc;

use beamline_formats::ring::{SocketEnd, SocketWait};
use rustix::io::Errno;

use super::address;
use super::answers::{
    Done, End, badarg, closed, done, error_invalid, failed, int, raise_invalid, result, wrong,
};
use super::counts::Count;
use super::names::{self, DIRECTIONS, DOMAINS, TYPES, get, number_of};
use super::state::{Does, New, Settings, Socket, State, bit};
use super::{RECEIVE_BYTES, RECEIVE_CONTROL, SEND_CONTROL, info, registry};
use crate::bif::{BifResult, Raise, notsup};
use crate::heap::MagicBinary;
use crate::otp_nifs::{error, object, ok};
use crate::process::Process;
use crate::process::order::explore;
use crate::sys::chance::outside;
use crate::sys::errno::errno_name;
use crate::sys::socket::{self, Address, namespace};
use crate::term::atom::atom;
use crate::term::{Term, View, am};

/// The settings of a new socket, as its options have them.
fn settings(options: Term<'_>) -> Settings {
    let truth = |key: &str| get(options, key).and_then(Term::as_bool);
    Settings {
        receive_bytes: RECEIVE_BYTES,
        receive_times: 0,
        receive_control: RECEIVE_CONTROL,
        send_control: SEND_CONTROL,
        is_debugged: truth("debug").unwrap_or_else(info::are_sockets_debugged),
        tells_wraps: false,
        selects_read: false,
        is_registered: truth("use_registry").unwrap_or_else(registry::is_used),
    }
}

/// A number that the kernel tells of a socket.
fn asked(fd: impl AsFd, option: i32) -> Option<i32> {
    let mut value = [0; 4];
    socket::option(fd, libc::SOL_SOCKET, option, &mut value).ok()?;
    Some(i32::from_ne_bytes(value))
}

/// `{ok, Socket}`. A deterministic run names what it opens.
fn opened<'p>(p: &'p Process, new: New) -> Term<'p> {
    let family = DOMAINS.iter().find(|(_, number)| *number == new.domain);
    outside::take(|| match family {
        Some((family, _)) => format!("socket of family {family}"),
        None => format!("socket of family {}", new.domain),
    });
    let magic: Arc<MagicBinary> = Socket::open(new, p.pid(), p);
    ok(p, p.magic_reference(magic))
}

fn open_plain<'p>(p: &'p Process, [domain, kind, protocol, options]: [Term<'p>; 4]) -> Done<'p> {
    let protocol = int(p, protocol)?;
    if options.as_map().is_none() {
        return Err(badarg());
    }
    let domain = number_of(DOMAINS, domain).or_else(|| names::int(domain));
    let domain = domain.ok_or_else(|| wrong(p, atom("domain")))?;
    let kind = number_of(TYPES, kind).or_else(|| names::int(kind));
    let kind = kind.ok_or_else(|| wrong(p, atom("type")))?;
    let open = || socket::open(domain, kind, protocol);
    let path = get(options, "netns").and_then(Term::as_binary);
    let fd = match path {
        None => open(),
        Some(path) => namespace::within(&path.bytes(), open),
    };
    let fd = fd.map_err(|errno| failed(p, errno))?;
    let protocol = match protocol {
        0 => asked(&fd, libc::SO_PROTOCOL).unwrap_or(0),
        protocol => protocol,
    };
    let new = New {
        fd: socket::Socket::own(fd),
        domain,
        kind,
        protocol,
        made_of: None,
        settings: settings(options),
        is_connected: false,
        listener: None,
    };
    Ok(opened(p, new))
}

/// An exploration has no place for what comes from a socket, and says so.
fn refuse(p: &Process) -> Option<Term<'_>> {
    explore::refuse("sockets").then(|| error(p, atom("enotsup")))
}

pub(super) fn nif_open_4<'p>(p: &'p Process, arguments: [Term<'p>; 4]) -> BifResult<'p> {
    match refuse(p) {
        Some(refused) => Ok(refused),
        None => result(open_plain(p, arguments)),
    }
}

fn open_number<'p>(p: &'p Process, number: Term<'p>, options: Term<'p>) -> Done<'p> {
    let number = int(p, number)?;
    if options.as_map().is_none() {
        return Err(badarg());
    }
    let lent = socket::Socket::lent(number);
    let told = |option| lent.as_ref().ok().and_then(|fd| asked(fd, option));
    let named = |key: &str, rows| {
        let value = get(options, key)?;
        number_of(rows, value).or_else(|| names::int(value))
    };
    let domain = told(libc::SO_DOMAIN).or_else(|| named("domain", DOMAINS));
    let domain = domain.ok_or_else(|| wrong(p, atom("domain")))?;
    let kind = told(libc::SO_TYPE).or_else(|| named("type", TYPES));
    let kind = kind.ok_or_else(|| wrong(p, atom("type")))?;
    let protocol = told(libc::SO_PROTOCOL).or_else(|| named("protocol", &[]));
    let lent = lent.map_err(|errno| failed(p, errno))?;
    let is_copied = get(options, "dup").and_then(Term::as_bool).unwrap_or(true);
    let fd = match is_copied {
        false => lent,
        true => rustix::io::fcntl_dupfd_cloexec(&lent, 0)
            .map(socket::Socket::own)
            .map_err(|errno| failed(p, errno))?,
    };
    rustix::io::ioctl_fionbio(&fd, true).map_err(|errno| failed(p, errno))?;
    let is_connected = socket::peer(&fd).is_ok();
    let new = New {
        fd,
        domain,
        kind,
        protocol: protocol.unwrap_or(0),
        made_of: Some((number, is_copied)),
        settings: settings(options),
        is_connected,
        listener: None,
    };
    Ok(opened(p, new))
}

pub(super) fn nif_open_2<'p>(p: &'p Process, [number, options]: [Term<'p>; 2]) -> BifResult<'p> {
    match refuse(p) {
        Some(refused) => Ok(refused),
        None => result(open_number(p, number, options)),
    }
}

pub(super) fn nif_bind_2<'p>(p: &'p Process, [socket, to]: [Term<'p>; 2]) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let bind = |state: &mut State| {
        let to = address::decode(to).ok_or_else(|| wrong(p, names::sockaddr()))?;
        let fd = state.fd().ok_or_else(|| closed(p))?;
        socket::bind(fd, &to).map_err(|errno| failed(p, errno))?;
        state
            .id
            .record_address(SocketEnd::Own, || socket::name(fd).ok());
        state.read |= bit::BOUND;
        Ok(am::ok.term())
    };
    result(socket.with(bind))
}

pub(super) fn nif_listen_2<'p>(p: &'p Process, [socket, backlog]: [Term<'p>; 2]) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let listen = |state: &mut State| {
        let backlog = int(p, backlog)?;
        let fd = state.fd().ok_or_else(|| closed(p))?;
        rustix::net::listen(fd, backlog).map_err(|errno| failed(p, errno))?;
        state
            .id
            .record_address(SocketEnd::Own, || socket::name(fd).ok());
        state.read |= bit::LISTENING;
        Ok(am::ok.term())
    };
    result(socket.with(listen))
}

/// Goes on with what was begun: it has ended, well or not.
fn end_connecting<'p>(p: &'p Process, state: &mut State) -> Done<'p> {
    state.end_connecting(Some(p));
    let fd = state.fd().ok_or_else(|| closed(p))?;
    socket::take_error(fd).map_err(|errno| connect_failed(p, state, errno))?;
    state.write |= bit::CONNECTED;
    Ok(am::ok.term())
}

/// A connect has failed, and that is recorded.
fn connect_failed<'p>(p: &'p Process, state: &State, errno: Errno) -> End<'p> {
    let outcome = errno_name(errno.raw_os_error());
    state
        .id
        .record_ready(p.pid(), SocketWait::Connection, outcome);
    failed(p, errno)
}

fn connect<'p>(p: &'p Process, state: &mut State, to: Option<(Term<'p>, Address)>) -> Done<'p> {
    if !state.is_open() {
        return Err(closed(p));
    }
    if state.turns(Does::Write).current.is_some() {
        return Err(error_invalid(p, names::state()));
    }
    if let Some(connector) = &state.connector {
        if connector.pid == p.pid() {
            return end_connecting(p, state);
        }
        return Err(match to {
            Some(_) => End::Answer(error(p, atom("already"))),
            None => raise_invalid(p, names::state()),
        });
    }
    let (reference, to) = to.ok_or_else(|| raise_invalid(p, names::state()))?;
    let fd = state.fd().ok_or_else(|| closed(p))?;
    state.id.record_connect(p.pid(), &to);
    match socket::connect(fd, &to) {
        Ok(()) => {
            state.id.record_ready(p.pid(), SocketWait::Connection, "");
            state.write |= bit::CONNECTED;
            Ok(am::ok.term())
        }
        Err(Errno::INPROGRESS) => {
            state.wait_to_connect(p, reference);
            Ok(names::select())
        }
        Err(errno) => Err(connect_failed(p, state, errno)),
    }
}

pub(super) fn nif_connect_3<'p>(
    p: &'p Process,
    [socket, reference, to]: [Term<'p>; 3],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    if reference.as_ref().is_none() {
        return Err(crate::bif::badarg().into());
    }
    if matches!(to.view(), View::Nil | View::Cons(_)) {
        // Several addresses are SCTP's.
        return Err(notsup().into());
    }
    let connect = |state: &mut State| {
        let to = address::decode(to).ok_or_else(|| wrong(p, names::sockaddr()))?;
        connect(p, state, Some((reference, to)))
    };
    result(socket.with(connect))
}

pub(super) fn nif_connect_1<'p>(p: &'p Process, [socket]: [Term<'p>; 1]) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    result(socket.with(|state| connect(p, state, None)))
}

/// What a connection that was accepted is made of.
fn accepted(state: &State, fd: std::os::fd::OwnedFd) -> New {
    New {
        fd: socket::Socket::own(fd),
        domain: state.domain,
        kind: state.kind,
        protocol: state.protocol,
        made_of: None,
        settings: Settings {
            selects_read: false,
            ..state.settings
        },
        is_connected: true,
        listener: Some(state.id),
    }
}

fn accept<'p>(p: &'p Process, state: &mut State, reference: Term<'p>) -> Done<'p, New> {
    if !state.is_open() {
        return Err(closed(p));
    }
    if state.turns(Does::Read).current.is_some() {
        return Err(error_invalid(p, names::state()));
    }
    let current = state.turns(Does::Accept).current.as_ref();
    let waits = current.is_some();
    if current.is_some_and(|current| current.pid != p.pid()) {
        return Err(match state.queue_up(Does::Accept, p, reference) {
            true => End::Answer(names::select()),
            false => raise_invalid(p, names::state()),
        });
    }
    state.count(Count::AcceptTries, 1);
    let fd = state.fd().ok_or_else(|| closed(p))?;
    match rustix::net::accept_with(fd, ACCEPTED) {
        Ok(fd) => {
            state.count(Count::Accepted, 1);
            state.give_up_turn(Does::Accept, Some(p));
            Ok(accepted(state, fd))
        }
        Err(Errno::AGAIN) => {
            match waits {
                true => {
                    state.count(Count::AcceptWaits, 1);
                    state.wait_instead(Does::Accept, p, reference);
                }
                false => state.wait(Does::Accept, p, reference),
            }
            state.read |= bit::ACCEPTING;
            Err(End::Answer(names::select()))
        }
        Err(errno) => {
            state.count(Count::AcceptFails, 1);
            let reason = atom(errno_name(errno.raw_os_error()));
            state.fail_all(Does::Accept, Some(p), reason);
            Err(failed(p, errno))
        }
    }
}

/// How a connection is accepted: it does not wait, and programs do not inherit it.
const ACCEPTED: rustix::net::SocketFlags =
    rustix::net::SocketFlags::NONBLOCK.union(rustix::net::SocketFlags::CLOEXEC);

pub(super) fn nif_accept_2<'p>(
    p: &'p Process,
    [socket, reference]: [Term<'p>; 2],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let accepted = socket.with(|state| accept(p, state, reference));
    result(accepted.map(|new| {
        let magic = Socket::open(new, p.pid(), p);
        ok(p, p.magic_reference(magic))
    }))
}

pub(super) fn nif_shutdown_2<'p>(p: &'p Process, [socket, how]: [Term<'p>; 2]) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let Some(direction) = number_of(DIRECTIONS, how) else {
        let what = p.tuple(&[atom("how"), how]);
        return Err(Raise::Error(names::invalid(p, what)).into());
    };
    result(socket.with(|state| {
        let fd = state.fd().ok_or_else(|| closed(p))?;
        done(p, socket::messages::shutdown(fd, direction))
    }))
}

fn address_of<'p>(
    p: &'p Process,
    socket: Term<'p>,
    of: impl FnOnce(std::os::fd::BorrowedFd<'_>) -> Result<Address, Errno>,
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    result(socket.with(|state| {
        let fd = state.fd().ok_or_else(|| closed(p))?;
        let address = of(fd).map_err(|errno| failed(p, errno))?;
        Ok(ok(p, address::encode(p, address.bytes())))
    }))
}

pub(super) fn nif_sockname_1<'p>(p: &'p Process, [socket]: [Term<'p>; 1]) -> BifResult<'p> {
    address_of(p, socket, |fd| socket::name(fd))
}

pub(super) fn nif_peername_1<'p>(p: &'p Process, [socket]: [Term<'p>; 1]) -> BifResult<'p> {
    address_of(p, socket, |fd| socket::peer(fd))
}

pub(super) fn nif_close_1<'p>(p: &'p Process, [socket]: [Term<'p>; 1]) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    result(socket.with(|state| {
        if !state.is_open() {
            return Err(closed(p));
        }
        state.begin_to_close(p);
        Ok(am::ok.term())
    }))
}

/// Closes it for whoever has begun to: that may wait until what was written has been sent.
pub(super) fn nif_finalize_close_1<'p>(p: &'p Process, [socket]: [Term<'p>; 1]) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let finished = socket.with(|state| {
        if state.is_closed() {
            return Err(closed(p));
        }
        if !state.is_closing() || !state.is_closed_by(p.pid()) {
            return Err(raise_invalid(p, names::state()));
        }
        Ok(state.finish_closing(Some(p)))
    });
    result(finished.map(|fd| {
        if let Some(fd) = fd {
            // What is not to wait closes at once, and loses what was not sent.
            let _ = rustix::io::ioctl_fionbio(&fd, false);
        }
        am::ok.term()
    }))
}

/// Ends what the process `p` waits for by `reference`, in its turn or in the queue.
fn cancel<'p>(p: &'p Process, state: &mut State, does: Does, reference: Term<'p>) -> Done<'p> {
    if !state.is_open() {
        return Err(closed(p));
    }
    let not_found = names::not_found();
    Ok(match &state.turns(does).current {
        None => not_found,
        Some(current) if current.pid == p.pid() => {
            if !current.is_for(reference) {
                return Ok(not_found);
            }
            let answer = state.cancelled(p.pid(), does.event());
            state.give_up_turn(does, Some(p));
            answer
        }
        Some(_) => match state.unqueue(does, p.pid(), Some(reference), Some(p)) {
            true => am::ok.term(),
            false => not_found,
        },
    })
}

fn cancel_connect<'p>(p: &'p Process, state: &mut State, reference: Term<'p>) -> Done<'p> {
    if !state.is_open() {
        return Err(closed(p));
    }
    let is_mine = |it: &super::state::Waiting| it.pid == p.pid() && it.is_for(reference);
    if !state.connector.as_ref().is_some_and(is_mine) {
        return Ok(error(p, names::not_found()));
    }
    let answer = state.cancelled(p.pid(), SocketWait::Connection);
    state.end_connecting(Some(p));
    Ok(answer)
}

pub(super) fn nif_cancel_3<'p>(
    p: &'p Process,
    [socket, what, reference]: [Term<'p>; 3],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let name = what.as_atom().map_or("", |what| what.name());
    result(socket.with(|state| {
        let does = match name {
            "connect" => return cancel_connect(p, state, reference),
            "accept" => Does::Accept,
            "recv" | "recvfrom" | "recvmsg" | "recvmmsg" => Does::Read,
            "send" | "sendto" | "sendmsg" | "sendmmsg" | "sendv" | "sendfile" => Does::Write,
            _ if !state.is_open() => return Err(closed(p)),
            _ => return Err(badarg()),
        };
        cancel(p, state, does, reference)
    }))
}
