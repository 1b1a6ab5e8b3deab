//! Tests every operation against `num-bigint`, around the limits of small integers, limbs and their signs.

use num_bigint::{BigInt, BigUint, Sign};
use proptest::prelude::*;

use super::{Double, Wide};

fn wide() -> impl Strategy<Value = Wide> {
    let edges = [0, 1 << 59, 1 << 63, 1 << 64, 1 << 127, u128::MAX];
    let near = (prop::sample::select(edges.to_vec()), -3..=3i128);
    let mag = prop_oneof![
        4 => near.prop_map(|(edge, off)| edge.wrapping_add_signed(off)),
        1 => any::<u64>().prop_map(u128::from),
        2 => any::<u128>(),
        1 => 0..100u128,
    ];
    (any::<bool>(), mag).prop_map(|(neg, mag)| Wide::new(neg, mag))
}

fn signed(neg: bool, mag: BigUint) -> BigInt {
    let sign = if neg { Sign::Minus } else { Sign::Plus };
    BigInt::from_biguint(sign, mag)
}

fn big(value: Wide) -> BigInt {
    signed(value.neg, value.mag.into())
}

/// Checks a result of 128 bits: it is there if 128 bits are enough.
fn check(got: Option<Wide>, want: &BigInt) -> Result<(), TestCaseError> {
    if let Some(got) = got {
        prop_assert!(!(got.neg && got.mag == 0));
    }
    let fits = want.magnitude().bits() <= 128;
    prop_assert_eq!(got.map(big), fits.then(|| want.clone()));
    Ok(())
}

/// As [`check`], of an operation that may give none for integers whose two's complement needs more bits.
fn check_bits(got: Option<Wide>, of: [Wide; 2], want: &BigInt) -> Result<(), TestCaseError> {
    if got.is_none() {
        prop_assert!(of.iter().any(|it| it.neg));
        prop_assert!(of.iter().any(|it| it.mag >= 1 << 127));
        return Ok(());
    }
    check(got, want)
}

fn check_double(got: Double, want: &BigInt) -> Result<(), TestCaseError> {
    prop_assert!(!(got.neg && (got.low, got.high) == (0, 0)));
    let mag: BigUint = (BigUint::from(got.high) << 128) + got.low;
    prop_assert_eq!(&signed(got.neg, mag.clone()), want);
    let limbs = got.limbs().into_iter().rev();
    let joined = limbs.fold(BigUint::ZERO, |all, limb| (all << 64) + limb);
    prop_assert_eq!(joined, mag);
    check(got.to_wide(), want)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn arithmetic_agrees(a in wide(), b in wide(), c in wide()) {
        let [x, y, z] = [a, b, c].map(big);
        check(a.plus(b), &(&x + &y))?;
        check(a.minus(b), &(&x - &y))?;
        check_double(a.times(b), &(&x * &y))?;
        check_double(a.times(b).plus(c), &(&x * &y + &z))?;
        check(Some(a.negated()), &-&x)?;
        match a.div_rem(b) {
            None => prop_assert_eq!(b.mag, 0),
            Some((quotient, remainder)) => {
                check(Some(quotient), &(&x / &y))?;
                check(Some(remainder), &(&x % &y))?;
            }
        }
    }

    #[test]
    fn bits_agree(a in wide(), b in wide(), by in 0..140u64) {
        let [x, y] = [a, b].map(big);
        check_bits(a.band(b), [a, b], &(&x & &y))?;
        check_bits(a.bor(b), [a, b], &(&x | &y))?;
        check_bits(a.bxor(b), [a, b], &(&x ^ &y))?;
        check(Some(a.bsr(by)), &(&x >> by))?;
        match a.bsl(by) {
            None => prop_assert!(by > 128),
            Some(shifted) => check_double(shifted, &(&x << by))?,
        }
    }

    #[test]
    fn machine_integers_agree(a in any::<i64>()) {
        prop_assert_eq!(big(Wide::from(a)), BigInt::from(a));
        let limbs = [a.unsigned_abs(), 0];
        prop_assert_eq!(Wide::of_limbs(a < 0, &limbs), Some(Wide::from(a)));
        prop_assert_eq!(Wide::of_limbs(a < 0, &limbs[..1]), Some(Wide::from(a)));
        prop_assert_eq!(Wide::of_limbs(a < 0, &[1, 1, 1]), None);
    }
}
