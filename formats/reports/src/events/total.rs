//! A number that grows while a process runs, and that records tell now and then. [`Total`] tells how much it has grown
//! since it was last told.

/// The last value of the total, if there was one.
#[derive(Clone, Copy, Default)]
pub(super) struct Total {
    last: Option<u64>,
}

impl Total {
    /// Takes the present value and gives the difference to the one before. The first time that is 0. It is negative
    /// where the number has become smaller.
    pub(super) fn now(&mut self, total: u64) -> i64 {
        let last = self.last.replace(total).unwrap_or(total);
        total.wrapping_sub(last).cast_signed()
    }
}

/// A sum of differences, which is never below 0.
pub(super) fn sum(came: i64) -> u64 {
    u64::try_from(came).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_the_difference() {
        let mut total = Total::default();
        for (now, came) in [(7, 0), (7, 0), (10, 3), (8, -2), (u64::MAX, -9), (1, 2)] {
            assert_eq!(total.now(now), came, "{now}");
        }
        assert_eq!([-1, 0, 5].map(sum), [0, 0, 5]);
    }
}
