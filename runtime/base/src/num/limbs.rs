//! Arithmetic on integers of any size, as sign and magnitude.
//!
//! A magnitude is a little-endian slice of 64-bit limbs without leading zero limbs. Zero is the empty slice and is
//! never negative. A big integer lies on a heap in the same way, so [`IntRef`] borrows one where it is. Results are
//! built in an [`Int`], which holds up to four limbs without an allocation.
//!
//! An operation means what it means in Erlang: division truncates, the bitwise operations act on infinite two's
//! complement, a shift to the right floors. Limits (`system_limit`) are the caller's business.

mod bits;
mod bytes;
mod div;
mod float;
pub mod mag;
mod mul;
mod radix;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::ops::{Add, Mul, Neg, Sub};

use smallvec::SmallVec;

pub use bytes::Endian;
pub use float::{Round, cmp_f64};
pub use radix::{LimbDigits, ParseIntError};

/// An owned magnitude; four limbs fit inline.
pub type Mag = SmallVec<[u64; 4]>;

/// An integer that owns its limbs.
///
/// The magnitude has no leading zero limb, and zero is not negative.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Int {
    neg: bool,
    mag: Mag,
}

/// An integer whose limbs are borrowed, from an [`Int`] or from a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntRef<'a> {
    neg: bool,
    mag: &'a [u64],
}

impl Int {
    /// Zero.
    #[inline]
    #[must_use]
    pub fn zero() -> Self {
        Self::default()
    }

    /// Makes an integer of a sign and limbs; leading zero limbs are dropped.
    #[inline]
    #[must_use]
    pub fn from_parts(neg: bool, mut mag: Mag) -> Self {
        mag::trim(&mut mag);
        let neg = neg && !mag.is_empty();
        Self { neg, mag }
    }

    /// Borrows the integer; all operations are methods and operators of the result.
    #[inline]
    #[must_use]
    pub fn as_ref(&self) -> IntRef<'_> {
        IntRef {
            neg: self.neg,
            mag: &self.mag,
        }
    }

    /// Whether the integer is below zero.
    #[inline]
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.neg
    }

    /// The limbs of the absolute value.
    #[inline]
    #[must_use]
    pub fn mag(&self) -> &[u64] {
        &self.mag
    }

    /// The value as an `i64`, if it fits.
    #[inline]
    #[must_use]
    #[cfg(test)]
    pub(crate) fn to_i64(&self) -> Option<i64> {
        self.as_ref().to_i64()
    }
}

impl From<u64> for Int {
    #[inline]
    fn from(v: u64) -> Self {
        Self::from_parts(false, SmallVec::from_slice(&[v]))
    }
}

impl From<i64> for Int {
    #[inline]
    fn from(v: i64) -> Self {
        Self::from_parts(v < 0, SmallVec::from_slice(&[v.unsigned_abs()]))
    }
}

impl From<u128> for Int {
    #[inline]
    fn from(v: u128) -> Self {
        Self::from_parts(false, SmallVec::from_slice(&[v as u64, (v >> 64) as u64]))
    }
}

impl From<i128> for Int {
    #[inline]
    fn from(v: i128) -> Self {
        Self {
            neg: v < 0,
            ..Self::from(v.unsigned_abs())
        }
    }
}

impl<'a> IntRef<'a> {
    /// Views limbs as an integer; leading zero limbs are skipped.
    #[inline]
    #[must_use]
    pub fn new(neg: bool, mag: &'a [u64]) -> Self {
        let mag = mag::trimmed(mag);
        Self {
            neg: neg && !mag.is_empty(),
            mag,
        }
    }

    /// Views a machine integer, whose limb is kept in `buf`.
    #[inline]
    #[must_use]
    pub fn of_i64(v: i64, buf: &'a mut [u64; 1]) -> Self {
        buf[0] = v.unsigned_abs();
        Self::new(v < 0, buf)
    }

