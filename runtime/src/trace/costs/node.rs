//! The costs of one process's calls, as a tree of nodes. Only the process writes it, and any thread may read it.
//!
//! A node counts the calls of one function, or of one call path. Its numbers are atomics with a single writer. So they
//! cost what plain numbers cost, and a reader never stops the process. The reader sees each number as it was at some
//! moment, and all of them as they are once the process has told it something.
//!
//! Invariants:
//! - AR1: where [`Arena::len`] is more than an index, the base of the chunk that has the index is set, and leads to a
//!   node: chunks never move, and live as long as the arena.
//! - AR2: the chunk with number `k` was made as a boxed slice of [`Arena::size`]`(k)` nodes.
#![expect(
    unsafe_code,
    reason = "nodes are reached as compiled code reaches them"
)]

use std::mem::offset_of;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

use beamline_formats::paths::{Frame, Tree};
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::in_line::InLine;
use super::known::Known;
use crate::hash::HashMap;
use crate::loader::module::Mfa;
use crate::term::{Atom, Pid};

/// The node that every path starts from: no traced function.
pub(in crate::trace) const ROOT: u32 = 0;
/// The account of the root; the least id that a function gets is one more.
pub(in crate::trace) const NO_ACCOUNT: u32 = 0;

/// The mark of a path that was cut at one frame; at twice as many it is one less. No function gets such an id.
const CUT: u32 = (1 << 31) - 1;

/// A function on a call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::trace) struct Called {
    /// The function's account.
    pub(in crate::trace) account: u32,
    /// It was called in tail position, so the frame of the stack is that of its caller.
    pub(in crate::trace) is_tail: bool,
}

/// At how many frames a path was cut, if the account stands for that and for no function.
pub(in crate::trace) fn cut_frames(account: u32) -> Option<u32> {
    let power = CUT.wrapping_sub(account);
    (power < u32::BITS).then(|| 1 << power)
}

impl Frame for Called {
    fn cut_at(frames: u32) -> Called {
        Called {
            account: CUT - frames.ilog2(),
            is_tail: false,
        }
    }

    fn is_cut(self) -> bool {
        cut_frames(self.account).is_some()
    }

    fn is_same_function(self, other: Called) -> bool {
        self.account == other.account
    }
}

/// A call path, or a function, of a process.
#[derive(Default)]
#[repr(align(64))]
pub(in crate::trace) struct Node {
    account: AtomicU32,
    parent: AtomicU32,
    /// Its place in its arena.
    index: AtomicU32,
    /// The node that the row of tail calls which ends here was called from, as the tree has it. Where recursion was folded,
    /// that is not the node that is returned to.
    row_below: AtomicU32,
    calls: AtomicU64,
    ticks: AtomicU64,
    words: AtomicU64,
    reductions: AtomicU64,
    /// Those of its calls that were made while it was the current node.
    again: AtomicU64,
    /// How often a call by it has come back.
    resumed: AtomicU64,
}
const _: () = assert!(size_of::<Node>() == 64, "a node is a cache line");

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
    /// Those of its calls that it made itself, one after the other: they charge nothing to anybody.
    pub again: u64,
    /// How often a call by it has come back.
    pub resumed: u64,
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
    pub(in crate::trace) fn account(&self) -> u32 {
        self.account.load(Ordering::Relaxed)
    }
    pub(in crate::trace) fn parent(&self) -> u32 {
        self.parent.load(Ordering::Relaxed)
    }
    pub(in crate::trace) fn row_below(&self) -> u32 {
        self.row_below.load(Ordering::Relaxed)
    }
    /// It as a function on a path.
    pub(in crate::trace) fn called(&self) -> Called {
        Called {
            account: self.account(),
            is_tail: self.row_below() != self.parent(),
        }
    }
    #[inline(always)]
    pub(in crate::trace) fn index(&self) -> u32 {
        self.index.load(Ordering::Relaxed)
    }
    #[inline(always)]
    pub(in crate::trace) fn count_call(&self) {
        self.add_calls(1);
    }
    #[inline(always)]
    fn add_calls(&self, calls: u64) {
        add(&self.calls, calls);
    }
    /// Calls that are made while it is the current node.
    #[inline(always)]
    pub(in crate::trace) fn add_again(&self, calls: u64) {
        self.add_calls(calls);
        add(&self.again, calls);
    }
    #[inline(always)]
    pub(in crate::trace) fn count_return_to_it(&self) {
        add(&self.resumed, 1);
    }
    #[inline(always)]
    pub(in crate::trace) fn add_ticks(&self, ticks: u64) {
        add(&self.ticks, ticks);
    }
    #[inline(always)]
    pub(in crate::trace) fn add_words(&self, words: u64) {
        add(&self.words, words);
    }
    #[inline(always)]
    pub(in crate::trace) fn add_reductions(&self, reductions: u64) {
        add(&self.reductions, reductions);
    }
    /// Its numbers, but for what it is still to be charged for, and its waiting.
    pub(in crate::trace) fn counted(&self) -> Counted {
        Counted {
            calls: self.calls.load(Ordering::Relaxed),
            ticks: self.ticks.load(Ordering::Relaxed),
            words: self.words.load(Ordering::Relaxed) as i64,
            reductions: self.reductions.load(Ordering::Relaxed),
            dirty_wait_ticks: 0,
            again: self.again.load(Ordering::Relaxed),
            resumed: self.resumed.load(Ordering::Relaxed),
        }
    }
}

