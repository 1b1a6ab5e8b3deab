//! What programs can ask of sockets, and what the system supports: `nif_info/0,1`, `nif_supports/0,1`, `nif_command/1`.

use std::sync::atomic::{AtomicBool, Ordering};

use super::answers::{Done, badarg, raise_invalid, result};
use super::names::{DOMAINS, MESSAGE_FLAGS, PROTOCOLS, get, map, name_of, type_name};
use super::state::{Socket, State, bit};
use super::{IOV_MAX, counts, ioctl, options, otp, registry};
use crate::bif::BifResult;
use crate::heap::Heap;
use crate::otp_nifs::object;
use crate::process::Process;
use crate::sys::socket::protocols;
use crate::term::atom::atom;
use crate::term::{Term, am};

/// What was asked for by `debug` and `socket_debug`, which only shows here.
static IS_DEBUGGED: AtomicBool = AtomicBool::new(false);
static ARE_SOCKETS_DEBUGGED: AtomicBool = AtomicBool::new(false);

/// Are new sockets debugged, unless they say otherwise?
pub(super) fn are_sockets_debugged() -> bool {
    ARE_SOCKETS_DEBUGGED.load(Ordering::Relaxed)
}

pub(super) fn nif_info_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let truth = |flag: &AtomicBool| Term::bool(flag.load(Ordering::Relaxed));
    let pairs = [
        ("debug", truth(&IS_DEBUGGED)),
        ("socket_debug", truth(&ARE_SOCKETS_DEBUGGED)),
        ("eei", true.into()),
        ("use_registry", registry::is_used().into()),
        ("iow", false.into()),
        ("counters", counts::totals(p)),
        ("iov_max", Term::small(IOV_MAX as i64)),
        ("io_backend", map(p, &[("name", atom("unix_essio"))])),
    ];
    Ok(map(p, &pairs))
}

fn states(p: &Heap, bits: u32) -> Term<'_> {
    let names = bit::NAMES.iter().filter(|(_, bit)| bits & bit != 0);
    p.list(&names.map(|(name, _)| atom(name)).collect::<Vec<_>>())
}

fn made_of<'p>(p: &'p Heap, state: &State) -> Term<'p> {
    match state.made_of {
        None => am::normal.term(),
        Some((_, false)) => atom("fromfd"),
        Some((fd, true)) => p.tuple(&[atom("fromfd"), p.integer(fd.into())]),
    }
}

fn info<'p>(p: &'p Process, state: &State) -> Term<'p> {
    let numbers = state.numbers_waiting().map(|n| p.unsigned(n as u64));
    let pairs = [
        ("domain", name_of(p, DOMAINS, state.domain)),
        ("type", type_name(p, state.kind)),
        ("protocol", p.integer(state.protocol.into())),
        ("owner", otp::owner(state)),
        ("rstates", states(p, state.read)),
        ("wstates", states(p, state.write)),
        ("ctype", made_of(p, state)),
        ("counters", state.counts.term(p)),
        ("num_readers", numbers[0]),
        ("num_writers", numbers[1]),
        ("num_acceptors", numbers[2]),
    ];
    map(p, &pairs)
}

pub(super) fn nif_info_1<'p>(p: &'p Process, [socket]: [Term<'p>; 1]) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    Ok(socket.with(|state| info(p, state)))
}

pub(super) fn nif_supports_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let what = [
        ("sctp", false),
        ("ipv6", true),
        ("local", true),
        ("netns", true),
        ("sendfile", true),
    ];
    let pairs = what.map(|(name, is_here)| p.tuple(&[atom(name), is_here.into()]));
    Ok(p.list(&pairs))
}

/// `[{[Name], Number}]`: those that have a name here, and those of the system's list.
fn protocols(p: &Heap) -> Term<'_> {
    let pair = |names: &[&str], number: i32| {
        let names: Vec<_> = names.iter().map(|name| atom(name)).collect();
        p.tuple(&[p.list(&names), p.integer(number.into())])
    };
    let mut all: Vec<_> = PROTOCOLS
        .iter()
        .map(|(name, number)| pair(&[name], *number))
        .collect();
    for protocol in protocols::all().iter().rev() {
        let names: Vec<_> = protocol.names.iter().map(String::as_str).collect();
        all.push(pair(&names, protocol.number));
    }
    p.list(&all)
}

pub(super) fn nif_supports_1<'p>(p: &'p Process, [what]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(match what.as_atom().map(|what| what.name()) {
        Some("msg_flags") => ioctl::pairs(p, MESSAGE_FLAGS),
        Some("protocols") => protocols(p),
        Some("ioctl_requests") => ioctl::requests(p),
        Some("ioctl_flags") => ioctl::pairs(p, ioctl::FLAGS),
        Some("options") => options::all(p),
        _ => Term::NIL,
    })
}

fn command<'p>(p: &'p Process, command: Term<'p>) -> Done<'p> {
    let name = get(command, "command").ok_or_else(badarg)?;
    let data = get(command, "data").ok_or_else(badarg)?;
    let set: fn(bool) = match name.as_atom().map(|name| name.name()) {
        Some("debug") => |is| IS_DEBUGGED.store(is, Ordering::Relaxed),
        Some("socket_debug") => |is| ARE_SOCKETS_DEBUGGED.store(is, Ordering::Relaxed),
        Some("use_registry") => registry::set_used,
        _ => return Err(raise_invalid(p, p.tuple(&[atom("command"), name]))),
    };
    let is = data
        .as_bool()
        .ok_or_else(|| raise_invalid(p, p.tuple(&[atom("data"), data])))?;
    set(is);
    Ok(am::ok.term())
}

pub(super) fn nif_command_1<'p>(p: &'p Process, [what]: [Term<'p>; 1]) -> BifResult<'p> {
    result(command(p, what))
}

/// Takes the settings that the module gives when its functions are loaded: whether new sockets register.
pub(crate) fn configure(info: Term<'_>) {
    if let Some(is_used) = get(info, "use_registry").and_then(Term::as_bool) {
        registry::set_used(is_used);
    }
}
