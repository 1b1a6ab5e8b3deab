//! Equality of lists and tuples by recursion to a bounded depth: most terms that are compared are small,
//! and need no stack of pending work. Whatever is no list or tuple, or lies deeper, is left to
//! [`Equality`].

use super::Equality;
use crate::term::Term;

/// Levels compared by recursion; a list's tail is no level.
const LEVELS: u32 = 16;

/// Whether two terms, not both immediates, are equal.
#[inline]
pub(super) fn equal(a: Term<'_>, b: Term<'_>, exact: bool) -> bool {
    pair(a, b, exact, LEVELS)
}

#[inline]
fn element(a: Term<'_>, b: Term<'_>, exact: bool, levels: u32) -> bool {
    if a.same(b) {
        return true;
    }
    let (immed_a, immed_b) = (a.raw().is_immed(), b.raw().is_immed());
    // Numbers of two kinds can be equal, of which one is no immediate.
    if immed_a && immed_b || exact && (immed_a || immed_b) {
        return false;
    }
    pair(a, b, exact, levels)
}

fn pair(mut a: Term<'_>, mut b: Term<'_>, exact: bool, levels: u32) -> bool {
    if levels == 0 {
        return Equality::run(a, b, exact);
    }
    while let (Some(x), Some(y)) = (a.as_cons(), b.as_cons()) {
        if !element(x.head(), y.head(), exact, levels - 1) {
            return false;
        }
        (a, b) = (x.tail(), y.tail());
        if a.same(b) {
            return true;
        }
    }
    let (Some(x), Some(y)) = (a.as_tuple(), b.as_tuple()) else {
        return Equality::run(a, b, exact);
    };
    x.arity() == y.arity()
        && x.elements()
            .iter()
            .zip(y.elements())
            .all(|(a, b)| element(*a, *b, exact, levels - 1))
}
