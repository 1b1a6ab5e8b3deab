//! Match specifications run over tables.

use std::ops::ControlFlow;

use super::{Hash, Objects, State, Tree};
use crate::bif::{Raise, badarg};
use crate::heap::Stored;
use crate::matchspec::{Dialect, MatchSpec, Object, compile, is_fully_bound, is_wild};
use crate::process::Process;
use crate::term::compare::eq_exact;
use crate::term::{Term, am};

/// Compiles `spec` for tables.
///
/// # Errors
/// `badarg`, or `system_limit` where it is nested too deep.
pub(crate) fn compiled(spec: Term<'_>) -> Result<MatchSpec, Raise<'static>> {
    compile(spec, Dialect::TABLE).map_err(|failure| {
        if failure.system_limit {
            crate::bif::system_limit()
        } else {
            badarg()
        }
    })
}

/// What a specification says about the keys it can match.
pub(crate) enum Keys<'a> {
    /// These at most.
    Some(Vec<Term<'a>>),
    /// Those that match this.
    Like(Term<'a>),
    /// Any.
    All,
}

impl<'a> Keys<'a> {
    /// What `spec`, which has been compiled, says about keys at `keypos`.
    pub(crate) fn of(spec: Term<'a>, keypos: usize) -> Keys<'a> {
        let mut keys = Vec::new();
        let mut like = None;
        let mut clauses = 0;
        for clause in spec.list_iter().flatten() {
            let head = clause.as_tuple().map(|clause| clause.get(0));
            let Some(head) = head else { continue };
            if head.as_atom().is_some_and(is_wild) {
                return Keys::All;
            }
            clauses += 1;
            let tuple = head.as_tuple().filter(|tuple| tuple.arity() >= keypos);
            let Some(key) = tuple.map(|tuple| tuple.get(keypos - 1)) else {
                continue;
            };
            if !is_fully_bound(key) {
                like = Some(key);
            } else if !keys.iter().any(|other| eq_exact(*other, key)) {
                keys.push(key);
            }
        }
        match like {
            None => Keys::Some(keys),
            Some(key) if clauses == 1 && !key.as_atom().is_some_and(is_wild) => Keys::Like(key),
            Some(_) => Keys::All,
        }
    }
}

/// Visits the objects that may match, in the table's order (or against it).
fn visit<'o, B>(
    objects: &'o Objects,
    keys: &Keys<'_>,
    back: bool,
    mut with: impl FnMut(&'o Stored) -> ControlFlow<B>,
) -> ControlFlow<B> {
    match (objects, keys) {
        (_, Keys::Some(keys)) => {
            let mut keys = keys.clone();
            if let Objects::Tree(_) = objects {
                keys.sort_by(|a, b| crate::term::compare::cmp(*a, *b));
                keys.dedup_by(|a, b| crate::term::compare::eq(*a, *b));
                if back {
                    keys.reverse();
                }
            }
            keys.iter()
                .flat_map(|key| objects.get(*key))
                .try_for_each(with)
        }
        (Objects::Hash(hash), _) => {
            let mut from = 0;
            while let Some((at, objects)) = hash.from(from) {
                objects.iter().try_for_each(&mut with)?;
                from = at + 1;
            }
            ControlFlow::Continue(())
        }
        (Objects::Tree(tree), keys) => {
            let pattern = match keys {
                Keys::Like(pattern) => Some(*pattern),
                _ => None,
            };
            let mut range = tree.rest(pattern, None, back);
            if back {
                range.rev().try_for_each(with)
            } else {
                range.try_for_each(with)
            }
        }
    }
}

/// Reductions that looking at `objects` objects costs.
fn bump(p: &Process, objects: usize) {
    p.bump_reds((objects / 10) as i64);
}

/// All results of `program`, in the table's order.
pub(crate) fn select<'p>(
    p: &'p Process,
    objects: &Objects,
    keys: &Keys<'_>,
    program: &MatchSpec,
    back: bool,
) -> Term<'p> {
    let mut seen = 0;
    if let Objects::Hash(_) = objects {
        let mut results = Vec::new();
        let _ = visit(objects, keys, back, |object| {
            seen += 1;
            results.extend(run(p, program, object));
            ControlFlow::<()>::Continue(())
        });
        bump(p, seen);
        return p.list(&results);
    }
    // Built from its end.
    let mut results = Term::NIL;
    let _ = visit(objects, keys, !back, |object| {
        seen += 1;
        if let Some(result) = run(p, program, object) {
            results = p.cons(result, results);
        }
        ControlFlow::<()>::Continue(())
    });
    bump(p, seen);
    results
}

/// The program's result for one object.
#[inline]
fn run<'p>(p: &'p Process, program: &MatchSpec, object: &Stored) -> Option<Term<'p>> {
    program.run(p, Object::Stored(object))
}

