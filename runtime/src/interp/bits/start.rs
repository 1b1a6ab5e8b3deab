//! Makes match contexts, handles positions in them, and tests what is left.

use super::{Ctx, SUB_BITSTRING_WORDS};
use crate::code::op::read;
use crate::heap::{equal_bits, write_sub_bits};
use crate::interp::slow::{Flow, Slow};
use crate::process::Process;
use crate::term::tag::size;
use crate::term::{Bits, RawTerm, Term, am, sub_bits};

/// `bs_start_match3`, `bs_start_match4`. A context that the source holds already is used on.
pub(crate) fn bs_start_match(s: &mut Slow<'_>, i: read::BsStartMatch) -> Flow {
    let Some(bits) = s.src(i.src()).as_bits() else {
        return s.fail(i.fail(), am::badarg);
    };
    if bits.is_match_context() {
        s.set_dst(i.dst(), s.src(i.src()));
        return Flow::Next;
    }
    let live = i.live();
    if s.p.free_words() < size::SUB_BITS {
        // The source need not be among the live registers.
        let source = s.src(i.src()).raw();
        s.set_scratch(live, source);
        if let Err(end) = s.ensure_heap(size::SUB_BITS, live + 1) {
            return end;
        }
        let context = new_context(s.p, s.p.x(live)).raw();
        s.set_dst_raw(i.dst(), context);
        return Flow::Next;
    }
    s.set_dst(i.dst(), new_context(s.p, s.src(i.src())));
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

/// `bs_get_position`.
pub(crate) fn bs_get_position(s: &mut Slow<'_>, i: read::BsGetPosition) -> Flow {
    let position = Ctx::of(s, i.context()).start() as i64;
    s.set_dst(i.dst(), Term::small(position));
    Flow::Next
}

/// `bs_set_position`.
pub(crate) fn bs_set_position(s: &mut Slow<'_>, i: read::BsSetPosition) -> Flow {
    let position = s.src(i.position()).as_index().expect("a position");
    Ctx::of(s, i.context()).set_start(position);
    Flow::Next
}

/// `bs_get_tail`. The context stays as it is.
pub(crate) fn bs_get_tail(s: &mut Slow<'_>, i: read::BsGetTail) -> Flow {
    let ctx = match s.ensure_heap_ctx(i.context(), SUB_BITSTRING_WORDS, i.live()) {
        Ok(ctx) => ctx,
        Err(end) => return end,
    };
    let start = ctx.start();
    s.set_dst(i.dst(), ctx.take_bits(s.p, ctx.left()));
    ctx.set_start(start);
    Flow::Next
}

/// `bs_test_tail2`.
pub(crate) fn bs_test_tail2(s: &mut Slow<'_>, i: read::BsTestTail) -> Flow {
    let holds = Ctx::of(s, i.context()).left() as u64 == i.bits();
    s.test(holds, i.fail(), am::badmatch)
}

/// `bs_test_unit`.
pub(crate) fn bs_test_unit(s: &mut Slow<'_>, i: read::BsTestUnit) -> Flow {
    let left = Ctx::of(s, i.context()).left() as u64;
    s.test(left.is_multiple_of(i.unit()), i.fail(), am::badmatch)
}

/// `bs_match_string`.
pub(crate) fn bs_match_string(s: &mut Slow<'_>, i: read::BsMatchString) -> Flow {
    let (ctx, bits) = (Ctx::of(s, i.context()), i.bits() as usize);
    let same = |ctx: Ctx| {
        // SAFETY: I1: the loader put the address of as many bits there; T1 for the context's.
        unsafe { equal_bits(i.string(), 0, ctx.base(), ctx.start(), bits) }
    };
    if ctx.left() < bits || !same(ctx) {
        return s.fail(i.fail(), am::badmatch);
    }
    ctx.set_start(ctx.start() + bits);
    Flow::Next
}
