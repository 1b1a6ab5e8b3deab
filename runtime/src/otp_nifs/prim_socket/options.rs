//! Options: which there are, and what their values are here and in the kernel.

use rustix::io::Errno;

use super::address::{inet_of, inet_term, inet6_of};
use super::answers::{
    Done, badarg, closed, done, error_invalid, failed, int, number, result, wrong,
};
use super::names::{self, DOMAINS, get, name_of, number_of, type_name};
use super::otp;
use super::state::{Socket, State};
use super::values::{
    bool_bytes, discovery_of, discovery_term, int_bytes, linger_bytes, linger_term, tos_of,
    tos_term,
};
use crate::bif::BifResult;
use crate::heap::Heap;
use crate::otp_nifs::{object, ok};
use crate::process::Process;
use crate::sys::socket;
use crate::term::atom::atom;
use crate::term::{Term, am};

/// The longest name of an interface, with its end.
const DEVICE_BYTES: usize = 16;

/// The longest name of a congestion control.
const CONGESTION_BYTES: usize = 16;

/// What kind of value an option has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// There is no such option here.
    None,
    Bool,
    /// A truth that is only read.
    Int,
    /// A number that is only read.
    IntRead,
    Unsigned,
    Linger,
    Device,
    Congestion,
    Domain,
    Type,
    Protocol,
    Discovery,
    Tos,
    /// An address of an interface.
    Interface,
    /// A group and an interface, for what is only set.
    Membership,
    /// A group of IPv6, with the number of the interface.
    Membership6,
    /// A group and an interface, with the address of a sender.
    Source,
    /// A group, and whose messages to it are taken.
    Filter,
    /// A number of hops, or `default`.
    Hops,
    /// The family that an address is to have.
    Form,
    /// Control messages, which are only read.
    Messages,
}

/// An option.
struct Row {
    name: &'static str,
    number: i32,
    value: Value,
}

/// The options of a level.
struct Level {
    name: &'static str,
    number: i32,
    rows: &'static [Row],
}

macro_rules! levels {
    ($($level:literal = $of:expr => { $($name:literal = $number:expr, $value:ident;)* })*) => {
        static LEVELS: &[Level] = &[$(Level {
            name: $level,
            number: $of,
            rows: &[$(Row { name: $name, number: $number, value: Value::$value },)*],
        },)*];
    };
}

