//! The run state of a process: one word that keeps the process in at most one run queue and on at most one thread. It
//! turns a wake-up that comes while the process runs into another time slice.
//!
//! ```text
//!            wake: enqueue            begin_run               end_run
//!   IDLE ───────────────▶ QUEUED ─────────────▶ RUNNING ─────────────▶ IDLE
//!                           ▲                      │ still active, or woken meanwhile
//!                           └──────────────────────┘
//! ```
//!
//! `ACTIVE` says that somebody asked for a time slice that has not begun. Every step is a read-modify-write of one
//! word, so of a wake-up and the step that takes it one comes first: either the runner sees what was written before the
//! wake-up (say, a signal in the outer queue), or the waker sees the runner's step and asks for a time slice.
//! The word does not hold suspension: a suspended process that is woken gets a time slice, in which its runner sees the
//! suspension and ends the slice.

use std::fmt;

use beamline_runtime_base::sync::{AtomicU32, Ordering};

/// Somebody has asked for a time slice since the last one began.
const ACTIVE: u32 = 1;
/// In a run queue, or on its way into one.
const QUEUED: u32 = 2;
/// On a thread.
const RUNNING: u32 = 4;
/// Gone: never runs again.
const FREE: u32 = 8;

/// What [`RunState::end_run`] asks of the thread that ran the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum EndRun {
    /// Put it into a run queue; nobody else will.
    Requeue,
    /// Let go of it; the next wake-up enqueues it.
    Idle,
}

/// The scheduling state of one process.
pub struct RunState(AtomicU32);

impl Default for RunState {
    fn default() -> Self {
        Self::new()
    }
}

impl RunState {
    /// Idle: the first [`Self::wake`] enqueues it.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Asks for a time slice. `true`: the caller must put the process into a run queue.
    ///
    /// The time slice that follows sees what the caller wrote before.
    #[inline]
    #[must_use = "the caller enqueues on true"]
    pub fn wake(&self) -> bool {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            if state & FREE != 0 {
                return false;
            }
            let idle = state & (QUEUED | RUNNING) == 0;
            let next = state | ACTIVE | if idle { QUEUED } else { 0 };
            // Also when nothing changes: the write is what the runner's step comes after.
            match self
                .0
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return idle,
                Err(now) => state = now,
            }
        }
    }

    /// Asks for a time slice of a process that is idle, and wakes no other. `true`: the caller is alone with the
    /// process, and must put it into a run queue; until then no thread runs it.
    #[inline]
    #[must_use = "the caller enqueues on true"]
    pub fn claim(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
            && self
                .0
                .compare_exchange(0, QUEUED | ACTIVE, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Begins the time slice of a process just taken out of a run queue.
    ///
    /// # Panics
    /// When the process was not queued or runs already: a bug in the scheduler.
    #[inline]
    pub fn begin_run(&self) {
        let before = self.0.swap(RUNNING, Ordering::AcqRel);
        assert_eq!(before & !ACTIVE, QUEUED, "begin_run in {}", Bits(before));
    }

    /// Takes a wake-up that came during the time slice, by the running thread, before it looks at
    /// what the wake-up announced: so that it does not cause another time slice for nothing.
    #[inline]
    pub fn take_wake(&self) -> bool {
        self.0.load(Ordering::Relaxed) & ACTIVE != 0
            && self.0.fetch_and(!ACTIVE, Ordering::AcqRel) & ACTIVE != 0
    }

    /// Ends the time slice: another is due when `still_active`, or when a wake-up came meanwhile.
    ///
    /// # Panics
    /// When the process does not run.
    #[inline]
    pub fn end_run(&self, still_active: bool) -> EndRun {
        let mut state = self.0.load(Ordering::Relaxed);
        loop {
            assert_eq!(state & !ACTIVE, RUNNING, "end_run in {}", Bits(state));
            let again = still_active || state & ACTIVE != 0;
            let next = if again { QUEUED | ACTIVE } else { 0 };
            match self
                .0
                .compare_exchange_weak(state, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) if again => return EndRun::Requeue,
                Ok(_) => return EndRun::Idle,
                Err(now) => state = now,
            }
        }
    }

    /// Ends the last time slice: no wake-up enqueues the process any more.
    ///
    /// # Panics
    /// When the process does not run.
    #[inline]
    pub fn end_last_run(&self) {
        let before = self.0.swap(FREE, Ordering::AcqRel);
        assert_eq!(
            before & !ACTIVE,
            RUNNING,
            "end_last_run in {}",
            Bits(before)
        );
    }

    /// Whether a thread may run it that does not see what the caller wrote before.
    #[inline]
    #[must_use]
    pub fn runs_unawares(&self) -> bool {
        // The write is what the step that begins a time slice comes after.
        self.0.fetch_or(0, Ordering::AcqRel) & RUNNING != 0
    }

    /// Whether a thread runs it: `running` of `process_info/2`. May be stale.
    #[inline]
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.0.load(Ordering::Relaxed) & RUNNING != 0
    }

    /// Whether it waits in a run queue: `runnable` of `process_info/2`. May be stale.
    #[inline]
    #[must_use]
    #[cfg(test)]
    pub(crate) fn is_queued(&self) -> bool {
        self.0.load(Ordering::Relaxed) & QUEUED != 0
    }

    /// Whether its last time slice has ended.
    #[inline]
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.0.load(Ordering::Acquire) & FREE != 0
    }
}

