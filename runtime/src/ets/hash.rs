//! Tables with hashed keys: `set`, `bag` and `duplicate_bag`.
//!
//! The table uses linear hashing as ERTS does it, step by step. Slots are added and joined one at a time, a slot's
//! chain keeps the order that ERTS gives it, and hashes are the same. So a traversal meets the objects in the same
//! order, and sizes agree to the word. Each object has a node. The nodes lie in one array and refer to each other by
//! index. In a fixed table a deleted object's node stays, marked as deleted.
//!
//! Source: `erl_db_hash.c`, OTP 29.

mod chain;
mod traversal;

use super::{Size, update};
use crate::heap::{Keyed, Stored};
use crate::term::Term;
use crate::term::compare::eq_exact;
use crate::term::hash::internal_hash;

pub(crate) use chain::Chain;

/// The objects that a key may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashKind {
    /// One object.
    Set,
    /// Objects that differ.
    Bag,
    /// Any objects.
    DuplicateBag,
}

/// How a table with fine-grained locks differs: in the order of traversals and in when it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Locks {
    /// Their number, a power of two; a traversal takes the slots of one lock after another.
    pub(crate) count: usize,
    /// The number of objects is estimated from the counters of the locks.
    pub(crate) decentralized: bool,
}

impl Locks {
    /// One lock for all.
    pub(crate) const ONE: Locks = Locks {
        count: 1,
        decentralized: false,
    };
}

/// No node: the end of a chain.
pub(super) const NONE: u32 = u32::MAX;
/// Slots of the first segment, and of every other one.
const FIRST_SEGMENT: usize = 256;
const SEGMENT: usize = 2048;
/// Locks that have counters of objects.
const COUNTERS: usize = 64;
/// Length of the second table of segments, what later ones grow by, and words beside the entries.
const SECOND_DIRECTORY: usize = 256;
const DIRECTORY_GROWTH: usize = 128;
pub(crate) const DIRECTORY_WORDS: usize = 7;
/// Slots that are split or joined by one change at most.
const RESIZE_STEPS: usize = 5;
/// Words a node takes beside its tuple.
const NODE_WORDS: usize = 4;
/// Words of a note about deletions.
const NOTE_WORDS: usize = 2;

struct Node {
    /// 63 bits.
    hash: u64,
    /// The next node of the chain, or of the free ones.
    next: u32,
    /// Kept for traversals under way.
    deleted: bool,
    /// None in a free node.
    object: Option<Keyed>,
}

impl Node {
    /// The object of a node that is not free.
    #[inline]
    fn keyed(&self) -> &Keyed {
        let object = self.object.as_ref();
        object.expect("a node in a chain has its object")
    }
}

/// Slots that have nodes marked as deleted.
#[derive(Clone, Copy)]
enum Note {
    Slot(usize),
    All,
}

/// A table with hashed keys.
pub(crate) struct Hash {
    kind: HashKind,
    /// Index of the key in an object, from 0.
    key: usize,
    locks: Locks,
    /// The chains of the active slots.
    slots: Vec<u32>,
    /// Slots that ERTS would have memory for.
    slot_room: usize,
    nodes: Vec<Node>,
    free: u32,
    objects: usize,
    /// Objects by lock, where counters are decentralized.
    counters: Vec<isize>,
    /// Bytes of all nodes, those of deleted objects included.
    node_bytes: usize,
    fixed: bool,
    notes: Vec<Note>,
    /// How many bytes an object takes.
    size: Size,
}

/// A place in a chain: the node before (or none) and the node.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) slot: usize,
    pub(super) before: u32,
    pub(super) at: u32,
}

fn hash_of(key: Term<'_>) -> u64 {
    match key.as_atom() {
        Some(atom) => u64::from(atom.hash()) >> 1,
        None => internal_hash(key) >> 1,
    }
}

