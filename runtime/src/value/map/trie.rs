//! Puts one key into a trie or takes it out. The nodes on its path are made anew.

use smallvec::SmallVec;

use super::{Changed, MAX_LEVEL, children_of, map_key_hash, slot_of};
use crate::heap::Heap;
use crate::term::compare::{cmp_exact, eq_exact};
use crate::term::{Map, Term};

type Children<'h> = SmallVec<[Term<'h>; 17]>;

/// What became of a node.
enum Inserted<'h> {
    /// It holds the same value already.
    Same,
    /// It lacks the key, which was to be updated.
    NoKey,
    /// This one takes its place; whether it has one key more.
    Node(Term<'h>, bool),
}

/// A key, its value, and the part of its hash that is not used up by the levels above.
struct Insert<'h> {
    heap: &'h Heap,
    key: Term<'h>,
    value: Term<'h>,
    must_exist: bool,
}

pub(super) fn insert<'h>(
    heap: &'h Heap,
    map: Map<'h>,
    key: Term<'h>,
    value: Term<'h>,
    must_exist: bool,
) -> Changed<'h> {
    let insert = Insert {
        heap,
        key,
        value,
        must_exist,
    };
    let root = map.root().expect("a trie has a root");
    match insert.children(root, map_key_hash(key), 0) {
        Below::Same => Changed::To(map.term()),
        Below::NoKey => Changed::NoKey,
        Below::Children(changed) => {
            let size = map.len() + usize::from(changed.grown);
            Changed::To(changed.node(heap, Some(size), root))
        }
    }
}

/// What became of a node's children.
enum Below<'h> {
    Same,
    NoKey,
    Children(ChangedChild<'h>),
}

/// One of a node's children is another one, or is new.
struct ChangedChild<'h> {
    slot: usize,
    child: Term<'h>,
    /// The bit of the new child; 0 where it takes another one's place.
    new_bit: u32,
    /// There is one key more.
    grown: bool,
}

impl<'h> ChangedChild<'h> {
    /// The node with these children, so changed; a root where `size` is given.
    fn node(
        &self,
        heap: &'h Heap,
        size: Option<usize>,
        (bitmap, children): (u32, &[Term<'h>]),
    ) -> Term<'h> {
        let (before, rest) = children.split_at(self.slot);
        let behind = if self.new_bit == 0 { &rest[1..] } else { rest };
        let parts = [before, &[self.child], behind];
        heap.trie_node_of(size, bitmap | self.new_bit, parts)
    }
}

impl<'h> Insert<'h> {
    fn leaf(&self) -> Term<'h> {
        self.heap.cons(self.key, self.value)
    }

