//! Stops processes at breakpoints of the debugger, and reads the stacks of processes at rest. Source: `beam_bp.c` and
//! `erl_debugger.c`, OTP 29.
//!
//! A process that comes to a line with a breakpoint calls `erts_internal:breakpoint/4`, which tells the debugger and
//! waits. Its live registers are on the stack meanwhile:
//!
//! ```text
//! stop ▶ │ LineBreakpointEnd │ x(0) … x(live-1) │ the next instruction
//! ```

use crate::code::entry::export;
use crate::code::{machine_code, stubs};
use crate::exec::exception::lookup;
use crate::exec::stack_dump::stub_name;
use crate::heap::Heap;
use crate::loader::module::Mfa;
use crate::process::{Exiting, Process};
use crate::term::{CodeAddress, RawTerm, Term, am, tag};
use crate::trace;

/// How a process goes on that has come to a breakpoint.
pub(super) enum Hit {
    /// With a call of this entry.
    Calls(CodeAddress),
    /// With the next instruction, as if there were none.
    GoesOn,
    /// It exits.
    Exits(Exiting),
}

/// `p`, swapped out, has come to the breakpoint at `pc`, where `live` registers are live.
pub(super) fn hit(p: &mut Process, pc: CodeAddress, live: usize) -> Hit {
    let handler = export(am::erts_internal, am::breakpoint, 4);
    let Some((mfa, place)) = lookup(p, pc).filter(|_| handler.is_defined()) else {
        return Hit::GoesOn;
    };
    let Mfa {
        module,
        function,
        arity,
    } = mfa;
    if module == am::erts_internal && function == am::breakpoint && arity == 4 {
        return Hit::GoesOn;
    }
    let line = place.map_or(0, |(_, line)| line);
    let need = live + 2;
    if (p.free_words() < need || Heap::is_zealous())
        && let Err(exiting) = p.garbage_collect(need, live)
    {
        return Hit::Exits(exiting);
    }
    let frame = p.stop.get().wrapping_sub(need);
    // SAFETY: H1: `need` words are free below the stack's top; I3: `live` registers hold terms.
    unsafe {
        *frame = machine_code::return_word(stubs::breakpoint_end());
        std::ptr::copy_nonoverlapping(p.registers().cast::<u64>(), frame.add(1), live);
        *frame.add(1 + live) = pc.behind().word();
    }
    p.stop.set(frame);
    p.set_x(0, module.term());
    p.set_x(1, function.term());
    p.set_x(2, Term::small(i64::from(arity)));
    p.set_x(3, Term::small(i64::from(line)));
    Hit::Calls(handler.address())
}

/// The debugger lets `p`, swapped out, go on: its registers are as they were. Where it goes on.
pub(super) fn leave(p: &Process) -> CodeAddress {
    let (mut at, x) = (p.stop.get(), p.registers());
    let mut live = 0;
    loop {
        // SAFETY: H1, as drawn above: the registers, and the next instruction behind them.
        let word = RawTerm(unsafe { *at });
        at = at.wrapping_add(1);
        if is_return(word) {
            p.stop.set(at);
            return CodeAddress::of_word(word.0);
        }
        // SAFETY: P2: no more registers than were live.
        unsafe { *x.add(live) = word };
        live += 1;
    }
}

fn is_return(word: RawTerm) -> bool {
    word.is_header() && word != RawTerm::NONE
}

/// Where a frame's code is.
pub(crate) enum Function {
    /// A function, and the line in it, if it is known.
    Known(Mfa, Option<u32>),
    /// The runtime's own code, by its description.
    Own(&'static str),
}

impl Function {
    /// That of the code at `address`.
    fn at(p: &Process, address: CodeAddress) -> Function {
        match lookup(p, address) {
            Some((mfa, place)) => Function::Known(mfa, place.map(|(_, line)| line)),
            None => Function::Own(stub_name(address)),
        }
    }

    /// That of the call that returns to `address`.
    fn that_called(p: &Process, address: CodeAddress) -> Function {
        match lookup(p, address.call()) {
            Some((mfa, place)) => Function::Known(mfa, place.map(|(_, line)| line)),
            None => Function::Own(stub_name(address)),
        }
    }
}

/// The contents of a slot of a frame.
pub(crate) enum Slot<'p> {
    /// A term.
    Value(Term<'p>),
    /// An exception handler.
    Catch(Function),
}

/// A frame of a stack.
pub(crate) struct StackFrame<'p> {
    pub(crate) function: Function,
    /// The next instruction.
    pub(crate) code: u64,
    slots: Vec<Slot<'p>>,
}

impl<'p> StackFrame<'p> {
    fn new(function: Function, code: CodeAddress, slots: Vec<Slot<'p>>) -> StackFrame<'p> {
        let code = code.word();
        StackFrame {
            function,
            code,
            slots,
        }
    }

    /// Its slots, `y(0)` first.
    pub(crate) fn slots(&self) -> &[Slot<'p>] {
        &self.slots
    }
}

/// What a word in a frame is.
///
/// # Safety
/// H1: it stands on the stack of `p`, and is no code address.
unsafe fn slot(p: &Process, word: RawTerm) -> Slot<'_> {
    if word.0 & tag::IMMED2_MASK == tag::CATCH {
        return Slot::Catch(Function::at(p, CodeAddress::of_word(word.0 >> 6)));
    }
    // SAFETY: T1: by contract.
    Slot::Value(unsafe { Term::new(word) })
}

/// The frames of a process at rest, innermost first. Those of tracing are none.
pub(crate) fn stack_frames(p: &Process) -> Vec<StackFrame<'_>> {
    let mut frames = Vec::new();
    let is_outside = p.pc.get().is_null();
    let (mut function, mut code) = match is_outside {
        true => {
            let mfa = crate::exec::exception::not_in_code(p);
            (Function::Known(mfa, None), stubs::spawn_entry())
        }
        false => (Function::at(p, p.pc.get()), p.pc.get()),
    };
    let mut slots = Vec::new();
    let mut at: *const u64 = p.stop.get();
    while at < p.hend().cast_const() {
        // SAFETY: H1: a word of the stack; TF1 of `trace::calls::frame`.
        let (word, traced) = unsafe { (RawTerm(*at), trace::calls::frame::words_at(at)) };
        at = at.wrapping_add(traced.max(1));
        if traced > 0 {
            continue;
        }
        if !is_return(word) {
            // SAFETY: H1: it is no return address.
            slots.push(unsafe { slot(p, word) });
            continue;
        }
        frames.push(StackFrame::new(function, code, std::mem::take(&mut slots)));
        code = machine_code::specific(CodeAddress::of_word(word.0));
        function = Function::that_called(p, code);
    }
    frames.push(StackFrame::new(function, code, slots));
    if is_outside {
        // The call that is to be made returns there.
        let end = stubs::normal_exit();
        frames.push(StackFrame::new(Function::at(p, end), end, Vec::new()));
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn registers_are_on_the_stack_while_a_process_is_stopped() {
        let machine = Machine::new();
        let p = &machine.p;
        let next = 0x1000u64;
        let words = [Term::small(7).raw().0, am::ok.raw().0, next];
        let frame = p.stop.get().wrapping_sub(words.len());
        // SAFETY: H1: the stack is empty, and the heap has room.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), frame, words.len()) };
        p.stop.set(frame);
        assert_eq!(leave(p).word(), next);
        assert_eq!(
            (p.x(0).as_small(), p.x(1).as_atom()),
            (Some(7), Some(am::ok))
        );
        assert_eq!(p.stop.get(), p.hend());
    }
}
