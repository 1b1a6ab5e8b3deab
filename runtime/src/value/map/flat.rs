//! Makes flat maps, which are a tuple of sorted keys and the values behind it.
//!
//! They take as many words as in ERTS, holes included, so that counts of words agree.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::build;
use crate::heap::Heap;
use crate::term::compare::cmp_flatmap_keys;
use crate::term::tag::map::SMALL_LIMIT;
use crate::term::{Map, Term, Tuple};

type Terms<'h> = SmallVec<[Term<'h>; SMALL_LIMIT]>;
type Pairs<'h> = SmallVec<[(Term<'h>, Term<'h>); SMALL_LIMIT]>;

/// The map with the value at `index` replaced; it shares the keys.
pub(super) fn replace<'h>(
    heap: &'h Heap,
    map: Map<'h>,
    keys: Tuple<'h>,
    values: &[Term<'h>],
    index: usize,
    value: Term<'h>,
) -> Term<'h> {
    if values[index].same(value) {
        return map.term();
    }
    heap.flat_map_with(keys.term(), values, &[(index, value)])
}

/// The map with a key it has not.
pub(super) fn insert<'h>(
    heap: &'h Heap,
    keys: Tuple<'h>,
    values: &[Term<'h>],
    key: Term<'h>,
    value: Term<'h>,
) -> Term<'h> {
    let keys = keys.elements();
    let at = keys
        .iter()
        .position(|k| cmp_flatmap_keys(*k, key).is_gt())
        .unwrap_or(keys.len());
    let tuple = heap.tuple_and(keys, at, key);
    if !keys.is_empty() {
        heap.filler(1);
    }
    heap.flat_map_and(tuple, values, at, value)
}

/// The map without the key at `index`.
pub(super) fn remove<'h>(
    heap: &'h Heap,
    keys: Tuple<'h>,
    values: &[Term<'h>],
    index: usize,
) -> Term<'h> {
    let (mut keys, mut values) = (
        Terms::from_slice(keys.elements()),
        Terms::from_slice(values),
    );
    keys.remove(index);
    values.remove(index);
    heap.flat_map(heap.tuple(&keys), &values)
}

/// Is each key less than the next one?
fn ascend(pairs: &[(Term<'_>, Term<'_>)]) -> bool {
    let less = |two: &[(Term<'_>, Term<'_>)]| cmp_flatmap_keys(two[0].0, two[1].0).is_lt();
    pairs.windows(2).all(less)
}

/// The map of at most 32 pairs, of equal keys the last.
pub(super) fn from_pairs<'h>(heap: &'h Heap, pairs: &[(Term<'h>, Term<'h>)]) -> Term<'h> {
    if ascend(pairs) {
        return heap.flat_map_of_ascending(pairs);
    }
    let (mut keys, mut values) = (Terms::new(), Terms::new());
    for &(key, value) in pairs {
        let mut at = keys.len();
        let mut order = Ordering::Greater;
        while at > 0 {
            order = cmp_flatmap_keys(key, keys[at - 1]);
            if order.is_ge() {
                break;
            }
            at -= 1;
        }
        if order.is_eq() {
            (keys[at - 1], values[at - 1]) = (key, value);
        } else {
            keys.insert(at, key);
            values.insert(at, value);
        }
    }
    let tuple = heap.tuple(&keys);
    heap.filler(pairs.len() - keys.len());
    heap.flat_map(tuple, &values)
}

/// The map of at most 32 pairs with keys that differ; `None` where two are equal.
pub(super) fn try_from_unique<'h>(
    heap: &'h Heap,
    pairs: &[(Term<'h>, Term<'h>)],
) -> Option<Term<'h>> {
    if ascend(pairs) {
        return Some(heap.flat_map_of_ascending(pairs));
    }
    let mut pairs = Pairs::from_slice(pairs);
    pairs.sort_by(|(a, _), (b, _)| cmp_flatmap_keys(*a, *b));
    if pairs
        .windows(2)
        .any(|w| cmp_flatmap_keys(w[0].0, w[1].0).is_eq())
    {
        return None;
    }
    Some(heap.flat_map_of_ascending(&pairs))
}

/// The map of at most 32 pairs whose keys are known to differ.
pub(super) fn from_unique<'h>(heap: &'h Heap, pairs: &[(Term<'h>, Term<'h>)]) -> Term<'h> {
    try_from_unique(heap, pairs).expect("keys of a map differ")
}

/// All of both, neither empty; `map_b` is the second one itself.
pub(super) fn merge<'h>(
    heap: &'h Heap,
    (keys_a, values_a): (Tuple<'h>, &[Term<'h>]),
    (keys_b, values_b): (Tuple<'h>, &[Term<'h>]),
    map_b: Map<'h>,
) -> Term<'h> {
    let mut pairs: SmallVec<[_; 2 * SMALL_LIMIT]> = SmallVec::new();
    let mut a = keys_a.elements().iter().zip(values_a).peekable();
    let mut b = keys_b.elements().iter().zip(values_b).peekable();
    while let (Some((key_a, _)), Some((key_b, _))) = (a.peek(), b.peek()) {
        let order = cmp_flatmap_keys(**key_a, **key_b);
        if order.is_eq() {
            a.next();
        }
        pairs.extend(if order.is_lt() { a.next() } else { b.next() });
    }
    pairs.extend(a.chain(b));
    let (n, both) = (pairs.len(), values_a.len() + values_b.len());
    if n == values_b.len() {
        if n == values_a.len() && heap.is_literal(keys_a.term()) {
            heap.share_keys(map_b, keys_a);
        }
        return map_b.term();
    }
    let values: SmallVec<[_; 2 * SMALL_LIMIT]> = pairs.iter().map(|(_, v)| **v).collect();
    if n == values_a.len() {
        return heap.flat_map(keys_a.term(), &values);
    }
    heap.filler(both - n);
    if n > SMALL_LIMIT {
        // ERTS builds the flat map first and leaves it behind.
        heap.filler(n + 1 + crate::term::tag::map::FLAT_WORDS + n);
        let pairs: SmallVec<[_; 2 * SMALL_LIMIT]> =
            pairs.into_iter().map(|(k, v)| (*k, *v)).collect();
        return build::trie(heap, &pairs);
    }
    let keys: Terms<'h> = pairs.iter().map(|(k, _)| **k).collect();
    heap.flat_map(heap.tuple(&keys), &values)
}
