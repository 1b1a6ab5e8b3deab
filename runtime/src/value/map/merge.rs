//! Two tries into one: subtrees that only one of them has are shared.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::{Leaves, MAX_LEVEL, children_of, map_key_hash};
use crate::heap::Heap;
use crate::term::compare::{cmp_exact, eq_exact};
use crate::term::{Map, RawTerm, Term};

/// What a node is made of: nothing that differs, only `a`'s, only `b`'s, or both.
const ONLY_A: u8 = 1;
const ONLY_B: u8 = 2;
const BOTH: u8 = ONLY_A | ONLY_B;

type Children = SmallVec<[RawTerm; 16]>;

/// A node in the making, of two at the same place.
struct Frame {
    /// The two nodes; for what turns out to be one of them.
    nodes: [RawTerm; 2],
    bitmaps: [u32; 2],
    /// Their children; those below `slot` are merged.
    children: [Children; 2],
    slot: u32,
    merged: Children,
    mix: u8,
}

/// A merging of two tries, which may pause.
pub struct Merge {
    /// Nodes in the making, from the root on.
    frames: Vec<Frame>,
    /// Keys of both, less those found in both so far.
    size: usize,
    visited: usize,
}

/// Keys at and below a node.
fn count(node: Term<'_>) -> usize {
    match node.as_cons() {
        Some(_) => 1,
        None => Leaves::below(node).count(),
    }
}

/// A node at `level` as bitmap and children, a leaf as if it were a node.
fn parts(node: Term<'_>, level: u32) -> (u32, Children) {
    let raw = |children: &[Term<'_>]| children.iter().map(|child| child.raw()).collect();
    if let Some(leaf) = node.as_cons() {
        let slot = (map_key_hash(leaf.head()) >> (4 * level)) & 0xf;
        return (1 << slot, raw(&[node]));
    }
    let inner = match Map::inner(node) {
        Some(inner) => inner,
        None => node.as_map().and_then(Map::root).expect("no collision"),
    };
    (inner.0, raw(inner.1))
}

impl Frame {
    fn new(a: Term<'_>, b: Term<'_>, level: u32) -> Frame {
        let ((bits_a, children_a), (bits_b, children_b)) = (parts(a, level), parts(b, level));
        Frame {
            nodes: [a.raw(), b.raw()],
            bitmaps: [bits_a, bits_b],
            children: [children_a, children_b],
            slot: 0,
            merged: SmallVec::new(),
            mix: 0,
        }
    }

    /// The child of either node at `slot`.
    fn child_at(&self, which: usize, slot: u32) -> Option<RawTerm> {
        let bit = 1u32 << slot;
        let index = (self.bitmaps[which] & (bit - 1)).count_ones();
        (self.bitmaps[which] & bit != 0).then(|| self.children[which][index as usize])
    }

    fn push(&mut self, child: RawTerm, from: u8) {
        self.merged.push(child);
        self.mix |= from;
    }
}

impl Merge {
    /// Begins with two tries.
    pub(super) fn new(a: Map<'_>, b: Map<'_>) -> Merge {
        Merge {
            frames: vec![Frame::new(a.term(), b.term(), 0)],
            size: a.len() + b.len(),
            visited: 1,
        }
    }

    /// Shows all slots that hold terms.
    pub fn visit(&mut self, visit: &mut dyn FnMut(&mut [RawTerm])) {
        for frame in &mut self.frames {
            visit(&mut frame.nodes);
            frame
                .children
                .iter_mut()
                .for_each(|children| visit(children));
            visit(&mut frame.merged);
        }
    }

    /// Nodes visited so far, for reductions.
    #[must_use]
    pub fn visited(&self) -> usize {
        self.visited
    }

    /// Goes on until more than so many nodes are visited in all; the map when it is whole.
    pub fn run<'h>(&mut self, heap: &'h Heap, visited: usize) -> Option<Term<'h>> {
        while self.visited <= visited {
            if let Some(map) = self.step(heap) {
                return Some(map);
            }
        }
        None
    }

    /// Merges what is at the next slot of the innermost node; the map when that was the last one.
    fn step<'h>(&mut self, heap: &'h Heap) -> Option<Term<'h>> {
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
            (Some(a), Some(b)) => self.both(heap, heap.own(a), heap.own(b), level + 1),
            (Some(a), None) => frame.push(a, ONLY_A),
            (None, Some(b)) => frame.push(b, ONLY_B),
            (None, None) => unreachable!("a slot of either"),
        }
        None
    }

    /// Merges two nodes at `level`, or leaves that to a frame of their own.
    fn both<'h>(&mut self, heap: &'h Heap, a: Term<'h>, b: Term<'h>, level: u32) {
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
        frame.push(node.raw(), from);
    }

    /// The innermost node is whole: it goes to the one above it, or is the map.
    fn leave<'h>(&mut self, heap: &'h Heap, bitmap: u32) -> Option<Term<'h>> {
        let frame = self.frames.pop().expect("not whole yet");
        let size = self.frames.is_empty().then_some(self.size);
        let node = match frame.mix {
            BOTH => {
                let merged = frame.merged.iter().map(|raw| heap.own(*raw));
                let merged: SmallVec<[_; 16]> = merged.collect();
                heap.trie_node(size, bitmap, &merged)
            }
            ONLY_B => heap.own(frame.nodes[1]),
            _ => heap.own(frame.nodes[0]),
        };
        let Some(above) = self.frames.last_mut() else {
            return Some(node);
        };
        above.push(node.raw(), frame.mix);
        None
    }

    /// A tuple of the leaves of two collisions, or leaves, by key.
    fn collision<'h>(&mut self, heap: &'h Heap, a: Term<'h>, b: Term<'h>) -> Term<'h> {
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
