//! Templates of where exceptions are handled.

use dynasmrt::{DynasmApi, DynasmLabelApi, dynasm};

use super::data::set_constant;
use super::{RAX, RBX, load_at, store_at};
use crate::code::op::{Op, read};
use crate::code::operand::Reg;
use crate::exec::exception;
use crate::jit::compile::Compiler;
use crate::process::offset::CATCHES;
use crate::term::{CodeAddress, tag};

pub(super) fn catch(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::Catch) {
    set_constant(c, i.tag(), exception::catch_tag(i.handler()));
    dynasm!(c.a; .arch x64; inc DWORD [r13 + CATCHES]);
}

/// A handler's tag goes.
fn end_handler(c: &mut Compiler<'_>, tag: Reg) {
    set_constant(c, tag, tag::NIL);
    dynasm!(c.a; .arch x64; dec DWORD [r13 + CATCHES]);
}

pub(super) fn try_end(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::TryEnd) {
    end_handler(c, i.tag());
}

/// Where something was raised, `x(0)` holds no term.
pub(super) fn catch_end(c: &mut Compiler<'_>, pc: CodeAddress, i: read::CatchEnd) {
    let raised = c.cold_helper(pc, Op::CatchEnd, i);
    dynasm!(c.a; .arch x64; cmp QWORD [rbx], 0; je =>raised);
    end_handler(c, i.tag());
}

pub(super) fn try_case(c: &mut Compiler<'_>, _pc: CodeAddress, i: read::TryCase) {
    end_handler(c, i.tag());
    for n in 0..3 {
        load_at(c, RAX, RBX, 8 * (n + 1));
        store_at(c, RBX, 8 * n, RAX);
    }
}
