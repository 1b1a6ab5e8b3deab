//! Templates of arithmetic: of small integers, and behind the rest of the function's code, of floats.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};
use smallvec::SmallVec;

use super::{RAX, RCX, RDX, RSI, add, constant, low_sum, source, store};
use crate::code::op::{Op, read};
use crate::code::operand::{Instruction, Reg, Src};
use crate::heap::Heap;
use crate::jit::compile::Compiler;
use crate::jit::known::number_of;
use crate::jit::stubs::FLOAT_BESIDE;
use crate::term::CodeAddress;
use crate::term::tag::{self, size};

const SMALL: i32 = tag::SMALL as i32;

pub(super) fn add_rr(c: &mut Compiler<'_>, pc: CodeAddress, i: read::AddRR) {
    if c.result(i.dst()).is_some() {
        c.first_two(Src::of(i.left()), Src::of(i.right()));
        dynasm!(c.a; .arch x64; lea rax, [BYTE rax + rcx - SMALL as i8]);
        return result(c, i.dst(), RAX);
    }
    let other = floats(
        c,
        pc,
        Op::AddRR,
        i,
        (Floats::Sum, Src::of(i.left()), Src::of(i.right()), i.dst()),
    );
    c.first_two_small(Src::of(i.left()), Src::of(i.right()), other);
    dynasm!(c.a; .arch x64; sub rcx, BYTE SMALL as i8; add rax, rcx; jo =>other);
    result(c, i.dst(), RAX);
}

pub(super) fn add_rc(c: &mut Compiler<'_>, pc: CodeAddress, i: read::AddRC) {
    let number = i.right().0.wrapping_sub(tag::SMALL);
    if c.result(i.dst()).is_some() {
        return add_small(c, i.left(), i.dst(), number as i64);
    }
    let other = floats(
        c,
        pc,
        Op::AddRC,
        i,
        (Floats::Sum, Src::of(i.left()), Src(i.right().0), i.dst()),
    );
    c.first_small(RAX, Src::of(i.left()), other);
    add_constant(c, number, other);
    result(c, i.dst(), RAX);
}

/// Adds what stands above a tag to a small integer, whose sum is known to be one.
fn add_small(c: &mut Compiler<'_>, left: Reg, dst: Reg, number: i64) {
    match i32::try_from(number) {
        Ok(number) => {
            c.first(RAX, Src::of(left));
            add(c, RAX, number);
        }
        Err(_) => {
            c.first(RAX, Src::of(left));
            constant(c, RCX, number as u64);
            dynasm!(c.a; .arch x64; add rax, rcx);
        }
    }
    result(c, dst, RAX);
}

/// What is done with two floats.
#[derive(Clone, Copy)]
pub(super) enum Floats {
    Sum,
    Difference,
    Product,
}

/// A label from which the operation is done where one of the two numbers is a float, and the other one or a small
/// integer; the rest is the helper's.
pub(super) fn floats(
    c: &mut Compiler<'_>,
    pc: CodeAddress,
    op: Op,
    i: impl Instruction,
    (operation, left, right, dst): (Floats, Src, Src, Reg),
) -> DynamicLabel {
    let other = c.cold_helper(pc, op, i);
    if Heap::is_zealous() {
        return other;
    }
    c.seldom(i, move |c| {
        source(c, RAX, left);
        source(c, RCX, right);
        dynasm!(c.a; .arch x64; mov edx, eax; and edx, ecx; inc edx; test dl, 15; jz =>other);
        number(c, 0, RAX, other);
        number(c, 1, RCX, other);
        match operation {
            Floats::Sum => dynasm!(c.a; .arch x64; addsd xmm0, xmm1),
            Floats::Difference => dynasm!(c.a; .arch x64; subsd xmm0, xmm1),
            Floats::Product => dynasm!(c.a; .arch x64; mulsd xmm0, xmm1),
        }
        is_finite(c, other);
        c.call_stub(FLOAT_BESIDE);
        store(c, dst, RAX);
    })
}

