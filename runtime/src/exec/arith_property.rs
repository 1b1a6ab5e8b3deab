//! Tests the operators on integers against 128-bit arithmetic, around the edges of small integers and of words.

use proptest::prelude::*;

use super::arith::wide;
use crate::bif::find;
use crate::code::bif::Call;
use crate::process::Process;
use crate::term::{Atom, Term, View, am, tag};
use crate::value::number;

fn integer() -> impl Strategy<Value = i128> {
    let edges = [
        0,
        i128::from(tag::MAX_SMALL),
        i128::from(tag::MIN_SMALL),
        i128::from(i64::MAX),
        i128::from(i64::MIN),
        1 << 64,
        -(1 << 64),
        1 << 32,
    ];
    let near = (prop::sample::select(edges.to_vec()), -3..=3i128);
    prop_oneof![
        2 => near.prop_map(|(edge, off)| edge + off),
        1 => any::<i64>().prop_map(i128::from),
        1 => -(1i128 << 80)..1 << 80,
        1 => -100..100i128,
    ]
}

fn build(p: &Process, value: i128) -> Term<'_> {
    let magnitude = value.unsigned_abs();
    p.big(value < 0, &[magnitude as u64, (magnitude >> 64) as u64])
}

/// Its value, checked to be in the one form it has.
fn value(term: Term<'_>) -> i128 {
    match term.view() {
        View::Small(value) => value.into(),
        View::Big(big) => {
            let limbs = big.limbs();
            assert_ne!(limbs.last(), Some(&0), "no leading zero limb");
            let high = limbs.get(1).copied().unwrap_or(0);
            assert!(limbs.len() <= 2, "the model is as wide as the result");
            let magnitude = (u128::from(high) << 64 | u128::from(limbs[0])).cast_signed();
            // The least number of the model is its own negation.
            let value = if big.is_negative() {
                magnitude.wrapping_neg()
            } else {
                magnitude
            };
            let small = i128::from(tag::MIN_SMALL)..=i128::from(tag::MAX_SMALL);
            assert!(!small.contains(&value), "{value} is small");
            value
        }
        _ => panic!("no integer"),
    }
}

/// The result, or `None` for an exception, which is `badarith`.
fn call(p: &Process, operator: &str, operands: &[i128]) -> Option<i128> {
    let index = find(am::erlang, Atom::new(operator), operands.len() as u8).expect("a BIF");
    let Call::Guard(handler) = crate::bif::all()[index].call else {
        panic!("an operator collects nothing");
    };
    let operands: Vec<_> = operands.iter().map(|n| build(p, *n)).collect();
    match handler(p, &operands) {
        Ok(result) => Some(value(result)),
        Err(crate::bif::Raise::Error(reason)) if reason == am::badarith => None,
        Err(_) => panic!("another exception"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn operators_agree_with_128_bits(a in integer(), b in integer(), by in -140i64..45) {
        let p = &Process::new(233);
        prop_assert_eq!(call(p, "+", &[a, b]), Some(a + b));
        prop_assert_eq!(call(p, "-", &[a, b]), Some(a - b));
        if let Some(product) = a.checked_mul(b) {
            prop_assert_eq!(call(p, "*", &[a, b]), Some(product));
        }
        if let Some(sum) = a.checked_mul(b).and_then(|product| product.checked_add(by.into())) {
            let [a, b, by] = [a, b, by.into()].map(|n| build(p, n));
            prop_assert_eq!(number::mul_add(p, a, b, by).map(value), Some(sum));
        }
        prop_assert_eq!(call(p, "div", &[a, b]), a.checked_div(b));
        prop_assert_eq!(call(p, "rem", &[a, b]), a.checked_rem(b));
        prop_assert_eq!(call(p, "band", &[a, b]), Some(a & b));
        prop_assert_eq!(call(p, "bor", &[a, b]), Some(a | b));
        prop_assert_eq!(call(p, "bxor", &[a, b]), Some(a ^ b));
        prop_assert_eq!(call(p, "bnot", &[a]), Some(!a));
        prop_assert_eq!(call(p, "-", &[a]), Some(-a));
        prop_assert_eq!(call(p, "abs", &[a]), Some(a.abs()));
        // A shift to the right of more than all bits leaves the sign.
        let shifted = if by >= 0 { a << by } else { a >> by.unsigned_abs().min(127) };
        prop_assert_eq!(call(p, "bsl", &[a, by.into()]), Some(shifted));
        prop_assert_eq!(call(p, "bsr", &[a, (-by).into()]), Some(shifted));
    }
}

/// An operator on integers of at most two limbs, and the same operator on all integers.
type Operator = (
    &'static str,
    for<'p> fn(&'p Process, Term<'p>, Term<'p>) -> Option<Term<'p>>,
);

const OPERATORS: [Operator; 10] = [
    ("+", wide::add),
    ("-", wide::sub),
    ("*", wide::mul),
    ("div", wide::div),
    ("rem", wide::rem),
    ("band", wide::band),
    ("bor", wide::bor),
    ("bxor", wide::bxor),
    ("bsl", wide::bsl),
    ("bsr", wide::bsr),
];

/// A sign, and the limbs of an absolute value.
type Limbs = (bool, Vec<u64>);

/// Up to five limbs.
fn limbs() -> impl Strategy<Value = Limbs> {
    let edges = [0, 1, 1 << 59, (1 << 59) - 1, 1 << 63, u64::MAX];
    let limb = prop_oneof![
        prop::sample::select(edges.to_vec()),
        any::<u64>(),
        0..200u64
    ];
    (any::<bool>(), prop::collection::vec(limb, 0..=5))
}

fn built<'p>(p: &'p Process, (neg, limbs): &Limbs) -> Term<'p> {
    p.big(*neg, limbs)
}

