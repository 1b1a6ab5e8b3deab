//! The arms that raise and handle exceptions.

use crate::exec::exception::{self, Current};
use crate::exec::raise::reraised;
use crate::interp::regs::{Go, Regs};
use crate::process::{Class, Exception};
use crate::term::{Atom, RawTerm, Term, am, tag};

/// Raises `error:{tag, value}`.
///
/// # Safety
/// T1: the value is a term of the process.
#[inline(always)]
unsafe fn tagged_error(r: &mut Regs<'_>, tag: Atom, value: u64) -> Go {
    // SAFETY: by contract.
    let value: Term<'_> = unsafe { Term::new(RawTerm(value)) };
    r.error(|p| p.tuple(&[tag.term(), value]).raw())
}

/// A handler's tag goes.
///
/// # Safety
/// The contract of `arms/mod.rs`.
#[inline(always)]
unsafe fn end_handler(r: &mut Regs<'_>, tag: crate::code::operand::Reg) {
    // SAFETY: by contract.
    unsafe { r.set(tag, tag::NIL) };
    r.p.catches.set(r.p.catches.get() - 1);
}

arms! {
    /// `catch`, `try`
    fn catch(r, i: Catch) {
        r.set(i.tag(), exception::catch_tag(i.handler()));
        r.p.catches.set(r.p.catches.get() + 1);
        r.next(i)
    }

    /// `try_end`
    fn try_end(r, i: TryEnd) {
        end_handler(r, i.tag());
        r.next(i)
    }

    /// `catch_end`
    fn catch_end(r, i: CatchEnd) {
        end_handler(r, i.tag());
        if *r.x == 0 {
            r.swap_out();
            let class = r.p.x(1).as_atom().expect("a handler is given the class");
            let value = exception::caught(r.p, class, r.p.x(2), r.p.x(3));
            r.p.set_x(0, value);
            r.swap_in();
            r.ensure(0, 1)?;
        }
        r.next(i)
    }

    /// `try_case`
    fn try_case(r, i: TryCase) {
        end_handler(r, i.tag());
        *r.x = *r.x.add(1);
        *r.x.add(1) = *r.x.add(2);
        *r.x.add(2) = *r.x.add(3);
        r.next(i)
    }

    /// `try_case_end`
    fn try_case_end(r, i: TryCaseEnd) {
        tagged_error(r, am::try_clause, r.src(i.value()))
    }

    /// `badmatch`
    fn badmatch(r, i: Badmatch) {
        tagged_error(r, am::badmatch, r.src(i.value()))
    }

    /// `case_end`
    fn case_end(r, i: CaseEnd) {
        tagged_error(r, am::case_clause, r.src(i.value()))
    }

    /// `badrecord`
    fn badrecord(r, i: Badrecord) {
        tagged_error(r, am::badrecord, r.src(i.value()))
    }

    /// `if_end`
    fn if_end(r, _i: IfEnd) {
        r.error(|_| am::if_clause.raw())
    }

    /// `raise`
    fn raise(r, i: Raise) {
        let (trace, value) = (r.src(i.trace()), r.src(i.value()));
        r.swap_out();
        r.p.exception = reraised(RawTerm(trace), RawTerm(value));
        r.raise(Current::Code(r.pc))
    }

    /// `raw_raise`
    fn raw_raise(r, i: RawRaise) {
        r.swap_out();
        let class = r.term(*r.x).as_atom().and_then(Class::from_atom);
        let Some(class) = class else {
            *r.x = am::badarg.raw().0;
            return r.next(i);
        };
        let (value, trace) = (RawTerm(*r.x.add(1)), RawTerm(*r.x.add(2)));
        exception::set_class(r.p, r.term(trace.0), class);
        r.p.exception = Exception {
            class,
            trace,
            ..Exception::error(value)
        };
        r.raise(Current::Code(r.pc))
    }

    /// `build_stacktrace`
    fn build_stacktrace(r, i: BuildStacktrace) {
        r.swap_out();
        let trace = exception::build_stacktrace(r.p, r.p.x(0));
        r.p.set_x(0, trace);
        r.swap_in();
        r.next(i)
    }
}
