//! The BIFs of `ets` that run match specifications, on tables and by themselves.

use std::sync::Arc;

use parking_lot::RwLockWriteGuard;

use super::{BifResult, Control, Leave, Raise, badarg, bifs};
use crate::code::entry::export;
use crate::ets::registry::Handle;
use crate::ets::select::{self, KeptKeys, Keys, Part, Position, Request, compiled};
use crate::ets::{HashKind, Kind, Objects, Protection, State, Table, error, registry};
use crate::heap::{Heap, MagicBinary, Message};
use crate::matchspec::{Action, Actions, Dialect, MatchSpec, Object, compile};
use crate::process::order::access::Access;
use crate::process::order::director::are_accesses_ordered;
use crate::process::{CONTEXT_REDS, Process, refs};
use crate::sched;
use crate::term::{Atom, Term, am};
use crate::trace::seq;

bifs! {
    all shared;
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
    bif ets:"select_trap"/1 => select_trap_1;
    bif ets:"count_trap"/1 => select_trap_1;
    bif ets:"select_delete_trap"/1 => select_trap_1;
    bif ets:"replace_trap"/1 => select_trap_1;
    bif ets:"select_count"/2 => select_count_2;
    bif ets:"select_replace"/2 => select_replace_2;
    bif ets:"internal_select_delete"/2 => internal_select_delete_2;
    bif ets:"is_compiled_ms"/1 => is_compiled_ms_1;
    bif ets:"match_spec_compile"/1 => match_spec_compile_1;
    bif ets:"match_spec_run_r"/3 => match_spec_run_r_3;
    bif erlang:"match_spec_test"/3 => match_spec_test_3;
}

/// A compiled specification behind a reference, and the keys that it can match.
pub(super) struct Compiled {
    program: MatchSpec,
    keys: KeptKeys,
}

impl Compiled {
    /// For a traversal of a table with keys at `keypos`.
    fn new(spec: Term<'_>, keypos: Option<usize>) -> Result<Compiled, Raise<'static>> {
        let program = compiled(spec)?;
        let keys = keypos.map_or(KeptKeys::All, |keypos| KeptKeys::of(spec, keypos));
        Ok(Compiled { program, keys })
    }

    /// The one that is behind a reference.
    pub(super) fn of(magic: &MagicBinary) -> Option<&Arc<Compiled>> {
        magic.get()
    }

    /// Shows the terms in it.
    pub(super) fn each_constant(&self, show: &mut dyn FnMut(&Message)) {
        self.program.each_constant(show);
        self.keys.term().into_iter().for_each(show);
    }
}

fn program(term: Term<'_>) -> Option<&Compiled> {
    let program = Compiled::of(term.as_ref()?.magic()?)?;
    Some(program)
}

/// A compiled specification in use: a term is made of a new one only where it must outlive the call. So its reference is made
/// once, however often a call has to be made again that it is not the turn of.
#[derive(Clone)]
enum Program<'p> {
    Known(Term<'p>),
    New(Arc<Compiled>),
}

impl<'p> Program<'p> {
    fn new(spec: Term<'_>, keypos: Option<usize>) -> Result<Program<'p>, Raise<'static>> {
        Ok(Program::New(Arc::new(Compiled::new(spec, keypos)?)))
    }

    fn compiled(&self) -> Option<&Compiled> {
        match self {
            Program::Known(term) => program(*term),
            Program::New(compiled) => Some(compiled),
        }
    }

    fn term(&self, p: &'p Process) -> Term<'p> {
        match self {
            Program::Known(term) => *term,
            Program::New(compiled) => {
                let compiled = Box::new(Arc::clone(compiled));
                p.magic_reference(MagicBinary::new(refs::make_ref(), compiled))
            }
        }
    }
}

/// `[{Pattern, [], [Result]}]`.
fn spec_of(pattern: Term<'_>, result: Atom) -> Message {
    Heap::detached().into_message(|heap| {
        let pattern = heap.copy_in(pattern);
        let clause = [pattern, Term::NIL, heap.list(&[result.term()])];
        heap.list(&[heap.tuple(&clause)])
    })
}

/// The operation on the objects that match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Select,
    Count,
    Delete,
    Replace,
}

impl Mode {
    /// Those of [`Traversal::trap`], by number.
    const ALL: [Mode; 4] = [Mode::Select, Mode::Count, Mode::Delete, Mode::Replace];