/// The header of a float.
const FLOAT: u64 = tag::make_header(size::FLOAT - 1, tag::FLOAT);

/// The value of the float or the small integer in a machine register.
fn number(c: &mut Compiler<'_>, to: u8, from: u8, other: DynamicLabel) {
    let (is_small, done) = (c.new_label(), c.new_label());
    low_sum(c, RDX, from, 1);
    dynasm!(c.a; .arch x64; test dl, 15; jz =>is_small);
    float(c, to, from, other);
    dynasm!(c.a
        ; .arch x64
        ; jmp =>done
        ; =>is_small
        ; sar Rq(from), 4
        ; cvtsi2sd Rx(to), Rq(from)
        ; =>done
    );
}

/// The value of the float in a machine register; goes to `other` where it is none.
pub(super) fn float(c: &mut Compiler<'_>, to: u8, from: u8, other: DynamicLabel) {
    low_sum(c, RDX, from, -(tag::BOXED as i32));
    dynasm!(c.a
        ; .arch x64
        ; test dl, 3
        ; jnz =>other
        ; cmp QWORD [BYTE Rq(from) - tag::BOXED as i8], FLOAT as i32
        ; jne =>other
        ; movsd Rx(to), [Rq(from) + (8 - tag::BOXED as i32)]
    );
}

/// Goes to `other` where what is in `xmm0` is no number.
pub(super) fn is_finite(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; movapd xmm1, xmm0
        ; subsd xmm1, xmm0
        ; ucomisd xmm1, xmm1
        ; jp =>other
    );
}

/// Adds a constant without its tag to `rax`.
fn add_constant(c: &mut Compiler<'_>, word: u64, other: DynamicLabel) {
    match i32::try_from(word as i64) {
        Ok(word) => {
            add(c, RAX, word);
            dynasm!(c.a; .arch x64; jo =>other);
        }
        Err(_) => {
            constant(c, RCX, word);
            dynasm!(c.a; .arch x64; add rax, rcx; jo =>other);
        }
    }
}

pub(super) fn sub_rr(c: &mut Compiler<'_>, pc: CodeAddress, i: read::SubRR) {
    if c.result(i.dst()).is_some() {
        c.first_two(Src::of(i.left()), Src::of(i.right()));
        dynasm!(c.a; .arch x64; sub rax, rcx; add rax, BYTE SMALL as i8);
        return result(c, i.dst(), RAX);
    }
    let other = floats(
        c,
        pc,
        Op::SubRR,
        i,
        (
            Floats::Difference,
            Src::of(i.left()),
            Src::of(i.right()),
            i.dst(),
        ),
    );
    c.first_two_small(Src::of(i.left()), Src::of(i.right()), other);
    dynasm!(c.a; .arch x64; sub rcx, BYTE SMALL as i8; sub rax, rcx; jo =>other);
    result(c, i.dst(), RAX);
}

pub(super) fn sub_rc(c: &mut Compiler<'_>, pc: CodeAddress, i: read::SubRC) {
    let word = i.right().0.wrapping_sub(tag::SMALL);
    if c.result(i.dst()).is_some() {
        return add_small(c, i.left(), i.dst(), (word as i64).wrapping_neg());
    }
    let other = floats(
        c,
        pc,
        Op::SubRC,
        i,
        (
            Floats::Difference,
            Src::of(i.left()),
            Src(i.right().0),
            i.dst(),
        ),
    );
    c.first_small(RAX, Src::of(i.left()), other);
    match i32::try_from(word as i64) {
        // The least of them has no opposite.
        Ok(word) => match i8::try_from(word) {
            Ok(word) => dynasm!(c.a; .arch x64; sub rax, BYTE word; jo =>other),
            Err(_) => dynasm!(c.a; .arch x64; sub rax, word; jo =>other),
        },
        Err(_) => {
            constant(c, RCX, word);
            dynasm!(c.a; .arch x64; sub rax, rcx; jo =>other);
        }
    }
    result(c, i.dst(), RAX);
}

