//! Meters, which measure a process: a meter counts calls, and charges time and words to accounts.
//!
//! A meter belongs to one process, one session and one measure. It has a current node, which stands for the function
//! (or call path) that is running. A call charges what has passed to the current node and makes the callee's node the
//! current one. A return charges the callee and makes the caller's node current again.
//!
//! In a flat meter a node stands for a function, whoever calls it. In a tree meter a node stands for a call path, as
//! [`beamline_formats::paths`] describes.
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
//! - ME3: what a process holds as its `meters` is a `Meters`: nobody but `meters::meters` puts something there.
#![expect(
    unsafe_code,
    reason = "nodes are reached as compiled code reaches them"
)]

use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use beamline_formats::paths::Known;

use crate::process::dirty::DirtyTicks;
use crate::sys::chance::ticks::Ticks;
use crate::trace::costs::account::{Account, Measures};
use crate::trace::costs::in_line::Pending;
use crate::trace::costs::node::{Arena, Called, Node, ROOT, Tracks};
use crate::trace::session::Shared;

/// The state of the process at a call or return, as far as it is measured.
#[derive(Clone, Copy)]
pub(in crate::trace) struct Reading {
    pub(in crate::trace) words: u64,
    /// Words counted before what is on the heap now.
    pub(in crate::trace) words_collected: u64,
    pub(in crate::trace) reductions: u64,
}

/// A meter: its current node, and what has been charged.
pub(in crate::trace) struct Meter {
    pub(in crate::trace) session: Arc<Shared>,
    pub(in crate::trace) measures: Measures,
    /// See [`Measures::key`].
    pub(super) key: u64,
    /// Names it in frames; unique in its process.
    pub(in crate::trace) uid: u32,
    pub(in crate::trace) arena: Arc<Arena>,
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
    transitions: Known<Called>,
    /// Where calls made of late lead, without a look at the table.
    ways: Ways,
}

// SAFETY: ME1, ME2: what its pointers lead to lives as long as it does, on whichever thread.
unsafe impl Send for Meter {}

/// Where calls made of late led: a table in which each call has one of two places, which lie side by side.
struct Ways {
    /// The bits of a key that tell callers and ways of calling apart: none where that does not matter.
    paths: u64,
    /// Of an even power of two of ways, less one.
    mask: u64,
    /// The table's first.
    first: *const Way,
    table: Box<[Pair]>,
    /// Ways that were forgotten for others.
    forgotten: usize,
}

/// Where a call leads.
#[derive(Clone, Copy)]
struct Way {
    /// The caller's index, a bit for a tail call, and the account of what is called; 0 where there is none.
    key: u64,
    to: Option<NonNull<Node>>,
}

/// Two ways. Of the address of one, the bit of a way's size leads to the other.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Pair([Way; 2]);
const _: () = assert!(size_of::<Pair>() == 2 * size_of::<Way>());

/// The bit of a key that says that a call is a tail call: no account has it.
pub(crate) const TAIL_SHIFT: u32 = 31;

/// Ways in a table at first, and at most: a process's paths have a bound, and this is twice as many and more.
const WAYS: [usize; 2] = [8, 1 << 21];

/// Ways for each node: at least, and at most, where calls that are made again and again forget each other's.
const WAYS_OF_NODE: [usize; 2] = [2, 32];

impl Ways {
    fn new(tree: bool, len: usize) -> Ways {
        let none = Way { key: 0, to: None };
        let table = vec![Pair([none; 2]); len / 2].into_boxed_slice();
        Ways {
            paths: if tree { !0 << TAIL_SHIFT } else { 0 },
            mask: len as u64 - 1,
            first: table.as_ptr().cast(),
            table,
            forgotten: 0,
        }
    }

    #[inline(always)]
    fn len(&self) -> usize {
        2 * self.table.len()
    }

    #[inline(always)]
    fn key(&self, from: u32, called: Called) -> u64 {
        let how = u64::from(from) << 32 | u64::from(called.is_tail) << TAIL_SHIFT;
        (how & self.paths) | u64::from(called.account)
    }

    #[inline(always)]
    fn place(&self, key: u64) -> usize {
        ((key >> 32).wrapping_mul(5).wrapping_add(key) & self.mask) as usize
    }

    #[inline(always)]
    fn find(&self, from: u32, called: Called) -> Option<NonNull<Node>> {
        let key = self.key(from, called);
        let Pair(pair) = &self.table[self.place(key) / 2];
        pair.iter().find(|way| way.key == key)?.to
    }

