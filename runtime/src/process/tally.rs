//! Counts the messages and collections of a scheduler's processes, for the totals of a run.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether they are counted.
pub(crate) static ON: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Messages that processes of this scheduler have sent.
    pub(crate) static MESSAGES: Cell<u64> = const { Cell::new(0) };
    /// Collections of processes of this scheduler.
    pub(crate) static COLLECTIONS: Cell<u64> = const { Cell::new(0) };
}

/// Are they counted?
#[inline(always)]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A process has sent a message.
#[inline(always)]
pub(crate) fn message_sent() {
    if is_on() {
        MESSAGES.with(|count| count.set(count.get() + 1));
    }
}

/// A process has collected.
pub(crate) fn collected() {
    if is_on() {
        COLLECTIONS.with(|count| count.set(count.get() + 1));
    }
}
