//! Converts floats to text and back, in the exact formats of `float_to_list` and `list_to_float`.

use std::io::Write as _;

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
    let sign = if f < 0.0 { "-" } else { "" };
    let body = if is_fixed(&digits, exponent) {
        fixed_layout(&digits, exponent)
    } else {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        format!("{first}.{rest}e{exponent}")
    };
    format!("{sign}{body}")
}

/// The shortest digits, without zeros at either end, and the exponent of the first.
///
/// They are Ryu's: of two candidates that are equally near it takes the even one, which the
/// standard library does not.
fn shortest_digits(f: f64) -> (String, i32) {
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(f);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().expect("ryu writes a decimal exponent");
    let (int, frac) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{int}{frac}");
    let significant = all.trim_start_matches('0');
    let leading = (all.len() - significant.len()) as i32;
    let exponent = exponent + int.len() as i32 - 1 - leading;
    (significant.trim_end_matches('0').to_owned(), exponent)
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

fn fixed_layout(digits: &str, exponent: i32) -> String {
    let len = digits.len() as i32;
    let whole = exponent + 1;
    if whole <= 0 {
        format!("0.{}{digits}", "0".repeat(whole.unsigned_abs() as usize))
    } else if whole < len {
        let (int, frac) = digits.split_at(whole as usize);
        format!("{int}.{frac}")
    } else {
        format!("{digits}{}.0", "0".repeat((whole - len) as usize))
    }
}

/// Source: `sys_double_to_chars_fast()`, OTP 29, whose rounding this follows step by step.
fn fixed(f: f64, decimals: i64, compact: bool) -> Option<String> {
    let abs = f.abs();
    let Ok(places) = usize::try_from(decimals) else {
        return None;
    };
    if abs > FIXED_FAST_MAX || decimals > FIXED_FAST_DECIMALS {
        // So many places never fit the buffer, nor the formatting machinery.
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
    let text = format!("{f:.places$e}");
    let (mantissa, exponent) = text.split_once('e').expect("{:e} writes an exponent");
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    let text = format!("{mantissa}e{sign}{digits:0>2}");
    (text.len() < BUFFER_BYTES).then_some(text)
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
