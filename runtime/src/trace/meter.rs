//! Meters, which measure a process: a meter counts calls, and charges time and words to accounts.
//!
//! A meter belongs to one process, one session and one measure. It has a current node, which stands for the function
//! (or call path) that is running. A call charges what has passed to the current node and makes the callee's node the
//! current one. A return charges the callee and makes the caller's node current again.
//!
//! In a flat meter a node stands for a function, whoever calls it. In a tree meter a node stands for a call path. A function
//! that is on the path already goes back to its node there, so that recursion makes no path without end.
//!
//! An exception is a return from all calls that it ends: it makes the node current again that was current in the function
//! that catches it. Differs from OTP, which leaves the account with the function that raised it.
//!
//! A call of the function that is current is no change: it is counted, but the clock is not read, and there is nothing to
//! give back. So recursion costs little.
//!
//! Compiled code does in line what [`Meter::enter`] and [`Meter::leave`] do, for one meter of a process: the last one that
//! was all that a function's breakpoint wanted (`jit/metered.rs`).
//!
//! Invariants:
//! - ME1: a meter's current node, and the nodes that its calls are known to lead to, are of its arena, which it holds.
//! - ME2: [`Meter::calls`] is that of the process's shared part, which the process holds as it holds its meters.
#![expect(
    unsafe_code,
    reason = "nodes are reached as compiled code reaches them"
)]

use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use beamline_formats::paths::Known;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::in_line::{InLine, METERS, Pending};
use super::native::Nature;
use super::node::{Arena, Node, ROOT};
use super::session::Shared;
use crate::process::Process;
use crate::process::dirty::DirtyTicks;
use crate::sys::chance::ticks::Ticks;

/// The account of a function in a session. It gets a new one every time its counting starts anew.
pub(super) struct Account {
    /// Never used twice.
    pub(super) id: u32,
    /// The flat nodes that count it, one for each process that called it.
    pub(super) nodes: Mutex<Vec<(Arc<Arena>, u32)>>,
    /// What the function is.
    pub(super) nature: Nature,
}

/// The measures of a meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measures {
    /// By call path.
    pub tree: bool,
    /// Time.
    pub time: bool,
    /// Words allocated.
    pub words: bool,
    /// Reductions.
    pub reductions: bool,
}

impl Measures {
    /// Names the meter of these and of the session with this id; never 0.
    #[inline(always)]
    pub(super) fn key(self, session: u64) -> u64 {
        let bits = [self.tree, self.time, self.words, self.reductions];
        let bits = bits.iter().fold(0, |all, &bit| all << 1 | u64::from(bit));
        (session + 1) << 4 | bits
    }
}

/// The state of the process at a call or return, as far as it is measured.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) words: u64,
    /// Words counted before what is on the heap now.
    pub(super) words_collected: u64,
    pub(super) reductions: u64,
}

/// A meter: its current node, and what has been charged.
pub(super) struct Meter {
    pub(super) session: Arc<Shared>,
    pub(super) measures: Measures,
    /// See [`Measures::key`].
    key: u64,
    /// Names it in frames; unique in its process.
    pub(super) uid: u32,
    pub(super) arena: Arc<Arena>,
    /// The arena, for compiled code.
    nodes: *const Arena,
    /// The sessions that trace the process's calls, and this session's bit among them.
    calls: *const AtomicU64,
    bit: u64,
    current: NonNull<Node>,
    clock: Ticks,
    ticks: u64,
    words: u64,
    reductions: u64,
    /// Where a call of an account from a node leads.
    transitions: Known<u32>,
    /// The same of calls made of late.
    ways: Ways,
}

// SAFETY: ME1, ME2: what its pointers lead to lives as long as it does, on whichever thread.
unsafe impl Send for Meter {}

/// Where calls made of late led: a table in which each call has one place.
struct Ways {
    /// The caller's bits of a key: none where the caller does not matter.
    paths: u64,
    /// Of an even power of two of ways, less one.
    mask: u64,
    /// The table's first.
    first: *const Way,
    table: Box<[Way]>,
}

/// Where a call leads.
#[derive(Clone, Copy)]
struct Way {
    /// The caller's index above the account of who is called; 0 where there is none.
    key: u64,
    to: Option<NonNull<Node>>,
}

/// Ways in a table at first, and at most.
const WAYS: [usize; 2] = [8, 4096];

impl Ways {
    fn new(tree: bool, len: usize) -> Ways {
        let table = vec![Way { key: 0, to: None }; len].into_boxed_slice();
        Ways {
            paths: if tree { !0 << 32 } else { 0 },
            mask: len as u64 - 1,
            first: table.as_ptr(),
            table,
        }
    }

    #[inline(always)]
    fn key(&self, from: u32, account: u32) -> u64 {
        (u64::from(from) << 32 & self.paths) | u64::from(account)
    }

