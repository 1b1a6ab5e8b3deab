//! The native functions of `prim_net`: names of hosts, services and interfaces, and addresses of interfaces. Source:
//! `prim_net_nif.c`, OTP 29.
//!
//! What asks the C library for names waits, and so it runs on a dirty scheduler. Not here: what only Windows has.

use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::prim_socket::address;
use super::prim_socket::names::{
    DOMAINS, Row, characters, get, int, map, name_of, number_of, type_name,
};
use super::{atom, error, ok, posix_error};
use crate::bif::{BifResult, Raise, badarg, bifs};
use crate::heap::Heap;
use crate::process::Process;
use crate::sys::chance::outside;
use crate::sys::socket::interfaces::{self, Interface};
use crate::sys::socket::resolve::{self, Hints, NotFound, Place};
use crate::sys::socket::{Address, names, namespace, services};
use crate::term::{Term, am};

bifs! {
    bif prim_net:"nif_info"/0 => nif_info_0, answer;
    bif prim_net:"nif_command"/1 => nif_command_1, again;
    bif prim_net:"nif_gethostname"/0 => nif_gethostname_0, answer;
    dirty_io prim_net:"nif_getnameinfo"/2 => nif_getnameinfo_2, answer;
    dirty_io prim_net:"nif_getaddrinfo"/3 => nif_getaddrinfo_3, answer;
    dirty_io prim_net:"nif_getifaddrs"/1 => nif_getifaddrs_1, answer;
    dirty_io prim_net:"nif_getservbyname"/2 => nif_getservbyname_2, answer;
    dirty_io prim_net:"nif_getservbyport"/2 => nif_getservbyport_2, answer;
    bif prim_net:"nif_if_name2index"/1 => nif_if_name2index_1, answer;
    bif prim_net:"nif_if_index2name"/1 => nif_if_index2name_1, answer;
    bif prim_net:"nif_if_names"/0 => nif_if_names_0, answer;
}

/// What was asked for by `debug`, which only shows here.
static IS_DEBUGGED: AtomicBool = AtomicBool::new(false);

fn nif_info_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let is_debugged = IS_DEBUGGED.load(Ordering::Relaxed);
    let pairs = [("debug", is_debugged.into()), ("netns", false.into())];
    Ok(map(p, &pairs))
}

fn raise_invalid<'p>(p: &'p Heap, what: &str, term: Term<'p>) -> Raise<'p> {
    let what = p.tuple(&[atom(what), term]);
    Raise::Error(p.tuple(&[am::invalid.term(), what]))
}

fn nif_command_1<'p>(p: &'p Process, [command]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = get(command, "command").ok_or_else(badarg)?;
    let data = get(command, "data").ok_or_else(badarg)?;
    if !name.same(atom("debug")) {
        return Err(raise_invalid(p, "command", name).into());
    }
    let is_debugged = data.as_bool();
    let is_debugged = is_debugged.ok_or_else(|| raise_invalid(p, "data", data))?;
    IS_DEBUGGED.store(is_debugged, Ordering::Relaxed);
    Ok(am::ok.term())
}

fn text<'p>(p: &'p Heap, text: &CStr) -> Term<'p> {
    p.byte_list(text.to_bytes())
}

fn nif_gethostname_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    outside::take(|| "the name of the host".to_owned());
    let name = rustix::system::uname();
    Ok(ok(p, text(p, name.nodename())))
}

/// Names of the C library's errors.
const ERRORS: &[Row] = &[
    ("eagain", libc::EAI_AGAIN),
    ("ebadflags", libc::EAI_BADFLAGS),
    ("efail", libc::EAI_FAIL),
    ("efamily", libc::EAI_FAMILY),
    ("emem", libc::EAI_MEMORY),
    ("enodata", libc::EAI_NODATA),
    ("enoname", libc::EAI_NONAME),
    ("eoverflow", libc::EAI_OVERFLOW),
    ("eservice", libc::EAI_SERVICE),
    ("esocktype", libc::EAI_SOCKTYPE),
    ("esystem", libc::EAI_SYSTEM),
    ("eaddrfamily", ADDRESS_FAMILY),
];

/// `EAI_ADDRFAMILY`, which the C library's headers have and Rust's do not.
const ADDRESS_FAMILY: i32 = -9;

