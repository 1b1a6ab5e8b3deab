//! `erlang:decode_packet/3`, which finds the end of a packet and decodes its contents.

use std::ops::Range;

use super::{BifResult, Raise, badarg, bifs};
use crate::process::Process;
use crate::term::{Term, View, am};
use crate::value::packet::{Length, Limits, Packet, Type, length};

bifs! {
    all own;
    bif erlang:"decode_packet"/3 => decode_packet_3;
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
    let packet = Packet {
        heap: p,
        bytes: &bytes[..size],
        of: Some(bits),
    };
    let headers = matches!(kind, Type::Http { headers: true, .. });
    let body = match packet.parse(kind, headers, Term::NIL) {
        Some(parsed) => parsed.term,
        None => {
            let Range { start, end } = kind.body(packet.bytes);
            p.sub_bits(bits, start * 8, end * 8)
        }
    };
    let rest = p.sub_bits(bits, size * 8, bytes.len() * 8);
    Ok(p.tuple(&[am::ok.term(), body, rest]))
}
