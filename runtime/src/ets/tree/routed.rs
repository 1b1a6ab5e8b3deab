//! What a tree is made of: parts, one beside the other in the order of keys, each with a bounded number of parts of its
//! own.

use std::cmp::Ordering;

use super::range::Position;
use crate::heap::{Keyed, Stored};
use crate::term::Term;
use crate::term::compare::cmp;

/// A part of a tree that can be put behind another one.
pub(super) trait Part {
    /// Parts, or objects, that it has at most; a base node has as many branches as it needs.
    const MOST: usize;

    /// Parts, or objects, that it has.
    fn len(&self) -> usize;

    /// Puts all of `right` behind its own, which begins at `route`.
    fn append(&mut self, route: Keyed, right: Self);

    /// Takes out what is at `from` and behind it.
    fn split_off(&mut self, from: usize) -> (Keyed, Self);
}

/// Objects in the order of their keys.
#[derive(Default)]
pub(super) struct Leaf(pub(super) Vec<Keyed>);

/// Parts, at least one, and the routes that say where each but the first begins.
pub(super) struct Routed<T> {
    /// A key that no object of part `i` has or is behind, and none of part `i + 1` is before: a tuple of that key.
    routes: Vec<Keyed>,
    parts: Vec<T>,
}

/// What begins at `key`.
fn route(key: Term<'_>) -> Keyed {
    Keyed::new(Stored::of_elements(&[key]), 0)
}

/// Where `key` is among `all`, which are in the order of their keys, or where it would be.
///
/// Its steps are branches, which the processor foresees where neighbours are looked up one after the other. The search of
/// the standard library selects without branches, so each step waits until the key before it has come from memory.
#[inline]
pub(super) fn search(all: &[Keyed], key: Term<'_>) -> Result<usize, usize> {
    let (mut from, mut to) = (0, all.len());
    while from < to {
        let middle = from.midpoint(to);
        match cmp(all[middle].key(), key) {
            Ordering::Less => from = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => to = middle,
        }
    }
    Err(from)
}

impl Part for Leaf {
    const MOST: usize = 32;

    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    fn append(&mut self, _: Keyed, mut right: Leaf) {
        self.0.append(&mut right.0);
    }

    fn split_off(&mut self, from: usize) -> (Keyed, Leaf) {
        let mut right = Vec::with_capacity(Leaf::MOST);
        right.extend(self.0.drain(from..));
        (route(right[0].key()), Leaf(right))
    }
}

impl<T: Default> Default for Routed<T> {
    fn default() -> Routed<T> {
        Routed {
            routes: Vec::new(),
            parts: vec![T::default()],
        }
    }
}

impl<T> Part for Routed<T> {
    const MOST: usize = 256;

    #[inline]
    fn len(&self) -> usize {
        self.parts.len()
    }

    fn append(&mut self, route: Keyed, mut right: Routed<T>) {
        self.routes.push(route);
        self.routes.append(&mut right.routes);
        self.parts.append(&mut right.parts);
    }

    fn split_off(&mut self, from: usize) -> (Keyed, Routed<T>) {
        let parts = self.parts.split_off(from);
        let routes = self.routes.split_off(from);
        let route = self.routes.pop();
        let route = route.expect("there is a route to each part but the first");
        (route, Routed { routes, parts })
    }
}

impl<T> Routed<T> {
    /// The parts.
    #[inline]
    pub(super) fn parts(&self) -> &[T] {
        &self.parts
    }

    /// The part at `index`.
    #[inline]
    pub(super) fn part_mut(&mut self, index: usize) -> &mut T {
        &mut self.parts[index]
    }

    /// Takes out the last part.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.routes.pop();
        self.parts.pop()
    }

    /// The last part.
    #[inline]
    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        self.parts.last_mut()
    }

    /// The part that has, or would have, the first object that is not before some place: `is_before` says which keys are.
    #[inline]
    pub(super) fn part_at(&self, is_before: impl Fn(Term<'_>) -> bool) -> usize {
        self.routes.partition_point(|route| is_before(route.key()))
    }

    /// The part that has `key`, or would have it.
    #[inline]
    pub(super) fn part_of(&self, key: Term<'_>) -> usize {
        match search(&self.routes, key) {
            Ok(route) => route + 1,
            Err(route) => route,
        }
    }

    /// Puts a part behind the one at `index`.
    pub(super) fn put_behind(&mut self, index: usize, (route, part): (Keyed, T)) {
        self.routes.insert(index, route);
        self.parts.insert(index + 1, part);
    }
}

