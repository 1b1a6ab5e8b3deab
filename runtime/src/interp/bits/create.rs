//! `bs_create_bin`, which constructs bitstrings and appends to them in place.
//!
//! The operand `alloc` counts the words needed behind the bitstring. A segment has six words: type, number, unit,
//! flags, source, size. A `string` segment's source is the address of its bytes, and its size is their number.

use super::{flag, flags_of, float16};
use crate::code::op::read;
use crate::code::operand::Src;
use crate::heap::{Binary, copy_bits, fill_bits, heap_bits_words, write_field};
use crate::interp::slow::{Flow, Slow, atom};
use crate::num::limbs::{Endian, IntRef};
use crate::process::{Class, Process};
use crate::sys::memory;
use crate::term::tag::{self, size};
use crate::term::{Atom, Bits, RawTerm, Term, View, am, sub_bits};

const SEGMENT_WORDS: usize = 6;

/// The first words of segments.
pub(crate) mod kind {
    use crate::term::am;

    pub(crate) const APPEND: u64 = am::append.raw().0;
    pub(crate) const PRIVATE_APPEND: u64 = am::private_append.raw().0;
    pub(crate) const BINARY: u64 = am::binary.raw().0;
    pub(crate) const INTEGER: u64 = am::integer.raw().0;
    pub(crate) const FLOAT: u64 = am::float.raw().0;
    pub(crate) const STRING: u64 = am::string.raw().0;
    pub(crate) const UTF8: u64 = am::utf8.raw().0;
    pub(crate) const UTF16: u64 = am::utf16.raw().0;
    pub(crate) const UTF32: u64 = am::utf32.raw().0;
}

use kind::{APPEND, BINARY, FLOAT, INTEGER, PRIVATE_APPEND, STRING, UTF8, UTF16, UTF32};

/// Bits copied for one reduction. Source: `ERL_BITS_PER_REDUCTION`.
const BITS_PER_REDUCTION: usize = 8 * 1024;
/// Least room of a binary made to be appended to.
const MIN_APPEND_BYTES: usize = 256;
/// Room of a writable binary where the compiler knows no size.
const DEFAULT_WRITABLE_BYTES: usize = 1024;

/// Why a segment cannot be built.
#[derive(Debug)]
struct Bad {
    /// `badarg` or `system_limit`.
    reason: Atom,
    /// What is wrong, in the words of `erl_erts_errors`.
    what: Atom,
    /// What it is wrong of.
    value: RawTerm,
}

fn bad(what: Atom, value: Term<'_>) -> Bad {
    Bad {
        reason: am::badarg,
        what,
        value: value.raw(),
    }
}

fn too_large(what: Atom, value: Term<'_>) -> Bad {
    Bad {
        reason: am::system_limit,
        ..bad(what, value)
    }
}

