//! The registers of the interpreter's loop, and the operations of instructions on them.

use std::ops::ControlFlow;

use crate::code::Export;
use crate::code::bif::Bif;
use crate::code::machine_code;
use crate::code::op::{Op, entry as head};
use crate::code::operand::{Instruction, Reg, Src};
use crate::exec::call::{Called, Ready};
use crate::exec::exception::Current;
use crate::exec::guard::{guard, keep, mfa_of};
use crate::exec::raise::raise;
use crate::heap::{Heap, RESERVED_WORDS};
use crate::process::{Exception, Outcome, Process, Saved, X_REGISTERS};
use crate::term::{CodeAddress, RawTerm, Term, tag};
use crate::trace;

/// What follows an instruction: the next one, or the end of the time slice.
pub(super) type Go = ControlFlow<Outcome>;

/// The process with the instruction that `pc` has follows.
pub(super) const GO: Go = ControlFlow::Continue(());

/// A process that runs. Program counter, heap top, stack top and reductions are taken from it for the loop, so that the
/// compiler keeps them in machine registers; they are swapped out to the process around everything that is not the loop
/// itself (I2).
///
/// Every method is inlined: the loop's registers are nowhere in memory.
pub(super) struct Regs<'p> {
    pub(super) p: &'p mut Process,
    pub(super) x: *mut u64,
    /// Float registers never live across a call or a time slice's end, and are written before they are read.
    pub(super) f: *mut f64,
    pub(super) pc: CodeAddress,
    pub(super) htop: *mut u64,
    pub(super) stop: *mut u64,
    pub(super) fcalls: i64,
    /// Compiled code has called this instruction's arm. It never changes, so the loop has nothing of it.
    is_native: bool,
    /// What `pc` has come to is a function's entry.
    pub(super) at_entry: bool,
}

