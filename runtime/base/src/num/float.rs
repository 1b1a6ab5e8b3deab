//! Converts floats to text and back, in the exact formats of `float_to_list` and `list_to_float`.

use std::fmt::Write as _;
use std::io::Write as _;

use smallvec::SmallVec;

/// The layout of a float as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatFormat {
    /// The shortest digits that read back as the same float: option `short`.
    Short,
    /// `decimals` digits after the point: options `{decimals, N}` and `compact`.
    Decimals {
        /// Digits after the point.
        decimals: i64,
        /// Whether trailing zeros are dropped.
        compact: bool,
    },
    /// One digit before the point, `decimals` after it, and an exponent of at least two
    /// digits: option `{scientific, N}`; negative stands for 6.
    Scientific {
        /// Digits after the point.
        decimals: i64,
    },
}

impl FloatFormat {
    /// What `float_to_list/1` uses.
    pub const DEFAULT: Self = Self::Scientific { decimals: 20 };
}

/// The size in bytes of ERTS's buffer, its final zero included: longer texts are refused.
const BUFFER_BYTES: usize = 256;

/// Up to this magnitude (2^53) `{decimals, N}` works on machine integers.
const FIXED_FAST_MAX: f64 = 9_007_199_254_740_992.0;

/// Up to this many decimals `{decimals, N}` works on machine integers.
const FIXED_FAST_DECIMALS: i64 = 18;

/// The text of a finite float; `None` (a `badarg`) where it would be 256 bytes or more,
/// or where the number of decimals of [`FloatFormat::Decimals`] is negative.
#[must_use]
pub fn format_float(f: f64, format: FloatFormat) -> Option<String> {
    let text = match format {
        FloatFormat::Short => short(f),
        FloatFormat::Decimals { decimals, compact } => fixed(f, decimals, compact)?,
        FloatFormat::Scientific { decimals } => scientific(f, decimals)?,
    };
    Some(text)
}

/// The shortest digits, in OTP's layout.
///
/// Source: `erts/emulator/ryu/to_chars.h`, OTP 29, for the choice between the layouts.
fn short(f: f64) -> String {
    if f == 0.0 {
        return if f.is_sign_negative() {
            "-0.0".into()
        } else {
            "0.0".into()
        };
    }
    let (digits, exponent) = shortest_digits(f.abs());
    let digits = str::from_utf8(&digits).expect("digits are ASCII");
    let mut text = String::with_capacity(32);
    if f < 0.0 {
        text.push('-');
    }
    if is_fixed(digits, exponent) {
        push_fixed_layout(&mut text, digits, exponent);
    } else {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        for part in [first, ".", rest, "e"] {
            text.push_str(part);
        }
        write!(text, "{exponent}").expect("a String takes every character");
    }
    text
}

/// The digits of a float; at most 17 are needed to tell it apart.
type Digits = SmallVec<[u8; 24]>;

/// The shortest digits, without zeros at either end, and the exponent of the first.
///
/// They are Ryu's: of two candidates that are equally near it takes the even one, which the
/// standard library does not.
fn shortest_digits(f: f64) -> (Digits, i32) {
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(f);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().expect("ryu writes a decimal exponent");
    let (int, frac) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits: Digits = int.bytes().chain(frac.bytes()).collect();
    let leading = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.drain(..leading);
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    let exponent = exponent + int.len() as i32 - 1 - leading as i32;
    (digits, exponent)
}

/// Whether `short` writes no exponent. `exponent` is that of the first digit.
fn is_fixed(digits: &str, exponent: i32) -> bool {
    let len = digits.len() as i32;
    // The exponent of the last digit.
    let last = exponent - len + 1;
    let (lower, upper) = match len {
        1 => (-4, 2),
        _ if exponent >= 10 => (-(len + 2), 2),
        _ => (-(len + 2), 1),
    };
    if !(lower..=upper).contains(&last) {
        return false;
    }
    // Integers that a float does not hold exactly are told apart by their exponent.
    let value: u64 = digits.parse().expect("at most 17 digits");
    match last {
        0 => value < 1 << 53,
        1 => value <= (1 << 52) / 5,
        2 => value <= (1 << 51) / 25,
        _ => true,
    }
}

