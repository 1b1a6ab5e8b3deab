//! The bit syntax: matching and construction. Source of the rules: `bs_instrs.tab`, `erl_bits.c`, OTP 29.
//!
//! A match context is a `SUB_BITS` thing that changes: its start moves as fields are taken. Only these instructions
//! ever see one.

pub(crate) mod create;
pub(super) mod float16;
pub(super) mod get;
pub(crate) mod match_;
pub(super) mod start;
#[cfg(test)]
mod tests;

use super::slow::{Flow, Slow};
use crate::code::operand::Src;
use crate::heap::{copy_bits, heap_bits_words, read_field};
use crate::num::limbs::{Endian, Int};
use crate::process::Process;
use crate::term::tag::{self, size};
use crate::term::{Bits, RawTerm, Term, am, sub_bits};
use crate::value::number::MAX_LIMBS;

/// Flags of a field, as the compiler numbers them.
pub(crate) mod flag {
    /// Least significant byte first.
    pub(crate) const LITTLE: u64 = 2;
    /// Two's complement.
    pub(crate) const SIGNED: u64 = 4;
    /// The machine's own byte order.
    pub(crate) const NATIVE: u64 = 16;
}

/// Words that a sub-bitstring taken from a match context may need.
pub(crate) const SUB_BITSTRING_WORDS: usize = 2 + tag::ONHEAP_BINARY_LIMIT / 8;
const _: () = assert!(SUB_BITSTRING_WORDS >= size::SUB_BITS);

/// A match context at its place on the heap: valid until the next collection.
#[derive(Clone, Copy)]
pub(super) struct Ctx(*mut u64);

impl Ctx {
    /// The context that a source holds.
    #[inline]
    pub(super) fn of(s: &Slow<'_>, context: Src) -> Ctx {
        let term = s.src(context);
        debug_assert!(
            term.as_bits().is_some_and(Bits::is_match_context),
            "the compiler puts match contexts here"
        );
        Ctx(term.raw().ptr())
    }
    #[inline]
    fn word(self, index: usize) -> u64 {
        // SAFETY: T1, I3: the compiler lets only match contexts come here; a `SUB_BITS` has five words.
        unsafe { *self.0.add(index) }
    }
    /// First bit not taken yet, counted from [`Ctx::base`].
    #[inline]
    pub(super) fn start(self) -> usize {
        self.word(2) as usize
    }
    /// Moves the start.
    #[inline]
    pub(super) fn set_start(self, start: usize) {
        debug_assert!(
            start <= self.word(3) as usize,
            "a context's start is within it"
        );
        // SAFETY: T1: as `word`; a context's start is not a term and is no other's.
        unsafe { *self.0.add(2) = start as u64 };
    }
    /// Bits not taken yet.
    #[inline]
    pub(super) fn left(self) -> usize {
        (self.word(3) - self.word(2)) as usize
    }
    /// Where the bits are counted from. Contexts are pinned: it does not move without a collection.
    #[inline]
    pub(super) fn base(self) -> *const u8 {
        (self.word(1) & !sub_bits::MASK) as *const u8
    }
    /// Takes the next `len` bits, which are there, as a bitstring.
    pub(super) fn take_bits(self, p: &Process, len: usize) -> Term<'_> {
        // SAFETY: T1: the context is on `p`'s heap.
        let term = unsafe { Term::new(RawTerm::boxed(self.0)) };
        let bits = term.as_bits().expect("a match context");
        let part = p.sub_bits(bits, 0, len);
        self.set_start(self.start() + len);
        part
    }
    /// Takes the next `len` bits, which are there, as an integer; `None` where none may be that large.
    #[inline]
    pub(super) fn take_integer(self, p: &Process, len: usize, flags: u64) -> Option<Term<'_>> {
        let start = self.start();
        if len > 64 {
            let integer = wide_integer(p, self.base(), start, len, flags)?;
            self.set_start(start + len);
            return Some(integer);
        }
        self.set_start(start + len);
        let little = flags & (flag::LITTLE | flag::NATIVE) != 0;
        // SAFETY: T1: the bits are within the context's bytes.
        let mut value = unsafe { read_field(self.base(), start, len) };
        if little {
            value = from_little(value, len);
        }
        if flags & flag::SIGNED == 0 || len == 0 {
            return Some(p.unsigned(value));
        }
        let shift = 64 - len;
        Some(p.integer(((value << shift) as i64) >> shift))
    }
}

