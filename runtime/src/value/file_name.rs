//! Converts names of files and of variables of the environment from terms to bytes, and back. Source: `erl_unicode.c`,
//! `erl_sys_common_misc.c`, OTP 29.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::heap::Heap;
use crate::sys::locale;
use crate::term::{Term, View};
use crate::text::unicode;

/// How names are encoded in the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameEncoding {
    /// One byte a character.
    Latin1,
    /// UTF-8.
    Utf8,
}

/// What to do with names that are not of the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Untranslatable {
    /// Leave them out.
    Ignore,
    /// Leave them out and log a warning.
    Warn,
    /// Fail.
    Error,
}

/// 0: ask the locale; else 1 + the encoding (`+fn`).
static ENCODING: AtomicU8 = AtomicU8::new(0);
static UNTRANSLATABLE: AtomicU8 = AtomicU8::new(1);

/// Sets the encoding (`+fnl`, `+fnu`; `None` is `+fna`) and the treatment of other names.
pub(crate) fn set_encoding(encoding: Option<NameEncoding>, untranslatable: Untranslatable) {
    let encoding = match encoding {
        None => 0,
        Some(NameEncoding::Latin1) => 1,
        Some(NameEncoding::Utf8) => 2,
    };
    ENCODING.store(encoding, Ordering::Relaxed);
    let untranslatable = match untranslatable {
        Untranslatable::Ignore => 0,
        Untranslatable::Warn => 1,
        Untranslatable::Error => 2,
    };
    UNTRANSLATABLE.store(untranslatable, Ordering::Relaxed);
}

/// The encoding of names in the file system.
#[must_use]
pub(crate) fn encoding() -> NameEncoding {
    match ENCODING.load(Ordering::Relaxed) {
        1 => NameEncoding::Latin1,
        2 => NameEncoding::Utf8,
        _ if locale::is_utf8() => NameEncoding::Utf8,
        _ => NameEncoding::Latin1,
    }
}

/// What to do with names that are not of the encoding.
#[must_use]
pub(crate) fn untranslatable() -> Untranslatable {
    match UNTRANSLATABLE.load(Ordering::Relaxed) {
        0 => Untranslatable::Ignore,
        1 => Untranslatable::Warn,
        _ => Untranslatable::Error,
    }
}

/// The bytes of a name given as an atom, or as a list of characters that may be nested: in
/// `encoding`, without a terminator. `None` for what is no name.
pub(crate) fn native_name(name: Term<'_>, encoding: NameEncoding) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    if let Some(atom) = name.as_atom() {
        for c in atom.name().chars() {
            push_char(u32::from(c), encoding, &mut out)?;
        }
        return Some(out);
    }
    let mut rest = vec![name];
    while let Some(list) = rest.pop() {
        match list.view() {
            View::Nil => {}
            View::Cons(cell) => {
                rest.push(cell.tail());
                match cell.head().view() {
                    View::Small(c) => push_char(u32::try_from(c).ok()?, encoding, &mut out)?,
                    View::Nil | View::Cons(_) => rest.push(cell.head()),
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
    Some(out)
}

/// As [`native_name`], and binaries as they are, if no byte of them is zero.
pub(crate) fn native_or_raw_name(name: Term<'_>) -> Option<Vec<u8>> {
    match name.as_bits() {
        Some(bits) if bits.bit_len() % 8 == 0 => {
            let bytes = bits.bytes().into_owned();
            (!bytes.contains(&0)).then_some(bytes)
        }
        Some(_) => None,
        None => native_name(name, encoding()),
    }
}

fn push_char(c: u32, encoding: NameEncoding, out: &mut Vec<u8>) -> Option<()> {
    if c == 0 {
        return None;
    }
    match encoding {
        NameEncoding::Latin1 => out.push(u8::try_from(c).ok()?),
        NameEncoding::Utf8 => unicode::push_utf8(char::from_u32(c)?, out),
    }
    Some(())
}

/// The name that native bytes are, as a string; `Err` where they are not of the encoding.
pub(crate) fn name_of_native<'p>(p: &'p Heap, bytes: &[u8]) -> Result<Term<'p>, ()> {
    match encoding() {
        NameEncoding::Latin1 => Ok(p.byte_list(bytes)),
        NameEncoding::Utf8 => std::str::from_utf8(bytes)
            .map(|s| p.string(s))
            .map_err(|_| ()),
    }
}

/// The bytes of a value given as a string.
pub(crate) fn native_value(value: Term<'_>) -> Option<Vec<u8>> {
    match value.view() {
        View::Nil | View::Cons(_) => native_name(value, encoding()),
        _ => None,
    }
}

/// The bytes of a variable's name: a string without `=`.
pub(crate) fn native_key(key: Term<'_>) -> Option<Vec<u8>> {
    native_value(key).filter(|key| !key.contains(&b'='))
}
