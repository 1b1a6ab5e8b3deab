//! Templates that match bitstrings, but for `bs_match`.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::binaries::{self, ADDRESS, BASE, END, ORIG, START};
use super::{RAX, RCX, RDX, source, store};
use crate::code::op::{Op, read};
use crate::code::operand::{Reg, Src};
use crate::heap::{Heap, RESERVED_WORDS};
use crate::interp::bits::SUB_BITSTRING_WORDS;
use crate::jit::compile::Compiler;
use crate::jit::stubs::{LOOK_AT_BITS, TAKE_BITS};
use crate::term::tag::{self, size};
use crate::term::{CodeAddress, am, sub_bits};

/// The number of bits not taken yet, in `rcx`, of the context in `rdx`.
pub(super) fn left(c: &mut Compiler<'_>) {
    dynasm!(c.a; .arch x64; mov rcx, [BYTE rdx + END as i8]; sub rcx, [BYTE rdx + START as i8]);
}

/// A source that is a context already, or a bitstring whose bytes do not move.
pub(super) fn bs_start_match(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsStartMatch) {
    let other = c.cold_helper(pc, Op::BsStartMatch, i);
    let dst = i.dst();
    c.first(RDX, i.src());
    let new = new_context(c, i, other);
    binaries::is_sub_bits(c, new);
    dynasm!(c.a
        ; .arch x64
        ; mov eax, [BYTE rdx + BASE as i8]
        ; and eax, sub_bits::MASK as i32
        ; cmp eax, sub_bits::MUTABLE as i32
        ; jne =>new
    );
    if Src::of(dst) != i.src() {
        store(c, dst, RDX);
    }
    c.hold(dst, RDX);
}

/// A label from which the term in `rdx` gets a new context.
fn new_context(c: &mut Compiler<'_>, i: read::BsStartMatch, other: DynamicLabel) -> DynamicLabel {
    if Heap::is_zealous() {
        return other;
    }
    let (dst, bytes) = (i.dst(), 8 * (size::SUB_BITS + RESERVED_WORDS) as i32);
    let header = tag::make_header(size::SUB_BITS - 1, tag::SUB_BITS) as i32;
    c.seldom(i, move |c| {
        let (is_heap, write) = (c.new_label(), c.new_label());
        dynasm!(c.a
            ; .arch x64
            ; lea eax, [BYTE rdx - tag::BOXED as i8]
            ; test al, 3
            ; jnz =>other
            ; lea rax, [r15 + bytes]
            ; cmp rax, rsp
            ; ja =>other
            ; mov eax, [BYTE rdx - tag::BOXED as i8]
            ; and eax, tag::HEADER_MASK as i32
            ; cmp eax, tag::HEAP_BITS as i32
            ; je =>is_heap
            ; cmp eax, tag::SUB_BITS as i32
            ; jne =>other
            ; mov rsi, [BYTE rdx + BASE as i8]
            ; test sil, sub_bits::MASK as i8
            ; jnz =>other
            ; mov rcx, [BYTE rdx + START as i8]
            ; mov rdi, [BYTE rdx + END as i8]
            ; mov rdx, [BYTE rdx + ORIG as i8]
            ; jmp =>write
            ; =>is_heap
            ; lea rsi, [rdx + (BASE + 8)]
            ; xor ecx, ecx
            ; mov rdi, [BYTE rdx + BASE as i8]
            ; =>write
            ; or rsi, sub_bits::MUTABLE as i32
            ; mov QWORD [r15], header
            ; mov [r15 + 8], rsi
            ; mov [r15 + 16], rcx
            ; mov [r15 + 24], rdi
            ; mov [r15 + 32], rdx
            ; lea rax, [r15 + tag::BOXED as i32]
            ; add r15, 8 * size::SUB_BITS as i32
        );
        store(c, dst, RAX);
    })
}

/// A template has ended with the context in `rdx`, and set this register.
pub(super) fn hold_context(c: &mut Compiler<'_>, context: Src, written: Option<Reg>) {
    if let Some(reg) = context.reg().filter(|&reg| Some(reg) != written) {
        c.find(reg, RDX);
    }
}

