//! Tests of order and equality, row by row.

use std::cmp::Ordering;

use super::{cmp, cmp_bytes, cmp_exact, eq, eq_exact};
use crate::heap::{Heap, Node};
use crate::term::{Atom, Pid, Port, Term, am, tag};

#[expect(clippy::too_many_lines, reason = "a table")]
/// Terms in ascending order, no two of them equal.
fn ascending(heap: &Heap) -> Vec<Term<'_>> {
    let node = |name: &str, creation| {
        let name = Atom::new(name);
        std::sync::Arc::new(Node { name, creation })
    };
    let bits = |bytes: &[u8], len| heap.bitstring(bytes, len);
    let long = heap.binary(&[7; 100]).as_bits().expect("a binary");
    let pair = |a: i64, b: i64| heap.cons(Term::small(a), Term::small(b));
    let flat = |keys: &[Term<'static>], values: &[i64]| {
        let values: Vec<_> = values.iter().map(|v| Term::small(*v)).collect();
        heap.flat_map(heap.tuple(keys), &values)
    };
    let late = Atom::new("a late atom");
    let one = Term::small(1);
    vec![
        heap.big(true, &[0, 0, 1]),
        heap.float(-1.0e30),
        heap.big(true, &[5, 1]),
        heap.integer(i64::MIN),
        Term::small(-1),
        heap.float(-0.5),
        Term::small(0),
        heap.float(0.5),
        one,
        heap.float(9_007_199_254_740_992.0),
        Term::small(9_007_199_254_740_993),
        heap.float(9_007_199_254_740_994.0),
        heap.big(false, &[u64::MAX]),
        heap.float(18_446_744_073_709_551_616.0),
        heap.big(false, &[1, 1]),
        heap.big(false, &[0, 0, 1]),
        heap.float(1.0e300),
        am::empty.term(),
        Atom::new("Z").term(),
        Atom::new("abc").term(),
        Atom::new("abcd").term(),
        Atom::new("abcde").term(),
        Atom::new("å").term(),
        heap.external(tag::EXTERNAL_REF, node("a@b", 1), &[1 << 32 | 3, 0, 0]),
        heap.reference([9, 0, 0]),
        heap.reference([0, 9, 0]),
        heap.reference([3, 2, 9]),
        heap.pid_reference([0, 9, 0], Pid(3)),
        heap.external(tag::EXTERNAL_PORT, node("a@b", 1), &[77]),
        Port(5).term(),
        heap.external(tag::EXTERNAL_PORT, node("z@b", 1), &[2]),
        heap.external(tag::EXTERNAL_PORT, node("z@b", 1), &[3]),
        Pid(1).term(),
        heap.external(tag::EXTERNAL_PID, node("z@b", 1), &[1]),
        Pid(2).term(),
        heap.external(tag::EXTERNAL_PID, node("a@b", 1), &[1 << 32 | 1]),
        Pid(1 << 28 | 1).term(),
        heap.tuple(&[]),
        heap.tuple(&[one]),
        heap.tuple(&[am::ok.term()]),
        heap.tuple(&[Term::small(0), one]),
        heap.flat_map(heap.tuple(&[]), &[]),
        flat(&[one], &[7]),
        flat(&[one], &[8]),
        flat(&[am::ok.term()], &[0]),
        // `late` comes after `undefined` by index and before it by name.
        flat(&[one, late.term()], &[0, 0]),
        flat(&[am::undefined.term(), late.term()], &[9, 0]),
        flat(&[am::undefined.term(), late.term()], &[0, 1]),
        Term::NIL,
        pair(1, 1),
        pair(1, 2),
        heap.list(&[one]),
        heap.list(&[one, one]),
        pair(2, 0),
        bits(&[], 0),
        bits(&[0], 1),
        bits(&[1], 8),
        bits(&[1, 0x80], 9),
        heap.sub_bits(long, 0, 600),
        heap.sub_bits(long, 8, 610),
        heap.sub_bits(long, 0, 640),
        heap.sub_bits(long, 3, 640),
    ]
}

#[test]
fn terms_are_in_erlangs_order() {
    let heap = Heap::new(4096);
    let terms = ascending(&heap);
    for (i, a) in terms.iter().enumerate() {
        for (j, b) in terms.iter().enumerate() {
            assert_eq!(cmp(*a, *b), i.cmp(&j), "rows {i} and {j}");
            assert_eq!(eq(*a, *b), i == j, "rows {i} and {j}");
            assert_eq!(eq_exact(*a, *b), i == j, "rows {i} and {j}");
            assert_eq!(cmp_exact(*a, *b).is_eq(), i == j, "rows {i} and {j}");
        }
    }
}

#[test]
fn numbers_differ_by_kind_when_compared_exactly() {
    let heap = Heap::new(256);
    let (one, float) = (Term::small(1), heap.float(1.0));
    let (zero, minus_zero) = (heap.float(0.0), heap.float(-0.0));
    let big = (
        heap.big(false, &[0, 1]),
        heap.float(18_446_744_073_709_551_616.0),
    );
    for (a, b, exact) in [
        (one, float, Ordering::Less),
        (zero, minus_zero, Ordering::Greater),
        (big.0, big.1, Ordering::Less),
        (heap.tuple(&[float]), heap.tuple(&[one]), Ordering::Greater),
        (
            heap.list(&[am::ok.term(), one]),
            heap.list(&[am::ok.term(), float]),
            Ordering::Less,
        ),
    ] {
        assert!(eq(a, b) && cmp(a, b).is_eq());
        assert!(!eq_exact(a, b));
        assert_eq!(cmp_exact(a, b), exact);
        assert_eq!(cmp_exact(b, a), exact.reverse());
    }
    assert_eq!(
        cmp_exact(heap.float(-5.0), Term::small(9)),
        Ordering::Greater
    );
    let map = |key, value| heap.flat_map(heap.tuple(&[key]), &[value]);
    assert!(eq(map(one, one), map(one, float)), "values by value");
    assert!(!eq(map(one, one), map(float, one)), "keys exactly");
    assert_eq!(cmp(map(one, float), map(float, one)), Ordering::Less);
}

#[test]
fn depth_is_no_matter() {
    let heap = Heap::new(64);
    let deep = |last: i64| {
        let mut left = Term::small(last);
        let mut right = Term::small(last);
        for i in 0..1_000_000 {
            left = heap.cons(left, Term::NIL);
            right = heap.tuple(&[Term::small(i), right]);
        }
        heap.list(&[left, right])
    };
    let (a, b, c) = (deep(1), deep(1), deep(2));
    assert!(eq_exact(a, b) && eq(a, b) && cmp(a, b).is_eq());
    assert!(!eq_exact(a, c) && !eq(a, c));
    assert_eq!(
        (cmp(a, c), cmp_exact(c, a)),
        (Ordering::Less, Ordering::Greater)
    );
}

#[test]
fn bytes_order_as_slices_whatever_their_lengths() {
    let lengths = 0..20;
    for a in lengths.clone() {
        for b in lengths.clone() {
            for differs in 0..20 {
                for byte in [0, 1, 255] {
                    let (one, mut other) = (vec![1u8; a], vec![1u8; b]);
                    if let Some(at) = other.get_mut(differs) {
                        *at = byte;
                    }
                    assert_eq!(
                        cmp_bytes(&one, &other),
                        one.cmp(&other),
                        "{one:?} {other:?}"
                    );
                }
            }
        }
    }
}
