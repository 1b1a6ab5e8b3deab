//! The clocks: the system's, or a virtual one that only moves when nothing can run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use beamline_settings::chance::Chance;

use super::{form, os};

pub use os::{CpuTimes, Usage};
pub(crate) use os::{process_usage, thread_usage};

static VIRTUAL_NOW_NS: AtomicU64 = AtomicU64::new(0);

/// The system time at which virtual time starts, nanoseconds since 1970: the year 2037. It is later than the time of any
/// file from before the run, so that programs see none of the future, and a year is left of 32 bits of seconds.
pub(super) const VIRTUAL_SYSTEM_NS: i64 = 2_114_380_800_000_000_000;

/// Where virtual time ends, 146 years on, so that every time that programs make of it is in range.
const VIRTUAL_END_NS: u64 = 1 << 62;

/// Looks at the clock since virtual time last moved.
static LOOKS: AtomicU64 = AtomicU64::new(0);
/// Most looks at a time that stands still. Each further one moves it, so that a program that waits by
/// looking waits not for ever.
const STILL_LOOKS: u64 = 1000;
const LOOK_NS: u64 = 1000;

/// Nanoseconds from an unspecified point; never goes back.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    match form() {
        Chance::Live | Chance::Linked { .. } => os::monotonic_ns().unsigned_abs(),
        Chance::Virtual { .. } => VIRTUAL_NOW_NS.load(Ordering::Acquire),
    }
}

/// As [`monotonic_ns`], for a program that looks at the clock.
#[inline]
pub fn look_ns() -> u64 {
    match form() {
        Chance::Live | Chance::Linked { .. } => {}
        Chance::Virtual { .. } => {
            if LOOKS.fetch_add(1, Ordering::Relaxed) >= STILL_LOOKS {
                VIRTUAL_NOW_NS.fetch_add(LOOK_NS, Ordering::AcqRel);
            }
        }
    }
    monotonic_ns()
}

/// A clock that only goes forward, for what is measured: nanoseconds. A program looks at it.
#[inline]
#[must_use]
pub fn counter_ns() -> i64 {
    look_ns().cast_signed()
}

/// The system's clock, for a program: nanoseconds since 1970.
#[inline]
#[must_use]
pub fn system_ns() -> i64 {
    match form() {
        Chance::Live | Chance::Linked { .. } => os::system_ns(),
        Chance::Virtual { .. } => VIRTUAL_SYSTEM_NS + look_ns().cast_signed(),
    }
}

/// Can the system's clock be set while the program runs?
#[inline]
pub fn may_be_set() -> bool {
    match form() {
        Chance::Live | Chance::Linked { .. } => true,
        Chance::Virtual { .. } => false,
    }
}

/// The time of the processor used so far; in virtual time all that has passed.
#[must_use]
pub fn cpu_times() -> CpuTimes {
    match form() {
        Chance::Live | Chance::Linked { .. } => os::process_cpu_times(),
        Chance::Virtual { .. } => CpuTimes {
            user_ns: look_ns().cast_signed(),
            system_ns: 0,
        },
    }
}

/// The sum of those, as exactly as the system says.
pub fn cpu_ns() -> i64 {
    match form() {
        Chance::Live | Chance::Linked { .. } => os::process_cpu_ns(),
        Chance::Virtual { .. } => look_ns().cast_signed(),
    }
}

/// Does time only move when nothing can run, by [`advance_to`]?
#[inline]
pub fn stands_still() -> bool {
    match form() {
        Chance::Live | Chance::Linked { .. } => false,
        Chance::Virtual { .. } => true,
    }
}

/// Nothing can run before `deadline_ns`: virtual time jumps there. `false` where that is past its end.
pub fn advance_to(deadline_ns: u64) -> bool {
    VIRTUAL_NOW_NS.fetch_max(deadline_ns.min(VIRTUAL_END_NS), Ordering::AcqRel);
    LOOKS.store(0, Ordering::Relaxed);
    deadline_ns <= VIRTUAL_END_NS
}

/// A point of outside time in every form of run, for what the machine waits for and measures; programs see none of it.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "chance is asked for here")]
pub fn outside_now() -> Instant {
    Instant::now()
}

/// Outside time in nanoseconds from an unspecified point, for recordings.
#[inline]
pub fn outside_monotonic_ns() -> u64 {
    os::monotonic_ns().cast_unsigned()
}

/// Outside time in nanoseconds since 1970, for recordings.
#[inline]
pub fn outside_system_ns() -> u64 {
    os::system_ns().cast_unsigned()
}