impl fmt::Debug for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunState({})", Bits(self.0.load(Ordering::Relaxed)))
    }
}

/// The bits of a state by name.
struct Bits(u32);

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (ACTIVE, "ACTIVE"),
            (QUEUED, "QUEUED"),
            (RUNNING, "RUNNING"),
            (FREE, "FREE"),
        ];
        let set: Vec<_> = names
            .iter()
            .filter(|(bit, _)| self.0 & bit != 0)
            .map(|(_, name)| *name)
            .collect();
        if set.is_empty() {
            return f.write_str("IDLE");
        }
        f.write_str(&set.join("|"))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_enqueued_once() {
        let state = RunState::new();
        assert!(state.wake());
        assert!(!state.wake());
        assert!(state.is_queued());
        state.begin_run();
        assert!(state.is_running() && !state.is_queued());
        assert_eq!(state.end_run(false), EndRun::Idle);
        assert!(state.wake());
    }

    #[test]
    fn only_an_idle_process_is_claimed() {
        let state = RunState::new();
        assert!(state.claim());
        assert!(!state.claim() && !state.wake());
        state.begin_run();
        assert!(!state.claim());
        assert_eq!(state.end_run(false), EndRun::Idle, "a claim wakes no other");
        assert!(state.claim());
        state.begin_run();
        state.end_last_run();
        assert!(!state.claim());
    }

    #[test]
    fn a_wake_during_a_turn_gives_another() {
        let state = RunState::new();
        assert!(state.wake());
        state.begin_run();
        assert!(!state.wake());
        assert_eq!(state.end_run(false), EndRun::Requeue);
        state.begin_run();
        assert_eq!(state.end_run(true), EndRun::Requeue);
        state.begin_run();
        assert!(!state.wake());
        assert!(state.take_wake() && !state.take_wake());
        assert_eq!(state.end_run(false), EndRun::Idle);
    }

    #[test]
    fn a_free_process_is_never_enqueued() {
        let state = RunState::new();
        assert!(state.wake());
        state.begin_run();
        assert!(!state.wake());
        state.end_last_run();
        assert!(state.is_free());
        assert!(!state.wake());
        assert_eq!(format!("{state:?}"), "RunState(FREE)");
    }

    #[test]
    #[should_panic(expected = "begin_run in RUNNING|FREE")]
    fn bits_have_names() {
        assert_eq!(Bits(0).to_string(), "IDLE");
        panic!("begin_run in {}", Bits(RUNNING | FREE));
    }

    #[test]
    #[should_panic(expected = "begin_run in IDLE")]
    fn an_idle_process_cannot_run() {
        RunState::new().begin_run();
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    #![expect(
        unsafe_code,
        reason = "a cell that loom checks for two runners at a time"
    )]

    use loom::{cell::UnsafeCell, sync::Arc, thread};

    use super::*;
    use crate::sig_queue::SigQueue;
    use beamline_runtime_base::sync::AtomicUsize;

    /// A process whose heap (`handled`) loom checks for two runners at a time.
    struct Process {
        state: RunState,
        signals: SigQueue<u32>,
        handled: UnsafeCell<usize>,
        queued: AtomicUsize,
    }

    impl Process {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                state: RunState::new(),
                signals: SigQueue::new(),
                handled: UnsafeCell::new(0),
                queued: AtomicUsize::new(0),
            })
        }

        fn enqueue(&self) {
            assert_eq!(
                self.queued.fetch_add(1, Ordering::AcqRel),
                0,
                "queued twice"
            );
        }

        fn send(&self, signal: u32) {
            if self.signals.push(signal).unwrap() && self.state.wake() {
                self.enqueue();
            }
        }

        /// Handles a signal in the place of the process, if it is idle.
        fn send_directly(&self, signal: u32) {
            if !self.signals.is_empty() || !self.state.claim() {
                return self.send(signal);
            }
            if self.signals.is_empty() {
                self.handled.with_mut(|handled| {
                    // SAFETY: a claimed process is in no queue; loom fails the test if another runs it.
                    unsafe { *handled += 1 }
                });
            } else {
                assert!(self.signals.push(signal).is_ok(), "nobody closes it");
            }
            self.enqueue();
        }

        /// One time slice, if the process is queued.
        fn schedule(&self, take_wake: bool) -> bool {
            if self
                .queued
                .compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                return false;
            }
            self.state.begin_run();
            if take_wake {
                self.state.take_wake();
            }
            let taken = self.signals.take_all().len();
            self.handled.with_mut(|handled| {
                // SAFETY: RUNNING keeps other runners out; loom fails the test if not.
                unsafe { *handled += taken }
            });
            if self.state.end_run(false) == EndRun::Requeue {
                self.enqueue();
            }
            true
        }
    }

    fn senders_and_schedulers(senders: u32, take_wake: bool) {
        let process = Process::new();
        let threads: Vec<_> = (0..senders)
            .map(|sender| {
                let process = Arc::clone(&process);
                thread::spawn(move || {
                    process.send(sender);
                    process.schedule(take_wake);
                })
            })
            .collect();
        process.schedule(take_wake);
        for thread in threads {
            thread.join().unwrap();
        }
        while process.schedule(take_wake) {}
        // SAFETY: all other threads have ended.
        let handled = process.handled.with(|handled| unsafe { *handled });
        assert_eq!(
            handled, senders as usize,
            "a signal was left without a turn"
        );
        assert!(!process.state.is_queued() && !process.state.is_running());
    }

    #[test]
    fn loom_no_signal_is_left_and_none_runs_twice() {
        loom::model(|| senders_and_schedulers(2, false));
    }

    #[test]
    fn loom_who_claims_a_process_is_alone_with_it() {
        loom::model(|| {
            let process = Process::new();
            let other = Arc::clone(&process);
            let thread = thread::spawn(move || {
                other.send(1);
                other.schedule(false);
            });
            process.send_directly(2);
            process.schedule(true);
            thread.join().unwrap();
            while process.schedule(false) {}
            // SAFETY: the other thread has ended.
            let handled = process.handled.with(|handled| unsafe { *handled });
            assert_eq!(handled, 2, "a signal was left without a turn");
        });
    }

    #[test]
    fn loom_take_wake_loses_no_signal() {
        loom::model(|| senders_and_schedulers(2, true));
    }
}
