//! File names between Erlang and the system: `prim_file:internal_name2native/1` and its like, and the
//! encoding they use. Source: `erl_unicode.c`, `erl_sys_common_misc.c`, OTP 29.

use std::sync::atomic::{AtomicU8, Ordering};

use unicode_normalization::UnicodeNormalization;

use crate::bif::{BifResult, badarg, bifs};
use crate::process::Process;
use crate::sys::locale;
use crate::term::{Term, View, am};
use crate::text::unicode;

bifs! {
    bif prim_file:"internal_name2native"/1 => internal_name2native_1;
    bif prim_file:"internal_native2name"/1 => internal_native2name_1;
    bif prim_file:"internal_normalize_utf8"/1 => internal_normalize_utf8_1;
    bif prim_file:"is_translatable"/1 => is_translatable_1;
    bif file:"native_name_encoding"/0 => native_name_encoding_0;
}

/// How names are encoded in the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameEncoding {
    /// One byte a character.
    Latin1,
    /// UTF-8.
    Utf8,
}

/// What to do with names that are not of the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untranslatable {
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
pub fn set_encoding(encoding: Option<NameEncoding>, untranslatable: Untranslatable) {
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
pub fn encoding() -> NameEncoding {
    match ENCODING.load(Ordering::Relaxed) {
        1 => NameEncoding::Latin1,
        2 => NameEncoding::Utf8,
        _ if locale::is_utf8() => NameEncoding::Utf8,
        _ => NameEncoding::Latin1,
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
pub(crate) fn name_of_native<'p>(p: &'p Process, bytes: &[u8]) -> Result<Term<'p>, ()> {
    match encoding() {
        NameEncoding::Latin1 => Ok(p.byte_list(bytes)),
        NameEncoding::Utf8 => std::str::from_utf8(bytes)
            .map(|s| p.string(s))
            .map_err(|_| ()),
    }
}

fn internal_name2native_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    if name.as_atom().is_some() {
        return Err(badarg());
    }
    let mut bytes = native_or_raw_name(name).ok_or_else(badarg)?;
    bytes.push(0);
    Ok(p.binary_from_vec(bytes))
}

fn internal_native2name_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let bytes = name.as_binary().ok_or_else(badarg)?.bytes();
    Ok(name_of_native(p, &bytes).unwrap_or_else(|()| {
        let kind = match UNTRANSLATABLE.load(Ordering::Relaxed) {
            0 => super::atom("ignore"),
            1 => super::atom("warning"),
            _ => am::error.term(),
        };
        super::error(p, kind)
    }))
}

/// A name in UTF-8, composed (NFC), as a string. Differs: ERTS composes by the table that macOS decomposed names
/// with when Unicode was at version 2; where that and Unicode's own composition are not the same (in Hebrew, the
/// Indic scripts and some Greek letters with accents), this is Unicode's.
fn internal_normalize_utf8_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let bytes = name.as_binary().ok_or_else(badarg)?.bytes();
    let text = std::str::from_utf8(&bytes).map_err(|_| badarg())?;
    let composed: Vec<_> = text
        .nfc()
        .map(|c| Term::small(i64::from(u32::from(c))))
        .collect();
    Ok(p.list(&composed))
}

fn is_translatable_1<'p>(_p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let bytes = name.as_binary().ok_or_else(badarg)?.bytes();
    let translatable = encoding() == NameEncoding::Latin1 || std::str::from_utf8(&bytes).is_ok();
    Ok(translatable.into())
}

fn native_name_encoding_0<'p>(_p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(match encoding() {
        NameEncoding::Latin1 => super::atom("latin1"),
        NameEncoding::Utf8 => super::atom("utf8"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_composed() {
        let p = &Process::new(233);
        let check = |name: &[u8], expected: Option<&str>| {
            let composed = internal_normalize_utf8_1(p, [p.binary(name)]).ok();
            let text = composed.map(|list| {
                let points = list.list_iter().flatten().filter_map(Term::as_small);
                let chars = points.filter_map(|c| char::from_u32(u32::try_from(c).ok()?));
                chars.collect::<String>()
            });
            assert_eq!(text.as_deref(), expected);
        };
        check(b"", Some(""));
        check("a\u{30a}b".as_bytes(), Some("\u{e5}b"));
        check("A\u{302}\u{300}".as_bytes(), Some("\u{1ea6}"));
        check(
            "\u{3042}\u{304b}\u{3099}".as_bytes(),
            Some("\u{3042}\u{304c}"),
        );
        check("\u{1f600}\u{301}".as_bytes(), Some("\u{1f600}\u{301}"));
        check(b"a\xff", None);
        assert!(internal_normalize_utf8_1(p, [am::ok.term()]).is_err());
    }
}
