//! Integers of at most 128 bits beside their sign, which stay in registers. The operations mean what they mean in
//! [`super::limbs`]; one whose result is longer has none here, but for products and shifts to the left, which may be
//! twice as long.

#[cfg(test)]
mod tests;

/// An integer whose absolute value has at most 128 bits. Zero is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wide {
    neg: bool,
    mag: u128,
}

/// An integer whose absolute value has at most 256 bits. Zero is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Double {
    neg: bool,
    low: u128,
    high: u128,
}

impl From<i64> for Wide {
    #[inline(always)]
    fn from(value: i64) -> Self {
        Self {
            neg: value < 0,
            mag: value.unsigned_abs().into(),
        }
    }
}

impl Wide {
    /// The integer of a sign and an absolute value.
    #[inline(always)]
    #[must_use]
    pub fn new(neg: bool, mag: u128) -> Self {
        Self {
            neg: neg && mag != 0,
            mag,
        }
    }

    /// The integer of a sign and the limbs of its absolute value, the least first; `None` of more than two.
    #[inline(always)]
    #[must_use]
    pub fn of_limbs(neg: bool, limbs: &[u64]) -> Option<Self> {
        let mag = match *limbs {
            [low] => low.into(),
            [low, high] => u128::from(high) << 64 | u128::from(low),
            _ => return None,
        };
        Some(Self::new(neg, mag))
    }

    /// Whether the integer is below zero.
    #[inline(always)]
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.neg
    }

    /// The absolute value.
    #[inline(always)]
    #[must_use]
    pub fn mag(self) -> u128 {
        self.mag
    }

    /// `-self`.
    #[inline(always)]
    #[must_use]
    pub fn negated(self) -> Self {
        Self::new(!self.neg, self.mag)
    }

    /// `self + other`.
    #[inline(always)]
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        if self.neg == other.neg {
            let mag = self.mag.checked_add(other.mag)?;
            return Some(Self { neg: self.neg, mag });
        }
        Some(match self.mag.overflowing_sub(other.mag) {
            (mag, false) => Self::new(self.neg, mag),
            (mag, true) => Self::new(other.neg, mag.wrapping_neg()),
        })
    }

    /// `self - other`.
    #[inline(always)]
    #[must_use]
    pub fn minus(self, other: Self) -> Option<Self> {
        self.plus(other.negated())
    }

    /// `self * other`.
    #[inline(always)]
    #[must_use]
    pub fn times(self, other: Self) -> Double {
        let neg = self.neg != other.neg;
        let (low, high) = match (u64::try_from(self.mag), u64::try_from(other.mag)) {
            (Ok(a), Ok(b)) => (u128::from(a) * u128::from(b), 0),
            _ => product(self.mag, other.mag),
        };
        Double {
            neg: neg && (low, high) != (0, 0),
            low,
            high,
        }
    }

    /// The quotient and the remainder, which has the sign of `self`; `None` for a division by zero.
    #[inline(always)]
    #[must_use]
    pub fn div_rem(self, other: Self) -> Option<(Self, Self)> {
        let (quotient, remainder) = match (u64::try_from(self.mag), u64::try_from(other.mag)) {
            (_, Ok(0)) => return None,
            (Ok(a), Ok(b)) => (u128::from(a / b), u128::from(a % b)),
            _ => (self.mag / other.mag, self.mag % other.mag),
        };
        Some((
            Self::new(self.neg != other.neg, quotient),
            Self::new(self.neg, remainder),
        ))
    }

    /// The integer in two's complement, where 128 bits are enough for that.
    #[inline(always)]
    fn bits(self) -> Option<i128> {
        match self.neg {
            false => i128::try_from(self.mag).ok(),
            true => 0i128.checked_sub_unsigned(self.mag),
        }
    }

    #[inline(always)]
    fn of_bits(bits: i128) -> Self {
        Self {
            neg: bits < 0,
            mag: bits.unsigned_abs(),
        }
    }

    #[inline(always)]
    fn bitwise(
        self,
        other: Self,
        unsigned: impl FnOnce(u128, u128) -> u128,
        signed: impl FnOnce(i128, i128) -> i128,
    ) -> Option<Self> {
        if !self.neg && !other.neg {
            return Some(Self::new(false, unsigned(self.mag, other.mag)));
        }
        Some(Self::of_bits(signed(self.bits()?, other.bits()?)))
    }

    /// `self band other`.
    #[inline(always)]
    #[must_use]
    pub fn band(self, other: Self) -> Option<Self> {
        self.bitwise(other, |a, b| a & b, |a, b| a & b)
    }

    /// `self bor other`.
    #[inline(always)]
    #[must_use]
    pub fn bor(self, other: Self) -> Option<Self> {
        self.bitwise(other, |a, b| a | b, |a, b| a | b)
    }

    /// `self bxor other`.
    #[inline(always)]
    #[must_use]
    pub fn bxor(self, other: Self) -> Option<Self> {
        self.bitwise(other, |a, b| a ^ b, |a, b| a ^ b)
    }

    /// `self bsl bits`; `None` of more than 128 bits.
    #[inline(always)]
    #[must_use]
    pub fn bsl(self, bits: u64) -> Option<Double> {
        let Self { neg, mag } = self;
        let (low, high) = match bits {
            0 => (mag, 0),
            1..=127 => (mag << bits, mag >> (128 - bits)),
            128 => (0, mag),
            _ => return None,
        };
        Some(Double { neg, low, high })
    }

    /// `self bsr bits`, which floors.
    #[inline(always)]
    #[must_use]
    pub fn bsr(self, bits: u64) -> Self {
        let shifted = |mag: u128| if bits < 128 { mag >> bits } else { 0 };
        match self.neg {
            false => Self::new(false, shifted(self.mag)),
            true => Self::new(true, shifted(self.mag - 1) + 1),
        }
    }
}

