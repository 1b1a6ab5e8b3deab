//! Sizes and times of the command line.

use std::time::Duration;

/// Splits a text into a number and its unit.
fn split(text: &str) -> Result<(u64, &str), String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text[..digits].parse();
    let number = number.map_err(|_| format!("'{text}' does not begin with a whole number"))?;
    Ok((number, &text[digits..]))
}

/// Parses a size; returns bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => {
            return Err(format!(
                "'{unit}' is not a unit of size; use B, KiB, MiB, GiB or TiB"
            ));
        }
    };
    let bytes = number.checked_mul(factor);
    bytes.ok_or_else(|| format!("{text} is too large"))
}

/// Parses a time above 0.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    match span(text)? {
        Duration::ZERO => Err(format!("{text} is too short: give a time above 0")),
        time => Ok(time),
    }
}

/// Parses a time of whole milliseconds.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    match moment(text)? {
        time if !time.subsec_nanos().is_multiple_of(1_000_000) => Err(format!(
            "{text} has a part of a millisecond: give 1ms or more"
        )),
        time => Ok(time),
    }
}

/// Parses a time, which may have a fraction: `2.5s`.
pub(crate) fn moment(text: &str) -> Result<Duration, String> {
    let (whole, unit) = split(text)?;
    let (fraction, unit) = match unit.strip_prefix('.').map(split_fraction) {
        Some(fraction) => fraction.ok_or_else(|| format!("'{text}' is not a time"))?,
        None => ((0, 1), unit),
    };
    let ns: u64 = match unit {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(format!("'{text}' has no unit; add us, ms, s, m or h")),
        _ => {
            return Err(format!(
                "'{unit}' is not a unit of time; use us, ms, s, m or h"
            ));
        }
    };
    let (part, of) = fraction;
    let rest = u128::from(part) * u128::from(ns) / u128::from(of);
    let all = u128::from(whole) * u128::from(ns) + rest;
    let all = u64::try_from(all).map_err(|_| format!("{text} is too large"))?;
    Ok(Duration::from_nanos(all))
}

/// The digits behind a point as a part of a power of 10, and what follows them.
fn split_fraction(text: &str) -> Option<((u64, u64), &str)> {
    let (part, unit) = split(text).ok()?;
    let digits = u32::try_from(text.len() - unit.len()).ok()?;
    Some(((part, 10_u64.checked_pow(digits)?), unit))
}

/// Whole milliseconds.
pub(crate) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_units() {
        for (text, expect) in [
            ("4096", Ok(4096)),
            ("512KiB", Ok(512 << 10)),
            ("64MiB", Ok(64 << 20)),
            ("2GiB", Ok(2 << 30)),
            ("1TiB", Ok(1 << 40)),
            ("64MB", Err("'MB' is not a unit")),
            ("MiB", Err("does not begin with a whole number")),
            ("-1", Err("does not begin with a whole number")),
            ("99999999999TiB", Err("is too large")),
        ] {
            match (size(text), expect) {
                (Ok(size), Ok(expect)) => assert_eq!(size, expect, "{text}"),
                (Err(error), Err(expect)) => assert!(error.contains(expect), "{error}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
        for (text, expect) in [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("5m", Some(300_000)),
            ("1h", Some(3_600_000)),
            ("1.5s", Some(1_500)),
            ("0.25m", Some(15_000)),
            ("0s", None),
            ("30", None),
            ("s", None),
            ("0.5ms", None),
            ("1.s", None),
            ("9999999999999999h", None),
        ] {
            assert_eq!(time(text).ok().map(ms), expect, "{text}");
        }
        for (text, expect) in [
            ("2.000001s", Some(2_000_001)),
            ("0s", Some(0)),
            ("7us", Some(7)),
        ] {
            let us = moment(text).ok().map(|time| time.as_micros());
            assert_eq!(us, expect, "{text}");
        }
    }
}
