//! Lists: `++`, `--`, `length`, and the functions of `lists` that ERTS gives.

use smallvec::SmallVec;

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

/// Up to this many elements on one side, each element of the other is looked for among them.
const FEW: usize = 16;
/// Cells of which the length of an operand of `--` is counted for one reduction.
const COUNTED_PER_RED: usize = 32;
/// Elements looked for in the sorted ones for one reduction.
const SEARCHED_PER_RED: usize = 8;

type Few<'p> = SmallVec<[Term<'p>; FEW]>;

/// The length of a proper list.
fn counted<'p>(p: &'p Process, list: Term<'p>) -> Result<usize, Raise<'static>> {
    let mut count = 0;
    for element in list.list_iter() {
        element.map_err(|_| badarg())?;
        count += 1;
    }
    bump(p, count, COUNTED_PER_RED);
    Ok(count)
}

/// Both operands are walked to their ends, so that an improper one is an error whatever is in them.
fn subtract_2<'p>(p: &'p Process, [left, right]: [Term<'p>; 2]) -> BifResult<'p> {
    let is_list = |t: Term<'p>| t.is_nil() || t.as_cons().is_some();
    if !is_list(left) || !is_list(right) {
        return Err(badarg());
    }
    let left_len = counted(p, left)?;
    if (1..=FEW).contains(&left_len) && !right.is_nil() {
        return subtract_from_few(p, left, right);
    }
    let right_len = counted(p, right)?;
    if left_len == 0 || right_len == 0 {
        return Ok(left);
    }
    let removed = if right_len <= FEW {
        Removed::Few(right.list_iter().flatten().collect())
    } else {
        bump(p, right_len, CHECKS_PER_RED);
        Removed::sorted(right)
    };
    Ok(subtract(p, left, right_len, removed))
}

fn eq<'p>(a: Term<'p>, b: Term<'p>) -> bool {
    a.same(b) || compare::eq_exact(a, b)
}

fn subtract_from_few<'p>(p: &'p Process, left: Term<'p>, right: Term<'p>) -> BifResult<'p> {
    let mut rest: Few<'p> = left.list_iter().flatten().collect();
    let mut checks = 0;
    for element in right.list_iter() {
        let element = element.map_err(|_| badarg())?;
        if let Some(at) = rest.iter().position(|r| eq(*r, element)) {
            rest.remove(at);
        }
        checks += rest.len().max(1);
    }
    bump(p, checks, CHECKS_PER_RED);
    Ok(p.list(&rest))
}

/// What is still to be taken out of a list.
enum Removed<'p> {
    Few(Few<'p>),
    /// Each distinct element once, in order, with how often it is to be taken out.
    Sorted(Vec<(Term<'p>, usize)>),
}

impl<'p> Removed<'p> {
    fn sorted(right: Term<'p>) -> Removed<'p> {
        let mut elements: Vec<_> = right.list_iter().flatten().collect();
        elements.sort_by(|a, b| compare::cmp_exact(*a, *b));
        let mut counts: Vec<(Term<'p>, usize)> = Vec::with_capacity(elements.len());
        for element in elements {
            match counts.last_mut() {
                Some((last, count)) if eq(*last, element) => *count += 1,
                _ => counts.push((element, 1)),
            }
        }
        Removed::Sorted(counts)
    }

    /// Is `element` to be taken out? Then once less from now on.
    fn take(&mut self, element: Term<'p>) -> bool {
        match self {
            Removed::Few(few) => {
                let at = few.iter().rposition(|r| eq(*r, element));
                at.map(|at| few.swap_remove(at)).is_some()
            }
            Removed::Sorted(counts) => {
                let found = counts.binary_search_by(|(c, _)| compare::cmp_exact(*c, element));
                let Ok(at) = found else { return false };
                let is_left = counts[at].1 > 0;
                counts[at].1 -= usize::from(is_left);
                is_left
            }
        }
    }

    /// What looking for an element counts, and how much of that one reduction pays for.
    fn checks(&self) -> (usize, usize) {
        match self {
            Removed::Few(few) => (few.len(), CHECKS_PER_RED),
            Removed::Sorted(_) => (1, SEARCHED_PER_RED),
        }
    }
}

/// `left` without `count` elements; what follows the last of them is shared.
fn subtract<'p>(
    p: &'p Process,
    left: Term<'p>,
    mut count: usize,
    mut removed: Removed<'p>,
) -> Term<'p> {
    let mut kept = Vec::new();
    let (mut checks, per_red) = (0, removed.checks().1);
    let mut rest = left;
    while let (Some(cell), true) = (rest.as_cons(), count > 0) {
        if removed.take(cell.head()) {
            count -= 1;
        } else {
            kept.push(cell.head());
        }
        checks += removed.checks().0;
        rest = cell.tail();
    }
    bump(p, checks, per_red);
    p.list_with_tail(&kept, rest)
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
