//! Addresses: maps of `socket:sockaddr()`, and what the kernel has of them.
//!
//! An address that is shorter than its family's, or of a family without a form of its own, is `#{family, addr}`, with
//! the bytes behind the family.

use super::names::{DOMAINS, get, int, map, name_of, number_of};
use crate::heap::Heap;
use crate::sys::socket::Address;
use crate::term::atom::atom;
use crate::term::{Term, View};

/// Bytes before the data of an address: the family.
const FAMILY: usize = 2;

/// Room for a path.
const PATH_BYTES: usize = 108;

/// Bytes of a path that answers have at most.
const PATH_ANSWERED: usize = 255;

const INET_BYTES: usize = 8;
const INET6_BYTES: usize = 28;
const LINK_BYTES: usize = 20;

/// An address of IPv4: a tuple of four bytes, or a name.
pub(super) fn inet_of(term: Term<'_>) -> Option<[u8; 4]> {
    if let Some(name) = term.as_atom() {
        return match name.name() {
            "any" => Some([0; 4]),
            "loopback" => Some([127, 0, 0, 1]),
            "broadcast" => Some([255; 4]),
            _ => None,
        };
    }
    let mut bytes = [0; 4];
    let parts = term
        .as_tuple()
        .filter(|parts| parts.arity() == bytes.len())?;
    for (byte, part) in bytes.iter_mut().zip(parts.elements()) {
        *byte = u8::try_from(part.as_small()?).ok()?;
    }
    Some(bytes)
}

/// An address of IPv6: a tuple of eight 16-bit numbers, or a name.
pub(super) fn inet6_of(term: Term<'_>) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    if let Some(name) = term.as_atom() {
        bytes[15] = u8::from(name.name() == "loopback");
        return matches!(name.name(), "any" | "loopback").then_some(bytes);
    }
    let parts = term.as_tuple().filter(|parts| parts.arity() == 8)?;
    for (pair, part) in bytes.chunks_exact_mut(2).zip(parts.elements()) {
        let part = u16::try_from(part.as_small()?).ok()?;
        pair.copy_from_slice(&part.to_be_bytes());
    }
    Some(bytes)
}

/// An address of IPv4 as a tuple.
pub(super) fn inet_term<'p>(p: &'p Heap, bytes: &[u8]) -> Term<'p> {
    let parts: Vec<_> = bytes
        .iter()
        .map(|byte| Term::small((*byte).into()))
        .collect();
    p.tuple(&parts)
}

/// An address of IPv6 as a tuple.
pub(super) fn inet6_term<'p>(p: &'p Heap, bytes: &[u8]) -> Term<'p> {
    let parts: Vec<_> = bytes
        .chunks_exact(2)
        .map(|pair| Term::small(u16::from_be_bytes([pair[0], pair[1]]).into()))
        .collect();
    p.tuple(&parts)
}

fn with_family(family: i32, rest: &[&[u8]]) -> Option<Address> {
    let mut bytes = (family as u16).to_ne_bytes().to_vec();
    for part in rest {
        bytes.extend_from_slice(part);
    }
    Address::of_bytes(&bytes)
}

fn port_of(address: Term<'_>) -> Option<[u8; 2]> {
    // The number is cut to 16 bits, as C does it.
    Some((int(get(address, "port")?)? as u16).to_be_bytes())
}

fn unsigned(address: Term<'_>, key: &str) -> Option<u32> {
    u32::try_from(get(address, key)?.as_small()?).ok()
}

fn local_of(address: Term<'_>) -> Option<Address> {
    let path = get(address, "path")?.as_binary()?.bytes();
    // A path of the file system ends in a zero byte, for which there has to be room; an abstract name does not.
    let end = usize::from(path.first().is_none_or(|first| *first != 0));
    if path.len() + end > PATH_BYTES {
        return None;
    }
    with_family(libc::AF_UNIX, &[&path])
}

fn native_of(family: i32, address: Term<'_>) -> Option<Address> {
    let bytes = get(address, "addr")?.as_binary()?.bytes();
    with_family(family, &[&bytes])
}

