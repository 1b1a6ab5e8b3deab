//! Compares two results: what changed between them, and which changes the limits forbid.

use super::change::{Change, Verdict};
use super::fold;
use super::limits::{Limit, Limits, Metric, TimeLimit};
use super::missing::{self, Kind, Note, Pair};
use super::results::{FunctionCount, Results, Times, Workload};
use crate::flamegraph::Width;
use crate::rank::{SIGNIFICANT, median, p_value};

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
    /// What could not be compared of it.
    pub notes: Vec<Note>,
    /// Its own metrics; none if it could not be compared.
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
    /// What could not be compared and is of no one workload.
    pub notes: Vec<Note>,
    /// What to know of the comparison as a whole.
    pub remarks: Vec<String>,
}

impl Compared {
    /// Of nothing but what is said of it as a whole.
    fn uncompared(name: &str, note: Note) -> Compared {
        Compared {
            name: name.to_owned(),
            notes: vec![note],
            totals: Vec::new(),
            functions: Vec::new(),
            time: None,
            outside: Vec::new(),
        }
    }

    /// Everything that fails the check.
    pub(crate) fn failures(&self) -> impl Iterator<Item = String> {
        let notes = self.notes.iter().filter(|note| note.fails);
        notes.map(Note::told).chain(self.regressions())
    }

    /// What a picture of it shows: the metric of the first function that does more than allowed, else that of the
    /// workload.
    #[must_use]
    pub fn width(&self) -> Option<Width> {
        let changes = self.functions.iter().chain(&self.totals);
        let failed = changes.filter(|change| change.verdict.is_regression());
        let widths = failed.map(|change| match change.metric {
            Metric::Calls => Width::Calls,
            Metric::Words | Metric::Collections => Width::Words,
            Metric::Reductions | Metric::Messages | Metric::Processes => Width::Reductions,
        });
        widths.into_iter().next()
    }

