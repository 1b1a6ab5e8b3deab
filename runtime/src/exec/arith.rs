//! The BIFs of operators, of guard functions on numbers, and of `math`.

pub(crate) mod wide;

use crate::code::bif::bifs;
use crate::num::limbs::Round;
use crate::process::{CONTEXT_REDS, Process};
use crate::process::{GuardResult, Raise, badarg, badarith, system_limit};
use crate::sys::libm;
use crate::term::{Term, View};
use crate::value::number::{self, ArithError};

bifs! {
    all own;
    ubif erlang:"+"/2 => plus_2;
    ubif erlang:"-"/2 => minus_2;
    ubif erlang:"*"/2 => times_2;
    ubif erlang:"/"/2 => div_2;
    ubif erlang:"div"/2 => intdiv_2;
    ubif erlang:"rem"/2 => rem_2;
    ubif erlang:"band"/2 => band_2;
    ubif erlang:"bor"/2 => bor_2;
    ubif erlang:"bxor"/2 => bxor_2;
    ubif erlang:"bsl"/2 => bsl_2;
    ubif erlang:"bsr"/2 => bsr_2;
    ubif erlang:"bnot"/1 => bnot_1;
    ubif erlang:"+"/1 => plus_1;
    ubif erlang:"-"/1 => minus_1;
    ubif erlang:"abs"/1 => abs_1;
    ubif erlang:"float"/1 => float_1;
    ubif erlang:"round"/1 => round_1;
    ubif erlang:"trunc"/1 => trunc_1;
    ubif erlang:"floor"/1 => floor_1;
    ubif erlang:"ceil"/1 => ceil_1;
    bif math:"cos"/1 => cos_1;
    bif math:"cosh"/1 => cosh_1;
    bif math:"sin"/1 => sin_1;
    bif math:"sinh"/1 => sinh_1;
    bif math:"tan"/1 => tan_1;
    bif math:"tanh"/1 => tanh_1;
    bif math:"acos"/1 => acos_1;
    bif math:"acosh"/1 => acosh_1;
    bif math:"asin"/1 => asin_1;
    bif math:"asinh"/1 => asinh_1;
    bif math:"atan"/1 => atan_1;
    bif math:"atanh"/1 => atanh_1;
    bif math:"erf"/1 => erf_1;
    bif math:"erfc"/1 => erfc_1;
    bif math:"exp"/1 => exp_1;
    bif math:"log"/1 => log_1;
    bif math:"log2"/1 => log2_1;
    bif math:"log10"/1 => log10_1;
    bif math:"sqrt"/1 => sqrt_1;
    bif math:"floor"/1 => math_floor_1;
    bif math:"ceil"/1 => math_ceil_1;
    bif math:"atan2"/2 => atan2_2;
    bif math:"pow"/2 => pow_2;
    bif math:"fmod"/2 => fmod_2;
}

impl From<ArithError> for Raise<'static> {
    fn from(error: ArithError) -> Self {
        match error {
            ArithError::BadArith => badarith(),
            ArithError::SystemLimit => system_limit(),
        }
    }
}

/// Words of work on big integers that cost a reduction. Source: `ERTS_ARITH_WORDS_PER_REDUCTION`.
const WORDS_PER_RED: usize = 16;
/// An operand or a result of this many words costs the whole time slice.
const SLICE_WORDS: usize = CONTEXT_REDS as usize * WORDS_PER_RED;

/// Limbs of an integer; a small one counts as one.
fn limbs(term: Term<'_>) -> usize {
    term.as_big().map_or(1, |big| big.limbs().len())
}

/// Charges for work in proportion to `words`. Source: `bump_reds_linear` in `erl_arith.c`.
fn bump_linear(p: &Process, words: usize) {
    bump_quadratic(p, words, 1);
}

/// Charges for work in proportion to the product of two sizes in words. Source: `bump_reds_quadratic`.
fn bump_quadratic(p: &Process, a: usize, b: usize) {
    if a.max(b) >= SLICE_WORDS {
        p.bump_reds(p.fcalls.get());
    } else {
        p.bump_reds((a * b / WORDS_PER_RED + 1) as i64);
    }
}

/// The costs of operations with two operands of which one is big.
mod cost {
    use super::{bump_linear, bump_quadratic, limbs};
    use crate::process::Process;
    use crate::term::Term;

    pub(super) fn free(_: &Process, _: Term<'_>, _: Term<'_>) {}

    /// Of the words of a result one limb longer than the longer operand.
    pub(super) fn longer(p: &Process, a: Term<'_>, b: Term<'_>) {
        bump_linear(p, limbs(a).max(limbs(b)) + 2);
    }

