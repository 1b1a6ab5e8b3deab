//! Runs match specifications over tables.

use std::ops::Deref;

use super::{Hash, Objects, Tree};
use crate::heap::{Message, Stored};
use crate::matchspec::{Dialect, MatchSpec, Object, compile, is_fully_bound, is_wild};
use crate::process::Process;
use crate::process::{Raise, badarg};
use crate::term::compare::{cmp, eq, eq_exact};
use crate::term::{Term, am};

/// Compiles `spec` for a traversal of a table, where, and only where, it may be empty.
///
/// # Errors
/// `badarg`, or `system_limit` where it is nested too deep.
pub(crate) fn compiled(spec: Term<'_>) -> Result<MatchSpec, Raise<'static>> {
    if spec.is_nil() {
        return Ok(MatchSpec::default());
    }
    compile(spec, Dialect::TABLE).map_err(|failure| {
        if failure.system_limit {
            crate::process::system_limit()
        } else {
            badarg()
        }
    })
}

/// The keys that a specification can match.
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

/// [`Keys`] of a specification that is needed no more, for tables with keys in a certain place of their objects.
pub(crate) enum KeptKeys {
    /// Those in a tuple.
    Some(usize, Message),
    Like(usize, Message),
    All,
}

impl KeptKeys {
    /// Copies what `spec`, which has been compiled, says about keys at `keypos`.
    pub(crate) fn of(spec: Term<'_>, keypos: usize) -> KeptKeys {
        match Keys::of(spec, keypos) {
            Keys::Some(keys) => KeptKeys::Some(keypos, Message::of_tuple(&keys)),
            Keys::Like(pattern) => KeptKeys::Like(keypos, Message::copy_of(pattern)),
            Keys::All => KeptKeys::All,
        }
    }

    /// The term that it keeps.
    pub(crate) fn term(&self) -> Option<&Message> {
        match self {
            KeptKeys::Some(_, kept) | KeptKeys::Like(_, kept) => Some(kept),
            KeptKeys::All => None,
        }
    }

    /// For a table with keys at `keypos`.
    pub(crate) fn at(&self, keypos: usize) -> Keys<'_> {
        match self {
            KeptKeys::Some(place, keys) if *place == keypos => {
                let keys = keys.term().as_tuple();
                Keys::Some(keys.map_or(Vec::new(), |keys| keys.elements().to_vec()))
            }
            KeptKeys::Like(place, pattern) if *place == keypos => Keys::Like(pattern.term()),
            _ => Keys::All,
        }
    }
}

/// Objects looked at before a process gives way.
pub(crate) const MAX_ITERATIONS: usize = 1000;

/// Where a traversal stands.
#[derive(Clone, Copy)]
pub(crate) enum Position<'p> {
    /// At its start.
    Start,
    /// In a hash table: before a slot.
    Slot(usize),
    /// In an ordered table: behind a key.
    Key(Term<'p>),
    /// Where the keys are known: behind that many objects that they have.
    Known(usize),
    /// At its end.
    End,
}

/// The results that a traversal is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    /// Results to stop at; 0: all.
    pub(crate) limit: usize,
    /// Against the order of keys.
    pub(crate) back: bool,
}

/// The results of a part of a traversal.
pub(crate) struct Part<'p> {
    /// Where it goes on.
    pub(crate) position: Position<'p>,
    /// Time is up: it must go on in the next slice.
    pub(crate) trap: bool,
    /// Results, the last one first.
    pub(crate) results: Term<'p>,
    /// How many there are, those of earlier parts included.
    pub(crate) got: usize,
    /// Objects looked at.
    pub(crate) seen: usize,
}

impl<'p> Part<'p> {
    /// The start of a part.
    pub(crate) fn new(position: Position<'p>, results: Term<'p>, got: usize) -> Part<'p> {
        Part {
            position,
            trap: false,
            results,
            got,
            seen: 0,
        }
    }

    fn stop(&mut self, position: Position<'p>, trap: bool) {
        (self.position, self.trap) = (position, trap);
    }
}

/// The program's result for one object.
#[inline]
fn run<'p>(p: &'p Process, program: &MatchSpec, object: &Stored) -> Option<Term<'p>> {
    program.run(p, Object::Stored(object))
}

