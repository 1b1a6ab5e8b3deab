//! Templates of guard BIFs that code asks for by the thousand: of usual arguments, which need no new words.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::binaries::{BASE, END, START};
use super::effects::constant_tuple;
use super::{RAX, RCX, RDX, constant, maps, store};
use crate::code::bif::Bif;
use crate::code::op::{Op, read};
use crate::exec::guard::ELEMENTS_PER_REDUCTION;
use crate::heap::Heap;
use crate::jit::compile::Compiler;
use crate::process::offset::PID;
use crate::term::{CodeAddress, RawTerm, am, tag};

const BOXED: i32 = tag::BOXED as i32;
const SMALL: i32 = tag::SMALL as i32;

/// Puts the result of a guard BIF with one argument, which is in `rdx`, into `rax`; goes to the label where the argument
/// is an unusual one.
type One = fn(&mut Compiler<'_>, DynamicLabel);

/// As [`One`], with two arguments, in `rax` and `rdx`.
type Two = fn(&mut Compiler<'_>, DynamicLabel);

const ONE: &[(&str, One)] = &[
    ("bit_size", bit_size),
    ("byte_size", byte_size),
    ("tuple_size", tuple_size),
    ("map_size", map_size),
    ("length", length),
    ("not", not),
    ("-", negated),
];

const TWO: &[(&str, Two)] = &[
    ("element", element),
    ("map_get", map_get),
    ("is_map_key", is_map_key),
    ("+", sum),
    ("-", difference),
    ("=:=", same),
    ("=/=", other_word),
];

/// The template of a row. There is none where the interpreter collects behind a guard BIF.
fn of<T: Copy>(table: &[(&str, T)], bif: &Bif) -> Option<T> {
    let mut found = table.iter().filter(|(name, _)| *name == bif.function);
    let (_, template) = found.next().filter(|_| bif.module == "erlang")?;
    Some(*template).filter(|_| !Heap::is_zealous())
}

pub(super) fn bif1(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Bif1) {
    let Some(template) = of(ONE, i.bif()) else {
        return c.helper(pc, Op::Bif1, i);
    };
    let other = c.cold_helper(pc, Op::Bif1, i);
    c.first(RDX, i.src());
    template(c, other);
    store(c, i.dst(), RAX);
    c.hold(i.dst(), RAX);
}

pub(super) fn bif2(c: &mut Compiler<'_>, pc: CodeAddress, i: read::Bif2) {
    let Some(template) = of(TWO, i.bif()) else {
        return c.helper(pc, Op::Bif2, i);
    };
    let other = c.cold_helper(pc, Op::Bif2, i);
    match constant_tuple(i.right()).filter(|_| takes_element(i)) {
        Some(elements) => element_of_constant(c, i, elements.len(), other),
        None => {
            c.first_pair((RAX, i.left()), (RDX, i.right()));
            template(c, other);
        }
    }
    store(c, i.dst(), RAX);
    c.hold(i.dst(), RAX);
}

/// Takes it an element of a constant?
pub(super) fn takes_element(i: read::Bif2) -> bool {
    let bif = i.bif();
    bif.module == "erlang" && bif.function == "element" && constant_tuple(i.right()).is_some()
}

/// An element of a constant tuple of `count` elements.
fn element_of_constant(c: &mut Compiler<'_>, i: read::Bif2, count: usize, other: DynamicLabel) {
    let index = c.range(i.left());
    let is_there = index.is_some_and(|index| 1 <= index.least && index.most <= count as i64);
    c.first_small(RAX, i.left(), other);
    if !is_there {
        let last = i32::try_from(RawTerm::small(count as i64).0);
        let last = last.expect("a literal of less than 128 million elements");
        let first = RawTerm::small(1).0 as i32;
        dynasm!(c.a; .arch x64; cmp rax, last; ja =>other; cmp rax, first; jb =>other);
    }
    // The tag of the index is 7 bytes of its offset.
    constant(c, RDX, i.right().0);
    dynasm!(c.a; .arch x64; shr rax, 1; mov rax, [rdx + rax - (BOXED + SMALL / 2)]);
}

pub(super) fn self_r(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::SelfR) {
    c.first_of(&[]);
    dynasm!(c.a; .arch x64; mov rax, [r13 + PID]);
    store(c, i.dst(), RAX);
    c.hold(i.dst(), RAX);
}

/// Goes to `other` unless the term in `rdx` is boxed; its header is in `rcx`.
fn header(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a; .arch x64; lea ecx, [BYTE rdx - BOXED as i8]; test cl, 3; jnz =>other; mov rcx, [BYTE rdx - BOXED as i8]);
}

/// The small integer of the number in `rax`.
fn small(c: &mut Compiler<'_>) {
    dynasm!(c.a; .arch x64; shl rax, 4; or rax, SMALL);
}

fn bit_size(c: &mut Compiler<'_>, other: DynamicLabel) {
    bits(c, other);
    small(c);
}

fn byte_size(c: &mut Compiler<'_>, other: DynamicLabel) {
    bits(c, other);
    dynasm!(c.a; .arch x64; add rax, 7; shr rax, 3);
    small(c);
}

/// The bits of the bitstring in `rdx`, in `rax`.
fn bits(c: &mut Compiler<'_>, other: DynamicLabel) {
    let (is_heap, done) = (c.new_label(), c.new_label());
    header(c, other);
    dynasm!(c.a
        ; .arch x64
        ; and ecx, tag::HEADER_MASK as i32
        ; cmp ecx, tag::HEAP_BITS as i32
        ; je =>is_heap
        ; cmp ecx, tag::SUB_BITS as i32
        ; jne =>other
        ; mov rax, [BYTE rdx + END as i8]
        ; sub rax, [BYTE rdx + START as i8]
        ; jmp =>done
        ; =>is_heap
        ; mov rax, [BYTE rdx + BASE as i8]
        ; =>done
    );
}

fn tuple_size(c: &mut Compiler<'_>, other: DynamicLabel) {
    header(c, other);
    dynasm!(c.a
        ; .arch x64
        ; test cl, tag::HEADER_MASK as i8
        ; jnz =>other
        ; mov rax, rcx
        ; shr rax, tag::ARITY_SHIFT as i8
    );
    small(c);
}

fn map_size(c: &mut Compiler<'_>, other: DynamicLabel) {
    maps::is_flat(c, other);
    dynasm!(c.a; .arch x64; mov rax, [rdx + maps::SIZE]);
    small(c);
}

/// All of it, whatever it costs.
fn length(c: &mut Compiler<'_>, other: DynamicLabel) {
    let (next, done) = (c.new_label(), c.new_label());
    dynasm!(c.a
        ; .arch x64
        ; xor eax, eax
        ; =>next
        ; test dl, (tag::PRIMARY_MASK ^ tag::LIST) as i8
        ; jnz =>done
        ; mov rdx, [rdx + (8 - tag::LIST as i32)]
        ; inc rax
        ; jmp =>next
        ; =>done
        ; cmp rdx, tag::NIL as i32
        ; jne =>other
        ; mov rdx, rax
        ; shr rdx, ELEMENTS_PER_REDUCTION.ilog2() as i8
        ; xor ecx, ecx
        ; sub r14, rdx
        ; cmovs r14, rcx
    );
    small(c);
}

fn not(c: &mut Compiler<'_>, other: DynamicLabel) {
    let done = c.new_label();
    let (yes, no) = (am::true_.raw().0 as i32, am::false_.raw().0 as i32);
    dynasm!(c.a
        ; .arch x64
        ; mov eax, no
        ; cmp rdx, yes
        ; je =>done
        ; cmp rdx, no
        ; jne =>other
        ; mov eax, yes
        ; =>done
    );
}

/// A small integer's opposite.
fn negated(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a
        ; .arch x64
        ; lea ecx, [rdx + 1]
        ; test cl, 15
        ; jnz =>other
        ; mov eax, 2 * SMALL
        ; sub rax, rdx
        ; jo =>other
    );
}

