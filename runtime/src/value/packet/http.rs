//! Decodes HTTP packets: first lines and headers.

use std::ops::Range;

use super::{Length, Limits, Line, Packet, Parsed};
use crate::term::{Atom, Term, am};

/// Headers that are known by their number, the first one by 1, and given as atoms.
const HEADERS: [&str; 52] = [
    "Cache-Control",
    "Connection",
    "Date",
    "Pragma",
    "Transfer-Encoding",
    "Upgrade",
    "Via",
    "Accept",
    "Accept-Charset",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "From",
    "Host",
    "If-Modified-Since",
    "If-Match",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Max-Forwards",
    "Proxy-Authorization",
    "Range",
    "Referer",
    "User-Agent",
    "Age",
    "Location",
    "Proxy-Authenticate",
    "Public",
    "Retry-After",
    "Server",
    "Vary",
    "Warning",
    "Www-Authenticate",
    "Allow",
    "Content-Base",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Location",
    "Content-Md5",
    "Content-Range",
    "Content-Type",
    "Etag",
    "Expires",
    "Last-Modified",
    "Accept-Ranges",
    "Set-Cookie",
    "Set-Cookie2",
    "X-Forwarded-For",
    "Cookie",
    "Keep-Alive",
    "Proxy-Connection",
];
const METHODS: [&str; 7] = ["OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE"];
/// Longer names of headers are left as they are.
const MAX_NAME: usize = 50;
/// The version of a request that names none.
const NO_VERSION: (i64, i64) = (0, 9);

/// How long the line is; with `headers`, the lines of one header.
pub(super) fn length(bytes: &[u8], headers: bool, limits: Limits) -> Length {
    if bytes == b"\n" || bytes == b"\r\n" {
        return Length::Bytes(bytes.len());
    }
    // The length of a line may limit a packet, too.
    let max = if limits.packet == 0 {
        limits.line
    } else {
        limits.packet
    };
    let mut from = 0;
    loop {
        let Some(end) = memchr::memchr(b'\n', &bytes[from..]) else {
            return if max != 0 && bytes.len() >= max {
                Length::Invalid
            } else {
                Length::More
            };
        };
        let length = from + end + 1;
        let goes_on = match bytes.get(length) {
            _ if !headers => Some(false),
            // Whether the header goes on shows in the next line.
            None => None,
            Some(next) => Some(is_space(*next) && length > 2),
        };
        match goes_on {
            Some(true) => from = length,
            _ if max != 0 && length > max => return Length::Invalid,
            Some(false) => return Length::Bytes(length),
            None => return Length::More,
        }
    }
}

fn is_space(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// May the byte be part of a token?
fn is_token(byte: u8) -> bool {
    (33..128).contains(&byte) && !b"()<>@,;:\\\"/[]?={}".contains(&byte)
}

/// A line, read from its start.
#[derive(Clone)]
struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.line[self.at..]
    }

    fn skip(&mut self, is: impl Fn(u8) -> bool) -> Range<usize> {
        let count = self.rest().iter().take_while(|byte| is(**byte)).count();
        self.at += count;
        self.at - count..self.at
    }

    fn spaces(&mut self) -> usize {
        self.skip(is_space).len()
    }

    fn tag(&mut self, tag: &[u8]) -> Option<()> {
        self.rest().starts_with(tag).then(|| self.at += tag.len())
    }

    /// A number, which may have no digits at all.
    fn number(&mut self) -> (i64, usize) {
        let digits = self.skip(|byte| byte.is_ascii_digit());
        let count = digits.len();
        let digits = self.line[digits].iter();
        let number = digits.fold(0i32, |n, digit| {
            n.wrapping_mul(10).wrapping_add(i32::from(digit - b'0'))
        });
        (number.into(), count)
    }

    /// `1*DIGIT "." 1*DIGIT`
    fn version(&mut self) -> Option<(i64, i64)> {
        let (major, digits) = self.number();
        if digits == 0 {
            return None;
        }
        self.tag(b".")?;
        match self.number() {
            (_, 0) => None,
            (minor, _) => Some((major, minor)),
        }
    }
}

/// Builds what is in a line.
struct Builder<'a, 'h> {
    packet: &'a Packet<'a, 'h>,
    line: &'a [u8],
    binary: bool,
}

