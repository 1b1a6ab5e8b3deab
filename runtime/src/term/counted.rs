//! The data that terms refer to beside the words of a heap: binaries, magic binaries, nodes. Each thing that refers to
//! such data holds a count of it.
//!
//! Invariants:
//! - BC1: whoever holds a count of a [`Binary`] finds its bytes; the last count that is given up frees them.
//! - BC2: only the process that owns a binary's one writable thing appends to it.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

use super::{Atom, am};
use crate::sys::chance::names::told_address;
use crate::sys::memory;

/// Bytes shared by reference. Only the heap thing that made it writable may append to it.
pub struct Binary {
    refs: AtomicUsize,
    writable: AtomicBool,
    /// A number in place of its address, where addresses are not shown; 0: nobody has asked for it yet.
    number: AtomicU32,
    size: AtomicUsize,
    data: std::sync::atomic::AtomicPtr<u8>,
    capacity: AtomicUsize,
    /// The object whose bytes they are; none where they are the binary's own.
    object: Option<Arc<MagicBinary>>,
}

impl Binary {
    /// Offsets of what compiled code looks at when it appends.
    pub(crate) const WRITABLE: usize = offset_of!(Binary, writable);
    pub(crate) const SIZE: usize = offset_of!(Binary, size);
    pub(crate) const DATA: usize = offset_of!(Binary, data);
    pub(crate) const CAPACITY: usize = offset_of!(Binary, capacity);

    /// A binary of `capacity` bytes of which the first `bytes.len()` are `bytes`, the rest zero.
    #[must_use]
    pub fn with_capacity(bytes: &[u8], capacity: usize) -> NonNull<Binary> {
        let capacity = capacity.max(bytes.len());
        let mut data = memory::room_for_bytes(capacity);
        data.extend_from_slice(bytes);
        data.resize(capacity, 0);
        Binary::from_vec(data, bytes.len())
    }

    /// A binary that takes over `data`, of which `size` bytes are in use.
    #[must_use]
    pub fn from_vec(mut data: Vec<u8>, size: usize) -> NonNull<Binary> {
        data.resize(data.capacity(), 0);
        let data: Box<[u8]> = data.into_boxed_slice();
        let capacity = data.len();
        let binary = Box::new(Binary {
            refs: AtomicUsize::new(1),
            writable: AtomicBool::new(false),
            number: AtomicU32::new(0),
            size: AtomicUsize::new(size),
            data: Box::into_raw(data).cast::<u8>().into(),
            capacity: AtomicUsize::new(capacity),
            object: None,
        });
        USED_BYTES.fetch_add(capacity, Ordering::Relaxed);
        NonNull::from(Box::leak(binary))
    }

    /// A binary of the `size` bytes at `data`, which belong to `object` and do not change as long as that lives; and
    /// how many bytes before them it begins: at the start of a word, as all do, since bitstrings keep flags in the low
    /// bits of that address.
    #[must_use]
    pub(crate) fn of_object(
        object: Arc<MagicBinary>,
        data: *const u8,
        size: usize,
    ) -> (NonNull<Binary>, usize) {
        let before = data.addr() % size_of::<u64>();
        let (data, size) = (data.wrapping_sub(before), before + size);
        let binary = Box::new(Binary {
            refs: AtomicUsize::new(1),
            writable: AtomicBool::new(false),
            number: AtomicU32::new(0),
            size: AtomicUsize::new(size),
            data: data.cast_mut().into(),
            capacity: AtomicUsize::new(size),
            object: Some(object),
        });
        (NonNull::from(Box::leak(binary)), before)
    }

    /// The object whose bytes they are.
    pub(crate) fn object(&self) -> Option<&MagicBinary> {
        self.object.as_deref()
    }

    /// What tells it from others, to programs.
    pub(crate) fn name(&self) -> usize {
        told_address(std::ptr::from_ref(self) as usize, &self.number)
    }

