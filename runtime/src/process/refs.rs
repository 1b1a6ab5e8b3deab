//! Makes references and unique integers.
//!
//! A reference is 82 bits. A thread takes blocks of numbers from one counter, so that making a reference costs no
//! shared write. Source of the layout: `erl_bif_unique.c`, OTP 29.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::order::identity;
use crate::heap::Heap;
use crate::term::{Pid, Term};

/// Numbers of a reference, least significant first.
pub type RefNumbers = [u32; 3];

/// Bits of the first number of a reference.
const FIRST_BITS: u32 = 18;
const BLOCK: u64 = 1024;

static NEXT_REF: AtomicU64 = AtomicU64::new(1 << FIRST_BITS);
/// Counts for the threads that are no schedulers.
static NEXT_UNIQUE: AtomicU64 = AtomicU64::new(0);
static NEXT_MONOTONIC: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static REFS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

fn next(own: &Cell<(u64, u64)>, all: &AtomicU64) -> u64 {
    let (mut at, mut end) = own.get();
    if at == end {
        at = all.fetch_add(BLOCK, Ordering::Relaxed);
        end = at + BLOCK;
    }
    own.set((at + 1, end));
    at
}

/// The numbers of a new reference.
#[must_use]
pub(crate) fn make_ref() -> RefNumbers {
    if let Some(numbers) = identity::reference() {
        return numbers;
    }
    let value = REFS.with(|own| next(own, &NEXT_REF));
    let low_bits = FIRST_BITS - 1;
    [
        (value & ((1 << low_bits) - 1)) as u32,
        (value >> low_bits) as u32,
        (value >> (low_bits + 32)) as u32,
    ]
}

/// Bit of the first number that tells a reference that names its process (`alias/0` and the like).
const PID_REF: u32 = 1 << (FIRST_BITS - 1);

/// The numbers of a new reference that names its process.
#[must_use]
pub(crate) fn make_pid_ref() -> RefNumbers {
    let [low, middle, high] = make_ref();
    [low | PID_REF, middle, high]
}

/// Were these numbers made for a reference that names its process?
#[must_use]
pub(crate) fn is_pid_ref(numbers: RefNumbers) -> bool {
    numbers[0] & PID_REF != 0
}

/// The reference of the process `pid` with these numbers: one that is or was an alias names the process.
#[must_use]
pub(crate) fn reference_of(heap: &Heap, numbers: RefNumbers, pid: Pid) -> Term<'_> {
    match is_pid_ref(numbers) {
        true => heap.pid_reference(numbers, pid),
        false => heap.reference(numbers),
    }
}

/// A unique integer, counted from 0, that is the same in a replay: only where the order of the run is asked for.
#[must_use]
pub(crate) fn integer_of_process() -> Option<i128> {
    identity::integer()
}

/// A thread, 0 for those that are no schedulers, and a count that it gives once.
#[must_use]
pub fn unique_integer() -> (u64, u64) {
    match crate::sched::current_id() {
        None => (0, NEXT_UNIQUE.fetch_add(1, Ordering::Relaxed)),
        Some(id) => (id as u64 + 1, crate::sched::next_unique(id)),
    }
}

/// An integer greater than all that were given before, counted from 0.
#[must_use]
pub(crate) fn monotonic_integer() -> i64 {
    NEXT_MONOTONIC.fetch_add(1, Ordering::Relaxed)
}

/// The first integer of each kind that may be negative: the smallest small one.
pub(crate) const FIRST: i64 = crate::term::tag::MIN_SMALL;

/// The next integer of those that `unique_integer([monotonic])` gives.
pub(crate) fn unique_monotonic() -> i64 {
    FIRST + monotonic_integer()
}

/// The count of the last monotonic integer given; all ones before the first.
#[must_use]
pub fn monotonic_state() -> u64 {
    NEXT_MONOTONIC.load(Ordering::Relaxed).wrapping_sub(1) as u64
}

/// Goes on counting behind `state`, as [`monotonic_state`] tells it; `false` where integers would end.
pub(crate) fn set_monotonic_state(state: u64) -> bool {
    let next = state.wrapping_add(1);
    match i64::try_from(next) {
        Ok(next) if next < i64::MAX / 2 => {
            NEXT_MONOTONIC.store(next, Ordering::Relaxed);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_integers_are_unique_across_threads() {
        let make = || {
            let refs: Vec<_> = (0..5000).map(|_| make_ref()).collect();
            let ints: Vec<_> = (0..5000).map(|_| unique_integer()).collect();
            (refs, ints)
        };
        let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(make)).collect();
        let (mut refs, mut ints) = make();
        for thread in threads {
            let (r, i) = thread.join().unwrap();
            refs.extend(r);
            ints.extend(i);
        }
        let (n, m) = (refs.len(), ints.len());
        refs.sort_unstable();
        refs.dedup();
        ints.sort_unstable();
        ints.dedup();
        assert_eq!((refs.len(), ints.len()), (n, m));
    }

    #[test]
    fn monotonic_integers_grow() {
        let a = monotonic_integer();
        assert!(monotonic_integer() > a);
    }
}
