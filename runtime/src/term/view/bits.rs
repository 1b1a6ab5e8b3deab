//! Bitstrings, and where their bits are.

use std::marker::PhantomData;
use std::ops::Range;

use crate::term::counted::{Binary, SharedBytes};
use crate::term::{Owner, RawTerm, Term, tag};

/// A bitstring: `bit_len` bits that start `bit_offset` bits into `base`.
#[derive(Clone, Copy)]
pub struct Bits<'h> {
    thing: *const u64,
    base: *const u8,
    start: usize,
    end: usize,
    owner: PhantomData<&'h Owner>,
}

/// Flags in the low bits of a `SUB_BITS` base word.
pub(crate) mod sub_bits {
    /// The thing itself changes: a match context, or (with `VOLATILE`) a writable binary.
    pub(crate) const MUTABLE: u64 = 1;
    /// The bytes may move: it is or was writable.
    pub(crate) const VOLATILE: u64 = 2;
    pub(crate) const MASK: u64 = 3;
}

impl<'h> Bits<'h> {
    /// # Safety
    /// T1: a bitstring lies at `thing`.
    #[inline]
    pub(super) unsafe fn at(thing: *const u64) -> Bits<'h> {
        // SAFETY: T1: both kinds have at least two words behind the header read here.
        unsafe {
            let (header, second) = (*thing, *thing.add(1));
            if header & tag::HEADER_MASK == tag::HEAP_BITS {
                let base = thing.add(2).cast();
                return Bits {
                    thing,
                    base,
                    start: 0,
                    end: second as usize,
                    owner: PhantomData,
                };
            }
            let (start, end) = (*thing.add(2) as usize, *thing.add(3) as usize);
            let base = if second & sub_bits::VOLATILE == 0 {
                (second & !sub_bits::MASK) as *const u8
            } else {
                Bits::binary_of(thing).map_or(std::ptr::null(), Binary::data)
            };
            Bits {
                thing,
                base,
                start,
                end,
                owner: PhantomData,
            }
        }
    }

    /// # Safety
    /// `thing` is a `SUB_BITS` thing of which T1 holds.
    unsafe fn binary_of(thing: *const u64) -> Option<&'h Binary> {
        // SAFETY: T1: `orig` is a boxed `BIN_REF` or `HEAP_BITS`; a `BIN_REF` keeps its binary alive.
        unsafe {
            let orig = RawTerm(*thing.add(4)).ptr();
            (*orig & tag::HEADER_MASK == tag::BIN_REF).then(|| &*(*orig.add(1) as *const Binary))
        }
    }

    /// Size in bits.
    #[inline]
    #[must_use]
    pub fn bit_len(self) -> usize {
        self.end - self.start
    }
    /// Whole bytes in it.
    #[inline]
    #[must_use]
    pub(crate) fn byte_len(self) -> usize {
        self.bit_len() / 8
    }
    /// First bit, counted from the start of [`Bits::base`].
    #[inline]
    #[must_use]
    pub fn bit_offset(self) -> usize {
        self.start
    }
    /// Where offsets are counted from.
    #[inline]
    #[must_use]
    pub fn base(self) -> *const u8 {
        self.base
    }
    /// The bytes, where it starts on a byte's edge; a last part of a byte is left out.
    #[inline]
    #[must_use]
    pub fn as_bytes(self) -> Option<&'h [u8]> {
        // SAFETY: T1, T2: `start..end` lies within the bytes, which are kept alive and only ever
        // extended behind `end`.
        (self.start.is_multiple_of(8)).then(|| unsafe {
            std::slice::from_raw_parts(self.base.add(self.start / 8), self.byte_len())
        })
    }
    /// The bytes, where it is nothing but whole bytes from a byte's edge on.
    #[inline]
    #[must_use]
    pub(crate) fn whole_bytes(self) -> Option<&'h [u8]> {
        self.as_bytes().filter(|_| self.bit_len().is_multiple_of(8))
    }
    /// What is left of it behind its first `from` bits, to be read.
    #[must_use]
    pub fn skip(self, from: usize) -> Bits<'h> {
        assert!(from <= self.bit_len(), "no more than there is");
        let start = self.start + from;
        Bits { start, ..self }
    }
    /// Its first `bit_len` bits, to be read.
    #[must_use]
    pub fn first(self, bit_len: usize) -> Bits<'h> {
        assert!(bit_len <= self.bit_len(), "no more than there is");
        let end = self.start + bit_len;
        Bits { end, ..self }
    }
    /// Bit `index`, from 0, most significant bit of a byte first.
    #[must_use]
    pub fn bit(self, index: usize) -> bool {
        assert!(index < self.bit_len(), "bit index out of range");
        let at = self.start + index;
        // SAFETY: T1: `at` is below `end`.
        unsafe { (*self.base.add(at / 8) >> (7 - at % 8)) & 1 == 1 }
    }
    /// The bytes, shifted into place where it does not start on a byte's edge; a last part of a
    /// byte stands in the high bits, the rest of them zero.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        let n = self.bit_len().div_ceil(8);
        let mut out = Vec::with_capacity(n);
        let shift = self.start % 8;
        let first = self.start / 8;
        let last = if self.end == self.start {
            first
        } else {
            (self.end - 1) / 8
        };
        for i in 0..n {
            // SAFETY: T1: bytes `first..=last` hold the bits.
            let (hi, lo) = unsafe {
                let hi = *self.base.add(first + i);
                (
                    hi,
                    if first + i < last {
                        *self.base.add(first + i + 1)
                    } else {
                        0
                    },
                )
            };
            out.push(if shift == 0 {
                hi
            } else {
                (hi << shift) | (lo >> (8 - shift))
            });
        }
        let rest = self.bit_len() % 8;
        if rest != 0 {
            let last = out.last_mut().expect("a part of a byte is a byte");
            *last &= 0xffu8 << (8 - rest);
        }
        out
    }
    /// The bytes as they lie, or shifted into a buffer.
    #[must_use]
    pub fn bytes(self) -> std::borrow::Cow<'h, [u8]> {
        match self.whole_bytes() {
            Some(bytes) => bytes.into(),
            None => self.to_vec().into(),
        }
    }
    /// Is a part of something else (or a match context), not bytes on the heap.
    #[must_use]
    pub(crate) fn is_sub(self) -> bool {
        // SAFETY: T1: a thing starts with its header.
        unsafe { *self.thing & tag::HEADER_MASK == tag::SUB_BITS }
    }
    /// A match context, which is no term of the program's.
    #[must_use]
    pub(crate) fn is_match_context(self) -> bool {
        // SAFETY: T1: a `SUB_BITS` has its flags in the second word.
        self.is_sub() && unsafe { *self.thing.add(1) & sub_bits::MASK == sub_bits::MUTABLE }
    }
    /// The off-heap binary its bytes are in.
    #[must_use]
    pub fn binary(self) -> Option<&'h Binary> {
        if !self.is_sub() {
            return None;
        }
        // SAFETY: T1: `thing` is a `SUB_BITS`.
        unsafe { Bits::binary_of(self.thing) }
    }
    /// A count of the off-heap binary that its bytes are in, and which of them they are. `None` where they are on the heap,
    /// and where they are not whole bytes from a byte's edge on.
    pub(crate) fn share(self) -> Option<(SharedBytes, Range<usize>)> {
        let length = self.whole_bytes()?.len();
        let start = self.start / 8;
        let shared = SharedBytes::of(self.binary()?);
        Some((shared, start..start + length))
    }
    /// The thing, for code that walks words.
    #[must_use]
    pub fn ptr(self) -> *const u64 {
        self.thing
    }
    /// The term that it was made of, if it has not been cut since.
    #[must_use]
    pub fn term(self) -> Term<'h> {
        // SAFETY: T1: the thing of a term in hand.
        unsafe { Term::new(RawTerm::boxed(self.thing)) }
    }
}
