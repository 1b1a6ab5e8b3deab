//! The order in which processes access what they share: tables, names, arrays of atomics.
//!
//! Each process numbers its accesses, from 1. Of an access, only what does not follow from all else is recorded: that
//! it comes *after* an access of another process ([`OrderEvent::After`]). A replay makes an access when the accesses
//! are made after which it comes, and needs to know of no object for that.
//!
//! An [`Object`] knows the processes that access it. While one process alone does, it is the *owner*: its accesses cost
//! a comparison, and nothing is recorded of them. When another one comes, it comes after all that the owner has
//! accessed so far, whatever that was. A read by another process ends the ownership: from then on there are readers,
//! each of which comes after the last write. The next write comes after all that its readers have accessed so far, and
//! the writer is the owner.
//!
//! Why this is exact: an access is *made* when its process counts it, which it does while it holds the lock of the object.
//!
//! - Two accesses to an object, one of them a write, have the order in the recording that they had by the lock. The
//!   later one is made by the same process, or by one of which it is recorded that it comes after the earlier one, or
//!   that has come after a later access of its process already ([`AccessClock::note_predecessor`] leaves only these
//!   out); or a third process's access stands between them, and the same is true of both steps.
//! - A replay never waits in a circle. An access is recorded to come after accesses that had been made before it was
//!   made itself: of each pair that is recorded, the first was made earlier.
//!
//! The caller holds the lock that guards the object, for the access: a write alone, a read at most together with reads.

use std::cell::RefMut;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use beamline_formats::ring::Shared;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use super::{OrderEvent, is_active, is_followed, is_recorded};
use crate::hash::HashMap;
use crate::process::probe::probes;
use crate::process::{Control, Process, order};
use crate::term::{Atom, Pid, Term};

/// How an object is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// What of an object is accessed. Accesses to different keys do not see each other.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    All,
    Key(Term<'a>),
    /// A place in an array, from 1.
    Place(u64),
}

/// An access to an object.
#[derive(Clone, Copy)]
pub(crate) struct Touch<'a> {
    pub(crate) object: &'a Object,
    pub(crate) access: Access,
    pub(crate) shared: Shared,
    /// The name of the table, or the registered name.
    pub(crate) name: Option<Atom>,
    pub(crate) part: Part<'a>,
}

/// A process that accesses objects, as these keep it.
#[derive(Clone)]
struct Accessor {
    pid: Pid,
    /// How many accesses it has made.
    made: Arc<AtomicU64>,
}

impl Accessor {
    fn made(&self) -> u64 {
        self.made.load(Ordering::Acquire)
    }
}

/// What processes share, for the order of their accesses.
pub(crate) struct Object {
    /// The process that alone accesses it; [`NOBODY`] where there are several, or none yet.
    owner: AtomicU64,
    /// Another number for each set of readers; no two objects have the same.
    readers: AtomicU64,
    /// Its number, where that was asked for; else 0.
    number: AtomicU64,
    known: Mutex<Known>,
}

const NOBODY: u64 = u64::MAX;
/// Bounds the list of readers: the next read counts as a write. A table that all processes read keeps no list of them.
const READERS_MAX: usize = 32;

static NEXT_READERS: AtomicU64 = AtomicU64::new(1);
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

struct Known {
    /// The last write, where there is no owner: its process, and how many accesses that one had made by then.
    wrote: Option<(Pid, u64)>,
    /// The owner; or the processes that have read since the last write, and the last writer.
    all: Vec<Accessor>,
}

impl Default for Object {
    fn default() -> Object {
        Object::new()
    }
}

impl Object {
    /// What nobody has accessed.
    pub(crate) const fn new() -> Object {
        Object {
            owner: AtomicU64::new(NOBODY),
            readers: AtomicU64::new(0),
            number: AtomicU64::new(0),
            known: Mutex::new(Known {
                wrote: None,
                all: Vec::new(),
            }),
        }
    }

