//! `ets`: match specifications, over tables and by themselves.

use super::{BifResult, badarg, bifs};
use crate::ets::select::{self, Chunk, Keys, Position, compiled};
use crate::ets::{HashKind, Kind, error, registry};
use crate::heap::{MagicBinary, Message};
use crate::matchspec::{Action, Actions, Dialect, MatchSpec, Object, compile};
use crate::process::{Process, refs};
use crate::term::{Term, am};

bifs! {
    bif ets:"match"/1 => select_1;
    bif ets:"match"/2 => match_2;
    bif ets:"match"/3 => match_3;
    bif ets:"match_object"/1 => select_1;
    bif ets:"match_object"/2 => match_object_2;
    bif ets:"match_object"/3 => match_object_3;
    bif ets:"select"/1 => select_1;
    bif ets:"select"/2 => select_2;
    bif ets:"select"/3 => select_3;
    bif ets:"select_reverse"/1 => select_1;
    bif ets:"select_reverse"/2 => select_reverse_2;
    bif ets:"select_reverse"/3 => select_reverse_3;
    bif ets:"select_count"/2 => select_count_2;
    bif ets:"select_replace"/2 => select_replace_2;
    bif ets:"internal_select_delete"/2 => internal_select_delete_2;
    bif ets:"is_compiled_ms"/1 => is_compiled_ms_1;
    bif ets:"match_spec_compile"/1 => match_spec_compile_1;
    bif ets:"match_spec_run_r"/3 => match_spec_run_r_3;
    bif erlang:"match_spec_test"/3 => match_spec_test_3;
}

/// A compiled specification behind a reference, and what it was compiled from.
struct Compiled {
    program: MatchSpec,
    spec: Message,
}

fn program(term: Term<'_>) -> Option<&Compiled> {
    term.as_ref()?.magic()?.get()
}

fn make_program<'p>(p: &'p Process, spec: Term<'p>) -> BifResult<'p> {
    let compiled = Compiled {
        program: compiled(spec)?,
        spec: Message::copy_of(spec),
    };
    Ok(p.magic_reference(MagicBinary::new(refs::make_ref(), Box::new(compiled))))
}

/// `[{Pattern, [], [Result]}]`.
fn spec_of<'p>(p: &'p Process, pattern: Term<'p>, result: Term<'p>) -> Term<'p> {
    p.list(&[p.tuple(&[pattern, Term::NIL, p.list(&[result])])])
}

fn select<'p>(p: &'p Process, id: Term<'p>, spec: Term<'p>, back: bool) -> BifResult<'p> {
    let handle = registry::find(id)?;
    let table = handle.table();
    let state = table.read(p, id)?;
    let program = compiled(spec)?;
    let keys = Keys::of(spec, table.options.keypos);
    Ok(select::select(p, &state.objects, &keys, &program, back))
}

