//! Damage to bytes of which nothing is known.

use crate::random::Random;

/// Words that sizes, counts and indices are replaced with.
const EXTREMES: [u64; 12] = [
    0,
    1,
    2,
    0xff,
    0xffff,
    0x00ff_ffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// The most bytes that are doubled, dropped or taken from another file at once.
const PIECE: usize = 64;

/// Changes something in `bytes`; pieces of `other` may get in.
pub(crate) fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    if bytes.is_empty() {
        bytes.extend(piece(other, random));
        return;
    }
    let at = random.below(bytes.len());
    match random.below(10) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.number() as u8,
        2 => bytes[at] = bytes[at].wrapping_add(1),
        3 => bytes[at] = bytes[at].wrapping_sub(1),
        4 | 5 => number(bytes, at, random),
        6 => drop(bytes.drain(at..end(bytes, at, random))),
        7 => {
            let copy = bytes[at..end(bytes, at, random)].to_vec();
            bytes.splice(at..at, copy);
        }
        8 => {
            let piece = piece(other, random);
            let to = bytes.len().min(at + piece.len() * random.below(2));
            bytes.splice(at..to, piece);
        }
        _ if random.once_in(4) => bytes.truncate(at),
        _ => {
            let to = random.below(bytes.len());
            bytes.swap(at, to);
        }
    }
}

/// Writes an extreme number of 2, 4 or 8 bytes, or one near what is there, in either order of bytes.
fn number(bytes: &mut [u8], at: usize, random: &mut Random) {
    let width = *random.one(&[2, 4, 8]);
    // Most numbers in files stand at multiples of their size.
    let at = if random.once_in(2) {
        at
    } else {
        at / width * width
    };
    let Some(place) = bytes.get_mut(at..at + width) else {
        return;
    };
    let is_big = random.once_in(2);
    let known = place.iter().enumerate().fold(0, |sum, (i, &byte)| {
        let i = if is_big { width - 1 - i } else { i };
        sum | u64::from(byte) << (8 * i)
    });
    let word = match random.below(4) {
        0 => known.wrapping_add(1 + random.number() % 16),
        1 => known.wrapping_sub(1 + random.number() % 16),
        _ => *random.one(&EXTREMES),
    };
    let little = word.to_le_bytes();
    for (i, byte) in place.iter_mut().enumerate() {
        *byte = little[if is_big { width - 1 - i } else { i }];
    }
}

fn end(bytes: &[u8], at: usize, random: &mut Random) -> usize {
    at + random.below(PIECE.min(bytes.len() - at) + 1)
}

fn piece(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let at = random.below(bytes.len());
    bytes[at.min(bytes.len())..end(bytes, at, random)].to_vec()
}
