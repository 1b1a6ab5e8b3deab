//! Tables whose keys are in order: `ordered_set`. Keys that compare equal are one key (`1` and `1.0`).
//!
//! - `pattern`: the keys that a pattern may match.
//! - `range`: places in the order, and the objects between two of them.
//! - `routed`: the parts of a tree.

mod pattern;
mod range;
mod routed;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::sync::atomic::{self, AtomicU64};

use crate::hash::internal::mix64;
use crate::heap::{Keyed, Stored};
use crate::term::Term;
use crate::term::compare::{cmp, eq_exact};

use super::{Size, update};
use pattern::partly;
use range::{Position, Range};
use routed::{Base, Part, Routed, search};

/// A table in the order of its keys.
///
/// As ERTS's contention adapting tree, it is made of base nodes, one beside the other in the order of keys, and of
/// routes that say where each but the first begins. It has one base node until the program asks it to split: changes
/// hold the whole table's lock, so that no contention asks for it. A base node is a B+-tree of three levels: a place is
/// found in few lines of memory, and the object behind another one is mostly beside it.
pub(crate) struct Tree {
    key: usize,
    bases: Routed<Base>,
    /// Whether changes split the base node they are made in, or join it to the next one.
    adapt: Adapt,
    /// Where a traversal by keys found its last object: the next step begins there, if that still has the key.
    last_step: AtomicU64,
    objects: usize,
    node_bytes: usize,
    /// How many bytes an object takes.
    size: Size,
}

/// What changes do to the base nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Adapt {
    Not,
    Split,
    /// At random, from this state.
    Random(u64),
}

/// Words of the stack that traversals of an ordered set without fine-grained locks use.
const STACK_WORDS: usize = 90;
/// Words a node takes beside its tuple.
const NODE_WORDS: usize = 5;
/// Base nodes that forced splits may make.
const MAX_BASES: usize = 1024;

impl Tree {
    pub(super) fn new(keypos: usize, size: Size) -> Tree {
        Tree {
            key: keypos - 1,
            bases: Routed::default(),
            adapt: Adapt::Not,
            last_step: AtomicU64::new(0),
            objects: 0,
            node_bytes: 0,
            size,
        }
    }

    /// Index of the key in an object, from 0.
    pub(super) fn key_index(&self) -> usize {
        self.key
    }

    pub(super) fn len(&self) -> usize {
        self.objects
    }

    /// Bytes it takes, as ERTS counts them, beside those of the table itself.
    pub(super) fn bytes(&self, fine_locks: bool) -> usize {
        let stack = if fine_locks { 0 } else { STACK_WORDS * 8 };
        stack + self.node_bytes
    }

    /// Routes, base nodes, and how deep a balanced tree of such routes is.
    pub(crate) fn splits(&self) -> (usize, usize, usize) {
        let bases = self.bases.len();
        let depth = bases.next_power_of_two().trailing_zeros();
        (bases - 1, bases, depth as usize)
    }

    /// Whether every change is to split the base node it is made in.
    pub(super) fn force_split(&mut self, yes: bool) {
        self.adapt = if yes { Adapt::Split } else { Adapt::Not };
    }

    /// Whether every change is to split the base node it is made in or to join it to the next one.
    pub(super) fn random_split_join(&mut self, yes: bool) {
        self.adapt = if yes { Adapt::Random(1) } else { Adapt::Not };
    }

    /// Splits or joins the base node of a change, where that was asked for.
    #[cold]
    fn adapt(&mut self, base: usize) {
        match &mut self.adapt {
            Adapt::Not => {}
            Adapt::Split => self.split_base(base),
            Adapt::Random(state) => {
                *state = mix64(*state);
                match *state % 8 {
                    0 => self.split_base(base),
                    1 if base + 1 < self.bases.len() => self.bases.join(base),
                    _ => {}
                }
            }
        }
    }

    /// Splits a base node in the middle.
    fn split_base(&mut self, base: usize) {
        if self.bases.len() < MAX_BASES
            && let Some(right) = self.bases.part_mut(base).halve()
        {
            self.bases.put_behind(base, right);
        }
    }

    /// Where the object with `key` is, or where it would be.
    #[inline]
    fn find(&self, key: Term<'_>) -> Result<Position, Position> {
        let base = self.bases.part_of(key);
        let branches = &self.bases.parts()[base];
        let branch = branches.part_of(key);
        let leaves = &branches.parts()[branch];
        let leaf = leaves.part_of(key);
        let objects = &leaves.parts()[leaf].0;
        let found = search(objects, key);
        let at = |index| Position {
            base,
            branch,
            leaf,
            index,
        };
        found.map(at).map_err(at)
    }

    /// The object at a place where there is one.
    #[inline]
    fn keyed_mut(&mut self, at: Position) -> &mut Keyed {
        let leaf = self.bases.part_mut(at.base).leaf_mut(at);
        &mut leaf.0[at.index]
    }

    #[inline]
    pub(super) fn get(&self, key: Term<'_>) -> Option<&Stored> {
        let at = self.find(key).ok()?;
        self.keyed(at).map(Keyed::object)
    }

    fn node_size(&self, object: &Stored) -> usize {
        (self.size)(object, self.key) + NODE_WORDS * 8
    }

