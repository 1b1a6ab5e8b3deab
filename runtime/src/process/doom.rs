//! For tests: kills a process at a collection of the test's choice. Where every safepoint collects, that is any
//! safepoint.

use super::{MaxHeap, Process};
use crate::term::Atom;

/// What ends a doomed process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Death {
    /// `max_heap_size` is exceeded.
    HeapLimit,
    /// An exit signal with this reason is sent, and found where signals are looked for next: the time slice ends with
    /// the next call.
    Signal(Atom),
}

/// The fate of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doom {
    /// Collections that it lives through.
    pub(crate) collections: usize,
    pub(crate) death: Death,
}

impl Process {
    /// A collection begins, and may be the one to die at.
    pub(super) fn meet_doom(&mut self) {
        let due = self.with_psd(|psd| psd.doom.filter(|doom| doom.collections == 0));
        if let Some(doom) = &mut self.psd().doom {
            doom.collections = doom.collections.wrapping_sub(1);
        }
        match due.flatten().map(|doom| doom.death) {
            None => {}
            Some(Death::HeapLimit) => {
                self.psd().max_heap = MaxHeap {
                    words: 1,
                    kill: true,
                    error_logger: false,
                    include_shared_binaries: false,
                };
                self.heap.max_heap_words = 1;
            }
            Some(Death::Signal(reason)) => {
                self.send_exit(self.pid(), None, reason.term(), false, false);
                self.fcalls.set(0);
            }
        }
    }
}
