//! Reads the sizes and settings of a process and its heap, and changes the settings.

use super::{Exception, Exiting, MaxHeap, Process, WaitFor};
use crate::heap::{Message, next_heap_size};
use crate::process::{Next, Raise};
use crate::term::Term;

/// Words of the least virtual heap of binaries. Source: `VH_DEFAULT_SIZE` in `erl_vm.h`.
const MIN_BIN_VHEAP_WORDS: usize = 46422;

impl Process {
    /// `max_heap_size`.
    pub(crate) fn max_heap(&self) -> MaxHeap {
        self.with_psd(|psd| psd.max_heap).unwrap_or_default()
    }

    /// `min_heap_size`, words.
    pub(crate) fn min_heap_words(&self) -> usize {
        self.heap.min_heap_words
    }

    /// Sets `min_heap_size`; the old value.
    pub(crate) fn set_min_heap_words(&mut self, words: usize) -> usize {
        let words = next_heap_size(words, false);
        std::mem::replace(&mut self.heap.min_heap_words, words)
    }

    /// `min_bin_vheap_size`, words.
    pub(crate) fn min_bin_vheap_words(&self) -> usize {
        self.heap.min_bin_vheap_words
    }

    /// Sets `min_bin_vheap_size`; the old value.
    pub(crate) fn set_min_bin_vheap_words(&mut self, words: usize) -> usize {
        let words = if words < MIN_BIN_VHEAP_WORDS {
            MIN_BIN_VHEAP_WORDS
        } else {
            next_heap_size(words, false)
        };
        std::mem::replace(&mut self.heap.min_bin_vheap_words, words)
    }

    /// `fullsweep_after`.
    pub(crate) fn fullsweep_after(&self) -> usize {
        self.heap.max_gen_gcs as usize
    }

    /// Sets `fullsweep_after`; the old value.
    pub(crate) fn set_fullsweep_after(&mut self, collections: usize) -> usize {
        let collections = u32::try_from(collections).unwrap_or(u32::MAX);
        std::mem::replace(&mut self.heap.max_gen_gcs, collections) as usize
    }

    /// Minor collections since the last full sweep.
    pub(crate) fn collections_since_fullsweep(&self) -> usize {
        self.heap.gen_gcs as usize
    }

    /// Words of messages in the queue that are no part of the heap; they count as such where the queue does.
    pub(crate) fn mailbox_words(&self) -> usize {
        if self.flags.get().off_heap_messages {
            return 0;
        }
        self.mailbox
            .messages()
            .map(crate::heap::Message::words)
            .sum()
    }

    /// Bytes of the process: heaps, messages, dictionary, what binds it to others, and itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        let (old, _) = self.heap.old_words();
        let messages: usize = self
            .mailbox
            .messages()
            .map(|message| size_of::<crate::heap::Message>() + message.words() * 8)
            .sum();
        let relations = self.some_relations().map_or(0, |relations| {
            size_of_val(&*relations)
                + (relations.links.len() + relations.origins.len() + relations.targets.len()) * 64
        });
        let words = self.heap.block_words() + old + self.heap.fragment_words();
        size_of::<Process>()
            + size_of::<super::ProcShared>()
            + words * 8
            + messages
            + relations
            + self.saved_calls_bytes()
            + self.dictionary().len() * 16
    }

    /// What `of` tells of the process, for another one: its own heap is as it was.
    pub(crate) fn tell(
        &self,
        of: impl for<'t> FnOnce(&'t Process) -> Option<Term<'t>>,
    ) -> Option<Message> {
        // SAFETY: H1: what comes out is a copy, and `of` can neither keep a term nor collect.
        unsafe { self.heap.aside(|| of(self).map(Message::copy_of)) }
    }

    /// Whether anything that gives priority messages is set.
    pub(crate) fn accepts_priority_messages(&self) -> bool {
        self.some_relations().is_some_and(|relations| {
            relations.aliases.values().any(|alias| alias.priority)
                || relations.origins.values().any(|origin| origin.priority)
                || relations.links.values().any(|link| link.priority)
        })
    }

    /// Whether it waits for a message and there is none.
    pub(crate) fn was_waiting(&self) -> bool {
        self.wait_for == WaitFor::Message && !self.is_ready()
    }

    /// Collects in the process's own context where no x register is live.
    ///
    /// # Errors
    /// As those of [`Process::garbage_collect`].
    pub(crate) fn collect_now(&mut self, major: bool) -> Result<(), Exiting> {
        self.heap.need_fullsweep |= major;
        self.garbage_collect(0, 0)
    }

    /// Ends a BIF that has the process to itself with `raise`.
    pub(crate) fn raise(&mut self, raise: Raise<'static>) -> Next {
        self.exception = Exception::from_raise(self, &raise);
        Next::Raise
    }
}
