//! The garbage collector: generational, copying, per heap. Source of its policy: `erl_gc.c`, OTP 29
//! (`minor_collection()`, `major_collection()`, `adjust_after_fullsweep()`).

mod shift;

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};

use super::off_heap::{self, OffHeap};
use super::verify::{ZEAL, ZEAL_GENERATIONS};
use super::{Block, Heap, RESERVED_WORDS, Visit, copy, literal, next_heap_size};
use crate::term::tag;
use crate::term::{CodeAddress, RawTerm, sub_bits};

/// The result of a collection.
#[derive(Clone, Copy, Debug)]
pub struct Collected {
    /// A full sweep, not only the young generation.
    pub major: bool,
    /// Cost in reductions.
    pub reds: usize,
}

/// The heap would exceed `max_heap_size`; nothing was changed.
#[derive(Clone, Copy, Debug)]
pub struct HeapLimit {
    /// Words the process would have used, old and new heaps at once, as ERTS counts.
    pub total_words: usize,
}

/// Terms outside the heap that the collector must see and may change.
///
/// A caller has none to show, `&mut ()`, where all that it keeps is under a [`super::Root`].
///
/// ```compile_fail,E0200
/// use beamline_runtime::heap::{Roots, Visit};
/// use beamline_runtime::term::RawTerm;
///
/// struct Any(RawTerm);
///
/// impl Roots for Any {
///     fn for_each(&mut self, visit: &mut Visit<'_>) {
///         visit(std::slice::from_mut(&mut self.0));
///     }
/// }
/// ```
///
/// ```
/// use beamline_runtime::heap::{Heap, Roots, Visit};
/// use beamline_runtime::term::RawTerm;
///
/// struct Any(RawTerm);
///
/// // SAFETY: H8: the empty list is no thing of a heap.
/// unsafe impl Roots for Any {
///     fn for_each(&mut self, visit: &mut Visit<'_>) {
///         visit(std::slice::from_mut(&mut self.0));
///     }
/// }
/// Heap::new(233).collect(0, &mut Any(RawTerm::NIL)).unwrap();
/// ```
///
/// # Safety
/// H8 holds for the slots that are shown.
pub unsafe trait Roots {
    /// Calls `visit` with every slot, in slices; slots may hold anything a stack may.
    fn for_each(&mut self, visit: &mut Visit<'_>);
}

// SAFETY: H8: there are none.
unsafe impl Roots for () {
    fn for_each(&mut self, _: &mut Visit<'_>) {}
}

/// Is it a list or boxed? One test for both, as either may come next.
#[inline(always)]
fn is_pointer(word: RawTerm) -> bool {
    any_pointer(&[word])
}

/// Words of a stack that are looked at together.
const WORDS_AT_ONCE: usize = 8;

/// Is one of them a list or boxed?
#[inline(always)]
fn any_pointer<const N: usize>(words: &[RawTerm; N]) -> bool {
    const {
        assert!(tag::LIST == 0b01 && tag::BOXED == 0b10 && tag::PRIMARY_MASK == 0b11);
    }
    let unequal_bits = |word: &RawTerm| word.0 ^ (word.0 >> 1);
    words.iter().fold(0, |any, word| any | unequal_bits(word)) & 1 != 0
}

/// Moves live terms out of the places being collected.
struct Sweep {
    /// The next free words.
    tops: Tops,
    /// All that was moved and lies below has been visited.
    scanned: Tops,
    places: Places,
}

/// A place in each of the two areas that terms are moved to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Tops {
    /// Where live terms go.
    to: *mut u64,
    /// Mature terms of a minor collection go here instead.
    old: *mut u64,
}

impl Tops {
    #[inline(always)]
    fn of<const OLD: bool>(&mut self) -> &mut *mut u64 {
        if OLD { &mut self.old } else { &mut self.to }
    }
}

/// A range of bytes from an address on.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    bytes: usize,
}

impl Place {
    /// No address.
    const NONE: Place = Place { start: 0, bytes: 0 };

    fn of((start, end): (usize, usize)) -> Place {
        let bytes = end - start;
        Place { start, bytes }
    }

    #[inline(always)]
    fn contains(self, ptr: *mut u64) -> bool {
        (ptr as usize).wrapping_sub(self.start) < self.bytes
    }
}

