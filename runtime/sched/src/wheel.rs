//! The timer wheel, which holds millions of timers, and sets, cancels and fires each in constant time.
//!
//! Time is counted in ticks of one millisecond, as in ERTS. A deadline is rounded up to a tick, so that no timer fires
//! early. Level `n` has 64 slots of `64^n` ticks. A timer is on the level of the highest group of 6 bits in which its
//! tick differs from the present one, and moves down when that slot begins. All timers of one tick are therefore always
//! in one list, in the order of their insertion, and fire in it.

use std::fmt;

use beamline_runtime_base::sync::{AtomicU64, Mutex, Ordering, lock};

/// Nanoseconds of a tick.
pub const TICK_NS: u64 = 1_000_000;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// Ticks are below `2^64 / TICK_NS < 2^45`: 8 groups of 6 bits hold them.
const LEVELS: usize = 8;
/// The list of timers that were due when they were set.
const DUE: usize = LEVELS * SLOTS;
const NONE: u32 = u32::MAX;

/// Names a timer until it fires or is cancelled; never another one after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey {
    index: u32,
    generation: u32,
}

struct Timer<T> {
    /// `None` on the free list, which `next` links.
    value: Option<T>,
    tick: u64,
    prev: u32,
    next: u32,
    generation: u32,
    list: u32,
}

#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

const EMPTY: List = List {
    first: NONE,
    last: NONE,
};

/// A timer wheel with one owner.
pub struct Wheel<T> {
    timers: Vec<Timer<T>>,
    free: u32,
    len: usize,
    /// The last tick that has expired.
    now: u64,
    occupied: [u64; LEVELS],
    lists: Box<[List; DUE + 1]>,
}

impl<T> Wheel<T> {
    /// An empty wheel, its present `now_ns`.
    #[must_use]
    pub fn new(now_ns: u64) -> Self {
        Self {
            timers: Vec::new(),
            free: NONE,
            len: 0,
            now: now_ns / TICK_NS,
            occupied: [0; LEVELS],
            lists: Box::new([EMPTY; DUE + 1]),
        }
    }

    /// How many timers are set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets a timer; one whose deadline has passed fires at the next [`Self::expire`].
    ///
    /// # Panics
    /// With more than `2^32 - 1` timers.
    pub fn insert(&mut self, deadline_ns: u64, value: T) -> TimerKey {
        let tick = deadline_ns.div_ceil(TICK_NS);
        let index = if self.free == NONE {
            let index = u32::try_from(self.timers.len()).expect("fewer than 2^32 timers");
            assert_ne!(index, NONE, "fewer than 2^32 timers");
            self.timers.push(Timer {
                value: Some(value),
                tick,
                prev: NONE,
                next: NONE,
                generation: 0,
                list: 0,
            });
            index
        } else {
            let index = self.free;
            let timer = &mut self.timers[index as usize];
            self.free = timer.next;
            (timer.value, timer.tick) = (Some(value), tick);
            index
        };
        self.len += 1;
        self.link(index);
        TimerKey {
            index,
            generation: self.timers[index as usize].generation,
        }
    }

    fn timer(&self, key: TimerKey) -> Option<&Timer<T>> {
        let timer = self.timers.get(key.index as usize)?;
        (timer.generation == key.generation && timer.value.is_some()).then_some(timer)
    }

    /// When the timer fires, a whole millisecond in ns; `None` when it fired or was cancelled.
    #[must_use]
    pub fn deadline_ns(&self, key: TimerKey) -> Option<u64> {
        Some(self.timer(key)?.tick.saturating_mul(TICK_NS))
    }

    /// Cancels a timer; `None` when it fired or was cancelled before.
    pub fn cancel(&mut self, key: TimerKey) -> Option<T> {
        self.timer(key)?;
        self.unlink(key.index);
        Some(self.release(key.index))
    }

    /// Appends the values of all timers due at `now_ns`, by tick and then by insertion.
    pub fn expire(&mut self, now_ns: u64, expired: &mut Vec<T>) {
        let now = now_ns / TICK_NS;
        self.fire(DUE, expired);
        while let Some((level, slot, start)) = self.next_slot() {
            if start > now {
                break;
            }
            self.now = start;
            let list = level * SLOTS + slot;
            if level == 0 {
                self.fire(list, expired);
                continue;
            }
            // Down a level or more; those of tick `start` itself become due.
            let mut index = self.take_list(list);
            while index != NONE {
                let next = self.timers[index as usize].next;
                self.link(index);
                index = next;
            }
            self.fire(DUE, expired);
        }
        self.now = self.now.max(now);
    }

