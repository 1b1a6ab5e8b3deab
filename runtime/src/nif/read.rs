//! Reads terms: their types, numbers, atoms, strings, tuples and lists; compares and hashes them.

use std::ffi::{c_char, c_double, c_int, c_long, c_uint, c_ulong};

use super::{Env, api, term};
use crate::heap::{Literals, size};
use crate::term::atom::{MAX_ATOM_CACHE_INDEX, atom_cache_index};
use crate::term::compare::{cmp, eq_exact};
use crate::term::{Atom, RawTerm, Term, View, hash};

/// How characters are written (`ErlNifCharEncoding`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Latin1,
    Utf8,
}

impl Encoding {
    pub(super) fn of(number: c_int) -> Option<Encoding> {
        match number {
            1 => Some(Encoding::Latin1),
            2 => Some(Encoding::Utf8),
            _ => None,
        }
    }

    /// The text as bytes; `None` if it has characters that the encoding lacks.
    fn bytes(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Encoding::Utf8 => Some(text.as_bytes().to_vec()),
            Encoding::Latin1 => text
                .chars()
                .map(|c| u8::try_from(u32::from(c)).ok())
                .collect(),
        }
    }
}

/// The types of terms (`ErlNifTermType`).
fn type_of(t: Term<'_>) -> c_int {
    match t.view() {
        View::Atom(_) => 1,
        View::Bits(_) => 2,
        View::Float(_) => 3,
        View::Fun(_) => 4,
        View::Small(_) | View::Big(_) => 5,
        View::Cons(_) | View::Nil => 6,
        View::Map(_) => 7,
        View::Pid(_) => 8,
        View::Port(_) => 9,
        View::Ref(_) => 10,
        View::External(external) => match external.kind() {
            crate::term::tag::EXTERNAL_PID => 8,
            crate::term::tag::EXTERNAL_PORT => 9,
            _ => 10,
        },
        View::Tuple(_) => 11,
        // ERTS has no number for these: its own function stops the machine.
        View::Record(_) => 11,
    }
}

/// Writes what `read` gives to `out`; whether there was something.
///
/// # Safety
/// NF1.
unsafe fn give<T>(out: *mut T, value: Option<T>) -> c_int {
    match value {
        Some(value) => {
            // SAFETY: by contract.
            unsafe { out.write(value) };
            1
        }
        None => 0,
    }
}

fn is(holds: bool) -> c_int {
    c_int::from(holds)
}

/// The characters of a string, each as one of `encoding` may be; `None` for what is no string.
fn characters(list: Term<'_>, encoding: Encoding) -> Option<Vec<char>> {
    let most = match encoding {
        Encoding::Latin1 => 0xff,
        Encoding::Utf8 => 0x10_ffff,
    };
    let character = |element: Result<Term<'_>, _>| {
        let code = element
            .ok()?
            .as_small()
            .filter(|n| (0..=most).contains(n))?;
        char::from_u32(code as u32)
    };
    list.list_iter().map(character).collect()
}

/// The bytes of the characters at the start of a list, up to what is none; whether the list ends there.
fn latin1_start(list: Term<'_>) -> (Vec<u8>, bool) {
    let (mut bytes, mut rest) = (Vec::new(), list);
    while let Some(cell) = rest.as_cons() {
        let Some(byte) = cell.head().as_small().and_then(|n| u8::try_from(n).ok()) else {
            return (bytes, false);
        };
        bytes.push(byte);
        rest = cell.tail();
    }
    (bytes, rest.is_nil())
}

/// Copies `bytes` and a zero to `buf`.
///
/// # Safety
/// NF1: there is room for them.
unsafe fn put_text(buf: *mut c_char, bytes: &[u8]) {
    // SAFETY: by contract.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), buf.cast(), bytes.len());
        *buf.add(bytes.len()) = 0;
    }
}

/// As many bytes of `text` as are whole characters and at most `most`.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// `enif_get_string()` of characters that may take several bytes.
///
/// # Safety
/// NF1: `len`, which is not 0, bytes are free at `buf`.
unsafe fn get_utf8(list: Term<'_>, buf: *mut c_char, len: usize) -> c_int {
    let characters = characters(list, Encoding::Utf8);
    let text = characters.map(String::from_iter);
    let whole = text.as_deref().unwrap_or_default();
    let cut = cut(whole, len - 1);
    // SAFETY: by contract.
    unsafe { put_text(buf, cut.as_bytes()) };
    let written = cut.len() as c_int + 1;
    match text {
        None => 0,
        Some(_) if cut.len() < whole.len() => -written,
        Some(_) => written,
    }
}

