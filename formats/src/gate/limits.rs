//! The limits of a metric's growth. A soft limit is a percentage over the baseline, and a hard limit is a number.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::profile::Pattern;

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
    pub(crate) const OF_FUNCTIONS: [Metric; 2] = [Metric::Calls, Metric::Words];

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
            None => Err(format!("'{text}' is no percent such as \"2.5%\"")),
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

/// What a metric of a workload may grow by where nothing is said.
const DEFAULT_SOFT: Percent = Percent(1.0);

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
}

/// All limits of one workload: its own, else the common ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Of all workloads.
    pub common: WorkloadLimits,
    /// Of this one.
    pub own: WorkloadLimits,
    /// Of functions, this workload's before those of all; the first pattern that fits counts.
    pub functions: Vec<FunctionLimits>,
}

impl Limits {
    /// The limit of a metric of the workload.
    #[must_use]
    pub fn total(&self, metric: Metric) -> Limit {
        let said = self.own.of(metric).or(self.common.of(metric));
        said.unwrap_or(Limit {
            soft: Some(DEFAULT_SOFT),
            hard: None,
        })
    }

    /// The limit of times.
    #[must_use]
    pub fn time(&self) -> TimeLimit {
        self.own.time.or(self.common.time).unwrap_or_default()
    }

    /// The limit of a metric of a function; `None` where the limits say nothing of it.
    #[must_use]
    pub fn function(&self, function: &str, metric: Metric) -> Option<Limit> {
        let one: Pattern = function.parse().ok()?;
        let (module, name, arity) = one.function()?;
        self.functions
            .iter()
            .filter(|limits| limits.pattern.matches(module, name, arity.into()))
            .find_map(|limits| match metric {
                Metric::Calls => limits.calls,
                Metric::Words => limits.words,
                _ => None,
            })
    }
}
