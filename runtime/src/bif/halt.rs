//! `erlang:halt/2`, which ends the machine.

use super::{BifResult, Control, badarg, bifs};
use crate::process::{Process, explored};
use crate::sys::halt::{Exit, end, request};
use crate::sys::stderr::complain;
use crate::term::{Term, View, am};

bifs! {
    all again;
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
    crate::trace::totals::halting(p);
    match status.view() {
        // Exit codes are a byte; ERTS hands the rest to the system, which cuts it.
        View::Small(code @ 0..) => request((code & 0xff) as i32),
        View::Big(big) if !big.is_negative() => request((big.limbs()[0] & 0xff) as i32),
        View::Atom(am::abort) => end(Exit::Abort),
        View::Cons(_) | View::Nil => {
            let slogan = slogan(status).ok_or_else(badarg)?;
            complain!("{slogan}");
            request(1);
        }
        _ => return Err(badarg().into()),
    }
    // A run of an exploration has one thread, which still tells what the run was.
    if !explored::is_on() {
        crate::sys::chance::stop_here();
    }
    Err(Control::Wait.into())
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
