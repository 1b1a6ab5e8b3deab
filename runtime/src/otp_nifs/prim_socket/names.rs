//! The names of families, types, protocols and flags of messages, and the atoms that answers have.

use std::sync::OnceLock;

use crate::heap::Heap;
use crate::term::atom::atom;
use crate::term::{Atom, Term, am};

/// Atoms that answers and messages have: made once.
macro_rules! atoms {
    ($($name:ident = $text:literal,)*) => {$(
        #[doc = concat!("The atom `", $text, "`.")]
        pub(super) fn $name() -> Term<'static> {
            static ATOM: OnceLock<Atom> = OnceLock::new();
            ATOM.get_or_init(|| Atom::new($text)).term()
        }
    )*};
}

atoms! {
    socket_tag = "$socket",
    select = "select",
    select_read = "select_read",
    select_sent = "select_sent",
    abort = "abort",
    closed = "closed",
    cancelled = "cancelled",
    more = "more",
    iov = "iov",
    not_found = "not_found",
    state = "state",
    value = "value",
    socket_option = "socket_option",
    sockaddr = "sockaddr",
    socket = "socket",
    addr = "addr",
    ctrl = "ctrl",
}

/// A name and the number that the kernel has for it.
pub(in crate::otp_nifs) type Row = (&'static str, i32);

/// Families of addresses.
pub(in crate::otp_nifs) const DOMAINS: &[Row] = &[
    ("inet", libc::AF_INET),
    ("inet6", libc::AF_INET6),
    ("local", libc::AF_UNIX),
    ("unspec", libc::AF_UNSPEC),
];

/// Types of sockets.
pub(super) const TYPES: &[Row] = &[
    ("stream", libc::SOCK_STREAM),
    ("dgram", libc::SOCK_DGRAM),
    ("raw", libc::SOCK_RAW),
    ("seqpacket", libc::SOCK_SEQPACKET),
];

/// Types that answers name beside those of [`TYPES`].
const TYPES_ANSWERED: &[Row] = &[("rdm", libc::SOCK_RDM)];

/// Protocols that have these names whatever the system's list says.
pub(super) const PROTOCOLS: &[Row] = &[
    ("mptcp", libc::IPPROTO_MPTCP),
    ("igmp", libc::IPPROTO_IGMP),
    ("sctp", libc::IPPROTO_SCTP),
    ("udp", libc::IPPROTO_UDP),
    ("tcp", libc::IPPROTO_TCP),
    ("ipv6", libc::IPPROTO_IPV6),
    ("ip", libc::IPPROTO_IP),
];

/// Flags of messages, in the order in which answers list them.
pub(super) const MESSAGE_FLAGS: &[Row] = &[
    ("cmsg_cloexec", libc::MSG_CMSG_CLOEXEC),
    ("confirm", libc::MSG_CONFIRM),
    ("ctrunc", libc::MSG_CTRUNC),
    ("dontroute", libc::MSG_DONTROUTE),
    ("eor", libc::MSG_EOR),
    ("errqueue", libc::MSG_ERRQUEUE),
    ("more", libc::MSG_MORE),
    ("nosignal", libc::MSG_NOSIGNAL),
    ("oob", libc::MSG_OOB),
    ("peek", libc::MSG_PEEK),
    ("trunc", libc::MSG_TRUNC),
    // SCTP's, which has the number of `more`.
    ("notification", 0x8000),
];

/// Directions that `shutdown` ends.
pub(super) const DIRECTIONS: &[Row] = &[
    ("read", libc::SHUT_RD),
    ("write", libc::SHUT_WR),
    ("read_write", libc::SHUT_RDWR),
];

/// The number that an atom stands for.
pub(in crate::otp_nifs) fn number_of(rows: &[Row], name: Term<'_>) -> Option<i32> {
    let name = name.as_atom()?.name();
    rows.iter()
        .find(|(text, _)| *text == name)
        .map(|(_, number)| *number)
}

/// The atom that stands for a number, or the number itself.
pub(in crate::otp_nifs) fn name_of<'p>(p: &'p Heap, rows: &[Row], number: i32) -> Term<'p> {
    match rows.iter().find(|(_, other)| *other == number) {
        Some((name, _)) => atom(name),
        None => p.integer(number.into()),
    }
}

/// A type of sockets.
pub(in crate::otp_nifs) fn type_name(p: &Heap, number: i32) -> Term<'_> {
    let in_answers = TYPES_ANSWERED.iter().any(|(_, it)| *it == number);
    name_of(p, if in_answers { TYPES_ANSWERED } else { TYPES }, number)
}

/// A C `int`.
pub(in crate::otp_nifs) fn int(term: Term<'_>) -> Option<i32> {
    i32::try_from(term.as_small()?).ok()
}

/// A level of options and control messages: `socket`, or a protocol's number.
pub(super) fn level(term: Term<'_>) -> Option<i32> {
    match term.same(socket()) {
        true => Some(libc::SOL_SOCKET),
        false => int(term),
    }
}

/// The level of this number as a term.
pub(super) fn level_name(p: &Heap, level: i32) -> Term<'_> {
    match level {
        libc::SOL_SOCKET => socket(),
        _ => p.integer(level.into()),
    }
}

/// The flags of a message that has come, with a number for those that have no name.
pub(super) fn flag_names(p: &Heap, flags: i32) -> Term<'_> {
    let mut rest = flags;
    let mut names = Vec::new();
    for (name, flag) in MESSAGE_FLAGS {
        if rest & flag == *flag {
            rest &= !flag;
            names.push(atom(name));
        }
    }
    if rest != 0 {
        names.push(p.integer(rest.into()));
    }
    p.list(&names)
}

/// The value of `key` in a map; `None` where there is none, or no map.
pub(in crate::otp_nifs) fn get<'p>(map: Term<'p>, key: &str) -> Option<Term<'p>> {
    map.as_map()?.get(atom(key))
}

/// The bytes of a list of characters; `None` where it is none.
pub(in crate::otp_nifs) fn characters(list: Term<'_>) -> Option<Vec<u8>> {
    let bytes = list.list_iter().map(|character| {
        let character = character.ok()?.as_small()?;
        u8::try_from(character).ok()
    });
    bytes.collect()
}

/// `{invalid, What}`: an argument is wrong, and `prim_socket` says which.
pub(super) fn invalid<'p>(p: &'p Heap, what: Term<'p>) -> Term<'p> {
    p.tuple(&[am::invalid.term(), what])
}

/// A map of atoms to terms.
pub(in crate::otp_nifs) fn map<'p>(p: &'p Heap, pairs: &[(&str, Term<'p>)]) -> Term<'p> {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| (atom(key), *value))
        .collect();
    crate::value::map::from_pairs(p, &pairs)
}
