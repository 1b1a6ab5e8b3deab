//! Thread progress, which tells that every scheduler has passed a quiescent point since a request.
//!
//! At a quiescent point a scheduler holds nothing that it read from shared structures: no breakpoint data, no code
//! pointer of an old generation. Each scheduler has a word with the number of the last request that it saw at such a
//! point. A request has made progress when all words have reached its number. A sleeping scheduler is inactive: it
//! holds nothing, and does not count. Breakpoints, code purge and reclamation wait in this way, and nobody stops for
//! them.
//! Source: `internal_doc/ThreadProgress.md`, OTP 29. Differs: there is no leader; whoever polls, looks.

use std::{collections::VecDeque, fmt};

use crossbeam_utils::CachePadded;

use beamline_runtime_base::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, lock};

/// In the word of a scheduler that does not count.
const INACTIVE: u64 = u64::MAX;

type Callback = Box<dyn FnOnce() + Send>;

/// The functions that wait for progress, oldest first.
type Waiting = VecDeque<(Progress, Callback)>;

/// A point in thread progress: see [`ThrPrgr::request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress(u64);

/// Thread progress of a set of schedulers.
pub struct ThrPrgr {
    /// The number of the last request.
    current: CachePadded<AtomicU64>,
    /// All requests up to this have made progress.
    reached: CachePadded<AtomicU64>,
    /// One for each scheduler. All are changed and compared by read-modify-writes, except for
    /// the store of a quiescent point.
    words: Box<[CachePadded<AtomicU64>]>,
    later: Mutex<Waiting>,
    /// Length of `later`, for a look without the lock.
    pending: AtomicUsize,
}

impl ThrPrgr {
    /// For `schedulers`, all inactive.
    #[must_use]
    pub fn register(schedulers: usize) -> Self {
        let word = || CachePadded::new(AtomicU64::new(INACTIVE));
        Self {
            current: CachePadded::new(AtomicU64::new(0)),
            reached: CachePadded::new(AtomicU64::new(0)),
            words: (0..schedulers).map(|_| word()).collect(),
            later: Mutex::new(VecDeque::new()),
            pending: AtomicUsize::new(0),
        }
    }

    /// Scheduler `id` counts from now on; it holds nothing yet.
    #[inline]
    pub fn active(&self, id: usize) {
        // A read-modify-write, as is the look of `has_reached`: either that sees us, or we
        // see all that the request announced.
        self.words[id].swap(0, Ordering::AcqRel);
        let current = self.current.load(Ordering::Acquire);
        self.words[id].store(current, Ordering::Release);
    }

    /// Scheduler `id` holds nothing, and will not until it is active again.
    #[inline]
    pub fn inactive(&self, id: usize) {
        self.words[id].swap(INACTIVE, Ordering::AcqRel);
    }

    /// Scheduler `id`, active, holds nothing at this point. Two loads when nothing was
    /// requested since the last, else one store more.
    #[inline]
    pub fn quiescent(&self, id: usize) {
        let current = self.current.load(Ordering::Acquire);
        let word = &self.words[id];
        if word.load(Ordering::Relaxed) != current {
            word.store(current, Ordering::Release);
        }
    }

