//! The mode of a run: whether its order is recorded, followed or explored. The command decides it before the first
//! process is made. Only this folder asks for it; the rest of the machine asks the [`director`](super::director).
//!
//! Modes go together: an explored run is recorded in memory and may follow a prefix, and a replay may be recorded again.

use std::sync::atomic::{AtomicU8, Ordering};

/// The modes, as the bits below. 0: the order of the run is nobody's concern.
static MODE: AtomicU8 = AtomicU8::new(0);

/// Steps are recorded.
const RECORDED: u8 = 1;
/// Steps are those of a recorded run.
const FOLLOWED: u8 = 2;
/// A step has a place in the code, which is recorded before it.
const SITED: u8 = 4;
/// Nothing is followed any more, and nothing is recorded: a shell looks at a stopped replay.
const FREE: u8 = 8;
/// This process of the operating system makes one run of an exploration.
const EXPLORED: u8 = 16;

fn begin(modes: u8) {
    MODE.fetch_or(modes, Ordering::Relaxed);
}

fn end(modes: u8) {
    MODE.fetch_and(!modes, Ordering::Relaxed);
}

/// Processes record their steps from now on, and where in the code these are if `with_sites`.
pub(crate) fn begin_recording(with_sites: bool) {
    begin(RECORDED | if with_sites { SITED } else { 0 });
}

/// Processes make the steps of a recorded run from now on.
pub(super) fn begin_following() {
    begin(FOLLOWED);
}

/// Nothing is followed any more: a shell looks at a stopped replay.
pub(super) fn set_free() {
    begin(FREE);
    end(FOLLOWED);
}

/// An explored run begins, whose steps are recorded in memory.
pub(super) fn begin_exploring() {
    begin(RECORDED | EXPLORED);
}

/// The explored run is over.
pub(super) fn end_exploring() {
    end(EXPLORED);
}

#[inline(always)]
fn has(modes: u8) -> bool {
    MODE.load(Ordering::Relaxed) & modes == modes
}

/// Whether the order of the run is recorded, followed or explored.
#[inline(always)]
pub(super) fn is_active() -> bool {
    MODE.load(Ordering::Relaxed) != 0
}

/// Whether steps are recorded.
#[inline(always)]
pub(super) fn is_recorded() -> bool {
    has(RECORDED)
}

/// Whether a recorded run is followed.
#[inline(always)]
pub(super) fn is_followed() -> bool {
    has(FOLLOWED)
}

/// Whether the places of steps are recorded.
#[inline(always)]
pub(super) fn is_sited() -> bool {
    has(SITED)
}

/// Whether this process of the operating system makes a run of an exploration.
#[inline(always)]
pub(super) fn is_explored() -> bool {
    has(EXPLORED)
}

/// Whether receives try other messages than the recorded ones.
#[inline(always)]
pub(super) fn tries_others() -> bool {
    has(SITED | FOLLOWED)
}

/// Whether the order of the run is recorded and nothing else, without places in the code.
#[inline(always)]
pub(super) fn is_only_recorded() -> bool {
    MODE.load(Ordering::Relaxed) == RECORDED
}

/// Whether nothing decides the order of deliveries, so that messages need not be held.
#[inline(always)]
pub(super) fn delivers_at_once() -> bool {
    MODE.load(Ordering::Relaxed) & !RECORDED == 0
}
