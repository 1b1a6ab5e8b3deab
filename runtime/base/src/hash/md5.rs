//! MD5 (RFC 1321), as `erlang:md5` and its context functions need it.
//!
//! The algorithm is written out because a context must become bytes and back: `md5_update` takes and returns a binary,
//! which existing crates do not offer in a stable form.

/// The size of a context as bytes.
pub(crate) const CONTEXT_BYTES: usize = 96;

/// A digest under way.
#[derive(Clone, Debug)]
pub struct Md5 {
    state: [u32; 4],
    /// How many bytes were fed.
    len: u64,
    /// The last `len % 64` of them.
    block: [u8; 64],
}

const ROTATIONS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

/// `floor(abs(sin(i + 1)) * 2^32)`.
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a,
    0xa830_4613, 0xfd46_9501, 0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be,
    0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821, 0xf61e_2562, 0xc040_b340,
    0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8,
    0x676f_02d9, 0x8d2a_4c8a, 0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c,
    0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70, 0x289b_7ec6, 0xeaa1_27fa,
    0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92,
    0xffef_f47d, 0x8584_5dd1, 0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1,
    0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

impl Default for Md5 {
    fn default() -> Self {
        Self {
            state: [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476],
            len: 0,
            block: [0; 64],
        }
    }
}

impl Md5 {
    /// A digest of nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The digest of `bytes`.
    #[must_use]
    pub fn digest(bytes: &[u8]) -> [u8; 16] {
        let mut md5 = Self::new();
        md5.update(bytes);
        md5.finish()
    }

    /// Feeds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let used = self.used();
        self.len = self.len.wrapping_add(bytes.len() as u64);
        let mut rest = bytes;
        if used != 0 {
            let head;
            (head, rest) = bytes.split_at(bytes.len().min(64 - used));
            self.block[used..used + head.len()].copy_from_slice(head);
            if used + head.len() < 64 {
                return;
            }
            let block = self.block;
            self.transform(&block);
        }
        let mut blocks = rest.chunks_exact(64);
        for block in blocks.by_ref() {
            self.transform(block);
        }
        let rest = blocks.remainder();
        self.block[..rest.len()].copy_from_slice(rest);
    }

    /// Ends the digest.
    #[must_use]
    pub fn finish(mut self) -> [u8; 16] {
        let bits = self.len.wrapping_mul(8);
        let padding = 1 + (119 - self.used()) % 64;
        let mut tail = [0; 64];
        tail[0] = 0x80;
        self.update(&tail[..padding]);
        self.update(&bits.to_le_bytes());
        let mut out = [0; 16];
        for (bytes, word) in out.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// The context as bytes: state, bytes digested, bytes waiting in the block, block.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; CONTEXT_BYTES] {
        let mut out = [0; CONTEXT_BYTES];
        for (bytes, word) in out.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let used = self.used() as u64;
        out[16..24].copy_from_slice(&(self.len - used).to_le_bytes());
        out[24..32].copy_from_slice(&used.to_le_bytes());
        out[32..].copy_from_slice(&self.block);
        out
    }

    /// The context of [`Self::to_bytes`]; `None` for bytes it never gives.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; CONTEXT_BYTES] = bytes.try_into().ok()?;
        let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].map(|j| bytes[i * 4 + j]));
        let long = |i: usize| u64::from(word(i)) | u64::from(word(i + 1)) << 32;
        let (digested, used) = (long(4), long(6));
        if used >= 64 || digested % 64 != 0 {
            return None;
        }
        let mut block = [0; 64];
        block.copy_from_slice(&bytes[32..]);
        Some(Self {
            state: [0, 1, 2, 3].map(word),
            len: digested + used,
            block,
        })
    }

    fn used(&self) -> usize {
        (self.len % 64) as usize
    }

    fn transform(&mut self, block: &[u8]) {
        let mut words = [0; 16];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        let [mut a, mut b, mut c, mut d] = self.state;
        for (i, &sine) in SINES.iter().enumerate() {
            let (f, k) = match i / 16 {
                0 => (b & c | !b & d, i),
                1 => (d & b | !d & c, 5 * i + 1),
                2 => (b ^ c ^ d, 3 * i + 5),
                _ => (c ^ (b | !d), 7 * i),
            };
            let sum = a
                .wrapping_add(f)
                .wrapping_add(sine)
                .wrapping_add(words[k % 16]);
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(ROTATIONS[i / 16][i % 4]));
        }
        for (state, word) in self.state.iter_mut().zip([a, b, c, d]) {
            *state = state.wrapping_add(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digest: [u8; 16]) -> String {
        digest.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn known_digests() {
        for (text, want) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("a", "0cc175b9c0f1b6a831c399e269772661"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(hex(Md5::digest(text.as_bytes())), want, "{text}");
        }
    }

    #[test]
    fn parts_and_contexts() {
        let bytes: Vec<u8> = (0..400u32).map(|i| (i * 7 % 251) as u8).collect();
        for split in 0..=bytes.len() {
            let mut md5 = Md5::new();
            md5.update(&bytes[..split]);
            let mut md5 = Md5::from_bytes(&md5.to_bytes()).expect("a context");
            md5.update(&bytes[split..]);
            assert_eq!(md5.finish(), Md5::digest(&bytes), "split at {split}");
        }
        assert!(Md5::from_bytes(&[0; 87]).is_none());
    }

    #[test]
    fn padding_at_every_length() {
        // The digest of the digests of 0 to 199 zero bytes.
        let mut all = Md5::new();
        for len in 0..200 {
            all.update(&Md5::digest(&vec![0; len]));
        }
        assert_eq!(hex(all.finish()), "e8d55e69ebf9c141ff77bd7b9174d8b0");
    }
}
