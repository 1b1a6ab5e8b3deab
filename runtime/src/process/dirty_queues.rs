//! The queues of calls that wait for dirty schedulers, one for each kind.
//!
//! Source: `erl_process.c`, OTP 29. Differs: calls of all priorities wait in one queue.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Dirty;
use super::dirty::DirtyCall;
use crate::sched::online::are_dirty_blocked;
use crate::sched::parker::look;
use crate::sched::{dirty_schedulers, schedulers};
use crate::sync::{AtomicUsize, Ordering};

/// What waits for one kind of dirty schedulers, and what they do.
struct Queue {
    calls: VecDeque<Arc<DirtyCall>>,
    /// Threads that have been started, and those of them that make no call.
    started: usize,
    idle: usize,
    numbers: Numbers,
}

/// Which schedulers of one kind make a call. A thread is one of them while it does.
struct Numbers {
    is_busy: Vec<bool>,
    busy: usize,
}

impl Numbers {
    /// The lowest that is free.
    fn take(&mut self) -> usize {
        let free = self.is_busy.iter().position(|busy| !busy);
        let index = free.unwrap_or(self.is_busy.len());
        match free {
            Some(index) => self.is_busy[index] = true,
            None => self.is_busy.push(true),
        }
        self.busy += 1;
        index
    }

    fn put_back(&mut self, index: usize) {
        self.is_busy[index] = false;
        self.busy -= 1;
    }
}

/// The queue of one kind of dirty schedulers.
pub(crate) struct DirtyQueue {
    kind: Dirty,
    queue: Mutex<Queue>,
    filled: Condvar,
    /// How many calls wait, for whoever looks without the lock.
    waiting: AtomicUsize,
}

static CPU: DirtyQueue = DirtyQueue::new(Dirty::Cpu);
static IO: DirtyQueue = DirtyQueue::new(Dirty::Io);

/// All kinds.
pub(crate) const KINDS: [Dirty; 2] = [Dirty::Cpu, Dirty::Io];

/// More dirty schedulers may make calls than before, or fewer.
pub(crate) fn limits_changed() {
    for kind in KINDS {
        queue_of(kind).filled.notify_all();
    }
}

/// Does a call wait for dirty schedulers that are blocked?
pub(crate) fn waits_for_a_turn() -> bool {
    are_dirty_blocked() && KINDS.iter().any(|kind| queue_of(*kind).has_waiting())
}

/// Does a dirty scheduler make a call?
pub(crate) fn some_run() -> bool {
    KINDS.iter().any(|kind| queue_of(*kind).running() > 0)
}

/// The queue of a kind.
pub(crate) fn queue_of(kind: Dirty) -> &'static DirtyQueue {
    match kind {
        Dirty::Cpu => &CPU,
        Dirty::Io => &IO,
    }
}

impl DirtyQueue {
    const fn new(kind: Dirty) -> DirtyQueue {
        DirtyQueue {
            kind,
            queue: Mutex::new(Queue {
                calls: VecDeque::new(),
                started: 0,
                idle: 0,
                numbers: Numbers {
                    is_busy: Vec::new(),
                    busy: 0,
                },
            }),
            filled: Condvar::new(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// How many schedulers of this kind there may be, and how many of them may make calls.
    fn limits(&self) -> (usize, usize) {
        let numbers = dirty_schedulers();
        let (all, online) = match self.kind {
            Dirty::Cpu => (numbers.cpu, numbers.cpu_online()),
            Dirty::Io => (numbers.io, numbers.io),
        };
        (all, if are_dirty_blocked() { 0 } else { online })
    }

    /// The account of this kind's scheduler `index`.
    fn account(&self, index: usize) -> usize {
        let before = match self.kind {
            Dirty::Cpu => 0,
            Dirty::Io => dirty_schedulers().cpu,
        };
        schedulers() + before + index
    }

    /// The number of this kind's scheduler `index` among all schedulers, as OTP numbers them.
    pub(crate) fn number(&self, index: usize) -> usize {
        self.account(index) + 1
    }

    /// Queues a call. `start` is called with the number of a thread of this kind, from 0, which is to be started.
    pub(crate) fn push(&self, call: Arc<DirtyCall>, start: impl FnOnce(usize)) {
        let mut queue = self.queue.lock();
        queue.calls.push_back(call);
        self.waiting.store(queue.calls.len(), Ordering::Release);
        if queue.idle < queue.calls.len() && queue.started < self.limits().0 {
            start(queue.started);
            queue.started += 1;
            queue.idle += 1;
        }
        drop(queue);
        self.filled.notify_one();
    }

    /// This thread, one of those that were started, waits for a call and makes it, with `make`, as the scheduler with
    /// the number that `make` gets.
    pub(crate) fn make_next(&self, make: impl FnOnce(&DirtyCall, usize)) {
        look(|| self.waiting.load(Ordering::Acquire) > 0);
        let mut queue = self.queue.lock();
        let call = loop {
            if queue.numbers.busy < self.limits().1
                && let Some(call) = queue.calls.pop_front()
            {
                break call;
            }
            self.filled.wait(&mut queue);
        };
        queue.idle -= 1;
        let index = queue.numbers.take();
        self.waiting.store(queue.calls.len(), Ordering::Release);
        drop(queue);
        let times = &crate::sched::machine().wall_time;
        times.work(self.account(index), || make(&call, self.number(index)));
        let mut queue = self.queue.lock();
        queue.idle += 1;
        self.put_back(queue, index);
    }

    /// This thread, which is another, makes a call as one of these schedulers, with `make`, which gets its number.
    /// `None` where calls wait for one, or all of them are busy.
    pub(crate) fn make_here<T>(&self, make: impl FnOnce(usize) -> T) -> Option<T> {
        let index = {
            let mut queue = self.queue.lock();
            let may = queue.calls.is_empty() && queue.numbers.busy < self.limits().1;
            may.then(|| queue.numbers.take())?
        };
        let times = &crate::sched::machine().wall_time;
        let result = times.work(self.account(index), || make(self.number(index)));
        self.put_back(self.queue.lock(), index);
        Some(result)
    }

    /// This thread, the only one that runs while these schedulers are blocked, makes a call that waits as one of them,
    /// with `make`, which gets its number. It makes none while each of them still makes one that was begun before.
    pub(crate) fn make_in_turn(&self, make: impl FnOnce(&DirtyCall, usize)) {
        let mut queue = self.queue.lock();
        if queue.numbers.busy >= self.limits().0 {
            return;
        }
        let Some(call) = queue.calls.pop_front() else {
            return;
        };
        let index = queue.numbers.take();
        self.waiting.store(queue.calls.len(), Ordering::Release);
        drop(queue);
        let times = &crate::sched::machine().wall_time;
        times.work(self.account(index), || make(&call, self.number(index)));
        self.put_back(self.queue.lock(), index);
    }

    fn put_back(&self, mut queue: MutexGuard<'_, Queue>, index: usize) {
        queue.numbers.put_back(index);
        if !queue.calls.is_empty() {
            self.filled.notify_one();
        }
    }

    fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// How many calls wait.
    pub(crate) fn len(&self) -> usize {
        let queue = self.queue.lock();
        queue.calls.iter().filter(|call| call.is_queued()).count()
    }

    /// How many calls are made now.
    pub(crate) fn running(&self) -> usize {
        self.queue.lock().numbers.busy
    }
}
