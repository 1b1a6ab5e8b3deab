//! Checks a whole heap: that every thing is complete, and that every pointer leads to a thing of this heap or to a
//! literal. With the feature `gc_zeal` every safepoint collects, and every collection poisons the places that were
//! collected and ends here. So a term that was not a root is found out soon after it went stale.

use super::off_heap::{self, OffHeap};
use super::{Block, Fragment, Header, Heap, Roots, copy, literal};
use crate::term::RawTerm;
use crate::term::tag;

/// Is every safepoint a collection?
pub(super) const ZEAL: bool = cfg!(feature = "gc_zeal");

/// Under `gc_zeal` a full sweep comes after so many minor collections.
pub(super) const ZEAL_GENERATIONS: u32 = 4;

/// A header that no thing has.
const POISON: u64 = 0xdead_beef_dead_be3c;

impl Block {
    /// Overwrites all words, so that nothing in the block reads as a term.
    pub(super) fn poison(&self) {
        // SAFETY: H1: one allocation of so many words, which nothing refers to any more, or not yet.
        unsafe { std::slice::from_raw_parts_mut(self.start_or_dangling(), self.words) }
            .fill(POISON);
    }

    fn start_or_dangling(&self) -> *mut u64 {
        if self.words == 0 {
            std::ptr::NonNull::dangling().as_ptr()
        } else {
            self.start
        }
    }
}

impl Fragment {
    /// As [`Block::poison`]; the fragment's own list of counts is empty.
    pub(super) fn poison(&self) {
        let words = self.header().capacity_words;
        // SAFETY: H2: a fragment's words are its owner's, which refers to none of them any more.
        unsafe { std::slice::from_raw_parts_mut(self.words(), words) }.fill(POISON);
    }
}

/// Words of complete things, from the first to behind the last.
type Area = (*mut u64, *mut u64);

fn within((from, to): Area, ptr: *const u64) -> bool {
    (from as usize..to as usize).contains(&(ptr as usize))
}

impl Heap {
    /// Checks all of the heap, its stack and `roots`.
    ///
    /// # Panics
    /// At the first word that is wrong, with where it is and what it holds.
    pub(crate) fn verify(&self, roots: &mut dyn Roots) {
        let areas = self.areas();
        for &area in &areas {
            self.verify_area(area, &areas);
        }
        // SAFETY: H1: words from `stop` on are the stack's; H3 for the roots of native code.
        let (stack, own) = unsafe {
            let stack =
                std::slice::from_raw_parts(self.stop.get().cast::<RawTerm>(), self.stack_words());
            (stack, &*self.roots.get())
        };
        verify_slots("the stack", stack, &areas);
        verify_slots("a root of native code", own, &areas);
        roots.for_each(&mut |slots| verify_slots("a root", slots, &areas));
        self.verify_off_heap(&self.off_heap, &areas);
        self.verify_off_heap(&self.old_off_heap, &areas);
    }

    pub(super) fn areas(&self) -> Vec<Area> {
        let mut areas = vec![
            (self.block.start, self.htop.get()),
            (self.old.start, self.old_top),
        ];
        let mut next = self.fragments.get();
        while let Some(fragment) = next {
            // SAFETY: H2: the chain's fragments are ours.
            let header = unsafe { fragment.as_ref() };
            let words = Header::words(fragment);
            areas.push((words, words.wrapping_add(header.used_words.get())));
            next = header.next.get();
        }
        areas
    }

    fn verify_area(&self, (mut at, end): Area, areas: &[Area]) {
        while at < end {
            // SAFETY: H1, H2: `at` is below the area's end, and so is the thing there, once checked.
            unsafe {
                let word = *at;
                if word & tag::PRIMARY_MASK != tag::HEADER {
                    verify_slot("a cell", RawTerm(word), areas);
                    at = at.add(1);
                    continue;
                }
                verify_header(word);
                let one_word = at.add(1) == end;
                let shape = tag::shape(word, if one_word { 0 } else { *at.add(1) });
                assert!(
                    shape.words <= (end as usize - at as usize) / 8,
                    "the thing with header {word:#x} ends behind its heap"
                );
                for i in shape.terms_from..shape.words {
                    verify_slot("a thing", RawTerm(*at.add(i)), areas);
                }
                at = at.add(shape.words);
            }
        }
    }