/// Decides by its address what becomes of a term.
#[derive(Clone, Copy)]
struct Places {
    /// What goes to the old heap.
    mature: Place,
    /// What stays: literals, and the old heap in a minor collection.
    literals: Place,
    kept: Place,
}

impl Places {
    #[inline(always)]
    fn stays(&self, ptr: *mut u64) -> bool {
        self.literals.contains(ptr) || self.kept.contains(ptr)
    }

    /// Takes `words` words for what is moved away from `from`.
    #[inline(always)]
    fn destination(&self, from: *mut u64, words: usize, tops: &mut Tops) -> *mut u64 {
        let top = if self.mature.contains(from) {
            &mut tops.old
        } else {
            &mut tops.to
        };
        let to = *top;
        *top = to.wrapping_add(words);
        to
    }

    /// Moves what `slot` points to, if it must move, and updates `slot`.
    ///
    /// # Safety
    /// H1: the slot holds a term, header, code address or catch tag; the destinations have room for
    /// all that is live.
    #[inline(always)]
    unsafe fn slot(&self, slot: *mut u64, tops: &mut Tops) {
        // SAFETY: by contract.
        unsafe {
            let word = RawTerm(*slot);
            if !is_pointer(word) {
                return;
            }
            let ptr = word.ptr();
            // What stays is not even looked at: it may be in no cache.
            if self.stays(ptr) {
                return;
            }
            let first = *ptr;
            *slot = if word.0 & tag::PRIMARY_MASK == tag::LIST {
                if first == 0 {
                    *ptr.add(1)
                } else {
                    self.move_cons(ptr, first, tops)
                }
            } else if RawTerm(first).is_header() {
                self.move_boxed(ptr, first, tops)
            } else {
                first
            };
        }
    }

    /// # Safety
    /// As [`Places::slot`].
    #[inline(always)]
    unsafe fn slots(&self, slots: &mut [RawTerm], tops: &mut Tops) {
        for slot in slots {
            // SAFETY: by contract.
            unsafe { self.slot(&raw mut slot.0, tops) };
        }
    }

    /// # Safety
    /// As [`Places::slot`]; `ptr` is a cell that must move.
    #[inline(always)]
    unsafe fn move_cons(&self, ptr: *mut u64, head: u64, tops: &mut Tops) -> u64 {
        // SAFETY: by contract.
        unsafe {
            let to = self.destination(ptr, 2, tops);
            *to = head;
            *to.add(1) = *ptr.add(1);
            let moved = RawTerm::list(to).0;
            // A moved cell has no term as its head and its new place as its tail.
            *ptr = 0;
            *ptr.add(1) = moved;
            moved
        }
    }

    /// # Safety
    /// As [`Places::slot`]; `ptr` is a thing with `header` that must move.
    #[inline(always)]
    unsafe fn move_boxed(&self, ptr: *mut u64, header: u64, tops: &mut Tops) -> u64 {
        // SAFETY: by contract.
        unsafe {
            let words = if header & tag::HEADER_MASK == tag::ARITYVAL {
                1 + tag::header_arity(header)
            } else {
                tag::shape(header, *ptr.add(1)).words
            };
            let to = self.destination(ptr, words, tops);
            copy_words(ptr, to, words);
            let moved = RawTerm::boxed(to).0;
            *ptr = moved;
            moved
        }
    }
}

impl Sweep {
    /// Moves all but what is in `kept` to `to`.
    fn to_one(to: *mut u64, kept: Place) -> Sweep {
        let places = Places {
            mature: Place::NONE,
            literals: Place::of(literal::range()),
            kept,
        };
        Sweep::new(
            Tops {
                to,
                old: null_mut(),
            },
            places,
        )
    }

    fn new(tops: Tops, places: Places) -> Sweep {
        Sweep {
            tops,
            scanned: tops,
            places,
        }
    }

    /// Moves what these slots point to, and updates them.
    ///
    /// # Safety
    /// As [`Places::slot`].
    unsafe fn slots(&mut self, slots: &mut [RawTerm]) {
        // In registers, where they cannot be what a slot is.
        let (places, mut tops) = (self.places, self.tops);
        // SAFETY: by contract.
        unsafe { places.slots(slots, &mut tops) };
        self.tops = tops;
    }

