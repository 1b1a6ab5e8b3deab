//! Atoms, which are interned names. Their table only grows, and an index is a term's payload.
//!
//! Invariants:
//! - A1: entries below `len` are written once, before `len` is stored with release, and never change.
//! - A2: a chunk pointer is set once and the chunk is never freed.

use crate::hash::HashMap;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::offset_of;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use parking_lot::RwLock;

use super::compare::first_eight;
use super::{RawTerm, Term, tag};
use crate::hash::internal::mix64;

/// Longest name in characters.
pub(crate) const MAX_ATOM_CHARS: usize = 255;

/// Places in the cache of atoms that a connection to another node has. Source: `ERTS_USE_ATOM_CACHE_SIZE`.
const ATOM_CACHE_PLACES: u32 = 2039;
/// The highest of them.
pub(crate) const MAX_ATOM_CACHE_INDEX: u32 = ATOM_CACHE_PLACES - 1;

/// The place of an atom. Source: `atom2cix()`.
pub(crate) fn atom_cache_index(atom: Atom) -> u32 {
    atom.index() % ATOM_CACHE_PLACES
}

/// An interned name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Atom(u32);

struct Entry {
    name: Box<str>,
    /// The name's hash as `phash2` uses it, and its first bytes as a number for fast ordering.
    hash: u32,
    order: u32,
}

const CHUNK: usize = 1024;
const CHUNKS: usize = 8192;
type Chunk = [UnsafeCell<Option<Entry>>; CHUNK];

/// The atom table.
struct Table {
    chunks: Box<[AtomicPtr<Chunk>]>,
    len: AtomicUsize,
    by_name: RwLock<HashMap<&'static str, u32>>,
    /// Atoms looked for by name of late, at [`recent_place`] of their names: their indices, which are there.
    recent: [AtomicU32; RECENT],
}

const RECENT: usize = 512;

/// A number that names seldom share, and that costs no walk through them.
#[inline]
fn recent_place(name: &[u8]) -> usize {
    let last = name
        .last_chunk::<8>()
        .map_or(0, |last| u64::from_be_bytes(*last));
    let word = first_eight(name) ^ last.rotate_left(23) ^ name.len() as u64;
    (mix64(word) % RECENT as u64) as usize
}

// SAFETY: A1: writers hold `by_name`'s lock; readers see only entries published through `len`.
unsafe impl Sync for Table {}
// SAFETY: the table owns its entries.
unsafe impl Send for Table {}

static LIMIT: AtomicUsize = AtomicUsize::new(1_048_576);

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let table = Table {
            chunks: (0..CHUNKS)
                .map(|_| AtomicPtr::new(std::ptr::null_mut()))
                .collect(),
            len: AtomicUsize::new(0),
            by_name: RwLock::new(HashMap::default()),
            recent: [const { AtomicU32::new(0) }; RECENT],
        };
        for name in super::atom_order::ORDER {
            table.insert(name);
        }
        table
    })
}

impl Table {
    fn get(&self, index: usize) -> &Entry {
        assert!(
            index < self.len.load(Ordering::Acquire),
            "atom index out of range"
        );
        let chunk = self.chunks[index / CHUNK].load(Ordering::Acquire);
        // SAFETY: A1, A2: the index is below `len`, so its chunk is set and its entry is written.
        unsafe { (*(*chunk)[index % CHUNK].get()).as_ref().unwrap_unchecked() }
    }

    /// The atom of this name, if it has been looked for of late. No lock is taken.
    #[inline]
    fn recent(&self, name: &[u8]) -> Option<u32> {
        let index = self.recent[recent_place(name)].load(Ordering::Relaxed);
        let is_there = (index as usize) < self.len.load(Ordering::Acquire);
        let is_it = is_there && self.get(index as usize).name.as_bytes() == name;
        is_it.then_some(index)
    }

    /// The atom of this name, if it exists.
    fn find(&self, name: &str) -> Option<u32> {
        if let Some(index) = self.recent(name.as_bytes()) {
            return Some(index);
        }
        let index = *self.by_name.read().get(name)?;
        // A1: whoever has put it there has stored `len` before the lock was given up.
        self.recent[recent_place(name.as_bytes())].store(index, Ordering::Relaxed);
        Some(index)
    }

    fn insert(&self, name: &str) -> u32 {
        if let Some(index) = self.find(name) {
            return index;
        }
        let mut by_name = self.by_name.write();
        if let Some(&index) = by_name.get(name) {
            return index;
        }
        let index = self.len.load(Ordering::Relaxed);
        if index >= limit() {
            crate::sys::memory::no_index("atom_tab", limit());
        }
        let slot = &self.chunks[index / CHUNK];
        let mut chunk = slot.load(Ordering::Relaxed);
        if chunk.is_null() {
            chunk = Box::into_raw(new_chunk());
            slot.store(chunk, Ordering::Release);
        }
        let entry = Entry {
            name: name.into(),
            hash: name_hash(name),
            order: order_key(name),
        };
        // SAFETY: A1: the write lock is held and nobody reads an entry at or above `len`.
        let entry = unsafe { (*(*chunk)[index % CHUNK].get()).insert(entry) };
        // SAFETY: A1, A2: the entry lives as long as the program and does not change.
        let name: &'static str = unsafe { &*std::ptr::from_ref::<str>(&entry.name) };
        by_name.insert(name, index as u32);
        self.len.store(index + 1, Ordering::Release);
        index as u32
    }
}

/// It is apart because it may lie on the stack first, whose pages are touched by whoever calls the function.
#[cold]
#[inline(never)]
fn new_chunk() -> Box<Chunk> {
    Box::new(std::array::from_fn(|_| UnsafeCell::new(None)))
}

