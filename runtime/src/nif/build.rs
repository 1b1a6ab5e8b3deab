//! Makes terms: numbers, atoms, strings, tuples, lists, references; raises exceptions.

use std::ffi::{c_char, c_double, c_int, c_long, c_uint, c_ulong};

use super::read::{Encoding, atom_of};
use super::{Env, api, env, term};
use crate::process::refs;
use crate::term::{Atom, RawTerm, Term, am};

/// Terms in an array of a library's.
///
/// # Safety
/// N1, NF1.
unsafe fn terms<'a>(array: *const RawTerm, count: c_uint) -> &'a [Term<'a>] {
    match count {
        0 => &[],
        // SAFETY: by contract; a term is a word.
        _ => unsafe { std::slice::from_raw_parts(array.cast(), count as usize) },
    }
}

/// Bytes before the zero.
///
/// # Safety
/// NF1.
unsafe fn length(text: *const c_char) -> usize {
    // SAFETY: by contract.
    unsafe { libc::strlen(text) }
}

/// A string of the characters that `bytes` are; `badarg` for what is no text.
fn string(env: &Env, bytes: &[u8], encoding: c_int) -> RawTerm {
    match Encoding::of(encoding) {
        Some(Encoding::Latin1) => env.heap().byte_list(bytes).raw(),
        Some(Encoding::Utf8) => match std::str::from_utf8(bytes) {
            Ok(text) => env.heap().string(text).raw(),
            Err(_) => raise(env, am::badarg.raw()),
        },
        None => raise(env, am::badarg.raw()),
    }
}

/// Raises `error:reason` when the call ends.
pub(super) fn raise(env: &Env, reason: RawTerm) -> RawTerm {
    env.exception.set(reason);
    RawTerm::NONE
}

/// The atom with a name in Latin-1; `badarg` where it is too long.
///
/// # Safety
/// NF1.
unsafe fn latin1_atom(env: &Env, name: *const c_char, len: usize) -> RawTerm {
    // SAFETY: by contract.
    match unsafe { atom_of(name, len, Encoding::Latin1, false) } {
        Some(atom) => atom.raw(),
        None => raise(env, am::badarg.raw()),
    }
}

/// Writes the atom of that name to `out`, if it may be or is there.
///
/// # Safety
/// NF1.
unsafe fn give_atom(
    out: *mut RawTerm,
    name: *const c_char,
    len: usize,
    encoding: c_int,
    must_exist: bool,
) -> c_int {
    // SAFETY: by contract.
    unsafe {
        let atom = Encoding::of(encoding).and_then(|it| atom_of(name, len, it, must_exist));
        let Some(atom) = atom else { return 0 };
        out.write(Atom::raw(atom));
    }
    1
}

api! {
    /// An integer.
    fn enif_make_int(e: *mut Env, n: c_int) -> RawTerm { env(e).heap().integer(n.into()).raw() }
    /// An integer.
    fn enif_make_uint(e: *mut Env, n: c_uint) -> RawTerm { env(e).heap().unsigned(n.into()).raw() }
    /// An integer.
    fn enif_make_long(e: *mut Env, n: c_long) -> RawTerm { env(e).heap().integer(n).raw() }
    /// An integer.
    fn enif_make_ulong(e: *mut Env, n: c_ulong) -> RawTerm { env(e).heap().unsigned(n).raw() }
    /// A float; `badarg` for what no float of Erlang is.
    fn enif_make_double(e: *mut Env, value: c_double) -> RawTerm {
        match value.is_finite() {
            true => env(e).heap().float(value).raw(),
            false => raise(env(e), am::badarg.raw()),
        }
    }

    /// An atom with a name in Latin-1.
    fn enif_make_atom(e: *mut Env, name: *const c_char) -> RawTerm { latin1_atom(env(e), name, length(name)) }
    /// An atom with a name of `len` bytes in Latin-1.
    fn enif_make_atom_len(e: *mut Env, name: *const c_char, len: usize) -> RawTerm {
        latin1_atom(env(e), name, len)
    }
    /// An atom that is there already.
    fn enif_make_existing_atom(_e: *mut Env, name: *const c_char, out: *mut RawTerm, encoding: c_int) -> c_int {
        give_atom(out, name, length(name), encoding, true)
    }
    /// An atom that is there already, with a name of `len` bytes.
    fn enif_make_existing_atom_len(
        _e: *mut Env, name: *const c_char, len: usize, out: *mut RawTerm, encoding: c_int,
    ) -> c_int {
        give_atom(out, name, len, encoding, true)
    }
    /// An atom.
    fn enif_make_new_atom(_e: *mut Env, name: *const c_char, out: *mut RawTerm, encoding: c_int) -> c_int {
        give_atom(out, name, length(name), encoding, false)
    }
    /// An atom with a name of `len` bytes.
    fn enif_make_new_atom_len(
        _e: *mut Env, name: *const c_char, len: usize, out: *mut RawTerm, encoding: c_int,
    ) -> c_int {
        give_atom(out, name, len, encoding, false)
    }

    /// A string.
    fn enif_make_string(e: *mut Env, text: *const c_char, encoding: c_int) -> RawTerm {
        string(env(e), std::slice::from_raw_parts(text.cast(), length(text)), encoding)
    }
    /// A string of `len` bytes.
    fn enif_make_string_len(e: *mut Env, text: *const c_char, len: usize, encoding: c_int) -> RawTerm {
        let bytes = match len {
            0 => &[],
            _ => std::slice::from_raw_parts(text.cast(), len),
        };
        string(env(e), bytes, encoding)
    }

    /// A tuple.
    fn enif_make_tuple_from_array(e: *mut Env, array: *const RawTerm, count: c_uint) -> RawTerm {
        env(e).heap().tuple(terms(array, count)).raw()
    }
    /// A list.
    fn enif_make_list_from_array(e: *mut Env, array: *const RawTerm, count: c_uint) -> RawTerm {
        env(e).heap().list(terms(array, count)).raw()
    }
    /// A list cell.
    fn enif_make_list_cell(e: *mut Env, head: RawTerm, tail: RawTerm) -> RawTerm {
        env(e).heap().cons(term(head), term(tail)).raw()
    }
    /// A proper list the other way round.
    fn enif_make_reverse_list(e: *mut Env, list: RawTerm, out: *mut RawTerm) -> c_int {
        let (heap, mut reversed) = (env(e).heap(), Term::NIL);
        for element in term(list).list_iter() {
            let Ok(element) = element else { return 0 };
            reversed = heap.cons(element, reversed);
        }
        out.write(reversed.raw());
        1
    }

    /// A new reference.
    fn enif_make_ref(e: *mut Env) -> RawTerm { env(e).heap().reference(refs::make_ref()).raw() }
    /// A copy of a term of another environment.
    fn enif_make_copy(e: *mut Env, t: RawTerm) -> RawTerm { env(e).heap().copy_in_all(term(t)).raw() }

    /// Raises `error:badarg`.
    fn enif_make_badarg(e: *mut Env) -> RawTerm { raise(env(e), am::badarg.raw()) }
    /// Raises `error:Reason`.
    fn enif_raise_exception(e: *mut Env, reason: RawTerm) -> RawTerm { raise(env(e), reason) }
    /// Whether an exception has been raised, and with what reason.
    fn enif_has_pending_exception(e: *mut Env, reason: *mut RawTerm) -> c_int {
        let exception = env(e).exception.get();
        if exception == RawTerm::NONE {
            return 0;
        }
        if !reason.is_null() {
            reason.write(exception);
        }
        1
    }
}
