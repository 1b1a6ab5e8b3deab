//! Calls guard BIFs, which cannot collect, and whose exceptions a guard does not want.
#![expect(unsafe_code, reason = "registers are words")]

use crate::code::bif::{Bif, Call};
use crate::code::operand::Reg;
use crate::loader::module::Mfa;
use crate::process::{Exception, Process};
use crate::term::{Atom, RawTerm, Term};

/// Elements of a list whose count, or a look at them, costs a reduction.
pub(crate) const ELEMENTS_PER_REDUCTION: usize = 16;

/// What stack traces call a BIF.
pub(crate) fn mfa_of(row: &Bif) -> Mfa {
    let (module, function) = (Atom::new(row.module), Atom::new(row.function));
    Mfa {
        module,
        function,
        arity: row.arity,
    }
}

/// A guard BIF's value, or its exception stored in the process. Where it does not `raise`, as a guard fails, nothing
/// is stored, and the heap is as it was.
///
/// # Safety
/// T1 holds for `args`; `p` is swapped out.
pub(crate) unsafe fn guard(
    p: &mut Process,
    row: &'static Bif,
    args: &[u64],
    raises: bool,
) -> Result<RawTerm, ()> {
    let raised = {
        let p: &Process = p;
        // SAFETY: T1: by contract; `Term` is a word.
        let terms =
            unsafe { std::slice::from_raw_parts(args.as_ptr().cast::<Term<'_>>(), args.len()) };
        let Call::Guard(call) = row.call else {
            unreachable!("the loader puts no other BIF into a guard")
        };
        match call(p, terms) {
            Ok(value) => return Ok(value.raw()),
            Err(_) if !raises => return Err(()),
            Err(raise) => {
                let mut exception = Exception::from_raise(p, &raise);
                exception.args = p.list(terms).raw();
                exception
            }
        }
    };
    p.exception = raised;
    Err(())
}

/// For a collection after a guard BIF whose result went to register `dst`: how many x registers to keep,
/// so that the result is among them or on the stack.
///
/// # Safety
/// I3: registers below `live` hold terms.
pub(crate) unsafe fn keep(p: &Process, dst: Reg, live: usize) -> usize {
    let index = (dst.0 / 8) as usize;
    if dst.is_y() || index < live {
        return live;
    }
    for i in live..index {
        p.set_x(i, Term::NIL);
    }
    index + 1
}