    #[inline(always)]
    fn place(&self, key: u64) -> usize {
        ((key >> 32).wrapping_mul(5).wrapping_add(key) & self.mask) as usize
    }

    #[inline(always)]
    fn find(&self, from: u32, account: u32) -> Option<NonNull<Node>> {
        let key = self.key(from, account);
        let way = self.table[self.place(key)];
        way.to.filter(|_| way.key == key)
    }

    fn set(&mut self, from: u32, account: u32, to: NonNull<Node>) {
        let key = self.key(from, account);
        let at = self.place(key);
        self.table[at] = Way { key, to: Some(to) };
    }
}

/// What compiled code looks at in a meter.
pub(crate) mod offset {
    use super::{Measures, Meter, Way, Ways, offset_of};

    pub(crate) const KEY: i32 = offset_of!(Meter, key) as i32;
    pub(crate) const UID: i32 = offset_of!(Meter, uid) as i32;
    pub(crate) const NODES: i32 = offset_of!(Meter, nodes) as i32;
    pub(crate) const CALLS: i32 = offset_of!(Meter, calls) as i32;
    pub(crate) const BIT: i32 = offset_of!(Meter, bit) as i32;
    pub(crate) const CURRENT: i32 = offset_of!(Meter, current) as i32;
    pub(crate) const TICKS: i32 = offset_of!(Meter, ticks) as i32;
    pub(crate) const WORDS: i32 = offset_of!(Meter, words) as i32;
    pub(crate) const REDUCTIONS: i32 = offset_of!(Meter, reductions) as i32;
    const MEASURES: usize = offset_of!(Meter, measures);
    pub(crate) const MEASURES_TIME: i32 = (MEASURES + offset_of!(Measures, time)) as i32;
    pub(crate) const MEASURES_WORDS: i32 = (MEASURES + offset_of!(Measures, words)) as i32;
    pub(crate) const MEASURES_REDUCTIONS: i32 =
        (MEASURES + offset_of!(Measures, reductions)) as i32;
    const WAYS: usize = offset_of!(Meter, ways);
    pub(crate) const PATHS: i32 = (WAYS + offset_of!(Ways, paths)) as i32;
    pub(crate) const MASK: i32 = (WAYS + offset_of!(Ways, mask)) as i32;
    pub(crate) const FIRST_WAY: i32 = (WAYS + offset_of!(Ways, first)) as i32;
    pub(crate) const WAY_KEY: i32 = offset_of!(Way, key) as i32;
    pub(crate) const WAY_TO: i32 = offset_of!(Way, to) as i32;
    /// A way's size, as a shift.
    pub(crate) const WAY_SHIFT: i8 = size_of::<Way>().trailing_zeros() as i8;
    const _: () = assert!(size_of::<Way>().is_power_of_two());
}

impl Meter {
    /// One that begins now. `calls` is of the process: ME2.
    pub(super) fn new(
        session: Arc<Shared>,
        measures: Measures,
        uid: u32,
        arena: Arc<Arena>,
        calls: *const AtomicU64,
        reading: Reading,
    ) -> Meter {
        let clock = Ticks::clock();
        Meter {
            measures,
            key: measures.key(session.id),
            uid,
            nodes: Arc::as_ptr(&arena),
            calls,
            bit: session.bit(),
            current: arena.address(ROOT),
            clock,
            ticks: if measures.time { clock.now() } else { 0 },
            words: reading.words,
            reductions: reading.reductions,
            transitions: Known::default(),
            ways: Ways::new(measures.tree, WAYS[0]),
            session,
            arena,
        }
    }

    /// Its address.
    pub(super) fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    /// Its address for compiled code, where that may do what it does; else 0.
    pub(super) fn in_line(&self) -> u64 {
        match !self.measures.time || self.clock.is_counter() {
            true => self.address(),
            false => 0,
        }
    }

    /// The node that stands for what is running.
    #[inline(always)]
    pub(super) fn current(&self) -> &Node {
        // SAFETY: ME1.
        unsafe { self.current.as_ref() }
    }

    /// The words that are on the heap now are the current function's: the process began with it.
    pub(super) fn count_initial_words(&mut self, reading: Reading) {
        self.words = reading.words_collected;
    }

    #[inline(always)]
    fn charge(&mut self, reading: &Reading) {
        if self.measures.time {
            self.charge_time();
        }
        self.charge_counts(reading);
    }

    #[inline(always)]
    fn charge_time(&mut self) {
        let now = self.clock.now();
        self.current().add_ticks(now.saturating_sub(self.ticks));
        self.ticks = now;
    }

