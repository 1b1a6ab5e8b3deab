//! The clock that the times of samples are of.

use rustix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds.
#[expect(
    clippy::disallowed_methods,
    reason = "times of samples are those of the clock of performance events"
)]
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