fn select_2<'p>(p: &'p Process, [id, spec]: [Term<'p>; 2]) -> BifResult<'p> {
    select(p, id, spec, false)
}

fn select_reverse_2<'p>(p: &'p Process, [id, spec]: [Term<'p>; 2]) -> BifResult<'p> {
    select(p, id, spec, true)
}

fn match_2<'p>(p: &'p Process, [id, pattern]: [Term<'p>; 2]) -> BifResult<'p> {
    select(p, id, spec_of(p, pattern, am::dollar_dollar.term()), false)
}

fn match_object_2<'p>(p: &'p Process, [id, pattern]: [Term<'p>; 2]) -> BifResult<'p> {
    select(
        p,
        id,
        spec_of(p, pattern, am::dollar_underscore.term()),
        false,
    )
}

/// A traversal in parts.
struct Traversal<'p> {
    id: Term<'p>,
    /// The compiled specification's reference.
    program: Term<'p>,
    limit: usize,
    back: bool,
    from: Position<'p>,
}

impl<'p> Traversal<'p> {
    /// What a continuation stands for: `{Table, Place, Limit, Program, [], Done}` or, for ordered
    /// sets, `{Table, LastKey, [], Limit, Program, [], Back, Done}`.
    fn of(continuation: Term<'p>) -> Option<Traversal<'p>> {
        match continuation.as_tuple()?.elements() {
            [id, place, limit, program, _, done] => Some(Traversal {
                id: *id,
                program: *program,
                limit: limit.as_index()?,
                back: false,
                from: Position::Place(place.as_index()?, done.as_index()?),
            }),
            [id, last, _, limit, program, _, back, done] => Some(Traversal {
                id: *id,
                program: *program,
                limit: limit.as_index()?,
                back: back.as_index()? == 1,
                from: match done.as_index()? {
                    0 => Position::Key(*last),
                    done => Position::Place(done, 0),
                },
            }),
            _ => None,
        }
    }

    fn continuation(&self, p: &'p Process, ordered: bool, rest: Position<'p>) -> Term<'p> {
        let number = |n: usize| p.unsigned(n as u64);
        let limit = number(self.limit);
        let (id, program, nil) = (self.id, self.program, Term::NIL);
        match rest {
            Position::Place(place, done) if !ordered => {
                p.tuple(&[id, number(place), limit, program, nil, number(done)])
            }
            rest => {
                let (last, done) = match rest {
                    Position::Key(last) => (last, 0),
                    Position::Place(done, _) => (nil, done),
                    Position::Start => (nil, 0),
                };
                let (back, done) = (number(usize::from(self.back)), number(done));
                p.tuple(&[id, last, nil, limit, program, nil, back, done])
            }
        }
    }

    fn run(self, p: &'p Process) -> BifResult<'p> {
        let handle = registry::find(self.id)?;
        let table = handle.table();
        let state = table.read(p, self.id)?;
        let compiled = program(self.program).ok_or_else(badarg)?;
        if self.limit == 0 {
            return Err(badarg());
        }
        let ordered = table.options.kind == Kind::OrderedSet;
        let keys = Keys::of(compiled.spec.term(), table.options.keypos);
        let (from, limit, back) = (self.from, self.limit, self.back);
        let chunk = select::chunk(
            p,
            &state.objects,
            &keys,
            &compiled.program,
            from,
            limit,
            back,
        );
        let Chunk { results, rest } = chunk;
        if results.is_empty() {
            return Ok(am::end_of_table.term());
        }
        let rest = match rest {
            Some(rest) => self.continuation(p, ordered, rest),
            None => am::end_of_table.term(),
        };
        Ok(p.tuple(&[p.list(&results), rest]))
    }
}

fn select_part<'p>(p: &'p Process, [id, spec, limit]: [Term<'p>; 3], back: bool) -> BifResult<'p> {
    // The table's own errors come first.
    let handle = registry::find(id)?;
    drop(handle.table().read(p, id)?);
    let limit = limit
        .as_index()
        .filter(|limit| *limit > 0)
        .ok_or_else(badarg)?;
    let traversal = Traversal {
        id,
        program: make_program(p, spec)?,
        limit,
        back,
        from: Position::Start,
    };
    traversal.run(p)
}

fn select_3<'p>(p: &'p Process, args: [Term<'p>; 3]) -> BifResult<'p> {
    select_part(p, args, false)
}

fn select_reverse_3<'p>(p: &'p Process, args: [Term<'p>; 3]) -> BifResult<'p> {
    select_part(p, args, true)
}

fn match_3<'p>(p: &'p Process, [id, pattern, limit]: [Term<'p>; 3]) -> BifResult<'p> {
    let spec = spec_of(p, pattern, am::dollar_dollar.term());
    select_part(p, [id, spec, limit], false)
}

fn match_object_3<'p>(p: &'p Process, [id, pattern, limit]: [Term<'p>; 3]) -> BifResult<'p> {
    let spec = spec_of(p, pattern, am::dollar_underscore.term());
    select_part(p, [id, spec, limit], false)
}

fn select_1<'p>(p: &'p Process, [continuation]: [Term<'p>; 1]) -> BifResult<'p> {
    if continuation == am::end_of_table {
        return Ok(continuation);
    }
    Traversal::of(continuation).ok_or_else(badarg)?.run(p)
}

fn select_count_2<'p>(p: &'p Process, [id, spec]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(id)?;
    let table = handle.table();
    let state = table.read(p, id)?;
    let program = compiled(spec)?;
    let keys = Keys::of(spec, table.options.keypos);
    let count = select::count(p, &state.objects, &keys, &program);
    Ok(p.unsigned(count as u64))
}

fn internal_select_delete_2<'p>(p: &'p Process, [id, spec]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(id)?;
    let table = handle.table();
    let mut state = table.write(p, id)?;
    let program = compiled(spec)?;
    let keys = Keys::of(spec, table.options.keypos);
    let count = select::delete(p, &mut state, &keys, &program);
    Ok(p.unsigned(count as u64))
}

fn select_replace_2<'p>(p: &'p Process, [id, spec]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(id)?;
    let table = handle.table();
    let mut state = table.write(p, id)?;
    if table.options.kind == Kind::Hash(HashKind::Bag) {
        return Err(error(am::table_type));
    }
    let program = compiled(spec)?;
    if !select::keeps_keys(spec, table.options.keypos) {
        return Err(badarg());
    }
    let keys = Keys::of(spec, table.options.keypos);
    let count = select::replace(p, &mut state.objects, &keys, &program)?;
    Ok(p.unsigned(count as u64))
}

fn is_compiled_ms_1<'p>(_p: &'p Process, [term]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(Term::bool(program(term).is_some()))
}

fn match_spec_compile_1<'p>(p: &'p Process, [spec]: [Term<'p>; 1]) -> BifResult<'p> {
    make_program(p, spec)
}

/// Results of a list's terms, the last one first, before `results`.
fn match_spec_run_r_3<'p>(
    p: &'p Process,
    [list, compiled, results]: [Term<'p>; 3],
) -> BifResult<'p> {
    if list.as_cons().is_none() && !list.is_nil() {
        return Err(badarg());
    }
    let program = &program(compiled).ok_or_else(badarg)?.program;
    let mut results = results;
    let mut seen = 0;
    for term in list.list_iter() {
        let term = term.map_err(|_| badarg())?;
        seen += 1;
        if let Some(result) = program.run(p, Object::Term(term)) {
            results = p.cons(result, results);
        }
    }
    p.bump_reds(seen);
    Ok(results)
}

/// Actions in a test: nobody is traced.
struct Test<'p>(&'p Process);

impl<'p> Test<'p> {
    /// What a component of the sequential trace token is where there is no token.
    fn no_token(&self, component: Term<'p>) -> Option<Term<'p>> {
        match component.as_atom()? {
            am::label | am::serial => Some(Term::NIL),
            am::send
            | am::receive
            | am::print
            | am::timestamp
            | am::monotonic_timestamp
            | am::strict_monotonic_timestamp => {
                let no = am::false_.term();
                Some(self.0.tuple(&[component, no]))
            }
            _ => None,
        }
    }
}

impl<'p> Actions<'p> for Test<'p> {
    fn act(&mut self, action: Action, args: &[Term<'p>]) -> Option<Term<'p>> {
        Some(match action {
            Action::Caller | Action::CallerLine => am::undefined.term(),
            Action::IsSeqTrace => am::false_.term(),
            Action::GetSeqToken => Term::NIL,
            Action::SetSeqToken => self.no_token(args[0])?,
            Action::Silent => am::true_.term(),
            Action::Display => {
                let call = super::all()[super::find(am::erlang, am::display, 1)?].call;
                match call {
                    super::Call::Plain(display) => display(self.0, args).ok()?,
                    super::Call::Exclusive(_) => return None,
                }
            }
            _ => return None,
        })
    }
}

fn match_spec_test_3<'p>(p: &'p Process, [against, spec, dialect]: [Term<'p>; 3]) -> BifResult<'p> {
    let trace = match dialect.as_atom() {
        Some(am::trace) => true,
        Some(am::table) => false,
        _ => return Err(badarg()),
    };
    if trace && against.as_cons().is_none() && !against.is_nil() {
        return Err(badarg());
    }
    let dialect = if trace { Dialect::CALL } else { Dialect::TABLE };
    let dialect = Dialect {
        fake_destructive: true,
        ..dialect
    };
    let program = match compile(spec, dialect) {
        Ok(program) => program,
        Err(failure) => {
            let errors = failure.diagnostics.iter().rev();
            let list = errors.fold(Term::NIL, |rest, text| {
                p.cons(p.tuple(&[am::error.term(), p.string(text)]), rest)
            });
            return Ok(p.tuple(&[am::error.term(), list]));
        }
    };
    let mut flags = Term::NIL;
    let result = if trace {
        let args: Vec<_> = against.list_iter().map_while(Result::ok).collect();
        let outcome = program.run_trace(p, &args, &mut Test(p));
        outcome.map(|outcome| {
            if outcome.flags.exception_trace {
                flags = p.cons(am::exception_trace.term(), flags);
            }
            if outcome.flags.return_trace {
                flags = p.cons(am::return_trace.term(), flags);
            }
            // The program ends here; what it says lives on.
            p.copy_in(outcome.message)
        })
    } else {
        program.run(p, Object::Term(against))
    };
    let result = result.unwrap_or(am::false_.term());
    Ok(p.tuple(&[am::ok.term(), result, flags, Term::NIL]))
}
