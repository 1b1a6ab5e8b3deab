//! The operators on integers of at most two limbs, which stay in registers until the result is built. Each gives what
//! [`number`](crate::value::number) gives, and costs what [`super`] charges for it; `None`: these do it.

use crate::num::wide::{Double, Wide};
use crate::process::Process;
use crate::term::Term;

/// An operand, and whether it is no small integer.
#[derive(Clone, Copy)]
struct Operand {
    value: Wide,
    is_big: bool,
}

impl Operand {
    #[inline(always)]
    fn of(term: Term<'_>) -> Option<Operand> {
        if let Some(value) = term.as_small() {
            let value = Wide::from(value);
            return Some(Operand {
                value,
                is_big: false,
            });
        }
        let big = term.as_big()?;
        let value = Wide::of_limbs(big.is_negative(), big.limbs())?;
        Some(Operand {
            value,
            is_big: true,
        })
    }

    #[inline(always)]
    fn is_zero(self) -> bool {
        self.value.mag() == 0
    }

    #[inline(always)]
    fn is_zero_or_one(self) -> bool {
        self.value.mag() <= 1 && !self.value.is_negative()
    }
}

#[inline(always)]
fn both(a: Term<'_>, b: Term<'_>) -> Option<(Operand, Operand)> {
    Some((Operand::of(a)?, Operand::of(b)?))
}

/// Work on so few words costs one reduction, where it costs anything.
#[inline(always)]
fn charge(p: &Process, costs: bool) {
    if costs {
        p.bump_reds(1);
    }
}

#[inline(always)]
fn build(p: &Process, value: Double) -> Term<'_> {
    match value.to_wide() {
        Some(value) => p.wide_beside(value),
        None => p.big_beside(value.is_negative(), &value.limbs()),
    }
}

/// `a + b`.
pub(crate) fn add<'p>(p: &'p Process, a: Term<'p>, b: Term<'p>) -> Option<Term<'p>> {
    let (x, y) = both(a, b)?;
    let sum = x.value.plus(y.value)?;
    charge(p, (x.is_big || y.is_big) && !x.is_zero() && !y.is_zero());
    Some(p.wide_beside(sum))
}

/// `a - b`.
pub(crate) fn sub<'p>(p: &'p Process, a: Term<'p>, b: Term<'p>) -> Option<Term<'p>> {
    let (x, y) = both(a, b)?;
    let difference = x.value.minus(y.value)?;
    charge(p, (x.is_big || y.is_big) && !y.is_zero());
    Some(p.wide_beside(difference))
}

/// `a * b`.
pub(crate) fn mul<'p>(p: &'p Process, a: Term<'p>, b: Term<'p>) -> Option<Term<'p>> {
    let (x, y) = both(a, b)?;
    let is_known = x.is_zero_or_one() || y.is_zero_or_one();
    charge(p, (x.is_big || y.is_big) && !is_known);
    Some(build(p, x.value.times(y.value)))
}

/// `a * b + c`, charged as one multiplication.
pub(crate) fn mul_add<'p>(
    p: &'p Process,
    a: Term<'p>,
    b: Term<'p>,
    c: Term<'p>,
) -> Option<Term<'p>> {
    let (x, y) = both(a, b)?;
    let z = Operand::of(c)?;
    let sum = build(p, x.value.times(y.value).plus(z.value));
    charge(p, x.is_big || y.is_big || z.is_big || !sum.raw().is_immed());
    Some(sum)
}

/// Charges for a division of `x` by `y`. It is free unless the dividend's magnitude is greater than the divisor's.
#[inline(always)]
fn charge_division(p: &Process, x: Operand, y: Operand) {
    charge(p, x.is_big && x.value.mag() > y.value.mag());
}

/// `a div b`.
pub(crate) fn div<'p>(p: &'p Process, a: Term<'p>, b: Term<'p>) -> Option<Term<'p>> {
    let (x, y) = both(a, b)?;
    let (quotient, _) = x.value.div_rem(y.value)?;
    charge_division(p, x, y);
    Some(p.wide_beside(quotient))
}

/// `a rem b`.
pub(crate) fn rem<'p>(p: &'p Process, a: Term<'p>, b: Term<'p>) -> Option<Term<'p>> {
    let (x, y) = both(a, b)?;
    let (_, remainder) = x.value.div_rem(y.value)?;
    charge_division(p, x, y);
    Some(p.wide_beside(remainder))
}

/// `a band b`. Of a longer integer the limbs count alone that a mask has.
pub(crate) fn band<'p>(p: &'p Process, a: Term<'p>, b: Term<'p>) -> Option<Term<'p>> {
    match (Operand::of(a), Operand::of(b)) {
        (Some(x), Some(y)) => bitwise(p, x, y, Wide::band),
        (Some(mask), None) => masked(p, b, mask.value),
        (None, Some(mask)) => masked(p, a, mask.value),
        (None, None) => None,
    }
}

fn masked<'p>(p: &'p Process, long: Term<'_>, mask: Wide) -> Option<Term<'p>> {
    let big = long.as_big()?;
    let limbs = big.limbs();
    let low = Wide::of_limbs(false, limbs.get(..2)?)?.mag();
    if mask.is_negative() {
        return None;
    }
    super::bump_linear(p, limbs.len() + 2);
    let bits = match big.is_negative() {
        true => low.wrapping_neg(),
        false => low,
    };
    Some(p.wide_beside(Wide::new(false, bits & mask.mag())))
}

#[inline(always)]
fn bitwise(
    p: &Process,
    x: Operand,
    y: Operand,
    operation: impl FnOnce(Wide, Wide) -> Option<Wide>,
) -> Option<Term<'_>> {
    let value = operation(x.value, y.value)?;
    charge(p, x.is_big || y.is_big);
    Some(p.wide_beside(value))
}

/// `a bor b`.
pub(crate) fn bor<'p>(p: &'p Process, a: Term<'p>, b: Term<'p>) -> Option<Term<'p>> {
    let (x, y) = both(a, b)?;
    bitwise(p, x, y, Wide::bor)
}

/// `a bxor b`.
pub(crate) fn bxor<'p>(p: &'p Process, a: Term<'p>, b: Term<'p>) -> Option<Term<'p>> {
    let (x, y) = both(a, b)?;
    bitwise(p, x, y, Wide::bxor)
}

/// `a bsl b`.
pub(crate) fn bsl<'p>(p: &'p Process, a: Term<'p>, b: Term<'p>) -> Option<Term<'p>> {
    shift(p, Operand::of(a)?, b.as_small()?)
}

/// `a bsr b`.
pub(crate) fn bsr<'p>(p: &'p Process, a: Term<'p>, b: Term<'p>) -> Option<Term<'p>> {
    shift(p, Operand::of(a)?, -b.as_small()?)
}

/// Shifts to the left.
#[inline(always)]
fn shift(p: &Process, x: Operand, left: i64) -> Option<Term<'_>> {
    let shifted = match left < 0 {
        true => p.wide_beside(x.value.bsr(left.unsigned_abs())),
        false => build(p, x.value.bsl(left.unsigned_abs())?),
    };
    charge(p, x.is_big || !shifted.raw().is_immed());
    Some(shifted)
}
