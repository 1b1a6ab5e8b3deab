//! Raising exceptions.

use super::{BifResult, Raise, bifs};
use crate::process::{Class, Process};
use crate::term::{Term, am};

bifs! {
    bif erlang:"error"/1 => error_1;
    bif erlang:"error"/2 => error_2;
    bif erlang:"error"/3 => error_3;
    bif erlang:"throw"/1 => throw_1;
    bif erlang:"exit"/1 => exit_1;
    bif erlang:"raise"/3 => raise_3;
}

fn error_1<'p>(_: &'p Process, [reason]: [Term<'p>; 1]) -> BifResult<'p> {
    Err(Raise::ErrorArgs(reason, am::none.term(), Term::NIL))
}

fn error_2<'p>(_: &'p Process, [reason, args]: [Term<'p>; 2]) -> BifResult<'p> {
    Err(Raise::ErrorArgs(reason, args, Term::NIL))
}

/// Source: `error_3()` in `bif.c`: of the options only `{error_info, Map}` counts; with any other, none.
fn error_3<'p>(_: &'p Process, [reason, args, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let info_of = |option: Term<'p>| match option.as_tuple()?.elements() {
        [key, info] if *key == am::error_info && info.as_map().is_some() => Some(*info),
        _ => None,
    };
    let mut options = options.list_iter();
    let info = options.try_fold(Term::NIL, |_, option| info_of(option.ok()?));
    Err(Raise::ErrorArgs(reason, args, info.unwrap_or(Term::NIL)))
}

fn throw_1<'p>(_: &'p Process, [value]: [Term<'p>; 1]) -> BifResult<'p> {
    Err(Raise::Throw(value))
}

fn exit_1<'p>(_: &'p Process, [reason]: [Term<'p>; 1]) -> BifResult<'p> {
    Err(Raise::Exit(reason))
}

/// Returns `badarg` where the class or the stack trace is none. Source: `raise_3()` in `bif.c`.
fn raise_3<'p>(_: &'p Process, [class, reason, trace]: [Term<'p>; 3]) -> BifResult<'p> {
    let class = class
        .as_atom()
        .filter(|&class| Class::from_atom(class).is_some());
    match class {
        Some(class) if is_stacktrace(trace) => Err(Raise::Raise(class, reason, trace)),
        _ => Ok(am::badarg.term()),
    }
}

/// A list of `{M,F,A}`, `{M,F,A,Location}`, `{Fun,Args}` or `{Fun,Args,Location}`.
fn is_stacktrace(trace: Term<'_>) -> bool {
    trace.list_iter().all(|item| {
        let Some(item) = item.ok().and_then(Term::as_tuple) else {
            return false;
        };
        let is_args =
            |term: Term<'_>| term.as_index().is_some() || term.is_nil() || term.as_cons().is_some();
        let is_list = |term: Term<'_>| term.list_iter().all(|element| element.is_ok());
        match *item.elements() {
            [f, args] => f.as_fun().is_some() && is_args(args),
            [f, args, location] if f.as_fun().is_some() => is_args(args) && is_list(location),
            [m, f, args] => m.as_atom().is_some() && f.as_atom().is_some() && is_args(args),
            [m, f, args, location] => {
                m.as_atom().is_some() && f.as_atom().is_some() && is_args(args) && is_list(location)
            }
            _ => false,
        }
    })
}
