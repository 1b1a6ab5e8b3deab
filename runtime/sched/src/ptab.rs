//! The process table (and the port table), which maps identifiers to elements and is read without a lock.
//!
//! Identifiers are handed out as in ERTS. The *data* of an identifier is 60 bits; its low bits (as many as the capacity
//! has) are the slot, the rest counts how often the slot was used. A ring of free data starts as 0, 1, 2, … and takes
//! back `data + capacity` at its end when an element is removed, so that numbers increase and come back as late as
//! possible. `<0.N.S>` prints `N` = [`number`] and `S` = [`serial`].
//!
//! Readers pin the epoch ([`pin`], some 5 ns, next to nothing when nested) and may then borrow elements. A removed
//! element is dropped once no reader of its time is pinned. Both arrays (16 bytes a slot) are zeroed memory that the
//! system maps as it is touched.
//!
//! Shape: `slots[data & mask] → Arc<T>` and the ring `free[ticket & mask] → data`.
//! Source: `erl_ptab.c`, `internal_doc/PTables.md`, OTP 29. Differs: neighbours share cache lines (a slot is written
//! twice in the life of a process), and `processes/0` needs no lock.
//!
//! Invariants:
//! - PT1: a non-null slot holds a pointer from `Arc::into_raw` and owns one strong count.
//! - PT2: only the thread that swapped the pointer out gives up the count of a slot, and only through `defer` on the global
//!   epoch, or in `drop(&mut self)`. So a pointer loaded while pinned lives until the pin ends, as long as the table is
//!   borrowed as well. (`T: Send + Sync`, so any thread may borrow or drop it.)
//! - PT3: a datum in `free` is in no slot and in no `Reservation`, and the other way round: its holder alone writes its
//!   slot.
//! - PT4: a `Guard` is always of the global collector.
#![expect(
    unsafe_code,
    reason = "slots own counts of `Arc`s as raw pointers, PT1 to PT4"
)]

// Not through `base`'s `sync`: the epoch is `crossbeam`'s own, which loom cannot look into.
use std::{
    fmt, ptr,
    sync::{
        Arc,
        atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    },
};

use crossbeam_epoch as epoch;
use crossbeam_utils::CachePadded;

/// Bits of the data of an identifier.
pub(crate) const DATA_BITS: u32 = 60;
/// Bits of the first number that a pid prints.
pub(crate) const NUMBER_BITS: u32 = 28;
/// The highest capacity.
pub const MAX_CAPACITY: usize = 1 << 27;
/// The data that no element gets.
pub const INVALID_DATA: u64 = (1 << DATA_BITS) - 1;

/// Slots that ERTS puts in one cache line; gives the order of `processes/0`.
const SLOTS_PER_LINE: usize = 8;
/// In `free`: taken. 0, as mapped, stands for the index itself.
const TAKEN: u64 = u64::MAX;

/// `N` of `<0.N.S>`.
#[inline]
#[must_use]
pub const fn number(data: u64) -> u32 {
    (data & ((1 << NUMBER_BITS) - 1)) as u32
}

/// `S` of `<0.N.S>`.
#[inline]
#[must_use]
pub const fn serial(data: u64) -> u32 {
    (data >> NUMBER_BITS) as u32
}

/// An element of a table, which knows its identifier.
pub trait PTabElement: Send + Sync + 'static {
    /// The data of the identifier that the table gave; never changes.
    fn data(&self) -> u64;
}

/// A pinned epoch: elements borrowed under it stay.
///
/// Holding one for long delays the drop of all removed elements.
pub struct Guard(epoch::Guard);

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

impl Guard {
    /// What was borrowed under it may go from now on, and what is borrowed next stays: less than to let go of it and to
    /// pin again.
    #[inline]
    pub fn renew(&mut self) {
        self.0.repin();
    }

    /// Drops removed elements that no thread borrows any more.
    pub fn collect(&self) {
        self.0.flush();
    }
}

