//! Meters, which measure a process: a meter counts calls, and charges time and words to accounts.
//!
//! A meter belongs to one process, one session and one measure. It has a current node, which stands for the function
//! (or call path) that is running. A call charges what has passed to the current node and makes the callee's node the
//! current one. A return charges the callee and makes the caller's node current again.
//!
//! In a flat meter a node stands for a function, whoever calls it, and an exception leaves the account with the
//! function that raised it, as in OTP. In a tree meter a node stands for a call path. A function that is on the path
//! already goes back to its node there, so that recursion makes no path without end. An exception gives the account
//! back to the function that catches it.
//!
//! A call of the function that is current is no change: it is counted, but the clock is not read, and there is nothing to
//! give back. So recursion costs little.

use std::sync::Arc;

use beamline_formats::paths::Known;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::native::Nature;
use super::node::{Arena, ROOT, Together};
use super::session::Shared;
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
    /// Names it in frames; unique in its process.
    pub(super) uid: u32,
    pub(super) arena: Arc<Arena>,
    current: u32,
    clock: Ticks,
    ticks: u64,
    words: u64,
    reductions: u64,
    /// Where a call of an account from a node leads.
    transitions: Known<u32>,
}

impl Meter {
    pub(super) fn new(
        session: Arc<Shared>,
        measures: Measures,
        uid: u32,
        arena: Arc<Arena>,
        reading: Reading,
    ) -> Meter {
        let clock = Ticks::clock();
        Meter {
            session,
            measures,
            uid,
            arena,
            current: ROOT,
            clock,
            ticks: if measures.time { clock.now() } else { 0 },
            words: reading.words,
            reductions: reading.reductions,
            transitions: Known::default(),
        }
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
        let node = self.arena.node(self.current);
        node.add_ticks(now.saturating_sub(self.ticks));
        self.ticks = now;
    }

    #[inline(always)]
    fn charge_counts(&mut self, reading: &Reading) {
        let node = self.arena.node(self.current);
        if self.measures.words {
            node.add_words(reading.words.wrapping_sub(self.words));
            self.words = reading.words;
        }
        if self.measures.reductions {
            node.add_reductions(reading.reductions.saturating_sub(self.reductions));
            self.reductions = reading.reductions;
        }
    }

    /// A call of the function measured under `account`; gives the caller's node.
    #[inline(always)]
    pub(super) fn enter(&mut self, account: &Arc<Account>, reading: &Reading) -> u32 {
        self.charge(reading);
        let from = self.current;
        let node = self.arena.node(from);
        let to = if node.account() == account.id {
            from
        } else if node.last_account.load(std::sync::atomic::Ordering::Relaxed) == account.id {
            node.last_node.load(std::sync::atomic::Ordering::Relaxed)
        } else {
            self.transition(from, account)
        };
        self.arena.node(to).called();
        self.current = to;
        from
    }

    /// Back from a call, to the caller's node.
    #[inline(always)]
    pub(super) fn leave(&mut self, caller: u32, reading: &Reading) {
        self.charge(reading);
        // A frame from before the session's tables were made anew names no node of these.
        self.current = if caller < self.arena.len() {
            caller
        } else {
            ROOT
        };
    }

    #[cold]
    fn transition(&mut self, from: u32, account: &Arc<Account>) -> u32 {
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
        let node = self.arena.node(from);
        node.last_account
            .store(account.id, std::sync::atomic::Ordering::Relaxed);
        node.last_node
            .store(to, std::sync::atomic::Ordering::Relaxed);
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
        self.session.id == session.id && self.measures == measures
    }

    /// Is the function measured under `account` the current one?
    #[inline(always)]
    pub(super) fn runs(&self, account: &Account) -> bool {
        self.arena.node(self.current).account() == account.id
    }

    /// A call of the current function: its time is read when another one becomes current.
    #[inline(always)]
    pub(super) fn called(&mut self, reading: &Reading) {
        self.charge_counts(reading);
        self.arena.node(self.current).called();
    }

    /// A call on a dirty scheduler has come back: its run is the current function's time, and its waiting is told apart.
    /// Gives the account of that function.
    pub(super) fn was_dirty(&mut self, times: &DirtyTicks) -> u32 {
        let node = self.arena.node(self.current);
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

/// The meters of a process.
#[derive(Default)]
pub(crate) struct Meters {
    pub(super) meters: SmallVec<[Meter; 1]>,
    next_uid: u32,
    /// For calls that several meters count.
    pub(super) together: Arc<Together>,
}

impl Meters {
    /// A name for one more meter.
    pub(super) fn uid(&mut self) -> u32 {
        // 28 bits fit a frame's word beside a node.
        self.next_uid = (self.next_uid + 1) & 0xfff_ffff;
        self.next_uid
    }
    pub(super) fn by_uid(&mut self, uid: u32) -> Option<&mut Meter> {
        self.meters.iter_mut().find(|meter| meter.uid == uid)
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
        Meter::new(Shared::detached(), measures, 1, arena, at(0))
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
