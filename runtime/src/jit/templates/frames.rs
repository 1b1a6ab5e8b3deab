//! Templates that make and drop stack frames, ask for room on the heap, return and jump.

use dynasmrt::{DynasmLabelApi, dynasm};

use super::calls::X0;
use super::keeps::ARGUMENTS;
use super::{RSP, add};
use crate::code::op::read;
use crate::code::operand::Src;
use crate::jit::compile::Compiler;
use crate::term::CodeAddress;

/// Drops the frame's `words` words.
pub(super) fn drop_frame(c: &mut Compiler<'_>, words: usize) {
    if words > 0 {
        add(c, RSP, words as i32 * 8);
    }
}

pub(super) fn jump(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::Jump) {
    c.pass();
    let target = c.way_to(i.target());
    dynasm!(c.a; .arch x64; jmp =>target);
}

/// Has the result be where whoever is returned to looks for it.
fn take_result(c: &mut Compiler<'_>) {
    c.first(ARGUMENTS[0], Src::of(X0));
}

pub(super) fn return_(c: &mut Compiler<'_>, _pc: CodeAddress, _i: read::Return) {
    take_result(c);
    c.return_();
}

pub(super) fn deallocate(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::Deallocate) {
    c.pass();
    drop_frame(c, i.frame());
    c.forget_frame();
}

pub(super) fn deallocate_return(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::DeallocateReturn) {
    take_result(c);
    drop_frame(c, i.frame());
    c.return_();
}

pub(super) fn allocate(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::Allocate) {
    c.pass();
    c.ensure(i.frame() + 1, i.live());
    make_frame(c, i.frame());
}

pub(super) fn allocate_heap(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::AllocateHeap) {
    c.pass();
    c.ensure(i.frame() + 1 + i.need(), i.live());
    make_frame(c, i.frame());
}

fn make_frame(c: &mut Compiler<'_>, words: usize) {
    if words > 0 {
        add(c, RSP, -(words as i32 * 8));
    }
    c.forget_frame();
}

pub(super) fn test_heap(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::TestHeap) {
    c.pass();
    c.ensure(i.need(), i.live());
}

pub(super) fn trim(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::Trim) {
    c.pass();
    drop_frame(c, i.dropped());
    c.forget_frame();
}