/// Takes the next `len` bits of the match context that a term is, which are there and for which there is room.
///
/// # Safety
/// T1: such a term on the heap of `p`, swapped out.
pub(super) unsafe fn take_bits(p: &Process, context: RawTerm, len: usize) -> RawTerm {
    let ctx = Ctx(context.ptr());
    let start = ctx.start();
    if len > tag::ONHEAP_BINARY_LIMIT * 8 || !(start | len).is_multiple_of(8) {
        return ctx.take_bits(p, len).raw();
    }
    ctx.set_start(start + len);
    // SAFETY: T1: by contract.
    let bytes = unsafe { std::slice::from_raw_parts(ctx.base().add(start / 8), len / 8) };
    p.heap_bits(bytes).raw()
}

/// As [`take_bits`], but the context stays where it is.
///
/// # Safety
/// As [`take_bits`].
pub(super) unsafe fn look_at_bits(p: &Process, context: RawTerm, len: usize) -> RawTerm {
    let ctx = Ctx(context.ptr());
    let start = ctx.start();
    let bits = ctx.take_bits(p, len).raw();
    ctx.set_start(start);
    bits
}

/// The number whose `len` bits were read as big-endian but are little-endian.
#[inline]
fn from_little(value: u64, len: usize) -> u64 {
    let rest = len % 8;
    let whole = len - rest;
    if whole == 0 {
        return value;
    }
    let bytes = (value >> rest).swap_bytes() >> (64 - whole);
    if rest == 0 {
        return bytes;
    }
    bytes | ((value & ((1 << rest) - 1)) << whole)
}

fn wide_integer(
    p: &Process,
    base: *const u8,
    start: usize,
    len: usize,
    flags: u64,
) -> Option<Term<'_>> {
    let mut bytes = vec![0u8; len.div_ceil(8)];
    // SAFETY: T1: the caller has seen that the bits are there.
    unsafe { copy_bits(base, start, bytes.as_mut_ptr(), 0, len) };
    let endian = if flags & (flag::LITTLE | flag::NATIVE) == 0 {
        Endian::Big
    } else {
        Endian::Little
    };
    let int = Int::from_bits(&bytes, len, endian, flags & flag::SIGNED != 0);
    (int.mag().len() <= MAX_LIMBS).then(|| p.big(int.is_negative(), int.mag()))
}

/// Words that an integer of `len` bits may need.
#[inline]
fn integer_words(len: usize) -> usize {
    if len < tag::SMALL_BITS as usize {
        0
    } else {
        1 + len.div_ceil(64)
    }
}

/// Words that a bitstring of `len` bits taken from a context needs.
#[inline]
fn extracted_words(len: usize) -> usize {
    if len <= tag::ONHEAP_BINARY_LIMIT * 8 {
        heap_bits_words(len)
    } else {
        size::SUB_BITS
    }
}

/// Flags given as a list of atoms, or nil.
#[inline]
pub(crate) fn flags_of(list: Term<'_>) -> u64 {
    if list.is_nil() {
        return 0;
    }
    list.list_iter()
        .flatten()
        .map(|flag| match flag {
            f if f == am::little => flag::LITTLE,
            f if f == am::signed => flag::SIGNED,
            f if f == am::native => flag::NATIVE,
            _ => 0,
        })
        .fold(0, |all, one| all | one)
}

const _: () = assert!(
    cfg!(target_endian = "little"),
    "native byte order is little-endian"
);

impl Slow<'_> {
    /// The bits that a size times `unit` is; `None` where no bitstring is that long.
    #[inline]
    fn field_size(&self, size: Src, unit: u64) -> Option<usize> {
        self.src(size).as_index()?.checked_mul(unit as usize)
    }

    /// As [`Slow::ensure_heap`], with the context that a source holds, live or not, kept.
    #[inline]
    fn ensure_heap_ctx(&mut self, context: Src, need: usize, live: usize) -> Result<Ctx, Flow> {
        if self.p.free_words() < need || self.p.has_many_binaries() {
            self.set_scratch(live, self.src(context).raw());
            self.ensure_heap(need, live + 1)?;
            return Ok(Ctx(self.p.x(live).raw().ptr()));
        }
        Ok(Ctx::of(self, context))
    }
}
