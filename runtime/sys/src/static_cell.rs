//! A cell for a reference to something that lives for ever, which threads replace and read without a lock.
//!
//! Invariant SC1: the pointer is null or came from a `&'static T`.
#![expect(unsafe_code, reason = "an atomic pointer is read as a reference")]

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Holds a `&'static T`, or nothing.
pub struct StaticCell<T: Sync + 'static>(AtomicPtr<T>);

impl<T: Sync + 'static> StaticCell<T> {
    /// Holds nothing yet.
    #[inline]
    pub const fn empty() -> Self {
        StaticCell(AtomicPtr::new(ptr::null_mut()))
    }

    /// What was stored last.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: SC1; `Acquire` pairs with the store, so that what it points to is complete.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Replaces it. Readers may go on with the old one.
    #[inline]
    pub fn set(&self, value: &'static T) {
        self.0
            .store(ptr::from_ref(value).cast_mut(), Ordering::Release);
    }
}