/// Pins the epoch for the current thread. Costs little where the thread holds another guard.
#[inline]
#[must_use]
pub fn pin() -> Guard {
    Guard(epoch::pin())
}

/// The table is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table is full")
    }
}

impl std::error::Error for Full {}

/// A table of `T` by identifier.
pub struct PTab<T: PTabElement> {
    slots: Box<[AtomicPtr<T>]>,
    free: Box<[AtomicU64]>,
    limit: usize,
    count: CachePadded<AtomicUsize>,
    /// Tickets to take from `free`; also how many slots were ever used, up to the capacity.
    taken: CachePadded<AtomicUsize>,
    /// Tickets to give back to `free`.
    given: CachePadded<AtomicUsize>,
}

impl<T: PTabElement> PTab<T> {
    /// An empty table of at least `size` slots: the next power of two, at most
    /// [`MAX_CAPACITY`]. Touches none of its memory.
    #[must_use]
    pub fn new(size: usize) -> Self {
        let capacity = size.clamp(1, MAX_CAPACITY).next_power_of_two();
        // SAFETY: PT1: a zeroed slot is null and owns nothing; a zeroed pointer is valid.
        let slots = unsafe { Box::new_zeroed_slice(capacity).assume_init() };
        // SAFETY: PT3: a zeroed entry stands for its own index, each datum once.
        let free = unsafe { Box::new_zeroed_slice(capacity).assume_init() };
        Self {
            slots,
            free,
            // One datum is invalid, and the largest table has none to spare, says ERTS.
            limit: capacity.min(MAX_CAPACITY - 1),
            count: CachePadded::default(),
            taken: CachePadded::default(),
            given: CachePadded::default(),
        }
    }

    /// An empty table of which the identifiers up to `last` are given one by one ([`Self::reserve_at`]), and the others
    /// from there on. As many fit as into that of [`Self::new`].
    ///
    /// # Panics
    /// When `last` is not below half of [`MAX_CAPACITY`].
    #[must_use]
    pub fn above(size: usize, last: u64) -> Self {
        let given = usize::try_from(last).expect("64-bit words") + 1;
        assert!(given <= MAX_CAPACITY / 2, "too high an identifier");
        let plain = size.clamp(1, MAX_CAPACITY).next_power_of_two();
        let mut table = Self::new(plain + given);
        table.limit = plain.min(MAX_CAPACITY - given);
        // PT3: these are in no ring until they are given back.
        for entry in &mut table.free[..given] {
            *entry.get_mut() = TAKEN;
        }
        *table.taken.get_mut() = given;
        table
    }

