//! The machine's processors.
#![expect(unsafe_code, reason = "asks the C library")]

/// Processors that are online.
#[must_use]
pub fn online_processors() -> usize {
    // SAFETY: a question about the system; touches no memory of ours.
    let n = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(n).unwrap_or(1).max(1)
}
