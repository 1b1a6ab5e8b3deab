//! Who waits for descriptors: one scheduler that has nothing to run, at a time.
//!
//! The scheduler has the *turn* from before it waits until it has taken in what came. While nobody has it, schedulers that
//! run processes look, every now and then. So an event wakes the thread that calls whoever waits for it, and no other.
//!
//! One case is left: the scheduler that had the turn makes a native call that takes long, and the others sleep already,
//! where no descriptor wakes them. The thread `poll` glances at the turn for that, and where nobody has had it or looked for a whole
//! glance ([`Turn::is_neglected`]), it wakes a scheduler, which finds nothing to run and takes the turn. The thread sees
//! no descriptors itself, so an event has one taker. It rests while a scheduler has the turn.
//!
//! All is in one word, which every step changes by a read-modify-write. So of a thread that is about to rest and a
//! scheduler that gives the turn back, one comes first: the thread sees another word and does not rest, or the scheduler
//! sees that it rests and wakes it.

use beamline_runtime_base::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, wait};

/// A scheduler has the turn.
const HELD: u64 = 1;
/// The thread rests until the turn is given back.
const RESTS: u64 = 2;
/// The turn was taken, given back, or somebody looked: no two glances see the same word by chance.
const STEP: u64 = 4;

/// The turn to wait for descriptors.
#[derive(Debug, Default)]
pub(super) struct Turn {
    state: AtomicU64,
    /// The thread was told that the turn is given back.
    is_told: Mutex<bool>,
    tell: Condvar,
}

impl Turn {
    /// Takes the turn, unless somebody has it.
    pub(super) fn take(&self) -> bool {
        self.step(HELD)
    }

    /// Whether the caller may look at the descriptors: nobody has the turn, whom they would wake.
    pub(super) fn may_look(&self) -> bool {
        self.step(0)
    }

    /// Makes another word, with the bits `then`, unless somebody has the turn.
    fn step(&self, then: u64) -> bool {
        let step = |state: u64| (state & HELD == 0).then_some(state.wrapping_add(STEP) | then);
        let changed = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, step);
        changed.is_ok()
    }

    /// Gives the turn back; whoever has it calls this once.
    pub(super) fn give_back(&self) {
        let step = |state: u64| Some((state & !(HELD | RESTS)).wrapping_add(STEP));
        let before = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, step);
        debug_assert!(before.is_ok_and(|state| state & HELD != 0), "nobody has it");
        if before.is_ok_and(|state| state & RESTS != 0) {
            *lock(&self.is_told) = true;
            self.tell.notify_one();
        }
    }

    /// Whether nobody has had the turn or looked since `seen`, which becomes what is seen now. Rests where a scheduler has had the
    /// turn all that time, until it gives it back. Only the thread calls this.
    pub(super) fn is_neglected(&self, seen: &mut Option<u64>) -> bool {
        let state = self.state.load(Ordering::Acquire);
        let is_same = seen.replace(state) == Some(state);
        if is_same && state & HELD != 0 {
            let rest = state | RESTS;
            let rests =
                self.state
                    .compare_exchange(state, rest, Ordering::AcqRel, Ordering::Acquire);
            if rests.is_ok() {
                self.rest();
            }
        }
        is_same && state & HELD == 0
    }

    fn rest(&self) {
        let mut is_told = lock(&self.is_told);
        while !*is_told {
            is_told = wait(&self.tell, is_told);
        }
        *is_told = false;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_turn_and_nobody_looks_meanwhile() {
        let turn = Turn::default();
        assert!(turn.may_look() && turn.take());
        assert!(!turn.take() && !turn.may_look());
        turn.give_back();
        assert!(turn.may_look() && turn.take());
    }

    #[test]
    fn what_nobody_has_or_looks_at_is_neglected() {
        let (turn, mut seen) = (Turn::default(), None);
        assert!(!turn.is_neglected(&mut seen), "the first glance");
        assert!(turn.is_neglected(&mut seen) && turn.is_neglected(&mut seen));
        assert!(turn.may_look());
        assert!(!turn.is_neglected(&mut seen));
        assert!(turn.take());
        assert!(!turn.is_neglected(&mut seen), "it has just been taken");
        turn.give_back();
        assert!(!turn.is_neglected(&mut seen));
        assert!(turn.is_neglected(&mut seen));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// The thread glances three times, while a scheduler takes the turn and gives it back, and takes it again. Loom fails
    /// the model if the thread rests for ever.
    #[test]
    fn loom_the_thread_does_not_rest_while_nobody_has_the_turn() {
        loom::model(|| {
            let turn = Arc::new(Turn::default());
            let glances = {
                let turn = Arc::clone(&turn);
                thread::spawn(move || {
                    let mut seen = None;
                    for _ in 0..3 {
                        turn.is_neglected(&mut seen);
                    }
                })
            };
            for _ in 0..2 {
                assert!(turn.take());
                turn.give_back();
            }
            glances.join().unwrap();
        });
    }

    #[test]
    fn loom_one_of_two_has_the_turn() {
        loom::model(|| {
            let shared = Arc::new((Turn::default(), loom::cell::UnsafeCell::new(0)));
            // What the holder writes is seen by the next: loom fails the model otherwise.
            let hold = |shared: &(Turn, loom::cell::UnsafeCell<u32>)| {
                if shared.0.take() {
                    // The turn is the only way here.
                    shared.1.with_mut(|_| ());
                    shared.0.give_back();
                }
            };
            let other = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || hold(&shared))
            };
            hold(&shared);
            other.join().unwrap();
        });
    }
}
