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
    bytes.ok_or_else(|| format!("{text} is too much"))
}

/// Parses a time above 0.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    match span(text)? {
        Duration::ZERO => Err(format!("{text} is too short: give a time above 0")),
        time => Ok(time),
    }
}

/// Parses a time.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(format!("'{unit}' is not a unit of time; use ms, s, m or h")),
    };
    let ms = number.checked_mul(factor);
    let ms = ms.ok_or_else(|| format!("{text} is too much"))?;
    Ok(Duration::from_millis(ms))
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
            ("99999999999TiB", Err("is too much")),
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
            ("0s", None),
            ("30", None),
            ("s", None),
        ] {
            assert_eq!(time(text).ok().map(ms), expect, "{text}");
        }
    }
}
