//! `erlang:halt/2`, which ends the machine.

use super::{BifResult, Control, badarg, badopt, bifs};
use crate::process::order::answer;
use crate::process::order::director::stop_here;
use crate::process::{Process, Raise};
use crate::sys::halt::{Exit, Flush, end};
use crate::sys::stderr::complain;
use crate::term::{Term, View, am};

bifs! {
    all ordered;
    bif erlang:"halt"/2 => halt_2;
}

/// Source: `halt_2()` in `bif.c`.
fn halt_2<'p>(p: &'p Process, [status, options]: [Term<'p>; 2]) -> BifResult<'p> {
    let flush = flush_of(options)?;
    let (exit, slogan) = exit_of(status)?;
    // Source: only a halt with an exit code calls `erts_halt()`.
    let flush = match exit {
        Exit::Code(_) if slogan.is_none() => flush,
        _ => Flush::No,
    };
    answer::record_halt(p, status)?;
    crate::trace::totals::halting(p);
    if let Some(slogan) = slogan {
        complain!("{slogan}");
    }
    end(exit, flush);
    stop_here();
    Err(Control::Wait.into())
}

/// Whether options say that the end waits, and for how long.
fn flush_of(options: Term<'_>) -> Result<Flush, Raise<'static>> {
    let (mut is_on, mut limit) = (true, None);
    for option in options.list_iter() {
        let pair = option.ok().and_then(Term::as_tuple);
        let pair = pair.filter(|pair| pair.arity() == 2).ok_or_else(badopt)?;
        let value = pair.get(1);
        match pair.get(0).as_atom() {
            Some(am::flush) => is_on = value.as_bool().ok_or_else(badopt)?,
            Some(am::flush_timeout) if value == am::infinity => limit = None,
            Some(am::flush_timeout) => {
                let milliseconds = value.as_u64().and_then(|n| u32::try_from(n).ok());
                limit = Some(milliseconds.ok_or_else(badopt)?);
            }
            _ => return Err(badopt()),
        }
    }
    Ok(match is_on {
        true => Flush::Within(limit),
        false => Flush::No,
    })
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
