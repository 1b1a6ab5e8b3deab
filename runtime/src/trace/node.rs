//! The costs of one process's calls, as a tree of nodes. Only the process writes it, and any thread may read it.
//!
//! A node counts the calls of one function, or of one call path. Its numbers are atomics with a single writer. So they
//! cost what plain numbers cost, and a reader never stops the process. The reader sees each number as it was at some
//! moment, and all of them as they are once the process has told it something.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::known::Known;
use crate::loader::module::Mfa;
use crate::term::{Atom, Pid};

/// The node that every path starts from: no traced function.
pub(super) const ROOT: u32 = 0;
/// The account of the root; the least id that a function gets is one more.
pub(super) const NO_ACCOUNT: u32 = 0;

/// A call path, or a function, of a process.
#[derive(Default)]
pub(super) struct Node {
    account: AtomicU32,
    parent: AtomicU32,
    /// The last call from here and the node it led to: next time it is found at once.
    pub(super) last_account: AtomicU32,
    pub(super) last_node: AtomicU32,
    calls: AtomicU64,
    ticks: AtomicU64,
    words: AtomicU64,
    reductions: AtomicU64,
    dirty_wait_ticks: AtomicU64,
}

/// The numbers of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Calls.
    pub calls: u64,
    /// Own time, in ticks of [`crate::sys::chance::ticks`].
    pub ticks: u64,
    /// Own words allocated; below zero where messages were given back.
    pub words: i64,
    /// Own reductions.
    pub reductions: u64,
    /// Ticks in which it waited for a dirty scheduler.
    pub dirty_wait_ticks: u64,
}

/// Adds to a number that only this thread writes.
#[inline(always)]
fn add(number: &AtomicU64, n: u64) {
    number.store(
        number.load(Ordering::Relaxed).wrapping_add(n),
        Ordering::Relaxed,
    );
}

impl Node {
    #[inline(always)]
    pub(super) fn account(&self) -> u32 {
        self.account.load(Ordering::Relaxed)
    }
    pub(super) fn parent(&self) -> u32 {
        self.parent.load(Ordering::Relaxed)
    }
    #[inline(always)]
    pub(super) fn called(&self) {
        add(&self.calls, 1);
    }
    #[inline(always)]
    pub(super) fn add_ticks(&self, ticks: u64) {
        add(&self.ticks, ticks);
    }
    #[inline(always)]
    pub(super) fn add_words(&self, words: u64) {
        add(&self.words, words);
    }
    #[inline(always)]
    pub(super) fn add_reductions(&self, reductions: u64) {
        add(&self.reductions, reductions);
    }
    pub(super) fn add_dirty_wait(&self, ticks: u64) {
        add(&self.dirty_wait_ticks, ticks);
    }
    pub(super) fn counted(&self) -> Counted {
        Counted {
            calls: self.calls.load(Ordering::Relaxed),
            ticks: self.ticks.load(Ordering::Relaxed),
            words: self.words.load(Ordering::Relaxed) as i64,
            reductions: self.reductions.load(Ordering::Relaxed),
            dirty_wait_ticks: self.dirty_wait_ticks.load(Ordering::Relaxed),
        }
    }
}

/// Lets numbers in several arenas of one process be read as of one moment. Odd while they change.
#[derive(Default)]
pub(super) struct Together(AtomicU32);

impl Together {
    /// Numbers are about to change. Only the process itself says so.
    #[inline(always)]
    pub(super) fn begin(&self) {
        let version = self.0.load(Ordering::Relaxed);
        self.0.store(version.wrapping_add(1), Ordering::Relaxed);
        // No number is stored before it.
        fence(Ordering::Release);
    }
    /// All that was to change since [`Together::begin`] has changed.
    #[inline(always)]
    pub(super) fn end(&self) {
        let version = self.0.load(Ordering::Relaxed);
        self.0.store(version.wrapping_add(1), Ordering::Release);
    }
    /// What `read` gives when nothing changes meanwhile.
    pub(super) fn read<T>(&self, mut read: impl FnMut() -> T) -> T {
        loop {
            let before = self.0.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                let value = read();
                fence(Ordering::Acquire);
                if self.0.load(Ordering::Relaxed) == before {
                    return value;
                }
            }
            // The process may wait for this very processor.
            std::thread::yield_now();
        }
    }
}

/// Nodes in the first chunk; each further chunk has four times as many.
const FIRST: u32 = 8;
const CHUNKS: usize = 16;
const _: () = assert!(
    Arena::place(u32::MAX).0 < CHUNKS,
    "memory ends before the chunks do"
);

/// The nodes of one process in one session. They never move; they live as long as the session or the
/// process looks at them.
pub(super) struct Arena {
    pub(super) pid: Pid,
    /// What the process was started to call.
    pub(super) initial_call: (Atom, Atom, u8),
    /// As [`Atom::index`] plus one; 0 for none. The last name it had.
    name: AtomicU32,
    /// What it is known by besides.
    known: Mutex<(Option<String>, Option<Mfa>)>,
    /// Reductions of the process, as of its last time slice.
    reductions: AtomicU64,
    len: AtomicU32,
    chunks: [OnceLock<Box<[Node]>>; CHUNKS],
    /// Of all the process's arenas.
    pub(super) together: Arc<Together>,
}