    /// Takes this identifier of those that a table made by [`Self::above`] gives one by one.
    ///
    /// PT3: the caller asks for each of them once.
    ///
    /// # Errors
    /// [`Full`] when [`Self::limit`] are in use.
    pub fn reserve_at(&self, data: u64) -> Result<Reservation<'_, T>, Full> {
        self.count_one()?;
        Ok(Reservation { tab: self, data })
    }

    /// How many elements fit: what `erlang:system_info(process_limit)` gives.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many identifiers are in use, reservations included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn slot(&self, data: u64) -> &AtomicPtr<T> {
        &self.slots[usize::try_from(data).expect("64-bit words") & (self.slots.len() - 1)]
    }

    /// Takes an identifier for an element that is still to be made.
    ///
    /// # Errors
    /// [`Full`] when [`Self::limit`] are in use.
    pub fn reserve(&self) -> Result<Reservation<'_, T>, Full> {
        self.count_one()?;
        loop {
            let ix = self.taken.fetch_add(1, Ordering::Relaxed) & (self.free.len() - 1);
            // Acquire: the slot was emptied before its datum came back.
            let data = match self.free[ix].swap(TAKEN, Ordering::Acquire) {
                TAKEN => continue,
                0 => ix as u64,
                data => data,
            };
            return Ok(Reservation { tab: self, data });
        }
    }

    fn count_one(&self) -> Result<(), Full> {
        let more = |count| (count < self.limit).then_some(count + 1);
        self.count
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, more)
            .map(drop)
            .map_err(|_| Full)
    }

    /// Makes an element with a new identifier and puts it in the table.
    ///
    /// # Errors
    /// [`Full`]; `make` was then not called.
    pub fn insert(&self, make: impl FnOnce(u64) -> Arc<T>) -> Result<Arc<T>, Full> {
        let reservation = self.reserve()?;
        let element = make(reservation.data());
        reservation.publish(Arc::clone(&element));
        Ok(element)
    }

    /// The data of the next identifier, as far as nobody else takes it.
    #[must_use]
    pub fn next_data(&self) -> u64 {
        let ix = self.taken.load(Ordering::Relaxed) & (self.free.len() - 1);
        match self.free[ix].load(Ordering::Relaxed) {
            0 => ix as u64,
            data => data,
        }
    }

    /// Makes the next identifier the first one from `data` on whose slot was used before and is free;
    /// `false` where there is none. For tests of identifiers that come back: others should take none
    /// meanwhile.
    pub fn set_next_data(&self, data: u64) -> bool {
        let mask = self.slots.len() - 1;
        let used = self.taken.load(Ordering::Relaxed).min(self.slots.len());
        let head = self.taken.load(Ordering::Relaxed) & mask;
        for data in (data..).take(used) {
            let slot = data as usize & mask;
            if data == 0 || slot >= used || !self.slots[slot].load(Ordering::Relaxed).is_null() {
                continue;
            }
            // Entries that were used have no zeros.
            let entries = self.free.iter();
            let mut entries = entries.map(|entry| (entry, entry.load(Ordering::Relaxed)));
            let Some((entry, waiting)) = entries.find(|(_, waiting)| {
                *waiting != TAKEN && *waiting != 0 && *waiting as usize & mask == slot
            }) else {
                continue;
            };
            if std::ptr::eq(entry, &raw const self.free[head]) {
                // PT3: the slot's datum is replaced in place.
                let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
                return entry
                    .compare_exchange(waiting, data, success, failure)
                    .is_ok();
            }
            let first = match self.free[head].swap(TAKEN, Ordering::Acquire) {
                TAKEN => return false,
                0 => head as u64,
                first => first,
            };
            // PT3: `first` is ours, and the slot's datum with the next line.
            let swap = entry.compare_exchange(waiting, first, Ordering::AcqRel, Ordering::Relaxed);
            let next = if swap.is_ok() { data } else { first };
            self.free[head].store(next, Ordering::Release);
            return swap.is_ok();
        }
        false
    }

    /// Gives the identifier after `data` back to the ring (PT3: `data` is the caller's).
    fn release(&self, data: u64) {
        let step = self.slots.len() as u64;
        let mut next = (data + step) & INVALID_DATA;
        // 0 would read as "never used", once in 2^60 spawns.
        while next == INVALID_DATA || next == 0 {
            next = (next + step) & INVALID_DATA;
        }
        loop {
            let ix = self.given.fetch_add(1, Ordering::Relaxed) & (self.free.len() - 1);
            let entry = &self.free[ix];
            if entry
                .compare_exchange(TAKEN, next, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                break;
            }
        }
        self.count.fetch_sub(1, Ordering::Release);
    }

    /// The element of `data`, borrowed: the cheapest look-up.
    #[inline]
    pub fn get<'a>(&'a self, data: u64, _guard: &'a Guard) -> Option<&'a T> {
        let element = self.slot(data).load(Ordering::Acquire);
        // SAFETY: PT1, PT2, PT4: null, or alive while pinned; `'a` is within pin and table.
        let element = unsafe { element.as_ref() }?;
        (element.data() == data).then_some(element)
    }

    /// The element of `data`.
    #[inline]
    pub fn lookup(&self, data: u64) -> Option<Arc<T>> {
        let guard = pin();
        self.get(data, &guard).map(|element| {
            // SAFETY: PT1, PT2: from `Arc::into_raw`, its count not given up while pinned.
            unsafe { clone_of(element) }
        })
    }

    /// Removes the element of `data`; its identifier comes back as late as possible.
    ///
    /// `None` when it is not there, or another thread was first.
    pub fn remove(&self, data: u64) -> Option<Arc<T>> {
        let guard = pin();
        let element = ptr::from_ref(self.get(data, &guard)?).cast_mut();
        self.slot(data)
            .compare_exchange(
                element,
                ptr::null_mut(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .ok()?;
        // SAFETY: PT1, PT2: its count is now ours, and not yet given up.
        let removed = unsafe { clone_of(element) };
        // SAFETY: PT2: the count swapped out above, given up when all pins of now have ended;
        // `T` is `Send` and `'static`, as any thread may run this at any time.
        unsafe {
            guard
                .0
                .defer_unchecked(move || drop(Arc::from_raw(element)))
        };
        self.release(data);
        Some(removed)
    }

    /// The elements in the order of `processes/0`. Every element that is in the table from
    /// the call to the last `next` comes, none twice; one that comes or goes meanwhile may.
    pub fn iter<'a>(&'a self, guard: &'a Guard) -> Iter<'a, T> {
        let used = self.taken.load(Ordering::Relaxed).min(self.slots.len());
        Iter {
            tab: self,
            guard,
            lines: self.slots.len().div_ceil(SLOTS_PER_LINE),
            used,
            line: 0,
            ix: 0,
        }
    }
}

/// Another count of the `Arc` behind `element`.
///
/// # Safety
/// `element` came from `Arc::into_raw` and one of its counts is kept meanwhile.
unsafe fn clone_of<T>(element: *const T) -> Arc<T> {
    // SAFETY: PT1: the caller's promise.
    unsafe { Arc::increment_strong_count(element) };
    // SAFETY: PT1: the count added above becomes that of the result.
    unsafe { Arc::from_raw(element) }
}

impl<T: PTabElement> Drop for PTab<T> {
    fn drop(&mut self) {
        let used = (*self.taken.get_mut()).min(self.slots.len());
        for slot in &mut self.slots[..used] {
            let element = *slot.get_mut();
            if !element.is_null() {
                // SAFETY: PT2: `&mut self`, so nobody borrows from the table any more.
                drop(unsafe { Arc::from_raw(element) });
            }
        }
    }
}

impl<T: PTabElement> fmt::Debug for PTab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PTab")
            .field("len", &self.len())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// An identifier taken for an element in the making; given back on drop.
#[derive(Debug)]
pub struct Reservation<'a, T: PTabElement> {
    tab: &'a PTab<T>,
    data: u64,
}

