//! Heaps, in which terms live.
//!
//! ```text
//! start          high_water     htop            stop              hend
//!   │ mature terms   │ new terms ▶ │     free      ◀ │ y registers, CPs │
//! ```
//! A process has one young block with its stack at the end, an old block after its first collections,
//! and a chain of fragments (messages it took, terms that BIFs built when the block was full).
//!
//! Everything rests on one rule: `&Heap` can allocate but never collects; `&mut Heap` may collect. So a
//! program cannot keep a term in hand across a collection:
//!
//! ```compile_fail,E0502
//! use beamline_runtime::heap::Heap;
//! use beamline_runtime::term::Term;
//!
//! let mut heap = Heap::new(233);
//! let stale = heap.tuple(&[Term::small(1)]);
//! heap.collect(0, &mut ()).unwrap();
//! assert_eq!(stale.as_tuple().unwrap().arity(), 1);
//! ```
//!
//! It can be used before the collection, or kept as a root:
//!
//! ```
//! use beamline_runtime::heap::Heap;
//! use beamline_runtime::term::Term;
//!
//! let mut heap = Heap::new(233);
//! let fresh = heap.tuple(&[Term::small(1)]);
//! assert_eq!(fresh.as_tuple().unwrap().arity(), 1);
//! heap.collect(0, &mut ()).unwrap();
//! ```
//!
//! ```
//! use beamline_runtime::heap::Heap;
//! use beamline_runtime::term::Term;
//!
//! let mut heap = Heap::new(233);
//! let kept = heap.root(heap.tuple(&[Term::small(1)]));
//! heap.collect(0, &mut ()).unwrap();
//! assert_eq!(heap.get(&kept).as_tuple().unwrap().arity(), 1);
//! ```
//!
//! A term cannot outlive its heap:
//!
//! ```compile_fail,E0505
//! use beamline_runtime::heap::Heap;
//! use beamline_runtime::term::Term;
//!
//! let heap = Heap::new(233);
//! let stale = heap.tuple(&[Term::small(1)]);
//! drop(heap);
//! assert_eq!(stale.as_tuple().unwrap().arity(), 1);
//! ```
//!
//! ```
//! use beamline_runtime::heap::Heap;
//! use beamline_runtime::term::Term;
//!
//! let heap = Heap::new(233);
//! let fresh = heap.tuple(&[Term::small(1)]);
//! assert_eq!(fresh.as_tuple().unwrap().arity(), 1);
//! drop(heap);
//! ```
//!
//! Nor can it go to another thread:
//!
//! ```compile_fail,E0277
//! use beamline_runtime::heap::Heap;
//! use beamline_runtime::term::Term;
//!
//! let heap = Heap::new(233);
//! let term = heap.tuple(&[Term::small(1)]);
//! std::thread::scope(|scope| {
//!     scope.spawn(move || assert_eq!(term.as_tuple().unwrap().arity(), 1));
//! });
//! ```
//!
//! but as a copy:
//!
//! ```
//! use beamline_runtime::heap::{Heap, Message};
//! use beamline_runtime::term::Term;
//!
//! let heap = Heap::new(233);
//! let copy = Message::copy_of(heap.tuple(&[Term::small(1)]));
//! std::thread::scope(|scope| {
//!     scope.spawn(move || assert_eq!(copy.term().as_tuple().unwrap().arity(), 1));
//! });
//! ```
//!
//! The compiler does not tell apart two heaps that are borrowed at once: a term of one that is put into the other
//! without a copy is found by the checks under the feature `gc_zeal`.
//!
//! Invariants:
//! - H1: `start <= high_water <= htop <= stop <= hend`, all in one allocation of `u64`s; words below
//!   `htop` are complete things or cells, words from `stop` on are terms, code addresses or catch tags.
//! - H2: a fragment belongs to exactly one owner: one message's chain, a [`Fragment`] value, or one heap's chain.
//! - H3: a heap is used by one thread at a time; its cells are never borrowed across a call.
//! - H4: a thing that holds a count is in exactly one off-heap list, the one of the heap it lies in, and
//!   gives its count up when the collector finds it dead or the heap ends.
//! - H5: a binary is grown only by the process that owns its one writable thing.
//! - H6: literals never move. Those of an area are freed with it. An area whose literals others may have read is given
//!   to `release`: when nothing names them any more, and every process has been found to hold none since, it is freed.
//!   So a literal that was named when a process read it is good as long as the process's heap is borrowed, and where
//!   its collector finds it.
//! - H8: a slot that [`Roots`] show holds a term of the heap that is collected, a literal, or what else a stack may hold.
//! - H7: a [`Stored`] object's block points to itself and to literals only.
//! - H9: the word of a [`Keyed`] object's key is an element of the object.
//! - H10: a prefetch of any address does not fault, and changes nothing but caches.
#![expect(unsafe_code, reason = "heaps are raw words")]

