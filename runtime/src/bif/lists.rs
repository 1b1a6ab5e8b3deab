//! The BIFs on lists: `++`, `--`, `length`, and the functions of `lists` that ERTS has natively.

mod subtract;

use super::{BifResult, Control, GuardResult, Leave, Raise, badarg, bifs};
use crate::exec::guard::ELEMENTS_PER_REDUCTION as CHECKS_PER_RED;
use crate::process::{CONTEXT_REDS, Due, PauseWords, Process, work};
use crate::term::{Term, am, compare};

bifs! {
    all own;
    bif lists:"member"/2 => member_2;
    bif lists:"reverse"/2 => reverse_2;
    bif lists:"keyfind"/3 => keyfind_3;
    bif lists:"keymember"/3 => keymember_3;
    bif lists:"keysearch"/3 => keysearch_3;
    bif erlang:"++"/2 => append_2;
    bif erlang:"append"/2 => append_2;
    bif erlang:"--"/2 => subtract::subtract_2;
    bif erlang:"subtract"/2 => subtract::subtract_2;
    ubif erlang:"length"/1 => length_1;
    ubif erlang:"hd"/1 => hd_1;
    ubif erlang:"tl"/1 => tl_1;
}

/// Cells copied to the free part of the heap for one reduction.
const CELLS_PER_RED: usize = 60;
/// Cells copied beside it for one reduction: they are counted first.
const COUNTED_CELLS_PER_RED: usize = 40;

fn bump(p: &Process, work: usize, per_red: usize) {
    p.bump_reds((work / per_red) as i64);
}

/// Goes on with what is left in the process's next time slice.
fn go_on_with<'p>(p: &Process, args: Vec<Term<'p>>) -> Control<'p> {
    p.bump_all_reds();
    Control::YieldWith(args)
}

fn member_2<'p>(p: &'p Process, [item, list]: [Term<'p>; 2]) -> BifResult<'p> {
    let most = CHECKS_PER_RED * p.reds_left();
    let (mut rest, mut looked_at) = (list, 0usize);
    let mut is_found = false;
    while let (Some(cell), false) = (rest.as_cons(), is_found) {
        if looked_at == most {
            return Err(go_on_with(p, vec![item, rest]).into());
        }
        looked_at += 1;
        let element = cell.head();
        is_found = element.same(item) || !item.raw().is_immed() && compare::eq_exact(element, item);
        rest = cell.tail();
    }
    p.bump_reds(looked_at.div_ceil(CHECKS_PER_RED) as i64);
    if !is_found && !rest.is_nil() {
        return Err(badarg().into());
    }
    Ok(Term::bool(is_found))
}

/// How the copying of a list's cells has ended for this time slice.
enum Copied {
    /// All of them.
    All,
    /// Not all: there are no reductions left.
    Some,
}

/// Shows `each` the elements of `rest`, which becomes what is left of it, as many as the reductions left
/// pay for. Those that fit in the free part of the heap cost less. Source: `lists_append_onheap()` and
/// `lists_append_alloc()` in `erl_bif_lists.c`.
fn copy_cells<'p>(
    p: &'p Process,
    rest: &mut Term<'p>,
    free_words: usize,
    mut each: impl FnMut(Term<'p>),
) -> Result<Copied, Raise<'static>> {
    /// Words of the heap's free part that are not worth a try.
    const FEW: usize = 8;
    let mut take = |most: usize, per_red: usize| {
        let mut cells = 0;
        while let (Some(cell), true) = (rest.as_cons(), cells < most) {
            each(cell.head());
            *rest = cell.tail();
            cells += 1;
        }
        bump(p, cells, per_red);
        match rest.as_cons() {
            Some(_) => Ok((Copied::Some, cells)),
            None if rest.is_nil() => Ok((Copied::All, cells)),
            None => Err(badarg()),
        }
    };
    if free_words > FEW {
        let most = CELLS_PER_RED * p.reds_left();
        let room = (free_words - 2).div_ceil(2);
        let (copied, cells) = take(most.min(room), CELLS_PER_RED)?;
        if matches!(copied, Copied::All) || most - cells <= CELLS_PER_RED {
            return Ok(copied);
        }
    }
    let most = COUNTED_CELLS_PER_RED * p.reds_left();
    take(most, COUNTED_CELLS_PER_RED).map(|(copied, _)| copied)
}