/// Lets numbers in several arenas of one process be read as of one moment. Odd while they change.
#[derive(Default)]
pub(in crate::trace) struct Together(AtomicU32);

impl Together {
    /// Numbers are about to change. Only the process itself says so.
    #[inline(always)]
    pub(in crate::trace) fn begin(&self) {
        let version = self.0.load(Ordering::Relaxed);
        self.0.store(version.wrapping_add(1), Ordering::Relaxed);
        // No number is stored before it.
        fence(Ordering::Release);
    }
    /// All that was to change since [`Together::begin`] has changed.
    #[inline(always)]
    pub(in crate::trace) fn end(&self) {
        let version = self.0.load(Ordering::Relaxed);
        self.0.store(version.wrapping_add(1), Ordering::Release);
    }
    /// What `read` gives when nothing changes meanwhile.
    pub(in crate::trace) fn read<T>(&self, mut read: impl FnMut() -> T) -> T {
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

/// What compiled code looks at in arenas and nodes.
pub(crate) mod offset {
    use super::{Arena, Node, offset_of};

    pub(crate) const ACCOUNT: i32 = offset_of!(Node, account) as i32;
    pub(crate) const INDEX: i32 = offset_of!(Node, index) as i32;
    pub(crate) const ROW_BELOW: i32 = offset_of!(Node, row_below) as i32;
    pub(crate) const CALLS: i32 = offset_of!(Node, calls) as i32;
    pub(crate) const TICKS: i32 = offset_of!(Node, ticks) as i32;
    pub(crate) const WORDS: i32 = offset_of!(Node, words) as i32;
    pub(crate) const REDUCTIONS: i32 = offset_of!(Node, reductions) as i32;
    pub(crate) const AGAIN: i32 = offset_of!(Node, again) as i32;
    pub(crate) const RESUMED: i32 = offset_of!(Node, resumed) as i32;
    /// A node's size, as a shift.
    pub(crate) const NODE_SHIFT: i8 = size_of::<Node>().trailing_zeros() as i8;
    const _: () = assert!(size_of::<Node>().is_power_of_two());
    pub(crate) const LEN: i32 = offset_of!(Arena, len) as i32;
    /// The bases, less those of numbers below that of the first chunk: see [`super::Arena::place`].
    pub(crate) const BASES: i32 =
        offset_of!(Arena, bases) as i32 - 8 * super::FIRST.trailing_zeros() as i32 + 8;
    /// An index with these bits set has the number of its chunk's size as that of its highest bit.
    pub(crate) const FIRST_BITS: i32 = super::FIRST as i32 - 1;
}

/// Nodes in the first chunk. The second has as many, and each further one twice as many as the one before.
const FIRST: u32 = 8;
const CHUNKS: usize = 30;
const _: () = assert!(
    Arena::place(u32::MAX) < CHUNKS,
    "memory ends before the chunks do"
);

/// A row of tail calls as far as a function.
pub(in crate::trace) struct RowTo {
    /// The oldest call first.
    pub(in crate::trace) functions: SmallVec<[Called; 8]>,
    /// Where it leads, called from where the tree has it.
    pub(in crate::trace) node: u32,
}

/// The nodes of one process in one session. They never move; they live as long as the session or the
/// process looks at them.
pub(in crate::trace) struct Arena {
    pub(in crate::trace) pid: Pid,
    /// What the process was started to call.
    pub(in crate::trace) initial_call: (Atom, Atom, u8),
    /// As [`Atom::index`] plus one; 0 for none. The last name it had.
    name: AtomicU32,
    /// What it is known by besides.
    known: Mutex<(Option<String>, Option<Mfa>)>,
    /// Reductions of the process, as of its last time slice.
    reductions: AtomicU64,
    /// Of nodes by index, the ticks in which they waited for a dirty scheduler.
    dirty_waits: Mutex<HashMap<u32, u64>>,
    len: AtomicU32,
    /// Of each chunk, where the node with index 0 would be if it were in it; null where there is no chunk yet.
    bases: [AtomicPtr<Node>; CHUNKS],
    /// Of all the process's arenas.
    pub(in crate::trace) in_line: Arc<InLine>,
}

impl Arena {
    /// With the root as its only node.
    pub(in crate::trace) fn new(
        pid: Pid,
        initial_call: (Atom, Atom, u8),
        in_line: Arc<InLine>,
    ) -> Arena {
        let arena = Arena {
            pid,
            initial_call,
            name: AtomicU32::new(0),
            known: Mutex::default(),
            reductions: AtomicU64::new(0),
            dirty_waits: Mutex::default(),
            len: AtomicU32::new(0),
            bases: Default::default(),
            in_line,
        };
        arena.push(
            ROOT,
            Called {
                account: NO_ACCOUNT,
                is_tail: false,
            },
        );
        arena
    }

    pub(in crate::trace) fn len(&self) -> u32 {
        self.len.load(Ordering::Acquire)
    }

    /// The number of the chunk that has this index.
    #[inline(always)]
    const fn place(index: u32) -> usize {
        ((index | (FIRST - 1)).ilog2() - (FIRST.ilog2() - 1)) as usize
    }

    /// The first index in a chunk, and how many there are.
    const fn size(chunk: usize) -> (usize, usize) {
        match chunk {
            0 => (0, FIRST as usize),
            later => {
                let size = (FIRST as usize) << (later - 1);
                (size, size)
            }
        }
    }

    /// The node with this index.
    ///
    /// # Panics
    /// When there is none.
    #[inline(always)]
    pub(in crate::trace) fn node(&self, index: u32) -> &Node {
        assert!(index < self.len(), "a node that was pushed");
        let base = self.bases[Self::place(index)].load(Ordering::Relaxed);
        // SAFETY: AR1.
        unsafe { &*base.wrapping_add(index as usize) }
    }

    /// The numbers of the node with this index.
    ///
    /// # Panics
    /// As [`Arena::node`].
    pub(in crate::trace) fn counted(&self, index: u32) -> Counted {
        let counted = self.in_line.read(|pending| pending.with(self.node(index)));
        let dirty_wait = self.dirty_waits.lock().get(&index).copied();
        Counted {
            dirty_wait_ticks: dirty_wait.unwrap_or(0),
            ..counted
        }
    }

    /// The node with this index has waited for a dirty scheduler.
    pub(in crate::trace) fn add_dirty_wait(&self, index: u32, ticks: u64) {
        *self.dirty_waits.lock().entry(index).or_default() += ticks;
    }

    /// It as compiled code knows it.
    ///
    /// # Panics
    /// As [`Arena::node`].
    #[inline(always)]
    pub(in crate::trace) fn address(&self, index: u32) -> NonNull<Node> {
        NonNull::from(self.node(index))
    }

    /// Adds a node. Only the process itself does.
    pub(in crate::trace) fn push(&self, parent: u32, called: Called) -> u32 {
        let index = self.len.load(Ordering::Relaxed);
        let chunk = Self::place(index);
        let (first, count) = Self::size(chunk);
        if index as usize == first {
            let nodes: Box<[Node]> = (0..count).map(|_| Node::default()).collect();
            let nodes = Box::into_raw(nodes).cast::<Node>();
            self.bases[chunk].store(nodes.wrapping_sub(first), Ordering::Relaxed);
        }
        let base = self.bases[chunk].load(Ordering::Relaxed);
        // SAFETY: AR1: the chunk is there, and only this thread adds to it.
        let node = unsafe { &*base.wrapping_add(index as usize) };
        let row_below = match called.is_tail {
            true => self.node(parent).row_below(),
            false => parent,
        };
        node.account.store(called.account, Ordering::Relaxed);
        node.parent.store(parent, Ordering::Relaxed);
        node.row_below.store(row_below, Ordering::Relaxed);
        node.index.store(index, Ordering::Relaxed);
        self.len.store(index + 1, Ordering::Release);
        index
    }

    /// Where a tail call from this node is of a function of its row, the row until there.
    pub(in crate::trace) fn row_to(&self, from: u32, account: u32) -> Option<RowTo> {
        let mut at = self.node(from);
        while at.account() != account {
            if !at.called().is_tail {
                return None;
            }
            at = self.node(at.parent());
        }
        let node = at.index();
        let mut functions: SmallVec<[Called; 8]> = SmallVec::from_slice(&[at.called()]);
        while at.called().is_tail {
            at = self.node(at.parent());
            functions.push(at.called());
        }
        functions.reverse();
        Some(RowTo { functions, node })
    }

    /// Every node but the root, parents first.
    pub(in crate::trace) fn nodes(&self) -> impl Iterator<Item = (u32, &Node)> {
        (1..self.len()).map(|index| (index, self.node(index)))
    }

    /// Notes what is known of the process at the end of a time slice.
    pub(in crate::trace) fn note(&self, name: Option<Atom>, reductions: u64) {
        if let Some(name) = name {
            self.name.store(name.index() + 1, Ordering::Relaxed);
        }
        self.reductions.store(reductions, Ordering::Relaxed);
    }

    /// Notes what the process is known by from now on.
    pub(in crate::trace) fn known(&self, known: Known) {
        let mut all = self.known.lock();
        match known {
            Known::Label(text) => all.0 = Some(text),
            Known::Call(called) => all.1 = Some(called),
        }
    }

    /// Its label.
    pub(in crate::trace) fn label(&self) -> Option<String> {
        self.known.lock().0.clone()
    }

    /// The function that it runs: what `proc_lib` began it with, or what it was started to call.
    pub(in crate::trace) fn function(&self) -> Mfa {
        let (module, function, arity) = self.initial_call;
        let started = Mfa {
            module,
            function,
            arity,
        };
        self.known.lock().1.unwrap_or(started)
    }

    /// The name the process had last.
    pub(in crate::trace) fn name(&self) -> Option<Atom> {
        self.name
            .load(Ordering::Relaxed)
            .checked_sub(1)
            .map(Atom::from_index)
    }
    pub(in crate::trace) fn reductions(&self) -> u64 {
        self.reductions.load(Ordering::Relaxed)
    }
}

/// The arena as a tree of paths, of which the root is the empty one.
pub(in crate::trace) struct Tracks<'a>(pub(in crate::trace) &'a Arena);

impl Tree<Called> for Tracks<'_> {
    fn end(&self, path: u32) -> Option<(Called, u32)> {
        let node = (path != ROOT).then(|| self.0.node(path))?;
        Some((node.called(), node.parent()))
    }