impl<T: Part> Routed<T> {
    /// Joins the part at `index` with the one behind it.
    pub(super) fn join(&mut self, index: usize) {
        let right = self.parts.remove(index + 1);
        let route = self.routes.remove(index);
        self.parts[index].append(route, right);
    }

    /// Joins the part at `index`, of which something was taken, with one beside it, where there is little left of it and
    /// room for that.
    fn mend(&mut self, index: usize) {
        let left = self.parts[index].len();
        if left >= T::MOST / 4 || self.parts.len() == 1 {
            return;
        }
        let first = index.min(self.parts.len() - 2);
        let together = self.parts[first].len() + self.parts[first + 1].len();
        if left == 0 || together <= T::MOST / 4 * 3 {
            self.join(first);
        }
    }

    /// Makes room in the part at `index` for one more, by a part of its own for the second half.
    fn split(&mut self, index: usize) {
        let right = self.parts[index].split_off(T::MOST / 2);
        self.put_behind(index, right);
    }
}

/// Leaves.
pub(super) type Branch = Routed<Leaf>;
/// What ERTS calls a base node: a tree of its own.
pub(super) type Base = Routed<Branch>;

impl Base {
    #[inline]
    pub(super) fn leaf_mut(&mut self, at: Position) -> &mut Leaf {
        self.parts[at.branch].part_mut(at.leaf)
    }

    /// Puts an object at a place in this base node, where it belongs.
    pub(super) fn insert(&mut self, mut at: Position, object: Keyed) {
        if self.leaf_mut(at).len() == Leaf::MOST {
            if self.parts[at.branch].len() == Branch::MOST {
                self.split(at.branch);
                if at.leaf >= Branch::MOST / 2 {
                    (at.branch, at.leaf) = (at.branch + 1, at.leaf - Branch::MOST / 2);
                }
            }
            let branch = &mut self.parts[at.branch];
            let is_last = at.leaf + 1 == branch.len() && at.index == Leaf::MOST;
            if is_last {
                // Objects that come in order fill their leaves.
                let mut new = Vec::with_capacity(Leaf::MOST);
                let route = route(object.key());
                new.push(object);
                branch.put_behind(at.leaf, (route, Leaf(new)));
                return;
            }
            branch.split(at.leaf);
            if at.index > Leaf::MOST / 2 {
                (at.leaf, at.index) = (at.leaf + 1, at.index - Leaf::MOST / 2);
            }
        }
        self.leaf_mut(at).0.insert(at.index, object);
    }

    /// Takes an object out.
    pub(super) fn remove(&mut self, at: Position) -> Keyed {
        let gone = self.leaf_mut(at).0.remove(at.index);
        self.parts[at.branch].mend(at.leaf);
        self.mend(at.branch);
        gone
    }

    /// Puts an object behind all others.
    fn push(&mut self, object: Keyed) {
        let branch = self.parts.len() - 1;
        let leaf = self.parts[branch].len() - 1;
        let index = self.parts[branch].parts[leaf].len();
        let end = Position {
            branch,
            leaf,
            index,
            ..Position::START
        };
        self.insert(end, object);
    }

    /// Takes the second half of its objects out; `None` where it has one at most.
    pub(super) fn halve(&mut self) -> Option<(Keyed, Base)> {
        let leaves = || self.parts.iter().flat_map(|branch| &branch.parts);
        let half = leaves().map(Leaf::len).sum::<usize>() / 2;
        if half == 0 {
            return None;
        }
        let branches = std::mem::take(self).parts.into_iter();
        let leaves = branches.flat_map(|branch| branch.parts);
        let mut right = Base::default();
        let mut begin = None;
        for (i, object) in leaves.flat_map(|leaf| leaf.0).enumerate() {
            if i < half {
                self.push(object);
                continue;
            }
            begin.get_or_insert_with(|| route(object.key()));
            right.push(object);
        }
        begin.map(|begin| (begin, right))
    }
}
