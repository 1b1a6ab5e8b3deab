//! Which functions are native code, as profiles and recordings tell it. The runtime looks at the entry of a function that
//! is traced, at a call of it; nobody guesses by names.
#![expect(unsafe_code, reason = "entries are reached by address")]

use std::sync::atomic::{AtomicU16, Ordering};

use beamline_formats::profile::Native;

use super::breakpoint::Breakpoint;
use super::call::mfa_at;
use super::{meter, record};
use crate::code::bif;
use crate::code::op::Op;
use crate::code::op::entry as head;
use crate::loader::module::Mfa;
use crate::process::{Dirty, Process};
use crate::term::CodeAddress;

/// The kind of native code that runs on dirty schedulers of this kind.
pub(super) fn of_dirty(dirty: Dirty) -> Native {
    match dirty {
        Dirty::Cpu => Native::DirtyCpu,
        Dirty::Io => Native::DirtyIo,
    }
}

/// What a traced function was at its last call, so that each change of it is recorded once: a function becomes native
/// when its module opens a library.
#[derive(Default)]
pub(super) struct Nature {
    /// The instruction at its entry.
    op: AtomicU16,
}

impl Nature {
    /// Looks at the function with the entry `pc`, whose first word is `original` in truth: what kind of native code it
    /// has become, if it is any and was not known to be.
    #[inline(always)]
    pub(super) fn look(&self, pc: CodeAddress, original: u64) -> Option<Native> {
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

/// `p` asks something of a port. Where a driver in C does it, `mfa` gives the BIF that calls it: from now on that is native
/// code, and its time the driver's.
#[inline]
pub(crate) fn drives(p: &Process, mfa: impl FnOnce() -> Option<Mfa>) {
    if (record::is_named() || p.meters.is_some())
        && let Some(mfa) = mfa()
    {
        note_native(p, mfa, Native::Ordinary);
    }
}

#[cold]
fn note_native(p: &Process, mfa: Mfa, native: Native) {
    record::function_is_native(mfa, native);
    for meter in meter::all_of(p) {
        if let Some(profile) = &meter.session.profile {
            profile.note_native(mfa, native);
        }
    }
}

/// The native function at whose entry `p` stays, if it is at one.
pub(super) fn current(p: &Process) -> Option<Mfa> {
    let pc = p.pc.get();
    if pc.is_null() {
        return None;
    }
    // SAFETY: I1: an instruction's word.
    let mut word = unsafe { *pc.code() };
    if word as u16 == Op::Breakpoint as u16 {
        // SAFETY: B1 of `breakpoint`: this word stands at an entry.
        let breakpoint = unsafe { &*(*pc.code().offset(head::BREAKPOINT) as *const Breakpoint) };
        word = breakpoint.original();
    }
    let is_entry = [Op::NifEntry as u16, Op::BifEntry as u16].contains(&(word as u16));
    is_entry.then(|| mfa_at(pc))
}
