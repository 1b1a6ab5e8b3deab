//! The accounts of functions, and the measures of a meter.

use std::sync::Arc;

use parking_lot::Mutex;

use super::nature::Nature;
use super::node::Arena;

/// The account of a function in a session. It gets a new one every time its counting starts anew.
pub(in crate::trace) struct Account {
    /// Never used twice.
    pub(in crate::trace) id: u32,
    /// The flat nodes that count it, one for each process that called it.
    pub(in crate::trace) nodes: Mutex<Vec<(Arc<Arena>, u32)>>,
    /// What the function is.
    pub(in crate::trace) nature: Nature,
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
    pub(in crate::trace) fn key(self, session: u64) -> u64 {
        let bits = [self.tree, self.time, self.words, self.reductions];
        let bits = bits.iter().fold(0, |all, &bit| all << 1 | u64::from(bit));
        (session + 1) << 4 | bits
    }
}
