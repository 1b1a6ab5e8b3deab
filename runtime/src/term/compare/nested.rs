//! Compares lists and tuples by recursion to a bounded depth. Most terms that are compared are small, and need no stack
//! of pending work. Terms that are no list, tuple or bitstring, or lie deeper, are left to [`Equality`] and [`order::run`].

use std::cmp::Ordering;

use super::{Equality, cmp_bits, equal_bits, order};
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
        return match (a.as_bits(), b.as_bits()) {
            (Some(x), Some(y)) => equal_bits(x, y),
            _ => Equality::run(a, b, exact),
        };
    };
    x.arity() == y.arity()
        && x.elements()
            .iter()
            .zip(y.elements())
            .all(|(a, b)| element(*a, *b, exact, levels - 1))
}

/// The order of two terms.
#[inline]
pub(super) fn cmp(a: Term<'_>, b: Term<'_>, exact: bool) -> Ordering {
    cmp_pair(a, b, exact, LEVELS)
}

#[inline]
fn cmp_element(a: Term<'_>, b: Term<'_>, exact: bool, levels: u32) -> Ordering {
    if a.same(b) {
        return Ordering::Equal;
    }
    match (a.as_small(), b.as_small()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => cmp_pair(a, b, exact, levels),
    }
}

fn cmp_pair(mut a: Term<'_>, mut b: Term<'_>, exact: bool, levels: u32) -> Ordering {
    if levels == 0 {
        return order::run(a, b, exact);
    }
    while let (Some(x), Some(y)) = (a.as_cons(), b.as_cons()) {
        let heads = cmp_element(x.head(), y.head(), exact, levels - 1);
        if heads.is_ne() {
            return heads;
        }
        (a, b) = (x.tail(), y.tail());
        if a.same(b) {
            return Ordering::Equal;
        }
    }
    let (Some(x), Some(y)) = (a.as_tuple(), b.as_tuple()) else {
        return match (a.as_bits(), b.as_bits()) {
            (Some(x), Some(y)) => cmp_bits(x, y),
            _ => order::run(a, b, exact),
        };
    };
    let by_arity = x.arity().cmp(&y.arity());
    let elements = x.elements().iter().zip(y.elements());
    let mut orders = elements.map(|(a, b)| cmp_element(*a, *b, exact, levels - 1));
    by_arity.then_with(|| {
        orders
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    })
}
