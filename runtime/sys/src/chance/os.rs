//! Reads the system's clocks and accounts, as they are.
//!
//! Invariant OS1: the C library fills every field of a structure whose call reports success.
#![expect(unsafe_code, reason = "clocks are reached through the C library")]

use std::mem::MaybeUninit;

/// The times of the processor that this process has used, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTimes {
    /// In the program itself.
    pub user_ns: i64,
    /// In the system on its behalf.
    pub system_ns: i64,
}

#[expect(clippy::disallowed_methods, reason = "chance is asked for here")]
fn clock_ns(clock: libc::clockid_t) -> i64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: OS1: `time` has room for what the call writes.
    let result = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    assert_eq!(
        result, 0,
        "the clock {clock} exists on every supported system"
    );
    // SAFETY: OS1: the call reported success.
    let time = unsafe { time.assume_init() };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The monotonic clock, in nanoseconds from an unspecified point.
#[inline]
pub(super) fn monotonic_ns() -> i64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// The clock of the day, in nanoseconds since 1970.
#[inline]
pub(super) fn system_ns() -> i64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// The system's number of the calling thread.
pub(super) fn thread_number() -> u32 {
    // SAFETY: asks for a number only.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// The time of the processor that the calling thread has used, in nanoseconds.
pub(super) fn thread_cpu_ns() -> i64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The time of the processor that all threads have used, in nanoseconds.
pub(super) fn process_cpu_ns() -> i64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// What has been used by this process, or this thread.
fn rusage(who: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: OS1: `usage` has room for what the call writes.
    let result = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    assert_eq!(result, 0, "a process can always ask for its own usage");
    // SAFETY: OS1: the call reported success.
    unsafe { usage.assume_init() }
}

/// The operating system's account of what was used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Time on a processor, in nanoseconds.
    pub cpu_ns: u64,
    /// Pages that were not there, read from a disk or not.
    pub page_faults: u64,
    /// Switches to other threads, wanted or not.
    pub context_switches: u64,
}

impl Usage {
    fn of(cpu_ns: i64, usage: &libc::rusage) -> Usage {
        let sum = |a: libc::c_long, b: libc::c_long| a.saturating_add(b).unsigned_abs();
        Usage {
            cpu_ns: cpu_ns.unsigned_abs(),
            page_faults: sum(usage.ru_minflt, usage.ru_majflt),
            context_switches: sum(usage.ru_nvcsw, usage.ru_nivcsw),
        }
    }
}

/// What this thread has used.
#[must_use]
pub(crate) fn thread_usage() -> Usage {
    Usage::of(thread_cpu_ns(), &rusage(libc::RUSAGE_THREAD))
}

/// What all threads of the process have used.
#[must_use]
pub(crate) fn process_usage() -> Usage {
    Usage::of(process_cpu_ns(), &rusage(libc::RUSAGE_SELF))
}

/// The times of the processor that all threads of the process have used.
pub(super) fn process_cpu_times() -> CpuTimes {
    let usage = rusage(libc::RUSAGE_SELF);
    let ns = |t: libc::timeval| t.tv_sec * 1_000_000_000 + t.tv_usec * 1000;
    CpuTimes {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_advance() {
        let (monotonic, system) = (monotonic_ns(), system_ns());
        let cpu = thread_cpu_ns();
        let mut work = 0u64;
        while thread_cpu_ns() < cpu + 2_000_000 {
            work = std::hint::black_box(work.wrapping_mul(31) + 1);
        }
        assert!(monotonic_ns() >= monotonic + 2_000_000);
        assert!(system > 1_500_000_000 * 1_000_000_000);
        assert!(process_cpu_times().user_ns + process_cpu_times().system_ns >= 1_000_000);
    }
}
