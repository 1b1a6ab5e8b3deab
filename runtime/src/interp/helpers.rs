//! The arms as functions that compiled code calls.
//!
//! What has no template, and what a template leaves to others, is done by the instruction's arm, the process swapped
//! out. Instructions that stand outside of compiled functions (entries of BIFs, places that trace frames return to) are
//! run here, one after the other, until the process gets to a function's own code.

use std::mem::{MaybeUninit, offset_of};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::arms::{
    arith, bifs, calls, data, entries, floats, frames, handlers, order, receive, select, types,
};
use super::regs::{Go, Regs};
use super::run::{FLOAT_REGISTERS, slow};
use super::table::all_arms;
use super::{bits, maps, records};
use crate::code::machine_code;
use crate::code::op::{Op, entry as head, read};
use crate::code::operand::Instruction;
use crate::code::published::{Thread, own_thread};
use crate::code::stubs;
use crate::exec::bif::{BifEnd, call_bif};
use crate::exec::nif::{self, Env};
use crate::process::{NativePc, Outcome, Process};
use crate::sys::crash;
use crate::term::{CodeAddress, RawTerm};
use crate::trace;

/// What compiled code needs besides the process, for a time slice.
pub(crate) struct Slice {
    /// Float registers, which never live across a call.
    floats: [MaybeUninit<f64>; FLOAT_REGISTERS],
    /// How the time slice has ended.
    outcome: Outcome,
    /// Bytes to this scheduler's number in a counter of calls.
    counts: u64,
    /// Compiles the function that a specific instruction is of; gives the instruction's compiled form.
    compile: fn(CodeAddress) -> u64,
    /// Where the thread says what native code it runs.
    running: *const AtomicPtr<crash::Native>,
    /// What others see of the thread.
    thread: &'static Thread,
}

impl Slice {
    /// Offset of where that is said, in bytes.
    pub(crate) const RUNNING: usize = offset_of!(Slice, running);

    /// Offset of what others see of the thread, in bytes.
    pub(crate) const THREAD: usize = offset_of!(Slice, thread);

    /// Offset of the float registers, in bytes.
    pub(crate) const FLOATS: usize = offset_of!(Slice, floats);

    /// Offset of the bytes to this scheduler's number in a counter, in bytes.
    pub(crate) const COUNTS: usize = offset_of!(Slice, counts);

    /// A slice in which nothing has happened yet.
    pub(crate) fn new(compile: fn(CodeAddress) -> u64) -> Slice {
        Slice {
            floats: [const { MaybeUninit::uninit() }; FLOAT_REGISTERS],
            outcome: Outcome::Yield,
            counts: trace::costs::count::offset(),
            compile,
            running: crash::running(),
            thread: own_thread(),
        }
    }

    /// How it has ended.
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The time slice ends so: where compiled code goes on.
    fn leave(&mut self, outcome: Outcome) -> u64 {
        self.outcome = outcome;
        machine_code::common().leave
    }
}

/// A helper's answer: the process goes on with the next instruction.
pub(crate) const NEXT: u64 = 0;
/// A helper's answer: the instruction's test has failed.
pub(crate) const FAIL: u64 = 1;

/// Runs the arm of an instruction, the process swapped out. The answer is [`NEXT`], [`FAIL`], or the address at which
/// compiled code goes on.
pub(crate) type Helper = unsafe extern "C" fn(&mut Process, CodeAddress, &mut Slice) -> u64;

/// The address that follows an instruction's arm, or how the time slice has ended.
type Step = Result<Next, Outcome>;

/// Where an arm has led.
#[derive(Clone, Copy)]
struct Next {
    pc: CodeAddress,
    /// It is a function's entry.
    is_entry: bool,
}