    #[inline(always)]
    fn charge_counts(&mut self, reading: &Reading) {
        if self.measures.words {
            let words = reading.words.wrapping_sub(self.words);
            self.current().add_words(words);
            self.words = reading.words;
        }
        if self.measures.reductions {
            let reductions = reading.reductions.saturating_sub(self.reductions);
            self.current().add_reductions(reductions);
            self.reductions = reading.reductions;
        }
    }

    /// A call of the function measured under `account`; gives the caller's node.
    #[inline(always)]
    pub(super) fn enter(&mut self, account: &Arc<Account>, reading: &Reading) -> u32 {
        self.charge(reading);
        let from = self.current().index();
        if !self.runs(account) {
            self.current = match self.ways.find(from, account.id) {
                Some(to) => to,
                None => self.transition(from, account),
            };
        }
        self.current().called();
        from
    }

    /// Back from a call, to the caller's node.
    #[inline(always)]
    pub(super) fn leave(&mut self, caller: u32, reading: &Reading) {
        self.charge(reading);
        // A frame from before the session's tables were made anew names no node of these.
        let is_there = caller < self.arena.len();
        self.current = self.arena.address(if is_there { caller } else { ROOT });
    }

    #[cold]
    fn transition(&mut self, from: u32, account: &Arc<Account>) -> NonNull<Node> {
        let parent = if self.measures.tree { from } else { ROOT };
        let (arena, measures) = (&self.arena, self.measures);
        let node = |at: u32| {
            let node = (at != ROOT).then(|| arena.node(at))?;
            Some((node.account(), node.parent()))
        };
        let add = || {
            let index = arena.push(parent, account.id);
            if !measures.tree {
                account.nodes.lock().push((arena.clone(), index));
            }
            index
        };
        let to = self.transitions.call(parent, account.id, node, add);
        let to = self.arena.address(to);
        let wanted = (2 * self.arena.len() as usize).next_power_of_two();
        if wanted > self.ways.table.len() && self.ways.table.len() < WAYS[1] {
            self.ways = Ways::new(self.measures.tree, wanted.min(WAYS[1]));
        }
        self.ways.set(from, account.id, to);
        to
    }

    /// The process stops running: time up to now is the current function's.
    pub(super) fn scheduled_out(&mut self) {
        if self.measures.time {
            self.charge_time();
        }
    }

    /// Is it this one?
    #[inline(always)]
    pub(super) fn is_of(&self, session: &Shared, measures: Measures) -> bool {
        self.key == measures.key(session.id)
    }

    /// The calls of the current function that compiled code has counted since are charged for.
    fn ran(&mut self, pending: &Pending) {
        self.current().add_calls(pending.calls);
        if self.measures.words {
            self.current().add_words(pending.words);
            self.words = self.words.wrapping_add(pending.words);
        }
    }

    /// Is the function measured under `account` the current one?
    #[inline(always)]
    pub(super) fn runs(&self, account: &Account) -> bool {
        self.current().account() == account.id
    }

    /// A call of the current function: its time is read when another one becomes current.
    #[inline(always)]
    pub(super) fn called(&mut self, reading: &Reading) {
        self.charge_counts(reading);
        self.current().called();
    }

    /// A call on a dirty scheduler has come back: its run is the current function's time, and its waiting is told apart.
    /// Gives the account of that function.
    pub(super) fn was_dirty(&mut self, times: &DirtyTicks) -> u32 {
        let node = self.current();
        if self.measures.time {
            node.add_ticks(times.ran);
            node.add_dirty_wait(times.waited);
        }
        node.account()
    }

    /// The process runs again: time since it stopped is nobody's.
    pub(super) fn scheduled_in(&mut self) {
        if self.measures.time {
            self.ticks = self.clock.now();
        }
    }
}

/// Those of `p`.
pub(super) fn all_of(p: &Process) -> impl Iterator<Item = &Meter> {
    let meters = p.meters.as_deref().and_then(|all| all.downcast_ref());
    let meters: Option<&Meters> = meters;
    meters
        .into_iter()
        .flat_map(|all| &all.meters)
        .map(|meter| &**meter)
}

/// The meters of a process.
#[derive(Default)]
pub(crate) struct Meters {
    /// Compiled code knows one by its address.
    #[expect(clippy::vec_box, reason = "they do not move")]
    pub(super) meters: Vec<Box<Meter>>,
    next_uid: u32,
    /// Those that are to be charged for what compiled code counts.
    running: SmallVec<[usize; METERS]>,
    pub(super) in_line: Arc<InLine>,
}