impl<'p> Regs<'p> {
    #[inline(always)]
    pub(super) fn new(
        p: &'p mut Process,
        f: *mut f64,
        pc: CodeAddress,
        is_native: bool,
    ) -> Regs<'p> {
        Regs {
            is_native,
            at_entry: false,
            x: p.registers().cast(),
            f,
            pc,
            htop: p.htop.get(),
            stop: p.stop.get(),
            fcalls: p.fcalls.get(),
            p,
        }
    }

    #[inline(always)]
    pub(super) fn swap_out(&self) {
        self.p.htop.set(self.htop);
        self.p.stop.set(self.stop);
        self.p.fcalls.set(self.fcalls);
    }

    #[inline(always)]
    pub(super) fn swap_in(&mut self) {
        self.htop = self.p.htop.get();
        self.stop = self.p.stop.get();
        self.fcalls = self.p.fcalls.get();
    }

    /// The word that a register holds.
    ///
    /// # Safety
    /// I1, P2: an instruction's register.
    #[inline(always)]
    pub(super) unsafe fn get(&self, reg: Reg) -> u64 {
        // SAFETY: by contract.
        unsafe { *reg.address(self.x, self.stop) }
    }

    /// Sets a register.
    ///
    /// # Safety
    /// I1, P2: an instruction's register.
    #[inline(always)]
    pub(super) unsafe fn set(&mut self, reg: Reg, word: u64) {
        // SAFETY: by contract.
        unsafe { *reg.address(self.x, self.stop) = word };
    }

    /// The word of a source.
    ///
    /// # Safety
    /// I1, P2: an instruction's operand.
    #[inline(always)]
    pub(super) unsafe fn src(&self, src: Src) -> u64 {
        match src.reg() {
            // SAFETY: by contract.
            Some(reg) => unsafe { self.get(reg) },
            None => src.0,
        }
    }

    /// The term of a word.
    ///
    /// # Safety
    /// T1: the word is a term of this process, and nothing is collected while it is in hand.
    #[inline(always)]
    pub(super) unsafe fn term(&self, word: u64) -> Term<'_> {
        // SAFETY: by contract.
        unsafe { Term::new(RawTerm(word)) }
    }

    /// Goes on behind the instruction.
    #[inline(always)]
    pub(super) fn next(&mut self, i: impl Instruction) -> Go {
        self.pc = i.next();
        GO
    }

    /// Goes on at an address.
    #[inline(always)]
    pub(super) fn jump(&mut self, address: CodeAddress) -> Go {
        self.pc = address;
        GO
    }

    /// Goes on behind the instruction, or at its label.
    #[inline(always)]
    pub(super) fn test(&mut self, i: impl Instruction, fail: CodeAddress, holds: bool) -> Go {
        if holds { self.next(i) } else { self.jump(fail) }
    }

    /// Ends the time slice; `live` registers are live.
    #[inline(always)]
    pub(super) fn pause(&mut self, outcome: Outcome, live: usize) -> Go {
        self.swap_out();
        self.p.pc.set(match self.is_native {
            // What a call returns to is known by its compiled form.
            true => machine_code::specific(self.pc),
            false => self.pc,
        });
        self.p.live.set(live as u32);
        ControlFlow::Break(outcome)
    }

    /// As [`Regs::pause`], to do this instruction again: a function that begins with it is not called again.
    #[inline(always)]
    pub(super) fn pause_again(&mut self, outcome: Outcome, live: usize) -> Go {
        trace::calls::call_again(self.p, self.pc);
        self.pause(outcome, live)
    }

    /// A call of a function by its entry. It costs a reduction, and so does the return, as under ERTS's JIT. The call
    /// that uses the last one up yields before it runs.
    ///
    /// # Safety
    /// I1: a function's entry.
    #[inline(always)]
    pub(super) unsafe fn dispatch(&mut self, entry: CodeAddress) -> Go {
        self.pc = entry;
        self.at_entry = true;
        self.fcalls -= 1;
        if self.fcalls > 0 {
            return GO;
        }
        // SAFETY: by contract.
        let arity = head::arity(unsafe { *entry.code().offset(head::ARITY) });
        self.pause(Outcome::Yield, usize::from(arity))
    }

    /// A BIF traps: the process goes on with this function in its next time slice, as under ERTS's JIT.
    ///
    /// # Safety
    /// I1: a function's entry.
    #[inline(always)]
    pub(super) unsafe fn trap(&mut self, entry: CodeAddress) -> Go {
        self.pc = entry;
        // SAFETY: by contract.
        let (first, arity) = unsafe { (*entry.code(), *entry.code().offset(head::ARITY)) };
        // A BIF that is called by its entry costs what its work costs, and no call.
        self.fcalls -= i64::from(first as u16 != Op::BifEntry as u16);
        self.pause(Outcome::Yield, usize::from(head::arity(arity)))
    }

    /// Returns to an address.
    #[inline(always)]
    pub(super) fn return_to(&mut self, address: CodeAddress) -> Go {
        self.pc = address;
        self.fcalls -= 1;
        if self.fcalls >= 0 {
            return GO;
        }
        self.pause(Outcome::Yield, 1)
    }

    /// A call returns behind the instruction.
    ///
    /// # Safety
    /// H1: the stack has room for a word.
    #[inline(always)]
    pub(super) unsafe fn push_return(&mut self, i: impl Instruction) {
        // SAFETY: by contract.
        unsafe {
            self.stop = self.stop.sub(1);
            *self.stop = match self.is_native {
                true => machine_code::return_word(i.next()),
                false => i.next().word(),
            };
        }
    }

    /// Takes the return address off the stack.
    ///
    /// # Safety
    /// H1: it is on top.
    #[inline(always)]
    pub(super) unsafe fn pop_return(&mut self) -> CodeAddress {
        // SAFETY: by contract.
        unsafe {
            let address = CodeAddress::of_word(*self.stop);
            self.stop = self.stop.add(1);
            address
        }
    }

    /// Drops words of the frame.
    ///
    /// # Safety
    /// H1: it has them.
    #[inline(always)]
    pub(super) unsafe fn drop_frame(&mut self, words: usize) {
        // SAFETY: by contract.
        self.stop = unsafe { self.stop.add(words) };
    }

    /// Puts a word on the heap.
    ///
    /// # Safety
    /// H1: the compiler has asked for the room.
    #[inline(always)]
    pub(super) unsafe fn put(&mut self, word: u64) {
        // SAFETY: by contract.
        unsafe {
            *self.htop = word;
            self.htop = self.htop.add(1);
        }
    }

    /// Calls what `ready` says, swapped out still, with nothing of this instruction to return to.
    ///
    /// # Safety
    /// I1: `ready` was made just now.
    #[inline(always)]
    pub(super) unsafe fn call<const SAVES: bool>(&mut self, ready: Ready) -> Go {
        self.save_call::<SAVES>(ready.export);
        self.swap_in();
        // SAFETY: by contract.
        unsafe { self.dispatch(ready.entry) }
    }

    /// What is called through an export is saved, if the process wants that.
    #[inline(always)]
    pub(super) fn save_call<const SAVES: bool>(&mut self, export: Option<&'static Export>) {
        if SAVES && let Some(export) = export {
            self.p.save_call(Saved::Call(export));
        }
    }

    /// The exception stored in the process, swapped out, is raised here.
    #[inline(always)]
    pub(super) fn raise(&mut self, current: Current) -> Go {
        match raise(self.p, current) {
            Ok(handler) => {
                self.swap_in();
                self.jump(handler)
            }
            Err(exiting) => ControlFlow::Break(Outcome::Exit(exiting)),
        }
    }

    /// Raises an error of this reason, made of the process swapped out.
    #[inline(always)]
    pub(super) fn error(&mut self, reason: impl FnOnce(&Process) -> RawTerm) -> Go {
        self.swap_out();
        self.p.exception = Exception::error(reason(self.p));
        self.raise(Current::Code(self.pc))
    }

    /// The function with this entry raises an error of this reason, with its arguments; swapped out.
    #[inline(always)]
    pub(super) fn error_of_function(&mut self, called: Called, reason: RawTerm) -> Go {
        let args: Vec<Term<'_>> = (0..usize::from(called.arity))
            .map(|n| self.p.x(n))
            .collect();
        let args = self.p.list(&args).raw();
        self.p.exception = Exception {
            args,
            ..Exception::error(reason)
        };
        self.raise(Current::Function(called.mfa(), None))
    }

    /// Collects if fewer than `need` words are free.
    #[inline(always)]
    pub(super) fn ensure(&mut self, need: usize, live: usize) -> Go {
        let end = self.htop as usize + (need + RESERVED_WORDS) * 8;
        if (self.stop as usize) < end || Heap::is_zealous() {
            return self.collect(need, live);
        }
        GO
    }

    #[inline(always)]
    fn collect(&mut self, need: usize, live: usize) -> Go {
        self.swap_out();
        if let Err(exiting) = self.p.garbage_collect(need, live) {
            return ControlFlow::Break(Outcome::Exit(exiting));
        }
        self.swap_in();
        GO
    }

    /// The result of a guard BIF, swapped out still. Then is a safepoint, which only tests collect at.
    ///
    /// # Safety
    /// I1, I3, P2: the instruction's register, and as many live ones.
    #[inline(always)]
    pub(super) unsafe fn guard_result(
        &mut self,
        i: impl Instruction,
        value: RawTerm,
        live: usize,
        dst: Reg,
    ) -> Go {
        // SAFETY: by contract.
        unsafe { self.set(dst, value.0) };
        if Heap::is_zealous() && live < X_REGISTERS {
            // SAFETY: by contract.
            let kept = unsafe { keep(self.p, dst, live) };
            if let Err(exiting) = self.p.garbage_collect(0, kept) {
                return ControlFlow::Break(Outcome::Exit(exiting));
            }
        }
        self.swap_in();
        self.next(i)
    }

    /// A guard BIF with these arguments: its result, or its label, or an exception.
    ///
    /// # Safety
    /// T1: the arguments are terms; I1, I3, P2: the instruction's operands.
    #[inline(always)]
    pub(super) unsafe fn guard_bif(
        &mut self,
        i: impl Instruction,
        guarded: Guarded,
        args: &[u64],
    ) -> Go {
        let Guarded {
            bif,
            fail,
            live,
            dst,
        } = guarded;
        self.swap_out();
        // SAFETY: by contract.
        match unsafe { guard(self.p, bif, args, fail.is_null()) } {
            // SAFETY: by contract.
            Ok(value) => unsafe { self.guard_result(i, value, live, dst) },
            Err(()) if !fail.is_null() => {
                self.swap_in();
                self.jump(fail)
            }
            Err(()) => self.raise(Current::Function(mfa_of(bif), Some(self.pc))),
        }
    }
}

