//! Templates of instructions on float registers, which lie in the slice.
//!
//! Machine registers hold the first of them, too, from where they are set to where all machine registers may change.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::arith::is_finite;
use super::encode::{opcode, put_float};
use super::{R15, RAX, RBP, RCX, RDX, load_at, store};
use crate::code::op::{Op, read};
use crate::code::operand::Src;
use crate::interp::helpers::Slice;
use crate::jit::compile::Compiler;
use crate::jit::stubs::slot;
use crate::term::{CodeAddress, tag};

/// The machine registers below these are free between instructions.
const FIRST: u8 = 2;
/// Float registers that have a machine register.
const COUNT: usize = 16 - FIRST as usize;

/// A set of float registers that machine registers hold: a bit for each.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::jit) struct Floats(u16);

/// The machine register of a float register, where it has one.
fn home(register: usize) -> Option<u8> {
    (register < COUNT).then(|| FIRST + register as u8)
}

/// The machine register that holds this float register.
fn held(c: &Compiler<'_>, register: usize) -> Option<u8> {
    home(register).filter(|_| c.floats.0 & 1 << register != 0)
}

/// Has machine registers hold these float registers. Changes `rcx`.
pub(in crate::jit) fn load_all(c: &mut Compiler<'_>, floats: Floats) {
    if floats == Floats::default() {
        return;
    }
    slice(c, RCX);
    for register in (0..COUNT).filter(|register| floats.0 & 1 << register != 0) {
        load_float(c, FIRST + register as u8, register);
    }
}

/// Loads a float register from the slice, whose address is in `rcx`.
fn load_float(c: &mut Compiler<'_>, to: u8, register: usize) {
    put_float(c, opcode::LOAD_FLOAT, to, RCX, float(register));
}

/// Sets a float register to what is in a machine register; the slice's address is in `rcx`.
fn set(c: &mut Compiler<'_>, register: usize, from: u8) {
    put_float(c, opcode::STORE_FLOAT, from, RCX, float(register));
    let Some(home) = home(register) else { return };
    if home != from {
        dynasm!(c.a; .arch x64; movapd Rx(home), Rx(from));
    }
    c.floats.0 |= 1 << register;
}

/// Puts a float register's value in a machine register; the slice's address is in `rcx`.
fn get(c: &mut Compiler<'_>, to: u8, register: usize) {
    match held(c, register) {
        Some(from) => dynasm!(c.a; .arch x64; movapd Rx(to), Rx(from)),
        None => load_float(c, to, register),
    }
}

/// Offset of a boxed float's bits from the term.
const BITS: i32 = 8 - tag::BOXED as i32;

/// Offset of a float register in the slice.
fn float(register: usize) -> i32 {
    (Slice::FLOATS + 8 * register) as i32
}

/// Loads the slice's address.
fn slice(c: &mut Compiler<'_>, to: u8) {
    load_at(c, to, RBP, slot::SLICE);
}

pub(super) fn fmove_from(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::FmoveFrom) {
    c.first(RDX, Src::of(i.src()));
    slice(c, RCX);
    let to = home(i.dst()).unwrap_or(0);
    put_float(c, opcode::LOAD_FLOAT, to, RDX, BITS);
    set(c, i.dst(), to);
}

pub(super) fn fmove_to(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::FmoveTo) {
    c.first_of(&[]);
    let from = held(c, i.src()).unwrap_or_else(|| {
        slice(c, RCX);
        load_float(c, 0, i.src());
        0
    });
    let header = tag::make_header(1, tag::FLOAT) as i32;
    dynasm!(c.a; .arch x64; mov QWORD [r15], header);
    put_float(c, opcode::STORE_FLOAT, from, R15, 8);
    dynasm!(c.a; .arch x64; lea rax, [BYTE r15 + tag::BOXED as i8]; add r15, 16);
    store(c, i.dst(), RAX);
    c.hold(i.dst(), RAX);
}

/// Small integers and floats; big ones are the helper's.
pub(super) fn fconv(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Fconv) {
    let other = c.cold_helper(pc, Op::Fconv, i);
    let (is_small, done) = (c.new_label(), c.new_label());
    c.first(RDX, i.src());
    slice(c, RCX);
    let header = tag::make_header(1, tag::FLOAT) as i32;
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
        ; movsd xmm0, [rdx + BITS]
        ; jmp =>done
        ; =>is_small
        ; sar rdx, 4
        ; cvtsi2sd xmm0, rdx
        ; =>done
    );
    set(c, i.dst(), 0);
}

/// Sets a float register to what is in `xmm0`; the helper raises where it is no number.
fn finite(c: &mut Compiler<'_>, dst: usize, other: DynamicLabel) {
    is_finite(c, other);
    set(c, dst, 0);
}

/// Operations on two registers.
macro_rules! operations {
    ($($name:ident $op:ident $instruction:ident;)*) => { $(
        pub(super) fn $name(c: &mut Compiler<'_>, pc: CodeAddress, i: read::$op) {
            let other = c.cold_helper(pc, Op::$op, i);
            c.first_of(&[]);
            slice(c, RCX);
            get(c, 0, i.left());
            match held(c, i.right()) {
                Some(right) => dynasm!(c.a; .arch x64; $instruction xmm0, Rx(right)),
                None => dynasm!(c.a; .arch x64; $instruction xmm0, [rcx + float(i.right())]),
            }
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
    c.first_of(&[]);
    slice(c, RCX);
    load_at(c, RAX, RCX, float(i.src()));
    dynasm!(c.a; .arch x64; btc rax, 63; movq xmm0, rax);
    set(c, i.dst(), 0);
}
