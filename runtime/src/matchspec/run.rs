//! Runs a program of a match specification against a term, or against the arguments of a call.

use smallvec::SmallVec;

use super::{Action, Actions, Clause, Expr, Function, Head, MatchSpec, NoActions, Pattern};
use crate::heap::{Message, Stored};
use crate::process::Process;
use crate::term::compare::eq_exact;
use crate::term::{Term, View, am};
use crate::value::map;

/// The actions that a program for tracing asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// `{return_trace}` was called.
    pub(crate) return_trace: bool,
    /// `{exception_trace}` was called.
    pub(crate) exception_trace: bool,
}

/// The result of a program for tracing that matched.
pub(crate) struct Outcome<'a> {
    /// `true`, or what `{message, Term}` said.
    pub(crate) message: Term<'a>,
    /// What it asked for.
    pub(crate) flags: Flags,
}

type Variables<'a> = SmallVec<[Option<Term<'a>>; 8]>;
type Args<'a> = SmallVec<[Term<'a>; 4]>;

/// The object a program is run on.
#[derive(Clone, Copy)]
pub(crate) enum Object<'o> {
    /// A term of some heap.
    Term(Term<'o>),
    /// A table's.
    Stored(&'o Stored),
}

impl<'o> Object<'o> {
    fn term(self) -> Term<'o> {
        match self {
            Object::Term(term) => term,
            Object::Stored(object) => object.term(),
        }
    }
}

/// The source that expressions take their terms from.
trait Source<'a, 'c> {
    fn variable(&mut self, slot: usize) -> Term<'a>;
    fn whole(&mut self) -> Term<'a>;
    fn constant(&mut self, constant: &'c Message) -> Term<'a>;
    fn act(&mut self, action: Action, args: &[Term<'a>]) -> Option<Term<'a>>;
}

fn bound<'a>(variables: &[Option<Term<'a>>], slot: usize) -> Term<'a> {
    variables[slot].expect("the compiler lets no unbound variable pass")
}

/// Terms as they are: for guards, and for bodies whose result is used at once.
struct Borrowed<'a, 'v> {
    variables: &'v [Option<Term<'a>>],
    whole: &'v dyn Fn() -> Term<'a>,
    actions: &'v mut dyn Actions<'a>,
    flags: &'v mut Flags,
    message: &'v mut Option<Term<'a>>,
}

impl<'a> Source<'a, 'a> for Borrowed<'a, '_> {
    fn variable(&mut self, slot: usize) -> Term<'a> {
        bound(self.variables, slot)
    }
    fn whole(&mut self) -> Term<'a> {
        (self.whole)()
    }
    fn constant(&mut self, constant: &'a Message) -> Term<'a> {
        constant.term()
    }
    fn act(&mut self, action: Action, args: &[Term<'a>]) -> Option<Term<'a>> {
        match action {
            Action::Message => *self.message = Some(args[0]),
            Action::ReturnTrace => self.flags.return_trace = true,
            Action::ExceptionTrace => self.flags.exception_trace = true,
            _ => return self.actions.act(action, args),
        }
        Some(am::true_.term())
    }
}

/// Copies on the process's heap, each variable once: for bodies of programs for tables.
struct Copied<'a, 'o, 'v> {
    p: &'a Process,
    variables: &'v [Option<Term<'o>>],
    copies: Variables<'a>,
    object: Object<'o>,
}