pub(super) fn bs_get_position(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::BsGetPosition) {
    c.first(RDX, i.context());
    dynasm!(c.a; .arch x64; mov rax, [BYTE rdx + START as i8]; shl rax, 4; or rax, BYTE tag::SMALL as i8);
    store(c, i.dst(), RAX);
    hold_context(c, i.context(), Some(i.dst()));
}

pub(super) fn bs_set_position(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::BsSetPosition) {
    c.first_pair((RDX, i.context()), (RAX, i.position()));
    dynasm!(c.a; .arch x64; shr rax, 4; mov [BYTE rdx + START as i8], rax);
    hold_context(c, i.context(), None);
}

pub(super) fn bs_test_tail(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsTestTail) {
    let Some(bits) = small(i.bits()).filter(|_| !i.fail().is_null()) else {
        return c.helper(pc, Op::BsTestTail, i);
    };
    let fail = c.label(i.fail());
    c.first(RDX, i.context());
    left(c);
    dynasm!(c.a; .arch x64; cmp rcx, bits; jne =>fail);
    hold_context(c, i.context(), None);
}

pub(super) fn bs_test_unit(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsTestUnit) {
    let unit = small(i.unit()).filter(|unit| unit.count_ones() == 1);
    let Some(unit) = unit.filter(|_| !i.fail().is_null()) else {
        return c.helper(pc, Op::BsTestUnit, i);
    };
    let fail = c.label(i.fail());
    c.first(RDX, i.context());
    left(c);
    dynasm!(c.a; .arch x64; test rcx, unit - 1; jnz =>fail);
    hold_context(c, i.context(), None);
}

/// A number that an instruction of the machine takes.
pub(super) fn small(number: u64) -> Option<i32> {
    i32::try_from(number).ok()
}

/// A code point of up to three bytes.
pub(super) fn bs_get_utf8(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsGetUtf8) {
    let other = c.cold_helper(pc, Op::BsGetUtf8, i);
    let dst = i.dst();
    let long = c.seldom(i, move |c| {
        long_utf8(c, other);
        dynasm!(c.a; .arch x64; shl eax, 4; or eax, tag::SMALL as i32);
        store(c, dst, RAX);
    });
    ascii(c, i.context(), long, other);
    dynasm!(c.a; .arch x64; shl eax, 4; or eax, tag::SMALL as i32);
    store(c, dst, RAX);
}

/// A code point of up to three bytes, passed over.
pub(super) fn bs_skip_utf8(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsSkipUtf8) {
    let other = c.cold_helper(pc, Op::BsSkipUtf8, i);
    let long = c.seldom(i, move |c| long_utf8(c, other));
    ascii(c, i.context(), long, other);
}

/// Takes a byte below 128 into `eax`; goes to `long` with another one there, at `rsi`, `rdi` bits left.
fn ascii(c: &mut Compiler<'_>, context: Src, long: DynamicLabel, other: DynamicLabel) {
    c.first(RDX, context);
    dynasm!(c.a
        ; .arch x64
        ; mov rdi, [BYTE rdx + END as i8]
        ; sub rdi, [BYTE rdx + START as i8]
        ; cmp rdi, 8
        ; jl =>other
    );
    at_byte(c, other);
    dynasm!(c.a
        ; .arch x64
        ; movzx eax, BYTE [rsi]
        ; test al, al
        ; js =>long
        ; add QWORD [BYTE rdx + START as i8], 8
    );
}

/// Takes a code point of two or three bytes into `eax`, of which `eax` holds the first.
fn long_utf8(c: &mut Compiler<'_>, other: DynamicLabel) {
    let (three, done) = (c.new_label(), c.new_label());
    dynasm!(c.a
        ; .arch x64
        ; cmp eax, 0xe0
        ; jae =>three
        ; cmp eax, 0xc2
        ; jb =>other
        ; sub eax, 0xc0
        ; cmp rdi, 16
        ; jl =>other
    );
    next_of_utf8(c, 1, other);
    dynasm!(c.a; .arch x64; add QWORD [BYTE rdx + START as i8], 16; jmp =>done; =>three);
    dynasm!(c.a; .arch x64; sub eax, 0xe0; cmp eax, 0x10; jae =>other; cmp rdi, 24; jl =>other);
    next_of_utf8(c, 1, other);
    next_of_utf8(c, 2, other);
    // The shortest form of no surrogate.
    dynasm!(c.a
        ; .arch x64
        ; cmp eax, 0x800
        ; jb =>other
        ; lea ecx, [rax - 0xd800]
        ; cmp ecx, 0x800
        ; jb =>other
        ; add QWORD [BYTE rdx + START as i8], 24
        ; =>done
    );
}