    /// The BIF that goes on with it in the next time slice.
    fn trap(self) -> Atom {
        match self {
            Mode::Select => am::select_trap,
            Mode::Count => am::count_trap,
            Mode::Delete => am::select_delete_trap,
            Mode::Replace => am::replace_trap,
        }
    }
}

/// A traversal, which may take several time slices (a trap) or calls (a continuation).
struct Traversal<'p> {
    id: Term<'p>,
    program: Program<'p>,
    mode: Mode,
    request: Request,
    from: Position<'p>,
    /// Results so far, the last one first.
    results: Term<'p>,
    got: usize,
    /// The table is fixed for as long as it takes.
    fixed: bool,
}

/// A place as a term: `-1` stands for the end.
fn place_of(position: Position<'_>) -> Term<'_> {
    match position {
        Position::Start => Term::small(0),
        Position::Slot(slot) => Term::small(slot as i64),
        Position::Key(key) => key,
        Position::Known(done) => Term::small(done as i64),
        Position::End => Term::small(-1),
    }
}

impl<'p> Traversal<'p> {
    /// What a continuation stands for: `{Table, Slot, Limit, Program, Results, Got}` or, for ordered
    /// sets, `{Table, LastKey, Known, Limit, Program, Results, Back, Got}`, where `Known` is a number for
    /// a place among known keys.
    fn of(continuation: Term<'p>) -> Option<Traversal<'p>> {
        let (id, program, limit, back, from, results, got) =
            match *continuation.as_tuple()?.elements() {
                [id, slot, limit, program, results, got] => {
                    let from = match slot.as_small()? {
                        -1 => Position::End,
                        slot => Position::Slot(usize::try_from(slot).ok()?),
                    };
                    (id, program, limit, false, from, results, got)
                }
                [id, last, known, limit, program, results, back, got] => {
                    let from = match known.as_index() {
                        Some(done) => Position::Known(done),
                        None => Position::Key(last),
                    };
                    (
                        id,
                        program,
                        limit,
                        back.as_small() == Some(1),
                        from,
                        results,
                        got,
                    )
                }
                _ => return None,
            };
        if results.as_cons().is_none() && !results.is_nil() {
            return None;
        }
        let limit = limit.as_index().filter(|limit| *limit > 0)?;
        Some(Traversal {
            id,
            program: Program::Known(program),
            mode: Mode::Select,
            request: Request { limit, back },
            from,
            results,
            got: got.as_index()?,
            fixed: false,
        })
    }

    /// As arguments of a trap. A hash table's takes all that is left of the time slice.
    fn trap(&self, p: &'p Process) -> Control<'p> {
        let known = matches!(self.from, Position::Known(_) | Position::Slot(_));
        let flags = i64::from(known)
            | i64::from(self.request.back) << 1
            | i64::from(self.fixed) << 2
            | (self.mode as i64) << 3;
        let (place, program) = (place_of(self.from), self.program.term(p));
        let (got, flags) = (p.unsigned(self.got as u64), Term::small(flags));
        let limit = Term::small(self.request.limit as i64);
        let state = match (self.mode, self.from) {
            (Mode::Select, Position::Slot(_)) => {
                p.tuple(&[self.id, place, limit, program, self.results, got, flags])
            }
            // A tree's has a word more there, too.
            (Mode::Select, _) => {
                let back = Term::NIL;
                p.tuple(&[
                    self.id,
                    place,
                    limit,
                    program,
                    self.results,
                    got,
                    flags,
                    back,
                ])
            }
            _ => p.tuple(&[self.id, place, program, got, flags]),
        };
        if let Position::Slot(_) = self.from {
            p.bump_all_reds();
        }
        Control::Trap(export(am::ets, self.mode.trap(), 1), vec![state])
    }

    /// What a trap's argument stands for.
    fn trapped(state: Term<'p>) -> Option<Traversal<'p>> {
        let (id, place, limit, program, results, got, flags) = match *state.as_tuple()?.elements() {
            [id, place, limit, program, results, got, flags]
            | [id, place, limit, program, results, got, flags, _] => {
                (id, place, limit, program, results, got, flags)
            }
            [id, place, program, got, flags] => {
                (id, place, Term::small(0), program, Term::NIL, got, flags)
            }
            _ => return None,
        };
        let flags = flags.as_index()?;
        let from = match place.as_index().filter(|_| flags & 1 != 0) {
            Some(slot) => Position::Slot(slot),
            None => Position::Key(place),
        };
        Some(Traversal {
            id,
            program: Program::Known(program),
            mode: *Mode::ALL.get(flags >> 3)?,
            request: Request {
                limit: limit.as_index()?,
                back: flags & 2 != 0,
            },
            from,
            results,
            got: got.as_index()?,
            fixed: flags & 4 != 0,
        })
    }

    /// Goes through the table for as long as the time slice lasts.
    fn run(mut self, p: &'p Process) -> BifResult<'p> {
        let handle = registry::find(p, self.id)?;
        let table = handle.table();
        let used = self.program.clone();
        let compiled = used.compiled().ok_or_else(badarg)?;
        let keys = compiled.keys.at(table.options.keypos);
        let mut part = Part::new(self.from, self.results, self.got);
        let enough = self.request.limit != 0 && self.got >= self.request.limit;
        let done = if enough || matches!(self.from, Position::End) {
            drop(table.read(p, self.id)?);
            Ok(())
        } else {
            self.advance(p, table, &keys, &compiled.program, &mut part)
        };
        (self.from, self.results, self.got) = (part.position, part.results, part.got);
        if done.is_ok() && part.trap {
            p.bump_reds(self.reds(&part));
            self.id = handle.tid(p, self.id);
            return Err(self.trap(p).into());
        }
        if self.fixed && !matches!(done, Err(Leave::Control(_))) {
            self.unfix(p, table);
        }
        done?;
        p.bump_reds(self.reds(&part));
        Ok(match self.mode {
            Mode::Select if self.request.limit == 0 => self.results,
            Mode::Select => self.split(p, &handle),
            _ => p.unsigned(self.got as u64),
        })
    }

    /// What a part costs.
    fn reds(&self, part: &Part<'p>) -> i64 {
        let reds = match self.mode {
            Mode::Replace => (part.seen + self.got).min(2 * select::MAX_ITERATIONS),
            _ => part.seen,
        };
        reds as i64
    }

    fn advance(
        &mut self,
        p: &'p Process,
        table: &Table,
        keys: &Keys<'_>,
        program: &MatchSpec,
        part: &mut Part<'p>,
    ) -> Result<(), Leave<'p>> {
        let writes = matches!(self.mode, Mode::Delete | Mode::Replace);
        if writes {
            let mut state = table.write(p, self.id)?;
            self.fix(p, table, &mut state);
            let is_others = state.fixes.total() > usize::from(self.fixed);
            let objects = &mut state.objects;
            let done = match self.mode {
                Mode::Delete => select::delete(p, (objects, is_others), keys, program, part),
                _ => select::replace(p, objects, keys, program, part),
            };
            self.end(p, table, &mut state, done.is_ok() && part.trap);
            return Ok(done?);
        }
        if are_accesses_ordered() {
            let kind = |state: &State| match self.fixed || self.may_trap(p, state) {
                true => Access::Write,
                false => Access::Read,
            };
            let mut state = table.read_as(p, self.id, kind)?;
            self.fix(p, table, &mut state);
            let done = self.look(p, &state.objects, keys, program, part);
            self.end(p, table, &mut state, done.is_ok() && part.trap);
            return Ok(done?);
        }
        let state = if self.may_trap(p, &*table.read(p, self.id)?) {
            let mut state = table.read_exclusive(p, self.id)?;
            self.fix(p, table, &mut state);
            RwLockWriteGuard::downgrade(state)
        } else {
            table.read(p, self.id)?
        };
        Ok(self.look(p, &state.objects, keys, program, part)?)
    }

    /// Goes through objects without changing any.
    fn look(
        &self,
        p: &'p Process,
        objects: &Objects,
        keys: &Keys<'_>,
        program: &MatchSpec,
        part: &mut Part<'p>,
    ) -> Result<(), Raise<'p>> {
        match self.mode {
            Mode::Count => select::count(p, objects, keys, program, part),
            _ => select::select(p, objects, keys, program, self.request, part),
        }
    }

    /// Gives up its fixation unless it goes on, in the same access.
    fn end(&mut self, p: &Process, table: &Table, state: &mut State, goes_on: bool) {
        if self.fixed && !goes_on {
            self.fixed = false;
            if state.unfix(p.pid()) {
                registry::note_unfix(p.pid(), table);
            }
        }
    }

    /// Must the table be fixed, lest slots move until the next time slice? Only others' changes can do
    /// that, and only where places are slots.
    fn may_trap(&self, p: &Process, state: &State) -> bool {
        let alone = state.protection != Protection::Public && state.owner == p.pid();
        let slots = matches!(state.objects, Objects::Hash(_));
        !self.fixed && slots && !alone && state.objects.len() >= select::MAX_ITERATIONS
    }

    fn fix(&mut self, p: &Process, table: &Table, state: &mut State) {
        if self.may_trap(p, state) {
            let now = sched::clock::erlang_monotonic_ns();
            if state.fix(p.pid(), now) {
                registry::note_fix(p.pid(), table);
            }
            self.fixed = true;
        }
    }

    fn unfix(&self, p: &Process, table: &Table) {
        let mut state = table.state();
        if !state.deleted && state.unfix(p.pid()) {
            registry::note_unfix(p.pid(), table);
        }
    }

    /// `{Results, Continuation}` of a traversal with a limit.
    fn split(&self, p: &'p Process, handle: &Handle<'p>) -> Term<'p> {
        let ordered = handle.table().options.kind == Kind::OrderedSet;
        let limit = self.request.limit;
        let (mut results, mut rest) = (self.results, Vec::new());
        // A continuation that a program has made may tell of more than there are.
        for _ in limit..self.got {
            let Some(cell) = results.as_cons() else { break };
            rest.push(cell.head());
            results = cell.tail();
        }
        if ordered {
            const REVERSED_PER_RED: usize = 10;
            p.bump_reds(self.got.min(limit).div_ceil(REVERSED_PER_RED) as i64);
            results = results
                .list_iter()
                .flatten()
                .fold(Term::NIL, |done, result| p.cons(result, done));
        }
        let end = matches!(self.from, Position::End);
        if end && rest.is_empty() {
            let end = am::end_of_table.term();
            return if results.is_nil() {
                end
            } else {
                p.tuple(&[results, end])
            };
        }
        let id = handle.tid(p, self.id);
        let left = Term::small(rest.len() as i64);
        let rest = p.list(&rest);
        let limit = Term::small(limit as i64);
        let place = place_of(self.from);
        let continuation = if ordered {
            let known = match self.from {
                Position::Known(_) => place,
                _ => Term::NIL,
            };
            let back = Term::small(self.request.back.into());
            p.tuple(&[
                id,
                place,
                known,
                limit,
                self.program.term(p),
                rest,
                back,
                left,
            ])
        } else {
            p.tuple(&[id, place, limit, self.program.term(p), rest, left])
        };
        p.tuple(&[results, continuation])
    }
}

/// The place of keys in a table that `p` may access so.
fn keypos_of<'p>(p: &'p Process, id: Term<'p>, access: Access) -> Result<usize, Leave<'p>> {
    let handle = registry::find(p, id)?;
    handle.table().may(p, id, access)?;
    Ok(handle.table().options.keypos)
}

/// Begins a traversal of a table with keys at `keypos`.
fn begin<'p>(
    p: &'p Process,
    (id, keypos): (Term<'p>, usize),
    spec: Term<'_>,
    mode: Mode,
    request: Request,
) -> BifResult<'p> {
    let traversal = Traversal {
        id,
        program: Program::new(spec, Some(keypos))?,
        mode,
        request,
        from: Position::Start,
        results: Term::NIL,
        got: 0,
        fixed: false,
    };
    traversal.run(p)
}

fn select<'p>(p: &'p Process, id: Term<'p>, spec: Term<'_>, back: bool) -> BifResult<'p> {
    // The table's own errors come first.
    let keypos = keypos_of(p, id, Access::Read)?;
    begin(
        p,
        (id, keypos),
        spec,
        Mode::Select,
        Request { limit: 0, back },
    )
}

