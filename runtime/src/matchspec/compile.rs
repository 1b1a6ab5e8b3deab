//! Compiles the term of a match specification to a program.

use std::collections::BTreeMap;

use super::actions::{Action, RULES, Rule};
use super::functions::{self, Found};
use super::print::{cut, shown};
use super::{Clause, Dialect, Expr, Head, MatchSpec, Pattern, is_fully_bound};
use crate::heap::{Heap, Message};
use crate::term::{Atom, Term, Tuple, View, am};
use crate::value::map;

/// Nesting of a specification beyond which it is refused with `system_limit`.
const MAX_DEPTH: usize = 4096;

/// One complaint about a specification, as `match_spec_test/3` lists them. All are errors.
pub(crate) type Diagnostic = String;

/// Why a specification is none.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What is wrong with it, in the order found.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// It is nested too deep: `system_limit`, not `badarg`.
    pub(crate) system_limit: bool,
}

/// The number of a variable `'$N'`.
#[inline]
pub(crate) fn variable(atom: Atom) -> Option<u64> {
    let digits = atom.name().strip_prefix('$')?;
    let mut chars = digits.bytes();
    match chars.next()? {
        b'0' => digits.len() == 1,
        b'1'..=b'9' => chars.all(|c| c.is_ascii_digit()),
        _ => false,
    }
    .then(|| digits.parse().unwrap_or(u64::MAX))
}

/// An expression compiled so far: a constant, whose syntax is already gone, or code.
enum Part<'a> {
    Constant(Term<'a>),
    Code(Expr),
}

impl Part<'_> {
    fn into_expr(self) -> Expr {
        match self {
            Part::Constant(term) => Expr::Constant(Message::copy_of(term)),
            Part::Code(expr) => expr,
        }
    }
}

struct Compiler<'a> {
    dialect: Dialect,
    /// Where constants are put together.
    heap: &'a Heap,
    diagnostics: Vec<Diagnostic>,
    system_limit: bool,
    /// Slots of the variables that the clause's head binds.
    variables: BTreeMap<u64, usize>,
    in_guard: bool,
    depth: usize,
}

/// Compiles `spec`.
pub(crate) fn compile(spec: Term<'_>, dialect: Dialect) -> Result<MatchSpec, Failure> {
    let scratch = Heap::detached();
    let mut compiler = Compiler {
        dialect,
        heap: &scratch,
        diagnostics: Vec::new(),
        system_limit: false,
        variables: BTreeMap::new(),
        in_guard: false,
        depth: 0,
    };
    let compiled = compiler.spec(spec);
    match compiled {
        Some(spec) if compiler.diagnostics.is_empty() => Ok(spec),
        _ => Err(Failure {
            diagnostics: compiler.diagnostics,
            system_limit: compiler.system_limit,
        }),
    }
}

impl<'a> Compiler<'a> {
    fn error(&mut self, text: impl Into<String>) {
        self.diagnostics.push(cut(text.into()));
    }

