//! The stub that takes a bitstring from a match context.

use dynasmrt::{AssemblyOffset, DynasmApi, DynasmLabelApi, dynasm};

use super::stubs::{Assembler, emit_bits};
use super::templates::binaries::{BASE, START};
use crate::heap::heap_bits_words;
use crate::interp::helpers;
use crate::term::{sub_bits, tag};

/// Makes a bitstring of the next `rcx` bits of the context in `rdx`, for which there is room: it is in `rax` then. Few
/// whole bytes are copied here, and the rest by the runtime.
pub(super) fn emit_take(a: &mut Assembler) -> AssemblyOffset {
    const FLAGS: i32 = sub_bits::MUTABLE as i32;
    const MOST: i32 = 8 * tag::ONHEAP_BINARY_LIMIT as i32;
    let empty = tag::make_header(heap_bits_words(0) - 1, tag::HEAP_BITS) as i32;
    let head = 8 * heap_bits_words(0) as i32;
    let (words, rest, done) = (
        a.new_dynamic_label(),
        a.new_dynamic_label(),
        a.new_dynamic_label(),
    );
    let other = a.new_dynamic_label();
    let stub = a.offset();
    dynasm!(a
        ; .arch x64
        ; mov r8, [BYTE rdx + START as i8]
        ; mov eax, ecx
        ; or eax, r8d
        ; test al, 7
        ; jnz =>other
        ; cmp rcx, MOST
        ; ja =>other
        ; add [BYTE rdx + START as i8], rcx
        ; shr r8, 3
        ; add r8, [BYTE rdx + BASE as i8]
        ; lea rdi, [rcx + 63]
        ; shr rdi, 6
        ; mov r9, rdi
        ; shl r9, tag::ARITY_SHIFT as i8
        ; add r9, empty
        ; mov [r15], r9
        ; mov [r15 + 8], rcx
        ; lea rax, [r15 + tag::BOXED as i32]
        ; lea r10, [r15 + head]
        ; lea r15, [r15 + rdi * 8 + head]
        ; sub rcx, 64
        ; jb =>rest
        ; =>words
        ; mov rsi, [r8 - FLAGS]
        ; mov [r10], rsi
        ; add r8, 8
        ; add r10, 8
        ; sub rcx, 64
        ; jae =>words
        ; =>rest
        ; add rcx, 64
        ; jz =>done
        ; mov QWORD [r10], 0
    );
    for bytes in [4, 2, 1] {
        let next = a.new_dynamic_label();
        dynasm!(a; .arch x64; test cl, 8 * bytes; jz =>next);
        match bytes {
            4 => dynasm!(a; .arch x64; mov esi, [r8 - FLAGS]; mov [r10], esi),
            2 => dynasm!(a; .arch x64; movzx esi, WORD [r8 - FLAGS]; mov [r10], si),
            _ => dynasm!(a; .arch x64; movzx esi, BYTE [r8 - FLAGS]; mov [r10], sil),
        }
        dynasm!(a; .arch x64; add r8, bytes.into(); add r10, bytes.into(); =>next);
    }
    dynasm!(a; .arch x64; =>done; ret; =>other);
    emit_bits(a, helpers::take_bits as *const () as u64);
    stub
}