/// Visits the slots of a hash table that may have what matches, from where `part` stands on, until
/// there are `limit` results or time is up. `visit` tells of a slot how many of its objects were looked
/// at and how many matched.
fn visit_slots<'p, H: Deref<Target = Hash>>(
    hash: &mut H,
    keys: &Keys<'_>,
    limit: usize,
    part: &mut Part<'p>,
    mut visit: impl FnMut(&mut H, usize, &mut Part<'p>) -> Result<(usize, usize), Raise<'static>>,
) -> Result<(), Raise<'static>> {
    let mut slot = match (part.position, keys) {
        (Position::Start, Keys::Some(keys)) => {
            let slots: Vec<_> = keys.iter().filter_map(|key| hash.slot_with(*key)).collect();
            for (i, slot) in slots.iter().enumerate() {
                if !slots[..i].contains(slot) {
                    let (seen, got) = visit(hash, *slot, part)?;
                    part.seen += seen;
                    part.got += got;
                }
            }
            part.stop(Position::End, false);
            return Ok(());
        }
        (Position::Start, _) => 0,
        (Position::Slot(slot), _) if slot < hash.slot_count() => slot,
        _ => return Err(badarg()),
    };
    loop {
        hash.fetch_behind(slot);
        let (seen, got) = visit(hash, slot, part)?;
        part.seen += seen;
        part.got += got;
        match hash.next_slot(slot) {
            None => {
                part.stop(Position::End, false);
                return Ok(());
            }
            Some(next) => slot = next,
        }
        let enough = limit != 0 && part.got >= limit;
        if enough || part.seen >= MAX_ITERATIONS {
            part.stop(Position::Slot(slot), !enough);
            return Ok(());
        }
    }
}

/// Visits the objects of an ordered table that may match, from where `part` stands on, until there are
/// enough results or time is up. `visit` says whether an object matched.
fn visit_tree<'p>(
    p: &'p Process,
    tree: &Tree,
    keys: &Keys<'_>,
    Request { limit, back }: Request,
    part: &mut Part<'p>,
    mut visit: impl FnMut(&Stored, &mut Part<'p>) -> Result<bool, Raise<'static>>,
) -> Result<(), Raise<'static>> {
    if let Keys::Some(keys) = keys {
        return visit_known(tree, keys, Request { limit, back }, part, visit);
    }
    let pattern = match keys {
        Keys::Like(pattern) => Some(*pattern),
        _ => None,
    };
    let last = match part.position {
        Position::Key(key) => Some(key),
        _ => None,
    };
    let mut range = tree.rest(pattern, last, back);
    loop {
        let object = if back {
            range.next_back()
        } else {
            range.next()
        };
        let Some(object) = object else {
            part.stop(Position::End, false);
            return Ok(());
        };
        part.seen += 1;
        if visit(object, part)? {
            part.got += 1;
        }
        let enough = limit != 0 && part.got >= limit;
        if enough || part.seen >= MAX_ITERATIONS {
            let key = p.copy_in(object.elements()[tree.key_index()]);
            part.stop(Position::Key(key), !enough);
            return Ok(());
        }
    }
}

/// As [`visit_tree`], where the keys are known.
fn visit_known<'p>(
    tree: &Tree,
    keys: &[Term<'_>],
    Request { limit, back }: Request,
    part: &mut Part<'p>,
    mut visit: impl FnMut(&Stored, &mut Part<'p>) -> Result<bool, Raise<'static>>,
) -> Result<(), Raise<'static>> {
    let mut keys = keys.to_vec();
    keys.sort_by(|a, b| cmp(*a, *b));
    keys.dedup_by(|a, b| eq(*a, *b));
    if back {
        keys.reverse();
    }
    let done = match part.position {
        Position::Known(done) => done,
        _ => 0,
    };
    let objects = keys.iter().filter_map(|key| tree.get(*key));
    for (at, object) in objects.enumerate().skip(done) {
        part.seen += 1;
        if visit(object, part)? {
            part.got += 1;
        }
        if limit != 0 && part.got >= limit {
            part.stop(Position::Known(at + 1), false);
            return Ok(());
        }
    }
    part.stop(Position::End, false);
    Ok(())
}

