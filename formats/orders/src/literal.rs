//! Terms of the external term format as Erlang writes them, and back: those of which nothing gets lost.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use beamline_formats::name;

/// Terms within terms, at most.
const DEPTH_MAX: u32 = 32;

/// Tags, as the documentation of the external term format numbers them.
mod tag {
    pub(super) const NEW_FLOAT: u8 = 70;
    pub(super) const NEW_PID: u8 = 88;
    pub(super) const SMALL_INTEGER: u8 = 97;
    pub(super) const INTEGER: u8 = 98;
    pub(super) const SMALL_TUPLE: u8 = 104;
    pub(super) const NIL: u8 = 106;
    pub(super) const STRING: u8 = 107;
    pub(super) const LIST: u8 = 108;
    pub(super) const BINARY: u8 = 109;
    pub(super) const SMALL_BIG: u8 = 110;
    pub(super) const MAP: u8 = 116;
    pub(super) const SMALL_ATOM_UTF8: u8 = 119;
    pub(super) const V4_PORT: u8 = 120;
}

/// The node of pids and ports that are written as ERTS prints them.
const NODE: &str = "nonode@nohost";

/// The integer that the bytes are, if they are one of at most 15 digits to the base 256.
pub(super) fn integer(bytes: &[u8]) -> Option<i128> {
    match bytes {
        [tag::SMALL_INTEGER, byte] => Some((*byte).into()),
        [tag::INTEGER, bytes @ ..] => Some(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        [tag::SMALL_BIG, size, sign, digits @ ..] if digits.len() == usize::from(*size) => {
            let digits = Some(digits)
                .filter(|digits| digits.len() <= 15)?
                .iter()
                .rev();
            let value = digits.fold(0, |n: i128, digit| n << 8 | i128::from(*digit));
            Some(if *sign == 0 { value } else { -value })
        }
        _ => None,
    }
}

/// The term as Erlang writes it; `None` where this writer does not know how.
pub(super) fn written(bytes: &[u8]) -> Option<String> {
    let mut writer = Writer {
        rest: bytes,
        out: String::new(),
    };
    writer.term(0)?;
    writer.rest.is_empty().then_some(writer.out)
}

struct Writer<'b> {
    rest: &'b [u8],
    out: String,
}