/// The address that a map stands for; `None` where it is none.
pub(in crate::otp_nifs) fn decode(address: Term<'_>) -> Option<Address> {
    let family = get(address, "family")?;
    let Some(domain) = number_of(DOMAINS, family) else {
        return native_of(int(family)?, address);
    };
    match domain {
        libc::AF_INET => {
            let (port, addr) = (port_of(address)?, inet_of(get(address, "addr")?)?);
            with_family(domain, &[&port, &addr, &[0; 8]])
        }
        libc::AF_INET6 => {
            let port = port_of(address)?;
            let flow = unsigned(address, "flowinfo")?.to_ne_bytes();
            let scope = unsigned(address, "scope_id")?.to_ne_bytes();
            let addr = inet6_of(get(address, "addr")?)?;
            with_family(domain, &[&port, &flow, &addr, &scope])
        }
        libc::AF_UNIX => local_of(address),
        family => native_of(family, address),
    }
}

fn number(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn word(bytes: &[u8]) -> i64 {
    let word = bytes[..4].try_into().expect("four bytes");
    i32::from_ne_bytes(word).into()
}

fn local_term<'p>(p: &'p Heap, path: &[u8]) -> Term<'p> {
    if path.len() > PATH_ANSWERED {
        return atom("bad_data");
    }
    let end = path
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(path.len());
    // An abstract name begins with a zero byte, and has all of them.
    let path = if end == 0 { path } else { &path[..end] };
    let pairs = [("family", atom("local")), ("path", p.binary(path))];
    map(p, &pairs)
}

/// Kinds of hardware that have a name.
const HARDWARE: &[super::names::Row] = &[
    ("netrom", 0),
    ("ether", 1),
    ("eether", 2),
    ("ax25", 3),
    ("pronet", 4),
    ("chaos", 5),
    ("ieee802", 6),
    ("arcnet", 7),
    ("appletlk", 8),
    ("dlci", 15),
    ("atm", 19),
    ("metricom", 23),
    ("ieee1394", 24),
    ("eui64", 27),
    ("infiniband", 32),
    ("tunnel", 768),
    ("tunnel6", 769),
    ("loopback", 772),
    ("localtlk", 773),
    ("none", 0xfffe),
    ("void", 0xffff),
];

/// Kinds of packets that have a name.
const PACKETS: &[super::names::Row] = &[
    ("host", 0),
    ("broadcast", 1),
    ("multicast", 2),
    ("otherhost", 3),
    ("outgoing", 4),
    ("loopback", 5),
    ("user", 6),
    ("kernel", 7),
];

fn link_term<'p>(p: &'p Heap, data: &[u8]) -> Term<'p> {
    let hardware = u16::from_ne_bytes([data[6], data[7]]);
    let length = usize::from(data[9]).min(data.len() - 10);
    let pairs = [
        ("family", atom("packet")),
        ("protocol", Term::small(number(data).into())),
        ("ifindex", p.integer(word(&data[2..]))),
        ("hatype", name_of(p, HARDWARE, hardware.into())),
        ("pkttype", name_of(p, PACKETS, data[8].into())),
        ("addr", p.binary(&data[10..10 + length])),
    ];
    map(p, &pairs)
}

/// The map of an address in the kernel's bytes.
pub(in crate::otp_nifs) fn encode<'p>(p: &'p Heap, bytes: &[u8]) -> Term<'p> {
    let Some((family, data)) = bytes.split_at_checked(FAMILY) else {
        return p.binary(bytes);
    };
    let family = i32::from(u16::from_ne_bytes([family[0], family[1]]));
    let port = |data| Term::small(number(data).into());
    match family {
        libc::AF_INET if bytes.len() >= INET_BYTES => {
            let addr = inet_term(p, &data[2..6]);
            map(
                p,
                &[
                    ("family", atom("inet")),
                    ("port", port(data)),
                    ("addr", addr),
                ],
            )
        }
        libc::AF_INET6 if bytes.len() >= INET6_BYTES => {
            let pairs = [
                ("family", atom("inet6")),
                ("port", port(data)),
                ("addr", inet6_term(p, &data[6..22])),
                ("flowinfo", p.integer(word(&data[2..]))),
                ("scope_id", p.integer(word(&data[22..]))),
            ];
            map(p, &pairs)
        }
        libc::AF_UNIX => local_term(p, data),
        libc::AF_PACKET if bytes.len() >= LINK_BYTES => link_term(p, data),
        _ => {
            let family = match family {
                libc::AF_PACKET => atom("packet"),
                _ => name_of(p, DOMAINS, family),
            };
            map(p, &[("family", family), ("addr", p.binary(data))])
        }
    }
}