    /// When to call [`Self::expire`] next, in ns. Never later than the earliest timer; exact
    /// when that is within 64 ms, else the time at which timers move down a level.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        if self.lists[DUE].first != NONE {
            return Some(self.now * TICK_NS);
        }
        self.next_slot()
            .map(|(_, _, start)| start.saturating_mul(TICK_NS))
    }

    /// Level, slot and first tick of the occupied slot that begins next.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        let slot = self.occupied[level].trailing_zeros();
        let shift = BITS * u32::try_from(level).expect("few levels");
        let above = self.now >> (shift + BITS) << (shift + BITS);
        Some((level, slot as usize, above | u64::from(slot) << shift))
    }

    fn list_of(&self, tick: u64) -> usize {
        if tick <= self.now {
            return DUE;
        }
        let level = (tick ^ self.now).ilog2() / BITS;
        let slot = usize::try_from(tick >> (level * BITS)).expect("64-bit words") % SLOTS;
        level as usize * SLOTS + slot
    }

    /// Appends a timer to the list of its tick.
    fn link(&mut self, index: u32) {
        let list = self.list_of(self.timers[index as usize].tick);
        if list != DUE {
            self.occupied[list / SLOTS] |= 1 << (list % SLOTS);
        }
        let last = std::mem::replace(&mut self.lists[list].last, index);
        match last {
            NONE => self.lists[list].first = index,
            last => self.timers[last as usize].next = index,
        }
        let timer = &mut self.timers[index as usize];
        (timer.prev, timer.next) = (last, NONE);
        timer.list = u32::try_from(list).expect("few lists");
    }

    fn unlink(&mut self, index: u32) {
        let timer = &self.timers[index as usize];
        let (prev, next, list) = (timer.prev, timer.next, timer.list as usize);
        match prev {
            NONE => self.lists[list].first = next,
            prev => self.timers[prev as usize].next = next,
        }
        match next {
            NONE => self.lists[list].last = prev,
            next => self.timers[next as usize].prev = prev,
        }
        if self.lists[list].first == NONE && list != DUE {
            self.occupied[list / SLOTS] &= !(1 << (list % SLOTS));
        }
    }

    /// Empties a list; its first timer.
    fn take_list(&mut self, list: usize) -> u32 {
        if list != DUE {
            self.occupied[list / SLOTS] &= !(1 << (list % SLOTS));
        }
        std::mem::replace(&mut self.lists[list], EMPTY).first
    }

    fn fire(&mut self, list: usize, expired: &mut Vec<T>) {
        let mut index = self.take_list(list);
        while index != NONE {
            let next = self.timers[index as usize].next;
            expired.push(self.release(index));
            index = next;
        }
    }

    /// Puts an unlinked timer on the free list; its value.
    fn release(&mut self, index: u32) -> T {
        let timer = &mut self.timers[index as usize];
        let value = timer.value.take().expect("a timer that is set");
        timer.generation = timer.generation.wrapping_add(1);
        timer.next = self.free;
        self.free = index;
        self.len -= 1;
        value
    }
}

impl<T> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("len", &self.len)
            .field("now_ms", &self.now)
            .finish_non_exhaustive()
    }
}

/// A wheel that several threads set timers on: one for each scheduler.
#[derive(Debug)]
pub struct WheelShard<T> {
    wheel: Mutex<Wheel<T>>,
    /// Of the wheel, for a look without the lock; `u64::MAX` without timers.
    next_deadline_ns: AtomicU64,
}

impl<T> WheelShard<T> {
    /// An empty wheel, its present `now_ns`.
    #[must_use]
    pub fn new(now_ns: u64) -> Self {
        Self {
            wheel: Mutex::new(Wheel::new(now_ns)),
            next_deadline_ns: AtomicU64::new(u64::MAX),
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Wheel<T>) -> R) -> R {
        let mut wheel = lock(&self.wheel);
        let result = f(&mut wheel);
        let next = wheel.next_deadline().unwrap_or(u64::MAX);
        self.next_deadline_ns.store(next, Ordering::Release);
        result
    }

    /// Sets a timer. `true` when it made [`Self::next_deadline`] earlier: the caller wakes the
    /// scheduler that sleeps until then.
    pub fn insert(&self, deadline_ns: u64, value: T) -> (TimerKey, bool) {
        let before = |wheel: &Wheel<T>| wheel.next_deadline().unwrap_or(u64::MAX);
        self.with(|wheel| {
            let was = before(wheel);
            let key = wheel.insert(deadline_ns, value);
            (key, before(wheel) < was)
        })
    }

    /// [`Wheel::cancel`].
    pub fn cancel(&self, key: TimerKey) -> Option<T> {
        self.with(|wheel| wheel.cancel(key))
    }

    /// [`Wheel::deadline_ns`].
    pub fn deadline_ns(&self, key: TimerKey) -> Option<u64> {
        lock(&self.wheel).deadline_ns(key)
    }

    /// [`Wheel::expire`]; without the lock when nothing is due.
    pub fn expire(&self, now_ns: u64, expired: &mut Vec<T>) {
        if self.next_deadline_ns.load(Ordering::Acquire) <= now_ns {
            self.with(|wheel| wheel.expire(now_ns, expired));
        }
    }

    /// [`Wheel::next_deadline`], without the lock.
    pub fn next_deadline(&self) -> Option<u64> {
        match self.next_deadline_ns.load(Ordering::Acquire) {
            u64::MAX => None,
            next => Some(next),
        }
    }