impl Meters {
    /// A name for one more meter.
    pub(super) fn uid(&mut self) -> u32 {
        // 28 bits fit a frame's word beside a node.
        self.next_uid = (self.next_uid + 1) & 0xfff_ffff;
        self.next_uid
    }
    /// The meter of this [`Measures::key`].
    #[inline]
    pub(super) fn by_key(&mut self, key: u64) -> Option<&mut Meter> {
        let mut all = self.meters.iter_mut().map(|meter| &mut **meter);
        all.find(|meter| meter.key == key)
    }
    pub(super) fn by_uid(&mut self, uid: u32) -> Option<&mut Meter> {
        let mut all = self.meters.iter_mut().map(|meter| &mut **meter);
        all.find(|meter| meter.uid == uid)
    }
    /// Charges for the calls that compiled code has counted.
    #[inline(always)]
    pub(super) fn settle(&mut self) {
        if !self.running.is_empty() {
            self.charge_running();
        }
    }
    fn charge_running(&mut self) {
        let pending = self.in_line.pending();
        self.in_line.together().begin();
        for at in self.running.drain(..) {
            self.meters[at].ran(&pending);
        }
        self.in_line.charged();
        self.in_line.together().end();
    }
    /// Are some to be charged for what compiled code counts?
    pub(super) fn charges_later(&self) -> bool {
        !self.running.is_empty()
    }
    /// Compiled code counts calls of the function that is the current one of `running`, which measure no reductions, as
    /// [`InLine::runs`] says.
    pub(super) fn count_in_line(
        &mut self,
        running: SmallVec<[usize; METERS]>,
        changes: u64,
        count: u64,
        top: u64,
    ) {
        debug_assert!(self.running.is_empty(), "they have been charged");
        let meters = || running.iter().map(|at| &self.meters[*at]);
        let nodes: SmallVec<[&Node; METERS]> = meters().map(|meter| meter.current()).collect();
        let words = meters().find(|meter| meter.measures.words);
        let words = words.map(|meter| meter.current());
        self.in_line.runs(changes, count, &nodes, words, top);
        self.running = running;
    }
    /// Compiled code uses the meter of this key.
    pub(super) fn use_in_line(&mut self, key: u64) {
        let meter = self.meters.iter().find(|meter| meter.key == key);
        self.in_line
            .use_meter(meter.map_or(0, |meter| meter.in_line()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::{Pid, am};

    fn account(id: u32) -> Arc<Account> {
        Arc::new(Account {
            id,
            nodes: Mutex::default(),
            nature: Nature::default(),
        })
    }

    fn meter(tree: bool) -> Meter {
        let initial = (am::erlang, am::apply, 2);
        let arena = Arc::new(Arena::new(Pid(1), initial, Arc::default()));
        let measures = Measures {
            tree,
            words: true,
            ..Measures::default()
        };
        static CALLS: AtomicU64 = AtomicU64::new(0);
        Meter::new(
            Shared::detached(),
            measures,
            1,
            arena,
            &raw const CALLS,
            at(0),
        )
    }

    fn at(words: u64) -> Reading {
        Reading {
            words,
            words_collected: 0,
            reductions: 0,
        }
    }

    /// Of each node: parent, account, calls, words.
    fn nodes(meter: &Meter) -> Vec<(u32, u32, u64, i64)> {
        let row = |node: &super::super::node::Node| {
            let counted = node.counted();
            (node.parent(), node.account(), counted.calls, counted.words)
        };
        meter.arena.nodes().map(|(_, node)| row(node)).collect()
    }

    #[test]
    fn words_go_to_the_function_that_runs() {
        let (f, g) = (account(1), account(2));
        let mut meter = meter(false);
        let root = meter.enter(&f, &at(10));
        let back = meter.enter(&g, &at(15));
        meter.leave(back, &at(17));
        meter.leave(root, &at(20));
        assert_eq!(nodes(&meter), [(0, 1, 1, 8), (0, 2, 1, 2)]);
        assert_eq!((f.nodes.lock().len(), g.nodes.lock().len()), (1, 1));
    }

    #[test]
    fn a_tree_has_a_node_for_each_path_and_folds_recursion() {
        let (f, g, h) = (account(1), account(2), account(3));
        let mut meter = meter(true);
        let root = meter.enter(&f, &at(0));
        let in_f = meter.enter(&g, &at(1));
        let in_g = meter.enter(&h, &at(3));
        // h calls f, which is on the path: back to its node, and g under it is the known one.
        let in_h = meter.enter(&f, &at(6));
        let again = meter.enter(&g, &at(10));
        assert_eq!((root, in_f, in_g, in_h, again), (0, 1, 2, 3, 1));
        for (caller, words) in [(again, 15), (in_h, 16), (in_g, 18), (in_f, 21), (root, 25)] {
            meter.leave(caller, &at(words));
        }
        let h_alone = meter.enter(&h, &at(25));
        meter.leave(h_alone, &at(26));
        let rows = [
            (0, 1, 2, 1 + 4 + 1 + 4),
            (1, 2, 2, 2 + 5 + 3),
            (2, 3, 1, 3 + 2),
            (0, 3, 1, 1),
        ];
        assert_eq!(nodes(&meter), rows);
    }
}
