//! A number that grows while a process runs, and is told now and then: what came since it was told last.

/// See the module.
#[derive(Clone, Copy, Default)]
pub(super) struct Total {
    last: Option<u64>,
}

impl Total {
    /// It is so much now. Gives what came since the last time: nothing the first time, and less than nothing where the
    /// number has become smaller.
    pub(super) fn now(&mut self, total: u64) -> i64 {
        let last = self.last.replace(total).unwrap_or(total);
        total.wrapping_sub(last).cast_signed()
    }
}

/// A sum of what came: never below nothing.
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
