//! Decodes and encodes UTF-8 and Latin-1, as strictly as Erlang: no surrogates, nothing past U+10FFFF,
//! no overlong forms. These are the code points that [`char`] has.

/// Why bytes are not a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end inside a character that more bytes could complete.
    Incomplete,
    /// No bytes that follow can make a character of it.
    Invalid,
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

/// Appends a character in UTF-8.
#[inline]
pub fn push_utf8(c: char, out: &mut Vec<u8>) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
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
            (&b"\xc3"[..], Incomplete),
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
            assert_eq!(utf8_prefix(bytes), ("", Some(want)), "{bytes:x?}");
        }
        let (text, error) = utf8_prefix(b"\xef\xbf\xbf\xff");
        assert_eq!((text, error), ("\u{ffff}", Some(Invalid)));
        assert_eq!(utf8_prefix(b"a\xc3"), ("a", Some(Incomplete)));
        assert_eq!(utf8_prefix(b"a\xffb"), ("a", Some(Invalid)));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn characters_round_trip(c in any::<char>()) {
            let mut out = Vec::new();
            push_utf8(c, &mut out);
            let text = c.to_string();
            prop_assert_eq!(utf8_prefix(&out), (text.as_str(), None));
        }

        #[test]
        fn latin1_round_trips(bytes in any::<Vec<u8>>()) {
            let text = latin1_to_string(&bytes);
            prop_assert_eq!(latin1_from_str(&text), Some(bytes));
            prop_assert_eq!(latin1_from_str("€"), None);
        }
    }
}
