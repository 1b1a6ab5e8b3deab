//! The cheapest clock there is, for the two timestamps of each call: the processor's time stamp counter where it runs
//! evenly, else the monotonic clock.
//!
//! Invariant K1: `rdtsc` reads a counter, and does nothing else; every x86-64 processor has it.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the time stamp counter is read by an intrinsic")
)]

use std::sync::OnceLock;

use super::os::monotonic_ns;

/// A tick count and the time it was read at.
struct Anchor {
    /// Ticks come from the processor.
    counter: bool,
    ticks: u64,
    ns: i64,
}

/// Shorter spans are too short to tell how fast the counter runs.
const CALIBRATION_NS: i64 = 2_000_000;

fn anchor() -> &'static Anchor {
    static ANCHOR: OnceLock<Anchor> = OnceLock::new();
    ANCHOR.get_or_init(|| {
        let counter = counter_is_even();
        let ns = monotonic_ns();
        let ticks = if counter { read_counter() } else { ns as u64 };
        Anchor { counter, ticks, ns }
    })
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn read_counter() -> u64 {
    // SAFETY: K1.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn read_counter() -> u64 {
    monotonic_ns() as u64
}

/// Runs the counter at one speed, on all cores alike, whatever the processor does?
#[cfg(target_arch = "x86_64")]
fn counter_is_even() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let Some(line) = flags.lines().find(|line| line.starts_with("flags")) else {
        return false;
    };
    ["constant_tsc", "nonstop_tsc"]
        .iter()
        .all(|flag| line.split(' ').any(|word| word == *flag))
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_even() -> bool {
    false
}

/// Reads the clock, in ticks; see [`to_ns`].
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    counter: bool,
}

impl Ticks {
    /// The clock of this machine.
    #[inline]
    #[must_use]
    pub fn clock() -> Ticks {
        Ticks {
            counter: anchor().counter,
        }
    }
    /// Ticks are the processor's; otherwise they are nanoseconds.
    #[inline]
    #[must_use]
    pub fn is_counter(self) -> bool {
        self.counter
    }
    /// Ticks from an unspecified point.
    #[inline(always)]
    #[must_use]
    pub fn now(self) -> u64 {
        if self.counter {
            read_counter()
        } else {
            monotonic_ns() as u64
        }
    }
}

/// Nanoseconds in a span of ticks. Waits up to two milliseconds when the clock was first read just now.
#[must_use]
pub fn to_ns(ticks: u64) -> u64 {
    let anchor = anchor();
    if !anchor.counter {
        return ticks;
    }
    let passed = loop {
        let ns = monotonic_ns() - anchor.ns;
        if ns >= CALIBRATION_NS {
            break ns as u64;
        }
        std::hint::spin_loop();
    };
    let counted = read_counter().wrapping_sub(anchor.ticks).max(1);
    (u128::from(ticks) * u128::from(passed) / u128::from(counted)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_keep_step_with_the_monotonic_clock() {
        let clock = Ticks::clock();
        let (ticks, ns) = (clock.now(), monotonic_ns());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (ticks, ns) = (clock.now() - ticks, (monotonic_ns() - ns) as u64);
        let measured = to_ns(ticks);
        assert!(measured.abs_diff(ns) < ns / 50, "{measured} and {ns}");
    }
}
