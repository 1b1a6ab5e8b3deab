//! Messages: terms between heaps.

use super::fragment::Fragments;
use super::{Counted, Fragment, Heap, Literals, copy, size};
use crate::term::{RawTerm, Term, tag};

/// A term on its way between heaps, or kept outside any: the fragments that hold it, and the term.
pub struct Message {
    pub(super) fragments: Option<Fragments>,
    pub(super) root: RawTerm,
}

// SAFETY: H2: a message is the one owner of its fragments.
unsafe impl Send for Message {}
// SAFETY: H2: a shared message is only read; its fragments change hands with the message alone.
unsafe impl Sync for Message {}

/// Words that are copied sooner than kept in fragments with more room.
const COPIED_WORDS: usize = 64;

impl Message {
    /// Offset of the term.
    pub(crate) const ROOT: usize = std::mem::offset_of!(Message, root);

    /// A copy of `term`, as processes send it: literals are copied too, as in ERTS. Takes no memory for
    /// immediates and the empty tuple.
    #[must_use]
    pub fn copy_of(term: Term<'_>) -> Message {
        let raw = term.raw();
        let words = size(term, Literals::Count);
        if words == 0 {
            return Message {
                fragments: None,
                root: raw,
            };
        }
        let fragment = Fragment::with_capacity(words);
        let mut hp = fragment.words();
        // SAFETY: T1: the term is in hand; the fragment has room for `words`.
        let root = unsafe { copy::copy_all(raw, &mut hp, &fragment.header().off_heap) };
        fragment.header().set_used_words(words);
        debug_assert_eq!(
            hp,
            fragment.words().wrapping_add(words),
            "size and copy agree"
        );
        Message {
            fragments: Some(Fragments::one(fragment)),
            root,
        }
    }

    /// What `build` makes in a heap of its own, without a copy of more than a few words. It says whether that heap has the
    /// words of the term alone: others are no part of a message, and it is copied then.
    ///
    /// # Errors
    /// Those of `build`.
    pub(crate) fn build<E>(
        build: impl for<'h> FnOnce(&'h Heap) -> Result<(Term<'h>, bool), E>,
    ) -> Result<Message, E> {
        let heap = Heap::detached();
        let (term, is_all) = build(&heap)?;
        // Fragments are longer than what is in them.
        if !is_all || heap.fragment_words() <= COPIED_WORDS {
            return Ok(Message::copy_of(term));
        }
        debug_assert_eq!(heap.fragment_words(), size(term, Literals::Count));
        let root = term.raw();
        Ok(Message {
            fragments: heap.into_fragments(),
            root,
        })
    }

    /// A tuple of copies of `elements`, which may be of different heaps.
    #[must_use]
    pub(crate) fn of_tuple(elements: &[Term<'_>]) -> Message {
        let inner: usize = elements.iter().map(|e| size(*e, Literals::Count)).sum();
        let words = 1 + elements.len() + inner;
        let fragment = Fragment::with_capacity(words);
        let tuple = fragment.words();
        let mut hp = tuple.wrapping_add(1 + elements.len());
        // SAFETY: T1: the elements are in hand; the fragment has room for `words`.
        unsafe {
            *tuple = tag::make_header(elements.len(), tag::ARITYVAL);
            for (i, element) in elements.iter().enumerate() {
                let copy = copy::copy_all(element.raw(), &mut hp, &fragment.header().off_heap);
                *tuple.add(1 + i) = copy.0;
            }
        }
        fragment.header().set_used_words(words);
        Message {
            root: RawTerm::boxed(tuple),
            fragments: Some(Fragments::one(fragment)),
        }
    }

    /// The term, as long as the message is not given away:
    ///
    /// ```compile_fail,E0505
    /// use beamline_runtime::heap::{Heap, Message};
    /// use beamline_runtime::term::Term;
    ///
    /// let heap = Heap::new(233);
    /// let message = Message::copy_of(heap.tuple(&[Term::small(1)]));
    /// let stale = message.term();
    /// heap.attach(message);
    /// assert_eq!(stale.as_tuple().unwrap().arity(), 1);
    /// ```
    ///
    /// Then it is the receiver's:
    ///
    /// ```
    /// use beamline_runtime::heap::{Heap, Message};
    /// use beamline_runtime::term::Term;
    ///
    /// let heap = Heap::new(233);
    /// let message = Message::copy_of(heap.tuple(&[Term::small(1)]));
    /// let taken = heap.attach(message);
    /// assert_eq!(taken.as_tuple().unwrap().arity(), 1);
    /// ```
    #[must_use]
    pub fn term(&self) -> Term<'_> {
        // SAFETY: T1: the message owns what the term points to.
        unsafe { Term::new(self.root) }
    }

    /// The term, where it is in no fragments of its own: it is an immediate, or of the heap that the message waits at.
    pub(crate) fn term_of_heap(&self) -> Option<Term<'_>> {
        self.fragments.is_none().then(|| self.term())
    }

    /// It is read soon: the processor may fetch it meanwhile.
    pub(crate) fn fetch(&self) {
        super::fetch(self.root.ptr().cast());
    }

    /// A slot for a term of the heap `term` is of: not to be sent, and a root of that heap's collector.
    ///
    /// # Safety
    /// H8: the collector sees the slot from now on, and the message is read and sent no more but where it is taken.
    pub(crate) unsafe fn attached(term: Term<'_>) -> Message {
        Message {
            fragments: None,
            root: term.raw(),
        }
    }

    /// The slot, where it has no fragments of its own: after [`Heap::attach_in_place`].
    pub(crate) fn attached_root(&mut self) -> Option<&mut RawTerm> {
        self.fragments.is_none().then_some(&mut self.root)
    }

    /// What its things hold counts of, as [`Heap::counted`].
    pub(crate) fn counted(&self) -> impl Iterator<Item = Counted<'_>> {
        let fragments = self.fragments.iter();
        fragments.flat_map(|fragments| fragments.off_heap().counted())
    }

    /// Words it takes.
    #[must_use]
    pub fn words(&self) -> usize {
        self.fragments.as_ref().map_or(0, Fragments::used_words)
    }
}
