//! Reads maps, which are flat up to 32 keys, and above that a trie by the keys' hashes.
//!
//! Shapes are ERTS's: a flat map shares its tuple of keys with maps made from it by an update; a trie has up to 16
//! children a node, a leaf is a cons cell `[Key|Value]`, and leaves whose hashes are equal in all 64 bits stand in a
//! tuple below the last level, in the order of their keys.
//! Source: `erl_map.c`, OTP 29.

use smallvec::SmallVec;

use super::compare::eq_exact;
use super::hash::map_key_hash;
use super::{Cons, Map, Term, Tuple};

/// Levels of a trie: four bits of a hash each.
pub(crate) const MAX_LEVEL: u32 = 16;

/// Key and value in a trie.
pub type Leaf<'h> = &'h [Term<'h>; 2];

/// A hash such that leaves of a trie stand in the order of this number.
#[must_use]
pub fn trie_order(hash: u64) -> u64 {
    let bytes = hash.swap_bytes();
    let nibbles = 0xf0f0_f0f0_f0f0_f0f0;
    (bytes & nibbles) >> 4 | (bytes & nibbles >> 4) << 4
}

/// [`trie_order`] of a key.
#[must_use]
pub fn trie_order_of(key: Term<'_>) -> u64 {
    trie_order(map_key_hash(key))
}

/// Children of a node below the root: of an inner node, or the leaves of a collision.
pub(crate) fn children_of(node: Term<'_>) -> &[Term<'_>] {
    match Map::inner(node) {
        Some((_, children)) => children,
        None => node.as_tuple().map_or(&[], Tuple::elements),
    }
}

/// Leaves of a trie, in its order.
pub struct Leaves<'h> {
    path: SmallVec<[std::slice::Iter<'h, Term<'h>>; 8]>,
}

impl<'h> Leaves<'h> {
    /// The leaves of `map`; none where it is flat.
    #[must_use]
    pub fn of(map: Map<'h>) -> Leaves<'h> {
        let path = map
            .root()
            .map(|(_, children)| children.iter())
            .into_iter()
            .collect();
        Leaves { path }
    }

    /// How many children are left to look at, from the root down: for [`Leaves::resume`].
    #[must_use]
    pub fn pause(&self) -> SmallVec<[u8; 16]> {
        self.path.iter().map(|left| left.len() as u8).collect()
    }

    /// The leaves of `map` behind those that had been visited when [`Leaves::pause`] gave `left`.
    #[must_use]
    pub fn resume(map: Map<'h>, left: &[u8]) -> Leaves<'h> {
        let mut children = map.root().map_or(&[][..], |(_, children)| children);
        let mut path = SmallVec::new();
        for (level, &left) in left.iter().enumerate() {
            if level > 0 {
                // Whose children are visited is what the level above has passed last.
                let above: &std::slice::Iter<'h, Term<'h>> = &path[level - 1];
                children = children_of(children[children.len() - above.len() - 1]);
            }
            path.push(children[children.len() - usize::from(left)..].iter());
        }
        Leaves { path }
    }

    /// The leaves below `node`, which is no leaf itself.
    pub(crate) fn below(node: Term<'h>) -> Leaves<'h> {
        let path = std::iter::once(children_of(node).iter()).collect();
        Leaves { path }
    }
}

impl<'h> Iterator for Leaves<'h> {
    type Item = Leaf<'h>;
    fn next(&mut self) -> Option<Leaf<'h>> {
        loop {
            match self.path.last_mut()?.next() {
                None => {
                    self.path.pop();
                }
                Some(child) => match child.as_cons() {
                    Some(leaf) => return Some(Cons::words(leaf)),
                    None => self.path.push(children_of(*child).iter()),
                },
            }
        }
    }
}

/// Keys and values of a map, in its order, which is that of `maps:to_list/1`.
pub enum Entries<'h> {
    /// What is left of a flat map.
    Flat(&'h [Term<'h>], &'h [Term<'h>]),
    /// What is left of a trie.
    Trie(Leaves<'h>),
}

