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

/// Behind a span as long as this, the rate of the counter is measured once more, and kept from then on.
const PRECISE_NS: i64 = 1_000_000_000;

/// Readings of both clocks of which the best one is taken.
const TRIES: usize = 8;

fn anchor() -> &'static Anchor {
    static ANCHOR: OnceLock<Anchor> = OnceLock::new();
    ANCHOR.get_or_init(|| {
        let counter = counter_is_even();
        let (ticks, ns) = match counter {
            true => read_both(),
            false => (0, monotonic_ns()),
        };
        Anchor { counter, ticks, ns }
    })
}

/// A count of the counter and the time at which it was read: of a few tries, the one that took the least time. A thread may
/// lose its processor between the two readings, and the rate would be wrong by as much.
fn read_both() -> (u64, i64) {
    let tries = (0..TRIES).map(|_| {
        let before = read_counter();
        let ns = monotonic_ns();
        let took = read_counter().wrapping_sub(before);
        (took, before.wrapping_add(took / 2), ns)
    });
    let best = tries.min_by_key(|(took, ..)| *took);
    best.map_or((0, 0), |(_, ticks, ns)| (ticks, ns))
}

/// How fast the counter runs.
#[derive(Clone, Copy)]
struct Rate {
    /// Nanoseconds in which it has counted `ticks`.
    ns: u64,
    ticks: u64,
}

impl Rate {
    /// Since the first reading of the clock: after `least_ns`, for which it waits.
    fn measure(anchor: &Anchor, least_ns: i64) -> Rate {
        while monotonic_ns() - anchor.ns < least_ns {
            std::hint::spin_loop();
        }
        let (ticks, ns) = read_both();
        Rate {
            ns: (ns - anchor.ns).max(1) as u64,
            ticks: ticks.wrapping_sub(anchor.ticks).max(1),
        }
    }
}

/// The rate by which spans are converted. It is kept, so that a span is as long whenever it is asked for: measured once when
/// it is asked for first, to about 1/10,000, and once more behind [`PRECISE_NS`].
fn rate(anchor: &Anchor) -> Rate {
    static FIRST: OnceLock<Rate> = OnceLock::new();
    static PRECISE: OnceLock<Rate> = OnceLock::new();
    let is_precise = || monotonic_ns() - anchor.ns >= PRECISE_NS;
    if PRECISE.get().is_some() || is_precise() {
        return *PRECISE.get_or_init(|| Rate::measure(anchor, PRECISE_NS));
    }
    *FIRST.get_or_init(|| Rate::measure(anchor, CALIBRATION_NS))
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
    let rate = rate(anchor);
    (u128::from(ticks) * u128::from(rate.ns) / u128::from(rate.ticks)) as u64
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

    #[test]
    fn a_span_is_as_long_whenever_it_is_asked_for() {
        const SPAN: u64 = 1_000_000_000;
        let first = to_ns(SPAN);
        // Other threads take the processor away between two readings.
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let now = to_ns(SPAN);
                        assert!(now.abs_diff(first) < first / 1000, "{now} and {first}");
                    }
                });
            }
        });
    }
}
