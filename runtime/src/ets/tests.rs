//! Tests of tables against a model, and of their sizes against OTP 29.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::heap::Heap;
use crate::term::compare::{cmp, eq_exact};

/// What is done to a table.
#[derive(Clone, Debug)]
enum Change {
    Insert(u8, u8),
    Remove(u8),
    RemoveObject(u8, u8),
    Clear,
    Purge,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        8 => (0..40u8, 0..4u8).prop_map(|(k, v)| Change::Insert(k, v)),
        3 => (0..40u8).prop_map(Change::Remove),
        3 => (0..40u8, 0..4u8).prop_map(|(k, v)| Change::RemoveObject(k, v)),
        1 => Just(Change::Clear),
        1 => Just(Change::Purge),
    ]
}

/// Keys that compare equal in pairs, as integers and floats.
fn key(heap: &Heap, key: u8) -> Term<'_> {
    let number = i64::from(key / 2);
    if key.is_multiple_of(2) {
        Term::small(number)
    } else {
        heap.float(number as f64)
    }
}

fn object(heap: &Heap, k: u8, v: u8) -> Term<'_> {
    heap.tuple(&[key(heap, k), heap.list(&[Term::small(v.into())])])
}

/// The model: objects of each key in the order of their insertion.
type Model = BTreeMap<u8, Vec<(u8, u8)>>;

/// The model's name of a key.
fn name(kind: Kind, key: u8) -> u8 {
    if kind == Kind::OrderedSet {
        key / 2
    } else {
        key
    }
}

fn apply(kind: Kind, model: &mut Model, change: &Change) {
    match *change {
        Change::Insert(k, v) => {
            let objects = model.entry(name(kind, k)).or_default();
            match kind {
                Kind::Hash(HashKind::DuplicateBag) => objects.push((k, v)),
                Kind::Hash(HashKind::Bag) => {
                    if !objects.contains(&(k, v)) {
                        objects.push((k, v));
                    }
                }
                _ => *objects = vec![(k, v)],
            }
        }
        Change::Remove(k) => {
            model.remove(&name(kind, k));
        }
        Change::RemoveObject(k, v) => {
            if let Some(objects) = model.get_mut(&name(kind, k)) {
                objects.retain(|object| *object != (k, v));
            }
        }
        Change::Clear => model.clear(),
        Change::Purge => {}
    }
    model.retain(|_, objects| !objects.is_empty());
}

fn table(kind: Kind) -> Objects {
    Objects::new(&TableOptions::of(kind))
}

fn bytes(objects: &Objects) -> usize {
    match objects {
        Objects::Hash(hash) => hash.bytes(),
        Objects::Tree(tree) => tree.bytes(false),
    }
}

fn set_fixed(objects: &mut Objects, fixed: bool) {
    if let Objects::Hash(hash) = objects {
        hash.set_fixed(fixed);
    }
}

fn check(kind: Kind, fixed: bool, split: bool, changes: &[Change]) {
    let heap = Heap::new(4000);
    let mut objects = table(kind);
    let empty = bytes(&objects);
    set_fixed(&mut objects, fixed);
    assert_eq!(objects.force_split(split), kind == Kind::OrderedSet);
    let mut model = Model::new();
    for change in changes {
        apply(kind, &mut model, change);
        match *change {
            Change::Insert(k, v) => {
                let tuple = object(&heap, k, v);
                objects.put(tuple.as_tuple().expect("a tuple"));
            }
            Change::Remove(k) => objects.remove(key(&heap, k)),
            Change::RemoveObject(k, v) => {
                objects.remove_object(object(&heap, k, v), key(&heap, k));
            }
            Change::Clear => objects.clear(),
            Change::Purge => {
                set_fixed(&mut objects, false);
                set_fixed(&mut objects, fixed);
            }
        }
        let count: usize = model.values().map(Vec::len).sum();
        assert_eq!(objects.len(), count);
        for k in 0..40 {
            let found: Vec<_> = objects.get(key(&heap, k)).collect();
            let expected = model.get(&name(kind, k)).map_or(&[][..], Vec::as_slice);
            assert_eq!(found.len(), expected.len(), "objects of key {k}");
            for (found, (k, v)) in found.iter().rev().zip(expected) {
                assert!(eq_exact(found.term(), object(&heap, *k, *v)));
            }
        }
    }
    walk(kind, &objects, &model);
    set_fixed(&mut objects, false);
    objects.clear();
    assert_eq!(bytes(&objects), empty, "no bytes are lost");
}

