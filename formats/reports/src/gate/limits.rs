//! The limits of a metric's growth. A soft limit is a percentage over the baseline, and a hard limit is a number.

use std::fmt;

use beamline_formats::profile::Pattern;
use serde::{Deserialize, Serialize};

/// A metric of a workload, or of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Reductions of the workload's processes.
    Reductions,
    /// Words allocated; of a function, by itself.
    Words,
    /// Messages sent.
    Messages,
    /// Collections, minor and major.
    Collections,
    /// Processes made.
    Processes,
    /// Calls of a function.
    Calls,
}

impl Metric {
    /// The metrics of a workload.
    pub(crate) const TOTALS: [Metric; 5] = [
        Metric::Reductions,
        Metric::Words,
        Metric::Messages,
        Metric::Collections,
        Metric::Processes,
    ];
    /// The metrics of a function.
    pub(crate) const OF_FUNCTIONS: [Metric; 3] = [Metric::Calls, Metric::Words, Metric::Reductions];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Metric::Reductions => "reductions",
            Metric::Words => "words",
            Metric::Messages => "messages",
            Metric::Collections => "collections",
            Metric::Processes => "processes",
            Metric::Calls => "calls",
        }
    }
}

/// A part of a hundred, written `2.5%`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Percent(pub f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl From<Percent> for String {
    fn from(percent: Percent) -> String {
        percent.to_string()
    }
}

impl TryFrom<String> for Percent {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let number = text.strip_suffix('%').and_then(|n| n.trim().parse().ok());
        match number.filter(|n: &f64| (0.0..=1e6).contains(n)) {
            Some(number) => Ok(Percent(number)),
            None => Err(format!("'{text}' is not a percentage such as \"2.5%\"")),
        }
    }
}

/// The limits of one metric. Written as a percent, or as a table of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", deny_unknown_fields)]
pub struct Limit {
    /// How much more than in the baseline there may be.
    pub soft: Option<Percent>,
    /// How much there may be at most.
    pub hard: Option<u64>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a limit is a percent such as \"2%\", or { soft = \"2%\", hard = 1000 }"
)]
enum Written {
    Soft(Percent),
    Both(Both),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Both {
    soft: Option<Percent>,
    hard: Option<u64>,
}

impl From<Written> for Limit {
    fn from(written: Written) -> Self {
        match written {
            Written::Soft(soft) => Limit {
                soft: Some(soft),
                hard: None,
            },
            Written::Both(Both { soft, hard }) => Limit { soft, hard },
        }
    }
}

/// The limit of times: advice, unless they gate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeLimit {
    /// The least effect: a median that is worse by less is the same.
    #[serde(default = "least_effect")]
    pub soft: Percent,
    /// The longest median allowed, in milliseconds.
    pub hard_ms: Option<u64>,
    /// A regression of time fails the check.
    #[serde(default)]
    pub gate: bool,
}

fn least_effect() -> Percent {
    Percent(5.0)
}

impl Default for TimeLimit {
    fn default() -> Self {
        TimeLimit {
            soft: least_effect(),
            hard_ms: None,
            gate: false,
        }
    }
}

/// What a metric of a workload, or of a function of its patterns, may grow by where nothing is said.
const DEFAULT: Limit = Limit {
    soft: Some(Percent(1.0)),
    hard: None,
};

/// The limits of a workload's own metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadLimits {
    /// Reductions.
    pub reductions: Option<Limit>,
    /// Words allocated.
    pub words: Option<Limit>,
    /// Messages sent.
    pub messages: Option<Limit>,
    /// Collections.
    pub collections: Option<Limit>,
    /// Processes made.
    pub processes: Option<Limit>,
    /// Times.
    pub time: Option<TimeLimit>,
    /// Each function of the workload's patterns.
    pub functions: Option<GatedLimits>,
}

/// The limits of every function that a workload's patterns choose.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GatedLimits {
    /// Whether these functions have limits at all.
    pub gate: bool,
    /// Calls.
    pub calls: Limit,
    /// Own words.
    pub words: Limit,
    /// Own reductions.
    pub reductions: Limit,
}

impl Default for GatedLimits {
    fn default() -> Self {
        GatedLimits {
            gate: true,
            calls: DEFAULT,
            words: DEFAULT,
            reductions: DEFAULT,
        }
    }
}

