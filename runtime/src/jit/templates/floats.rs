//! Templates of instructions on float registers, which lie in the slice.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::arith::is_finite;
use super::{RAX, RCX, RDX, load, load_at, source, store, store_at};
use crate::code::op::{Op, read};
use crate::interp::native::Slice;
use crate::jit::compile::Compiler;
use crate::jit::stubs::slot;
use crate::term::{CodeAddress, tag};

/// Offset of a boxed float's bits from the term.
const BITS: i32 = 8 - tag::BOXED as i32;

/// Offset of a float register in the slice.
fn float(register: usize) -> i32 {
    (Slice::FLOATS + 8 * register) as i32
}

/// Loads the slice's address.
fn slice(c: &mut Compiler<'_>, to: u8) {
    dynasm!(c.a; .arch x64; mov Rq(to), [rbp + slot::SLICE]);
}

pub(super) fn fmove_from(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::FmoveFrom) {
    load(c, RDX, i.src());
    load_at(c, RAX, RDX, BITS);
    slice(c, RCX);
    store_at(c, RCX, float(i.dst()), RAX);
}

pub(super) fn fmove_to(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::FmoveTo) {
    slice(c, RCX);
    load_at(c, RAX, RCX, float(i.src()));
    let header = tag::make_header(1, tag::FLOAT) as i32;
    dynasm!(c.a
        ; .arch x64
        ; mov QWORD [r15], header
        ; mov [r15 + 8], rax
        ; lea rax, [r15 + tag::BOXED as i32]
        ; add r15, 16
    );
    store(c, i.dst(), RAX);
}

/// Small integers and floats; big ones are the helper's.
pub(super) fn fconv(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Fconv) {
    let other = c.cold_helper(pc, Op::Fconv, i);
    let (is_small, done) = (c.new_label(), c.new_label());
    source(c, RDX, i.src());
    slice(c, RCX);
    let header = tag::make_header(1, tag::FLOAT) as i32;
    let dst = float(i.dst());
    dynasm!(c.a
        ; .arch x64
        ; lea eax, [BYTE rdx + 1]
        ; test al, 15
        ; jz =>is_small
        ; lea eax, [BYTE rdx - tag::BOXED as i8]
        ; test al, 3
        ; jnz =>other
        ; cmp QWORD [BYTE rdx - tag::BOXED as i8], header
        ; jne =>other
        ; mov rax, [rdx + BITS]
        ; mov [rcx + dst], rax
        ; jmp =>done
        ; =>is_small
        ; sar rdx, 4
        ; cvtsi2sd xmm0, rdx
        ; movsd [rcx + dst], xmm0
        ; =>done
    );
}

/// Stores what is in `xmm0`; the helper raises where it is no number.
fn finite(c: &mut Compiler<'_>, dst: usize, other: DynamicLabel) {
    is_finite(c, other);
    dynasm!(c.a; .arch x64; movsd [rcx + float(dst)], xmm0);
}

/// Operations on two registers.
macro_rules! operations {
    ($($name:ident $op:ident $instruction:ident;)*) => { $(
        pub(super) fn $name(c: &mut Compiler<'_>, pc: CodeAddress, i: read::$op) {
            let other = c.cold_helper(pc, Op::$op, i);
            slice(c, RCX);
            dynasm!(c.a
                ; .arch x64
                ; movsd xmm0, [rcx + float(i.left())]
                ; $instruction xmm0, [rcx + float(i.right())]
            );
            finite(c, i.dst(), other);
        }
    )* };
}

operations! {
    fadd Fadd addsd;
    fsub Fsub subsd;
    fmul Fmul mulsd;
    fdiv Fdiv divsd;
}

pub(super) fn fnegate(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::Fnegate) {
    slice(c, RCX);
    load_at(c, RAX, RCX, float(i.src()));
    dynasm!(c.a; .arch x64; btc rax, 63);
    store_at(c, RCX, float(i.dst()), RAX);
}
