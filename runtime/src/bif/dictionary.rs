//! The BIFs of the process dictionary. Under each key it holds the pair `{Key, Value}`, which is on the heap, as in
//! ERTS.

use super::{BifResult, GuardResult, bifs};
use crate::process::Process;
use crate::term::compare::eq_exact;
use crate::term::hash::internal_hash;
use crate::term::{Term, am};
use crate::trace::record;

bifs! {
    all own;
    bif erlang:"get"/0 => get_0;
    guard erlang:"get"/1 => get_1;
    bif erlang:"get_keys"/0 => get_keys_0;
    bif erlang:"get_keys"/1 => get_keys_1;
    hbif_plain erlang:"put"/2 => put_2;
    bif erlang:"erase"/0 => erase_0;
    hbif_plain erlang:"erase"/1 => erase_1;
}

/// All entries: copies of the pairs that the dictionary holds, as in ERTS.
pub(super) fn pairs(p: &Process) -> Term<'_> {
    let dictionary = p.dictionary();
    let entries = dictionary.entries().iter();
    entries.fold(Term::NIL, |rest, [key, pair]| {
        p.cons(p.tuple(&[*key, value_of(*pair)]), rest)
    })
}

/// The value in a pair `{Key, Value}` of the dictionary.
fn value_of(pair: Term<'_>) -> Term<'_> {
    let pair = pair.as_tuple().expect("the dictionary holds pairs");
    pair.elements()[1]
}

fn find(p: &Process, key: Term<'_>) -> Option<usize> {
    let dictionary = p.dictionary();
    let is_key = |it: Term<'_>| it.same(key) || (!it.raw().is_immed() && eq_exact(it, key));
    dictionary.find(|| internal_hash(key), is_key)
}

fn get_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(pairs(p))
}

/// The value of `key`.
pub(crate) fn get<'p>(p: &'p Process, key: Term<'_>) -> Option<Term<'p>> {
    find(p, key).map(|place| value_of(p.dictionary().value(place)))
}

fn get_1<'p>(p: &'p Process, [key]: [Term<'p>; 1]) -> GuardResult<'p> {
    Ok(get(p, key).unwrap_or(am::undefined.term()))
}

fn get_keys_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let dictionary = p.dictionary();
    let entries = dictionary.entries().iter();
    Ok(entries.fold(Term::NIL, |rest, [key, _]| p.cons(*key, rest)))
}

fn get_keys_1<'p>(p: &'p Process, [wanted]: [Term<'p>; 1]) -> BifResult<'p> {
    let dictionary = p.dictionary();
    let entries = dictionary.entries().iter();
    let keys = entries.filter(|[_, pair]| eq_exact(value_of(*pair), wanted));
    Ok(keys.fold(Term::NIL, |rest, [key, _]| p.cons(*key, rest)))
}

fn put_2<'p>(p: &'p Process, [key, value]: [Term<'p>; 2]) -> BifResult<'p> {
    record::note_dictionary_put(p, key, value);
    let place = find(p, key);
    if let (Some(place), true) = (place, value.raw().is_immed()) {
        return Ok(p.assign_in_dictionary(place, value));
    }
    let pair = p.tuple(&[key, value]);
    if let Some(place) = place {
        let old = p.dictionary_mut().replace(place, pair);
        return Ok(value_of(old));
    }
    p.dictionary_mut().add(key, pair, internal_hash);
    Ok(am::undefined.term())
}

fn erase_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let entries = p.dictionary_mut().take();
    let pairs = entries.iter().map(|[_, pair]| *pair);
    Ok(pairs.fold(Term::NIL, |rest, pair| p.cons(pair, rest)))
}

fn erase_1<'p>(p: &'p Process, [key]: [Term<'p>; 1]) -> BifResult<'p> {
    let Some(place) = find(p, key) else {
        return Ok(am::undefined.term());
    };
    Ok(value_of(p.dictionary_mut().remove(place)))
}