/// The hash of a name as `erlang:phash2/1` defines it.
/// Source: `atom_hash()` in `atom.c`: PJW over the Latin-1 reading where there is one.
fn name_hash(name: &str) -> u32 {
    let mut hash: u32 = 0;
    let mut step = |byte: u8| {
        hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        if high != 0 {
            hash ^= high >> 24;
            hash ^= high;
        }
    };
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let mut byte = bytes[at];
        // Two-byte sequences of Latin-1 letters count as the one byte they had before UTF-8 atoms.
        if byte & 0xFE == 0xC2 && at + 1 < bytes.len() && bytes[at + 1] & 0xC0 == 0x80 {
            at += 1;
            byte = (byte << 6) | (bytes[at] & 0x3F);
        }
        step(byte);
        at += 1;
    }
    hash
}

/// The first four bytes as a big-endian number: most comparisons end here.
fn order_key(name: &str) -> u32 {
    let mut key = [0u8; 4];
    let n = name.len().min(4);
    key[..n].copy_from_slice(&name.as_bytes()[..n]);
    u32::from_be_bytes(key)
}

/// Where others find the names of atoms.
pub(crate) struct Names {
    /// The address of addresses of rows.
    pub(crate) rows: u64,
    /// Atoms of a row.
    pub(crate) in_row: usize,
    /// Bytes of an atom.
    pub(crate) bytes: usize,
    /// Bytes from its beginning to its name: an address and a length.
    pub(crate) name: usize,
}

impl Atom {
    /// Where others find the names of atoms by their indices, as long as the program runs (A1, A2).
    pub(crate) fn published() -> Names {
        Names {
            rows: table().chunks.as_ptr() as u64,
            in_row: CHUNK,
            bytes: size_of::<UnsafeCell<Option<Entry>>>(),
            name: offset_of!(Entry, name),
        }
    }
}

/// Sets the most atoms there may be (`+t`). Takes effect for atoms made from now on.
pub(crate) fn set_limit(limit: usize) {
    LIMIT.store(limit.min(CHUNK * CHUNKS), Ordering::Relaxed);
}

/// The most atoms there may be.
#[must_use]
pub fn limit() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

/// How many atoms there are.
#[must_use]
pub fn count() -> usize {
    table().len.load(Ordering::Acquire)
}

impl Atom {
    /// The atom with index `index`; for the static atoms' table.
    #[must_use]
    pub(crate) const fn from_index(index: u32) -> Atom {
        Atom(index)
    }

    /// Its place in the table.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0
    }

    /// Finds or makes the atom `name`. The caller checks the length. Ends the machine where the table is full (`+t`),
    /// as ERTS does.
    #[must_use]
    pub fn new(name: &str) -> Atom {
        Atom(table().insert(name))
    }

    /// The atom `name` if it exists.
    #[must_use]
    pub fn existing(name: &str) -> Option<Atom> {
        table().find(name).map(Atom)
    }

    /// The atom whose name these bytes are, if it has been looked for of late.
    #[inline]
    #[must_use]
    pub(crate) fn recent(name: &[u8]) -> Option<Atom> {
        table().recent(name).map(Atom)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        &table().get(self.0 as usize).name
    }

    /// The hash of its name as `phash2` uses it.
    #[must_use]
    pub fn hash(self) -> u32 {
        table().get(self.0 as usize).hash
    }

    /// A number for its name, the same in every run; two names seldom share one.
    #[must_use]
    pub(crate) fn name_word(self) -> u64 {
        let entry = table().get(self.0 as usize);
        u64::from(entry.hash) << 32 | u64::from(entry.order)
    }

    /// Order of names, as Erlang's term order has it (by code point, which UTF-8 keeps).
    #[must_use]
    pub(crate) fn cmp_name(self, other: Atom) -> std::cmp::Ordering {
        if self == other {
            return std::cmp::Ordering::Equal;
        }
        let (a, b) = (table().get(self.0 as usize), table().get(other.0 as usize));
        a.order.cmp(&b.order).then_with(|| a.name.cmp(&b.name))
    }

    /// The atom as a term.
    #[inline(always)]
    #[must_use]
    pub const fn term(self) -> Term<'static> {
        Term::immed(self.raw())
    }

    /// The atom as a word.
    #[inline(always)]
    #[must_use]
    pub const fn raw(self) -> RawTerm {
        RawTerm(((self.0 as u64) << 6) | tag::ATOM)
    }

    /// `true` or `false`.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn from_bool(value: bool) -> Atom {
        if value {
            super::am::true_
        } else {
            super::am::false_
        }
    }
}

impl fmt::Debug for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The atom `name` as a term.
pub(crate) fn atom(name: &str) -> Term<'static> {
    Atom::new(name).term()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::am;

    #[test]
    fn an_atom_is_made_once() {
        let a = Atom::new("hello there");
        assert_eq!(a, Atom::new("hello there"));
        assert_eq!(a.name(), "hello there");
        assert_eq!(Atom::existing("hello there"), Some(a));
        assert_eq!(Atom::existing("surely not an atom yet"), None);
    }

    #[test]
    fn static_atoms_stand_at_their_index() {
        assert_eq!(Atom::new("ok"), am::ok);
        assert_eq!(Atom::new("true"), am::true_);
        assert_eq!(Atom::new(""), am::empty);
    }

    #[test]
    fn names_order_as_text() {
        let mut names = ["abcdz", "abcd", "b", "", "abcda", "Z", "å"].map(Atom::new);
        names.sort_by(|a, b| a.cmp_name(*b));
        assert_eq!(
            names.map(Atom::name),
            ["", "Z", "abcd", "abcda", "abcdz", "b", "å"]
        );
    }
}
