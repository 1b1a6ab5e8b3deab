//! `erlang:decode_packet/3`, which finds the end of a packet and decodes its contents.
//!
//! Source of formats, limits and results: `packet_parser.c` and `erl_bif_port.c`, OTP 29.

mod http;

use super::{BifResult, Raise, badarg, bifs};
use crate::process::Process;
use crate::term::{Bits, Term, View, am};

bifs! {
    all own;
    bif erlang:"decode_packet"/3 => decode_packet_3;
}

/// The types of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Raw,
    /// The packet's length in this number of bytes, then the packet.
    Length(usize),
    Asn1,
    Cdr,
    Fcgi,
    /// `http`, `http_bin`, or (headers, no first line) `httph`, `httph_bin`.
    Http {
        headers: bool,
        binary: bool,
    },
    Line,
    SslTls,
    SunRm,
    Tpkt,
}

/// Limits in bytes, 0 for none, and what ends a line.
#[derive(Clone, Copy, Debug)]
struct Limits {
    packet: usize,
    line: usize,
    delimiter: u8,
}

/// The length of a packet, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// Not before there is more.
    More,
    /// All of it, head and body; there may be less as yet.
    Bytes(usize),
    /// This is no such packet.
    Invalid,
}

fn type_of(term: Term<'_>) -> Option<Type> {
    Some(match term.view() {
        View::Small(0) | View::Atom(am::raw) => Type::Raw,
        View::Small(n @ (1 | 2 | 4)) => Type::Length(n as usize),
        View::Atom(am::asn1) => Type::Asn1,
        View::Atom(am::cdr) => Type::Cdr,
        View::Atom(am::fcgi) => Type::Fcgi,
        View::Atom(am::line) => Type::Line,
        View::Atom(am::ssl_tls) => Type::SslTls,
        View::Atom(am::sunrm) => Type::SunRm,
        View::Atom(am::tpkt) => Type::Tpkt,
        View::Atom(name @ (am::http | am::http_bin | am::httph | am::httph_bin)) => Type::Http {
            headers: name == am::httph || name == am::httph_bin,
            binary: name == am::http_bin || name == am::httph_bin,
        },
        _ => return None,
    })
}

fn limits(kind: Type, options: Term<'_>) -> Option<Limits> {
    let mut limits = Limits {
        packet: 0,
        line: 0,
        delimiter: b'\n',
    };
    for option in options.list_iter() {
        let option = option.ok()?.as_tuple()?;
        let [name, value] = *option.elements() else {
            return None;
        };
        let value = u32::try_from(value.as_small()?).ok()?;
        match name.as_atom()? {
            am::packet_size => limits.packet = value as usize,
            am::line_length => limits.line = value as usize,
            am::line_delimiter if kind == Type::Line => {
                limits.delimiter = u8::try_from(value).ok()?;
            }
            _ => return None,
        }
    }
    Some(limits)
}

/// A number in network byte order.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |n, byte| n << 8 | u32::from(*byte))
}

/// A head of `head` bytes whose body has `body`.
fn sized(head: usize, body: u32, limits: Limits) -> Length {
    let max = match limits.packet {
        0 => i32::MAX as usize - head,
        max => max,
    };
    match body as usize {
        body if body > max => Length::Invalid,
        body => Length::Bytes(head + body),
    }
}

/// How long the packet is that `bytes` begin with.
fn length(kind: Type, bytes: &[u8], limits: Limits) -> Length {
    let head = match kind {
        Type::Raw if bytes.is_empty() => return Length::More,
        Type::Raw => return Length::Bytes(bytes.len()),
        Type::Line => return line_length(bytes, limits),
        Type::Asn1 => return asn1_length(bytes, limits),
        Type::Http { headers, .. } => return http::length(bytes, headers, limits),
        Type::Length(head) => head,
        Type::SunRm | Type::Tpkt => 4,
        Type::SslTls => 5,
        Type::Fcgi => 8,
        Type::Cdr => 12,
    };
    let Some(start) = bytes.get(..head) else {
        return Length::More;
    };
    let body = match kind {
        Type::SunRm => number(start) & 0x7fff_ffff,
        Type::Tpkt if start[0] == 3 => number(&start[2..]).wrapping_sub(4),
        Type::Fcgi if start[0] == 1 => number(&start[4..6]) + u32::from(start[6]),
        // Little-endian where the lowest flag says so.
        Type::Cdr if start.starts_with(b"GIOP") => match (number(&start[8..]), start[6] & 1) {
            (size, 0) => size,
            (size, _) => size.swap_bytes(),
        },
        Type::Tpkt | Type::Fcgi | Type::Cdr => return Length::Invalid,
        Type::SslTls if is_ssl2_hello(start) => (number(&start[..2]) & 0x7fff).wrapping_sub(3),
        Type::SslTls => number(&start[3..]),
        _ => number(start),
    };
    sized(head, body, limits)
}

