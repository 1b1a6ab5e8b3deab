//! Divides magnitudes: by one limb with a reciprocal, by some with Knuth's algorithm D, and by many with the recursive
//! division of Burnikel and Ziegler.

use smallvec::SmallVec;

use super::Mag;
use super::mag::{add, add_assign, cmp, shl, shr, sub, sub_assign, trim, trimmed};
use super::mul::mul;

/// From how many limbs in the divisor (and in the quotient) on the recursive division pays.
const RECURSIVE_LIMBS: usize = 64;

/// A normalised divisor limb (top bit set) and its reciprocal.
///
/// Source: Möller and Granlund, "Improved division by invariant integers".
#[derive(Clone, Copy)]
struct Divisor {
    limb: u64,
    reciprocal: u64,
}

impl Divisor {
    fn new(limb: u64) -> Self {
        debug_assert!(limb >> 63 == 1, "a divisor is normalised");
        let reciprocal = (u128::MAX / u128::from(limb)) as u64;
        Self { limb, reciprocal }
    }

    /// `(q, r)` of `hi:lo` by the divisor, where `hi < limb`.
    fn div(self, hi: u64, lo: u64) -> (u64, u64) {
        let wide = u128::from(hi) << 64 | u128::from(lo);
        let q = (u128::from(self.reciprocal) * u128::from(hi)).wrapping_add(wide);
        let q_lo = q as u64;
        let mut q_hi = ((q >> 64) as u64).wrapping_add(1);
        let mut r = lo.wrapping_sub(q_hi.wrapping_mul(self.limb));
        if r > q_lo {
            q_hi = q_hi.wrapping_sub(1);
            r = r.wrapping_add(self.limb);
        }
        if r >= self.limb {
            q_hi = q_hi.wrapping_add(1);
            r -= self.limb;
        }
        (q_hi, r)
    }
}

/// `(a / b, a % b)`; `b` is not zero.
pub(super) fn div_rem(a: &[u64], b: &[u64]) -> (Mag, Mag) {
    let (a, b) = (trimmed(a), trimmed(b));
    if cmp(a, b).is_lt() {
        return (Mag::new(), SmallVec::from_slice(a));
    }
    if let &[limb] = b {
        let mut q: Mag = SmallVec::from_slice(a);
        let r = div_limb_assign(&mut q, limb);
        let mut r: Mag = SmallVec::from_slice(&[r]);
        trim(&mut r);
        return (q, r);
    }
    let shift = b[b.len() - 1].leading_zeros() as usize;
    let (a, b) = (shl(a, shift), shl(b, shift));
    let (q, r) = if b.len() >= RECURSIVE_LIMBS && a.len() - b.len() >= RECURSIVE_LIMBS {
        div_blocks(&a, &b)
    } else {
        div_knuth(&a, &b)
    };
    (q, shr(&r, shift))
}

/// `a /= limb`; returns the remainder. `limb` is not zero.
pub(super) fn div_limb_assign(a: &mut Mag, limb: u64) -> u64 {
    let shift = limb.leading_zeros();
    let divisor = Divisor::new(limb << shift);
    // The dividend is shifted on the way, as the divisor was.
    let spill = |l: u64| l.checked_shr(64 - shift).unwrap_or(0);
    let mut rem = a.last().map_or(0, |&l| spill(l));
    for i in (0..a.len()).rev() {
        let below = i.checked_sub(1).map_or(0, |i| spill(a[i]));
        (a[i], rem) = divisor.div(rem, a[i] << shift | below);
    }
    trim(a);
    rem >> shift
}

/// Algorithm D of Knuth's "The Art of Computer Programming", volume 2, 4.3.1.
/// `b` has at least two limbs and its top bit set.
fn div_knuth(a: &[u64], b: &[u64]) -> (Mag, Mag) {
    let n = b.len();
    let mut rem: Mag = SmallVec::from_slice(a);
    if rem.len() < n {
        trim(&mut rem);
        return (Mag::new(), rem);
    }
    rem.push(0);
    let steps = rem.len() - n;
    let mut q = Mag::new();
    q.resize(steps, 0);
    let (top, second) = (b[n - 1], b[n - 2]);
    let divisor = Divisor::new(top);
    for j in (0..steps).rev() {
        let window = &mut rem[j..=j + n];
        let mut digit = estimate(divisor, second, window[n], window[n - 1], window[n - 2]);
        if sub_product(window, b, digit) {
            digit -= 1;
            add_assign(window, b);
        }
        q[j] = digit;
    }
    trim(&mut q);
    rem.truncate(n);
    trim(&mut rem);
    (q, rem)
}