    /// As [`Sweep::slots`], for a stack: most words of a deep one are no pointers.
    ///
    /// # Safety
    /// As [`Places::slot`].
    unsafe fn stack(&mut self, stack: &mut [RawTerm]) {
        let (places, mut tops) = (self.places, self.tops);
        let (groups, rest) = stack.as_chunks_mut::<WORDS_AT_ONCE>();
        // SAFETY: by contract.
        unsafe {
            for group in groups {
                if any_pointer(group) {
                    places.slots(group, &mut tops);
                }
            }
            places.slots(rest, &mut tops);
        }
        self.tops = tops;
    }

    /// Visits every term that has been moved and not been visited, and those that are moved by that.
    ///
    /// # Safety
    /// As [`Places::slot`].
    unsafe fn scan_all(&mut self) {
        while self.scanned != self.tops {
            // SAFETY: by contract.
            unsafe {
                self.scan::<false>();
                self.scan::<true>();
            }
        }
    }

    /// As [`Sweep::scan_all`], in one of the two areas.
    ///
    /// # Safety
    /// As [`Places::slot`].
    unsafe fn scan<const OLD: bool>(&mut self) {
        let (places, mut tops, mut scan) = (self.places, self.tops, *self.scanned.of::<OLD>());
        // SAFETY: by contract.
        unsafe {
            while scan < *tops.of::<OLD>() {
                let word = *scan;
                if word & tag::PRIMARY_MASK == tag::LIST && scan.add(1) == *tops.of::<OLD>() {
                    self.tops = tops;
                    scan = self.follow::<OLD>(scan);
                    tops = self.tops;
                    continue;
                }
                if word & tag::PRIMARY_MASK != tag::HEADER
                    || word & tag::HEADER_MASK == tag::ARITYVAL
                {
                    // All that follows the header of a tuple are terms.
                    places.slot(scan, &mut tops);
                    scan = scan.add(1);
                    continue;
                }
                let shape = tag::shape(word, *scan.add(1));
                for i in shape.terms_from..shape.words {
                    places.slot(scan.add(i), &mut tops);
                }
                if word & tag::HEADER_MASK == tag::SUB_BITS {
                    rebase(scan);
                }
                scan = scan.add(shape.words);
            }
        }
        self.tops = tops;
        *self.scanned.of::<OLD>() = scan;
    }

    /// As [`Places::slot`], for a list in `slot`, the last word that was moved to its area: moves cell after cell behind
    /// it, and reads none of them again. The first word that is still to be visited.
    ///
    /// # Safety
    /// As [`Places::slot`].
    #[inline(never)]
    unsafe fn follow<const OLD: bool>(&mut self, mut slot: *mut u64) -> *mut u64 {
        let (places, mut tops) = (self.places, self.tops);
        // SAFETY: by contract.
        unsafe {
            let mut list = *slot;
            loop {
                let ptr = RawTerm(list).ptr();
                let is_elsewhere = places.mature.contains(ptr) != OLD;
                if is_elsewhere || places.stays(ptr) || *ptr == 0 {
                    places.slot(slot, &mut tops);
                    slot = slot.add(1);
                    break;
                }
                let (head, tail) = (*ptr, *ptr.add(1));
                *slot = places.move_cons(ptr, head, &mut tops);
                let cell = slot.add(1);
                if is_pointer(RawTerm(head)) {
                    slot = cell;
                    break;
                }
                slot = cell.add(1);
                if tail & tag::PRIMARY_MASK != tag::LIST {
                    break;
                }
                list = tail;
            }
        }
        self.tops = tops;
        slot
    }
}

/// Copies `words` words; most things have a few, for which a call is not worth it.
///
/// # Safety
/// As of `copy_nonoverlapping`.
#[inline(always)]
pub(super) unsafe fn copy_words(from: *const u64, to: *mut u64, words: usize) {
    const FEW: usize = 8;
    // SAFETY: by contract.
    unsafe {
        if words > FEW {
            std::ptr::copy_nonoverlapping(from, to, words);
            return;
        }
        for i in 0..words {
            // Volatile, or the compiler makes a call of the loop.
            to.add(i).write_volatile(*from.add(i));
        }
    }
}

/// A match context into a bitstring on the heap points to its bytes; they have moved with it.
///
/// # Safety
/// `ptr` is a complete `SUB_BITS` whose `orig` is up to date.
unsafe fn rebase(ptr: *mut u64) {
    // SAFETY: by contract.
    unsafe {
        let orig = RawTerm(*ptr.add(4)).ptr();
        if *orig & tag::HEADER_MASK == tag::HEAP_BITS {
            *ptr.add(1) = orig.add(2) as u64 | (*ptr.add(1) & sub_bits::MASK);
        }
    }
}

