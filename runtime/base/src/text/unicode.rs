//! Decodes and encodes UTF-8, UTF-16, UTF-32 and Latin-1, as strictly as Erlang: no surrogates, nothing past U+10FFFF,
//! no overlong forms. These are the code points that [`char`] has.

use crate::num::limbs::Endian;

/// Why bytes are not a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end inside a character that more bytes could complete.
    Incomplete,
    /// No bytes that follow can make a character of it.
    Invalid,
}

/// The first character of UTF-8 `bytes`, and its size in bytes.
///
/// # Errors
/// [`DecodeError`]; no bytes at all are `Incomplete`.
#[inline]
pub fn decode_utf8(bytes: &[u8]) -> Result<(char, usize), DecodeError> {
    if let Some(&first) = bytes.first()
        && first.is_ascii()
    {
        return Ok((first.into(), 1));
    }
    let head = &bytes[..bytes.len().min(4)];
    let (valid, error) = match std::str::from_utf8(head) {
        Ok(text) => (text, DecodeError::Incomplete),
        Err(e) => {
            let (text, _) = head.split_at(e.valid_up_to());
            let error = match e.error_len() {
                Some(_) => DecodeError::Invalid,
                None => DecodeError::Incomplete,
            };
            (std::str::from_utf8(text).unwrap_or_default(), error)
        }
    };
    valid.chars().next().map(|c| (c, c.len_utf8())).ok_or(error)
}

/// The longest prefix of `bytes` that is UTF-8, and why what follows is not.
#[must_use]
pub fn utf8_prefix(bytes: &[u8]) -> (&str, Option<DecodeError>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(e) => {
            let text = std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default();
            let error = match e.error_len() {
                Some(_) => DecodeError::Invalid,
                None => DecodeError::Incomplete,
            };
            (text, Some(error))
        }
    }
}

/// The first character of UTF-16 `bytes`, and its size in bytes: 2 or 4.
///
/// # Errors
/// [`DecodeError`]; no bytes at all are `Incomplete`.
#[inline]
pub fn decode_utf16(bytes: &[u8], endian: Endian) -> Result<(char, usize), DecodeError> {
    let unit = |at: usize| {
        let pair: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(match endian {
            Endian::Big => u16::from_be_bytes(pair),
            Endian::Little => u16::from_le_bytes(pair),
        })
    };
    let first = unit(0).ok_or(DecodeError::Incomplete)?;
    if let Some(c) = char::from_u32(first.into()) {
        return Ok((c, 2));
    }
    if !(0xd800..0xdc00).contains(&first) {
        return Err(DecodeError::Invalid);
    }
    let second = unit(2).ok_or(DecodeError::Incomplete)?;
    match char::decode_utf16([first, second]).next() {
        Some(Ok(c)) => Ok((c, 4)),
        _ => Err(DecodeError::Invalid),
    }
}

/// The character of the first four of UTF-32 `bytes`.
///
/// # Errors
/// [`DecodeError`]; fewer than four bytes are `Incomplete`.
#[inline]
pub fn decode_utf32(bytes: &[u8], endian: Endian) -> Result<char, DecodeError> {
    let quad: [u8; 4] = bytes
        .get(..4)
        .and_then(|b| b.try_into().ok())
        .ok_or(DecodeError::Incomplete)?;
    let value = match endian {
        Endian::Big => u32::from_be_bytes(quad),
        Endian::Little => u32::from_le_bytes(quad),
    };
    char::from_u32(value).ok_or(DecodeError::Invalid)
}

/// Appends a character in UTF-8.
#[inline]
pub fn push_utf8(c: char, out: &mut Vec<u8>) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Appends a character in UTF-16.
#[inline]
pub fn push_utf16(c: char, endian: Endian, out: &mut Vec<u8>) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        out.extend_from_slice(&match endian {
            Endian::Big => unit.to_be_bytes(),
            Endian::Little => unit.to_le_bytes(),
        });
    }
}

/// Appends a character in UTF-32.
#[inline]
pub fn push_utf32(c: char, endian: Endian, out: &mut Vec<u8>) {
    out.extend_from_slice(&match endian {
        Endian::Big => u32::from(c).to_be_bytes(),
        Endian::Little => u32::from(c).to_le_bytes(),
    });
}

/// Latin-1 as text: each byte is the code point of its value.
#[must_use]
pub fn latin1_to_string(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| char::from(b)).collect()
}

/// Text as Latin-1; `None` if a character is above U+00FF.
#[must_use]
pub fn latin1_from_str(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(c).ok()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn utf8_that_is_not() {
        use DecodeError::{Incomplete, Invalid};
        for (bytes, want) in [
            (&b""[..], Incomplete),
            (b"\xc3", Incomplete),
            (b"\xe2\x82", Incomplete),
            (b"\xf0\x9f\x98", Incomplete),
            (b"\x80", Invalid),
            (b"\xc0\x80", Invalid),
            (b"\xc3a", Invalid),
            (b"\xed\xa0\x80", Invalid),
            (b"\xed\xa0", Invalid),
            (b"\xf4\x90\x80\x80", Invalid),
            (b"\xf8", Invalid),
        ] {
            assert_eq!(decode_utf8(bytes), Err(want), "{bytes:x?}");
        }
        assert_eq!(decode_utf8(b"\xef\xbf\xbf\xff"), Ok(('\u{ffff}', 3)));
        assert_eq!(utf8_prefix(b"a\xc3"), ("a", Some(Incomplete)));
        assert_eq!(utf8_prefix(b"a\xffb"), ("a", Some(Invalid)));
    }

    #[test]
    fn surrogates() {
        use DecodeError::{Incomplete, Invalid};
        assert_eq!(decode_utf16(&[0xd8], Endian::Big), Err(Incomplete));
        assert_eq!(decode_utf16(&[0xd8, 0], Endian::Big), Err(Incomplete));
        assert_eq!(decode_utf16(&[0xdc, 0, 0, 0], Endian::Big), Err(Invalid));
        assert_eq!(decode_utf16(&[0xd8, 0, 0, 0x41], Endian::Big), Err(Invalid));
        assert_eq!(decode_utf32(&[0, 0, 0xd8, 0], Endian::Big), Err(Invalid));
        assert_eq!(decode_utf32(&[0, 0x11, 0, 0], Endian::Big), Err(Invalid));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn characters_round_trip(c in any::<char>(), tail in any::<[u8; 3]>()) {
            let mut out = Vec::new();
            push_utf8(c, &mut out);
            let len = out.len();
            out.extend(tail);
            prop_assert_eq!(decode_utf8(&out), Ok((c, len)));
            for endian in [Endian::Big, Endian::Little] {
                let mut out = Vec::new();
                push_utf16(c, endian, &mut out);
                let len = out.len();
                out.extend(tail);
                prop_assert_eq!(decode_utf16(&out, endian), Ok((c, len)));
                let mut out = Vec::new();
                push_utf32(c, endian, &mut out);
                prop_assert_eq!(decode_utf32(&out, endian), Ok(c));
            }
        }

        #[test]
        fn latin1_round_trips(bytes in any::<Vec<u8>>()) {
            let text = latin1_to_string(&bytes);
            prop_assert_eq!(latin1_from_str(&text), Some(bytes));
            prop_assert_eq!(latin1_from_str("€"), None);
        }
    }
}
