//! Reads the local time zone, as the system knows it.
//!
//! Native time units are nanoseconds. Invariants:
//!
//! - TZ1: the C environment is not written after the process has started (`os:putenv` keeps a table of its own), so the
//!   C library may read `TZ` from any thread.
//! - TZ2: the C library fills every field of a structure whose call reports success.

#![expect(unsafe_code, reason = "time zones are reached through the C library")]

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;

use beamline_runtime_base::num::time::DateTime;

/// Native time units in a second.
pub const NATIVE_PER_SECOND: u64 = 1_000_000_000;

/// The first year that local times are converted for.
const FIRST_LOCAL_YEAR: i64 = 1902;

unsafe extern "C" {
    fn tzset();
    /// Not zero if the time zone has ever had daylight saving time; set by `tzset`.
    static daylight: libc::c_int;
}

/// The local time of a number of seconds after 1970; `None` if the year does not fit.
#[must_use]
pub fn local_from_posix(seconds: i64) -> Option<DateTime> {
    read_time_zone();
    let mut tm = MaybeUninit::<libc::tm>::uninit();
    // SAFETY: TZ1, TZ2: `tm` has room for what the call writes.
    let result = unsafe { libc::localtime_r(&raw const seconds, tm.as_mut_ptr()) };
    if result.is_null() {
        return None;
    }
    // SAFETY: TZ2: the call reported success.
    let tm = unsafe { tm.assume_init() };
    Some(DateTime {
        year: i64::from(tm.tm_year) + 1900,
        month: i64::from(tm.tm_mon) + 1,
        day: tm.tm_mday.into(),
        hour: tm.tm_hour.into(),
        minute: tm.tm_min.into(),
        second: tm.tm_sec.into(),
    })
}

/// Universal to local time; `None` (a `badarg`) for a field out of range or a year
/// before 1902.
#[must_use]
pub fn universal_to_local(universal: DateTime) -> Option<DateTime> {
    if !universal.is_valid(FIRST_LOCAL_YEAR) {
        return None;
    }
    local_from_posix(universal.to_posix_seconds()?)
}

/// Local to universal time. `is_dst` says whether daylight saving time is meant where both
/// are possible; `None` leaves it to the system. The result is `None` (a `badarg`) for a field
/// out of range, a year before 1902, or a time the system refuses.
#[must_use]
pub fn local_to_universal(local: DateTime, is_dst: Option<bool>) -> Option<DateTime> {
    if !local.is_valid(FIRST_LOCAL_YEAR) {
        return None;
    }
    read_time_zone();
    // SAFETY: TZ1: after `tzset` nothing writes the variable.
    let zone_has_dst = unsafe { daylight } != 0;
    let field = |v: i64| libc::c_int::try_from(v).expect("checked by `is_valid`");
    let tm = libc::tm {
        tm_year: field(local.year - 1900),
        tm_mon: field(local.month - 1),
        tm_mday: field(local.day),
        tm_hour: field(local.hour),
        tm_min: field(local.minute),
        tm_sec: field(local.second),
        tm_wday: 0,
        tm_yday: 0,
        // In a zone without daylight saving time the question has no meaning.
        tm_isdst: if zone_has_dst {
            is_dst.map_or(-1, libc::c_int::from)
        } else {
            0
        },
        tm_gmtoff: 0,
        tm_zone: ptr::null(),
    };
    let seconds = make_time(tm).or_else(|| {
        // -1 is both "failed" and the last second of 1969: ask for the second before it.
        let before = libc::tm {
            tm_sec: tm.tm_sec - 1,
            ..tm
        };
        (make_time(before) == Some(-2)).then_some(-1)
    })?;
    Some(DateTime::from_posix_seconds(seconds))
}

/// `mktime`, with -1 as `None`.
fn make_time(mut tm: libc::tm) -> Option<i64> {
    // SAFETY: TZ1: `tm` is a whole structure, which the call may normalise.
    let seconds = unsafe { libc::mktime(&raw mut tm) };
    (seconds != -1).then_some(seconds)
}

/// Reads the time zone once; TZ1 says that it stays what it is.
fn read_time_zone() {
    static READ: Once = Once::new();
    READ.call_once(|| {
        // SAFETY: TZ1: reading the environment is safe; `Once` makes it the only writer.
        unsafe { tzset() }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_return() {
        for seconds in [0, 951_825_600, 1_700_000_000, -1_000_000_000] {
            let universal = DateTime::from_posix_seconds(seconds);
            let local = universal_to_local(universal).expect("in range");
            assert_eq!(local_from_posix(seconds), Some(local));
            assert_eq!(local_to_universal(local, None), Some(universal));
        }
    }

    #[test]
    fn times_that_are_none() {
        let good = DateTime::from_posix_seconds(0);
        let early = DateTime { year: 1901, ..good };
        let minute = DateTime { minute: 60, ..good };
        for bad in [early, minute] {
            assert_eq!(universal_to_local(bad), None);
            assert_eq!(local_to_universal(bad, None), None);
        }
    }
}
