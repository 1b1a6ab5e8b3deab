//! Requests about a socket and about interfaces: `nif_ioctl/2,3,4`.

use rustix::io::Errno;

use super::address;
use super::answers::{Done, badarg, closed, done, failed, result};
use super::names::{self, Row, map, name_of};
use super::state::Socket;
use crate::bif::BifResult;
use crate::heap::Heap;
use crate::otp_nifs::{error, object, ok};
use crate::process::Process;
use crate::sys::socket::messages::{self, REQUEST_BYTES};
use crate::term::Term;
use crate::term::atom::atom;

/// What a request takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// The addresses of all interfaces.
    Interfaces,
    /// A number, or a truth, of the socket.
    Number,
    Truth,
    /// The name of an interface, by its number.
    Name,
    /// Of an interface, by its name.
    Index,
    Flags,
    Address,
    Hardware,
    Map,
}

/// A request.
struct Request {
    name: &'static str,
    code: u64,
    about: About,
    /// It changes what it is about.
    sets: bool,
}

macro_rules! requests {
    ($($name:literal = $code:expr, $about:ident, $sets:literal;)*) => {
        const REQUESTS: &[Request] = &[$(Request {
            name: $name,
            code: $code as u64,
            about: About::$about,
            sets: $sets,
        },)*];
    };
}

requests! {
    "gifconf" = libc::SIOCGIFCONF, Interfaces, false;
    "nread" = libc::FIONREAD, Number, false;
    "atmark" = SIOCATMARK, Truth, false;
    "gifname" = libc::SIOCGIFNAME, Name, false;
    "gifindex" = libc::SIOCGIFINDEX, Index, false;
    "gifflags" = libc::SIOCGIFFLAGS, Flags, false;
    "gifaddr" = libc::SIOCGIFADDR, Address, false;
    "gifdstaddr" = libc::SIOCGIFDSTADDR, Address, false;
    "gifbrdaddr" = libc::SIOCGIFBRDADDR, Address, false;
    "gifnetmask" = libc::SIOCGIFNETMASK, Address, false;
    "gifmtu" = libc::SIOCGIFMTU, Index, false;
    "gifhwaddr" = libc::SIOCGIFHWADDR, Hardware, false;
    "gifmap" = libc::SIOCGIFMAP, Map, false;
    "giftxqlen" = libc::SIOCGIFTXQLEN, Index, false;
    "sifflags" = libc::SIOCSIFFLAGS, Flags, true;
    "sifaddr" = libc::SIOCSIFADDR, Address, true;
    "sifdstaddr" = libc::SIOCSIFDSTADDR, Address, true;
    "sifbrdaddr" = libc::SIOCSIFBRDADDR, Address, true;
    "sifmtu" = libc::SIOCSIFMTU, Index, true;
    "siftxqlen" = libc::SIOCSIFTXQLEN, Index, true;
}

/// `SIOCATMARK`, which the C library's headers have and Rust's do not.
const SIOCATMARK: u32 = 0x8905;

/// Flags of interfaces, in the order in which answers list them; 0 for those that other systems have.
pub(crate) const FLAGS: &[Row] = &[
    ("up", libc::IFF_UP),
    ("broadcast", libc::IFF_BROADCAST),
    ("debug", libc::IFF_DEBUG),
    ("loopback", libc::IFF_LOOPBACK),
    ("pointopoint", libc::IFF_POINTOPOINT),
    ("notrailers", libc::IFF_NOTRAILERS),
    ("knowsepoch", 0),
    ("running", libc::IFF_RUNNING),
    ("noarp", libc::IFF_NOARP),
    ("promisc", libc::IFF_PROMISC),
    ("allmulti", libc::IFF_ALLMULTI),
    ("master", libc::IFF_MASTER),
    ("oactive", 0),
    ("slave", libc::IFF_SLAVE),
    ("simplex", 0),
    ("multicast", libc::IFF_MULTICAST),
    ("link0", 0),
    ("link1", 0),
    ("link2", 0),
    ("portsel", libc::IFF_PORTSEL),
    ("automedia", libc::IFF_AUTOMEDIA),
    ("dynamic", libc::IFF_DYNAMIC),
    ("cantconfig", 0),
    ("lower_up", libc::IFF_LOWER_UP),
    ("ppromisc", 0),
    ("dormant", libc::IFF_DORMANT),
    ("monitor", 0),
    ("echo", libc::IFF_ECHO),
    ("staticarp", 0),
    ("dying", 0),
    ("renaming", 0),
    ("nogroup", 0),
    ("dhcprunning", 0),
    ("private", 0),
];