impl<'b> Writer<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<u64> {
        let bytes = self.take(N)?;
        Some(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    fn size<const N: usize>(&mut self) -> Option<usize> {
        usize::try_from(self.number::<N>()?).ok()
    }

    fn put(&mut self, what: impl fmt::Display) -> Option<()> {
        write!(self.out, "{what}").ok()
    }

    fn term(&mut self, depth: u32) -> Option<()> {
        let tag = *self.rest.first().filter(|_| depth <= DEPTH_MAX)?;
        let length = match tag {
            tag::SMALL_INTEGER => Some(2),
            tag::INTEGER => Some(5),
            tag::SMALL_BIG => Some(3 + usize::from(*self.rest.get(1)?)),
            _ => None,
        };
        if let Some(length) = length {
            let integer = integer(self.take(length)?)?;
            return self.put(integer);
        }
        self.take(1)?;
        match tag {
            tag::NEW_FLOAT => {
                let float = f64::from_bits(self.number::<8>()?);
                self.put(format_args!("{float:?}"))
            }
            tag::SMALL_ATOM_UTF8 => {
                let atom = self.atom()?;
                self.put(name::atom(atom))
            }
            tag::NIL => self.put("[]"),
            tag::STRING => {
                let size = self.size::<2>()?;
                self.quoted(size)
            }
            tag::BINARY => {
                self.put("<<")?;
                match self.size::<4>()? {
                    0 => {}
                    size => self.quoted(size)?,
                }
                self.put(">>")
            }
            tag::SMALL_TUPLE => {
                let size = self.size::<1>()?;
                self.row(size, ("{", "}"), depth)
            }
            tag::LIST => {
                let size = self.size::<4>()?;
                self.row(size, ("[", "]"), depth)?;
                (self.take(1)? == [tag::NIL]).then_some(())
            }
            tag::MAP => self.map(depth),
            tag::NEW_PID => self.pid(),
            tag::V4_PORT => self.port(),
            _ => None,
        }
    }

    fn row(&mut self, size: usize, (open, close): (&str, &str), depth: u32) -> Option<()> {
        self.put(open)?;
        for at in 0..size {
            self.put(if at == 0 { "" } else { ", " })?;
            self.term(depth + 1)?;
        }
        self.put(close)
    }

    fn map(&mut self, depth: u32) -> Option<()> {
        let size = self.size::<4>()?;
        self.put("#{")?;
        for at in 0..size {
            self.put(if at == 0 { "" } else { ", " })?;
            self.term(depth + 1)?;
            self.put(" => ")?;
            self.term(depth + 1)?;
        }
        self.put("}")
    }

    fn atom(&mut self) -> Option<&'b str> {
        let size = self.size::<1>()?;
        std::str::from_utf8(self.take(size)?).ok()
    }

    /// Bytes as text between quotation marks, if none of them needs an escape.
    fn quoted(&mut self, size: usize) -> Option<()> {
        let bytes = self.take(size)?;
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !b"\"\\".contains(byte);
        bytes.iter().all(is_plain).then_some(())?;
        self.put(format_args!("\"{}\"", std::str::from_utf8(bytes).ok()?))
    }

    /// Goes over the node of a pid or a port, if it is the one that is left out.
    fn node(&mut self) -> Option<()> {
        let is_atom = self.take(1)? == [tag::SMALL_ATOM_UTF8];
        (is_atom && self.atom()? == NODE).then_some(())
    }

    /// Goes over the creation, if it is the one that is left out.
    fn creation(&mut self) -> Option<()> {
        (self.number::<4>()? == 0).then_some(())
    }

    fn pid(&mut self) -> Option<()> {
        self.node()?;
        let (number, serial) = (self.number::<4>()?, self.number::<4>()?);
        self.creation()?;
        self.put(format_args!("<0.{number}.{serial}>"))
    }

    fn port(&mut self) -> Option<()> {
        self.node()?;
        let number = self.number::<8>()?;
        self.creation()?;
        self.put(format_args!("#Port<0.{number}>"))
    }
}

/// Reads the term at the beginning of a text; what stands behind it.
pub(super) fn read(text: &str) -> Option<(Vec<u8>, &str)> {
    let mut reader = Reader {
        rest: text,
        out: Vec::new(),
    };
    reader.term(0)?;
    Some((reader.out, reader.rest))
}

struct Reader<'t> {
    rest: &'t str,
    out: Vec<u8>,
}

impl<'t> Reader<'t> {
    fn takes(&mut self, token: &str) -> Option<()> {
        self.rest = self.rest.trim_start().strip_prefix(token)?;
        Some(())
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn term(&mut self, depth: u32) -> Option<()> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next().filter(|_| depth <= DEPTH_MAX)? {
            '{' => self.row((tag::SMALL_TUPLE, 1), ("{", "}"), |r| r.term(depth + 1)),
            '[' => self.list(depth),
            '"' => self.string(),
            '<' if self.rest.starts_with("<<") => self.binary(),
            '<' => self.pid(),
            '#' if self.rest.starts_with("#{") => self.row((tag::MAP, 4), ("#{", "}"), |r| {
                r.term(depth + 1)?;
                r.takes("=>")?;
                r.term(depth + 1)
            }),
            '#' => self.port(),
            '\'' => {
                let (text, rest) = name::unquote(&self.rest[1..], '\'')?;
                self.rest = rest;
                self.atom(&text)
            }
            '-' | '0'..='9' => self.number(),
            c if c.is_lowercase() => {
                let text = self.take_while(|c| c.is_alphanumeric() || "_@".contains(c));
                self.atom(text)
            }
            _ => None,
        }
    }