    pub(super) fn insert(&mut self, object: Stored) {
        let key = self.key;
        self.node_bytes += self.node_size(&object);
        let object = Keyed::new(object, key);
        let found = self.find(object.key());
        let (Ok(at) | Err(at)) = found;
        if found.is_ok() {
            let old = std::mem::replace(self.keyed_mut(at), object);
            self.node_bytes -= self.node_size(old.object());
        } else {
            self.bases.part_mut(at.base).insert(at, object);
            self.objects += 1;
        }
        if self.adapt != Adapt::Not {
            self.adapt(at.base);
        }
    }

    /// Has `change` change the object with `key`, which stays one with that key; what that returns.
    #[inline]
    pub(super) fn update<R>(
        &mut self,
        key: Term<'_>,
        change: impl FnOnce(&mut Stored) -> R,
    ) -> Option<R> {
        let at = self.find(key).ok()?;
        let (size, key, mut bytes) = (self.size, self.key, self.node_bytes);
        let result = update(self.keyed_mut(at), key, change, (size, &mut bytes));
        self.node_bytes = bytes;
        Some(result)
    }

    pub(super) fn remove(&mut self, key: Term<'_>) {
        let found = self.find(key);
        if let Ok(at) = found {
            let old = self.bases.part_mut(at.base).remove(at);
            self.node_bytes -= self.node_size(old.object());
            self.objects -= 1;
        }
        if self.adapt != Adapt::Not {
            let (Ok(at) | Err(at)) = found;
            self.adapt(at.base);
        }
    }

    pub(super) fn remove_object(&mut self, object: Term<'_>, key: Term<'_>) {
        if self
            .get(key)
            .is_some_and(|other| eq_exact(other.term(), object))
        {
            self.remove(key);
        }
    }

    /// A table like this one without objects.
    pub(super) fn new_empty(&self) -> Tree {
        Tree {
            adapt: self.adapt,
            ..Tree::new(self.key + 1, self.size)
        }
    }

    /// Frees as many objects as `reds` pay for, of a tree that nobody reads any more; what is left of them, less than none
    /// where it is not done.
    pub(super) fn free_some(&mut self, mut reds: i64) -> i64 {
        while let Some(base) = self.bases.last_mut() {
            let Some(branch) = base.last_mut() else {
                self.bases.pop();
                continue;
            };
            let Some(leaf) = branch.last_mut() else {
                base.pop();
                continue;
            };
            if leaf.0.pop().is_none() {
                branch.pop();
                continue;
            }
            if let Some(ahead) = leaf.0.len().checked_sub(range::AHEAD) {
                leaf.0[ahead].object().fetch();
            }
            reds -= 1;
            if reds < 0 {
                return reds;
            }
        }
        reds
    }

    pub(super) fn iter(&self) -> Range<'_> {
        self.between(Position::START, Position::END)
    }

    pub(super) fn first(&self) -> Option<&Stored> {
        self.step_to(self.at_or_behind(Position::START))
    }

    pub(super) fn last(&self) -> Option<&Stored> {
        self.step_to(self.before_place(Position::END))
    }

    /// The object behind `key`.
    pub(super) fn after(&self, key: Term<'_>) -> Option<&Stored> {
        let at = self.stepped_from(key).ok_or(());
        let from = match at.or_else(|()| self.find(key)) {
            Ok(at) => at.behind(),
            Err(at) => at,
        };
        self.step_to(self.at_or_behind(from))
    }

    /// The object before `key`.
    pub(super) fn before(&self, key: Term<'_>) -> Option<&Stored> {
        let at = self.stepped_from(key).ok_or(());
        let (Ok(from) | Err(from)) = at.or_else(|()| self.find(key));
        self.step_to(self.before_place(from))
    }

    /// A traversal by keys has found an object, or none any more.
    #[inline]
    fn step_to<'a>(&self, found: Option<(Position, &'a Stored)>) -> Option<&'a Stored> {
        let (at, object) = found?;
        self.last_step.store(at.packed(), atomic::Ordering::Relaxed);
        Some(object)
    }

    /// The place of the object with `key`, if a traversal by keys has found that last.
    #[inline]
    fn stepped_from(&self, key: Term<'_>) -> Option<Position> {
        let at = Position::unpacked(self.last_step.load(atomic::Ordering::Relaxed));
        let object = self.keyed(at)?;
        cmp(object.key(), key).is_eq().then_some(at)
    }

    /// The objects that a traversal has yet to visit: keys that `pattern` may match (all without
    /// one), behind `last` (before it, when going `back`).
    pub(super) fn rest(
        &self,
        pattern: Option<Term<'_>>,
        last: Option<Term<'_>>,
        back: bool,
    ) -> Range<'_> {
        let (mut from, mut to) = (Position::START, Position::END);
        if let Some(pattern) = pattern {
            from = self.place(|key| partly(pattern, key) == Some(Ordering::Greater));
            to = self.place(|key| partly(pattern, key) != Some(Ordering::Less));
        }
        match last {
            Some(last) if back => to = to.min(self.place(|key| cmp(key, last).is_lt())),
            Some(last) => from = from.max(self.place(|key| cmp(key, last).is_le())),
            None => {}
        }
        self.between(from, to)
    }
}
