//! Templates that move terms, and make or read cells, tuples and funs.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::{
    R15, RAX, RCX, RDX, add, constant, load, load_at, source, store, store_at, store_constant_at,
};
use crate::code::op::{Op, read};
use crate::code::operand::{Reg, Src};
use crate::jit::compile::Compiler;
use crate::process::offset::HIGH_WATER;
use crate::term::{CodeAddress, am, tag};

/// Offsets of a cell's words from the term.
const HEAD: i32 = -(tag::LIST as i32);
const TAIL: i32 = HEAD + 8;
/// Offset of the first element of a tuple from the term.
const ELEMENTS: i32 = 8 - tag::BOXED as i32;

pub(super) fn init_y(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::InitY) {
    set_constant(c, i.dst(), tag::NIL);
}

/// Sets a register to a constant.
pub(super) fn set_constant(c: &mut Compiler<'_>, dst: Reg, word: u64) {
    let (base, offset) = super::place(dst);
    store_constant_at(c, base, offset, word);
}

fn move_(c: &mut Compiler<'_>, src: Reg, dst: Reg) {
    load(c, RAX, src);
    store(c, dst, RAX);
}

pub(super) fn move_rr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::MoveRR) {
    c.first(RAX, Src::of(i.src()));
    store(c, i.dst(), RAX);
    c.hold(i.dst(), RAX);
    c.hold(i.src(), RAX);
}

pub(super) fn move2_rr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::Move2RR) {
    move_(c, i.src(), i.dst());
    let (src, dst) = i.second();
    move_(c, src, dst);
    c.hold(dst, RAX);
}

pub(super) fn move_cr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::MoveCR) {
    set_constant(c, i.dst(), i.value().0);
}

pub(super) fn swap_rr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::SwapRR) {
    load(c, RAX, i.one());
    load(c, RCX, i.other());
    store(c, i.one(), RCX);
    store(c, i.other(), RAX);
}

/// Head and tail of the cell in `rdx`.
fn take_apart(c: &mut Compiler<'_>, head: Reg, tail: Reg) {
    load_at(c, RAX, RDX, HEAD);
    load_at(c, RCX, RDX, TAIL);
    store(c, head, RAX);
    store(c, tail, RCX);
    c.hold(head, RAX);
    c.hold(tail, RCX);
}

pub(super) fn get_list(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::GetList) {
    c.first(RDX, Src::of(i.list()));
    take_apart(c, i.head(), i.tail());
}

pub(super) fn is_nonempty_list_get_list(
    c: &mut Compiler<'_>,
    _pc: CodeAddress,
    i: read::IsNonemptyListGetList,
) {
    let fail = c.label(i.fail());
    c.first(RDX, Src::of(i.list()));
    dynasm!(c.a; .arch x64; test dl, 2; jnz =>fail);
    take_apart(c, i.head(), i.tail());
}

/// Loads a word of what a register points to.
fn get(c: &mut Compiler<'_>, from: Reg, offset: i32, dst: Reg) {
    c.first(RDX, Src::of(from));
    load_at(c, RAX, RDX, offset);
    store(c, dst, RAX);
    c.hold(dst, RAX);
    if from != dst {
        c.hold(from, RDX);
    }
}

pub(super) fn get_hd(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::GetHd) {
    get(c, i.list(), HEAD, i.dst());
}

pub(super) fn get_tl(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::GetTl) {
    get(c, i.list(), TAIL, i.dst());
}

pub(super) fn get_tuple_element(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::GetTupleElement) {
    get(c, i.tuple(), ELEMENTS + 8 * i.index() as i32, i.dst());
}

