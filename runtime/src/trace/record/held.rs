//! What processes hold beside their heaps: binaries, told after each collection, and ETS tables, told at the end.

use super::{Recorder, RingEvent};
use crate::heap::HeldBinary;
use crate::process::Process;
use crate::process::tables::TABLES;

/// References to binaries that are looked at after a minor collection, which itself does not look at all of them: more would
/// cost more than the collection.
const LOOKED_AT: usize = 10_000;

/// Records the binaries that a collection has left `p`, if it has any.
pub(super) fn binaries(recorder: &Recorder, p: &Process, is_major: bool) {
    let limit = if is_major { usize::MAX } else { LOOKED_AT };
    let mut all: Vec<HeldBinary> = p.binaries().take(limit).collect();
    if all.is_empty() {
        return;
    }
    let [young, _, old, _] = p.bin_vheap();
    let event = if all.len() == limit {
        RingEvent::GcBinaries {
            bytes: (young + old) as u64 * 8,
            count: 0,
            largest: 0,
        }
    } else {
        all.sort_unstable_by_key(|of| of.address);
        all.dedup_by_key(|of| of.address);
        RingEvent::GcBinaries {
            bytes: all.iter().map(|of| of.bytes as u64).sum(),
            count: all.len() as u64,
            largest: all.iter().map(|of| of.bytes as u64).max().unwrap_or(0),
        }
    };
    recorder.tell(p.pid(), &event);
}

/// Records the tables that there are.
pub(super) fn tables(recorder: &Recorder) {
    for size in TABLES.get()() {
        let event = RingEvent::Table {
            name: recorder.atom(size.name),
            words: size.words as u64,
            objects: size.objects as u64,
        };
        recorder.tell(size.owner, &event);
    }
}