/// How many objects the program says `true` to.
pub(crate) fn count(p: &Process, objects: &Objects, keys: &Keys<'_>, program: &MatchSpec) -> usize {
    let (mut seen, mut count) = (0, 0);
    let _ = visit(objects, keys, false, |object| {
        seen += 1;
        count += usize::from(program.is_true(p, Object::Stored(object)));
        ControlFlow::<()>::Continue(())
    });
    bump(p, seen);
    count
}

/// Deletes the objects the program says `true` to; how many.
pub(crate) fn delete(
    p: &Process,
    state: &mut State,
    keys: &Keys<'_>,
    program: &MatchSpec,
) -> usize {
    let fixed = state.fixes.any();
    let keep = |object: &Stored| !program.is_true(p, Object::Stored(object));
    let seen = state.objects.len();
    let gone = match &mut state.objects {
        Objects::Hash(hash) => delete_hash(hash, keys, fixed, keep),
        Objects::Tree(_) => {
            let mut gone = Vec::new();
            let heap = crate::heap::Heap::detached();
            let keypos = state.objects.key_index();
            let _ = visit(&state.objects, keys, false, |object| {
                if !keep(object) {
                    gone.push(heap.copy_in(object.elements()[keypos]));
                }
                ControlFlow::<()>::Continue(())
            });
            for key in &gone {
                state.objects.remove(*key, fixed);
            }
            gone.len()
        }
    };
    bump(p, seen);
    gone
}

fn delete_hash(
    hash: &mut Hash,
    keys: &Keys<'_>,
    fixed: bool,
    mut keep: impl FnMut(&Stored) -> bool,
) -> usize {
    if let Keys::Some(keys) = keys {
        let mut gone = 0;
        for key in keys {
            if let Some(at) = hash.position(*key) {
                gone += hash.retain(at, fixed, &mut keep);
            }
        }
        return gone;
    }
    let (mut from, mut gone) = (0, 0);
    while let Some((at, _)) = hash.from(from) {
        gone += hash.retain(at, fixed, &mut keep);
        from = at + 1;
    }
    gone
}

impl Objects {
    /// Index of the key in an object, from 0.
    pub(crate) fn key_index(&self) -> usize {
        match self {
            Objects::Hash(hash) => hash.key_index(),
            Objects::Tree(tree) => tree.key_index(),
        }
    }
}