mod bits_copy;
mod build;
mod collect;
mod copy;
mod fragment;
mod keeps;
mod literal;
mod message;
mod off_heap;
pub(crate) mod release;
mod sizes;
mod stored;
#[cfg(test)]
mod tests;
mod verify;

use std::alloc::{Layout, alloc, dealloc};
use std::cell::{Cell, UnsafeCell};
use std::mem::offset_of;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicBool;

pub use crate::term::counted::{Binary, MagicBinary, Node, SharedBytes};
pub(crate) use crate::term::counted::{binary_bytes, binary_bytes_given_back, binary_bytes_taken};
pub use crate::term::entry::LiteralCell;
pub(crate) use bits_copy::{copy_bits, equal_bits, fill_bits, read_field, write_field};
pub(crate) use build::{write_bin_ref, write_heap_bits, write_sub_bits};
pub(crate) use collect::reclaimed_words;
pub use collect::{Collected, HeapLimit, Roots};
pub(crate) use copy::size_shared;
pub use copy::{Literals, heap_bits_words, size};
pub use fragment::Fragment;
pub use keeps::{Keeps, Visit};
pub(crate) use keeps::{holds_no_term, keeps};
pub(crate) use literal::used_bytes as literal_bytes;
pub use literal::{
    LiteralArea, LiteralSlot, LoneLiteral, build as build_literal, make as make_literal,
};
pub use message::Message;
pub(crate) use sizes::{heap_sizes, next_heap_size};
pub use stored::Stored;
pub(crate) use stored::{Keyed, fetch};
pub(crate) use verify::NIF_CHECKS;

use crate::sys::memory;
use crate::term::{CodeAddress, RawTerm, Term};
use fragment::{Fragments, Header};
pub(crate) use off_heap::Counted;
use off_heap::OffHeap;

/// Words between heap and stack that terms never take: a return address pushed without a frame, and the
/// frame of a call that a BIF or a breakpoint makes (`S_RESERVED`).
pub(crate) const RESERVED_WORDS: usize = 4;

/// A block of words.
pub(crate) struct Block {
    pub(crate) start: *mut u64,
    pub(crate) words: usize,
}

impl Block {
    pub(crate) const EMPTY: Block = Block {
        start: null_mut(),
        words: 0,
    };

    fn layout(words: usize) -> Layout {
        memory::layout_of_words(memory::HEAP, words)
    }
    pub(crate) fn new(words: usize) -> Block {
        if words == 0 {
            return Block::EMPTY;
        }
        let layout = Block::layout(words);
        // SAFETY: the layout is not empty.
        let start = memory::kept_for(memory::HEAP, || unsafe { alloc(layout) }).cast::<u64>();
        if start.is_null() {
            memory::cannot_allocate(memory::HEAP, layout.size());
        }
        HEAP_WORDS.fetch_add(words, std::sync::atomic::Ordering::Relaxed);
        let block = Block { start, words };
        if verify::ZEAL {
            block.poison();
        }
        block
    }
    pub(crate) fn end(&self) -> *mut u64 {
        self.start.wrapping_add(self.words)
    }
    pub(crate) fn contains(&self, ptr: *const u64) -> bool {
        (ptr as usize).wrapping_sub(self.start as usize) < self.words * 8
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.words != 0 {
            HEAP_WORDS.fetch_sub(self.words, std::sync::atomic::Ordering::Relaxed);
            // SAFETY: allocated by `new` with this layout.
            unsafe { dealloc(self.start.cast(), Block::layout(self.words)) };
        }
    }
}

