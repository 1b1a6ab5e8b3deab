//! Heap fragments: blocks of terms beside a heap. A message arrives in one. A BIF that finds its process's heap full
//! builds in one.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ptr::NonNull;

use super::off_heap::OffHeap;
use crate::sys::memory;

/// The head of a fragment. The fragment's words follow it. It is small: a message of a few words, or an object of a
/// table, is to fit a line of the processor's cache with it.
#[repr(C)]
pub(crate) struct Header {
    pub(crate) next: Cell<Option<NonNull<Header>>>,
    capacity_words: u32,
    used_words: Cell<u32>,
    pub(crate) off_heap: OffHeap,
}

const _: () = assert!(size_of::<Header>() == 32);

/// A fragment that is in no heap: a message on its way, a term kept outside processes.
///
/// Its terms point into itself and to literals only.
pub struct Fragment(NonNull<Header>);

// SAFETY: H2: a fragment's words are reached through its one owner only; counts are atomic.
unsafe impl Send for Fragment {}

const HEADER_WORDS: usize = size_of::<Header>() / 8;

fn layout(words: usize) -> Layout {
    memory::layout_of_words(memory::FRAGMENT, words.saturating_add(HEADER_WORDS))
}

impl Fragment {
    /// An empty fragment with room for `words` words.
    pub(crate) fn with_capacity(words: usize) -> Fragment {
        let layout = layout(words);
        let Ok(capacity_words) = u32::try_from(words) else {
            memory::cannot_allocate(memory::FRAGMENT, layout.size())
        };
        // SAFETY: the layout has the header's size at least.
        let ptr = memory::kept_for(memory::FRAGMENT, || unsafe { alloc(layout) });
        let Some(ptr) = NonNull::new(ptr.cast::<Header>()) else {
            memory::cannot_allocate(memory::FRAGMENT, layout.size())
        };
        let header = Header {
            next: Cell::new(None),
            capacity_words,
            used_words: Cell::new(0),
            off_heap: OffHeap::default(),
        };
        // SAFETY: freshly allocated with room for it.
        unsafe { ptr.write(header) };
        Fragment(ptr)
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: H2: alive as long as its owner.
        unsafe { self.0.as_ref() }
    }

    /// First word.
    pub(crate) fn words(&self) -> *mut u64 {
        Header::words(self.0)
    }

    /// Words in use.
    #[must_use]
    pub(crate) fn used_words(&self) -> usize {
        self.header().used_words()
    }

    /// Gives the fragment up to a heap's chain.
    pub(crate) fn into_raw(self) -> NonNull<Header> {
        let ptr = self.0;
        std::mem::forget(self);
        ptr
    }

    /// Takes a fragment back from a chain.
    ///
    /// # Safety
    /// H2: the caller takes it out of the chain it was in.
    pub(crate) unsafe fn from_raw(ptr: NonNull<Header>) -> Fragment {
        Fragment(ptr)
    }
}

impl Header {
    /// Words that the fragment has room for.
    pub(crate) fn capacity_words(&self) -> usize {
        self.capacity_words as usize
    }

    /// Words in use.
    pub(crate) fn used_words(&self) -> usize {
        self.used_words.get() as usize
    }

    /// Sets how many words are in use: no more than there is room for.
    pub(crate) fn set_used_words(&self, words: usize) {
        debug_assert!(words <= self.capacity_words());
        self.used_words.set(words as u32);
    }

    pub(crate) fn words(this: NonNull<Header>) -> *mut u64 {
        // SAFETY: the words follow the header in one allocation.
        unsafe { this.as_ptr().cast::<u64>().add(HEADER_WORDS) }
    }
}

/// The fragments of a message, which are linked. Its terms point into them and to literals only.
pub(super) struct Fragments(NonNull<Header>);

impl Fragments {
    pub(super) fn one(fragment: Fragment) -> Fragments {
        Fragments(fragment.into_raw())
    }

    /// Takes a whole chain from the heap that it was of, from its first fragment on.
    ///
    /// # Safety
    /// H2: the heap has none of them any more.
    pub(super) unsafe fn of_chain(first: NonNull<Header>) -> Fragments {
        Fragments(first)
    }

    /// The things in all of them that hold counts.
    pub(super) fn off_heap(&self) -> &OffHeap {
        // SAFETY: H2: alive as long as its owner.
        &unsafe { self.0.as_ref() }.off_heap
    }

    /// Words in use in all of them.
    pub(super) fn used_words(&self) -> usize {
        let after = |fragment: &NonNull<Header>| {
            // SAFETY: H2: alive as long as its owner.
            unsafe { fragment.as_ref() }.next.get()
        };
        let all = std::iter::successors(Some(self.0), after);
        // SAFETY: H2: as above.
        all.map(|it| unsafe { it.as_ref() }.used_words()).sum()
    }

    /// Gives each one up.
    pub(super) fn each(self, take: impl FnMut(Fragment)) {
        let first = std::mem::ManuallyDrop::new(self).0;
        each_from(first, take);
    }
}

/// Takes a chain apart, which nobody has any more.
fn each_from(first: NonNull<Header>, mut take: impl FnMut(Fragment)) {
    let mut next = Some(first);
    while let Some(fragment) = next {
        // SAFETY: H2: the caller has given the chain up, and this one is taken out of it.
        let fragment = unsafe { Fragment::from_raw(fragment) };
        next = fragment.header().next.take();
        take(fragment);
    }
}

impl Drop for Fragments {
    fn drop(&mut self) {
        each_from(self.0, drop);
    }
}

impl Drop for Fragment {
    fn drop(&mut self) {
        // SAFETY: H2, H4: its owner is gone, so nothing reads its terms; allocated with this layout.
        unsafe {
            self.header().off_heap.release_all();
            let layout = layout(self.header().capacity_words());
            dealloc(self.0.as_ptr().cast(), layout);
        }
    }
}