    /// A number that no other object of this run has.
    pub(crate) fn number(&self) -> u64 {
        let next = || NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let number = &self.number;
        match number.load(Ordering::Relaxed) {
            0 => match number.compare_exchange(0, next(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => number.load(Ordering::Relaxed),
                Err(number) => number,
            },
            number => number,
        }
    }

    /// Whether the process that has made `made` is the owner, or reads and is a reader: its access comes after nothing.
    #[inline]
    fn is_of(&self, made: &AccessClock, access: Access) -> bool {
        self.owner.load(Ordering::Relaxed) == made.own.pid.0
            || access == Access::Read && made.is_reader(self.readers.load(Ordering::Relaxed))
    }

    /// An access by the process that has made `made`: what it comes after.
    fn access(&self, made: &mut AccessClock, access: Access) -> HappensAfter {
        if self.is_of(made, access) {
            return HappensAfter::new();
        }
        let mut known = self.known.lock();
        match access {
            Access::Read => self.read(&mut known, made),
            Access::Write => self.write(&mut known, made),
        }
    }

    fn write(&self, known: &mut Known, made: &mut AccessClock) -> HappensAfter {
        let others = known.all.drain(..);
        let after = others.filter_map(|other| made.note_predecessor(other.pid, other.made()));
        let after = after.collect();
        known.wrote = None;
        known.all.push(made.own.clone());
        self.readers.store(0, Ordering::Relaxed);
        self.owner.store(made.own.pid.0, Ordering::Relaxed);
        after
    }

    fn read(&self, known: &mut Known, made: &mut AccessClock) -> HappensAfter {
        let is_first = known.all.is_empty();
        if is_first || known.all.len() == READERS_MAX {
            return self.write(known, made);
        }
        if self.owner.load(Ordering::Relaxed) != NOBODY {
            let owner = &known.all[0];
            known.wrote = Some((owner.pid, owner.made()));
            let readers = NEXT_READERS.fetch_add(1, Ordering::Relaxed);
            self.readers.store(readers, Ordering::Relaxed);
            self.owner.store(NOBODY, Ordering::Relaxed);
        }
        let mut after = HappensAfter::new();
        if !known.all.iter().any(|one| one.pid == made.own.pid) {
            after.extend(
                known
                    .wrote
                    .and_then(|(pid, number)| made.note_predecessor(pid, number)),
            );
            known.all.push(made.own.clone());
        }
        made.note_reader(self.readers.load(Ordering::Relaxed));
        after
    }
}

/// What processes share without a lock: it has one where the order is asked for.
pub(crate) struct OrderedLock {
    lock: Mutex<()>,
    object: Object,
}

/// A turn, for as long as this is held; `None` where nobody asks for the order.
pub(crate) type OrderedGuard<'a> = Option<MutexGuard<'a, ()>>;

impl OrderedLock {
    /// Nobody has had a turn.
    pub(crate) const fn new() -> OrderedLock {
        OrderedLock {
            lock: Mutex::new(()),
            object: Object::new(),
        }
    }

