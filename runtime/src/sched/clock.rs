//! The machine's clock: the system's, or a virtual one that only moves when nothing can run.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sys::time::{os_monotonic_time, os_system_time};

static VIRTUAL: AtomicBool = AtomicBool::new(false);
static VIRTUAL_NOW_NS: AtomicU64 = AtomicU64::new(0);

/// Makes time virtual (`--deterministic`): it stands still while anything can run, and jumps to the next
/// timer when nothing can. Only before the schedulers start.
pub fn set_virtual() {
    VIRTUAL.store(true, Ordering::Relaxed);
}

/// Is time virtual?
#[must_use]
pub fn is_virtual() -> bool {
    VIRTUAL.load(Ordering::Relaxed)
}

/// Nanoseconds from an unspecified point; never goes back.
#[must_use]
pub fn monotonic_ns() -> u64 {
    if is_virtual() {
        return VIRTUAL_NOW_NS.load(Ordering::Acquire);
    }
    os_monotonic_time().unsigned_abs()
}

/// Nothing can run before `deadline_ns`: virtual time jumps there.
pub(super) fn advance_to(deadline_ns: u64) {
    VIRTUAL_NOW_NS.fetch_max(deadline_ns, Ordering::AcqRel);
}

/// Where Erlang's monotonic time starts: a small integer in nanoseconds. Source: `ERTS_MONOTONIC_BEGIN`.
pub(crate) const BEGIN_NS: i64 = -576_460_751_000_000_000;
/// The system time at which virtual time starts, nanoseconds since 1970.
const VIRTUAL_SYSTEM_NS: i64 = 1_700_000_000_000_000_000;

/// The clock's and the system's time when the machine started.
fn start() -> (u64, i64) {
    static START: OnceLock<(u64, i64)> = OnceLock::new();
    *START.get_or_init(|| {
        let system = if is_virtual() {
            VIRTUAL_SYSTEM_NS
        } else {
            os_system_time()
        };
        (monotonic_ns(), system)
    })
}

/// Erlang's monotonic time, nanoseconds.
#[must_use]
pub fn erlang_monotonic_ns() -> i64 {
    let (start, _) = start();
    BEGIN_NS + (monotonic_ns() - start) as i64
}

/// What makes Erlang's system time of its monotonic time. Never changes: time does not warp.
#[must_use]
pub fn time_offset_ns() -> i64 {
    start().1 - BEGIN_NS
}

/// The clock's time at which Erlang's monotonic time is `ns`; 0 if that was before the start.
#[must_use]
pub fn clock_of_erlang_ns(ns: i64) -> u64 {
    let since = i128::from(ns) - i128::from(BEGIN_NS) + i128::from(start().0);
    u64::try_from(since.max(0)).unwrap_or(u64::MAX)
}
