//! Templates that move terms, and make or read cells, tuples and funs.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::{
    R15, RAX, RCX, RDX, add, constant, load, load_at, source, store, store_at, store_constant_at,
    sum,
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

/// Sets a register to a constant.
pub(super) fn set_constant(c: &mut Compiler<'_>, dst: Reg, word: u64) {
    let (base, offset) = super::place(dst);
    store_constant_at(c, base, offset, word);
}

pub(super) fn init_y(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::InitY) {
    c.pass();
    set_constant(c, i.dst(), tag::NIL);
    c.forget(i.dst());
}

fn move_(c: &mut Compiler<'_>, src: Reg, dst: Reg) {
    let at = c.in_register_for(src, dst);
    store(c, dst, at);
    c.hold(dst, at);
}

pub(super) fn move_rr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::MoveRR) {
    c.pass();
    move_(c, i.src(), i.dst());
}

pub(super) fn move2_rr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::Move2RR) {
    c.pass();
    move_(c, i.src(), i.dst());
    let (src, dst) = i.second();
    move_(c, src, dst);
}

/// Does no instruction store this constant by itself?
fn is_large(word: u64) -> bool {
    i32::try_from(word as i64).is_err()
}

/// Has a constant be stored, for which `rcx` is taken if it is a large one.
fn leave_room(c: &mut Compiler<'_>, word: u64) {
    if is_large(word) {
        c.drop_held(RCX);
    }
}

pub(super) fn move_cr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::MoveCR) {
    c.pass();
    leave_room(c, i.value().0);
    set_constant(c, i.dst(), i.value().0);
    match is_large(i.value().0) {
        true => c.hold(i.dst(), RCX),
        false => c.forget(i.dst()),
    }
}

pub(super) fn swap_rr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::SwapRR) {
    c.pass();
    let (one, other) = (c.in_register(i.one()), c.in_register(i.other()));
    store(c, i.one(), other);
    store(c, i.other(), one);
    c.hold(i.one(), other);
    c.hold(i.other(), one);
}

/// Two words of what is in a machine register.
fn take_apart(c: &mut Compiler<'_>, from: u8, offset: i32, [first, second]: [Reg; 2]) {
    let one = Some(c.free_for(first)).filter(|&one| one != from);
    let one = one.unwrap_or_else(|| c.free());
    load_at(c, one, from, offset);
    store(c, first, one);
    c.hold(first, one);
    let other = c.free_for(second);
    load_at(c, other, from, offset + 8);
    store(c, second, other);
    c.hold(second, other);
}

pub(super) fn get_list(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::GetList) {
    c.pass();
    let list = c.in_register(i.list());
    take_apart(c, list, HEAD, [i.head(), i.tail()]);
}

/// Goes to `fail` unless this machine register has a cell.
pub(super) fn is_cell(c: &mut Compiler<'_>, at: u8, fail: DynamicLabel) {
    dynasm!(c.a; .arch x64; test Rb(at), 2; jnz =>fail);
}

pub(super) fn is_nonempty_list_get_list(
    c: &mut Compiler<'_>,
    _pc: CodeAddress,
    i: read::IsNonemptyListGetList,
) {
    c.pass();
    let list = c.in_register(i.list());
    let fail = c.way_to(i.fail());
    is_cell(c, list, fail);
    take_apart(c, list, HEAD, [i.head(), i.tail()]);
}

/// Loads a word of what a register points to.
fn get(c: &mut Compiler<'_>, from: Reg, offset: i32, dst: Reg) {
    c.pass();
    let (from, to) = (c.in_register(from), c.free_for(dst));
    load_at(c, to, from, offset);
    store(c, dst, to);
    c.hold(dst, to);
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
    c.pass();
    let tuple = c.in_register(i.tuple());
    let at = ELEMENTS + 8 * i.index() as i32;
    take_apart(c, tuple, at, [i.dst(), i.second()]);
}

/// A new cell, whose words are on the heap.
fn cell(c: &mut Compiler<'_>, dst: Reg) {
    let at = c.free_for(dst);
    sum(c, at, R15, tag::LIST as i32);
    dynasm!(c.a; .arch x64; add r15, BYTE 16);
    store(c, dst, at);
    c.hold(dst, at);
}

pub(super) fn put_list_rr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::PutListRR) {
    c.pass();
    for (offset, reg) in [(0, i.head()), (8, i.tail())] {
        let at = c.in_register(reg);
        store_at(c, R15, offset, at);
    }
    cell(c, i.dst());
}

pub(super) fn put_list_cr(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::PutListCR) {
    c.pass();
    leave_room(c, i.head().0);
    store_constant_at(c, R15, 0, i.head().0);
    let tail = c.in_register(i.tail());
    store_at(c, R15, 8, tail);
    cell(c, i.dst());
}

pub(super) fn put_list_rc(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::PutListRC) {
    c.pass();
    let head = c.in_register(i.head());
    store_at(c, R15, 0, head);
    leave_room(c, i.tail().0);
    store_constant_at(c, R15, 8, i.tail().0);
    cell(c, i.dst());
}

/// Puts a source on the heap, `offset` bytes above its top.
fn put(c: &mut Compiler<'_>, offset: i32, src: Src) {
    let Some(reg) = src.reg() else {
        leave_room(c, src.0);
        return store_constant_at(c, R15, offset, src.0);
    };
    let at = c.held_at(reg).unwrap_or_else(|| {
        let at = c.free();
        load(c, at, reg);
        at
    });
    store_at(c, R15, offset, at);
}

/// A thing of these words so far is on the heap's top: `dst` becomes the term.
fn boxed(c: &mut Compiler<'_>, words: usize, dst: Reg) {
    let at = c.free_for(dst);
    sum(c, at, R15, tag::BOXED as i32);
    add(c, R15, words as i32 * 8);
    store(c, dst, at);
    c.hold(dst, at);
}

pub(super) fn put_tuple(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::PutTuple) {
    c.pass();
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
        ; lea rcx, [BYTE rdx - tag::BOXED as i8]
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
    c.pass();
    store_constant_at(c, R15, 0, header);
    let at = c.free();
    constant(c, at, std::ptr::from_ref(entry) as u64);
    store_at(c, R15, 8, at);
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
        ; lea eax, [BYTE rdx - tag::BOXED as i8]
        ; test al, 3
        ; jnz =>other
        ; mov rax, [BYTE rdx - tag::BOXED as i8]
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
