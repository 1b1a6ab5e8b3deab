//! When a scheduler wakes another one for its own work: the rule, and what it is set to.
//!
//! A scheduler adds up what waits in its queue while others run, and wakes one that sleeps when that has passed a limit.
//! So a burst of short time slices stays where it is, and work that lasts is shared.
//!
//! Source: `wakeup_other_check()`, `wakeup_other_set_limit()` in `erl_process.c`, OTP 29, of the type `default`.

/// Reductions of a time slice. Source: `CONTEXT_REDS`.
const CONTEXT_REDS: i64 = 4000;
/// What each look adds beside the reductions, if anything waits. Source: `ERTS_WAKEUP_OTHER_FIXED_INC`.
const FIXED_INCREASE: i64 = CONTEXT_REDS / 10;

/// How much work piles up before a scheduler is woken for it (`+swt`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threshold {
    /// `very_low`
    VeryLow,
    /// `low`
    Low,
    /// `medium`
    #[default]
    Medium,
    /// `high`
    High,
    /// `very_high`
    VeryHigh,
}

impl Threshold {
    const ALL: [(Threshold, &str); 5] = [
        (Threshold::VeryLow, "very_low"),
        (Threshold::Low, "low"),
        (Threshold::Medium, "medium"),
        (Threshold::High, "high"),
        (Threshold::VeryHigh, "very_high"),
    ];

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Threshold> {
        let found = Self::ALL.iter().find(|(_, its)| *its == name);
        found.map(|(threshold, _)| *threshold)
    }

    /// What may pile up. Source: `ERTS_WAKEUP_OTHER_LIMIT_*`.
    const fn limit(self) -> i64 {
        match self {
            Threshold::VeryLow => CONTEXT_REDS / 10,
            Threshold::Low => CONTEXT_REDS,
            Threshold::Medium => 10 * CONTEXT_REDS,
            Threshold::High => 50 * CONTEXT_REDS,
            Threshold::VeryHigh => 200 * CONTEXT_REDS,
        }
    }

    /// How fast it is forgotten while nothing waits, as a factor of the reductions. Source: `ERTS_WAKEUP_OTHER_DEC_SHIFT_*`:
    /// ERTS shifts to the left by less than nothing for the two lowest, and masks all that is left.
    const fn forgets(self) -> i64 {
        match self {
            Threshold::VeryLow | Threshold::Low => 0,
            Threshold::Medium => 1,
            Threshold::High => 2,
            Threshold::VeryHigh => 8,
        }
    }
}

/// What has piled up at a scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeupOther {
    pending: i64,
    /// Made since the last look, without what was given up.
    reds: i64,
}

impl WakeupOther {
    /// A time slice has made `reds` reductions.
    pub fn count(&mut self, reds: i64) {
        self.reds += reds.max(0);
    }

    /// Looks at what waits before the next time slice; whether another scheduler is to be woken.
    ///
    /// The first of those that wait runs next. Each of the others adds what was made meanwhile, and the look a fixed part,
    /// until all is above the limit. Where no other waits, it is forgotten as fast as reductions are made; and where nothing
    /// waits at all, at once.
    #[must_use]
    pub fn look(&mut self, waiting: usize, threshold: Threshold) -> bool {
        let reds = std::mem::take(&mut self.reds);
        let Some(others) = waiting.checked_sub(1) else {
            self.pending = 0;
            return false;
        };
        if reds == 0 {
            return false;
        }
        if others == 0 {
            self.pending = (self.pending - reds * threshold.forgets()).max(0);
            return false;
        }
        let others = i64::try_from(others).unwrap_or(i64::MAX);
        self.pending = others
            .saturating_mul(reds)
            .saturating_add(self.pending + FIXED_INCREASE);
        let wakes = self.pending > threshold.limit();
        if wakes {
            self.pending = 0;
        }
        wakes
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// After how many of these looks another one is woken. A look: how many wait, and the reductions since the one
    /// before.
    fn wakes_after(
        threshold: Threshold,
        looks: impl IntoIterator<Item = (usize, i64)>,
    ) -> Option<usize> {
        let mut other = WakeupOther::default();
        let wakes = |(waiting, reds)| {
            other.count(reds);
            other.look(waiting, threshold)
        };
        looks
            .into_iter()
            .map(wakes)
            .position(|wakes| wakes)
            .map(|at| at + 1)
    }

    #[test]
    fn two_that_compute_are_shared_after_ten_time_slices() {
        let busy = [(2, CONTEXT_REDS); 1000];
        for (threshold, slices) in [
            (Threshold::VeryLow, 1),
            (Threshold::Low, 1),
            (Threshold::Medium, 10),
            (Threshold::High, 46),
            (Threshold::VeryHigh, 182),
        ] {
            assert_eq!(wakes_after(threshold, busy), Some(slices), "{threshold:?}");
        }
    }

    #[test]
    fn a_burst_of_short_time_slices_stays() {
        let burst = (1..=20).rev().map(|waiting| (waiting, 50));
        assert_eq!(wakes_after(Threshold::Medium, burst.clone()), None);
        assert_eq!(wakes_after(Threshold::Low, burst), Some(4));
    }

    #[test]
    fn two_that_talk_stay_together() {
        assert_eq!(
            wakes_after(Threshold::VeryLow, std::iter::repeat_n((1, 9), 100_000)),
            None
        );
    }

    #[test]
    fn many_that_talk_are_shared() {
        assert_eq!(wakes_after(Threshold::Medium, [(4, 20); 1000]), Some(87));
    }

    #[test]
    fn what_has_piled_up_is_forgotten() {
        let pile = [(2, CONTEXT_REDS); 9];
        let then = |pause: (usize, i64)| pile.into_iter().chain([pause, (2, CONTEXT_REDS)]);
        let medium = Threshold::Medium;
        assert_eq!(
            wakes_after(medium, then((2, 0))),
            Some(11),
            "nothing was made"
        );
        assert_eq!(wakes_after(medium, then((1, CONTEXT_REDS))), None);
        assert_eq!(wakes_after(medium, then((1, 100))), Some(11));
        assert_eq!(wakes_after(medium, then((0, 100))), None, "out of work");
        let low = Threshold::Low;
        let kept = [(2, 100), (1, CONTEXT_REDS), (2, 3200)];
        assert_eq!(wakes_after(low, kept), Some(3), "it is kept");
    }

    #[test]
    fn a_scheduler_begins_anew_when_it_has_woken_another() {
        let mut other = WakeupOther::default();
        let mut woken = 0;
        for _ in 0..20 {
            other.count(CONTEXT_REDS);
            woken += u32::from(other.look(2, Threshold::Medium));
        }
        assert_eq!((woken, other), (2, WakeupOther::default()));
    }

    #[test]
    fn thresholds_have_names() {
        assert_eq!(Threshold::named("very_low"), Some(Threshold::VeryLow));
        assert_eq!(Threshold::named("medium"), Some(Threshold::default()));
        assert_eq!(Threshold::named("none"), None);
    }
}