    /// First byte.
    #[inline]
    #[must_use]
    pub fn data(&self) -> *const u8 {
        self.data.load(Ordering::Acquire)
    }
    /// Bytes in use.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }
    /// Bytes there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity.load(Ordering::Relaxed)
    }
    /// Its size as programs see it: with the room for what is still to be appended. Source: `orig_size` of `Binary` in
    /// `erl_binary.h`.
    #[must_use]
    pub(crate) fn kept_bytes(&self) -> usize {
        match self.is_writable() {
            true => self.capacity(),
            false => self.size(),
        }
    }
    /// Things that hold it.
    #[must_use]
    pub(crate) fn refs(&self) -> usize {
        self.refs.load(Ordering::Acquire)
    }
    /// May still be appended to in place.
    #[must_use]
    pub(crate) fn is_writable(&self) -> bool {
        self.writable.load(Ordering::Acquire)
    }
    /// Says whether it may be appended to in place.
    pub(crate) fn set_writable(&self, writable: bool) {
        self.writable.store(writable, Ordering::Release);
    }

    /// Grows the room to `capacity` bytes and sets the size in use; the bytes may move.
    ///
    /// # Safety
    /// BC2: the caller runs the process that owns the one writable thing, and nobody holds a pointer
    /// to the bytes.
    pub unsafe fn grow(&self, size: usize, capacity: usize) {
        let old = self.capacity();
        if capacity > old {
            // SAFETY: BC2: made by `from_vec` with this capacity.
            let mut data = unsafe { Vec::from_raw_parts(self.data().cast_mut(), old, old) };
            memory::check(memory::BINARY, capacity);
            memory::kept_for(memory::BINARY, || data.reserve_exact(capacity - old));
            data.resize(capacity, 0);
            let mut data = std::mem::ManuallyDrop::new(data.into_boxed_slice());
            self.data.store(data.as_mut_ptr(), Ordering::Release);
            self.capacity.store(capacity, Ordering::Relaxed);
            USED_BYTES.fetch_add(capacity - old, Ordering::Relaxed);
        }
        self.size.store(size, Ordering::Release);
    }

    /// One more holder.
    #[inline]
    pub fn retain(&self) {
        self.refs.fetch_add(1, Ordering::Relaxed);
    }

    /// One holder less; frees it with the last.
    ///
    /// # Safety
    /// BC1: the caller gives up a count it holds.
    pub unsafe fn release(this: *const Binary) {
        // SAFETY: BC1: the count keeps it alive until here; the last one frees what `from_vec` made.
        unsafe {
            if (*this).refs.fetch_sub(1, Ordering::AcqRel) == 1 {
                let binary = Box::from_raw(this.cast_mut());
                if binary.object.is_some() {
                    return;
                }
                let capacity = binary.capacity();
                USED_BYTES.fetch_sub(capacity, Ordering::Relaxed);
                drop(Vec::from_raw_parts(
                    binary.data().cast_mut(),
                    capacity,
                    capacity,
                ));
            }
        }
    }
}

/// One count of a binary that nobody appends to, held outside any heap: bytes in a queue of the
/// runtime's own that terms may share.
pub struct SharedBytes(NonNull<Binary>);

// SAFETY: BC2: never writable, so its bytes do not change; the count is atomic.
unsafe impl Send for SharedBytes {}
// SAFETY: as for `Send`.
unsafe impl Sync for SharedBytes {}

impl SharedBytes {
    /// Takes over `bytes`.
    #[must_use]
    pub fn from_vec(bytes: Vec<u8>) -> SharedBytes {
        let size = bytes.len();
        SharedBytes(Binary::from_vec(bytes, size))
    }

    /// Takes over the one count of a binary that nobody appends to.
    ///
    /// # Safety
    /// BC1, BC2: the caller gives the count.
    pub(crate) unsafe fn from_binary(binary: NonNull<Binary>) -> SharedBytes {
        SharedBytes(binary)
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: BC1, BC2: the count keeps the bytes, which do not change.
        unsafe {
            let binary = self.0.as_ref();
            std::slice::from_raw_parts(binary.data(), binary.size())
        }
    }

    /// A count of `binary`, which nobody appends to from now on.
    pub(crate) fn of(binary: &Binary) -> SharedBytes {
        binary.set_writable(false);
        binary.retain();
        SharedBytes(NonNull::from(binary))
    }

    /// A count for a heap thing to hold.
    pub(crate) fn retained(&self) -> NonNull<Binary> {
        // SAFETY: BC1: the count keeps it alive.
        unsafe { self.0.as_ref() }.retain();
        self.0
    }
}

impl Clone for SharedBytes {
    fn clone(&self) -> SharedBytes {
        SharedBytes(self.retained())
    }
}

impl std::fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedBytes({})", self.as_slice().len())
    }
}

impl Drop for SharedBytes {
    fn drop(&mut self) {
        // SAFETY: BC1: gives up the count it was made with.
        unsafe { Binary::release(self.0.as_ptr()) };
    }
}