impl<'a, 'c> Source<'a, 'c> for Copied<'a, '_, '_> {
    fn variable(&mut self, slot: usize) -> Term<'a> {
        if let Some(copy) = self.copies[slot] {
            return copy;
        }
        let copy = self.p.copy_in(bound(self.variables, slot));
        self.copies[slot] = Some(copy);
        copy
    }
    fn whole(&mut self) -> Term<'a> {
        match self.object {
            Object::Term(term) => self.p.copy_in(term),
            Object::Stored(object) => self.p.copy_stored(object),
        }
    }
    fn constant(&mut self, constant: &'c Message) -> Term<'a> {
        self.p.copy_in(constant.term())
    }
    fn act(&mut self, _action: Action, _args: &[Term<'a>]) -> Option<Term<'a>> {
        None
    }
}

impl MatchSpec {
    /// Runs a program for tables. Its result is a copy on `p`'s heap; `None` where nothing matches.
    pub(crate) fn run<'p>(&self, p: &'p Process, object: Object<'_>) -> Option<Term<'p>> {
        self.clauses
            .iter()
            .find_map(|clause| clause.run_on_object(self.variables, p, object))
    }

    /// Does a program for tables say `true` to `object`?
    pub(crate) fn is_true(&self, p: &Process, object: Object<'_>) -> bool {
        self.run(p, object)
            .is_some_and(|result| result == am::true_)
    }

    /// Runs a program for tracing on the arguments of a call. `None` where nothing matches.
    pub(crate) fn run_trace<'a>(
        &'a self,
        p: &'a Process,
        args: &[Term<'a>],
        actions: &mut dyn Actions<'a>,
    ) -> Option<Outcome<'a>> {
        self.clauses
            .iter()
            .find_map(|clause| clause.run_on_args(self.variables, p, args, actions))
    }
}

impl Clause {
    fn run_on_object<'p>(
        &self,
        variables: usize,
        p: &'p Process,
        object: Object<'_>,
    ) -> Option<Term<'p>> {
        let Head::Term(head) = &self.head else {
            return None;
        };
        let term = object.term();
        let mut values: Variables<'_> = SmallVec::from_elem(None, variables);
        if !matches(head, term, &mut values) {
            return None;
        }
        if !self.guards.is_empty() {
            let mut source = Borrowed {
                variables: &values,
                whole: &|| term,
                actions: &mut NoActions,
                flags: &mut Flags::default(),
                message: &mut None,
            };
            self.guarded(p, &mut source)?;
        }
        let mut source = Copied {
            p,
            variables: &values,
            copies: SmallVec::from_elem(None, variables),
            object,
        };
        let mut result = None;
        for expr in &self.body {
            result = self.eval(expr, p, &mut source, true);
        }
        result
    }

    fn run_on_args<'a>(
        &'a self,
        variables: usize,
        p: &'a Process,
        args: &[Term<'a>],
        actions: &mut dyn Actions<'a>,
    ) -> Option<Outcome<'a>> {
        let mut values: Variables<'a> = SmallVec::from_elem(None, variables);
        match &self.head {
            Head::Arguments(patterns, open) => {
                let fits = if *open {
                    args.len() >= patterns.len()
                } else {
                    args.len() == patterns.len()
                };
                let mut pairs = patterns.iter().zip(args);
                if !fits || !pairs.all(|(pattern, arg)| matches(pattern, *arg, &mut values)) {
                    return None;
                }
            }
            Head::AnyArguments(None) => {}
            Head::AnyArguments(Some(slot)) => values[*slot] = Some(p.list(args)),
            Head::Term(_) => return None,
        }
        let mut outcome = Outcome {
            message: am::true_.term(),
            flags: Flags::default(),
        };
        let mut message = None;
        let mut source = Borrowed {
            variables: &values,
            whole: &|| p.list(args),
            actions,
            flags: &mut outcome.flags,
            message: &mut message,
        };
        self.guarded(p, &mut source)?;
        for expr in &self.body {
            self.eval(expr, p, &mut source, true);
        }
        outcome.message = message.unwrap_or(outcome.message);
        Some(outcome)
    }

    /// Do all guards say `true`?
    fn guarded<'a, 'c>(&'c self, p: &'a Process, source: &mut impl Source<'a, 'c>) -> Option<()> {
        for guard in &self.guards {
            let value = self.eval(guard, p, source, false)?;
            if !(value == am::true_) {
                return None;
            }
        }
        Some(())
    }

    fn eval_all<'a, 'c>(
        &'c self,
        exprs: &'c [Expr],
        p: &'a Process,
        source: &mut impl Source<'a, 'c>,
        body: bool,
    ) -> Option<Args<'a>> {
        let mut values = Args::new();
        for expr in exprs.iter().rev() {
            values.push(self.eval(expr, p, source, body)?);
        }
        values.reverse();
        Some(values)
    }

    /// The value of `expr`. What fails gives `'EXIT'` in a body, `None` in a guard.
    fn eval<'a, 'c>(
        &'c self,
        expr: &'c Expr,
        p: &'a Process,
        source: &mut impl Source<'a, 'c>,
        body: bool,
    ) -> Option<Term<'a>> {
        let failed = || body.then(|| am::EXIT.term());
        match expr {
            Expr::Constant(constant) => Some(source.constant(constant)),
            Expr::Variable(slot) => Some(source.variable(*slot)),
            Expr::Whole => Some(source.whole()),
            Expr::Own => Some(p.pid().term()),
            Expr::Bindings => {
                let slots = self.bound.iter().rev();
                Some(slots.fold(Term::NIL, |rest, slot| p.cons(source.variable(*slot), rest)))
            }
            Expr::Tuple(exprs) => {
                let values = self.eval_all(exprs, p, source, body)?;
                Some(p.tuple(&values))
            }
            Expr::List(exprs, tail) => {
                let values = self.eval_all(exprs, p, source, body)?;
                let tail = self.eval(tail, p, source, body)?;
                Some(p.list_with_tail(&values, tail))
            }
            Expr::Map(exprs) => {
                let mut pairs = Vec::with_capacity(exprs.len());
                for (key, value) in exprs {
                    let key = self.eval(key, p, source, body)?;
                    pairs.push((key, self.eval(value, p, source, body)?));
                }
                Some(map::from_pairs(p, &pairs))
            }
            // The last argument first, as of others.
            Expr::Call(function, exprs) if let [first, second] = &exprs[..] => {
                let second = self.eval(second, p, source, body)?;
                let first = self.eval(first, p, source, body)?;
                function.call(p, &[first, second]).or_else(failed)
            }
            Expr::Call(function, exprs) => {
                let values = self.eval_all(exprs, p, source, body)?;
                function.call(p, &values).or_else(failed)
            }
            Expr::Action(action, exprs) => {
                let values = self.eval_all(exprs, p, source, body)?;
                source.act(*action, &values).or(Some(am::EXIT.term()))
            }
            Expr::And(exprs) => {
                let values = self.eval_all(exprs, p, source, body)?;
                strict(&values, true).or_else(failed)
            }
            Expr::Or(exprs) => {
                let values = self.eval_all(exprs, p, source, body)?;
                strict(&values, false).or_else(failed)
            }
            Expr::AndAlso(exprs) => self.lazy(exprs, true, p, source, body),
            Expr::OrElse(exprs) => self.lazy(exprs, false, p, source, body),
        }
    }

    /// `andalso` (goes on while `true`) and `orelse` (while `false`); the last value is the result.
    fn lazy<'a, 'c>(
        &'c self,
        exprs: &'c [Expr],
        go_on: bool,
        p: &'a Process,
        source: &mut impl Source<'a, 'c>,
        body: bool,
    ) -> Option<Term<'a>> {
        let (last, first) = exprs.split_last()?;
        for expr in first {
            let value = self.eval(expr, p, source, body)?;
            match value.as_bool() {
                Some(value) if value == go_on => {}
                Some(_) => return Some(value),
                None => return body.then(|| am::EXIT.term()),
            }
        }
        self.eval(last, p, source, body)
    }
}