/// Replaces each object that matches by the program's result; how many.
///
/// # Errors
/// `badarg` where a result is no object with the same key; those before it stay replaced.
pub(crate) fn replace(
    p: &Process,
    objects: &mut Objects,
    keys: &Keys<'_>,
    program: &MatchSpec,
) -> Result<usize, Raise<'static>> {
    let keypos = objects.key_index();
    let mut replaced = Vec::new();
    let found = visit(objects, keys, false, |object| {
        let Some(result) = run(p, program, object) else {
            return ControlFlow::Continue(());
        };
        let key = object.elements()[keypos];
        match result.as_tuple() {
            Some(tuple) if tuple.arity() > keypos && eq_exact(tuple.get(keypos), key) => {
                replaced.push((Stored::new(tuple), object.term().raw()));
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        }
    });
    let count = replaced.len();
    let mut replaced = replaced.into_iter().peekable();
    match objects {
        Objects::Tree(tree) => replaced.for_each(|(object, _)| tree.insert(object)),
        Objects::Hash(hash) => {
            while let Some((object, _)) = replaced.peek() {
                let Some(at) = hash.position(object.elements()[keypos]) else {
                    break;
                };
                let places = hash.from(at).map_or(0, |(_, objects)| objects.len());
                for index in 0..places {
                    let is_next = replaced.peek().is_some_and(|(_, old)| {
                        hash.from(at)
                            .is_some_and(|(_, all)| all[index].term().raw() == *old)
                    });
                    if is_next && let Some((object, _)) = replaced.next() {
                        hash.replace(at, index, object);
                    }
                }
            }
        }
    }
    match found {
        ControlFlow::Continue(()) => Ok(count),
        ControlFlow::Break(()) => Err(badarg()),
    }
}

/// Where a traversal in parts stands.
#[derive(Clone, Copy)]
pub(crate) enum Position<'p> {
    /// At its start.
    Start,
    /// In a hash table: at a place, that many of its objects done.
    Place(usize, usize),
    /// In an ordered table: behind a key.
    Key(Term<'p>),
}

/// A part of the results.
pub(crate) struct Chunk<'p> {
    /// In the table's order.
    pub(crate) results: Vec<Term<'p>>,
    /// Where it goes on; `None` at the end.
    pub(crate) rest: Option<Position<'p>>,
}

/// Up to `limit` results, from `from` on.
pub(crate) fn chunk<'p>(
    p: &'p Process,
    objects: &Objects,
    keys: &Keys<'_>,
    program: &MatchSpec,
    from: Position<'_>,
    limit: usize,
    back: bool,
) -> Chunk<'p> {
    match (objects, keys) {
        (_, Keys::Some(_)) => chunk_of_keys(p, objects, keys, program, from, limit, back),
        (Objects::Hash(hash), _) => chunk_of_hash(p, hash, program, from, limit),
        (Objects::Tree(tree), keys) => {
            let pattern = match keys {
                Keys::Like(pattern) => Some(*pattern),
                _ => None,
            };
            chunk_of_tree(p, tree, pattern, program, from, limit, back)
        }
    }
}

/// Keys are known: places count the objects they have.
fn chunk_of_keys<'p>(
    p: &'p Process,
    objects: &Objects,
    keys: &Keys<'_>,
    program: &MatchSpec,
    from: Position<'_>,
    limit: usize,
    back: bool,
) -> Chunk<'p> {
    let done = match from {
        Position::Place(done, _) => done,
        _ => 0,
    };
    let mut results = Vec::new();
    let mut at = 0;
    let found = visit(objects, keys, back, |object| {
        at += 1;
        if at > done
            && let Some(result) = run(p, program, object)
        {
            results.push(result);
            if results.len() == limit {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    let rest = found.is_break().then_some(Position::Place(at, 0));
    Chunk { results, rest }
}

fn chunk_of_hash<'p>(
    p: &'p Process,
    hash: &Hash,
    program: &MatchSpec,
    from: Position<'_>,
    limit: usize,
) -> Chunk<'p> {
    let (mut from, mut skip) = match from {
        Position::Place(place, done) => (place, done),
        _ => (0, 0),
    };
    let mut results = Vec::new();
    let mut seen = 0;
    while let Some((at, objects)) = hash.from(from) {
        // What was done of an entry that is gone says nothing about the next one.
        let done = if at == from { skip } else { 0 };
        for (i, object) in objects.iter().enumerate().skip(done) {
            seen += 1;
            if let Some(result) = run(p, program, object) {
                results.push(result);
                if results.len() == limit {
                    bump(p, seen);
                    let rest = if i + 1 == objects.len() {
                        Position::Place(at + 1, 0)
                    } else {
                        Position::Place(at, i + 1)
                    };
                    return Chunk {
                        results,
                        rest: Some(rest),
                    };
                }
            }
        }
        (from, skip) = (at + 1, 0);
    }
    bump(p, seen);
    Chunk {
        results,
        rest: None,
    }
}

fn chunk_of_tree<'p>(
    p: &'p Process,
    tree: &Tree,
    pattern: Option<Term<'_>>,
    program: &MatchSpec,
    from: Position<'_>,
    limit: usize,
    back: bool,
) -> Chunk<'p> {
    let last = match from {
        Position::Key(key) => Some(key),
        _ => None,
    };
    let mut range = tree.rest(pattern, last, back);
    let mut results = Vec::new();
    let mut seen = 0;
    while let Some(object) = if back {
        range.next_back()
    } else {
        range.next()
    } {
        seen += 1;
        if let Some(result) = run(p, program, object) {
            results.push(result);
            if results.len() == limit {
                bump(p, seen);
                let key = p.copy_in(object.elements()[tree.key_index()]);
                return Chunk {
                    results,
                    rest: Some(Position::Key(key)),
                };
            }
        }
    }
    bump(p, seen);
    Chunk {
        results,
        rest: None,
    }
}

