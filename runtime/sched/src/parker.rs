//! Lets schedulers sleep and wakes them. No wake-up is lost, and none is made for nothing.
//!
//! A scheduler that finds no work announces itself idle, looks once more, and sleeps:
//!
//! ```text
//!   loop {                                          // in the scheduler `id`
//!       if let Some(work) = find() { run(work); continue }
//!       parking.announce(id);
//!       if has_work() { parking.retract(id); continue }
//!       parking.sleep(id, next_timer);
//!   }
//! ```
//!
//! A thread that makes work for others (surplus in a run queue, a push to another's queue) makes the work first, and
//! then calls [`Parking::wake_one`] or [`Parking::wake`]. Both sides write the same word, so the sleeper sees the work
//! or the waker sees the sleeper.

use std::{fmt, time::Duration};

use crossbeam_utils::CachePadded;

use beamline_runtime_base::sync::{
    AtomicU32, AtomicU64, Condvar, Mutex, Ordering, lock, spin_loop, wait, wait_timeout,
};
use beamline_runtime_sys::chance::clock::outside_now;
use beamline_runtime_sys::chance::poll;

const EMPTY: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;
/// The thread waits for descriptors, and an interrupt of that wakes it.
const OUTSIDE: u32 = 3;

/// Looks at the token before a thread sleeps: some 1 µs, less than a sleep and a wake-up cost.
const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };

/// How long a scheduler looks for work before it sleeps (`+sbwt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyWait {
    looks: u32,
}

impl BusyWait {
    /// The one of this name. Source: `erts_sched_set_busy_wait_threshold()` in `erl_process.c`, OTP 29.
    #[must_use]
    pub fn named(name: &str) -> Option<BusyWait> {
        let thousands = match name {
            "none" => 0,
            "very_short" => 5,
            "short" | "medium" => 10,
            "long" => 20,
            "very_long" => 40,
            _ => return None,
        };
        Some(BusyWait {
            looks: thousands * 1000,
        })
    }
}

/// How long threads that hand a call over to each other look for what comes next before they sleep: a short call comes
/// back sooner than a thread falls asleep and wakes up.
const SHORT_CALL: Duration = Duration::from_micros(20);

/// Looks whether it `is_there`, as long as a short call takes; whether it is.
pub fn look(mut is_there: impl FnMut() -> bool) -> bool {
    if cfg!(loom) {
        return is_there();
    }
    let begin = outside_now();
    loop {
        for _ in 0..LOOKS_A_TIME {
            if is_there() {
                return true;
            }
            spin_loop();
        }
        if outside_now().duration_since(begin) >= SHORT_CALL {
            return false;
        }
    }
}

/// Looks between two looks at the clock.
const LOOKS_A_TIME: u32 = 16;

/// Why a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// Somebody called.
    Notified,
    /// The time was up.
    TimedOut,
}

