//! Addresses, as `prim_inet` writes and reads them: a byte that tells the family, and what belongs to it.

use rustix::io::Errno;

use super::request::{take_counted, take_u16, take_u32};
use crate::heap::Heap;
use crate::sys::socket::Address;
use crate::term::{Atom, Term, am};

/// Source: `INET_AF_UNSPEC` and those behind it.
pub(super) mod tag {
    pub(crate) const UNSPECIFIED: u8 = 0;
    pub(crate) const INET: u8 = 1;
    pub(crate) const INET6: u8 = 2;
    pub(crate) const ANY: u8 = 3;
    pub(crate) const LOOPBACK: u8 = 4;
    pub(crate) const LOCAL: u8 = 5;
    pub(crate) const UNDEFINED: u8 = 6;
}

/// The families that a socket may be of, each with its tag.
const FAMILIES: [(u8, i32); 3] = [
    (tag::INET, libc::AF_INET),
    (tag::INET6, libc::AF_INET6),
    (tag::LOCAL, libc::AF_UNIX),
];

/// The family of a tag.
///
/// # Errors
/// There is none.
pub(super) fn family_of(tag: u8) -> Result<i32, Errno> {
    let row = FAMILIES.iter().find(|row| row.0 == tag);
    row.map(|row| row.1).ok_or(Errno::AFNOSUPPORT)
}

/// The tag of a family.
pub(super) fn tag_of(family: i32) -> Option<u8> {
    let row = FAMILIES.iter().find(|row| row.1 == family);
    row.map(|row| row.0)
}

/// Room for the path of a local address. Source: `struct sockaddr_un`.
const PATH_BYTES: usize = 108;

fn of_bytes(bytes: &[u8]) -> Result<Address, Errno> {
    Address::of_bytes(bytes).ok_or(Errno::INVAL)
}

fn inet(port: u16, ip: [u8; 4]) -> Result<Address, Errno> {
    let family = (libc::AF_INET as u16).to_ne_bytes();
    of_bytes(&[&family[..], &port.to_be_bytes(), &ip, &[0; 8]].concat())
}

fn inet6(port: u16, flow: u32, ip: [u8; 16], scope: u32) -> Result<Address, Errno> {
    let family = (libc::AF_INET6 as u16).to_ne_bytes();
    let (flow, scope) = (flow.to_ne_bytes(), scope.to_ne_bytes());
    of_bytes(&[&family[..], &port.to_be_bytes(), &flow, &ip, &scope].concat())
}

fn local(path: &[u8]) -> Result<Address, Errno> {
    // A path ends with a zero. A name that begins with one is no path.
    let end = usize::from(path.first() != Some(&0));
    if path.len() + end > PATH_BYTES {
        return Err(Errno::INVAL);
    }
    of_bytes(&[&(libc::AF_UNIX as u16).to_ne_bytes(), path].concat())
}

/// Reads an address for a socket of this family, and what is behind it.
///
/// # Errors
/// It is none, or of a family that there is not.
pub(super) fn decode(family: i32, bytes: &[u8]) -> Result<(Address, &[u8]), Errno> {
    let (&tag, rest) = bytes.split_first().ok_or(Errno::INVAL)?;
    if tag == tag::LOCAL {
        let (path, rest) = take_counted(rest)?;
        return Ok((local(path)?, rest));
    }
    let (port, rest) = match tag {
        tag::INET | tag::INET6 | tag::ANY | tag::LOOPBACK => take_u16(rest)?,
        _ => return Err(Errno::AFNOSUPPORT),
    };
    let last = u8::from(tag == tag::LOOPBACK);
    match (tag, family) {
        (tag::INET, _) => {
            let (ip, rest) = rest.split_first_chunk().ok_or(Errno::INVAL)?;
            Ok((inet(port, *ip)?, rest))
        }
        (tag::INET6, _) => {
            let (ip, rest) = rest.split_first_chunk().ok_or(Errno::INVAL)?;
            let (flow, rest) = take_u32(rest)?;
            let (scope, rest) = take_u32(rest)?;
            Ok((inet6(port, flow, *ip, scope)?, rest))
        }
        (_, libc::AF_INET) => Ok((inet(port, [last * 127, 0, 0, last])?, rest)),
        (_, libc::AF_INET6) => {
            let ip = u128::from(last).to_be_bytes();
            Ok((inet6(port, 0, ip, 0)?, rest))
        }
        _ => Err(Errno::INVAL),
    }
}

/// Writes an address; nothing for one of a family that is not known.
pub(super) fn encode(address: &Address) -> Option<Vec<u8>> {
    let bytes = address.bytes();
    Some(match address.family() {
        libc::AF_INET if bytes.len() >= 16 => [&[tag::INET], &bytes[2..8]].concat(),
        libc::AF_INET6 if bytes.len() >= 28 => {
            [&[tag::INET6], &bytes[2..4], &bytes[8..24]].concat()
        }
        libc::AF_UNIX => {
            let path = path_of(bytes);
            let length = u8::try_from(path.len()).ok()?;
            [&[tag::LOCAL, length], path].concat()
        }
        _ => return None,
    })
}