/// Words that all collections so far have reclaimed.
static RECLAIMED_WORDS: AtomicU64 = AtomicU64::new(0);

/// Words that all collections so far have reclaimed, for `erlang:statistics(garbage_collection)`.
#[must_use]
pub(crate) fn reclaimed_words() -> u64 {
    RECLAIMED_WORDS.load(Ordering::Relaxed)
}

impl Heap {
    fn count_reclaimed(&mut self, words: usize) {
        self.reclaimed_words += words as u64;
        RECLAIMED_WORDS.fetch_add(words as u64, Ordering::Relaxed);
    }

    /// Collects, so that `need` words are free afterwards.
    ///
    /// # Errors
    /// When the heap would grow past `max_heap_size`, or past what can be addressed.
    pub fn collect(&mut self, need: usize, roots: &mut dyn Roots) -> Result<Collected, HeapLimit> {
        let collected = self.collect_generation(need, roots)?;
        if ZEAL {
            self.verify(roots);
        }
        Ok(collected)
    }

    /// Sweeps everything into a block that has room for what is alive and no more, as
    /// `erts_garbage_collect_hibernate()` does; it may be less than the process's minimum.
    pub(crate) fn collect_hibernate(&mut self, roots: &mut dyn Roots) -> Collected {
        let old_used = (self.old_top as usize - self.old.start as usize) / 8;
        let before = self.used_words() + self.fragment_words() + old_used;
        let stack = self.stack_words();
        self.need_fullsweep = false;
        self.full_sweep(before + stack + RESERVED_WORDS, roots);
        let after = self.used_words();
        self.count_reclaimed(before.saturating_sub(after));
        self.gen_gcs = 0;
        self.move_to(after + stack + RESERVED_WORDS, roots);
        if ZEAL {
            self.verify(roots);
        }
        Collected {
            major: true,
            reds: cost(after, after),
        }
    }

    fn needs_fullsweep(&self) -> bool {
        self.need_fullsweep
            || self.gen_gcs >= self.max_gen_gcs
            || (ZEAL && self.gen_gcs >= ZEAL_GENERATIONS)
    }

    /// Whether the mature terms can go to an old heap that is there.
    fn has_room_for_mature(&self) -> bool {
        let old_free = (self.old.end() as usize - self.old_top as usize) / 8;
        self.old.words != 0
            && self.mature_words() <= old_free
            && self.bin_old_vheap < self.bin_old_vheap_limit
    }

    /// Whether the next collection is a full sweep from the start, and whether it will be one after all.
    pub(crate) fn next_collection(&self) -> (bool, bool) {
        let full = self.needs_fullsweep();
        // An old heap that is not there is made, with room enough, if there is something to go to it.
        let is_made = self.old.words == 0 && self.mature_words() != 0;
        let is_minor =
            self.has_room_for_mature() || is_made && self.bin_old_vheap < self.bin_old_vheap_limit;
        (full, full || !is_minor)
    }

    fn collect_generation(
        &mut self,
        need: usize,
        roots: &mut dyn Roots,
    ) -> Result<Collected, HeapLimit> {
        let young = self.used_words() + self.fragment_words();
        let mature = self.mature_words();
        let need = need + RESERVED_WORDS;
        if !self.needs_fullsweep() {
            if self.old.words == 0 && mature != 0 {
                self.check_limit(self.minor_total(young, need, next_heap_size(young, true)))?;
                self.old = Block::new(next_heap_size(young, true));
                self.old_top = self.old.start;
            } else {
                self.check_limit(self.minor_total(young, need, 0))?;
            }
            if self.has_room_for_mature() {
                return Ok(self.minor(young, need, roots));
            }
        }
        self.major(young, need, roots)
    }

    fn check_limit(&self, total_words: usize) -> Result<(), HeapLimit> {
        if self.max_heap_words == 0 {
            return Ok(());
        }
        let [young_binaries, _, old_binaries, _] = self.bin_vheap();
        let counted = if self.max_heap_has_binaries {
            total_words + young_binaries + old_binaries
        } else {
            total_words
        };
        if counted > self.max_heap_words {
            return Err(HeapLimit { total_words });
        }
        Ok(())
    }