levels! {
    "socket" = libc::SOL_SOCKET => {
        "acceptconn" = libc::SO_ACCEPTCONN, Bool;
        "acceptfilter" = 0, None;
        "bindtodevice" = libc::SO_BINDTODEVICE, Device;
        "broadcast" = libc::SO_BROADCAST, Bool;
        "bsp_state" = 0, None;
        "busy_poll" = 0, None;
        "debug" = libc::SO_DEBUG, Int;
        "domain" = libc::SO_DOMAIN, Domain;
        "dontroute" = libc::SO_DONTROUTE, Bool;
        "error" = 0, None;
        "exclusiveaddruse" = 0, None;
        "keepalive" = libc::SO_KEEPALIVE, Bool;
        "linger" = libc::SO_LINGER, Linger;
        "mark" = 0, None;
        "max_msg_size" = 0, None;
        "maxdg" = 0, None;
        "oobinline" = libc::SO_OOBINLINE, Bool;
        "passcred" = libc::SO_PASSCRED, Bool;
        "peek_off" = libc::SO_PEEK_OFF, Int;
        "peercred" = 0, None;
        "priority" = libc::SO_PRIORITY, Int;
        "protocol" = libc::SO_PROTOCOL, Protocol;
        "rcvbuf" = libc::SO_RCVBUF, Int;
        "rcvbufforce" = 0, None;
        "rcvlowat" = libc::SO_RCVLOWAT, Int;
        "rcvtimeo" = 0, None;
        "reuseaddr" = libc::SO_REUSEADDR, Bool;
        "reuseport" = libc::SO_REUSEPORT, Bool;
        "rxq_ovfl" = 0, None;
        "setfib" = 0, None;
        "sndbuf" = libc::SO_SNDBUF, Int;
        "sndbufforce" = 0, None;
        "sndlowat" = libc::SO_SNDLOWAT, Int;
        "sndtimeo" = 0, None;
        "timestamp" = libc::SO_TIMESTAMP, Bool;
        "timestampns" = libc::SO_TIMESTAMPNS, Bool;
        "type" = libc::SO_TYPE, Type;
    }
    "ip" = libc::SOL_IP => {
        "add_membership" = libc::IP_ADD_MEMBERSHIP, Membership;
        "add_source_membership" = libc::IP_ADD_SOURCE_MEMBERSHIP, Source;
        "block_source" = libc::IP_BLOCK_SOURCE, Source;
        "dontfrag" = 0, None;
        "drop_membership" = libc::IP_DROP_MEMBERSHIP, Membership;
        "drop_source_membership" = libc::IP_DROP_SOURCE_MEMBERSHIP, Source;
        "freebind" = libc::IP_FREEBIND, Bool;
        "hdrincl" = libc::IP_HDRINCL, Bool;
        "minttl" = libc::IP_MINTTL, Int;
        "msfilter" = IP_MSFILTER, Filter;
        "mtu" = libc::IP_MTU, IntRead;
        "mtu_discover" = libc::IP_MTU_DISCOVER, Discovery;
        "multicast_all" = libc::IP_MULTICAST_ALL, Bool;
        "multicast_if" = libc::IP_MULTICAST_IF, Interface;
        "multicast_loop" = libc::IP_MULTICAST_LOOP, Bool;
        "multicast_ttl" = libc::IP_MULTICAST_TTL, Int;
        "nodefrag" = libc::IP_NODEFRAG, Bool;
        "options" = 0, None;
        "pktinfo" = libc::IP_PKTINFO, Bool;
        "pktoptions" = libc::IP_PKTOPTIONS, Messages;
        "recvdstaddr" = 0, None;
        "recverr" = libc::IP_RECVERR, Bool;
        "recvif" = 0, None;
        "recvopts" = libc::IP_RECVOPTS, Bool;
        "recvorigdstaddr" = libc::IP_RECVORIGDSTADDR, Bool;
        "recvtos" = libc::IP_RECVTOS, Bool;
        "recvttl" = libc::IP_RECVTTL, Bool;
        "retopts" = libc::IP_RETOPTS, Bool;
        "router_alert" = libc::IP_ROUTER_ALERT, Int;
        "sendsrcaddr" = 0, None;
        "tos" = libc::IP_TOS, Tos;
        "transparent" = libc::IP_TRANSPARENT, Bool;
        "ttl" = libc::IP_TTL, Int;
        "unblock_source" = libc::IP_UNBLOCK_SOURCE, Source;
    }
    "ipv6" = libc::SOL_IPV6 => {
        "add_membership" = libc::IPV6_ADD_MEMBERSHIP, Membership6;
        "addrform" = libc::IPV6_ADDRFORM, Form;
        "auth_level" = 0, None;
        "authhdr" = libc::IPV6_AUTHHDR, Bool;
        "checksum" = 0, None;
        "drop_membership" = libc::IPV6_DROP_MEMBERSHIP, Membership6;
        "dstopts" = libc::IPV6_DSTOPTS, Bool;
        "esp_network_level" = 0, None;
        "esp_trans_level" = 0, None;
        "faith" = 0, None;
        "flowinfo" = libc::IPV6_FLOWINFO, Bool;
        "hoplimit" = libc::IPV6_HOPLIMIT, Bool;
        "hopopts" = libc::IPV6_HOPOPTS, Bool;
        "ipcomp_level" = 0, None;
        "join_group" = 0, None;
        "leave_group" = 0, None;
        "mtu" = libc::IPV6_MTU, Int;
        "mtu_discover" = libc::IPV6_MTU_DISCOVER, Discovery;
        "multicast_hops" = libc::IPV6_MULTICAST_HOPS, Hops;
        "multicast_if" = libc::IPV6_MULTICAST_IF, Int;
        "multicast_loop" = libc::IPV6_MULTICAST_LOOP, Bool;
        "pktoptions" = 0, None;
        "portrange" = 0, None;
        "recverr" = libc::IPV6_RECVERR, Bool;
        "recvhoplimit" = libc::IPV6_RECVHOPLIMIT, Bool;
        "recvpktinfo" = libc::IPV6_RECVPKTINFO, Bool;
        "recvtclass" = libc::IPV6_RECVTCLASS, Bool;
        "router_alert" = libc::IPV6_ROUTER_ALERT, Int;
        "rthdr" = libc::IPV6_RTHDR, Bool;
        "tclass" = libc::IPV6_TCLASS, Int;
        "unicast_hops" = libc::IPV6_UNICAST_HOPS, Hops;
        "use_min_mtu" = 0, None;
        "v6only" = libc::IPV6_V6ONLY, Bool;
    }
    "tcp" = libc::IPPROTO_TCP => {
        "congestion" = libc::TCP_CONGESTION, Congestion;
        "cork" = libc::TCP_CORK, Bool;
        "info" = 0, None;
        "keepcnt" = libc::TCP_KEEPCNT, Int;
        "keepidle" = libc::TCP_KEEPIDLE, Int;
        "keepintvl" = libc::TCP_KEEPINTVL, Int;
        "maxseg" = libc::TCP_MAXSEG, Int;
        "md5sig" = 0, None;
        "nodelay" = libc::TCP_NODELAY, Bool;
        "noopt" = 0, None;
        "nopush" = 0, None;
        "syncnt" = 0, None;
        "user_timeout" = libc::TCP_USER_TIMEOUT, Unsigned;
    }
    "udp" = libc::IPPROTO_UDP => {
        "cork" = libc::UDP_CORK, Bool;
    }
}