    /// The turn of `p`, for as long as this is held; nothing is where nobody asks for the order.
    ///
    /// # Errors
    /// As [`Process::access`].
    #[inline]
    pub(crate) fn take(
        &self,
        p: &Process,
        access: Access,
        shared: Shared,
        part: Part<'_>,
    ) -> Result<OrderedGuard<'_>, Control<'static>> {
        if !is_active() {
            return Ok(None);
        }
        let turn = self.lock.lock();
        p.access(Touch {
            object: &self.object,
            access,
            shared,
            name: None,
            part,
        })?;
        Ok(Some(turn))
    }
}

/// Objects that stand for names, or for processes.
pub(crate) struct ObjectsOf<K>(Mutex<Option<HashMap<K, &'static Object>>>);

impl<K: Eq + Hash> ObjectsOf<K> {
    /// None yet.
    pub(crate) const fn new() -> ObjectsOf<K> {
        ObjectsOf(Mutex::new(None))
    }

    /// What stands for this one. It stays, as a name itself does.
    pub(crate) fn of(&self, key: K) -> &'static Object {
        let mut all = self.0.lock();
        let object = all.get_or_insert_default().entry(key);
        object.or_insert_with(|| Box::leak(Box::default()))
    }

    /// From now on, `object` stands for this one.
    pub(crate) fn set(&self, key: K, object: &'static Object) {
        self.0.lock().get_or_insert_default().insert(key, object);
    }
}

/// Entries of each of the two direct-mapped caches: of other processes, and of sets of readers.
const KEPT: usize = 16;

/// What an access comes after: accesses of other processes.
type HappensAfter = SmallVec<[(Pid, u64); 2]>;

/// What a process has accessed.
pub(in crate::process) struct AccessClock {
    own: Accessor,
    /// Its accesses up to this one are recorded.
    told: u64,
    /// The sets of readers that it is in, each at the place that its number gives.
    readers: [u64; KEPT],
    /// Other processes, and which of their accesses it comes after, each at the place that its pid gives.
    after: [(Pid, u64); KEPT],
}

impl AccessClock {
    fn new(pid: Pid) -> AccessClock {
        let made = Arc::default();
        AccessClock {
            own: Accessor { pid, made },
            told: 0,
            readers: [0; KEPT],
            after: [(Pid(NOBODY), 0); KEPT],
        }
    }

    fn is_reader(&self, readers: u64) -> bool {
        readers != 0 && self.readers[readers as usize % KEPT] == readers
    }

    fn note_reader(&mut self, readers: u64) {
        self.readers[readers as usize % KEPT] = readers;
    }

    /// Notes that the next access comes after this one. Returns what is to be recorded of it; `None` where it follows from
    /// earlier notes.
    fn note_predecessor(&mut self, of: Pid, number: u64) -> Option<(Pid, u64)> {
        if of == self.own.pid || number == 0 {
            return None;
        }
        let kept = &mut self.after[of.number() as usize % KEPT];
        if kept.0 == of && kept.1 >= number {
            return None;
        }
        *kept = (of, number);
        Some((of, number))
    }

    /// Tells what its access that is about to be made comes after.
    fn tell(&mut self, after: HappensAfter) {
        for (of, number) in after {
            let since = self.own.made() + 1 - self.told;
            self.told += since;
            probes().ordered(self.own.pid, OrderEvent::After { of, number, since });
        }
    }

    /// It makes its next access.
    fn count_next(&self) {
        // Only the process itself counts them.
        let number = self.own.made.load(Ordering::Relaxed) + 1;
        self.own.made.store(number, Ordering::Release);
    }

    /// How many of its accesses are not recorded yet.
    fn since(&self) -> u64 {
        self.own.made().saturating_sub(self.told)
    }
}

impl order::OrderState {
    fn clock(&mut self, pid: Pid) -> &mut AccessClock {
        self.made
            .get_or_insert_with(|| Box::new(AccessClock::new(pid)))
    }

    /// Records accesses of which nothing has been recorded: the process ends.
    pub(in crate::process) fn record_accesses(&mut self, pid: Pid) {
        if self.made.as_ref().is_some_and(|made| made.since() > 0) {
            self.record_accesses_so_far(pid);
        }
    }

