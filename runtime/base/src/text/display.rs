//! Prints atoms, strings and numbers as the emulator itself does (`erlang:display`, crash dumps).
//!
//! `io_lib`, whose code comes from OTP's own libraries, prints differently.
//! Source: `erl_printf_term.c`, OTP 29.

pub use crate::num::float::push_float;
use crate::num::limbs::IntRef;
use crate::text::unicode::push_utf8;

/// Whether a character is a lower-case letter of Latin-1.
fn is_lower(c: char) -> bool {
    matches!(c, 'a'..='z' | '\u{df}'..='\u{ff}') && c != '\u{f7}'
}

/// Whether a character is an upper-case letter of Latin-1.
///
/// The bounds are the emulator's own: 215 is the sign of multiplication.
fn is_upper(c: char) -> bool {
    matches!(c, 'A'..='Z' | '\u{c0}'..='\u{de}') && c != '\u{d7}'
}

/// Whether an atom of this name is written between single quotes.
#[must_use]
pub(crate) fn atom_needs_quotes(name: &str) -> bool {
    let mut chars = name.chars();
    let first_is_lower = chars.next().is_some_and(is_lower);
    let plain = |c: char| c.is_ascii_digit() || is_lower(c) || is_upper(c) || c == '_';
    !(first_is_lower && chars.all(plain))
}

/// Appends an atom, quoted if it needs to be.
pub fn push_atom(name: &str, out: &mut Vec<u8>) {
    let quotes = atom_needs_quotes(name);
    if quotes {
        out.push(b'\'');
    }
    for c in name.chars() {
        match c {
            '\'' => out.extend(b"\\'"),
            '\\' => out.extend(b"\\\\"),
            '\n' => out.extend(b"\\n"),
            '\x0c' => out.extend(b"\\f"),
            '\t' => out.extend(b"\\t"),
            '\r' => out.extend(b"\\r"),
            '\x08' => out.extend(b"\\b"),
            '\x0b' => out.extend(b"\\v"),
            '\0'..'\x20' | '\u{80}'..'\u{a0}' => {
                out.extend(format!("\\{:03o}", u32::from(c)).bytes());
            }
            _ => push_utf8(c, out),
        }
    }
    if quotes {
        out.push(b'\'');
    }
}

/// Whether a byte may be part of a list that is printed as a string: what Latin-1 shows,
/// and space, tab, line feed and carriage return.
#[inline]
#[must_use]
pub fn is_string_byte(byte: u8) -> bool {
    matches!(byte, b' '..=126 | 160.. | b'\n' | b'\t' | b'\r')
}

/// Appends a list of printable bytes as a string. The bytes stay Latin-1.
pub fn push_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'\n' => out.extend(b"\\n"),
            b'"' => out.extend(b"\\\""),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Appends an integer in decimal.
pub fn push_integer(value: IntRef<'_>, out: &mut Vec<u8>) {
    value.push_digits(10, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoms() {
        for (name, want) in [
            ("", "''"),
            ("ok", "ok"),
            ("a1_B", "a1_B"),
            ("a@b", "'a@b'"),
            ("Abc", "'Abc'"),
            ("_a", "'_a'"),
            ("1a", "'1a'"),
            ("åäö", "åäö"),
            ("aÅ", "aÅ"),
            ("a×", "'a×'"),
            ("÷", "'÷'"),
            ("ß", "ß"),
            ("€", "'€'"),
            ("don't", "'don\\'t'"),
            ("a\\b", "'a\\\\b'"),
            ("a\nb\u{7f}\x01\u{85}", "'a\\nb\u{7f}\\001\\205'"),
        ] {
            let mut out = Vec::new();
            push_atom(name, &mut out);
            assert_eq!(String::from_utf8(out).expect("UTF-8"), want, "{name:?}");
        }
    }

    #[test]
    fn strings() {
        let mut out = Vec::new();
        push_string(b"a\"b\nc\\\td", &mut out);
        assert_eq!(out, b"\"a\\\"b\\nc\\\td\"");
        let printable: Vec<u8> = (0..=255).filter(|&b| is_string_byte(b)).collect();
        assert_eq!(printable.len(), 3 + 95 + 96);
        assert!(!is_string_byte(127) && !is_string_byte(159) && is_string_byte(160));
    }

    #[test]
    fn numbers() {
        let mut out = Vec::new();
        push_float(-0.1, &mut out);
        out.push(b' ');
        push_integer(crate::num::limbs::Int::from(-12i64).as_ref(), &mut out);
        assert_eq!(out, b"-1.000000e-01 -12");
    }
}
