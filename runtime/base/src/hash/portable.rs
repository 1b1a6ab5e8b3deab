//! The portable term hashes: `erlang:phash2` ([`Hash2`]) and `erlang:phash` ([`Hash1`]).
//!
//! Their values are the same on every machine and in every version of OTP. A walker visits a term in the order given at
//! each method and feeds what it meets. It feeds identifiers (pids, ports, references) as the numbers that OTP hashes
//! of them.
//! Source of constants and order: `erl_term_hashing.c`, OTP 29.

#[cfg(test)]
mod tests;

use crate::num::limbs::{Int, IntRef};

/// The hash of an atom's name, given in UTF-8: what both hashes use for atoms.
///
/// A character of Latin-1 counts as its one byte.
/// Source: `atom_hash()` in `atom.c`.
#[must_use]
pub fn atom_hash(name: &[u8]) -> u32 {
    let mut h: u32 = 0;
    let mut bytes = name.iter().copied().peekable();
    while let Some(mut v) = bytes.next() {
        if v & 0xfe == 0xc2
            && let Some(next) = bytes.next_if(|n| n & 0xc0 == 0x80)
        {
            v = v << 6 | next & 0x3f;
        }
        h = (h << 4).wrapping_add(u32::from(v));
        let g = h & 0xf000_0000;
        h ^= g >> 24;
        h ^= g;
    }
    h
}

/// A bit string: its whole bytes, and the bits after them at the top of one more byte.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    /// The whole bytes.
    pub bytes: &'a [u8],
    /// How many bits follow the whole bytes: 0 to 7.
    pub tail_bits: u32,
    /// The byte at whose top those bits stand; of no account if there are none.
    pub tail: u8,
}

impl<'a> Bits<'a> {
    /// A bit string of whole bytes.
    #[inline]
    #[must_use]
    pub fn bytes(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            tail_bits: 0,
            tail: 0,
        }
    }

    /// The tail bits as a number.
    fn tail_value(self) -> u32 {
        u32::from(self.tail) >> (8 - self.tail_bits)
    }
}

/// The numbers by which the hashes identify a local fun.
#[derive(Clone, Copy, Debug)]
pub struct LocalFun {
    /// The hash of the module's name.
    pub module_hash: u32,
    /// The index of the fun in its module.
    pub index: u32,
    /// The `OldUniq` of the fun's entry in the `FunT` chunk.
    pub old_uniq: u32,
    /// How many variables the fun has captured.
    pub num_free: u32,
}

/// The golden ratio, from which every constant of [`Hash2`] is a multiple.
const HCONST: u32 = 0x9e37_79b9;

const fn hconst(n: u32) -> u32 {
    HCONST.wrapping_mul(n)
}

/// Mixes three words: Bob Jenkins' function.
#[inline(always)]
fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    macro_rules! step {
        ($x:ident, $y:ident, $z:ident, $shifted:expr) => {
            $x = $x.wrapping_sub($y).wrapping_sub($z);
            $x ^= $shifted;
        };
    }
    step!(a, b, c, c >> 13);
    step!(b, c, a, a << 8);
    step!(c, a, b, b >> 13);
    step!(a, b, c, c >> 12);
    step!(b, c, a, a << 16);
    step!(c, a, b, b >> 5);
    step!(a, b, c, c >> 3);
    step!(b, c, a, a << 10);
    step!(c, a, b, b >> 15);
    (a, b, c)
}

/// The first four bytes as a number, the first of them the lowest; zeros where there are fewer.
#[inline(always)]
fn first_four(bytes: &[u8]) -> u32 {
    let at = |index: usize| u32::from(bytes.get(index).copied().unwrap_or(0));
    match bytes.first_chunk::<4>() {
        Some(four) => u32::from_le_bytes(*four),
        None => at(0) | at(1) << 8 | at(2) << 16,
    }
}

