//! What a comparison cannot compare: workloads and functions that are on one side only, and limits that fit nothing.

use std::collections::BTreeMap;

use beamline_formats::profile::Pattern;

use super::limits::{FunctionLimits, Limits, Missing, fits};
use super::results::{FunctionCount, Workload};

/// Why there is something that could not be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It is not in the baseline.
    New,
    /// It is in the baseline only.
    Gone,
    /// It ran to no good end.
    Failed,
    /// It is not what the baseline ran.
    Changed,
    /// It had another name in the baseline.
    Renamed,
    /// A limit fits no function.
    Unused,
    /// Its two runs did not do the same.
    Unsteady,
}

impl Kind {
    /// As rows have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::New => "new",
            Kind::Gone => "gone",
            Kind::Failed => "failed",
            Kind::Changed => "changed",
            Kind::Renamed => "renamed",
            Kind::Unused => "unused",
            Kind::Unsteady => "unsteady",
        }
    }
}

/// A row without numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Of what kind it is.
    pub kind: Kind,
    /// What it is about.
    pub what: String,
    /// What there is to say.
    pub why: String,
    /// It fails the check.
    pub fails: bool,
}

impl Note {
    pub(super) fn new(kind: Kind, what: &str, why: String, missing: Missing) -> Note {
        let fails = match kind {
            Kind::Failed => true,
            Kind::Renamed | Kind::Unsteady => false,
            Kind::New | Kind::Gone | Kind::Changed | Kind::Unused => missing == Missing::Fail,
        };
        Note {
            kind,
            what: what.to_owned(),
            why,
            fails,
        }
    }

    /// The note in one line.
    pub(super) fn told(&self) -> String {
        format!("{} {}: {}", self.what, self.kind.name(), self.why)
    }
}

/// What is said of a workload as a whole, if it cannot be compared.
pub(super) fn of_workload(
    base: Option<&Workload>,
    new: Option<&Workload>,
    missing: Missing,
) -> Option<Note> {
    let accept = "'beamline ci accept'";
    let (kind, why) = match (base, new) {
        (_, Some(new)) if new.failure.is_some() => {
            (Kind::Failed, new.failure.clone().unwrap_or_default())
        }
        (_, None) => (
            Kind::Gone,
            format!("the baseline has it, and it was not run: {accept} forgets it"),
        ),
        (None, _) => (
            Kind::New,
            format!("the baseline does not have it: {accept} adds it"),
        ),
        (Some(base), Some(new)) if base.command != new.command => (
            Kind::Changed,
            format!(
                "the baseline ran '{}', this is '{}': {accept} makes a new baseline",
                base.command.join(" "),
                new.command.join(" ")
            ),
        ),
        _ => return None,
    };
    Some(Note::new(kind, "workload", why, missing))
}

/// The counts of a function before and now.
pub(super) struct Pair<'r> {
    /// As it is called now.
    pub(super) function: &'r str,
    pub(super) base: Option<&'r FunctionCount>,
    pub(super) new: Option<&'r FunctionCount>,
}

/// The functions of both results, those that were renamed as one, in order of their names.
pub(super) fn pairs<'r>(base: &'r Workload, new: &'r Workload) -> Vec<Pair<'r>> {
    let mut both: BTreeMap<&str, Pair<'r>> = BTreeMap::new();
    let is_counted = |function: &str| {
        let chosen = |patterns: &[Pattern]| {
            patterns.is_empty() || patterns.iter().any(|pattern| fits(pattern, function))
        };
        base.patterns == new.patterns || chosen(&base.patterns) && chosen(&new.patterns)
    };
    for (side, workload) in [base, new].into_iter().enumerate() {
        for count in workload
            .functions
            .iter()
            .filter(|c| is_counted(&c.function))
        {
            let pair = both.entry(&count.function).or_insert(Pair {
                function: &count.function,
                base: None,
                new: None,
            });
            *(if side == 0 {
                &mut pair.base
            } else {
                &mut pair.new
            }) = Some(count);
        }
    }
    for (old, now) in renamed(both.values()) {
        let gone = both.remove(old).and_then(|pair| pair.base);
        if let Some(pair) = both.get_mut(now) {
            pair.base = gone;
        }
    }
    both.into_values().collect()
}

