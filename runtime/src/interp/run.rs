//! The interpreter's loop, which fetches instructions and runs the arm of each.

use std::mem::MaybeUninit;
use std::ops::ControlFlow;

use super::arms::{
    arith, bifs, calls, data, entries, floats, frames, handlers, order, receive, select, types,
};
use super::regs::{Go, Regs};
use super::slow::{Flow, Slow};
use super::table::all_arms;
use super::{bits, maps, records};
use crate::code::op::Op;
use crate::code::operand::Instruction;
use crate::code::stubs::spawn_entry;
use crate::exec::exception::Current;
use crate::process::{Outcome, Process};
use crate::trace;

/// Float registers there are.
pub(super) const FLOAT_REGISTERS: usize = 1024;

/// Runs `p` until its time is used up, it waits or it exits.
pub(crate) fn run(p: &mut Process) -> Outcome {
    trace::calls::scheduled_in(p);
    let outcome = if p.flags.get().saves_calls {
        run_code::<true>(p)
    } else {
        run_code::<false>(p)
    };
    ended(p, outcome)
}

/// A time slice of `p` has ended so.
pub(crate) fn ended(p: &mut Process, outcome: Outcome) -> Outcome {
    trace::calls::scheduled_out(p);
    if !matches!(outcome, Outcome::Exit(_)) && p.shared().tracee.has(trace::events::RUNNING) {
        trace::events::scheduled_out(p);
    }
    outcome
}

/// What a slow instruction does, the process swapped out for it.
///
/// # Safety
/// I1, I3: the handler is the instruction's, and the process has got to it.
#[inline(always)]
pub(super) unsafe fn slow<I: Instruction>(
    r: &mut Regs<'_>,
    i: I,
    handler: fn(&mut Slow<'_>, I) -> Flow,
) -> Go {
    r.swap_out();
    // SAFETY: by contract; I2: it is swapped out.
    let flow = handler(&mut unsafe { Slow::new(r.p) }, i);
    match flow {
        Flow::Next => {
            r.swap_in();
            r.next(i)
        }
        Flow::Jump(address) => {
            r.swap_in();
            r.jump(address)
        }
        Flow::Raise => r.raise(Current::Code(r.pc)),
        Flow::Exit(exiting) => ControlFlow::Break(Outcome::Exit(exiting)),
    }
}

/// The loop itself. Starts at the process's `pc`, with its live registers in place. There is another one for
/// processes that save their calls, so that the others need not ask.
fn run_code<const SAVES: bool>(p: &mut Process) -> Outcome {
    let mut floats = [const { MaybeUninit::<f64>::uninit() }; FLOAT_REGISTERS];
    let pc = match p.pc.get() {
        pc if pc.is_null() => spawn_entry(),
        pc => pc,
    };
    let mut r = Regs::new(p, floats.as_mut_ptr().cast(), pc, false);
    // SAFETY: I1, I2, I3: the instruction at `pc`, whose registers the compiler and the loader have filled.
    unsafe {
        'fetch: loop {
            debug_assert!(
                !r.p.is_exiting(),
                "a process that exits runs no instruction"
            );
            let mut word = *r.pc.code();
            'exec: loop {
                macro_rules! arm {
                    ($arm:expr) => {{
                        let instruction = Instruction::at(r.pc, word);
                        match $arm(&mut r, instruction) {
                            ControlFlow::Continue(()) => continue 'fetch,
                            ControlFlow::Break(outcome) => return outcome,
                        }
                    }};
                }
                macro_rules! row {
                    (arm $($arm:ident)::+) => {
                        arm!($($arm)::+)
                    };
                    (saves $($arm:ident)::+) => {
                        arm!($($arm)::+::<SAVES>)
                    };
                    (slow $($arm:ident)::+) => {
                        arm!(|r: &mut Regs<'_>, i| slow(r, i, $($arm)::+))
                    };
                }
                macro_rules! dispatch {
                    (() $($kind:ident $op:ident $($arm:ident)::+;)*) => {
                        // I1: the low half is an instruction's number.
                        match std::mem::transmute::<u16, Op>(word as u16) {
                            Op::Breakpoint => {
                                r.swap_out();
                                match trace::calls::hit(r.p, r.pc) {
                                    Ok(original) => word = original,
                                    Err(exiting) => return Outcome::Exit(exiting),
                                }
                                r.swap_in();
                                continue 'exec;
                            }
                            $(Op::$op => row!($kind $($arm)::+),)*
                        }
                    };
                }
                all_arms!(dispatch!());
            }
        }
    }
}
