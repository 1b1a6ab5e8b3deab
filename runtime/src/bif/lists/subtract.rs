//! The operator `--`, which works in stages. It first counts both operands, so that an improper one is an error
//! whatever is in them. Then it sorts the elements to take out by their hashes, unless they are few. Then it takes them
//! out.
//!
//! Source of what it costs: `erts_list_subtract()` in `erl_bif_lists.c`, OTP 29.

use crate::hash::HashMap;

use super::super::{BifResult, Raise, badarg};
use super::{CHECKS_PER_RED, COUNTED_PER_RED, Listing};
use crate::heap::keeps;
use crate::process::{Process, work};
use crate::term::hash::map_key_hash;
use crate::term::{Term, compare};

/// Up to this many elements on one side, each element of the other is looked for among them.
const FEW: usize = 16;
/// Elements looked for among many for one reduction.
const SEARCHED_PER_RED: usize = 8;

/// The elements that are still to be taken out of a list.
#[derive(Default)]
struct Removed<'p> {
    /// Each distinct element once; if there are few, each as often as it is to be taken out.
    elements: Vec<Term<'p>>,
    /// How often each of many is to be taken out.
    counts: Vec<usize>,
    /// For each of many the one before of the same hash.
    before: Vec<Option<usize>>,
    /// The last one of each hash.
    last: HashMap<u64, usize>,
}

keeps! { struct Removed { elements; counts, before, last } }

fn eq(a: Term<'_>, b: Term<'_>) -> bool {
    a.same(b) || compare::eq_exact(a, b)
}

impl<'p> Removed<'p> {
    fn is_few(&self) -> bool {
        self.counts.is_empty()
    }

    /// The place of `element` among many, or else its hash.
    fn find(&self, element: Term<'p>) -> Result<usize, u64> {
        let hash = map_key_hash(element);
        let mut next = self.last.get(&hash).copied();
        while let Some(at) = next {
            if eq(self.elements[at], element) {
                return Ok(at);
            }
            next = self.before[at];
        }
        Err(hash)
    }

    /// One more of many.
    fn add(&mut self, element: Term<'p>) {
        match self.find(element) {
            Ok(at) => self.counts[at] += 1,
            Err(hash) => {
                let at = self.elements.len();
                self.elements.push(element);
                self.counts.push(1);
                self.before.push(self.last.insert(hash, at));
            }
        }
    }

    /// Is `element` to be taken out? Then once less from now on.
    fn take(&mut self, element: Term<'p>) -> bool {
        if self.is_few() {
            let elements = &mut self.elements;
            let at = elements.iter().rposition(|other| eq(*other, element));
            return at.map(|at| elements.swap_remove(at)).is_some();
        }
        let Ok(at) = self.find(element) else {
            return false;
        };
        let is_left = self.counts[at] > 0;
        self.counts[at] -= usize::from(is_left);
        is_left
    }

    /// What looking for an element counts.
    fn checks(&self) -> usize {
        if self.is_few() {
            self.elements.len()
        } else {
            1
        }
    }
}

/// The stages of the operator.
#[derive(Clone, Copy)]
enum Stage {
    CountLeft,
    CountRight,
    /// Elements of the right list are taken out of a short left one.
    TakeFromFew,
    /// Elements of the right list are added to what is to be removed.
    Index,
    TakeOut,
}

impl Stage {
    fn per_red(self, removed: &Removed<'_>) -> usize {
        match self {
            Stage::CountLeft | Stage::CountRight => COUNTED_PER_RED,
            Stage::TakeOut if !removed.is_few() => SEARCHED_PER_RED,
            Stage::TakeFromFew | Stage::Index | Stage::TakeOut => CHECKS_PER_RED,
        }
    }
}

/// A subtraction in the making.
struct Subtraction<'p> {
    stage: Stage,
    /// What the stage has still to look at.
    rest: Term<'p>,
    /// Units of work of the stage, and those that are paid for.
    units: usize,
    paid: usize,
    left_len: usize,
    right_len: usize,
    removed: Removed<'p>,
    /// Elements that stay.
    kept: Vec<Term<'p>>,
}

work! { struct Subtraction { rest, removed, kept; stage, units, paid, left_len, right_len } }

