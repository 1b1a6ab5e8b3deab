//! Taking one field from a match context.
//!
//! Operands of the sized ones: fail, context, live, size, unit, flags, destination; of the UTF ones:
//! fail, context, live, flags, destination.

use super::{Ctx, SUB_BITSTRING_WORDS, flag, float16, integer_words};
use crate::heap::read_field;
use crate::interp::slow::{Flow, Slow};
use crate::term::tag::size;
use crate::term::{Term, am};

const FAIL: usize = 0;
const CTX: usize = 1;
const LIVE: usize = 2;
const SIZE: usize = 3;
const UNIT: usize = 4;
const FLAGS: usize = 5;
const DST: usize = 6;

fn no_match(s: &mut Slow<'_>) -> Flow {
    s.fail(FAIL, am::badmatch)
}

/// `bs_get_integer2`.
pub(crate) fn bs_get_integer2(s: &mut Slow<'_>) -> Flow {
    let Some(len) = s.field_size(SIZE, s.size(UNIT)) else {
        return no_match(s);
    };
    if Ctx::of(s, CTX).left() < len {
        return no_match(s);
    }
    let ctx = match s.ensure_heap_ctx(CTX, integer_words(len), LIVE) {
        Ok(ctx) => ctx,
        Err(end) => return end,
    };
    match ctx.take_integer(s.p, len, s.raw(FLAGS)) {
        Some(integer) => {
            s.set_dst(DST, integer);
            Flow::Next
        }
        None => no_match(s),
    }
}

/// `bs_get_float2`: 16, 32 or 64 bits; what is no finite number does not match.
pub(crate) fn bs_get_float2(s: &mut Slow<'_>) -> Flow {
    let len = match s.field_size(SIZE, s.size(UNIT)) {
        Some(len) if len <= Ctx::of(s, CTX).left() => len,
        _ => return no_match(s),
    };
    let ctx = match s.ensure_heap_ctx(CTX, size::FLOAT, LIVE) {
        Ok(ctx) => ctx,
        Err(end) => return end,
    };
    match read_float(ctx, len, s.raw(FLAGS)) {
        Some(value) => {
            ctx.set_start(ctx.start() + len);
            s.set_dst(DST, s.p.float(value));
            Flow::Next
        }
        None => no_match(s),
    }
}

fn read_float(ctx: Ctx, len: usize, flags: u64) -> Option<f64> {
    if !matches!(len, 0 | 16 | 32 | 64) {
        return None;
    }
    // SAFETY: T1: the caller has seen that the bits are there.
    let mut word = unsafe { read_field(ctx.base(), ctx.start(), len) };
    if flags & (flag::LITTLE | flag::NATIVE) != 0 {
        word = super::from_little(word, len);
    }
    let value = match len {
        0 => 0.0,
        16 => float16::to_f64(word as u16),
        32 => f64::from(f32::from_bits(word as u32)),
        _ => f64::from_bits(word),
    };
    value.is_finite().then_some(value)
}

/// `bs_get_binary2`.
pub(crate) fn bs_get_binary2(s: &mut Slow<'_>) -> Flow {
    let left = Ctx::of(s, CTX).left();
    let unit = s.size(UNIT);
    let len = if s.src(SIZE) == am::all {
        left.is_multiple_of(unit).then_some(left)
    } else {
        s.field_size(SIZE, unit).filter(|&len| len <= left)
    };
    let Some(len) = len else {
        return no_match(s);
    };
    let ctx = match s.ensure_heap_ctx(CTX, SUB_BITSTRING_WORDS, LIVE) {
        Ok(ctx) => ctx,
        Err(end) => return end,
    };
    s.set_dst(DST, ctx.take_bits(s.p, len));
    Flow::Next
}

/// `bs_skip_bits2`. Operands: fail, context, size, unit, flags.
pub(crate) fn bs_skip_bits2(s: &mut Slow<'_>) -> Flow {
    let ctx = Ctx::of(s, CTX);
    match s.field_size(2, s.size(3)) {
        Some(len) if len <= ctx.left() => {
            ctx.set_start(ctx.start() + len);
            Flow::Next
        }
        _ => no_match(s),
    }
}

/// A code point at the start of a context and its bits; `None` where there is none.
type Decode = fn(Ctx, u64) -> Option<(u32, usize)>;

