//! Templates of arithmetic, as far as it stays within small integers.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{RAX, RCX, RDX, constant, load, source, store};
use crate::code::op::{Op, read};
use crate::code::operand::Src;
use crate::jit::compile::Compiler;
use crate::term::{CodeAddress, tag};

const SMALL: i32 = tag::SMALL as i32;

/// Goes to `other` unless `rax` and `rcx` hold small integers.
fn are_small(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a; .arch x64; mov edx, eax; and edx, ecx; inc edx; test dl, 15; jnz =>other);
}

/// Goes to `other` unless `rax` holds one.
fn is_small(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a; .arch x64; lea edx, [rax + 1]; test dl, 15; jnz =>other);
}

pub(super) fn add_rr(c: &mut Compiler<'_>, pc: CodeAddress, i: read::AddRR) {
    let other = c.cold_helper(pc, Op::AddRR, i);
    load(c, RAX, i.left());
    load(c, RCX, i.right());
    are_small(c, other);
    dynasm!(c.a; .arch x64; sub rcx, SMALL; add rax, rcx; jo =>other);
    store(c, i.dst(), RAX);
}

pub(super) fn add_rc(c: &mut Compiler<'_>, pc: CodeAddress, i: read::AddRC) {
    let other = c.cold_helper(pc, Op::AddRC, i);
    load(c, RAX, i.left());
    is_small(c, other);
    add_constant(c, i.right().0.wrapping_sub(tag::SMALL), other);
    store(c, i.dst(), RAX);
}

/// Adds a constant without its tag to `rax`.
fn add_constant(c: &mut Compiler<'_>, word: u64, other: DynamicLabel) {
    match i32::try_from(word as i64) {
        Ok(word) => dynasm!(c.a; .arch x64; add rax, word; jo =>other),
        Err(_) => {
            constant(c, RCX, word);
            dynasm!(c.a; .arch x64; add rax, rcx; jo =>other);
        }
    }
}

pub(super) fn sub_rr(c: &mut Compiler<'_>, pc: CodeAddress, i: read::SubRR) {
    let other = c.cold_helper(pc, Op::SubRR, i);
    load(c, RAX, i.left());
    load(c, RCX, i.right());
    are_small(c, other);
    dynasm!(c.a; .arch x64; sub rcx, SMALL; sub rax, rcx; jo =>other);
    store(c, i.dst(), RAX);
}

pub(super) fn sub_rc(c: &mut Compiler<'_>, pc: CodeAddress, i: read::SubRC) {
    let other = c.cold_helper(pc, Op::SubRC, i);
    load(c, RAX, i.left());
    is_small(c, other);
    let word = i.right().0.wrapping_sub(tag::SMALL);
    match i32::try_from(word as i64) {
        Ok(word) => dynasm!(c.a; .arch x64; sub rax, word; jo =>other),
        Err(_) => {
            constant(c, RCX, word);
            dynasm!(c.a; .arch x64; sub rax, rcx; jo =>other);
        }
    }
    store(c, i.dst(), RAX);
}

/// Loads two sources that must be small integers.
fn two_small(c: &mut Compiler<'_>, left: Src, right: Src, other: DynamicLabel) {
    source(c, RAX, left);
    source(c, RCX, right);
    are_small(c, other);
}

pub(super) fn mul(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Mul) {
    let other = c.cold_helper(pc, Op::Mul, i);
    two_small(c, i.left(), i.right(), other);
    // The product of a value shifted by the tag, and of one that is not.
    dynasm!(c.a; .arch x64; xor rax, SMALL; sar rcx, 4; imul rax, rcx; jo =>other; or rax, SMALL);
    store(c, i.dst(), RAX);
}

/// `div` or `rem` by a positive integer: quotient and remainder in `rax` and `rdx`.
fn divide(c: &mut Compiler<'_>, left: Src, right: Src, other: DynamicLabel) {
    two_small(c, left, right, other);
    dynasm!(c.a
        ; .arch x64
        ; sar rcx, 4
        ; test rcx, rcx
        ; jle =>other
        ; sar rax, 4
        ; cqo
        ; idiv rcx
    );
}

pub(super) fn int_div(c: &mut Compiler<'_>, pc: CodeAddress, i: read::IntDiv) {
    let other = c.cold_helper(pc, Op::IntDiv, i);
    divide(c, i.left(), i.right(), other);
    dynasm!(c.a; .arch x64; shl rax, 4; or rax, SMALL);
    store(c, i.dst(), RAX);
}

pub(super) fn rem(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Rem) {
    let other = c.cold_helper(pc, Op::Rem, i);
    divide(c, i.left(), i.right(), other);
    dynasm!(c.a; .arch x64; shl rdx, 4; or rdx, SMALL);
    store(c, i.dst(), RDX);
}

pub(super) fn band(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Band) {
    let other = c.cold_helper(pc, Op::Band, i);
    two_small(c, i.left(), i.right(), other);
    dynasm!(c.a; .arch x64; and rax, rcx);
    store(c, i.dst(), RAX);
}

pub(super) fn bor(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Bor) {
    let other = c.cold_helper(pc, Op::Bor, i);
    two_small(c, i.left(), i.right(), other);
    dynasm!(c.a; .arch x64; or rax, rcx);
    store(c, i.dst(), RAX);
}

pub(super) fn bxor(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Bxor) {
    let other = c.cold_helper(pc, Op::Bxor, i);
    two_small(c, i.left(), i.right(), other);
    dynasm!(c.a; .arch x64; xor rax, rcx; or rax, SMALL);
    store(c, i.dst(), RAX);
}

/// Shifts by fewer than 60 bits, of which none is lost.
pub(super) fn bsl(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Bsl) {
    let other = c.cold_helper(pc, Op::Bsl, i);
    two_small(c, i.left(), i.right(), other);
    dynasm!(c.a
        ; .arch x64
        ; sar rcx, 4
        ; cmp rcx, 60
        ; jae =>other
        ; xor rax, SMALL
        ; mov rdx, rax
        ; shl rdx, cl
        ; mov rsi, rdx
        ; sar rsi, cl
        ; cmp rsi, rax
        ; jne =>other
        ; or rdx, SMALL
    );
    store(c, i.dst(), RDX);
}

pub(super) fn bsr(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Bsr) {
    let other = c.cold_helper(pc, Op::Bsr, i);
    two_small(c, i.left(), i.right(), other);
    dynasm!(c.a
        ; .arch x64
        ; sar rcx, 4
        ; js =>other
        ; mov edx, 63
        ; cmp rcx, rdx
        ; cmova rcx, rdx
        ; sar rax, cl
        ; or rax, SMALL
    );
    store(c, i.dst(), RAX);
}
