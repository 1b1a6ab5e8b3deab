//! Computes the checksums of `erlang:crc32` and `erlang:adler32`, and combines them.

/// CRC-32 (that of zlib) of `bytes`, continued from the checksum of what came before.
/// An empty start is 0.
#[must_use]
pub fn crc32(before: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(before);
    hasher.update(bytes);
    hasher.finalize()
}

/// The CRC-32 of two runs of bytes, of their checksums and the length of the second.
#[must_use]
pub fn crc32_combine(first: u32, second: u32, second_len: u64) -> u32 {
    if second_len == 0 {
        // What OTP's zlib gives, whether or not there is such a second run.
        return first ^ second;
    }
    let mut hasher = crc32fast::Hasher::new_with_initial(first);
    hasher.combine(&crc32fast::Hasher::new_with_initial_len(second, second_len));
    hasher.finalize()
}

/// The largest prime below 2^16.
const ADLER_BASE: u32 = 65_521;

/// How many bytes can be summed before the sums have to be reduced.
const ADLER_RUN: usize = 5552;

/// Adler-32 of `bytes`, continued from the checksum of what came before.
/// An empty start is 1.
#[must_use]
pub fn adler32(before: u32, bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (before & 0xffff, before >> 16);
    for run in bytes.chunks(ADLER_RUN) {
        for &byte in run {
            low += u32::from(byte);
            high += low;
        }
        low %= ADLER_BASE;
        high %= ADLER_BASE;
    }
    high << 16 | low
}

/// The Adler-32 of two runs of bytes, of their checksums and the length of the second.
#[must_use]
pub fn adler32_combine(first: u32, second: u32, second_len: u64) -> u32 {
    if second_len == 0 {
        return first;
    }
    let base = u64::from(ADLER_BASE);
    let len = second_len % base;
    let (low1, high1) = (u64::from(first & 0xffff), u64::from(first >> 16));
    let (low2, high2) = (u64::from(second & 0xffff), u64::from(second >> 16));
    // The second run started from a sum of 1, which the first one has counted.
    let low = (low1 + low2 + base - 1) % base;
    let high = (high1 + high2 + len * (low1 + base - 1)) % base;
    (high << 16 | low) as u32
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(adler32(1, b"Wikipedia"), 0x11e6_0398);
        assert_eq!((crc32(0, b""), adler32(1, b"")), (0, 1));
        assert_eq!(adler32(1, &[0xff; 100_000]), 345_649_196);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn parts_combine(a in vec(any::<u8>(), 0..200), b in vec(any::<u8>(), 0..7000)) {
            let whole = [a.clone(), b.clone()].concat();
            prop_assert_eq!(crc32(crc32(0, &a), &b), crc32(0, &whole));
            prop_assert_eq!(adler32(adler32(1, &a), &b), adler32(1, &whole));
            let len = b.len() as u64;
            prop_assert_eq!(crc32_combine(crc32(0, &a), crc32(0, &b), len), crc32(0, &whole));
            prop_assert_eq!(
                adler32_combine(adler32(1, &a), adler32(1, &b), len),
                adler32(1, &whole)
            );
        }
    }
}
