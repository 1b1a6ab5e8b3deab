//! Arithmetic on terms: small and big integers and floats, with the results, errors and limits of ERTS's operators. The
//! interpreter's slow paths and the BIFs both use it.
//!
//! Source: `erl_arith.c`, `big.c` and `erl_bif_guard.c`, OTP 29.

use crate::heap::Heap;
use crate::num::limbs::{Int, IntRef, Round};
use crate::term::{Term, View, tag};

/// Limbs of the largest integer; a larger one is a `system_limit`. Source: `BIG_ARITY_MAX` in `big.h`.
pub(crate) const MAX_LIMBS: usize = 0xffff;

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithError {
    /// `badarith`: an operand of the wrong type, a division by zero, a result that is no float.
    BadArith,
    /// `system_limit`: an integer above the largest.
    SystemLimit,
}

/// The result of an operation.
pub(crate) type ArithResult<'h> = Result<Term<'h>, ArithError>;

/// A number looked at.
#[derive(Clone, Copy)]
enum Number<'h> {
    Small(i64),
    Big(IntRef<'h>),
    Float(f64),
}

use Number::{Big, Float, Small};

impl<'h> Number<'h> {
    fn of(term: Term<'h>) -> Result<Number<'h>, ArithError> {
        Ok(match term.view() {
            View::Small(value) => Small(value),
            View::Big(big) => Big(IntRef::new(big.is_negative(), big.limbs())),
            View::Float(value) => Float(value),
            _ => return Err(ArithError::BadArith),
        })
    }

    fn to_f64(self) -> Result<f64, ArithError> {
        match self {
            Small(value) => Ok(value as f64),
            Big(value) => value.to_f64().ok_or(ArithError::BadArith),
            Float(value) => Ok(value),
        }
    }

    /// The integer it is; a small one's limb is kept in `limb`.
    fn int<'a>(self, limb: &'a mut [u64; 1]) -> Result<IntRef<'a>, ArithError>
    where
        'h: 'a,
    {
        match self {
            Small(value) => Ok(IntRef::of_i64(value, limb)),
            Big(value) => Ok(value),
            Float(_) => Err(ArithError::BadArith),
        }
    }
}

/// The value of a number as a float; `None` for no number and for integers that no float comes near.
#[must_use]
pub(crate) fn to_f64(term: Term<'_>) -> Option<f64> {
    Number::of(term).and_then(Number::to_f64).ok()
}

/// The integer term of `value`.
///
/// # Errors
/// `SystemLimit` for more than [`MAX_LIMBS`] limbs.
pub(crate) fn make_integer<'h>(heap: &'h Heap, value: &Int) -> ArithResult<'h> {
    if value.mag().len() > MAX_LIMBS {
        return Err(ArithError::SystemLimit);
    }
    Ok(heap.big(value.is_negative(), value.mag()))
}

/// What an operator gives: a big one in a fragment, as in ERTS, so that collections come when they come there.
fn result<'h>(heap: &'h Heap, value: &Int) -> ArithResult<'h> {
    if value.mag().len() > MAX_LIMBS {
        return Err(ArithError::SystemLimit);
    }
    Ok(heap.big_beside(value.is_negative(), value.mag()))
}

fn integer(heap: &Heap, value: i64) -> Term<'_> {
    heap.big_beside(value < 0, &[value.unsigned_abs()])
}

fn make_float(heap: &Heap, value: f64) -> ArithResult<'_> {
    if !value.is_finite() {
        return Err(ArithError::BadArith);
    }
    Ok(heap.float_beside(value))
}

