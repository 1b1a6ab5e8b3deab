//! Which functions are native code, as profiles and recordings tell it. The runtime looks at the entry of a function that
//! is traced, at a call of it; nobody guesses by names.
#![expect(unsafe_code, reason = "entries are reached by address")]

use std::sync::atomic::{AtomicU16, Ordering};

use beamline_formats::profile::Native;

use crate::code::bif;
use crate::code::op::Op;
use crate::code::op::entry as head;
use crate::loader::module::Mfa;
use crate::process::Dirty;
use crate::term::{CodeAddress, RawTerm, Term};

/// The kind of native code that runs on dirty schedulers of this kind.
pub(in crate::trace) fn of_dirty(dirty: Dirty) -> Native {
    match dirty {
        Dirty::Cpu => Native::DirtyCpu,
        Dirty::Io => Native::DirtyIo,
    }
}

/// What a traced function was at its last call, so that each change of it is recorded once: a function becomes native
/// when its module opens a library.
#[derive(Default)]
pub(in crate::trace) struct Nature {
    /// The instruction at its entry.
    op: AtomicU16,
}

impl Nature {
    /// Looks at the function with the entry `pc`, whose first word is `original` in truth: what kind of native code it
    /// has become, if it is any and was not known to be.
    #[inline(always)]
    pub(in crate::trace) fn look(&self, pc: CodeAddress, original: u64) -> Option<Native> {
        let op = original as u16;
        if self.op.load(Ordering::Relaxed) == op {
            return None;
        }
        self.op.store(op, Ordering::Relaxed);
        native_at(pc, op)
    }
}

/// What kind of native code the function with the entry `pc` is, where `op` stands in truth.
#[cold]
fn native_at(pc: CodeAddress, op: u16) -> Option<Native> {
    if op == Op::NifEntry as u16 {
        // SAFETY: C3, I1: the head of such a function names its NIF.
        let nif = unsafe { &*head::nif(*pc.code().offset(head::ARITY)) };
        return Some(nif.dirty.map_or(Native::Ordinary, of_dirty));
    }
    let mfa = mfa_at(pc);
    if op != Op::BifEntry as u16 {
        return None;
    }
    bif::nif(mfa.module, mfa.function, mfa.arity).map(|row| match row.call {
        bif::Call::Dirty(dirty, _) => of_dirty(dirty),
        _ => Native::Ordinary,
    })
}

/// The function with the entry `pc`.
pub(in crate::trace) fn mfa_at(pc: CodeAddress) -> Mfa {
    // SAFETY: B1: `pc` is a function's entry; the head stands before it.
    let word = |at| unsafe { *pc.code().offset(at) };
    let atom = |at| {
        let term = Term::immed(RawTerm(word(at)));
        term.as_atom().expect("a head names its function")
    };
    Mfa {
        module: atom(head::MODULE),
        function: atom(head::FUNCTION),
        arity: head::arity(word(head::ARITY)),
    }
}
