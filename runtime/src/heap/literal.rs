//! Literals: terms of loaded modules, of `persistent_term` and of the runtime itself, that no heap owns. They lie in
//! one reserved range of addresses, so that a collector tells them from heap terms by two comparisons.
//!
//! The maker of literals keeps them in a [`LiteralArea`] of its own and gives that up as a whole ([`super::release`]).
//! Literals made by [`make`] and [`build`] stay for ever.

use crate::hash::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::off_heap::{Counted, OffHeap};
use super::verify::ZEAL;
use super::{Heap, copy};
use crate::sys::memory;
use crate::term::entry::LiteralCell;
use crate::term::{RawTerm, Term, tag};

/// Addresses reserved; memory is taken only where it is written.
const RESERVED_BYTES: usize = 4 << 30;

/// Bytes that areas take from the range at once.
const CHUNK_BYTES: usize = 4096;

/// What is given back in larger pieces goes back to the system.
const RETURNED_BYTES: usize = 1 << 16;

const PAGE_BYTES: usize = 4096;

static START: AtomicUsize = AtomicUsize::new(0);
static USED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Addresses `from..to`.
type Range = std::ops::Range<usize>;

/// The free part of the reserved range.
struct Space {
    /// Pieces by address: start and bytes. No two of them touch.
    free: BTreeMap<usize, usize>,
    /// These pieces by size: bytes and start.
    by_size: BTreeSet<(usize, usize)>,
}

fn space() -> &'static Mutex<Space> {
    static SPACE: OnceLock<Mutex<Space>> = OnceLock::new();
    SPACE.get_or_init(|| {
        let start = reserve();
        START.store(start, Ordering::Release);
        let mut space = Space {
            free: BTreeMap::new(),
            by_size: BTreeSet::new(),
        };
        space.add(start, RESERVED_BYTES);
        Mutex::new(space)
    })
}

impl Space {
    fn add(&mut self, start: usize, bytes: usize) {
        self.free.insert(start, bytes);
        self.by_size.insert((bytes, start));
    }

    fn remove(&mut self, start: usize) -> Option<usize> {
        let bytes = self.free.remove(&start)?;
        self.by_size.remove(&(bytes, start));
        Some(bytes)
    }

    /// The start of `bytes` that are the caller's from now on: of the smallest piece that has them.
    fn take(&mut self, bytes: usize) -> usize {
        let fit = self.by_size.range((bytes, 0)..).next().copied();
        let Some((found, start)) = fit else {
            memory::cannot_allocate(memory::LITERAL, bytes)
        };
        self.remove(start);
        if found > bytes {
            self.add(start + bytes, found - bytes);
        }
        start
    }

    fn give_back(&mut self, range: &Range) {
        let (mut start, mut end) = (range.start, range.end);
        let before = self.free.range(..start).next_back();
        if let Some((&from, _)) = before.filter(|(from, bytes)| **from + **bytes == start) {
            self.remove(from);
            start = from;
        }
        if let Some(bytes) = self.remove(end) {
            end += bytes;
        }
        self.add(start, end - start);
    }

    fn is_free(&self, at: usize) -> bool {
        let piece = self.free.range(..=at).next_back();
        piece.is_some_and(|(start, bytes)| at < start + bytes)
    }
}

fn reserve() -> usize {
    // SAFETY: an anonymous mapping of fresh addresses; touches no other memory.
    let ptr = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            RESERVED_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if ptr == libc::MAP_FAILED {
        memory::cannot_allocate(memory::LITERAL, RESERVED_BYTES);
    }
    ptr as usize
}

/// The range literals lie in: `[start, end)`. Empty until the first literal is made.
#[inline]
#[must_use]
pub(crate) fn range() -> (usize, usize) {
    let start = START.load(Ordering::Relaxed);
    (
        start,
        if start == 0 {
            0
        } else {
            start + RESERVED_BYTES
        },
    )
}

/// Is `ptr` the address of a literal?
#[inline]
#[must_use]
pub(crate) fn contains(ptr: *const u64) -> bool {
    (ptr as usize).wrapping_sub(START.load(Ordering::Relaxed)) < RESERVED_BYTES
        && START.load(Ordering::Relaxed) != 0
}

/// Is `ptr` the address of a literal that has not been given up? For checks: slow.
pub(super) fn is_live(ptr: *const u64) -> bool {
    contains(ptr) && !space().lock().is_free(ptr as usize)
}

/// Bytes in use, for `erlang:memory`.
#[must_use]
pub(crate) fn used_bytes() -> usize {
    USED_BYTES.load(Ordering::Relaxed)
}

