//! Compares two results: what changed between them, and which changes the limits forbid.

use std::collections::BTreeMap;

use super::limits::{Limit, Limits, Metric, TimeLimit};
use super::rank::p_value;
use super::results::{FunctionCount, Results, Times, Workload};

/// A difference in time is believed below this probability of chance.
const SIGNIFICANT: f64 = 0.01;

/// The verdict of the limits on a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the same.
    Same,
    /// It is less, or less by more than the least effect.
    Better,
    /// It is more, as allowed.
    Allowed,
    /// It is more than allowed: which limit says so.
    Regression(String),
}

impl Verdict {
    /// Is it more than allowed?
    #[must_use]
    pub fn is_regression(&self) -> bool {
        matches!(self, Verdict::Regression(_))
    }
}

/// A number before and now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The function, of a function's.
    pub function: Option<String>,
    /// What is counted.
    pub metric: Metric,
    /// Before.
    pub base: u64,
    /// Now.
    pub new: u64,
    /// What the limits say.
    pub verdict: Verdict,
}

/// Times before and now.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeChange {
    /// Median before, in nanoseconds.
    pub base_ns: u64,
    /// Median now.
    pub new_ns: u64,
    /// How probable such a difference is by chance.
    pub p: f64,
    /// Whether both versions were measured alternately, on one machine.
    pub interleaved: bool,
    /// Whether the limits ask for it to count.
    pub gates: bool,
    /// What the limits say.
    pub verdict: Verdict,
}

/// The changes in a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// Its own metrics.
    pub totals: Vec<Change>,
    /// Functions that changed, or that a limit says something of; the largest changes first.
    pub functions: Vec<Change>,
    /// Its time, where both results have times.
    pub time: Option<TimeChange>,
    /// What this run took from outside.
    pub outside: Vec<String>,
}

/// The changes in all workloads.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Each workload.
    pub workloads: Vec<Compared>,
    /// What to know of the comparison as a whole.
    pub remarks: Vec<String>,
}

impl Compared {
    /// Everything that is more than allowed; of time only where it counts.
    pub(crate) fn regressions(&self) -> impl Iterator<Item = String> {
        let counted = self.totals.iter().chain(&self.functions);
        let counted = counted.filter_map(|change| match &change.verdict {
            Verdict::Regression(why) => {
                let function = change.function.as_ref();
                let of = function.map_or(String::new(), |function| format!("{function}: "));
                let (metric, base, new) = (change.metric.name(), change.base, change.new);
                Some(format!("{of}{metric} {base} → {new}, {why}"))
            }
            _ => None,
        });
        let time = self.time.iter().filter(|time| time.gates);
        let time = time.filter_map(|time| match &time.verdict {
            Verdict::Regression(why) => Some(format!(
                "time {:.1} → {:.1} ms, {why}",
                time.base_ns as f64 / 1e6,
                time.new_ns as f64 / 1e6
            )),
            _ => None,
        });
        counted.chain(time)
    }

    /// Is its time more than allowed, where that counts?
    #[must_use]
    pub fn is_slower(&self) -> bool {
        let slower = |time: &TimeChange| time.gates && time.verdict.is_regression();
        self.time.as_ref().is_some_and(slower)
    }
}

impl Comparison {
    /// Is there anything that is more than allowed?
    #[must_use]
    pub fn is_regression(&self) -> bool {
        self.workloads
            .iter()
            .any(|workload| workload.regressions().next().is_some())
    }
}

/// What a baseline has of the workload of this name, which runs this command.
///
/// # Errors
/// One line: it does not have it, or of another command.
pub fn before<'b>(
    base: &'b Results,
    name: &str,
    command: &[String],
) -> Result<&'b Workload, String> {
    let before = base.workload(name).ok_or_else(|| {
        format!("the workload {name} is not in the baseline: add it with 'beamline ci accept'")
    })?;
    if before.command != command {
        return Err(format!(
            "the workload {name} of the baseline ran '{}', this one '{}': make a new baseline with 'beamline ci accept'",
            before.command.join(" "),
            command.join(" ")
        ));
    }
    Ok(before)
}

/// Compares results with a baseline, within the limits of each workload.
///
/// # Errors
/// One line: the two are not of the same workloads.
pub fn compare(
    base: &Results,
    new: &Results,
    limits: impl Fn(&str) -> Limits,
) -> Result<Comparison, String> {
    let mut remarks = Vec::new();
    let gone = base.workloads.iter().map(|workload| &workload.name);
    for name in gone.filter(|name| new.workload(name).is_none()) {
        remarks.push(format!("the workload {name} of the baseline was not run"));
    }
    if base.beamline != new.beamline {
        remarks.push(format!(
            "the baseline was made by Beamline {}, this result by {}",
            base.beamline, new.beamline
        ));
    }
    let mut workloads = Vec::new();
    for workload in &new.workloads {
        let name = &workload.name;
        let before = before(base, name, &workload.command)?;
        if before.otp != workload.otp {
            remarks.push(format!(
                "{name}: the baseline ran on OTP {}, this on OTP {}; counts of OTP's own functions may differ",
                before.otp, workload.otp
            ));
        }
        let same_machine = base.machine == new.machine;
        workloads.push(compare_workload(
            before,
            workload,
            &limits(name),
            same_machine,
        ));
    }
    Ok(Comparison { workloads, remarks })
}

