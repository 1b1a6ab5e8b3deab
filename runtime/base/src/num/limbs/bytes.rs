//! Converts integers from and to the bits of a binary: any width, both byte orders, signed or not.
//!
//! A width that is no multiple of eight ends in a partial byte, whose bits stand at its top. In big-endian order that
//! byte is the least significant, in little-endian order the most significant. This is the layout of a bit string
//! segment.

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
            Endian::Big if partial == 0 => limbs_of_big(bytes),
            Endian::Big => shr(&limbs_of_big(bytes), 8 - partial),
            Endian::Little if partial == 0 => limbs_of_little(bytes),
            Endian::Little => {
                let (last, rest) = bytes.split_last().expect("bits is not zero");
                let mut mag = limbs_of_little(rest);
                mag.resize(bytes.len().div_ceil(8), 0);
                mag[rest.len() / 8] |= u64::from(last >> (8 - partial)) << (rest.len() % 8 * 8);
                mag
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
        // All that is behind the number's own limbs is its sign, and so is the limb behind them.
        let count = bits.div_ceil(64).min(self.mag.len() + 1);
        let limbs = self.twos_complement(count);
        let sign = if self.neg { u8::MAX } else { 0 };
        match endian {
            Endian::Big if partial == 0 => fill_big(&limbs, sign, out),
            Endian::Big => {
                let mut limbs = shl(&limbs, 8 - partial);
                // What is shifted out is sign, or has no room.
                limbs.truncate(count);
                fill_big(&limbs, sign, out);
            }
            Endian::Little => {
                fill_little(&limbs, sign, out);
                if partial != 0
                    && let Some(last) = out.last_mut()
                {
                    *last <<= 8 - partial;
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
fn limbs_of_little(bytes: &[u8]) -> Mag {
    let limb = |bytes: &[u8]| {
        let mut limb = [0; 8];
        limb[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(limb)
    };
    bytes.chunks(8).map(limb).collect()
}

/// Limbs of bytes that come most significant first.
fn limbs_of_big(bytes: &[u8]) -> Mag {
    let limb = |bytes: &[u8]| {
        let mut limb = [0; 8];
        limb[8 - bytes.len()..].copy_from_slice(bytes);
        u64::from_be_bytes(limb)
    };
    bytes.rchunks(8).map(limb).collect()
}

/// Writes the bytes of the limbs, least significant first, and `sign` behind them, until `out` is full.
fn fill_little(limbs: &[u64], sign: u8, out: &mut [u8]) {
    let own = out.len().min(limbs.len() * 8);
    let (own, rest) = out.split_at_mut(own);
    for (bytes, limb) in own.chunks_mut(8).zip(limbs) {
        bytes.copy_from_slice(&limb.to_le_bytes()[..bytes.len()]);
    }
    rest.fill(sign);
}

/// Writes the bytes of the limbs to the end of `out`, most significant first, and `sign` before them.
fn fill_big(limbs: &[u64], sign: u8, out: &mut [u8]) {
    let rest = out.len().saturating_sub(limbs.len() * 8);
    let (rest, own) = out.split_at_mut(rest);
    for (bytes, limb) in own.rchunks_mut(8).zip(limbs) {
        bytes.copy_from_slice(&limb.to_be_bytes()[8 - bytes.len()..]);
    }
    rest.fill(sign);
}
