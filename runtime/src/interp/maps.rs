//! The map instructions that read and change several keys at once. Sizes and errors are those of
//! `erts_gc_update_map_assoc()` and its like in `beam_common.c`, OTP 29.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::slow::{Flow, Slow};
use crate::code::op::read;
use crate::code::operand::{KeyValues, Src};
use crate::process::Process;
use crate::term::compare::{cmp_flatmap_keys, eq_exact};
use crate::term::tag::map::{FLAT_WORDS, SMALL_LIMIT};
use crate::term::{Atom, CodeAddress, Map, RawTerm, Term, Tuple, am};
use crate::value::map::{self, Changed};

#[cfg(test)]
mod tests;

type Pairs<'p> = SmallVec<[(Term<'p>, Term<'p>); 8]>;
/// Keys, or values, of a flat map and of an update.
type Terms<'p> = SmallVec<[Term<'p>; 36]>;

/// Keys and values of an update, in the order of a flat map's keys.
#[inline(always)]
fn sorted<'s>(s: &'s Slow<'_>, pairs: KeyValues) -> Pairs<'s> {
    let mut sorted = Pairs::new();
    for (key, value) in pairs.iter() {
        sorted.push((s.src(key), s.src(value)));
    }
    let mut pairs = sorted;
    let order = |a: &(Term<'s>, Term<'s>), b: &(Term<'s>, Term<'s>)| cmp_flatmap_keys(a.0, b.0);
    if !pairs.is_sorted_by(|a, b| order(a, b) != Ordering::Greater) {
        pairs.sort_by(order);
    }
    pairs
}

/// Where `keys` has `key`.
#[inline]
fn index_of(keys: &[Term<'_>], key: Term<'_>) -> Option<usize> {
    if key.raw().is_immed() {
        return keys.iter().position(|k| k.same(key));
    }
    keys.iter().position(|k| eq_exact(*k, key))
}

/// Makes sure of `need` words, and that the map is in `x(live)`, live or not.
fn prepare(s: &mut Slow<'_>, map: Src, need: usize, live: usize) -> Result<(), Flow> {
    s.set_scratch(live, s.src(map).raw());
    s.ensure_heap(need, live + 1)
}

/// `put_map_assoc`.
pub(crate) fn put_map_assoc(s: &mut Slow<'_>, i: read::PutMapAssoc) -> Flow {
    let Some(map) = s.src(i.map()).as_map() else {
        return bad_map(s, i.fail(), i.map());
    };
    let updates = i.pairs().len();
    let need = match map.flat() {
        Some(_) if map.is_empty() => 2 * updates + 1 + FLAT_WORDS,
        Some((_, values)) => 2 * (values.len() + updates) + 1 + FLAT_WORDS,
        None => 0,
    };
    if let Err(end) = prepare(s, i.map(), need, i.live()) {
        return end;
    }
    let map = s.p.x(i.live()).as_map().expect("a map still");
    let pairs = || sorted(s, i.pairs());
    let changed = match (map.flat(), i.pairs().iter().next()) {
        (None, _) => trie_put(s.p, map, &pairs()),
        (Some(_), _) if map.is_empty() => map::from_pairs(s.p, &pairs()),
        // One key is put as `maps:put/3` does it, and takes as many words.
        (Some(_), Some((key, value))) if updates == 1 => {
            map::put(s.p, map, s.src(key), s.src(value))
        }
        (Some((keys, values)), _) => flat_put(s.p, map, keys, values, &pairs()),
    };
    s.set_dst(i.dst(), changed);
    Flow::Next
}

fn trie_put<'p>(p: &'p Process, map: Map<'p>, pairs: &[(Term<'p>, Term<'p>)]) -> Term<'p> {
    let put = |map: Map<'p>, &(key, value): &(Term<'p>, Term<'p>)| {
        let changed = map::put(p, map, key, value);
        changed.as_map().expect("a map with a key more is a map")
    };
    pairs.iter().fold(map, put).term()
}

/// A flat map with `pairs` put into it.
fn flat_put<'p>(
    p: &'p Process,
    map: Map<'p>,
    keys: Tuple<'p>,
    values: &[Term<'p>],
    pairs: &[(Term<'p>, Term<'p>)],
) -> Term<'p> {
    if let Some(replaced) = replaced(p, map, keys, values, pairs) {
        return replaced.unwrap_or(map.term());
    }
    let old = keys.elements();
    let (mut new_keys, mut new_values) = (Terms::new(), Terms::new());
    let (mut at, mut from) = (0, 0);
    while at < old.len() || from < pairs.len() {
        let order = match (old.get(at), pairs.get(from)) {
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
            (Some(key), Some((new, _))) if key.same(*new) => Ordering::Equal,
            (Some(key), Some((new, _))) => cmp_flatmap_keys(*key, *new),
        };
        let (key, value) = if order == Ordering::Less {
            (old[at], values[at])
        } else {
            from += 1;
            pairs[from - 1]
        };
        new_keys.push(key);
        new_values.push(value);
        at += usize::from(order != Ordering::Greater);
    }
    if new_keys.len() > SMALL_LIMIT {
        return trie_put(p, map, pairs);
    }
    let key_tuple = p.tuple(&new_keys);
    let made = p.flat_map(key_tuple, &new_values);
    // ERTS leaves a hole where some of the keys were there before.
    p.filler(old.len() + pairs.len() - new_keys.len());
    made
}