fn push_fixed_layout(text: &mut String, digits: &str, exponent: i32) {
    let zeros = |text: &mut String, count: i32| (0..count).for_each(|_| text.push('0'));
    let len = digits.len() as i32;
    let whole = exponent + 1;
    if whole <= 0 {
        text.push_str("0.");
        zeros(text, -whole);
        text.push_str(digits);
    } else if whole < len {
        let (int, frac) = digits.split_at(whole as usize);
        text.push_str(int);
        text.push('.');
        text.push_str(frac);
    } else {
        text.push_str(digits);
        zeros(text, whole - len);
        text.push_str(".0");
    }
}

/// Source: `sys_double_to_chars_fast()`, OTP 29, whose rounding this follows step by step.
fn fixed(f: f64, decimals: i64, compact: bool) -> Option<String> {
    let abs = f.abs();
    let Ok(places) = usize::try_from(decimals) else {
        return None;
    };
    if abs > FIXED_FAST_MAX || decimals > FIXED_FAST_DECIMALS {
        // More places than this never fit the buffer, nor the formatting machinery.
        if places >= BUFFER_BYTES {
            return None;
        }
        let mut text = format!("{f:.places$}");
        if text.len() >= BUFFER_BYTES {
            return None;
        }
        if compact {
            drop_trailing_zeros(&mut text);
        }
        return Some(text);
    }
    let sign = if f.is_sign_negative() { "-" } else { "" };
    if places == 0 {
        return Some(format!("{sign}{}", abs.round() as u64));
    }
    let scale = 10u64.pow(places as u32);
    let mut whole = abs.floor();
    let mut frac = ((abs - whole) * scale as f64).round();
    if frac >= scale as f64 {
        whole += 1.0;
        frac = 0.0;
    }
    let mut text = format!("{sign}{}.{:0places$}", whole as u64, frac as u64);
    if compact {
        drop_trailing_zeros(&mut text);
    }
    Some(text)
}

/// Drops trailing zeros but leaves one after a point. A text without a point loses the zeros
/// of its whole part: OTP does that to floats over 2^53 with no decimals.
fn drop_trailing_zeros(text: &mut String) {
    let kept = text.trim_end_matches('0').len();
    text.truncate(kept);
    if text.ends_with('.') {
        text.push('0');
    }
}

fn scientific(f: f64, decimals: i64) -> Option<String> {
    let places = if decimals < 0 {
        6
    } else {
        usize::try_from(decimals).ok()?
    };
    if places >= BUFFER_BYTES {
        return None;
    }
    if let Some(text) = scientific_fast(f, places) {
        return Some(text);
    }
    let text = format!("{f:.places$e}");
    let (mantissa, exponent) = text.split_once('e').expect("{:e} writes an exponent");
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    let text = format!("{mantissa}e{sign}{digits:0>2}");
    (text.len() < BUFFER_BYTES).then_some(text)
}

/// Most digits written with 128-bit integers.
const MOST_EXACT_DIGITS: usize = 36;

/// What [`scientific`] gives, where the float has no more than [`MOST_EXACT_DIGITS`] and is neither very
/// large nor very small: in machine integers.
fn scientific_fast(f: f64, places: usize) -> Option<String> {
    let (digits, exponent) = exact_digits(f.abs(), places + 1)?;
    let mut text = String::with_capacity(places + 8);
    if f.is_sign_negative() {
        text.push('-');
    }
    let mut buffer = [b'0'; MOST_EXACT_DIGITS];
    write_digits(digits, &mut buffer[..=places]);
    let written = str::from_utf8(&buffer[..=places]).expect("digits are ASCII");
    let (first, rest) = written.split_at(1);
    text.push_str(first);
    if !rest.is_empty() {
        text.push('.');
        text.push_str(rest);
    }
    text.push_str(if exponent < 0 { "e-" } else { "e+" });
    let exponent = exponent.unsigned_abs();
    for place in [100, 10, 1] {
        if exponent >= place || place <= 10 {
            text.push(char::from(b'0' + (exponent / place % 10) as u8));
        }
    }
    Some(text)
}

/// The decimal digits of `value`, in all places of `out`.
fn write_digits(value: u128, out: &mut [u8]) {
    // This many digits fit a limb.
    const CHUNK: u128 = 10_000_000_000_000_000_000;
    const CHUNK_DIGITS: usize = 19;
    let (mut rest, mut low) = (value, 0);
    for (at, place) in out.iter_mut().rev().enumerate() {
        if at % CHUNK_DIGITS == 0 {
            (rest, low) = match rest < CHUNK {
                true => (0, rest as u64),
                false => (rest / CHUNK, (rest % CHUNK) as u64),
            };
        }
        *place = b'0' + (low % 10) as u8;
        low /= 10;
    }
}