    fn set(&mut self, from: u32, called: Called, to: NonNull<Node>) {
        let key = self.key(from, called);
        self.put(Way { key, to: Some(to) });
    }

    /// Adds a way that is not there. Where both of its places are taken, the older way is forgotten.
    fn put(&mut self, way: Way) {
        let at = self.place(way.key);
        let Pair(pair) = &mut self.table[at / 2];
        let (first, other) = (at % 2, 1 - at % 2);
        if pair[first].to.is_some() {
            self.forgotten += usize::from(pair[other].to.is_some());
            pair[other] = pair[first];
        }
        pair[first] = way;
    }

    /// How many ways there are to be for this number of nodes.
    fn wanted(&self, nodes: usize) -> usize {
        let [least, most] = WAYS_OF_NODE.map(|of_node| (of_node * nodes).next_power_of_two());
        let is_short = self.forgotten > self.len() / 8;
        let wanted = if is_short { 2 * self.len() } else { 0 };
        wanted.max(least).min(most).min(WAYS[1])
    }

    /// These ways in a table of this length.
    fn grown(&self, tree: bool, len: usize) -> Ways {
        let mut grown = Ways::new(tree, len);
        let ways = self.table.iter().flat_map(|Pair(pair)| pair);
        let known = ways.filter(|way| way.to.is_some());
        known.for_each(|way| grown.put(*way));
        grown
    }
}

