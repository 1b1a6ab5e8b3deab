//! Builds a trie of very many pairs a part at a time. A part is a node two levels below the root.

use smallvec::SmallVec;

use super::{node, sorted_leaves};
use crate::heap::{Heap, keeps};
use crate::term::Term;

/// Children of a node, at most.
const CHILDREN: usize = 16;
/// Nodes two levels below the root, at most.
const PARTS: usize = CHILDREN * CHILDREN;
/// The level of a part.
const LEVEL: u32 = 2;

/// A pair: the place of its key, key and value.
pub(crate) type Pair<'h> = (u64, [Term<'h>; 2]);

/// Pairs by the parts they belong to, of which the first ones are made.
pub(crate) struct TrieParts<'h> {
    pairs: Vec<Vec<Pair<'h>>>,
    /// The parts that are made; none stands for no pair.
    made: Vec<Option<Term<'h>>>,
    /// Leaves in each of them.
    leaves: Vec<usize>,
}

keeps! { struct TrieParts { pairs, made; leaves } }

impl Default for TrieParts<'_> {
    fn default() -> Self {
        TrieParts {
            pairs: vec![Vec::new(); PARTS],
            made: Vec::new(),
            leaves: Vec::new(),
        }
    }
}

impl<'h> TrieParts<'h> {
    /// Puts pairs to their parts, behind those that are there.
    pub(crate) fn add(&mut self, pairs: impl IntoIterator<Item = Pair<'h>>) {
        for pair in pairs {
            let part = pair.0 >> (u64::BITS - PARTS.ilog2());
            self.pairs[part as usize].push(pair);
        }
    }

    /// Makes the next part; how many pairs it was made of. `None` when all are made.
    pub(crate) fn make_next(&mut self, heap: &'h Heap) -> Option<usize> {
        let pairs = std::mem::take(self.pairs.get_mut(self.made.len())?);
        let placed = |&(order, [key, value]): &Pair<'h>| (order, key, value);
        let leaves = sorted_leaves(heap, pairs.iter().map(placed));
        let part = (!leaves.is_empty()).then(|| node(heap, &leaves, LEVEL));
        self.made.push(part);
        self.leaves.push(leaves.len());
        Some(pairs.len())
    }

    /// The trie of all parts.
    #[must_use]
    pub(in super::super) fn join(&self, heap: &'h Heap) -> Term<'h> {
        let below = self.made.chunks(CHILDREN).zip(self.leaves.chunks(CHILDREN));
        let nodes = below.map(|(parts, leaves)| {
            let (bitmap, children) = present(parts.iter().copied());
            match leaves.iter().sum() {
                0usize => None,
                1 => Some(children[0]),
                _ => Some(heap.trie_node(None, bitmap, &children)),
            }
        });
        let (bitmap, children) = present(nodes);
        heap.trie_node(Some(self.leaves.iter().sum()), bitmap, &children)
    }
}

/// The nodes that there are, and the bitmap of their slots.
fn present<'h>(
    nodes: impl Iterator<Item = Option<Term<'h>>>,
) -> (u32, SmallVec<[Term<'h>; CHILDREN]>) {
    let mut bitmap = 0;
    let nodes = nodes.enumerate();
    let children = nodes
        .filter_map(|(slot, node)| {
            bitmap |= u32::from(node.is_some()) << slot;
            node
        })
        .collect();
    (bitmap, children)
}
