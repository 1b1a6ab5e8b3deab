//! Makes the memory of a recording before the writers need it.
//!
//! The kernel makes a page of a mapped file when somebody first touches it: it takes the page, zeroes it and puts it
//! into the mapping. That takes about as long as writing the records that fill the page. A thread of its own therefore
//! touches pages some way ahead of the writers, and the writers find them made. Where the thread comes too late, or the
//! system does not know the request, the writers make the pages themselves.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use super::map::Map;
use crate::ring::model::layout::{PAGE, Place};

/// Memory is made this many blocks ahead of a writer.
const LEAD: u64 = (4 << 20) / PAGE as u64;
/// The thread makes at least this many blocks at once, while the segment has them.
const STRIDE: u64 = (1 << 20) / PAGE as u64;

/// The thread that makes memory. Dropping this value ends the thread, which then lets go of the file.
pub(in crate::ring) struct Prefault {
    asks: Option<Sender<Range<usize>>>,
    thread: Option<JoinHandle<()>>,
}

impl Prefault {
    /// Starts the thread.
    pub(in crate::ring) fn of(map: &Arc<Map>) -> Prefault {
        let (asks, asked) = channel();
        let map = map.clone();
        let thread = std::thread::Builder::new().name("ring_pages".into());
        let made = thread.spawn(move || asked.iter().for_each(|bytes| map.populate(bytes)));
        Prefault {
            asks: Some(asks),
            thread: made.ok(),
        }
    }

    /// Asks for memory when a writer begins block `next` of a segment. `asked` says how many of the first blocks were
    /// asked for before; the result says how many are now.
    pub(in crate::ring) fn ask(&self, place: &Place, asked: u64, next: u64) -> u64 {
        if asked >= place.blocks || asked > next + LEAD {
            return asked;
        }
        let until = place.blocks.min(next + LEAD + STRIDE);
        if let Some(asks) = &self.asks {
            // Blocks follow a page of counters.
            let at = |block: u64| (place.block_at(1) + block * PAGE as u64) as usize;
            // Where there is no thread, nobody listens.
            let _ = asks.send(at(asked)..at(until));
        }
        until
    }
}

impl Drop for Prefault {
    fn drop(&mut self) {
        drop(self.asks.take());
        if let Some(thread) = self.thread.take() {
            // It does nothing that could panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_is_asked_for_once_and_before_its_slice() {
        for blocks in [2, LEAD, LEAD + 1, 3 * LEAD + 7] {
            let place = Place {
                label: 1,
                offset: 40 * PAGE as u64,
                blocks,
            };
            let (asks, asked) = channel();
            let ahead = Prefault {
                asks: Some(asks),
                thread: None,
            };
            let mut until = 0;
            for next in 1..=2 * blocks {
                until = ahead.ask(&place, until, next);
                assert!(until >= next.min(blocks), "block {next} of {blocks}");
            }
            drop(ahead);
            let mut end = (place.offset as usize) + PAGE;
            for bytes in asked {
                assert_eq!(bytes.start, end);
                end = bytes.end;
            }
            assert_eq!(end as u64, place.offset + place.bytes());
        }
    }
}