/// Runs an arm.
///
/// # Safety
/// I1, I3: the instruction at `pc` begins with `word`, and `p`, swapped out, has got to it.
#[inline(always)]
unsafe fn run_arm<I: Instruction>(
    p: &mut Process,
    pc: CodeAddress,
    word: u64,
    slice: &mut Slice,
    arm: impl FnOnce(&mut Regs<'_>, I) -> Go,
) -> Step {
    let mut r = Regs::new(p, slice.floats.as_mut_ptr().cast(), pc, true);
    // SAFETY: by contract.
    match arm(&mut r, unsafe { I::at(pc, word) }) {
        ControlFlow::Continue(()) => {
            r.swap_out();
            Ok(Next {
                pc: r.pc,
                is_entry: r.at_entry,
            })
        }
        ControlFlow::Break(outcome) => Err(outcome),
    }
}

/// The first word of the instruction at `pc`, whatever a breakpoint has made of it.
///
/// # Safety
/// I1: an instruction is there.
#[inline(always)]
pub(crate) unsafe fn word_at(pc: CodeAddress) -> u64 {
    // SAFETY: by contract.
    unsafe {
        let word = *pc.code();
        match word as u16 == Op::Breakpoint as u16 {
            true => trace::breakpoint::original(pc),
            false => word,
        }
    }
}

/// Calls the arm of a row.
macro_rules! step {
    ($p:ident, $pc:ident, $word:ident, $slice:ident, arm $op:ident $($arm:ident)::+) => {
        run_arm($p, $pc, $word, $slice, |r: &mut Regs<'_>, i: read::$op| $($arm)::+(r, i))
    };
    ($p:ident, $pc:ident, $word:ident, $slice:ident, saves $op:ident $($arm:ident)::+) => {
        match $p.flags.get().saves_calls {
            false => run_arm($p, $pc, $word, $slice, |r: &mut Regs<'_>, i: read::$op| $($arm)::+::<false>(r, i)),
            true => run_arm($p, $pc, $word, $slice, |r: &mut Regs<'_>, i: read::$op| $($arm)::+::<true>(r, i)),
        }
    };
    ($p:ident, $pc:ident, $word:ident, $slice:ident, slow $op:ident $($arm:ident)::+) => {
        run_arm($p, $pc, $word, $slice, |r: &mut Regs<'_>, i: read::$op| slow(r, i, $($arm)::+))
    };
}

/// No arm: nothing of compiled code calls it.
unsafe extern "C" fn none(_: &mut Process, _: CodeAddress, _: &mut Slice) -> u64 {
    unreachable!("a breakpoint is no instruction of a compiled function")
}

macro_rules! helpers {
    (() $($kind:ident $op:ident $($arm:ident)::+;)*) => {{
        let mut all: [Helper; Op::ALL.len()] = [none; Op::ALL.len()];
        $({
            unsafe extern "C" fn helper(p: &mut Process, pc: CodeAddress, slice: &mut Slice) -> u64 {
                // SAFETY: the contract of helpers: I1, I3.
                unsafe {
                    let word = word_at(pc);
                    let i = read::$op::at(pc, word);
                    match step!(p, pc, word, slice, $kind $op $($arm)::+) {
                        Ok(to) if to.pc == i.next() => NEXT,
                        Ok(to) if to.pc == i.second_next() => FAIL,
                        Ok(to) => go_on(p, to, slice),
                        Err(outcome) => slice.leave(outcome),
                    }
                }
            }
            all[Op::$op as usize] = helper;
        })*
        all
    }};
}

/// The helpers, by the number of the instruction.
pub(crate) static HELPERS: [Helper; Op::ALL.len()] = all_arms!(helpers!());

/// Does the instruction stand outside of compiled functions?
const fn is_outside(op: Op) -> bool {
    matches!(
        op,
        Op::ErrorHandler
            | Op::BifEntry
            | Op::NifEntry
            | Op::ApplyEntry
            | Op::ApplyFunEntry
            | Op::SpawnEntry
            | Op::NormalExit
            | Op::TraceReturn
            | Op::LineBreakpointEnd
            | Op::JumpTarget
    )
}

/// The compiled form of where `p`, swapped out, goes on: what stands outside of compiled functions is run first.
///
/// # Safety
/// I1, I3: `p` has got to the instruction there, or it is a return address off the stack.
unsafe fn go_on(p: &mut Process, mut next: Next, slice: &mut Slice) -> u64 {
    loop {
        let pc = next.pc;
        if machine_code::is_native(pc) {
            return pc.word();
        }
        // SAFETY: by contract.
        let mut word = unsafe { *pc.code() };
        if word as u16 == Op::Breakpoint as u16 {
            match trace::calls::hit(p, pc) {
                Ok(original) => word = original,
                Err(exiting) => return slice.leave(Outcome::Exit(exiting)),
            }
        }
        macro_rules! outside {
            (() $($kind:ident $op:ident $($arm:ident)::+;)*) => {
                // SAFETY: by contract.
                unsafe {
                    match Op::of(word) {
                        $(Op::$op if const { is_outside(Op::$op) } => {
                            step!(p, pc, word, slice, $kind $op $($arm)::+)
                        })*
                        _ => return compiled(next, slice),
                    }
                }
            };
        }
        let step: Step = all_arms!(outside!());
        match step {
            Ok(to) => next = to,
            Err(outcome) => return slice.leave(outcome),
        }
    }
}

/// The compiled form of an instruction in a function's own code.
///
/// # Safety
/// I1: there is one.
unsafe fn compiled(next: Next, slice: &Slice) -> u64 {
    if next.is_entry {
        // SAFETY: by contract; MC1.
        let body = unsafe { &*next.pc.code().offset(head::BODY).cast::<AtomicU64>() };
        let body = body.load(Ordering::Acquire);
        if body != 0 {
            return body;
        }
    }
    machine_code::native(next.pc).unwrap_or_else(|| (slice.compile)(next.pc))
}

/// The call of the function with this entry by `p`, swapped out: where compiled code goes on.
///
/// # Safety
/// I1, I3: it is an entry, and its arguments are in their registers.
pub(crate) unsafe extern "C" fn enter(
    p: &mut Process,
    entry: CodeAddress,
    slice: &mut Slice,
) -> u64 {
    let next = Next {
        pc: entry,
        is_entry: true,
    };
    // SAFETY: by contract.
    unsafe { go_on(p, next, slice) }
}

/// The call of the function with this entry, whose body is a NIF, by `p`, swapped out. The answer is [`NEXT`] where it
/// returns, or the address at which compiled code goes on.
///
/// # Safety
/// I1, I3: it is such an entry, and its arguments are in their registers.
pub(crate) unsafe extern "C" fn call_nif(
    p: &mut Process,
    entry: CodeAddress,
    slice: &mut Slice,
) -> u64 {
    p.resumed_call.set(CodeAddress::NULL);
    let ended = nif::call_nif(p, entry);
    // SAFETY: by contract.
    unsafe { nif_ended(p, entry, slice, ended) }
}

/// The end of a call that compiled code has made itself: the NIF, called with the environment at `env`, has returned
/// `result`.
///
/// # Safety
/// As of [`call_nif`]; the environment is not used afterwards.
pub(crate) unsafe extern "C" fn end_nif(
    p: &mut Process,
    entry: CodeAddress,
    slice: &mut Slice,
    env: *mut Env,
    result: RawTerm,
) -> u64 {
    // SAFETY: by contract.
    unsafe {
        let ended = nif::end_call(p, entry, env.read(), result);
        nif_ended(p, entry, slice, ended)
    }
}

/// # Safety
/// As of [`call_nif`]: the call has ended so.
unsafe fn nif_ended(p: &mut Process, entry: CodeAddress, slice: &mut Slice, ended: BifEnd) -> u64 {
    if let BifEnd::Return = ended {
        return NEXT;
    }
    // SAFETY: by contract.
    unsafe {
        let end = |r: &mut Regs<'_>, i: read::NifEntry| bifs::end_nif(r, i, ended);
        match run_arm(p, entry, *entry.code(), slice, end) {
            Ok(to) => go_on(p, to, slice),
            Err(outcome) => slice.leave(outcome),
        }
    }
}

/// Calls of BIFs whose templates have looked at what the arms look at first.
macro_rules! bif_calls {
    ($($(#[doc = $doc:literal])* $name:ident $op:ident $arm:ident $cost:literal;)*) => { $(
        $(#[doc = $doc])*
        ///
        /// # Safety
        /// I1, I3: `p`, swapped out, has got to such an instruction.
        pub(crate) unsafe extern "C" fn $name(
            p: &mut Process,
            pc: CodeAddress,
            slice: &mut Slice,
        ) -> u64 {
            // SAFETY: by contract.
            unsafe {
                let word = word_at(pc);
                let i = read::$op::at(pc, word);
                let is_traced = i.export().is_bif_traced.load(Ordering::Relaxed);
                let step = if is_traced && !trace::calls::counts(p, i.export().address()) {
                    let arm = |r: &mut Regs<'_>, i: read::$op| bifs::$arm::<false>(r, i);
                    run_arm(p, pc, word, slice, arm)
                } else {
                    p.fcalls.set(p.fcalls.get() - $cost);
                    let ended = call_bif(p, i.bif(), pc, Some(pc));
                    if let BifEnd::Return = ended {
                        return NEXT;
                    }
                    let end = |r: &mut Regs<'_>, i: read::$op| bifs::end_call(r, i, i.export(), ended, $cost);
                    run_arm(p, pc, word, slice, end)
                };
                match step {
                    Ok(to) => go_on(p, to, slice),
                    Err(outcome) => slice.leave(outcome),
                }
            }
        }
    )* };
}

bif_calls! {
    /// `CallBif`: the answer is [`NEXT`], or the address at which compiled code goes on.
    call_light_bif CallBif call_bif_light 1;
    /// `CallHbif`, as [`call_light_bif`].
    call_heavy_bif CallHbif call_bif_heavy 0;
}

/// As [`go_on`], of what may be an entry or not.
///
/// # Safety
/// Its contract.
unsafe fn go(p: &mut Process, pc: CodeAddress, slice: &mut Slice) -> u64 {
    let next = Next {
        pc,
        is_entry: false,
    };
    // SAFETY: by contract.
    unsafe { go_on(p, next, slice) }
}

/// `p`, swapped out, has returned to this place in place of a return address.
///
/// # Safety
/// MC2: it is one.
pub(crate) unsafe extern "C" fn returned(
    p: &mut Process,
    to: CodeAddress,
    slice: &mut Slice,
) -> u64 {
    // SAFETY: by contract: an instruction that the runtime made.
    unsafe { go(p, machine_code::specific(to), slice) }
}

/// `p`, swapped out, goes on in the native function that has this entry.
///
/// # Safety
/// P3: it has stopped there.
pub(crate) unsafe extern "C" fn go_on_in(
    p: &mut Process,
    entry: CodeAddress,
    slice: &mut Slice,
) -> u64 {
    // SAFETY: by contract.
    unsafe { go(p, entry, slice) }
}

/// The call of the function with this entry has used up the time slice of `p`, swapped out.
///
/// # Safety
/// I1: a function's entry.
pub(crate) unsafe extern "C" fn yield_at_entry(
    p: &mut Process,
    entry: CodeAddress,
    slice: &mut Slice,
) -> u64 {
    // SAFETY: by contract.
    let arity = head::arity(unsafe { *entry.code().offset(head::ARITY) });
    p.pc.set(entry);
    p.live.set(arity.into());
    slice.leave(Outcome::Yield)
}

/// A return to this address has used up the time slice of `p`, swapped out.
///
/// # Safety
/// MC2: it is one off the stack.
pub(crate) unsafe extern "C" fn yield_at_return(
    p: &mut Process,
    to: CodeAddress,
    slice: &mut Slice,
) -> u64 {
    p.pc.set(machine_code::specific(to));
    p.live.set(1);
    slice.leave(Outcome::Yield)
}

/// Where `p` goes on in a new time slice.
///
/// # Safety
/// P3: its `pc` is where it has stopped.
pub(crate) unsafe fn resume(p: &mut Process, slice: &mut Slice) -> u64 {
    let pc = match p.pc.get() {
        pc if pc.is_null() => stubs::spawn_entry(),
        pc => pc,
    };
    // SAFETY: by contract.
    let is_breakpoint = || unsafe { *pc.code() } as u16 == Op::Breakpoint as u16;
    let known = p.native_pc.get();
    if known.pc == pc && known.epoch == machine_code::epoch() && !is_breakpoint() {
        return known.native;
    }
    let epoch = machine_code::epoch();
    // SAFETY: by contract.
    let word = unsafe { *pc.code() } as u16;
    if word == Op::BifEntry as u16 || word == Op::NifEntry as u16 {
        // Others see by the thread's frame what is called.
        return machine_code::common().resume;
    }
    // SAFETY: by contract.
    let native = unsafe { go(p, pc, slice) };
    if machine_code::native(pc) == Some(native) {
        p.native_pc.set(NativePc { pc, native, epoch });
    }
    native
}

pub(crate) use super::run::ended;

/// A float that an operator gives: nothing is collected until the process looks for room.
pub(crate) extern "C" fn float_beside(p: &Process, value: f64) -> RawTerm {
    p.float_beside(value).raw()
}

/// Takes `len` bits of a match context as a bitstring: there is room for it.
///
/// # Safety
/// T1: a match context of `p`, swapped out, which has `len` bits.
pub(crate) unsafe extern "C" fn take_bits(p: &Process, context: RawTerm, len: usize) -> RawTerm {
    // SAFETY: by contract.
    unsafe { bits::take_bits(p, context, len) }
}

/// As [`take_bits`], but the context stays where it is.
///
/// # Safety
/// As [`take_bits`].
pub(crate) unsafe extern "C" fn look_at_bits(p: &Process, context: RawTerm, len: usize) -> RawTerm {
    // SAFETY: by contract.
    unsafe { bits::look_at_bits(p, context, len) }
}

/// Collects so that `need` words are free, `live` registers kept: 0, or the address at which the process leaves.
pub(crate) extern "C" fn collect(
    p: &mut Process,
    need: usize,
    live: usize,
    slice: &mut Slice,
) -> u64 {
    match p.garbage_collect(need, live) {
        Ok(()) => NEXT,
        Err(exiting) => slice.leave(Outcome::Exit(exiting)),
    }
}