/// What a call of a guard BIF needs besides its arguments.
#[derive(Clone, Copy)]
pub(super) struct Guarded {
    pub(super) bif: &'static Bif,
    /// Where it goes on if the guard fails; null: the exception is raised.
    pub(super) fail: CodeAddress,
    pub(super) live: usize,
    pub(super) dst: Reg,
}

/// A [`Guarded`] of an instruction's operands of these names.
macro_rules! guarded {
    ($i:expr) => {
        guarded!($i, $i.live())
    };
    ($i:expr, $live:expr) => {
        $crate::interp::regs::Guarded {
            bif: $i.bif(),
            fail: $i.fail(),
            live: $live,
            dst: $i.dst(),
        }
    };
}
pub(super) use guarded;

/// The header of what a word points to, where it is boxed; else what is no thing's header.
///
/// # Safety
/// T1: the word is a term.
#[inline(always)]
pub(super) unsafe fn header(word: u64) -> u64 {
    if word & tag::PRIMARY_MASK == tag::BOXED {
        // SAFETY: by contract.
        unsafe { *(word.wrapping_sub(tag::BOXED) as *const u64) }
    } else {
        u64::MAX
    }
}

/// Are both words small integers?
#[inline(always)]
pub(super) fn are_small(left: u64, right: u64) -> bool {
    left & right & 0xF == tag::SMALL
}

/// Are these the same term?
///
/// # Safety
/// T1: both words are terms.
#[inline]
pub(super) unsafe fn eq_exact(left: u64, right: u64) -> bool {
    let (left, right) = (RawTerm(left), RawTerm(right));
    if left.is_immed() || right.is_immed() {
        return left == right;
    }
    // SAFETY: by contract.
    unsafe { crate::term::compare::eq_exact(Term::new(left), Term::new(right)) }
}
