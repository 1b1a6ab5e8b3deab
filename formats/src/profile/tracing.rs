//! What the tracing of calls costs by itself, which is taken out of own times.
//!
//! A traced call takes some time of its own: a part of it falls into the time of the function that is called, and a part
//! into that of its caller. So functions that are called often, and those that call often, seem dearer than they are. The
//! runtime measures these parts when a run begins, counts what is to be paid how often, and takes it out of own times. A
//! profile has both: what is left ([`Cost::time_ns`]) and what was taken out ([`Cost::tracing_ns`]).

use std::fmt;

use serde::Serialize;

use super::{Cost, Profile};

/// What the tracing of a call takes, as it was measured when the run began, in picoseconds. All 0: it was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TracingCost {
    /// Of a call and its return, the part in the time of the function that is called.
    pub inside_ps: u64,
    /// And the part in its caller's time.
    pub outside_ps: u64,
    /// Of a call by the function itself, which has no such parts.
    pub again_ps: u64,
}

/// How often a function has paid for tracing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// It was called by another function.
    pub entered: u64,
    /// A call by it came back.
    pub resumed: u64,
    /// It called itself.
    pub again: u64,
}

impl TracingCost {
    /// What tracing has taken in all, in nanoseconds.
    #[must_use]
    pub fn of(self, paid: Paid) -> u64 {
        let part = |ps: u64, times: u64| u128::from(ps) * u128::from(times);
        let all = part(self.inside_ps, paid.entered)
            + part(self.outside_ps, paid.resumed)
            + part(self.again_ps, paid.again);
        u64::try_from(all / 1_000).unwrap_or(u64::MAX)
    }
}

impl Cost {
    /// This cost, without what tracing has taken of its time: no more than there is.
    #[must_use]
    pub fn without_tracing(self, tracing_ns: u64) -> Cost {
        let tracing_ns = tracing_ns.min(self.time_ns);
        Cost {
            time_ns: self.time_ns - tracing_ns,
            tracing_ns: self.tracing_ns.saturating_add(tracing_ns),
            ..self
        }
    }

    /// This cost as it was measured, with what tracing has taken.
    fn raw(self) -> Cost {
        Cost {
            time_ns: self.time_ns.saturating_add(self.tracing_ns),
            tracing_ns: 0,
            ..self
        }
    }
}

impl Profile {
    /// Puts what tracing has taken back into all times: they are as they were measured.
    pub fn make_raw(&mut self) {
        let counts = self.counts.iter_mut().map(|count| &mut count.cost);
        let nodes = self.nodes.iter_mut().map(|node| &mut node.cost);
        for cost in counts.chain(nodes) {
            *cost = cost.raw();
        }
    }
}

/// What was taken out of a profile's times, in one line; empty where nothing was.
#[derive(Clone, Copy, Debug)]
pub struct TakenOut<'a>(pub &'a Profile);

impl fmt::Display for TakenOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = Cost::default();
        for count in &self.0.counts {
            all.add(count.cost);
        }
        if all.tracing_ns == 0 {
            return Ok(());
        }
        #[expect(clippy::cast_precision_loss, reason = "a few digits are shown")]
        let (ns, calls) = (all.tracing_ns as f64, all.calls.max(1) as f64);
        writeln!(
            f,
            "tracing cost taken out: {:.1} ns a call, {:.1} ms in all",
            ns / calls,
            ns / 1e6
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Count;

    const COST: TracingCost = TracingCost {
        inside_ps: 7_500,
        outside_ps: 3_000,
        again_ps: 500,
    };

    #[test]
    fn each_part_is_paid_as_often_as_it_was_met() {
        let paid = |entered, resumed, again| Paid {
            entered,
            resumed,
            again,
        };
        for (paid, ns) in [
            (paid(2, 0, 0), 15),
            (paid(0, 3, 0), 9),
            (paid(0, 0, 5), 2),
            (paid(2, 3, 4), 26),
            (paid(u64::MAX, u64::MAX, u64::MAX), u64::MAX),
        ] {
            assert_eq!(COST.of(paid), ns, "{paid:?}");
        }
    }

    /// A profile of one function with these calls and this time, of which tracing has taken so much.
    fn profile(calls: u64, time_ns: u64, tracing_ns: u64) -> Profile {
        let cost = Cost {
            calls,
            time_ns,
            ..Cost::default()
        };
        let mut profile = Profile::default();
        profile.counts.push(Count {
            function: 0,
            run: 0,
            process: None,
            cost: cost.without_tracing(tracing_ns),
        });
        profile
    }

    #[test]
    fn no_time_is_below_zero_and_all_of_it_comes_back() {
        for (taken, left, told) in [
            (0, 3_000_000, ""),
            (
                1_000_000,
                2_000_000,
                "tracing cost taken out: 10.0 ns a call, 1.0 ms in all\n",
            ),
            (
                9_000_000,
                0,
                "tracing cost taken out: 30.0 ns a call, 3.0 ms in all\n",
            ),
        ] {
            let mut profile = profile(100_000, 3_000_000, taken);
            assert_eq!(profile.counts[0].cost.time_ns, left);
            assert_eq!(TakenOut(&profile).to_string(), told);
            profile.make_raw();
            assert_eq!(profile.counts[0].cost.time_ns, 3_000_000);
            assert_eq!(TakenOut(&profile).to_string(), "");
        }
    }
}