pub(super) fn get_tuple_element2(
    c: &mut Compiler<'_>,
    _pc: CodeAddress,
    i: read::GetTupleElement2,
) {
    let at = ELEMENTS + 8 * i.index() as i32;
    c.first(RDX, Src::of(i.tuple()));
    load_at(c, RAX, RDX, at);
    load_at(c, RCX, RDX, at + 8);
    store(c, i.dst(), RAX);
    store(c, i.second(), RCX);
    c.hold(i.dst(), RAX);
    c.hold(i.second(), RCX);
    if i.tuple() != i.dst() && i.tuple() != i.second() {
        c.hold(i.tuple(), RDX);
    }
}

/// A new cell, whose words `put` puts on the heap.
fn cell(c: &mut Compiler<'_>, dst: Reg, put: impl FnOnce(&mut Compiler<'_>)) {
    put(c);
    dynasm!(c.a; .arch x64; lea rax, [BYTE r15 + tag::LIST as i8]; add r15, BYTE 16);
    store(c, dst, RAX);
    c.hold(dst, RAX);
}

pub(super) fn put_list_rr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::PutListRR) {
    cell(c, i.dst(), |c| {
        c.first_two(Src::of(i.head()), Src::of(i.tail()));
        store_at(c, R15, 0, RAX);
        store_at(c, R15, 8, RCX);
    });
}

pub(super) fn put_list_cr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::PutListCR) {
    cell(c, i.dst(), |c| {
        store_constant_at(c, R15, 0, i.head().0);
        load(c, RAX, i.tail());
        store_at(c, R15, 8, RAX);
    });
}

pub(super) fn put_list_rc(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::PutListRC) {
    cell(c, i.dst(), |c| {
        load(c, RAX, i.head());
        store_at(c, R15, 0, RAX);
        store_constant_at(c, R15, 8, i.tail().0);
    });
}

/// Puts a source on the heap, so many bytes above its top.
fn put(c: &mut Compiler<'_>, offset: i32, src: Src) {
    match src.reg() {
        Some(_) => {
            source(c, RAX, src);
            store_at(c, R15, offset, RAX);
        }
        None => store_constant_at(c, R15, offset, src.0),
    }
}

/// A thing of these words so far is on the heap's top: `dst` becomes the term.
fn boxed(c: &mut Compiler<'_>, words: usize, dst: Reg) {
    dynasm!(c.a; .arch x64; lea rax, [BYTE r15 + tag::BOXED as i8]);
    add(c, R15, words as i32 * 8);
    store(c, dst, RAX);
    c.hold(dst, RAX);
}

pub(super) fn put_tuple(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::PutTuple) {
    store_constant_at(c, R15, 0, tag::make_header(i.arity(), tag::ARITYVAL));
    for (n, element) in i.elements().iter().enumerate() {
        put(c, 8 + 8 * n as i32, element);
    }
    boxed(c, 1 + i.arity(), i.dst());
}

/// Most elements of a tuple that is copied in line.
const COPIED: u64 = 20;

/// A copy of the tuple with some elements changed; there is room for it.
pub(super) fn update_record(c: &mut Compiler<'_>, pc: CodeAddress, i: read::UpdateRecord) {
    let (size, updates) = (i.size(), i.updates());
    if i.hint() == am::inplace.raw() {
        return update_in_place(c, pc, i);
    }
    if size > COPIED {
        return c.helper(pc, Op::UpdateRecord, i);
    }
    let done = c.new_label();
    source(c, RDX, i.src());
    if i.hint() == am::reuse.raw() && updates.len() == 1 {
        for (at, value) in updates.iter() {
            source(c, RAX, value);
            dynasm!(c.a; .arch x64; cmp rax, [rdx + (ELEMENTS + 8 * (at as i32 - 1))]);
        }
        dynasm!(c.a; .arch x64; mov rax, rdx; je =>done);
    }
    for at in 0..=size {
        let offset = 8 * at as i32;
        match updates.iter().rfind(|(changed, _)| *changed == at) {
            Some((_, value)) => put(c, offset, value),
            None => {
                load_at(c, RAX, RDX, offset - tag::BOXED as i32);
                store_at(c, R15, offset, RAX);
            }
        }
    }
    let words = 1 + size as i32;
    dynasm!(c.a; .arch x64; lea rax, [r15 + tag::BOXED as i32]; add r15, 8 * words; =>done);
    store(c, i.dst(), RAX);
}

