//! Calls BIFs from code, and handles the ways in which they end.
#![expect(unsafe_code, reason = "a call's arguments are registers")]

use super::exception::Current;
use super::guard::mfa_of;
use super::raise::raise;
use super::{call, dirty};
use crate::code::bif::{Bif, Call};
use crate::code::machine_code;
use crate::code::stubs::for_each_return;
use crate::process::{Control, Exception, Exiting, Leave, NativePc, Next, Outcome, Process, Saved};
use crate::term::{CodeAddress, RawTerm, Term};

/// How a BIF call ended.
pub(crate) enum BifEnd {
    /// With its result in `x(0)`.
    Return,
    /// By calling the function with this entry, its arguments in the registers.
    Go(CodeAddress),
    /// By calling the function with this entry in the process's next time slice.
    Trap(CodeAddress),
    /// By going on at this address, with nothing to return to here.
    Jump(CodeAddress),
    /// With its result in `x(0)`, the time slice given up.
    YieldAfter,
    /// Waiting, to go on where the BIF has said.
    Sleep,
    /// To be called again later.
    Again(Outcome),
    /// With the end of the process.
    Exit(Exiting),
}

/// Calls a BIF whose arguments are in the registers. `caller` is the calling instruction, where there is
/// one: for the stack trace.
pub(crate) fn call_bif(
    p: &mut Process,
    row: &'static Bif,
    at: CodeAddress,
    caller: Option<CodeAddress>,
) -> BifEnd {
    let arity = usize::from(row.arity);
    let next = match row.call {
        Call::Exclusive(call) => exclusive(p, call, caller),
        Call::Guard(_) | Call::Plain(_) | Call::Dirty(..) => return call_plain(p, row, at, caller),
    };
    match next {
        Next::Return => after_bif(p, BifEnd::Return, 1),
        Next::Yield => after_bif(p, BifEnd::YieldAfter, 1),
        Next::Jump => BifEnd::Jump(p.pc.get()),
        Next::Call => BifEnd::Go(p.pc.get()),
        Next::Wait => BifEnd::Again(Outcome::Wait),
        Next::Again => BifEnd::Again(Outcome::Yield),
        Next::Sleep => BifEnd::Sleep,
        Next::Exit(exiting) => BifEnd::Exit(exiting),
        Next::Raise => {
            // Who raises has left the arguments where they were.
            if p.exception.from_bif && p.exception.args == RawTerm::NONE {
                let args: Vec<Term<'_>> = (0..arity).map(|i| p.x(i)).collect();
                p.exception.args = p.list(&args).raw();
            }
            raise_from_bif(p, row, at, caller)
        }
    }
}

