//! Making match contexts, positions in them, tests of what is left.

use super::{Ctx, SUB_BITSTRING_WORDS};
use crate::heap::{equal_bits, write_sub_bits};
use crate::interp::slow::{Flow, Slow};
use crate::process::Process;
use crate::term::tag::size;
use crate::term::{Bits, RawTerm, Term, am, sub_bits};

/// `bs_start_match`. Operands: fail (none: cannot fail), source, live, destination.
///
/// A context that the source holds already is used on.
pub(crate) fn bs_start_match(s: &mut Slow<'_>) -> Flow {
    let Some(bits) = s.src(1).as_bits() else {
        return s.fail(0, am::badarg);
    };
    if bits.is_match_context() {
        s.set_dst(3, s.src(1));
        return Flow::Next;
    }
    let live = s.size(2);
    if s.p.free_words() < size::SUB_BITS {
        // The source need not be among the live registers.
        let source = s.src(1).raw();
        s.set_scratch(live, source);
        if let Err(end) = s.ensure_heap(size::SUB_BITS, live + 1) {
            return end;
        }
        let context = new_context(s.p, s.p.x(live)).raw();
        s.set_dst_raw(3, context);
        return Flow::Next;
    }
    s.set_dst(3, new_context(s.p, s.src(1)));
    Flow::Next
}

/// A match context for all of `term`, a bitstring. 5 words.
fn new_context<'p>(p: &'p Process, term: Term<'p>) -> Term<'p> {
    let bits = term.as_bits().expect("a bitstring");
    let (base, start, len) = pin(bits);
    let orig = if bits.is_sub() {
        // SAFETY: T1: a `SUB_BITS`'s fifth word is what keeps its bytes.
        RawTerm(unsafe { *bits.ptr().add(4) })
    } else {
        term.raw()
    };
    let ptr = p.alloc(size::SUB_BITS);
    // SAFETY: H1: five fresh words; T1: `orig` keeps the bytes, which are pinned.
    unsafe {
        let word = base as u64;
        debug_assert_eq!(word & sub_bits::MASK, 0, "bytes are aligned to words");
        write_sub_bits(ptr, word | sub_bits::MUTABLE, start, start + len, orig);
        Term::new(RawTerm::boxed(ptr))
    }
}

/// Makes sure that the bytes of `bits` stay where they are: a writable binary is so no more.
/// Returns base, first bit and length.
pub(super) fn pin(bits: Bits<'_>) -> (*const u8, usize, usize) {
    if let Some(binary) = bits.binary() {
        let word = bits.ptr().wrapping_add(1).cast_mut();
        // SAFETY: T1: a `SUB_BITS`'s second word is its base with flags; only its owner runs here.
        unsafe {
            if *word & sub_bits::VOLATILE != 0 {
                binary.set_writable(false);
                *word = binary.data() as u64;
            }
        }
    }
    (bits.base(), bits.bit_offset(), bits.bit_len())
}

/// `bs_get_position`. Operands: context, destination, live.
pub(crate) fn bs_get_position(s: &mut Slow<'_>) -> Flow {
    let position = Ctx::of(s, 0).start() as i64;
    s.set_dst(1, Term::small(position));
    Flow::Next
}

/// `bs_set_position`. Operands: context, position.
pub(crate) fn bs_set_position(s: &mut Slow<'_>) -> Flow {
    let position = s.src(1).as_index().expect("a position");
    Ctx::of(s, 0).set_start(position);
    Flow::Next
}

/// `bs_get_tail`. Operands: context, destination, live. The context stays as it is.
pub(crate) fn bs_get_tail(s: &mut Slow<'_>) -> Flow {
    let ctx = match s.ensure_heap_ctx(0, SUB_BITSTRING_WORDS, 2) {
        Ok(ctx) => ctx,
        Err(end) => return end,
    };
    let start = ctx.start();
    s.set_dst(1, ctx.take_bits(s.p, ctx.left()));
    ctx.set_start(start);
    Flow::Next
}

/// `bs_test_tail2`. Operands: fail, context, bits.
pub(crate) fn bs_test_tail2(s: &mut Slow<'_>) -> Flow {
    if Ctx::of(s, 1).left() as u64 == s.raw(2) {
        Flow::Next
    } else {
        s.fail(0, am::badmatch)
    }
}

/// `bs_test_unit`. Operands: fail, context, unit.
pub(crate) fn bs_test_unit(s: &mut Slow<'_>) -> Flow {
    if Ctx::of(s, 1).left().is_multiple_of(s.size(2)) {
        Flow::Next
    } else {
        s.fail(0, am::badmatch)
    }
}

/// `bs_match_string`. Operands: fail, context, bits, address of the string's bytes.
pub(crate) fn bs_match_string(s: &mut Slow<'_>) -> Flow {
    let (ctx, bits) = (Ctx::of(s, 1), s.size(2));
    let same = |ctx: Ctx| {
        // SAFETY: I1: the loader put the address of as many bits there; T1 for the context's.
        unsafe { equal_bits(s.raw(3) as *const u8, 0, ctx.base(), ctx.start(), bits) }
    };
    if ctx.left() < bits || !same(ctx) {
        return s.fail(0, am::badmatch);
    }
    ctx.set_start(ctx.start() + bits);
    Flow::Next
}
