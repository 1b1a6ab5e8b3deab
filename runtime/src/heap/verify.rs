//! Checks a whole heap: that every thing is complete, and that every pointer leads to a thing of this heap or to a
//! literal. With the feature `gc_zeal` every safepoint collects, and every collection poisons the places that were
//! collected and ends here. So a term that was not a root is found out soon after it went stale.
//!
//! With the feature `nif_checks` what native code has built is checked when its call ends.

use super::off_heap::{self, OffHeap};
use std::ptr::NonNull;

use super::{Block, Fragment, Header, Heap, Roots, copy, literal};
use crate::term::RawTerm;
use crate::term::tag;

/// Is every safepoint a collection?
pub(super) const ZEAL: bool = cfg!(feature = "gc_zeal");

/// Is what native code gives checked?
pub(crate) const NIF_CHECKS: bool = cfg!(feature = "nif_checks");

/// Is what nobody has any more overwritten, so that nothing there reads as a term?
pub(super) const POISONS: bool = ZEAL || NIF_CHECKS;

/// Under `gc_zeal` a full sweep comes after this many minor collections.
pub(super) const ZEAL_GENERATIONS: u32 = 4;

/// A header that no thing has.
const POISON: u64 = 0xdead_beef_dead_be3c;

impl Block {
    /// Overwrites all words, so that nothing in the block reads as a term.
    pub(super) fn poison(&self) {
        // SAFETY: H1: one allocation of `self.words` words, which nothing refers to any more, or not yet.
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
        let words = self.header().capacity_words();
        // SAFETY: H2: a fragment's words are its owner's, which refers to none of them any more.
        unsafe { std::slice::from_raw_parts_mut(self.words(), words) }.fill(POISON);
    }
}

/// Words of complete things, from the first to behind the last.
pub(super) type Area = (*mut u64, *mut u64);

/// All areas of a heap, in the order of their addresses.
pub(super) struct Areas(pub(super) Vec<Area>);

impl Areas {
    fn have(&self, ptr: *const u64) -> bool {
        let behind = self.0.partition_point(|area| area.0.cast_const() <= ptr);
        behind > 0 && ptr < self.0[behind - 1].1.cast_const()
    }
}

/// What is wrong with a heap.
type Wrong = String;

fn wrong(what: String) -> Result<(), Wrong> {
    Err(what)
}

/// How far a heap was filled.
pub(crate) struct Mark {
    htop: *mut u64,
    fragment: Option<NonNull<Header>>,
    used_words: usize,
    listed: *mut u64,
}

impl Heap {
    /// Checks all of the heap, its stack and `roots`.
    ///
    /// # Panics
    /// At the first word that is wrong, with where it is and what it holds.
    pub(crate) fn verify(&self, roots: &mut dyn Roots) {
        if let Err(wrong) = self.verify_all(roots) {
            panic!("{wrong}");
        }
    }

    fn verify_all(&self, roots: &mut dyn Roots) -> Result<(), Wrong> {
        let areas = self.areas();
        for &area in &areas.0 {
            verify_area(area, &areas)?;
        }
        // SAFETY: H1: words from `stop` on are the stack's; H3 for the roots of native code.
        let (stack, own) = unsafe {
            let stack =
                std::slice::from_raw_parts(self.stop.get().cast::<RawTerm>(), self.stack_words());
            (stack, &*self.roots.get())
        };
        verify_slots("the stack", stack, &areas)?;
        verify_slots("a root of native code", own, &areas)?;
        let mut all = Ok(());
        roots.for_each(&mut |slots| {
            if all.is_ok() {
                all = verify_slots("a root", slots, &areas);
            }
        });
        all?;
        verify_off_heap(&self.off_heap, std::ptr::null_mut(), &areas)?;
        verify_off_heap(&self.old_off_heap, std::ptr::null_mut(), &areas)
    }

    /// How far it is filled now.
    pub(crate) fn mark(&self) -> Mark {
        let fragment = self.fragments.get();
        Mark {
            htop: self.htop.get(),
            fragment,
            // SAFETY: H2: the chain's fragments are ours.
            used_words: fragment.map_or(0, |it| unsafe { it.as_ref() }.used_words()),
            listed: self.off_heap.first(),
        }
    }

    /// Checks what has been built since `mark`, with nothing collected in between, and `given`, which are terms.
    ///
    /// # Errors
    /// The first word that is wrong, with where it is and what it holds.
    pub(crate) fn verify_since(&self, mark: &Mark, given: &[RawTerm]) -> Result<(), String> {
        let areas = self.areas();
        verify_area((mark.htop, self.htop.get()), &areas)?;
        let mut next = self.fragments.get();
        while let Some(fragment) = next {
            let is_last = next == mark.fragment;
            let (from, to) = words_of(fragment);
            let from = from.wrapping_add(if is_last { mark.used_words } else { 0 });
            verify_area((from, to), &areas)?;
            // SAFETY: H2: the chain's fragments are ours.
            next = unsafe { fragment.as_ref() }.next.get();
            if is_last {
                break;
            }
        }
        verify_off_heap(&self.off_heap, mark.listed, &areas)?;
        verify_given(given, &areas)
    }

    /// Checks all of its fragments, and `given`, which are terms.
    ///
    /// # Errors
    /// As for [`Heap::verify_since`].
    pub(crate) fn verify_fragments(&self, given: &[RawTerm]) -> Result<(), String> {
        let before = Mark {
            htop: self.htop.get(),
            fragment: None,
            used_words: 0,
            listed: self.off_heap.first(),
        };
        self.verify_since(&before, given)
    }