/// The first `count` digits of a positive float, rounded to even where it is in the middle of two, and the
/// exponent of the first; `None` where that takes more than 128 bits.
fn exact_digits(f: f64, count: usize) -> Option<(u128, i32)> {
    const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = f.to_bits();
    let biased = (bits >> FRACTION_BITS) as i32;
    let is_normal = biased != 0 && f.is_finite();
    if !is_normal || count > MOST_EXACT_DIGITS {
        return None;
    }
    let mantissa = u128::from(bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS);
    // f = mantissa * 2^binary
    let binary = biased - 1023 - FRACTION_BITS as i32;
    let mut exponent = f.log10().floor() as i32;
    let limit = 10u128.checked_pow(count as u32)?;
    loop {
        let scale = count as i32 - 1 - exponent;
        let (digits, up) = scaled(mantissa, binary, scale)?;
        // The logarithm may be one off.
        if digits >= limit {
            exponent += 1;
        } else if digits < limit / 10 {
            exponent -= 1;
        } else if up && digits + 1 == limit {
            return Some((limit / 10, exponent + 1));
        } else {
            return Some((digits + u128::from(up), exponent));
        }
    }
}

/// The whole part of `mantissa * 2^binary * 10^scale`, and whether it is rounded up; `None` where that takes more than
/// 128 bits.
fn scaled(mantissa: u128, binary: i32, scale: i32) -> Option<(u128, bool)> {
    let fives = 5u128.checked_pow(scale.unsigned_abs())?;
    let twos = binary + scale;
    let shifted = |value: u128| {
        let by = twos.unsigned_abs();
        (value.leading_zeros() >= by).then(|| value << by)
    };
    let (quotient, order) = if scale >= 0 {
        let product = mantissa.checked_mul(fives)?;
        if twos >= 0 {
            return Some((shifted(product)?, false));
        }
        let half = 1u128.checked_shl(twos.unsigned_abs() - 1)?;
        let rest = product & (half << 1).wrapping_sub(1);
        (
            product.checked_shr(twos.unsigned_abs()).unwrap_or(0),
            rest.cmp(&half),
        )
    } else {
        let (dividend, divisor) = match twos >= 0 {
            true => (shifted(mantissa)?, fives),
            false => (mantissa, shifted(fives)?),
        };
        let rest = dividend % divisor;
        (dividend / divisor, rest.cmp(&(divisor - rest)))
    };
    let up = order.is_gt() || order.is_eq() && quotient % 2 == 1;
    Some((quotient, up))
}

/// Appends a float as `%e` of C does, which is how ERTS's own printer shows it.
pub fn push_float(f: f64, out: &mut Vec<u8>) {
    let text = scientific(f, 6).expect("six decimals fit");
    write!(out, "{text}").expect("a Vec takes every byte");
}

/// Reads a float: sign, digits, a point (or comma), digits, and perhaps an exponent.
///
/// `None` (a `badarg`) for any other text and for values past the largest float; values
/// below the smallest become zero.
/// Source: `sys_chars_to_double()`, OTP 29.
#[must_use]
pub fn parse_float(text: &[u8]) -> Option<f64> {
    let (len, point) = scan_float(text)?;
    if len != text.len() {
        return None;
    }
    let mut text = String::from_utf8(text.to_vec()).ok()?;
    text.replace_range(point..=point, ".");
    text.parse().ok().filter(|f: &f64| f.is_finite())
}

