//! Templates of comparisons: of small integers and of what is the same word; behind the rest, of floats.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::arith::float;
use super::{RAX, RCX, compare, source};
use crate::code::op::{Op, read};
use crate::code::operand::{Instruction, Src};
use crate::jit::compile::Compiler;
use crate::term::CodeAddress;

/// The words in `rax` and `rcx`: the same word is the same term, and of two words one of which is an immediate, it is the
/// only one.
fn exact(c: &mut Compiler<'_>, same: DynamicLabel, differ: DynamicLabel, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; cmp rax, rcx
        ; je =>same
        ; mov edx, eax
        ; and edx, 3
        ; cmp edx, 3
        ; je =>differ
        ; and ecx, 3
        ; cmp ecx, 3
        ; je =>differ
        ; jmp =>other
    );
}

pub(super) fn is_eq_exact_rr(c: &mut Compiler<'_>, pc: CodeAddress, i: read::IsEqExactRR) {
    let other = c.cold_helper(pc, Op::IsEqExactRR, i);
    are_same(c, Src::of(i.left()), Src::of(i.right()), (i.fail(), other));
}

/// Is one of the two terms equal to nothing but the same word?
fn is_word(c: &Compiler<'_>, left: Src, right: Src) -> bool {
    c.range(left).is_some() || c.range(right).is_some()
}

pub(super) fn is_eq_exact_ss(c: &mut Compiler<'_>, pc: CodeAddress, i: read::IsEqExactSS) {
    let other = c.cold_helper(pc, Op::IsEqExactSS, i);
    are_same(c, i.left(), i.right(), (i.fail(), other));
}

/// Goes to the first of two places unless two terms are the same, or to the second.
fn are_same(
    c: &mut Compiler<'_>,
    left: Src,
    right: Src,
    (fail, other): (CodeAddress, DynamicLabel),
) {
    let (is_word, same) = (is_word(c, left, right), c.new_label());
    c.first_two(left, right);
    find(c, left, RAX);
    let fail = c.way_to(fail);
    if is_word {
        dynasm!(c.a; .arch x64; cmp rax, rcx; jne =>fail);
        return;
    }
    exact(c, same, fail, other);
    dynasm!(c.a; .arch x64; =>same);
}

/// The value that a source had before the template, too, is in the machine register `at`.
fn find(c: &mut Compiler<'_>, src: Src, at: u8) {
    if let Some(reg) = src.reg() {
        c.find(reg, at);
    }
}

pub(super) fn is_ne_exact_ss(c: &mut Compiler<'_>, pc: CodeAddress, i: read::IsNeExactSS) {
    let differ = c.new_label();
    let other = c.cold_helper(pc, Op::IsNeExactSS, i);
    let is_word = is_word(c, i.left(), i.right());
    c.first_two(i.left(), i.right());
    find(c, i.left(), RAX);
    let fail = c.way_to(i.fail());
    if is_word {
        dynasm!(c.a; .arch x64; cmp rax, rcx; je =>fail);
        return;
    }
    exact(c, fail, differ, other);
    dynasm!(c.a; .arch x64; =>differ);
}

pub(super) fn is_eq_exact_rc(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsEqExactRC) {
    c.first(RAX, Src::of(i.left()));
    c.find(i.left(), RAX);
    let fail = c.way_to(i.fail());
    compare(c, RAX, i.right().0);
    dynasm!(c.a; .arch x64; jne =>fail);
}

pub(super) fn is_ne_exact_rc(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsNeExactRC) {
    c.first(RAX, Src::of(i.left()));
    c.find(i.left(), RAX);
    let fail = c.way_to(i.fail());
    compare(c, RAX, i.right().0);
    dynasm!(c.a; .arch x64; je =>fail);
}