/// Sets a register to a small integer, with which the template ends.
fn result(c: &mut Compiler<'_>, dst: Reg, from: u8) {
    store(c, dst, from);
    c.hold_small(dst, from);
}

pub(super) fn mul(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Mul) {
    if c.result(i.dst()).is_some() {
        c.first_two(i.left(), i.right());
        dynasm!(c.a; .arch x64; xor rax, BYTE SMALL as i8; sar rcx, 4; imul rax, rcx; or rax, BYTE SMALL as i8);
        return result(c, i.dst(), RAX);
    }
    let other = floats(
        c,
        pc,
        Op::Mul,
        i,
        (Floats::Product, i.left(), i.right(), i.dst()),
    );
    c.first_two_small(i.left(), i.right(), other);
    product(c, other);
    dynasm!(c.a; .arch x64; or rax, BYTE SMALL as i8);
    result(c, i.dst(), RAX);
}

/// The product of the small integers in `rax` and `rcx`, without a tag: of a value shifted by the tag, and of one that
/// is not.
fn product(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; xor rax, BYTE SMALL as i8
        ; sar rcx, 4
        ; imul rax, rcx
        ; jo =>other
    );
}

/// `left * right + addend`
pub(super) fn mul_add(c: &mut Compiler<'_>, pc: CodeAddress, i: read::MulAdd) {
    if Heap::is_zealous() {
        return c.helper(pc, Op::MulAdd, i);
    }
    let other = c.cold_helper(pc, Op::MulAdd, i);
    let mut unknown: SmallVec<[u8; 3]> = SmallVec::new();
    for (at, src) in [(RSI, i.addend()), (RAX, i.left()), (RCX, i.right())] {
        source(c, at, src);
        if c.range(src).is_none() {
            unknown.push(at);
        }
    }
    for pair in unknown.chunks(2) {
        c.are_small(pair, other);
    }
    product(c, other);
    dynasm!(c.a; .arch x64; add rax, rsi; jo =>other);
    result(c, i.dst(), RAX);
}

/// `div` or `rem` by a positive integer: quotient and remainder in `rax` and `rdx`.
fn divide(c: &mut Compiler<'_>, left: Src, right: Src, other: DynamicLabel) {
    c.first_two_small(left, right, other);
    dynasm!(c.a; .arch x64; sar rcx, 4);
    if c.range(right).is_none_or(|range| range.least <= 0) {
        dynasm!(c.a; .arch x64; test rcx, rcx; jle =>other);
    }
    dynasm!(c.a; .arch x64; sar rax, 4; cqo; idiv rcx);
}

/// How far a division by this constant shifts: it is a power of 2, from 2 on.
fn shift_of(divisor: Src) -> Option<i8> {
    let number = number_of(divisor).filter(|number| (2..1 << 30).contains(number))?;
    (number & (number - 1) == 0).then_some(number.trailing_zeros() as i8)
}

/// The dividend in `rax`; in `rdx` the same, with what makes a shift round towards zero.
fn rounded(c: &mut Compiler<'_>, left: Src, shift: i8, other: DynamicLabel) {
    let is_rounded = !is_positive(c, left);
    c.first_small(RAX, left, other);
    dynasm!(c.a; .arch x64; sar rax, 4; mov rdx, rax);
    if is_rounded {
        dynasm!(c.a; .arch x64; sar rdx, 63; shr rdx, 64 - shift; add rdx, rax);
    }
}

/// Is the source known to be a small integer that is not negative?
fn is_positive(c: &Compiler<'_>, src: Src) -> bool {
    c.range(src).is_some_and(|range| range.least >= 0)
}

pub(super) fn int_div(c: &mut Compiler<'_>, pc: CodeAddress, i: read::IntDiv) {
    let other = c.cold_helper(pc, Op::IntDiv, i);
    match shift_of(i.right()) {
        Some(shift) => {
            rounded(c, i.left(), shift, other);
            dynasm!(c.a; .arch x64; sar rdx, shift; mov rax, rdx);
        }
        None => divide(c, i.left(), i.right(), other),
    }
    dynasm!(c.a; .arch x64; shl rax, 4; or rax, BYTE SMALL as i8);
    result(c, i.dst(), RAX);
}

