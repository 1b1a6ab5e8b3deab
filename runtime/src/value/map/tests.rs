//! Tests maps against a model, with keys whose hashes agree in all bits or in all but the last.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Changed, Leaves, MAX_LEVEL, children_of, from_pairs, from_unique_pairs, merge, put};
use super::{take, trie_order_of, update};
use crate::heap::{Heap, Literals, size};
use crate::term::compare::{cmp, cmp_exact, eq, eq_exact};
use crate::term::hash::map_key_hash;
use crate::term::tag::{MAX_SMALL, map::SMALL_LIMIT};
use crate::term::{Map, Term};

/// The word that `hash::internal::mix64` takes to `hash`.
fn unmix64(hash: u64) -> u64 {
    let mut h = hash ^ hash >> 33;
    h = h.wrapping_mul(0x9cb4_b2f8_1293_37db);
    h ^= h >> 33;
    h = h.wrapping_mul(0x4f74_430c_22a5_4005);
    h ^ h >> 33
}

/// The small integer whose hash is `hash`, if there is one.
fn small_hashed(hash: u64) -> Option<Term<'static>> {
    let word = unmix64(hash);
    (word & 0xf == 0xf).then(|| Term::small(word as i64 >> 4))
}

/// Floats, and small integers with the same hash or one that differs in a few high bits only.
fn colliding(heap: &Heap) -> Vec<Term<'_>> {
    let mut keys = Vec::new();
    for i in 0..400 {
        let float = heap.float(f64::from(i));
        let hash = map_key_hash(float);
        keys.extend(
            [0, 1 << 63, 1 << 60, 1 << 56]
                .iter()
                .filter_map(|x| small_hashed(hash ^ x)),
        );
        keys.push(float);
    }
    keys
}

#[test]
fn hashes_collide_as_made() {
    let heap = Heap::new(4096);
    let keys = colliding(&heap);
    let whole = |a: &Term<'_>, b: &Term<'_>| map_key_hash(*a) == map_key_hash(*b);
    let pairs = keys.windows(2).filter(|w| whole(&w[0], &w[1])).count();
    assert!(pairs > 10, "{pairs} pairs of keys have one hash");
    let map = from_pairs(
        &heap,
        &keys.iter().map(|k| (*k, Term::NIL)).collect::<Vec<_>>(),
    );
    check_shape(map.as_map().expect("a map"));
}

/// Checks all that a map promises about its own shape.
fn check_shape(map: Map<'_>) {
    if let Some((keys, values)) = map.flat() {
        assert!(values.len() <= SMALL_LIMIT && keys.arity() == values.len());
        return;
    }
    assert!(map.len() > SMALL_LIMIT);
    let leaves: Vec<_> = Leaves::of(map).collect();
    assert_eq!(leaves.len(), map.len());
    for pair in leaves.windows(2) {
        let order = trie_order_of(pair[0][0]).cmp(&trie_order_of(pair[1][0]));
        let order = order.then_with(|| cmp_exact(pair[0][0], pair[1][0]));
        assert_eq!(order, Ordering::Less, "leaves stand in their order");
    }
    for child in map.root().expect("a trie").1 {
        check_node(*child, 1);
    }
}

fn check_node(node: Term<'_>, level: u32) {
    if node.as_cons().is_some() {
        return;
    }
    let children = children_of(node);
    if Map::inner(node).is_none() {
        assert_eq!(level, MAX_LEVEL);
        assert!(children.len() >= 2 && children.iter().all(|c| c.as_cons().is_some()));
        return;
    }
    assert!(
        children.len() > 1 || children[0].as_cons().is_none(),
        "a leaf alone moves up"
    );
    children
        .iter()
        .for_each(|child| check_node(*child, level + 1));
}

/// A change of a map: index of the key among all, and what is done.
#[derive(Clone, Copy, Debug)]
enum Op {
    Put(usize, i64),
    Update(usize, i64),
    Take(usize),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (0..90usize, 0..4i64).prop_map(|(k, v)| Op::Put(k, v)),
        1 => (0..90usize, 0..4i64).prop_map(|(k, v)| Op::Update(k, v)),
        2 => (0..90usize).prop_map(Op::Take),
    ];
    proptest::collection::vec(op, 0..400)
}