    fn children(&self, (bitmap, children): (u32, &[Term<'h>]), hash: u64, level: u32) -> Below<'h> {
        let Some(slot) = slot_of(bitmap, hash) else {
            if self.must_exist {
                return Below::NoKey;
            }
            let new_bit = 1u32 << (hash & 0xf);
            return Below::Children(ChangedChild {
                slot: (bitmap & (new_bit - 1)).count_ones() as usize,
                child: self.leaf(),
                new_bit,
                grown: true,
            });
        };
        match self.node(children[slot], hash >> 4, level + 1) {
            Inserted::Same => Below::Same,
            Inserted::NoKey => Below::NoKey,
            Inserted::Node(child, grown) => Below::Children(ChangedChild {
                slot,
                child,
                new_bit: 0,
                grown,
            }),
        }
    }

    fn node(&self, node: Term<'h>, hash: u64, level: u32) -> Inserted<'h> {
        if let Some(leaf) = node.as_cons() {
            if eq_exact(leaf.head(), self.key) {
                return self.replace_leaf(leaf.tail());
            }
            if self.must_exist {
                return Inserted::NoKey;
            }
            let other = map_key_hash(leaf.head())
                .checked_shr(4 * level)
                .unwrap_or(0);
            return Inserted::Node(
                self.split((node, leaf.head(), other), self.leaf(), hash, level),
                true,
            );
        }
        let Some(inner) = Map::inner(node) else {
            return self.collision(node);
        };
        match self.children(inner, hash, level) {
            Below::Same => Inserted::Same,
            Below::NoKey => Inserted::NoKey,
            Below::Children(changed) => {
                Inserted::Node(changed.node(self.heap, None, inner), changed.grown)
            }
        }
    }

    fn replace_leaf(&self, value: Term<'h>) -> Inserted<'h> {
        if value.same(self.value) {
            Inserted::Same
        } else {
            Inserted::Node(self.leaf(), false)
        }
    }

    /// The node at `level` that holds the new leaf and another one.
    fn split(
        &self,
        other: (Term<'h>, Term<'h>, u64),
        new: Term<'h>,
        hash: u64,
        level: u32,
    ) -> Term<'h> {
        let (leaf, key, other_hash) = other;
        if level == MAX_LEVEL {
            let new_first = cmp_exact(self.key, key).is_lt();
            return self
                .heap
                .tuple(&if new_first { [new, leaf] } else { [leaf, new] });
        }
        let (slot, other_slot) = (hash & 0xf, other_hash & 0xf);
        if slot == other_slot {
            let below = self.split((leaf, key, other_hash >> 4), new, hash >> 4, level + 1);
            return self.heap.trie_node(None, 1 << slot, &[below]);
        }
        let children = if slot < other_slot {
            [new, leaf]
        } else {
            [leaf, new]
        };
        self.heap
            .trie_node(None, 1 << slot | 1 << other_slot, &children)
    }

    fn collision(&self, node: Term<'h>) -> Inserted<'h> {
        let leaves = children_of(node);
        let mut changed = Children::from_slice(leaves);
        let keys = || leaves.iter().filter_map(|leaf| leaf.as_cons());
        let at = keys().position(|leaf| cmp_exact(self.key, leaf.head()).is_le());
        if let Some((at, leaf)) = at.and_then(|at| Some((at, leaves[at].as_cons()?)))
            && eq_exact(leaf.head(), self.key)
        {
            return match self.replace_leaf(leaf.tail()) {
                Inserted::Node(new, _) => {
                    changed[at] = new;
                    Inserted::Node(self.heap.tuple(&changed), false)
                }
                other => other,
            };
        }
        if self.must_exist {
            return Inserted::NoKey;
        }
        changed.insert(at.unwrap_or(leaves.len()), self.leaf());
        Inserted::Node(self.heap.tuple(&changed), true)
    }
}

/// `map`, which has `key` and more than 33 keys, without it.
pub(super) fn remove<'h>(heap: &'h Heap, map: Map<'h>, key: Term<'h>, hash: u64) -> Term<'h> {
    let (mut bitmap, children) = map.root().expect("a trie has a root");
    let slot = slot_of(bitmap, hash).expect("the map has the key");
    let mut left = Children::from_slice(children);
    match remove_from(heap, children[slot], key, hash >> 4) {
        Some(node) => left[slot] = node,
        None => {
            left.remove(slot);
            bitmap ^= 1 << (hash & 0xf);
        }
    }
    heap.trie_node(Some(map.len() - 1), bitmap, &left)
}

/// The node without `key`, which it has; `None` where nothing is left of it.
fn remove_from<'h>(heap: &'h Heap, node: Term<'h>, key: Term<'h>, hash: u64) -> Option<Term<'h>> {
    if node.as_cons().is_some() {
        return None;
    }
    let Some((bitmap, children)) = Map::inner(node) else {
        let is_key = |leaf: &Term<'h>| {
            leaf.as_cons()
                .is_some_and(|leaf| eq_exact(leaf.head(), key))
        };
        let left: Children<'h> = children_of(node)
            .iter()
            .copied()
            .filter(|l| !is_key(l))
            .collect();
        return Some(match left[..] {
            [only] => only,
            _ => heap.tuple(&left),
        });
    };
    let slot = slot_of(bitmap, hash).expect("the map has the key");
    let below = remove_from(heap, children[slot], key, hash >> 4);
    let mut left = Children::from_slice(children);
    match below {
        // A leaf alone moves up: a node of one child is there only to lead to nodes.
        Some(leaf) if leaf.as_cons().is_some() && left.len() == 1 => return Some(leaf),
        Some(node) => {
            left[slot] = node;
            return Some(heap.trie_node(None, bitmap, &left));
        }
        None => {
            left.remove(slot);
        }
    }
    match left[..] {
        [] => None,
        [only] if only.as_cons().is_some() => Some(only),
        _ => Some(heap.trie_node(None, bitmap ^ 1 << (hash & 0xf), &left)),
    }
}
