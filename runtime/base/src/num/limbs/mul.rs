//! Multiplies magnitudes: short ones by the schoolbook method, and long ones by Karatsuba's.

use super::Mag;
use super::mag::{add_assign, cmp, sub, sub_assign, trim, trimmed};

/// From how many limbs in the shorter factor on Karatsuba's method pays.
const KARATSUBA_LIMBS: usize = 32;

/// `a * b`.
pub(super) fn mul(a: &[u64], b: &[u64]) -> Mag {
    let (a, b) = (trimmed(a), trimmed(b));
    if a.is_empty() || b.is_empty() {
        return Mag::new();
    }
    if let ([limb], many) | (many, [limb]) = (a, b) {
        return mul_limb(many, *limb);
    }
    let mut out = Mag::new();
    out.resize(a.len() + b.len(), 0);
    add_product(&mut out, a, b);
    trim(&mut out);
    out
}

/// `a * m` of numbers that are not 0.
fn mul_limb(a: &[u64], m: u64) -> Mag {
    let mut out = Mag::with_capacity(a.len() + 1);
    out.extend_from_slice(a);
    let mut carry = 0;
    for limb in &mut out {
        let t = u128::from(*limb) * u128::from(m) + u128::from(carry);
        *limb = t as u64;
        carry = (t >> 64) as u64;
    }
    if carry > 0 {
        out.push(carry);
    }
    out
}

/// `out += a * b`, modulo the size of `out`, which is at least `a.len() + b.len()` limbs.
///
/// Sums inside may overflow `out` and come back: only the final value must fit.
fn add_product(out: &mut [u64], a: &[u64], b: &[u64]) {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    if short.len() < KARATSUBA_LIMBS {
        add_product_schoolbook(out, long, short);
    } else if long.len() >= 2 * short.len() {
        for (i, part) in long.chunks(short.len()).enumerate() {
            add_product(&mut out[i * short.len()..], part, short);
        }
    } else {
        add_product_karatsuba(out, long, short);
    }
}

fn add_product_schoolbook(out: &mut [u64], long: &[u64], short: &[u64]) {
    for (i, &m) in short.iter().enumerate() {
        if m == 0 {
            continue;
        }
        let (row, above) = out[i..].split_at_mut(long.len());
        let mut carry = 0;
        for (o, &l) in row.iter_mut().zip(long) {
            let t = u128::from(l) * u128::from(m) + u128::from(*o) + u128::from(carry);
            *o = t as u64;
            carry = (t >> 64) as u64;
        }
        add_assign(above, &[carry]);
    }
}

/// With `x = x1 * B + x0`: `x * y = z2 * B^2 + (z2 + z0 - (x1 - x0) * (y1 - y0)) * B + z0`.
fn add_product_karatsuba(out: &mut [u64], x: &[u64], y: &[u64]) {
    let half = y.len() / 2;
    let (x0, x1) = x.split_at(half);
    let (y0, y1) = y.split_at(half);
    for (lo, hi, at) in [(x0, y0, 0), (x1, y1, half)] {
        let z = mul(lo, hi);
        add_wrapping(&mut out[at..], &z);
        add_wrapping(&mut out[at + half..], &z);
    }
    let (dx, x_neg) = abs_diff(x1, x0);
    let (dy, y_neg) = abs_diff(y1, y0);
    let z = mul(&dx, &dy);
    if x_neg == y_neg {
        sub_wrapping(&mut out[half..], &z);
    } else {
        add_wrapping(&mut out[half..], &z);
    }
}

fn add_wrapping(out: &mut [u64], z: &[u64]) {
    let len = z.len().min(out.len());
    add_assign(out, &z[..len]);
}

fn sub_wrapping(out: &mut [u64], z: &[u64]) {
    let len = z.len().min(out.len());
    sub_assign(out, &z[..len]);
}

/// `(|a - b|, a < b)`.
fn abs_diff(a: &[u64], b: &[u64]) -> (Mag, bool) {
    let (a, b) = (trimmed(a), trimmed(b));
    if cmp(a, b).is_lt() {
        (sub(b, a), true)
    } else {
        (sub(a, b), false)
    }
}