fn get_utf(s: &mut Slow<'_>, decode: Decode) -> Flow {
    let ctx = Ctx::of(s, CTX);
    match decode(ctx, s.raw(3)) {
        Some((code_point, len)) => {
            ctx.set_start(ctx.start() + len);
            s.set_dst(4, Term::small(i64::from(code_point)));
            Flow::Next
        }
        None => no_match(s),
    }
}

fn skip_utf(s: &mut Slow<'_>, decode: Decode) -> Flow {
    let ctx = Ctx::of(s, CTX);
    match decode(ctx, s.raw(3)) {
        Some((_, len)) => {
            ctx.set_start(ctx.start() + len);
            Flow::Next
        }
        None => no_match(s),
    }
}

/// `bs_get_utf8`.
pub(crate) fn bs_get_utf8(s: &mut Slow<'_>) -> Flow {
    get_utf(s, utf8)
}
/// `bs_skip_utf8`.
pub(crate) fn bs_skip_utf8(s: &mut Slow<'_>) -> Flow {
    skip_utf(s, utf8)
}
/// `bs_get_utf16`.
pub(crate) fn bs_get_utf16(s: &mut Slow<'_>) -> Flow {
    get_utf(s, utf16)
}
/// `bs_skip_utf16`.
pub(crate) fn bs_skip_utf16(s: &mut Slow<'_>) -> Flow {
    skip_utf(s, utf16)
}
/// `bs_get_utf32`.
pub(crate) fn bs_get_utf32(s: &mut Slow<'_>) -> Flow {
    get_utf(s, utf32)
}
/// `bs_skip_utf32`.
pub(crate) fn bs_skip_utf32(s: &mut Slow<'_>) -> Flow {
    skip_utf(s, utf32)
}

/// The next `len` bits as a big-endian number, if they are there.
#[inline]
fn peek(ctx: Ctx, skip: usize, len: usize) -> Option<u32> {
    if ctx.left() < skip + len {
        return None;
    }
    // SAFETY: T1: the bits are there.
    Some(unsafe { read_field(ctx.base(), ctx.start() + skip, len) } as u32)
}

/// As `peek`, in the byte order that `flags` tell.
fn peek_ordered(ctx: Ctx, skip: usize, len: usize, flags: u64) -> Option<u32> {
    let value = peek(ctx, skip, len)?;
    if flags & (flag::LITTLE | flag::NATIVE) == 0 {
        return Some(value);
    }
    Some(super::from_little(u64::from(value), len) as u32)
}

/// A code point that is no surrogate.
fn valid(code_point: u32) -> Option<u32> {
    char::from_u32(code_point).map(u32::from)
}

fn utf8(ctx: Ctx, _flags: u64) -> Option<(u32, usize)> {
    let first = peek(ctx, 0, 8)?;
    let (mut code_point, trailing, least) = match first {
        0..0x80 => return Some((first, 8)),
        0xc2..0xe0 => (first & 0x1f, 1, 0x80),
        0xe0..0xf0 => (first & 0x0f, 2, 0x800),
        0xf0..0xf8 => (first & 0x07, 3, 0x10000),
        _ => return None,
    };
    for i in 1..=trailing {
        let byte = peek(ctx, i * 8, 8)?;
        if byte & 0xc0 != 0x80 {
            return None;
        }
        code_point = (code_point << 6) | (byte & 0x3f);
    }
    valid(code_point)
        .filter(|&c| c >= least)
        .map(|c| (c, 8 + trailing * 8))
}

fn utf16(ctx: Ctx, flags: u64) -> Option<(u32, usize)> {
    let first = peek_ordered(ctx, 0, 16, flags)?;
    match first {
        0xd800..0xdc00 => {
            let second = peek_ordered(ctx, 16, 16, flags)?;
            (0xdc00..0xe000)
                .contains(&second)
                .then(|| (((first & 0x3ff) << 10 | (second & 0x3ff)) + 0x10000, 32))
        }
        0xdc00..0xe000 => None,
        _ => Some((first, 16)),
    }
}

fn utf32(ctx: Ctx, flags: u64) -> Option<(u32, usize)> {
    valid(peek_ordered(ctx, 0, 32, flags)?).map(|c| (c, 32))
}
