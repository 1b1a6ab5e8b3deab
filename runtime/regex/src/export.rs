//! The bytes that stand for the code of an exported pattern. They hold all that its compilation needs, so that whoever
//! imports it gets the same pattern. None of them is ever run.
//!
//! Shape, numbers in little-endian order:
//! `"BLre" │ version u32 │ flags u32 │ newline u8 or 0 │ bsr u8 or 0 │ source`.

use super::{Bsr, CompileFlags, CompileOptions, Newline};

/// What it starts with: four letters and the version of what follows.
const START: &[u8; 8] = b"BLre\x01\0\0\0";

/// The source and the options of what is exported, as bytes.
#[must_use]
pub fn to_bytes(source: &[u8], options: CompileOptions) -> Vec<u8> {
    let mut bytes = START.to_vec();
    bytes.extend(options.flags.0.to_le_bytes());
    bytes.push(options.newline.map_or(0, |newline| newline as u8));
    bytes.push(options.bsr.map_or(0, |bsr| bsr as u8));
    bytes.extend(source);
    bytes
}

/// The result of importing bytes.
#[derive(Debug)]
pub enum Imported<'a> {
    /// Source and options.
    Pattern(&'a [u8], CompileOptions),
    /// Another version, or another implementation, has made them.
    Foreign,
    /// They are ours and damaged.
    Damaged,
}

/// Reads what [`to_bytes`] has made.
#[must_use]
pub fn from_bytes(bytes: &[u8]) -> Imported<'_> {
    match bytes.strip_prefix(START) {
        None => Imported::Foreign,
        Some(rest) => parts(rest).map_or(Imported::Damaged, |(source, options)| {
            Imported::Pattern(source, options)
        }),
    }
}

fn parts(rest: &[u8]) -> Option<(&[u8], CompileOptions)> {
    let (flags, rest) = rest.split_first_chunk::<4>()?;
    let ([newline, bsr], source) = rest.split_first_chunk::<2>()?;
    let options = CompileOptions {
        flags: CompileFlags::from_bits(u32::from_le_bytes(*flags))?,
        newline: known(*newline, &Newline::ALL, |newline| newline as u8)?,
        bsr: known(*bsr, &Bsr::ALL, |bsr| bsr as u8)?,
    };
    Some((source, options))
}

/// The option with this number, 0 being none; `None` for a number that none has.
#[expect(
    clippy::option_option,
    reason = "an option that is not given is an answer"
)]
fn known<T: Copy>(number: u8, all: &[T], of: impl Fn(T) -> u8) -> Option<Option<T>> {
    if number == 0 {
        return Some(None);
    }
    all.iter().copied().find(|it| of(*it) == number).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_read_as_it_was_written() {
        let options = CompileOptions {
            flags: CompileFlags::CASELESS | CompileFlags::UNICODE,
            newline: Some(Newline::AnyCrlf),
            bsr: Some(Bsr::Unicode),
        };
        let bytes = to_bytes(b"a(b)", options);
        let Imported::Pattern(source, read) = from_bytes(&bytes) else {
            panic!("our own bytes");
        };
        assert_eq!(source, b"a(b)");
        assert_eq!(format!("{read:?}"), format!("{options:?}"));
        let plain = to_bytes(b"", CompileOptions::default());
        assert!(matches!(from_bytes(&plain), Imported::Pattern(b"", _)));
    }

    #[test]
    fn other_bytes_are_refused() {
        let mut bytes = to_bytes(b"a", CompileOptions::default());
        for end in 0..START.len() {
            assert!(matches!(from_bytes(&bytes[..end]), Imported::Foreign));
        }
        for end in START.len()..14 {
            assert!(matches!(from_bytes(&bytes[..end]), Imported::Damaged));
        }
        // The first of them says that a subject need not be looked at, and would be believed.
        for (at, value) in [(11, 0x40), (12, 99), (13, 99)] {
            let old = std::mem::replace(&mut bytes[at], value);
            assert!(matches!(from_bytes(&bytes), Imported::Damaged), "{at}");
            bytes[at] = old;
        }
        bytes[4] += 1;
        assert!(matches!(from_bytes(&bytes), Imported::Foreign));
    }
}
