//! The BIFs behind OTP's module `seq_trace`. Source: `erl_bif_trace.c`, OTP 29.

use super::{BifResult, badarg, bifs};
use crate::process::Process;
use crate::term::{Term, View, am};
use crate::trace::{TracerId, seq};

bifs! {
    all unrecorded;
    bif erlang:"seq_trace"/2 => seq_trace_2;
    bif erlang:"seq_trace_info"/1 => seq_trace_info_1;
    bif erlang:"seq_trace_print"/1 => seq_trace_print_1;
    bif erlang:"seq_trace_print"/2 => seq_trace_print_2;
}

fn seq_trace_2<'p>(p: &'p Process, [component, value]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(seq::set_component(p, component, value).ok_or_else(badarg)?)
}

fn seq_trace_info_1<'p>(p: &'p Process, [component]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(seq::component(p, component).ok_or_else(badarg)?)
}

fn seq_trace_print_1<'p>(p: &'p Process, [info]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(Term::bool(seq::print(p, None, info)))
}

fn seq_trace_print_2<'p>(p: &'p Process, [label, info]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(Term::bool(seq::print(p, Some(label), info)))
}

/// `system_flag(sequential_tracer, _)`.
pub(super) fn set_system_tracer<'p>(p: &'p Process, tracer: Term<'p>) -> BifResult<'p> {
    let new = match tracer.view() {
        View::Atom(am::false_) => None,
        _ => Some(TracerId::of(tracer).ok_or_else(badarg)?),
    };
    let old = seq::set_system_tracer(new).ok_or_else(badarg)?;
    Ok(system_tracer(p, old))
}

/// `system_flag(reset_seq_trace, _)`: ERTS looks at no value.
pub(super) fn reset() -> Term<'static> {
    seq::reset();
    Term::bool(true)
}

/// The system tracer as a term.
pub(super) fn system_tracer(p: &Process, tracer: Option<TracerId>) -> Term<'_> {
    tracer.map_or(Term::bool(false), |tracer| tracer.told(p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::Atom;

    fn shown(result: BifResult<'_>) -> Option<String> {
        result.ok().map(|term| term.display().to_string())
    }

    #[test]
    fn components_of_the_token() {
        let p = &Process::new(233);
        let info = |item: &str| shown(seq_trace_info_1(p, [Atom::new(item).term()]));
        let set = |item: &str, value| shown(seq_trace_2(p, [Atom::new(item).term(), value]));
        let pair = |a, b| p.tuple(&[Term::small(a), Term::small(b)]);
        for (item, expect) in [
            ("label", Some("[]")),
            ("serial", Some("[]")),
            ("send", Some("{send,false}")),
            ("spawn", Some("{spawn,false}")),
            ("token", None),
        ] {
            assert_eq!(info(item).as_deref(), expect, "{item} without a token");
        }
        let label = p.tuple(&[Term::small(1), p.string("a")]);
        for (item, value, old) in [
            ("send", am::true_.term(), Some("false")),
            ("send", Term::small(1), None),
            ("send", am::true_.term(), Some("true")),
            ("timestamp", am::true_.term(), Some("false")),
            ("print", am::false_.term(), Some("false")),
            ("label", label, Some("0")),
            ("label", Term::NIL, Some("{1,\"a\"}")),
            ("serial", pair(3, 4), Some("{0,0}")),
            ("serial", pair(-1, -2), Some("{3,4}")),
            ("serial", Term::NIL, None),
            ("sequential_trace_token", Term::small(1), None),
            ("spawn", am::true_.term(), None),
        ] {
            assert_eq!(set(item, value).as_deref(), old, "{item}");
        }
        for (item, expect) in [
            ("label", Some("{label,[]}")),
            ("serial", Some("{serial,{-1,-2}}")),
            ("send", Some("{send,true}")),
            ("monotonic_timestamp", Some("{monotonic_timestamp,false}")),
            ("spawn", None),
        ] {
            assert_eq!(info(item).as_deref(), expect, "{item} of a token");
        }
        let token = seq::token_term(p, p);
        assert_eq!(token.as_tuple().and_then(|t| t.get(0).as_small()), Some(9));
        assert!(seq_trace_print_2(p, [Term::NIL, Term::NIL]).is_ok_and(|done| done == am::true_));
        assert!(seq_trace_print_2(p, [label, Term::NIL]).is_ok_and(|done| done == am::false_));
        assert_eq!(info("serial").as_deref(), Some("{serial,{-1,-1}}"));
        assert!(set("sequential_trace_token", Term::NIL).is_some());
        assert!(seq_trace_print_1(p, [label]).is_ok_and(|done| done == am::false_));
        assert_eq!(info("label").as_deref(), Some("[]"));
    }
}
