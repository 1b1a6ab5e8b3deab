//! Two tries into one: subtrees that only one of them has are shared.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::{Leaves, MAX_LEVEL, children_of, map_key_hash};
use crate::heap::Heap;
use crate::term::compare::{cmp_exact, eq_exact};
use crate::term::{Map, Term};

/// What a node is made of: nothing that differs, only `a`'s, only `b`'s, or both.
const ONLY_A: u8 = 1;
const ONLY_B: u8 = 2;
const BOTH: u8 = ONLY_A | ONLY_B;

struct Merge<'h> {
    heap: &'h Heap,
    /// Keys of both, less those found in both so far.
    size: usize,
    visited: usize,
}

/// Bitmap and children of a node, of a leaf as if it were a node.
type Parts<'h> = (u32, SmallVec<[Term<'h>; 16]>);

pub(super) fn tries<'h>(heap: &'h Heap, a: Map<'h>, b: Map<'h>) -> (Term<'h>, usize) {
    let mut merge = Merge {
        heap,
        size: a.len() + b.len(),
        visited: 0,
    };
    let parts = |map: Map<'h>| {
        let (bitmap, children) = map.root().expect("a trie has a root");
        (bitmap, SmallVec::from_slice(children))
    };
    let (bitmap, children, mix) = merge.children(parts(a), parts(b), 0);
    let merged = match mix {
        BOTH => heap.trie_node(Some(merge.size), bitmap, &children),
        ONLY_B => b.term(),
        _ => a.term(),
    };
    (merged, merge.visited)
}

/// Keys at and below a node.
fn count(node: Term<'_>) -> usize {
    match node.as_cons() {
        Some(_) => 1,
        None => Leaves::below(node).count(),
    }
}

/// A node at `level` as bitmap and children.
fn parts(node: Term<'_>, level: u32) -> Parts<'_> {
    if let Some(leaf) = node.as_cons() {
        let slot = (map_key_hash(leaf.head()) >> (4 * level)) & 0xf;
        return (1 << slot, SmallVec::from_slice(&[node]));
    }
    let (bitmap, children) = Map::inner(node).expect("collisions are below the last level only");
    (bitmap, SmallVec::from_slice(children))
}

impl<'h> Merge<'h> {
    fn children(
        &mut self,
        (bits_a, a): Parts<'h>,
        (bits_b, b): Parts<'h>,
        level: u32,
    ) -> (u32, SmallVec<[Term<'h>; 16]>, u8) {
        self.visited += 1;
        let (mut a, mut b) = (a.into_iter(), b.into_iter());
        let mut merged = SmallVec::new();
        let mut mix = 0;
        for bit in (0..16).map(|slot| 1u32 << slot) {
            let in_a = (bits_a & bit != 0).then(|| a.next()).flatten();
            let in_b = (bits_b & bit != 0).then(|| b.next()).flatten();
            let (node, from) = match (in_a, in_b) {
                (None, None) => continue,
                (Some(a), None) => (a, ONLY_A),
                (None, Some(b)) => (b, ONLY_B),
                (Some(a), Some(b)) => {
                    // Coming back from it counts, too.
                    self.visited += 1;
                    self.nodes(a, b, level + 1)
                }
            };
            merged.push(node);
            mix |= from;
        }
        (bits_a | bits_b, merged, mix)
    }

    /// The node at `level` for two at the same place.
    fn nodes(&mut self, a: Term<'h>, b: Term<'h>, level: u32) -> (Term<'h>, u8) {
        if a.same(b) {
            self.size -= count(b);
            return (a, 0);
        }
        if let (Some(leaf_a), Some(leaf_b)) = (a.as_cons(), b.as_cons())
            && eq_exact(leaf_a.head(), leaf_b.head())
        {
            self.size -= 1;
            // Values are taken to differ: comparing them may cost more than it saves.
            return (b, ONLY_B);
        }
        if level == MAX_LEVEL {
            return (self.collision(a, b), BOTH);
        }
        let (bitmap, children, mix) = self.children(parts(a, level), parts(b, level), level);
        let node = match mix {
            BOTH => self.heap.trie_node(None, bitmap, &children),
            ONLY_B => b,
            _ => a,
        };
        (node, mix)
    }

    /// A tuple of the leaves of two collisions, or leaves, by key.
    fn collision(&mut self, a: Term<'h>, b: Term<'h>) -> Term<'h> {
        let leaves = |node: Term<'h>| match node.as_cons() {
            Some(_) => vec![node],
            None => children_of(node).to_vec(),
        };
        let (a, b) = (leaves(a), leaves(b));
        let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
        let mut merged = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let order = match (x.as_cons(), y.as_cons()) {
                (Some(x), Some(y)) => cmp_exact(x.head(), y.head()),
                _ => unreachable!("a collision holds leaves"),
            };
            if order == Ordering::Equal {
                self.size -= 1;
                a.next();
            }
            merged.extend(if order.is_lt() { a.next() } else { b.next() });
        }
        merged.extend(a.chain(b));
        self.heap.tuple(&merged)
    }
}