/// One segment: its operands.
#[derive(Clone, Copy)]
pub(crate) struct Segment(&'static [u64]);

/// The segments of an instruction.
pub(crate) fn segments(i: read::BsCreateBin) -> impl Iterator<Item = Segment> {
    i.segments().0.chunks_exact(SEGMENT_WORDS).map(Segment)
}

impl Segment {
    /// One of [`kind`].
    pub(crate) fn kind(self) -> u64 {
        self.0[0]
    }
    fn number(self) -> i64 {
        self.0[1] as i64
    }
    /// Bits that its size counts.
    pub(crate) fn unit(self) -> usize {
        self.0[2] as usize
    }
    /// Its flags, which no register holds.
    pub(crate) fn flags(self) -> u64 {
        // SAFETY: T1: a constant operand is an immediate or a literal.
        flags_of(unsafe { Term::new(RawTerm(self.0[3])) })
    }
    /// What is put there.
    pub(crate) fn source(self) -> Src {
        Src(self.0[4])
    }
    fn src<'s>(self, s: &'s Slow<'_>) -> Term<'s> {
        s.src(self.source())
    }
    /// The bytes of a `string`.
    pub(crate) fn string(self) -> &'static [u8] {
        let len = Term::immed(RawTerm(self.0[5])).as_index();
        // SAFETY: I1: the loader has put the address of as many bytes there; code outlives what it runs (C2).
        unsafe { std::slice::from_raw_parts(self.0[4] as *const u8, len.expect("a length")) }
    }
    /// How many units it takes, or `all`.
    pub(crate) fn size_source(self) -> Src {
        Src(self.0[5])
    }
    fn size<'s>(self, s: &'s Slow<'_>) -> Term<'s> {
        s.src(self.size_source())
    }
    /// Is it one that a bitstring is appended to?
    fn is_append(self) -> bool {
        matches!(self.kind(), APPEND | PRIVATE_APPEND)
    }
    /// Takes all of its source.
    fn is_all(self, s: &Slow<'_>) -> bool {
        self.size(s) == am::all
    }
    /// The bits that size and unit tell.
    fn bits(self, s: &Slow<'_>) -> Result<usize, Bad> {
        let size = self.size(s);
        match size.view() {
            View::Small(n) => {
                let n = usize::try_from(n).map_err(|_| bad(am::size, size))?;
                n.checked_mul(self.unit())
                    .filter(|&bits| isize::try_from(bits).is_ok())
                    .ok_or_else(|| too_large(am::size, size))
            }
            View::Big(big) if !big.is_negative() => Err(too_large(am::size, size)),
            _ => Err(bad(am::size, size)),
        }
    }
    /// Bits it will take. Errors are found here, before anything is written, or only while it is written: as in ERTS's
    /// JIT, so that of several wrong segments the same one is reported.
    fn bit_len(self, s: &Slow<'_>) -> Result<usize, Bad> {
        match self.kind() {
            APPEND | PRIVATE_APPEND => Ok(0),
            BINARY if self.is_all(s) => {
                let src = self.src(s);
                let bits = src.as_bits().ok_or_else(|| bad(am::type_, src))?;
                Ok(bits.bit_len())
            }
            BINARY | INTEGER | FLOAT => self.bits(s),
            STRING => Ok(self.string().len() * 8),
            UTF8 => code_point(self.src(s)).map(|c| c.len_utf8() * 8),
            UTF16 => Ok(match self.src(s).as_small() {
                Some(0..0x10000) => 16,
                _ => 32,
            }),
            UTF32 => code_point(self.src(s)).map(|_| 32),
            other => unreachable!("the loader lets no segment {other:#x} pass"),
        }
    }
}

/// The Unicode scalar value that `term` is.
fn code_point(term: Term<'_>) -> Result<char, Bad> {
    term.as_small()
        .and_then(|n| u32::try_from(n).ok())
        .and_then(char::from_u32)
        .ok_or_else(|| bad(am::type_, term))
}

/// Where segments are written: bytes, and the next bit.
struct Output {
    base: *mut u8,
    at: usize,
}

impl Output {
    /// # Safety
    /// T1: the bits are readable, and the output has room for them, as `Segment::bit_len` told.
    unsafe fn put_bits(&mut self, src: *const u8, src_bit: usize, len: usize) {
        // SAFETY: by contract; the output is fresh or behind all that others may read.
        unsafe { copy_bits(src, src_bit, self.base, self.at, len) };
        self.at += len;
    }

    /// Writes the lowest `len` (up to 64) bits of `value`, in the byte order that `flags` tell.
    fn put_field(&mut self, value: u64, len: usize, flags: u64) {
        let little = flags & (flag::LITTLE | flag::NATIVE) != 0;
        // SAFETY: T1: the output has room for all segments' bits.
        unsafe {
            if !little || len <= 8 {
                write_field(self.base, self.at, len, value);
                self.at += len;
                return;
            }
            let mut bytes = value.to_le_bytes();
            if !len.is_multiple_of(8) {
                bytes[len / 8] <<= 8 - len % 8;
            }
            self.put_bits(bytes.as_ptr(), 0, len);
        }
    }