static USED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes of all off-heap binaries, for `erlang:memory(binary)`.
#[must_use]
pub(crate) fn binary_bytes() -> usize {
    USED_BYTES.load(Ordering::Relaxed)
}

/// Counts bytes of binaries that are no [`Binary`], but the user's all the same: those of drivers.
pub(crate) fn binary_bytes_taken(bytes: usize) {
    USED_BYTES.fetch_add(bytes, Ordering::Relaxed);
}

/// They have been given back.
pub(crate) fn binary_bytes_given_back(bytes: usize) {
    USED_BYTES.fetch_sub(bytes, Ordering::Relaxed);
}

/// An object of the runtime's own behind a reference (ETS table, file, atomics array, ...).
pub struct MagicBinary {
    numbers: [u32; 3],
    this: Weak<MagicBinary>,
    saved: AtomicBool,
    object: Object,
}

type Object = Box<dyn Any + Send + Sync>;

/// Objects whose numbers have left the heaps, by their numbers. Source: `erl_bif_unique.c`, OTP 29.
static SAVED: RwLock<BTreeMap<[u32; 3], Weak<MagicBinary>>> = RwLock::new(BTreeMap::new());

/// Whether each object is saved when it is made.
static SAVES_ALL: AtomicBool = AtomicBool::new(false);

impl MagicBinary {
    /// Wraps `object`; `numbers` are those of the reference that stands for it.
    #[must_use]
    pub fn new(numbers: [u32; 3], object: Object) -> Arc<MagicBinary> {
        let made = Arc::new_cyclic(|this| MagicBinary {
            numbers,
            this: this.clone(),
            saved: AtomicBool::new(false),
            object,
        });
        if SAVES_ALL.load(Ordering::Relaxed) {
            made.save();
        }
        made
    }

    /// Makes each object that is made from now on found by its numbers: they have been written down before.
    pub(crate) fn save_all() {
        SAVES_ALL.store(true, Ordering::Relaxed);
    }

    /// Makes the object found by its numbers, as long as it lives: they are being written down.
    pub fn save(&self) {
        if !self.saved.swap(true, Ordering::Relaxed) {
            SAVED.write().insert(self.numbers, self.this.clone());
        }
    }
    /// The object that was saved under these numbers.
    #[must_use]
    pub fn find(numbers: [u32; 3]) -> Option<Arc<MagicBinary>> {
        SAVED.read().get(&numbers)?.upgrade()
    }
    /// The numbers of the reference.
    #[must_use]
    pub(crate) fn ref_numbers(&self) -> [u32; 3] {
        self.numbers
    }
    /// What holds it: references and others.
    #[must_use]
    pub(crate) fn holders(&self) -> usize {
        self.this.strong_count()
    }
    /// The object, if it is a `T`.
    #[inline]
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.object.downcast_ref()
    }
}

impl Drop for MagicBinary {
    fn drop(&mut self) {
        if *self.saved.get_mut() {
            SAVED.write().remove(&self.numbers);
        }
        drop_in_turn(std::mem::replace(&mut self.object, Box::new(())));
    }
}

thread_local! {
    /// Objects that are to be dropped when the one that this thread drops now is; none while it drops none.
    static DROPPED: RefCell<Option<Vec<Object>>> = const { RefCell::new(None) };
}

/// Drops `object`. An object may hold the last reference to another, and so on to any depth (terms of match
/// specifications do): each is dropped after the one that held it, not within.
fn drop_in_turn(object: Object) {
    let mut object = Some(object);
    let is_first = DROPPED.try_with(|dropped| {
        let mut dropped = dropped.borrow_mut();
        let is_first = dropped.is_none();
        dropped.get_or_insert_default().extend(object.take());
        is_first
    });
    let next = || DROPPED.with_borrow_mut(|dropped| dropped.as_mut()?.pop());
    if is_first == Ok(true) {
        while let Some(object) = next() {
            drop(object);
        }
        DROPPED.set(None);
    }
}

/// Another node, or another incarnation of this one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// Its name.
    pub name: Atom,
    /// Its creation number.
    pub creation: u32,
}

/// Name and creation of this node, in the halves of a word, so that nobody sees one of them alone.
static THIS_NODE: AtomicU64 = AtomicU64::new(packed(am::nonode_at_nohost, 0));

const fn packed(name: Atom, creation: u32) -> u64 {
    (name.index() as u64) << 32 | creation as u64
}

