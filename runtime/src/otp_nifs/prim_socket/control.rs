//! Control messages: maps with a level, a type, the bytes and, where the type has one, a value.

use super::address::{encode as address_term, inet_term, inet6_term};
use super::names::{self, get, level, level_name, map};
use super::values::{int_bytes, tos_of, tos_term};
use crate::heap::Heap;
use crate::sys::errno::errno_name;
use crate::term::Term;
use crate::term::atom::atom;

/// Bytes of a header: length, level, type.
const HEADER: usize = size_of::<libc::cmsghdr>();

type Encode = for<'p> fn(&'p Heap, &[u8]) -> Option<Term<'p>>;
type Decode = fn(Term<'_>) -> Option<Vec<u8>>;

/// A type of control messages.
struct Row {
    level: i32,
    name: &'static str,
    number: i32,
    encode: Option<Encode>,
    decode: Option<Decode>,
}

macro_rules! rows {
    ($($level:ident $name:literal = $number:ident, $encode:expr, $decode:expr;)*) => {
        const ROWS: &[Row] = &[$(Row {
            level: libc::$level,
            name: $name,
            number: libc::$number,
            encode: $encode,
            decode: $decode,
        },)*];
    };
}

rows! {
    SOL_SOCKET "credentials" = SCM_CREDENTIALS, None, None;
    SOL_SOCKET "rights" = SCM_RIGHTS, None, None;
    SOL_SOCKET "timestamp" = SCM_TIMESTAMP, Some(micro_time), Some(micro_time_of);
    SOL_SOCKET "timestampns" = SO_TIMESTAMPNS, Some(nano_time), Some(nano_time_of);
    SOL_IP "tos" = IP_TOS, Some(tos), Some(tos_bytes);
    SOL_IP "ttl" = IP_TTL, Some(int), Some(int_bytes);
    SOL_IP "recvttl" = IP_RECVTTL, Some(byte), None;
    SOL_IP "pktinfo" = IP_PKTINFO, Some(packet_info), None;
    SOL_IP "origdstaddr" = IP_ORIGDSTADDR, Some(address), None;
    SOL_IP "recvtos" = IP_RECVTOS, Some(tos), None;
    SOL_IP "recverr" = IP_RECVERR, Some(error), None;
    SOL_IPV6 "pktinfo" = IPV6_PKTINFO, Some(packet_info6), None;
    SOL_IPV6 "hoplimit" = IPV6_HOPLIMIT, Some(int), Some(int_bytes);
    SOL_IPV6 "tclass" = IPV6_TCLASS, Some(int), Some(int_bytes);
    SOL_IPV6 "recvtclass" = IPV6_RECVTCLASS, Some(int), None;
    SOL_IPV6 "recverr" = IPV6_RECVERR, Some(error), None;
    SOL_IPV6 "flowinfo" = IPV6_FLOWINFO, Some(int), None;
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(i32::from_ne_bytes(bytes))
}

fn i64_at(bytes: &[u8], at: usize) -> Option<i64> {
    let bytes = bytes.get(at..at + 8)?.try_into().ok()?;
    Some(i64::from_ne_bytes(bytes))
}

fn int<'p>(p: &'p Heap, data: &[u8]) -> Option<Term<'p>> {
    Some(p.integer(i32_at(data, 0)?.into()))
}

fn byte<'p>(_p: &'p Heap, data: &[u8]) -> Option<Term<'p>> {
    Some(Term::small((*data.first()?).into()))
}

fn tos<'p>(p: &'p Heap, data: &[u8]) -> Option<Term<'p>> {
    Some(tos_term(p, (*data.first()?).into()))
}

fn tos_bytes(value: Term<'_>) -> Option<Vec<u8>> {
    Some(tos_of(value)?.to_ne_bytes().to_vec())
}

fn time<'p>(p: &'p Heap, data: &[u8], part: &str) -> Option<Term<'p>> {
    let (seconds, rest) = (i64_at(data, 0)?, i64_at(data, 8)?);
    Some(map(
        p,
        &[("sec", p.integer(seconds)), (part, p.integer(rest))],
    ))
}

fn time_of(value: Term<'_>, part: &str) -> Option<Vec<u8>> {
    let (seconds, rest) = (get(value, "sec")?.as_i64()?, get(value, part)?.as_i64()?);
    Some([seconds.to_ne_bytes(), rest.to_ne_bytes()].concat())
}

fn micro_time<'p>(p: &'p Heap, data: &[u8]) -> Option<Term<'p>> {
    time(p, data, "usec")
}

fn micro_time_of(value: Term<'_>) -> Option<Vec<u8>> {
    time_of(value, "usec")
}

fn nano_time<'p>(p: &'p Heap, data: &[u8]) -> Option<Term<'p>> {
    time(p, data, "nsec")
}

fn nano_time_of(value: Term<'_>) -> Option<Vec<u8>> {
    time_of(value, "nsec")
}