fn line_length(bytes: &[u8], limits: Limits) -> Length {
    let end = memchr::memchr(limits.delimiter, bytes);
    let known = end.map_or(bytes.len(), |end| end + 1);
    let over = |limit: usize, length: usize| limit != 0 && length > limit;
    if over(limits.packet, known) {
        return Length::Invalid;
    }
    match end {
        _ if over(limits.line, known) => Length::Bytes(limits.line),
        Some(_) => Length::Bytes(known),
        None if known == limits.line && known != 0 => Length::Bytes(known),
        None => Length::More,
    }
}

fn asn1_length(bytes: &[u8], limits: Limits) -> Length {
    let [first, rest @ ..] = bytes else {
        return Length::More;
    };
    let mut at = 1;
    if first & 0x1f == 0x1f {
        // A long tag goes on while the highest bit is set.
        at += rest.iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
    }
    let Some(&size) = bytes.get(at) else {
        return Length::More;
    };
    at += 1;
    if size & 0x80 == 0 {
        return sized(at, size.into(), limits);
    }
    let digits = usize::from(size & 0x7f);
    match bytes.get(at..at + digits) {
        None => Length::More,
        Some(_) if digits > 4 => Length::Invalid,
        Some(size) => sized(at + digits, number(size), limits),
    }
}

/// Is it how a client of version 2 of SSL begins?
fn is_ssl2_hello(start: &[u8]) -> bool {
    start[0] & 0x80 != 0 && start[2] == 1
}

/// `{ssl_tls, [], ContentType, {Major, Minor}, Data}`.
fn ssl_tls<'p>(p: &'p Process, packet: &[u8]) -> Term<'p> {
    let (kind, version, data) = if is_ssl2_hello(packet) {
        // As the handshake message it stands for.
        let body = &packet[3..];
        let size = (body.len() as u32).to_be_bytes();
        (22, &packet[3..5], [&[1], &size[1..], body].concat())
    } else {
        (packet[0].into(), &packet[1..3], packet[5..].to_vec())
    };
    let version = version.iter().map(|part| Term::small((*part).into()));
    let version: Vec<_> = version.collect();
    p.tuple(&[
        am::ssl_tls.term(),
        Term::NIL,
        Term::small(kind),
        p.tuple(&version),
        p.binary(&data),
    ])
}

fn decode_packet_3<'p>(p: &'p Process, [kind, data, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let cause = || Raise::ErrorCause(am::badarg.term(), am::badopt.term());
    let kind = type_of(kind).ok_or_else(cause)?;
    let bits = data.as_binary().ok_or_else(badarg)?;
    let limits = limits(kind, options).ok_or_else(badarg)?;
    let bytes = bits.bytes();
    let size = match length(kind, &bytes, limits) {
        Length::Invalid => return Ok(p.tuple(&[am::error.term(), am::invalid.term()])),
        Length::More => return Ok(p.tuple(&[am::more.term(), am::undefined.term()])),
        Length::Bytes(size) if size > bytes.len() => {
            return Ok(p.tuple(&[am::more.term(), p.unsigned(size as u64)]));
        }
        Length::Bytes(size) => size,
    };
    let packet = Packet { p, bits };
    let body = match kind {
        Type::Http { headers, binary } => http::parse(&packet, &bytes[..size], headers, binary),
        Type::SslTls => ssl_tls(p, &bytes[..size]),
        Type::Length(head) => packet.part(head, size),
        Type::Fcgi => packet.part(0, size - usize::from(bytes[6])),
        _ => packet.part(0, size),
    };
    let rest = packet.part(size, bytes.len());
    Ok(p.tuple(&[am::ok.term(), body, rest]))
}

/// The binary that a packet is in.
struct Packet<'p> {
    p: &'p Process,
    bits: Bits<'p>,
}

impl<'p> Packet<'p> {
    /// The bytes from `start` to `end`, as a part of the binary.
    fn part(&self, start: usize, end: usize) -> Term<'p> {
        self.p.sub_bits(self.bits, start * 8, end * 8)
    }
}
