//! The way of a traversal through the slots, and what it will find on it.

use super::{Hash, Link, NONE, hash_of};
use crate::heap::fetch;
use crate::term::Term;

impl Hash {
    /// Slots there are.
    pub(crate) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// The slot that a traversal visits after `slot`; none at its end.
    #[inline]
    pub(in crate::ets) fn next_slot(&self, slot: usize) -> Option<usize> {
        let next = slot + self.locks.count;
        if next < self.slots.len() {
            return Some(next);
        }
        let next = (slot + 1) & (self.locks.count - 1);
        (next != 0).then_some(next)
    }

    /// A traversal visits `slot`: what it will find in those behind it is fetched, first the nodes, then the objects.
    pub(in crate::ets) fn fetch_behind(&self, slot: usize) {
        const NODES: usize = 8;
        const OBJECTS: usize = 4;
        let first = |ahead: usize| {
            let at = self.slots.get(slot + ahead * self.locks.count)?;
            self.nodes.get(*at as usize)
        };
        if let Some(node) = first(NODES) {
            fetch((&raw const *node).cast());
        }
        if let Some(object) = first(OBJECTS).and_then(|node| node.object.as_ref()) {
            object.object().fetch();
        }
    }

    /// The first node at `at` or behind that is not deleted (or any, if `raw`); `NONE` at the end.
    fn next_live(&self, mut slot: usize, mut at: u32, raw: bool) -> (usize, u32) {
        loop {
            while at != NONE {
                if raw || !self.is_deleted(at) {
                    return (slot, at);
                }
                at = self.nodes[at as usize].next;
            }
            match self.next_slot(slot) {
                Some(next) => (slot, at) = (next, self.slots[next]),
                None => return (slot, NONE),
            }
        }
    }

    /// The node that a traversal meets first, or `NONE`.
    pub(in crate::ets) fn first(&self, raw: bool) -> u32 {
        self.next_live(0, self.slots[0], raw).1
    }

    /// The first node with a key that a traversal meets after those with `key`, or `NONE`; `None` where
    /// `key` is unknown.
    pub(in crate::ets) fn next(&self, key: Term<'_>, raw: bool) -> Option<u32> {
        let hash = hash_of(key);
        let Link { mut slot, at, .. } = self.locate(key, hash);
        if at == NONE {
            return None;
        }
        self.fetch_behind(slot);
        let mut next = self.nodes[at as usize].next;
        loop {
            (slot, next) = self.next_live(slot, next, raw);
            if next == NONE || self.is_set() || !self.has_key(next, key, hash) {
                return Some(next);
            }
            next = self.nodes[next as usize].next;
        }
    }
}
