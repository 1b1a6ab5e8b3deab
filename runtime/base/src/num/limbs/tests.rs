//! Tests every operation against `num-bigint`.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use proptest::collection::vec;
use proptest::prelude::*;

use super::bytes::Endian;
use super::{Int, IntRef, Round};

fn big(i: IntRef<'_>) -> BigInt {
    let digits: Vec<u32> = i
        .mag()
        .iter()
        .flat_map(|&l| [l as u32, (l >> 32) as u32])
        .collect();
    BigInt::from_slice(
        if i.is_negative() {
            Sign::Minus
        } else {
            Sign::Plus
        },
        &digits,
    )
}

/// Checks the form (no leading zero limb, no negative zero) along with the value.
fn check(got: &Int, want: &BigInt) -> Result<(), TestCaseError> {
    prop_assert_ne!(got.mag().last(), Some(&0));
    prop_assert!(!(got.is_negative() && got.mag().is_empty()));
    prop_assert_eq!(&big(got.as_ref()), want);
    Ok(())
}

/// Limbs that are often at the edges, where carries and estimates go wrong.
fn limb() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => any::<u64>(),
        1 => Just(0),
        1 => Just(u64::MAX),
        1 => Just(1 << 63),
        1 => Just(1),
        1 => 0u64..100,
    ]
}