/// Does every clause of `spec` give objects the key of those it matches, as far as can be told from
/// its text? `select_replace/2` demands it.
pub(crate) fn keeps_keys(spec: Term<'_>, keypos: usize) -> bool {
    spec.list_iter().flatten().all(|clause| {
        clause
            .as_tuple()
            .is_some_and(|clause| keeps_key(clause.get(0), clause.get(2), keypos))
    })
}

fn key_in(tuple: Term<'_>, keypos: usize) -> Option<Term<'_>> {
    let tuple = tuple.as_tuple()?;
    (tuple.arity() >= keypos).then(|| tuple.get(keypos - 1))
}

fn keeps_key(head: Term<'_>, body: Term<'_>, keypos: usize) -> bool {
    let Some(cell) = body.as_cons().filter(|cell| cell.tail().is_nil()) else {
        return false;
    };
    let result = cell.head();
    if result == am::dollar_underscore {
        return true;
    }
    let (Some(key), Some(tuple)) = (key_in(head, keypos), result.as_tuple()) else {
        return false;
    };
    let (made, constant) = match tuple.elements() {
        [first, constant] if *first == am::const_ => (*constant, true),
        [made] => (*made, false),
        _ => return false,
    };
    let Some(made) = key_in(made, keypos) else {
        return false;
    };
    if builds(key, made, constant) {
        return true;
    }
    match made.as_tuple().map(|call| call.elements()) {
        Some([name, position, object]) if !constant => {
            *name == am::element
                && *object == am::dollar_underscore
                && position.as_index() == Some(keypos)
        }
        _ => false,
    }
}

/// Does `body` build just what `pattern` has matched?
fn builds(pattern: Term<'_>, body: Term<'_>, constant: bool) -> bool {
    use crate::term::View;
    match body.view() {
        View::Cons(b) => pattern.as_cons().is_some_and(|a| {
            builds(a.head(), b.head(), constant) && builds(a.tail(), b.tail(), constant)
        }),
        View::Tuple(tuple) => {
            let mut made = tuple;
            if !constant {
                match tuple.elements() {
                    [first, value] if *first == am::const_ => return builds(pattern, *value, true),
                    [inner] => match inner.as_tuple() {
                        Some(inner) => made = inner,
                        None => return false,
                    },
                    _ => return false,
                }
            }
            pattern.as_tuple().is_some_and(|pattern| {
                let pairs = pattern.elements().iter().zip(made.elements());
                pattern.arity() == made.arity()
                    && pairs.into_iter().all(|(a, b)| builds(*a, *b, constant))
            })
        }
        View::Map(_) => false,
        View::Atom(atom) => {
            let special =
                [am::underscore, am::dollar_dollar, am::dollar_underscore].contains(&atom);
            let variable = constant && crate::matchspec::variable(atom).is_some();
            pattern.same(body) && !special && !variable
        }
        _ => eq_exact(pattern, body),
    }
}
