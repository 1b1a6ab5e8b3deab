//! Calendar arithmetic and conversion of time units. `sys::chance::clock` has the clocks, and `sys::time` the time
//! zone.

/// A date and a time of day, in no particular time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DateTime {
    /// The year of the Gregorian calendar.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 0 to 59.
    pub second: i64,
}

/// Seconds in a day.
const DAY_SECONDS: i64 = 86_400;

/// The first year that `universaltime_to_posixtime` takes.
const FIRST_YEAR: i64 = 1600;

/// The years are 32-bit integers in ERTS.
const LAST_YEAR: i64 = i32::MAX as i64 - 1;

/// Days from 1 March of year 0 to 1 January 1970.
const EPOCH_DAYS: i64 = 719_468;

/// Whether a year of the Gregorian calendar has 366 days.
#[must_use]
pub(crate) fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap_year(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl DateTime {
    /// Whether all fields are in their ranges, with a year not before `first_year`.
    #[must_use]
    pub fn is_valid(&self, first_year: i64) -> bool {
        (first_year..=LAST_YEAR).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second)
    }

    /// Seconds since 1970 of this universal time; `None` (a `badarg`) for a field out of
    /// range or a year before 1600.
    #[must_use]
    pub fn to_posix_seconds(&self) -> Option<i64> {
        if !self.is_valid(FIRST_YEAR) {
            return None;
        }
        // Years that begin in March have their leap day at the end.
        let (year, month) = if self.month > 2 {
            (self.year, self.month - 3)
        } else {
            (self.year - 1, self.month + 9)
        };
        let days = 365 * year + year / 4 - year / 100 + year / 400;
        let days = days + (month * 306 + 5) / 10 + self.day - 1 - EPOCH_DAYS;
        Some(days * DAY_SECONDS + self.hour * 3600 + self.minute * 60 + self.second)
    }

    /// The universal time of a number of seconds after 1970 (or before, if negative).
    ///
    /// Quotients are truncated as ERTS does, not floored, so dates before year 0 are off by a
    /// day here and there exactly as its own are.
    /// Source: `seconds_to_univ()` in `erl_time_sup.c`.
    #[must_use]
    pub fn from_posix_seconds(seconds: i64) -> Self {
        let of_day = seconds.rem_euclid(DAY_SECONDS);
        let days = seconds.div_euclid(DAY_SECONDS) + EPOCH_DAYS;
        let before_year = |year: i64| 365 * year + year / 4 - year / 100 + year / 400;
        let mut year = (10_000 * days + 14_780) / 3_652_425;
        if days < before_year(year) {
            year -= 1;
        }
        let day_of_year = days - before_year(year);
        let from_march = (100 * day_of_year + 52) / 3060;
        Self {
            year: year + (from_march + 2) / 12,
            month: (from_march + 2) % 12 + 1,
            day: day_of_year - (from_march * 306 + 5) / 10 + 1,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }
}

/// Converts a time between units given in parts a second, rounding down; `None` if the
/// result does not fit.
#[inline]
#[must_use]
pub fn convert_unit(time: i64, from_per_second: u64, to_per_second: u64) -> Option<i64> {
    let product = i128::from(time).checked_mul(i128::from(to_per_second))?;
    i64::try_from(product.div_euclid(i128::from(from_per_second))).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(year: i64, month: i64, day: i64, hour: i64, minute: i64, second: i64) -> DateTime {
        DateTime {
            year,
            month,
            day,
            hour,
            minute,
            second,
        }
    }

    #[test]
    fn known_dates() {
        for (date, seconds) in [
            (at(1970, 1, 1, 0, 0, 0), 0),
            (at(1969, 12, 31, 23, 59, 59), -1),
            (at(2000, 2, 29, 12, 0, 0), 951_825_600),
            (at(2038, 1, 19, 3, 14, 8), 1 << 31),
            (at(1600, 1, 1, 0, 0, 0), -11_676_096_000),
        ] {
            assert_eq!(date.to_posix_seconds(), Some(seconds), "{date:?}");
            assert_eq!(DateTime::from_posix_seconds(seconds), date);
        }
    }

    #[test]
    fn early_dates_as_otp_gives_them() {
        for (seconds, date) in [
            (-62_135_596_800, at(1, 1, 1, 0, 0, 0)),
            (-62_135_596_801, at(0, 12, 31, 23, 59, 59)),
            (-62_162_035_200, at(0, 3, 1, 0, 0, 0)),
            (-62_162_035_201, at(0, 2, 28, 23, 59, 59)),
            (-62_400_000_000, at(-8, 8, 15, 18, 40, 0)),
            (-300_000_000_000, at(-7537, 5, 17, 18, 40, 0)),
            (i64::MIN, at(-292_277_022_657, 1, 26, 8, 29, 52)),
            (i64::MAX, at(292_277_026_596, 12, 4, 15, 30, 7)),
        ] {
            assert_eq!(DateTime::from_posix_seconds(seconds), date);
        }
    }

    #[test]
    fn dates_that_are_none() {
        for date in [
            at(1599, 12, 31, 0, 0, 0),
            at(2023, 2, 29, 0, 0, 0),
            at(1900, 2, 29, 0, 0, 0),
            at(2023, 4, 31, 0, 0, 0),
            at(2023, 0, 1, 0, 0, 0),
            at(2023, 13, 1, 0, 0, 0),
            at(2023, 1, 0, 0, 0, 0),
            at(2023, 1, 1, 24, 0, 0),
            at(2023, 1, 1, 0, 60, 0),
            at(2023, 1, 1, 0, 0, 60),
            at(2023, 1, 1, -1, 0, 0),
            at(1 << 31, 1, 1, 0, 0, 0),
        ] {
            assert_eq!(date.to_posix_seconds(), None, "{date:?}");
        }
    }

    #[test]
    fn units_round_down() {
        assert_eq!(convert_unit(-1, 1_000_000_000, 1000), Some(-1));
        assert_eq!(convert_unit(1_999_999, 1_000_000_000, 1000), Some(1));
        assert_eq!(convert_unit(i64::MAX, 1, 1000), None);
        assert_eq!(convert_unit(i64::MIN, 1000, 1000), Some(i64::MIN));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn dates_round_trip(seconds in -11_676_096_000i64..1 << 50) {
            let date = DateTime::from_posix_seconds(seconds);
            prop_assert!(date.is_valid(FIRST_YEAR));
            prop_assert_eq!(date.to_posix_seconds(), Some(seconds));
            prop_assert!(DateTime::from_posix_seconds(seconds + 1) > date);
        }
    }
}
