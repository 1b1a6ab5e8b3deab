//! Whether the order of a run is recorded, followed or explored. The command decides it before the first process is made.

use std::sync::atomic::{AtomicU8, Ordering};

use super::explore;

/// What is asked for of all processes: [`RECORDED`], [`SITED`], [`FOLLOWED`].
static ASKED: AtomicU8 = AtomicU8::new(0);

/// Steps are recorded.
pub(crate) const RECORDED: u8 = 1;
/// Steps are those of a recorded run.
pub(crate) const FOLLOWED: u8 = 2;
/// A step has a place in the code, which is recorded before it.
pub(crate) const SITED: u8 = 4;

/// Nothing is followed any more, and nothing is recorded: a shell looks at a stopped replay.
pub(in crate::process) const FREE: u8 = 8;

/// Asks for this no more.
pub(in crate::process) fn ask_no_more(what: u8) {
    ASKED.fetch_and(!what, Ordering::Relaxed);
}

/// Asks for this from now on: before the first process is made.
pub(crate) fn ask(what: u8) {
    ASKED.fetch_or(what, Ordering::Relaxed);
}

/// Whether the order is recorded or followed.
#[inline(always)]
pub(crate) fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed) != 0
}

#[inline(always)]
pub(in crate::process) fn is_recorded() -> bool {
    ASKED.load(Ordering::Relaxed) & RECORDED != 0
}

pub(crate) fn is_sited() -> bool {
    ASKED.load(Ordering::Relaxed) & SITED != 0
}

/// Whether receives try other messages than the recorded ones: a run is followed, and places in the code are recorded.
pub(crate) fn tries_others() -> bool {
    let both = SITED | FOLLOWED;
    ASKED.load(Ordering::Relaxed) & both == both
}

/// Whether a recorded run is followed.
#[inline(always)]
pub(crate) fn is_followed() -> bool {
    ASKED.load(Ordering::Relaxed) & FOLLOWED != 0
}

/// Whether nothing decides the order of deliveries, so that messages need not be held.
pub(in crate::process) fn delivers_at_once() -> bool {
    ASKED.load(Ordering::Relaxed) & !RECORDED == 0 && !explore::is_on()
}

/// Whether the order of a run is recorded that is neither followed nor explored, without places in the code.
#[inline(always)]
pub(in crate::process) fn is_only_recorded() -> bool {
    ASKED.load(Ordering::Relaxed) == RECORDED && !explore::is_on()
}