fn unknown(p: &Heap, NotFound(code): NotFound) -> Term<'_> {
    let row = ERRORS.iter().find(|(_, other)| *other == code);
    error(p, atom(row.map_or("einval", |(name, _)| name)))
}

/// Flags of a look-up by address.
const FLAGS: &[Row] = &[
    ("namereqd", libc::NI_NAMEREQD),
    ("dgram", libc::NI_DGRAM),
    ("nofqdn", libc::NI_NOFQDN),
    ("numerichost", libc::NI_NUMERICHOST),
    ("numericserv", libc::NI_NUMERICSERV),
    ("idn", libc::NI_IDN),
];

fn flags(list: Term<'_>) -> Result<i32, Raise<'static>> {
    if list.same(am::undefined.term()) {
        return Ok(0);
    }
    list.list_iter().try_fold(0, |all, flag| {
        let flag = flag.ok().and_then(|flag| number_of(FLAGS, flag));
        Ok(all | flag.ok_or_else(badarg)?)
    })
}

fn nif_getnameinfo_2<'p>(p: &'p Process, [address, list]: [Term<'p>; 2]) -> BifResult<'p> {
    let Some(address) = address::decode(address) else {
        return Ok(error(p, atom("einval")));
    };
    let flags = flags(list)?;
    outside::take(|| "names of hosts".to_owned());
    Ok(match resolve::names(&address, flags) {
        Ok((host, service)) => {
            let names = [host, service].map(|name| p.byte_list(&name));
            ok(p, map(p, &[("host", names[0]), ("service", names[1])]))
        }
        Err(why) => unknown(p, why),
    })
}

/// A list of characters as the C library takes it.
fn c_text(list: Term<'_>) -> Option<CString> {
    CString::new(characters(list)?).ok()
}

/// The text of a term as a C string; `None` for `undefined`.
fn some_text(term: Term<'_>) -> Result<Option<CString>, Raise<'static>> {
    match term.same(am::undefined.term()) {
        true => Ok(None),
        false => c_text(term).map(Some).ok_or_else(badarg),
    }
}

/// What is asked for where nothing is said: the C library's own.
const HINTS: Hints = Hints {
    flags: libc::AI_V4MAPPED | libc::AI_ADDRCONFIG,
    family: 0,
    kind: 0,
    protocol: 0,
};

fn place<'p>(p: &'p Heap, found: &Place) -> Term<'p> {
    let kind = match found.kind {
        0 => am::any.term(),
        kind => type_name(p, kind),
    };
    let pairs = [
        ("family", name_of(p, DOMAINS, found.family)),
        ("socktype", kind),
        ("protocol", p.integer(found.protocol.into())),
        ("addr", address::encode_some(p, found.address.as_ref())),
    ];
    map(p, &pairs)
}

fn nif_getaddrinfo_3<'p>(p: &'p Process, [host, service, _hints]: [Term<'p>; 3]) -> BifResult<'p> {
    let (host, service) = (some_text(host)?, some_text(service)?);
    if host.is_none() && service.is_none() {
        return Err(badarg().into());
    }
    outside::take(|| "names of hosts".to_owned());
    let [host, service] = [&host, &service].map(|text| text.as_deref().map(CStr::to_bytes));
    Ok(match resolve::places(host, service, HINTS) {
        Ok(all) => {
            let all: Vec<_> = all.iter().map(|one| place(p, one)).collect();
            ok(p, p.list(&all))
        }
        Err(why) => unknown(p, why),
    })
}

/// Flags of interfaces that answers have, in this order.
const INTERFACE_FLAGS: &[Row] = &[
    ("up", libc::IFF_UP),
    ("broadcast", libc::IFF_BROADCAST),
    ("debug", libc::IFF_DEBUG),
    ("loopback", libc::IFF_LOOPBACK),
    ("pointopoint", libc::IFF_POINTOPOINT),
    ("notrailers", libc::IFF_NOTRAILERS),
    ("running", libc::IFF_RUNNING),
    ("noarp", libc::IFF_NOARP),
    ("promisc", libc::IFF_PROMISC),
    ("master", libc::IFF_MASTER),
    ("slave", libc::IFF_SLAVE),
    ("multicast", libc::IFF_MULTICAST),
    ("portsel", libc::IFF_PORTSEL),
    ("automedia", libc::IFF_AUTOMEDIA),
    ("dynamic", libc::IFF_DYNAMIC),
];

fn interface<'p>(p: &'p Heap, of: &Interface) -> Term<'p> {
    let is = |flag: i32| of.flags & flag.cast_unsigned() != 0;
    let flags = INTERFACE_FLAGS.iter().filter(|(_, flag)| is(*flag));
    let flags: Vec<_> = flags.map(|(name, _)| atom(name)).collect();
    let mut pairs = vec![("name", p.byte_list(&of.name)), ("flags", p.list(&flags))];
    let other = match () {
        () if is(libc::IFF_POINTOPOINT) => Some("dstaddr"),
        () if is(libc::IFF_BROADCAST) => Some("broadaddr"),
        () => None,
    };
    let mut add = |name: &'static str, address: Option<&Address>| {
        pairs.extend(address.map(|it| (name, address::encode(p, it.bytes()))));
    };
    add("addr", of.address.as_ref());
    add("netmask", of.netmask.as_ref());
    if let Some(other) = other {
        add(other, of.other.as_ref());
    }
    map(p, &pairs)
}

