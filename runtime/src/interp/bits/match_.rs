//! `bs_match`: several fields of fixed sizes at once.
//!
//! Operands: fail, context, count, then commands:
//! `ensure_at_least Size Unit`, `ensure_exactly Size`, `integer Live Flags Size Unit Dst`,
//! `binary Live Flags Size Unit Dst`, `get_tail Live Unit Dst`, `skip Size`, `=:= Live Size Value`.
//! Sizes are in bits times the unit; the commands that take bits follow one that made sure of them.

use super::{Ctx, SUB_BITSTRING_WORDS, extracted_words, flags_of, integer_words};
use crate::heap::read_field;
use crate::interp::slow::{Flow, Slow};
use crate::term::am;

const CTX: usize = 1;
const COUNT: usize = 2;
const LIST: usize = 3;

const ENSURE_AT_LEAST: u64 = am::ensure_at_least.raw().0;
const ENSURE_EXACTLY: u64 = am::ensure_exactly.raw().0;
const INTEGER: u64 = am::integer.raw().0;
const BINARY: u64 = am::binary.raw().0;
const GET_TAIL: u64 = am::get_tail.raw().0;
const SKIP: u64 = am::skip.raw().0;
const EQUALS: u64 = am::exactly_equal.raw().0;

/// Words of the command that starts at operand `at`, and the heap words it may need.
fn command(s: &Slow<'_>, at: usize) -> (usize, usize) {
    match s.raw(at) {
        ENSURE_AT_LEAST => (3, 0),
        INTEGER => (6, integer_words(s.size(at + 3) * s.size(at + 4))),
        BINARY => (6, extracted_words(s.size(at + 3) * s.size(at + 4))),
        GET_TAIL => (4, SUB_BITSTRING_WORDS),
        EQUALS => (4, 0),
        _ => (2, 0),
    }
}

/// Heap words that the commands from operand `at` on may need.
fn words_needed(s: &Slow<'_>, mut at: usize, end: usize) -> usize {
    let mut words = 0;
    while at < end {
        let (len, need) = command(s, at);
        words += need;
        at += len;
    }
    words
}

/// `bs_match`.
pub(crate) fn bs_match(s: &mut Slow<'_>) -> Flow {
    let end = LIST + s.size(COUNT);
    let mut ctx = Ctx::of(s, CTX);
    let mut reserved = false;
    let mut at = LIST;
    while at < end {
        let (len, need) = command(s, at);
        if need != 0 && !reserved {
            // All of it at once, as one instruction of ERTS's does.
            let need = words_needed(s, at, end);
            ctx = match s.ensure_heap_ctx(CTX, need, at + 1) {
                Ok(ctx) => ctx,
                Err(end) => return end,
            };
            reserved = true;
        }
        if !run(s, ctx, at) {
            return s.fail(0, am::badmatch);
        }
        at += len;
    }
    Flow::Next
}

/// Runs one command; false where it does not match.
#[inline]
fn run(s: &Slow<'_>, ctx: Ctx, at: usize) -> bool {
    match s.raw(at) {
        ENSURE_AT_LEAST => {
            let (size, unit) = (s.size(at + 1), s.size(at + 2));
            ctx.left() >= size && (unit == 1 || (ctx.left() - size).is_multiple_of(unit))
        }
        ENSURE_EXACTLY => ctx.left() == s.size(at + 1),
        INTEGER => {
            let len = s.size(at + 3) * s.size(at + 4);
            let flags = flags_of(s.src(at + 2));
            let integer = ctx.take_integer(s.p, len, flags);
            integer.map(|integer| s.set_dst(at + 5, integer)).is_some()
        }
        BINARY => {
            let len = s.size(at + 3) * s.size(at + 4);
            s.set_dst(at + 5, ctx.take_bits(s.p, len));
            true
        }
        GET_TAIL => {
            let start = ctx.start();
            s.set_dst(at + 3, ctx.take_bits(s.p, ctx.left()));
            ctx.set_start(start);
            true
        }
        EQUALS => {
            let (len, start) = (s.size(at + 2), ctx.start());
            ctx.set_start(start + len);
            // SAFETY: T1: a command before this one has made sure that the bits are there.
            s.raw(at + 3) == unsafe { read_field(ctx.base(), start, len) }
        }
        SKIP => {
            ctx.set_start(ctx.start() + s.size(at + 1));
            true
        }
        other => unreachable!("the loader lets no command {other:#x} pass"),
    }
}
