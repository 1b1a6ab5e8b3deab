//! Tables with hashed keys: `set`, `bag` and `duplicate_bag`.
//!
//! Entries, one a key, lie in one array in the order of their insertion; buckets chain them by index.
//! An entry keeps its place until it is freed, so a place in the array is a place in a traversal,
//! whatever is inserted meanwhile. In a fixed table an emptied entry stays, without objects.

use smallvec::{SmallVec, smallvec};

use crate::heap::Stored;
use crate::term::Term;
use crate::term::compare::eq_exact;
use crate::term::hash::internal_hash;

/// What a key may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashKind {
    /// One object.
    Set,
    /// Objects that differ.
    Bag,
    /// Any objects.
    DuplicateBag,
}

/// No entry: the end of a chain.
const NONE: u32 = u32::MAX;
/// Buckets of an empty table; always a power of two.
const FIRST_BUCKETS: usize = 16;

struct Entry {
    hash: u64,
    /// The next entry of the bucket, or of the free ones.
    next: u32,
    /// A free entry has none, nor has one that was deleted from a fixed table.
    objects: SmallVec<[Stored; 1]>,
    /// The key of an entry deleted from a fixed table, which still may be found: in its old object.
    deleted: Option<Box<Stored>>,
}

/// A table with hashed keys.
pub(crate) struct Hash {
    kind: HashKind,
    /// Index of the key in an object, from 0.
    key: usize,
    buckets: Vec<u32>,
    entries: Vec<Entry>,
    free: u32,
    /// Entries that are not free.
    used: usize,
    /// Entries kept for traversals.
    deleted: usize,
    objects: usize,
    object_words: usize,
}

/// Words of an empty table.
const TABLE_WORDS: usize = 306;
/// Words an object takes beside its own.
const OBJECT_WORDS: usize = 4;
/// Buckets of ERTS's first segment and of all others, and words of the segment directory.
const SEGMENTS: (usize, usize, usize) = (256, 2048, 263);

impl Hash {
    pub(super) fn new(kind: HashKind, keypos: usize) -> Hash {
        Hash {
            kind,
            key: keypos - 1,
            buckets: vec![NONE; FIRST_BUCKETS],
            entries: Vec::new(),
            free: NONE,
            used: 0,
            deleted: 0,
            objects: 0,
            object_words: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.objects
    }

    /// Words it takes, as ERTS counts them.
    pub(super) fn words(&self) -> usize {
        let (first, segment, directory) = SEGMENTS;
        let beyond = self.objects.saturating_sub(first);
        let segments = beyond.div_ceil(segment) * segment;
        let directory = if beyond > 0 { directory } else { 0 };
        TABLE_WORDS + self.object_words + self.objects * OBJECT_WORDS + segments + directory
    }

    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// The entry of `key`, one kept for traversals included.
    #[inline]
    fn find(&self, key: Term<'_>, hash: u64) -> Option<usize> {
        let mut at = self.buckets[self.bucket(hash)];
        while at != NONE {
            let entry = &self.entries[at as usize];
            if entry.hash == hash && entry.key(self.key).is_some_and(|k| eq_exact(k, key)) {
                return Some(at as usize);
            }
            at = entry.next;
        }
        None
    }

    #[inline]
    pub(super) fn get(&self, key: Term<'_>) -> &[Stored] {
        match self.find(key, internal_hash(key)) {
            Some(at) => &self.entries[at].objects,
            None => &[],
        }
    }

    /// The place of `key` in a traversal.
    pub(super) fn position(&self, key: Term<'_>) -> Option<usize> {
        self.find(key, internal_hash(key))
    }

    /// The first key at place `from` or behind: its place and its objects.
    pub(super) fn from(&self, from: usize) -> Option<(usize, &[Stored])> {
        let rest = self.entries.get(from..)?;
        let at = rest.iter().position(|entry| !entry.objects.is_empty())?;
        Some((from + at, &rest[at].objects))
    }

    /// Index of the key in an object, from 0.
    pub(super) fn key_index(&self) -> usize {
        self.key
    }

    pub(super) fn slot(&self, index: usize) -> Result<&[Stored], bool> {
        match self.entries.get(index) {
            Some(entry) => Ok(&entry.objects),
            None => Err(index == self.entries.len()),
        }
    }

    pub(super) fn insert(&mut self, object: Stored) {
        let key = object.elements()[self.key];
        let hash = internal_hash(key);
        let words = object.words();
        let Some(at) = self.find(key, hash) else {
            self.insert_entry(hash, object);
            self.objects += 1;
            self.object_words += words;
            return;
        };
        let kind = self.kind;
        let entry = &mut self.entries[at];
        if entry.deleted.take().is_some() {
            self.deleted -= 1;
        }
        match kind {
            HashKind::Set if !entry.objects.is_empty() => {
                self.object_words -= entry.objects[0].words();
                self.object_words += words;
                entry.objects[0] = object;
                return;
            }
            HashKind::Bag if entry.has(object.term()) => return,
            _ => entry.objects.push(object),
        }
        self.objects += 1;
        self.object_words += words;
    }

    fn insert_entry(&mut self, hash: u64, object: Stored) {
        if self.used == self.buckets.len() {
            self.grow();
        }
        let bucket = self.bucket(hash);
        let entry = Entry {
            hash,
            next: self.buckets[bucket],
            objects: smallvec![object],
            deleted: None,
        };
        let at = if self.free == NONE {
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).expect("fewer than four milliards of keys")
        } else {
            let at = self.free;
            self.free = self.entries[at as usize].next;
            self.entries[at as usize] = entry;
            at
        };
        self.buckets[bucket] = at;
        self.used += 1;
    }

