//! Prepares the operands of slow instructions: pairs in the order of their keys, and definitions of records in place of
//! their names. It refuses commands that no handler knows.

use std::borrow::Cow;

use super::Tables;
use crate::beam::Arg;
use crate::beam::genop::Op as Gen;
use crate::code::record;
use crate::process::X_REGISTERS;
use crate::term::compare::cmp_flatmap_keys;
use crate::term::tag::map::SMALL_LIMIT;
use crate::term::{Atom, RawTerm, Term, am};

fn atom(tables: &Tables<'_>, arg: Arg) -> Option<Atom> {
    match arg {
        Arg::Atom(row) => Some(tables.atom(row)),
        _ => None,
    }
}

/// What is wrong with the list of an instruction, if a handler would not know what to do with it.
pub(super) fn unknown(tables: &Tables<'_>, op: Gen, args: &[Arg]) -> Option<&'static str> {
    let list = &args[op.arity().min(args.len())..];
    match op {
        Gen::BsMatch => unknown_command(tables, list),
        Gen::BsCreateBin => list
            .chunks(6)
            .any(|segment| !is_segment(tables, segment))
            .then_some("a segment of an unknown type"),
        Gen::PutRecord => unknown_record(tables, args[1], args[2], list),
        Gen::GetRecordField => {
            let is_name = matches!(args[3], Arg::Atom(_));
            (!is_name).then_some("a field without a name")
        }
        _ => None,
    }
}

const TOO_MANY_LIVE: &str = "more live registers than there are";

/// The last register is the loader's own.
fn is_live(arg: Arg) -> bool {
    matches!(arg, Arg::U(live) if live < X_REGISTERS as u64)
}

fn unknown_record(
    tables: &Tables<'_>,
    id: Arg,
    source: Arg,
    fields: &[Arg],
) -> Option<&'static str> {
    if !fields
        .iter()
        .step_by(2)
        .all(|field| matches!(field, Arg::Atom(_)))
    {
        return Some("a field without a name");
    }
    if source != Arg::Nil {
        return None;
    }
    let is_known = match atom(tables, id) {
        Some(local) => tables.records.iter().any(|(name, _)| *name == local),
        None => tables.constant_term(id).and_then(Term::as_tuple).is_some(),
    };
    (!is_known).then_some("a record that the module does not define")
}

fn unknown_command(tables: &Tables<'_>, mut list: &[Arg]) -> Option<&'static str> {
    while let Some(&first) = list.first() {
        let has_live = matches!(
            atom(tables, first),
            Some(am::integer | am::binary | am::get_tail)
        );
        if has_live && !list.get(1).is_some_and(|live| is_live(*live)) {
            return Some(TOO_MANY_LIVE);
        }
        let words = match atom(tables, first) {
            Some(am::ensure_at_least) => 3,
            Some(am::ensure_exactly | am::skip) => 2,
            Some(am::integer | am::binary) => 6,
            Some(am::get_tail | am::exactly_equal) => 4,
            _ => return Some("an unknown command"),
        };
        list = match list.get(words..) {
            Some(rest) => rest,
            None => return Some("a command without its operands"),
        };
    }
    None
}

fn is_segment(tables: &Tables<'_>, segment: &[Arg]) -> bool {
    let kind = segment.first().and_then(|&arg| atom(tables, arg));
    let is_sized = kind != Some(am::string) || matches!(segment.last(), Some(Arg::I(_)));
    segment.len() == 6
        && is_sized
        && matches!(
            kind,
            Some(
                am::append
                    | am::private_append
                    | am::binary
                    | am::integer
                    | am::float
                    | am::string
                    | am::utf8
                    | am::utf16
                    | am::utf32
            )
        )
}

/// The keys of a map instruction's pairs, where all are constants and different.
fn constant_keys<'t>(tables: &'t Tables<'_>, pairs: &[Arg]) -> Option<Vec<Term<'t>>> {
    let keys = pairs.chunks(2).map(|pair| tables.constant_term(pair[0]));
    keys.collect()
}

/// The operands, with the pairs of a map update in the order of a flat map's keys.
pub(super) fn sorted<'a>(tables: &Tables<'_>, op: Gen, args: &'a [Arg]) -> Cow<'a, [Arg]> {
    if !matches!(op, Gen::PutMapAssoc | Gen::PutMapExact) {
        return Cow::Borrowed(args);
    }
    let (fixed, pairs) = args.split_at(op.arity());
    let Some(keys) = constant_keys(tables, pairs) else {
        return Cow::Borrowed(args);
    };
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|&a, &b| cmp_flatmap_keys(keys[a], keys[b]));
    let pairs = order.iter().flat_map(|&at| &pairs[2 * at..2 * at + 2]);
    Cow::Owned(fixed.iter().chain(pairs).copied().collect())
}

/// An operand that is another word than its own: which, and the word.
pub(super) fn replacement(tables: &Tables<'_>, op: Gen, args: &[Arg]) -> Option<(usize, u64)> {
    match op {
        Gen::PutRecord => {
            let local = atom(tables, args[1]).filter(|_| args[2] == Arg::Nil)?;
            let (_, definition) = tables.records.iter().find(|(name, _)| *name == local)?;
            Some((1, definition.raw().0))
        }
        Gen::IsRecordAccessible => {
            let scope = atom(tables, args[2])?;
            (scope != am::external).then(|| (2, tables.name.raw().0))
        }
        Gen::PutMapAssoc => skeleton(tables, op, args).map(|map| (1, map.0)),
        _ => None,
    }
}

/// A map literal with the keys of a new map, and no term's word for each value: the new map is made of
/// it by an update, and shares its tuple of keys.
fn skeleton(tables: &Tables<'_>, op: Gen, args: &[Arg]) -> Option<RawTerm> {
    let map = tables.constant_term(args[1])?.as_map()?;
    let keys = constant_keys(tables, &args[op.arity()..])?;
    let different = keys
        .windows(2)
        .all(|two| cmp_flatmap_keys(two[0], two[1]).is_lt());
    if !map.is_empty() || keys.is_empty() || keys.len() > SMALL_LIMIT || !different {
        return None;
    }
    let nothing = vec![Term::immed(record::NO_DEFAULT); keys.len()];
    Some(tables.literal(|heap| {
        let keys: Vec<_> = keys.iter().map(|key| heap.copy_in(*key)).collect();
        heap.flat_map(heap.tuple(&keys), &nothing)
    }))
}
