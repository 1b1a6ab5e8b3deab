//! What compiled code does itself where calls of a process are measured (`jit/metered.rs`).
//!
//! It does what one meter does: that which was all that the function called last wanted. And it counts the calls of a
//! function that runs already, whatever is measured of it: the first such call is Rust's, which notes here where calls
//! are counted. The calls that follow add one number, and keep the heap's top. They are charged to the meters once
//! something else is called or returned to ([`Meters::settle`]); a reader of a node adds those not yet charged
//! ([`InLine::read`]). It ends with the time slice, when what is traced changes ([`changes`]), and when words are
//! allocated in another way than by the heap's top ([`Heap::runs_on`]).
//!
//! [`Meters::settle`]: crate::trace::measure::meters::Meters::settle
//! [`Heap::runs_on`]: crate::heap::Heap::runs_on

use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

use super::node::{Counted, Node, Together};

/// Changes of breakpoints and of what processes trace.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// How many there have been. Read before what they change.
#[inline(always)]
pub(in crate::trace) fn changes() -> u64 {
    CHANGES.load(Ordering::Acquire)
}

/// Where that number is.
pub(crate) fn changes_address() -> u64 {
    (&raw const CHANGES) as u64
}

/// Something has changed.
pub(in crate::trace) fn changed() {
    CHANGES.fetch_add(1, Ordering::Release);
}

/// Meters whose nodes can count the same calls.
pub(in crate::trace) const METERS: usize = 2;

/// Addresses for compiled code. Only the process writes them, and any thread may read them.
#[derive(Default)]
pub(crate) struct InLine {
    together: Together,
    /// The meter that compiled code uses itself; 0 where it uses none.
    meter: AtomicU64,
    /// What [`changes`] was.
    changes: AtomicU64,
    /// The number that counts calls of the function that runs; 0 where meters alone do.
    count: AtomicU64,
    /// Those of its calls that no meter has been charged for.
    calls: AtomicU64,
    /// The heap's top at the last of them, and up to where meters have been charged.
    top: AtomicU64,
    charged: AtomicU64,
    /// The nodes that they are to be charged to; 0: there are none.
    nodes: [AtomicU64; METERS],
    /// The one of them that is charged for words.
    words: AtomicU64,
}

/// What compiled code looks at.
pub(crate) mod offset {
    use super::{InLine, offset_of};

    pub(crate) const METER: i32 = offset_of!(InLine, meter) as i32;
    pub(crate) const CHANGES: i32 = offset_of!(InLine, changes) as i32;
    pub(crate) const COUNT: i32 = offset_of!(InLine, count) as i32;
    pub(crate) const CALLS: i32 = offset_of!(InLine, calls) as i32;
    pub(crate) const TOP: i32 = offset_of!(InLine, top) as i32;
    /// Not zero where meters are to be charged.
    pub(crate) const CHARGED_LATER: i32 = offset_of!(InLine, nodes) as i32;
}

/// What meters are to be charged for.
pub(in crate::trace) struct Pending {
    pub(in crate::trace) calls: u64,
    pub(in crate::trace) words: u64,
    nodes: [u64; METERS],
    words_of: u64,
}

impl Pending {
    /// The numbers of a node, with what it is to be charged for.
    pub(in crate::trace) fn with(&self, node: &Node) -> Counted {
        let address = std::ptr::from_ref(node) as u64;
        let mut counted = node.counted();
        if self.nodes.contains(&address) {
            counted.calls += self.calls;
            counted.again += self.calls;
        }
        if self.words_of == address {
            counted.words = counted.words.wrapping_add_unsigned(self.words);
        }
        counted
    }
}

impl InLine {
    /// For calls that several meters count.
    pub(in crate::trace) fn together(&self) -> &Together {
        &self.together
    }

    /// The meter at this address is used, until it goes; none if that is 0.
    pub(in crate::trace) fn use_meter(&self, meter: u64) {
        self.meter.store(meter, Ordering::Relaxed);
    }

    /// Calls of the function that runs add one at `count` and are to be charged to `nodes`, and the words up to the
    /// heap's top, which is at `top` now, to `words`. `count` is 0 where `nodes` alone count. Not where meters are to be
    /// charged already.
    pub(in crate::trace) fn charge_to(
        &self,
        changes: u64,
        count: u64,
        nodes: &[&Node],
        words: Option<&Node>,
        top: u64,
    ) {
        let set = |at: &AtomicU64, value| at.store(value, Ordering::Relaxed);
        let address = |node: &Node| std::ptr::from_ref(node) as u64;
        set(&self.changes, changes);
        set(&self.count, count);
        self.together.begin();
        set(&self.calls, 0);
        set(&self.top, top);
        set(&self.charged, top);
        set(&self.words, words.map_or(0, address));
        for (at, node) in self.nodes.iter().zip(nodes) {
            set(at, address(node));
        }
        self.together.end();
    }

    /// What meters are to be charged for.
    pub(in crate::trace) fn pending(&self) -> Pending {
        let get = |at: &AtomicU64| at.load(Ordering::Relaxed);
        Pending {
            calls: get(&self.calls),
            words: ((get(&self.top) as i64).wrapping_sub(get(&self.charged) as i64) / 8) as u64,
            nodes: [get(&self.nodes[0]), get(&self.nodes[1])],
            words_of: get(&self.words),
        }
    }

    /// They have been charged.
    pub(in crate::trace) fn charged(&self) {
        for at in self.nodes.iter().chain([&self.words]) {
            at.store(0, Ordering::Relaxed);
        }
    }

    /// What `read` gives, of numbers as of one moment.
    pub(in crate::trace) fn read<T>(&self, mut read: impl FnMut(&Pending) -> T) -> T {
        self.together.read(|| read(&self.pending()))
    }

    /// Its address.
    pub(in crate::trace) fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }
}
