//! The off-heap list: the things of a heap that refer to and count binaries, magic binaries and nodes. It is threaded
//! through the things, as ERTS's MSO list.

use std::cell::Cell;
use std::sync::Arc;

use crate::term::counted::{Binary, MagicBinary, Node};
use crate::term::tag;

/// The list of things that hold counts, threaded through their third words.
#[derive(Default)]
pub(crate) struct OffHeap {
    first: Cell<*mut u64>,
    /// Bytes of the binaries in the list, in words: ERTS's virtual binary heap.
    pub(crate) overhead_words: Cell<usize>,
}

/// Offset of the link in a listed thing.
const NEXT: usize = 2;

/// What a listed thing holds a count of.
#[derive(Clone, Copy)]
pub(crate) enum Counted<'a> {
    Binary(&'a Binary),
    Magic(&'a MagicBinary),
    Node(&'a Node),
}

impl OffHeap {
    pub(crate) fn first(&self) -> *mut u64 {
        self.first.get()
    }

    /// Lists the thing at `ptr`, which holds a count.
    ///
    /// # Safety
    /// H4: `ptr` is a complete listed thing in the heap that owns this list, and in no list yet.
    #[inline]
    pub(crate) unsafe fn push(&self, ptr: *mut u64) {
        // SAFETY: H4: a listed thing has its link in its third word.
        unsafe { *ptr.add(NEXT) = self.first.get() as u64 };
        self.first.set(ptr);
        // SAFETY: H4: a `BIN_REF`'s second word is its binary.
        unsafe {
            if *ptr & tag::HEADER_MASK == tag::BIN_REF {
                let words = (*(*ptr.add(1) as *const Binary)).size() / 8;
                self.overhead_words.set(self.overhead_words.get() + words);
            }
        }
    }

    /// What the things in the list hold counts of, once for each thing.
    pub(crate) fn counted(&self) -> impl Iterator<Item = Counted<'_>> {
        let listed = |ptr: *mut u64| (!ptr.is_null()).then_some(ptr);
        let all = std::iter::successors(listed(self.first()), move |ptr| {
            // SAFETY: H4: listed things are live.
            listed(unsafe { next(*ptr) })
        });
        // SAFETY: H4: each kind's second word is the counted pointer it was made with, and the list is borrowed.
        all.map(|ptr| unsafe {
            let counted = *ptr.add(1);
            match *ptr & tag::HEADER_MASK {
                tag::BIN_REF => Counted::Binary(&*(counted as *const Binary)),
                tag::REF => Counted::Magic(&*(counted as *const MagicBinary)),
                _ => Counted::Node(&*(counted as *const Node)),
            }
        })
    }

    /// Takes the whole list.
    pub(crate) fn take(&self) -> *mut u64 {
        self.overhead_words.set(0);
        self.first.replace(std::ptr::null_mut())
    }

    /// Gives up the counts of the things listed since [`OffHeap::first`] was `first`.
    ///
    /// # Safety
    /// H4: nothing reads those things any more, and none before them has left the list.
    pub(crate) unsafe fn release_until(&self, first: *mut u64) {
        let mut ptr = self.first.replace(first);
        while ptr != first {
            // SAFETY: H4: off the list, so its count is ours to give up.
            unsafe {
                let next = *ptr.add(NEXT) as *mut u64;
                if *ptr & tag::HEADER_MASK == tag::BIN_REF {
                    let words = (*(*ptr.add(1) as *const Binary)).size() / 8;
                    self.overhead_words.set(self.overhead_words.get() - words);
                }
                release(ptr);
                ptr = next;
            }
        }
    }

    /// Moves all of `other`'s things here.
    pub(crate) fn append(&self, other: &OffHeap) {
        let mut ptr = other.take();
        while !ptr.is_null() {
            // SAFETY: H4: `ptr` came off a list and goes onto this one.
            unsafe {
                let next = *ptr.add(NEXT) as *mut u64;
                self.push(ptr);
                ptr = next;
            }
        }
    }

    /// The things in a place that has been moved are `bytes` further on, their links with them.
    ///
    /// # Safety
    /// H4: the things in the list that are in `moved` have been copied there, and are not read here any more.
    pub(crate) unsafe fn shift(&self, moved: impl Fn(*mut u64) -> bool, bytes: usize) {
        let shifted = |ptr: *mut u64| match moved(ptr) {
            true => ptr.wrapping_byte_add(bytes),
            false => ptr,
        };
        let mut ptr = shifted(self.first.get());
        self.first.set(ptr);
        while !ptr.is_null() {
            // SAFETY: H4: by contract.
            unsafe {
                let next = shifted(*ptr.add(NEXT) as *mut u64);
                *ptr.add(NEXT) = next as u64;
                ptr = next;
            }
        }
    }

    /// Gives up every count in the list.
    ///
    /// # Safety
    /// H4: nothing reads the things any more.
    pub(crate) unsafe fn release_all(&self) {
        let mut ptr = self.take();
        while !ptr.is_null() {
            // SAFETY: H4: taken off the list, so its count is ours to give up.
            unsafe {
                let next = *ptr.add(NEXT) as *mut u64;
                release(ptr);
                ptr = next;
            }
        }
    }
}

/// The link of a listed thing.
///
/// # Safety
/// H4: `ptr` is a listed thing.
pub(crate) unsafe fn next(ptr: *mut u64) -> *mut u64 {
    // SAFETY: H4.
    unsafe { *ptr.add(NEXT) as *mut u64 }
}

/// Gives up the count that the thing at `ptr` holds.
///
/// # Safety
/// H4: the thing is in no list and is not read again.
pub(crate) unsafe fn release(ptr: *mut u64) {
    // SAFETY: H4: each kind's second word is the counted pointer it was made with.
    unsafe {
        let counted = *ptr.add(1);
        match *ptr & tag::HEADER_MASK {
            tag::BIN_REF => Binary::release(counted as *const Binary),
            tag::REF => drop(Arc::from_raw(counted as *const MagicBinary)),
            _ => drop(Arc::from_raw(counted as *const Node)),
        }
    }
}

/// One more count for what the thing at `ptr` holds, for a copy of the thing.
///
/// # Safety
/// H4: `ptr` is a listed thing, or a copy of one not yet listed.
pub(crate) unsafe fn retain(ptr: *const u64) {
    // SAFETY: H4: as in `release`.
    unsafe {
        let counted = *ptr.add(1);
        match *ptr & tag::HEADER_MASK {
            tag::BIN_REF => (*(counted as *const Binary)).retain(),
            tag::REF => Arc::increment_strong_count(counted as *const MagicBinary),
            _ => Arc::increment_strong_count(counted as *const Node),
        }
    }
}
