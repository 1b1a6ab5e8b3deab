//! Trees against a model: the order of objects, steps by key, ranges, and what is left of the parts.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Keys are at most this.
const KEYS: i64 = 30_000;

struct Pair {
    tree: Tree,
    model: BTreeMap<i64, i64>,
}

fn size(object: &Stored, _: usize) -> usize {
    object.words() * 8
}

fn numbers(object: &Stored) -> (i64, i64) {
    let number = |index: usize| object.elements()[index].as_small().expect("a number");
    (number(0), number(1))
}

impl Pair {
    fn new() -> Pair {
        Pair {
            tree: Tree::new(1, size),
            model: BTreeMap::new(),
        }
    }

    fn insert(&mut self, key: i64, value: i64) {
        let elements = [Term::small(key), Term::small(value)];
        self.tree.insert(Stored::of_elements(&elements));
        self.model.insert(key, value);
    }

    fn remove(&mut self, key: i64) {
        self.tree.remove(Term::small(key));
        self.model.remove(&key);
    }

    /// What is found of the key, behind it and before it.
    fn check_around(&self, key: i64) {
        let (tree, model) = (&self.tree, &self.model);
        let pair = |(key, value): (&i64, &i64)| (*key, *value);
        let term = Term::small(key);
        let found = tree.get(term).map(numbers);
        assert_eq!(found, model.get_key_value(&key).map(pair));
        let after = model.range(key + 1..).next();
        assert_eq!(tree.after(term).map(numbers), after.map(pair));
        let before = model.range(..key).next_back();
        assert_eq!(tree.before(term).map(numbers), before.map(pair));
    }

    /// All objects, there and back, by steps of keys and as ranges.
    fn check(&self) {
        let (tree, model) = (&self.tree, &self.model);
        let expected: Vec<(i64, i64)> = model.iter().map(|(key, value)| (*key, *value)).collect();
        assert_eq!(tree.len(), expected.len());
        let there: Vec<_> = tree.iter().map(numbers).collect();
        assert!(there == expected, "from the first to the last");
        let mut back: Vec<_> = tree.iter().rev().map(numbers).collect();
        back.reverse();
        assert!(back == expected, "from the last to the first");
        let step = |object: &&Stored| tree.after(object.elements()[0]);
        let steps = std::iter::successors(tree.first(), step);
        assert!(steps.map(numbers).eq(expected.iter().copied()));
        let step = |object: &&Stored| tree.before(object.elements()[0]);
        let steps = std::iter::successors(tree.last(), step);
        assert!(steps.map(numbers).eq(expected.iter().rev().copied()));
    }

    /// What is left behind `last`, and before it, of keys that may match all.
    fn check_rest(&self, last: i64) {
        let (tree, model) = (&self.tree, &self.model);
        let term = Some(Term::small(last));
        let keys = |range: Range<'_>| range.map(|object| numbers(object).0).collect::<Vec<_>>();
        let behind: Vec<i64> = model.range(last + 1..).map(|(key, _)| *key).collect();
        assert!(keys(tree.rest(None, term, false)) == behind);
        let before: Vec<i64> = model.range(..last).map(|(key, _)| *key).collect();
        assert!(keys(tree.rest(None, term, true)) == before);
        let one = keys(tree.rest(Some(Term::small(last)), None, false));
        assert_eq!(
            one,
            model
                .get_key_value(&last)
                .map_or(vec![], |(key, _)| vec![*key])
        );
    }
}

/// Keys one after the other, there or back, or in no order.
#[derive(Clone, Copy, Debug)]
enum Walk {
    Up,
    Down,
    Mixed,
}

impl Walk {
    fn keys(self, from: i64, count: i64) -> Vec<i64> {
        let key = move |i: i64| match self {
            Walk::Up => from + i,
            Walk::Down => from - i,
            Walk::Mixed => from + i * 12_289,
        };
        (0..count).map(|i| key(i).rem_euclid(KEYS)).collect()
    }
}

fn walk() -> impl Strategy<Value = Walk> {
    prop_oneof![Just(Walk::Up), Just(Walk::Down), Just(Walk::Mixed)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn trees_do_as_the_model(
        runs in prop::collection::vec((walk(), any::<bool>(), 0..KEYS, 0..12_000i64), 1..6),
        splits: bool,
        probes in prop::collection::vec(0..KEYS, 20),
    ) {
        let mut pair = Pair::new();
        pair.tree.random_split_join(splits);
        for (walk, inserts, from, count) in runs {
            // With base nodes that are split all the time, every change costs more.
            let count = if splits { count / 16 } else { count };
            for key in walk.keys(from, count) {
                match inserts {
                    true => pair.insert(key, count),
                    false => pair.remove(key),
                }
            }
            pair.check();
            for key in &probes {
                pair.check_around(*key);
            }
            pair.check_rest(probes[0]);
        }
    }
}

#[test]
fn a_tree_that_was_large_is_small_again() {
    let mut pair = Pair::new();
    for key in Walk::Mixed.keys(7, KEYS) {
        pair.insert(key, 0);
    }
    assert!(pair.tree.bases.parts()[0].len() > 3, "branches");
    for key in Walk::Mixed.keys(11, KEYS - 20) {
        pair.remove(key);
    }
    pair.check();
    let base = &pair.tree.bases.parts()[0];
    let leaves: usize = base.parts().iter().map(Part::len).sum();
    assert!(base.len() <= 2 && leaves <= 4, "{leaves} leaves");
}

#[test]
fn a_step_goes_on_from_a_place_that_has_changed() {
    let mut pair = Pair::new();
    for key in 0..1000 {
        pair.insert(key * 2, key);
    }
    for key in 0..999 {
        let after = pair.tree.after(Term::small(key * 2)).map(numbers);
        assert_eq!(after, Some((key * 2 + 2, key + 1)));
        // The object that the step found, and the one before, go, and another one comes.
        pair.remove(key * 2);
        pair.insert(key * 2 + 1, 0);
        pair.check_around(key * 2 + 2);
        pair.check_around(key * 2);
    }
    pair.check();
}
