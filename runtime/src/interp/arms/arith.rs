//! The arms of arithmetic. They compute what stays within small integers; the BIFs of the operators do the rest.

use crate::exec::arith;
use crate::exec::exception::Current;
use crate::exec::guard::{guard, mfa_of};
use crate::interp::regs::{Guarded, are_small, guarded};
use crate::term::{RawTerm, tag};

/// The sum of two small integers' words, where it is one.
#[inline(always)]
fn sum(left: u64, right: u64) -> Option<u64> {
    let sum = are_small(left, right)
        .then(|| (left as i64).checked_add(right.wrapping_sub(tag::SMALL) as i64))?;
    sum.map(|word| word as u64)
}

/// Their difference, where it is one.
#[inline(always)]
fn difference(left: u64, right: u64) -> Option<u64> {
    let difference = are_small(left, right)
        .then(|| (left as i64).checked_sub(right.wrapping_sub(tag::SMALL) as i64))?;
    difference.map(|word| word as u64)
}

/// The values of two small integers.
#[inline(always)]
fn values(left: u64, right: u64) -> Option<(i64, i64)> {
    are_small(left, right).then(|| (RawTerm(left).small_value(), RawTerm(right).small_value()))
}

/// The word of a number, where it is a small integer.
#[inline(always)]
fn small(value: i64) -> Option<u64> {
    (tag::MIN_SMALL..=tag::MAX_SMALL)
        .contains(&value)
        .then(|| RawTerm::small(value).0)
}

#[inline(always)]
fn product(left: u64, right: u64) -> Option<u64> {
    let (left, right) = values(left, right)?;
    small(left.checked_mul(right)?)
}

#[inline(always)]
fn quotient(left: u64, right: u64) -> Option<u64> {
    let (left, right) = values(left, right)?;
    (right > 0).then(|| RawTerm::small(left / right).0)
}

#[inline(always)]
fn remainder(left: u64, right: u64) -> Option<u64> {
    let (left, right) = values(left, right)?;
    (right > 0).then(|| RawTerm::small(left % right).0)
}

#[inline(always)]
fn shifted_left(left: u64, right: u64) -> Option<u64> {
    let (value, by) = values(left, right)?;
    let shifted = (0..60).contains(&by).then(|| value << by)?;
    (shifted >> by == value).then(|| small(shifted))?
}

#[inline(always)]
fn shifted_right(left: u64, right: u64) -> Option<u64> {
    let (value, by) = values(left, right)?;
    (by >= 0).then(|| RawTerm::small(value >> by.min(63)).0)
}

/// An operation: its result if a fast path gives one, of small integers or of those that are not much longer, else the
/// BIF's.
macro_rules! operation {
    ($r:ident, $i:ident, $left:expr, $right:expr, $fast:expr, $wide:ident) => {{
        let (left, right): (u64, u64) = ($left, $right);
        if let Some(word) = $fast(left, right) {
            $r.set($i.dst(), word);
            return $r.next($i);
        }
        $r.swap_out();
        let value = arith::wide::$wide($r.p, $r.term(left), $r.term(right));
        if let Some(value) = value.map(|value| value.raw()) {
            return $r.guard_result($i, value, $i.live(), $i.dst());
        }
        $r.guard_bif($i, guarded!($i), &[left, right])
    }};
}

arms! {
    /// `+`
    fn add_rr(r, i: AddRR) {
        operation!(r, i, r.get(i.left()), r.get(i.right()), sum, add)
    }

    /// `+` of a constant.
    fn add_rc(r, i: AddRC) {
        operation!(r, i, r.get(i.left()), i.right().0, sum, add)
    }

    /// `-`
    fn sub_rr(r, i: SubRR) {
        operation!(r, i, r.get(i.left()), r.get(i.right()), difference, sub)
    }

    /// `-` of a constant.
    fn sub_rc(r, i: SubRC) {
        operation!(r, i, r.get(i.left()), i.right().0, difference, sub)
    }

    /// `*`
    fn mul(r, i: Mul) {
        operation!(r, i, r.src(i.left()), r.src(i.right()), product, mul)
    }

    /// `*` and `+`
    fn mul_add(r, i: MulAdd) {
        let (left, right, addend) = (r.src(i.left()), r.src(i.right()), r.src(i.addend()));
        r.swap_out();
        let sum = arith::mul_add(r.p, r.term(left), r.term(right), r.term(addend));
        if let Some(sum) = sum.map(|sum| sum.raw()) {
            return r.guard_result(i, sum, i.live(), i.dst());
        }
        // A float, an error: told by the operators one by one.
        match guard(r.p, i.times(), &[left, right], i.fail().is_null()) {
            // As OTP's JIT does it: the product is the sum, also where it is the float -0.0.
            Ok(product) if addend == RawTerm::small(0).0 => {
                r.guard_result(i, product, i.live(), i.dst())
            }
            Ok(product) => {
                r.swap_in();
                let plus = Guarded { bif: i.plus(), fail: i.fail(), live: i.live(), dst: i.dst() };
                r.guard_bif(i, plus, &[product.0, addend])
            }
            Err(()) if !i.fail().is_null() => {
                r.swap_in();
                r.jump(i.fail())
            }
            Err(()) => r.raise(Current::Function(mfa_of(i.times()), Some(r.pc))),
        }
    }

    /// `div`
    fn int_div(r, i: IntDiv) {
        operation!(r, i, r.src(i.left()), r.src(i.right()), quotient, div)
    }

    /// `rem`
    fn rem(r, i: Rem) {
        operation!(r, i, r.src(i.left()), r.src(i.right()), remainder, rem)
    }

    /// `band`
    fn band(r, i: Band) {
        operation!(r, i, r.src(i.left()), r.src(i.right()), |left, right| {
            are_small(left, right).then_some(left & right)
        }, band)
    }

    /// `bor`
    fn bor(r, i: Bor) {
        operation!(r, i, r.src(i.left()), r.src(i.right()), |left, right| {
            are_small(left, right).then_some(left | right)
        }, bor)
    }

    /// `bxor`
    fn bxor(r, i: Bxor) {
        operation!(r, i, r.src(i.left()), r.src(i.right()), |left: u64, right: u64| {
            are_small(left, right).then_some((left ^ right) | tag::SMALL)
        }, bxor)
    }

    /// `bsl`
    fn bsl(r, i: Bsl) {
        operation!(r, i, r.src(i.left()), r.src(i.right()), shifted_left, bsl)
    }

    /// `bsr`
    fn bsr(r, i: Bsr) {
        operation!(r, i, r.src(i.left()), r.src(i.right()), shifted_right, bsr)
    }
}