fn compare_workload(
    base: &Workload,
    new: &Workload,
    limits: &Limits,
    same_machine: bool,
) -> Compared {
    let totals = Metric::TOTALS.iter().zip(base.totals.metrics());
    let totals = totals.zip(new.totals.metrics());
    let totals = totals.map(|((metric, (_, base)), (_, new))| Change {
        function: None,
        metric: *metric,
        base,
        new,
        verdict: judge(base, new, limits.total(*metric)),
    });
    Compared {
        name: new.name.clone(),
        totals: totals.collect(),
        functions: compare_functions(base, new, limits),
        time: compare_times(&base.times, &new.times, limits.time(), same_machine),
        outside: new.outside.clone(),
    }
}

/// What a limit says to a number.
fn judge(base: u64, new: u64, limit: Limit) -> Verdict {
    if let Some(hard) = limit.hard.filter(|hard| new > *hard) {
        return Verdict::Regression(format!("at most {hard} allowed"));
    }
    match new.cmp(&base) {
        std::cmp::Ordering::Less => return Verdict::Better,
        std::cmp::Ordering::Equal => return Verdict::Same,
        std::cmp::Ordering::Greater => {}
    }
    match limit.soft {
        Some(soft) if new as f64 > base as f64 * (1.0 + soft.0 / 100.0) => {
            Verdict::Regression(format!("{}, at most +{soft} allowed", growth(base, new)))
        }
        _ => Verdict::Allowed,
    }
}

/// By how much a number has changed, as a percent.
pub(super) fn growth(base: u64, new: u64) -> String {
    if base == new {
        return "0%".to_owned();
    }
    if base == 0 {
        return "new".to_owned();
    }
    let percent = (new as f64 / base as f64 - 1.0) * 100.0;
    if percent.abs() < 0.01 {
        // It did change.
        return format!("{percent:+.1e}%");
    }
    format!("{percent:+.2}%")
}

fn compare_functions(base: &Workload, new: &Workload, limits: &Limits) -> Vec<Change> {
    let mut both: BTreeMap<&str, [Option<&FunctionCount>; 2]> = BTreeMap::new();
    for (side, workload) in [base, new].into_iter().enumerate() {
        for count in &workload.functions {
            both.entry(&count.function).or_default()[side] = Some(count);
        }
    }
    let mut changes = Vec::new();
    for (function, [base, new]) in both {
        for metric in Metric::OF_FUNCTIONS {
            let read = |count: Option<&FunctionCount>| match metric {
                Metric::Words => count.map_or(0, |count| count.words),
                _ => count.map_or(0, |count| count.calls),
            };
            let (base, new) = (read(base), read(new));
            let limit = limits.function(function, metric);
            if base == new && limit.is_none() {
                continue;
            }
            changes.push(Change {
                function: Some(function.to_owned()),
                metric,
                base,
                new,
                verdict: judge(base, new, limit.unwrap_or_default()),
            });
        }
    }
    changes.sort_by_key(|change| {
        let first = !change.verdict.is_regression();
        (first, std::cmp::Reverse(change.new.abs_diff(change.base)))
    });
    changes
}

fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    let high = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) {
        u64::midpoint(sorted[middle - 1], high)
    } else {
        high
    })
}

fn compare_times(
    base: &Times,
    new: &Times,
    limit: TimeLimit,
    same_machine: bool,
) -> Option<TimeChange> {
    let interleaved = !new.base_runs_ns.is_empty();
    let before = match interleaved {
        true => &new.base_runs_ns,
        false => &base.runs_ns,
    };
    let (base_ns, new_ns) = (median(before)?, median(&new.runs_ns)?);
    let p = p_value(before, &new.runs_ns);
    let ratio = new_ns as f64 / base_ns.max(1) as f64;
    let effect = 1.0 + limit.soft.0 / 100.0;
    let hard = limit.hard_ms.filter(|hard| new_ns > hard * 1_000_000);
    let verdict = if let Some(hard) = hard {
        Verdict::Regression(format!("at most {hard} ms allowed"))
    } else if p < SIGNIFICANT && ratio > effect {
        let percent = (ratio - 1.0) * 100.0;
        Verdict::Regression(format!("+{percent:.1}%, at most +{} allowed", limit.soft))
    } else if p < SIGNIFICANT && ratio < 1.0 / effect {
        Verdict::Better
    } else {
        Verdict::Same
    };
    Some(TimeChange {
        base_ns,
        new_ns,
        p,
        interleaved,
        // Times of another machine say nothing of this change.
        gates: limit.gate && (interleaved || same_machine),
        verdict,
    })
}
