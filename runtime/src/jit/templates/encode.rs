//! Instructions whose machine registers are known only when they are put, in as few bytes as they take.
//!
//! `dynasm!` has to write an operand in memory so that it is good for every base, in up to five bytes more. What it writes
//! for bases that stand in the source is short already.

use dynasmrt::DynasmApi;

use crate::jit::compile::Compiler;

/// How wide what an instruction reads or writes is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Bits32,
    Bits64,
}

/// Opcodes: of a machine register and an operand in memory, or of a number in the place of one.
pub(super) mod opcode {
    /// `mov [memory], register`
    pub(in crate::jit::templates) const STORE: u8 = 0x89;
    /// `mov register, [memory]`
    pub(in crate::jit::templates) const LOAD: u8 = 0x8b;
    /// `lea register, [memory]`
    pub(in crate::jit::templates) const LEA: u8 = 0x8d;
    /// `add`, `cmp` and others of a byte, by the register's number
    pub(super) const WITH_BYTE: u8 = 0x83;
    /// `movsd register, [memory]`
    pub(in crate::jit::templates) const LOAD_FLOAT: [u8; 2] = [0x0f, 0x10];
    /// `movsd [memory], register`
    pub(in crate::jit::templates) const STORE_FLOAT: [u8; 2] = [0x0f, 0x11];
    /// `mov [memory], number`, the register's number 0
    pub(super) const STORE_NUMBER: u8 = 0xc7;
}

/// Puts `opcode` of a machine register and what is `offset` bytes behind `base`.
pub(super) fn put(
    c: &mut Compiler<'_>,
    opcode: u8,
    width: Width,
    register: u8,
    base: u8,
    offset: i32,
) {
    put_head(c, &[opcode], width, register, base);
    put_operand(c, register, base, offset);
}

/// Puts `movsd` from or to what is `offset` bytes behind `base`.
pub(super) fn put_float(
    c: &mut Compiler<'_>,
    opcode: [u8; 2],
    register: u8,
    base: u8,
    offset: i32,
) {
    const SCALAR_DOUBLE: u8 = 0xf2;
    c.a.push(SCALAR_DOUBLE);
    put_head(c, &opcode, Width::Bits32, register, base);
    put_operand(c, register, base, offset);
}

/// Puts the operands of an opcode.
fn put_operand(c: &mut Compiler<'_>, register: u8, base: u8, offset: i32) {
    /// In the place of a base: the base stands in a byte of its own.
    const IN_SIB: u8 = 4;
    /// The low bits of bases that no operand without an offset has.
    const NEEDS_OFFSET: u8 = 5;
    let low = base & 7;
    let (mode, offset_bytes) = match offset {
        0 if low != NEEDS_OFFSET => (0, 0),
        _ if i8::try_from(offset).is_ok() => (1, 1),
        _ => (2, 4),
    };
    c.a.push(mode << 6 | (register & 7) << 3 | low);
    if low == IN_SIB {
        c.a.push(IN_SIB << 3 | low);
    }
    c.a.extend(&offset.to_le_bytes()[..offset_bytes]);
}

/// Puts `cmp` of a machine register with a number, which is extended by its sign.
pub(super) fn compare(c: &mut Compiler<'_>, register: u8, number: i8) {
    /// Of the opcode that `cmp` shares with others.
    const COMPARE: u8 = 7;
    const IS_REGISTER: u8 = 3;
    put_head(c, &[opcode::WITH_BYTE], Width::Bits64, 0, register);
    c.a.push(IS_REGISTER << 6 | COMPARE << 3 | (register & 7));
    c.a.push_i8(number);
}

/// Puts an opcode, and before it the prefix that it needs with these operands.
fn put_head(c: &mut Compiler<'_>, opcode: &[u8], width: Width, register: u8, base: u8) {
    const NONE: u8 = 0x40;
    let wide = u8::from(width == Width::Bits64);
    let prefix = NONE | wide << 3 | register >> 3 << 2 | base >> 3;
    if prefix != NONE {
        c.a.push(prefix);
    }
    c.a.extend(opcode);
}

/// Puts `mov` of a number, which is extended by its sign, to what is `offset` bytes behind `base`.
pub(super) fn put_number(c: &mut Compiler<'_>, base: u8, offset: i32, number: i32) {
    put(c, opcode::STORE_NUMBER, Width::Bits64, 0, base, offset);
    c.a.push_i32(number);
}