/// What compiled code looks at in a meter.
pub(crate) mod offset {
    pub(crate) use super::TAIL_SHIFT;
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
    /// Its upper half: none where the caller does not matter.
    pub(crate) const CALLERS: i32 = PATHS + 4;
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
    pub(in crate::trace) fn new(
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
    pub(in crate::trace) fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    /// Its address for compiled code, where that may do what it does; else 0.
    pub(in crate::trace) fn in_line(&self) -> u64 {
        match !self.measures.time || self.clock.is_counter() {
            true => self.address(),
            false => 0,
        }
    }

    /// The node that stands for what is running.
    #[inline(always)]
    pub(in crate::trace) fn current(&self) -> &Node {
        // SAFETY: ME1.
        unsafe { self.current.as_ref() }
    }

    /// The words that are on the heap now are the current function's: the process began with it.
    pub(in crate::trace) fn count_initial_words(&mut self, reading: Reading) {
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

    /// A call of the function measured under `account`; gives the caller's node. In tail position, `returns_to` is the
    /// node that the frame on top of the stack gives back.
    #[inline(always)]
    pub(in crate::trace) fn enter(
        &mut self,
        account: &Arc<Account>,
        returns_to: Option<u32>,
        reading: &Reading,
    ) -> u32 {
        self.charge(reading);
        let from = self.current().index();
        if self.runs(account) {
            self.current().add_again(1);
        } else {
            let called = Called {
                account: account.id,
                is_tail: returns_to.is_some(),
            };
            let known = match returns_to {
                Some(below) if !self.is_row_from(below) => None,
                _ => self.ways.find(from, called),
            };
            self.current = match known {
                Some(to) => to,
                None => self.transition(from, account, returns_to),
            };
            self.current().count_call();
        }
        from
    }

    /// Whether the row of tail calls that the current path ends with, as the tree has it, was called from the node
    /// `below`. It was not where recursion was folded.
    #[inline(always)]
    fn is_row_from(&self, below: u32) -> bool {
        !self.measures.tree || self.current().row_below() == below
    }

    /// Back from a call, to the caller's node.
    #[inline(always)]
    pub(in crate::trace) fn leave(&mut self, caller: u32, reading: &Reading) {
        self.charge(reading);
        // A frame from before the session's tables were made anew names no node of these.
        let is_there = caller < self.arena.len();
        self.current = self.arena.address(if is_there { caller } else { ROOT });
        self.current().count_return_to_it();
    }

    /// Where a call leads that is made for the first time, or whose row of tail calls the tree has elsewhere.
    #[cold]
    fn transition(
        &mut self,
        from: u32,
        account: &Arc<Account>,
        returns_to: Option<u32>,
    ) -> NonNull<Node> {
        let called = Called {
            account: account.id,
            is_tail: returns_to.is_some(),
        };
        if !self.measures.tree {
            let to = self.flat_node(account);
            return self.remember(from, called, to);
        }
        let row = returns_to.and_then(|below| {
            let row = self.arena.row_to(from, account.id)?;
            Some((below, row))
        });
        let is_row_there = returns_to.is_none_or(|below| self.is_row_from(below));
        let mut tree = Tracks(&self.arena);
        let to = match row {
            Some((_, row)) if is_row_there => row.node,
            // From where the row was called in truth, it may lead to other nodes.
            Some((below, row)) => row.functions.into_iter().fold(below, |at, called| {
                self.transitions.call(&mut tree, at, called)
            }),
            None => self.transitions.call(&mut tree, from, called),
        };
        match is_row_there {
            true => self.remember(from, called, to),
            // What is returned to is no part of what compiled code looks up.
            false => self.arena.address(to),
        }
    }

    /// The node of a function in a flat meter.
    fn flat_node(&mut self, account: &Arc<Account>) -> u32 {
        let called = Called {
            account: account.id,
            is_tail: false,
        };
        let before = self.arena.len();
        let mut tree = Tracks(&self.arena);
        let to = self.transitions.call(&mut tree, ROOT, called);
        if to == before {
            account.nodes.lock().push((self.arena.clone(), to));
        }
        to
    }

    /// Has the next such call find its node without a search.
    fn remember(&mut self, from: u32, called: Called, to: u32) -> NonNull<Node> {
        let to = self.arena.address(to);
        let wanted = self.ways.wanted(self.arena.len() as usize);
        if wanted > self.ways.len() {
            self.ways = self.ways.grown(self.measures.tree, wanted);
        }
        self.ways.set(from, called, to);
        to
    }

    /// The process stops running: time up to now is the current function's.
    pub(in crate::trace) fn scheduled_out(&mut self) {
        if self.measures.time {
            self.charge_time();
        }
    }

    /// Is it this one?
    #[inline(always)]
    pub(in crate::trace) fn is_of(&self, session: &Shared, measures: Measures) -> bool {
        self.key == measures.key(session.id)
    }

    /// The calls of the current function that compiled code has counted since are charged for.
    pub(super) fn ran(&mut self, pending: &Pending) {
        self.current().add_again(pending.calls);
        if self.measures.words {
            self.current().add_words(pending.words);
            self.words = self.words.wrapping_add(pending.words);
        }
    }

    /// Is the function measured under `account` the current one?
    #[inline(always)]
    pub(in crate::trace) fn runs(&self, account: &Account) -> bool {
        self.current().account() == account.id
    }

    /// A call of the current function: its time is read when another one becomes current.
    #[inline(always)]
    pub(in crate::trace) fn called(&mut self, reading: &Reading) {
        self.charge_counts(reading);
        self.current().add_again(1);
    }

    /// A call on a dirty scheduler has come back: its run is the current function's time, and its waiting is kept
    /// apart. Gives the account of that function.
    pub(in crate::trace) fn charge_dirty(&mut self, times: &DirtyTicks) -> u32 {
        let node = self.current();
        if self.measures.time {
            node.add_ticks(times.ran);
            self.arena.add_dirty_wait(node.index(), times.waited);
        }
        node.account()
    }

    /// The process runs again: time since it stopped is nobody's.
    pub(in crate::trace) fn scheduled_in(&mut self) {
        if self.measures.time {
            self.ticks = self.clock.now();
        }
    }
}

#[cfg(test)]
mod tests {
    use beamline_formats::paths::{Paths, Rows};
    use parking_lot::Mutex;
    use proptest::prelude::*;

    use super::*;
    use crate::term::{Pid, am};
    use crate::trace::costs::nature::Nature;

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
        let row = |node: &Node| {
            let counted = node.counted();
            (node.parent(), node.account(), counted.calls, counted.words)
        };
        meter.arena.nodes().map(|(_, node)| row(node)).collect()
    }

    #[test]
    fn words_go_to_the_function_that_runs() {
        let (f, g) = (account(1), account(2));
        let mut meter = meter(false);
        let root = meter.enter(&f, None, &at(10));
        let back = meter.enter(&g, None, &at(15));
        meter.leave(back, &at(17));
        meter.leave(root, &at(20));
        assert_eq!(nodes(&meter), [(0, 1, 1, 8), (0, 2, 1, 2)]);
        assert_eq!((f.nodes.lock().len(), g.nodes.lock().len()), (1, 1));
    }

    #[test]
    fn ways_that_are_used_in_turns_are_known_in_the_end() {
        let arena = Arena::new(Pid(1), (am::erlang, am::apply, 2), Arc::default());
        let node = arena.address(ROOT);
        let mut ways = Ways::new(true, WAYS[0]);
        // All of these have one place in a table of eight.
        let all = [1, 9, 17, 25, 33].map(|account| Called {
            account,
            is_tail: false,
        });
        for called in all.iter().cycle().take(1000) {
            if ways.find(3, *called).is_none() {
                ways.set(3, *called, node);
                let wanted = ways.wanted(5);
                if wanted > ways.len() {
                    ways = ways.grown(true, wanted);
                }
            }
        }
        assert!(all.iter().all(|called| ways.find(3, *called) == Some(node)));
        assert_eq!(ways.find(4, all[0]), None);
        assert!(ways.len() <= 256, "{}", ways.len());
    }

    #[test]
    fn what_tracing_is_paid_for_is_counted() {
        let (f, g) = (account(1), account(2));
        let mut meter = meter(false);
        let root = meter.enter(&f, None, &at(0));
        for _ in 0..3 {
            let back = meter.enter(&g, None, &at(0));
            // It calls itself, with a frame and without.
            meter.enter(&g, None, &at(0));
            meter.called(&at(0));
            meter.leave(back, &at(0));
        }
        // In the place of `f`: nothing comes back to it.
        meter.enter(&g, Some(root), &at(0));
        meter.leave(root, &at(0));
        let paid = |node: &Node| {
            let counted = node.counted();
            (counted.calls, counted.again, counted.resumed)
        };
        let nodes: Vec<_> = meter.arena.nodes().map(|(_, node)| paid(node)).collect();
        assert_eq!(nodes, [(1, 0, 3), (10, 6, 0)]);
    }

    #[test]
    fn a_tree_has_a_node_for_each_path_and_folds_recursion() {
        let (f, g) = (account(1), account(2));
        let mut meter = meter(true);
        let root = meter.enter(&f, None, &at(0));
        let in_f = meter.enter(&g, None, &at(1));
        let in_g = meter.enter(&f, None, &at(3));
        // f and g again: back to the path of one period.
        let again = meter.enter(&g, None, &at(6));
        assert_eq!((root, in_f, in_g, again), (0, 1, 2, 3));
        for (caller, words) in [(again, 10), (in_g, 15), (in_f, 21), (root, 28)] {
            meter.leave(caller, &at(words));
        }
        let rows = [(0, 1, 1, 1 + 7), (1, 2, 2, 2 + 4 + 6), (2, 1, 1, 3 + 5)];
        assert_eq!(nodes(&meter), rows);
    }

    /// The functions of the current path, the oldest first.
    fn path(meter: &Meter) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = meter.current();
        while at.index() != ROOT {
            path.push(at.account());
            at = meter.arena.node(at.parent());
        }
        path.reverse();
        path
    }