static HEAP_WORDS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Bytes of all processes' heap blocks, for `erlang:memory(processes)`.
#[must_use]
pub(crate) fn heap_bytes() -> usize {
    HEAP_WORDS.load(std::sync::atomic::Ordering::Relaxed) * 8
}

/// A heap and the stack at its end.
pub struct Heap {
    block: Block,
    pub(crate) htop: Cell<*mut u64>,
    pub(crate) stop: Cell<*mut u64>,
    high_water: *mut u64,
    old: Block,
    old_top: *mut u64,
    fragments: Cell<Option<NonNull<Header>>>,
    /// Words in use in the fragments (`mbuf_sz`).
    fragment_words: Cell<usize>,
    off_heap: OffHeap,
    old_off_heap: OffHeap,
    /// Terms kept by native code across collections; see [`Root`].
    roots: UnsafeCell<Vec<RawTerm>>,
    /// What a sweep has emptied, kept until the off-heap lists have been walked.
    retired: (Block, Option<NonNull<Header>>),
    /// Collections since the last full sweep, and how many there may be.
    pub(crate) gen_gcs: u32,
    pub(crate) max_gen_gcs: u32,
    pub(crate) min_heap_words: usize,
    pub(crate) min_bin_vheap_words: usize,
    bin_vheap_limit: usize,
    bin_old_vheap: usize,
    bin_old_vheap_limit: usize,
    pub(crate) max_heap_words: usize,
    /// Off-heap binaries count towards it.
    pub(crate) max_heap_has_binaries: bool,
    grow_next: bool,
    pub(crate) need_fullsweep: bool,
    /// It is being collected, for others to see.
    pub(crate) collects: AtomicBool,
    pub(crate) minor_gcs: u64,
    pub(crate) reclaimed_words: u64,
    /// Words that were allocated since the collection before, at each collection.
    collected_words: u64,
    /// Words of messages that have been examined and not taken: nobody has allocated them.
    unclaimed_words: Cell<u64>,
    /// The function whose calls compiled code counts as long as words are allocated by `htop` alone (`trace/costs/in_line.rs`).
    /// Whatever else changes [`Heap::allocated_words`], or what `htop` is counted from, sets it to null.
    pub(crate) runs_on: Cell<CodeAddress>,
}

// SAFETY: H3: a heap moves between threads with its process, never shared.
unsafe impl Send for Heap {}

/// A term kept across collections by native code: an index, not an address.
#[derive(Debug)]
pub struct Root(u32);

impl Heap {
    /// A heap of `min_words` (rounded up as ERTS rounds), its stack empty.
    #[must_use]
    pub fn new(min_words: usize) -> Heap {
        let words = next_heap_size(min_words, false);
        let block = Block::new(words);
        let (start, end) = (block.start, block.end());
        let mut heap = Heap::detached();
        heap.htop = Cell::new(start);
        heap.stop = Cell::new(end);
        heap.high_water = start;
        heap.block = block;
        heap.min_heap_words = words;
        heap
    }