    /// Words in all heaps while a minor collection runs, as ERTS counts them.
    fn minor_total(&self, young: usize, need: usize, new_old: usize) -> usize {
        let stack = self.block.words - self.used_words();
        let new = next_heap_size(stack + young.max(need), false);
        young + new_old + self.old.words + new
    }

    fn minor(&mut self, young: usize, need: usize, roots: &mut dyn Roots) -> Collected {
        let stack = self.stack_words();
        let size = self.size_for(stack + young.max(need));
        let mature = (self.block.start as usize, self.high_water as usize);
        let promoted_from = self.old_top;
        let block = Block::new(size);
        let tops = Tops {
            to: block.start,
            old: self.old_top,
        };
        let places = Places {
            mature: Place::of(mature),
            literals: Place::of(literal::range()),
            kept: self.old_place(),
        };
        let mut sweep = Sweep::new(tops, places);
        self.sweep_into(&mut sweep, block, roots);
        self.old_top = sweep.tops.old;
        self.sweep_off_heap(false);
        let promoted = (self.old_top as usize - promoted_from as usize) / 8;
        self.high_water = self.htop.get();
        let after = promoted + self.used_words();
        self.count_reclaimed(young.saturating_sub(after));
        self.gen_gcs += 1;
        self.minor_gcs += 1;
        let adjusted = self.resize_after_minor(stack, need, roots);
        Collected {
            major: false,
            reds: cost(after, adjusted),
        }
    }

    fn resize_after_minor(&mut self, stack: usize, need: usize, roots: &mut dyn Roots) -> usize {
        let need_after = self.used_words() + need + stack;
        let size = self.block.words;
        let old = self.old.words;
        if size > 3000 && 4 * need_after < size && (size > 8000 || size > old) {
            let mut wanted = 3 * need_after;
            if wanted * 9 < old {
                wanted = wanted.max(old / 8);
            }
            let wanted = self.size_for(wanted);
            if wanted < size {
                self.move_to(wanted, roots);
                return self.used_words();
            }
        } else if size < need_after {
            self.move_to(self.size_for(need_after), roots);
            return self.used_words();
        }
        0
    }

    fn major(
        &mut self,
        young: usize,
        need: usize,
        roots: &mut dyn Roots,
    ) -> Result<Collected, HeapLimit> {
        let old_used = (self.old_top as usize - self.old.start as usize) / 8;
        let before = young + old_used;
        let stack = self.stack_words();
        let mut size = self.size_for(stack + before + RESERVED_WORDS);
        if size == self.block.words && self.grow_next {
            size = next_heap_size(size, true);
        }
        let unused = (self.old.words - old_used) + (self.block.words - self.used_words());
        self.check_limit(before + unused + size)?;
        self.grow_next = false;
        self.need_fullsweep = false;
        self.full_sweep(size, roots);
        let after = self.used_words();
        self.count_reclaimed(before.saturating_sub(after));
        self.gen_gcs = 0;
        let adjusted = self.resize_after_major(stack, need, roots);
        Ok(Collected {
            major: true,
            reds: cost(after, adjusted),
        })
    }

    fn resize_after_major(&mut self, stack: usize, need: usize, roots: &mut dyn Roots) -> usize {
        let need_after = self.used_words() + need + stack + RESERVED_WORDS;
        let size = self.block.words;
        if size < need_after {
            self.move_to(self.size_for(need_after), roots);
            return self.used_words();
        }
        if 3 * size < 4 * need_after {
            self.grow_next = true;
        } else if 4 * need_after < size && size > self.min_heap_words {
            let wanted = self.size_for(2 * need_after);
            if wanted < size {
                self.move_to(wanted, roots);
                return self.used_words();
            }
        }
        0
    }

    fn old_place(&self) -> Place {
        Place::of((self.old.start as usize, self.old.end() as usize))
    }

    /// The least heap size of at least `words`, not under the process's minimum.
    fn size_for(&self, words: usize) -> usize {
        next_heap_size(words, false).max(self.min_heap_words)
    }

