//! Templates of flat maps whose keys are immediates, known or not: they are read, and get other values.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::binaries::{self, few};
use super::{R15, RAX, RDX, add, source, store, store_at, store_constant_at};
use crate::code::op::{Op, read};
use crate::code::operand::{KeyValues, Reg, Src};
use crate::code::record;
use crate::heap::{Heap, RESERVED_WORDS};
use crate::jit::compile::Compiler;
use crate::term::tag::map::{FLAT, FLAT_HEADER, FLAT_WORDS, KIND_MASK};
use crate::term::{CodeAddress, RawTerm, Term, tag};

/// Offsets of a flat map's words from the term.
pub(super) const SIZE: i32 = 8 - tag::BOXED as i32;
const KEYS: i32 = SIZE + 8;
pub(super) const VALUES: i32 = 8 * FLAT_WORDS as i32 - tag::BOXED as i32;
/// Offset of a tuple's first element from the term.
const ELEMENTS: i32 = 8 - tag::BOXED as i32;

/// Is it one key that may turn out to be compared as a word? What is found of several, the helper could not take back.
fn is_one(mut keys: impl ExactSizeIterator<Item = Src>) -> bool {
    keys.len() == 1 && keys.all(|key| key.reg().is_some())
}

/// Is a key compared as a word?
fn is_word(key: Src) -> bool {
    key.reg().is_none() && RawTerm(key.0).is_immed()
}

/// Loads the map into `rdx` and its keys into `r11`; goes to `other` unless it is a flat map.
fn flat(c: &mut Compiler<'_>, map: Src, other: DynamicLabel) {
    c.first(RDX, map);
    is_flat(c, other);
    dynasm!(c.a; .arch x64; mov r11, [rdx + KEYS]);
}

/// Goes to `other` unless the term in `rdx` is a flat map. Takes `rcx`.
pub(super) fn is_flat(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; lea ecx, [BYTE rdx - tag::BOXED as i8]
        ; test cl, 3
        ; jnz =>other
        ; mov ecx, [BYTE rdx - tag::BOXED as i8]
        ; and ecx, KIND_MASK as i32
        ; cmp ecx, FLAT as i32
        ; jne =>other
    );
}

/// Goes to `other` unless `rdx` holds a flat map, whose keys are in `r11` then, and `rax` an immediate.
pub(super) fn immediate_key(c: &mut Compiler<'_>, other: DynamicLabel) {
    is_flat(c, other);
    is_immediate(c, other);
    dynasm!(c.a; .arch x64; mov r11, [rdx + KEYS]);
}

/// Goes to `fail` unless the map has this key, and to `other` where it is no immediate; its number, from 1 on, is in
/// `rcx` otherwise.
fn find(c: &mut Compiler<'_>, key: Src, fail: DynamicLabel, other: DynamicLabel) {
    source(c, RAX, key);
    if key.reg().is_some() {
        is_immediate(c, other);
    }
    find_key(c, fail);
}

/// Goes to `other` unless `rax` holds an immediate. Takes `rcx`.
fn is_immediate(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; mov ecx, eax
        ; not ecx
        ; test cl, 3
        ; jnz =>other
    );
}

/// Goes to `fail` unless the map has the immediate key in `rax`; its number, from 1 on, is in `rcx` otherwise.
pub(super) fn find_key(c: &mut Compiler<'_>, fail: DynamicLabel) {
    let next = c.new_label();
    dynasm!(c.a
        ; .arch x64
        ; mov rcx, [BYTE rdx + SIZE as i8]
        ; inc rcx
        ; =>next
        ; dec rcx
        ; jz =>fail
        ; cmp [BYTE r11 + rcx * 8 + (ELEMENTS - 8) as i8], rax
        ; jne BYTE =>next
    );
}

pub(super) fn get_map_elements(c: &mut Compiler<'_>, pc: CodeAddress, i: read::GetMapElements) {
    let keys = || i.pairs().iter().map(|(key, _)| key);
    if i.fail().is_null() || !(keys().all(is_word) || is_one(keys())) {
        return c.helper(pc, Op::GetMapElements, i);
    }
    let fail = c.label(i.fail());
    let other = c.cold_helper(pc, Op::GetMapElements, i);
    flat(c, i.map(), other);
    for (key, dst) in i.pairs().iter() {
        find(c, key, fail, other);
        dynasm!(c.a; .arch x64; mov rax, [rdx + rcx * 8 + (VALUES - 8)]);
        store(c, dst, RAX);
    }
}

pub(super) fn has_map_fields(c: &mut Compiler<'_>, pc: CodeAddress, i: read::HasMapFields) {
    let keys = || i.keys().iter();
    if i.fail().is_null() || !(keys().all(is_word) || is_one(keys())) {
        return c.helper(pc, Op::HasMapFields, i);
    }
    let fail = c.label(i.fail());
    let other = c.cold_helper(pc, Op::HasMapFields, i);
    flat(c, i.map(), other);
    for key in keys() {
        find(c, key, fail, other);
    }
}

/// Machine registers for the keys' numbers.
const PLACES: [u8; 4] = [8, 9, 10, 7];

/// The keys are so few constants that are compared as words, each another one; or there is one.
fn are_told_apart(pairs: KeyValues) -> bool {
    let keys = || pairs.iter().map(|(key, _)| key);
    if is_one(keys()) {
        return true;
    }
    let is_first = |(n, key): (usize, Src)| !keys().take(n).any(|other| other == key);
    pairs.len() <= PLACES.len() && keys().all(is_word) && keys().enumerate().all(is_first)
}