/// Kinds of hardware whose addresses are named by them.
const HARDWARE: &[Row] = &[
    ("netrom", 0),
    ("ether", 1),
    ("ieee802", 6),
    ("dlci", 15),
    ("ieee1394", 24),
    ("rawip", 519),
    ("frelay", 770),
    ("loopback", 772),
    ("none", 0xfffe),
];

/// Where the value of a request is: behind the name of the interface.
const VALUE: usize = 16;

/// `[{Name, Number}]` of all requests.
pub(super) fn requests(p: &Heap) -> Term<'_> {
    let pairs = REQUESTS
        .iter()
        .map(|it| p.tuple(&[atom(it.name), p.unsigned(it.code)]));
    p.list(&pairs.collect::<Vec<_>>())
}

/// `[{Name, Number}]` of rows.
pub(super) fn pairs<'p>(p: &'p Heap, rows: &[Row]) -> Term<'p> {
    let pairs = rows
        .iter()
        .map(|(name, number)| p.tuple(&[atom(name), p.integer((*number).into())]));
    p.list(&pairs.collect::<Vec<_>>())
}

/// The names of flags that are set, with a number for those that have none.
pub(crate) fn flag_terms(p: &Heap, flags: i32) -> Vec<Term<'_>> {
    let (mut rest, mut all) = (flags, Vec::new());
    for (name, flag) in FLAGS {
        if *flag != 0 && rest & flag == *flag {
            rest &= !flag;
            all.push(atom(name));
        }
    }
    if rest != 0 {
        all.push(p.integer(rest.into()));
    }
    all
}

fn number(bytes: &[u8]) -> i32 {
    i32::from_ne_bytes(bytes[..4].try_into().expect("four bytes"))
}

fn short(bytes: &[u8]) -> i32 {
    i16::from_ne_bytes([bytes[0], bytes[1]]).into()
}

fn long(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes"))
}

fn text<'p>(p: &'p Heap, bytes: &[u8]) -> Term<'p> {
    let end = bytes.iter().position(|byte| *byte == 0);
    p.byte_list(&bytes[..end.unwrap_or(bytes.len())])
}

fn device_map<'p>(p: &'p Heap, value: &[u8]) -> Term<'p> {
    let port = u16::from_ne_bytes([value[16], value[17]]);
    let byte = |n: u8| Term::small(n.into());
    let pairs = [
        ("mem_start", p.unsigned(long(value))),
        ("mem_end", p.unsigned(long(&value[8..]))),
        ("base_addr", Term::small(port.into())),
        ("irq", byte(value[18])),
        ("dma", byte(value[19])),
        ("port", byte(value[20])),
    ];
    map(p, &pairs)
}

impl About {
    fn term<'p>(self, p: &'p Heap, request: &[u8; REQUEST_BYTES]) -> Term<'p> {
        let value = &request[VALUE..];
        match self {
            About::Interfaces => address::encode(p, &value[..16]),
            About::Number => p.integer(number(request).into()),
            About::Truth => Term::bool(number(request) != 0),
            About::Name => text(p, &request[..VALUE]),
            About::Index => p.integer(number(value).into()),
            About::Flags => p.list(&flag_terms(p, short(value))),
            About::Address => address::encode(p, &value[..16]),
            About::Hardware => {
                let family = name_of(p, HARDWARE, short(value));
                map(p, &[("family", family), ("addr", p.binary(&value[2..16]))])
            }
            About::Map => device_map(p, value),
        }
    }
}

fn find(code: Term<'_>, fits: impl Fn(&Request) -> bool) -> Option<&'static Request> {
    let code = code.as_u64()?;
    REQUESTS.iter().find(|it| it.code == code && fits(it))
}

fn not_here(p: &Heap) -> Done<'_> {
    Ok(error(p, atom("enotsup")))
}

fn ask(socket: &Socket, code: u64, request: &mut [u8; REQUEST_BYTES]) -> Result<(), Errno> {
    socket.with(|state| {
        let fd = state.fd().ok_or(Errno::BADF)?;
        messages::control(fd, code as libc::Ioctl, request)
    })
}

fn is_open(socket: &Socket) -> bool {
    socket.with(|state| state.is_open())
}