impl<T: PTabElement> Reservation<'_, T> {
    /// The data of the identifier.
    #[must_use]
    pub fn data(&self) -> u64 {
        self.data
    }

    /// Puts the element in the table.
    ///
    /// # Panics
    /// When the element does not have the data of this reservation.
    pub fn publish(self, element: Arc<T>) {
        assert_eq!(element.data(), self.data, "an element of another slot");
        let slot = self.tab.slot(self.data);
        // PT3: the slot is null and ours; Release for readers of the element.
        slot.store(Arc::into_raw(element).cast_mut(), Ordering::Release);
        std::mem::forget(self);
    }
}

impl<T: PTabElement> Drop for Reservation<'_, T> {
    fn drop(&mut self) {
        self.tab.release(self.data);
    }
}

/// The elements of a [`PTab`], by cache lines as ERTS lays them out.
#[derive(Debug)]
pub struct Iter<'a, T: PTabElement> {
    tab: &'a PTab<T>,
    guard: &'a Guard,
    lines: usize,
    used: usize,
    line: usize,
    ix: usize,
}

impl<'a, T: PTabElement> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        while self.line < self.lines.min(self.used) {
            if self.ix >= self.used {
                self.line += 1;
                self.ix = self.line;
                continue;
            }
            let element = self.tab.slots[self.ix].load(Ordering::Acquire);
            self.ix += self.lines;
            let _pinned = self.guard;
            // SAFETY: PT1, PT2, PT4: null, or alive while pinned; `'a` is within pin and table.
            if let Some(element) = unsafe { element.as_ref() } {
                return Some(element);
            }
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{collections::VecDeque, sync::atomic::AtomicBool, thread};

    use super::*;
    use beamline_runtime_base::hash::HashSet;

    #[derive(Debug)]
    struct Element {
        data: u64,
        check: u64,
    }

    impl PTabElement for Element {
        fn data(&self) -> u64 {
            assert_eq!(self.check, !self.data, "read after free");
            self.data
        }
    }

    impl Drop for Element {
        fn drop(&mut self) {
            self.check = 0;
        }
    }

    fn element(data: u64) -> Arc<Element> {
        Arc::new(Element { data, check: !data })
    }

    fn insert(tab: &PTab<Element>) -> u64 {
        tab.insert(element).unwrap().data()
    }

    fn listed(tab: &PTab<Element>) -> Vec<u64> {
        tab.iter(&pin()).map(PTabElement::data).collect()
    }

    #[test]
    fn a_pid_prints_number_and_serial() {
        assert_eq!((number(43), serial(43)), (43, 0));
        let data = (5 << 28) | 7;
        assert_eq!((number(data), serial(data)), (7, 5));
    }

    #[test]
    fn an_identifier_comes_back_where_that_is_asked_for() {
        let tab = PTab::new(8);
        let first: Vec<_> = (0..4).map(|_| insert(&tab)).collect();
        assert_eq!(tab.next_data(), 4);
        tab.remove(first[2]);
        assert!(!tab.set_next_data(first[3]));
        assert!(tab.set_next_data(first[1]));
        assert_eq!((tab.next_data(), insert(&tab)), (2, 2));
        assert_eq!(
            (0..4).map(|_| insert(&tab)).collect::<Vec<_>>(),
            [5, 6, 7, 4]
        );
        assert_eq!(tab.len(), 8);
        tab.remove(6);
        assert!(tab.set_next_data(6));
        assert_eq!(insert(&tab), 6);
        assert_eq!(tab.insert(element).map(|e| e.data), Err(Full));
    }

    #[test]
    fn identifiers_increase_and_come_back_with_the_next_serial() {
        let tab = PTab::new(5);
        assert_eq!(tab.limit(), 8);
        let first: Vec<_> = (0..8).map(|_| insert(&tab)).collect();
        assert_eq!(first, (0..8).collect::<Vec<_>>());
        assert_eq!(tab.insert(element).map(|e| e.data), Err(Full));
        assert_eq!(tab.len(), 8);
        assert_eq!(tab.remove(3).unwrap().data(), 3);
        assert!(tab.lookup(3).is_none() && tab.remove(3).is_none());
        assert!(tab.remove(0).is_some());
        assert_eq!((insert(&tab), insert(&tab)), (11, 8));
        assert!(tab.lookup(3).is_none());
        assert_eq!(tab.lookup(11).unwrap().data(), 11);
        assert!(tab.reserve().is_err());
    }

    #[test]
    fn identifiers_of_a_long_run_are_those_of_a_ring() {
        let tab = PTab::new(64);
        let mut ring: VecDeque<u64> = (0..64).collect();
        let mut alive = VecDeque::new();
        for round in 0..5_000_u64 {
            if alive.len() < 64 && (alive.is_empty() || round * 7 % 11 < 6) {
                let data = insert(&tab);
                assert_eq!(Some(data), ring.pop_front());
                alive.push_back(data);
            } else {
                let at = usize::try_from(round).unwrap() * 13 % alive.len();
                let data = alive.remove(at).unwrap();
                assert!(tab.remove(data).is_some());
                ring.push_back(data + 64);
            }
        }
        assert_eq!(tab.len(), alive.len());
        assert_eq!(
            listed(&tab).into_iter().collect::<HashSet<_>>(),
            alive.into_iter().collect()
        );
    }

    #[test]
    fn a_dropped_reservation_gives_its_identifier_back() {
        let tab = PTab::new(2);
        drop(tab.reserve().unwrap());
        assert!(tab.is_empty() && listed(&tab).is_empty());
        let reservation = tab.reserve().unwrap();
        assert_eq!(reservation.data(), 1);
        assert!(tab.lookup(1).is_none());
        reservation.publish(element(1));
        assert_eq!(insert(&tab), 2);
        assert_eq!(listed(&tab), [2, 1]);
    }

    #[test]
    fn the_list_has_the_order_of_erts() {
        // Seen of OTP 29 with +P 1024: ..., <0.11.0>, <0.3212.0>, ..., <0.43.0>.
        let tab = PTab::new(1024);
        let keep = [11, 43, 3212, 3213];
        for _ in 0..3214 {
            let data = insert(&tab);
            if !keep.contains(&data) {
                tab.remove(data);
            }
        }
        assert_eq!(listed(&tab), [11, 3212, 3213, 43]);
    }

    #[test]
    fn wrong_data_of_a_used_slot_finds_nothing() {
        let tab = PTab::new(16);
        insert(&tab);
        for data in [16, 1 << 28, INVALID_DATA, u64::MAX] {
            assert!(tab.lookup(data).is_none());
        }
    }

    #[test]
    fn an_element_lives_while_borrowed_and_ends_with_the_table() {
        let tab = PTab::new(4);
        let kept = tab.insert(element).unwrap();
        let guard = pin();
        let borrowed = tab.get(0, &guard).unwrap();
        drop(tab.remove(0));
        assert_eq!(borrowed.data(), 0);
        drop(guard);
        let second = tab.insert(element).unwrap();
        drop(tab);
        assert_eq!((kept.data(), Arc::strong_count(&second)), (0, 1));
    }

    #[test]
    fn threads_insert_look_up_list_and_remove() {
        const ROUNDS: usize = if cfg!(miri) { 60 } else { 30_000 };
        let tab = PTab::new(64);
        let fixed: Vec<_> = (0..5).map(|_| insert(&tab)).collect();
        let last = AtomicU64::new(0);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut mine = VecDeque::new();
                        for _ in 0..ROUNDS {
                            let data = insert(&tab);
                            last.store(data, Ordering::Relaxed);
                            mine.push_back(data);
                            if mine.len() > 20 {
                                assert!(tab.remove(mine.pop_front().unwrap()).is_some());
                            }
                        }
                        mine.iter().for_each(|&data| drop(tab.remove(data)));
                    })
                })
                .collect();
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let data = last.load(Ordering::Relaxed);
                    if let Some(element) = tab.lookup(data) {
                        assert_eq!(element.data(), data);
                    }
                    // By slots: a slot that is reused meanwhile comes once all the same.
                    let list = listed(&tab);
                    assert!(fixed.iter().all(|data| list.contains(data)));
                    let slots: HashSet<_> = list.iter().map(|data| data & 63).collect();
                    assert_eq!(slots.len(), list.len());
                }
            });
            for writer in writers {
                writer.join().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(listed(&tab), fixed);
        assert_eq!(tab.len(), 5);
    }

    #[test]
    fn only_as_many_inserts_as_slots_succeed() {
        let tab = PTab::new(128);
        let inserted: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..100).filter(|_| tab.insert(element).is_ok()).count()))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!((inserted, listed(&tab).len()), (128, 128));
    }
}
