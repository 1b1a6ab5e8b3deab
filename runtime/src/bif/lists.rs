//! Lists: `++`, `--`, `length`, and the functions of `lists` that ERTS gives.

use super::{BifResult, Raise, badarg, bifs};
use crate::process::Process;
use crate::term::{Term, am, compare};

bifs! {
    bif lists:"member"/2 => member_2;
    bif lists:"reverse"/2 => reverse_2;
    bif lists:"keyfind"/3 => keyfind_3;
    bif lists:"keymember"/3 => keymember_3;
    bif lists:"keysearch"/3 => keysearch_3;
    bif erlang:"++"/2 => append_2;
    bif erlang:"append"/2 => append_2;
    bif erlang:"--"/2 => subtract_2;
    bif erlang:"subtract"/2 => subtract_2;
    ubif erlang:"length"/1 => length_1;
    ubif erlang:"hd"/1 => hd_1;
    ubif erlang:"tl"/1 => tl_1;
}

/// Cells copied for one reduction.
const CELLS_PER_RED: usize = 40;
/// Elements looked at for one reduction.
const CHECKS_PER_RED: usize = 16;

fn bump(p: &Process, work: usize, per_red: usize) {
    p.bump_reds((work / per_red) as i64);
}

/// The elements of a proper list.
fn elements<'p>(list: Term<'p>) -> Result<Vec<Term<'p>>, Raise<'static>> {
    let elements: Result<Vec<_>, _> = list.list_iter().collect();
    elements.map_err(|_| badarg())
}

fn member_2<'p>(p: &'p Process, [item, list]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut looked_at = 0;
    for element in list.list_iter() {
        let Ok(element) = element else {
            bump(p, looked_at, CHECKS_PER_RED);
            return Err(badarg());
        };
        looked_at += 1;
        if element.same(item) || !item.raw().is_immed() && compare::eq_exact(element, item) {
            bump(p, looked_at, CHECKS_PER_RED);
            return Ok(am::true_.term());
        }
    }
    bump(p, looked_at, CHECKS_PER_RED);
    Ok(am::false_.term())
}

fn reverse_2<'p>(p: &'p Process, [list, tail]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut reversed = tail;
    let mut cells = 0;
    for element in list.list_iter() {
        reversed = p.cons(element.map_err(|_| badarg())?, reversed);
        cells += 1;
    }
    bump(p, cells, CELLS_PER_RED);
    Ok(reversed)
}

/// The first tuple whose element at `position` equals `key`; `false` if there is none.
fn keyfind<'p>(
    p: &'p Process,
    key: Term<'p>,
    position: Term<'p>,
    list: Term<'p>,
) -> Result<Option<Term<'p>>, Raise<'static>> {
    /// ERTS looks at so many before it charges a whole time slice for them.
    const BATCH: usize = 40_000;
    let index = position
        .as_index()
        .and_then(|n| n.checked_sub(1))
        .ok_or_else(badarg)?;
    for (n, element) in (1..).zip(list.list_iter()) {
        let element = element.map_err(|_| badarg())?;
        if n % BATCH == 0 {
            p.bump_reds(4000);
        }
        let Some(candidate) = element.as_tuple().and_then(|t| t.elements().get(index)) else {
            continue;
        };
        if candidate.same(key) || compare::eq(*candidate, key) {
            return Ok(Some(element));
        }
    }
    Ok(None)
}

fn keyfind_3<'p>(p: &'p Process, [key, position, list]: [Term<'p>; 3]) -> BifResult<'p> {
    Ok(keyfind(p, key, position, list)?.unwrap_or(am::false_.term()))
}

fn keymember_3<'p>(p: &'p Process, [key, position, list]: [Term<'p>; 3]) -> BifResult<'p> {
    Ok(Term::bool(keyfind(p, key, position, list)?.is_some()))
}

fn keysearch_3<'p>(p: &'p Process, [key, position, list]: [Term<'p>; 3]) -> BifResult<'p> {
    Ok(match keyfind(p, key, position, list)? {
        Some(found) => p.tuple(&[am::value.term(), found]),
        None => am::false_.term(),
    })
}

/// What stands on the right is not looked at, as ever.
fn append_2<'p>(p: &'p Process, [left, right]: [Term<'p>; 2]) -> BifResult<'p> {
    let left = elements(left)?;
    bump(p, left.len(), CELLS_PER_RED);
    Ok(p.list_with_tail(&left, right))
}

/// From this many elements on both sides on, those to remove are sorted first.
const SORT_FROM: usize = 16;

fn subtract_2<'p>(p: &'p Process, [left, right]: [Term<'p>; 2]) -> BifResult<'p> {
    let (mut left, right) = (elements(left)?, elements(right)?);
    bump(p, left.len() + right.len(), CHECKS_PER_RED);
    if left.len() <= SORT_FROM || right.len() <= SORT_FROM {
        subtract_small(&mut left, right);
    } else {
        subtract_sorted(&mut left, right);
    }
    Ok(p.list(&left))
}

fn subtract_small<'p>(left: &mut Vec<Term<'p>>, mut right: Vec<Term<'p>>) {
    left.retain(|element| {
        let at = right
            .iter()
            .position(|r| r.same(*element) || compare::eq_exact(*r, *element));
        at.map(|at| right.remove(at)).is_none()
    });
}

/// Each distinct element of `right` once, in order, with how often it may still be removed.
fn subtract_sorted<'p>(left: &mut Vec<Term<'p>>, mut right: Vec<Term<'p>>) {
    right.sort_by(|a, b| compare::cmp_exact(*a, *b));
    let mut counts: Vec<(Term<'p>, usize)> = Vec::with_capacity(right.len());
    for element in right {
        match counts.last_mut() {
            Some((last, count)) if compare::eq_exact(*last, element) => *count += 1,
            _ => counts.push((element, 1)),
        }
    }
    left.retain(|element| {
        let at = counts.binary_search_by(|(candidate, _)| compare::cmp_exact(*candidate, *element));
        match at {
            Ok(at) if counts[at].1 > 0 => {
                counts[at].1 -= 1;
                false
            }
            _ => true,
        }
    });
}

fn length_1<'p>(p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    let mut length = 0usize;
    for element in list.list_iter() {
        element.map_err(|_| badarg())?;
        length += 1;
    }
    bump(p, length, CHECKS_PER_RED);
    Ok(p.unsigned(length as u64))
}

fn hd_1<'p>(_p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    list.as_cons().map(|cell| cell.head()).ok_or_else(badarg)
}

fn tl_1<'p>(_p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    list.as_cons().map(|cell| cell.tail()).ok_or_else(badarg)
}
