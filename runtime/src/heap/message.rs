//! Messages: terms between heaps.

use super::{Fragment, Literals, copy, size};
use crate::term::{RawTerm, Term, tag};

/// A term on its way between heaps, or kept outside any: the fragment that holds it, and the term.
pub struct Message {
    pub(super) fragment: Option<Fragment>,
    pub(super) root: RawTerm,
}

// SAFETY: H2: a message is the one owner of its fragment.
unsafe impl Send for Message {}
// SAFETY: H2: a shared message is only read; its fragment changes hands with the message alone.
unsafe impl Sync for Message {}

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
                fragment: None,
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
            fragment: Some(fragment),
            root,
        }
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
            fragment: Some(fragment),
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

    /// The term, where it is in no fragment of its own: it is an immediate, or of the heap that the message waits at.
    pub(crate) fn term_of_heap(&self) -> Option<Term<'_>> {
        self.fragment.is_none().then(|| self.term())
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
            fragment: None,
            root: term.raw(),
        }
    }

    /// The slot, where it has no fragment of its own: after [`Heap::attach_in_place`].
    pub(crate) fn attached_root(&mut self) -> Option<&mut RawTerm> {
        self.fragment.is_none().then_some(&mut self.root)
    }

    /// Words it takes.
    #[must_use]
    pub fn words(&self) -> usize {
        self.fragment.as_ref().map_or(0, Fragment::used_words)
    }
}
