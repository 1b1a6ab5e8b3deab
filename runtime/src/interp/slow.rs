//! Slow instructions, whose work outweighs a call. Each is a function of the process and of the instruction.

use crate::code::operand::{Reg, Src};
use crate::process::{Exception, Exiting, Process};
use crate::term::{Atom, CodeAddress, RawTerm, Term};

/// How a slow instruction ends.
pub(crate) enum Flow {
    /// With the next instruction.
    Next,
    /// At this address.
    Jump(CodeAddress),
    /// With the exception that was stored in the process.
    Raise,
    /// With the end of the process.
    Exit(Exiting),
}

/// The process, swapped out, for which a slow instruction is run.
pub(crate) struct Slow<'a> {
    pub(crate) p: &'a mut Process,
}

impl<'a> Slow<'a> {
    /// # Safety
    /// I1, I2: `p` has got to the instruction whose operands are asked for, and is swapped out; its live registers hold
    /// terms.
    pub(crate) unsafe fn new(p: &'a mut Process) -> Slow<'a> {
        Slow { p }
    }

    /// The value of a source.
    #[inline]
    pub(crate) fn src(&self, src: Src) -> Term<'_> {
        match src.reg() {
            // SAFETY: I2, P2: a register the compiler reads is live.
            Some(reg) => unsafe { Term::new(*self.register(reg)) },
            // SAFETY: T1: a constant operand is an immediate or a literal.
            None => unsafe { Term::new(RawTerm(src.0)) },
        }
    }

    /// Sets a destination register.
    #[inline]
    pub(crate) fn set_dst(&self, dst: Reg, term: Term<'_>) {
        debug_assert!(
            self.p.owns(term) || self.p.mailbox.is_examining(),
            "a register holds the process's own terms"
        );
        self.set_dst_raw(dst, term.raw());
    }

    /// As [`Slow::set_dst`], for words made before a call that ended a borrow.
    #[inline]
    pub(crate) fn set_dst_raw(&self, dst: Reg, word: RawTerm) {
        // SAFETY: I1, P2: a destination operand is a register.
        unsafe { *self.register(dst) = word };
    }

    #[inline]
    fn register(&self, reg: Reg) -> *mut RawTerm {
        let x = self.p.registers().cast();
        reg.address(x, self.p.stop.get()).cast()
    }

    /// Jumps to a label; with none there, raises `error:reason`.
    pub(crate) fn fail(&mut self, label: CodeAddress, reason: Atom) -> Flow {
        self.fail_with(label, |_| reason.term().raw())
    }

    /// As [`Slow::fail`], with a reason that is built only where it is needed.
    pub(crate) fn fail_with(
        &mut self,
        label: CodeAddress,
        reason: impl FnOnce(&Process) -> RawTerm,
    ) -> Flow {
        if !label.is_null() {
            return Flow::Jump(label);
        }
        let reason = reason(self.p);
        self.p.exception = Exception::error(reason);
        Flow::Raise
    }

    /// Goes on, or jumps to a label; with none there, raises `error:reason`.
    pub(crate) fn test(&mut self, holds: bool, label: CodeAddress, reason: Atom) -> Flow {
        match holds {
            true => Flow::Next,
            false => self.fail(label, reason),
        }
    }

    /// Collects if fewer than `need` words are free, keeping `x(0)` to `x(live-1)`. Terms in hand end
    /// here: sources are read again behind it.
    ///
    /// # Errors
    /// When the collection kills the process: return it as it is.
    pub(crate) fn ensure_heap(&mut self, need: usize, live: usize) -> Result<(), Flow> {
        if self.p.free_words() >= need && !self.p.has_many_binaries() {
            return Ok(());
        }
        self.p.garbage_collect(need, live).map_err(Flow::Exit)
    }

    /// Puts `word` in `x(live)`, above the live registers, so that a collection with one register
    /// more keeps it.
    pub(crate) fn set_scratch(&self, live: usize, word: RawTerm) {
        debug_assert!(live < crate::process::X_REGISTERS, "registers are fewer");
        // SAFETY: P2: there are more registers than any instruction calls live.
        unsafe { *self.p.registers().add(live) = word };
    }
}

/// The atom that a constant operand is.
#[inline]
pub(crate) fn atom(constant: RawTerm) -> Option<Atom> {
    Term::immed(constant).as_atom()
}
