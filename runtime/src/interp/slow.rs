//! Slow instructions: those whose work outweighs a call. Each is a function of the process and the
//! instruction's operands, which stand as words behind it (see `code::op`).

use crate::code::op::Y_BIT;
use crate::process::{Class, Exiting, Process};
use crate::term::{Atom, RawTerm, Term};

/// How a slow instruction ends.
pub(crate) enum Flow {
    /// With the next instruction.
    Next,
    /// At this address.
    Jump(*const u64),
    /// With the exception that was stored in the process.
    Raise,
    /// With the end of the process.
    Exit(Exiting),
}

/// A slow instruction being run: the process, swapped out, and the operands.
pub(crate) struct Slow<'a> {
    pub(crate) p: &'a mut Process,
    args: *const u64,
}

impl<'a> Slow<'a> {
    /// # Safety
    /// I1: `args` are the operands of a slow instruction that the loader emitted; I2: `p` is swapped
    /// out, and its live registers hold terms.
    pub(crate) unsafe fn new(p: &'a mut Process, args: *const u64) -> Slow<'a> {
        Slow { p, args }
    }

    /// Operand `index` as it stands: a number, a count, an atom's term word, a fun or BIF entry.
    #[inline]
    pub(crate) fn raw(&self, index: usize) -> u64 {
        // SAFETY: I1: handlers ask for the operands that their instruction has.
        unsafe { *self.args.add(index) }
    }

    /// Operand `index` as a size.
    #[inline]
    pub(crate) fn size(&self, index: usize) -> usize {
        self.raw(index) as usize
    }

    /// Operand `index` as an atom.
    #[inline]
    pub(crate) fn atom(&self, index: usize) -> Option<Atom> {
        Term::immed(RawTerm(self.raw(index))).as_atom()
    }

    /// The value of source operand `index`.
    #[inline]
    pub(crate) fn src(&self, index: usize) -> Term<'_> {
        let word = self.raw(index);
        if word & 3 == 0 {
            // SAFETY: I2, P2: a register the compiler reads is live.
            unsafe { Term::new(*self.register(word)) }
        } else {
            // SAFETY: T1: a constant operand is an immediate or a literal.
            unsafe { Term::new(RawTerm(word)) }
        }
    }

    /// Sets the destination register of operand `index`.
    #[inline]
    pub(crate) fn set_dst(&self, index: usize, term: Term<'_>) {
        debug_assert!(
            self.p.owns(term) || self.p.mailbox.is_examining(),
            "a register holds the process's own terms"
        );
        self.set_dst_raw(index, term.raw());
    }

    /// As [`Slow::set_dst`], for words made before a call that ended a borrow.
    #[inline]
    pub(crate) fn set_dst_raw(&self, index: usize, word: RawTerm) {
        // SAFETY: I1, P2: a destination operand is a register.
        unsafe { *self.register(self.raw(index)) = word };
    }

    #[inline]
    fn register(&self, code: u64) -> *mut RawTerm {
        let base = if code & Y_BIT == 0 {
            self.p.registers().cast::<u8>()
        } else {
            self.p.stop.get().cast::<u8>().wrapping_sub(Y_BIT as usize)
        };
        base.wrapping_add(code as usize).cast()
    }

    /// Jumps to the label of operand `index`; with none there, raises `error:reason`.
    pub(crate) fn fail(&mut self, index: usize, reason: Atom) -> Flow {
        self.fail_with(index, |_| reason.term().raw())
    }

    /// As [`Slow::fail`], with a reason that is built only where it is needed.
    pub(crate) fn fail_with(
        &mut self,
        index: usize,
        reason: impl FnOnce(&Process) -> RawTerm,
    ) -> Flow {
        let label = self.raw(index);
        if label != 0 {
            return Flow::Jump(label as *const u64);
        }
        let reason = reason(self.p);
        self.p.store_exception(Class::Error, reason);
        self.p.exception.from_bif = false;
        Flow::Raise
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