pub(super) fn put_map_exact(c: &mut Compiler<'_>, pc: CodeAddress, i: read::PutMapExact) {
    if Heap::is_zealous() || !are_told_apart(i.pairs()) {
        return c.helper(pc, Op::PutMapExact, i);
    }
    let other = c.cold_helper(pc, Op::PutMapExact, i);
    source(c, RDX, i.map());
    is_flat(c, other);
    dynasm!(c.a; .arch x64; mov rcx, [rdx + SIZE]; lea rax, [r15 + rcx * 8]);
    room(c, FLAT_WORDS, other);
    replace(c, i.pairs(), i.dst(), other);
}

/// Keys that the map has; new ones are the helper's.
pub(super) fn put_map_assoc(c: &mut Compiler<'_>, pc: CodeAddress, i: read::PutMapAssoc) {
    if let Some(keys) = keys_of_new(i.map()).filter(|_| !Heap::is_zealous()) {
        return new_map(c, pc, i, keys);
    }
    if Heap::is_zealous() || !are_told_apart(i.pairs()) {
        return c.helper(pc, Op::PutMapAssoc, i);
    }
    let other = c.cold_helper(pc, Op::PutMapAssoc, i);
    source(c, RDX, i.map());
    is_flat(c, other);
    // The helper makes sure of as many words before it looks at the keys.
    dynasm!(c.a; .arch x64; mov rcx, [rdx + SIZE]; shl rcx, 4; lea rax, [r15 + rcx]);
    room(c, 2 * i.pairs().len() + 1 + FLAT_WORDS, other);
    replace(c, i.pairs(), i.dst(), other);
}

/// The tuple of keys, if the source is the literal that the loader makes for a new map.
fn keys_of_new(map: Src) -> Option<RawTerm> {
    if map.reg().is_some() {
        return None;
    }
    // SAFETY: T1, J1: a literal of the module, which lives as long as the code.
    let map = unsafe { Term::new(RawTerm(map.0)) }.as_map()?;
    let (keys, values) = map.flat()?;
    let is_new = !values.is_empty() && values.iter().all(|value| value.raw() == record::NO_DEFAULT);
    is_new.then(|| keys.term().raw())
}

/// A map of these keys: its values are in their order.
fn new_map(c: &mut Compiler<'_>, pc: CodeAddress, i: read::PutMapAssoc, keys: RawTerm) {
    let other = c.cold_helper(pc, Op::PutMapAssoc, i);
    let count = i.pairs().len();
    // The helper makes sure of as many words.
    binaries::room(c, 4 * count + 1 + FLAT_WORDS, other);
    let head = [FLAT_HEADER, count as u64, keys.0];
    for (at, word) in head.into_iter().enumerate() {
        store_constant_at(c, R15, 8 * at as i32, word);
    }
    for (at, (_, value)) in i.pairs().iter().enumerate() {
        source(c, RAX, value);
        store_at(c, R15, 8 * (FLAT_WORDS + at) as i32, RAX);
    }
    dynasm!(c.a; .arch x64; lea rax, [r15 + tag::BOXED as i32]);
    add(c, R15, 8 * (FLAT_WORDS + count) as i32);
    store(c, i.dst(), RAX);
}

/// Goes to `other` unless `words` words are free behind the address in `rax`.
fn room(c: &mut Compiler<'_>, words: usize, other: DynamicLabel) {
    let bytes = 8 * (words + RESERVED_WORDS) as i32;
    dynasm!(c.a; .arch x64; add rax, bytes; cmp rax, rsp; ja =>other);
    few(c, other);
}

/// The flat map in `rdx` with other values of these keys; itself where they are the same.
fn replace(c: &mut Compiler<'_>, pairs: KeyValues, dst: Reg, other: DynamicLabel) {
    let (changed, next, done) = (c.new_label(), c.new_label(), c.new_label());
    dynasm!(c.a; .arch x64; mov r11, [rdx + KEYS]);
    for ((key, _), place) in pairs.iter().zip(PLACES) {
        find(c, key, other, other);
        dynasm!(c.a; .arch x64; mov Rq(place), rcx);
    }
    for ((_, value), place) in pairs.iter().zip(PLACES) {
        source(c, RAX, value);
        dynasm!(c.a; .arch x64; cmp rax, [rdx + Rq(place) * 8 + (VALUES - 8)]; jne =>changed);
    }
    dynasm!(c.a
        ; .arch x64
        ; mov rax, rdx
        ; jmp =>done
        ; =>changed
        ; mov rcx, [rdx + SIZE]
        ; mov QWORD [r15], FLAT_HEADER as i32
        ; mov [r15 + 8], rcx
        ; mov [r15 + 16], r11
        ; lea rsi, [r15 + rcx * 8 + 8 * FLAT_WORDS as i32]
        ; =>next
        ; mov rax, [BYTE rdx + rcx * 8 + (VALUES - 8) as i8]
        ; mov [BYTE r15 + rcx * 8 + 8 * (FLAT_WORDS as i8 - 1)], rax
        ; dec rcx
        ; jnz =>next
    );
    for ((_, value), place) in pairs.iter().zip(PLACES) {
        source(c, RAX, value);
        dynasm!(c.a; .arch x64; mov [r15 + Rq(place) * 8 + 8 * (FLAT_WORDS as i32 - 1)], rax);
    }
    dynasm!(c.a; .arch x64; lea rax, [r15 + tag::BOXED as i32]; mov r15, rsi; =>done);
    store(c, dst, RAX);
}
