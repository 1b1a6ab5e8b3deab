//! Templates of receives: messages are passed over in line (J6), as far as a walk goes (`process/mailbox/queue.rs`). The
//! helpers do the rest.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::{RAX, RBX, store_at};
use crate::code::op::{Op, read};
use crate::jit::compile::Compiler;
use crate::process::Mailbox;
use crate::process::offset::{IS_EXAMINING, PASSED, SAVE, WALK, WALK_END};
use crate::process::order::director::are_looks_steps;
use crate::term::CodeAddress;

pub(super) fn loop_rec(c: &mut Compiler<'_>, pc: CodeAddress, i: read::LoopRec) {
    if are_looks_steps() {
        return c.helper(pc, Op::LoopRec, i);
    }
    let other = c.cold_helper(pc, Op::LoopRec, i);
    dynasm!(c.a
        ; .arch x64
        ; test r14, r14
        ; jle =>other
        ; mov rax, [r13 + WALK]
        ; cmp rax, [r13 + WALK_END]
        ; jae =>other
        ; mov BYTE [r13 + IS_EXAMINING], 1
        ; mov rax, [rax + Mailbox::TERM as i32]
    );
    store_at(c, RBX, 0, RAX);
}

/// Messages prefetched ahead: each may lie in a fragment of its own, in no cache.
const AHEAD: usize = 5;
const _: () = assert!(AHEAD * Mailbox::SLOT_BYTES < 128, "in a byte");

pub(super) fn loop_rec_end(c: &mut Compiler<'_>, pc: CodeAddress, i: read::LoopRecEnd) {
    if are_looks_steps() {
        return c.helper(pc, Op::LoopRecEnd, i);
    }
    let other = c.cold_helper(pc, Op::LoopRecEnd, i);
    let again = c.label(i.again());
    let near = c.new_label();
    dynasm!(c.a
        ; .arch x64
        ; mov rax, [r13 + WALK]
        ; cmp rax, [r13 + WALK_END]
        ; jae =>other
        ; add rax, BYTE Mailbox::SLOT_BYTES as i8
        ; mov [r13 + WALK], rax
        ; inc QWORD [r13 + SAVE]
        ; inc DWORD [r13 + PASSED]
        ; mov BYTE [r13 + IS_EXAMINING], 0
        ; dec r14
        ; add rax, BYTE (AHEAD * Mailbox::SLOT_BYTES) as i8
        ; cmp rax, [r13 + WALK_END]
        ; jae =>near
        ; mov rax, [rax + Mailbox::TERM as i32]
        ; prefetcht0 [rax]
        ; =>near
        ; jmp =>again
    );
}