/// # Safety
/// NF1: `len`, which is not 0, bytes are free at `buf`.
unsafe fn get_latin1(list: Term<'_>, buf: *mut c_char, len: usize) -> c_int {
    let (bytes, is_string) = latin1_start(list);
    let is_cut = bytes.len() >= len;
    // SAFETY: by contract.
    unsafe { put_text(buf, &bytes[..bytes.len().min(len - 1)]) };
    match (is_cut, is_string) {
        (true, _) => -(len as c_int),
        (false, true) => bytes.len() as c_int + 1,
        (false, false) => 0,
    }
}

/// The bytes of an atom's name.
fn atom_text(t: RawTerm, encoding: c_int) -> Option<Vec<u8>> {
    // SAFETY: N1: only an atom is looked at, which is an immediate.
    let atom = unsafe { term(t) }.as_atom()?;
    Encoding::of(encoding)?.bytes(atom.name())
}

api! {
    /// Is it an atom?
    fn enif_is_atom(_env: *mut Env, t: RawTerm) -> c_int { is(term(t).as_atom().is_some()) }
    /// Is it a bitstring of whole bytes?
    fn enif_is_binary(_env: *mut Env, t: RawTerm) -> c_int { is(term(t).as_binary().is_some()) }
    /// Is it the empty list?
    fn enif_is_empty_list(_env: *mut Env, t: RawTerm) -> c_int { is(term(t).is_nil()) }
    /// Is it what an environment's exception is returned as?
    fn enif_is_exception(e: *mut Env, t: RawTerm) -> c_int {
        is(super::env(e).exception.get() != RawTerm::NONE && t == RawTerm::NONE)
    }
    /// Is it a fun?
    fn enif_is_fun(_env: *mut Env, t: RawTerm) -> c_int { is(type_of(term(t)) == 4) }
    /// Are they the same, exactly?
    fn enif_is_identical(a: RawTerm, b: RawTerm) -> c_int { is(eq_exact(term(a), term(b))) }
    /// Is it a list cell or the empty list?
    fn enif_is_list(_env: *mut Env, t: RawTerm) -> c_int { is(type_of(term(t)) == 6) }
    /// Is it a map?
    fn enif_is_map(_env: *mut Env, t: RawTerm) -> c_int { is(term(t).as_map().is_some()) }
    /// Is it an integer or a float?
    fn enif_is_number(_env: *mut Env, t: RawTerm) -> c_int { is([3, 5].contains(&type_of(term(t)))) }
    /// Is it a pid?
    fn enif_is_pid(_env: *mut Env, t: RawTerm) -> c_int { is(type_of(term(t)) == 8) }
    /// Is it a port?
    fn enif_is_port(_env: *mut Env, t: RawTerm) -> c_int { is(type_of(term(t)) == 9) }
    /// Is it a reference?
    fn enif_is_ref(_env: *mut Env, t: RawTerm) -> c_int { is(type_of(term(t)) == 10) }
    /// Is it a tuple?
    fn enif_is_tuple(_env: *mut Env, t: RawTerm) -> c_int { is(term(t).as_tuple().is_some()) }
    /// Its type.
    fn enif_term_type(_env: *mut Env, t: RawTerm) -> c_int { type_of(term(t)) }
    /// Bytes that it takes on a heap.
    fn enif_term_size(t: RawTerm) -> usize { size(term(t), Literals::Count) * 8 }

    /// The order of two terms: -1, 0 or 1.
    fn enif_compare(a: RawTerm, b: RawTerm) -> c_int { cmp(term(a), term(b)) as c_int }
    /// A hash: 1 for one of this run, with a salt; 2 for `erlang:phash2/1`.
    fn enif_hash(kind: c_int, t: RawTerm, salt: u64) -> u64 {
        match kind {
            1 => hash::salted_hash(term(t), salt),
            2 => u64::from(hash::phash2(term(t)) & ((1 << 27) - 1)),
            _ => 0,
        }
    }

    /// A C `int`.
    fn enif_get_int(_env: *mut Env, t: RawTerm, out: *mut c_int) -> c_int {
        give(out, term(t).as_i64().and_then(|n| n.try_into().ok()))
    }
    /// A C `unsigned`.
    fn enif_get_uint(_env: *mut Env, t: RawTerm, out: *mut c_uint) -> c_int {
        give(out, term(t).as_u64().and_then(|n| n.try_into().ok()))
    }
    /// A C `long`.
    fn enif_get_long(_env: *mut Env, t: RawTerm, out: *mut c_long) -> c_int { give(out, term(t).as_i64()) }
    /// A C `unsigned long`.
    fn enif_get_ulong(_env: *mut Env, t: RawTerm, out: *mut c_ulong) -> c_int { give(out, term(t).as_u64()) }
    /// A float.
    fn enif_get_double(_env: *mut Env, t: RawTerm, out: *mut c_double) -> c_int {
        give(out, match term(t).view() { View::Float(value) => Some(value), _ => None })
    }

    /// An atom's name with a zero behind it; how many bytes that are.
    fn enif_get_atom(_env: *mut Env, t: RawTerm, buf: *mut c_char, len: c_uint, encoding: c_int) -> c_int {
        let Some(text) = atom_text(t, encoding).filter(|text| text.len() < len as usize) else {
            return 0;
        };
        put_text(buf, &text);
        text.len() as c_int + 1
    }
    /// Bytes of an atom's name.
    fn enif_get_atom_length(_env: *mut Env, t: RawTerm, len: *mut c_uint, encoding: c_int) -> c_int {
        give(len, atom_text(t, encoding).map(|text| text.len() as c_uint))
    }
    /// Where an atom is in the cache of a connection to another node.
    fn enif_get_atom_cache_index(_env: *mut Env, t: RawTerm, index: *mut c_uint) -> c_int {
        give(index, term(t).as_atom().map(atom_cache_index))
    }
    /// The highest of such places.
    fn enif_max_atom_cache_index() -> c_uint { MAX_ATOM_CACHE_INDEX }

    /// A string with a zero behind it; how many bytes that are, as a negative number if it is cut.
    fn enif_get_string(_env: *mut Env, list: RawTerm, buf: *mut c_char, len: c_uint, encoding: c_int) -> c_int {
        match Encoding::of(encoding).filter(|_| len > 0) {
            Some(Encoding::Latin1) => get_latin1(term(list), buf, len as usize),
            Some(Encoding::Utf8) => get_utf8(term(list), buf, len as usize),
            None => 0,
        }
    }
    /// Bytes of a string.
    fn enif_get_string_length(_env: *mut Env, list: RawTerm, len: *mut c_uint, encoding: c_int) -> c_int {
        let Some(encoding) = Encoding::of(encoding) else { return 0 };
        let text = characters(term(list), encoding);
        give(len, text.map(|text| match encoding {
            Encoding::Latin1 => text.len() as c_uint,
            Encoding::Utf8 => text.iter().map(|c| c.len_utf8() as c_uint).sum(),
        }))
    }

    /// Head and tail of a list's first cell.
    fn enif_get_list_cell(_env: *mut Env, t: RawTerm, head: *mut RawTerm, tail: *mut RawTerm) -> c_int {
        let Some(cell) = term(t).as_cons() else { return 0 };
        head.write(cell.head().raw());
        tail.write(cell.tail().raw());
        1
    }
    /// Elements of a proper list.
    fn enif_get_list_length(_env: *mut Env, t: RawTerm, len: *mut c_uint) -> c_int {
        let mut n = 0;
        let is_proper = term(t).list_iter().all(|element| { n += 1; element.is_ok() });
        give(len, is_proper.then_some(n))
    }
    /// A tuple's elements.
    fn enif_get_tuple(_env: *mut Env, t: RawTerm, arity: *mut c_int, array: *mut *const RawTerm) -> c_int {
        let Some(tuple) = term(t).as_tuple() else { return 0 };
        arity.write(tuple.arity() as c_int);
        array.write(tuple.elements().as_ptr().cast());
        1
    }
}

/// An atom by its name, in an encoding: one that is there, or a new one.
///
/// # Safety
/// NF1: `len` bytes are at `name`.
pub(super) unsafe fn atom_of(
    name: *const c_char,
    len: usize,
    encoding: Encoding,
    must_exist: bool,
) -> Option<Atom> {
    // SAFETY: by contract.
    let bytes = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), len) };
    let text: String = match encoding {
        Encoding::Latin1 => bytes.iter().map(|byte| char::from(*byte)).collect(),
        Encoding::Utf8 => std::str::from_utf8(bytes).ok()?.to_owned(),
    };
    if text.chars().count() > crate::term::atom::MAX_ATOM_CHARS {
        return None;
    }
    match must_exist {
        true => Atom::existing(&text),
        false => Some(Atom::new(&text)),
    }
}