/// Ninety keys: colliding ones first.
fn keys(heap: &Heap) -> Vec<Term<'_>> {
    let all = colliding(heap);
    let whole = |k: &Term<'_>| {
        let same = all
            .iter()
            .filter(|o| map_key_hash(**o) >> 4 << 4 == map_key_hash(*k) >> 4 << 4);
        same.count() > 1
    };
    let mut keys: Vec<_> = all.iter().copied().filter(whole).take(40).collect();
    for i in keys.len()..90 {
        keys.push(Term::small(i as i64));
    }
    keys
}

type Model = BTreeMap<usize, i64>;

fn assert_models(heap: &Heap, map: Term<'_>, keys: &[Term<'_>], model: &Model) {
    let view = map.as_map().expect("a map");
    check_shape(view);
    assert_eq!(view.len(), model.len());
    for (i, key) in keys.iter().enumerate() {
        let value = view.get(*key).and_then(|v| v.as_small());
        assert_eq!(value, model.get(&i).copied(), "key {i}");
    }
    // However it was made, a map of the same pairs has the same shape.
    let fresh = heap.copy_in(map);
    let pairs: Vec<_> = model
        .iter()
        .map(|(k, v)| (keys[*k], Term::small(*v)))
        .collect();
    let pairs: Vec<_> = pairs.iter().map(|(k, v)| (heap.copy_in(*k), *v)).collect();
    let built = from_unique_pairs(heap, &pairs).expect("keys that differ");
    assert!(eq_exact(built, fresh) && eq(built, fresh));
    assert_eq!(
        (cmp(built, fresh), cmp_exact(built, fresh)),
        (Ordering::Equal, Ordering::Equal)
    );
    assert_eq!(map_key_hash(built), map_key_hash(fresh));
    assert_eq!(size(built, Literals::Share), size(fresh, Literals::Share));
}

fn build<'h>(heap: &'h Heap, keys: &[Term<'h>], ops: &[Op]) -> (Term<'h>, Model) {
    let mut model = Model::new();
    let mut map = from_pairs(heap, &[]);
    for op in ops {
        let view = map.as_map().expect("a map");
        match *op {
            Op::Put(k, v) => {
                let next = put(heap, view, keys[k], Term::small(v));
                assert_eq!(
                    next.same(map),
                    model.insert(k, v) == Some(v),
                    "same if identical"
                );
                map = next;
            }
            Op::Update(k, v) => match update(heap, view, keys[k], Term::small(v)) {
                Changed::To(next) => {
                    assert_eq!(next.same(map), model.insert(k, v).expect("the key") == v);
                    map = next;
                }
                Changed::NoKey => assert!(!model.contains_key(&k)),
            },
            Op::Take(k) => match take(heap, view, keys[k]) {
                Some((next, value)) => {
                    assert_eq!(model.remove(&k), value.as_small());
                    map = next;
                }
                None => assert!(!model.contains_key(&k)),
            },
        }
    }
    (map, model)
}

/// Keys and values of a map, by the order of the keys.
fn sorted<'h>(map: Term<'h>) -> (Vec<Term<'h>>, Vec<Term<'h>>) {
    let mut pairs: Vec<_> = map.as_map().expect("a map").iter().collect();
    pairs.sort_by(|x, y| cmp_exact(x.0, y.0));
    pairs.into_iter().unzip()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_map_does_what_its_model_does(ops in ops()) {
        let heap = Heap::new(1 << 16);
        let keys = keys(&heap);
        let (map, model) = build(&heap, &keys, &ops);
        assert_models(&heap, map, &keys, &model);
    }

    #[test]
    fn merging_prefers_the_second(first in ops(), second in ops()) {
        let heap = Heap::new(1 << 16);
        let keys = keys(&heap);
        let ((a, mut model), (b, later)) = (build(&heap, &keys, &first), build(&heap, &keys, &second));
        model.extend(later);
        let merged = merged(&heap, a.as_map().expect("a map"), b.as_map().expect("a map"));
        assert_models(&heap, merged, &keys, &model);
    }

    #[test]
    fn maps_order_as_their_sorted_pairs(first in ops(), second in ops()) {
        let heap = Heap::new(1 << 16);
        let keys = keys(&heap);
        let (a, b) = (build(&heap, &keys, &first).0, build(&heap, &keys, &second).0);
        let ((keys_a, values_a), (keys_b, values_b)) = (sorted(a), sorted(b));
        let each = |a: &[Term<'_>], b: &[Term<'_>]| {
            let mut orders = a.iter().zip(b).map(|(a, b)| cmp_exact(*a, *b));
            orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        };
        let expect = keys_a.len().cmp(&keys_b.len());
        let expect = expect.then_with(|| each(&keys_a, &keys_b)).then_with(|| each(&values_a, &values_b));
        prop_assert_eq!(cmp(a, b), expect);
        prop_assert_eq!(cmp(b, a), expect.reverse());
        prop_assert_eq!(eq_exact(a, b), expect.is_eq());
    }
}