/// The map of an address, or of one of no family where there is none.
pub(in crate::otp_nifs) fn encode_some<'p>(p: &'p Heap, address: Option<&Address>) -> Term<'p> {
    match address {
        Some(address) => encode(p, address.bytes()),
        None => encode(p, &(libc::AF_UNSPEC as u16).to_ne_bytes()),
    }
}

/// Is it a list of maps, as SCTP takes addresses?
pub(super) fn is_list(term: Term<'_>) -> bool {
    matches!(term.view(), View::Nil | View::Cons(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use crate::term::compare::eq_exact;

    fn inet<'p>(p: &'p Process, port: i64, addr: Term<'p>) -> Term<'p> {
        let family = ("family", atom("inet"));
        map(p, &[family, ("port", p.integer(port)), ("addr", addr)])
    }

    fn local<'p>(p: &'p Process, path: &[u8]) -> Term<'p> {
        map(p, &[("family", atom("local")), ("path", p.binary(path))])
    }

    #[test]
    fn addresses_come_back_as_they_were_given() {
        let p = &Process::new(233);
        let inet6 = [
            ("family", atom("inet6")),
            ("port", Term::small(443)),
            ("addr", inet6_term(p, &[0xfe; 16])),
            ("flowinfo", Term::small(7)),
            ("scope_id", Term::small(3)),
        ];
        let native = [("family", Term::small(38)), ("addr", p.binary(b"abc"))];
        let all = [
            inet(p, 65535, inet_term(p, &[192, 0, 2, 9])),
            map(p, &inet6),
            local(p, b"/tmp/a"),
            local(p, b"\0abstract\0name"),
            local(p, b""),
            map(p, &native),
        ];
        for address in all {
            let bytes = decode(address).expect("it is one");
            let back = encode(p, bytes.bytes());
            let (given, told) = (address.display(), back.display());
            assert!(eq_exact(back, address), "{given} {told}");
        }
    }

    #[test]
    fn names_stand_for_addresses_and_what_is_none_is_refused() {
        let p = &Process::new(233);
        let bytes = |term| decode(term).map(|address| address.bytes()[4..8].to_vec());
        let check = |name, expected: Option<[u8; 4]>| {
            let address = inet(p, 1, atom(name));
            assert_eq!(bytes(address), expected.map(|it| it.to_vec()), "{name}");
        };
        check("any", Some([0; 4]));
        check("loopback", Some([127, 0, 0, 1]));
        check("broadcast", Some([255; 4]));
        check("nobody", None);
        let short = p.tuple(&[Term::small(1)]);
        let large = p.tuple(&[300, 0, 0, 1].map(Term::small));
        for wrong in [inet(p, 1, short), inet(p, 1, large), local(p, &[b'x'; 108])] {
            assert!(decode(wrong).is_none(), "{}", wrong.display());
        }
        assert!(decode(local(p, &[b'x'; 107])).is_some());
        assert!(decode(atom("inet")).is_none());
    }

    #[test]
    fn any_bytes_are_told() {
        let p = &Process::new(233);
        for length in 0..40 {
            for family in 0..20u8 {
                let mut bytes = vec![family; length];
                if let Some(high) = bytes.get_mut(1) {
                    *high = 0;
                }
                let told = encode(p, &bytes);
                assert_eq!(told.as_map().is_some(), length >= FAMILY, "{bytes:?}");
            }
        }
    }
}
