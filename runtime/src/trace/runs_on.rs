//! Calls of the function that every meter of a process finds running already: compiled code counts them in line
//! (`jit/metered.rs`), as long as nothing has changed since Rust did so last.

use std::mem::offset_of;
use std::sync::atomic::AtomicU64;

use super::breakpoint::BpData;

/// What such a call counts, as addresses. A call that counts less adds to [`RunsOn::nowhere`].
#[derive(Default)]
pub(crate) struct RunsOn {
    /// The breakpoint's data in the generation that was active.
    data: u64,
    /// The sessions that trace the process's calls, and what they were.
    calls_at: u64,
    calls: u64,
    /// The version of what several meters count together.
    together: u64,
    /// Numbers of calls.
    counts: [u64; COUNTS],
    /// The meter that measures words; 0 where none does.
    words: u64,
    nowhere: AtomicU64,
}

/// A counter's number, and those of two meters.
pub(crate) const COUNTS: usize = 3;

/// What compiled code looks at.
pub(crate) mod offset {
    use super::{COUNTS, RunsOn, offset_of};

    pub(crate) const DATA: i32 = offset_of!(RunsOn, data) as i32;
    pub(crate) const CALLS_AT: i32 = offset_of!(RunsOn, calls_at) as i32;
    pub(crate) const CALLS: i32 = offset_of!(RunsOn, calls) as i32;
    pub(crate) const TOGETHER: i32 = offset_of!(RunsOn, together) as i32;
    const COUNTS_AT: i32 = offset_of!(RunsOn, counts) as i32;
    pub(crate) const COUNT_OFFSETS: [i32; COUNTS] = [COUNTS_AT, COUNTS_AT + 8, COUNTS_AT + 16];
    pub(crate) const WORDS: i32 = offset_of!(RunsOn, words) as i32;
}

impl RunsOn {
    /// Such calls of the function with this data, of a process whose traced calls are these (and where that is said), add one at each of `counts`. The addresses hold as long as the process
    /// has this value's, which is at most until its time slice ends.
    pub(super) fn begin(
        &mut self,
        data: &BpData,
        (calls_at, calls): (u64, u64),
        together: Option<u64>,
        counts: &[u64],
        words: Option<u64>,
    ) {
        let nowhere = (&raw const self.nowhere) as u64;
        self.data = std::ptr::from_ref(data) as u64;
        (self.calls_at, self.calls) = (calls_at, calls);
        self.together = together.unwrap_or(nowhere);
        self.counts = [nowhere; COUNTS];
        self.counts[..counts.len()].copy_from_slice(counts);
        self.words = words.unwrap_or(0);
    }

    /// Its address.
    pub(super) fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }
}
