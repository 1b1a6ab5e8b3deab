//! The BIFs of native records: `records:*` and `is_record`. Source: `erl_record.c`, OTP 29.

use super::{BifResult, GuardResult, Raise, badarg, bifs, tagged};
use crate::code::record;
use crate::interp::records::field_reason;
use crate::process::Process;
use crate::term::{Atom, Record, Term, am};
use crate::value::map;

bifs! {
    all own;
    ubif erlang:"is_record"/1 => is_record_1;
    ubif erlang:"is_record"/2 => is_record_2;
    ubif erlang:"is_record"/3 => is_record_3;
    bif records:"get_module"/1 => get_module_1;
    bif records:"get_name"/1 => get_name_1;
    bif records:"get"/2 => get_2;
    bif records:"get_field_names"/1 => get_field_names_1;
    bif records:"is_exported"/1 => is_exported_1;
    bif records:"create"/4 => create_4;
    bif records:"update"/4 => update_4;
    bif records:"get_definition"/2 => get_definition_2;
}

fn is_record_1<'p>(_p: &'p Process, [term]: [Term<'p>; 1]) -> GuardResult<'p> {
    Ok(Term::bool(term.as_record().is_some()))
}

fn is_record_2<'p>(_p: &'p Process, [term, tag]: [Term<'p>; 2]) -> GuardResult<'p> {
    let tag = tag.as_atom().ok_or_else(badarg)?;
    let tuple = term
        .as_tuple()
        .is_some_and(|t| t.elements().first().is_some_and(|first| *first == tag));
    let native = || term.as_record().is_some_and(|r| r.name() == tag);
    Ok(Term::bool(tuple || native()))
}

fn is_record_3<'p>(_p: &'p Process, [term, tag, size]: [Term<'p>; 3]) -> GuardResult<'p> {
    let tag = tag.as_atom().ok_or_else(badarg)?;
    if let Some(name) = size.as_atom() {
        let same = |r: Record<'_>| r.module() == tag && r.name() == name;
        return Ok(Term::bool(term.as_record().is_some_and(same)));
    }
    let size = size.as_small().ok_or_else(badarg)?;
    let elements = term.as_tuple().map_or(&[][..], |t| t.elements());
    let same = elements.len() as i64 == size && elements.first().is_some_and(|t| *t == tag);
    Ok(Term::bool(same))
}

fn get_module_1<'p>(_p: &'p Process, [term]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(term.as_record().ok_or_else(badarg)?.module().term())
}

fn get_name_1<'p>(_p: &'p Process, [term]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(term.as_record().ok_or_else(badarg)?.name().term())
}

fn get_2<'p>(_p: &'p Process, [key, term]: [Term<'p>; 2]) -> BifResult<'p> {
    let record = term.as_record().ok_or_else(badarg)?;
    let at = record.keys().iter().position(|k| k.same(key));
    Ok(record.values()[at.ok_or_else(badarg)?])
}

fn a_record(term: Term<'_>) -> Result<Record<'_>, Raise<'_>> {
    term.as_record().ok_or_else(|| tagged(am::badrecord, term))
}

fn get_field_names_1<'p>(p: &'p Process, [term]: [Term<'p>; 1]) -> BifResult<'p> {
    let record = a_record(term)?;
    let names: Vec<Term<'p>> = record.field_order().map(|at| record.keys()[at]).collect();
    Ok(p.list(&names))
}

fn is_exported_1<'p>(_p: &'p Process, [term]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(Term::bool(a_record(term)?.is_exported()))
}

/// `badfield` of a record.
fn bad_field<'p>(p: &'p Process, id: (Atom, Atom), field: Term<'p>) -> Raise<'p> {
    Raise::Error(field_reason(p, am::badfield, id, field))
}

fn create_4<'p>(p: &'p Process, args: [Term<'p>; 4]) -> BifResult<'p> {
    let [module, name, fields, options] = args;
    let (Some(module), Some(name_atom)) = (module.as_atom(), name.as_atom()) else {
        return Err(tagged(am::badrecord, name).into());
    };
    let options = options
        .as_map()
        .ok_or_else(|| tagged(am::badmap, options))?;
    let exported = Some(options)
        .filter(|options| options.len() == 1)
        .and_then(|options| options.get(am::is_exported.term()))
        .and_then(Term::as_bool)
        .ok_or_else(badarg)?;
    let pairs: Vec<Term<'p>> = fields
        .list_iter()
        .collect::<Result<_, _>>()
        .map_err(|_| badarg())?;
    let mut names = Vec::with_capacity(pairs.len());
    let mut values = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let Some(&[key, value]) = pair.as_tuple().map(|t| t.elements()) else {
            return Err(badarg().into());
        };
        let key_atom = key
            .as_atom()
            .ok_or_else(|| bad_field(p, (module, name_atom), key))?;
        names.push(key_atom);
        values.push(value);
    }
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&at| names[at].index());
    if order.windows(2).any(|w| names[w[0]] == names[w[1]]) {
        return Err(badarg().into());
    }
    let definition = record::definition(module, name_atom, exported, &names);
    let sorted: Vec<Term<'p>> = order.iter().map(|&at| values[at]).collect();
    Ok(p.record(definition.term(), &sorted))
}

fn update_4<'p>(p: &'p Process, [term, module, name, fields]: [Term<'p>; 4]) -> BifResult<'p> {
    let record = a_record(term)?;
    let any = name == am::underscore;
    if !any && (module != record.module() || name != record.name()) {
        return Err(tagged(am::badrecord, name).into());
    }
    let fields = fields.as_map().ok_or_else(|| tagged(am::badmap, fields))?;
    if fields.is_empty() {
        return Ok(term);
    }
    let mut values = record.values().to_vec();
    let mut unknown: Vec<Term<'p>> = Vec::new();
    for (key, value) in fields.iter() {
        match record.keys().iter().position(|k| k.same(key)) {
            Some(at) => values[at] = value,
            None => unknown.push(key),
        }
    }
    // Of several, the one that comes first among a flat map's keys.
    if let Some(key) = unknown
        .into_iter()
        .min_by(|a, b| crate::term::compare::cmp_flatmap_keys(*a, *b))
    {
        return Err(bad_field(p, (record.module(), record.name()), key).into());
    }
    Ok(p.record(record.definition_term(), &values))
}

fn get_definition_2<'p>(p: &'p Process, [module, name]: [Term<'p>; 2]) -> BifResult<'p> {
    let (Some(module), Some(name)) = (module.as_atom(), name.as_atom()) else {
        return Err(badarg().into());
    };
    let cell = record::find(module, name, p).and_then(Term::as_cons);
    let cell = cell.ok_or_else(badarg)?;
    let definition = cell.head().as_tuple().ok_or_else(badarg)?;
    let defaults = cell.tail().as_tuple().ok_or_else(badarg)?;
    let keys = &definition.elements()[crate::term::record::KEYS..];
    let order = definition.get(crate::term::record::FIELD_ORDER);
    let order = order.as_tuple().map_or(&[][..], |t| t.elements());
    let field = |at: usize| {
        let default = defaults.get(at);
        if default.raw() == record::NO_DEFAULT {
            keys[at]
        } else {
            p.tuple(&[keys[at], default])
        }
    };
    let fields: Vec<Term<'p>> = order
        .iter()
        .filter_map(|at| at.as_index())
        .map(field)
        .collect();
    let exported = definition.get(crate::term::record::IS_EXPORTED);
    let options = map::from_pairs(p, &[(am::is_exported.term(), exported)]);
    let fields = p.list(&fields);
    Ok(p.tuple(&[options, fields]))
}