    fn put_integer(&mut self, term: Term<'_>, len: usize, flags: u64) -> Result<(), Bad> {
        let int = match term.view() {
            View::Small(n) if len <= 64 => {
                self.put_field(n as u64, len, flags);
                return Ok(());
            }
            View::Small(n) => {
                self.put_wide(n, len, flags);
                return Ok(());
            }
            View::Big(big) if len <= 64 => {
                let low = big.limbs()[0];
                let low = if big.is_negative() {
                    low.wrapping_neg()
                } else {
                    low
                };
                self.put_field(low, len, flags);
                return Ok(());
            }
            View::Big(big) => IntRef::new(big.is_negative(), big.limbs()),
            _ => return Err(bad(am::type_, term)),
        };
        let little = flags & (flag::LITTLE | flag::NATIVE) != 0;
        let endian = if little { Endian::Little } else { Endian::Big };
        let mut bytes = memory::zeroed_bytes(len.div_ceil(8));
        int.to_bits(&mut bytes, len, endian);
        // SAFETY: T1: `bytes` has the bits, the output the room.
        unsafe { self.put_bits(bytes.as_ptr(), 0, len) };
        Ok(())
    }

    /// Writes `value` to `len` bits, 64 or more: nearly all of them are its sign.
    fn put_wide(&mut self, value: i64, len: usize, flags: u64) {
        let little = flags & (flag::LITTLE | flag::NATIVE) != 0;
        if little {
            self.put_field(value.cast_unsigned(), 64, flags);
        }
        // SAFETY: T1: the output has room for all segments' bits.
        unsafe { fill_bits(self.base, self.at, len - 64, value < 0) };
        self.at += len - 64;
        if !little {
            self.put_field(value.cast_unsigned(), 64, flags);
        }
    }

    fn put_float(&mut self, term: Term<'_>, len: usize, flags: u64) -> Result<(), Bad> {
        if !matches!(len, 16 | 32 | 64) {
            let len = i64::try_from(len)
                .unwrap_or(tag::MAX_SMALL)
                .min(tag::MAX_SMALL);
            return Err(bad(am::invalid, Term::small(len)));
        }
        let value = match term.view() {
            View::Float(value) => value,
            View::Small(n) => n as f64,
            View::Big(big) => IntRef::new(big.is_negative(), big.limbs())
                .to_f64()
                .ok_or_else(|| bad(am::no_float, term))?,
            _ => return Err(bad(am::type_, term)),
        };
        let word = match len {
            16 => u64::from(float16::from_f64(value)),
            32 => u64::from((value as f32).to_bits()),
            _ => value.to_bits(),
        };
        self.put_field(word, len, flags);
        Ok(())
    }

    fn put_part(&mut self, p: &Process, term: Term<'_>, len: usize) -> Result<(), Bad> {
        let bits = term.as_bits().ok_or_else(|| bad(am::type_, term))?;
        if len > bits.bit_len() {
            return Err(bad(am::short, term));
        }
        self.put_all(p, bits, len);
        Ok(())
    }

    fn put_all(&mut self, p: &Process, bits: Bits<'_>, len: usize) {
        // SAFETY: T1: a bitstring's bits are readable; the output has the room.
        unsafe { self.put_bits(bits.base(), bits.bit_offset(), len) };
        p.bump_reds((len / BITS_PER_REDUCTION) as i64);
    }

    fn put_utf16(&mut self, c: char, flags: u64) {
        for &unit in &*c.encode_utf16(&mut [0; 2]) {
            self.put_field(u64::from(unit), 16, flags);
        }
    }

    fn put_utf8(&mut self, c: char) {
        let mut bytes = [0; 4];
        let len = c.encode_utf8(&mut bytes).len() * 8;
        // SAFETY: T1: the array has the bits, the output the room.
        unsafe { self.put_bits(bytes.as_ptr(), 0, len) };
    }

