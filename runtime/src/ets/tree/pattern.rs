//! Where the keys are that a pattern may match.

use std::cmp::Ordering;

use crate::matchspec::is_wild;
use crate::term::compare::cmp;
use crate::term::{Term, View};

/// The order of `pattern` and `key` where it can be told before the pattern's first variable (or map);
/// `Some(Equal)` where they are equal, `None` where the variable comes first.
pub(super) fn partly(pattern: Term<'_>, key: Term<'_>) -> Option<Ordering> {
    match (pattern.view(), key.view()) {
        (View::Atom(atom), _) if is_wild(atom) => None,
        (View::Map(_), View::Map(_)) => None,
        (View::Cons(_), View::Cons(_)) => {
            let (mut a, mut b) = (pattern, key);
            while let (View::Cons(x), View::Cons(y)) = (a.view(), b.view()) {
                match partly(x.head(), y.head())? {
                    Ordering::Equal => (a, b) = (x.tail(), y.tail()),
                    unequal => return Some(unequal),
                }
            }
            partly(a, b)
        }
        (View::Tuple(a), View::Tuple(b)) if a.arity() == b.arity() => {
            for (a, b) in a.elements().iter().zip(b.elements()) {
                match partly(*a, *b)? {
                    Ordering::Equal => {}
                    unequal => return Some(unequal),
                }
            }
            Some(Ordering::Equal)
        }
        _ => Some(cmp(pattern, key)),
    }
}
