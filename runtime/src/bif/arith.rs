//! Operators, guard functions on numbers, and `math`.

use super::{BifResult, Raise, badarg, badarith, bifs, system_limit};
use crate::num::limbs::Round;
use crate::process::Process;
use crate::sys::libm;
use crate::term::number::{self, ArithError};
use crate::term::{Term, View};

bifs! {
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

macro_rules! operators {
    ($($handler:ident => $operation:ident;)*) => {
        $(fn $handler<'p>(p: &'p Process, [a, b]: [Term<'p>; 2]) -> BifResult<'p> {
            Ok(number::$operation(p, a, b)?)
        })*
    };
}
operators! {
    plus_2 => add;
    minus_2 => sub;
    times_2 => mul;
    div_2 => fdiv;
    intdiv_2 => div;
    rem_2 => rem;
    band_2 => band;
    bor_2 => bor;
    bxor_2 => bxor;
    bsl_2 => bsl;
    bsr_2 => bsr;
}

fn bnot_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(number::bnot(p, a)?)
}

fn plus_1<'p>(_p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    match a.view() {
        View::Small(_) | View::Big(_) | View::Float(_) => Ok(a),
        _ => Err(badarith()),
    }
}

fn minus_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(number::neg(p, a)?)
}

fn abs_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    number::abs(p, a).ok_or_else(badarg)
}

fn float_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    if a.as_float().is_some() {
        return Ok(a);
    }
    number::to_f64(a)
        .map(|value| p.float(value))
        .ok_or_else(badarg)
}

fn round_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    number::to_integer(p, a, Round::Nearest).ok_or_else(badarg)
}

fn trunc_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    number::to_integer(p, a, Round::Trunc).ok_or_else(badarg)
}

fn floor_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    number::to_integer(p, a, Round::Floor).ok_or_else(badarg)
}

fn ceil_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
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

fn math_result(p: &Process, value: f64) -> BifResult<'_> {
    if value.is_finite() {
        Ok(p.float(value))
    } else {
        Err(badarith())
    }
}

macro_rules! math {
    ($($handler:ident($($arg:ident),*) => $function:ident;)*) => {
        $(fn $handler<'p>(p: &'p Process, [$($arg),*]: [Term<'p>; math!(@count $($arg)*)]) -> BifResult<'p> {
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