impl Arena {
    /// With the root as its only node.
    pub(super) fn new(pid: Pid, initial_call: (Atom, Atom, u8), together: Arc<Together>) -> Arena {
        let arena = Arena {
            pid,
            initial_call,
            name: AtomicU32::new(0),
            known: Mutex::default(),
            reductions: AtomicU64::new(0),
            len: AtomicU32::new(0),
            chunks: Default::default(),
            together,
        };
        arena.push(ROOT, NO_ACCOUNT);
        arena
    }

    pub(super) fn len(&self) -> u32 {
        self.len.load(Ordering::Acquire)
    }

    #[inline(always)]
    const fn place(index: u32) -> (usize, usize) {
        let chunk = (3 * (index / FIRST) as u64 + 1).ilog2() / 2;
        let start = FIRST * (((1u64 << (2 * chunk)) - 1) / 3) as u32;
        (chunk as usize, (index - start) as usize)
    }

    /// The node with this index.
    ///
    /// # Panics
    /// When there is none.
    #[inline(always)]
    pub(super) fn node(&self, index: u32) -> &Node {
        let (chunk, at) = Self::place(index);
        &self.chunks[chunk].get().expect("a node that was pushed")[at]
    }

    /// Adds a node. Only the process itself does.
    pub(super) fn push(&self, parent: u32, account: u32) -> u32 {
        let index = self.len.load(Ordering::Relaxed);
        let (chunk, at) = Self::place(index);
        let nodes = self.chunks[chunk].get_or_init(|| {
            let count = (FIRST as usize) << (2 * chunk);
            (0..count).map(|_| Node::default()).collect()
        });
        nodes[at].account.store(account, Ordering::Relaxed);
        nodes[at].parent.store(parent, Ordering::Relaxed);
        self.len.store(index + 1, Ordering::Release);
        index
    }

    /// Every node but the root, parents first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (u32, &Node)> {
        (1..self.len()).map(|index| (index, self.node(index)))
    }

    /// Notes what is known of the process at the end of a time slice.
    pub(super) fn note(&self, name: Option<Atom>, reductions: u64) {
        if let Some(name) = name {
            self.name.store(name.index() + 1, Ordering::Relaxed);
        }
        self.reductions.store(reductions, Ordering::Relaxed);
    }

    /// Notes what the process is known by from now on.
    pub(super) fn known(&self, known: Known) {
        let mut all = self.known.lock();
        match known {
            Known::Label(text) => all.0 = Some(text),
            Known::Call(called) => all.1 = Some(called),
        }
    }

    /// Its label.
    pub(super) fn label(&self) -> Option<String> {
        self.known.lock().0.clone()
    }

    /// The function that it runs: what `proc_lib` began it with, or what it was started to call.
    pub(super) fn runs(&self) -> Mfa {
        let (module, function, arity) = self.initial_call;
        let started = Mfa {
            module,
            function,
            arity,
        };
        self.known.lock().1.unwrap_or(started)
    }

    /// The name the process had last.
    pub(super) fn name(&self) -> Option<Atom> {
        self.name
            .load(Ordering::Relaxed)
            .checked_sub(1)
            .map(Atom::from_index)
    }
    pub(super) fn reductions(&self) -> u64 {
        self.reductions.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::term::am;

    #[test]
    fn nodes_are_found_where_they_were_pushed() {
        let arena = Arena::new(Pid(1), (am::erlang, am::apply, 2), Arc::default());
        for i in 1..10_000 {
            assert_eq!(arena.push(i - 1, 7 * i), i);
        }
        assert_eq!(arena.len(), 10_000);
        for (i, node) in arena.nodes() {
            assert_eq!((node.parent(), node.account()), (i - 1, 7 * i));
        }
        assert_eq!(Arena::place(0), (0, 0));
        assert_eq!(Arena::place(7), (0, 7));
        assert_eq!(Arena::place(8), (1, 0));
        assert_eq!(Arena::place(39), (1, 31));
        assert_eq!(Arena::place(40), (2, 0));
    }

    #[test]
    fn numbers_that_change_together_are_read_together() {
        let pair = || Arena::new(Pid(1), (am::erlang, am::apply, 2), Arc::default());
        let (a, b) = (pair(), pair());
        let together = Together::default();
        let calls = |arena: &Arena| arena.node(ROOT).counted().calls;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..100_000 {
                    together.begin();
                    a.node(ROOT).called();
                    b.node(ROOT).called();
                    together.end();
                }
            });
            while calls(&b) < 100_000 {
                let (a, b) = together.read(|| (calls(&a), calls(&b)));
                assert_eq!(a, b);
            }
        });
    }
}