/// Walks through the table by its keys, there and (where there is an order) back.
fn walk(kind: Kind, objects: &Objects, model: &Model) {
    let mut seen = 0;
    let mut at = objects.first();
    while let Some(object) = at.clone().next() {
        seen += at.count();
        let key = object.elements()[0];
        let next = objects.next(key, false).expect("the key is known");
        if kind == Kind::OrderedSet
            && let Some(after) = next.clone().next()
        {
            assert!(cmp(key, after.elements()[0]).is_lt());
            let before = objects.next(after.elements()[0], true);
            let before = before.and_then(|mut objects| objects.next());
            assert!(before.is_some_and(|before| eq_exact(before.elements()[0], key)));
        }
        at = next;
    }
    assert_eq!(seen, model.values().map(Vec::len).sum::<usize>());
}

proptest! {
    #[test]
    fn tables_do_as_the_model(
        changes in prop::collection::vec(change(), 0..60),
        fixed: bool,
        split: bool,
    ) {
        for kind in [
            Kind::Hash(HashKind::Set),
            Kind::Hash(HashKind::Bag),
            Kind::Hash(HashKind::DuplicateBag),
            Kind::OrderedSet,
        ] {
            check(kind, fixed, split, &changes);
        }
    }
}

#[test]
fn a_deleted_key_of_a_fixed_table_leads_on() {
    let heap = Heap::new(4000);
    let mut objects = table(Kind::Hash(HashKind::Set));
    set_fixed(&mut objects, true);
    for k in 0..10 {
        objects.insert(Stored::of_elements(&[Term::small(k)]));
    }
    let first = |mut objects: Found<'_>| Some(heap.copy_in(objects.next()?.elements()[0]));
    let mut seen = 0;
    let mut key = first(objects.first());
    while let Some(at) = key {
        seen += 1;
        objects.remove(at);
        key = first(objects.next(at, false).expect("the key is still known"));
    }
    assert_eq!(seen, 10);
    assert_eq!(objects.len(), 0);
    set_fixed(&mut objects, false);
    assert!(objects.next(Term::small(3), false).is_none());
}

/// Slots, average length of the chains and bytes after growing and shrinking, as OTP 29 has them.
#[test]
fn hash_tables_grow_and_shrink_as_in_otp() {
    let mut objects = table(Kind::Hash(HashKind::Set));
    let insert = |objects: &mut Objects, key| {
        objects.insert(Stored::of_elements(&[Term::small(key), am::ok.term()]));
    };
    for key in 0..10_002 {
        insert(&mut objects, key);
    }
    assert_eq!(bytes(&objects), (10_002 * 7 + 256 + 5 * 2048 + 263) * 8);
    for key in 0..9000 {
        objects.remove(Term::small(key));
    }
    let Objects::Hash(hash) = &objects else {
        panic!("a hash table")
    };
    assert_eq!(hash.slot_count(), 3602);
    assert_eq!(bytes(&objects), (1002 * 7 + 256 + 2 * 2048 + 263) * 8);
}

/// Processes and tables that refer to the binary in `object`.
fn holders(object: &Stored) -> usize {
    object.binaries().last().map_or(0, |of| of.holders)
}

#[test]
fn an_object_in_the_place_of_another_gives_up_what_that_had() {
    let heap = Heap::new(4000);
    let [first, second] = [7, 8].map(|byte| heap.binary(&[byte; 100]));
    let [of_first, of_second] = [first, second].map(|binary| Stored::of_elements(&[binary]));
    for kind in [Kind::Hash(HashKind::Set), Kind::OrderedSet] {
        let mut objects = table(kind);
        let put = |objects: &mut Objects, value| {
            let object = heap.tuple(&[heap.tuple(&[Term::small(1)]), value]);
            objects.put(object.as_tuple().expect("a tuple"));
        };
        put(&mut objects, first);
        assert_eq!((holders(&of_first), holders(&of_second)), (3, 2));
        let size = bytes(&objects);
        put(&mut objects, second);
        assert_eq!((holders(&of_first), holders(&of_second)), (2, 3));
        assert_eq!(bytes(&objects), size);
        put(&mut objects, heap.list(&[second]));
        assert_eq!((holders(&of_first), holders(&of_second)), (2, 3));
        assert!(bytes(&objects) > size, "it takes another place");
        put(&mut objects, Term::small(1));
        assert_eq!((holders(&of_first), holders(&of_second)), (2, 2));
        assert_eq!(objects.len(), 1);
    }
}