/// A flat map with the values of `pairs`, all of whose keys it has; `Some(None)` where nothing changes,
/// `None` where a key is missing.
#[expect(clippy::option_option, reason = "three outcomes, told in the comment")]
fn replaced<'p>(
    p: &'p Process,
    map: Map<'p>,
    keys: Tuple<'p>,
    values: &[Term<'p>],
    pairs: &[(Term<'p>, Term<'p>)],
) -> Option<Option<Term<'p>>> {
    let mut changes: SmallVec<[(usize, Term<'p>); 8]> = SmallVec::new();
    let mut changed = false;
    for (key, value) in pairs {
        let at = index_of(keys.elements(), *key)?;
        changed |= !values[at].same(*value);
        changes.push((at, *value));
    }
    Some(changed.then(|| p.flat_map_with(map.keys_term(), values, &changes)))
}

/// `put_map_exact`.
pub(crate) fn put_map_exact(s: &mut Slow<'_>, i: read::PutMapExact) -> Flow {
    let Some(map) = s.src(i.map()).as_map() else {
        return bad_map(s, i.fail(), i.map());
    };
    let need = map
        .flat()
        .map_or(0, |(_, values)| FLAT_WORDS + values.len());
    if let Err(end) = prepare(s, i.map(), need, i.live()) {
        return end;
    }
    let map = s.p.x(i.live()).as_map().expect("a map still");
    let pairs = sorted(s, i.pairs());
    let changed = match map.flat() {
        None => trie_update(s.p, map, &pairs),
        Some((keys, values)) => replaced(s.p, map, keys, values, &pairs)
            .map(|new| new.unwrap_or(map.term()))
            .ok_or_else(|| {
                let missing = |key: Term<'_>| index_of(keys.elements(), key).is_none();
                let first = pairs.iter().find(|(key, _)| missing(*key));
                first.expect("a key is missing").0.raw()
            }),
    };
    match changed {
        Ok(map) => {
            s.set_dst(i.dst(), map);
            Flow::Next
        }
        Err(key) => {
            drop(pairs);
            s.fail_with(i.fail(), |p| tagged(p, am::badkey, key))
        }
    }
}

/// A trie with its values replaced. Errors: the first key it does not have.
fn trie_update<'p>(
    p: &'p Process,
    map: Map<'p>,
    pairs: &[(Term<'p>, Term<'p>)],
) -> Result<Term<'p>, RawTerm> {
    let mut now = map;
    for (key, value) in pairs {
        match map::update(p, now, *key, *value) {
            Changed::To(term) => now = term.as_map().expect("an updated map is a map"),
            Changed::NoKey => return Err(key.raw()),
        }
    }
    Ok(now.term())
}

fn bad_map(s: &mut Slow<'_>, fail: CodeAddress, map: Src) -> Flow {
    let map = s.src(map).raw();
    s.fail_with(fail, |p| tagged(p, am::badmap, map))
}

fn tagged(p: &Process, tag: Atom, value: RawTerm) -> RawTerm {
    // SAFETY: T1: an operand's value; nothing has collected since it was read.
    p.tuple(&[tag.term(), unsafe { Term::new(value) }]).raw()
}

/// `has_map_fields`.
pub(crate) fn has_map_fields(s: &mut Slow<'_>, i: read::HasMapFields) -> Flow {
    let has = |map: Map<'_>| i.keys().iter().all(|key| map.contains_key(s.src(key)));
    let has_all = s.src(i.map()).as_map().is_some_and(has);
    s.test(has_all, i.fail(), am::badmatch)
}

/// `get_map_elements`.
pub(crate) fn get_map_elements(s: &mut Slow<'_>, i: read::GetMapElements) -> Flow {
    let source = s.src(i.map()).raw();
    // SAFETY: T1: the source's value, though a destination may be its register; nothing collects here.
    let source = unsafe { Term::new(source) };
    let map: Option<Map<'_>> = source.as_map();
    for (key, dst) in i.pairs().iter() {
        match map.and_then(|map| map.get(s.src(key))) {
            Some(value) => s.set_dst(dst, value),
            None => return s.fail(i.fail(), am::badmatch),
        }
    }
    Flow::Next
}