    /// Everything that is more than allowed and follows from nothing else, a function with all of its metrics; of time only
    /// where it counts.
    pub(crate) fn regressions(&self) -> impl Iterator<Item = String> {
        let mut counted: Vec<(Option<&String>, String)> = Vec::new();
        for change in self.totals.iter().chain(&self.functions) {
            let Verdict::Regression(why) = &change.verdict else {
                continue;
            };
            if change.cause.is_some() {
                continue;
            }
            let function = change.function.as_ref();
            let (metric, base, new) = (change.metric.name(), change.base, change.new);
            let told = format!("{metric} {base} → {new}, {why}");
            match counted
                .iter_mut()
                .find(|(of, _)| of.is_some() && *of == function)
            {
                Some((_, text)) => {
                    text.push_str("; ");
                    text.push_str(&told);
                }
                None => {
                    let of = function.map_or(String::new(), |function| format!("{function}: "));
                    counted.push((function, of + &told));
                }
            }
        }
        let counted = counted.into_iter().map(|(_, text)| text);
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
    /// Does anything fail the check?
    #[must_use]
    pub fn is_regression(&self) -> bool {
        let failures = |workload: &Compared| workload.failures().next().is_some();
        self.workloads.iter().any(failures) || self.notes.iter().any(|note| note.fails)
    }

    /// How much fails the check because it could not be compared.
    #[must_use]
    pub(crate) fn uncompared(&self) -> usize {
        let notes = self.workloads.iter().flat_map(|workload| &workload.notes);
        let notes = notes.chain(&self.notes);
        notes
            .filter(|note| note.fails && note.kind != Kind::Failed)
            .count()
    }

    /// How many workloads ran to no good end.
    #[must_use]
    pub fn failed(&self) -> usize {
        let notes = self.workloads.iter().flat_map(|workload| &workload.notes);
        notes.filter(|note| note.kind == Kind::Failed).count()
    }
}

/// Compares results with a baseline, within the limits of each workload. `limits` is asked for those of a workload by its
/// name, and by no name for those that are common to all.
pub fn compare(
    base: &Results,
    new: &Results,
    limits: impl Fn(Option<&str>) -> Limits,
) -> Comparison {
    let mut remarks = Vec::new();
    if base.beamline != new.beamline {
        remarks.push(format!(
            "the baseline was made by Beamline {}, this result by {}",
            base.beamline, new.beamline
        ));
    }
    let mut workloads = Vec::new();
    for workload in &new.workloads {
        let name = &workload.name;
        let (before, limits) = (base.workload(name), limits(Some(name)));
        if let Some(note) = missing::of_workload(before, Some(workload), limits.missing) {
            workloads.push(Compared::uncompared(name, note));
            continue;
        }
        let Some(before) = before else { continue };
        remarks.extend(remarks_of(before, workload));
        let same_machine = base.machine == new.machine;
        workloads.push(compare_workload(before, workload, &limits, same_machine));
    }
    let common = limits(None);
    for gone in &base.workloads {
        let now = new.workload(&gone.name);
        if now.is_none()
            && let Some(note) = missing::of_workload(Some(gone), None, common.missing)
        {
            workloads.push(Compared::uncompared(&gone.name, note));
        }
    }
    let ran = new.workloads.iter();
    let ran = ran.filter(|workload| workload.failure.is_none());
    let notes = missing::unused(&common.common_functions, ran, common.missing);
    Comparison {
        workloads,
        notes,
        remarks,
    }
}

fn remarks_of(base: &Workload, new: &Workload) -> Vec<String> {
    let name = &new.name;
    let mut remarks = Vec::new();
    if base.otp != new.otp {
        remarks.push(format!(
            "{name}: the baseline ran on OTP {}, this on OTP {}; counts of OTP's own functions may differ",
            base.otp, new.otp
        ));
    }
    // Older baselines do not say what was counted.
    if !base.patterns.is_empty() && base.patterns != new.patterns {
        remarks.push(format!(
            "{name}: its patterns have changed; functions are compared that both the old and the new ones choose"
        ));
    }
    remarks
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
        cause: None,
    });
    let pairs = missing::pairs(base, new);
    let one = || std::iter::once(new);
    let mut notes = missing::unused(&limits.functions, one(), limits.missing);
    notes.extend(
        pairs
            .iter()
            .filter_map(|pair| missing::of_function(pair, limits)),
    );
    if let Some(why) = &new.unsteady {
        notes.push(Note::new(
            Kind::Unsteady,
            "workload",
            why.clone(),
            limits.missing,
        ));
    }
    let mut totals: Vec<Change> = totals.collect();
    let mut functions = compare_functions(&pairs, limits);
    fold::name_causes([base, new], &mut totals, &mut functions);
    Compared {
        name: new.name.clone(),
        notes,
        totals,
        functions,
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

fn count_of(count: &FunctionCount, metric: Metric) -> Option<u64> {
    match metric {
        Metric::Calls => Some(count.calls),
        Metric::Words => Some(count.words),
        Metric::Reductions => count.reductions,
        Metric::Messages | Metric::Collections | Metric::Processes => None,
    }
}

fn compare_functions(pairs: &[Pair<'_>], limits: &Limits) -> Vec<Change> {
    let each = pairs.iter().flat_map(|pair| {
        let metrics = Metric::OF_FUNCTIONS.into_iter();
        metrics.filter_map(|metric| compare_function(pair, metric, limits))
    });
    let mut changes: Vec<Change> = each.collect();
    changes.sort_by_key(|change| {
        let first = !change.verdict.is_regression();
        (first, std::cmp::Reverse(change.new.abs_diff(change.base)))
    });
    changes
}

/// `None` where there is nothing to tell, and where one side has not counted it.
fn compare_function(pair: &Pair<'_>, metric: Metric, limits: &Limits) -> Option<Change> {
    let read = |count: Option<&FunctionCount>| count.map_or(Some(0), |c| count_of(c, metric));
    let (base, new) = (read(pair.base)?, read(pair.new)?);
    let was = pair.base.map_or(pair.function, |base| &base.function);
    let limit = match pair.base {
        // Of what is new, only an entry for it speaks.
        None => limits.said(pair.function, metric),
        Some(_) => {
            let limit = limits.function(pair.function, metric);
            limit.or_else(|| limits.function(was, metric))
        }
    };
    let verdict = judge(base, new, limit.unwrap_or_default());
    if verdict == Verdict::Same && limits.said(pair.function, metric).is_none() {
        return None;
    }
    Some(Change {
        function: Some(pair.function.to_owned()),
        metric,
        base,
        new,
        verdict,
        cause: None,
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