    /// Complains, and gives code that stands for what is wrong.
    fn wrong(&mut self, text: impl Into<String>) -> Part<'a> {
        self.error(text);
        Part::Code(Expr::Bindings)
    }

    fn spec(&mut self, spec: Term<'a>) -> Option<MatchSpec> {
        if spec.as_cons().is_none() {
            self.error("Match programs are not in a list.");
            return None;
        }
        let Ok(parts) = spec.list_iter().collect::<Result<Vec<_>, _>>() else {
            self.error("Match programs are not in a proper list.");
            return None;
        };
        let mut tuples = Vec::with_capacity(parts.len());
        for part in parts {
            match part.as_tuple().filter(|tuple| tuple.arity() == 3) {
                Some(tuple) => {
                    self.check_arguments(tuple.get(0))?;
                    tuples.push(tuple);
                }
                None => {
                    self.error("Match program part is not a tuple of arity 3.");
                    return None;
                }
            }
        }
        let mut clauses = Vec::with_capacity(tuples.len());
        let mut variables = 0;
        for tuple in tuples {
            clauses.push(self.clause(tuple)?);
            variables = variables.max(self.variables.len());
        }
        Some(MatchSpec { clauses, variables })
    }

    /// A head for tracing that is a list must be proper, or end in `'_'`.
    fn check_arguments(&mut self, head: Term<'a>) -> Option<()> {
        if !self.dialect.trace {
            return Some(());
        }
        let tail = head.list_iter().find_map(Result::err);
        if head.as_cons().is_some() && tail.is_some_and(|tail| !(tail == am::underscore)) {
            let head = shown(head);
            self.error(format!(
                "Match expression part {head} is not a proper list."
            ));
            return None;
        }
        Some(())
    }

    /// One clause; `None` where an error in it ends the compilation.
    fn clause(&mut self, clause: Tuple<'a>) -> Option<Clause> {
        self.variables = BTreeMap::new();
        let head = self.head(clause.get(0))?;
        self.in_guard = true;
        let guards = self.expressions(clause.get(1));
        self.in_guard = false;
        let body = clause.get(2);
        if !self.dialect.trace && body.as_cons().is_none() {
            self.error("Body clause does not return anything.");
            return None;
        }
        let body = self.expressions(body);
        self.diagnostics.is_empty().then(|| Clause {
            head,
            guards,
            body,
            bound: self.variables.values().copied().collect(),
        })
    }

    fn head(&mut self, head: Term<'a>) -> Option<Head> {
        if !self.dialect.trace {
            return self.pattern(head).map(Head::Term);
        }
        let mut elements = Vec::new();
        let mut open = false;
        match head.view() {
            View::Nil | View::Cons(_) => {
                for element in head.list_iter() {
                    match element {
                        Ok(element) => elements.push(element),
                        Err(_) => open = true,
                    }
                }
            }
            View::Tuple(tuple) => elements.extend(tuple.elements()),
            _ => {
                return match self.pattern(head)? {
                    Pattern::Any => Some(Head::AnyArguments(None)),
                    Pattern::Bind(slot) => Some(Head::AnyArguments(Some(slot))),
                    _ => {
                        self.error("Match head is invalid in this context.");
                        None
                    }
                };
            }
        }
        let patterns = elements.iter().map(|element| self.pattern(*element));
        Some(Head::Arguments(patterns.collect::<Option<_>>()?, open))
    }

    /// Runs `body` one level deeper, unless that is too deep.
    fn deeper<T>(&mut self, near: Term<'a>, body: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth == MAX_DEPTH {
            self.system_limit = true;
            let near = shown(near);
            self.error(format!(
                "Excessive nesting; system limit reached near: {near}"
            ));
            return None;
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        Some(result)
    }

    fn pattern(&mut self, term: Term<'a>) -> Option<Pattern> {
        if is_fully_bound(term) {
            return Some(Pattern::Equal(Message::copy_of(term)));
        }
        match term.view() {
            View::Atom(atom) => Some(match variable(atom) {
                None => Pattern::Any,
                Some(number) => match self.variables.get(&number) {
                    Some(slot) => Pattern::Same(*slot),
                    None => {
                        let slot = self.variables.len();
                        self.variables.insert(number, slot);
                        Pattern::Bind(slot)
                    }
                },
            }),
            View::Tuple(tuple) => self.deeper(term, |this| {
                this.patterns(tuple.elements()).map(Pattern::Tuple)
            })?,
            View::Cons(_) => self.deeper(term, |this| this.list_pattern(term))?,
            View::Map(map) => self.deeper(term, |this| {
                let entries = map.iter().map(|(key, value)| this.entry(key, value));
                entries.collect::<Option<_>>().map(Pattern::Map)
            })?,
            _ => unreachable!("what is not bound holds a variable or a map"),
        }
    }

    fn patterns(&mut self, terms: &[Term<'a>]) -> Option<Vec<Pattern>> {
        terms.iter().map(|term| self.pattern(*term)).collect()
    }

    fn list_pattern(&mut self, mut list: Term<'a>) -> Option<Pattern> {
        let mut elements = Vec::new();
        while let View::Cons(cell) = list.view() {
            elements.push(self.pattern(cell.head())?);
            list = cell.tail();
        }
        let tail = self.pattern(list)?;
        Some(Pattern::List(elements, Box::new(tail)))
    }

    fn entry(&mut self, key: Term<'a>, value: Term<'a>) -> Option<(Message, Pattern)> {
        if key.as_atom().is_some_and(|atom| variable(atom).is_some()) {
            self.error("Variable found in map key.");
            return None;
        }
        if key == am::underscore {
            self.error("Underscore found in map key.");
            return None;
        }
        Some((Message::copy_of(key), self.pattern(value)?))
    }

    /// Guards, or a body.
    fn expressions(&mut self, list: Term<'a>) -> Vec<Expr> {
        if !list.is_nil() && list.as_cons().is_none() {
            self.error("Match expression is not a list.");
            return Vec::new();
        }
        let mut expressions = Vec::new();
        for element in list.list_iter() {
            match element {
                Ok(element) => expressions.push(self.expr(element).into_expr()),
                Err(_) => self.error("Match expression is not a proper list."),
            }
        }
        expressions
    }

    fn expr(&mut self, term: Term<'a>) -> Part<'a> {
        match term.view() {
            View::Atom(atom) => self.atom(atom),
            View::Cons(_) | View::Tuple(_) | View::Map(_) => self
                .deeper(term, |this| this.compound(term))
                .unwrap_or(Part::Code(Expr::Bindings)),
            _ => Part::Constant(term),
        }
    }

    fn atom(&mut self, atom: Atom) -> Part<'a> {
        if let Some(number) = variable(atom) {
            return match self.variables.get(&number) {
                Some(slot) => Part::Code(Expr::Variable(*slot)),
                None => self.wrong(format!("Variable ${number} is unbound.")),
            };
        }
        match atom {
            am::dollar_underscore => Part::Code(Expr::Whole),
            am::dollar_dollar => Part::Code(Expr::Bindings),
            _ => Part::Constant(atom.term()),
        }
    }

    fn compound(&mut self, term: Term<'a>) -> Part<'a> {
        match term.view() {
            View::Map(map) => {
                let entries: Vec<_> = map.iter().collect();
                self.map(map.flat().is_some(), &entries)
            }
            View::Tuple(tuple) => self.tuple(term, tuple),
            _ => self.list(term),
        }
    }

    /// All constants, if they are.
    fn constants(parts: &[Part<'a>]) -> Option<Vec<Term<'a>>> {
        let constant = |part: &Part<'a>| match part {
            Part::Constant(term) => Some(*term),
            Part::Code(_) => None,
        };
        parts.iter().map(constant).collect()
    }

    /// The parts of terms in the order in which ERTS compiles, and complains of, them: the last one first.
    fn backwards(&mut self, terms: impl DoubleEndedIterator<Item = Term<'a>>) -> Vec<Part<'a>> {
        let mut parts: Vec<_> = terms.rev().map(|term| self.expr(term)).collect();
        parts.reverse();
        parts
    }

    /// A map. A flat one is compiled as its tuples of values and of keys, another one pair by pair.
    fn map(&mut self, is_flat: bool, entries: &[(Term<'a>, Term<'a>)]) -> Part<'a> {
        let (keys, values) = if is_flat {
            let values = self.backwards(entries.iter().map(|entry| entry.1));
            (self.backwards(entries.iter().map(|entry| entry.0)), values)
        } else {
            let parts = entries
                .iter()
                .rev()
                .map(|&(key, value)| (self.expr(key), self.expr(value)));
            let (mut keys, mut values): (Vec<_>, Vec<_>) = parts.unzip();
            keys.reverse();
            values.reverse();
            (keys, values)
        };
        if let (Some(keys), Some(values)) = (Self::constants(&keys), Self::constants(&values)) {
            let pairs: Vec<_> = keys.into_iter().zip(values).collect();
            return Part::Constant(map::from_pairs(self.heap, &pairs));
        }
        let pairs = keys.into_iter().zip(values);
        Part::Code(Expr::Map(
            pairs
                .map(|(key, value)| (key.into_expr(), value.into_expr()))
                .collect(),
        ))
    }

    fn list(&mut self, mut list: Term<'a>) -> Part<'a> {
        let mut parts = Vec::new();
        while let View::Cons(cell) = list.view() {
            parts.push(self.expr(cell.head()));
            list = cell.tail();
        }
        let tail = self.expr(list);
        if let (Some(elements), Part::Constant(tail)) = (Self::constants(&parts), &tail) {
            return Part::Constant(self.heap.list_with_tail(&elements, *tail));
        }
        let elements = parts.into_iter().map(Part::into_expr).collect();
        Part::Code(Expr::List(elements, Box::new(tail.into_expr())))
    }

    fn tuple(&mut self, term: Term<'a>, tuple: Tuple<'a>) -> Part<'a> {
        let first = tuple.elements().first();
        if let (1, Some(inner)) = (tuple.arity(), first.and_then(|first| first.as_tuple())) {
            let parts = self.backwards(inner.elements().iter().copied());
            if let Some(constants) = Self::constants(&parts) {
                return Part::Constant(self.heap.tuple(&constants));
            }
            let parts = parts.into_iter().map(Part::into_expr).collect();
            return Part::Code(Expr::Tuple(parts));
        }
        let name = first.and_then(|first| first.as_atom());
        match name.filter(|name| variable(*name).is_none()) {
            Some(name) => self.call(name, term, &tuple.elements()[1..]),
            None => {
                let text = shown(term);
                self.wrong(format!(
                    "{text} is neither a function call, nor a tuple (tuples are written {{{{ ... }}}})."
                ))
            }
        }
    }

    fn call(&mut self, name: Atom, term: Term<'a>, args: &[Term<'a>]) -> Part<'a> {
        match name {
            am::const_ => match args {
                [constant] => return Part::Constant(*constant),
                _ => {
                    let call = shown(term);
                    return self.wrong(format!(
                        "Special form 'const' called with more than one argument in {call}."
                    ));
                }
            },
            am::and_ | am::or_ | am::andalso | am::andthen | am::orelse => {
                return self.logic(name, term, args);
            }
            am::self_ => {
                if args.is_empty() {
                    return Part::Code(Expr::Own);
                }
                let call = shown(term);
                return self.wrong(format!(
                    "Special form 'self' called with arguments in {call}."
                ));
            }
            _ => {}
        }
        match RULES.iter().find(|rule| rule.name == name) {
            Some(rule) => self.action(rule, term, args),
            None => self.function(name, args),
        }
    }

    fn all(&mut self, args: &[Term<'a>]) -> Vec<Expr> {
        let parts = self.backwards(args.iter().copied());
        parts.into_iter().map(Part::into_expr).collect()
    }

    /// `and`, `or`, whose arguments are compiled as those of functions, and the two that stop at what decides
    /// them, whose arguments are compiled in the order in which they are run.
    fn logic(&mut self, name: Atom, term: Term<'a>, args: &[Term<'a>]) -> Part<'a> {
        type Form = (&'static str, fn(Vec<Expr>) -> Expr, bool);
        let (form, make, stops): Form = match name {
            am::and_ => ("and", Expr::And, false),
            am::or_ => ("or", Expr::Or, false),
            am::orelse => ("orelse", Expr::OrElse, true),
            _ => ("andalso", Expr::AndAlso, true),
        };
        if args.is_empty() {
            let call = shown(term);
            return self.wrong(format!(
                "Special form '{form}' called without arguments in {call}."
            ));
        }
        let args = if stops {
            let args = args.iter().map(|arg| self.expr(*arg).into_expr());
            args.collect()
        } else {
            self.all(args)
        };
        Part::Code(make(args))
    }

    fn function(&mut self, name: Atom, args: &[Term<'a>]) -> Part<'a> {
        let found = functions::find(name, args.len(), self.dialect.fake_destructive);
        let function = match found {
            None => {
                let (name, arity) = (shown(name.term()), args.len());
                return self.wrong(format!("Function {name}/{arity} does_not_exist."));
            }
            Some(Found::Anywhere(function)) => function,
            Some(Found::Trace(function)) if self.dialect.trace => function,
            Some(Found::TraceBody(function)) if self.dialect.trace && !self.in_guard => function,
            Some(_) => {
                let (name, arity) = (shown(name.term()), args.len());
                return self.wrong(format!(
                    "Function {name}/{arity} cannot be called in this context."
                ));
            }
        };
        Part::Code(Expr::Call(function, self.all(args)))
    }

    fn action(&mut self, rule: &Rule, term: Term<'a>, args: &[Term<'a>]) -> Part<'a> {
        let name = match rule.action {
            Action::SetSeqToken => "set_seq_trace",
            _ => rule.name.name(),
        };
        if !self.dialect.trace {
            return self.wrong(format!("Special form '{name}' used in wrong dialect."));
        }
        if (rule.trace_ops && !self.dialect.trace_ops)
            || (rule.call_trace && !self.dialect.call_trace)
        {
            return self.wrong(format!(
                "Special form '{name}' not allow for this trace event."
            ));
        }
        if self.in_guard && !rule.guard {
            return self.wrong(format!("Special form '{name}' called in guard context."));
        }
        let name = rule.name.name();
        if args.len() < rule.arity.0 || args.len() > rule.arity.1 {
            let call = shown(term);
            return self.wrong(if rule.arity.1 == 0 {
                format!("Special form '{name}' called with arguments in {call}.")
            } else {
                format!("Special form '{name}' called with wrong number of arguments in {call}.")
            });
        }
        if rule.action == Action::CurrentStacktrace {
            return self.stacktrace(args);
        }
        Part::Code(Expr::Action(rule.action, self.all(args)))
    }

    fn stacktrace(&mut self, args: &[Term<'a>]) -> Part<'a> {
        let most = crate::exec::exception::backtrace_depth() as i64;
        let depth = match args.first().map(|depth| depth.as_small()) {
            None => most,
            Some(None) => {
                return self
                    .wrong("Special form 'current_stacktrace' called with non small argument.");
            }
            Some(Some(depth)) if depth < 0 => {
                return self.wrong(
                    "Special form 'current_stacktrace' called with negative integer argument.",
                );
            }
            Some(Some(depth)) => depth.min(most),
        };
        let depth = Expr::Constant(Message::copy_of(Term::small(depth)));
        Part::Code(Expr::Action(Action::CurrentStacktrace, vec![depth]))
    }
}
