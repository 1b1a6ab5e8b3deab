//! Templates of type tests.

use dynasmrt::{DynamicLabel, DynasmApi, DynasmLabelApi, dynasm};

use super::binaries::{BASE, END, START};
use super::data::is_cell;
use super::{RAX, RDX, compare, constant};
use crate::code::op::read;
use crate::code::operand::Src;
use crate::jit::compile::Compiler;
use crate::term::{CodeAddress, am, tag};

/// The tag of a boxed term.
const BOXED: i32 = tag::BOXED as i32;

/// Goes to `fail` unless the term in `rdx` is boxed.
fn is_boxed(c: &mut Compiler<'_>, fail: DynamicLabel) {
    dynasm!(c.a; .arch x64; lea eax, [BYTE rdx - BOXED as i8]; test al, 3; jnz =>fail);
}

/// Goes to `fail` unless the term in `rdx` is boxed and its header, masked so, is this one.
fn has_header(c: &mut Compiler<'_>, mask: u64, header: u64, fail: DynamicLabel) {
    is_boxed(c, fail);
    dynasm!(c.a
        ; .arch x64
        ; mov eax, [BYTE rdx - BOXED as i8]
        ; and eax, mask as i32
        ; cmp eax, header as i32
        ; jne =>fail
    );
}

/// A test of the header's tag.
macro_rules! by_header {
    ($($name:ident $op:ident $mask:expr, $header:expr;)*) => { $(
        pub(super) fn $name(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::$op) {
            c.first(RDX, Src::of(i.src()));
            c.find(i.src(), RDX);
            let fail = c.way_to(i.fail());
            has_header(c, $mask, $header, fail);
        }
    )* };
}

by_header! {
    is_float IsFloat tag::HEADER_MASK, tag::FLOAT;
    is_tuple IsTuple tag::HEADER_MASK, tag::ARITYVAL;
    is_map IsMap tag::HEADER_MASK, tag::MAP;
    is_function IsFunction tag::HEADER_MASK, tag::FUN;
    is_bitstr IsBitstr tag::HEADER_MASK & !(tag::HEAP_BITS ^ tag::SUB_BITS), tag::HEAP_BITS & tag::SUB_BITS;
}

/// A bitstring of whole bytes.
pub(super) fn is_binary(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsBinary) {
    let (is_heap, done) = (c.new_label(), c.new_label());
    c.first(RDX, Src::of(i.src()));
    c.find(i.src(), RDX);
    let fail = c.way_to(i.fail());
    is_boxed(c, fail);
    dynasm!(c.a
        ; .arch x64
        ; mov eax, [BYTE rdx - BOXED as i8]
        ; and eax, tag::HEADER_MASK as i32
        ; cmp eax, tag::HEAP_BITS as i32
        ; je =>is_heap
        ; cmp eax, tag::SUB_BITS as i32
        ; jne =>fail
        ; mov eax, [BYTE rdx + END as i8]
        ; sub eax, [BYTE rdx + START as i8]
        ; test al, 7
        ; jnz =>fail
        ; jmp =>done
        ; =>is_heap
        ; test BYTE [BYTE rdx + BASE as i8], 7
        ; jnz =>fail
        ; =>done
    );
}

pub(super) fn is_integer(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsInteger) {
    let fail = c.label(i.fail());
    let is_known = c.range(Src::of(i.src())).is_some();
    let large = c.seldom(i, move |c| {
        has_header(c, tag::HEADER_MASK & !4, tag::POS_BIG, fail)
    });
    c.first(RDX, Src::of(i.src()));
    if !is_known {
        dynasm!(c.a; .arch x64; lea eax, [BYTE rdx + 1]; test al, 15; jnz =>large);
    }
    c.find(i.src(), RDX);
}

pub(super) fn is_atom(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsAtom) {
    c.first(RDX, Src::of(i.src()));
    c.find(i.src(), RDX);
    let fail = c.way_to(i.fail());
    dynasm!(c.a; .arch x64; mov eax, edx; and eax, tag::IMMED2_MASK as i32; cmp eax, tag::ATOM as i32; jne =>fail);
}

pub(super) fn is_boolean(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsBoolean) {
    let holds = c.new_label();
    c.first(RDX, Src::of(i.src()));
    c.find(i.src(), RDX);
    let fail = c.way_to(i.fail());
    compare(c, RDX, am::true_.raw().0);
    dynasm!(c.a; .arch x64; je =>holds);
    compare(c, RDX, am::false_.raw().0);
    dynasm!(c.a; .arch x64; jne =>fail; =>holds);
}

pub(super) fn is_nil(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsNil) {
    c.first(RDX, Src::of(i.src()));
    c.find(i.src(), RDX);
    let fail = c.way_to(i.fail());
    compare(c, RDX, tag::NIL);
    dynasm!(c.a; .arch x64; jne =>fail);
}

pub(super) fn is_list(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsList) {
    let holds = c.new_label();
    c.first(RDX, Src::of(i.src()));
    c.find(i.src(), RDX);
    let fail = c.way_to(i.fail());
    compare(c, RDX, tag::NIL);
    dynasm!(c.a; .arch x64; je =>holds; test dl, 2; jnz =>fail; =>holds);
}

pub(super) fn is_nonempty_list(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsNonemptyList) {
    c.pass();
    let list = c.in_register(i.src());
    let fail = c.way_to(i.fail());
    is_cell(c, list, fail);
}

pub(super) fn test_arity(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::TestArity) {
    c.first(RDX, Src::of(i.src()));
    c.find(i.src(), RDX);
    let fail = c.way_to(i.fail());
    let header = tag::make_header(i.arity(), tag::ARITYVAL) as i32;
    dynasm!(c.a; .arch x64; cmp QWORD [BYTE rdx - BOXED as i8], header; jne =>fail);
}

/// Goes to `fail` unless the term in `rdx` is a tuple of `arity` elements.
fn is_tuple_of(c: &mut Compiler<'_>, arity: usize, fail: DynamicLabel) {
    is_boxed(c, fail);
    let header = tag::make_header(arity, tag::ARITYVAL) as i32;
    dynasm!(c.a; .arch x64; cmp QWORD [BYTE rdx - BOXED as i8], header; jne =>fail);
}

pub(super) fn is_tuple_of_arity(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsTupleOfArity) {
    c.first(RDX, Src::of(i.src()));
    c.find(i.src(), RDX);
    let fail = c.way_to(i.fail());
    is_tuple_of(c, i.arity(), fail);
}

pub(super) fn is_tagged_tuple(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::IsTaggedTuple) {
    c.first(RDX, Src::of(i.src()));
    c.find(i.src(), RDX);
    let fail = c.way_to(i.fail());
    is_tuple_of(c, i.arity(), fail);
    constant(c, RAX, i.tag().0);
    dynasm!(c.a; .arch x64; cmp [rdx + (8 - BOXED)], rax; jne =>fail);
}