    /// Its blocks and fragments, as far as they are filled.
    pub(super) fn areas(&self) -> Areas {
        let mut areas = vec![
            (self.block.start, self.htop.get()),
            (self.old.start, self.old_top),
        ];
        let mut next = self.fragments.get();
        while let Some(fragment) = next {
            areas.push(words_of(fragment));
            // SAFETY: H2: the chain's fragments are ours.
            next = unsafe { fragment.as_ref() }.next.get();
        }
        areas.retain(|(from, to)| from < to);
        areas.sort_unstable();
        Areas(areas)
    }
}

/// The words in use of a fragment of a chain.
fn words_of(fragment: NonNull<Header>) -> Area {
    // SAFETY: H2: the chain's fragments are its heap's.
    let used = unsafe { fragment.as_ref() }.used_words();
    let words = Header::words(fragment);
    (words, words.wrapping_add(used))
}

fn verify_area((mut at, end): Area, areas: &Areas) -> Result<(), Wrong> {
    while at < end {
        // SAFETY: H1, H2: `at` is below the area's end, and so is the thing there, once checked.
        unsafe {
            let word = *at;
            if word & tag::PRIMARY_MASK != tag::HEADER {
                verify_slot("a cell", RawTerm(word), areas)?;
                at = at.add(1);
                continue;
            }
            verify_header(word)?;
            let one_word = at.add(1) == end;
            let shape = tag::shape(word, if one_word { 0 } else { *at.add(1) });
            if shape.words > (end as usize - at as usize) / 8 {
                return wrong(format!(
                    "the thing with header {word:#x} ends behind its heap"
                ));
            }
            for i in shape.terms_from..shape.words {
                verify_slot("a thing", RawTerm(*at.add(i)), areas)?;
            }
            at = at.add(shape.words);
        }
    }
    Ok(())
}

/// Checks the things that were listed since `until` was the first.
fn verify_off_heap(list: &OffHeap, until: *mut u64, areas: &Areas) -> Result<(), Wrong> {
    let mut ptr = list.first();
    while ptr != until && !ptr.is_null() {
        if !areas.have(ptr) {
            return wrong("a listed thing lies outside its heap".to_owned());
        }
        // SAFETY: H4: in this heap, as just checked, and a listed thing before its link is read.
        ptr = unsafe {
            if !copy::is_listed(ptr) {
                return wrong("a listed thing holds no count".to_owned());
            }
            off_heap::next(ptr)
        };
    }
    Ok(())
}

fn verify_slots(what: &str, slots: &[RawTerm], areas: &Areas) -> Result<(), Wrong> {
    let mut slots = slots.iter();
    slots.try_for_each(|slot| verify_slot(what, *slot, areas))
}

fn verify_given(given: &[RawTerm], areas: &Areas) -> Result<(), Wrong> {
    let no_term = given.iter().find(|raw| raw.is_header());
    if let Some(raw) = no_term {
        return wrong(format!("what it gives, {:#x}, is no term", raw.0));
    }
    verify_slots("what it gives", given, areas)
}

/// Checks a word that may be a term, a code address, a catch tag or nothing.
fn verify_slot(what: &str, raw: RawTerm, areas: &Areas) -> Result<(), Wrong> {
    if raw.0 == POISON {
        return wrong(format!("{what} is poisoned"));
    }
    if raw.is_immed() || raw.is_header() {
        return Ok(());
    }
    let ptr = raw.ptr();
    if !literal::is_live(ptr) && !areas.have(ptr) {
        return wrong(format!(
            "{what} holds {:#x}, which is outside the heap",
            raw.0
        ));
    }
    // SAFETY: H1, H6: the word is in this heap or in a literal, as just checked.
    let first = unsafe { *ptr };
    match (raw.is_boxed(), RawTerm(first).is_header()) {
        (true, true) => verify_header(first),
        (true, false) => wrong(format!("{what} points into a thing")),
        (false, true) => wrong(format!("{what} is a list without a cell")),
        (false, false) => Ok(()),
    }
}

fn verify_header(header: u64) -> Result<(), Wrong> {
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
    match KNOWN.contains(&(header & tag::HEADER_MASK)) {
        true => Ok(()),
        false => wrong(format!("{header:#x} is no header")),
    }
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

    #[test]
    fn what_was_built_since_a_mark_is_checked() {
        let (heap, other) = (Heap::new(233), Heap::detached());
        let mark = heap.mark();
        let good = heap.tuple(&[am::ok.term(), heap.binary(&[7; 100])]);
        assert_eq!(heap.verify_since(&mark, &[good.raw()]), Ok(()));
        let foreign = other.tuple(&[am::ok.term()]);
        let given = heap.verify_since(&mark, &[foreign.raw()]);
        assert!(given.is_err_and(|wrong| wrong.contains("what it gives holds")));
        // In a fragment that was there, and in a new one.
        for words in [1, 10_000] {
            heap.alloc_in_fragment(1);
            let mark = heap.mark();
            let cell = heap.alloc_in_fragment(2 * words);
            // SAFETY: H1: fresh words.
            unsafe { std::slice::from_raw_parts_mut(cell, 2 * words) }.fill(foreign.raw().0);
            let built = heap.verify_since(&mark, &[]);
            assert!(built.is_err_and(|wrong| wrong.contains("a cell holds")));
            assert_eq!(heap.verify_since(&heap.mark(), &[]), Ok(()));
        }
        assert_eq!(other.verify_fragments(&[foreign.raw()]), Ok(()));
        assert!(heap.verify_fragments(&[]).is_err());
    }
}
