//! References and unique integers that are the same in a replay: while the order of a run is recorded or followed, they
//! are made of the process that makes them and a count of its own, and so nobody has to record them.
//!
//! A process has its count in hand while it runs, and keeps it while others run. What a native function makes whose
//! answer is recorded does not count: in a replay the function is not called.

use std::cell::Cell;

use crate::process::refs::RefNumbers;
use crate::process::{Process, order};

/// A process that makes names: low bits of its pid, and how many it has made.
#[derive(Clone, Copy)]
struct Maker {
    pid: u32,
    made: u64,
}

thread_local! {
    static MAKER: Cell<Option<Maker>> = const { Cell::new(None) };
}

/// Bits of the first number of a reference that are free for counts.
const LOW_BITS: u32 = 17;
/// No count of threads comes to this bit of the last number.
const BY_PROCESS: u32 = 1 << 31;
/// Integers of processes begin here: none of a thread comes so far.
const INTEGERS: i128 = 1 << 58;

/// The next count of the process that runs here.
fn next() -> Option<Maker> {
    let maker = MAKER.get()?;
    let made = maker.made + 1;
    MAKER.set(Some(Maker { made, ..maker }));
    Some(maker)
}

/// Which of the references and integers of its process one with these numbers is, from 1; `None` where no process has
/// made it, or it has made too many.
pub(in crate::process) fn number_of([low, _, high]: RefNumbers) -> Option<u32> {
    let is_of_process = order::is_active() && high & BY_PROCESS != 0;
    let low = low & ((1 << LOW_BITS) - 1);
    let made = u64::from(high & !BY_PROCESS) << LOW_BITS | u64::from(low);
    u32::try_from(made + 1).ok().filter(|_| is_of_process)
}

/// The numbers of a new reference, where the order is asked for and a process runs here.
#[inline]
pub(in crate::process) fn reference() -> Option<RefNumbers> {
    if !order::is_active() {
        return None;
    }
    let Maker { pid, made } = next()?;
    let low = (made & ((1 << LOW_BITS) - 1)) as u32;
    Some([low, pid, BY_PROCESS | (made >> LOW_BITS) as u32])
}

/// A new unique integer, counted from 0, where the order is asked for and a process runs here.
#[inline]
pub(in crate::process) fn integer() -> Option<i128> {
    if !order::is_active() {
        return None;
    }
    let Maker { pid, made } = next()?;
    Some(INTEGERS + (i128::from(made) << u32::BITS) + i128::from(pid))
}

/// Calls `call`; what it makes is not named after the process.
pub(in crate::process) fn without<T>(call: impl FnOnce() -> T) -> T {
    let maker = MAKER.take();
    let result = call();
    MAKER.set(maker);
    result
}

impl Process {
    /// Its code begins to run on this thread.
    #[inline]
    pub(in crate::process) fn take_count(&self) {
        if order::is_active() {
            let (pid, made) = ((self.pid().0 & 0xffff_ffff) as u32, self.names_made());
            MAKER.set(Some(Maker { pid, made }));
        }
    }

    /// It runs here no more.
    #[inline]
    pub(in crate::process) fn keep_count(&self) {
        if let Some(maker) = order::is_active().then(|| MAKER.take()).flatten() {
            self.set_names_made(maker.made);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_a_process_and_its_count() {
        let named = |pid, made| {
            MAKER.set(Some(Maker { pid, made }));
            let reference = next().map(|_| ());
            assert!(reference.is_some());
            MAKER.take().map(|maker| maker.made)
        };
        assert_eq!(named(7, 0), Some(1));
        MAKER.set(Some(Maker { pid: 7, made: 3 }));
        without(|| assert!(next().is_none(), "nobody makes a name"));
        assert_eq!(next().map(|maker| maker.made), Some(3));
        MAKER.take();
    }
}
