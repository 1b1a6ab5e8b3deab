//! Operations on magnitudes: comparison, sums, differences and shifts of limb slices.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::Mag;

/// `a` without its leading zero limbs.
#[inline]
#[must_use]
pub(crate) fn trimmed(a: &[u64]) -> &[u64] {
    let len = a.iter().rposition(|&l| l != 0).map_or(0, |i| i + 1);
    &a[..len]
}

/// Drops the leading zero limbs of `a`.
#[inline]
pub fn trim(a: &mut Mag) {
    let len = trimmed(a).len();
    a.truncate(len);
}

/// How many bits `a` has; zero has none.
#[inline]
#[must_use]
pub fn bit_len(a: &[u64]) -> u64 {
    match trimmed(a) {
        [] => 0,
        t @ [.., top] => t.len() as u64 * 64 - u64::from(top.leading_zeros()),
    }
}

/// Compares two magnitudes without leading zero limbs.
#[inline]
#[must_use]
pub fn cmp(a: &[u64], b: &[u64]) -> Ordering {
    a.len()
        .cmp(&b.len())
        .then_with(|| a.iter().rev().cmp(b.iter().rev()))
}

/// `a += b` from limb 0 on; returns the carry out of the top of `a`.
/// `b` must not be longer than `a`.
pub(super) fn add_assign(a: &mut [u64], b: &[u64]) -> bool {
    let (lo, hi) = a.split_at_mut(b.len());
    let mut carry = false;
    for (x, &y) in lo.iter_mut().zip(b) {
        let (s, c1) = x.overflowing_add(y);
        let (s, c2) = s.overflowing_add(u64::from(carry));
        *x = s;
        carry = c1 | c2;
    }
    carry
        && hi.iter_mut().all(|x| {
            *x = x.wrapping_add(1);
            *x == 0
        })
}

/// `a -= b` from limb 0 on; returns the borrow out of the top of `a`.
/// `b` must not be longer than `a`.
pub(super) fn sub_assign(a: &mut [u64], b: &[u64]) -> bool {
    let (lo, hi) = a.split_at_mut(b.len());
    let mut borrow = false;
    for (x, &y) in lo.iter_mut().zip(b) {
        let (d, b1) = x.overflowing_sub(y);
        let (d, b2) = d.overflowing_sub(u64::from(borrow));
        *x = d;
        borrow = b1 | b2;
    }
    borrow
        && hi.iter_mut().all(|x| {
            *x = x.wrapping_sub(1);
            *x == u64::MAX
        })
}

/// `a + b`.
#[must_use]
pub fn add(a: &[u64], b: &[u64]) -> Mag {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut out = Mag::with_capacity(long.len() + 1);
    out.extend_from_slice(long);
    if add_assign(&mut out, short) {
        out.push(1);
    }
    out
}

/// `a - b`, where `a >= b`.
#[must_use]
pub fn sub(a: &[u64], b: &[u64]) -> Mag {
    let mut out: Mag = SmallVec::from_slice(a);
    let borrow = sub_assign(&mut out, trimmed(b));
    debug_assert!(!borrow, "the difference of magnitudes is negative");
    trim(&mut out);
    out
}

/// `a` shifted to the left by `bits`.
#[must_use]
pub(crate) fn shl(a: &[u64], bits: usize) -> Mag {
    if a.is_empty() {
        return Mag::new();
    }
    let (limbs, bits) = (bits / 64, bits % 64);
    let mut out = Mag::with_capacity(limbs + a.len() + 1);
    out.resize(limbs, 0);
    if bits == 0 {
        out.extend_from_slice(a);
        return out;
    }
    let mut carry = 0;
    for &l in a {
        out.push(l << bits | carry);
        carry = l >> (64 - bits);
    }
    if carry != 0 {
        out.push(carry);
    }
    out
}

/// `a` shifted to the right by `bits`; what falls off is lost.
#[must_use]
pub(crate) fn shr(a: &[u64], bits: usize) -> Mag {
    let (limbs, bits) = (bits / 64, bits % 64);
    let a = a.get(limbs..).unwrap_or_default();
    if bits == 0 {
        return SmallVec::from_slice(a);
    }
    let mut out: Mag = (0..a.len())
        .map(|i| a[i] >> bits | a.get(i + 1).map_or(0, |&next| next << (64 - bits)))
        .collect();
    trim(&mut out);
    out
}

/// `a * m + c`, in place.
pub(super) fn mul_add_limb(a: &mut Mag, m: u64, c: u64) {
    let mut carry = c;
    for x in a.iter_mut() {
        let t = u128::from(*x) * u128::from(m) + u128::from(carry);
        *x = t as u64;
        carry = (t >> 64) as u64;
    }
    if carry != 0 {
        a.push(carry);
    }
}