/// Literals of one owner.
///
/// H6: its words below `top` (and all of its ranges but the last) hold literals, which never change or move;
/// those above are free. Dropping it frees them, which is right only where nobody can have got at one: else it
/// is given to [`super::release::release`].
#[derive(Default)]
pub struct LiteralArea {
    ranges: Vec<Range>,
    /// First free address of the last range.
    top: usize,
    /// Holds the counts of off-heap things among the literals.
    off_heap: OffHeap,
}

// SAFETY: H6: an area is changed by its one owner; its literals are only read.
unsafe impl Send for LiteralArea {}

impl LiteralArea {
    /// None yet.
    #[must_use]
    pub fn new() -> LiteralArea {
        LiteralArea::default()
    }

    /// Where its literals lie.
    pub(super) fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// What its literals hold counts of, as [`Heap::counted`].
    pub(crate) fn counted(&self) -> impl Iterator<Item = Counted<'_>> {
        self.off_heap.counted()
    }

    /// Has it no literal at all?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// `words` free words.
    fn room(&mut self, words: usize) -> *mut u64 {
        let bytes = words * 8;
        let end = self.ranges.last().map_or(0, |range| range.end);
        if self.top + bytes > end {
            self.trim();
            let taken = bytes.max(CHUNK_BYTES);
            let start = space().lock().take(taken);
            USED_BYTES.fetch_add(taken, Ordering::Relaxed);
            self.ranges.push(start..start + taken);
            self.top = start;
        }
        let room = self.top;
        self.top += bytes;
        room as *mut u64
    }

    /// Words that it takes.
    #[must_use]
    pub fn words(&self) -> usize {
        self.ranges.iter().map(|range| range.len() / 8).sum()
    }

    /// Gives back what is not used; for owners that make no more.
    pub fn trim(&mut self) {
        if let Some(range) = self.ranges.last_mut() {
            let rest = self.top..range.end;
            range.end = self.top;
            if !rest.is_empty() {
                free(&rest);
            }
        }
    }

    /// Copies `term`, other literals in it included, to the area. The literal lives as long as the area, and is in
    /// hand as long as that is borrowed:
    ///
    /// ```compile_fail,E0505
    /// use beamline_runtime::heap::LiteralArea;
    /// use beamline_runtime::term::Term;
    ///
    /// let mut area = LiteralArea::new();
    /// let stale = area.build(|heap| heap.tuple(&[Term::small(1)]));
    /// drop(area);
    /// assert_eq!(stale.as_tuple().unwrap().arity(), 1);
    /// ```
    ///
    /// ```
    /// use beamline_runtime::heap::LiteralArea;
    /// use beamline_runtime::term::Term;
    ///
    /// let mut area = LiteralArea::new();
    /// let literal = area.build(|heap| heap.tuple(&[Term::small(1)]));
    /// assert_eq!(literal.as_tuple().unwrap().arity(), 1);
    /// drop(area);
    /// ```
    ///
    /// # Panics
    /// When four gigabytes of literals are in use.
    pub fn make(&mut self, term: Term<'_>) -> Term<'_> {
        let raw = self.add(term);
        // SAFETY: T1, H6: the area is borrowed.
        unsafe { Term::new(raw) }
    }

    /// As [`LiteralArea::make`], as a word at rest.
    fn add(&mut self, term: Term<'_>) -> RawTerm {
        let words = copy::size(term, copy::Literals::Count);
        if words == 0 {
            // An immediate, or the empty tuple, which stays for ever.
            return term.raw();
        }
        let room = self.room(words);
        let mut hp = room;
        // SAFETY: H6: `words` free words of this area; the copy is complete before it is used.
        let raw = unsafe { copy::copy_all(term.raw(), &mut hp, &self.off_heap) };
        debug_assert_eq!(hp, room.wrapping_add(words), "size and copy agree");
        raw
    }

    /// As [`LiteralArea::make`]; parts that are shared in `term` stay shared.
    ///
    /// # Panics
    /// As [`LiteralArea::make`].
    pub(crate) fn make_sharing(&mut self, term: Term<'_>) -> Term<'_> {
        let words = copy::size_shared_all(term);
        let room = self.room(words);
        // SAFETY: H6: `words` free words of this area, which the copy takes.
        let raw = unsafe {
            super::copy_into(room, words, &self.off_heap, |heap| {
                heap.copy_whole(term, &mut HashMap::default())
            })
        };
        // SAFETY: T1, H6: the area is borrowed.
        unsafe { Term::new(raw) }
    }

    /// Builds a literal with `build` on a heap of its own.
    pub fn build(&mut self, build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) -> Term<'_> {
        let scratch = Heap::detached();
        self.make(build(&scratch))
    }
}