fn interfaces<'p>(p: &'p Process, socket: &Socket) -> Done<'p> {
    let all = socket.with(|state| messages::interfaces(state.fd().ok_or(Errno::BADF)?));
    let all = all.map_err(|errno| failed(p, errno))?;
    let one = |request: &[u8; REQUEST_BYTES]| {
        let name = text(p, &request[..VALUE]);
        map(
            p,
            &[("name", name), ("addr", About::Interfaces.term(p, request))],
        )
    };
    Ok(ok(p, p.list(&all.iter().map(one).collect::<Vec<_>>())))
}

pub(super) fn nif_ioctl_2<'p>(p: &'p Process, [socket, code]: [Term<'p>; 2]) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let of_socket =
        |it: &Request| matches!(it.about, About::Interfaces | About::Number | About::Truth);
    let ask = || {
        if !is_open(socket) {
            return Err(closed(p));
        }
        let Some(row) = find(code, of_socket) else {
            return not_here(p);
        };
        if row.about == About::Interfaces {
            return interfaces(p, socket);
        }
        let mut request = [0; REQUEST_BYTES];
        ask(socket, row.code, &mut request).map_err(|errno| failed(p, errno))?;
        Ok(ok(p, row.about.term(p, &request)))
    };
    result(ask())
}

/// A request about the interface of this name.
fn about_interface(name: Term<'_>) -> Option<[u8; REQUEST_BYTES]> {
    let bytes = names::characters(name)?;
    let mut request = [0; REQUEST_BYTES];
    let n = bytes.len().min(VALUE - 1);
    request[..n].copy_from_slice(&bytes[..n]);
    Some(request)
}

pub(super) fn nif_ioctl_3<'p>(
    p: &'p Process,
    [socket, code, argument]: [Term<'p>; 3],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let of_interface = |it: &Request| {
        !it.sets && !matches!(it.about, About::Interfaces | About::Number | About::Truth)
    };
    let ask = || {
        if !is_open(socket) {
            return Err(closed(p));
        }
        let Some(row) = find(code, of_interface) else {
            return not_here(p);
        };
        let mut request = [0; REQUEST_BYTES];
        match row.about {
            About::Name => {
                let index = names::int(argument).ok_or_else(badarg)?;
                request[VALUE..VALUE + 4].copy_from_slice(&index.to_ne_bytes());
            }
            _ => request = about_interface(argument).ok_or_else(badarg)?,
        }
        ask(socket, row.code, &mut request).map_err(|errno| failed(p, errno))?;
        Ok(ok(p, row.about.term(p, &request)))
    };
    result(ask())
}

/// The flags of an interface with some changed: `#{Flag => boolean()}`.
fn changed_flags(before: i32, changes: Term<'_>) -> Option<i32> {
    let mut flags = before;
    for (flag, is_set) in changes.as_map()?.iter() {
        let flag = names::int(flag)?;
        match is_set.as_bool() == Some(true) {
            true => flags |= flag,
            false => flags &= !flag,
        }
    }
    Some(flags)
}

/// Puts the value to be set into a request.
fn put<'p>(
    p: &'p Process,
    socket: &Socket,
    about: About,
    value: Term<'p>,
    request: &mut [u8; REQUEST_BYTES],
) -> Done<'p, ()> {
    let bytes = match about {
        About::Flags => {
            ask(socket, libc::SIOCGIFFLAGS, request).map_err(|errno| failed(p, errno))?;
            let flags = changed_flags(short(&request[VALUE..]), value).ok_or_else(badarg)?;
            (flags as i16).to_ne_bytes().to_vec()
        }
        About::Index => names::int(value).ok_or_else(badarg)?.to_ne_bytes().to_vec(),
        _ => {
            let address = address::decode(value).ok_or_else(badarg)?;
            address.bytes().to_vec()
        }
    };
    let room = request[VALUE..].get_mut(..bytes.len()).ok_or_else(badarg)?;
    room.copy_from_slice(&bytes);
    Ok(())
}

pub(super) fn nif_ioctl_4<'p>(
    p: &'p Process,
    [socket, code, name, value]: [Term<'p>; 4],
) -> BifResult<'p> {
    let socket = object::<Socket>(socket)?;
    let set = || {
        if !is_open(socket) {
            return Err(closed(p));
        }
        let Some(row) = find(code, |it| it.sets) else {
            return not_here(p);
        };
        let mut request = about_interface(name).ok_or_else(badarg)?;
        put(p, socket, row.about, value, &mut request)?;
        done(p, ask(socket, row.code, &mut request))
    };
    result(set())
}
