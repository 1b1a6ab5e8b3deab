//! Native functions of OTP's own modules: those that ERTS links in as NIFs (`prim_file`, `prim_buffer`, `prim_tty`,
//! `zlib`, `zstd`, ...), and part of `crypto`. They are rows of the BIF table. The loader gives a module's function the
//! native body where the table has one, so that `erlang:load_nif/2` has nothing left to do.
//!
//! The objects behind the references that these functions return are magic binaries.

mod cipher;
mod crypto;
mod digest;
mod erl_tracer;
mod load_nif;
pub(crate) mod names;
pub(crate) mod prim_buffer;
pub(crate) mod prim_file;
mod prim_net;
mod prim_socket;
pub(crate) mod prim_tty;
mod terminfo;
mod zlib;
mod zstd;

use crate::bif::{Bif, Raise, badarg};
use crate::heap::{Heap, MagicBinary};
use crate::process::refs::make_ref;
use crate::sys::errno;
use crate::term::atom::atom;
use crate::term::{Bits, Term, View, am};

/// The tables of what OTP has in BIFs.
pub(crate) const BIFS: &[&[Bif]] = &[load_nif::TABLE, names::TABLE];

/// The tables of what OTP has in NIFs.
pub(crate) const NIFS: &[&[Bif]] = &[
    cipher::TABLE,
    crypto::TABLE,
    erl_tracer::TABLE,
    prim_buffer::TABLE,
    prim_file::TABLE,
    prim_net::TABLE,
    prim_socket::TABLE,
    prim_tty::TABLE,
    zlib::TABLE,
    zstd::TABLE,
];

/// Buffers that one call takes from an I/O vector: `enif_inspect_iovec`'s bound in ERTS's own NIFs.
const IOVEC_MAX: usize = 64;

/// `{ok, Value}`.
pub(crate) fn ok<'p>(p: &'p Heap, value: Term<'p>) -> Term<'p> {
    p.tuple(&[am::ok.term(), value])
}

/// `{error, Reason}`.
pub(crate) fn error<'p>(p: &'p Heap, reason: Term<'p>) -> Term<'p> {
    p.tuple(&[am::error.term(), reason])
}

/// `{error, Posix}` for error number `errno`.
pub(crate) fn posix_error(p: &Heap, errno: i32) -> Term<'_> {
    error(p, atom(errno::errno_name(errno)))
}

/// A new reference to `object`.
pub(crate) fn new_object<T: Send + Sync + 'static>(p: &Heap, object: T) -> Term<'_> {
    p.magic_reference(MagicBinary::new(make_ref(), Box::new(object)))
}

/// The object of type `T` behind a reference.
///
/// # Errors
/// `badarg` when the term is no reference to a `T`.
pub(crate) fn object<'h, T: 'static>(t: Term<'h>) -> Result<&'h T, Raise<'static>> {
    t.as_ref()
        .and_then(|r| r.magic())
        .and_then(|magic| magic.get::<T>())
        .ok_or_else(badarg)
}

/// A signed 64-bit integer.
pub(crate) fn int64(t: Term<'_>) -> Option<i64> {
    t.as_i64()
}

/// An unsigned 64-bit integer.
pub(crate) fn uint64(t: Term<'_>) -> Option<u64> {
    t.as_u64()
}

/// A C `int`, or `badarg`.
pub(crate) fn int(t: Term<'_>) -> Result<i32, Raise<'static>> {
    t.as_small()
        .and_then(|n| i32::try_from(n).ok())
        .ok_or_else(badarg)
}

/// An integer or a float.
pub(crate) fn is_number(t: Term<'_>) -> bool {
    matches!(t.view(), View::Small(_) | View::Big(_) | View::Float(_))
}

/// The first binaries of an I/O vector (at most 64), and the rest of the list.
///
/// # Errors
/// `badarg` for what is no list of binaries.
pub(crate) fn inspect_iovec(list: Term<'_>) -> Result<(Vec<Bits<'_>>, Term<'_>), Raise<'static>> {
    let mut buffers = Vec::new();
    let mut rest = list;
    while buffers.len() < IOVEC_MAX {
        match rest.view() {
            View::Cons(cell) => {
                buffers.push(cell.head().as_binary().ok_or_else(badarg)?);
                rest = cell.tail();
            }
            View::Nil => break,
            _ => return Err(badarg()),
        }
    }
    Ok((buffers, rest))
}

/// `{error, Posix}` for an I/O error.
pub(crate) fn io_error<'p>(p: &'p Heap, e: &std::io::Error) -> Term<'p> {
    error(p, atom(errno::name_of(e)))
}