    /// A heap without a block: all it builds goes to fragments. For terms kept outside processes.
    #[must_use]
    pub fn detached() -> Heap {
        Heap {
            block: Block::EMPTY,
            htop: Cell::new(null_mut()),
            stop: Cell::new(null_mut()),
            high_water: null_mut(),
            old: Block::EMPTY,
            old_top: null_mut(),
            fragments: Cell::new(None),
            fragment_words: Cell::new(0),
            off_heap: OffHeap::default(),
            old_off_heap: OffHeap::default(),
            roots: UnsafeCell::new(Vec::new()),
            retired: (Block::EMPTY, None),
            gen_gcs: 0,
            max_gen_gcs: u32::MAX,
            min_heap_words: 0,
            min_bin_vheap_words: sizes::MIN_VHEAP_WORDS,
            bin_vheap_limit: sizes::MIN_VHEAP_WORDS,
            bin_old_vheap: 0,
            bin_old_vheap_limit: sizes::MIN_VHEAP_WORDS,
            max_heap_words: 0,
            max_heap_has_binaries: false,
            grow_next: false,
            need_fullsweep: false,
            collects: AtomicBool::new(false),
            minor_gcs: 0,
            reclaimed_words: 0,
            collected_words: 0,
            unclaimed_words: Cell::new(0),
            runs_on: Cell::new(CodeAddress::NULL),
        }
    }

    /// `words` fresh words, in the block or else in a fragment. Never collects.
    ///
    /// The caller fills all of them with complete things before anything looks at the heap.
    #[inline]
    pub(crate) fn alloc(&self, words: usize) -> *mut u64 {
        let top = self.htop.get();
        if (self.stop.get() as usize) - (top as usize) >= (words + RESERVED_WORDS) * 8 {
            self.htop.set(top.wrapping_add(words));
            return top;
        }
        self.outgrow(words)
    }

    #[cold]
    fn outgrow(&self, words: usize) -> *mut u64 {
        self.alloc_in_fragment(words)
    }

    /// `words` fresh words, always in a fragment. Source: `HeapFragOnlyAlloc`.
    #[inline]
    pub(crate) fn alloc_in_fragment(&self, words: usize) -> *mut u64 {
        if let Some(fragment) = self.fragments.get() {
            // SAFETY: H2: the chain's fragments are ours.
            let header = unsafe { fragment.as_ref() };
            let used = header.used_words();
            if header.capacity_words() - used >= words {
                header.set_used_words(used + words);
                self.runs_on.set(CodeAddress::NULL);
                self.fragment_words.set(self.fragment_words.get() + words);
                return Header::words(fragment).wrapping_add(used);
            }
        }
        self.alloc_in_new_fragment(words)
    }

    #[cold]
    fn alloc_in_new_fragment(&self, words: usize) -> *mut u64 {
        // Grows with what has been built, so that a BIF that builds a long list takes few of them.
        let capacity = words.max(self.fragment_words.get().clamp(32, 64 * 1024));
        let fragment = Fragment::with_capacity(capacity);
        fragment.header().set_used_words(words);
        let ptr = fragment.words();
        self.push_fragment(fragment);
        ptr
    }

    fn push_fragment(&self, fragment: Fragment) {
        self.runs_on.set(CodeAddress::NULL);
        self.fragment_words
            .set(self.fragment_words.get() + fragment.used_words());
        self.off_heap.append(&fragment.header().off_heap);
        let raw = fragment.into_raw();
        // SAFETY: H2: ours now.
        unsafe { raw.as_ref() }.next.set(self.fragments.get());
        self.fragments.set(Some(raw));
    }

    /// What `build` makes; the heap is afterwards as it was before.
    ///
    /// # Safety
    /// H1: no term that is built meanwhile is used afterwards, and nothing is collected.
    pub(crate) unsafe fn aside<R>(&self, build: impl FnOnce() -> R) -> R {
        let (htop, words) = (self.htop.get(), self.fragment_words.get());
        let (first_fragment, first_thing) = (self.fragments.get(), self.off_heap.first());
        // SAFETY: H2: the chain's fragments are ours.
        let used = first_fragment.map_or(0, |first| unsafe { first.as_ref() }.used_words());
        let made = build();
        // SAFETY: H4: by contract nothing reads what was built.
        unsafe { self.off_heap.release_until(first_thing) };
        while self.fragments.get() != first_fragment {
            let Some(fragment) = self.fragments.get() else {
                break;
            };
            // SAFETY: H2: out of the chain, which it was pushed to meanwhile.
            unsafe {
                self.fragments.set(fragment.as_ref().next.get());
                drop(Fragment::from_raw(fragment));
            }
        }
        if let Some(first) = first_fragment {
            // SAFETY: H2: it is in the chain still.
            unsafe { first.as_ref() }.set_used_words(used);
        }
        self.fragment_words.set(words);
        self.htop.set(htop);
        made
    }