/// A function's module, name and arity.
type Mfa = (String, String, u8);

fn mfa(function: &str) -> Option<Mfa> {
    let pattern: Pattern = function.parse().ok()?;
    let (module, name, arity) = pattern.function()?;
    Some((module.to_owned(), name.to_owned(), arity))
}

/// Of functions that are gone and new, those of one module that are one function under two names, by what is most
/// telling first.
fn renamed<'r: 'p, 'p>(pairs: impl Iterator<Item = &'p Pair<'r>>) -> Vec<(&'r str, &'r str)> {
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    for pair in pairs {
        match (pair.base, pair.new) {
            (Some(count), None) => gone.extend(mfa(pair.function).map(|mfa| (mfa, count))),
            (None, Some(count)) => new.extend(mfa(pair.function).map(|mfa| (mfa, count))),
            _ => {}
        }
    }
    type One<'r> = (Mfa, &'r FunctionCount);
    let is_same: [fn(&One<'_>, &One<'_>) -> bool; 4] = [
        |(a, x), (b, y)| a.2 == b.2 && (x.calls, x.words) == (y.calls, y.words),
        |(a, x), (b, y)| a.2 == b.2 && x.calls == y.calls,
        |(a, _), (b, _)| a.1 == b.1,
        |(a, _), (b, _)| a.2 == b.2 && strsim::normalized_damerau_levenshtein(&a.1, &b.1) >= 0.6,
    ];
    let mut renamed = Vec::new();
    for is_same in is_same {
        gone.retain(|old| {
            let found = new
                .iter()
                .position(|now| old.0.0 == now.0.0 && is_same(old, now));
            let Some(found) = found else { return true };
            let now = new.remove(found);
            renamed.push((old.1.function.as_str(), now.1.function.as_str()));
            false
        });
    }
    renamed
}

/// What is said of a function that has a limit, and that is on one side only or has another name.
pub(super) fn of_function(pair: &Pair<'_>, limits: &Limits) -> Option<Note> {
    let function = pair.function;
    // The compiler names these by their order, and a change elsewhere renames them.
    let is_made = mfa(function).is_none_or(|(_, name, _)| name.starts_with('-'));
    let was = pair.base.map_or(function, |base| &base.function);
    if is_made || !limits.has_function(function) && !limits.has_function(was) {
        return None;
    }
    let (kind, why) = match (pair.base, pair.new) {
        (Some(base), Some(_)) if base.function != function => (
            Kind::Renamed,
            format!("it was {} in the baseline", base.function),
        ),
        (Some(base), None) => (
            Kind::Gone,
            format!("nobody called it; the baseline has {} calls", base.calls),
        ),
        (None, Some(new)) => {
            let why = format!("the baseline has no call of it, this run has {}", new.calls);
            // What is new is in the totals of the workload, which have limits.
            return Some(Note::new(Kind::New, function, why, Missing::Warn));
        }
        _ => return None,
    };
    Some(Note::new(kind, function, why, limits.missing))
}

/// What is said of entries for functions that fit none of those that these workloads called.
pub(super) fn unused<'r>(
    entries: &[FunctionLimits],
    workloads: impl Iterator<Item = &'r Workload> + Clone,
    missing: Missing,
) -> Vec<Note> {
    let functions = workloads.flat_map(|workload| &workload.functions);
    let functions = functions.filter_map(|count| mfa(&count.function));
    let functions: Vec<Mfa> = functions.collect();
    let each = || {
        functions
            .iter()
            .map(|(m, f, a)| (&**m, &**f, u32::from(*a)))
    };
    let is_unused =
        |entry: &&FunctionLimits| !each().any(|(m, f, a)| entry.pattern.matches(m, f, a));
    let note = |entry: &FunctionLimits| {
        let near = entry.pattern.near(each());
        let near = match near.is_empty() {
            true => String::new(),
            false => format!("; near it: {}", near.join(", ")),
        };
        let what = format!("limit of {}", entry.pattern);
        let why = format!("it fits no function that was counted{near}");
        Note::new(Kind::Unused, &what, why, missing)
    };
    entries.iter().filter(is_unused).map(note).collect()
}
