//! Converts ticks of a recording's clock to nanoseconds.

/// A time, by the clock that stamps records and by the monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Ticks of the clock that stamps records.
    pub ticks: u64,
    /// Monotonic nanoseconds.
    pub ns: u64,
}

/// The clock that stamps records.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Ticks come from the processor's counter; otherwise they are nanoseconds.
    pub counter: bool,
    /// Nanoseconds in 2^32 ticks.
    pub ns_per_4g: u64,
    /// Reads both clocks.
    pub anchor: fn() -> Anchor,
    /// Nanoseconds since 1970 when the recording was begun.
    pub unix_ns: u64,
}

/// A shorter span of time does not tell the clock's speed exactly enough.
const EXACT_NS: u64 = 10_000_000;

/// How ticks of a recording become nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::ring) struct Timebase {
    start: Anchor,
    ns_per_4g: u64,
}

impl Timebase {
    /// From the header and from the last times that were written, if any.
    pub(in crate::ring) fn new(start: Anchor, ns_per_4g: u64, last: Option<Anchor>) -> Timebase {
        let nominal = ns_per_4g.max(1);
        let measured = last.and_then(|last| {
            let ns = last.ns.checked_sub(start.ns).filter(|ns| *ns >= EXACT_NS)?;
            let ticks = last.ticks.checked_sub(start.ticks).filter(|t| *t > 0)?;
            u64::try_from((u128::from(ns) << 32) / u128::from(ticks)).ok()
        });
        // What is far from what was measured at the start is a damaged number.
        let measured = measured.filter(|m| *m / 2 <= nominal && nominal / 2 <= *m);
        Timebase {
            start,
            ns_per_4g: measured.unwrap_or(nominal).max(1),
        }
    }

    /// Nanoseconds since the recording was begun.
    pub(in crate::ring) fn ns(&self, ticks: u64) -> u64 {
        self.span(ticks.saturating_sub(self.start.ticks))
    }

    fn span(&self, ticks: u64) -> u64 {
        let ns = (u128::from(ticks) * u128::from(self.ns_per_4g)) >> 32;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_is_taken_from_the_longest_span() {
        let start = Anchor {
            ticks: 1000,
            ns: 500,
        };
        let at = |ticks, ns| Some(Anchor { ticks, ns });
        let half = 1 << 31;
        for (last, expect) in [
            (None, 1_000_000),
            (at(1000 + 40_000_000, 500 + 10_000_000), 500_000),
            (at(1000 + 4_000, 500 + 1_000), 1_000_000),
            (at(1000 + 40, 500 + 10_000_000), 1_000_000),
            (at(0, 0), 1_000_000),
        ] {
            let base = Timebase::new(start, half, last);
            assert_eq!(base.ns(1000 + 2_000_000), expect, "{last:?}");
            assert_eq!(base.ns(0), 0);
        }
        assert_eq!(Timebase::new(start, u64::MAX, None).ns(u64::MAX), u64::MAX);
    }
}
