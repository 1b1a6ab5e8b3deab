//! What no program determines and tasks use nevertheless: a clock, the number of this process, the machine's
//! processors.

use std::time::Instant;

/// A point of time, to wait and to measure by.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of the tasks that reads a clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The number of this process, for names of files that no other run has.
#[expect(clippy::disallowed_methods, reason = "as for `now`")]
pub(crate) fn os_pid() -> u32 {
    std::process::id()
}

/// How many processors this process may use.
#[expect(clippy::disallowed_methods, reason = "as for `now`")]
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
