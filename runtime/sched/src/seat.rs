//! The seat of a scheduler: which of two threads is the scheduler, its own or its deputy.
//!
//! A scheduler's own thread may make a call that is usually short and may take long. It leaves its seat for that, and
//! takes it again after the call. The deputy wakes up at the first call, and then glances at the seat at regular times.
//! Where it sees the same call twice, it takes the seat, and is the scheduler until the own thread has come back. Where
//! it sees no new call, it sleeps. So a short call wakes nobody, and a long one holds a scheduler up for two glances at
//! most.
//!
//! ```text
//!   seat.leave(); call();                           // the own thread
//!   if !seat.take_again() { seat.wait() }
//!   loop { seat.watch(); while !seat.is_waited_for() { schedule() } seat.hand_back(); }   // the deputy
//! ```
//!
//! Source: Go's `retake()` of `proc.go`, by its idea; ERTS has nothing like it.

use std::fmt;
use std::time::Duration;

use beamline_runtime_base::sync::{AtomicU64, Ordering};

use crate::parker::Parker;

/// The seat is left for a call.
const LEFT: u64 = 1;
/// The deputy has the seat.
const DEPUTED: u64 = 2;
/// The own thread waits for the seat.
const WAITED_FOR: u64 = 4;
/// The deputy is awake, and will glance again.
const WATCHED: u64 = 8;
/// One call: they are counted in the bits above the others.
const CALL: u64 = 16;

/// How long the deputy sleeps between two glances.
const GLANCES: Duration = Duration::from_millis(1);

/// The seat of one scheduler.
#[derive(Default)]
pub struct Seat {
    state: AtomicU64,
    own: Parker,
    deputy: Parker,
}

impl Seat {
    /// A seat with its own thread.
    #[must_use]
    pub fn new() -> Seat {
        Seat {
            state: AtomicU64::new(0),
            own: Parker::new(),
            deputy: Parker::new(),
        }
    }

    /// The own thread leaves for a call: what it has done is visible to the deputy if that takes the seat.
    pub fn leave(&self) {
        let before = self.change(|state| state.wrapping_add(CALL) | LEFT | WATCHED);
        if before & WATCHED == 0 {
            self.deputy.unpark();
        }
    }

    /// The own thread comes back from its call: `true` where the seat is its own still.
    #[must_use]
    pub fn take_again(&self) -> bool {
        self.change(|state| state & !LEFT) & DEPUTED == 0
    }

    /// The own thread waits until the deputy has handed the seat back.
    pub fn wait(&self) {
        self.change(|state| state | WAITED_FOR);
        while self.state.load(Ordering::Acquire) & DEPUTED != 0 {
            self.own.park(None);
        }
    }

    /// The deputy sleeps and glances, until it has taken the seat.
    pub fn watch(&self) {
        let mut seen = None;
        loop {
            let state = self.state.load(Ordering::Acquire);
            let is_same = seen.replace(state) == Some(state);
            let is_left = state & LEFT != 0;
            if is_same && is_left && self.replace(state, state | DEPUTED).is_ok() {
                return;
            }
            let rests = is_same && !is_left && self.replace(state, state & !WATCHED).is_ok();
            self.deputy.park((!rests).then_some(GLANCES));
        }
    }

    /// Whether the own thread waits for the seat, which the deputy has.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        self.state.load(Ordering::Acquire) & WAITED_FOR != 0
    }

    /// The deputy hands the seat back to the own thread, which waits for it.
    pub fn hand_back(&self) {
        self.change(|state| state & !(DEPUTED | WAITED_FOR));
        self.own.unpark();
    }

    /// The state before the step.
    fn change(&self, step: impl Fn(u64) -> u64) -> u64 {
        let mut state = self.state.load(Ordering::Relaxed);
        while let Err(now) = self.replace(state, step(state)) {
            state = now;
        }
        state
    }

    fn replace(&self, state: u64, next: u64) -> Result<u64, u64> {
        self.state
            .compare_exchange(state, next, Ordering::AcqRel, Ordering::Relaxed)
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Ordering::Relaxed);
        f.debug_struct("Seat")
            .field("calls", &(state / CALL))
            .field("is_left", &(state & LEFT != 0))
            .field("is_deputed", &(state & DEPUTED != 0))
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn a_short_call_keeps_the_seat() {
        let seat = Seat::new();
        for _ in 0..3 {
            seat.leave();
            assert!(seat.take_again());
        }
        assert!(!seat.is_waited_for());
        assert_eq!(
            format!("{seat:?}"),
            "Seat { calls: 3, is_left: false, is_deputed: false, .. }"
        );
    }

    #[test]
    fn a_long_call_gives_the_seat_to_the_deputy_until_it_ends() {
        let seat = Arc::new(Seat::new());
        let (tell, told) = channel();
        let deputy = {
            let seat = Arc::clone(&seat);
            thread::spawn(move || {
                for _ in 0..2 {
                    seat.watch();
                    assert!(!seat.is_waited_for());
                    tell.send(()).unwrap();
                    while !seat.is_waited_for() {
                        thread::yield_now();
                    }
                    seat.hand_back();
                }
            })
        };
        for _ in 0..2 {
            seat.leave();
            told.recv().unwrap();
            assert!(!seat.take_again());
            seat.wait();
        }
        deputy.join().unwrap();
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    #![expect(
        unsafe_code,
        reason = "a cell that loom checks for two schedulers at a time"
    )]

    use loom::{cell::UnsafeCell, sync::Arc, thread};

    use super::*;

    /// What only the scheduler may touch.
    struct Office(UnsafeCell<u32>);

    // SAFETY: the thread in the seat is alone with it, which loom checks.
    unsafe impl Sync for Office {}

    impl Office {
        fn work(&self) {
            // SAFETY: as above.
            self.0.with_mut(|number| unsafe { *number += 1 });
        }
    }

    #[test]
    fn loom_one_thread_has_the_seat() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = Arc::new((Seat::new(), Office(UnsafeCell::new(0))));
            let deputy = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (seat, office) = &*shared;
                    // One glance, then another: the model has no clock.
                    let seen = seat.state.load(Ordering::Acquire);
                    if seen & LEFT != 0 && seat.replace(seen, seen | DEPUTED).is_ok() {
                        office.work();
                        while !seat.is_waited_for() {
                            thread::yield_now();
                        }
                        office.work();
                        seat.hand_back();
                    }
                })
            };
            let (seat, office) = &*shared;
            for _ in 0..2 {
                office.work();
                seat.leave();
                if !seat.take_again() {
                    seat.wait();
                }
                office.work();
            }
            deputy.join().unwrap();
        });
    }
}