pub(super) fn rem(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Rem) {
    let other = c.cold_helper(pc, Op::Rem, i);
    match shift_of(i.right()) {
        Some(shift) => {
            rounded(c, i.left(), shift, other);
            dynasm!(c.a; .arch x64; and rdx, -(1 << shift); sub rax, rdx; mov rdx, rax);
        }
        None => divide(c, i.left(), i.right(), other),
    }
    dynasm!(c.a; .arch x64; shl rdx, 4; or rdx, BYTE SMALL as i8);
    result(c, i.dst(), RDX);
}

pub(super) fn band(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Band) {
    let other = c.cold_helper(pc, Op::Band, i);
    match number_of(i.right()).and_then(|_| i32::try_from(i.right().0 as i64).ok()) {
        Some(mask) => {
            c.first_small(RAX, i.left(), other);
            dynasm!(c.a; .arch x64; and rax, mask);
        }
        None => {
            c.first_two_small(i.left(), i.right(), other);
            dynasm!(c.a; .arch x64; and rax, rcx);
        }
    }
    result(c, i.dst(), RAX);
}

pub(super) fn bor(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Bor) {
    let other = c.cold_helper(pc, Op::Bor, i);
    c.first_two_small(i.left(), i.right(), other);
    dynasm!(c.a; .arch x64; or rax, rcx);
    result(c, i.dst(), RAX);
}

pub(super) fn bxor(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Bxor) {
    let other = c.cold_helper(pc, Op::Bxor, i);
    c.first_two_small(i.left(), i.right(), other);
    dynasm!(c.a; .arch x64; xor rax, rcx; or rax, BYTE SMALL as i8);
    result(c, i.dst(), RAX);
}

/// Shifts by fewer than 60 bits, of which none is lost.
pub(super) fn bsl(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Bsl) {
    let other = c.cold_helper(pc, Op::Bsl, i);
    match number_of(i.right()).filter(|number| (0..60).contains(number)) {
        Some(by) => {
            let by = by as i8;
            if c.result(i.dst()).is_some() {
                c.first(RAX, i.left());
                dynasm!(c.a; .arch x64; sub rax, BYTE SMALL as i8; shl rax, by; or rax, BYTE SMALL as i8);
                return result(c, i.dst(), RAX);
            }
            c.first_small(RAX, i.left(), other);
            dynasm!(c.a
                ; .arch x64
                ; xor rax, BYTE SMALL as i8
                ; mov rdx, rax
                ; shl rdx, by
                ; mov rsi, rdx
                ; sar rsi, by
            );
        }
        None => {
            c.first_two_small(i.left(), i.right(), other);
            dynasm!(c.a
                ; .arch x64
                ; sar rcx, 4
                ; cmp rcx, 60
                ; jae =>other
                ; xor rax, BYTE SMALL as i8
                ; mov rdx, rax
                ; shl rdx, cl
                ; mov rsi, rdx
                ; sar rsi, cl
            );
        }
    }
    dynasm!(c.a; .arch x64; cmp rsi, rax; jne =>other; or rdx, BYTE SMALL as i8);
    result(c, i.dst(), RDX);
}

pub(super) fn bsr(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Bsr) {
    let other = c.cold_helper(pc, Op::Bsr, i);
    match number_of(i.right()).filter(|&number| number >= 0) {
        Some(by) => {
            c.first_small(RAX, i.left(), other);
            dynasm!(c.a; .arch x64; sar rax, by.min(63) as i8);
        }
        None => {
            c.first_two_small(i.left(), i.right(), other);
            dynasm!(c.a
                ; .arch x64
                ; sar rcx, 4
                ; js =>other
                ; mov edx, 63
                ; cmp rcx, rdx
                ; cmova rcx, rdx
                ; sar rax, cl
            );
        }
    }
    dynasm!(c.a; .arch x64; or rax, BYTE SMALL as i8);
    result(c, i.dst(), RAX);
}