/// Name and creation of this node, as pids, ports and references carry them. A load.
#[must_use]
pub(crate) fn this_node() -> (Atom, u32) {
    let packed = THIS_NODE.load(Ordering::Acquire);
    (Atom::from_index((packed >> 32) as u32), packed as u32)
}

/// The name of this node.
#[must_use]
pub(crate) fn node_name() -> Atom {
    this_node().0
}

/// The index of the name that this node had last.
static LAST_NAME: AtomicU32 = AtomicU32::new(am::nonode_at_nohost.index());

/// The name that this node has, or had before distribution stopped; none if it never had one.
pub(crate) fn last_node_name() -> Option<Atom> {
    let name = Atom::from_index(LAST_NAME.load(Ordering::Acquire));
    (name != am::nonode_at_nohost).then_some(name)
}

/// Has this node a name, by which others know it?
pub(crate) fn is_alive() -> bool {
    node_name() != am::nonode_at_nohost
}

/// Gives this node a name, or with `nonode@nohost` and 0 takes it away. Pids, ports and references that it made before
/// belong to it under any name.
pub(crate) fn set_this_node(name: Atom, creation: u32) {
    THIS_NODE.store(packed(name, creation), Ordering::Release);
    if is_alive() {
        LAST_NAME.store(name.index(), Ordering::Release);
    }
}

/// Nodes that terms name: for as long as one does.
static NODES: RwLock<Nodes> = RwLock::new(Nodes {
    known: BTreeMap::new(),
    cleared_at: 0,
});

struct Nodes {
    known: BTreeMap<(Atom, u32), Weak<Node>>,
    /// How many are known when those that no term names any more go: twice as many as were left the last time, so
    /// that each new one costs the same however many there are.
    cleared_at: usize,
}

impl Nodes {
    fn get(&self, key: (Atom, u32)) -> Option<Arc<Node>> {
        self.known.get(&key).and_then(Weak::upgrade)
    }

    fn add(&mut self, key: (Atom, u32), node: &Arc<Node>) {
        const FEW: usize = 16;
        if self.known.len() >= self.cleared_at {
            self.known.retain(|_, node| node.strong_count() > 0);
            self.cleared_at = 2 * self.known.len().max(FEW);
        }
        self.known.insert(key, Arc::downgrade(node));
    }
}

impl Node {
    /// The node of this name and creation.
    #[must_use]
    pub(crate) fn known_as(name: Atom, creation: u32) -> Arc<Node> {
        let key = (name, creation);
        if let Some(node) = NODES.read().get(key) {
            return node;
        }
        let mut nodes = NODES.write();
        if let Some(node) = nodes.get(key) {
            return node;
        }
        let node = Arc::new(Node { name, creation });
        nodes.add(key, &node);
        node
    }

    /// Does a term name a node of this name and creation?
    #[must_use]
    pub(crate) fn is_named(name: Atom, creation: u32) -> bool {
        NODES.read().get((name, creation)).is_some()
    }

    /// All nodes that terms name, each with the number of those.
    #[must_use]
    pub(crate) fn all() -> Vec<((Atom, u32), usize)> {
        let nodes = NODES.read();
        let known = nodes.known.iter();
        let counted = known.map(|(key, node)| (*key, node.strong_count()));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// The names of all nodes that terms name, each once.
    #[must_use]
    pub(crate) fn all_names() -> Vec<Atom> {
        let named = Node::all().into_iter().map(|((name, _), _)| name);
        let mut names: Vec<Atom> = named.collect();
        names.dedup();
        names
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[expect(dead_code, reason = "what it holds is dropped with it")]
    struct Holds(Option<Arc<MagicBinary>>, Arc<()>);

    #[test]
    fn objects_that_hold_each_other_are_dropped_one_by_one() {
        const MANY: usize = 200_000;
        let count = Arc::new(());
        let mut last = None;
        for _ in 0..MANY {
            let object = Holds(last.take(), count.clone());
            last = Some(MagicBinary::new([0; 3], Box::new(object)));
        }
        assert_eq!(Arc::strong_count(&count), MANY + 1);
        drop(last);
        assert_eq!(Arc::strong_count(&count), 1);
    }

    #[test]
    fn nodes_that_no_term_names_go() {
        let name = Atom::new("counted_tests@nowhere");
        let kept = Node::known_as(name, 0);
        for creation in 1..100_000 {
            drop(Node::known_as(name, creation));
        }
        assert!(Arc::ptr_eq(&kept, &Node::known_as(name, 0)));
        assert!(NODES.read().known.len() < 10_000);
    }
}