fn nif_getifaddrs_1<'p>(p: &'p Process, [extra]: [Term<'p>; 1]) -> BifResult<'p> {
    if extra.as_map().is_none() {
        return Err(badarg().into());
    }
    outside::take(|| "interfaces".to_owned());
    let path = get(extra, "netns").map(|path| characters(path).ok_or_else(badarg));
    let all = match path.transpose()? {
        None => interfaces::all(),
        Some(path) => namespace::within(&path, interfaces::all),
    };
    Ok(match all {
        Ok(all) => {
            let all: Vec<_> = all.iter().map(|one| interface(p, one)).collect();
            ok(p, p.list(&all))
        }
        Err(errno) => posix_error(p, errno.raw_os_error()),
    })
}

/// Protocols that the list of services has.
const PROTOCOLS: &[&CStr] = &[c"tcp", c"udp", c"sctp", c"dccp"];

/// What `find` finds for a protocol, or for the first one that has something where it is `any`.
fn for_protocol<T>(protocol: Term<'_>, find: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    let protocol = c_text(protocol)?;
    if protocol.as_c_str() != c"any" {
        return find(protocol.to_bytes());
    }
    PROTOCOLS
        .iter()
        .find_map(|protocol| find(protocol.to_bytes()))
}

fn nif_getservbyname_2<'p>(p: &'p Process, [name, of]: [Term<'p>; 2]) -> BifResult<'p> {
    let port =
        c_text(name).and_then(|name| for_protocol(of, |of| services::port_of(name.to_bytes(), of)));
    Ok(match port {
        Some(port) => ok(p, Term::small(port.into())),
        None => error(p, atom("einval")),
    })
}

fn nif_getservbyport_2<'p>(p: &'p Process, [port, of]: [Term<'p>; 2]) -> BifResult<'p> {
    let name = int(port).and_then(|port| for_protocol(of, |of| services::name_of(port as u16, of)));
    Ok(match name {
        Some(name) => ok(p, p.byte_list(&name)),
        None => error(p, atom("einval")),
    })
}

fn nif_if_name2index_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let name = c_text(name).filter(|name| name.count_bytes() <= libc::IF_NAMESIZE);
    let index = match &name {
        Some(name) => names::interface_index(name),
        None => Err(Errno::INVAL),
    };
    Ok(match index {
        Ok(index) => ok(p, p.unsigned(index.into())),
        Err(errno) => posix_error(p, errno.raw_os_error()),
    })
}

fn nif_if_index2name_1<'p>(p: &'p Process, [index]: [Term<'p>; 1]) -> BifResult<'p> {
    let index = index.as_u64().and_then(|index| u32::try_from(index).ok());
    Ok(match names::interface_name(index.ok_or_else(badarg)?) {
        Some(name) => ok(p, text(p, &name)),
        None => error(p, atom("enxio")),
    })
}

fn nif_if_names_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(match names::interfaces() {
        Ok(all) => {
            let pair = |(index, name): &(u32, CString)| {
                p.tuple(&[p.unsigned((*index).into()), text(p, name)])
            };
            ok(p, p.list(&all.iter().map(pair).collect::<Vec<_>>()))
        }
        Err(errno) => posix_error(p, errno.raw_os_error()),
    })
}
