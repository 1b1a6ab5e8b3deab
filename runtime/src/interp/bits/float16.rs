//! Converts floats of 16 bits (IEEE 754 binary16), which the bit syntax reads and writes.

const EXPONENT_BITS: u16 = 0x7c00;

/// The value of a float of 16 bits; infinite or NaN where it is.
pub(super) fn to_f64(half: u16) -> f64 {
    let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = (half & EXPONENT_BITS) >> 10;
    let fraction = f64::from(half & 0x3ff);
    sign * match exponent {
        0 => fraction * f64::powi(2.0, -24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * f64::powi(2.0, i32::from(exponent) - 15),
    }
}

/// The nearest float of 16 bits, ties to even; infinite where it is too large.
pub(super) fn from_f64(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = value.abs();
    // Below 2^-14 numbers stand 2^-24 apart; above, 1024 to each power of two. Both products are
    // exact, and the rounding carries into the exponent where it must.
    let biased = ((magnitude.to_bits() >> 52) as i32) - 1023;
    let units = if biased < -14 {
        (magnitude * f64::powi(2.0, 24)).round_ties_even() as u32
    } else if biased > 15 {
        u32::from(EXPONENT_BITS)
    } else {
        let significand = (magnitude * f64::powi(2.0, 10 - biased)).round_ties_even() as u32;
        ((biased + 14) as u32) * 1024 + significand
    };
    sign | units as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives() {
        for half in 0..=u16::MAX {
            let value = to_f64(half);
            if value.is_finite() {
                assert_eq!(from_f64(value), half, "{half:#x} is {value}");
            }
        }
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        for (value, half) in [
            (65504.0, 0x7bff),
            (65519.9, 0x7bff),
            (65520.0, EXPONENT_BITS),
            (1e300, EXPONENT_BITS),
            (f64::powi(2.0, -25), 0),
            (f64::powi(2.0, -25) * 1.0001, 1),
            (f64::powi(2.0, -24) * 1.5, 2),
            (1.0 + 1.0 / 2048.0, 0x3c00),
            (1.0 + 3.0 / 2048.0, 0x3c02),
            (-0.0, 0x8000),
        ] {
            assert_eq!(from_f64(value), half, "{value}");
        }
    }
}