    /// The progress that is made once every scheduler has passed a quiescent point from now.
    #[inline]
    pub fn request(&self) -> Progress {
        Progress(self.current.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Whether that progress is made: all that the schedulers did before their quiescent
    /// points is then visible here, and to them what the requester did before its request.
    #[inline]
    pub fn has_reached(&self, progress: Progress) -> bool {
        if self.reached.load(Ordering::Acquire) >= progress.0 {
            return true;
        }
        // Not loads: see `active`.
        let passed = self
            .words
            .iter()
            .all(|word| word.fetch_or(0, Ordering::AcqRel) >= progress.0);
        if passed {
            self.reached.fetch_max(progress.0, Ordering::AcqRel);
        }
        passed
    }

    /// Has `callback` called, by whoever polls, once every scheduler has passed a quiescent
    /// point from now.
    pub fn later(&self, callback: impl FnOnce() + Send + 'static) {
        let mut later = lock(&self.later);
        let progress = self.request();
        later.push_back((progress, Box::new(callback)));
        self.pending.store(later.len(), Ordering::Release);
    }

    /// How many callbacks wait. A scheduler that goes to sleep polls once more when inactive.
    #[inline]
    pub fn pending(&self) -> usize {
        self.pending.load(Ordering::Acquire)
    }

    /// Calls what is due, oldest first; how many. Never waits: when another thread polls,
    /// that one does the work. One load when nothing waits.
    #[inline]
    pub fn poll(&self) -> usize {
        let mut called = 0;
        while self.pending() > 0 {
            let Some(callback) = self.pop_due() else {
                break;
            };
            callback();
            called += 1;
        }
        called
    }

    /// As [`Self::poll`], but waits for another that polls: it may have looked before this thread became
    /// inactive. For a scheduler that goes to sleep, so that the last one to do so finds what is due.
    pub fn poll_inactive(&self) {
        while self.pending() > 0 {
            let due = self.pop_due_of(lock(&self.later));
            let Some(callback) = due else {
                break;
            };
            callback();
        }
    }

    fn pop_due(&self) -> Option<Callback> {
        self.pop_due_of(self.later.try_lock().ok()?)
    }

    fn pop_due_of(&self, mut later: MutexGuard<'_, Waiting>) -> Option<Callback> {
        let (progress, _) = later.front()?;
        if !self.has_reached(*progress) {
            return None;
        }
        let (_, callback) = later.pop_front()?;
        self.pending.store(later.len(), Ordering::Release);
        Some(callback)
    }
}

impl fmt::Debug for ThrPrgr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThrPrgr")
            .field("current", &self.current.load(Ordering::Relaxed))
            .field("pending", &self.pending())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn progress_needs_a_quiescent_point_of_every_active_scheduler() {
        let progress = ThrPrgr::register(3);
        progress.active(0);
        progress.active(1);
        let first = progress.request();
        assert!(!progress.has_reached(first));
        progress.quiescent(0);
        assert!(!progress.has_reached(first));
        progress.inactive(1);
        assert!(progress.has_reached(first));
        let second = progress.request();
        progress.active(1);
        assert!(!progress.has_reached(second));
        progress.quiescent(0);
        assert!(progress.has_reached(second) && progress.has_reached(first));
    }

    #[test]
    fn callbacks_are_called_in_order_when_due() {
        let progress = ThrPrgr::register(1);
        progress.active(0);
        let calls = Arc::new(Mutex::new(Vec::new()));
        for i in 0..3 {
            let calls = Arc::clone(&calls);
            progress.later(move || calls.lock().unwrap().push(i));
            if i == 1 {
                progress.quiescent(0);
            }
        }
        assert_eq!((progress.poll(), progress.pending()), (2, 1));
        assert_eq!(progress.poll(), 0);
        progress.inactive(0);
        assert_eq!(progress.poll(), 1);
        assert_eq!(*calls.lock().unwrap(), [0, 1, 2]);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::{sync::Arc, thread};

    use super::*;

    /// Readers use `shared` only between quiescent points; the requester takes it away.
    struct Model {
        progress: ThrPrgr,
        /// 1: may be used; 0: unlinked.
        linked: AtomicUsize,
        /// Set once nobody may use it any more.
        freed: AtomicUsize,
    }

    impl Model {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                progress: ThrPrgr::register(1),
                linked: AtomicUsize::new(1),
                freed: AtomicUsize::new(0),
            })
        }

        fn read(&self) {
            if self.linked.load(Ordering::Relaxed) == 1 {
                assert_eq!(self.freed.load(Ordering::Relaxed), 0, "used after free");
            }
        }

        fn unlink(&self) {
            self.linked.store(0, Ordering::Relaxed);
            let progress = self.progress.request();
            for _ in 0..2 {
                if self.progress.has_reached(progress) {
                    self.freed.store(1, Ordering::Relaxed);
                    return;
                }
                thread::yield_now();
            }
        }
    }

    #[test]
    fn loom_nothing_is_freed_before_a_quiescent_point() {
        loom::model(|| {
            let model = Model::new();
            model.progress.active(0);
            let other = Arc::clone(&model);
            let requester = thread::spawn(move || other.unlink());
            model.read();
            model.progress.quiescent(0);
            model.read();
            requester.join().unwrap();
        });
    }

    #[test]
    fn loom_a_scheduler_that_wakes_is_not_overlooked() {
        loom::model(|| {
            let model = Model::new();
            let other = Arc::clone(&model);
            let requester = thread::spawn(move || other.unlink());
            model.progress.active(0);
            model.read();
            model.progress.inactive(0);
            model.progress.active(0);
            model.read();
            requester.join().unwrap();
        });
    }
}