    /// Writes one segment.
    fn put(&mut self, s: &Slow<'_>, segment: Segment) -> Result<(), Bad> {
        let src = || segment.src(s);
        match segment.kind() {
            STRING => {
                let bytes = segment.string();
                // SAFETY: T1: the string has the bits, the output the room.
                unsafe { self.put_bits(bytes.as_ptr(), 0, bytes.len() * 8) };
            }
            BINARY if segment.is_all(s) => {
                let bits = src().as_bits().ok_or_else(|| bad(am::type_, src()))?;
                if !bits.bit_len().is_multiple_of(segment.unit()) {
                    return Err(bad(am::unit, src()));
                }
                self.put_all(s.p, bits, bits.bit_len());
            }
            BINARY => self.put_part(s.p, src(), segment.bits(s)?)?,
            INTEGER => self.put_integer(src(), segment.bits(s)?, segment.flags())?,
            FLOAT => self.put_float(src(), segment.bits(s)?, segment.flags())?,
            UTF8 => self.put_utf8(code_point(src())?),
            UTF16 => self.put_utf16(code_point(src())?, segment.flags()),
            UTF32 => {
                let c = u64::from(u32::from(code_point(src())?));
                self.put_field(c, 32, segment.flags());
            }
            other => unreachable!("the loader lets no segment {other:#x} pass"),
        }
        Ok(())
    }
}

/// `bs_create_bin`.
pub(crate) fn bs_create_bin(s: &mut Slow<'_>, i: read::BsCreateBin) -> Flow {
    let mut bit_len = 0usize;
    for segment in segments(i) {
        match segment.bit_len(s) {
            Ok(len) => bit_len = bit_len.saturating_add(len),
            Err(bad) => return fail(s, i, segment, &bad),
        }
    }
    let first = segments(i).next().filter(|segment| segment.is_append());
    let made = match first {
        Some(segment) if segment.kind() == APPEND => append(s, i, segment, bit_len),
        Some(segment) => private_append(s, i, segment, bit_len),
        None => fresh(s, i, bit_len),
    };
    let (term, mut output) = match (made, first) {
        (Ok(made), _) => made,
        (Err(Stop::Bad(bad)), Some(segment)) => return fail(s, i, segment, &bad),
        (Err(Stop::Bad(bad)), None) => unreachable!("no segment is wrong: {bad:?}"),
        (Err(Stop::Flow(flow)), _) => return flow,
    };
    for segment in segments(i).skip(usize::from(first.is_some())) {
        if let Err(bad) = output.put(s, segment) {
            return fail(s, i, segment, &bad);
        }
    }
    s.set_dst_raw(i.dst(), term);
    Flow::Next
}

/// How an instruction ends that has nothing to write to.
enum Stop {
    Bad(Bad),
    Flow(Flow),
}

impl From<Bad> for Stop {
    fn from(bad: Bad) -> Stop {
        Stop::Bad(bad)
    }
}

impl From<Flow> for Stop {
    fn from(flow: Flow) -> Stop {
        Stop::Flow(flow)
    }
}

/// The bitstring being made (at rest: nothing collects until it is in its register), and its output.
type Made = Result<(RawTerm, Output), Stop>;

/// A new bitstring.
fn fresh(s: &mut Slow<'_>, i: read::BsCreateBin, bit_len: usize) -> Made {
    let (alloc, live) = (i.alloc(), i.live());
    if bit_len > tag::ONHEAP_BINARY_LIMIT * 8 {
        s.ensure_heap(alloc + size::REFC_BITS, live)?;
        let binary = {
            let bytes = bit_len.div_ceil(8);
            Binary::from_vec(memory::zeroed_bytes(bytes), bytes)
        };
        // SAFETY: H4: made just now, counted once.
        let base = unsafe { binary.as_ref() }.data().cast_mut();
        // SAFETY: H4: made just now, of as many bytes as have the bits.
        let term = unsafe { s.p.off_heap_bits(binary, bit_len) }.raw();
        return Ok((term, Output { base, at: 0 }));
    }
    let words = heap_bits_words(bit_len);
    s.ensure_heap(alloc + words, live)?;
    let ptr = s.p.alloc(words);
    // SAFETY: H1: as many fresh words as are written.
    unsafe {
        std::ptr::write_bytes(ptr, 0, words);
        *ptr = tag::make_header(words - 1, tag::HEAP_BITS);
        *ptr.add(1) = bit_len as u64;
    }
    let base = ptr.wrapping_add(2).cast();
    Ok((RawTerm::boxed(ptr), Output { base, at: 0 }))
}

/// Room that a binary of `bytes` bytes that grows is given. Source: `GROW_PROC_BIN_SIZE`, a calculation with floats.
fn room(bytes: usize) -> usize {
    if bytes > 1 << 24 {
        (1.2 * bytes as f64) as usize
    } else {
        2 * bytes
    }
}

