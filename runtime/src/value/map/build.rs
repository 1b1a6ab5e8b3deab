//! Builds tries from many pairs at once.

mod parts;

pub(crate) use parts::{Pair, TrieParts};

use smallvec::SmallVec;

use super::{MAX_LEVEL, trie_order_of};
use crate::heap::Heap;
use crate::term::Term;
use crate::term::compare::{cmp_exact, eq_exact};

/// A leaf, and its place among the others.
#[derive(Clone, Copy)]
struct Placed<'h> {
    order: u64,
    key: Term<'h>,
    leaf: Term<'h>,
}

/// The trie of `pairs` (at least one), of any size; of equal keys the last one counts.
pub(super) fn trie<'h>(heap: &'h Heap, pairs: &[(Term<'h>, Term<'h>)]) -> Term<'h> {
    let placed = |&(key, value): &(Term<'h>, Term<'h>)| (trie_order_of(key), key, value);
    placed_trie(heap, pairs.iter().map(placed))
}

/// As [`trie`], of pairs behind the places of their keys.
pub(super) fn placed_trie<'h>(
    heap: &'h Heap,
    pairs: impl Iterator<Item = (u64, Term<'h>, Term<'h>)>,
) -> Term<'h> {
    let leaves = sorted_leaves(heap, pairs);
    let (bitmap, children) = children(heap, &leaves, 0);
    heap.trie_node(Some(leaves.len()), bitmap, &children)
}

/// The leaves of `pairs` by their places; of equal keys the last one is kept.
fn sorted_leaves<'h>(
    heap: &'h Heap,
    pairs: impl Iterator<Item = (u64, Term<'h>, Term<'h>)>,
) -> Vec<Placed<'h>> {
    let mut leaves: Vec<Placed<'h>> = pairs
        .map(|(order, key, value)| Placed {
            order,
            key,
            leaf: heap.cons(key, value),
        })
        .collect();
    // Stable, so that of equal keys the last one stands last.
    leaves.sort_by_key(|placed| placed.order);
    if leaves.windows(2).any(|w| w[0].order == w[1].order) {
        leaves = settle_collisions(leaves);
    }
    leaves
}

/// Sorts leaves of equal hashes by their keys, and keeps the last one of each key.
fn settle_collisions<'h>(leaves: Vec<Placed<'h>>) -> Vec<Placed<'h>> {
    let mut kept: Vec<Placed<'h>> = Vec::with_capacity(leaves.len());
    for run in leaves.chunk_by(|a, b| a.order == b.order) {
        let mut run: SmallVec<[Placed<'h>; 4]> = run.iter().copied().collect();
        run.sort_by(|a, b| cmp_exact(a.key, b.key));
        for placed in run {
            match kept.last_mut() {
                Some(last) if last.order == placed.order && eq_exact(last.key, placed.key) => {
                    *last = placed;
                }
                _ => kept.push(placed),
            }
        }
    }
    kept
}

/// Bitmap and children of the node at `level` that holds `leaves`.
fn children<'h>(
    heap: &'h Heap,
    leaves: &[Placed<'h>],
    level: u32,
) -> (u32, SmallVec<[Term<'h>; 16]>) {
    let slot = |placed: &Placed<'h>| (placed.order >> (60 - 4 * level)) & 0xf;
    let mut bitmap = 0;
    let mut nodes = SmallVec::new();
    for below in leaves.chunk_by(|a, b| slot(a) == slot(b)) {
        bitmap |= 1 << slot(&below[0]);
        nodes.push(node(heap, below, level + 1));
    }
    (bitmap, nodes)
}

fn node<'h>(heap: &'h Heap, leaves: &[Placed<'h>], level: u32) -> Term<'h> {
    match leaves {
        [only] => only.leaf,
        _ if level == MAX_LEVEL => {
            heap.tuple(&leaves.iter().map(|placed| placed.leaf).collect::<Vec<_>>())
        }
        _ => {
            let (bitmap, children) = children(heap, leaves, level);
            heap.trie_node(None, bitmap, &children)
        }
    }
}
