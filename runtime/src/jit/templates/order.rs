//! Templates of comparisons: of small integers and of what is the same word.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{RAX, RCX, compare, constant, load, source};
use crate::code::op::{Op, read};
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
    let (fail, same) = (c.label(i.fail()), c.new_label());
    let other = c.cold_helper(pc, Op::IsEqExactRR, i);
    load(c, RAX, i.left());
    load(c, RCX, i.right());
    exact(c, same, fail, other);
    dynasm!(c.a; .arch x64; =>same);
}

pub(super) fn is_eq_exact_ss(c: &mut Compiler<'_>, pc: CodeAddress, i: read::IsEqExactSS) {
    let (fail, same) = (c.label(i.fail()), c.new_label());
    let other = c.cold_helper(pc, Op::IsEqExactSS, i);
    source(c, RAX, i.left());
    source(c, RCX, i.right());
    exact(c, same, fail, other);
    dynasm!(c.a; .arch x64; =>same);
}

pub(super) fn is_ne_exact_ss(c: &mut Compiler<'_>, pc: CodeAddress, i: read::IsNeExactSS) {
    let (fail, differ) = (c.label(i.fail()), c.new_label());
    let other = c.cold_helper(pc, Op::IsNeExactSS, i);
    source(c, RAX, i.left());
    source(c, RCX, i.right());
    exact(c, fail, differ, other);
    dynasm!(c.a; .arch x64; =>differ);
}

pub(super) fn is_eq_exact_rc(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsEqExactRC) {
    let fail = c.label(i.fail());
    load(c, RAX, i.left());
    compare(c, RAX, i.right().0);
    dynasm!(c.a; .arch x64; jne =>fail);
}

pub(super) fn is_ne_exact_rc(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsNeExactRC) {
    let fail = c.label(i.fail());
    load(c, RAX, i.left());
    compare(c, RAX, i.right().0);
    dynasm!(c.a; .arch x64; je =>fail);
}

/// Comparisons of two registers, of a register with a constant, and the other way round: which jump leads to the label.
macro_rules! comparisons {
    ($($rr:ident $RR:ident $rc:ident $RC:ident $cr:ident $CR:ident $fails:ident;)*) => { $(
        pub(super) fn $rr(c: &mut Compiler<'_>, pc: CodeAddress, i: read::$RR) {
            let fail = c.label(i.fail());
            let other = c.cold_helper(pc, Op::$RR, i);
            load(c, RAX, i.left());
            load(c, RCX, i.right());
            dynasm!(c.a
                ; .arch x64
                ; mov edx, eax
                ; and edx, ecx
                ; inc edx
                ; test dl, 15
                ; jnz =>other
                ; cmp rax, rcx
                ; $fails =>fail
            );
        }

        pub(super) fn $rc(c: &mut Compiler<'_>, pc: CodeAddress, i: read::$RC) {
            let fail = c.label(i.fail());
            let other = c.cold_helper(pc, Op::$RC, i);
            load(c, RAX, i.left());
            dynasm!(c.a; .arch x64; lea edx, [rax + 1]; test dl, 15; jnz =>other);
            compare(c, RAX, i.right().0);
            dynasm!(c.a; .arch x64; $fails =>fail);
        }

        pub(super) fn $cr(c: &mut Compiler<'_>, pc: CodeAddress, i: read::$CR) {
            let fail = c.label(i.fail());
            let other = c.cold_helper(pc, Op::$CR, i);
            load(c, RCX, i.right());
            dynasm!(c.a; .arch x64; lea edx, [rcx + 1]; test dl, 15; jnz =>other);
            constant(c, RAX, i.left().0);
            dynasm!(c.a; .arch x64; cmp rax, rcx; $fails =>fail);
        }
    )* };
}

comparisons! {
    is_lt_rr IsLtRR is_lt_rc IsLtRC is_lt_cr IsLtCR jge;
    is_ge_rr IsGeRR is_ge_rc IsGeRC is_ge_cr IsGeCR jl;
}

/// Comparisons of two sources: which jump leads to the label.
macro_rules! of_sources {
    ($($name:ident $op:ident $fails:ident;)*) => { $(
        pub(super) fn $name(c: &mut Compiler<'_>, pc: CodeAddress, i: read::$op) {
            let fail = c.label(i.fail());
            let other = c.cold_helper(pc, Op::$op, i);
            source(c, RAX, i.left());
            source(c, RCX, i.right());
            dynasm!(c.a
                ; .arch x64
                ; mov edx, eax
                ; and edx, ecx
                ; inc edx
                ; test dl, 15
                ; jnz =>other
                ; cmp rax, rcx
                ; $fails =>fail
            );
        }
    )* };
}

of_sources! {
    is_lt_ss IsLtSS jge;
    is_ge_ss IsGeSS jl;
    is_eq_ss IsEqSS jne;
    is_ne_ss IsNeSS je;
}