/// Is the thing the one through which its binary may be appended to?
fn is_writable(bits: Bits<'_>) -> bool {
    const WRITABLE: u64 = sub_bits::MUTABLE | sub_bits::VOLATILE;
    // SAFETY: T1: a `SUB_BITS`'s second word holds its flags.
    let flags = || unsafe { *bits.ptr().add(1) } & sub_bits::MASK;
    bits.binary()
        .is_some_and(|binary| flags() == WRITABLE && binary.is_writable())
}

/// Appends `add` bits' room to the segment's source: in place where that is writable, else to a copy
/// that is.
fn append(s: &mut Slow<'_>, i: read::BsCreateBin, segment: Segment, add: usize) -> Made {
    let (alloc, live) = (i.alloc(), i.live());
    let unit = segment.unit();
    let src = segment.src(s);
    let Some(bits) = src.as_bits() else {
        return Err(bad(am::type_, src).into());
    };
    let len = bits.bit_len();
    if unit > 1 && !len.is_multiple_of(unit) {
        return Err(bad(am::unit, src).into());
    }
    let Some(total) = len.checked_add(add) else {
        return Err(too_large(am::size, src).into());
    };
    let writable = is_writable(bits);
    let need = match (add, writable) {
        (0, true) => 0,
        (_, true) => size::SUB_BITS,
        (_, false) => size::REFC_BITS,
    };
    s.set_scratch(live, src.raw());
    s.ensure_heap(need + alloc, live + 1)?;
    let src = s.p.x(live);
    if add == 0 {
        let output = Output {
            base: std::ptr::null_mut(),
            at: 0,
        };
        return Ok((src.raw(), output));
    }
    let bits = src.as_bits().expect("looked at before the collection");
    if writable {
        Ok(append_in_place(s.p, bits, total))
    } else {
        Ok(append_to_copy(s.p, bits, total))
    }
}

/// Grows the binary of `bits`, which is writable, to `total` bits; a new thing becomes its writer.
fn append_in_place(p: &Process, bits: Bits<'_>, total: usize) -> (RawTerm, Output) {
    let binary = bits.binary().expect("a writable bitstring has a binary");
    let len = bits.bit_len();
    grow(p, binary, len, total);
    let base = binary.data().cast_mut();
    let ptr = p.alloc(size::SUB_BITS);
    // SAFETY: H1: five fresh words; T1: the old thing's words: it is no writer from now on.
    unsafe {
        let old = bits.ptr().cast_mut();
        *old.add(1) &= !sub_bits::MUTABLE;
        let flags = sub_bits::MUTABLE | sub_bits::VOLATILE;
        let orig = RawTerm(*old.add(4));
        crate::heap::write_sub_bits(ptr, base as u64 | flags, 0, total, orig);
    }
    (RawTerm::boxed(ptr), Output { base, at: len })
}

/// Gives `binary`, of which `len` bits are in use, room for `total`.
fn grow(p: &Process, binary: &Binary, len: usize, total: usize) {
    let bytes = total.div_ceil(8);
    let capacity = if binary.capacity() < bytes {
        p.bump_reds((len / BITS_PER_REDUCTION) as i64);
        room(bytes)
    } else {
        binary.capacity()
    };
    // SAFETY: H5: this process runs and owns the writable thing; addresses are taken again.
    unsafe { binary.grow(bytes, capacity) };
    p.note_binary_growth(len.div_ceil(8), bytes);
}

/// A writable copy of `bits` with room for `total` bits.
fn append_to_copy(p: &Process, bits: Bits<'_>, total: usize) -> (RawTerm, Output) {
    let len = bits.bit_len();
    let bytes = total.div_ceil(8);
    let (term, base) = writable(p, bytes, room(bytes).max(MIN_APPEND_BYTES), total);
    // SAFETY: T1: a bitstring's bits are readable; the new bytes hold `total`.
    unsafe { copy_bits(bits.base(), bits.bit_offset(), base, 0, len) };
    p.bump_reds((len / BITS_PER_REDUCTION) as i64);
    (term, Output { base, at: len })
}

