//! Tuples kept outside processes, for tables. Each is in one block of memory that points to nothing but itself, so that
//! a copy is one move of words and an addition to each pointer.

use super::fragment::Fragment;
use super::{Counted, Heap, Literals, copy, size};
use crate::term::{RawTerm, Term, Tuple, tag};

/// A tuple of at least one element that no heap owns.
///
/// H7: its words are one complete tuple at the start of a fragment and all that it points to, in the
/// same fragment, but for empty tuples and definitions of records, which are literals.
pub struct Stored(Fragment);

// SAFETY: H2, H7: a fragment is reached through its one owner; shared, it is only read.
unsafe impl Sync for Stored {}

/// Words of the tuple of copies of `elements`.
fn words_of(elements: &[Term<'_>]) -> usize {
    let parts = elements.iter().filter(|e| !e.raw().is_immed());
    let parts: usize = parts.map(|e| size(*e, Literals::Count)).sum();
    1 + elements.len() + parts
}

impl Stored {
    /// A copy of `tuple`, literals in it included.
    ///
    /// # Panics
    /// When the tuple is empty.
    #[must_use]
    pub fn new(tuple: Tuple<'_>) -> Stored {
        Stored::of_elements(tuple.elements())
    }

    /// The tuple of copies of `elements`.
    ///
    /// # Panics
    /// When there are none.
    #[must_use]
    pub fn of_elements(elements: &[Term<'_>]) -> Stored {
        assert!(!elements.is_empty(), "an object has a key");
        let words = words_of(elements);
        let fragment = Fragment::with_capacity(words);
        fragment.header().set_used_words(words);
        let mut object = Stored(fragment);
        object.fill(elements);
        object
    }

    /// Becomes a copy of `tuple` in its own place, if that takes as many words; whether it does.
    #[inline]
    pub(crate) fn overwrite(&mut self, tuple: Tuple<'_>) -> bool {
        let elements = tuple.elements();
        if words_of(elements) != self.words() {
            return false;
        }
        // SAFETY: H4, H7: `&mut` says that nobody reads what is here, and all of it is written over.
        unsafe { self.0.header().off_heap.release_all() };
        self.fill(elements);
        true
    }

    /// Writes the tuple of copies of `elements`, which takes just the words in use.
    fn fill(&mut self, elements: &[Term<'_>]) {
        let tuple = self.0.words();
        let off_heap = &self.0.header().off_heap;
        // SAFETY: T1: the elements are in hand; the fragment has room for what `size` counted.
        unsafe {
            *tuple = tag::make_header(elements.len(), tag::ARITYVAL);
            let mut hp = tuple.add(1 + elements.len());
            for (i, element) in elements.iter().enumerate() {
                *tuple.add(1 + i) = copy::copy_all(element.raw(), &mut hp, off_heap).0;
            }
            debug_assert_eq!(hp, tuple.add(self.words()), "size and copy agree");
        }
    }

    /// The tuple, as long as nobody changes it:
    ///
    /// ```compile_fail,E0502
    /// use beamline_runtime::heap::Stored;
    /// use beamline_runtime::term::Term;
    ///
    /// let mut object = Stored::of_elements(&[Term::small(1)]);
    /// let stale = object.term();
    /// object.replace_immediate(0, Term::small(2));
    /// assert_eq!(stale.as_tuple().unwrap().arity(), 1);
    /// ```
    ///
    /// ```
    /// use beamline_runtime::heap::Stored;
    /// use beamline_runtime::term::Term;
    ///
    /// let mut object = Stored::of_elements(&[Term::small(1)]);
    /// object.replace_immediate(0, Term::small(2));
    /// assert_eq!(object.term().as_tuple().unwrap().arity(), 1);
    /// ```
    #[inline]
    #[must_use]
    pub fn term(&self) -> Term<'_> {
        // SAFETY: T1, H7: the object owns what the term points to.
        unsafe { Term::new(RawTerm::boxed(self.0.words())) }
    }

    /// It is read soon: the processor may fetch it meanwhile.
    #[inline]
    pub(crate) fn fetch(&self) {
        fetch(self.0.words().cast());
    }

    /// The tuple's elements.
    #[inline]
    #[must_use]
    pub fn elements(&self) -> &[Term<'_>] {
        // SAFETY: H7: as many terms as the header says stand behind it.
        unsafe {
            let arity = tag::header_arity(*self.0.words());
            std::slice::from_raw_parts(self.0.words().add(1).cast(), arity)
        }
    }

    /// Words it takes.
    #[inline]
    #[must_use]
    pub fn words(&self) -> usize {
        self.0.used_words()
    }

    /// Every off-heap binary the object refers to.
    pub(crate) fn binaries(&self) -> impl Iterator<Item = super::HeldBinary> {
        super::binaries_in(&self.0.header().off_heap)
    }

    /// What the object's things hold counts of, as [`Heap::counted`].
    pub(crate) fn counted(&self) -> impl Iterator<Item = Counted<'_>> {
        self.0.header().off_heap.counted()
    }

    /// Replaces element `index` (from 0), if both that and `value` are immediates.
    #[inline]
    pub fn replace_immediate(&mut self, index: usize, value: Term<'_>) -> bool {
        if !value.raw().is_immed() || !self.elements()[index].raw().is_immed() {
            return false;
        }
        // SAFETY: H7: the element's own word; `&mut` says that nobody reads it.
        unsafe { *self.0.words().add(1 + index) = value.raw().0 };
        true
    }
}

/// Prefetches the memory at an address that is read soon. An address without memory is no error.
#[inline]
pub(crate) fn fetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: H10: nothing is read that anybody sees.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// An object with its key's word beside it: a search for a small integer reads no object.
///
/// H9: the word is an element of the object, which nobody changes but together with the word.
pub(crate) struct Keyed {
    key: RawTerm,
    object: Stored,
}

impl Keyed {
    /// The object whose key is the element `index` (from 0).
    #[inline]
    pub(crate) fn new(object: Stored, index: usize) -> Keyed {
        let key = object.elements()[index].raw();
        Keyed { key, object }
    }

    #[inline]
    pub(crate) fn key(&self) -> Term<'_> {
        // SAFETY: T1, H9: whoever has the key has what it points to.
        unsafe { Term::new(self.key) }
    }

    #[inline]
    pub(crate) fn object(&self) -> &Stored {
        &self.object
    }

    /// Has `change` change the object, of which the element `index` (from 0) is the key; what that returns.
    #[inline]
    pub(crate) fn update<R>(&mut self, index: usize, change: impl FnOnce(&mut Stored) -> R) -> R {
        // H9: should it panic, the word is no element of another object.
        self.key = Term::NIL.raw();
        let result = change(&mut self.object);
        self.key = self.object.elements()[index].raw();
        result
    }
}

