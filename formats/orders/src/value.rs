//! The values of answers: terms in the external term format. They are written as Erlang writes them where that reads
//! back to the byte, and else in hexadecimal digits behind `#`.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::literal;

/// What a native function has answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// An integer of 64 bits.
    Integer(i64),
    /// Any other term, in the external term format, without the byte that tells its version.
    Term(Box<[u8]>),
}

/// Values of more bytes are written in digits.
const SHORT_BYTES: usize = 400;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = match self {
            Value::Integer(integer) => return write!(f, "{integer}"),
            Value::Term(bytes) => bytes,
        };
        let written = (bytes.len() <= SHORT_BYTES)
            .then(|| literal::written(bytes))
            .flatten();
        if let Some(written) = written.filter(|text| text.parse().as_ref() == Ok(self)) {
            return f.write_str(&written);
        }
        f.write_char('#')?;
        bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Value {
    type Err = ();

    /// Reads what [`Value`] displays, also with spaces where Erlang allows them.
    fn from_str(text: &str) -> Result<Value, ()> {
        match Value::read(text.trim_start()) {
            Some((value, rest)) if rest.trim_start().is_empty() => Ok(value),
            _ => Err(()),
        }
    }
}

impl Value {
    /// Reads the value at the beginning of a text; what stands behind it.
    pub(super) fn read(text: &str) -> Option<(Value, &str)> {
        let is_term = ["#{", "#Port"].iter().any(|begin| text.starts_with(begin));
        if let Some(digits) = text.strip_prefix('#').filter(|_| !is_term) {
            let end = digits.find(|c: char| !c.is_ascii_hexdigit());
            let (digits, rest) = digits.split_at(end.unwrap_or(digits.len()));
            return Some((Value::Term(bytes(digits)?), rest));
        }
        let (bytes, rest) = literal::read(text)?;
        Some((Value::of(bytes), rest))
    }

    /// The value of a term as [`literal`] reads it.
    fn of(bytes: Vec<u8>) -> Value {
        match literal::integer(&bytes).and_then(|value| i64::try_from(value).ok()) {
            Some(integer) => Value::Integer(integer),
            None => Value::Term(bytes.into()),
        }
    }
}

fn bytes(digits: &str) -> Option<Box<[u8]>> {
    let is_whole = !digits.is_empty() && digits.len().is_multiple_of(2);
    let pairs = (0..digits.len()).step_by(2).filter(|_| is_whole);
    let bytes: Option<Vec<u8>> = pairs
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect();
    bytes.filter(|_| is_whole).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(bytes: &[u8]) -> Value {
        Value::Term(bytes.into())
    }

    #[test]
    fn terms_are_written_as_erlang_writes_them() {
        for (value, text) in [
            (Value::Integer(-5), "-5"),
            (
                Value::Integer(170_000_000_000_000_000),
                "170000000000000000",
            ),
            (term(b"w\x02ok"), "ok"),
            (term(b"w\x09Elixir.Me"), "'Elixir.Me'"),
            (term(b"h\x03a\x01b\xff\xff\xff\xffj"), "{1, -1, []}"),
            (term(b"k\0\x02hi"), "\"hi\""),
            (term(b"k\0\x02\0\x01"), "#6b00020001"),
            (term(b"m\0\0\0\x02hi"), "<<\"hi\">>"),
            (term(b"m\0\0\0\0"), "<<>>"),
            (term(b"t\0\0\0\x01w\x01aj"), "#{a => []}"),
            (term(b"l\0\0\0\x01w\x01aj"), "[a]"),
            (term(b"l\0\0\0\x01w\x01aw\x01b"), "#6c00000001770161770162"),
            (term(b"F?\xf8\0\0\0\0\0\0"), "1.5"),
            (term(b"n\x08\0\0\0\0\0\0\0\0\x80"), "9223372036854775808"),
            (
                term(b"Xw\x0dnonode@nohost\0\0\0U\0\0\0\0\0\0\0\0"),
                "<0.85.0>",
            ),
            (
                term(b"xw\x0dnonode@nohost\0\0\0\0\0\0\0\x05\0\0\0\0"),
                "#Port<0.5>",
            ),
        ] {
            let written = value.to_string();
            assert_eq!(written.parse(), Ok(value), "{text}");
            assert_eq!(written, text);
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for text in [
            "", "#", "#0", "#zz", "{1", "[1 2]", "\"a", "<<1>>", "<0.1>", "Var", "1 2", "1.0e999",
        ] {
            assert_eq!(text.parse::<Value>(), Err(()), "{text}");
        }
        assert_eq!("[".repeat(1000).parse::<Value>(), Err(()));
        assert_eq!(
            "{ a , <<\"b\">> } ".parse(),
            Ok(term(b"h\x02w\x01am\0\0\0\x01b"))
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_as_they_are_written(
            bytes in proptest::collection::vec(0..=255u8, 1..40),
        ) {
            let value = term(&bytes);
            proptest::prop_assert_eq!(value.to_string().parse(), Ok(value));
        }
    }
}