/// Adds the bits of another byte to a code point.
fn next_of_utf8(c: &mut Compiler<'_>, at: i32, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; movzx ecx, BYTE [rsi + at]
        ; xor ecx, 0x80
        ; cmp ecx, 0x40
        ; jae =>other
        ; shl eax, 6
        ; or eax, ecx
    );
}

/// The address of the next byte in `rsi`; goes to `other` where the position is within one.
fn at_byte(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; mov rcx, [BYTE rdx + START as i8]
        ; test cl, 7
        ; jnz =>other
        ; shr rcx, 3
        ; mov rsi, [BYTE rdx + BASE as i8]
        ; and rsi, ADDRESS
        ; add rsi, rcx
    );
}

/// The bits that a size in a register takes, in `rcx`; goes to `fail` where the context in `rdx` has fewer.
fn sized(c: &mut Compiler<'_>, size: Src, unit: u64, fail: DynamicLabel, other: DynamicLabel) {
    let range = c.range(size);
    source(c, RCX, size);
    if range.is_none() {
        dynasm!(c.a; .arch x64; lea eax, [BYTE rcx + 1]; test al, tag::SMALL as i8; jnz =>other);
    }
    dynasm!(c.a; .arch x64; sar rcx, 4);
    if range.is_none_or(|range| range.least < 0) {
        dynasm!(c.a; .arch x64; js =>other);
    }
    match unit {
        1 => {}
        8 if range.is_some() => dynasm!(c.a; .arch x64; shl rcx, 3),
        _ => dynasm!(c.a; .arch x64; imul rcx, rcx, unit as i32; jo =>other),
    }
    dynasm!(c.a
        ; .arch x64
        ; mov rax, [BYTE rdx + END as i8]
        ; sub rax, [BYTE rdx + START as i8]
        ; cmp rcx, rax
        ; ja =>fail
    );
}

pub(super) fn bs_skip_bits(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsSkipBits) {
    if i.fail().is_null() || small(i.unit()).is_none() {
        return c.helper(pc, Op::BsSkipBits, i);
    }
    let fail = c.label(i.fail());
    let other = c.cold_helper(pc, Op::BsSkipBits, i);
    c.first(RDX, i.context());
    sized(c, i.size(), i.unit(), fail, other);
    dynasm!(c.a; .arch x64; add [BYTE rdx + START as i8], rcx);
    hold_context(c, i.context(), None);
}

pub(super) fn bs_get_binary(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsGetBinary) {
    let unit = small(i.unit()).filter(|_| !i.fail().is_null());
    let is_all = i.size().0 == am::all.raw().0;
    let Some(unit) = unit.filter(|unit| !is_all || unit.count_ones() == 1) else {
        return c.helper(pc, Op::BsGetBinary, i);
    };
    let fail = c.label(i.fail());
    let other = c.cold_helper(pc, Op::BsGetBinary, i);
    c.first(RDX, i.context());
    enough(c, SUB_BITSTRING_WORDS, other);
    match is_all {
        true => {
            left(c);
            dynasm!(c.a; .arch x64; test rcx, unit - 1; jnz =>fail);
        }
        false => sized(c, i.size(), i.unit(), fail, other),
    }
    c.call_stub(TAKE_BITS);
    store(c, i.dst(), RAX);
}

pub(super) fn bs_get_tail(c: &mut Compiler<'_>, pc: CodeAddress, i: read::BsGetTail) {
    let other = c.cold_helper(pc, Op::BsGetTail, i);
    c.first(RDX, i.context());
    enough(c, SUB_BITSTRING_WORDS, other);
    left(c);
    c.call_stub(LOOK_AT_BITS);
    store(c, i.dst(), RAX);
}

/// Goes to `other` where these words are not free without a collection.
pub(super) fn enough(c: &mut Compiler<'_>, words: usize, other: DynamicLabel) {
    match Heap::is_zealous() {
        true => dynasm!(c.a; .arch x64; jmp =>other),
        false => binaries::room(c, words, other),
    }
}
