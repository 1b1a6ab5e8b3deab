//! The run queue of a scheduler: four priorities, one lock, and a length that others may read.
//!
//! Max goes before high, and high before normal and low. Of normal and low together every eighth time slice is low's,
//! while both wait. Other schedulers steal half of what waits.
//! Source: `erl_process.c`, `dequeue_process()` and `RESCHEDULE_LOW`, OTP 29. Differs: low has a queue of its own, so
//! that a time slice costs the same however many of low wait.

use std::{collections::VecDeque, fmt};

use beamline_runtime_base::sync::{AtomicUsize, Mutex, MutexGuard, Ordering, lock};

/// The priority of a process, as `process_flag(priority, _)` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Priority {
    /// For the system: before all others.
    Max = 0,
    /// Before normal and low.
    High = 1,
    /// What processes are born with.
    Normal = 2,
    /// Every eighth time slice of those that normal gets.
    Low = 3,
}

const PRIORITIES: [Priority; 4] = [
    Priority::Max,
    Priority::High,
    Priority::Normal,
    Priority::Low,
];

/// Of this many time slices of normal and low, one is low's.
const RESCHEDULE_LOW: u8 = 8;

struct Queues<T> {
    queues: [VecDeque<T>; 4],
    /// Time slices of normal since low's last while low waited.
    passed_low: u8,
}

impl<T> Queues<T> {
    fn of(&mut self, priority: Priority) -> &mut VecDeque<T> {
        &mut self.queues[priority as usize]
    }

    fn len(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    fn pop(&mut self) -> Option<T> {
        let urgent = self.of(Priority::Max).pop_front();
        if let Some(item) = urgent.or_else(|| self.of(Priority::High).pop_front()) {
            return Some(item);
        }
        if self.of(Priority::Low).is_empty() {
            return self.of(Priority::Normal).pop_front();
        }
        if self.passed_low + 1 < RESCHEDULE_LOW
            && let Some(item) = self.of(Priority::Normal).pop_front()
        {
            self.passed_low += 1;
            return Some(item);
        }
        self.passed_low = 0;
        self.of(Priority::Low).pop_front()
    }
}

/// A run queue.
pub struct RunQueue<T> {
    queues: Mutex<Queues<T>>,
    /// Written under the lock, read without.
    len: AtomicUsize,
}

impl<T> Default for RunQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> RunQueue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            queues: Mutex::new(Queues {
                queues: [const { VecDeque::new() }; 4],
                passed_low: 0,
            }),
            len: AtomicUsize::new(0),
        }
    }

    fn note_len(&self, queues: &MutexGuard<'_, Queues<T>>) {
        self.len.store(queues.len(), Ordering::Release);
    }

    /// Puts `item` at the end of its priority.
    pub fn push(&self, priority: Priority, item: T) {
        let mut queues = lock(&self.queues);
        queues.of(priority).push_back(item);
        self.note_len(&queues);
    }

    /// The highest priority of those that wait.
    pub fn top(&self) -> Option<Priority> {
        if self.is_empty() {
            return None;
        }
        let mut queues = lock(&self.queues);
        PRIORITIES
            .into_iter()
            .find(|priority| !queues.of(*priority).is_empty())
    }

    /// Moves an item that waits with a lower priority to the end of `priority`. `false` when none does.
    pub fn promote(&self, priority: Priority, is_it: impl Fn(&T) -> bool) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut queues = lock(&self.queues);
        for lower in PRIORITIES.into_iter().filter(|lower| *lower > priority) {
            let queue = queues.of(lower);
            let found = queue.iter().position(&is_it);
            if let Some(item) = found.and_then(|at| queue.remove(at)) {
                queues.of(priority).push_back(item);
                return true;
            }
        }
        false
    }

    /// Takes the item whose time slice it is.
    pub fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mut queues = lock(&self.queues);
        let item = queues.pop();
        self.note_len(&queues);
        item
    }

    /// Takes half of what waits at `self` (rounded up), the longest waiting first, of each
    /// priority; the one to run now is given back, the rest goes into `own`.
    ///
    /// The two queues are locked one after the other, so that thieves cannot block each other.
    pub fn steal_half(&self, own: &Self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let mut loot: [VecDeque<T>; 4] = [const { VecDeque::new() }; 4];
        {
            let mut queues = lock(&self.queues);
            let mut quota = queues.len().div_ceil(2);
            for priority in PRIORITIES {
                let queue = queues.of(priority);
                let take = queue.len().div_ceil(2).min(quota);
                loot[priority as usize].extend(queue.drain(..take));
                quota -= take;
            }
            self.note_len(&queues);
        }
        let first = loot.iter_mut().find_map(VecDeque::pop_front)?;
        if loot.iter().any(|queue| !queue.is_empty()) {
            let mut queues = lock(&own.queues);
            for (queue, loot) in queues.queues.iter_mut().zip(loot) {
                queue.extend(loot);
            }
            own.note_len(&queues);
        }
        Some(first)
    }

    /// How many wait; may be stale.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether none waits; may be stale.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> fmt::Debug for RunQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunQueue")
            .field("len", &self.len())
            .finish()
    }
}

