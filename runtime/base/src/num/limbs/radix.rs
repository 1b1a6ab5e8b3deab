//! Converts integers to digits in a radix of 2 to 36, and back. It splits long ones into halves.

use smallvec::SmallVec;

use super::div::{div_limb_assign, div_rem};
use super::mag::{add, mul_add_limb, trimmed};
use super::mul::mul;
use super::{Int, IntRef, Mag};

/// Up to how many limbs digits are taken off (or put on) one machine word at a time.
const SIMPLE_LIMBS: usize = 30;

/// The text is no integer in its radix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseIntError;

/// The largest power of a radix that fits a limb, and its exponent.
#[derive(Clone, Copy)]
struct Chunk {
    radix: u64,
    power: u64,
    digits: usize,
}

impl Chunk {
    fn new(radix: u32) -> Self {
        assert!((2..=36).contains(&radix), "a radix is 2 to 36");
        let radix = u64::from(radix);
        let (mut power, mut digits) = (radix, 1);
        while let Some(next) = power.checked_mul(radix) {
            (power, digits) = (next, digits + 1);
        }
        Self {
            radix,
            power,
            digits,
        }
    }
}

impl IntRef<'_> {
    /// The digits in `radix` (2 to 36), letters in upper case, `-` before a negative.
    ///
    /// # Panics
    /// If the radix is out of range.
    #[must_use]
    pub fn to_string_radix(self, radix: u32) -> String {
        let mut out = Vec::new();
        self.push_digits(radix, &mut out);
        String::from_utf8(out).expect("digits are ASCII")
    }

    /// Appends what [`Self::to_string_radix`] returns, as bytes.
    ///
    /// # Panics
    /// If the radix is out of range.
    pub fn push_digits(self, radix: u32, out: &mut Vec<u8>) {
        if let [] | [_] = self.mag {
            let limb = self.mag.first().copied().unwrap_or(0);
            return out.extend_from_slice(LimbDigits::new(self.neg, limb, radix).as_bytes());
        }
        let chunk = Chunk::new(radix);
        if self.neg {
            out.push(b'-');
        }
        // powers[k] = power ^ (2^k), up to about half the length of the number.
        let mut powers: Vec<Mag> = vec![SmallVec::from_slice(&[chunk.power])];
        while powers[powers.len() - 1].len() * 2 <= self.mag.len() + 1 {
            let last = &powers[powers.len() - 1];
            let square = mul(last, last);
            powers.push(square);
        }
        push_mag(chunk, &powers, self.mag, None, out);
    }
}

/// The digits of an integer of at most one limb, without memory of their own.
#[derive(Clone, Copy, Debug)]
pub struct LimbDigits {
    text: [u8; Self::MOST],
    start: usize,
}

impl LimbDigits {
    /// A sign, and as many binary digits as a limb has.
    const MOST: usize = 65;

    /// What [`IntRef::to_string_radix`] returns for the integer of this sign and magnitude.
    ///
    /// # Panics
    /// If the radix is out of range.
    #[must_use]
    pub fn new(neg: bool, limb: u64, radix: u32) -> Self {
        assert!((2..=36).contains(&radix), "a radix is 2 to 36");
        let text = [0; Self::MOST];
        let start = Self::MOST;
        let mut digits = Self { text, start };
        // A constant radix needs no division.
        if radix == 10 {
            digits.write(limb, 10);
        } else {
            digits.write(limb, u64::from(radix));
        }
        if neg {
            digits.put(b'-');
        }
        digits
    }

    #[inline(always)]
    fn write(&mut self, mut rest: u64, radix: u64) {
        loop {
            self.put(digit_char((rest % radix) as u8));
            rest /= radix;
            if rest == 0 {
                return;
            }
        }
    }

    #[inline]
    fn put(&mut self, byte: u8) {
        self.start -= 1;
        self.text[self.start] = byte;
    }

    /// The text.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[self.start..]
    }
}

/// Appends the digits of `mag`, padded with zeros to `width` if one is given.
fn push_mag(chunk: Chunk, powers: &[Mag], mag: &[u64], width: Option<usize>, out: &mut Vec<u8>) {
    let mag = trimmed(mag);
    if mag.len() <= SIMPLE_LIMBS || powers.is_empty() {
        return push_mag_simple(chunk, mag, width, out);
    }
    let (power, smaller) = powers.split_last().expect("there is a power");
    let low_width = chunk.digits << smaller.len();
    let (high, low) = div_rem(mag, power);
    if high.is_empty() && width.is_none() {
        return push_mag(chunk, smaller, &low, None, out);
    }
    // The quotient may exceed this power once more, never more than by a limb or two.
    push_mag(
        chunk,
        smaller_or_same(powers, &high),
        &high,
        width.map(|w| w - low_width),
        out,
    );
    push_mag(chunk, smaller, &low, Some(low_width), out);
}