fn packet_info<'p>(p: &'p Heap, data: &[u8]) -> Option<Term<'p>> {
    let index = i32_at(data, 0)?.cast_unsigned();
    let pairs = [
        ("ifindex", p.unsigned(index.into())),
        ("spec_dst", inet_term(p, data.get(4..8)?)),
        ("addr", inet_term(p, data.get(8..12)?)),
    ];
    Some(map(p, &pairs))
}

fn packet_info6<'p>(p: &'p Heap, data: &[u8]) -> Option<Term<'p>> {
    let pairs = [
        ("addr", inet6_term(p, data.get(..16)?)),
        ("ifindex", p.integer(i32_at(data, 16)?.into())),
    ];
    Some(map(p, &pairs))
}

fn address<'p>(p: &'p Heap, data: &[u8]) -> Option<Term<'p>> {
    Some(address_term(p, data))
}

/// Where an error of [`error`] comes from.
const ORIGINS: &[names::Row] = &[
    ("none", 0),
    ("local", 1),
    ("icmp", 2),
    ("icmp6", 3),
    ("txstatus", 4),
    ("zerocopy", 5),
    ("txtime", 6),
];

const ICMP: i32 = 2;
const ICMP6: i32 = 3;

/// Types of messages of ICMP, and of ICMP for IPv6.
const ICMP_TYPES: [&[names::Row]; 2] = [
    &[("dest_unreach", 3), ("time_exceeded", 11)],
    &[("dest_unreach", 1), ("pkt_toobig", 2), ("time_exceeded", 3)],
];

/// Codes of `dest_unreach`, and its number.
const UNREACHED: [(i32, &[names::Row]); 2] = [
    (
        3,
        &[
            ("net_unreach", 0),
            ("host_unreach", 1),
            ("port_unreach", 3),
            ("frag_needed", 4),
            ("net_unknown", 6),
            ("host_unknown", 7),
        ],
    ),
    (
        1,
        &[
            ("noroute", 0),
            ("adm_prohibited", 1),
            ("not_neighbour", 2),
            ("addr_unreach", 3),
            ("port_unreach", 4),
            ("policy_fail", 5),
            ("reject_route", 6),
        ],
    ),
];

/// An error of the queue of errors (`struct sock_extended_err`), and the address of the host that reported it.
fn error<'p>(p: &'p Heap, data: &[u8]) -> Option<Term<'p>> {
    let [origin, kind, code] =
        [data.get(4)?, data.get(5)?, data.get(6)?].map(|byte| i32::from(*byte));
    let number = |n: i32| p.integer(n.into());
    let (kind_term, code_term) = match origin {
        ICMP | ICMP6 => {
            let of = usize::from(origin == ICMP6);
            let (unreached, codes) = UNREACHED[of];
            let codes = if kind == unreached { codes } else { &[] };
            (
                names::name_of(p, ICMP_TYPES[of], kind),
                names::name_of(p, codes, code),
            )
        }
        _ => (number(kind), number(code)),
    };
    let mut pairs = vec![
        ("error", atom(errno_name(i32_at(data, 0)?))),
        ("origin", names::name_of(p, ORIGINS, origin)),
        ("type", kind_term),
        ("code", code_term),
        ("info", number(i32_at(data, 8)?)),
        ("data", number(i32_at(data, 12)?)),
    ];
    if let Some(offender) = data.get(16..).filter(|offender| !offender.is_empty()) {
        pairs.push(("offender", address_term(p, offender)));
    }
    Some(map(p, &pairs))
}

/// A header and what is behind it.
struct Header<'a> {
    level: i32,
    kind: i32,
    data: &'a [u8],
    rest: &'a [u8],
}

/// The first message; `Err` where its length is none.
fn first(bytes: &[u8]) -> Result<Option<Header<'_>>, ()> {
    if bytes.len() < HEADER {
        return Ok(None);
    }
    let length = i64_at(bytes, 0).and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| *length >= HEADER).ok_or(())?;
    let data = bytes.get(HEADER..length).ok_or(())?;
    let (level, kind) = (i32_at(bytes, 8).ok_or(())?, i32_at(bytes, 12).ok_or(())?);
    let rest = bytes.get(length.next_multiple_of(8)..).unwrap_or(&[]);
    Ok(Some(Header {
        level,
        kind,
        data,
        rest,
    }))
}

fn header_term<'p>(p: &'p Heap, header: &Header<'_>) -> Term<'p> {
    let row = ROWS
        .iter()
        .find(|row| row.level == header.level && row.number == header.kind);
    let kind = match row {
        Some(row) => atom(row.name),
        None => p.integer(header.kind.into()),
    };
    let mut pairs = vec![
        ("level", level_name(p, header.level)),
        ("type", kind),
        ("data", p.binary(header.data)),
    ];
    let encode = row.and_then(|row| row.encode);
    pairs.extend(
        encode
            .and_then(|encode| encode(p, header.data))
            .map(|value| ("value", value)),
    );
    map(p, &pairs)
}

