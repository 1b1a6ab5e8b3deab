//! Templates that read maps: flat ones, by keys that are immediates.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{RAX, RDX, constant, source, store};
use crate::code::op::{Op, read};
use crate::code::operand::Src;
use crate::jit::compile::Compiler;
use crate::term::tag::map::{FLAT, FLAT_WORDS, KIND_MASK};
use crate::term::{CodeAddress, RawTerm, tag};

/// Offsets of a flat map's words from the term.
const SIZE: i32 = 8 - tag::BOXED as i32;
const KEYS: i32 = SIZE + 8;
const VALUES: i32 = 8 * FLAT_WORDS as i32 - tag::BOXED as i32;
/// Offset of a tuple's first element from the term.
const ELEMENTS: i32 = 8 - tag::BOXED as i32;

/// Is a key compared as a word?
fn is_word(key: Src) -> bool {
    key.reg().is_none() && RawTerm(key.0).is_immed()
}

/// Loads the map into `rdx` and its keys into `rsi`; goes to `other` unless it is a flat map.
fn flat(c: &mut Compiler<'_>, map: Src, other: DynamicLabel) {
    source(c, RDX, map);
    dynasm!(c.a
        ; .arch x64
        ; lea eax, [rdx - tag::BOXED as i32]
        ; test al, 3
        ; jnz =>other
        ; mov eax, [rdx - tag::BOXED as i32]
        ; and eax, KIND_MASK as i32
        ; cmp eax, FLAT as i32
        ; jne =>other
        ; mov rsi, [rdx + KEYS]
    );
}

/// Goes to `fail` unless the map has this key; its number, from 1 on, is in `rcx` otherwise.
fn find(c: &mut Compiler<'_>, key: Src, fail: DynamicLabel) {
    let (next, found) = (c.new_label(), c.new_label());
    dynasm!(c.a; .arch x64; mov rcx, [rdx + SIZE]);
    constant(c, RAX, key.0);
    dynasm!(c.a
        ; .arch x64
        ; test rcx, rcx
        ; jz =>fail
        ; =>next
        ; cmp [rsi + rcx * 8 + (ELEMENTS - 8)], rax
        ; je =>found
        ; dec rcx
        ; jnz =>next
        ; jmp =>fail
        ; =>found
    );
}

pub(super) fn get_map_elements(c: &mut Compiler<'_>, pc: CodeAddress, i: read::GetMapElements) {
    if i.fail().is_null() || !i.pairs().iter().all(|(key, _)| is_word(key)) {
        return c.helper(pc, Op::GetMapElements, i);
    }
    let fail = c.label(i.fail());
    let other = c.cold_helper(pc, Op::GetMapElements, i);
    flat(c, i.map(), other);
    for (key, dst) in i.pairs().iter() {
        find(c, key, fail);
        dynasm!(c.a; .arch x64; mov rax, [rdx + rcx * 8 + (VALUES - 8)]);
        store(c, dst, RAX);
    }
}

pub(super) fn has_map_fields(c: &mut Compiler<'_>, pc: CodeAddress, i: read::HasMapFields) {
    if i.fail().is_null() || !i.keys().iter().all(is_word) {
        return c.helper(pc, Op::HasMapFields, i);
    }
    let fail = c.label(i.fail());
    let other = c.cold_helper(pc, Op::HasMapFields, i);
    flat(c, i.map(), other);
    for key in i.keys().iter() {
        find(c, key, fail);
    }
}