/// Comparisons of two registers, of a register with a constant, and the other way round: which jump leads to the label.
macro_rules! comparisons {
    ($($rr:ident $RR:ident $rc:ident $RC:ident $cr:ident $CR:ident $fails:ident $turned:ident $when:ident;)*) => { $(
        pub(super) fn $rr(c: &mut Compiler<'_>, pc: CodeAddress, i: read::$RR) {
            let fail = c.label(i.fail());
            let operands = (Src::of(i.left()), Src::of(i.right()), Fails::$when, fail);
            let other = floats(c, pc, Op::$RR, i, operands);
            c.first_two_small(Src::of(i.left()), Src::of(i.right()), other);
            c.find_small(i.left(), RAX);
            c.find_small(i.right(), RCX);
            let fail = c.way_to(i.fail());
            dynasm!(c.a; .arch x64; cmp rax, rcx; $fails =>fail);
        }

        pub(super) fn $rc(c: &mut Compiler<'_>, pc: CodeAddress, i: read::$RC) {
            let fail = c.label(i.fail());
            let operands = (Src::of(i.left()), Src(i.right().0), Fails::$when, fail);
            let other = floats(c, pc, Op::$RC, i, operands);
            c.first_small(RAX, Src::of(i.left()), other);
            c.find_small(i.left(), RAX);
            let fail = c.way_to(i.fail());
            compare(c, RAX, i.right().0);
            dynasm!(c.a; .arch x64; $fails =>fail);
        }

        pub(super) fn $cr(c: &mut Compiler<'_>, pc: CodeAddress, i: read::$CR) {
            let fail = c.label(i.fail());
            let operands = (Src(i.left().0), Src::of(i.right()), Fails::$when, fail);
            let other = floats(c, pc, Op::$CR, i, operands);
            c.first_small(RAX, Src::of(i.right()), other);
            c.find_small(i.right(), RAX);
            let fail = c.way_to(i.fail());
            compare(c, RAX, i.left().0);
            dynasm!(c.a; .arch x64; $turned =>fail);
        }
    )* };
}

/// A label from which two floats are compared, and the rest by the helper.
fn floats(
    c: &mut Compiler<'_>,
    pc: CodeAddress,
    op: Op,
    i: impl Instruction,
    (left, right, fails, fail): (Src, Src, Fails, DynamicLabel),
) -> DynamicLabel {
    let other = c.cold_helper(pc, op, i);
    c.seldom(i, move |c| {
        source(c, RAX, left);
        source(c, RCX, right);
        float(c, 0, RAX, other);
        float(c, 1, RCX, other);
        dynasm!(c.a; .arch x64; ucomisd xmm0, xmm1);
        match fails {
            Fails::NotLess => dynasm!(c.a; .arch x64; jae =>fail),
            Fails::Less => dynasm!(c.a; .arch x64; jb =>fail),
            Fails::NotEqual => dynasm!(c.a; .arch x64; jne =>fail),
            Fails::Equal => dynasm!(c.a; .arch x64; je =>fail),
        }
    })
}

/// Where a comparison fails.
#[derive(Clone, Copy)]
enum Fails {
    NotLess,
    Less,
    NotEqual,
    Equal,
}

comparisons! {
    is_lt_rr IsLtRR is_lt_rc IsLtRC is_lt_cr IsLtCR jge jle NotLess;
    is_ge_rr IsGeRR is_ge_rc IsGeRC is_ge_cr IsGeCR jl jg Less;
}

/// Comparisons of two sources: which jump leads to the label.
macro_rules! of_sources {
    ($($name:ident $op:ident $fails:ident $when:ident;)*) => { $(
        pub(super) fn $name(c: &mut Compiler<'_>, pc: CodeAddress, i: read::$op) {
            let fail = c.label(i.fail());
            let operands = (i.left(), i.right(), Fails::$when, fail);
            let other = floats(c, pc, Op::$op, i, operands);
            c.first_two_small(i.left(), i.right(), other);
            dynasm!(c.a; .arch x64; cmp rax, rcx; $fails =>fail);
        }
    )* };
}

of_sources! {
    is_lt_ss IsLtSS jge NotLess;
    is_ge_ss IsGeSS jl Less;
    is_eq_ss IsEqSS jne NotEqual;
    is_ne_ss IsNeSS je Equal;
}