/// Adds results to `part`. They are in the order of the traversal, the last one first; without a limit
/// an ordered table is traversed against the order that is asked for.
///
/// # Errors
/// `badarg` where the table has no such place any more.
pub(crate) fn select<'p>(
    p: &'p Process,
    objects: &Objects,
    keys: &Keys<'_>,
    program: &MatchSpec,
    request: Request,
    part: &mut Part<'p>,
) -> Result<(), Raise<'static>> {
    match objects {
        Objects::Hash(hash) => {
            let mut hash = hash;
            visit_slots(&mut hash, keys, request.limit, part, |hash, slot, part| {
                let (mut seen, mut got) = (0, 0);
                for object in hash.slot(slot).into_iter().flatten() {
                    seen += 1;
                    if let Some(result) = run(p, program, object) {
                        part.results = p.cons(result, part.results);
                        got += 1;
                    }
                }
                Ok((seen, got))
            })
        }
        Objects::Tree(tree) => {
            let back = request.back != (request.limit == 0);
            let request = Request { back, ..request };
            visit_tree(p, tree, keys, request, part, |object, part| {
                let result = run(p, program, object);
                if let Some(result) = result {
                    part.results = p.cons(result, part.results);
                }
                Ok(result.is_some())
            })
        }
    }
}

const ALL: Request = Request {
    limit: 0,
    back: false,
};

/// Counts the objects the program says `true` to.
///
/// # Errors
/// As [`select`].
pub(crate) fn count<'p>(
    p: &'p Process,
    objects: &Objects,
    keys: &Keys<'_>,
    program: &MatchSpec,
    part: &mut Part<'p>,
) -> Result<(), Raise<'static>> {
    let is_true = |object: &Stored| program.is_true(p, Object::Stored(object));
    match objects {
        Objects::Hash(hash) => {
            let mut hash = hash;
            visit_slots(&mut hash, keys, 0, part, |hash, slot, _| {
                let objects = hash.slot(slot).into_iter().flatten();
                Ok(objects.fold((0, 0), |(seen, got), object| {
                    (seen + 1, got + usize::from(is_true(object)))
                }))
            })
        }
        Objects::Tree(tree) => {
            visit_tree(p, tree, keys, ALL, part, |object, _| Ok(is_true(object)))
        }
    }
}

/// Deletes the objects the program says `true` to.
///
/// # Errors
/// As [`select`].
pub(crate) fn delete<'p>(
    p: &'p Process,
    (objects, is_fixed_by_others): (&mut Objects, bool),
    keys: &Keys<'_>,
    program: &MatchSpec,
    part: &mut Part<'p>,
) -> Result<(), Raise<'static>> {
    let is_true = |object: &Stored| program.is_true(p, Object::Stored(object));
    match objects {
        Objects::Hash(hash) => {
            let mut hash = hash;
            visit_slots(&mut hash, keys, 0, part, |hash, slot, _| {
                Ok(hash.remove_if(slot, is_fixed_by_others, is_true))
            })?;
            if !part.trap && part.got > 0 {
                hash.shrink_after();
            }
            Ok(())
        }
        Objects::Tree(tree) => {
            let mut gone = Vec::new();
            let key = tree.key_index();
            visit_tree(p, tree, keys, ALL, part, |object, _| {
                let goes = is_true(object);
                if goes {
                    gone.push(Stored::of_elements(&[object.elements()[key]]));
                }
                Ok(goes)
            })?;
            gone.iter().for_each(|key| tree.remove(key.elements()[0]));
            Ok(())
        }
    }
}

/// What `result` puts in the place of `old`: an object with the same key.
fn replacement(result: Term<'_>, old: &Stored, key: usize) -> Result<Stored, Raise<'static>> {
    result
        .as_tuple()
        .filter(|tuple| tuple.arity() > key && eq_exact(tuple.get(key), old.elements()[key]))
        .map(Stored::new)
        .ok_or_else(badarg)
}

/// Replaces each object that matches by the program's result.
///
/// # Errors
/// `badarg` where a result is no object with the same key; those before it stay replaced.
pub(crate) fn replace<'p>(
    p: &'p Process,
    objects: &mut Objects,
    keys: &Keys<'_>,
    program: &MatchSpec,
    part: &mut Part<'p>,
) -> Result<(), Raise<'static>> {
    let key = objects.key_index();
    match objects {
        Objects::Hash(hash) => {
            let mut hash = hash;
            visit_slots(&mut hash, keys, 0, part, |hash, slot, _| {
                hash.replace_in(slot, |object| match run(p, program, object) {
                    Some(result) => replacement(result, object, key).map(Some),
                    None => Ok(None),
                })
            })
        }
        Objects::Tree(tree) => {
            let mut new = Vec::new();
            let visited = visit_tree(p, tree, keys, ALL, part, |object, _| {
                let Some(result) = run(p, program, object) else {
                    return Ok(false);
                };
                new.push(replacement(result, object, key)?);
                Ok(true)
            });
            new.into_iter().for_each(|object| tree.insert(object));
            visited
        }
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
