//! `erts_debug:dirty_cpu/2`, `dirty_io/2` and `dirty/3`, by which OTP's tests have processes run on dirty schedulers.
//! Source: `dirty_test()` in `beam_debug.c`, OTP 29.

use std::time::Duration;

use super::{BifResult, Raise, badarg, bifs};
use crate::exec::dirty::{self, Body};
use crate::process::{Dirty, Process, send_to};
use crate::sys::chance;
use crate::sys::chance::clock::monotonic_ns;
use crate::term::atom::atom;
use crate::term::{Atom, Term};

bifs! {
    all again;
    bif erts_debug:"dirty_cpu"/2 => dirty_cpu_2;
    bif erts_debug:"dirty_io"/2 => dirty_io_2;
    bif erts_debug:"dirty"/3 => dirty_3;
}

fn dirty_cpu_2<'p>(p: &'p Process, args: [Term<'p>; 2]) -> BifResult<'p> {
    dirty::on(p, Dirty::Cpu, run_cpu, &args)
}

fn dirty_io_2<'p>(p: &'p Process, args: [Term<'p>; 2]) -> BifResult<'p> {
    dirty::on(p, Dirty::Io, run_io, &args)
}

/// The first argument says where it begins.
fn dirty_3<'p>(p: &'p Process, [on, what, of]: [Term<'p>; 3]) -> BifResult<'p> {
    match on.as_atom().map(Atom::name) {
        Some("normal") => dirty::on_ordinary(p, run_normal, &[what, of]),
        Some("dirty_cpu") => dirty::on(p, Dirty::Cpu, run_cpu, &[what, of]),
        Some("dirty_io") => dirty::on(p, Dirty::Io, run_io, &[what, of]),
        _ => Err(badarg().into()),
    }
}

fn run_normal<'p>(p: &'p Process, args: &[Term<'p>]) -> BifResult<'p> {
    run(p, None, args)
}

fn run_cpu<'p>(p: &'p Process, args: &[Term<'p>]) -> BifResult<'p> {
    run(p, Some(Dirty::Cpu), args)
}

fn run_io<'p>(p: &'p Process, args: &[Term<'p>]) -> BifResult<'p> {
    run(p, Some(Dirty::Io), args)
}

fn body(on: Option<Dirty>) -> Body {
    match on {
        None => run_normal,
        Some(Dirty::Cpu) => run_cpu,
        Some(Dirty::Io) => run_io,
    }
}

/// Does what the first argument names with the second one.
fn run<'p>(p: &'p Process, on: Option<Dirty>, args: &[Term<'p>]) -> BifResult<'p> {
    let &[what, of] = args else {
        return Err(badarg().into());
    };
    let ok = || atom("ok");
    Ok(match what.as_atom().ok_or_else(badarg)?.name() {
        "scheduler" if of.same(atom("type")) => kind(),
        "error" => return Err(error(of).into()),
        "copy" => (0..1000).fold(Term::NIL, |rest, _| p.cons(p.copy_in_all(of), rest)),
        "send" => tell(p, of, "ok"),
        "wait" => {
            wait(of.as_index().ok_or_else(badarg)?, on == Some(Dirty::Cpu));
            ok()
        }
        "reschedule" => return reschedule(p, on, what, of),
        "ready_wait6_done" => {
            tell(p, of, "ready");
            wait(6000, false);
            tell(p, of, "done")
        }
        "alive_waitexiting" => {
            outlive(p, on, of)?;
            wait(1000, false);
            // Memory can be had still.
            p.tuple(&[ok(), p.binary(&[0x12; 80_000])])
        }
        "alive_waitexitingonly" => {
            outlive(p, on, of)?;
            ok()
        }
        _ => return Err(badarg().into()),
    })
}

/// The kind of this thread.
fn kind() -> Term<'static> {
    atom(match dirty::kind() {
        None => "normal",
        Some(Dirty::Cpu) => "dirty_cpu",
        Some(Dirty::Io) => "dirty_io",
    })
}

/// The errors that have a name in ERTS; `badarg` for others.
fn error(reason: Term<'_>) -> Raise<'static> {
    let known = ["notsup", "undef", "badarith", "noproc", "system_limit"];
    match reason.as_atom().map(Atom::name) {
        Some(name) if known.contains(&name) => Raise::Error(atom(name)),
        _ => badarg(),
    }
}

/// Sends `{Tag, self()}`; a receiver that does not exist is no error.
fn tell<'p>(p: &'p Process, to: Term<'p>, tag: &'static str) -> Term<'p> {
    let message = p.tuple(&[atom(tag), p.pid().term()]);
    let _ = send_to(p, to, message);
    atom("ok")
}

/// Waits, at work or asleep. Where time is virtual, only a caller that looks at the clock makes it pass.
fn wait(milliseconds: usize, at_work: bool) {
    if !at_work && !chance::form().is_virtual() {
        std::thread::sleep(Duration::from_millis(milliseconds as u64));
        return;
    }
    let end = monotonic_ns().saturating_add(milliseconds as u64 * 1_000_000);
    while monotonic_ns() < end {
        std::thread::yield_now();
    }
}

/// Says that it is alive, and waits until it is not.
fn outlive(p: &Process, on: Option<Dirty>, to: Term<'_>) -> Result<(), Raise<'static>> {
    if dirty::kind().is_none() {
        // Here nobody could have it exit.
        return Err(badarg());
    }
    let message = p.tuple(&[atom("alive"), p.pid().term()]);
    let _ = send_to(p, to, message);
    while !p.shared().orphans_call() {
        match on {
            Some(Dirty::Io) => wait(100, false),
            _ => std::thread::yield_now(),
        }
    }
    Ok(())
}

/// Goes on with a number that is smaller by two, until that is 0: on other schedulers for each one that 4 divides.
fn reschedule<'p>(
    p: &'p Process,
    on: Option<Dirty>,
    what: Term<'p>,
    left: Term<'p>,
) -> BifResult<'p> {
    let left = left
        .as_small()
        .filter(|left| *left >= 0)
        .ok_or_else(badarg)?;
    if left == 0 {
        return Ok(atom("ok"));
    }
    let next = match on {
        _ if left % 4 != 0 => on,
        Some(Dirty::Cpu) => Some(Dirty::Io),
        Some(Dirty::Io) => None,
        None => Some(Dirty::Cpu),
    };
    dirty::continue_on(p, next, body(next), &[what, Term::small(left - 2)])
}