/// Calls a BIF that cannot collect; here, too, `pc` tells meanwhile where it was called.
fn call_plain(
    p: &mut Process,
    row: &'static Bif,
    at: CodeAddress,
    caller: Option<CodeAddress>,
) -> BifEnd {
    p.pc.set(caller.unwrap_or(CodeAddress::NULL));
    let reds = p.fcalls.get();
    let (ended, live) = {
        let p: &Process = p;
        // SAFETY: P2, I3: a call's arguments are live; `Term` is a word.
        let args = unsafe {
            std::slice::from_raw_parts(p.registers().cast::<Term<'_>>(), row.arity.into())
        };
        let result = match row.call {
            Call::Dirty(dirty, body) => {
                let mut call = |holds| dirty::briefly_on(p, dirty, body, args, holds);
                match row.around {
                    Some(around) => around(p, args, &mut call),
                    None => call(None),
                }
            }
            // Not by `Call::plain`: to take the result out of its `Option` waits for what the BIF has just written.
            Call::Plain(call) => call(p, args),
            Call::Guard(call) => call(p, args).map_err(Leave::Raise),
            Call::Exclusive(_) => unreachable!("it has the process to itself"),
        };
        match &result {
            Ok(value) => {
                p.set_x(0, *value);
                (Ok(BifEnd::Return), 1)
            }
            Err(Leave::Control(control)) => {
                if let Control::Dirty(_) = control {
                    p.native_pc.set(NativePc {
                        pc: CodeAddress::of_word(std::ptr::from_ref(row) as u64),
                        native: caller.and_then(machine_code::native).unwrap_or(0),
                        ..NativePc::NONE
                    });
                }
                if matches!(control, Control::Wait | Control::Dirty(_)) {
                    // It is made again, and charged for then. Whether it waits is chance, and so is how often it leaves.
                    p.forget_reds(reds);
                }
                let (end, live) = controlled(p, control);
                (Ok(end), live)
            }
            // Read where the BIF has written it: a copy would wait for it.
            Err(Leave::Raise(raise)) => {
                let mut exception = Exception::from_raise(p, raise);
                if exception.from_bif {
                    exception.args = p.list(args).raw();
                }
                (Err(exception), 0)
            }
        }
    };
    match ended {
        Ok(ended) if live > 0 => after_bif(p, ended, live),
        Ok(ended) => ended,
        Err(exception) => {
            p.exception = exception;
            raise_from_bif(p, row, at, caller)
        }
    }
}

/// What becomes of a call that has not ended, and how many arguments of the call that it goes on with are live: what
/// the BIF has built so far is in them.
fn controlled(p: &Process, control: &Control<'_>) -> (BifEnd, usize) {
    let end = match *control {
        Control::Trap(to, ref args) => {
            if p.flags.get().saves_calls {
                p.save_call(Saved::Call(to));
            }
            let entry = call::trap(p, to, args).entry;
            return (BifEnd::Trap(entry), args.len());
        }
        Control::TrapTo(address) => BifEnd::Trap(address),
        Control::Wait => BifEnd::Again(Outcome::Wait),
        Control::Dirty(leaves) => BifEnd::Again(Outcome::Dirty(leaves)),
        Control::Yield => BifEnd::Again(Outcome::Yield),
        Control::YieldWith(ref args) => {
            for (i, arg) in args.iter().enumerate() {
                p.set_x(i, *arg);
            }
            BifEnd::Again(Outcome::Yield)
        }
        Control::Return(value) => {
            p.set_x(0, value);
            return (BifEnd::YieldAfter, 1);
        }
    };
    (end, 0)
}

/// Calls a BIF that has the process to itself; meanwhile `pc` tells where it was called, if in code.
fn exclusive(p: &mut Process, call: fn(&mut Process) -> Next, caller: Option<CodeAddress>) -> Next {
    p.pc.set(caller.unwrap_or(CodeAddress::NULL));
    call(p)
}

/// A BIF's end is a safepoint: its result in `x(0)`, or the `live` arguments of the call that it ends
/// with, are all that is live beside the stack.
pub(super) fn after_bif(p: &mut Process, ended: BifEnd, live: usize) -> BifEnd {
    if p.wants_collection()
        && let Err(exiting) = p.garbage_collect(0, live)
    {
        return BifEnd::Exit(exiting);
    }
    ended
}

/// The call that the function on top of the stack was made by, for BIFs that code does not call itself.
fn return_address(p: &Process) -> Option<CodeAddress> {
    let mut found = None;
    for_each_return(p, |address| {
        found = Some(address.call());
        false
    });
    found
}

fn raise_from_bif(
    p: &mut Process,
    row: &'static Bif,
    at: CodeAddress,
    caller: Option<CodeAddress>,
) -> BifEnd {
    let current = if p.exception.from_bif {
        Current::Function(mfa_of(row), caller)
    } else {
        Current::Code(caller.unwrap_or_else(|| return_address(p).unwrap_or(at)))
    };
    match raise(p, current) {
        Ok(handler) => BifEnd::Jump(handler),
        Err(exiting) => BifEnd::Exit(exiting),
    }
}