    /// Takes over `fragment`: its terms are this heap's from now on. `root`, a term of it, is in hand.
    pub fn attach<'h>(&'h self, message: Message) -> Term<'h> {
        let Message { fragments, root } = message;
        if let Some(fragments) = fragments {
            fragments.each(|fragment| self.push_fragment(fragment));
        }
        // SAFETY: T1: the fragments that hold it are ours now, or it is a literal or an immediate.
        unsafe { Term::new(root) }
    }

    /// Takes over the fragments of `message` and leaves it as a slot that refers to this heap, which the
    /// collector must see from now on ([`Message::attached_root`]).
    pub(crate) fn attach_in_place(&self, message: &mut Message) -> RawTerm {
        if let Some(fragments) = message.fragments.take() {
            fragments.each(|fragment| self.push_fragment(fragment));
        }
        message.root
    }

    /// As [`Heap::attach_in_place`], of a copy, of `words` words ([`Literals::Count`]), for which this heap's block has
    /// room.
    pub(crate) fn copy_in_place(&self, message: &mut Message, words: usize) {
        let root = self.copy_in_sized(message.term(), words).raw();
        *message = Message {
            fragments: None,
            root,
        };
    }

    /// Takes over all that a heap without a block has: its terms are this heap's from now on.
    pub(crate) fn adopt(&self, other: Heap) {
        debug_assert!(other.block.start.is_null(), "it has fragments only");
        self.off_heap.append(&other.off_heap);
        let mut next = other.fragments.take();
        while let Some(fragment) = next {
            // SAFETY: H2: taken out of the chain of `other`, which has given its counts up.
            let fragment = unsafe {
                next = fragment.as_ref().next.get();
                Fragment::from_raw(fragment)
            };
            self.push_fragment(fragment);
        }
    }

    /// All that a heap without a block has; none where that is nothing.
    fn into_fragments(self) -> Option<Fragments> {
        debug_assert!(self.block.start.is_null(), "it has fragments only");
        let first = self.fragments.take()?;
        // SAFETY: H2: the heap has just lost them.
        let fragments = unsafe { Fragments::of_chain(first) };
        fragments.off_heap().append(&self.off_heap);
        Some(fragments)
    }

    /// A copy of `term`, of any heap, in this one.
    pub(crate) fn copy_in<'h>(&'h self, term: Term<'_>) -> Term<'h> {
        if term.raw().is_immed() {
            return Term::immed(term.raw());
        }
        let words = size(term, Literals::Share);
        let mut hp = self.alloc(words);
        // SAFETY: T1: `term` is in hand; H1: `words` are free at `hp`.
        unsafe { Term::new(copy::copy(term.raw(), &mut hp, &self.off_heap)) }
    }

    /// A copy of `term`, of any heap, in this one; literals in it are copied too.
    pub(crate) fn copy_in_all<'h>(&'h self, term: Term<'_>) -> Term<'h> {
        self.copy_in_sized(term, size(term, Literals::Count))
    }

    /// As [`Heap::copy_in_all`], of a term that takes `words` words ([`Literals::Count`]).
    #[inline]
    pub(crate) fn copy_in_sized<'h>(&'h self, term: Term<'_>, words: usize) -> Term<'h> {
        if words == 0 {
            // SAFETY: T1: an immediate, or the empty tuple, which stays for ever.
            return unsafe { Term::new(term.raw()) };
        }
        let mut hp = self.alloc(words);
        // SAFETY: T1: `term` is in hand; H1: `words` are free at `hp`.
        unsafe { Term::new(copy::copy_all(term.raw(), &mut hp, &self.off_heap)) }
    }

    /// Takes all that was built on this detached heap as a message with `root`.
    ///
    /// # Panics
    /// When the heap has a block.
    #[must_use]
    pub(crate) fn into_message(self, root: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) -> Message {
        let root = root(&self);
        Message::copy_of(root)
    }

    /// Keeps `term` across collections.
    #[must_use]
    pub fn root(&self, term: Term<'_>) -> Root {
        // SAFETY: H3: nothing else borrows the vector across this line.
        let roots = unsafe { &mut *self.roots.get() };
        roots.push(term.raw());
        Root(roots.len() as u32 - 1)
    }

    /// The term a root keeps.
    #[must_use]
    pub fn get<'h>(&'h self, root: &Root) -> Term<'h> {
        // SAFETY: H3, T1: the collector keeps roots up to date.
        unsafe { Term::new((&*self.roots.get())[root.0 as usize]) }
    }

    /// Is `term` a literal that is no immediate?
    pub(crate) fn is_literal(&self, term: Term<'_>) -> bool {
        !term.raw().is_immed() && literal::contains(term.raw().ptr())
    }

    /// Is `term` an immediate, a literal, or in this heap? Costs a look at each fragment.
    #[must_use]
    pub fn owns(&self, term: Term<'_>) -> bool {
        let raw = term.raw();
        raw.is_immed() || literal::contains(raw.ptr()) || self.contains(raw.ptr())
    }

    fn contains(&self, ptr: *const u64) -> bool {
        if self.block.contains(ptr) || self.old.contains(ptr) {
            return true;
        }
        let mut next = self.fragments.get();
        while let Some(fragment) = next {
            // SAFETY: H2: the chain's fragments are ours.
            let header = unsafe { fragment.as_ref() };
            let words = Header::words(fragment) as usize;
            if (ptr as usize).wrapping_sub(words) < header.capacity_words() * 8 {
                return true;
            }
            next = header.next.get();
        }
        false
    }

    /// Words between heap top and stack top, those kept for the stack left out.
    #[inline]
    #[must_use]
    pub(crate) fn free_words(&self) -> usize {
        ((self.stop.get() as usize - self.htop.get() as usize) / 8).saturating_sub(RESERVED_WORDS)
    }
    /// Words of the young block (`heap_size`).
    #[must_use]
    pub(crate) fn block_words(&self) -> usize {
        self.block.words
    }
    /// Words in use in the young block.
    #[must_use]
    pub(crate) fn used_words(&self) -> usize {
        (self.htop.get() as usize - self.block.start as usize) / 8
    }
    /// Words in use on the stack.
    #[must_use]
    pub(crate) fn stack_words(&self) -> usize {
        (self.block.end() as usize - self.stop.get() as usize) / 8
    }
    /// Words of the old block, and in use in it.
    #[must_use]
    pub(crate) fn old_words(&self) -> (usize, usize) {
        (
            self.old.words,
            (self.old_top as usize - self.old.start as usize) / 8,
        )
    }
    /// Fragments in the chain.
    #[must_use]
    pub(crate) fn fragment_count(&self) -> usize {
        let after = |fragment: &NonNull<Header>| {
            // SAFETY: H2: the chain's fragments are ours.
            unsafe { fragment.as_ref() }.next.get()
        };
        std::iter::successors(self.fragments.get(), after).count()
    }
    /// Words in fragments (`mbuf_size`).
    #[must_use]
    pub(crate) fn fragment_words(&self) -> usize {
        self.fragment_words.get()
    }
    /// Words allocated before the last collection since the process began, messages it took included.
    #[inline]
    #[must_use]
    pub(crate) fn collected_words(&self) -> u64 {
        self.collected_words
    }
    /// Words allocated since the process began, messages it took included. Only differences mean anything
    /// to a program: a message given back makes the number smaller. Source: `get_allocated_words()` in
    /// `beam_bp.c`.
    #[inline]
    #[must_use]
    pub(crate) fn allocated_words(&self) -> u64 {
        self.built_words().wrapping_sub(self.unclaimed_words.get())
    }
    /// Words allocated since the process began, messages it has examined and not taken included.
    fn built_words(&self) -> u64 {
        let young = (self.htop.get() as usize).wrapping_sub(self.high_water as usize) / 8;
        self.collected_words + (young + self.fragment_words.get()) as u64
    }
    /// `words` words of a message are the heap's, and the process has not taken the message.
    pub(crate) fn claim_later(&self, words: usize) {
        self.runs_on.set(CodeAddress::NULL);
        self.unclaimed_words
            .set(self.unclaimed_words.get() + words as u64);
    }
    /// It has been taken.
    #[inline]
    pub(crate) fn claim(&self, words: usize) {
        self.runs_on.set(CodeAddress::NULL);
        self.unclaimed_words
            .set(self.unclaimed_words.get().saturating_sub(words as u64));
    }
    /// Words that it has already count as allocated once more.
    pub(crate) fn count_again(&mut self, words: usize) {
        self.runs_on.set(CodeAddress::NULL);
        self.collected_words += words as u64;
    }
    /// Words in use below the high-water mark (`recent_size`'s complement).
    #[must_use]
    pub(crate) fn mature_words(&self) -> usize {
        (self.high_water as usize - self.block.start as usize) / 8
    }
    /// Has the virtual binary heaps of a new process be as large as its minimum says.
    pub(crate) fn apply_min_bin_vheap(&mut self) {
        self.bin_vheap_limit = self.min_bin_vheap_words;
        self.bin_old_vheap_limit = self.bin_vheap_limit;
    }
    /// Virtual binary heap: words in use and limit, young and old.
    #[must_use]
    pub(crate) fn bin_vheap(&self) -> [usize; 4] {
        let young = self.off_heap.overhead_words.get();
        [
            young,
            self.bin_vheap_limit,
            self.bin_old_vheap,
            self.bin_old_vheap_limit,
        ]
    }
    /// Did the thing at `ptr` come after the last collection, so that a term in the young block may be
    /// put into it?
    #[inline]
    pub(crate) fn is_above_high_water(&self, ptr: *const u64) -> bool {
        ptr >= self.high_water.cast_const() && ptr < self.htop.get().cast_const()
    }
    /// First word of the stack (highest address).
    #[inline]
    pub(crate) fn hend(&self) -> *mut u64 {
        self.block.end()
    }
    /// Ought to collect at the end of a BIF or of a time slice: there is less room left than the fragments take, or
    /// binaries weigh too much. Source: `ERTS_IS_GC_DESIRED`.
    #[inline]
    #[must_use]
    pub(crate) fn wants_collection(&self) -> bool {
        let room = (self.stop.get() as usize - self.htop.get() as usize) / 8;
        self.has_many_binaries() || room < self.fragment_words.get()
    }
    /// Offset of where what has survived a collection ends.
    pub(crate) const HIGH_WATER: usize = offset_of!(Heap, high_water);
    /// Offsets of the words counted before what is behind that, of those in fragments, and of those not taken yet.
    pub(crate) const COLLECTED_WORDS: usize = offset_of!(Heap, collected_words);
    pub(crate) const FRAGMENT_WORDS: usize = offset_of!(Heap, fragment_words);
    pub(crate) const UNCLAIMED_WORDS: usize = offset_of!(Heap, unclaimed_words);
    /// Offset of whether it is being collected.
    pub(crate) const COLLECTS: usize = offset_of!(Heap, collects);
    /// Offset of the first word of its block.
    pub(crate) const START: usize = offset_of!(Heap, block) + offset_of!(Block, start);
    /// Offset of the number of words of its block.
    pub(crate) const WORDS: usize = offset_of!(Heap, block) + offset_of!(Block, words);
    /// Offset of the function whose calls compiled code counts.
    pub(crate) const RUNS_ON: usize = offset_of!(Heap, runs_on);
    /// Offset of the words that binaries count as.
    pub(crate) const OVERHEAD_WORDS: usize =
        offset_of!(Heap, off_heap) + offset_of!(OffHeap, overhead_words);
    /// Offset of their limit.
    pub(crate) const OVERHEAD_LIMIT: usize = offset_of!(Heap, bin_vheap_limit);
    /// Ought to collect before it makes a binary.
    #[inline]
    pub(crate) fn has_many_binaries(&self) -> bool {
        verify::ZEAL || self.off_heap.overhead_words.get() > self.bin_vheap_limit
    }
    /// Collects at every safepoint: in tests.
    #[inline]
    pub(crate) const fn is_zealous() -> bool {
        verify::ZEAL
    }
    pub(crate) fn off_heap(&self) -> &OffHeap {
        &self.off_heap
    }
    /// Counts a binary of the young generation that grew from `from` to `to` bytes.
    pub(crate) fn note_binary_growth(&self, from: usize, to: usize) {
        let words = &self.off_heap.overhead_words;
        words.set(words.get() + to / 8 - from / 8);
    }
    /// Every off-heap binary the heap refers to, once for each thing that does.
    pub(crate) fn binaries(&self) -> impl Iterator<Item = HeldBinary> {
        binaries_in(&self.off_heap).chain(binaries_in(&self.old_off_heap))
    }
    /// What the things of the heap hold counts of, once for each thing, those that are garbage included.
    pub(crate) fn counted(&self) -> impl Iterator<Item = Counted<'_>> {
        self.off_heap.counted().chain(self.old_off_heap.counted())
    }
}