fn reverse_2<'p>(p: &'p Process, [list, tail]: [Term<'p>; 2]) -> BifResult<'p> {
    let (mut rest, mut reversed) = (list, tail);
    if !rest.is_nil() && rest.as_cons().is_none() {
        return Err(badarg().into());
    }
    let copied = copy_cells(p, &mut rest, p.free_words(), |element| {
        reversed = p.cons(element, reversed);
    });
    match copied? {
        Copied::All => Ok(reversed),
        Copied::Some => Err(go_on_with(p, vec![rest, reversed]).into()),
    }
}

/// Elements that `lists:keyfind/3` looks at in one time slice.
const LOOKED_AT_PER_TURN: usize = 10 * CONTEXT_REDS as usize;

/// The first tuple whose element at `position` equals `key`; `false` if there is none.
fn keyfind<'p>(
    p: &'p Process,
    [key, position, list]: [Term<'p>; 3],
) -> Result<Option<Term<'p>>, Leave<'p>> {
    let index = position
        .as_index()
        .and_then(|n| n.checked_sub(1))
        .ok_or_else(badarg)?;
    let (mut rest, mut looked_at) = (list, 0);
    while let Some(cell) = rest.as_cons() {
        if looked_at == LOOKED_AT_PER_TURN {
            return Err(go_on_with(p, vec![key, position, rest]).into());
        }
        looked_at += 1;
        let element = cell.head();
        rest = cell.tail();
        let Some(candidate) = element.as_tuple().and_then(|t| t.elements().get(index)) else {
            continue;
        };
        if candidate.same(key) || compare::eq(*candidate, key) {
            return Ok(Some(element));
        }
    }
    if rest.is_nil() {
        Ok(None)
    } else {
        Err(badarg().into())
    }
}

fn keyfind_3<'p>(p: &'p Process, args: [Term<'p>; 3]) -> BifResult<'p> {
    Ok(keyfind(p, args)?.unwrap_or(am::false_.term()))
}

fn keymember_3<'p>(p: &'p Process, args: [Term<'p>; 3]) -> BifResult<'p> {
    Ok(Term::bool(keyfind(p, args)?.is_some()))
}

fn keysearch_3<'p>(p: &'p Process, args: [Term<'p>; 3]) -> BifResult<'p> {
    Ok(match keyfind(p, args)? {
        Some(found) => p.tuple(&[am::value.term(), found]),
        None => am::false_.term(),
    })
}

/// An append in the making.
struct Appending<'p> {
    /// What is left of the left operand.
    rest: Term<'p>,
    copied: Vec<Term<'p>>,
}

work! { struct Appending { rest, copied; } }

/// A list that is put together from its end.
struct Listing<'p> {
    /// Its first elements, which are not in it yet.
    left: Vec<Term<'p>>,
    list: Term<'p>,
}

work! { struct Listing { left, list; } }

impl<'p> Listing<'p> {
    /// Cells made in a time slice.
    const CELLS: usize = COUNTED_CELLS_PER_RED * CONTEXT_REDS as usize;

    /// The list, or as much of it as is made in a slice. ERTS has paid for the cells while it copied the elements to
    /// them: they cost nothing any more.
    fn run(mut self, p: &'p Process) -> BifResult<'p> {
        let now = self.left.len().saturating_sub(Self::CELLS);
        let elements = self.left.drain(now..).rev();
        let list = elements.fold(self.list, |tail, element| p.cons(element, tail));
        if self.left.is_empty() {
            return Ok(list);
        }
        self.list = list;
        p.give_up_slice();
        Err(p.put_off(self).into())
    }
}

/// What stands on the right is not looked at, as ever.
fn append_2<'p>(p: &'p Process, [left, right]: [Term<'p>; 2]) -> BifResult<'p> {
    if let Some(result) = p.pay_on(PauseWords::Once) {
        return result;
    }
    if let Some(listing) = p.take_work_if::<Listing>() {
        return listing.run(p);
    }
    let begun = p.take_work::<Appending>();
    let is_first_slice = begun.is_none();
    let (mut rest, mut copied, free_words) = match begun {
        None if left.is_nil() => return Ok(right),
        None if left.as_cons().is_none() => return Err(badarg().into()),
        // The list itself, if it is a proper one.
        None if right.is_nil() => {
            let bill = [due(counted(left)?, COUNTED_PER_RED)];
            return p.pay(left, &bill, PauseWords::Once);
        }
        None => (left, Vec::new(), p.free_words()),
        // The first time slice has filled the heap.
        Some(begun) => (begun.rest, begun.copied, 0),
    };
    let outcome = copy_cells(p, &mut rest, free_words, |element| {
        copied.push(element);
    });
    if outcome.is_err() {
        // ERTS has copied the elements of an improper list by then.
        p.trap_words(2 * copied.len());
    }
    match outcome? {
        Copied::All => {
            let (left, list) = (copied, right);
            Listing { left, list }.run(p)
        }
        Copied::Some => {
            if is_first_slice {
                p.trap_state();
            }
            Err(p.yield_with(Appending { rest, copied }).into())
        }
    }
}

/// Cells of which the length of an operand is counted for one reduction.
const COUNTED_PER_RED: usize = 32;

/// The length of a proper list.
fn counted(list: Term<'_>) -> Result<usize, Raise<'static>> {
    let mut count = 0;
    for element in list.list_iter() {
        element.map_err(|_| badarg())?;
        count += 1;
    }
    Ok(count)
}

/// What is due for `work` of which one reduction pays for `per_red`.
fn due(work: usize, per_red: usize) -> Due {
    Due::new(work, per_red * CONTEXT_REDS as usize)
}

fn length_1<'p>(p: &'p Process, [list]: [Term<'p>; 1]) -> GuardResult<'p> {
    let mut length = 0usize;
    for element in list.list_iter() {
        element.map_err(|_| badarg())?;
        length += 1;
    }
    bump(p, length, CHECKS_PER_RED);
    Ok(p.unsigned(length as u64))
}

fn hd_1<'p>(_p: &'p Process, [list]: [Term<'p>; 1]) -> GuardResult<'p> {
    list.as_cons().map(|cell| cell.head()).ok_or_else(badarg)
}

fn tl_1<'p>(_p: &'p Process, [list]: [Term<'p>; 1]) -> GuardResult<'p> {
    list.as_cons().map(|cell| cell.tail()).ok_or_else(badarg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::in_small_steps;

    fn number(element: Result<Term<'_>, Term<'_>>) -> Option<i64> {
        let tuple = element.ok().and_then(Term::as_tuple);
        tuple.and_then(|tuple| tuple.get(0).as_small())
    }

    fn append<'p>(p: &'p Process, list: Term<'p>) -> BifResult<'p> {
        append_2(p, [list, list])
    }

    #[test]
    fn a_long_list_is_copied_in_many_slices() {
        const N: i64 = 10_000;
        let mut p = Process::new(233);
        let numbers: Vec<_> = (0..N).map(|n| p.tuple(&[Term::small(n)])).collect();
        let list = p.root(p.list(&numbers));
        let is_twice = |found: Term<'_>| {
            found
                .list_iter()
                .map(number)
                .eq((0..N).chain(0..N).map(Some))
        };
        let turns = in_small_steps(&mut p, &list, append, is_twice);
        assert!(turns > 20, "{turns}");
    }
}
