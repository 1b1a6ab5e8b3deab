//! Counts the machine's processors.
//!
//! Invariant PR1: `sysconf` only answers a question; it touches no memory of its caller.
#![expect(unsafe_code, reason = "asks the C library")]

use beamline_settings::chance::Chance;

use super::form;

/// Schedulers there are in a run that asks for `wanted`.
#[must_use]
pub fn schedulers(wanted: usize) -> usize {
    match form() {
        Chance::Live | Chance::Linked { .. } => wanted,
        Chance::Virtual { .. } => 1,
    }
}

/// Processors that are online.
#[must_use]
pub fn online() -> usize {
    match form() {
        Chance::Live | Chance::Linked { .. } => {
            // SAFETY: PR1.
            let n = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
            usize::try_from(n).unwrap_or(1).max(1)
        }
        Chance::Virtual { .. } => 1,
    }
}

/// Processors that the process may use.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "chance is asked for here")]
pub fn available() -> usize {
    match form() {
        Chance::Live | Chance::Linked { .. } => {
            std::thread::available_parallelism().map_or(1, usize::from)
        }
        Chance::Virtual { .. } => 1,
    }
}