impl Hash {
    pub(super) fn new(kind: HashKind, keypos: usize, locks: Locks, size: Size) -> Hash {
        let mut slots = FIRST_SEGMENT;
        while slots < locks.count {
            slots += SEGMENT;
        }
        Hash {
            kind,
            key: keypos - 1,
            locks,
            slots: vec![NONE; slots],
            slot_room: slots,
            nodes: Vec::new(),
            free: NONE,
            objects: 0,
            counters: vec![0; if locks.decentralized { COUNTERS } else { 0 }],
            node_bytes: 0,
            fixed: false,
            notes: Vec::new(),
            size,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.objects
    }

    /// Index of the key in an object, from 0.
    pub(super) fn key_index(&self) -> usize {
        self.key
    }

    /// Bytes it takes, as ERTS counts them, beside those of the table itself.
    pub(super) fn bytes(&self) -> usize {
        let segments = 1 + (self.slot_room - FIRST_SEGMENT) / SEGMENT;
        let (mut room, mut directory) = (1, 0);
        while segments > room {
            room = if room == 1 {
                SECOND_DIRECTORY
            } else {
                room + DIRECTORY_GROWTH
            };
            directory += DIRECTORY_WORDS + room;
        }
        let words = self.slot_room + directory + self.notes.len() * NOTE_WORDS;
        words * 8 + self.node_bytes
    }

    /// The slot of a hash.
    #[inline]
    fn slot_of(&self, hash: u64) -> usize {
        let mask = self.slots.len().next_power_of_two() - 1;
        let slot = hash as usize & mask;
        if slot >= self.slots.len() {
            slot & (mask >> 1)
        } else {
            slot
        }
    }

    #[inline]
    fn key_at(&self, at: u32) -> Term<'_> {
        self.nodes[at as usize].keyed().key()
    }

    /// The object of a node that is not free.
    #[inline]
    pub(super) fn object(&self, at: u32) -> &Stored {
        self.nodes[at as usize].keyed().object()
    }

    /// The object of a node, if it is one.
    #[inline]
    pub(super) fn kept_object(&self, at: u32) -> Option<&Stored> {
        let node = self.nodes.get(at as usize)?;
        node.object.as_ref().map(Keyed::object)
    }

    /// The objects with `key`, deleted ones that are still kept included.
    pub(super) fn kept_objects(&self, key: Term<'_>) -> Vec<&Stored> {
        let hash = hash_of(key);
        let mut link = self.locate(key, hash);
        let mut objects = Vec::new();
        while link.at != NONE && self.has_key(link.at, key, hash) {
            objects.push(self.object(link.at));
            link = self.behind(link);
        }
        objects
    }

    #[inline]
    fn has_key(&self, at: u32, key: Term<'_>, hash: u64) -> bool {
        self.nodes[at as usize].hash == hash && eq_exact(self.key_at(at), key)
    }

    /// The first node with `key`, a deleted one included, or the end of the chain.
    #[inline]
    fn locate(&self, key: Term<'_>, hash: u64) -> Link {
        let slot = self.slot_of(hash);
        let (mut before, mut at) = (NONE, self.slots[slot]);
        while at != NONE && !self.has_key(at, key, hash) {
            (before, at) = (at, self.nodes[at as usize].next);
        }
        Link { slot, before, at }
    }

    /// The first object with `key`.
    #[inline]
    fn locate_live(&self, key: Term<'_>) -> u32 {
        let hash = hash_of(key);
        let mut at = self.locate(key, hash).at;
        if at != NONE && !self.is_deleted(at) {
            return at;
        }
        while at != NONE && (self.is_deleted(at) || !self.has_key(at, key, hash)) {
            at = self.nodes[at as usize].next;
        }
        at
    }

    fn is_deleted(&self, at: u32) -> bool {
        self.nodes[at as usize].deleted
    }

    fn set_link(&mut self, link: Link, to: u32) {
        if link.before == NONE {
            self.slots[link.slot] = to;
        } else {
            self.nodes[link.before as usize].next = to;
        }
    }