    fn grow(&mut self) {
        let mask = self.buckets.len() * 2 - 1;
        let mut buckets = vec![NONE; mask + 1];
        for at in 0..self.entries.len() {
            let entry = &mut self.entries[at];
            if entry.is_free() {
                continue;
            }
            let bucket = &mut buckets[entry.hash as usize & mask];
            entry.next = *bucket;
            *bucket = at as u32;
        }
        self.buckets = buckets;
    }

    pub(super) fn update(&mut self, key: Term<'_>, change: impl FnOnce(&mut Stored)) -> bool {
        let Some(at) = self.find(key, internal_hash(key)) else {
            return false;
        };
        let Some(object) = self.entries[at].objects.first_mut() else {
            return false;
        };
        self.object_words -= object.words();
        change(object);
        self.object_words += object.words();
        true
    }

    /// Takes all objects of the entry at `at`; the entry stays where the table is fixed.
    fn empty(&mut self, at: usize, fixed: bool) -> SmallVec<[Stored; 1]> {
        let entry = &mut self.entries[at];
        let mut objects = std::mem::take(&mut entry.objects);
        self.objects -= objects.len();
        self.object_words -= objects.iter().map(Stored::words).sum::<usize>();
        if fixed {
            if let Some(object) = objects.first() {
                entry.deleted = Some(Box::new(Stored::of_elements(object.elements())));
                self.deleted += 1;
            }
        } else if !objects.is_empty() {
            objects.shrink_to_fit();
            self.unlink(at);
        }
        objects
    }

    /// Frees the entry at `at`.
    fn unlink(&mut self, at: usize) {
        let bucket = self.bucket(self.entries[at].hash);
        let after = self.entries[at].next;
        if self.buckets[bucket] as usize == at {
            self.buckets[bucket] = after;
        } else {
            let mut before = self.buckets[bucket] as usize;
            while self.entries[before].next as usize != at {
                before = self.entries[before].next as usize;
            }
            self.entries[before].next = after;
        }
        self.entries[at].next = self.free;
        self.free = at as u32;
        self.used -= 1;
        if self.used == 0 {
            self.entries.clear();
            self.free = NONE;
        }
    }

    pub(super) fn remove(&mut self, key: Term<'_>, fixed: bool) -> Vec<Stored> {
        match self.find(key, internal_hash(key)) {
            Some(at) => self.empty(at, fixed).into_vec(),
            None => Vec::new(),
        }
    }

    pub(super) fn remove_object(&mut self, object: Term<'_>, key: Term<'_>, fixed: bool) {
        if let Some(at) = self.find(key, internal_hash(key)) {
            self.retain(at, fixed, |other| !eq_exact(other.term(), object));
        }
    }

    /// Keeps those objects of the entry at `at` that `keep` says; how many go.
    pub(super) fn retain(
        &mut self,
        at: usize,
        fixed: bool,
        mut keep: impl FnMut(&Stored) -> bool,
    ) -> usize {
        let kept: SmallVec<[bool; 8]> = self.entries[at].objects.iter().map(&mut keep).collect();
        let gone = kept.iter().filter(|keep| !**keep).count();
        if gone == kept.len() {
            self.empty(at, fixed);
        } else if gone > 0 {
            let mut kept = kept.into_iter();
            let mut words = 0;
            self.entries[at].objects.retain(|object| {
                let keep = kept.next().unwrap_or(true);
                words += if keep { 0 } else { object.words() };
                keep
            });
            self.objects -= gone;
            self.object_words -= words;
        }
        gone
    }

    /// Replaces object `index` of the entry at `at` by one with the same key.
    pub(super) fn replace(&mut self, at: usize, index: usize, object: Stored) {
        let old = &mut self.entries[at].objects[index];
        self.object_words -= old.words();
        self.object_words += object.words();
        *old = object;
    }

    pub(super) fn clear(&mut self, fixed: bool) {
        if fixed {
            for at in 0..self.entries.len() {
                self.empty(at, true);
            }
        } else {
            *self = Hash::new(self.kind, self.key + 1);
        }
    }

    /// Frees the entries that were kept for traversals.
    pub(super) fn purge(&mut self) {
        if self.deleted == 0 {
            return;
        }
        self.deleted = 0;
        for at in 0..self.entries.len() {
            if self
                .entries
                .get_mut(at)
                .is_some_and(|e| e.deleted.take().is_some())
            {
                self.unlink(at);
            }
        }
    }

    /// Number of buckets, and the lengths of their chains.
    pub(crate) fn chains(&self) -> Vec<usize> {
        let mut lengths = vec![0; self.buckets.len()];
        for entry in self.entries.iter().filter(|entry| !entry.is_free()) {
            lengths[self.bucket(entry.hash)] += entry.objects.len();
        }
        lengths
    }

    /// Entries kept for traversals.
    pub(crate) fn kept(&self) -> usize {
        self.deleted
    }
}

impl Entry {
    #[inline]
    fn key(&self, key: usize) -> Option<Term<'_>> {
        let object = self.objects.first().or(self.deleted.as_deref())?;
        Some(object.elements()[key])
    }

    fn has(&self, object: Term<'_>) -> bool {
        self.objects
            .iter()
            .any(|other| eq_exact(other.term(), object))
    }

    fn is_free(&self) -> bool {
        self.objects.is_empty() && self.deleted.is_none()
    }
}