/// Bob Jenkins' hash of a block of bytes, from an initial value.
#[inline]
#[must_use]
pub(crate) fn block_hash(bytes: &[u8], initial: u32) -> u32 {
    let (mut a, mut b, mut c) = (HCONST, HCONST, initial);
    let word = |k: &[u8]| u32::from_le_bytes([k[0], k[1], k[2], k[3]]);
    let chunks = bytes.chunks_exact(12);
    let rest = chunks.remainder();
    for k in chunks {
        a = a.wrapping_add(word(k));
        b = b.wrapping_add(word(&k[4..]));
        c = c.wrapping_add(word(&k[8..]));
        (a, b, c) = mix(a, b, c);
    }
    // The lowest byte of the last word is left to the length.
    a = a.wrapping_add(first_four(rest));
    b = b.wrapping_add(first_four(rest.get(4..).unwrap_or(&[])));
    c = c
        .wrapping_add(first_four(rest.get(8..).unwrap_or(&[])) << 8)
        .wrapping_add(bytes.len() as u32);
    mix(a, b, c).2
}

/// The hash of `erlang:phash2/1,2` over one term, before it is cut to its range.
///
/// Compound terms are fed as their own call, then their parts in order. A list is fed as
/// described at [`Self::string_byte`]; the elements of a map between [`Self::map_start`]
/// and [`Self::map_end`], each key, then its value, then [`Self::map_pair_end`].
#[derive(Clone, Debug, Default)]
pub struct Hash2 {
    hash: u32,
    xor_pairs: u32,
    string: u32,
    string_len: u32,
    /// `(hash, xor_pairs)` of the maps around the one being fed.
    outer: Vec<(u32, u32)>,
}

impl Hash2 {
    /// A hash that has been fed nothing.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The hash of the terms fed so far, 32 bits.
    #[inline]
    #[must_use]
    pub fn value(&self) -> u32 {
        self.hash
    }

    /// What `phash2/1` returns: the lowest 27 bits.
    #[inline]
    #[must_use]
    pub fn phash2(&self) -> u32 {
        self.hash & ((1 << 27) - 1)
    }

    #[inline]
    fn words(&mut self, x: u32, y: u32, constant: u32) {
        let (x, y) = (constant.wrapping_add(x), constant.wrapping_add(y));
        self.hash = mix(x, y, self.hash).2;
    }

    #[inline]
    fn word(&mut self, x: u32, constant: u32) {
        self.words(x, 0, constant);
    }

    /// An atom, by [`atom_hash`].
    #[inline]
    pub fn atom(&mut self, atom_hash: u32) {
        if self.hash == 0 {
            self.hash = atom_hash;
        } else {
            self.word(atom_hash, hconst(3));
        }
    }

    /// The empty list, and the end of every proper list.
    #[inline]
    pub fn nil(&mut self) {
        /// What an empty list hashes to where nothing came before it.
        const ALONE: u32 = 3_468_870_702;
        /// The type number of the empty list in OTP's own order of types.
        const NIL_DEF: u32 = 2;
        if self.hash == 0 {
            self.hash = ALONE;
        } else {
            self.word(NIL_DEF, hconst(2));
        }
    }

    /// An integer that fits 64 bits.
    #[inline]
    pub fn small(&mut self, value: i64) {
        const SHORT: std::ops::Range<i64> = -(1 << 27)..1 << 27;
        if SHORT.contains(&value) {
            if value < 0 {
                self.word(value.unsigned_abs() as u32, HCONST);
            }
            self.word(value as u32, HCONST);
        } else {
            let mut limb = [0];
            self.big(IntRef::of_i64(value, &mut limb));
        }
    }

    /// An integer of any size.
    pub fn integer(&mut self, value: IntRef<'_>) {
        match value.to_i64() {
            Some(small) => self.small(small),
            None => self.big(value),
        }
    }

    fn big(&mut self, value: IntRef<'_>) {
        let constant = hconst(if value.is_negative() { 10 } else { 11 });
        for &limb in value.mag() {
            self.words(limb as u32, (limb >> 32) as u32, constant);
        }
    }

    /// A float; both zeros hash alike.
    #[inline]
    pub fn float(&mut self, value: f64) {
        let bits = if value == 0.0 { 0 } else { value.to_bits() };
        self.words((bits >> 32) as u32, bits as u32, hconst(12));
    }