    /// Tells how many it has made, if any.
    pub(in crate::process) fn record_accesses_so_far(&mut self, pid: Pid) {
        if let Some(made) = &mut self.made {
            let count = made.since();
            made.told += count;
            probes().ordered(pid, OrderEvent::Accesses(count));
        }
    }
}

impl Process {
    /// It is about to access an object, whose lock it holds.
    ///
    /// # Errors
    /// Its turn has not come, where a recorded run is followed: it is to give up the lock, and try again later. A call of
    /// a built-in function makes one access, or keeps in mind those it has made.
    #[inline]
    pub(crate) fn access(&self, touch: Touch<'_>) -> Result<(), Control<'static>> {
        if !is_active() {
            return Ok(());
        }
        self.access_in_order(&[touch])
    }

    /// As [`Process::access`], for one access of several objects, which are found only where accesses are ordered.
    ///
    /// # Errors
    /// As [`Process::access`].
    #[inline]
    pub(crate) fn access_those<'t, T: IntoIterator<Item = Touch<'t>>>(
        &self,
        touches: impl FnOnce() -> T,
    ) -> Result<(), Control<'static>> {
        if !is_active() {
            return Ok(());
        }
        let touches: SmallVec<[Touch<'_>; 3]> = touches().into_iter().collect();
        self.access_in_order(&touches)
    }

    /// As [`Process::access`], for one access of several objects.
    ///
    /// # Errors
    /// As [`Process::access`].
    pub(crate) fn access_all(&self, touches: &[Touch<'_>]) -> Result<(), Control<'static>> {
        if !is_active() {
            return Ok(());
        }
        self.access_in_order(touches)
    }

    fn access_in_order(&self, touches: &[Touch<'_>]) -> Result<(), Control<'static>> {
        match order::is_only_recorded() {
            true => self.record_access(touches),
            false => self.access_in_turn(touches)?,
        }
        Ok(())
    }

    fn access_in_turn(&self, touches: &[Touch<'_>]) -> Result<(), Control<'static>> {
        self.take_turn_of(touches)?;
        let number = self.accesses_made() + 1;
        self.stop_before_access(number)?;
        if is_followed()
            && let Some(later) = self.access_is_later(number)
        {
            return Err(later);
        }
        self.tell_access(number, touches);
        match is_recorded() {
            true => self.record_access(touches),
            false => self.own_order().clock(self.pid()).count_next(),
        }
        if is_followed() {
            self.follow_access(number);
        }
        Ok(())
    }

    /// Counts an access as made, and records what it comes after.
    #[inline]
    fn record_access(&self, touches: &[Touch<'_>]) {
        let (mut own, pid) = (self.own_order(), self.pid());
        let made = own.clock(pid);
        let is_of = |touch: &Touch<'_>| touch.object.is_of(made, touch.access);
        match touches.iter().all(is_of) {
            true => made.count_next(),
            false => self.record_change(own, touches),
        }
    }

    /// As [`Process::record_access`], where others have accessed an object, or nobody has.
    #[cold]
    fn record_change(&self, mut own: RefMut<'_, order::OrderState>, touches: &[Touch<'_>]) {
        let pid = self.pid();
        let made = own.clock(pid);
        let mut after = HappensAfter::new();
        for touch in touches {
            after.extend(touch.object.access(made, touch.access));
        }
        if !after.is_empty() {
            own.record_rest(pid);
            own.clock(pid).tell(after);
        }
        own.clock(pid).count_next();
    }

    /// Records of its access of this number what a replay does not need, such as the object, where that is asked for.
    fn tell_access(&self, number: u64, touches: &[Touch<'_>]) {
        if self.record_access_site() {
            for touch in touches {
                probes().accessed(self.pid(), number, touch);
            }
        }
    }

    pub(in crate::process) fn accesses_made(&self) -> u64 {
        self.own_order().clock(self.pid()).own.made()
    }
}

/// Any order of accesses is recorded so that a replay of the record has the same one, as far as anybody can see.
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROCESSES: usize = 4;
    const OBJECTS: usize = 3;

    /// An access: to which object, and how.
    type Wanted = (usize, Access);

    /// What an access sees: how often its object had been written.
    type Seen = u64;

    /// A process of the test: what it is to access, and what was recorded of it.
    struct One {
        wanted: Vec<Wanted>,
        after: Vec<Vec<(usize, u64)>>,
        seen: Vec<Seen>,
    }

    fn wanted() -> impl Strategy<Value = Wanted> {
        let access = prop_oneof![3 => Just(Access::Read), 1 => Just(Access::Write)];
        (0..OBJECTS, access)
    }

    fn pid(at: usize) -> Pid {
        Pid(at as u64 + 100)
    }

    /// Makes an access: what it sees.
    fn make(written: &mut [u64], (object, access): Wanted) -> Seen {
        written[object] += u64::from(access == Access::Write);
        written[object]
    }

    /// Chooses the next process among those that may go on.
    fn choose(may: &[usize], choice: usize) -> usize {
        may[choice % may.len()]
    }

    /// Records the accesses in the order of the choices.
    fn record(wanted: &[Vec<Wanted>], choices: &[usize]) -> Vec<One> {
        let objects: Vec<_> = (0..OBJECTS).map(|_| Object::default()).collect();
        let mut made: Vec<_> = (0..wanted.len())
            .map(|at| AccessClock::new(pid(at)))
            .collect();
        let mut written = vec![0; OBJECTS];
        let mut all: Vec<_> = wanted
            .iter()
            .map(|wanted| One {
                wanted: wanted.clone(),
                after: Vec::new(),
                seen: Vec::new(),
            })
            .collect();
        for choice in choices.iter().cycle() {
            let is_left = |at: &usize| all[*at].seen.len() < all[*at].wanted.len();
            let left: Vec<_> = (0..all.len()).filter(is_left).collect();
            if left.is_empty() {
                break;
            }
            let at = choose(&left, *choice);
            let one = &mut all[at];
            let next = one.wanted[one.seen.len()];
            let after = objects[next.0].access(&mut made[at], next.1);
            let place = |(of, number): (Pid, u64)| (of.0 as usize - 100, number);
            one.after.push(after.into_iter().map(place).collect());
            one.seen.push(make(&mut written, next));
            made[at]
                .own
                .made
                .store(one.seen.len() as u64, Ordering::Release);
        }
        all
    }

    /// Makes the accesses again, those in their turn in the order of other choices: what each sees.
    fn replay(all: &[One], choices: &[usize]) -> Vec<Vec<Seen>> {
        let mut written = vec![0; OBJECTS];
        let mut seen: Vec<Vec<Seen>> = vec![Vec::new(); all.len()];
        for choice in choices.iter().cycle() {
            let may = |at: &usize| {
                let next = seen[*at].len();
                let after = all[*at].after.get(next);
                after.is_some_and(|after| {
                    let mut after = after.iter();
                    after.all(|(of, number)| seen[*of].len() as u64 >= *number)
                })
            };
            let turns: Vec<_> = (0..all.len()).filter(may).collect();
            if turns.is_empty() {
                break;
            }
            let at = choose(&turns, *choice);
            let next = all[at].wanted[seen[at].len()];
            let sees = make(&mut written, next);
            seen[at].push(sees);
        }
        seen
    }

    proptest! {
        #[test]
        fn each_access_sees_what_it_saw(
            wanted in prop::collection::vec(prop::collection::vec(wanted(), 0..30), 1..=PROCESSES),
            recorded in prop::collection::vec(any::<usize>(), 1..40),
            replayed in prop::collection::vec(any::<usize>(), 1..40),
        ) {
            let all = record(&wanted, &recorded);
            let seen: Vec<_> = all.iter().map(|one| one.seen.clone()).collect();
            prop_assert_eq!(replay(&all, &replayed), seen);
        }
    }

    #[test]
    fn nothing_is_told_of_what_one_process_accesses() {
        let wanted = [vec![(0, Access::Write); 50], vec![(1, Access::Read); 50]];
        let all = record(&wanted, &[0, 1]);
        assert!(all.iter().flat_map(|one| &one.after).all(Vec::is_empty));
    }

    #[test]
    fn many_readers_are_told_once_each() {
        let readers = 3 * READERS_MAX;
        let mut wanted = vec![vec![(0, Access::Write)]];
        wanted.resize(readers + 1, vec![(0, Access::Read); 10]);
        // Each makes all its accesses, one process after the other.
        let all = record(&wanted, &[0]);
        let told: usize = all.iter().flat_map(|one| &one.after).map(Vec::len).sum();
        assert!((readers..3 * readers).contains(&told), "{told}");
        let seen: Vec<_> = all.iter().map(|one| one.seen.clone()).collect();
        assert_eq!(replay(&all, &[usize::MAX, 7, 3]), seen);
    }
}