/// The tuple itself, where it has survived no collection, or comes to point to nothing younger.
fn update_in_place(c: &mut Compiler<'_>, pc: CodeAddress, i: read::UpdateRecord) {
    let other = c.cold_helper(pc, Op::UpdateRecord, i);
    let (old, write) = (c.new_label(), c.new_label());
    source(c, RDX, i.src());
    dynasm!(c.a
        ; .arch x64
        ; lea rcx, [rdx - tag::BOXED as i32]
        ; cmp rcx, [r13 + HIGH_WATER]
        ; jb =>old
        ; cmp rcx, r15
        ; jb =>write
        ; =>old
    );
    for (_, value) in i.updates().iter() {
        source(c, RAX, value);
        dynasm!(c.a; .arch x64; not eax; test al, 3; jnz =>other);
    }
    dynasm!(c.a; .arch x64; =>write);
    for (at, value) in i.updates().iter() {
        source(c, RAX, value);
        store_at(c, RDX, ELEMENTS + 8 * (at as i32 - 1), RAX);
    }
    store(c, i.dst(), RDX);
}

pub(super) fn set_tuple_element(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::SetTupleElement) {
    load(c, RAX, i.value());
    load(c, RDX, i.tuple());
    store_at(c, RDX, ELEMENTS + 8 * i.index() as i32, RAX);
}

pub(super) fn make_fun(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::MakeFun) {
    let (entry, count) = (i.lambda(), i.count() as u8);
    let header = tag::fun::make_header(entry.arity - count, count, false);
    store_constant_at(c, R15, 0, header);
    constant(c, RAX, std::ptr::from_ref(entry) as u64);
    store_at(c, R15, 8, RAX);
    for (n, free) in i.free().iter().enumerate() {
        put(c, 16 + 8 * n as i32, free);
    }
    boxed(c, 2 + usize::from(count), i.dst());
}

/// `element/2` with a constant index, of a tuple that has it.
pub(super) fn element_rc(c: &mut Compiler<'_>, pc: CodeAddress, i: read::ElementRC) {
    let other = c.cold_helper(pc, Op::ElementRC, i);
    c.first(RDX, Src::of(i.tuple()));
    dynasm!(c.a
        ; .arch x64
        ; lea eax, [rdx - tag::BOXED as i32]
        ; test al, 3
        ; jnz =>other
        ; mov rax, [rdx - tag::BOXED as i32]
        ; test al, tag::HEADER_MASK as i8
        ; jnz =>other
        ; shr rax, tag::ARITY_SHIFT as i8
        ; cmp rax, i.index() as i32
        ; jb =>other
    );
    load_at(c, RAX, RDX, ELEMENTS + 8 * (i.index() as i32 - 1));
    store(c, i.dst(), RAX);
    c.hold(i.dst(), RAX);
}

pub(super) fn hd_r(c: &mut Compiler<'_>, pc: CodeAddress, i: read::HdR) {
    let other = c.cold_helper(pc, Op::HdR, i);
    c.first(RDX, Src::of(i.list()));
    dynasm!(c.a; .arch x64; test dl, 2; jnz =>other);
    load_at(c, RAX, RDX, HEAD);
    store(c, i.dst(), RAX);
    c.hold(i.dst(), RAX);
}

pub(super) fn tl_r(c: &mut Compiler<'_>, pc: CodeAddress, i: read::TlR) {
    let other = c.cold_helper(pc, Op::TlR, i);
    c.first(RDX, Src::of(i.list()));
    dynasm!(c.a; .arch x64; test dl, 2; jnz =>other);
    load_at(c, RAX, RDX, TAIL);
    store(c, i.dst(), RAX);
    c.hold(i.dst(), RAX);
}
