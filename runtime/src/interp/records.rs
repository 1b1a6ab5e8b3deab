//! The record instructions: `update_record` for tuples, and those of native records. Source: `erl_record.c`, OTP 29.

use smallvec::SmallVec;

use super::slow::{Flow, Slow, atom};
use crate::code::op::read;
use crate::code::operand::KeyValues;
use crate::code::record;
use crate::process::Process;
use crate::term::tag;
use crate::term::{Atom, RawTerm, Record, Term, am};

#[cfg(test)]
mod tests;

type Values<'p> = SmallVec<[Term<'p>; 16]>;

/// `update_record`. The compiler has made sure of the heap.
pub(crate) fn update_record(s: &mut Slow<'_>, i: read::UpdateRecord) -> Flow {
    let (size, updates) = (i.size() as usize, i.updates());
    let source = s.src(i.src());
    let ptr = source.raw().ptr();
    if i.hint() == am::reuse.raw() && updates.len() == 1 {
        let is_there = |(at, value)| {
            // SAFETY: I1: the compiler knows a tuple of `size` elements, and indices within it.
            let element = unsafe { RawTerm(*ptr.add(at as usize)) };
            element == s.src(value).raw()
        };
        if updates.iter().all(is_there) {
            s.set_dst(i.dst(), source);
            return Flow::Next;
        }
    }
    let mut in_place = i.hint() == am::inplace.raw();
    if in_place && !s.p.is_above_high_water(ptr) {
        // A mature tuple must not come to point to a young term.
        in_place = updates
            .iter()
            .all(|(_, value)| s.src(value).raw().is_immed());
    }
    let target = if in_place { ptr } else { s.p.alloc(1 + size) };
    // SAFETY: H1: `1 + size` fresh words, or the tuple itself, which nobody else has: the compiler says.
    unsafe {
        if !in_place {
            std::ptr::copy_nonoverlapping(ptr, target, 1 + size);
        }
        for (at, value) in updates.iter() {
            *target.add(at as usize) = s.src(value).raw().0;
        }
    }
    s.set_dst_raw(i.dst(), RawTerm::boxed(target));
    Flow::Next
}

/// `is_any_native_record`.
pub(crate) fn is_any_native_record(s: &mut Slow<'_>, i: read::IsAnyNativeRecord) -> Flow {
    let is = s.src(i.src()).as_record().is_some();
    s.test(is, i.fail(), am::badrecord)
}

/// `is_native_record`.
pub(crate) fn is_native_record(s: &mut Slow<'_>, i: read::IsNativeRecord) -> Flow {
    let (module, name) = (atom(i.module()), atom(i.name()));
    let same = |r: Record<'_>| Some(r.module()) == module && Some(r.name()) == name;
    let is = s.src(i.src()).as_record().is_some_and(same);
    s.test(is, i.fail(), am::badrecord)
}

/// The value of field `key`.
fn field<'h>(record: Record<'h>, key: Term<'_>) -> Option<Term<'h>> {
    let at = record.keys().iter().position(|k| k.same(key))?;
    Some(record.values()[at])
}

/// `get_record_elements`.
pub(crate) fn get_record_elements(s: &mut Slow<'_>, i: read::GetRecordElements) -> Flow {
    let source = s.src(i.src()).raw();
    // SAFETY: T1: the source's value, though a destination may be its register; nothing collects here.
    let record = unsafe { Term::new(source) }.as_record();
    for (key, dst) in i.pairs().iter() {
        let Some(value) = record.and_then(|record| field(record, s.src(key))) else {
            return s.fail(i.fail(), am::badrecord);
        };
        s.set_dst(dst, value);
    }
    Flow::Next
}

/// `is_record_accessible`. The scope is `external`, or the module that asks.
pub(crate) fn is_record_accessible(s: &mut Slow<'_>, i: read::IsRecordAccessible) -> Flow {
    let scope = atom(i.scope());
    let accessible = |r: Record<'_>| r.is_exported() || Some(r.module()) == scope;
    let is = s.src(i.src()).as_record().is_some_and(accessible);
    s.test(is, i.fail(), am::badrecord)
}

/// `get_record_field`. An id is `_` (any record), a name, or `{Module, Name}` of a record that must be exported.
pub(crate) fn get_record_field(s: &mut Slow<'_>, i: read::GetRecordField) -> Flow {
    let source = s.src(i.src());
    let Some(record) = source
        .as_record()
        .filter(|r| is_record_of(*r, s.src(i.id())))
    else {
        let source = source.raw();
        return s.fail_with(i.fail(), |p| error(p, am::badrecord, source));
    };
    if let Some(value) = field(record, Term::immed(i.field())) {
        s.set_dst(i.dst(), value);
        return Flow::Next;
    }
    let id = (record.module(), record.name());
    s.fail_with(i.fail(), |p| field_error(p, am::badfield, id, i.field()))
}

fn is_record_of(record: Record<'_>, id: Term<'_>) -> bool {
    match id.as_tuple().map(|id| id.elements()) {
        None => id == am::underscore || id == record.name(),
        Some(&[module, name]) => {
            module == record.module() && name == record.name() && record.is_exported()
        }
        Some(_) => false,
    }
}