impl Heap {
    /// A copy of `object` on this heap.
    #[must_use]
    pub(crate) fn copy_stored<'h>(&'h self, object: &Stored) -> Term<'h> {
        let words = object.words();
        let from = object.0.words();
        let to = self.alloc(words);
        let bytes = words * 8;
        // SAFETY: H7: every pointer into the block moves with it; H1: `words` fresh words; H4: what
        // holds counts gets one more for its copy.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, words);
            let moved = |word: u64| {
                let at = word.wrapping_sub(from as u64);
                let points_inside = !RawTerm(word).is_immed() && at < bytes as u64;
                if points_inside {
                    (to as u64).wrapping_add(at)
                } else {
                    word
                }
            };
            let mut at = 0;
            while at < words {
                let ptr = to.add(at);
                let word = RawTerm(*ptr);
                if !word.is_header() {
                    *ptr = moved(word.0);
                    at += 1;
                    continue;
                }
                let shape = tag::shape(word.0, *ptr.add(1));
                for i in shape.terms_from..shape.words {
                    *ptr.add(i) = moved(*ptr.add(i));
                }
                if copy::is_listed(ptr) {
                    super::off_heap::retain(ptr);
                    self.off_heap().push(ptr);
                }
                at += shape.words;
            }
            Term::new(RawTerm::boxed(to))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::am;
    use crate::term::compare::eq_exact;

    #[test]
    fn a_copy_is_the_same_term() {
        let heap = Heap::new(233);
        let binary = heap.binary(&[7; 100]);
        let bits = binary.as_bits().expect("a binary");
        let literal = crate::heap::build_literal(|heap| {
            heap.list(&[heap.float(1.5), heap.tuple(&[]), Term::small(3)])
        });
        let map = crate::value::map::from_pairs(
            &heap,
            &[(am::ok.term(), heap.integer(i64::MAX)), (literal, binary)],
        );
        let tuple = heap.tuple(&[
            am::ok.term(),
            heap.list(&[binary, heap.sub_bits(bits, 3, 790), heap.binary(b"abc")]),
            map,
            literal,
            heap.tuple(&[heap.tuple(&[Term::NIL])]),
        ]);
        let object = Stored::new(tuple.as_tuple().expect("a tuple"));
        assert_eq!(object.words(), size(tuple, Literals::Count));
        assert!(eq_exact(object.term(), tuple));
        for other in [Heap::new(4000), Heap::detached()] {
            let copy = other.copy_stored(&object);
            assert!(eq_exact(copy, tuple));
            assert_eq!(size(copy, Literals::Share), object.words());
        }
    }

    #[test]
    fn only_immediates_are_replaced_in_place() {
        let heap = Heap::new(233);
        let mut object = Stored::of_elements(&[Term::small(1), heap.float(2.0)]);
        assert!(object.replace_immediate(0, Term::small(5)));
        assert!(!object.replace_immediate(0, heap.float(2.0)));
        assert!(!object.replace_immediate(1, Term::small(2)));
        assert_eq!(object.elements()[0].as_small(), Some(5));
    }
}
