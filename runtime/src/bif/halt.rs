//! `erlang:halt/2`, which ends the machine.

use super::{BifResult, Control, badarg, bifs};
use crate::process::order::answer;
use crate::process::order::director::stop_here;
use crate::process::{Process, Raise};
use crate::sys::halt::{Exit, end};
use crate::sys::stderr::complain;
use crate::term::{Term, View, am};

bifs! {
    all ordered;
    bif erlang:"halt"/2 => halt_2;
}

/// Source: `halt_2()` in `bif.c`.
fn halt_2<'p>(p: &'p Process, [status, options]: [Term<'p>; 2]) -> BifResult<'p> {
    for option in options.list_iter() {
        let pair = option
            .ok()
            .and_then(Term::as_tuple)
            .filter(|t| t.arity() == 2)
            .ok_or_else(badarg)?;
        let key = pair.get(0).as_atom().ok_or_else(badarg)?;
        match key {
            am::flush => drop(pair.get(1).as_bool().ok_or_else(badarg)?),
            am::flush_timeout => {
                let ok = pair.get(1).as_index().is_some() || pair.get(1) == am::infinity;
                if !ok {
                    return Err(badarg().into());
                }
            }
            _ => return Err(badarg().into()),
        }
    }
    let (exit, slogan) = exit_of(status)?;
    answer::record_halt(p, status)?;
    crate::trace::totals::halting(p);
    if let Some(slogan) = slogan {
        complain!("{slogan}");
    }
    end(exit);
    stop_here();
    Err(Control::Wait.into())
}

/// How the emulator is to end with this status, and what is said of a crash.
fn exit_of(status: Term<'_>) -> Result<(Exit, Option<String>), Raise<'static>> {
    Ok(match status.view() {
        // Exit codes are a byte; ERTS hands the rest to the system, which cuts it.
        View::Small(code @ 0..) => (Exit::Code((code & 0xff) as i32), None),
        View::Big(big) if !big.is_negative() => (Exit::Code((big.limbs()[0] & 0xff) as i32), None),
        View::Atom(am::abort) => (Exit::Abort, None),
        View::Cons(_) | View::Nil => (Exit::Code(1), Some(slogan(status).ok_or_else(badarg)?)),
        _ => return Err(badarg()),
    })
}

/// The text of a crash, at most 1023 characters.
fn slogan(text: Term<'_>) -> Option<String> {
    let chars = text.list_iter().take(1023).map(|c| {
        c.ok()
            .and_then(Term::as_small)
            .and_then(|c| u32::try_from(c).ok())
            .and_then(char::from_u32)
    });
    chars.collect()
}
