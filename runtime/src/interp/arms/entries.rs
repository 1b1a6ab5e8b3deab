//! The arms of instructions that stand at entries and at return addresses, or end a time slice.
//!
//! Invariants: I1, I3, P2, T1 and H1, as `arms/mod.rs` says.

use std::ops::ControlFlow;

use super::calls::bad_apply_fun;
use crate::code::op::entry as head;
use crate::code::operand::Instruction;
use crate::exec::call::{self, Called, apply_mfa};
use crate::exec::exception::Current;
use crate::interp::debugger::{self, Hit};
use crate::interp::regs::{Go, Regs};
use crate::process::order::explore;
use crate::process::{Class, Exception, Outcome};
use crate::term::{CodeAddress, RawTerm, am};
use crate::trace;

/// `apply(x0, x1, x2)` as a function that is called.
///
/// # Safety
/// The contract of `arms/mod.rs`.
#[inline(always)]
unsafe fn apply<const SAVES: bool>(r: &mut Regs<'_>) -> Go {
    r.swap_out();
    match call::apply(r.p, r.p.x(0), r.p.x(1), r.p.x(2)) {
        // SAFETY: by contract.
        Ok(ready) => unsafe { r.call::<SAVES>(ready) },
        Err(exception) => {
            r.p.exception = exception;
            r.raise(Current::Function(apply_mfa(3), None))
        }
    }
}

arms! {
    /// `func_info`
    fn func_info(r, _i: FuncInfo) {
        r.swap_out();
        // The head begins `head::WORDS` words before the entry.
        let called = Called::at(CodeAddress::of(r.pc.code().add(head::WORDS)));
        r.error_of_function(called, am::function_clause.raw())
    }

    /// Where a traced call returns to.
    fn trace_return(r, i: TraceReturn) {
        r.swap_out();
        let back = trace::calls::returned(r.p, i.kind() as u64);
        r.swap_in();
        r.return_to(back)
    }

    /// A line at which nobody stops.
    fn line_breakpoint_off(r, i: LineBreakpointOff) {
        r.next(i)
    }

    /// A line at which a debugger stops processes.
    fn line_breakpoint(r, i: LineBreakpoint) {
        r.swap_out();
        match debugger::hit(r.p, r.pc, i.live()) {
            Hit::Calls(entry) => {
                r.swap_in();
                r.dispatch(entry)
            }
            Hit::GoesOn => {
                r.swap_in();
                r.next(i)
            }
            Hit::Exits(exiting) => ControlFlow::Break(Outcome::Exit(exiting)),
        }
    }

    /// The end of the call that stopped a process at a line.
    fn line_breakpoint_end(r, _i: LineBreakpointEnd) {
        r.swap_out();
        let next = debugger::leave(r.p);
        r.swap_in();
        r.jump(next)
    }

    /// The entry of an undefined function.
    fn error_handler<SAVES>(r, _i: ErrorHandler) {
        r.swap_out();
        let called = Called::at(r.pc);
        let ready = call::error_handler(r.p, called).ok();
        match ready {
            Some(Some(ready)) => r.call::<SAVES>(ready),
            Some(None) => r.pause_again(Outcome::Yield, usize::from(called.arity)),
            None => r.error_of_function(called, am::undef.raw()),
        }
    }

    /// The entry of `erlang:apply/3`.
    fn apply_entry<SAVES>(r, _i: ApplyEntry) {
        apply::<SAVES>(r)
    }

    /// The entry of `erlang:apply/2`.
    fn apply_fun_entry<SAVES>(r, _i: ApplyFunEntry) {
        r.swap_out();
        match call::apply_fun(r.p, r.p.x(0), r.p.x(1)) {
            Ok(ready) => r.call::<SAVES>(ready),
            Err(exception) => bad_apply_fun(r, exception),
        }
    }

    /// A process's first instruction.
    fn spawn_entry<SAVES>(r, i: SpawnEntry) {
        r.push_return(i);
        apply::<SAVES>(r)
    }

    /// A process's last instruction.
    fn normal_exit(r, _i: NormalExit) {
        r.swap_out();
        explore::note_result(r.p, RawTerm(*r.x));
        r.p.exception = Exception {
            class: Class::Exit,
            ..Exception::error(am::normal.raw())
        };
        ControlFlow::Break(Outcome::Exit(r.p.uncaught()))
    }

    /// From an export's stub to the code.
    fn jump_target(r, _i: JumpTarget) {
        let target = CodeAddress::of_word(*r.pc.code().offset(head::TARGET));
        r.jump(target)
    }

    /// `erlang:yield/0`
    fn yield_(r, i: Yield) {
        *r.x = am::true_.raw().0;
        r.pc = i.next();
        r.pause(Outcome::Yield, 1)
    }

    /// `erlang:hibernate/0`
    fn hibernate(r, i: Hibernate) {
        r.swap_out();
        r.p.rest(0);
        r.swap_in();
        *r.x = am::ok.raw().0;
        r.pc = i.next();
        let outcome = r.p.outcome_of_wait();
        r.pause(outcome, 1)
    }
}