/// `a op b` where either may be a float.
fn mixed<'h>(
    heap: &'h Heap,
    a: Term<'h>,
    b: Term<'h>,
    small: fn(i64, i64) -> Option<i64>,
    big: fn(IntRef<'_>, IntRef<'_>) -> Int,
    float: fn(f64, f64) -> f64,
) -> ArithResult<'h> {
    let (a, b) = (Number::of(a)?, Number::of(b)?);
    if let (Small(a), Small(b)) = (a, b)
        && let Some(value) = small(a, b)
    {
        return Ok(integer(heap, value));
    }
    if matches!(a, Float(_)) || matches!(b, Float(_)) {
        return make_float(heap, float(a.to_f64()?, b.to_f64()?));
    }
    let value = big(a.int(&mut [0])?, b.int(&mut [0])?);
    result(heap, &value)
}

/// `a + b`.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn add<'h>(heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> ArithResult<'h> {
    mixed(heap, a, b, i64::checked_add, |a, b| a + b, |a, b| a + b)
}

/// `a - b`.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn sub<'h>(heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> ArithResult<'h> {
    mixed(heap, a, b, i64::checked_sub, |a, b| a - b, |a, b| a - b)
}

/// `a * b`.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn mul<'h>(heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> ArithResult<'h> {
    if let (View::Big(a), View::Big(b)) = (a.view(), b.view())
        && a.limbs().len() + b.limbs().len() > MAX_LIMBS + 1
    {
        return Err(ArithError::SystemLimit);
    }
    mixed(heap, a, b, i64::checked_mul, |a, b| a * b, |a, b| a * b)
}

/// `a * b + c` of integers, with no term for the product; `None` where one is no integer, or the result is
/// too large.
pub(crate) fn mul_add<'h>(
    heap: &'h Heap,
    a: Term<'h>,
    b: Term<'h>,
    c: Term<'h>,
) -> Option<Term<'h>> {
    if let (Some(a), Some(b), Some(c)) = (a.as_small(), b.as_small(), c.as_small()) {
        // A product of two and a sum more have less than 128 bits.
        let value = i128::from(a) * i128::from(b) + i128::from(c);
        return Some(match i64::try_from(value) {
            Ok(value) => integer(heap, value),
            Err(_) => {
                let magnitude = value.unsigned_abs();
                heap.big_beside(value < 0, &[magnitude as u64, (magnitude >> 64) as u64])
            }
        });
    }
    let [a, b, c] = [a, b, c].map(Number::of);
    let (mut buf_a, mut buf_b, mut buf_c) = ([0], [0], [0]);
    let (a, b, c) = (
        a.ok()?.int(&mut buf_a).ok()?,
        b.ok()?.int(&mut buf_b).ok()?,
        c.ok()?.int(&mut buf_c).ok()?,
    );
    if a.mag().len() + b.mag().len() > MAX_LIMBS + 1 {
        return None;
    }
    let product = a * b;
    result(heap, &(product.as_ref() + c)).ok()
}

/// `a / b`, always a float.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn fdiv<'h>(heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> ArithResult<'h> {
    let (a, b) = (Number::of(a)?.to_f64()?, Number::of(b)?.to_f64()?);
    make_float(heap, a / b)
}

/// `a op b` for integers alone.
fn integers<'h>(
    heap: &'h Heap,
    a: Term<'h>,
    b: Term<'h>,
    small: fn(i64, i64) -> Option<i64>,
    big: fn(IntRef<'_>, IntRef<'_>) -> Option<Int>,
) -> ArithResult<'h> {
    let (a, b) = (Number::of(a)?, Number::of(b)?);
    if let (Small(a), Small(b)) = (a, b)
        && let Some(value) = small(a, b)
    {
        return Ok(integer(heap, value));
    }
    let value = big(a.int(&mut [0])?, b.int(&mut [0])?).ok_or(ArithError::BadArith)?;
    result(heap, &value)
}

/// `a div b`, truncated towards zero.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn div<'h>(heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> ArithResult<'h> {
    integers(heap, a, b, i64::checked_div, |a, b| {
        a.div_rem(b).map(|(quotient, _)| quotient)
    })
}