/// Whom scheduler `own` of `count` asks for work, in order: those after it, then from 0 on.
#[inline]
pub fn victims(own: usize, count: usize) -> impl Iterator<Item = usize> {
    (1..count).map(move |step| (own + step) % count)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{sync::Arc, thread};

    use super::*;

    fn drain<T>(queue: &RunQueue<T>) -> Vec<T> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn max_before_high_before_normal() {
        let queue = RunQueue::new();
        queue.push(Priority::Normal, "n1");
        queue.push(Priority::High, "h1");
        queue.push(Priority::Max, "m");
        queue.push(Priority::High, "h2");
        queue.push(Priority::Normal, "n2");
        assert_eq!(queue.len(), 5);
        assert_eq!(drain(&queue), ["m", "h1", "h2", "n1", "n2"]);
        assert!(queue.is_empty());
    }

    #[test]
    fn every_eighth_turn_is_lows() {
        let queue = RunQueue::new();
        for i in 0..20 {
            queue.push(Priority::Normal, ('n', i));
        }
        for i in 0..3 {
            queue.push(Priority::Low, ('l', i));
        }
        let turns: String = drain(&queue).iter().map(|(p, _)| p).collect();
        assert_eq!(turns, "nnnnnnnlnnnnnnnlnnnnnnl");
    }

    #[test]
    fn a_thief_takes_half_and_keeps_the_order() {
        let (victim, own) = (RunQueue::new(), RunQueue::new());
        assert_eq!(victim.steal_half(&own), None::<u32>);
        for i in 0..5 {
            victim.push(Priority::Normal, i);
        }
        victim.push(Priority::High, 9);
        assert_eq!(victim.steal_half(&own), Some(9));
        assert_eq!((own.len(), victim.len()), (2, 3));
        assert_eq!((drain(&own), drain(&victim)), (vec![0, 1], vec![2, 3, 4]));
        victim.push(Priority::Low, 7);
        assert_eq!(victim.steal_half(&own), Some(7));
        assert!(victim.is_empty() && own.is_empty());
    }

    #[test]
    fn a_promoted_item_goes_before_lower_ones() {
        let queue = RunQueue::new();
        for (priority, item) in [
            (Priority::High, 1),
            (Priority::Normal, 2),
            (Priority::Low, 3),
        ] {
            queue.push(priority, item);
        }
        assert!(queue.promote(Priority::Max, |item| *item == 3));
        assert!(queue.promote(Priority::High, |item| *item == 2));
        assert!(
            !queue.promote(Priority::Normal, |item| *item == 1),
            "it is higher already"
        );
        assert!(!queue.promote(Priority::Max, |item| *item == 9));
        assert_eq!(drain(&queue), [3, 1, 2]);
    }

    #[test]
    fn victims_go_round_from_the_next() {
        assert_eq!(victims(2, 4).collect::<Vec<_>>(), [3, 0, 1]);
        assert_eq!(victims(0, 1).count(), 0);
    }

    #[test]
    fn threads_push_pop_and_steal_each_item_once() {
        const EACH: usize = if cfg!(miri) { 100 } else { 20_000 };
        let queues = Arc::new([RunQueue::new(), RunQueue::new()]);
        let threads: Vec<_> = (0..2)
            .map(|own| {
                let queues = Arc::clone(&queues);
                thread::spawn(move || {
                    let mut got = Vec::new();
                    for i in 0..EACH {
                        let priority = PRIORITIES[i % 4];
                        queues[own].push(priority, own * EACH + i);
                        if i % 3 == 0 {
                            got.extend(queues[1 - own].steal_half(&queues[own]));
                        } else if i % 2 == 0 {
                            got.extend(queues[own].pop());
                        }
                    }
                    got
                })
            })
            .collect();
        let mut got: Vec<_> = threads
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect();
        got.extend(queues.iter().flat_map(drain));
        got.sort_unstable();
        assert_eq!(got, (0..2 * EACH).collect::<Vec<_>>());
    }
}
