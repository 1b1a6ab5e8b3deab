//! Templates that match bitstrings: whole bytes of a context whose position is at a byte.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{RAX, RDX, RSI, compare, constant, source, store};
use crate::code::op::{Op, read};
use crate::code::operand::{Commands, Reg, Src};
use crate::interp::bits::match_::command;
use crate::jit::compile::Compiler;
use crate::term::{CodeAddress, sub_bits, tag};

/// Offsets of a context's words from the term: where its bytes begin, its first bit that is not taken, and its end.
const BASE: i32 = 8 - tag::BOXED as i32;
const START: i32 = BASE + 8;
const END: i32 = START + 8;

/// Keeps an address of a context's second word, without its flags.
const ADDRESS: i32 = !(sub_bits::MASK as i32);

/// The number of bits not taken yet, in `rcx`, of the context in `rdx`.
fn left(c: &mut Compiler<'_>) {
    dynasm!(c.a; .arch x64; mov rcx, [rdx + END]; sub rcx, [rdx + START]);
}

/// A source that is a context already.
pub(super) fn bs_start_match(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsStartMatch) {
    let other = c.cold_helper(pc, Op::BsStartMatch, i);
    source(c, RDX, i.src());
    dynasm!(c.a
        ; .arch x64
        ; lea eax, [rdx - tag::BOXED as i32]
        ; test al, 3
        ; jnz =>other
        ; mov eax, [rdx - tag::BOXED as i32]
        ; and eax, tag::HEADER_MASK as i32
        ; cmp eax, tag::SUB_BITS as i32
        ; jne =>other
        ; mov eax, [rdx + BASE]
        ; and eax, sub_bits::MASK as i32
        ; cmp eax, sub_bits::MUTABLE as i32
        ; jne =>other
    );
    store(c, i.dst(), RDX);
}

pub(super) fn bs_get_position(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::BsGetPosition) {
    source(c, RDX, i.context());
    dynasm!(c.a; .arch x64; mov rax, [rdx + START]; shl rax, 4; or rax, tag::SMALL as i32);
    store(c, i.dst(), RAX);
}

pub(super) fn bs_set_position(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::BsSetPosition) {
    source(c, RDX, i.context());
    source(c, RAX, i.position());
    dynasm!(c.a; .arch x64; shr rax, 4; mov [rdx + START], rax);
}

pub(super) fn bs_test_tail(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsTestTail) {
    let Some(bits) = small(i.bits()).filter(|_| !i.fail().is_null()) else {
        return c.helper(pc, Op::BsTestTail, i);
    };
    let fail = c.label(i.fail());
    source(c, RDX, i.context());
    left(c);
    dynasm!(c.a; .arch x64; cmp rcx, bits; jne =>fail);
}

pub(super) fn bs_test_unit(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsTestUnit) {
    let unit = small(i.unit()).filter(|unit| unit.count_ones() == 1);
    let Some(unit) = unit.filter(|_| !i.fail().is_null()) else {
        return c.helper(pc, Op::BsTestUnit, i);
    };
    let fail = c.label(i.fail());
    source(c, RDX, i.context());
    left(c);
    dynasm!(c.a; .arch x64; test rcx, unit - 1; jnz =>fail);
}

/// A number that an instruction of the machine takes.
fn small(number: u64) -> Option<i32> {
    i32::try_from(number).ok()
}

/// A code point of one byte.
pub(super) fn bs_get_utf8(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsGetUtf8) {
    let other = c.cold_helper(pc, Op::BsGetUtf8, i);
    ascii(c, i.context(), other);
    dynasm!(c.a; .arch x64; shl eax, 4; or eax, tag::SMALL as i32);
    store(c, i.dst(), RAX);
}

/// The same, passed over.
pub(super) fn bs_skip_utf8(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsSkipUtf8) {
    let other = c.cold_helper(pc, Op::BsSkipUtf8, i);
    ascii(c, i.context(), other);
}

/// Takes a byte below 128 into `eax`.
fn ascii(c: &mut Compiler<'_>, context: Src, other: DynamicLabel) {
    source(c, RDX, context);
    left(c);
    dynasm!(c.a; .arch x64; cmp rcx, 8; jl =>other);
    at_byte(c, other);
    dynasm!(c.a
        ; .arch x64
        ; movzx eax, BYTE [rsi]
        ; test al, al
        ; js =>other
        ; add QWORD [rdx + START], 8
    );
}

/// The address of the next byte in `rsi`; goes to `other` where the position is within one.
fn at_byte(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; mov rcx, [rdx + START]
        ; test cl, 7
        ; jnz =>other
        ; shr rcx, 3
        ; mov rsi, [rdx + BASE]
        ; and rsi, ADDRESS
        ; add rsi, rcx
    );
}

/// What is done with some of the bits that are taken at once.
enum Taken {
    /// They are an unsigned integer.
    Integer(Reg),
    /// They must be this number.
    Equals(u64),
    Skipped,
}

/// Steps of `bs_match`.
enum Step {
    AtLeast {
        bits: i32,
        unit: i32,
    },
    Exactly(i32),
    /// So many bytes: the bits of each part of them.
    Bytes(usize, Vec<(u32, Taken)>),
}

