//! Raises the exception that is stored in a process: finds its handler and fills the registers for it.
#![expect(unsafe_code, reason = "a handler's arguments are registers")]

use super::exception::{self, Current};
use crate::process::probe::probes;
use crate::process::{Exception, Exiting, Process};
use crate::term::{CodeAddress, RawTerm, Term};

/// An exception raised again with the trace it was caught with: a saved one keeps its class and place.
pub(crate) fn reraised(trace: RawTerm, value: RawTerm) -> Exception {
    // SAFETY: T1: a register's term.
    let class = unsafe { exception::class_of(Term::new(trace)) };
    Exception {
        class,
        trace,
        ..Exception::error(value)
    }
}

/// Raises the exception stored in `p`: saves its trace, cuts the stack to the innermost handler and
/// fills the registers for it.
///
/// # Errors
/// When there is no handler.
pub(crate) fn raise(p: &mut Process, current: Current) -> Result<CodeAddress, Exiting> {
    exception::save_trace(p, current);
    probes().unwinding(p);
    if p.catches.get() == 0 {
        return Err(p.uncaught());
    }
    let handler = exception::unwind(p).ok_or_else(|| p.uncaught())?;
    let (class, value, trace) = (p.exception.class, p.exception.value, p.exception.trace);
    let x = p.registers();
    // SAFETY: P2: four registers there are.
    unsafe {
        *x = RawTerm::NONE;
        *x.add(1) = class.atom().raw();
        *x.add(2) = value;
        *x.add(3) = trace;
    }
    p.exception = Exception::default();
    Ok(handler)
}