/// What an operation on fresh terms gives: the limbs of the result, the reductions and the words.
fn taken(
    (a, b): (&Limbs, &Limbs),
    operation: impl for<'p> FnOnce(&'p Process, Term<'p>, Term<'p>) -> Option<Term<'p>>,
) -> Option<(Limbs, i64, usize)> {
    let p = &Process::new(233);
    let [a, b] = [a, b].map(|it| built(p, it));
    let (fcalls, words) = (p.fcalls.get(), p.used_words() + p.fragment_words());
    let result = operation(p, a, b)?;
    let reds = fcalls - p.fcalls.get();
    let words = p.used_words() + p.fragment_words() - words;
    Some(match result.view() {
        View::Small(value) => ((value < 0, vec![value.unsigned_abs()]), reds, words),
        View::Big(big) => ((big.is_negative(), big.limbs().to_vec()), reds, words),
        _ => panic!("no integer"),
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn two_limbs_are_as_many(a in limbs(), b in limbs(), c in limbs()) {
        for (name, operation) in OPERATORS {
            let index = find(am::erlang, Atom::new(name), 2).expect("a BIF");
            let Call::Guard(general) = crate::bif::all()[index].call else {
                panic!("an operator collects nothing");
            };
            let short = taken((&a, &b), operation);
            if short.is_some() {
                let general = taken((&a, &b), |p, a, b| general(p, &[a, b]).ok());
                prop_assert_eq!(short, general, "{}", name);
            } else {
                let is_short = a.1.len() <= 1 && b.1.len() <= 1;
                prop_assert!(!is_short || ["div", "rem", "bsl", "bsr"].contains(&name));
            }
        }
        let [first, second, third] = [&a, &b, &c];
        let short = taken((first, second), |p, a, b| {
            wide::mul_add(p, a, b, built(p, third))
        });
        if let Some(short) = &short {
            let general = taken((first, second), |p, a, b| {
                let c = built(p, third);
                let sum = number::mul_add(p, a, b, c)?;
                if [a, b, c, sum].iter().any(|term| term.as_big().is_some()) {
                    p.bump_reds(1);
                }
                Some(sum)
            });
            prop_assert_eq!(Some(short), general.as_ref());
        }
        let are_short = [first, second, third].iter().all(|it| it.1.len() <= 2);
        prop_assert!(short.is_some() || !are_short, "four limbs are enough");
    }
}