/// The steps of these commands; `None` where one of them is the helper's.
fn steps(Commands(mut rest): Commands) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let (mut open, mut bits) = (Vec::new(), 0);
    while let [kind, ..] = *rest {
        let (words, part) = match kind {
            command::ENSURE_AT_LEAST | command::ENSURE_EXACTLY if bits != 0 => return None,
            command::ENSURE_AT_LEAST => {
                let (bits, unit) = (small(rest[1])?, small(rest[2])?);
                if unit.count_ones() != 1 {
                    return None;
                }
                steps.push(Step::AtLeast { bits, unit });
                (3, None)
            }
            command::ENSURE_EXACTLY => {
                steps.push(Step::Exactly(small(rest[1])?));
                (2, None)
            }
            command::INTEGER if rest[2] == tag::NIL => {
                let bits = rest[3].checked_mul(rest[4])?;
                // All that many bits are a small integer.
                if bits >= u64::from(tag::SMALL_BITS) {
                    return None;
                }
                (6, Some((bits, Taken::Integer(Reg(rest[5])))))
            }
            command::EQUALS => (4, Some((rest[2], Taken::Equals(rest[3])))),
            command::SKIP => (2, Some((rest[1], Taken::Skipped))),
            _ => return None,
        };
        rest = &rest[words..];
        let Some((more, taken)) = part else { continue };
        if bits + more > 64 || more == 0 {
            return None;
        }
        bits += more;
        open.push((more as u32, taken));
        if bits % 8 == 0 {
            steps.push(Step::Bytes(bits as usize / 8, std::mem::take(&mut open)));
            bits = 0;
        }
    }
    (bits == 0).then_some(steps)
}

/// Integers, constants and bits passed over, together whole bytes.
pub(super) fn bs_match(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsMatch) {
    let Some(steps) = steps(i.commands()).filter(|_| !i.fail().is_null()) else {
        return c.helper(pc, Op::BsMatch, i);
    };
    let fail = c.label(i.fail());
    let other = c.cold_helper(pc, Op::BsMatch, i);
    source(c, RDX, i.context());
    // The helper does all of it: so the position is looked at before anything is done.
    dynasm!(c.a; .arch x64; test BYTE [rdx + START], 7; jnz =>other);
    for step in steps {
        match step {
            Step::AtLeast { bits, unit } => {
                left(c);
                dynasm!(c.a; .arch x64; sub rcx, bits; jl =>fail);
                if unit > 1 {
                    dynasm!(c.a; .arch x64; test rcx, unit - 1; jnz =>fail);
                }
            }
            Step::Exactly(bits) => {
                left(c);
                dynasm!(c.a; .arch x64; cmp rcx, bits; jne =>fail);
            }
            Step::Bytes(bytes, parts) => take(c, bytes, &parts, fail),
        }
    }
}

/// Takes so many bytes, which are there.
fn take(c: &mut Compiler<'_>, bytes: usize, parts: &[(u32, Taken)], fail: DynamicLabel) {
    if parts
        .iter()
        .any(|(_, taken)| !matches!(taken, Taken::Skipped))
    {
        dynasm!(c.a
            ; .arch x64
            ; mov rcx, [rdx + START]
            ; shr rcx, 3
            ; mov rsi, [rdx + BASE]
            ; and rsi, ADDRESS
            ; add rsi, rcx
        );
        load_bytes(c, bytes);
    }
    dynasm!(c.a; .arch x64; add QWORD [rdx + START], 8 * bytes as i32);
    let mut behind = 8 * bytes as u32;
    for (bits, taken) in parts {
        behind -= bits;
        let mask = u64::MAX >> (64 - bits);
        match taken {
            Taken::Skipped => {}
            Taken::Equals(value) => {
                field(c, behind, mask);
                compare(c, RSI, *value);
                dynasm!(c.a; .arch x64; jne =>fail);
            }
            Taken::Integer(dst) => {
                field(c, behind, mask);
                dynasm!(c.a; .arch x64; shl rsi, 4; or rsi, tag::SMALL as i32);
                store(c, *dst, RSI);
            }
        }
    }
}

/// Loads up to 8 bytes at `rsi` into `rax`, the first ones as the highest.
fn load_bytes(c: &mut Compiler<'_>, bytes: usize) {
    let mut at = 0;
    while at < bytes {
        // The largest power of two that fits.
        let chunk = 1 << (bytes - at).ilog2();
        if at > 0 {
            dynasm!(c.a; .arch x64; shl rax, 8 * chunk);
        }
        let from = at as i32;
        match (chunk, at) {
            (8, _) => dynasm!(c.a; .arch x64; mov rax, [rsi + from]; bswap rax),
            (4, _) => dynasm!(c.a; .arch x64; mov eax, [rsi + from]; bswap eax),
            (2, 0) => dynasm!(c.a; .arch x64; movzx eax, WORD [rsi + from]; rol ax, 8),
            (2, _) => {
                dynasm!(c.a; .arch x64; movzx ecx, WORD [rsi + from]; rol cx, 8; or rax, rcx);
            }
            (_, 0) => dynasm!(c.a; .arch x64; movzx eax, BYTE [rsi + from]),
            _ => dynasm!(c.a; .arch x64; movzx ecx, BYTE [rsi + from]; or rax, rcx),
        }
        at += chunk as usize;
    }
}

/// Copies the bits of `rax` that have `behind` bits behind them, and are as many as the mask's, to `rsi`.
fn field(c: &mut Compiler<'_>, behind: u32, mask: u64) {
    dynasm!(c.a; .arch x64; mov rsi, rax);
    if behind > 0 {
        dynasm!(c.a; .arch x64; shr rsi, behind as i8);
    }
    match i32::try_from(mask) {
        Ok(mask) => dynasm!(c.a; .arch x64; and rsi, mask),
        Err(_) => {
            constant(c, super::RCX, mask);
            dynasm!(c.a; .arch x64; and rsi, rcx);
        }
    }
}
