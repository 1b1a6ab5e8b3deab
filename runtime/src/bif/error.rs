//! The BIFs that raise exceptions.

use super::{BifResult, Raise, bifs};
use crate::process::{Class, Process};
use crate::term::{Term, am};

bifs! {
    all own;
    bif erlang:"error"/1 => error_1;
    bif erlang:"error"/2 => error_2;
    bif erlang:"error"/3 => error_3;
    bif erlang:"throw"/1 => throw_1;
    bif erlang:"exit"/1 => exit_1;
    bif erlang:"raise"/3 => raise_3;
}

fn error_1<'p>(_: &'p Process, [reason]: [Term<'p>; 1]) -> BifResult<'p> {
    Err(Raise::ErrorArgs(reason, am::none.term(), Term::NIL).into())
}

/// Words of the tuples in which ERTS keeps reason, arguments and information.
const PAIR_WORDS: usize = 3;
const TRIPLE_WORDS: usize = 4;

fn error_2<'p>(p: &'p Process, [reason, args]: [Term<'p>; 2]) -> BifResult<'p> {
    p.filler(PAIR_WORDS);
    Err(Raise::ErrorArgs(reason, arguments(args), Term::NIL).into())
}

/// What is no list tells no arguments.
fn arguments(args: Term<'_>) -> Term<'_> {
    if args.is_nil() || args.as_cons().is_some() {
        args
    } else {
        am::none.term()
    }
}

/// Source: `error_3()` in `bif.c`: of the options only `{error_info, Map}` counts; with any other, none.
fn error_3<'p>(p: &'p Process, [reason, args, options]: [Term<'p>; 3]) -> BifResult<'p> {
    let info_of = |option: Term<'p>| match option.as_tuple()?.elements() {
        [key, info] if *key == am::error_info && info.as_map().is_some() => Some(*info),
        _ => None,
    };
    let mut options = options.list_iter();
    let info = options.try_fold(Term::NIL, |_, option| info_of(option.ok()?));
    let info = info.unwrap_or(Term::NIL);
    p.filler(if info.is_nil() {
        PAIR_WORDS
    } else {
        TRIPLE_WORDS
    });
    Err(Raise::ErrorArgs(reason, arguments(args), info).into())
}

fn throw_1<'p>(_: &'p Process, [value]: [Term<'p>; 1]) -> BifResult<'p> {
    Err(Raise::Throw(value).into())
}

fn exit_1<'p>(_: &'p Process, [reason]: [Term<'p>; 1]) -> BifResult<'p> {
    Err(Raise::Exit(reason).into())
}

/// Returns `badarg` where the class or the stack trace is none. Source: `raise_3()` in `bif.c`.
fn raise_3<'p>(p: &'p Process, [class, reason, trace]: [Term<'p>; 3]) -> BifResult<'p> {
    let class = class.as_atom().and_then(Class::from_atom);
    match (class, stacktrace(p, trace)) {
        (Some(class), Some(trace)) => Err(Raise::Raise(class, reason, trace).into()),
        _ => Ok(am::badarg.term()),
    }
}

/// A list of `{M,F,A}`, `{M,F,A,Location}`, `{Fun,Args}` or `{Fun,Args,Location}`, as a stack trace has
/// it: no longer than one, and with locations. `None` if it is none. Source: `raise_3()` in `bif.c`.
fn stacktrace<'p>(p: &'p Process, trace: Term<'p>) -> Option<Term<'p>> {
    let is_list = |term: Term<'_>| term.is_nil() || term.as_cons().is_some();
    let mut items = Vec::new();
    let mut changed = false;
    for item in trace.list_iter() {
        let item = item.ok()?;
        let parts = item.as_tuple()?;
        let is_fun = parts.arity() > 0 && parts.get(0).as_fun().is_some();
        let is_name = |at| parts.get(at).as_atom().is_some();
        items.push(match *parts.elements() {
            [fun, args] if is_fun => {
                changed = true;
                p.tuple(&[fun, args, Term::NIL])
            }
            [_, _, location] if is_fun && is_list(location) => item,
            [module, function, args] if is_name(0) && is_name(1) => {
                changed = true;
                p.tuple(&[module, function, args, Term::NIL])
            }
            [_, _, _, location] if is_name(0) && is_name(1) && is_list(location) => item,
            _ => return None,
        });
    }
    let depth = crate::exec::exception::backtrace_depth().max(1);
    changed |= items.len() > depth;
    items.truncate(depth);
    Some(if changed { p.list(&items) } else { trace })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::exception::backtrace_depth;

    fn list_of<'p>(p: &'p Process, item: &[Term<'p>]) -> Term<'p> {
        p.list(&[p.tuple(item)])
    }

    #[test]
    fn stack_traces_that_may_be_raised() {
        let p = &Process::new(233);
        let (a, nil, one) = (am::error.term(), Term::NIL, Term::small(1));
        for (trace, expect) in [
            (nil, Some("[]")),
            (list_of(p, &[a, a, one]), Some("[{error,error,1,[]}]")),
            (
                list_of(p, &[a, a, a, nil]),
                Some("[{error,error,error,[]}]"),
            ),
            (list_of(p, &[a, a, one, a]), None),
            (list_of(p, &[a, one, one]), None),
            (list_of(p, &[a, one]), None),
            (list_of(p, &[]), None),
            (a, None),
            (p.list(&[a]), None),
        ] {
            let shown = stacktrace(p, trace).map(|trace| trace.display().to_string());
            assert_eq!(shown.as_deref(), expect, "{}", trace.display());
        }
        let long = p.list(&vec![p.tuple(&[a, a, one, nil]); backtrace_depth() + 3]);
        let kept = stacktrace(p, long).map(|trace| trace.list_iter().count());
        assert_eq!(kept, Some(backtrace_depth()));
    }
}