fn int(limbs: usize) -> impl Strategy<Value = Int> {
    (any::<bool>(), vec(limb(), 0..limbs)).prop_map(|(neg, l)| Int::from_parts(neg, l.into()))
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("finite", |f| f.is_finite()),
        (any::<i64>(), -70i32..70).prop_map(|(m, e)| m as f64 * 2f64.powi(e)),
        (-1000i32..1000).prop_map(|m| f64::from(m) / 2.0),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sums(a in int(12), b in int(12)) {
        let (ar, br) = (a.as_ref(), b.as_ref());
        check(&(ar + br), &(big(ar) + big(br)))?;
        check(&(ar - br), &(big(ar) - big(br)))?;
        check(&(ar - ar), &BigInt::ZERO)?;
        check(&-ar, &-big(ar))?;
        prop_assert_eq!(ar.cmp(&br), big(ar).cmp(&big(br)));
    }

    #[test]
    fn short_products_and_quotients(a in int(12), b in int(6)) {
        let (ar, br) = (a.as_ref(), b.as_ref());
        check(&(ar * br), &(big(ar) * big(br)))?;
        match ar.div_rem(br) {
            None => prop_assert!(br.is_zero()),
            Some((q, r)) => {
                check(&q, &(big(ar) / big(br)))?;
                check(&r, &(big(ar) % big(br)))?;
            }
        }
    }

    #[test]
    fn bitwise(a in int(6), b in int(6)) {
        let (ar, br) = (a.as_ref(), b.as_ref());
        check(&ar.band(br), &(big(ar) & big(br)))?;
        check(&ar.bor(br), &(big(ar) | big(br)))?;
        check(&ar.bxor(br), &(big(ar) ^ big(br)))?;
        check(&ar.bnot(), &!big(ar))?;
    }

    #[test]
    fn shifts(a in int(6), n in 0usize..500) {
        check(&a.as_ref().bsl(n), &(big(a.as_ref()) << n))?;
        check(&a.as_ref().bsr(n), &(big(a.as_ref()) >> n))?;
    }

    #[test]
    fn machine_integers(a in any::<i64>(), b in any::<i128>(), c in any::<u64>(), d in int(4)) {
        check(&Int::from(a), &a.into())?;
        check(&Int::from(b), &b.into())?;
        check(&Int::from(c), &c.into())?;
        check(&Int::from(b as u128), &(b as u128).into())?;
        prop_assert_eq!(Int::from(a).to_i64(), Some(a));
        prop_assert_eq!(Int::from(b).as_ref().to_i128(), Some(b));
        prop_assert_eq!(Int::from(c).as_ref().to_u64(), Some(c));
        prop_assert_eq!(d.to_i64(), i64::try_from(big(d.as_ref())).ok());
        prop_assert_eq!(d.as_ref().to_u64(), u64::try_from(big(d.as_ref())).ok());
        prop_assert_eq!(d.as_ref().to_i128(), i128::try_from(big(d.as_ref())).ok());
    }

    #[test]
    fn radix(a in int(12), radix in 2u32..=36) {
        let text = a.as_ref().to_string_radix(radix);
        prop_assert_eq!(&text, &big(a.as_ref()).to_str_radix(radix).to_uppercase());
        prop_assert_eq!(Int::parse(text.as_bytes(), radix), Ok(a.clone()));
        prop_assert_eq!(Int::parse(text.to_lowercase().as_bytes(), radix), Ok(a.clone()));
    }

    #[test]
    fn floats_from_integers(a in int(18)) {
        // Decimal digits read back by the standard library are rounded to nearest even.
        let want: f64 = a.as_ref().to_string_radix(10).parse().expect("a number");
        prop_assert_eq!(a.as_ref().to_f64(), want.is_finite().then_some(want));
    }

    #[test]
    fn integers_from_floats(f in float()) {
        for (round, whole) in [
            (Round::Trunc, f.trunc()),
            (Round::Floor, f.floor()),
            (Round::Ceil, f.ceil()),
            (Round::Nearest, f.round()),
        ] {
            let text = format!("{whole:.0}");
            let got = Int::from_f64(f, round).expect("finite");
            check(&got, &text.parse().expect("digits"))?;
        }
    }

    #[test]
    fn floats_compare_exactly(f in float(), i in int(4), off in -2i64..=2) {
        let floor = Int::from_f64(f, Round::Floor).expect("finite");
        let near = floor.as_ref() + Int::from(off).as_ref();
        for i in [i, near] {
            let want = match i.as_ref().cmp(&floor.as_ref()) {
                Ordering::Equal if f.floor() < f => Ordering::Less,
                order => order,
            };
            prop_assert_eq!(i.as_ref().cmp_f64(f), want, "{:?} {}", i, f);
        }
    }

    #[test]
    fn segments(a in int(5), bits in 0usize..300, signed: bool) {
        let modulus = BigInt::from(1) << bits;
        let mut want = ((big(a.as_ref()) % &modulus) + &modulus) % &modulus;
        if signed && bits > 0 && want.bit(bits as u64 - 1) {
            want -= &modulus;
        }
        for endian in [Endian::Big, Endian::Little] {
            let mut out = vec![0xAA; bits.div_ceil(8) + 1];
            a.as_ref().to_bits(&mut out, bits, endian);
            prop_assert_eq!(out[bits.div_ceil(8)], 0xAA);
            check(&Int::from_bits(&out, bits, endian, signed), &want)?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn long_products_and_quotients(a in int(700), b in int(400)) {
        let (ar, br) = (a.as_ref(), b.as_ref());
        check(&(ar * br), &(big(ar) * big(br)))?;
        if let Some((q, r)) = ar.div_rem(br) {
            check(&q, &(big(ar) / big(br)))?;
            check(&r, &(big(ar) % big(br)))?;
        }
    }

    #[test]
    fn long_radix(a in int(900), radix in 2u32..=36) {
        let text = a.as_ref().to_string_radix(radix);
        prop_assert_eq!(&text, &big(a.as_ref()).to_str_radix(radix).to_uppercase());
        prop_assert_eq!(Int::parse(text.as_bytes(), radix), Ok(a));
    }
}

#[test]
fn segment_layout() {
    let n = Int::from(0x123i64);
    let mut out = [0; 2];
    n.as_ref().to_bits(&mut out, 12, Endian::Big);
    assert_eq!(out, [0x12, 0x30]);
    n.as_ref().to_bits(&mut out, 12, Endian::Little);
    assert_eq!(out, [0x23, 0x10]);
}

#[test]
fn powers_of_the_radix_keep_their_zeros() {
    for exp in [1, 18, 19, 20, 38, 570, 1140, 5000, 100_000] {
        let text = format!("1{}", "0".repeat(exp));
        let n = Int::parse(text.as_bytes(), 10).expect("digits");
        assert_eq!(n.as_ref().to_string_radix(10), text);
        let nines = "9".repeat(exp);
        let n = n.as_ref() - Int::from(1i64).as_ref();
        assert_eq!(n.as_ref().to_string_radix(10), nines);
    }
}

#[test]
fn text_that_is_no_integer() {
    for text in ["", "-", "+", "+-1", "1_000", " 1", "1 ", "2", "0x1"] {
        assert!(Int::parse(text.as_bytes(), 2).is_err(), "{text:?}");
    }
    assert_eq!(Int::parse(b"-0", 10), Ok(Int::zero()));
    assert_eq!(Int::parse(b"+0012", 10), Ok(Int::from(12i64)));
}
