//! `ets:insert/2` and `ets:insert_new/2`: one object, or a list of them at once.

use super::ets::object;
use super::{BifResult, Control, Leave, badarg, bifs};
use crate::ets::registry::TableRef;
use crate::ets::{Ending, HashKind, Insertion, Kind, STEPS_PER_RED, State, Table, error, registry};
use crate::heap::Stored;
use crate::process::order::access::Access;
use crate::process::order::director::are_accesses_ordered;
use crate::process::{CONTEXT_REDS, Due, PauseWords, Process, work};
use crate::term::{Term, am};

bifs! {
    all shared;
    bif ets:"insert"/2 => insert_2;
    bif ets:"insert_new"/2 => insert_new_2;
}

fn insert_2<'p>(p: &'p Process, [id, objects]: [Term<'p>; 2]) -> BifResult<'p> {
    insert(p, id, objects, false)
}

fn insert_new_2<'p>(p: &'p Process, [id, objects]: [Term<'p>; 2]) -> BifResult<'p> {
    insert(p, id, objects, true)
}

fn insert<'p>(p: &'p Process, id: Term<'p>, objects: Term<'p>, new: bool) -> BifResult<'p> {
    if p.has_work() {
        return go_on(p, id, new);
    }
    let handle = registry::find(p, id)?;
    let table = handle.table();
    let keypos = table.options.keypos;
    if objects.as_tuple().is_some() {
        let tuple = object(objects, keypos);
        let key = tuple.as_ref().ok().map(|tuple| tuple.get(keypos - 1));
        let mut state = table.write_key(p, id, key)?;
        let tuple = tuple?;
        if new && state.objects.has(tuple.get(keypos - 1)) {
            return Ok(am::false_.term());
        }
        state.objects.put(tuple);
        return Ok(am::true_.term());
    }
    table.may(p, id, Access::Write)?;
    let budget = p.reds_left() * STEPS_PER_RED;
    let is_bag = table.options.kind == Kind::Hash(HashKind::Bag);
    let copying = Copying {
        is_split: is_bag || objects.list_iter().nth(budget / 2).is_some(),
        is_first_slice: true,
        stored: Vec::new(),
        steps: 0,
        rest: objects,
    };
    copying.run(p, id, new)
}

/// Goes on with a list in another time slice.
fn go_on<'p>(p: &'p Process, id: Term<'p>, new: bool) -> BifResult<'p> {
    if let Some(result) = p.pay_on(PauseWords::Each(0)) {
        return result;
    }
    if let Some(putting) = p.take_work_if::<Putting>() {
        return putting.run(p);
    }
    let copying = p.take_work::<Copying>();
    copying.ok_or_else(badarg)?.run(p, id, new)
}

/// Objects made of a list, until all are made.
struct Copying<'p> {
    /// There are too few reductions to put all of them into the table in the first time slice. Of bags, one never knows.
    is_split: bool,
    is_first_slice: bool,
    stored: Vec<Stored>,
    /// Steps that are still to be paid for.
    steps: usize,
    /// What is left of the list.
    rest: Term<'p>,
}

work! { struct Copying { rest; is_split, is_first_slice, stored, steps } }

impl<'p> Copying<'p> {
    fn run(mut self, p: &'p Process, id: Term<'p>, new: bool) -> BifResult<'p> {
        let handle = registry::find(p, id)?;
        let table = handle.table();
        let budget = p.reds_left() * STEPS_PER_RED;
        // Checking one, and copying it.
        let steps_each = 1 + usize::from(self.is_split);
        let mut rest = self.rest;
        let mut left = budget.max(1);
        while let Some(cell) = rest.as_cons() {
            if left == 0 {
                self.rest = rest;
                return Err(p.yield_with(self.paused(p)).into());
            }
            let tuple = object(cell.head(), table.options.keypos)?;
            self.stored.push(Stored::new(tuple));
            rest = cell.tail();
            left = left.saturating_sub(steps_each);
        }
        if !rest.is_nil() {
            return Err(badarg().into());
        }
        self.rest = rest;
        let mut state = match table.write(p, id) {
            // Its turn has not come.
            Err(Leave::Control(later)) if are_accesses_ordered() => {
                self.steps += budget.saturating_sub(left);
                drop(p.put_off(self));
                return Err(later.into());
            }
            // Another list comes first.
            Err(Leave::Control(Control::Yield)) => return Err(p.put_off(self.paused(p)).into()),
            state => state?,
        };
        let steps = self.steps + budget.saturating_sub(left);
        let mut insertion = Insertion::new(self.stored, new, self.is_split);
        let ending = Ending::clone(insertion.ending());
        // In the order of accesses, a list is one.
        if !self.is_split || are_accesses_ordered() {
            let steps = steps + insertion.run(&mut state.objects, usize::MAX);
            drop(state);
            let due = if self.is_split {
                Due::new
            } else {
                Due::at_once
            };
            return paid(p, &ending, due, steps, self.is_first_slice);
        }
        state.insertion = Some(Box::new(insertion));
        let putting = Putting {
            table: table.reference().ok_or_else(badarg)?,
            ending,
            steps,
        };
        putting.put(p, &mut state, self.is_first_slice)
    }

    fn paused(mut self, p: &Process) -> Copying<'p> {
        if std::mem::take(&mut self.is_first_slice) {
            p.trap_state();
        }
        self
    }
}