    /// Whether the integer is below zero.
    #[inline]
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.neg
    }

    /// Whether the integer is zero.
    #[inline]
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.mag.is_empty()
    }

    /// The limbs of the absolute value.
    #[inline]
    #[must_use]
    pub fn mag(self) -> &'a [u64] {
        self.mag
    }

    /// How many bits the absolute value has; zero has none.
    #[inline]
    #[must_use]
    pub fn bit_len(self) -> u64 {
        mag::bit_len(self.mag)
    }

    /// A copy that owns its limbs.
    #[inline]
    #[must_use]
    pub fn to_owned(self) -> Int {
        Int {
            neg: self.neg,
            mag: SmallVec::from_slice(self.mag),
        }
    }

    /// The value as an `i64`, if it fits.
    #[inline]
    #[must_use]
    pub(crate) fn to_i64(self) -> Option<i64> {
        match (self.mag, self.neg) {
            ([], _) => Some(0),
            (&[m], false) => i64::try_from(m).ok(),
            (&[m], true) => 0i64.checked_sub_unsigned(m),
            _ => None,
        }
    }

    /// The value as a `u64`, if it fits.
    #[inline]
    #[must_use]
    #[cfg(test)]
    pub(crate) fn to_u64(self) -> Option<u64> {
        match (self.mag, self.neg) {
            ([], _) => Some(0),
            (&[m], false) => Some(m),
            _ => None,
        }
    }

    /// The value as an `i128`, if it fits.
    #[inline]
    #[must_use]
    #[cfg(test)]
    pub(crate) fn to_i128(self) -> Option<i128> {
        let m = match *self.mag {
            [] => 0,
            [lo] => u128::from(lo),
            [lo, hi] => u128::from(lo) | u128::from(hi) << 64,
            _ => return None,
        };
        if self.neg {
            0i128.checked_sub_unsigned(m)
        } else {
            i128::try_from(m).ok()
        }
    }

    /// `abs(self)`, without a copy.
    #[inline]
    #[must_use]
    pub fn abs(self) -> Self {
        Self {
            neg: false,
            mag: self.mag,
        }
    }

    /// `(self div other, self rem other)`: the quotient is truncated towards zero and
    /// the remainder has the sign of `self`. `None` when `other` is zero.
    #[must_use]
    pub fn div_rem(self, other: IntRef<'_>) -> Option<(Int, Int)> {
        if other.is_zero() {
            return None;
        }
        let (q, r) = div::div_rem(self.mag, other.mag);
        Some((
            Int::from_parts(self.neg != other.neg, q),
            Int::from_parts(self.neg, r),
        ))
    }
}

impl Neg for IntRef<'_> {
    type Output = Int;

    fn neg(self) -> Int {
        Int::from_parts(!self.neg, SmallVec::from_slice(self.mag))
    }
}

impl Add<IntRef<'_>> for IntRef<'_> {
    type Output = Int;

    fn add(self, other: IntRef<'_>) -> Int {
        if self.neg == other.neg {
            return Int::from_parts(self.neg, mag::add(self.mag, other.mag));
        }
        match mag::cmp(self.mag, other.mag) {
            Ordering::Equal => Int::zero(),
            Ordering::Greater => Int::from_parts(self.neg, mag::sub(self.mag, other.mag)),
            Ordering::Less => Int::from_parts(other.neg, mag::sub(other.mag, self.mag)),
        }
    }
}

impl Sub<IntRef<'_>> for IntRef<'_> {
    type Output = Int;

    fn sub(self, other: IntRef<'_>) -> Int {
        self + IntRef {
            neg: !other.neg,
            mag: other.mag,
        }
    }
}

impl Mul<IntRef<'_>> for IntRef<'_> {
    type Output = Int;

    fn mul(self, other: IntRef<'_>) -> Int {
        Int::from_parts(self.neg != other.neg, mul::mul(self.mag, other.mag))
    }
}

impl Ord for IntRef<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.neg, other.neg) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => mag::cmp(self.mag, other.mag),
            (true, true) => mag::cmp(other.mag, self.mag),
        }
    }
}

impl PartialOrd for IntRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