/// One thread's place to sleep: a token that [`Parker::unpark`] leaves and one park takes.
#[derive(Debug, Default)]
pub struct Parker {
    token: AtomicU32,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Parker {
    /// Without a token.
    #[must_use]
    pub fn new() -> Self {
        Self {
            token: AtomicU32::new(EMPTY),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    fn take_token(&self) -> bool {
        self.token
            .compare_exchange(NOTIFIED, EMPTY, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Sleeps until the token is there, or `timeout` has passed; takes the token.
    ///
    /// Only one thread may park at a time.
    pub fn park(&self, timeout: Option<Duration>) -> Woken {
        self.park_after(SPINS, timeout)
    }

    /// As [`Parker::park`], after `looks` looks at the token.
    fn park_after(&self, looks: u32, timeout: Option<Duration>) -> Woken {
        for _ in 0..looks {
            if self.take_token() {
                return Woken::Notified;
            }
            spin_loop();
        }
        let deadline = timeout.and_then(|timeout| outside_now().checked_add(timeout));
        let mut guard = lock(&self.lock);
        if self
            .token
            .compare_exchange(EMPTY, PARKED, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            self.token.swap(EMPTY, Ordering::Acquire);
            return Woken::Notified;
        }
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(outside_now()));
            if left.is_some_and(|left| left.is_zero()) {
                return match self.token.swap(EMPTY, Ordering::Acquire) {
                    NOTIFIED => Woken::Notified,
                    _ => Woken::TimedOut,
                };
            }
            guard = match left {
                Some(left) => wait_timeout(&self.wake, guard, left),
                None => wait(&self.wake, guard),
            };
            if self.take_token() {
                return Woken::Notified;
            }
        }
    }

    /// Has the thread wait somewhere else, by `wait`, unless the token is there; takes the token.
    ///
    /// The token is left before the wait is said to be: then it is seen here, and nobody waits. Or it is left after that:
    /// then its giver interrupts the wait, and an interrupt lasts until a wait has seen it, also one that begins later. Where
    /// the wait has ended by itself meanwhile, the next one ends at once, for nothing.
    fn park_outside(&self, wait: impl FnOnce()) -> Woken {
        let goes =
            self.token
                .compare_exchange(EMPTY, OUTSIDE, Ordering::Relaxed, Ordering::Relaxed);
        if goes.is_ok() {
            wait();
        }
        match self.token.swap(EMPTY, Ordering::Acquire) {
            NOTIFIED => Woken::Notified,
            _ => Woken::TimedOut,
        }
    }

    /// Leaves the token and wakes the thread that sleeps, if one does.
    #[inline]
    pub fn unpark(&self) {
        self.unpark_by(poll::interrupt);
    }

    fn unpark_by(&self, interrupt: impl FnOnce()) {
        match self.token.swap(NOTIFIED, Ordering::Release) {
            PARKED => {
                // The sleeper holds the lock between PARKED and its wait: not before it waits.
                drop(lock(&self.lock));
                self.wake.notify_one();
            }
            OUTSIDE => interrupt(),
            _ => {}
        }
    }
}

/// The places of all schedulers, and which of them are idle.
pub struct Parking {
    parkers: Box<[CachePadded<Parker>]>,
    /// A bit for each idle scheduler. Changed *and looked at* by read-modify-writes only: of
    /// an announcement and a wake-up one comes first, and the other sees all before it.
    idle: Box<[AtomicU64]>,
    /// Looks before a sleep.
    looks: u32,
}

impl Parking {
    /// Places for `schedulers`, none idle. Without a busy wait they look for as long as a sleep and a wake-up cost.
    #[must_use]
    pub fn new(schedulers: usize, busy_wait: Option<BusyWait>) -> Self {
        Self {
            looks: busy_wait.map_or(SPINS, |busy_wait| busy_wait.looks),
            parkers: (0..schedulers)
                .map(|_| CachePadded::new(Parker::new()))
                .collect(),
            idle: (0..schedulers.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
        }
    }

    /// How many are idle; may be stale.
    #[inline]
    #[must_use]
    pub fn idle(&self) -> usize {
        let count = |word: &AtomicU64| word.load(Ordering::Relaxed).count_ones() as usize;
        self.idle.iter().map(count).sum()
    }

    /// Scheduler `id` found no work. It must look once more, at all that it is woken for,
    /// and then call [`Self::sleep`] or [`Self::retract`].
    #[inline]
    pub fn announce(&self, id: usize) {
        self.idle[id / 64].fetch_or(1 << (id % 64), Ordering::AcqRel);
    }

    /// Scheduler `id` found work after all. A wake-up made for it meanwhile is passed on,
    /// as the work found need not be the work that the waker made.
    #[inline]
    pub fn retract(&self, id: usize) {
        if !self.claim(id) {
            self.wake_one();
        }
    }

    /// Sleeps until woken or until `timeout` has passed. Scheduler `id` is no longer idle then.
    pub fn sleep(&self, id: usize, timeout: Option<Duration>) -> Woken {
        let woken = self.parkers[id].park_after(self.looks, timeout);
        self.end_sleep(id, woken)
    }

    /// As [`Parking::sleep`], for a scheduler that has just handed a call over: it stays awake for as long as a short
    /// one takes.
    pub fn look_and_sleep(&self, id: usize, timeout: Option<Duration>) -> Woken {
        let parker = &self.parkers[id];
        let woken = match look(|| parker.take_token()) {
            true => Woken::Notified,
            false => parker.park(timeout),
        };
        self.end_sleep(id, woken)
    }

    /// As [`Parking::sleep`], for a scheduler that waits for descriptors meanwhile, by `wait`. It waits for what comes from
    /// outside, and looks for a token no longer than a sleep and a wake-up cost, or as long as a call takes that it `has_handed_over`.
    pub fn sleep_outside(&self, id: usize, has_handed_over: bool, wait: impl FnOnce()) -> Woken {
        let parker = &self.parkers[id];
        let is_there = match has_handed_over {
            true => look(|| parker.take_token()),
            false => (0..SPINS).any(|_| {
                spin_loop();
                parker.take_token()
            }),
        };
        let woken = match is_there {
            true => Woken::Notified,
            false => parker.park_outside(wait),
        };
        self.end_sleep(id, woken)
    }

    fn end_sleep(&self, id: usize, woken: Woken) -> Woken {
        // Claimed by a waker whose token is still to come: the next sleep ends at once.
        let claimed = !self.claim(id);
        if claimed { Woken::Notified } else { woken }
    }

    /// Takes the idle bit of `id`: of a sleeper and its wakers one gets it.
    #[inline]
    fn claim(&self, id: usize) -> bool {
        let bit = 1 << (id % 64);
        self.idle[id / 64].fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// Wakes one idle scheduler, the lowest. `false` when none is.
    #[inline]
    pub fn wake_one(&self) -> bool {
        (0..self.idle.len()).any(|word| {
            // Not a load: see `idle`.
            let mut bits = self.idle[word].fetch_or(0, Ordering::AcqRel);
            while bits != 0 {
                if self.wake(word * 64 + bits.trailing_zeros() as usize) {
                    return true;
                }
                bits &= bits - 1;
            }
            false
        })
    }

    /// Wakes an idle scheduler for the work of scheduler `id`: the next one below it, then from the highest on. `false` when
    /// none is. Source: `wake_scheduler_on_empty_runq()` in `erl_process.c`, OTP 29.
    pub fn wake_below(&self, id: usize) -> bool {
        let count = self.parkers.len();
        self.idle() > 0 && (1..count).any(|step| self.wake((id + count - step) % count))
    }

    /// Wakes scheduler `id` when it is idle; `false` when it is not.
    #[inline]
    pub fn wake(&self, id: usize) -> bool {
        let claimed = self.claim(id);
        if claimed {
            self.parkers[id].unpark();
        }
        claimed
    }

    /// Wakes all that are idle.
    pub(crate) fn wake_all(&self) {
        for id in 0..self.parkers.len() {
            self.wake(id);
        }
    }
}

impl fmt::Debug for Parking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parking")
            .field("schedulers", &self.parkers.len())
            .field("idle", &self.idle())
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    #[test]
    fn a_token_left_before_ends_the_next_park_at_once() {
        let parker = Parker::new();
        parker.unpark();
        parker.unpark();
        assert_eq!(parker.park(None), Woken::Notified);
        let short = Some(Duration::from_millis(5));
        let start = outside_now();
        assert_eq!(parker.park(short), Woken::TimedOut);
        assert!(start.elapsed() >= Duration::from_millis(5));
        assert_eq!(parker.park(Some(Duration::ZERO)), Woken::TimedOut);
    }

    #[test]
    fn only_idle_schedulers_are_woken_and_each_once() {
        let parking = Parking::new(3, None);
        assert!(!parking.wake_one());
        parking.announce(1);
        parking.announce(2);
        assert_eq!(parking.idle(), 2);
        assert!(parking.wake_one() && !parking.wake(1));
        assert_eq!(parking.sleep(1, None), Woken::Notified);
        parking.retract(2);
        assert_eq!(parking.idle(), 0);
        assert!(!parking.wake_one());
    }

    #[test]
    fn work_of_a_scheduler_wakes_the_next_below() {
        let parking = Parking::new(4, None);
        for id in [0, 1, 3] {
            parking.announce(id);
        }
        let woken = || {
            assert!(parking.wake_below(2));
            let left: Vec<_> = (0..4).filter(|id| parking.claim(*id)).collect();
            left.iter().for_each(|id| parking.announce(*id));
            left
        };
        assert_eq!([woken(), woken(), woken()], [vec![0, 3], vec![3], vec![]]);
        assert!(!parking.wake_below(2));
        parking.announce(2);
        assert!(!parking.wake_below(2), "it is awake itself");
    }

    #[test]
    fn a_busy_wait_has_a_name() {
        let looks = |name| BusyWait::named(name).map(|its| its.looks);
        assert_eq!(
            ["none", "medium", "very_long"].map(looks),
            [Some(0), Some(10_000), Some(40_000)]
        );
        assert_eq!(looks("high"), None);
    }

    #[test]
    fn a_wake_of_a_scheduler_that_found_work_goes_to_another() {
        let parking = Parking::new(2, None);
        parking.announce(0);
        parking.announce(1);
        assert!(parking.wake(0));
        parking.retract(0);
        assert_eq!(parking.idle(), 0);
        assert_eq!(parking.sleep(1, None), Woken::Notified);
    }

    #[test]
    fn a_sleeper_is_woken_by_another_thread() {
        let parking = Arc::new(Parking::new(1, None));
        for _ in 0..if cfg!(miri) { 5 } else { 500 } {
            let sleeper = {
                let parking = Arc::clone(&parking);
                thread::spawn(move || {
                    parking.announce(0);
                    parking.sleep(0, Some(Duration::from_secs(60)))
                })
            };
            while !parking.wake_one() {
                std::hint::spin_loop();
            }
            assert_eq!(sleeper.join().unwrap(), Woken::Notified);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::{sync::Arc, thread};

    use super::*;
    use crate::run_queue::{Priority, RunQueue};

    #[test]
    fn loom_no_unpark_is_lost() {
        loom::model(|| {
            let parker = Arc::new(Parker::new());
            let waker = {
                let parker = Arc::clone(&parker);
                thread::spawn(move || {
                    parker.unpark();
                })
            };
            // Loom fails the model if this never returns.
            assert_eq!(parker.park(None), Woken::Notified);
            waker.join().unwrap();
        });
    }

    /// What interrupts a wait for descriptors: it lasts until a wait has seen it.
    #[derive(Default)]
    struct Outside(Mutex<bool>, Condvar);

    impl Outside {
        fn wait(&self) {
            let mut is_interrupted = lock(&self.0);
            while !*is_interrupted {
                is_interrupted = wait(&self.1, is_interrupted);
            }
            *is_interrupted = false;
        }

        fn interrupt(&self) {
            *lock(&self.0) = true;
            self.1.notify_one();
        }
    }

    #[test]
    fn loom_no_unpark_of_one_that_waits_outside_is_lost() {
        loom::model(|| {
            let shared = Arc::new((Parker::new(), Outside::default()));
            let waker = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.0.unpark_by(|| shared.1.interrupt());
                })
            };
            // Nothing comes from outside: only the waker ends this.
            let woken = shared.0.park_outside(|| shared.1.wait());
            assert_eq!(woken, Woken::Notified);
            waker.join().unwrap();
        });
    }

    /// The first waits outside until a byte comes, which takes the token of a waker or leaves its interrupt for the second.
    /// The second waits by another parker: its own waker wakes it all the same.
    #[test]
    fn loom_an_interrupt_of_an_earlier_wait_takes_none_of_the_next() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = Arc::new(([Parker::new(), Parker::new()], Outside::default()));
            let waker = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    for parker in &shared.0 {
                        parker.unpark_by(|| shared.1.interrupt());
                    }
                })
            };
            // Its wait ends by itself.
            shared.0[0].park_outside(|| ());
            while shared.0[1].park_outside(|| shared.1.wait()) != Woken::Notified {}
            waker.join().unwrap();
        });
    }

    /// Runs until an item comes: deadlocks, which loom reports, if its wake-up is lost.
    fn scheduler(id: usize, parking: &Parking, queue: &RunQueue<u32>) -> u32 {
        loop {
            if let Some(item) = queue.pop() {
                return item;
            }
            parking.announce(id);
            if queue.is_empty() {
                parking.sleep(id, None);
            } else {
                parking.retract(id);
            }
        }
    }

    #[test]
    fn loom_no_work_is_left_while_a_scheduler_sleeps() {
        loom::model(|| {
            let shared = Arc::new((Parking::new(1, None), RunQueue::new()));
            let sleeper = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || scheduler(0, &shared.0, &shared.1))
            };
            shared.1.push(Priority::Normal, 7);
            shared.0.wake_one();
            assert_eq!(sleeper.join().unwrap(), 7);
        });
    }

    #[test]
    fn loom_two_items_wake_two_schedulers() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let shared = Arc::new((Parking::new(2, None), RunQueue::new()));
            let sleepers: Vec<_> = (0..2)
                .map(|id| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || scheduler(id, &shared.0, &shared.1))
                })
                .collect();
            for item in 1..=2 {
                shared.1.push(Priority::Normal, item);
                shared.0.wake_one();
            }
            let got: u32 = sleepers.into_iter().map(|s| s.join().unwrap()).sum();
            assert_eq!(got, 3);
        });
    }
}