fn free(range: &Range) {
    USED_BYTES.fetch_sub(range.len(), Ordering::Relaxed);
    if range.len() >= RETURNED_BYTES {
        let from = range.start.next_multiple_of(PAGE_BYTES);
        let bytes = range.end / PAGE_BYTES * PAGE_BYTES - from;
        // SAFETY: H6: whole pages of a range that is nobody's any more: they read as zeros if used again.
        unsafe { libc::madvise(from as *mut libc::c_void, bytes, libc::MADV_DONTNEED) };
    }
    space().lock().give_back(range);
}

impl Drop for LiteralArea {
    fn drop(&mut self) {
        // SAFETY: H4, H6: nobody reads the literals any more.
        unsafe { self.off_heap.release_all() };
        for range in &self.ranges {
            if ZEAL {
                // SAFETY: H6: the area's own words.
                unsafe { std::ptr::write_bytes(range.start as *mut u8, 0xdb, range.len()) };
            }
            free(range);
        }
    }
}

/// The literals that stay for ever.
static PERMANENT: Mutex<Option<LiteralArea>> = Mutex::new(None);

/// Copies `term` to the literals, where it stays for ever.
///
/// # Panics
/// When four gigabytes of literals are in use.
#[must_use]
pub fn make(term: Term<'_>) -> Term<'static> {
    let raw = PERMANENT.lock().get_or_insert_default().add(term);
    // SAFETY: T1, H6: nothing takes the area out, and so it stays for ever.
    unsafe { Term::new(raw) }
}

/// Builds a literal that stays for ever with `build` on a heap of its own.
#[must_use]
pub fn build(build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>) -> Term<'static> {
    let scratch = Heap::detached();
    make(build(&scratch))
}

/// A literal in an area of its own, which is given up with the literal: it is freed when nobody has the literal any
/// more.
pub struct LoneLiteral {
    area: LiteralArea,
    root: RawTerm,
}

// SAFETY: H6: literals are only read, and the area is not reached while this is shared.
unsafe impl Sync for LoneLiteral {}

impl LoneLiteral {
    /// A copy of `term`; parts that are shared stay shared.
    ///
    /// # Panics
    /// As [`LiteralArea::make`].
    #[must_use]
    pub fn new(term: Term<'_>) -> Arc<LoneLiteral> {
        let mut area = LiteralArea::new();
        let root = area.make_sharing(term).raw();
        area.trim();
        Arc::new(LoneLiteral { area, root })
    }

    /// The literal.
    #[must_use]
    pub fn term(&self) -> Term<'_> {
        // SAFETY: T1, H6: it is of the area that lies beside it.
        unsafe { Term::new(self.root) }
    }

    /// Words that it takes.
    #[must_use]
    pub fn words(&self) -> usize {
        self.area.words()
    }

    /// What it holds counts of, as [`Heap::counted`].
    pub(crate) fn counted(&self) -> impl Iterator<Item = Counted<'_>> {
        self.area.counted()
    }
}

impl Drop for LoneLiteral {
    /// A process that has read it from a [`LiteralSlot`] may still have it in hand, or on a heap.
    fn drop(&mut self) {
        super::release::release(std::mem::take(&mut self.area));
    }
}

/// A slot for a literal that other literals replace. It is read without a lock.
#[derive(Default)]
pub struct LiteralSlot {
    /// The literal's word; no term where there is none. Behind the lock, what keeps it alive.
    root: AtomicU64,
    held: Mutex<Option<Arc<LoneLiteral>>>,
}

