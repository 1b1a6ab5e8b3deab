//! A trie of so many pairs that it is made a part at a time: a part is a node two levels below the root.

use smallvec::SmallVec;

use super::{node, sorted_leaves};
use crate::heap::Heap;
use crate::term::{RawTerm, Term};

/// Children of a node, at most.
const CHILDREN: usize = 16;
/// Nodes two levels below the root, at most.
const PARTS: usize = CHILDREN * CHILDREN;
/// The level of a part.
const LEVEL: u32 = 2;

/// A pair: the place of its key, key and value.
type Pair = (u64, [RawTerm; 2]);

/// Pairs by the parts they belong to, of which the first ones are made.
pub struct TrieParts {
    pairs: Vec<Vec<Pair>>,
    /// The parts that are made; none stands for no pair.
    made: Vec<RawTerm>,
    /// Leaves in each of them.
    leaves: Vec<usize>,
}

impl Default for TrieParts {
    fn default() -> Self {
        TrieParts {
            pairs: vec![Vec::new(); PARTS],
            made: Vec::new(),
            leaves: Vec::new(),
        }
    }
}

impl TrieParts {
    /// Shows all slots that hold terms.
    pub fn visit(&mut self, visit: &mut dyn FnMut(&mut [RawTerm])) {
        visit(&mut self.made);
        for (_, pair) in self.pairs.iter_mut().flatten() {
            visit(pair);
        }
    }

    /// Puts pairs to their parts, behind those that are there.
    pub fn add(&mut self, pairs: impl IntoIterator<Item = Pair>) {
        for pair in pairs {
            let part = pair.0 >> (u64::BITS - PARTS.ilog2());
            self.pairs[part as usize].push(pair);
        }
    }

    /// Makes the next part; how many pairs it was made of. `None` when all are made.
    pub fn make_next(&mut self, heap: &Heap) -> Option<usize> {
        let pairs = std::mem::take(self.pairs.get_mut(self.made.len())?);
        let own = |&(order, [key, value]): &Pair| (order, heap.own(key), heap.own(value));
        let leaves = sorted_leaves(heap, pairs.iter().map(own));
        let part = match leaves.is_empty() {
            true => RawTerm::NONE,
            false => node(heap, &leaves, LEVEL).raw(),
        };
        self.made.push(part);
        self.leaves.push(leaves.len());
        Some(pairs.len())
    }

    /// The trie of all parts.
    #[must_use]
    pub(in super::super) fn join<'h>(&self, heap: &'h Heap) -> Term<'h> {
        let below = self.made.chunks(CHILDREN).zip(self.leaves.chunks(CHILDREN));
        let nodes = below.map(|(parts, leaves)| {
            let (bitmap, children) = present(heap, parts.iter().copied());
            match leaves.iter().sum() {
                0usize => RawTerm::NONE,
                1 => children[0].raw(),
                _ => heap.trie_node(None, bitmap, &children).raw(),
            }
        });
        let (bitmap, children) = present(heap, nodes);
        heap.trie_node(Some(self.leaves.iter().sum()), bitmap, &children)
    }
}

/// The nodes that there are, and the bitmap of their slots.
fn present(
    heap: &Heap,
    nodes: impl Iterator<Item = RawTerm>,
) -> (u32, SmallVec<[Term<'_>; CHILDREN]>) {
    let mut bitmap = 0;
    let nodes = nodes.enumerate().filter(|(_, node)| *node != RawTerm::NONE);
    let children = nodes
        .map(|(slot, node)| {
            bitmap |= 1 << slot;
            heap.own(node)
        })
        .collect();
    (bitmap, children)
}