impl<'h> Iterator for Entries<'h> {
    type Item = (Term<'h>, Term<'h>);
    fn next(&mut self) -> Option<(Term<'h>, Term<'h>)> {
        match self {
            Entries::Flat(keys, values) => {
                let ((key, keys_left), (value, values_left)) =
                    (keys.split_first()?, values.split_first()?);
                (*keys, *values) = (keys_left, values_left);
                Some((*key, *value))
            }
            Entries::Trie(leaves) => leaves.next().map(|[key, value]| (*key, *value)),
        }
    }
}

impl<'h> Map<'h> {
    /// Keys and values, in the order of `maps:to_list/1`.
    #[must_use]
    pub fn iter(self) -> Entries<'h> {
        match self.flat() {
            Some((keys, values)) => Entries::Flat(keys.elements(), values),
            None => Entries::Trie(Leaves::of(self)),
        }
    }

    /// The value of `key`.
    #[inline]
    #[must_use]
    pub fn get(self, key: Term<'_>) -> Option<Term<'h>> {
        match self.flat() {
            Some((keys, values)) => flat_index(keys.elements(), key).map(|i| values[i]),
            None => self.get_hashed(key, map_key_hash(key)),
        }
    }

    /// The value of `key`, whose [`map_key_hash`] is `hash`; in a flat map as [`Map::get`].
    #[must_use]
    pub(crate) fn get_hashed(self, key: Term<'_>, hash: u64) -> Option<Term<'h>> {
        let Some(root) = self.root() else {
            return self.get(key);
        };
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("popcnt") {
            // SAFETY: T3: the processor has what the function is compiled for.
            return unsafe { find_with_popcnt(root, key, hash) };
        }
        find(root, key, hash)
    }

    /// Has `key`.
    #[must_use]
    pub fn contains_key(self, key: Term<'_>) -> bool {
        self.get(key).is_some()
    }
}

/// Bitmap and children of a node.
type Node<'h> = (u32, &'h [Term<'h>]);

/// The value of `key`, whose hash from the level of this node on is `hash`, below the node.
#[inline(always)]
fn find<'h>(node: Node<'h>, key: Term<'_>, hash: u64) -> Option<Term<'h>> {
    let ((mut bitmap, mut children), mut hash) = (node, hash);
    loop {
        let node = *children.get(slot_of(bitmap, hash)?)?;
        if let Some(leaf) = node.as_cons() {
            return eq_exact(leaf.head(), key).then(|| leaf.tail());
        }
        hash >>= 4;
        match Map::inner(node) {
            Some(inner) => (bitmap, children) = inner,
            None => {
                let mut leaves = children_of(node).iter().filter_map(|leaf| leaf.as_cons());
                return leaves
                    .find(|leaf| eq_exact(leaf.head(), key))
                    .map(Cons::tail);
            }
        }
    }
}

/// [`find`] for processors that count bits in one instruction: each level waits for the count of the one above.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn find_with_popcnt<'h>(node: Node<'h>, key: Term<'_>, hash: u64) -> Option<Term<'h>> {
    find(node, key, hash)
}

/// Where a flat map keeps `key`.
#[inline]
pub(crate) fn flat_index(keys: &[Term<'_>], key: Term<'_>) -> Option<usize> {
    if key.raw().is_immed() {
        keys.iter().position(|k| k.same(key))
    } else {
        keys.iter().position(|k| eq_exact(*k, key))
    }
}

/// The place among a node's children of the one for the lowest four bits of `hash`.
#[inline(always)]
pub(crate) fn slot_of(bitmap: u32, hash: u64) -> Option<usize> {
    let bit = 1u32 << (hash & 0xf);
    (bitmap & bit != 0).then(|| (bitmap & (bit - 1)).count_ones() as usize)
}
