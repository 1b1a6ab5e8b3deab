//! Packets in a stream of bytes: where each ends, and what is in it.
//!
//! Source of formats, limits and results: `packet_parser.c` and `erl_bif_port.c`, OTP 29.

mod http;

use std::ops::Range;

use crate::heap::Heap;
use crate::term::{Bits, Term, am};

/// The types of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Raw,
    /// A length of this number of bytes, then the packet.
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
pub(crate) struct Limits {
    pub(crate) packet: usize,
    pub(crate) line: usize,
    pub(crate) delimiter: u8,
}

/// The length of a packet, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Not before there is more.
    More,
    /// All of it, head and body; there may be less as yet.
    Bytes(usize),
    /// This is no such packet.
    Invalid,
}

impl Type {
    /// The type that the drivers of sockets know by a number. Source: `PacketParseType`.
    pub(crate) fn of_code(code: u32) -> Option<Type> {
        let http = |headers, binary| Type::Http { headers, binary };
        Some(match code {
            0 => Type::Raw,
            1 => Type::Length(1),
            2 => Type::Length(2),
            3 => Type::Length(4),
            4 => Type::Asn1,
            5 => Type::SunRm,
            6 => Type::Cdr,
            7 => Type::Fcgi,
            8 => Type::Line,
            9 => Type::Tpkt,
            10 => http(false, false),
            11 => http(true, false),
            12 => Type::SslTls,
            13 => http(false, true),
            14 => http(true, true),
            _ => return None,
        })
    }

    /// The part of a packet that its receiver gets, where that is a part of it.
    pub(crate) fn body(self, packet: &[u8]) -> Range<usize> {
        match self {
            Type::Length(head) => head..packet.len(),
            Type::Fcgi => 0..packet.len() - usize::from(packet[6]),
            _ => 0..packet.len(),
        }
    }
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
pub(crate) fn length(kind: Type, bytes: &[u8], limits: Limits) -> Length {
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

/// A packet, of which terms are built.
pub(crate) struct Packet<'a, 'h> {
    pub(crate) heap: &'h Heap,
    pub(crate) bytes: &'a [u8],
    /// The binary that it is at the start of, if there is one: binaries in it are parts of that one.
    pub(crate) of: Option<Bits<'h>>,
}

impl<'h> Packet<'_, 'h> {
    /// Some of its bytes, as a binary.
    fn part(&self, range: Range<usize>) -> Term<'h> {
        match self.of {
            Some(bits) => self.heap.sub_bits(bits, range.start * 8, range.end * 8),
            None => self.heap.binary(&self.bytes[range]),
        }
    }

    /// What is in it, where its type says that this is more than bytes. `headers`: a start line has been read, and headers
    /// follow. `holder` stands for the socket.
    pub(crate) fn parse(&self, kind: Type, headers: bool, holder: Term<'h>) -> Option<Parsed<'h>> {
        match kind {
            Type::Http { binary, .. } => Some(http::parse(self, headers, binary)),
            Type::SslTls => Some(Parsed {
                term: self.ssl_tls(holder),
                line: Line::Other,
            }),
            _ => None,
        }
    }

    /// `{ssl_tls, Holder, ContentType, {Major, Minor}, Data}`.
    fn ssl_tls(&self, holder: Term<'h>) -> Term<'h> {
        let packet = self.bytes;
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
        self.heap.tuple(&[
            am::ssl_tls.term(),
            holder,
            Term::small(kind),
            self.heap.tuple(&version),
            self.heap.binary(&data),
        ])
    }
}

/// What a packet has been found to be.
pub(crate) struct Parsed<'h> {
    pub(crate) term: Term<'h>,
    pub(crate) line: Line,
}

/// What an HTTP packet says of those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It begins a message: headers follow.
    Start,
    /// It ends the headers.
    End,
    Other,
}
