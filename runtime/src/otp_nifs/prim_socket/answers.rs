//! What calls answer: terms, exceptions, and what ends a call early.

use super::names::{self, invalid};
use crate::bif::{BifResult, Raise};
use crate::heap::Heap;
use crate::otp_nifs::{error, posix_error};
use crate::term::atom::atom;
use crate::term::{Term, View, am};
use rustix::io::Errno;

/// What ends a call.
pub(super) enum End<'p> {
    /// An answer.
    Answer(Term<'p>),
    /// An exception.
    Raise(Raise<'p>),
}

impl<'p> From<Raise<'p>> for End<'p> {
    fn from(raise: Raise<'p>) -> Self {
        End::Raise(raise)
    }
}

/// The answer of a call, or what has ended it.
pub(super) type Done<'p, T = Term<'p>> = Result<T, End<'p>>;

/// The result of a call.
pub(super) fn result<'p>(done: Done<'p>) -> BifResult<'p> {
    match done {
        Ok(answer) | Err(End::Answer(answer)) => Ok(answer),
        Err(End::Raise(raise)) => Err(raise.into()),
    }
}

/// Ends a call with `{error, Posix}`.
pub(super) fn failed(p: &Heap, errno: Errno) -> End<'_> {
    End::Answer(posix_error(p, errno.raw_os_error()))
}

/// `ok`, or `{error, Posix}`.
pub(super) fn done<T>(p: &Heap, result: Result<T, Errno>) -> Done<'_> {
    match result {
        Ok(_) => Ok(am::ok.term()),
        Err(errno) => Err(failed(p, errno)),
    }
}

/// Ends a call with `{error, closed}`.
pub(super) fn closed(p: &Heap) -> End<'_> {
    End::Answer(error(p, names::closed()))
}

/// Ends a call with `{invalid, What}`.
pub(super) fn wrong<'p>(p: &'p Heap, what: Term<'p>) -> End<'p> {
    End::Answer(invalid(p, what))
}

/// Ends a call with `{error, {invalid, What}}`.
pub(super) fn error_invalid<'p>(p: &'p Heap, what: Term<'p>) -> End<'p> {
    End::Answer(error(p, invalid(p, what)))
}

/// Ends a call with the exception `{invalid, What}`.
pub(super) fn raise_invalid<'p>(p: &'p Heap, what: Term<'p>) -> End<'p> {
    End::Raise(Raise::Error(invalid(p, what)))
}

/// Ends a call with `badarg`.
pub(super) fn badarg<'p>() -> End<'p> {
    End::Raise(crate::bif::badarg())
}

fn is_integer(term: Term<'_>) -> bool {
    matches!(term.view(), View::Small(_) | View::Big(_))
}

/// A number of an argument, which `of` takes out; an integer that it does not take is out of range.
///
/// # Errors
/// `{invalid, {integer_range, Term}}`, or `badarg` for what is no integer.
pub(super) fn number<'p, T>(
    p: &'p Heap,
    term: Term<'p>,
    of: impl FnOnce(Term<'p>) -> Option<T>,
) -> Done<'p, T> {
    match of(term) {
        Some(number) => Ok(number),
        None if is_integer(term) => Err(wrong(p, p.tuple(&[atom("integer_range"), term]))),
        None => Err(badarg()),
    }
}

/// A C `int` of an argument.
///
/// # Errors
/// As [`number`].
pub(super) fn int<'p>(p: &'p Heap, term: Term<'p>) -> Done<'p, i32> {
    number(p, term, names::int)
}

/// A size of an argument.
///
/// # Errors
/// As [`number`].
pub(super) fn size<'p>(p: &'p Heap, term: Term<'p>) -> Done<'p, usize> {
    number(p, term, |term| {
        let size = usize::try_from(term.as_u64()?).ok()?;
        isize::try_from(size).ok().map(|_| size)
    })
}
