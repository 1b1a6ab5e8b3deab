//! Match specifications: programs that say which terms match, and what is made of them.
//!
//! `compile` makes a [`MatchSpec`] of `[{Head, Guards, Body}, ...]`. It is a tree without a link to any heap, which
//! `run` then runs against terms. There are two dialects: for tables (a body gives one term) and for tracing (heads are
//! argument lists, bodies act).
//!
//! Source of syntax, order of errors and their texts: `erl_db_util.c`, OTP 29.

mod actions;
mod compile;
mod functions;
mod print;
mod run;

pub(crate) use actions::{Action, Actions, NoActions};
pub(crate) use compile::{compile, variable};
pub(crate) use run::Object;

use crate::heap::Message;
use crate::process::GuardResult;
use crate::process::Process;
use crate::term::{Atom, Term};

/// The dialect of a program, which depends on what the program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Heads are argument lists; bodies may act.
    pub(crate) trace: bool,
    /// For calls, whose caller is known.
    pub(crate) call_trace: bool,
    /// What acts on processes may be used.
    pub(crate) trace_ops: bool,
    /// What changes something beyond the program's result must not (`match_spec_test/3`).
    pub(crate) fake_destructive: bool,
}

impl Dialect {
    /// For `ets`.
    pub(crate) const TABLE: Dialect = Dialect {
        trace: false,
        call_trace: false,
        trace_ops: false,
        fake_destructive: false,
    };
    /// For traces of messages received: nothing may be acted upon.
    pub(crate) const RECEIVE: Dialect = Dialect {
        trace: true,
        call_trace: false,
        trace_ops: false,
        fake_destructive: false,
    };
    /// For messages sent, which have no caller.
    pub(crate) const SEND: Dialect = Dialect {
        trace_ops: true,
        ..Dialect::RECEIVE
    };
    /// For traces of calls.
    pub(crate) const CALL: Dialect = Dialect {
        trace: true,
        call_trace: true,
        trace_ops: true,
        fake_destructive: false,
    };
}

/// A compiled match specification; that without clauses matches nothing.
#[derive(Default)]
pub(crate) struct MatchSpec {
    clauses: Vec<Clause>,
    /// Variables of the clause that has most.
    variables: usize,
}

struct Clause {
    head: Head,
    guards: Vec<Expr>,
    body: Vec<Expr>,
    /// Variables that the head binds, in ascending order of their names.
    bound: Vec<usize>,
}

/// The head of a clause, which says what it matches.
enum Head {
    /// One term.
    Term(Pattern),
    /// Arguments: these, and with the flag any more.
    Arguments(Vec<Pattern>, bool),
    /// Any arguments, bound as a list where a variable is given.
    AnyArguments(Option<usize>),
}

impl MatchSpec {
    /// Shows the terms that are in it as they are.
    pub(crate) fn each_constant(&self, show: &mut dyn FnMut(&Message)) {
        for clause in &self.clauses {
            match &clause.head {
                Head::Term(pattern) => pattern.each_constant(show),
                Head::Arguments(patterns, _) => {
                    patterns.iter().for_each(|it| it.each_constant(show));
                }
                Head::AnyArguments(_) => {}
            }
            let expressions = clause.guards.iter().chain(&clause.body);
            expressions.for_each(|it| it.each_constant(show));
        }
    }
}

impl Pattern {
    fn each_constant(&self, show: &mut dyn FnMut(&Message)) {
        match self {
            Pattern::Any | Pattern::Bind(_) | Pattern::Same(_) => {}
            Pattern::Equal(term) => show(term),
            Pattern::Tuple(parts) => parts.iter().for_each(|it| it.each_constant(show)),
            Pattern::List(first, rest) => {
                first.iter().for_each(|it| it.each_constant(show));
                rest.each_constant(show);
            }
            Pattern::Map(pairs) => {
                for (key, value) in pairs {
                    show(key);
                    value.each_constant(show);
                }
            }
        }
    }
}

impl Expr {
    fn each_constant(&self, show: &mut dyn FnMut(&Message)) {
        match self {
            Expr::Constant(term) => show(term),
            Expr::Variable(_) | Expr::Whole | Expr::Bindings | Expr::Own => {}
            Expr::List(first, rest) => {
                first.iter().for_each(|it| it.each_constant(show));
                rest.each_constant(show);
            }
            Expr::Map(pairs) => {
                for (key, value) in pairs {
                    key.each_constant(show);
                    value.each_constant(show);
                }
            }
            Expr::Tuple(parts)
            | Expr::Call(_, parts)
            | Expr::And(parts)
            | Expr::Or(parts)
            | Expr::AndAlso(parts)
            | Expr::OrElse(parts)
            | Expr::Action(_, parts) => parts.iter().for_each(|it| it.each_constant(show)),
        }
    }
}

/// A pattern of a head.
enum Pattern {
    Any,
    Bind(usize),
    Same(usize),
    /// Exactly this term; also for what holds no variables.
    Equal(Message),
    Tuple(Vec<Pattern>),
    /// The first elements of a list, and its tail.
    List(Vec<Pattern>, Box<Pattern>),
    /// At least these keys.
    Map(Vec<(Message, Pattern)>),
}

/// An expression of a guard or a body.
enum Expr {
    Constant(Message),
    Variable(usize),
    /// `'$_'`.
    Whole,
    /// `'$$'`.
    Bindings,
    Tuple(Vec<Expr>),
    /// The first elements of a list, and its tail.
    List(Vec<Expr>, Box<Expr>),
    /// Keys and values.
    Map(Vec<(Expr, Expr)>),
    Call(Function, Vec<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    AndAlso(Vec<Expr>),
    OrElse(Vec<Expr>),
    /// `self()`.
    Own,
    Action(Action, Vec<Expr>),
}

/// A function that expressions may call.
#[derive(Clone, Copy)]
enum Function {
    Bif(for<'p> fn(&'p Process, &[Term<'p>]) -> GuardResult<'p>),
    Length,
    GetTcw,
    /// `set_tcw/1`; with the flag it only checks.
    SetTcw(bool),
}

/// The trace control word, of `get_tcw/0` and `set_tcw/1`.
static TRACE_CONTROL_WORD: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// The trace control word, for `erlang:system_info(trace_control_word)`.
pub(crate) fn trace_control_word() -> u32 {
    TRACE_CONTROL_WORD.load(std::sync::atomic::Ordering::Acquire)
}

/// Sets the trace control word; returns the one before.
pub(crate) fn set_trace_control_word(word: u32) -> u32 {
    TRACE_CONTROL_WORD.swap(word, std::sync::atomic::Ordering::AcqRel)
}

/// Is the term a variable of patterns or `'_'`?
pub(crate) fn is_wild(atom: Atom) -> bool {
    atom == crate::term::am::underscore || variable(atom).is_some()
}

/// Holds `term` no variables, no `'_'` and no maps? Only then it matches just one term.
pub(crate) fn is_fully_bound(term: Term<'_>) -> bool {
    use crate::term::View;
    if term.raw().is_immed() {
        return term.as_atom().is_none_or(|atom| !is_wild(atom));
    }
    let mut rest = vec![term];
    while let Some(mut term) = rest.pop() {
        while let View::Cons(cell) = term.view() {
            rest.push(cell.head());
            term = cell.tail();
        }
        match term.view() {
            View::Atom(atom) if is_wild(atom) => return false,
            View::Tuple(tuple) => rest.extend(tuple.elements()),
            View::Map(_) => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests;