/// `and` (`neutral` is `true`) and `or` of values that must all be booleans.
fn strict<'a>(values: &[Term<'a>], neutral: bool) -> Option<Term<'a>> {
    let mut result = neutral;
    for value in values {
        if value.as_bool()? != neutral {
            result = !neutral;
        }
    }
    Some(Term::bool(result))
}

impl Function {
    fn call<'a>(self, p: &'a Process, args: &[Term<'a>]) -> Option<Term<'a>> {
        match self {
            Function::Bif(call) => call(p, args).ok(),
            Function::Length => {
                let mut length = 0;
                for element in args[0].list_iter() {
                    element.ok()?;
                    length += 1;
                }
                Some(Term::small(length))
            }
            Function::GetTcw => Some(p.unsigned(super::trace_control_word().into())),
            Function::SetTcw(fake) => {
                let word = u32::try_from(args[0].as_small()?).ok()?;
                let old = if fake {
                    super::trace_control_word()
                } else {
                    super::set_trace_control_word(word)
                };
                Some(p.unsigned(old.into()))
            }
        }
    }
}

#[inline]
fn matches<'o>(pattern: &Pattern, term: Term<'o>, variables: &mut [Option<Term<'o>>]) -> bool {
    match pattern {
        Pattern::Any => true,
        Pattern::Bind(slot) => {
            variables[*slot] = Some(term);
            true
        }
        pattern => matches_value(pattern, term, variables),
    }
}

/// As [`matches()`], of a pattern that does not match every term.
fn matches_value<'o>(
    pattern: &Pattern,
    term: Term<'o>,
    variables: &mut [Option<Term<'o>>],
) -> bool {
    match pattern {
        Pattern::Any | Pattern::Bind(_) => matches(pattern, term, variables),
        Pattern::Same(slot) => eq_exact(bound(variables, *slot), term),
        Pattern::Equal(value) => eq_exact(value.term(), term),
        Pattern::Tuple(patterns) => match term.as_tuple() {
            Some(tuple) if tuple.arity() == patterns.len() => {
                let mut pairs = patterns.iter().zip(tuple.elements());
                pairs.all(|(pattern, term)| matches(pattern, *term, variables))
            }
            _ => false,
        },
        Pattern::List(patterns, tail) => {
            let mut rest = term;
            for pattern in patterns {
                let View::Cons(cell) = rest.view() else {
                    return false;
                };
                if !matches(pattern, cell.head(), variables) {
                    return false;
                }
                rest = cell.tail();
            }
            matches(tail, rest, variables)
        }
        Pattern::Map(entries) => match term.as_map() {
            Some(map) if map.len() >= entries.len() => entries.iter().all(|(key, pattern)| {
                map.get(key.term())
                    .is_some_and(|value| matches(pattern, value, variables))
            }),
            _ => false,
        },
    }
}