/// A writable bitstring of `bit_len` bits, `bytes` bytes counted as used and `capacity` there. 8 words.
fn writable(p: &Process, bytes: usize, capacity: usize, bit_len: usize) -> (RawTerm, *mut u8) {
    let binary = Binary::from_vec(memory::zeroed_bytes(capacity), bytes);
    // SAFETY: H4: made just now, counted once.
    let base = unsafe {
        binary.as_ref().set_writable(true);
        binary.as_ref().data().cast_mut()
    };
    // SAFETY: H4: made just now, with room for the bits.
    let term = unsafe { p.off_heap_bits(binary, bit_len) }.raw();
    // SAFETY: T1: a `SUB_BITS`'s second word, which nobody has looked at yet.
    unsafe { *term.ptr().add(1) |= sub_bits::MUTABLE | sub_bits::VOLATILE };
    (term, base)
}

/// Appends `add` bits' room to the segment's source, of which the compiler knows that nobody else has
/// it: the thing itself grows.
fn private_append(s: &mut Slow<'_>, i: read::BsCreateBin, segment: Segment, add: usize) -> Made {
    s.ensure_heap(i.alloc(), i.live())?;
    let src = segment.src(s);
    let Some(bits) = src.as_bits() else {
        return Err(bad(am::type_, src).into());
    };
    let len = bits.bit_len();
    let Some(total) = len.checked_add(add) else {
        return Err(too_large(am::size, src).into());
    };
    if !is_writable(bits) {
        // Whoever traces has been given the bytes in the meantime.
        return Ok(append_to_copy(s.p, bits, total));
    }
    let binary = bits.binary().expect("a writable bitstring has a binary");
    grow(s.p, binary, len, total);
    // SAFETY: T1: a `SUB_BITS`'s end; the bytes are there now.
    unsafe { *bits.ptr().cast_mut().add(3) = total as u64 };
    let base = binary.data().cast_mut();
    Ok((src.raw(), Output { base, at: len }))
}

/// `bs_init_writable`: makes an empty writable binary in `x(0)`, with room for as many bytes as `x(0)`
/// tells.
pub(crate) fn bs_init_writable(s: &mut Slow<'_>, _: read::BsInitWritable) -> Flow {
    let bytes = s.p.x(0).as_index().unwrap_or(DEFAULT_WRITABLE_BYTES);
    if let Err(end) = s.ensure_heap(size::REFC_BITS, 0) {
        return end;
    }
    // Some bytes in any case, so that their address is one.
    let (term, _) = writable(s.p, bytes, bytes.max(8), 0);
    s.set_scratch(0, term);
    Flow::Next
}

/// Jumps, or raises with what `erl_erts_errors` needs to say which segment is wrong.
fn fail(s: &mut Slow<'_>, i: read::BsCreateBin, segment: Segment, bad: &Bad) -> Flow {
    if !i.fail().is_null() {
        return Flow::Jump(i.fail());
    }
    let kind = match segment.is_append() {
        true => am::binary,
        false => atom(RawTerm(segment.kind())).expect("a segment's type"),
    };
    let info = fail_info(s.p, segment.number(), kind, bad);
    s.p.store_exception(Class::Error, bad.reason);
    s.p.exception.from_bif = false;
    s.p.exception.info = info;
    Flow::Raise
}

/// `#{cause => {Segment, Type, What, Value}, ...}`: the `error_info` that `erlang:error/3` takes.
fn fail_info(p: &Process, segment: i64, kind: Atom, bad: &Bad) -> RawTerm {
    // SAFETY: T1: an operand's value; nothing has collected since it was read.
    let value = unsafe { Term::new(bad.value) };
    let cause = p.tuple(&[Term::small(segment), kind.term(), bad.what.term(), value]);
    let mut pairs = [
        (am::cause, cause),
        (am::function, am::format_bs_fail.term()),
        (am::module, am::erl_erts_errors.term()),
    ];
    pairs.sort_by_key(|(key, _)| key.index());
    let keys = p.tuple(&pairs.map(|(key, _)| key.term()));
    p.flat_map(keys, &pairs.map(|(_, value)| value)).raw()
}