/// Objects of a list that the table has still to take.
struct Putting {
    table: TableRef,
    ending: Ending,
    /// Steps of this time slice.
    steps: usize,
}

work! { Putting without terms }

impl Putting {
    /// Others may have gone on with it in the meantime: they have paid for that.
    fn run(self, p: &Process) -> BifResult<'_> {
        let table = TableRef::clone(&self.table);
        let table = table.get::<Table>().ok_or_else(badarg)?;
        let mut state = table.state();
        let is_under_way = |insertion: &Insertion| Ending::ptr_eq(insertion.ending(), &self.ending);
        if state.insertion.as_deref().is_some_and(is_under_way) {
            return self.put(p, &mut state, false);
        }
        // A table that is deleted gives up what was not in it yet.
        let is_in = self.ending.get().ok_or_else(|| error(am::id))?;
        Ok(Term::bool(*is_in))
    }

    /// As many objects as the time slice pays for; what the last one took beyond that is not charged.
    fn put<'p>(mut self, p: &'p Process, state: &mut State, is_first_slice: bool) -> BifResult<'p> {
        let payable = p.reds_left() * STEPS_PER_RED;
        self.steps += state.insert_on(payable.saturating_sub(self.steps));
        if self.ending.get().is_some() {
            return paid(p, &self.ending, Due::new, self.steps, is_first_slice);
        }
        if is_first_slice {
            p.trap_state();
        }
        self.steps = 0;
        Err(p.yield_with(self).into())
    }
}

/// The result, when `steps` are paid for.
fn paid<'p>(
    p: &'p Process,
    ending: &Ending,
    due: fn(usize, usize) -> Due,
    steps: usize,
    is_first_slice: bool,
) -> BifResult<'p> {
    let result = Term::bool(ending.get() == Some(&true));
    let words = if is_first_slice {
        PauseWords::Once
    } else {
        PauseWords::Each(0)
    };
    let per_slice = STEPS_PER_RED * CONTEXT_REDS as usize;
    p.pay(result, &[due(steps, per_slice)], words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ets::{Protection, TableOptions};
    use crate::process::Raise;

    const N: i64 = 3000;

    fn table(p: &Process) -> TableRef {
        let options = TableOptions::of(Kind::Hash(HashKind::Set));
        let table = Table::new(am::table, p.pid(), None, Protection::Public, options);
        registry::add(p, table)
            .ok()
            .flatten()
            .expect("it has no name")
    }

    fn objects(p: &Process) -> Term<'_> {
        let objects: Vec<_> = (0..N).map(|n| p.tuple(&[Term::small(n)])).collect();
        p.list(&objects)
    }

    /// A call with few reductions: its result, if it does not yield.
    fn step<'p>(p: &'p Process, result: impl FnOnce() -> BifResult<'p>) -> Option<Term<'p>> {
        p.fcalls.set(60);
        match result() {
            Ok(value) => Some(value),
            Err(raise) => {
                assert!(matches!(raise, Leave::Control(Control::Yield)));
                None
            }
        }
    }

    #[test]
    fn others_see_no_part_of_a_list() {
        let (p, other) = (Process::new(233), Process::new(233));
        let reference = table(&p);
        let table = reference.get::<Table>().expect("a table");
        let (id, list) = (p.magic_reference(reference.clone()), objects(&p));
        let size = || {
            let id = other.magic_reference(reference.clone());
            let state = table.info(&other, id)?;
            Ok(other.unsigned(state.objects.len() as u64))
        };
        let (mut turns, mut helped) = (0, 0);
        let result = loop {
            if let Some(result) = step(&p, || insert_new_2(&p, [id, list])) {
                break result;
            }
            turns += 1;
            match step(&other, size).map(Term::as_small) {
                Some(size) => assert!(size == Some(0) || size == Some(N)),
                None => helped += 1,
            }
        };
        assert!(
            result == am::true_ && turns > 10 && helped > 5,
            "{turns} {helped}"
        );
        assert!(step(&other, size).and_then(Term::as_small) == Some(N));
    }

    #[test]
    fn others_finish_what_a_process_has_begun() {
        let (p, other) = (Process::new(233), Process::new(233));
        let reference = table(&p);
        let table = reference.get::<Table>().expect("a table");
        let (id, list) = (p.magic_reference(reference.clone()), objects(&p));
        while table.state().insertion.is_none() {
            assert!(step(&p, || insert_2(&p, [id, list])).is_none());
        }
        let found = loop {
            let id = other.magic_reference(reference.clone());
            let has = || {
                Ok(Term::bool(
                    table.read(&other, id)?.objects.has(Term::small(N - 1)),
                ))
            };
            if let Some(found) = step(&other, has) {
                break found;
            }
        };
        assert!(found == am::true_);
        assert!(step(&p, || insert_2(&p, [id, list])).is_some_and(|result| result == am::true_));
    }

    #[test]
    fn a_table_that_goes_takes_its_insertion_along() {
        let p = Process::new(233);
        let reference = table(&p);
        let table = reference.get::<Table>().expect("a table");
        let (id, list) = (p.magic_reference(reference.clone()), objects(&p));
        while table.state().insertion.is_none() {
            assert!(step(&p, || insert_2(&p, [id, list])).is_none());
        }
        drop(registry::delete(table, &mut table.state(), None));
        let refused = insert_2(&p, [id, list]);
        assert!(matches!(refused, Err(Leave::Raise(Raise::ErrorCause(..)))));
        assert!(!p.has_work());
    }
}