    /// A binary or bit string.
    #[inline]
    pub fn bits(&mut self, bits: Bits<'_>) {
        let initial = hconst(13).wrapping_add(self.hash);
        // The size is cut to 32 bits, with what lies beyond it, as OTP does.
        let bytes = &bits.bytes[..bits.bytes.len() & 0xffff_ffff];
        if bytes.is_empty() && bits.tail_bits == 0 {
            self.hash = initial;
            return;
        }
        self.hash = block_hash(bytes, initial);
        if bits.tail_bits > 0 {
            self.words(bits.tail_bits, bits.tail_value(), hconst(15));
        }
    }

    /// A byte (an integer of 0 to 255) that is an element of a list.
    ///
    /// Runs of them are hashed four at a time: call [`Self::string_end`] after the last of a
    /// run, before the next element or the tail is fed. Other elements are fed as terms.
    #[inline]
    pub fn string_byte(&mut self, byte: u8) {
        self.string = self.string << 8 | u32::from(byte);
        self.string_len += 1;
        if self.string_len == 4 {
            self.string_end();
        }
    }

    /// Ends a run of [`Self::string_byte`]; without one it does nothing.
    #[inline]
    pub fn string_end(&mut self) {
        if self.string_len > 0 {
            let string = std::mem::take(&mut self.string);
            self.string_len = 0;
            self.word(string, hconst(4));
        }
    }

    /// A tuple; its elements follow, the first one first.
    #[inline]
    pub fn tuple(&mut self, arity: u32) {
        self.word(arity, hconst(9));
    }

    /// A native record, by the hash of its definition; its values follow.
    #[inline]
    pub fn record(&mut self, field_count: u32, definition_hash: u32) {
        self.words(field_count, definition_hash, hconst(23));
    }

    /// A map of `size` pairs. An empty map needs no [`Self::map_end`].
    #[inline]
    pub fn map_start(&mut self, size: u32) {
        self.word(size, hconst(16));
        if size > 0 {
            self.outer.push((self.hash, self.xor_pairs));
            self.hash = 0;
            self.xor_pairs = 0;
        }
    }

    /// Ends a pair of the map; pairs may come in any order.
    #[inline]
    pub fn map_pair_end(&mut self) {
        self.xor_pairs ^= self.hash;
        self.hash = 0;
    }

    /// Ends the map that [`Self::map_start`] began last.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn map_end(&mut self) {
        let pairs = self.xor_pairs;
        (self.hash, self.xor_pairs) = self.outer.pop().expect("a map was begun");
        self.word(pairs, hconst(19));
    }

    /// A local fun; its captured variables follow, the first one first.
    #[inline]
    pub fn local_fun(&mut self, fun: LocalFun) {
        self.words(fun.num_free, fun.module_hash, HCONST);
        self.words(fun.index, fun.old_uniq, HCONST);
    }

    /// `fun M:F/A`.
    #[inline]
    pub fn external_fun(&mut self, module_hash: u32, function_hash: u32, arity: u32) {
        self.words(arity, module_hash, HCONST);
        self.word(function_hash, hconst(14));
    }

    /// A pid, by its number.
    #[inline]
    pub fn pid(&mut self, number: u32) {
        self.word(number, hconst(5));
    }

    /// A port, by its number.
    #[inline]
    pub fn port(&mut self, number: u64) {
        self.words(number as u32, (number >> 32) as u32, hconst(6));
    }

    /// A reference, by the first of its numbers.
    #[inline]
    pub fn reference(&mut self, number: u32) {
        self.word(number, hconst(7));
    }
}

/// Primes just above 2^28, by the numbers that OTP gives them.
const PRIMES: [u32; 16] = [
    0,
    268_440_163,
    268_439_161,
    268_435_459,
    268_436_141,
    268_438_633,
    268_437_017,
    268_438_039,
    268_437_511,
    268_439_627,
    268_440_479,
    268_440_577,
    268_440_581,
    268_440_593,
    268_440_611,
    268_440_629,
];

/// The hash of `erlang:phash/2` over one term.
///
/// A tuple or record is fed after its elements, a list as its elements, its tail and then
/// [`Self::list_end`]; a fun before its variables.
#[derive(Clone, Debug, Default)]
pub struct Hash1 {
    hash: u32,
}