/// `IP_MSFILTER`, which the C library's headers have and Rust's do not.
const IP_MSFILTER: i32 = 41;

/// All options: `[{Level, Number, [{Option, Number} | Option]}]`, where one without a number is not here.
pub(super) fn all(p: &Heap) -> Term<'_> {
    let option = |row: &Row| match row.value {
        Value::None => atom(row.name),
        _ => p.tuple(&[atom(row.name), p.integer(row.number.into())]),
    };
    let level = |level: &Level| {
        let options: Vec<_> = level.rows.iter().map(option).collect();
        let number = p.integer(level.number.into());
        p.tuple(&[atom(level.name), number, p.list(&options)])
    };
    p.list(&LEVELS.iter().map(level).collect::<Vec<_>>())
}

fn row(level: i32, number: i32) -> Option<&'static Row> {
    let level = LEVELS.iter().find(|it| it.number == level)?;
    let mut rows = level.rows.iter();
    rows.find(|row| row.number == number && row.value != Value::None)
}

/// A name, as characters or a binary, that is shorter than `room`.
fn text_bytes(value: Term<'_>, room: usize) -> Option<Vec<u8>> {
    if let Some(bytes) = value.as_binary() {
        let bytes = bytes.bytes();
        let end = bytes.iter().position(|byte| *byte == 0);
        return Some(bytes[..end.unwrap_or(bytes.len()).min(room - 1)].to_vec());
    }
    names::characters(value).filter(|bytes| bytes.len() < room)
}

/// The addresses of a value, by these keys, one behind the other.
fn addresses(value: Term<'_>, keys: &[&str]) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for key in keys {
        all.extend(inet_of(get(value, key)?)?);
    }
    Some(all)
}

fn membership6_bytes(value: Term<'_>) -> Option<Vec<u8>> {
    let group = inet6_of(get(value, "multiaddr")?)?;
    let interface = u32::try_from(get(value, "interface")?.as_small()?).ok()?;
    Some([&group[..], &interface.to_ne_bytes()].concat())
}

fn filter_bytes(value: Term<'_>) -> Option<Vec<u8>> {
    if value.same(atom("null")) {
        return Some(Vec::new());
    }
    let modes: &[names::Row] = &[("exclude", 0), ("include", 1)];
    let mut all = addresses(value, &["multiaddr", "interface"])?;
    all.extend(number_of(modes, get(value, "mode")?)?.to_ne_bytes());
    let sources = get(value, "slist")?
        .list_iter()
        .map(|it| it.ok().and_then(inet_of));
    let sources = sources.collect::<Option<Vec<_>>>()?;
    all.extend((sources.len() as u32).to_ne_bytes());
    all.extend(sources.concat());
    Some(all)
}