    fn atom(&mut self, text: &str) -> Option<()> {
        let size = u8::try_from(text.len()).ok()?;
        self.out.extend([tag::SMALL_ATOM_UTF8, size]);
        self.out.extend(text.as_bytes());
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let text = self.take_while(|c| c.is_ascii_digit() || "-+.e".contains(c));
        if text.contains('.') {
            let float: f64 = text.parse().ok()?;
            self.out.push(tag::NEW_FLOAT);
            self.out.extend(float.to_bits().to_be_bytes());
            return float.is_finite().then_some(());
        }
        let value: i128 = text.parse().ok()?;
        if let Ok(byte) = u8::try_from(value) {
            self.out.extend([tag::SMALL_INTEGER, byte]);
        } else if let Ok(integer) = i32::try_from(value) {
            self.out.push(tag::INTEGER);
            self.out.extend(integer.to_be_bytes());
        } else {
            let digits = value.unsigned_abs().to_le_bytes();
            let size = digits.iter().rposition(|digit| *digit != 0)? + 1;
            let (size_byte, sign) = (u8::try_from(size).ok()?, u8::from(value < 0));
            self.out.extend([tag::SMALL_BIG, size_byte, sign]);
            self.out.extend(&digits[..size]);
        }
        Some(())
    }

    /// Text between quotation marks.
    fn quoted(&mut self) -> Option<&'t str> {
        let (text, rest) = self.rest.strip_prefix('"')?.split_once('"')?;
        self.rest = rest;
        Some(text)
    }

    fn string(&mut self) -> Option<()> {
        let text = self.quoted().filter(|text| !text.is_empty())?;
        self.out.push(tag::STRING);
        self.out
            .extend(u16::try_from(text.len()).ok()?.to_be_bytes());
        self.out.extend(text.as_bytes());
        Some(())
    }

    fn binary(&mut self) -> Option<()> {
        self.takes("<<")?;
        let text = self.quoted().unwrap_or("");
        self.takes(">>")?;
        self.out.push(tag::BINARY);
        self.out
            .extend(u32::try_from(text.len()).ok()?.to_be_bytes());
        self.out.extend(text.as_bytes());
        Some(())
    }

    /// Elements between these, behind the number of them, which takes `width` bytes.
    fn row(
        &mut self,
        (tag, width): (u8, usize),
        (open, close): (&str, &str),
        element: impl Fn(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.takes(open)?;
        self.out.push(tag);
        let size_at = self.out.len();
        self.out.extend(std::iter::repeat_n(0, width));
        let mut size = 0u32;
        while self.takes(close).is_none() {
            if size > 0 {
                self.takes(",")?;
            }
            element(self)?;
            size += 1;
        }
        let bytes = size.to_be_bytes();
        let (high, low) = bytes.split_at(4 - width);
        self.out[size_at..size_at + width].copy_from_slice(low);
        high.iter().all(|byte| *byte == 0).then_some(())
    }

    fn list(&mut self, depth: u32) -> Option<()> {
        let begin = self.out.len();
        self.row((tag::LIST, 4), ("[", "]"), |r| r.term(depth + 1))?;
        if self.out[begin + 1..] == [0; 4] {
            self.out.truncate(begin);
        }
        self.out.push(tag::NIL);
        Some(())
    }

    fn decimal<T: FromStr>(&mut self) -> Option<T> {
        self.take_while(|c| c.is_ascii_digit()).parse().ok()
    }

    fn pid(&mut self) -> Option<()> {
        self.takes("<0.")?;
        let number: u32 = self.decimal()?;
        self.takes(".")?;
        let serial: u32 = self.decimal()?;
        self.takes(">")?;
        self.out.push(tag::NEW_PID);
        self.atom(NODE)?;
        self.out.extend(number.to_be_bytes());
        self.out.extend(serial.to_be_bytes());
        self.out.extend([0; 4]);
        Some(())
    }

    fn port(&mut self) -> Option<()> {
        self.takes("#Port<0.")?;
        let number: u64 = self.decimal()?;
        self.takes(">")?;
        self.out.push(tag::V4_PORT);
        self.atom(NODE)?;
        self.out.extend(number.to_be_bytes());
        self.out.extend([0; 4]);
        Some(())
    }
}
