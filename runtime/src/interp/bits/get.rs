//! Takes one field from a match context.

use super::{Ctx, SUB_BITSTRING_WORDS, flag, float16, integer_words};
use crate::code::op::read;
use crate::code::operand::{Reg, Src};
use crate::heap::read_field;
use crate::interp::slow::{Flow, Slow};
use crate::term::tag::size;
use crate::term::{CodeAddress, Term, am};

/// `bs_get_integer2`.
pub(crate) fn bs_get_integer2(s: &mut Slow<'_>, i: read::BsGetInteger) -> Flow {
    let Some(len) = s.field_size(i.size(), i.unit()) else {
        return s.fail(i.fail(), am::badmatch);
    };
    if Ctx::of(s, i.context()).left() < len {
        return s.fail(i.fail(), am::badmatch);
    }
    let ctx = match s.ensure_heap_ctx(i.context(), integer_words(len), i.live()) {
        Ok(ctx) => ctx,
        Err(end) => return end,
    };
    match ctx.take_integer(s.p, len, i.flags()) {
        Some(integer) => {
            s.set_dst(i.dst(), integer);
            Flow::Next
        }
        None => s.fail(i.fail(), am::badmatch),
    }
}

/// `bs_get_float2`: 16, 32 or 64 bits; what is no finite number does not match.
pub(crate) fn bs_get_float2(s: &mut Slow<'_>, i: read::BsGetFloat) -> Flow {
    let len = match s.field_size(i.size(), i.unit()) {
        Some(len) if len <= Ctx::of(s, i.context()).left() => len,
        _ => return s.fail(i.fail(), am::badmatch),
    };
    let ctx = match s.ensure_heap_ctx(i.context(), size::FLOAT, i.live()) {
        Ok(ctx) => ctx,
        Err(end) => return end,
    };
    match read_float(ctx, len, i.flags()) {
        Some(value) => {
            ctx.set_start(ctx.start() + len);
            s.set_dst(i.dst(), s.p.float(value));
            Flow::Next
        }
        None => s.fail(i.fail(), am::badmatch),
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
pub(crate) fn bs_get_binary2(s: &mut Slow<'_>, i: read::BsGetBinary) -> Flow {
    let left = Ctx::of(s, i.context()).left();
    let len = if s.src(i.size()) == am::all {
        left.is_multiple_of(i.unit() as usize).then_some(left)
    } else {
        let len = s.field_size(i.size(), i.unit());
        len.filter(|&len| len <= left)
    };
    let Some(len) = len else {
        return s.fail(i.fail(), am::badmatch);
    };
    let ctx = match s.ensure_heap_ctx(i.context(), SUB_BITSTRING_WORDS, i.live()) {
        Ok(ctx) => ctx,
        Err(end) => return end,
    };
    s.set_dst(i.dst(), ctx.take_bits(s.p, len));
    Flow::Next
}

/// `bs_skip_bits2`.
pub(crate) fn bs_skip_bits2(s: &mut Slow<'_>, i: read::BsSkipBits) -> Flow {
    let ctx = Ctx::of(s, i.context());
    match s.field_size(i.size(), i.unit()) {
        Some(len) if len <= ctx.left() => {
            ctx.set_start(ctx.start() + len);
            Flow::Next
        }
        _ => s.fail(i.fail(), am::badmatch),
    }
}

/// A code point at the start of a context and its bits, for these flags; `None` where there is none.
type Decode = fn(Ctx, u64) -> Option<(u32, usize)>;

/// The common part of the instructions of the UTF types.
struct Utf {
    fail: CodeAddress,
    context: Src,
    flags: u64,
    /// None: the code point is passed over.
    dst: Option<Reg>,
}

impl Utf {
    fn take(self, s: &mut Slow<'_>, decode: Decode) -> Flow {
        let ctx = Ctx::of(s, self.context);
        let Some((code_point, len)) = decode(ctx, self.flags) else {
            return s.fail(self.fail, am::badmatch);
        };
        ctx.set_start(ctx.start() + len);
        if let Some(dst) = self.dst {
            s.set_dst(dst, Term::small(i64::from(code_point)));
        }
        Flow::Next
    }
}

macro_rules! utf {
    ($($(#[doc = $doc:literal])* $name:ident: $op:ident $($dst:ident)?, $decode:ident;)*) => { $(
        $(#[doc = $doc])*
        pub(crate) fn $name(s: &mut Slow<'_>, i: read::$op) -> Flow {
            let dst = [$(i.$dst())?].into_iter().next();
            let utf = Utf { fail: i.fail(), context: i.context(), flags: i.flags(), dst };
            utf.take(s, $decode)
        }
    )* };
}

utf! {
    /// `bs_get_utf8`.
    bs_get_utf8: BsGetUtf8 dst, utf8;
    /// `bs_skip_utf8`.
    bs_skip_utf8: BsSkipUtf8, utf8;
    /// `bs_get_utf16`.
    bs_get_utf16: BsGetUtf16 dst, utf16;
    /// `bs_skip_utf16`.
    bs_skip_utf16: BsSkipUtf16, utf16;
    /// `bs_get_utf32`.
    bs_get_utf32: BsGetUtf32 dst, utf32;
    /// `bs_skip_utf32`.
    bs_skip_utf32: BsSkipUtf32, utf32;
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
    let bytes = peek(ctx, 8, trailing * 8)?;
    for i in (0..trailing).rev() {
        let byte = bytes >> (8 * i);
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
