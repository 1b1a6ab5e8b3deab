//! Erlang's time, which is made of the machine's clock (`sys::chance::clock`) and of an offset.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use beamline_runtime_sys::chance::clock::{look_ns, monotonic_ns, system_ns};

/// Where Erlang's monotonic time starts: a small integer in nanoseconds. Source: `ERTS_MONOTONIC_BEGIN`.
pub const BEGIN_NS: i64 = -576_460_751_000_000_000;

/// The clock's and the system's time when the machine started.
#[inline]
fn start() -> (u64, i64) {
    static START: OnceLock<(u64, i64)> = OnceLock::new();
    *START.get_or_init(|| (monotonic_ns(), system_ns()))
}

/// Starts Erlang's clock, unless it runs.
pub fn start_now() {
    let _ = start();
}

/// Erlang's monotonic time, nanoseconds.
#[inline]
#[must_use]
pub fn erlang_monotonic_ns() -> i64 {
    let (start, _) = start();
    BEGIN_NS + (look_ns() - start) as i64
}

/// Whether what is added to monotonic time follows the system's clock (`+C`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeWarp {
    /// Never.
    No,
    /// Once, when it is made final.
    Single,
    /// Always: OTP 29's own choice.
    Multi,
}

static WARP: OnceLock<TimeWarp> = OnceLock::new();
static IS_FINAL: AtomicBool = AtomicBool::new(false);
/// A difference that is no change of the system's clock. Source: `small_diff` in `erl_time_sup.c`, twice.
const SLACK_NS: i64 = 100_000;

/// Sets the mode. Only before it is first asked for.
pub fn set_time_warp(mode: TimeWarp) {
    let _ = WARP.set(mode);
}

/// The mode.
#[must_use]
pub fn time_warp() -> TimeWarp {
    *WARP.get_or_init(|| TimeWarp::Multi)
}

/// `system_info(time_offset)`.
#[must_use]
pub fn time_offset_state() -> &'static str {
    match time_warp() {
        TimeWarp::Multi => "volatile",
        TimeWarp::Single if !IS_FINAL.load(Ordering::Acquire) => "preliminary",
        TimeWarp::No | TimeWarp::Single => "final",
    }
}

#[inline]
fn offset() -> &'static AtomicI64 {
    static OFFSET: OnceLock<AtomicI64> = OnceLock::new();
    OFFSET.get_or_init(|| AtomicI64::new(start().1 - BEGIN_NS))
}

/// What makes Erlang's system time of its monotonic time.
#[inline]
#[must_use]
pub fn time_offset_ns() -> i64 {
    offset().load(Ordering::Acquire)
}

/// The offset with which `monotonic_ns` is `system_ns`, unless `offset` is as good.
fn better_offset(offset: i64, monotonic_ns: i64, system_ns: i64) -> Option<i64> {
    let better = system_ns - monotonic_ns;
    ((better - offset).abs() > SLACK_NS).then_some(better)
}

/// Sets the offset by the system's clock; the new one if it has changed.
pub fn follow_system() -> Option<i64> {
    let new = better_offset(time_offset_ns(), erlang_monotonic_ns(), system_ns())?;
    offset().store(new, Ordering::Release);
    Some(new)
}

/// A preliminary offset becomes final: set by the system's clock, in whole microseconds.
pub fn finalize_offset() -> Option<i64> {
    if time_warp() != TimeWarp::Single || IS_FINAL.swap(true, Ordering::AcqRel) {
        return None;
    }
    let new = system_ns() - erlang_monotonic_ns();
    offset().store(new - new % 1000, Ordering::Release);
    Some(time_offset_ns())
}

/// The clock's time at which Erlang's monotonic time is `ns`; 0 if that was before the start.
#[inline]
#[must_use]
pub fn clock_of_erlang_ns(ns: i64) -> u64 {
    let since = i128::from(ns) - i128::from(BEGIN_NS) + i128::from(start().0);
    u64::try_from(since.max(0)).unwrap_or(u64::MAX)
}

/// Erlang system time.
#[inline]
pub fn system_time_ns() -> i64 {
    erlang_monotonic_ns().saturating_add(time_offset_ns())
}

/// Time of day that is later each time, on all schedulers.
#[inline]
pub fn now_microseconds() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = system_time_ns().div_euclid(1000);
    let later = |last: i64| Some(now.max(last + 1));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    now.max(last.unwrap_or(0) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_changes_when_the_clock_is_set() {
        let offset = 1_000_000;
        for (monotonic, system, better) in [
            (5, 1_000_005, None),
            (5, 1_000_005 + SLACK_NS, None),
            (5, 1_000_006 + SLACK_NS, Some(1_000_001 + SLACK_NS)),
            (5, 0, Some(-5)),
        ] {
            assert_eq!(better_offset(offset, monotonic, system), better);
        }
    }
}
