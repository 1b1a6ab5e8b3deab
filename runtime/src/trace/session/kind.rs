//! Kinds of breakpoint.

use crate::term::{Atom, am};

pub(in crate::trace) const COUNT: u32 = 1;
pub(in crate::trace) const TIME: u32 = 2;
pub(in crate::trace) const MEMORY: u32 = 4;
/// As the session's own profile says.
pub(in crate::trace) const PROFILE: u32 = 8;
/// Calls reported to a tracer.
pub(in crate::trace) const LOCAL: u32 = 16;
/// As `LOCAL`, of calls from other modules: in breakpoints of exports only, alone.
pub(in crate::trace) const GLOBAL: u32 = 32;
/// As `LOCAL`, for all processes.
pub(in crate::trace) const META: u32 = 64;
/// Calls recorded.
pub(in crate::trace) const RECORD: u32 = 128;
/// The workload begins with the call.
pub(in crate::trace) const BEGIN: u32 = 256;
pub(in crate::trace) const ALL: u32 = 511;

/// Kinds of breakpoint, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(pub(in crate::trace) u32);

impl Kinds {
    /// None.
    pub const NONE: Kinds = Kinds(0);
    /// All of them.
    pub const ALL: Kinds = Kinds(ALL);
    /// `call_count`.
    pub const COUNT: Kinds = Kinds(COUNT);
    /// `call_time`.
    pub const TIME: Kinds = Kinds(TIME);
    /// `call_memory`.
    pub const MEMORY: Kinds = Kinds(MEMORY);
    /// Calls are reported (`local`).
    pub const LOCAL: Kinds = Kinds(LOCAL);
    /// Calls from other modules are reported (`global`).
    pub(crate) const GLOBAL: Kinds = Kinds(GLOBAL);
    /// Calls by any process are reported (`meta`).
    pub(crate) const META: Kinds = Kinds(META);

    /// Those of both sets.
    #[must_use]
    pub const fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
    /// No kind is in it.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
    /// All of `other` is in it.
    #[must_use]
    pub const fn has(self, other: Kinds) -> bool {
        self.0 & other.0 == other.0
    }
    /// Some of `other` is in it.
    #[must_use]
    pub const fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
    /// It counts, and reports nothing.
    #[must_use]
    pub(crate) const fn only_counts(self) -> bool {
        self.0 != 0 && self.0 & (LOCAL | META | GLOBAL) == 0
    }
    /// `traced` of a function.
    pub(crate) fn traced_at(self) -> Atom {
        if self.meets(Kinds::GLOBAL) {
            am::global
        } else if self.meets(Kinds::LOCAL) {
            am::local
        } else {
            am::false_
        }
    }
}