/// An element of a tuple that has it.
fn element(c: &mut Compiler<'_>, other: DynamicLabel) {
    header(c, other);
    dynasm!(c.a
        ; .arch x64
        ; test cl, tag::HEADER_MASK as i8
        ; jnz =>other
        ; shr rcx, tag::ARITY_SHIFT as i8
        ; mov r11d, eax
        ; not r11d
        ; test r11b, SMALL as i8
        ; jnz =>other
        ; sar rax, 4
        ; jle =>other
        ; cmp rax, rcx
        ; ja =>other
        ; mov rax, [rdx + rax * 8 - BOXED]
    );
}

/// The value of a key that is an immediate and that the flat map has.
fn map_get(c: &mut Compiler<'_>, other: DynamicLabel) {
    maps::immediate_key(c, other);
    maps::find_key(c, other);
    dynasm!(c.a; .arch x64; mov rax, [rdx + rcx * 8 + (maps::VALUES - 8)]);
}

fn is_map_key(c: &mut Compiler<'_>, other: DynamicLabel) {
    let (none, done) = (c.new_label(), c.new_label());
    maps::immediate_key(c, other);
    maps::find_key(c, none);
    dynasm!(c.a
        ; .arch x64
        ; mov eax, am::true_.raw().0 as i32
        ; jmp =>done
        ; =>none
        ; mov eax, am::false_.raw().0 as i32
        ; =>done
    );
}

fn sum(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a; .arch x64; mov rcx, rdx);
    c.are_small(&[RAX, RCX], other);
    dynasm!(c.a; .arch x64; sub rcx, SMALL; add rax, rcx; jo =>other);
}

fn difference(c: &mut Compiler<'_>, other: DynamicLabel) {
    dynasm!(c.a; .arch x64; mov rcx, rdx);
    c.are_small(&[RAX, RCX], other);
    dynasm!(c.a; .arch x64; sub rcx, SMALL; sub rax, rcx; jo =>other);
}

fn same(c: &mut Compiler<'_>, other: DynamicLabel) {
    compared(c, am::true_.raw().0, am::false_.raw().0, other);
}

fn other_word(c: &mut Compiler<'_>, other: DynamicLabel) {
    compared(c, am::false_.raw().0, am::true_.raw().0, other);
}

/// `equal` where `rax` and `rdx` hold the same word, `different` where they hold others of which one is an immediate.
fn compared(c: &mut Compiler<'_>, equal: u64, different: u64, other: DynamicLabel) {
    let done = c.new_label();
    dynasm!(c.a
        ; .arch x64
        ; mov ecx, equal as i32
        ; cmp rax, rdx
        ; je =>done
        ; mov ecx, different as i32
        ; not eax
        ; test al, 3
        ; jz =>done
        ; not edx
        ; test dl, 3
        ; jnz =>other
        ; =>done
    );
    dynasm!(c.a; .arch x64; mov Rq(RAX), Rq(RCX));
}