/// The control messages that have come.
pub(super) fn encode<'p>(p: &'p Heap, mut bytes: &[u8]) -> Term<'p> {
    let mut headers = Vec::new();
    loop {
        match first(bytes) {
            Ok(None) => break,
            Ok(Some(header)) => {
                headers.push(header_term(p, &header));
                bytes = header.rest;
            }
            Err(()) => {
                headers.push(atom("bad_data"));
                break;
            }
        }
    }
    p.list(&headers)
}

/// The bytes of a value or of data: of one of them.
fn decode_one(header: Term<'_>) -> Option<(i32, i32, Vec<u8>)> {
    let level = level(get(header, "level")?)?;
    let name = get(header, "type")?;
    let row = name.as_atom().and_then(|name| {
        ROWS.iter()
            .find(|row| row.level == level && row.name == name.name())
    });
    let (data, value) = (get(header, "data"), get(header, "value"));
    if let Some(value) = value {
        let row = row.filter(|_| data.is_none())?;
        return Some((level, row.number, row.decode?(value)?));
    }
    let kind = names::int(name).or_else(|| row.map(|row| row.number))?;
    let data = data?;
    let bytes = match (data.as_binary(), data.as_bool()) {
        (Some(bytes), _) => bytes.bytes().into_owned(),
        (None, Some(is)) => i32::from(is).to_ne_bytes().to_vec(),
        (None, None) => int_bytes(data)?,
    };
    Some((level, kind, bytes))
}

/// The control messages of a list, as the kernel takes them, in a room of `room` bytes.
pub(super) fn decode(list: Term<'_>, room: usize) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for header in list.list_iter() {
        let (level, kind, data) = decode_one(header.ok()?)?;
        all.extend_from_slice(&(HEADER + data.len()).to_ne_bytes());
        all.extend_from_slice(&level.to_ne_bytes());
        all.extend_from_slice(&kind.to_ne_bytes());
        all.extend_from_slice(&data);
        all.resize(all.len().next_multiple_of(8), 0);
        if all.len() > room {
            return None;
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use crate::term::compare::eq_exact;

    fn header<'p>(p: &'p Process, level: &str, kind: &str, value: Term<'p>) -> Term<'p> {
        let level = match level {
            "socket" => names::socket(),
            "ip" => Term::small(libc::SOL_IP.into()),
            _ => Term::small(libc::SOL_IPV6.into()),
        };
        map(
            p,
            &[("level", level), ("type", atom(kind)), ("value", value)],
        )
    }

    #[test]
    fn values_come_back_as_they_were_given() {
        let p = &Process::new(233);
        let time = map(p, &[("sec", Term::small(5)), ("usec", Term::small(6))]);
        let rows = [
            ("ip", "ttl", Term::small(9)),
            ("ipv6", "hoplimit", Term::small(-1)),
            ("ipv6", "tclass", Term::small(32)),
            ("ip", "tos", tos_term(p, 16)),
            ("socket", "timestamp", time),
        ];
        for (level, kind, value) in rows {
            let given = match kind {
                "tos" => Term::small(16),
                _ => value,
            };
            let list = p.list(&[header(p, level, kind, given)]);
            let bytes = decode(list, 1024).expect("it is one");
            let back = encode(p, &bytes).as_cons().expect("one came").head();
            let back = get(back, "value").expect("it has a value");
            assert!(eq_exact(back, value), "{kind}");
        }
    }

    #[test]
    fn what_is_none_or_has_no_room_is_refused() {
        let p = &Process::new(233);
        let one = header(p, "ip", "ttl", Term::small(9));
        let rows = [
            (p.list(&[header(p, "ip", "nothing", Term::small(1))]), 1024),
            (p.list(&[header(p, "ip", "ttl", atom("far"))]), 1024),
            (p.list(&[header(p, "ip", "pktinfo", Term::small(1))]), 1024),
            (p.list(&[one]), 23),
            (p.list(&[one, one]), 40),
            (one, 1024),
        ];
        for (list, room) in rows {
            assert!(decode(list, room).is_none(), "{}", list.display());
        }
        assert!(decode(p.list(&[one]), 24).is_some());
    }

    #[test]
    fn any_bytes_are_told() {
        let p = &Process::new(233);
        let mut seed = 1u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed >> 56
        };
        for _ in 0..5000 {
            let mut bytes: Vec<_> = (0..next() % 48).map(|_| next() as u8).collect();
            // Lengths that are plausible come too.
            if let Some(length) = bytes.get_mut(..8) {
                length.copy_from_slice(&(next() % 64).to_ne_bytes());
            }
            assert!(encode(p, &bytes).list_iter().all(|it| it.is_ok()));
        }
    }
}