/// As [`encode`], of whatever address a datagram is from.
pub(super) fn encode_source(address: Option<&Address>) -> Vec<u8> {
    let known = address.and_then(encode);
    known.unwrap_or_else(|| match address.map(Address::family) {
        None | Some(libc::AF_UNSPEC) => vec![tag::UNSPECIFIED],
        Some(_) => vec![tag::UNDEFINED],
    })
}

/// The path of a local address, without the zero at its end, or the name that begins with a zero.
fn path_of(bytes: &[u8]) -> &[u8] {
    let path = &bytes[2..];
    match path.iter().position(|byte| *byte == 0) {
        None | Some(0) => path,
        Some(end) => &path[..end],
    }
}

/// The number of the port, where the address has one.
pub(super) fn port_of(address: &Address) -> Option<u16> {
    match address.family() {
        libc::AF_INET | libc::AF_INET6 => {
            let port = address.bytes().get(2..4)?;
            Some(u16::from_be_bytes([port[0], port[1]]))
        }
        _ => None,
    }
}

/// An encoded address as the two terms that a message of a datagram has: `IP, Port` or `{Family, Path}, 0`.
pub(super) fn terms<'h>(heap: &'h Heap, encoded: &[u8]) -> [Term<'h>; 2] {
    let numbers = |numbers: Vec<u16>| {
        let terms = numbers.into_iter().map(|n| Term::small(n.into()));
        heap.tuple(&terms.collect::<Vec<_>>())
    };
    let named = |family: Atom, path: &[u8]| {
        let address = heap.tuple(&[family.term(), heap.binary(path)]);
        [address, Term::small(0)]
    };
    let pair = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
    match *encoded {
        [tag::INET, a, b, ref ip @ ..] => {
            let ip = numbers(ip.iter().map(|byte| u16::from(*byte)).collect());
            [ip, Term::small(pair(&[a, b]).into())]
        }
        [tag::INET6, a, b, ref ip @ ..] => {
            let ip = numbers(ip.chunks_exact(2).map(pair).collect());
            [ip, Term::small(pair(&[a, b]).into())]
        }
        [tag::LOCAL, _, ref path @ ..] => named(am::local, path),
        [tag::UNSPECIFIED] => named(am::unspec, &[]),
        _ => named(am::undefined, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let ip6 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        let behind = [0, 0, 0, 0, 0, 0, 0, 0];
        for (tag, rest, extra) in [
            (tag::INET, &[31, 144, 10, 0, 0, 1][..], &[][..]),
            (tag::INET6, &[&[0, 80][..], &ip6].concat(), &behind),
            (tag::LOCAL, &[4, b'/', b'a', b'/', b'b'], &[]),
            (tag::LOCAL, &[3, 0, b'a', 0], &[]),
        ] {
            let written = [&[tag], rest].concat();
            let bytes = [&written, extra, &[99]].concat();
            let (address, left) = decode(libc::AF_INET, &bytes).expect("it is one");
            assert_eq!(left, [99]);
            assert_eq!(encode(&address), Some(written));
        }
    }

    #[test]
    fn any_and_loopback_are_of_the_family_of_the_socket() {
        let port = [31, 144];
        let encoded = |tag, family| {
            let bytes = [&[tag], &port[..]].concat();
            decode(family, &bytes).map(|(address, _)| encode(&address).expect("it is known"))
        };
        let any = [&[tag::INET], &port[..], &[0; 4]].concat();
        assert_eq!(encoded(tag::ANY, libc::AF_INET), Ok(any));
        let loopback = [&[tag::INET], &port[..], &[127, 0, 0, 1]].concat();
        assert_eq!(encoded(tag::LOOPBACK, libc::AF_INET), Ok(loopback));
        let loopback = [&[tag::INET6], &port[..], &[0; 15], &[1]].concat();
        assert_eq!(encoded(tag::LOOPBACK, libc::AF_INET6), Ok(loopback));
        assert_eq!(encoded(tag::ANY, libc::AF_UNIX), Err(Errno::INVAL));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = [&[tag::LOCAL, 109], &[b'x'; 109][..]].concat();
        for (bytes, error) in [
            (&[][..], Errno::INVAL),
            (&[tag::INET, 0], Errno::INVAL),
            (&[tag::INET, 0, 80, 1, 2, 3], Errno::INVAL),
            (&[tag::INET6, 0, 80, 1, 2, 3, 4], Errno::INVAL),
            (&[tag::LOCAL], Errno::INVAL),
            (&[tag::LOCAL, 3, 1], Errno::INVAL),
            (&long, Errno::INVAL),
            (&[9, 0, 80, 1, 2, 3, 4], Errno::AFNOSUPPORT),
        ] {
            let refused = decode(libc::AF_INET, bytes).map(drop);
            assert_eq!(refused, Err(error), "{bytes:?}");
        }
    }
}
