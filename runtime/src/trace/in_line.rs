//! What compiled code does itself where calls of a process are measured (`jit/metered.rs`): all for one meter, and for
//! several measures the calls of the function that each meter finds running already, as long as nothing has changed since
//! Rust counted such a call.

use std::mem::offset_of;
use std::sync::atomic::AtomicU64;

use super::breakpoint::BpData;

/// The meter, and what a call of the running function counts, as addresses. A call that counts less adds to
/// [`InLine::nowhere`].
#[derive(Default)]
pub(crate) struct InLine {
    /// The meter that compiled code uses itself; 0 where it uses none.
    meter: u64,
    /// The running function's breakpoint's data in the generation that was active; 0 where a call is Rust's.
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
    use super::{COUNTS, InLine, offset_of};

    pub(crate) const METER: i32 = offset_of!(InLine, meter) as i32;
    pub(crate) const DATA: i32 = offset_of!(InLine, data) as i32;
    pub(crate) const CALLS_AT: i32 = offset_of!(InLine, calls_at) as i32;
    pub(crate) const CALLS: i32 = offset_of!(InLine, calls) as i32;
    pub(crate) const TOGETHER: i32 = offset_of!(InLine, together) as i32;
    const COUNTS_AT: i32 = offset_of!(InLine, counts) as i32;
    pub(crate) const COUNT_OFFSETS: [i32; COUNTS] = [COUNTS_AT, COUNTS_AT + 8, COUNTS_AT + 16];
    pub(crate) const WORDS: i32 = offset_of!(InLine, words) as i32;
}

impl InLine {
    /// The meter at this address is used, until it goes; none if that is 0.
    pub(super) fn use_meter(&mut self, meter: u64) {
        self.meter = meter;
    }

    /// Calls of the function with this data add one at each of `counts`, as long as the sessions that trace the
    /// process's calls are these (and where that is said), and at most until [`InLine::another_runs`]. The addresses hold
    /// as long.
    pub(super) fn runs(
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

    /// Another function may become a meter's current one, or the time slice is over.
    #[inline(always)]
    pub(super) fn another_runs(&mut self) {
        self.data = 0;
    }

    /// Its address.
    pub(super) fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }
}