#[test]
fn the_last_of_equal_keys_counts() {
    let heap = Heap::new(4096);
    for n in [1, 5, 20, 40, 200] {
        let pairs: Vec<_> = (0..n)
            .map(|i| (Term::small(i % 37), Term::small(i)))
            .collect();
        let map = from_pairs(&heap, &pairs).as_map().expect("a map");
        check_shape(map);
        assert_eq!(map.len() as i64, n.min(37));
        for key in 0..n.min(37) {
            let last = (0..n).rev().find(|i| i % 37 == key);
            assert_eq!(map.get(Term::small(key)).and_then(|v| v.as_small()), last);
        }
        let unique = from_unique_pairs(&heap, &pairs);
        assert_eq!(unique.is_some(), n <= 37, "{n} pairs");
    }
}

#[test]
fn words_are_those_of_erts() {
    // `erts_debug:flat_size(maps:from_keys(lists:seq(1, N), []))`, OTP 29.
    for (n, words) in FLAT_SIZES {
        let heap = Heap::new(1 << 16);
        let pairs: Vec<_> = (1..=n).map(|i| (Term::small(i), Term::NIL)).collect();
        assert_eq!(
            size(from_pairs(&heap, &pairs), Literals::Share),
            words,
            "{n} keys"
        );
    }
}

#[test]
fn large_maps_iterate_in_the_order_of_erts() {
    // `maps:keys(maps:from_keys(lists:seq(1, 40), []))`, OTP 29.
    let heap = Heap::new(4096);
    let pairs: Vec<_> = (1..=40).map(|i| (Term::small(i), Term::NIL)).collect();
    let map = from_pairs(&heap, &pairs).as_map().expect("a map");
    let keys: Vec<_> = map.iter().filter_map(|(k, _)| k.as_small()).collect();
    assert_eq!(keys, KEYS_OF_40);
    assert!(keys.iter().all(|k| *k < MAX_SMALL));
}
const FLAT_SIZES: [(i64, usize); 9] = [
    (0, 3),
    (1, 6),
    (2, 8),
    (32, 68),
    (33, 123),
    (34, 126),
    (100, 364),
    (1000, 3712),
    (10000, 37814),
];
const KEYS_OF_40: [i64; 40] = [
    18, 4, 34, 12, 19, 29, 13, 2, 7, 38, 31, 8, 10, 23, 9, 15, 35, 36, 32, 1, 25, 28, 20, 6, 11,
    17, 24, 37, 40, 14, 33, 3, 16, 30, 21, 5, 27, 26, 22, 39,
];

fn map_of(heap: &Heap) -> Term<'_> {
    from_pairs(heap, &[1, 2].map(|n| (Term::small(n), Term::NIL)))
}

fn merged<'h>(heap: &'h Heap, a: Map<'h>, b: Map<'h>) -> Term<'h> {
    match merge(heap, a, b) {
        super::Merging::Done(map) => map,
        super::Merging::More(mut merge) => merge.run(heap, usize::MAX).expect("all of it"),
    }
}

#[test]
fn a_merged_map_takes_over_a_literal_tuple_of_the_same_keys() {
    let literal = crate::heap::build_literal(map_of);
    let heap = Heap::new(233);
    let other = map_of(&heap);
    let (literal, other) = (literal.as_map().unwrap(), other.as_map().unwrap());
    assert!(!other.keys_term().same(literal.keys_term()));
    let merged = merged(&heap, literal, other);
    assert!(merged.same(other.term()), "the second map itself");
    assert!(other.keys_term().same(literal.keys_term()));
}