    fn verify_off_heap(&self, list: &OffHeap, areas: &[Area]) {
        let mut ptr = list.first();
        while !ptr.is_null() {
            assert!(
                areas.iter().any(|area| within(*area, ptr)),
                "a listed thing lies outside its heap"
            );
            // SAFETY: H4: in this heap, as just checked, and a listed thing before its link is read.
            ptr = unsafe {
                assert!(copy::is_listed(ptr), "a listed thing holds no count");
                off_heap::next(ptr)
            };
        }
    }
}

fn verify_slots(what: &str, slots: &[RawTerm], areas: &[Area]) {
    for slot in slots {
        verify_slot(what, *slot, areas);
    }
}

/// Checks a word that may be a term, a code address, a catch tag or nothing.
fn verify_slot(what: &str, raw: RawTerm, areas: &[Area]) {
    assert_ne!(raw.0, POISON, "{what} is poisoned");
    if raw.is_immed() || raw.is_header() {
        return;
    }
    let ptr = raw.ptr();
    assert!(
        literal::is_live(ptr) || areas.iter().any(|area| within(*area, ptr)),
        "{what} holds {:#x}, which is outside the heap",
        raw.0
    );
    // SAFETY: H1, H6: the word is in this heap or in a literal, as just checked.
    let first = unsafe { *ptr };
    if raw.is_boxed() {
        assert!(RawTerm(first).is_header(), "{what} points into a thing");
        verify_header(first);
    } else {
        let head = RawTerm(first);
        assert!(!head.is_header(), "{what} is a list without a cell");
    }
}

fn verify_header(header: u64) {
    const KNOWN: &[u64] = &[
        tag::ARITYVAL,
        tag::POS_BIG,
        tag::NEG_BIG,
        tag::FLOAT,
        tag::REF,
        tag::FUN,
        tag::RECORD,
        tag::HEAP_BITS,
        tag::SUB_BITS,
        tag::BIN_REF,
        tag::MAP,
        tag::EXTERNAL_PID,
        tag::EXTERNAL_PORT,
        tag::EXTERNAL_REF,
    ];
    let known = KNOWN.contains(&(header & tag::HEADER_MASK));
    assert!(known, "{header:#x} is no header");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::tests::Slots;
    use crate::term::{Term, am};

    /// A heap with a tuple, and a root that points to what `wrong` makes of the tuple's address.
    fn verify_root(wrong: impl Fn(u64) -> u64) {
        let heap = Heap::new(233);
        let term = heap.tuple(&[am::ok.term(), heap.list(&[Term::small(1)])]);
        let mut slots = [RawTerm(wrong(term.raw().0))];
        heap.verify(&mut Slots(&mut slots));
    }

    #[test]
    fn a_good_heap_passes() {
        verify_root(|word| word);
    }

    #[test]
    #[should_panic(expected = "outside the heap")]
    fn a_pointer_out_of_the_heap_is_found() {
        verify_root(|word| word + (1 << 20));
    }

    #[test]
    #[should_panic(expected = "points into a thing")]
    fn a_pointer_into_a_thing_is_found() {
        verify_root(|word| word + 8);
    }

    #[test]
    #[should_panic(expected = "without a cell")]
    fn a_wrong_tag_is_found() {
        verify_root(|word| word & !tag::PRIMARY_MASK | tag::LIST);
    }

    #[test]
    #[should_panic(expected = "no header")]
    fn a_stale_term_is_found() {
        let heap = Heap::new(233);
        let term = heap.tuple(&[am::ok.term()]);
        let mut slots = [term.raw()];
        heap.block.poison();
        heap.verify(&mut Slots(&mut slots));
    }
}
