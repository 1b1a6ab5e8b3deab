//! The arms that call functions and funs, by label, export and name.
//!
//! Invariants: I1, I3, P2, T1 and H1, as `arms/mod.rs` says.

use crate::code::FunEntry;
use crate::code::operand::{Instruction, Reg};
use crate::exec::call::{self, Called, Ready, apply_mfa};
use crate::exec::exception::Current;
use crate::interp::regs::{Go, Regs, header};
use crate::process::Exception;
use crate::term::{CodeAddress, RawTerm, tag};

/// `apply` of something that cannot be called so.
#[inline(always)]
fn bad_apply(r: &mut Regs<'_>, exception: Exception) -> Go {
    r.p.exception = exception;
    r.raise(Current::Function(apply_mfa(3), Some(r.pc)))
}

/// `apply/2` failed: it did itself, or the call of the fun.
#[inline(always)]
pub(super) fn bad_apply_fun(r: &mut Regs<'_>, exception: Exception) -> Go {
    r.p.exception = exception;
    let current = if exception.from_bif {
        Current::Function(apply_mfa(2), Some(r.pc))
    } else {
        Current::Code(r.pc)
    };
    r.raise(current)
}

/// A call that returns behind the instruction, swapped out still.
///
/// # Safety
/// The contract of `arms/mod.rs`.
#[inline(always)]
unsafe fn call_and_return<const SAVES: bool>(
    r: &mut Regs<'_>,
    i: impl Instruction,
    ready: Ready,
) -> Go {
    r.save_call::<SAVES>(ready.export);
    r.swap_in();
    // SAFETY: by contract.
    unsafe {
        r.push_return(i);
        r.dispatch(ready.entry)
    }
}

/// An apply that is a function's last call: its frame goes, but for a BIF that does nothing but raise; that one is
/// called, so that the stack trace tells the function.
///
/// # Safety
/// The contract of `arms/mod.rs`.
#[inline(always)]
unsafe fn last_apply<const SAVES: bool>(
    r: &mut Regs<'_>,
    i: impl Instruction,
    ready: Result<Ready, Exception>,
    frame: usize,
) -> Go {
    let Ready { entry, export } = match ready {
        Ok(ready) => ready,
        Err(exception) => return bad_apply(r, exception),
    };
    r.save_call::<SAVES>(export);
    r.swap_in();
    // SAFETY: by contract.
    unsafe {
        if Called::at(entry).only_raises() {
            r.push_return(i);
        } else {
            r.drop_frame(frame);
        }
        r.dispatch(entry)
    }
}

/// A local fun of that arity whose code is there, the common case: its free variables go behind the arguments.
///
/// # Safety
/// The contract of `arms/mod.rs`.
#[inline(always)]
unsafe fn local_fun(r: &mut Regs<'_>, fun: u64, arity: usize) -> Option<CodeAddress> {
    // SAFETY: by contract.
    unsafe {
        let head = header(fun);
        let is_local = head & tag::HEADER_MASK == tag::FUN
            && usize::from(tag::fun::arity(head)) == arity
            && !tag::fun::is_external(head);
        if !is_local {
            return None;
        }
        let thing = RawTerm(fun).ptr();
        let entry = (*(*thing.add(1) as *const FunEntry)).address();
        if entry.is_null() {
            return None;
        }
        for n in 0..tag::fun::num_free(head) as usize {
            *r.x.add(arity + n) = *thing.add(2 + n);
        }
        Some(entry)
    }
}