impl LiteralSlot {
    /// What was put there last: for the owner of `heap` in its time slice. At its end there may be a copy instead:
    ///
    /// ```compile_fail,E0502
    /// use beamline_runtime::heap::{Heap, LiteralSlot, LoneLiteral};
    /// use beamline_runtime::term::Term;
    ///
    /// let (slot, mut heap) = (LiteralSlot::default(), Heap::new(233));
    /// slot.set(Some(LoneLiteral::new(heap.tuple(&[Term::small(1)]))));
    /// let stale = slot.get(&heap).unwrap();
    /// heap.collect(0, &mut ()).unwrap();
    /// assert_eq!(stale.as_tuple().unwrap().arity(), 1);
    /// ```
    ///
    /// ```
    /// use beamline_runtime::heap::{Heap, LiteralSlot, LoneLiteral};
    /// use beamline_runtime::term::Term;
    ///
    /// let (slot, mut heap) = (LiteralSlot::default(), Heap::new(233));
    /// slot.set(Some(LoneLiteral::new(heap.tuple(&[Term::small(1)]))));
    /// heap.collect(0, &mut ()).unwrap();
    /// let fresh = slot.get(&heap).unwrap();
    /// assert_eq!(fresh.as_tuple().unwrap().arity(), 1);
    /// # std::mem::forget(slot);
    /// ```
    #[inline]
    #[must_use]
    pub fn get<'h>(&self, _heap: &'h Heap) -> Option<Term<'h>> {
        let raw = RawTerm(self.root.load(Ordering::Acquire));
        // SAFETY: T1, H6: the slot named it in this time slice.
        (raw != RawTerm::NONE).then(|| unsafe { Term::new(raw) })
    }

    /// What was put there last, to be put elsewhere.
    #[must_use]
    pub fn held(&self) -> Option<Arc<LoneLiteral>> {
        self.held.lock().clone()
    }

    /// Puts `literal` there; a thread that finds it sees the whole term.
    pub fn set(&self, literal: Option<Arc<LoneLiteral>>) {
        let root = literal.as_ref().map_or(RawTerm::NONE, |it| it.root);
        let mut held = self.held.lock();
        self.root.store(root.0, Ordering::Release);
        let before = std::mem::replace(&mut *held, literal);
        drop(held);
        // Given up when no slot names it any more.
        drop(before);
    }
}

impl LiteralCell {
    /// What is there; what `build` makes on a heap of its own is put there first, for ever, if there is
    /// nothing yet.
    pub(crate) fn get_or_build(
        &self,
        build: impl for<'h> FnOnce(&'h Heap) -> Term<'h>,
    ) -> Term<'static> {
        let raw = RawTerm(self.0.load(Ordering::Acquire));
        if raw != RawTerm::NONE {
            // SAFETY: T1, H6: nothing else is put there than below.
            return unsafe { Term::new(raw) };
        }
        let made = self::build(build);
        self.0.store(made.raw().0, Ordering::Release);
        made
    }
}

/// The empty tuple, of which there is one.
pub(super) fn empty_tuple() -> Term<'static> {
    static WORD: OnceLock<u64> = OnceLock::new();
    let word = *WORD.get_or_init(|| {
        // The word behind it stays unused, so that looking past its header is looking at a literal.
        let ptr = PERMANENT.lock().get_or_insert_default().room(2);
        // SAFETY: H6: two free words of the area.
        unsafe { *ptr = tag::make_header(0, tag::ARITYVAL) };
        RawTerm::boxed(ptr).0
    });
    // SAFETY: T1, H6: it stays for ever.
    unsafe { Term::new(RawTerm(word)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::am;
    use crate::term::compare::eq_exact;

    #[test]
    fn an_area_is_given_back_as_a_whole() {
        let heap = Heap::new(233);
        let term = heap.list(&[am::ok.term(), heap.binary(&[7; 100]), heap.float(1.5)]);
        let mut area = LiteralArea::new();
        let mut make = || {
            let made = area.make(term);
            assert!(eq_exact(made, term));
            made.raw().ptr()
        };
        let places: Vec<_> = (0..1000).map(|_| make()).collect();
        area.trim();
        assert!(places.iter().all(|place| is_live(*place)));
        let own = area.ranges().to_vec();
        let inside = |place: &usize| own.iter().any(|range| range.contains(place));
        assert!(places.iter().all(|place| inside(&(*place as usize))));
        drop(area);
        let binary = term.list_iter().nth(1).and_then(Result::ok).expect("it");
        let refs = binary
            .as_bits()
            .and_then(|bits| bits.binary())
            .map(|b| b.refs());
        assert_eq!(refs, Some(1));
    }

    #[test]
    fn pieces_that_touch_become_one() {
        let mut space = Space {
            free: BTreeMap::new(),
            by_size: BTreeSet::new(),
        };
        space.add(0, 100);
        let starts = [space.take(10), space.take(20), space.take(30)];
        assert_eq!(starts, [0, 10, 30]);
        space.give_back(&(10..30));
        assert!(space.is_free(10) && !space.is_free(9) && !space.is_free(30));
        // The smallest piece that has room.
        assert_eq!(space.take(5), 10);
        space.give_back(&(10..15));
        space.give_back(&(0..10));
        space.give_back(&(30..60));
        assert_eq!(space.free, BTreeMap::from([(0, 100)]));
        assert_eq!(space.by_size, BTreeSet::from([(100, 0)]));
    }
}
