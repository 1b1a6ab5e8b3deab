//! Chooses the scheduler that waits for descriptors: one at a time, which has nothing to run.
//!
//! The scheduler has the *turn* from before it waits until it has taken in what came. So an event wakes the thread that
//! calls whoever waits for it, and no other.
//!
//! While nobody has the turn, schedulers that run processes look, every now and then. That is a system call each time, for
//! nothing where nothing comes, and nobody makes it while all schedulers make long native calls, or sleep where no descriptor
//! wakes them. So where nobody has had the turn or taken an event for a whole glance, the thread `poll` is *on watch*: it
//! waits until there is an event, takes none, and so an event has one taker. Until then nobody need look. Then the schedulers
//! that run processes look again, and one that sleeps is woken. The thread has the turn between the two, for as long as it
//! takes an interrupt back.
//!
//! While a scheduler has the turn for longer, the thread rests.
//!
//! All is in one word, which every step changes by a read-modify-write. So of a thread that is about to rest and a
//! scheduler that gives the turn back, one comes first: the thread sees another word and does not rest, or the scheduler
//! sees that it rests and wakes it. Nobody wakes a thread on watch but an event, which is there until it is taken: one that
//! came before the watch ends it at once. A scheduler may take the turn meanwhile, and the event wakes both.

use beamline_runtime_base::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, wait};

/// A scheduler has the turn.
const HELD: u64 = 1;
/// The thread rests until the turn is given back.
const RESTS: u64 = 2;
/// The thread is on watch.
const WATCHED: u64 = 4;
/// The turn was taken or given back, or an event was taken: no two glances see the same word by chance.
const STEP: u64 = 8;

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
        let step = |state: u64| (state & HELD == 0).then_some(state.wrapping_add(STEP) | HELD);
        let changed = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, step);
        changed.is_ok()
    }

    /// Whether somebody has the turn, whom others that look would take events from.
    pub(super) fn is_taken(&self) -> bool {
        self.state.load(Ordering::Relaxed) & HELD != 0
    }

    /// Whether somebody waits for events, so that one that runs processes need not look. May be stale: it asks again.
    pub(super) fn is_waited(&self) -> bool {
        self.state.load(Ordering::Relaxed) & (HELD | WATCHED) != 0
    }

    /// Puts the next watch off: one without the turn has taken events.
    pub(super) fn note_events(&self) {
        self.state.fetch_add(STEP, Ordering::AcqRel);
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

    /// Begins a watch where nobody has had the turn or taken events since `seen`, which becomes what is seen now; whether it has
    /// begun. Rests where a scheduler has had the turn all that time, until it gives it back. Only the thread calls this.
    pub(super) fn begins_watch(&self, seen: &mut Option<u64>) -> bool {
        let state = self.state.load(Ordering::Acquire);
        if seen.replace(state) != Some(state) {
            return false;
        }
        let is_held = state & HELD != 0;
        let then = state | if is_held { RESTS } else { WATCHED };
        let changed = self
            .state
            .compare_exchange(state, then, Ordering::AcqRel, Ordering::Acquire);
        if changed.is_ok() && is_held {
            self.rest();
        }
        changed.is_ok() && !is_held
    }

    /// Ends the watch that has begun.
    pub(super) fn end_watch(&self) {
        let step = |state: u64| Some((state & !WATCHED).wrapping_add(STEP));
        let _ = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, step);
    }

    #[cfg(test)]
    pub(super) fn word(&self) -> u64 {
        self.state.load(Ordering::Acquire)
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
        assert!(!turn.is_waited() && !turn.is_taken() && turn.take());
        assert!(!turn.take() && turn.is_waited() && turn.is_taken());
        turn.give_back();
        assert!(!turn.is_waited() && turn.take());
    }

    #[test]
    fn a_watch_begins_where_nobody_has_the_turn_or_takes_events() {
        let (turn, mut seen) = (Turn::default(), None);
        assert!(!turn.begins_watch(&mut seen), "the first glance");
        assert!(turn.begins_watch(&mut seen) && turn.is_waited() && !turn.is_taken());
        turn.end_watch();
        assert!(!turn.is_waited() && !turn.begins_watch(&mut seen));
        turn.note_events();
        assert!(!turn.begins_watch(&mut seen));
        assert!(turn.take());
        assert!(!turn.begins_watch(&mut seen), "it has just been taken");
        turn.give_back();
        assert!(!turn.begins_watch(&mut seen) && turn.begins_watch(&mut seen));
    }

    #[test]
    fn the_turn_is_taken_and_given_back_during_a_watch() {
        let (turn, mut seen) = (Turn::default(), None);
        assert!(!turn.begins_watch(&mut seen) && turn.begins_watch(&mut seen));
        assert!(turn.take() && turn.is_taken());
        turn.give_back();
        assert!(turn.is_waited() && !turn.is_taken());
        assert!(turn.take());
        turn.end_watch();
        assert!(turn.is_taken());
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
                        if turn.begins_watch(&mut seen) {
                            turn.end_watch();
                        }
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

    /// An event comes, at any time, while a scheduler that never sleeps asks whether to look. When a watch has seen the event,
    /// the scheduler looks: loom fails the model if either of them waits for the other.
    #[test]
    fn loom_what_comes_during_a_watch_is_looked_for() {
        loom::model(|| {
            // The descriptors: there is an event, or none.
            let shared = Arc::new((Turn::default(), Mutex::new(false), Condvar::new()));
            let comes = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    *lock(&shared.1) = true;
                    shared.2.notify_all();
                })
            };
            let watches = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let mut seen = None;
                    while !shared.0.begins_watch(&mut seen) {}
                    let mut is_there = lock(&shared.1);
                    while !*is_there {
                        is_there = wait(&shared.2, is_there);
                    }
                    drop(is_there);
                    shared.0.end_watch();
                })
            };
            let looks_early = !shared.0.is_waited();
            comes.join().unwrap();
            watches.join().unwrap();
            // Whatever it saw before, it looks now.
            let looks_late = !shared.0.is_waited();
            assert!(looks_late, "{looks_early}");
        });
    }

    /// A scheduler comes to sleep while the thread has the turn, and does not get it. The thread wakes it afterwards: loom
    /// fails the model if it sleeps on while nobody has the turn.
    #[test]
    fn loom_one_that_did_not_get_the_turn_of_the_thread_is_woken() {
        loom::model(|| {
            let shared = Arc::new((
                Turn::default(),
                AtomicU64::new(0),
                Mutex::new(false),
                Condvar::new(),
            ));
            let thread = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (turn, idle, token, wakes) = &*shared;
                    if !turn.take() {
                        return;
                    }
                    turn.give_back();
                    // As `Parking::wake`.
                    if idle.swap(0, Ordering::AcqRel) == 1 {
                        *lock(token) = true;
                        wakes.notify_one();
                    }
                })
            };
            let (turn, idle, token, wakes) = &*shared;
            idle.swap(1, Ordering::AcqRel);
            while !turn.take() {
                let mut is_there = lock(token);
                while !*is_there {
                    is_there = wait(wakes, is_there);
                }
                *is_there = false;
                drop(is_there);
                idle.swap(1, Ordering::AcqRel);
            }
            thread.join().unwrap();
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