    /// How many timers are set.
    pub fn len(&self) -> usize {
        lock(&self.wheel).len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn expired<T>(wheel: &mut Wheel<T>, now_ns: u64) -> Vec<T> {
        let mut out = Vec::new();
        wheel.expire(now_ns, &mut out);
        out
    }

    #[test]
    fn no_timer_fires_early() {
        let mut wheel = Wheel::new(500);
        wheel.insert(TICK_NS + 1, 'a');
        assert_eq!(expired(&mut wheel, 2 * TICK_NS - 1), []);
        assert_eq!(wheel.next_deadline(), Some(2 * TICK_NS));
        assert_eq!(expired(&mut wheel, 2 * TICK_NS), ['a']);
        assert_eq!(wheel.next_deadline(), None);
    }

    #[test]
    fn a_key_names_one_timer_only() {
        let mut wheel = Wheel::new(0);
        let first = wheel.insert(TICK_NS, 1);
        assert_eq!(wheel.deadline_ns(first), Some(TICK_NS));
        assert_eq!(wheel.cancel(first), Some(1));
        let second = wheel.insert(TICK_NS, 2);
        assert_eq!(
            (wheel.cancel(first), wheel.deadline_ns(first)),
            (None, None)
        );
        assert_eq!(expired(&mut wheel, TICK_NS), [2]);
        assert_eq!(wheel.cancel(second), None);
    }

    #[test]
    fn the_end_of_time_is_far() {
        let mut wheel = Wheel::new(u64::MAX / 3);
        wheel.insert(u64::MAX, 'z');
        wheel.insert(0, 'a');
        assert_eq!(
            wheel.next_deadline(),
            Some(u64::MAX / 3 / TICK_NS * TICK_NS)
        );
        assert_eq!(expired(&mut wheel, u64::MAX / 3), ['a']);
        assert_eq!(expired(&mut wheel, u64::MAX / 3 * 2), []);
        assert_eq!(wheel.len(), 1);
    }

    #[test]
    fn a_shard_tells_when_its_sleeper_must_wake_earlier() {
        let shard = WheelShard::new(0);
        let (late, earlier) = shard.insert(30 * TICK_NS, 'b');
        assert!(earlier);
        assert!(!shard.insert(40 * TICK_NS, 'c').1);
        assert!(shard.insert(10 * TICK_NS, 'a').1);
        assert_eq!(shard.next_deadline(), Some(10 * TICK_NS));
        assert_eq!(shard.cancel(late), Some('b'));
        let mut out = Vec::new();
        shard.expire(10 * TICK_NS - 1, &mut out);
        assert!(out.is_empty());
        shard.expire(50 * TICK_NS, &mut out);
        assert_eq!(
            (out.as_slice(), shard.next_deadline()),
            (&['a', 'c'][..], None)
        );
        assert!(shard.is_empty());
    }

    #[derive(Debug, Clone)]
    enum Op {
        Insert(u64),
        Cancel(usize),
        Advance(u64),
        Next,
    }

    fn op() -> impl Strategy<Value = Op> {
        let span = || (0..1_u64 << 40, 0..40_u32).prop_map(|(n, shift)| n >> shift << 9);
        prop_oneof![
            4 => span().prop_map(Op::Insert),
            1 => (0..500_usize).prop_map(Op::Cancel),
            1 => span().prop_map(Op::Advance),
            1 => Just(Op::Next),
        ]
    }

    proptest! {
        #[test]
        fn the_wheel_does_as_a_sorted_map(start in 0..1_u64 << 50, ops in prop::collection::vec(op(), 1..300)) {
            let mut now = start;
            let mut wheel = Wheel::new(now);
            // By (tick, number of insertion); a tick in the past counts as the present.
            let mut model: BTreeMap<(u64, usize), usize> = BTreeMap::new();
            let mut keys = Vec::new();
            for op in ops {
                match op {
                    Op::Insert(after) => {
                        // Some deadlines have passed already.
                        let deadline = (now + after).saturating_sub(2 * TICK_NS);
                        let tick = deadline.div_ceil(TICK_NS).max(now / TICK_NS);
                        let id = keys.len();
                        model.insert((tick, id), id);
                        keys.push((wheel.insert(deadline, id), (tick, id)));
                    }
                    Op::Cancel(n) => if let Some((key, place)) = keys.get(n) {
                        prop_assert_eq!(wheel.cancel(*key), model.remove(place));
                    },
                    Op::Advance(_) | Op::Next => {
                        let next = wheel.next_deadline();
                        prop_assert_eq!(next.is_none(), model.is_empty());
                        if let (Some(next), Some((&(tick, _), _))) = (next, model.first_key_value()) {
                            prop_assert!(next <= tick * TICK_NS);
                        }
                        now = match op {
                            Op::Advance(by) => now + by,
                            _ => now.max(next.unwrap_or(now)),
                        };
                        let later = model.split_off(&(now / TICK_NS + 1, 0));
                        let due: Vec<_> = std::mem::replace(&mut model, later).into_values().collect();
                        prop_assert_eq!(expired(&mut wheel, now), due);
                    }
                }
                prop_assert_eq!(wheel.len(), model.len());
            }
        }
    }
}