impl Value {
    /// The kernel's bytes of a value; `None` where it is none. `Err` where the option cannot be set.
    fn bytes(self, value: Term<'_>) -> Result<Option<Vec<u8>>, ()> {
        let of_int = |n: Option<i32>| n.map(|n| n.to_ne_bytes().to_vec());
        Ok(match self {
            Value::Bool => bool_bytes(value),
            Value::Int => int_bytes(value),
            Value::Unsigned => u32::try_from(value.as_small().unwrap_or(-1))
                .ok()
                .map(|n| n.to_ne_bytes().to_vec()),
            Value::Linger => linger_bytes(value),
            Value::Device => text_bytes(value, DEVICE_BYTES),
            Value::Congestion => text_bytes(value, CONGESTION_BYTES + 1),
            Value::Discovery => of_int(discovery_of(value)),
            Value::Tos => of_int(tos_of(value)),
            Value::Interface => inet_of(value).map(|bytes| bytes.to_vec()),
            Value::Membership => addresses(value, &["multiaddr", "interface"]),
            Value::Membership6 => membership6_bytes(value),
            Value::Source => addresses(value, &["multiaddr", "interface", "sourceaddr"]),
            Value::Filter => filter_bytes(value),
            Value::Hops if value.same(atom("default")) => of_int(Some(-1)),
            Value::Hops => of_int(names::int(value).filter(|n| (0..=255).contains(n))),
            Value::Form => of_int(number_of(DOMAINS, value).or_else(|| names::int(value))),
            Value::None
            | Value::IntRead
            | Value::Domain
            | Value::Type
            | Value::Protocol
            | Value::Messages => return Err(()),
        })
    }

    /// Room for its bytes; `None` where the option cannot be read.
    fn room(self, state: &State) -> Option<usize> {
        match self {
            Value::Linger => Some(8),
            Value::Device => Some(DEVICE_BYTES + 1),
            Value::Congestion => Some(CONGESTION_BYTES + 1),
            Value::Messages => Some(state.settings.receive_control),
            Value::None
            | Value::Membership
            | Value::Membership6
            | Value::Source
            | Value::Filter
            | Value::Form => None,
            _ => Some(4),
        }
    }

    /// The value of the kernel's bytes.
    fn term<'p>(self, p: &'p Heap, state: &State, bytes: &[u8]) -> Term<'p> {
        let number = || {
            let mut all = [0; 4];
            let bytes = &bytes[..bytes.len().min(4)];
            all[..bytes.len()].copy_from_slice(bytes);
            i32::from_ne_bytes(all)
        };
        match self {
            Value::Bool => Term::bool(number() != 0),
            Value::Unsigned => p.unsigned(number().cast_unsigned().into()),
            Value::Linger => linger_term(p, bytes).unwrap_or(am::undefined.term()),
            Value::Device => p.byte_list(bytes),
            Value::Congestion => p.byte_list(bytes.strip_suffix(&[0]).unwrap_or(bytes)),
            Value::Domain => name_of(p, DOMAINS, number()),
            Value::Type => type_name(p, number()),
            Value::Protocol if number() == 0 && state.domain == libc::AF_UNIX => atom("default"),
            Value::Discovery => discovery_term(p, number()),
            Value::Tos => tos_term(p, number()),
            Value::Interface => inet_term(p, bytes),
            Value::Messages => super::control::encode(p, bytes),
            _ => p.integer(number().into()),
        }
    }
}

/// Sets an option. One of the types of service changes the priority in the kernel, which stays here as it was.
fn set(state: &State, level: i32, option: i32, bytes: &[u8]) -> Result<(), Errno> {
    let fd = state.fd().ok_or(Errno::BADF)?;
    if (level, option) != (libc::SOL_IP, libc::IP_TOS) {
        return socket::set_option(fd, level, option, bytes);
    }
    let mut priority = [0; 4];
    let before = socket::option(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, &mut priority);
    socket::set_option(fd, level, option, bytes)?;
    if before.is_err() {
        return Ok(());
    }
    match socket::set_option(fd, libc::SOL_SOCKET, libc::SO_PRIORITY, &priority) {
        Err(Errno::PERM) => Ok(()),
        other => other,
    }
}

fn read<'p>(p: &'p Heap, state: &State, level: i32, option: i32, value: Value) -> Done<'p> {
    let fd = state.fd().ok_or_else(|| closed(p))?;
    let room = value
        .room(state)
        .ok_or_else(|| wrong(p, names::socket_option()))?;
    let mut bytes = vec![0; room];
    let n = socket::option(fd, level, option, &mut bytes).map_err(|errno| failed(p, errno))?;
    Ok(ok(p, value.term(p, state, &bytes[..n.min(room)])))
}

