//! Converts between integers and floats, and compares them without rounding.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::mag::{bit_len, shl, shr};
use super::{Int, IntRef, Mag};

/// The rounding of a float to an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Towards zero: `trunc/1`.
    Trunc,
    /// Towards negative infinity: `floor/1`.
    Floor,
    /// Towards positive infinity: `ceil/1`.
    Ceil,
    /// To the nearest, halves away from zero: `round/1`.
    Nearest,
}

/// Bits of the significand of a float, the hidden one included.
const SIGNIFICAND_BITS: u64 = 53;

impl IntRef<'_> {
    /// The nearest float, ties to even; `None` where that would be infinite.
    #[must_use]
    pub fn to_f64(self) -> Option<f64> {
        let bits = bit_len(self.mag);
        let abs = if bits <= 64 {
            self.mag.first().map_or(0.0, |&l| l as f64)
        } else if bits > 1024 {
            return None;
        } else {
            // The top 64 bits are rounded once, by the conversion of the machine: a sticky
            // lowest bit tells it of what lies below.
            let shift = (bits - 64) as usize;
            let top = shr(self.mag, shift)[0];
            let (limbs, rest) = (shift / 64, shift % 64);
            let lost = self.mag[..limbs].iter().any(|&l| l != 0)
                || rest != 0 && self.mag[limbs] << (64 - rest) != 0;
            (top | u64::from(lost)) as f64 * 2f64.powi(shift as i32)
        };
        let value = if self.neg { -abs } else { abs };
        value.is_finite().then_some(value)
    }

    /// Compares with a float that is not a NaN, exactly: neither side is rounded.
    #[inline]
    #[must_use]
    pub fn cmp_f64(self, f: f64) -> Ordering {
        cmp_f64(self, f)
    }
}

/// Compares an integer with a float that is not a NaN, exactly.
#[inline]
#[must_use]
pub fn cmp_f64(i: IntRef<'_>, f: f64) -> Ordering {
    if i.neg != (f < 0.0) || f == 0.0 {
        return if i.neg {
            Ordering::Less
        } else if i.is_zero() {
            0.0f64.partial_cmp(&f).unwrap_or(Ordering::Equal)
        } else {
            Ordering::Greater
        };
    }
    let abs = f.abs();
    let order = if abs.is_infinite() {
        Ordering::Less
    } else {
        let whole = truncated(abs);
        super::mag::cmp(i.mag, &whole).then_with(|| {
            // Equal whole parts: only a fraction can still make a difference.
            if abs.fract() > 0.0 {
                Ordering::Less
            } else {
                Ordering::Equal
            }
        })
    };
    if i.neg { order.reverse() } else { order }
}

impl Int {
    /// The integer nearest to `f` in the sense of `round`; `None` if `f` is not finite.
    #[must_use]
    pub fn from_f64(f: f64, round: Round) -> Option<Self> {
        if !f.is_finite() {
            return None;
        }
        let whole = match round {
            Round::Trunc => f.trunc(),
            Round::Floor => f.floor(),
            Round::Ceil => f.ceil(),
            Round::Nearest => f.round(),
        };
        Some(Self::from_parts(whole < 0.0, truncated(whole.abs())))
    }
}

/// The whole part of a finite float that is not negative.
fn truncated(f: f64) -> Mag {
    if f < 1.0 {
        return Mag::new();
    }
    let bits = f.to_bits();
    let exponent = (bits >> 52 & 0x7ff).saturating_sub(1023);
    let significand = bits & ((1 << 52) - 1) | 1 << 52;
    let significand: Mag = SmallVec::from_slice(&[significand]);
    match (exponent + 1).checked_sub(SIGNIFICAND_BITS) {
        Some(left) => shl(&significand, left as usize),
        None => shr(&significand, (SIGNIFICAND_BITS - 1 - exponent) as usize),
    }
}
