//! Bitwise operations and arithmetic shifts, in infinite two's complement.

use smallvec::SmallVec;

use super::mag::{add, shl, shr, sub, sub_assign};
use super::{Int, IntRef, Mag};

impl IntRef<'_> {
    /// `self band other`.
    #[must_use]
    pub fn band(self, other: IntRef<'_>) -> Int {
        self.bitwise(other, |a, b| a & b)
    }

    /// `self bor other`.
    #[must_use]
    pub fn bor(self, other: IntRef<'_>) -> Int {
        self.bitwise(other, |a, b| a | b)
    }

    /// `self bxor other`.
    #[must_use]
    pub fn bxor(self, other: IntRef<'_>) -> Int {
        self.bitwise(other, |a, b| a ^ b)
    }

    /// `bnot self`, which is `-self - 1`.
    #[must_use]
    pub fn bnot(self) -> Int {
        let mag = if self.neg {
            sub(self.mag, &[1])
        } else {
            add(self.mag, &[1])
        };
        Int::from_parts(!self.neg, mag)
    }

    /// `self bsl bits`.
    #[must_use]
    pub fn bsl(self, bits: usize) -> Int {
        Int::from_parts(self.neg, shl(self.mag, bits))
    }

    /// `self bsr bits`, which floors.
    #[must_use]
    pub fn bsr(self, bits: usize) -> Int {
        if !self.neg {
            return Int::from_parts(false, shr(self.mag, bits));
        }
        let floor = shr(&sub(self.mag, &[1]), bits);
        Int::from_parts(true, add(&floor, &[1]))
    }

    /// The lowest `len` limbs of the two's complement form.
    #[must_use]
    pub(crate) fn twos_complement(self, len: usize) -> Mag {
        let mut out: Mag = self.mag.iter().copied().take(len).collect();
        out.resize(len, 0);
        if self.neg && len > 0 {
            negate(&mut out);
        }
        out
    }

    fn bitwise(self, other: IntRef<'_>, op: impl Fn(u64, u64) -> u64) -> Int {
        // One limb more than either has: it holds nothing but the sign.
        let len = self.mag.len().max(other.mag.len()) + 1;
        let mut out = self.twos_complement(len);
        for (a, &b) in out.iter_mut().zip(&other.twos_complement(len)) {
            *a = op(*a, b);
        }
        Int::from_twos_complement(&out)
    }
}

impl Int {
    /// Reads two's complement limbs; the top bit of the last is the sign.
    #[must_use]
    pub(crate) fn from_twos_complement(limbs: &[u64]) -> Self {
        let neg = limbs.last().is_some_and(|&top| top >> 63 == 1);
        let mut mag: Mag = SmallVec::from_slice(limbs);
        if neg {
            negate(&mut mag);
        }
        Self::from_parts(neg, mag)
    }
}

/// Two's complement negation modulo the size of `limbs`, which are not none.
fn negate(limbs: &mut [u64]) {
    sub_assign(limbs, &[1]);
    limbs.iter_mut().for_each(|l| *l = !*l);
}