/// The level and the number of an option. `None` for one of the runtime's own.
fn place<'p>(p: &'p Process, level: Term<'p>, option: Term<'p>) -> Done<'p, (Option<i32>, i32)> {
    let option = int(p, option)?;
    if level.same(atom("otp")) {
        return Ok((None, option));
    }
    Ok((Some(number(p, level, names::level)?), option))
}

fn set_native<'p>(
    p: &'p Process,
    state: &State,
    level: i32,
    option: i32,
    value: Term<'p>,
) -> Done<'p> {
    if !state.is_open() {
        return Err(closed(p));
    }
    let bytes = match value.as_binary() {
        Some(bytes) => Some(bytes.bytes().into_owned()),
        None => int_bytes(value).or_else(|| bool_bytes(value)),
    };
    let bytes = bytes.ok_or_else(|| error_invalid(p, names::value()))?;
    done(p, set(state, level, option, &bytes))
}

fn set_known<'p>(
    p: &'p Process,
    state: &State,
    level: i32,
    option: i32,
    value: Term<'p>,
) -> Done<'p> {
    if !state.is_open() {
        return Err(closed(p));
    }
    let unknown = || wrong(p, names::socket_option());
    let row = row(level, option).ok_or_else(unknown)?;
    let bytes = row.value.bytes(value).map_err(|()| unknown())?;
    let bytes = bytes.ok_or_else(|| wrong(p, names::value()))?;
    done(p, set(state, level, option, &bytes))
}

pub(super) fn nif_setopt_5<'p>(
    p: &'p Process,
    [socket, level, option, value, is_native]: [Term<'p>; 5],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let is_native = names::int(is_native).ok_or_else(crate::bif::badarg)? != 0;
    result(place(p, level, option).and_then(|(level, option)| {
        socket.with(|state| match level {
            None if is_native => Err(badarg()),
            None => otp::set(p, state, option, value),
            Some(level) if is_native => set_native(p, state, level, option, value),
            Some(level) => set_known(p, state, level, option, value),
        })
    }))
}

fn get_known<'p>(p: &'p Process, state: &State, level: i32, option: i32) -> Done<'p> {
    if !state.is_open() {
        return Err(closed(p));
    }
    let row = row(level, option).ok_or_else(|| wrong(p, names::socket_option()))?;
    read(p, state, level, option, row.value)
}

pub(super) fn nif_getopt_3<'p>(
    p: &'p Process,
    [socket, level, option]: [Term<'p>; 3],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    result(place(p, level, option).and_then(|(level, option)| {
        socket.with(|state| match level {
            None => otp::get(p, state, option),
            Some(level) => get_known(p, state, level, option),
        })
    }))
}

/// An option in the kernel's bytes, of which there are so many, or that look like these.
fn get_native<'p>(
    p: &'p Process,
    state: &State,
    level: i32,
    option: i32,
    spec: Term<'p>,
) -> Done<'p> {
    let fd = state.fd().ok_or_else(|| closed(p))?;
    let mut bytes = match (spec.as_binary(), names::int(spec)) {
        (Some(bytes), _) => bytes.bytes().into_owned(),
        (None, Some(room)) if room >= 0 => vec![0; room as usize],
        (None, _) if spec.same(atom("integer")) => {
            return read(p, state, level, option, Value::Int);
        }
        (None, _) if spec.same(atom("boolean")) => {
            return read(p, state, level, option, Value::Bool);
        }
        (None, _) => return Err(wrong(p, names::value())),
    };
    let n = socket::option(fd, level, option, &mut bytes).map_err(|errno| failed(p, errno))?;
    Ok(match names::int(spec) {
        Some(0) => am::ok.term(),
        _ => ok(p, p.binary(&bytes[..n.min(bytes.len())])),
    })
}

pub(super) fn nif_getopt_5<'p>(
    p: &'p Process,
    [socket, level, option, kind, value]: [Term<'p>; 5],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    result(place(p, level, option).and_then(|(level, option)| {
        let level = level.ok_or_else(badarg)?;
        socket.with(|state| match kind.same(atom("native")) {
            true => get_native(p, state, level, option, value),
            false => get_known(p, state, level, option),
        })
    }))
}