/// A digit of the quotient, at most one too large.
fn estimate(divisor: Divisor, second: u64, u2: u64, u1: u64, u0: u64) -> u64 {
    let top = divisor.limb;
    let (mut digit, mut rest) = if u2 >= top {
        // Only equality is possible; the digit is then at most B - 1.
        let (rest, over) = u1.overflowing_add(top);
        if over {
            return u64::MAX;
        }
        (u64::MAX, rest)
    } else {
        divisor.div(u2, u1)
    };
    while u128::from(digit) * u128::from(second) > (u128::from(rest) << 64 | u128::from(u0)) {
        digit -= 1;
        let (sum, over) = rest.overflowing_add(top);
        if over {
            break;
        }
        rest = sum;
    }
    digit
}

/// `window -= b * digit`; returns the borrow. `window` is one limb longer than `b`.
fn sub_product(window: &mut [u64], b: &[u64], digit: u64) -> bool {
    let mut carry = 0u64;
    for (w, &l) in window.iter_mut().zip(b) {
        let t = u128::from(l) * u128::from(digit) + u128::from(carry);
        let (d, borrow) = w.overflowing_sub(t as u64);
        *w = d;
        carry = (t >> 64) as u64 + u64::from(borrow);
    }
    let (d, borrow) = window[b.len()].overflowing_sub(carry);
    window[b.len()] = d;
    borrow
}

/// Divides block by block of the divisor's size, each by the recursive division.
///
/// The divisor is padded with low zero limbs so that it halves evenly down to
/// the size where algorithm D takes over.
fn div_blocks(a: &[u64], b: &[u64]) -> (Mag, Mag) {
    let mut unit = 1;
    while b.len().div_ceil(unit) >= RECURSIVE_LIMBS {
        unit *= 2;
    }
    let n = b.len().next_multiple_of(unit);
    let pad = n - b.len();
    let b = shl(b, pad * 64);
    let a = shl(a, pad * 64);
    let mut q = Mag::new();
    q.resize(a.len().next_multiple_of(n), 0);
    let mut rem = Mag::new();
    for (i, block) in a.chunks(n).enumerate().rev() {
        let (digit, r) = div_two_by_one(&join(&rem, block, n), &b);
        q[i * n..i * n + digit.len()].copy_from_slice(&digit);
        rem = r;
    }
    trim(&mut q);
    (q, shr(&rem, pad * 64))
}

/// `hi * B^n + lo`.
fn join(hi: &[u64], lo: &[u64], n: usize) -> Mag {
    let mut out: Mag = SmallVec::from_slice(lo);
    if !hi.is_empty() {
        out.resize(n, 0);
        out.extend_from_slice(hi);
    }
    trim(&mut out);
    out
}

/// Splits `a` into its limbs from `n` on and those below.
fn split(a: &[u64], n: usize) -> (&[u64], &[u64]) {
    if a.len() <= n {
        (&[], trimmed(a))
    } else {
        (&a[n..], trimmed(&a[..n]))
    }
}

/// `a / b` where `b` has `n` limbs with the top bit set and `a < b * B^n`.
fn div_two_by_one(a: &[u64], b: &[u64]) -> (Mag, Mag) {
    let n = b.len();
    if n % 2 == 1 || n < RECURSIVE_LIMBS {
        return div_knuth(a, b);
    }
    let half = n / 2;
    let (high, low) = split(a, half);
    let (q1, r) = div_three_by_two(high, b);
    let (q0, r) = div_three_by_two(&join(&r, low, half), b);
    (join(&q1, &q0, half), r)
}

/// `a / b` where `b` has `2 * half` limbs with the top bit set and `a < b * B^half`.
fn div_three_by_two(a: &[u64], b: &[u64]) -> (Mag, Mag) {
    let half = b.len() / 2;
    let (b0, b1) = b.split_at(half);
    let (a21, a0) = split(a, half);
    let (a2, _) = split(a21, half);
    let (mut q, r) = if cmp(a2, b1).is_lt() {
        div_two_by_one(a21, b1)
    } else {
        // a2 == b1: the quotient is B^half - 1, the rest a21 - b1 * B^half + b1.
        let q = SmallVec::from_elem(u64::MAX, half);
        let mut r: Mag = sub(a21, &join(b1, &[], half));
        r = add(&r, b1);
        (q, r)
    };
    let product = mul(&q, b0);
    let mut rem = join(&r, a0, half);
    while cmp(&rem, &product).is_lt() {
        sub_assign(&mut q, &[1]);
        rem = add(&rem, b);
    }
    trim(&mut q);
    (q, sub(&rem, &product))
}
