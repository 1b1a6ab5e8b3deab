//! Converts integers from and to the bits of a binary: any width, both byte orders, signed or not.
//!
//! A width that is no multiple of eight ends in a partial byte, whose bits stand at its top. In big-endian order that
//! byte is the least significant, in little-endian order the most significant. This is the layout of a bit string
//! segment.

use smallvec::SmallVec;

use super::mag::{shl, shr};
use super::{Int, IntRef, Mag};

/// The order of the bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl Int {
    /// Reads the first `bits` bits of `bytes`, which hold at least as many.
    #[must_use]
    pub fn from_bits(bytes: &[u8], bits: usize, endian: Endian, signed: bool) -> Self {
        if bits == 0 {
            return Self::zero();
        }
        let bytes = &bytes[..bits.div_ceil(8)];
        let partial = bits % 8;
        let mut mag = match endian {
            Endian::Big => {
                let mag = limbs_of(bytes.iter().rev());
                if partial == 0 {
                    mag
                } else {
                    shr(&mag, 8 - partial)
                }
            }
            Endian::Little if partial == 0 => limbs_of(bytes.iter()),
            Endian::Little => {
                let (last, rest) = bytes.split_last().expect("bits is not zero");
                limbs_of(rest.iter().chain([&(last >> (8 - partial))]))
            }
        };
        let len = bits.div_ceil(64);
        mag.resize(len, 0);
        let top_bits = (bits - 1) % 64 + 1;
        let top = &mut mag[len - 1];
        if signed && *top >> (top_bits - 1) & 1 == 1 {
            if top_bits < 64 {
                *top |= u64::MAX << top_bits;
            }
            return Self::from_twos_complement(&mag);
        }
        Self::from_parts(false, mag)
    }
}

impl IntRef<'_> {
    /// Writes the lowest `bits` bits, in two's complement, to the start of `out`, which
    /// has room for them. The unused bits of a partial last byte become zero.
    pub fn to_bits(self, out: &mut [u8], bits: usize, endian: Endian) {
        if bits == 0 {
            return;
        }
        let out = &mut out[..bits.div_ceil(8)];
        let partial = bits % 8;
        let mut limbs = self.twos_complement(bits.div_ceil(64));
        let top_bits = (bits - 1) % 64 + 1;
        if top_bits < 64
            && let Some(top) = limbs.last_mut()
        {
            *top &= (1 << top_bits) - 1;
        }
        match endian {
            Endian::Big => {
                if partial != 0 {
                    limbs = shl(&limbs, 8 - partial);
                }
                let len = out.len();
                fill(&limbs, out.iter_mut().rev(), len);
            }
            Endian::Little => {
                let len = out.len();
                fill(&limbs, out.iter_mut(), len);
                if partial != 0 {
                    out[len - 1] <<= 8 - partial;
                }
            }
        }
    }

    /// The bytes of the absolute value, least significant first, without leading zeros.
    #[inline]
    pub fn mag_le_bytes(self) -> impl Iterator<Item = u8> {
        let len = self.bit_len().div_ceil(8) as usize;
        self.mag.iter().flat_map(|l| l.to_le_bytes()).take(len)
    }
}

/// Limbs of bytes that come least significant first.
fn limbs_of<'b>(bytes: impl Iterator<Item = &'b u8>) -> Mag {
    let mut out: Mag = SmallVec::new();
    for (i, &byte) in bytes.enumerate() {
        if i % 8 == 0 {
            out.push(0);
        }
        out[i / 8] |= u64::from(byte) << (i % 8 * 8);
    }
    out
}

/// Writes `len` bytes of the limbs, least significant first.
fn fill<'b>(limbs: &[u64], out: impl Iterator<Item = &'b mut u8>, len: usize) {
    for (i, byte) in out.take(len).enumerate() {
        *byte = limbs.get(i / 8).map_or(0, |l| (l >> (i % 8 * 8)) as u8);
    }
}