/// `a rem b`, with the sign of `a`.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn rem<'h>(heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> ArithResult<'h> {
    integers(heap, a, b, i64::checked_rem, |a, b| {
        a.div_rem(b).map(|(_, remainder)| remainder)
    })
}

/// `a band b`.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn band<'h>(heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> ArithResult<'h> {
    integers(heap, a, b, |a, b| Some(a & b), |a, b| Some(a.band(b)))
}

/// `a bor b`.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn bor<'h>(heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> ArithResult<'h> {
    integers(heap, a, b, |a, b| Some(a | b), |a, b| Some(a.bor(b)))
}

/// `a bxor b`.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn bxor<'h>(heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> ArithResult<'h> {
    integers(heap, a, b, |a, b| Some(a ^ b), |a, b| Some(a.bxor(b)))
}

/// `bnot a`.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn bnot<'h>(heap: &'h Heap, a: Term<'h>) -> ArithResult<'h> {
    match Number::of(a)? {
        Small(value) => Ok(integer(heap, !value)),
        Big(value) => result(heap, &value.bnot()),
        Float(_) => Err(ArithError::BadArith),
    }
}

/// How far to shift, to the left: a big number of bits counts as the largest small one.
fn shift_bits(term: Term<'_>) -> Result<i64, ArithError> {
    match Number::of(term)? {
        Small(bits) => Ok(bits),
        Big(bits) if bits.is_negative() => Ok(tag::MIN_SMALL),
        Big(_) => Ok(tag::MAX_SMALL),
        Float(_) => Err(ArithError::BadArith),
    }
}

/// `a bsl b`.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn bsl<'h>(heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> ArithResult<'h> {
    shift(heap, a, shift_bits(b)?)
}

/// `a bsr b`.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn bsr<'h>(heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> ArithResult<'h> {
    shift(heap, a, -shift_bits(b)?)
}

fn shift<'h>(heap: &'h Heap, a: Term<'h>, left: i64) -> ArithResult<'h> {
    let number = Number::of(a)?;
    if let Small(value) = number {
        if value == 0 || left == 0 {
            return Ok(a);
        }
        if left < 0 {
            return Ok(Term::small(value >> (-left).min(63)));
        }
        if left < 64 && (value << left) >> left == value {
            return Ok(integer(heap, value << left));
        }
    }
    let mut limb = [0];
    let value = number.int(&mut limb)?;
    if left < 0 {
        return result(heap, &value.bsr(left.unsigned_abs() as usize));
    }
    let left = left as usize;
    if value.mag().len() + left / 64 > MAX_LIMBS + 1 {
        return Err(ArithError::SystemLimit);
    }
    result(heap, &value.bsl(left))
}

/// `- a`.
///
/// # Errors
/// [`ArithError`].
pub(crate) fn neg<'h>(heap: &'h Heap, a: Term<'h>) -> ArithResult<'h> {
    match Number::of(a)? {
        Small(value) => Ok(integer(heap, -value)),
        Big(value) => result(heap, &-value),
        Float(value) => make_float(heap, -value),
    }
}

/// `abs(a)`; `None` for no number.
#[must_use]
pub(crate) fn abs<'h>(heap: &'h Heap, a: Term<'h>) -> Option<Term<'h>> {
    Some(match Number::of(a).ok()? {
        Small(value) if value < 0 => integer(heap, -value),
        Big(value) if value.is_negative() => heap.big_beside(false, value.mag()),
        Float(value) if value.is_sign_negative() => heap.float_beside(-value),
        _ => a,
    })
}

/// `round`, `trunc`, `floor` and `ceil`; `None` for no number.
#[must_use]
pub(crate) fn to_integer<'h>(heap: &'h Heap, a: Term<'h>, round: Round) -> Option<Term<'h>> {
    match Number::of(a).ok()? {
        Small(_) | Big(_) => Some(a),
        Float(value) => {
            let value = Int::from_f64(value, round)?;
            Some(heap.big_beside(value.is_negative(), value.mag()))
        }
    }
}
