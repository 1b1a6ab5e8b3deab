//! The hash of this machine's own tables: map nodes, ETS, atoms. Its values mean nothing outside one run and may
//! change.
//!
//! It has two 64-bit lanes with the primitives of MurmurHash3 (public domain), and is fed word by word.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// Spreads the bits of one word; distinct words give distinct results.
///
/// The whole hash of an immediate term.
#[inline]
#[must_use]
pub const fn mix64(word: u64) -> u64 {
    let mut h = word;
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

/// A hash under way over the words of a compound term.
#[derive(Clone, Debug)]
pub struct InternalHash {
    alpha: u64,
    beta: u64,
    ticks: u64,
}

impl InternalHash {
    /// Starts from a salt; hashes with different salts are independent.
    #[inline]
    #[must_use]
    pub fn new(salt: u64) -> Self {
        Self {
            alpha: salt,
            beta: salt,
            ticks: 0,
        }
    }

    /// Feeds a word to the first lane.
    #[inline]
    pub fn alpha(&mut self, word: u64) {
        self.alpha ^= word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        self.alpha = self.alpha.rotate_left(27).wrapping_add(self.beta);
        self.alpha = self.alpha.wrapping_mul(5).wrapping_add(0x52dc_e729);
        self.ticks += 1;
    }

    /// Feeds a word to the second lane.
    #[inline]
    pub fn beta(&mut self, word: u64) {
        self.beta ^= word.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        self.beta = self.beta.rotate_left(31).wrapping_add(self.alpha);
        self.beta = self.beta.wrapping_mul(5).wrapping_add(0x3849_5ab5);
        self.ticks += 1;
    }

    /// Feeds two words, one to each lane: a type and a value, or two values.
    #[inline]
    pub fn pair(&mut self, first: u64, second: u64) {
        self.alpha(first);
        self.beta(second);
    }

    /// Feeds the bytes of a bit string, 16 at a time, then what is left of them, as MurmurHash3 does;
    /// its length and a last part of a byte are the caller's to feed.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let chunks = bytes.chunks_exact(16);
        let rest = chunks.remainder();
        for chunk in chunks {
            self.pair(word(&chunk[..8]), word(&chunk[8..]));
        }
        let (first, second) = rest.split_at(rest.len().min(8));
        if !second.is_empty() {
            self.beta ^= word(second)
                .wrapping_mul(C2)
                .rotate_left(33)
                .wrapping_mul(C1);
        }
        if !first.is_empty() {
            self.alpha ^= word(first)
                .wrapping_mul(C1)
                .rotate_left(31)
                .wrapping_mul(C2);
        }
    }

    /// The hash of all that was fed.
    #[inline]
    #[must_use]
    pub fn finish(&self) -> u64 {
        let mut alpha = self.alpha ^ self.ticks;
        let mut beta = self.beta ^ self.ticks;
        alpha = alpha.wrapping_add(beta);
        beta = beta.wrapping_add(alpha);
        alpha = mix64(alpha).wrapping_add(mix64(beta));
        beta = mix64(beta).wrapping_add(alpha);
        alpha ^ beta
    }
}

/// Up to eight bytes as a word, padded with zeros.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use crate::hash::HashSet;

    use super::*;

    fn hash(salt: u64, bytes: &[u8]) -> u64 {
        let mut h = InternalHash::new(salt);
        h.beta(bytes.len() as u64);
        h.bytes(bytes);
        h.finish()
    }

    #[test]
    fn near_inputs_are_far_apart() {
        let mut seen = HashSet::default();
        for len in 0..40 {
            assert!(seen.insert(hash(0, &vec![0; len])), "{len} zeros");
            for bit in 0..len * 8 {
                let mut bytes = vec![0; len];
                bytes[bit / 8] |= 1 << (bit % 8);
                assert!(seen.insert(hash(0, &bytes)), "bit {bit} of {len} bytes");
            }
        }
        assert_ne!(hash(1, b"abc"), hash(2, b"abc"));
    }

    #[test]
    fn low_and_high_bits_spread() {
        for shift in [0, 60] {
            let mut counts = [0; 16];
            for i in 0..16_000 {
                counts[(mix64(i << 4) >> shift & 15) as usize] += 1;
            }
            assert!(counts.iter().all(|c| (850..1150).contains(c)), "{counts:?}");
        }
    }
}
