//! Makes maps from other maps. Source: `erl_map.c`, OTP 29.

mod build;
mod flat;
mod merge;
#[cfg(test)]
mod tests;
mod trie;

use smallvec::SmallVec;

use crate::heap::Heap;
use crate::term::compare::eq_exact;
use crate::term::hash::map_key_hash;
pub(crate) use crate::term::map::{Leaf, Leaves, trie_order_of};
use crate::term::map::{MAX_LEVEL, children_of, flat_index, slot_of};
use crate::term::tag::map::SMALL_LIMIT;
use crate::term::{Map, Term};
pub(crate) use build::{Pair, TrieParts};
pub(crate) use merge::Merge;

/// What became of a change that may find nothing to change.
pub(crate) enum Changed<'h> {
    /// The map after the change; the same one where nothing differs.
    To(Term<'h>),
    /// The key is not in the map.
    NoKey,
}

/// `map` with `key` mapped to `value`; the same map where it was already (the same word).
#[must_use]
pub(crate) fn put<'h>(heap: &'h Heap, map: Map<'h>, key: Term<'h>, value: Term<'h>) -> Term<'h> {
    match map.flat() {
        None => match trie::insert(heap, map, key, value, false) {
            Changed::To(map) => map,
            Changed::NoKey => unreachable!("a new key may be inserted"),
        },
        Some((keys, values)) => match flat_index(keys.elements(), key) {
            Some(index) => flat::replace(heap, map, keys, values, index, value),
            None if values.len() < SMALL_LIMIT => flat::insert(heap, keys, values, key, value),
            None => {
                let mut pairs: Vec<_> = map.iter().collect();
                pairs.push((key, value));
                build::trie(heap, &pairs)
            }
        },
    }
}

/// `map` with the value of `key`, which it has, replaced: as [`put`].
#[must_use]
pub(crate) fn update<'h>(
    heap: &'h Heap,
    map: Map<'h>,
    key: Term<'h>,
    value: Term<'h>,
) -> Changed<'h> {
    match map.flat() {
        None => trie::insert(heap, map, key, value, true),
        Some((keys, values)) => match flat_index(keys.elements(), key) {
            Some(index) => Changed::To(flat::replace(heap, map, keys, values, index, value)),
            None => Changed::NoKey,
        },
    }
}

/// `map` without `key`, and the value it had; `None` where it has no such key.
#[must_use]
pub(crate) fn take<'h>(
    heap: &'h Heap,
    map: Map<'h>,
    key: Term<'h>,
) -> Option<(Term<'h>, Term<'h>)> {
    if let Some((keys, values)) = map.flat() {
        let index = flat_index(keys.elements(), key)?;
        return Some((flat::remove(heap, keys, values, index), values[index]));
    }
    let hash = map_key_hash(key);
    let value = map.get_hashed(key, hash)?;
    if map.len() > SMALL_LIMIT + 1 {
        return Some((trie::remove(heap, map, key, hash), value));
    }
    let left: SmallVec<[_; 32]> = map.iter().filter(|(k, _)| !eq_exact(*k, key)).collect();
    Some((flat::from_unique(heap, &left), value))
}

/// The map of `pairs`; of equal keys the last one counts, as for `maps:from_list/1`.
#[must_use]
pub(crate) fn from_pairs<'h>(heap: &'h Heap, pairs: &[(Term<'h>, Term<'h>)]) -> Term<'h> {
    if pairs.len() <= SMALL_LIMIT {
        return flat::from_pairs(heap, pairs);
    }
    flat_if_small(heap, build::trie(heap, pairs))
}

/// The map of more than 32 pairs, each behind the [`trie_order_of`] its key, as [`from_pairs`].
#[must_use]
pub(crate) fn from_placed<'h>(
    heap: &'h Heap,
    pairs: impl Iterator<Item = (u64, Term<'h>, Term<'h>)>,
) -> Term<'h> {
    flat_if_small(heap, build::placed_trie(heap, pairs))
}

/// The map of pairs that are all in `parts`, each of which is made.
#[must_use]
pub(crate) fn from_parts<'h>(heap: &'h Heap, parts: &TrieParts<'h>) -> Term<'h> {
    flat_if_small(heap, parts.join(heap))
}

/// A trie as a map: a flat one where it is small.
fn flat_if_small<'h>(heap: &'h Heap, trie: Term<'h>) -> Term<'h> {
    match trie.as_map() {
        Some(map) if map.len() <= SMALL_LIMIT => {
            let pairs: SmallVec<[_; SMALL_LIMIT]> = map.iter().collect();
            flat::from_unique(heap, &pairs)
        }
        _ => trie,
    }
}

/// The map of `pairs`, whose keys must differ; `None` where two are equal.
#[must_use]
pub(crate) fn from_unique_pairs<'h>(
    heap: &'h Heap,
    pairs: &[(Term<'h>, Term<'h>)],
) -> Option<Term<'h>> {
    let map = if pairs.len() <= SMALL_LIMIT {
        flat::try_from_unique(heap, pairs)?
    } else {
        build::trie(heap, pairs)
    };
    (map.as_map().map(Map::len) == Some(pairs.len())).then_some(map)
}

/// The start of a merging of two maps.
pub(crate) enum Merging<'h> {
    /// Nothing: this is the map.
    Done(Term<'h>),
    /// A merging of tries.
    More(Merge<'h>),
}

/// All of both maps; where both have a key, `b`'s value counts.
#[must_use]
pub(crate) fn merge<'h>(heap: &'h Heap, a: Map<'h>, b: Map<'h>) -> Merging<'h> {
    if a.ptr() == b.ptr() || b.is_empty() {
        return Merging::Done(a.term());
    }
    if a.is_empty() {
        return Merging::Done(b.term());
    }
    let trie_of = |map: Map<'h>| match map.flat() {
        None => map.term(),
        Some(_) => build::trie(heap, &map.iter().collect::<SmallVec<[_; 32]>>()),
    };
    match (a.flat(), b.flat()) {
        (Some((keys_a, values_a)), Some((keys_b, values_b))) => {
            let merged = flat::merge(heap, (keys_a, values_a), (keys_b, values_b), b);
            Merging::Done(merged)
        }
        _ => match (trie_of(a).as_map(), trie_of(b).as_map()) {
            (Some(a), Some(b)) => Merging::More(Merge::new(a, b)),
            _ => unreachable!("a trie is a map"),
        },
    }
}