fn select_2<'p>(p: &'p Process, [id, spec]: [Term<'p>; 2]) -> BifResult<'p> {
    select(p, id, spec, false)
}

fn select_reverse_2<'p>(p: &'p Process, [id, spec]: [Term<'p>; 2]) -> BifResult<'p> {
    select(p, id, spec, true)
}

fn match_2<'p>(p: &'p Process, [id, pattern]: [Term<'p>; 2]) -> BifResult<'p> {
    select(p, id, spec_of(pattern, am::dollar_dollar).term(), false)
}

fn match_object_2<'p>(p: &'p Process, [id, pattern]: [Term<'p>; 2]) -> BifResult<'p> {
    select(p, id, spec_of(pattern, am::dollar_underscore).term(), false)
}

fn select_part<'p>(
    p: &'p Process,
    [id, limit]: [Term<'p>; 2],
    spec: Term<'_>,
    back: bool,
) -> BifResult<'p> {
    let keypos = keypos_of(p, id, Access::Read)?;
    let limit = limit
        .as_index()
        .filter(|limit| *limit > 0)
        .ok_or_else(badarg)?;
    begin(p, (id, keypos), spec, Mode::Select, Request { limit, back })
}

fn select_3<'p>(p: &'p Process, [id, spec, limit]: [Term<'p>; 3]) -> BifResult<'p> {
    select_part(p, [id, limit], spec, false)
}

fn select_reverse_3<'p>(p: &'p Process, [id, spec, limit]: [Term<'p>; 3]) -> BifResult<'p> {
    select_part(p, [id, limit], spec, true)
}

fn match_3<'p>(p: &'p Process, [id, pattern, limit]: [Term<'p>; 3]) -> BifResult<'p> {
    select_part(
        p,
        [id, limit],
        spec_of(pattern, am::dollar_dollar).term(),
        false,
    )
}

fn match_object_3<'p>(p: &'p Process, [id, pattern, limit]: [Term<'p>; 3]) -> BifResult<'p> {
    let spec = spec_of(pattern, am::dollar_underscore);
    select_part(p, [id, limit], spec.term(), false)
}

fn select_1<'p>(p: &'p Process, [continuation]: [Term<'p>; 1]) -> BifResult<'p> {
    if continuation == am::end_of_table {
        return Ok(continuation);
    }
    let tuple = continuation.as_tuple().ok_or_else(badarg)?;
    let id = tuple.elements().first().ok_or_else(badarg)?;
    registry::find(p, *id)?.table().may(p, *id, Access::Read)?;
    Traversal::of(continuation).ok_or_else(badarg)?.run(p)
}

fn select_trap_1<'p>(p: &'p Process, [state]: [Term<'p>; 1]) -> BifResult<'p> {
    Traversal::trapped(state).ok_or_else(badarg)?.run(p)
}

const ALL: Request = Request {
    limit: 0,
    back: false,
};

fn select_count_2<'p>(p: &'p Process, [id, spec]: [Term<'p>; 2]) -> BifResult<'p> {
    let keypos = keypos_of(p, id, Access::Read)?;
    begin(p, (id, keypos), spec, Mode::Count, ALL)
}

fn internal_select_delete_2<'p>(p: &'p Process, [id, spec]: [Term<'p>; 2]) -> BifResult<'p> {
    let keypos = keypos_of(p, id, Access::Write)?;
    begin(p, (id, keypos), spec, Mode::Delete, ALL)
}

fn select_replace_2<'p>(p: &'p Process, [id, spec]: [Term<'p>; 2]) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let table = handle.table();
    table.may(p, id, Access::Write)?;
    if table.options.kind == Kind::Hash(HashKind::Bag) {
        return Err(error(am::table_type).into());
    }
    compiled(spec)?;
    if !select::keeps_keys(spec, table.options.keypos) {
        return Err(badarg().into());
    }
    begin(p, (id, table.options.keypos), spec, Mode::Replace, ALL)
}

fn is_compiled_ms_1<'p>(_p: &'p Process, [term]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(Term::bool(program(term).is_some()))
}

fn match_spec_compile_1<'p>(p: &'p Process, [spec]: [Term<'p>; 1]) -> BifResult<'p> {
    if spec.is_nil() {
        return Err(badarg().into());
    }
    Ok(Program::new(spec, None)?.term(p))
}

/// Results of a list's terms, the last one first, before `results`; a time slice takes as many terms as it has
/// reductions.
fn match_spec_run_r_3<'p>(
    p: &'p Process,
    [list, compiled, results]: [Term<'p>; 3],
) -> BifResult<'p> {
    if list.as_cons().is_none() && !list.is_nil() {
        return Err(badarg().into());
    }
    let program = &program(compiled).ok_or_else(badarg)?.program;
    let (mut rest, mut results) = (list, results);
    let mut seen = 0;
    while let Some(cell) = rest.as_cons() {
        if seen == CONTEXT_REDS {
            p.bump_all_reds();
            return Err(Control::YieldWith(vec![rest, compiled, results]).into());
        }
        seen += 1;
        if let Some(result) = program.run(p, Object::Term(cell.head())) {
            results = p.cons(result, results);
        }
        rest = cell.tail();
    }
    if !rest.is_nil() {
        return Err(badarg().into());
    }
    p.bump_reds(seen);
    Ok(results)
}

/// Actions in a test: nobody is traced.
struct Test<'p>(&'p Process);

impl<'p> Actions<'p> for Test<'p> {
    fn act(&mut self, action: Action, args: &[Term<'p>]) -> Option<Term<'p>> {
        Some(match action {
            Action::Caller | Action::CallerLine => am::undefined.term(),
            Action::IsSeqTrace => Term::bool(seq::is_traced(self.0)),
            Action::GetSeqToken => seq::token_term(self.0, self.0),
            // It is read, not set.
            Action::SetSeqToken => seq::component(self.0, args[0])?,
            Action::Silent => am::true_.term(),
            Action::Display => {
                let call = super::all()[super::find(am::erlang, am::display, 1)?].call;
                call.plain(self.0, args)?.ok()?
            }
            _ => return None,
        })
    }
}

fn match_spec_test_3<'p>(p: &'p Process, [against, spec, dialect]: [Term<'p>; 3]) -> BifResult<'p> {
    let trace = match dialect.as_atom() {
        Some(am::trace) => true,
        Some(am::table) => false,
        _ => return Err(badarg().into()),
    };
    if trace && against.as_cons().is_none() && !against.is_nil() {
        return Err(badarg().into());
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
