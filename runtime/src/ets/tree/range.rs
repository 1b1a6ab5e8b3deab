//! Places in the order of a tree's objects, and what is between two of them.

use super::routed::{Branch, Leaf};
use super::{Keyed, MAX_BASES, Part, Stored, Term, Tree};

/// A place before an object, or behind all objects of a leaf; the place before the first one of the next leaf is the
/// same, but comes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) base: usize,
    pub(super) branch: usize,
    pub(super) leaf: usize,
    pub(super) index: usize,
}

/// Bits of a position in one number: of the index in a leaf, of the leaf, of the base node. The others are the branch's.
const INDEX_BITS: u32 = 5;
const LEAF_BITS: u32 = 8;
const BASE_BITS: u32 = 10;

const _: () = assert!(Leaf::MOST <= 1 << INDEX_BITS);
const _: () = assert!(Branch::MOST <= 1 << LEAF_BITS);
const _: () = assert!(MAX_BASES <= 1 << BASE_BITS);

/// How many objects before it is visited an object is fetched.
pub(super) const AHEAD: usize = 4;

impl Position {
    pub(super) const START: Position = Position {
        base: 0,
        branch: 0,
        leaf: 0,
        index: 0,
    };
    /// Behind all objects of any tree.
    pub(super) const END: Position = Position {
        base: usize::MAX,
        ..Position::START
    };

    /// The place behind the object that is here.
    #[inline]
    pub(super) fn behind(self) -> Position {
        Position {
            index: self.index + 1,
            ..self
        }
    }

    /// As one number.
    #[inline]
    pub(super) fn packed(self) -> u64 {
        let Position {
            base,
            branch,
            leaf,
            index,
        } = self;
        let parts = ((branch << BASE_BITS | base) << LEAF_BITS | leaf) << INDEX_BITS;
        (parts | index) as u64
    }

    /// What that number says.
    #[inline]
    pub(super) fn unpacked(packed: u64) -> Position {
        let mut rest = packed as usize;
        let mut part = |bits: u32| {
            let part = rest & ((1 << bits) - 1);
            rest >>= bits;
            part
        };
        let (index, leaf, base) = (part(INDEX_BITS), part(LEAF_BITS), part(BASE_BITS));
        Position {
            base,
            branch: rest,
            leaf,
            index,
        }
    }
}

/// Objects between two places, from either end.
pub(in crate::ets) struct Range<'a> {
    tree: &'a Tree,
    from: Position,
    to: Position,
}

impl<'a> Iterator for Range<'a> {
    type Item = &'a Stored;

    #[inline]
    fn next(&mut self) -> Option<&'a Stored> {
        let (at, object) = self.tree.at_or_behind(self.from)?;
        self.from = at.behind();
        (at < self.to).then_some(object)
    }
}

impl DoubleEndedIterator for Range<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let (at, object) = self.tree.before_place(self.to)?;
        self.to = at;
        (at >= self.from).then_some(object)
    }
}

impl Tree {
    pub(super) fn between(&self, from: Position, to: Position) -> Range<'_> {
        Range {
            tree: self,
            from,
            to,
        }
    }

    /// The object right behind a place, if that is not the end of a leaf.
    #[inline]
    pub(super) fn keyed(&self, at: Position) -> Option<&Keyed> {
        let branch = self.bases.parts().get(at.base)?.parts().get(at.branch)?;
        branch.parts().get(at.leaf)?.0.get(at.index)
    }

    /// The first object behind a place, and where that is.
    #[inline]
    pub(super) fn at_or_behind(&self, mut at: Position) -> Option<(Position, &Stored)> {
        loop {
            let base = self.bases.parts().get(at.base)?;
            let Some(branch) = base.parts().get(at.branch) else {
                at = Position {
                    base: at.base + 1,
                    ..Position::START
                };
                continue;
            };
            let Some(leaf) = branch.parts().get(at.leaf) else {
                (at.branch, at.leaf, at.index) = (at.branch + 1, 0, 0);
                continue;
            };
            if let Some(object) = leaf.0.get(at.index) {
                if let Some(ahead) = leaf.0.get(at.index + AHEAD) {
                    ahead.object().fetch();
                }
                return Some((at, object.object()));
            }
            (at.leaf, at.index) = (at.leaf + 1, 0);
        }
    }

    /// The last object before a place, and where that is.
    #[inline]
    pub(super) fn before_place(&self, mut at: Position) -> Option<(Position, &Stored)> {
        let bases = self.bases.parts();
        loop {
            if at.index == 0 {
                if at.leaf == 0 {
                    if at.branch == 0 {
                        at.base = at.base.min(bases.len()).checked_sub(1)?;
                        at.branch = bases[at.base].len();
                    }
                    at.branch -= 1;
                    at.leaf = bases[at.base].parts()[at.branch].len();
                }
                at.leaf -= 1;
                at.index = bases[at.base].parts()[at.branch].parts()[at.leaf].len();
                continue;
            }
            at.index -= 1;
            let Leaf(objects) = &bases[at.base].parts()[at.branch].parts()[at.leaf];
            let object = objects.get(at.index)?;
            if let Some(ahead) = at.index.checked_sub(AHEAD) {
                objects[ahead].object().fetch();
            }
            return Some((at, object.object()));
        }
    }

    /// The place before the first object that is not before a place: `is_before` says of keys whether they are.
    pub(super) fn place(&self, is_before: impl Fn(Term<'_>) -> bool) -> Position {
        let base = self.bases.part_at(&is_before);
        let branches = &self.bases.parts()[base];
        let branch = branches.part_at(&is_before);
        let leaves = &branches.parts()[branch];
        let leaf = leaves.part_at(&is_before);
        let Leaf(objects) = &leaves.parts()[leaf];
        let index = objects.partition_point(|object| is_before(object.key()));
        Position {
            base,
            branch,
            leaf,
            index,
        }
    }
}
