//! The BIFs of `ets` that change elements of objects in place.

use smallvec::{SmallVec, smallvec};

use super::ets::object;
use super::{BifResult, Raise, badarg, bifs, system_limit};
use crate::ets::{Table, error, registry};
use crate::hash::HashMap;
use crate::heap::{Heap, Stored};
use crate::process::Process;
use crate::term::compare::cmp;
use crate::term::{Term, Tuple, View, am, tag};
use crate::value::number;

bifs! {
    all shared;
    bif ets:"update_element"/3 => update_element_3;
    bif ets:"update_element"/4 => update_element_4;
    bif ets:"update_counter"/3 => update_counter_3;
    bif ets:"update_counter"/4 => update_counter_4;
}

/// What is done in one call: mostly one thing.
type Few<T> = SmallVec<[T; 1]>;

/// Replaces elements (index from 0) of `object`.
fn change(object: &mut Stored, changes: &[(usize, Term<'_>)]) {
    for (done, (index, value)) in changes.iter().enumerate() {
        if !object.replace_immediate(*index, *value) {
            let mut elements = object.elements().to_vec();
            for (index, value) in &changes[done..] {
                elements[*index] = *value;
            }
            *object = Stored::of_elements(&elements);
            return;
        }
    }
}

/// The one tuple of `term`, or the elements of a proper list.
fn one_or_list<'p>(term: Term<'p>, is_one: bool) -> Result<Few<Term<'p>>, Raise<'static>> {
    if is_one {
        return Ok(smallvec![term]);
    }
    let list: Result<Few<_>, _> = term.list_iter().collect();
    list.map_err(|_| badarg())
}

/// The index (from 0) of the element at `position` of an object of `arity` elements.
fn index(table: &Table, position: Term<'_>, arity: usize) -> Result<usize, Raise<'static>> {
    let position = position.as_small().ok_or_else(badarg)?;
    let position = usize::try_from(position).unwrap_or(0);
    if position == table.options.keypos {
        return Err(error(am::keypos));
    }
    if position < 1 || position > arity {
        return Err(error(am::position));
    }
    Ok(position - 1)
}

/// `default` with `key` as its key.
fn default_object(default: Tuple<'_>, keypos: usize, key: Term<'_>) -> Stored {
    let mut elements: Vec<_> = default.elements().to_vec();
    elements[keypos - 1] = key;
    Stored::of_elements(&elements)
}

fn checked_default<'p>(
    table: &Table,
    default: Option<Term<'p>>,
) -> Result<Option<Tuple<'p>>, Raise<'static>> {
    let Some(default) = default else {
        return Ok(None);
    };
    object(default, table.options.keypos)
        .map(Some)
        .map_err(|_| error(am::default))
}

fn update_element<'p>(
    p: &'p Process,
    [id, key, pairs]: [Term<'p>; 3],
    default: Option<Term<'p>>,
) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let table = handle.table();
    let mut state = table.write_key(p, id, Some(key))?;
    let default = checked_default(table, default)?;
    if !table.options.kind.is_set() {
        // ERTS does not say why.
        return Err(badarg().into());
    }
    let found = state.objects.get(key).next();
    let made = match (found, default) {
        (Some(_), _) => None,
        (None, Some(default)) => Some(default_object(default, table.options.keypos, key)),
        (None, None) => return Ok(am::false_.term()),
    };
    let object = made.as_ref().or(found);
    let arity = object.map_or(0, |object| object.elements().len());
    let mut changes = Few::new();
    for pair in one_or_list(pairs, pairs.as_tuple().is_some())? {
        match pair.as_tuple().map(|pair| pair.elements()) {
            Some([position, value]) => changes.push((index(table, *position, arity)?, *value)),
            _ => return Err(badarg().into()),
        }
    }
    match made {
        Some(mut object) => {
            change(&mut object, &changes);
            state.objects.insert(object);
        }
        None => {
            state.objects.update(key, |object| change(object, &changes));
        }
    }
    Ok(am::true_.term())
}

fn update_element_3<'p>(p: &'p Process, args: [Term<'p>; 3]) -> BifResult<'p> {
    update_element(p, args, None)
}

fn update_element_4<'p>(p: &'p Process, [id, key, pairs, default]: [Term<'p>; 4]) -> BifResult<'p> {
    update_element(p, [id, key, pairs], Some(default))
}

/// Steps of an `update_counter` up to which those before one are looked through for another at the same element.
const FEW_STEPS: usize = 16;

/// One step of `update_counter`: what is added where, and `{Threshold, SetValue}`.
struct Step<'p> {
    index: usize,
    increment: Term<'p>,
    limit: Option<(Term<'p>, Term<'p>)>,
}

fn is_integer(term: Term<'_>) -> bool {
    matches!(term.view(), View::Small(_) | View::Big(_))
}

fn integer<'p>(term: Term<'p>) -> Result<Term<'p>, Raise<'static>> {
    is_integer(term).then_some(term).ok_or_else(badarg)
}