impl GatedLimits {
    fn of(&self, metric: Metric) -> Option<Limit> {
        match metric {
            Metric::Calls => Some(self.calls),
            Metric::Words => Some(self.words),
            Metric::Reductions => Some(self.reductions),
            Metric::Messages | Metric::Collections | Metric::Processes => None,
        }
    }
}

/// What follows where something is missing that a baseline or a limit speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// The check fails.
    #[default]
    Fail,
    /// It is reported, and fails nothing.
    Warn,
}

impl WorkloadLimits {
    fn of(&self, metric: Metric) -> Option<Limit> {
        match metric {
            Metric::Reductions => self.reductions,
            Metric::Words => self.words,
            Metric::Messages => self.messages,
            Metric::Collections => self.collections,
            Metric::Processes => self.processes,
            Metric::Calls => None,
        }
    }
}

/// The limits of functions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionLimits {
    /// Which functions: `M:F/A`, `M:F` or `M`.
    pub pattern: Pattern,
    /// Calls.
    pub calls: Option<Limit>,
    /// Own words.
    pub words: Option<Limit>,
    /// Own reductions.
    pub reductions: Option<Limit>,
}

impl FunctionLimits {
    fn of(&self, metric: Metric) -> Option<Limit> {
        match metric {
            Metric::Calls => self.calls,
            Metric::Words => self.words,
            Metric::Reductions => self.reductions,
            Metric::Messages | Metric::Collections | Metric::Processes => None,
        }
    }
}

/// All limits of one workload: its own, else the common ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Of all workloads.
    pub common: WorkloadLimits,
    /// Of this one.
    pub own: WorkloadLimits,
    /// Of functions, this workload's own; the first pattern that fits counts.
    pub functions: Vec<FunctionLimits>,
    /// Of functions, those of all workloads, which come after its own.
    pub common_functions: Vec<FunctionLimits>,
    /// The workload's patterns: each function that fits one has a limit.
    pub gated: Vec<Pattern>,
    /// What follows where something is missing.
    pub missing: Missing,
}

impl Limits {
    /// The limit of a metric of the workload.
    #[must_use]
    pub fn total(&self, metric: Metric) -> Limit {
        let said = self.own.of(metric).or(self.common.of(metric));
        said.unwrap_or(DEFAULT)
    }

    /// The limit of times.
    #[must_use]
    pub fn time(&self) -> TimeLimit {
        self.own.time.or(self.common.time).unwrap_or_default()
    }

    /// What an entry for functions says to a metric of this one; `None` where no entry does.
    #[must_use]
    pub fn said(&self, function: &str, metric: Metric) -> Option<Limit> {
        let one: Pattern = function.parse().ok()?;
        let (module, name, arity) = one.function()?;
        let mut entries = self.functions.iter().chain(&self.common_functions);
        entries.find_map(|entry| {
            let fits = entry.pattern.matches(module, name, arity.into());
            entry.of(metric).filter(|_| fits)
        })
    }

    /// The limit that a function has because the workload's patterns choose it.
    fn gated(&self, function: &str, metric: Metric) -> Option<Limit> {
        let limits = self.own.functions.or(self.common.functions);
        let limits = limits.unwrap_or_default();
        let is_gated = limits.gate && self.gated.iter().any(|pattern| fits(pattern, function));
        limits.of(metric).filter(|_| is_gated)
    }

    /// The limit of a metric of a function; `None` where there is none.
    #[must_use]
    pub fn function(&self, function: &str, metric: Metric) -> Option<Limit> {
        let said = self.said(function, metric);
        said.or_else(|| self.gated(function, metric))
    }

    /// Has any metric of this function a limit?
    pub(super) fn has_function(&self, function: &str) -> bool {
        let mut metrics = Metric::OF_FUNCTIONS.iter();
        metrics.any(|metric| self.function(function, *metric).is_some())
    }
}

/// Does a pattern mean this function, as Erlang or Elixir writes it?
pub(super) fn fits(pattern: &Pattern, function: &str) -> bool {
    let one = function.parse::<Pattern>();
    let one = one.as_ref().ok().and_then(Pattern::function);
    one.is_some_and(|(module, name, arity)| pattern.matches(module, name, arity.into()))
}