impl<'p> Subtraction<'p> {
    fn new(left: Term<'p>) -> Subtraction<'p> {
        Subtraction {
            stage: Stage::CountLeft,
            rest: left,
            units: 0,
            paid: 0,
            left_len: 0,
            right_len: 0,
            removed: Removed::default(),
            kept: Vec::new(),
        }
    }

    fn begin(&mut self, stage: Stage, rest: Term<'p>) {
        (self.stage, self.rest) = (stage, rest);
        (self.units, self.paid) = (0, 0);
    }

    /// Looks at an element; is that all there is to do in this stage?
    fn look_at(&mut self, element: Term<'p>) -> bool {
        match self.stage {
            Stage::CountLeft => self.left_len += 1,
            Stage::CountRight => self.right_len += 1,
            Stage::Index => self.removed.add(element),
            Stage::TakeFromFew => {
                let at = self.kept.iter().position(|other| eq(*other, element));
                at.map(|at| self.kept.remove(at));
                self.units += self.kept.len().max(1);
                return false;
            }
            Stage::TakeOut => {
                if self.removed.take(element) {
                    self.right_len -= 1;
                    // The last one's check is not counted.
                    if self.right_len == 0 {
                        return true;
                    }
                } else {
                    self.kept.push(element);
                }
                self.units += self.removed.checks();
                return false;
            }
        }
        self.units += 1;
        false
    }

    /// Goes on with the stage to its end, or until the reductions left are used up: `None`.
    fn run_stage(&mut self, p: &Process) -> Result<Option<()>, Raise<'static>> {
        let per_red = |this: &Subtraction<'_>| this.stage.per_red(&this.removed);
        let most = self.paid + p.reds_left() * per_red(self);
        let mut rest = self.rest;
        let mut is_over = false;
        while let (Some(cell), false) = (rest.as_cons(), is_over || self.units > most) {
            rest = cell.tail();
            is_over = self.look_at(cell.head());
        }
        self.rest = rest;
        if self.units > most {
            self.paid = most;
            return Ok(None);
        }
        if !is_over && !rest.is_nil() && !matches!(self.stage, Stage::TakeOut) {
            return Err(badarg());
        }
        p.bump_reds(((self.units - self.paid) / per_red(self)) as i64);
        Ok(Some(()))
    }

    /// The stage after this one, with what it looks at; `None` at the end.
    fn next(&mut self, left: Term<'p>, right: Term<'p>) -> Option<()> {
        match self.stage {
            Stage::CountLeft if (1..=FEW).contains(&self.left_len) && !right.is_nil() => {
                self.kept = left.list_iter().flatten().collect();
                self.begin(Stage::TakeFromFew, right);
            }
            Stage::CountLeft => self.begin(Stage::CountRight, right),
            Stage::CountRight if self.left_len == 0 || self.right_len == 0 => {
                self.rest = left;
                return None;
            }
            Stage::CountRight if self.right_len <= FEW => {
                self.removed.elements = right.list_iter().flatten().collect();
                self.begin(Stage::TakeOut, left);
            }
            Stage::CountRight => self.begin(Stage::Index, right),
            Stage::Index => self.begin(Stage::TakeOut, left),
            Stage::TakeFromFew => {
                self.rest = Term::NIL;
                return None;
            }
            Stage::TakeOut => return None,
        }
        Some(())
    }
}

pub(super) fn subtract_2<'p>(p: &'p Process, [left, right]: [Term<'p>; 2]) -> BifResult<'p> {
    if let Some(listing) = p.take_work_if::<Listing>() {
        return listing.run(p);
    }
    let is_list = |t: Term<'p>| t.is_nil() || t.as_cons().is_some();
    if !is_list(left) || !is_list(right) {
        return Err(badarg().into());
    }
    let begun = p.take_work::<Subtraction>();
    let is_first_slice = begun.is_none();
    let mut work = begun.unwrap_or_else(|| Box::new(Subtraction::new(left)));
    loop {
        if work.run_stage(p)?.is_none() {
            if is_first_slice {
                p.trap_state();
            }
            return Err(p.yield_with(*work).into());
        }
        if work.next(left, right).is_none() {
            break;
        }
    }
    let Subtraction { kept, rest, .. } = *work;
    let (left, list) = (kept, rest);
    Listing { left, list }.run(p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::in_small_steps;

    fn numbers<'p>(p: &'p Process, numbers: impl Iterator<Item = i64>) -> Term<'p> {
        let numbers: Vec<_> = numbers.map(|n| p.tuple(&[Term::small(n)])).collect();
        p.list(&numbers)
    }

    fn subtract<'p>(p: &'p Process, lists: Term<'p>) -> BifResult<'p> {
        let lists = lists.as_tuple().expect("both");
        subtract_2(p, [lists.get(0), lists.get(1)])
    }

    /// Takes `right` out of the numbers to 6000, each of which is there once.
    fn check(right: &[i64]) {
        const N: i64 = 6000;
        let mut p = Process::new(233);
        let lists = [numbers(&p, 0..N), numbers(&p, right.iter().copied())];
        let lists = p.root(p.tuple(&lists));
        let is_left = |found: Term<'_>| {
            let numbers = found.list_iter().map(|element| {
                let tuple = element.ok().and_then(Term::as_tuple);
                tuple.and_then(|tuple| tuple.get(0).as_small())
            });
            numbers.eq((0..N).filter(|n| !right.contains(n)).map(Some))
        };
        let turns = in_small_steps(&mut p, &lists, subtract, is_left);
        assert!(turns > 10, "{turns}");
    }

    #[test]
    fn long_lists_are_subtracted_in_many_slices() {
        check(&[3, 1000, 5999, 7000]);
        check(&(500..1500).chain(700..900).collect::<Vec<_>>());
    }
}