impl Hash1 {
    /// A hash that has been fed nothing.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The hash of the terms fed so far, 32 bits.
    #[inline]
    #[must_use]
    pub fn value(&self) -> u32 {
        self.hash
    }

    #[inline]
    fn step(&mut self, prime: usize, add: u32) {
        self.hash = self.hash.wrapping_mul(PRIMES[prime]).wrapping_add(add);
    }

    /// The bytes of a word, the lowest first.
    #[inline]
    fn word(&mut self, word: u32, prime: usize) {
        for byte in word.to_le_bytes() {
            self.step(prime, byte.into());
        }
    }

    /// An atom, by [`atom_hash`].
    #[inline]
    pub fn atom(&mut self, atom_hash: u32) {
        self.step(1, atom_hash);
    }

    /// The empty list, and the end of every proper list.
    #[inline]
    pub fn nil(&mut self) {
        self.step(3, 1);
    }

    /// An integer that fits 64 bits.
    #[inline]
    pub fn small(&mut self, value: i64) {
        self.integer(Int::from(value).as_ref());
    }

    /// An integer of any size: as many 32-bit words as it needs, at least one.
    pub fn integer(&mut self, value: IntRef<'_>) {
        let mut words = value
            .mag()
            .iter()
            .flat_map(|&l| [l as u32, (l >> 32) as u32]);
        let count = value.bit_len().div_ceil(32).max(1);
        for _ in 0..count {
            self.word(words.next().unwrap_or(0), 2);
        }
        self.step(if value.is_negative() { 4 } else { 3 }, 0);
    }

    /// A float; both zeros hash alike.
    #[inline]
    pub fn float(&mut self, value: f64) {
        let bits = if value == 0.0 { 0 } else { value.to_bits() };
        self.step(6, bits as u32 ^ (bits >> 32) as u32);
    }

    /// A binary or bit string.
    pub fn bits(&mut self, bits: Bits<'_>) {
        for &byte in bits.bytes {
            self.step(1, byte.into());
        }
        if bits.tail_bits > 0 {
            self.step(1, bits.tail_value());
            self.step(12, bits.tail_bits);
        }
        self.step(4, bits.bytes.len() as u32);
    }

    /// A byte (an integer of 0 to 255) that is an element of a list.
    #[inline]
    pub fn string_byte(&mut self, byte: u8) {
        self.step(2, byte.into());
    }

    /// The end of a list, after its tail.
    #[inline]
    pub fn list_end(&mut self) {
        self.step(8, 0);
    }

    /// A tuple, after its elements.
    #[inline]
    pub fn tuple(&mut self, arity: u32) {
        self.step(9, arity);
    }

    /// A native record of `arity` words after its header, after all of them.
    #[inline]
    pub fn record(&mut self, arity: u32) {
        self.step(15, arity);
    }

    /// A map, by its whole [`Hash2::value`].
    #[inline]
    pub fn map(&mut self, hash2: u32) {
        self.step(13, PRIMES[14].wrapping_add(hash2));
    }

    /// A local fun; its captured variables follow, the first one first.
    #[inline]
    pub fn local_fun(&mut self, fun: LocalFun) {
        self.step(10, fun.num_free);
        self.step(1, fun.module_hash);
        self.step(2, fun.index);
        self.step(2, fun.old_uniq);
    }

    /// `fun M:F/A`.
    #[inline]
    pub fn external_fun(&mut self, module_hash: u32, function_hash: u32, arity: u32) {
        self.step(11, arity);
        self.step(1, module_hash);
        self.step(1, function_hash);
    }

    /// A pid, by its number.
    #[inline]
    pub fn pid(&mut self, number: u32) {
        self.word(number, 5);
        self.step(6, 0);
    }

    /// A port, by its number.
    #[inline]
    pub fn port(&mut self, number: u64) {
        let high = (number >> 32) as u32;
        if high != 0 {
            self.word(high, 11);
        }
        self.word(number as u32, 9);
        self.step(10, 0);
    }

    /// A reference, by the first of its numbers.
    #[inline]
    pub fn reference(&mut self, number: u32) {
        self.word(number, 9);
        self.step(10, 0);
    }
}