    /// Whether a key has one object at most.
    #[inline]
    pub(super) fn is_set(&self) -> bool {
        self.kind == HashKind::Set
    }

    /// The first object with `key`.
    #[inline]
    pub(super) fn get_one(&self, key: Term<'_>) -> Option<&Stored> {
        self.kept_object(self.locate_live(key))
    }

    /// The objects with `key`, the newest first.
    #[inline]
    pub(super) fn get(&self, key: Term<'_>) -> Chain<'_> {
        self.objects_from(self.locate_live(key))
    }

    /// The objects with the key of the one at `at`, from there on.
    pub(super) fn objects_from(&self, at: u32) -> Chain<'_> {
        Chain {
            hash: self,
            at,
            group: Some(at).filter(|at| *at != NONE),
        }
    }

    /// The objects in a slot, in the order of the chain.
    pub(super) fn slot(&self, slot: usize) -> Option<Chain<'_>> {
        let at = *self.slots.get(slot)?;
        Some(Chain {
            hash: self,
            at,
            group: None,
        })
    }

    /// Deleted nodes stay from now on, or go and stay no more.
    pub(super) fn set_fixed(&mut self, fixed: bool) {
        self.fixed = fixed;
        if fixed {
            return;
        }
        for note in std::mem::take(&mut self.notes) {
            match note {
                Note::Slot(slot) => self.purge(slot),
                Note::All => (0..self.slots.len()).for_each(|slot| self.purge(slot)),
            }
        }
    }

    /// Frees the deleted nodes of a slot.
    fn purge(&mut self, slot: usize) {
        let mut link = self.head(slot);
        while link.at != NONE {
            link = if self.is_deleted(link.at) {
                self.unlink(link)
            } else {
                self.behind(link)
            };
        }
    }

    pub(super) fn head(&self, slot: usize) -> Link {
        Link {
            slot,
            before: NONE,
            at: self.slots.get(slot).copied().unwrap_or(NONE),
        }
    }

    pub(super) fn behind(&self, link: Link) -> Link {
        Link {
            slot: link.slot,
            before: link.at,
            at: self.nodes[link.at as usize].next,
        }
    }

    /// Frees the node of `link`; the place then is that of the one behind it.
    fn unlink(&mut self, link: Link) -> Link {
        let Link { slot, before, at } = link;
        let node = &mut self.nodes[at as usize];
        let next = std::mem::replace(&mut node.next, self.free);
        node.deleted = false;
        let object = node
            .object
            .take()
            .expect("a node in a chain has its object");
        self.node_bytes -= (self.size)(object.object(), self.key) + NODE_WORDS * 8;
        self.free = at;
        self.set_link(link, next);
        if self.node_bytes == 0 && self.nodes.len() > SEGMENT {
            (self.nodes, self.free) = (Vec::new(), NONE);
        }
        Link {
            slot,
            before,
            at: next,
        }
    }

    /// Puts `object` in; how many others of its key a bag compares it with, and finds another.
    pub(super) fn insert(&mut self, object: Stored) -> usize {
        let key = object.elements()[self.key];
        let hash = hash_of(key);
        let link = self.locate(key, hash);
        if link.at != NONE && self.is_set() {
            let was_deleted = std::mem::take(&mut self.nodes[link.at as usize].deleted);
            self.exchange(link.at, object);
            if was_deleted {
                self.count(hash, 1);
            }
            return 0;
        }
        let mut others = 0;
        if self.kind == HashKind::Bag && self.has_already(link, &object, hash, &mut others) {
            return others;
        }
        let new = self.node(hash, link.at, object);
        self.set_link(link, new);
        self.count(hash, 1);
        self.try_grow(hash);
        others
    }

    /// Puts another object with the same key in a node's place.
    pub(super) fn exchange(&mut self, at: u32, object: Stored) {
        let (size, key) = (self.size, self.key);
        self.node_bytes += size(&object, key);
        let object = Keyed::new(object, key);
        let old = self.nodes[at as usize].object.replace(object);
        self.node_bytes -= old.map_or(0, |old| size(old.object(), key));
    }

    fn node(&mut self, hash: u64, next: u32, object: Stored) -> u32 {
        self.node_bytes += (self.size)(&object, self.key) + NODE_WORDS * 8;
        let node = Node {
            hash,
            next,
            deleted: false,
            object: Some(Keyed::new(object, self.key)),
        };
        if self.free == NONE {
            self.nodes.push(node);
            return u32::try_from(self.nodes.len() - 1)
                .ok()
                .filter(|at| *at != NONE)
                .expect("fewer than four milliards of objects");
        }
        let at = self.free;
        self.free = self.nodes[at as usize].next;
        self.nodes[at as usize] = node;
        at
    }

    /// Is `object` in the bag? One that was deleted comes back, as the newest of its key. Counts those that it is
    /// not.
    fn has_already(&mut self, first: Link, object: &Stored, hash: u64, others: &mut usize) -> bool {
        let key = object.elements()[self.key];
        let mut link = first;
        while link.at != NONE && self.has_key(link.at, key, hash) {
            if !eq_exact(self.object(link.at).term(), object.term()) {
                link = self.behind(link);
                *others += 1;
                continue;
            }
            if std::mem::take(&mut self.nodes[link.at as usize].deleted) {
                if link.at != first.at {
                    let next = self.nodes[link.at as usize].next;
                    self.set_link(link, next);
                    self.nodes[link.at as usize].next = first.at;
                    self.set_link(first, link.at);
                }
                self.count(hash, 1);
            }
            return true;
        }
        false
    }

    /// `change` more objects.
    fn count(&mut self, hash: u64, change: isize) {
        self.objects = self.objects.wrapping_add_signed(change);
        if let Some(counter) = self.counters.get_mut(hash as usize % COUNTERS) {
            *counter += change;
        }
    }

    /// About how many objects there are, as seen from the lock of `hash`.
    fn estimate(&self, hash: u64) -> usize {
        match self.counters.get(hash as usize % COUNTERS) {
            Some(counter) => usize::try_from(*counter).unwrap_or(0) * COUNTERS,
            None => self.objects,
        }
    }

    /// Has `change` change the first object with `key`, which stays one with that key; what that returns.
    #[inline]
    pub(super) fn update<R>(
        &mut self,
        key: Term<'_>,
        change: impl FnOnce(&mut Stored) -> R,
    ) -> Option<R> {
        let at = self.locate_live(key);
        let keyed = self.nodes.get_mut(at as usize)?.object.as_mut()?;
        let bytes = (self.size, &mut self.node_bytes);
        Some(update(keyed, self.key, change, bytes))
    }

    /// Takes out the objects with `key`.
    pub(super) fn remove(&mut self, key: Term<'_>) {
        let hash = hash_of(key);
        let mut link = self.head(self.slot_of(hash));
        let mut gone = 0;
        while link.at != NONE {
            if self.is_deleted(link.at) {
                link = self.behind(link);
            } else if self.has_key(link.at, key, hash) {
                gone += 1;
                // One node is enough to know the key by.
                link = self.take(link, gone == 1);
            } else if gone > 0 {
                break;
            } else {
                link = self.behind(link);
            }
        }
        self.removed(hash, gone);
    }

    /// Takes out the objects that are `object`.
    pub(super) fn remove_object(&mut self, object: Term<'_>, key: Term<'_>) {
        let hash = hash_of(key);
        let mut link = self.head(self.slot_of(hash));
        let (mut gone, mut keys) = (0, 0);
        while link.at != NONE {
            if self.is_deleted(link.at) {
                link = self.behind(link);
            } else if self.has_key(link.at, key, hash) {
                keys += 1;
                if !eq_exact(self.object(link.at).term(), object) {
                    link = self.behind(link);
                    continue;
                }
                gone += 1;
                link = self.take(link, keys == 1);
                if self.kind != HashKind::DuplicateBag {
                    break;
                }
            } else if gone > 0 {
                break;
            } else {
                link = self.behind(link);
            }
        }
        self.removed(hash, gone);
    }

    /// Takes the object of `link` out, and leaves its node in a fixed table if it is to `stay`.
    fn take(&mut self, link: Link, stay: bool) -> Link {
        if !stay || !self.fixed {
            return self.unlink(link);
        }
        self.notes.push(Note::Slot(link.slot));
        self.nodes[link.at as usize].deleted = true;
        self.behind(link)
    }

    fn removed(&mut self, hash: u64, gone: isize) {
        if gone > 0 {
            self.count(hash, -gone);
            self.try_shrink(self.estimate(hash));
        }
    }

    /// Takes those objects of a slot out that `goes` says: how many were looked at, and how many went.
    /// The table shrinks when [`Hash::shrink_after`] says so.
    /// Where `stays`, their nodes stay for traversals under way.
    pub(super) fn remove_if(
        &mut self,
        slot: usize,
        stays: bool,
        mut goes: impl FnMut(&Stored) -> bool,
    ) -> (usize, usize) {
        let (mut seen, mut gone) = (0, 0);
        let mut link = self.head(slot);
        while link.at != NONE {
            if self.is_deleted(link.at) {
                link = self.behind(link);
                continue;
            }
            seen += 1;
            if !goes(self.object(link.at)) {
                link = self.behind(link);
                continue;
            }
            gone += 1;
            self.count(self.nodes[link.at as usize].hash, -1);
            if stays {
                if gone == 1 {
                    self.notes.push(Note::Slot(slot));
                }
                self.nodes[link.at as usize].deleted = true;
                link = self.behind(link);
            } else {
                link = self.unlink(link);
            }
        }
        (seen, gone)
    }

    /// Replaces those objects of a slot for which `new` has another one, with the same key: how many were
    /// looked at, and how many replaced.
    ///
    /// # Errors
    /// Those of `new`.
    pub(super) fn replace_in<E>(
        &mut self,
        slot: usize,
        mut new: impl FnMut(&Stored) -> Result<Option<Stored>, E>,
    ) -> Result<(usize, usize), E> {
        let (mut seen, mut replaced) = (0, 0);
        let mut link = self.head(slot);
        while link.at != NONE {
            if !self.is_deleted(link.at) {
                seen += 1;
                if let Some(object) = new(self.object(link.at))? {
                    self.exchange(link.at, object);
                    replaced += 1;
                }
            }
            link = self.behind(link);
        }
        Ok((seen, replaced))
    }

    /// The slot of `key`, if there is an object with it.
    pub(super) fn slot_with(&self, key: Term<'_>) -> Option<usize> {
        (self.locate_live(key) != NONE).then(|| self.slot_of(hash_of(key)))
    }

    /// Objects have been taken out of several slots.
    pub(super) fn shrink_after(&mut self) {
        self.try_shrink(self.estimate(0));
    }

    /// Takes all objects out.
    pub(super) fn clear(&mut self) {
        if !self.fixed {
            *self = Hash::new(self.kind, self.key + 1, self.locks, self.size);
            return;
        }
        for node in self.nodes.iter_mut().filter(|node| node.object.is_some()) {
            node.deleted = true;
        }
        self.notes.push(Note::All);
        self.objects = 0;
        self.counters.fill(0);
    }

    /// Frees segments of slots, the last one first, until that has cost more than `reds`; what is left of them, less
    /// than none where it is not done.
    pub(super) fn free_some(&mut self, mut reds: i64) -> i64 {
        const SEGMENT_REDS: i64 = SEGMENT as i64 / 64;
        while self.slot_room > 0 {
            let from = self.slot_room.saturating_sub(SEGMENT);
            let mut count = 0;
            for slot in from..self.slots.len() {
                self.fetch_behind(slot);
                let mut at = self.slots[slot];
                while at != NONE {
                    let node = &mut self.nodes[at as usize];
                    node.object = None;
                    at = node.next;
                    count += 1;
                }
            }
            self.slots.truncate(from);
            self.slot_room = from;
            reds -= SEGMENT_REDS + count;
            if reds < 0 {
                return reds;
            }
        }
        self.nodes = Vec::new();
        reds
    }

    fn try_grow(&mut self, hash: u64) {
        if self.fixed {
            return;
        }
        let objects = self.estimate(hash);
        for _ in 0..RESIZE_STEPS {
            if objects <= self.slots.len() {
                return;
            }
            self.split();
        }
    }

    /// One slot more; its objects come from the one it is split off, both in their old order.
    fn split(&mut self) {
        let new = self.slots.len();
        if new == self.slot_room {
            self.slot_room += SEGMENT;
        }
        let mask = (new + 1).next_power_of_two() - 1;
        let from = new & (mask >> 1);
        self.slots.push(NONE);
        let mut at = std::mem::replace(&mut self.slots[from], NONE);
        let mut ends = [(from, NONE), (new, NONE)];
        while at != NONE {
            let node = &mut self.nodes[at as usize];
            let next = std::mem::replace(&mut node.next, NONE);
            let end = &mut ends[usize::from(node.hash as usize & mask != from)];
            let (slot, before) = *end;
            end.1 = at;
            self.set_link(Link { slot, before, at }, at);
            at = next;
        }
    }

    /// Below this number of objects the table shrinks.
    fn shrink_limit(&self) -> usize {
        // Counters of single locks tell enough only when there are a hundred slots for each.
        let uncertain = self.locks.decentralized && self.slot_room < 100 * COUNTERS;
        let least = (self.locks.count + SEGMENT).max(FIRST_SEGMENT + 2 * SEGMENT);
        if uncertain || self.slot_room < least {
            return 0;
        }
        (self.slot_room - SEGMENT) / 2
    }

    fn try_shrink(&mut self, objects: usize) {
        if self.fixed {
            return;
        }
        for _ in 0..RESIZE_STEPS {
            if objects >= self.shrink_limit() {
                return;
            }
            self.join();
        }
    }

    /// One slot less; its objects come before those of the slot they join.
    fn join(&mut self) {
        let mask = self.slots.len().next_power_of_two() - 1;
        let Some(first) = self.slots.pop() else {
            return;
        };
        let from = self.slots.len();
        let to = from & (mask >> 1);
        if self.slot_room - from >= SEGMENT {
            self.slot_room -= SEGMENT;
        }
        if first == NONE {
            return;
        }
        let mut last = first;
        while self.nodes[last as usize].next != NONE {
            last = self.nodes[last as usize].next;
        }
        self.nodes[last as usize].next = self.slots[to];
        self.slots[to] = first;
    }

    /// The lengths of the chains of all slots, deleted objects included.
    pub(crate) fn chains(&self) -> Vec<usize> {
        let length = |slot| {
            let mut link = self.head(slot);
            let mut length = 0;
            while link.at != NONE {
                length += 1;
                link = self.behind(link);
            }
            length
        };
        (0..self.slots.len()).map(length).collect()
    }

    /// All objects, in no order, deleted ones that are still kept included.
    pub(super) fn all(&self) -> impl Iterator<Item = &Stored> {
        let objects = self.nodes.iter().filter_map(|node| node.object.as_ref());
        objects.map(Keyed::object)
    }

    /// Objects kept for traversals.
    pub(crate) fn kept(&self) -> usize {
        self.nodes.iter().filter(|node| node.deleted).count()
    }

    /// Locks it has.
    pub(crate) fn locks(&self) -> usize {
        self.locks.count
    }
}