/// What `build` makes on a heap of exactly these `words` words at `room`; counts go to `off_heap`.
///
/// # Safety
/// The words are free, and the caller's; `build` allocates no more than them.
unsafe fn copy_into(
    room: *mut u64,
    words: usize,
    off_heap: &OffHeap,
    build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>,
) -> RawTerm {
    let heap = Heap::detached();
    heap.htop.set(room);
    // No stack is ever pushed: what is kept for one need not be there.
    heap.stop.set(room.wrapping_add(words + RESERVED_WORDS));
    let raw = build(&heap).raw();
    debug_assert_eq!(
        heap.htop.get(),
        room.wrapping_add(words),
        "size and copy agree"
    );
    assert!(heap.fragments.get().is_none(), "size and copy agree");
    off_heap.append(&heap.off_heap);
    raw
}

/// An off-heap binary that something refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldBinary {
    /// What tells it from others.
    pub(crate) address: usize,
    /// Its size.
    pub(crate) bytes: usize,
    /// How many things refer to it, on all heaps.
    pub(crate) holders: usize,
}

fn binaries_in(list: &OffHeap) -> impl Iterator<Item = HeldBinary> {
    list.counted().filter_map(|counted| match counted {
        Counted::Binary(binary) => Some(HeldBinary {
            address: binary.name(),
            bytes: binary.kept_bytes(),
            holders: binary.refs(),
        }),
        Counted::Magic(_) | Counted::Node(_) => None,
    })
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: H4: the heap ends; `&mut` says that no term of it is in hand.
        unsafe {
            self.off_heap.release_all();
            self.old_off_heap.release_all();
        }
        self.free_fragments(self.fragments.get());
    }
}

impl Heap {
    fn free_fragments(&self, mut next: Option<NonNull<Header>>) {
        while let Some(fragment) = next {
            // SAFETY: H2: taken out of the chain; its counts are in the heap's own list.
            unsafe {
                next = fragment.as_ref().next.get();
                let fragment = Fragment::from_raw(fragment);
                if verify::POISONS {
                    fragment.poison();
                }
                drop(fragment);
            }
        }
    }
}