/// `{tag, Value}`.
fn error(p: &Process, tag: Atom, value: RawTerm) -> RawTerm {
    // SAFETY: T1: a source operand's value; nothing has collected since it was read.
    p.tuple(&[tag.term(), unsafe { Term::new(value) }]).raw()
}

/// `{tag, {{Module, Name}, Field}}`.
pub(crate) fn field_reason<'p>(
    p: &'p Process,
    tag: Atom,
    id: (Atom, Atom),
    field: Term<'p>,
) -> Term<'p> {
    let id = p.tuple(&[id.0.term(), id.1.term()]);
    let what = p.tuple(&[id, field]);
    p.tuple(&[tag.term(), what])
}

/// As [`field_reason`], of a field's name at rest.
fn field_error(p: &Process, tag: Atom, id: (Atom, Atom), field: RawTerm) -> RawTerm {
    field_reason(p, tag, id, Term::immed(field)).raw()
}

/// `put_record`. Without a source (nil), makes a record; the id is `{Module, Name}`, or for a record of the code's own
/// module its definition with defaults. Otherwise updates the source.
pub(crate) fn put_record(s: &mut Slow<'_>, i: read::PutRecord) -> Flow {
    if i.src().0 == tag::NIL {
        create(s, i)
    } else {
        update(s, i)
    }
}

fn create(s: &mut Slow<'_>, i: read::PutRecord) -> Flow {
    let id = s.src(i.id());
    let Some(cell) = creatable(id, s.p) else {
        let id = id.raw();
        return s.fail_with(i.fail(), |p| error(p, am::badrecord, id));
    };
    // SAFETY: T1, H6: a literal that was found in this time slice stays where it is, whatever is collected.
    let cell: Term<'_> = unsafe { Term::new(cell.raw()) };
    let cell = cell.as_cons().expect("a definition and its defaults");
    let definition = cell.head();
    let defaults = cell.tail().as_tuple().expect("default values").elements();
    if let Err(end) = s.ensure_heap(2 + defaults.len(), i.live()) {
        return end;
    }
    let definition_tuple = definition.as_tuple().expect("a definition is a tuple");
    let keys = &definition_tuple.elements()[crate::term::record::KEYS..];
    let (tag, key) = match merged(s, i.pairs(), keys, defaults) {
        Ok(values) => {
            s.set_dst(i.dst(), s.p.record(definition, &values));
            return Flow::Next;
        }
        Err(wrong) => wrong,
    };
    let atom = |at: usize| definition_tuple.get(at).as_atom().expect("an atom");
    let id = (
        atom(crate::term::record::MODULE),
        atom(crate::term::record::NAME),
    );
    s.fail_with(i.fail(), |p| field_error(p, tag, id, key))
}

/// Definition and defaults of the record that `id` names, if code with that id may make one.
fn creatable<'p>(id: Term<'p>, p: &'p Process) -> Option<Term<'p>> {
    if id.as_cons().is_some() {
        return Some(id);
    }
    let &[module, name] = id.as_tuple()?.elements() else {
        return None;
    };
    let found = record::find(module.as_atom()?, name.as_atom()?, p)?;
    let definition = found.as_cons()?.head().as_tuple()?;
    (definition.get(crate::term::record::IS_EXPORTED) == am::true_).then_some(found)
}

/// Values for `keys`: those of the instruction, else `old` ones. Errors: what is wrong, of which field.
fn merged<'s>(
    s: &'s Slow<'_>,
    pairs: KeyValues,
    keys: &[Term<'_>],
    old: &[Term<'s>],
) -> Result<Values<'s>, (Atom, RawTerm)> {
    let mut values: Values<'s> = SmallVec::from_slice(old);
    let mut unknown: Option<Atom> = None;
    for (key, value) in pairs.iter() {
        let key = s.src(key);
        match keys.iter().position(|k| k.same(key)) {
            Some(i) => values[i] = s.src(value),
            None => {
                let key = key.as_atom().expect("a field's name");
                // Of several, the one that comes first in the order of keys.
                unknown = unknown
                    .into_iter()
                    .chain([key])
                    .min_by_key(|atom| atom.index());
            }
        }
    }
    if let Some(key) = unknown {
        return Err((am::badfield, key.raw()));
    }
    match values.iter().position(|v| v.raw() == record::NO_DEFAULT) {
        Some(i) => Err((am::novalue, keys[i].raw())),
        None => Ok(values),
    }
}

fn update(s: &mut Slow<'_>, i: read::PutRecord) -> Flow {
    let source = s.src(i.src());
    let Some(old) = source.as_record() else {
        let source = source.raw();
        return s.fail_with(i.fail(), |p| error(p, am::badrecord, source));
    };
    let live = i.live();
    let need = 2 + old.values().len();
    s.set_scratch(live, source.raw());
    if let Err(end) = s.ensure_heap(need, live + 1) {
        return end;
    }
    let old = s.p.x(live).as_record().expect("a record still");
    let id = (old.module(), old.name());
    let (tag, key) = match merged(s, i.pairs(), old.keys(), old.values()) {
        Ok(values) => {
            s.set_dst(i.dst(), s.p.record(old.definition_term(), &values));
            return Flow::Next;
        }
        Err(wrong) => wrong,
    };
    s.fail_with(i.fail(), |p| field_error(p, tag, id, key))
}
