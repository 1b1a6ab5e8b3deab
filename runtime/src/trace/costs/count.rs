//! Call counters. A counter has a number for each scheduler, far from the numbers of the others, and its readers add
//! them up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::sched;

/// Counters made together: for each scheduler a row of numbers of its own.
struct Block {
    rows: Box<[AtomicU64]>,
}

/// Numbers in a row: a page, so that rows of two schedulers share no cache line.
const ROW: usize = 512;

/// The block that new counters are taken from, and how many it has given.
static OPEN: Mutex<Option<(Arc<Block>, usize)>> = Mutex::new(None);

/// Counts calls of a function in a session.
#[derive(Clone)]
pub(in crate::trace) struct Counter {
    block: Arc<Block>,
    at: usize,
}

/// Bytes from a counter's [`Counter::address`] to the number that only this thread, a scheduler's, writes.
///
/// # Panics
/// Where it is none.
pub(crate) fn offset() -> u64 {
    let id = sched::current_id().expect("a scheduler runs processes");
    ((id + 1) * ROW * size_of::<AtomicU64>()) as u64
}

impl Counter {
    /// At zero.
    pub(in crate::trace) fn new() -> Counter {
        let mut open = OPEN.lock();
        let (block, given) = open
            .take()
            .filter(|(_, given)| *given < ROW)
            .unwrap_or_else(|| {
                // One row more than there are schedulers: for whoever is none.
                let numbers = (sched::schedulers() + 1) * ROW;
                (
                    Arc::new(Block {
                        rows: (0..numbers).map(|_| AtomicU64::new(0)).collect(),
                    }),
                    0,
                )
            });
        *open = Some((block.clone(), given + 1));
        Counter { block, at: given }
    }

    /// One more.
    #[inline(always)]
    pub(in crate::trace) fn increment(&self) {
        match sched::current_id() {
            Some(id) => {
                // Only this thread writes this number.
                let number = &self.block.rows[self.at + (id + 1) * ROW];
                number.store(number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            None => {
                self.block.rows[self.at].fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Where its numbers are: the one of whoever is no scheduler; [`offset`] leads to that of a scheduler.
    pub(in crate::trace) fn address(&self) -> u64 {
        (&raw const self.block.rows[self.at]) as u64
    }

    /// How many so far.
    pub(in crate::trace) fn read(&self) -> u64 {
        let numbers = self.block.rows.iter().skip(self.at).step_by(ROW);
        numbers.map(|number| number.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counters_count_apart() {
        let counters: Vec<Counter> = (0..ROW + 3).map(|_| Counter::new()).collect();
        for (i, counter) in counters.iter().enumerate() {
            (0..i % 5).for_each(|_| counter.increment());
        }
        for (i, counter) in counters.iter().enumerate() {
            assert_eq!(counter.read(), (i % 5) as u64);
        }
    }
}