impl<'h> Builder<'_, 'h> {
    /// Text of the line.
    fn text(&self, range: Range<usize>) -> Term<'h> {
        if self.binary {
            self.packet.part(range)
        } else {
            self.own_text(&self.line[range])
        }
    }

    /// Text that does not stand so in the line.
    fn own_text(&self, text: &[u8]) -> Term<'h> {
        if self.binary {
            return self.packet.heap.binary(text);
        }
        text.iter().rev().fold(Term::NIL, |rest, byte| {
            self.packet.heap.cons(Term::small((*byte).into()), rest)
        })
    }

    fn version(&self, (major, minor): (i64, i64)) -> Term<'h> {
        self.packet
            .heap
            .tuple(&[Term::small(major), Term::small(minor)])
    }

    fn response(&self, mut line: Cursor<'_>) -> Option<Term<'h>> {
        let version = line.version()?;
        if line.spaces() == 0 {
            return None;
        }
        let (status, _) = line.number();
        if line.spaces() == 0 && !line.rest().is_empty() {
            return None;
        }
        Some(self.packet.heap.tuple(&[
            am::http_response.term(),
            self.version(version),
            Term::small(status),
            self.text(line.at..line.line.len()),
        ]))
    }

    fn request(&self, mut line: Cursor<'_>) -> Option<Term<'h>> {
        let method = line.skip(is_token);
        if method.is_empty() || line.spaces() == 0 {
            return None;
        }
        let uri = line.skip(|byte| !is_space(byte));
        if uri.is_empty() {
            return None;
        }
        line.spaces();
        let version = match line.rest() {
            [] => NO_VERSION,
            rest if rest.len() < 8 => return None,
            _ => {
                line.tag(b"HTTP/")?;
                line.version()?
            }
        };
        let known = METHODS
            .iter()
            .find(|known| known.as_bytes() == &self.line[method.clone()]);
        let method = match known {
            Some(known) => Atom::new(known).term(),
            None => self.text(method),
        };
        Some(self.packet.heap.tuple(&[
            am::http_request.term(),
            method,
            self.uri(uri),
            self.version(version),
        ]))
    }

    fn uri(&self, range: Range<usize>) -> Term<'h> {
        let p = self.packet.heap;
        let uri = &self.line[range.clone()];
        let starts = |scheme: &[u8]| {
            uri.len() >= scheme.len() && uri[..scheme.len()].eq_ignore_ascii_case(scheme)
        };
        if uri == b"*" {
            Atom::new("*").term()
        } else if uri.len() <= 1 || uri[0] == b'/' {
            p.tuple(&[am::abs_path.term(), self.text(range)])
        } else if starts(b"http://") {
            self.absolute(am::http, range.start + 7..range.end)
        } else if starts(b"https://") {
            self.absolute(am::https, range.start + 8..range.end)
        } else if let Some(colon) = uri.iter().position(|byte| *byte == b':') {
            let colon = range.start + colon;
            let scheme = self.text(range.start..colon);
            let rest = self.text(colon + 1..range.end);
            p.tuple(&[am::scheme.term(), scheme, rest])
        } else {
            self.text(range)
        }
    }

    /// `{absoluteURI, Scheme, Host, Port, Path}`.
    fn absolute(&self, scheme: Atom, range: Range<usize>) -> Term<'h> {
        let uri = &self.line[range.clone()];
        let slash = uri.iter().position(|byte| *byte == b'/');
        let (place, path) = match slash {
            Some(slash) => {
                let path = self.text(range.start + slash..range.end);
                (&uri[..slash], path)
            }
            None => (uri, self.own_text(b"/")),
        };
        let bracket = place.iter().position(|byte| *byte == b']');
        let host = match (place.first(), bracket) {
            // An IPv6 address has colons of its own.
            (Some(b'['), Some(bracket)) if place.contains(&b':') => bracket + 1,
            _ => place
                .iter()
                .position(|byte| *byte == b':')
                .unwrap_or(place.len()),
        };
        let digits = place[host..].strip_prefix(b":").unwrap_or(b"");
        let mut cursor = Cursor {
            line: digits,
            at: 0,
        };
        let (port, _) = cursor.number();
        let port = if port == 0 || !cursor.rest().is_empty() {
            am::undefined.term()
        } else {
            Term::small(port)
        };
        self.packet.heap.tuple(&[
            am::absoluteURI.term(),
            scheme.term(),
            self.text(range.start..range.start + host),
            port,
            path,
        ])
    }

    fn header(&self, mut line: Cursor<'_>) -> Option<Term<'h>> {
        let name = line.skip(is_token);
        line.tag(b":")?;
        line.spaces();
        let (number, shown) = if name.len() > MAX_NAME {
            (0, self.text(name.clone()))
        } else {
            let text = capitalized(&self.line[name.clone()]);
            let known = HEADERS.iter().position(|known| known.as_bytes() == text);
            match known {
                Some(known) => (known + 1, Atom::new(HEADERS[known]).term()),
                None => (0, self.own_text(&text)),
            }
        };
        Some(self.packet.heap.tuple(&[
            am::http_header.term(),
            Term::small(number as i64),
            shown,
            self.text(name),
            self.text(line.at..line.line.len()),
        ]))
    }
}

/// A header's name with the first letter of each word in upper case.
fn capitalized(name: &[u8]) -> Vec<u8> {
    let mut first = true;
    let letters = name.iter().map(|byte| {
        let letter = if first {
            byte.to_ascii_uppercase()
        } else {
            byte.to_ascii_lowercase()
        };
        // What follows a dash begins a word; a dash that begins one does not.
        first = !first && *byte == b'-';
        letter
    });
    letters.collect()
}

/// What is in a packet.
pub(super) fn parse<'h>(packet: &Packet<'_, 'h>, headers: bool, binary: bool) -> Parsed<'h> {
    let bytes = packet.bytes;
    let end = match bytes {
        [.., b'\r', _] => bytes.len() - 2,
        [.., b'\n'] => bytes.len() - 1,
        _ => bytes.len(),
    };
    let builder = Builder {
        packet,
        line: bytes,
        binary,
    };
    let mut line = Cursor {
        line: &bytes[..end],
        at: 0,
    };
    let (found, is) = if headers && end == 0 {
        (Some(am::http_eoh.term()), Line::End)
    } else if headers {
        (builder.header(line), Line::Other)
    } else if line.tag(b"HTTP/").is_some() {
        (builder.response(line), Line::Start)
    } else {
        (builder.request(line), Line::Start)
    };
    match found {
        Some(term) => Parsed { term, line: is },
        None => {
            let line = builder.text(0..bytes.len());
            let term = packet.heap.tuple(&[am::http_error.term(), line]);
            Parsed {
                term,
                line: Line::Other,
            }
        }
    }
}