/// Lays out the call of a fun; the way back, or the frame that goes, is `leave`'s.
///
/// # Safety
/// The contract of `arms/mod.rs`.
#[inline(always)]
unsafe fn fun<const SAVES: bool>(
    r: &mut Regs<'_>,
    fun: Reg,
    arity: usize,
    leave: impl FnOnce(&mut Regs<'_>),
) -> Go {
    // SAFETY: by contract.
    unsafe {
        let fun = r.get(fun);
        if let Some(entry) = local_fun(r, fun, arity) {
            leave(r);
            return r.dispatch(entry);
        }
        r.swap_out();
        match call::call_fun(r.p, r.term(fun), arity) {
            Ok(Ready { entry, export }) => {
                r.save_call::<SAVES>(export);
                r.swap_in();
                leave(r);
                r.dispatch(entry)
            }
            Err(raise) => {
                let exception = Exception::from_raise(r.p, &raise);
                r.p.exception = exception;
                r.raise(Current::Code(r.pc))
            }
        }
    }
}

arms! {
    /// `call`
    fn call(r, i: Call) {
        r.push_return(i);
        r.dispatch(i.target())
    }

    /// `call_last`
    fn call_last(r, i: CallLast) {
        r.drop_frame(i.frame());
        r.dispatch(i.target())
    }

    /// `call_only`
    fn call_only(r, i: CallOnly) {
        r.dispatch(i.target())
    }

    /// `call_ext`
    fn call_ext<SAVES>(r, i: CallExt) {
        r.push_return(i);
        r.save_call::<SAVES>(Some(i.export()));
        r.dispatch(i.export().address())
    }

    /// `call_ext_last`
    fn call_ext_last<SAVES>(r, i: CallExtLast) {
        r.drop_frame(i.frame());
        r.save_call::<SAVES>(Some(i.export()));
        r.dispatch(i.export().address())
    }

    /// `call_ext_only`
    fn call_ext_only<SAVES>(r, i: CallExtOnly) {
        r.save_call::<SAVES>(Some(i.export()));
        r.dispatch(i.export().address())
    }

    /// `call_ext` of `erlang:apply/3`.
    fn call_apply<SAVES>(r, i: CallApply) {
        r.swap_out();
        match call::apply(r.p, r.p.x(0), r.p.x(1), r.p.x(2)) {
            Ok(ready) => call_and_return::<SAVES>(r, i, ready),
            Err(exception) => bad_apply(r, exception),
        }
    }

    /// `call_ext_last`, `call_ext_only` of `erlang:apply/3`.
    fn call_apply_last<SAVES>(r, i: CallApplyLast) {
        r.swap_out();
        let ready = call::apply(r.p, r.p.x(0), r.p.x(1), r.p.x(2));
        last_apply::<SAVES>(r, i, ready, i.frame())
    }

    /// `call_ext` of `erlang:apply/2`.
    fn call_apply_fun<SAVES>(r, i: CallApplyFun) {
        r.swap_out();
        match call::apply_fun(r.p, r.p.x(0), r.p.x(1)) {
            Ok(ready) => call_and_return::<SAVES>(r, i, ready),
            Err(exception) => bad_apply_fun(r, exception),
        }
    }

    /// `call_ext_last`, `call_ext_only` of `erlang:apply/2`.
    fn call_apply_fun_last<SAVES>(r, i: CallApplyFunLast) {
        r.drop_frame(i.frame());
        r.swap_out();
        match call::apply_fun(r.p, r.p.x(0), r.p.x(1)) {
            Ok(ready) => r.call::<SAVES>(ready),
            Err(exception) => bad_apply_fun(r, exception),
        }
    }

    /// `apply`
    fn apply<SAVES>(r, i: Apply) {
        r.swap_out();
        match call::fixed_apply(r.p, i.arity()) {
            Ok(ready) => call_and_return::<SAVES>(r, i, ready),
            Err(exception) => bad_apply(r, exception),
        }
    }

    /// `apply_last`
    fn apply_last<SAVES>(r, i: ApplyLast) {
        r.swap_out();
        let ready = call::fixed_apply(r.p, i.arity());
        last_apply::<SAVES>(r, i, ready, i.frame())
    }

    /// `call_fun`, `call_fun2`
    fn call_fun<SAVES>(r, i: CallFun) {
        fun::<SAVES>(r, i.fun(), i.arity(), |r| r.push_return(i))
    }

    /// `call_fun`, `deallocate`, `return`
    fn call_fun_last<SAVES>(r, i: CallFunLast) {
        fun::<SAVES>(r, i.fun(), i.arity(), |r| r.drop_frame(i.frame()))
    }
}
