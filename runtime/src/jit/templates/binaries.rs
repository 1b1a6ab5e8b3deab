//! What templates of bitstrings share: the words of bitstrings, and the room that new ones need.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{RDX, load};
use crate::code::operand::Reg;
use crate::heap::RESERVED_WORDS;
use crate::jit::compile::Compiler;
use crate::process::offset::{OVERHEAD_LIMIT, OVERHEAD_WORDS};
use crate::term::{sub_bits, tag};

/// Offsets of a `SUB_BITS` thing's words from the term: where its bytes are counted from, its first bit, its end, and
/// the thing that has the bytes.
pub(in crate::jit) const BASE: i32 = 8 - tag::BOXED as i32;
pub(in crate::jit) const START: i32 = BASE + 8;
pub(super) const END: i32 = START + 8;
pub(super) const ORIG: i32 = END + 8;

/// The header of a `SUB_BITS` thing.
const HEADER: i32 = tag::make_header(tag::size::SUB_BITS - 1, tag::SUB_BITS) as i32;

/// Keeps an address of the second word, without its flags.
pub(super) const ADDRESS: i32 = !(sub_bits::MASK as i32);

/// Goes to `other` unless `rdx` is a `SUB_BITS` thing.
pub(super) fn is_sub_bits(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; lea eax, [BYTE rdx - tag::BOXED as i8]
        ; test al, 3
        ; jnz =>other
        ; cmp DWORD [BYTE rdx - tag::BOXED as i8], HEADER
        ; jne =>other
    );
}

/// The number of bits of the bitstring that `src` holds, in `rcx`; goes to `other` unless it is one of whole bytes that
/// begins with a byte and whose bytes do not move.
pub(super) fn whole_bytes(c: &mut Compiler<'_>, src: Reg, other: DynamicLabel) {
    let (is_heap, done) = (c.new_label(), c.new_label());
    load(c, RDX, src);
    dynasm!(c.a
        ; .arch x64
        ; lea eax, [BYTE rdx - tag::BOXED as i8]
        ; test al, 3
        ; jnz =>other
        ; mov eax, [BYTE rdx - tag::BOXED as i8]
        ; and eax, tag::HEADER_MASK as i32
        ; cmp eax, tag::HEAP_BITS as i32
        ; je =>is_heap
        ; cmp eax, tag::SUB_BITS as i32
        ; jne =>other
        ; test BYTE [BYTE rdx + BASE as i8], sub_bits::VOLATILE as i8
        ; jnz =>other
        ; mov rcx, [BYTE rdx + END as i8]
        ; mov rax, [BYTE rdx + START as i8]
        ; sub rcx, rax
        ; or eax, ecx
        ; test al, 7
        ; jnz =>other
        ; jmp =>done
        ; =>is_heap
        ; mov rcx, [BYTE rdx + BASE as i8]
        ; test cl, 7
        ; jnz =>other
        ; =>done
    );
}

/// The bytes of a bitstring that has been looked at: its first byte in `rsi`, its bits in `rcx`.
pub(super) fn bytes(c: &mut Compiler<'_>, src: Reg) {
    let (is_heap, done) = (c.new_label(), c.new_label());
    load(c, RDX, src);
    dynasm!(c.a
        ; .arch x64
        ; mov eax, [BYTE rdx - tag::BOXED as i8]
        ; and eax, tag::HEADER_MASK as i32
        ; cmp eax, tag::HEAP_BITS as i32
        ; je =>is_heap
        ; mov rcx, [BYTE rdx + END as i8]
        ; mov rax, [BYTE rdx + START as i8]
        ; sub rcx, rax
        ; shr rax, 3
        ; mov rsi, [BYTE rdx + BASE as i8]
        ; and rsi, ADDRESS
        ; add rsi, rax
        ; jmp =>done
        ; =>is_heap
        ; mov rcx, [BYTE rdx + BASE as i8]
        ; lea rsi, [rdx + (BASE + 8)]
        ; =>done
    );
}

/// Goes to `other` where a bitstring is not made before a collection: fewer words are free, or too many bytes lie off
/// the heap. Takes `r11`.
pub(super) fn room(c: &mut Compiler<'_>, words: usize, other: DynamicLabel) {
    let bytes = 8 * (words + RESERVED_WORDS) as i32;
    dynasm!(c.a; .arch x64; lea r11, [r15 + bytes]; cmp r11, rsp; ja =>other);
    few(c, other);
}

/// Goes to `other` where too many bytes lie off the heap. Takes `r11`.
pub(super) fn few(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; mov r11, [r13 + OVERHEAD_WORDS]
        ; cmp r11, [r13 + OVERHEAD_LIMIT]
        ; ja =>other
    );
}
