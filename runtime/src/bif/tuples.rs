//! The BIFs on tuples.

use super::{BifResult, GuardResult, badarg, bifs};
use crate::process::Process;
use crate::term::{Term, Tuple};

bifs! {
    all own;
    ubif erlang:"element"/2 => element_2;
    bif erlang:"setelement"/3 => setelement_3;
    bif erlang:"make_tuple"/2 => make_tuple_2;
    bif erlang:"make_tuple"/3 => make_tuple_3;
    bif erlang:"append_element"/2 => append_element_2;
    bif erlang:"insert_element"/3 => insert_element_3;
    bif erlang:"delete_element"/2 => delete_element_2;
    bif erlang:"tuple_to_list"/1 => tuple_to_list_1;
    bif erlang:"list_to_tuple"/1 => list_to_tuple_1;
    ubif erlang:"tuple_size"/1 => tuple_size_1;
    ubif erlang:"size"/1 => size_1;
}

/// Elements of the largest tuple.
const MAX_ARITY: usize = (1 << 24) - 1;

/// Index, from 0, of an element counted from 1, below `limit`.
fn index(t: Term<'_>, limit: usize) -> Option<usize> {
    let index = t.as_index()?.checked_sub(1)?;
    (index < limit).then_some(index)
}

fn elements(t: Term<'_>) -> Option<&[Term<'_>]> {
    t.as_tuple().map(Tuple::elements)
}

fn element_2<'p>(_: &'p Process, [at, tuple]: [Term<'p>; 2]) -> GuardResult<'p> {
    let elements = elements(tuple).ok_or_else(badarg)?;
    let at = index(at, elements.len()).ok_or_else(badarg)?;
    Ok(elements[at])
}

fn setelement_3<'p>(p: &'p Process, [at, tuple, value]: [Term<'p>; 3]) -> BifResult<'p> {
    let elements = elements(tuple).ok_or_else(badarg)?;
    let at = index(at, elements.len()).ok_or_else(badarg)?;
    Ok(p.tuple_with(elements, at, value))
}

fn make_tuple_2<'p>(p: &'p Process, [arity, value]: [Term<'p>; 2]) -> BifResult<'p> {
    let arity = arity.as_index().filter(|n| *n <= MAX_ARITY);
    Ok(p.tuple(&vec![value; arity.ok_or_else(badarg)?]))
}

fn make_tuple_3<'p>(p: &'p Process, [arity, value, init]: [Term<'p>; 3]) -> BifResult<'p> {
    let arity = arity.as_index().filter(|n| *n <= MAX_ARITY);
    let mut values = vec![value; arity.ok_or_else(badarg)?];
    for pair in init.list_iter() {
        let pair = pair.ok().and_then(elements).ok_or_else(badarg)?;
        let [at, value] = pair else {
            return Err(badarg().into());
        };
        let at = index(*at, values.len()).ok_or_else(badarg)?;
        values[at] = *value;
    }
    Ok(p.tuple(&values))
}

fn append_element_2<'p>(p: &'p Process, [tuple, value]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut values = elements(tuple).ok_or_else(badarg)?.to_vec();
    if values.len() >= MAX_ARITY {
        return Err(badarg().into());
    }
    values.push(value);
    Ok(p.tuple(&values))
}

fn insert_element_3<'p>(p: &'p Process, [at, tuple, value]: [Term<'p>; 3]) -> BifResult<'p> {
    let mut values = elements(tuple).ok_or_else(badarg)?.to_vec();
    let at = index(at, (values.len() + 1).min(MAX_ARITY)).ok_or_else(badarg)?;
    values.insert(at, value);
    Ok(p.tuple(&values))
}

fn delete_element_2<'p>(p: &'p Process, [at, tuple]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut values = elements(tuple).ok_or_else(badarg)?.to_vec();
    let at = index(at, values.len()).ok_or_else(badarg)?;
    values.remove(at);
    Ok(p.tuple(&values))
}

fn tuple_to_list_1<'p>(p: &'p Process, [tuple]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(p.list(elements(tuple).ok_or_else(badarg)?))
}

fn list_to_tuple_1<'p>(p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    let values: Result<Vec<Term<'p>>, _> = list.list_iter().collect();
    let values = values.ok().filter(|values| values.len() <= MAX_ARITY);
    Ok(p.tuple(&values.ok_or_else(badarg)?))
}

fn tuple_size_1<'p>(_: &'p Process, [tuple]: [Term<'p>; 1]) -> GuardResult<'p> {
    let size = elements(tuple).ok_or_else(badarg)?.len();
    Ok(Term::small(size as i64))
}

fn size_1<'p>(_: &'p Process, [t]: [Term<'p>; 1]) -> GuardResult<'p> {
    let of_tuple = elements(t).map(<[_]>::len);
    let of_bits = || t.as_bits().map(|bits| bits.byte_len());
    let size = of_tuple.or_else(of_bits).ok_or_else(badarg)?;
    Ok(Term::small(size as i64))
}