    fn add(&mut self, parent: u32, called: Called) -> u32 {
        self.0.push(parent, called)
    }

    fn count(&self) -> u32 {
        self.0.len()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for (chunk, base) in self.bases.iter_mut().enumerate() {
            let (first, count) = Arena::size(chunk);
            let base = *base.get_mut();
            if !base.is_null() {
                let nodes = ptr::slice_from_raw_parts_mut(base.wrapping_add(first), count);
                // SAFETY: AR2, and nobody has the arena any more.
                drop(unsafe { Box::from_raw(nodes) });
            }
        }
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
            let (account, is_tail) = (7 * i, i % 3 == 0);
            assert_eq!(arena.push(i - 1, Called { account, is_tail }), i);
        }
        assert_eq!(arena.len(), 10_000);
        for (i, node) in arena.nodes() {
            let is = (node.parent(), node.account(), node.index());
            assert_eq!(is, (i - 1, 7 * i, i));
            let row_below = if i % 3 == 0 { i - 2 } else { i - 1 };
            assert_eq!(node.row_below(), row_below);
        }
        let mut next = 0;
        for chunk in 0..CHUNKS {
            let (first, count) = Arena::size(chunk);
            assert_eq!(first, next);
            next = first + count;
            let last = u32::try_from(next - 1).expect("an index");
            assert_eq!(Arena::place(first as u32), chunk);
            assert_eq!(Arena::place(last), chunk);
        }
        assert_eq!(next, 1 << 32);
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
                    a.node(ROOT).count_call();
                    b.node(ROOT).count_call();
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
