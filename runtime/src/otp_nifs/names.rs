//! Converts file names between Erlang and the system: `prim_file:internal_name2native/1` and its like, and the encoding
//! they use. Source: `erl_unicode.c`, `erl_sys_common_misc.c`, OTP 29.

use unicode_normalization::UnicodeNormalization;

use crate::bif::{BifResult, badarg, bifs};
use crate::process::Process;
use crate::term::{Term, am};
use crate::value::file_name::{
    NameEncoding, Untranslatable, encoding, name_of_native, native_or_raw_name, untranslatable,
};

bifs! {
    all own;
    bif prim_file:"internal_name2native"/1 => internal_name2native_1;
    bif prim_file:"internal_native2name"/1 => internal_native2name_1;
    bif prim_file:"internal_normalize_utf8"/1 => internal_normalize_utf8_1;
    bif prim_file:"is_translatable"/1 => is_translatable_1;
    bif file:"native_name_encoding"/0 => native_name_encoding_0;
}

fn internal_name2native_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    if name.as_atom().is_some() {
        return Err(badarg().into());
    }
    let mut bytes = native_or_raw_name(name).ok_or_else(badarg)?;
    bytes.push(0);
    Ok(p.binary_from_vec(bytes))
}

fn internal_native2name_1<'p>(p: &'p Process, [name]: [Term<'p>; 1]) -> BifResult<'p> {
    let bytes = name.as_binary().ok_or_else(badarg)?.bytes();
    Ok(name_of_native(p, &bytes).unwrap_or_else(|()| {
        let kind = match untranslatable() {
            Untranslatable::Ignore => super::atom("ignore"),
            Untranslatable::Warn => super::atom("warning"),
            Untranslatable::Error => am::error.term(),
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