/// The step `{Position, Increment}` or `{Position, Increment, Threshold, SetValue}`.
fn counter_step<'p>(
    table: &Table,
    step: &[Term<'p>],
    object: &[Term<'_>],
) -> Result<Step<'p>, Raise<'static>> {
    let (position, increment, limit) = match step {
        [position, increment] => (*position, *increment, None),
        [position, increment, threshold, value] => {
            let limit = (integer(*threshold)?, integer(*value)?);
            (*position, *increment, Some(limit))
        }
        _ => return Err(badarg()),
    };
    position.as_small().ok_or_else(badarg)?;
    let increment = integer(increment)?;
    let index = index(table, position, object.len())?;
    integer(object[index])?;
    Ok(Step {
        index,
        increment,
        limit,
    })
}

impl Step<'_> {
    /// The counter after this step.
    fn apply<'h>(&self, heap: &'h Heap, counter: Term<'h>) -> Result<Term<'h>, Raise<'static>> {
        let increment = heap.copy_in(self.increment);
        let value = number::add(heap, counter, increment).map_err(|_| system_limit())?;
        let Some((threshold, set)) = self.limit else {
            return Ok(value);
        };
        let down = cmp(self.increment, Term::small(0)).is_lt();
        let beyond = if down {
            cmp(value, threshold).is_lt()
        } else {
            cmp(value, threshold).is_gt()
        };
        Ok(if beyond { heap.copy_in(set) } else { value })
    }
}

/// The index (from 0) of the counter in a single step, and its increment, where that is small and has no limit.
fn small_step(steps: Term<'_>, keypos: usize) -> Option<(usize, i64)> {
    let (position, increment) = match steps.as_tuple().map(|step| step.elements()) {
        None => (keypos + 1, steps),
        Some([position, increment]) => (position.as_index()?, *increment),
        Some(_) => return None,
    };
    let index = position.checked_sub(1).filter(|_| position != keypos)?;
    Some((index, increment.as_small()?))
}

/// Adds `increment` to element `index` (from 0), where both that and the sum are small integers: the sum.
fn add_small(object: &mut Stored, index: usize, increment: i64) -> Option<Term<'static>> {
    let counter = object.elements().get(index)?.as_small()?;
    let sum = counter + increment;
    let is_small = (tag::MIN_SMALL..=tag::MAX_SMALL).contains(&sum);
    let sum = is_small.then(|| Term::small(sum))?;
    object.replace_immediate(index, sum);
    Some(sum)
}

fn update_counter<'p>(
    p: &'p Process,
    [id, key, steps]: [Term<'p>; 3],
    default: Option<Term<'p>>,
) -> BifResult<'p> {
    let handle = registry::find(p, id)?;
    let table = handle.table();
    let mut state = table.write_key(p, id, Some(key))?;
    let default = checked_default(table, default)?;
    if !table.options.kind.is_set() {
        return Err(error(am::table_type).into());
    }
    if let Some((index, increment)) = small_step(steps, table.options.keypos) {
        let add = |object: &mut Stored| add_small(object, index, increment);
        if let Some(Some(sum)) = state.objects.update(key, add) {
            return Ok(sum);
        }
    }
    let found = state.objects.get(key).next();
    let made = match (found, default) {
        (Some(_), _) => None,
        (None, Some(default)) => Some(default_object(default, table.options.keypos, key)),
        (None, None) => return Err(error(am::badkey).into()),
    };
    let single = is_integer(steps) || steps.as_tuple().is_some();
    let object = made.as_ref().or(found);
    let object = object.map_or(&[][..], Stored::elements);
    let mut todo = Few::new();
    if is_integer(steps) {
        let position = Term::small(table.options.keypos as i64 + 1);
        todo.push(counter_step(table, &[position, steps], object)?);
    } else {
        for step in one_or_list(steps, single)? {
            let step = step.as_tuple().ok_or_else(badarg)?;
            todo.push(counter_step(table, step.elements(), object)?);
        }
    }
    let mut changes: Few<(usize, Term<'p>)> = Few::new();
    // The counters after the steps so far, where there are too many to be looked through.
    let mut counters: HashMap<usize, Term<'p>> = HashMap::default();
    let mut results = Few::with_capacity(todo.len());
    for step in &todo {
        let before = match todo.len() {
            ..=FEW_STEPS => changes
                .iter()
                .rev()
                .find(|(index, _)| *index == step.index)
                .map(|(_, counter)| *counter),
            _ => counters.get(&step.index).copied(),
        };
        let counter = before.unwrap_or_else(|| p.copy_in(object[step.index]));
        let value = step.apply(p, counter)?;
        if todo.len() > FEW_STEPS {
            counters.insert(step.index, value);
        }
        changes.push((step.index, value));
        results.push(value);
    }
    match made {
        Some(mut object) => {
            change(&mut object, &changes);
            state.objects.insert(object);
        }
        None => {
            state.objects.update(key, |object| change(object, &changes));
        }
    }
    Ok(if single { results[0] } else { p.list(&results) })
}

fn update_counter_3<'p>(p: &'p Process, args: [Term<'p>; 3]) -> BifResult<'p> {
    update_counter(p, args, None)
}

fn update_counter_4<'p>(p: &'p Process, [id, key, steps, default]: [Term<'p>; 4]) -> BifResult<'p> {
    update_counter(p, [id, key, steps], Some(default))
}