    proptest! {
        /// A meter is on the paths that a recording of the same calls has.
        #[test]
        fn paths_are_those_of_recordings(
            steps in prop::collection::vec((0_u8..4, 1_u32..6), 0..200)
        ) {
            let accounts: Vec<_> = (0..6).map(account).collect();
            let mut meter = meter(true);
            let (mut paths, mut rows) = (Paths::default(), Rows::default());
            // What frames give back. A call of the function that runs has none.
            let mut frames: Vec<Option<u32>> = Vec::new();
            for (what, id) in steps {
                let of = &accounts[id as usize];
                let called = Called { account: id, is_tail: false };
                let runs = meter.runs(of);
                match (what, frames.last().copied()) {
                    (0 | 1, _) => {
                        rows.call(&mut paths, called);
                        let from = meter.enter(of, None, &at(0));
                        frames.push((!runs).then_some(from));
                    }
                    (2, Some(on_top)) => {
                        rows.tail_call(&mut paths, called);
                        let from = meter.enter(of, on_top, &at(0));
                        if !runs {
                            let frame = frames.last_mut().expect("that on top");
                            frame.get_or_insert(from);
                        }
                    }
                    _ => {
                        rows.leave(1);
                        if let Some(Some(caller)) = frames.pop() {
                            meter.leave(caller, &at(0));
                        }
                    }
                }
                let functions = paths.path(rows.current()).map(|called| called.account);
                let mut functions: Vec<u32> = functions.collect();
                functions.reverse();
                prop_assert_eq!(path(&meter), functions);
            }
        }
    }
}
