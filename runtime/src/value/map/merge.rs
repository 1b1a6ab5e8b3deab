//! Merges two tries into one. Subtrees that only one of them has are shared.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::{Leaves, MAX_LEVEL, children_of, map_key_hash};
use crate::heap::{Heap, keeps};
use crate::term::compare::{cmp_exact, eq_exact};
use crate::term::{Map, Term};

/// What a node is made of: nothing that differs, only `a`'s, only `b`'s, or both.
const ONLY_A: u8 = 1;
const ONLY_B: u8 = 2;
const BOTH: u8 = ONLY_A | ONLY_B;

type Children<'h> = SmallVec<[Term<'h>; 16]>;

/// A node in the making, of two at the same place.
struct Frame<'h> {
    /// The two nodes; for what turns out to be one of them.
    nodes: [Term<'h>; 2],
    bitmaps: [u32; 2],
    /// Their children; those below `slot` are merged.
    children: [Children<'h>; 2],
    slot: u32,
    merged: Children<'h>,
    mix: u8,
}

keeps! { struct Frame { nodes, children, merged; bitmaps, slot, mix } }

/// A merging of two tries, which may pause.
pub(crate) struct Merge<'h> {
    /// Nodes in the making, from the root on.
    frames: Vec<Frame<'h>>,
    /// Keys of both, less those found in both so far.
    size: usize,
    visited: usize,
}

keeps! { struct Merge { frames; size, visited } }

/// Keys at and below a node.
fn count(node: Term<'_>) -> usize {
    match node.as_cons() {
        Some(_) => 1,
        None => Leaves::below(node).count(),
    }
}

/// A node at `level` as bitmap and children, a leaf as if it were a node.
fn parts<'h>(node: Term<'h>, level: u32) -> (u32, Children<'h>) {
    if let Some(leaf) = node.as_cons() {
        let slot = (map_key_hash(leaf.head()) >> (4 * level)) & 0xf;
        return (1 << slot, Children::from_slice(&[node]));
    }
    let inner = match Map::inner(node) {
        Some(inner) => inner,
        None => node.as_map().and_then(Map::root).expect("no collision"),
    };
    (inner.0, Children::from_slice(inner.1))
}

impl<'h> Frame<'h> {
    fn new(a: Term<'h>, b: Term<'h>, level: u32) -> Frame<'h> {
        let ((bits_a, children_a), (bits_b, children_b)) = (parts(a, level), parts(b, level));
        Frame {
            nodes: [a, b],
            bitmaps: [bits_a, bits_b],
            children: [children_a, children_b],
            slot: 0,
            merged: SmallVec::new(),
            mix: 0,
        }
    }

    /// The child of either node at `slot`.
    fn child_at(&self, which: usize, slot: u32) -> Option<Term<'h>> {
        let bit = 1u32 << slot;
        let index = (self.bitmaps[which] & (bit - 1)).count_ones();
        (self.bitmaps[which] & bit != 0).then(|| self.children[which][index as usize])
    }

    fn push(&mut self, child: Term<'h>, from: u8) {
        self.merged.push(child);
        self.mix |= from;
    }
}

impl<'h> Merge<'h> {
    /// Begins with two tries.
    pub(super) fn new(a: Map<'h>, b: Map<'h>) -> Merge<'h> {
        Merge {
            frames: vec![Frame::new(a.term(), b.term(), 0)],
            size: a.len() + b.len(),
            visited: 1,
        }
    }

    /// Nodes visited so far, for reductions.
    #[must_use]
    pub(crate) fn visited(&self) -> usize {
        self.visited
    }

    /// Goes on until more than `visited` nodes are visited in all; the map when it is whole.
    pub(crate) fn run(&mut self, heap: &'h Heap, visited: usize) -> Option<Term<'h>> {
        while self.visited <= visited {
            if let Some(map) = self.step(heap) {
                return Some(map);
            }
        }
        None
    }

    /// Merges what is at the next slot of the innermost node; the map when that was the last one.
    fn step(&mut self, heap: &'h Heap) -> Option<Term<'h>> {
        let level = self.frames.len() as u32 - 1;
        let frame = self.frames.last_mut().expect("not whole yet");
        let bitmap = frame.bitmaps[0] | frame.bitmaps[1];
        let left = bitmap.checked_shr(frame.slot).unwrap_or(0);
        if left == 0 {
            return self.leave(heap, bitmap);
        }
        let slot = frame.slot + left.trailing_zeros();
        frame.slot = slot + 1;
        match (frame.child_at(0, slot), frame.child_at(1, slot)) {
            (Some(a), Some(b)) => self.both(heap, a, b, level + 1),
            (Some(a), None) => frame.push(a, ONLY_A),
            (None, Some(b)) => frame.push(b, ONLY_B),
            (None, None) => unreachable!("a slot of either"),
        }
        None
    }

    /// Merges two nodes at `level`, or leaves that to a frame of their own.
    fn both(&mut self, heap: &'h Heap, a: Term<'h>, b: Term<'h>, level: u32) {
        // Coming back from it counts, too.
        self.visited += 1;
        let (node, from) = if a.same(b) {
            self.size -= count(b);
            (a, 0)
        } else if let (Some(leaf_a), Some(leaf_b)) = (a.as_cons(), b.as_cons())
            && eq_exact(leaf_a.head(), leaf_b.head())
        {
            self.size -= 1;
            // Values are taken to differ: comparing them may cost more than it saves.
            (b, ONLY_B)
        } else if level == MAX_LEVEL {
            (self.collision(heap, a, b), BOTH)
        } else {
            self.visited += 1;
            self.frames.push(Frame::new(a, b, level));
            return;
        };
        let frame = self.frames.last_mut().expect("both are below a node");
        frame.push(node, from);
    }

    /// The innermost node is whole: it goes to the one above it, or is the map.
    fn leave(&mut self, heap: &'h Heap, bitmap: u32) -> Option<Term<'h>> {
        let frame = self.frames.pop().expect("not whole yet");
        let size = self.frames.is_empty().then_some(self.size);
        let node = match frame.mix {
            BOTH => heap.trie_node(size, bitmap, &frame.merged),
            ONLY_B => frame.nodes[1],
            _ => frame.nodes[0],
        };
        let Some(above) = self.frames.last_mut() else {
            return Some(node);
        };
        above.push(node, frame.mix);
        None
    }

    /// A tuple of the leaves of two collisions, or leaves, by key.
    fn collision(&mut self, heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> Term<'h> {
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
        heap.tuple(&merged)
    }
}