/// The product of which at least one factor is above 64 bits: its lower and its upper half.
#[inline]
fn product(a: u128, b: u128) -> (u128, u128) {
    let halves = |value: u128| (u128::from(value as u64), value >> 64);
    let ((a0, a1), (b0, b1)) = (halves(a), halves(b));
    let lowest = a0 * b0;
    // A product of two limbs leaves room for two limbs more.
    let middle = a1 * b0 + (lowest >> 64);
    let other = a0 * b1 + u128::from(middle as u64);
    let low = other << 64 | u128::from(lowest as u64);
    (low, a1 * b1 + (middle >> 64) + (other >> 64))
}

impl Double {
    /// The integer in 128 bits; `None` if it needs more.
    #[inline(always)]
    #[must_use]
    pub fn to_wide(self) -> Option<Wide> {
        (self.high == 0).then_some(Wide {
            neg: self.neg,
            mag: self.low,
        })
    }

    /// Whether the integer is below zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.neg
    }

    /// The limbs of the absolute value, the least first; the last ones may be zero.
    #[must_use]
    pub fn limbs(self) -> [u64; 4] {
        let halves = |value: u128| [value as u64, (value >> 64) as u64];
        let ([a, b], [c, d]) = (halves(self.low), halves(self.high));
        [a, b, c, d]
    }

    /// `self + addend`, where `self` is a product of two [`Wide`]: the sum is no longer than that.
    #[inline(always)]
    #[must_use]
    pub fn plus(self, addend: Wide) -> Self {
        let Self { neg, low, high } = self;
        if neg == addend.neg {
            let (low, carry) = low.overflowing_add(addend.mag);
            let high = high + u128::from(carry);
            return Self { neg, low, high };
        }
        let (less, borrow) = low.overflowing_sub(addend.mag);
        if borrow && high == 0 {
            let low = less.wrapping_neg();
            return Self {
                neg: addend.neg,
                low,
                high,
            };
        }
        let high = high - u128::from(borrow);
        Self {
            neg: neg && (less, high) != (0, 0),
            low: less,
            high,
        }
    }
}