    pub(super) fn sum(p: &Process, a: Term<'_>, b: Term<'_>) {
        if a.as_small() != Some(0) && b.as_small() != Some(0) {
            longer(p, a, b);
        }
    }

    /// The header is not counted here.
    pub(super) fn difference(p: &Process, a: Term<'_>, b: Term<'_>) {
        if b.as_small() != Some(0) {
            bump_linear(p, limbs(a).max(limbs(b)) + 1);
        }
    }

    pub(super) fn product(p: &Process, a: Term<'_>, b: Term<'_>) {
        let known = |term: Term<'_>| matches!(term.as_small(), Some(0 | 1));
        if !known(a) && !known(b) {
            bump_quadratic(p, limbs(a), limbs(b));
        }
    }

    /// A division is free unless the dividend's magnitude is greater than the divisor's. A small dividend is
    /// never greater than a big divisor.
    pub(super) fn quotient(p: &Process, a: Term<'_>, b: Term<'_>) {
        let Some(dividend) = a.as_big() else { return };
        let divisor = b.as_big();
        let small = [b.as_small().map_or(0, i64::unsigned_abs)];
        let divisor = divisor.as_ref().map_or(&small[..], |big| big.limbs());
        let (long, short) = (dividend.limbs().len(), divisor.len());
        let order = long.cmp(&short);
        let order = order.then_with(|| dividend.limbs().iter().rev().cmp(divisor.iter().rev()));
        if order.is_gt() {
            bump_quadratic(p, long - short + 1, short);
        }
    }
}

macro_rules! operators {
    ($($handler:ident => $operation:ident, $cost:ident;)*) => {
        $(fn $handler<'p>(p: &'p Process, [a, b]: [Term<'p>; 2]) -> GuardResult<'p> {
            let value = number::$operation(p, a, b)?;
            if a.as_big().is_some() || b.as_big().is_some() {
                cost::$cost(p, a, b);
            }
            Ok(value)
        })*
    };
}
operators! {
    plus_2 => add, sum;
    minus_2 => sub, difference;
    times_2 => mul, product;
    div_2 => fdiv, free;
    intdiv_2 => div, quotient;
    rem_2 => rem, quotient;
    band_2 => band, longer;
    bor_2 => bor, longer;
    bxor_2 => bxor, longer;
}

/// `a * b + c` of integers, charged as one multiplication; `None` as [`number::mul_add`] gives it.
pub(crate) fn mul_add<'p>(
    p: &'p Process,
    a: Term<'p>,
    b: Term<'p>,
    c: Term<'p>,
) -> Option<Term<'p>> {
    if let Some(sum) = wide::mul_add(p, a, b, c) {
        return Some(sum);
    }
    let sum = number::mul_add(p, a, b, c)?;
    if [a, b, c, sum].iter().any(|term| term.as_big().is_some()) {
        bump_quadratic(p, limbs(a), limbs(b));
    }
    Some(sum)
}

fn bsl_2<'p>(p: &'p Process, [a, b]: [Term<'p>; 2]) -> GuardResult<'p> {
    Ok(shifted(p, a, number::bsl(p, a, b)?))
}

fn bsr_2<'p>(p: &'p Process, [a, b]: [Term<'p>; 2]) -> GuardResult<'p> {
    Ok(shifted(p, a, number::bsr(p, a, b)?))
}

/// Charges for a shift of `a` that gave `result`.
fn shifted<'p>(p: &Process, a: Term<'p>, result: Term<'p>) -> Term<'p> {
    if (a.as_big().is_some() || result.as_big().is_some()) && a.raw() != result.raw() {
        bump_linear(p, limbs(result) + 2);
    }
    result
}

fn bnot_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    let value = number::bnot(p, a)?;
    if let Some(big) = a.as_big() {
        bump_linear(p, big.limbs().len() + 2);
    }
    Ok(value)
}

fn plus_1<'p>(_p: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    match a.view() {
        View::Small(_) | View::Big(_) | View::Float(_) => Ok(a),
        _ => Err(badarith()),
    }
}

fn minus_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    let value = number::neg(p, a)?;
    if let Some(big) = a.as_big() {
        bump_linear(p, big.limbs().len() + 1);
    }
    Ok(value)
}

fn abs_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    number::abs(p, a).ok_or_else(badarg)
}

fn float_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    if a.as_float().is_some() {
        return Ok(a);
    }
    number::to_f64(a)
        .map(|value| p.float_beside(value))
        .ok_or_else(badarg)
}