/// The longest prefix of `text` that is a float: its length, and where its point stands.
#[must_use]
pub fn scan_float(text: &[u8]) -> Option<(usize, usize)> {
    let digits = |from: usize| {
        text[from..]
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .count()
    };
    let sign = |from: usize| usize::from(matches!(text.get(from), Some(b'+' | b'-')));
    let int_start = sign(0);
    let point = int_start + digits(int_start);
    if point == int_start || !matches!(text.get(point), Some(b'.' | b',')) {
        return None;
    }
    let frac = digits(point + 1);
    if frac == 0 {
        return None;
    }
    let end = point + 1 + frac;
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let exp_start = end + 1 + sign(end + 1);
        let exp = digits(exp_start);
        if exp > 0 {
            return Some((exp_start + exp, point));
        }
    }
    Some((end, point))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a table that OTP 29 wrote: bits, short, default, then decimals, compact
    /// decimals and scientific, each after its number of places.
    fn check_golden(table: &str) -> usize {
        let mut lines = 0;
        for line in table.lines() {
            let c: Vec<&str> = line.split(' ').collect();
            assert_eq!(c.len(), 9, "{line}");
            let f = f64::from_bits(u64::from_str_radix(c[0], 16).expect("bits"));
            let places = |s: &str| s.parse::<i64>().expect("places");
            let check = |format, want: &str| {
                let got = format_float(f, format);
                assert_eq!(
                    got.as_deref().unwrap_or("badarg"),
                    want,
                    "{format:?} {line}"
                );
            };
            check(FloatFormat::Short, c[1]);
            check(FloatFormat::DEFAULT, c[2]);
            check(
                FloatFormat::Decimals {
                    decimals: places(c[3]),
                    compact: false,
                },
                c[4],
            );
            check(
                FloatFormat::Decimals {
                    decimals: places(c[5]),
                    compact: true,
                },
                c[6],
            );
            check(
                FloatFormat::Scientific {
                    decimals: places(c[7]),
                },
                c[8],
            );
            assert_eq!(
                parse_float(c[1].as_bytes()).map(f64::to_bits),
                Some(f.to_bits())
            );
            lines += 1;
        }
        lines
    }

    #[test]
    fn as_otp_writes_them() {
        assert!(check_golden(include_str!("../../../tests/golden/floats.txt")) > 400);
    }

    /// The standard library's digits, whose way to them is another one.
    #[test]
    fn machine_integers_give_the_same_digits() {
        let mut state = 1u64;
        let mut fast = 0;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let exponent = 1023 + (state >> 33) % 240 - 120;
            let random = f64::from_bits(exponent << 52 | state >> 12);
            let halves = (state >> 40) as f64 / f64::from(1u32 << (state >> 59));
            let whole = 10f64.powi((state >> 58) as i32 % 30);
            for f in [random, halves, whole, whole - 1.0, -random] {
                let places = (state >> 20) as usize % 40;
                let Some(text) = scientific_fast(f, places) else {
                    continue;
                };
                let slow = format!("{f:.places$e}");
                let (mantissa, exponent) = slow.split_once('e').expect("an exponent");
                let (got, its) = text.split_once('e').expect("an exponent");
                assert_eq!(got, mantissa, "{f:e} with {places}");
                assert_eq!(its.parse(), exponent.parse::<i32>(), "{f:e} with {places}");
                fast += 1;
            }
        }
        assert!(fast > 40_000, "{fast}");
    }

    #[test]
    fn numbers_of_places_at_the_edges() {
        let decimals = |decimals| FloatFormat::Decimals {
            decimals,
            compact: false,
        };
        assert_eq!(format_float(1.5, decimals(-1)), None);
        assert_eq!(format_float(1.5, decimals(253)).map(|s| s.len()), Some(255));
        assert_eq!(format_float(1.5, decimals(254)), None);
        let scientific = |decimals| FloatFormat::Scientific { decimals };
        assert_eq!(
            format_float(1.5, scientific(-1)).as_deref(),
            Some("1.500000e+00")
        );
        assert_eq!(
            format_float(1.5, scientific(249)).map(|s| s.len()),
            Some(255)
        );
        assert_eq!(format_float(1.5, scientific(250)), None);
        assert_eq!(format_float(1.5, scientific(i64::MAX)), None);
    }

    #[test]
    fn text_that_is_a_float() {
        for (text, want) in [
            ("1.0", 1.0),
            ("+1.5", 1.5),
            ("-0.25", -0.25),
            ("1,5", 1.5),
            ("1.0e3", 1000.0),
            ("1.0E-3", 0.001),
            ("00012.50e+01", 125.0),
            ("1.0e-400", 0.0),
            ("4.9e-324", 5e-324),
        ] {
            assert_eq!(parse_float(text.as_bytes()), Some(want), "{text}");
        }
        let negative_zero = parse_float(b"-0.0").map(f64::to_bits);
        assert_eq!(negative_zero, Some((-0.0f64).to_bits()));
    }

    #[test]
    fn text_that_is_no_float() {
        for text in [
            "", "1", "1.", ".5", "1e5", "1.0e", "1.0e+", "1.0 ", " 1.0", "inf", "nan", "1.0e400",
            "-1.0e309", "1..0", "1.0.0", "--1.0", "0x1.8p1", "1_0.0", "1.0_0",
        ] {
            assert_eq!(parse_float(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn prefixes() {
        assert_eq!(scan_float(b"2.3eh?"), Some((3, 1)));
        assert_eq!(scan_float(b"-2.3e+5x"), Some((7, 2)));
        assert_eq!(scan_float(b"2e2"), None);
    }
}