    /// Sweeps everything into one new young block of `size` words and drops the old generation.
    fn full_sweep(&mut self, size: usize, roots: &mut dyn Roots) {
        let block = Block::new(size);
        let mut sweep = Sweep::to_one(block.start, Place::NONE);
        self.sweep_into(&mut sweep, block, roots);
        self.sweep_off_heap(true);
        self.old = Block::EMPTY;
        self.old_top = null_mut();
        self.high_water = self.htop.get();
    }

    /// Runs `sweep` from all roots, the stack moved to the end of `block`, which becomes the young
    /// block; the old one and the fragments are freed once the off-heap lists have been walked.
    fn sweep_into(&mut self, sweep: &mut Sweep, block: Block, roots: &mut dyn Roots) {
        // Every sweep leaves the high-water mark at the heap's top: what is above it is new.
        self.collected_words = self.built_words();
        self.runs_on.set(CodeAddress::NULL);
        let stack = self.stack_words();
        // SAFETY: H1: `block` and the old heap have room for all that is live, as the callers count it, and
        // the stack; roots hold terms of this heap.
        unsafe {
            let stop = block.end().sub(stack);
            std::ptr::copy_nonoverlapping(self.stop.get(), stop, stack);
            sweep.stack(std::slice::from_raw_parts_mut(stop.cast(), stack));
            sweep.slots(&mut *self.roots.get());
            roots.for_each(&mut |slots| sweep.slots(slots));
            sweep.scan_all();
            self.stop.set(stop);
        }
        self.htop.set(sweep.tops.to);
        self.retired = (
            std::mem::replace(&mut self.block, block),
            self.fragments.take(),
        );
        self.fragment_words.set(0);
    }

    /// Gives up the counts of dead things, and moves the links of live ones. Frees what was retired.
    fn sweep_off_heap(&mut self, full: bool) {
        let young = OffHeap::default();
        let before = self.off_heap.overhead_words.get();
        let mut ptr = self.off_heap.take();
        // SAFETY: H4: each listed thing is either forwarded or dead; its place is still readable.
        unsafe {
            ptr = self.sort_off_heap(ptr, &young);
            debug_assert!(ptr.is_null());
            if full {
                let old = self.old_off_heap.take();
                self.sort_off_heap(old, &young);
                self.bin_old_vheap = 0;
                self.bin_old_vheap_limit = self.next_vheap_size(before, self.bin_old_vheap_limit);
            }
        }
        self.off_heap.append(&young);
        self.note_vheap_used();
        let (block, fragments) = std::mem::replace(&mut self.retired, (Block::EMPTY, None));
        if ZEAL {
            block.poison();
        }
        drop(block);
        self.free_fragments(fragments);
    }

    /// The virtual binary heap's limits follow what is in use.
    fn note_vheap_used(&mut self) {
        let used = self.off_heap.overhead_words.get();
        self.bin_vheap_limit = self.next_vheap_size(used, self.bin_vheap_limit);
        self.bin_old_vheap = self.old_off_heap.overhead_words.get();
    }

    /// Limit of a virtual binary heap, `limit` before, of which `used` words are in use: it grows where those are more
    /// than three quarters, and shrinks where they are less than one. Source: `do_next_vheap_size()`.
    fn next_vheap_size(&self, used: usize, limit: usize) -> usize {
        let mut next = limit;
        while used / 3 > next / 4 {
            next = (next as f64 * 1.618) as usize;
        }
        if next == limit && used < limit / 4 {
            next = limit / 2;
        }
        next.max(self.min_bin_vheap_words)
    }

    /// # Safety
    /// H4: `ptr` heads a list of things that a sweep has visited.
    unsafe fn sort_off_heap(&self, mut ptr: *mut u64, young: &OffHeap) -> *mut u64 {
        while !ptr.is_null() {
            // SAFETY: H4: by contract: the link is in the thing's old place still.
            unsafe {
                let next = off_heap::next(ptr);
                let header = RawTerm(*ptr);
                if header.is_boxed() {
                    let moved = header.ptr();
                    debug_assert!(copy::is_listed(moved), "only listed things are in the list");
                    if self.old.contains(moved) {
                        self.old_off_heap.push(moved);
                    } else {
                        young.push(moved);
                    }
                } else {
                    off_heap::release(ptr);
                }
                ptr = next;
            }
        }
        ptr
    }
}

/// Reductions a collection costs: its work in words, as `gc_cost()` counts.
fn cost(moved_words: usize, resized_words: usize) -> usize {
    (moved_words + resized_words) / 10
}