fn round_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    number::to_integer(p, a, Round::Nearest).ok_or_else(badarg)
}

fn trunc_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    number::to_integer(p, a, Round::Trunc).ok_or_else(badarg)
}

fn floor_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    number::to_integer(p, a, Round::Floor).ok_or_else(badarg)
}

fn ceil_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    number::to_integer(p, a, Round::Ceil).ok_or_else(badarg)
}

/// The argument of a function of `math`: `badarg` for no number, `badarith` for too large an integer.
fn math_argument(a: Term<'_>) -> Result<f64, Raise<'static>> {
    let error = if a.as_big().is_some() {
        badarith
    } else {
        badarg
    };
    number::to_f64(a).ok_or_else(error)
}

fn math_result(p: &Process, value: f64) -> GuardResult<'_> {
    if value.is_finite() {
        Ok(p.float(value))
    } else {
        Err(badarith())
    }
}

macro_rules! math {
    ($($handler:ident($($arg:ident),*) => $function:ident;)*) => {
        $(fn $handler<'p>(p: &'p Process, [$($arg),*]: [Term<'p>; math!(@count $($arg)*)]) -> GuardResult<'p> {
            $(let $arg = math_argument($arg)?;)*
            math_result(p, libm::$function($($arg),*))
        })*
    };
    (@count $a:ident) => { 1 };
    (@count $a:ident $b:ident) => { 2 };
}
math! {
    cos_1(x) => cos;
    cosh_1(x) => cosh;
    sin_1(x) => sin;
    sinh_1(x) => sinh;
    tan_1(x) => tan;
    tanh_1(x) => tanh;
    acos_1(x) => acos;
    acosh_1(x) => acosh;
    asin_1(x) => asin;
    asinh_1(x) => asinh;
    atan_1(x) => atan;
    atanh_1(x) => atanh;
    erf_1(x) => erf;
    erfc_1(x) => erfc;
    exp_1(x) => exp;
    log_1(x) => log;
    log2_1(x) => log2;
    log10_1(x) => log10;
    sqrt_1(x) => sqrt;
    math_floor_1(x) => floor;
    math_ceil_1(x) => ceil;
    atan2_2(y, x) => atan2;
    pow_2(x, y) => pow;
    fmod_2(x, y) => fmod;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bif::find;
    use crate::code::bif::Call;
    use crate::term::{Atom, am, tag};

    /// What `operator` costs for these integers.
    fn cost(operator: &str, p: &Process, operands: &[Term<'_>]) -> i64 {
        let index = find(am::erlang, Atom::new(operator), operands.len() as u8).expect("a BIF");
        let Call::Guard(function) = crate::code::bif::all()[index].call else {
            panic!("{operator} is a guard BIF")
        };
        let before = p.fcalls.get();
        assert!(function(p, operands).is_ok(), "{operator} gives a number");
        before - p.fcalls.get()
    }

    /// The magnitude of the least small integer is big.
    #[test]
    fn equal_magnitudes_are_divided_for_free() {
        let p = Process::new(233);
        let [least, negated] = [true, false].map(|neg| p.big(neg, &[1 << 59]));
        assert_eq!(least.as_small(), Some(tag::MIN_SMALL));
        assert_eq!(cost("div", &p, &[negated, least]), 0);
        assert_eq!(cost("rem", &p, &[negated, least]), 0);
    }

    #[test]
    fn big_integers_cost_reductions() {
        let rows: &[(&str, &[usize], i64)] = &[
            ("+", &[0, 0], 0),
            ("+", &[100, 75], 7),
            ("+", &[1000, 0], 63),
            ("-", &[100, 75], 7),
            ("-", &[1000], 63),
            ("*", &[1, 0], 1),
            ("*", &[100, 50], 313),
            ("div", &[100, 0], 7),
            ("div", &[100, 50], 160),
            ("rem", &[50, 100], 0),
            ("rem", &[50, 50], 0),
            ("band", &[1000, 75], 63),
            ("bnot", &[1000], 63),
            ("bsl", &[100, 0], 7),
            ("bsr", &[100, 0], 7),
        ];
        for (operator, operands, reds) in rows {
            let p = Process::new(233);
            // A number of limbs, or 0 for the small integer 7.
            let built = operands.iter().map(|&limbs| match limbs {
                0 => Term::small(7),
                _ => p.big(false, &vec![u64::MAX; limbs]),
            });
            let built: Vec<_> = built.collect();
            assert_eq!(cost(operator, &p, &built), *reds, "{operator} {operands:?}");
        }
    }
}