/// The powers that are of use in splitting `mag`.
fn smaller_or_same<'p>(powers: &'p [Mag], mag: &[u64]) -> &'p [Mag] {
    let len = powers
        .iter()
        .rposition(|p| p.len() <= mag.len())
        .map_or(0, |i| i + 1);
    &powers[..len]
}

fn push_mag_simple(chunk: Chunk, mag: &[u64], width: Option<usize>, out: &mut Vec<u8>) {
    let start = out.len();
    let mut rest: Mag = SmallVec::from_slice(mag);
    while !rest.is_empty() {
        let mut low = div_limb_assign(&mut rest, chunk.power);
        for _ in 0..chunk.digits {
            if low == 0 && rest.is_empty() {
                break;
            }
            out.push(digit_char((low % chunk.radix) as u8));
            low /= chunk.radix;
        }
    }
    if let Some(width) = width {
        out.resize(start + width, b'0');
    }
    out[start..].reverse();
}

fn digit_char(digit: u8) -> u8 {
    if digit < 10 {
        b'0' + digit
    } else {
        b'A' + digit - 10
    }
}

/// The value of a digit in either case, if it is one in `radix`.
fn digit_value(c: u8, radix: u64) -> Result<u64, ParseIntError> {
    let value = match c {
        b'0'..=b'9' => c - b'0',
        b'a'..=b'z' => c - b'a' + 10,
        b'A'..=b'Z' => c - b'A' + 10,
        _ => return Err(ParseIntError),
    };
    if u64::from(value) < radix {
        Ok(u64::from(value))
    } else {
        Err(ParseIntError)
    }
}

impl Int {
    /// Reads an optional sign and at least one digit in `radix` (2 to 36), in either case.
    ///
    /// # Errors
    /// [`ParseIntError`] where anything else stands in the text.
    ///
    /// # Panics
    /// If the radix is out of range.
    pub fn parse(text: &[u8], radix: u32) -> Result<Self, ParseIntError> {
        let chunk = Chunk::new(radix);
        let (neg, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] | digits => (false, digits),
        };
        if digits.is_empty() {
            return Err(ParseIntError);
        }
        let first = digits
            .iter()
            .position(|&c| c != b'0')
            .unwrap_or(digits.len());
        let digits = &digits[first..];
        let mut powers: Vec<Mag> = Vec::new();
        let mut span = chunk.digits * SIMPLE_LIMBS;
        while span < digits.len() {
            let next = match powers.last() {
                Some(last) => mul(last, last),
                None => power(chunk, SIMPLE_LIMBS),
            };
            powers.push(next);
            span *= 2;
        }
        Ok(Self::from_parts(neg, parse_mag(chunk, &powers, digits)?))
    }
}

/// `chunk.power ^ n`.
fn power(chunk: Chunk, n: usize) -> Mag {
    let mut out: Mag = SmallVec::from_slice(&[1]);
    for _ in 0..n {
        mul_add_limb(&mut out, chunk.power, 0);
    }
    out
}

/// `powers[k]` is the radix to the power of `chunk.digits * SIMPLE_LIMBS * 2^k`.
fn parse_mag(chunk: Chunk, powers: &[Mag], digits: &[u8]) -> Result<Mag, ParseIntError> {
    let Some((power, smaller)) = powers.split_last() else {
        return parse_mag_simple(chunk, digits);
    };
    let low_len = (chunk.digits * SIMPLE_LIMBS) << smaller.len();
    let Some(high_len) = digits.len().checked_sub(low_len) else {
        return parse_mag(chunk, smaller, digits);
    };
    let (high, low) = digits.split_at(high_len);
    let high = parse_mag(chunk, smaller, high)?;
    let low = parse_mag(chunk, smaller, low)?;
    Ok(add(&mul(&high, power), &low))
}

fn parse_mag_simple(chunk: Chunk, digits: &[u8]) -> Result<Mag, ParseIntError> {
    let mut out = Mag::new();
    // The first group is the one that may be short.
    let (short, rest) = digits.split_at(digits.len() % chunk.digits);
    for group in std::iter::once(short).chain(rest.chunks(chunk.digits)) {
        let mut value = 0;
        for &c in group {
            value = value * chunk.radix + digit_value(c, chunk.radix)?;
        }
        let scale = if group.len() == chunk.digits {
            chunk.power
        } else {
            1
        };
        mul_add_limb(&mut out, scale, value);
    }
    Ok(out)
}
