//! Histograms of how long single things took, or how large they were. They show the median and the worst values, which
//! an average hides.
//!
//! [`Histograms::read`] measures a recording, and [`Histograms::merge`] adds the histograms of another. Histograms can
//! be shown as text ([`std::fmt::Display`]), drawn ([`Histograms::draw`]), and written as JSON and as the percentile
//! output and the interval log of HdrHistogram. Values are exact to three digits.

mod draw;
mod measure;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use measure::Measure;

use std::collections::BTreeMap;

use beamline_formats::name::time;
use beamline_formats::ring::{Group, Losses};
use beamline_settings::names;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::choice::Choice;

/// Values that are kept one by one before a histogram is made of them.
const FEW: usize = 256;

/// Significant digits of a histogram's values.
const DIGITS: u8 = 3;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// From the call of a function to its return, with what it called and waited for.
    CallTime,
    /// Time in the function itself while the process ran, without what it called.
    OwnTime,
    /// Words allocated in the function itself, without what it called.
    Words,
    /// Collections.
    GcPause,
    /// From when a scheduler starts to run a process to when it stops.
    RunSlice,
    /// From when a process that does not run is ready to (a message has come, or its time slice ended for want of
    /// reductions) to when a scheduler runs it.
    QueueWait,
    /// From when a call is queued for a dirty scheduler to when one runs it.
    DirtyWait,
    /// From when a message is sent to when it is in the receiver's queue.
    MessageLatency,
}

impl Of {
    /// All of them.
    pub const ALL: [Of; 8] = [
        Of::CallTime,
        Of::OwnTime,
        Of::Words,
        Of::GcPause,
        Of::RunSlice,
        Of::QueueWait,
        Of::DirtyWait,
        Of::MessageLatency,
    ];

    /// As the command line writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Of::CallTime => "call-time",
            Of::OwnTime => "own-time",
            Of::Words => "words",
            Of::GcPause => "gc-pause",
            Of::RunSlice => "run-slice",
            Of::QueueWait => "queue-wait",
            Of::DirtyWait => "dirty-wait",
            Of::MessageLatency => "message-latency",
        }
    }

    /// From when to when it is, in a line.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Of::CallTime => {
                "From the call of a function to its return, with what it called and waited for"
            }
            Of::OwnTime => {
                "Time in the function itself while its process ran, without what it called"
            }
            Of::Words => {
                "Words that a call allocated in the function itself, without what it called"
            }
            Of::GcPause => "Collections, from begin to end",
            Of::RunSlice => "From when a scheduler starts to run a process to when it stops",
            Of::QueueWait => {
                "From when a process is ready (a message has come, or its time slice was over) to when it runs"
            }
            Of::DirtyWait => "From when a call is queued for a dirty scheduler to when one runs it",
            Of::MessageLatency => {
                "From when a message is sent to when it is in the receiver's queue"
            }
        }
    }

    /// What a person would call the single thing.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Of::CallTime => "Time from call to return",
            Of::OwnTime => "Own time of calls",
            Of::Words => "Own words of calls",
            Of::GcPause => "Collections",
            Of::RunSlice => "Time slices on a scheduler",
            Of::QueueWait => "Waiting for a scheduler",
            Of::DirtyWait => "Waiting for a dirty scheduler",
            Of::MessageLatency => "Time from send to the receiver's queue",
        }
    }

    /// Groups of events that a recording must have.
    #[must_use]
    pub fn needs(self) -> &'static [Group] {
        match self {
            Of::CallTime | Of::OwnTime => &[Group::Calls, Group::Returns],
            Of::Words => &[Group::Calls, Group::Returns, Group::Words],
            Of::GcPause => &[Group::Gc],
            Of::RunSlice | Of::DirtyWait => &[Group::Scheduling],
            Of::QueueWait => &[Group::Scheduling, Group::Messages],
            Of::MessageLatency => &[Group::Messages],
        }
    }

    /// What its values are of, as JSON has it.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Of::Words => "words",
            _ => "ns",
        }
    }

    /// A value as people read it.
    fn text(self, value: u64) -> String {
        match self {
            Of::Words => value.to_string(),
            _ => time(value),
        }
    }

    /// How rows are made unless it is said.
    #[must_use]
    pub fn by(self) -> By {
        match self {
            Of::CallTime | Of::OwnTime | Of::Words | Of::DirtyWait => By::Function,
            Of::GcPause | Of::RunSlice | Of::QueueWait | Of::MessageLatency => By::Process,
        }
    }
}

/// The kind of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Each function: the one called, or what the process was in.
    Function,
    /// Each process.
    Process,
}

names!(By {
    Function = "function", "A function: the one called, or what the process was in";
    Process = "process", "A process";
});

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is measured.
    pub of: Of,
    /// What has a row of its own.
    pub by: By,
    /// The functions or processes that have a row; `None` stands for all.
    pub only: Option<Choice>,
}

/// All values of one row.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    /// A histogram knows the least and the greatest to three digits only.
    min: u64,
    max: u64,
    /// Values that are not in the histogram.
    few: Vec<u64>,
    many: Option<Box<Histogram<u64>>>,
}

impl Default for Values {
    fn default() -> Values {
        Values {
            min: u64::MAX,
            max: 0,
            few: Vec::new(),
            many: None,
        }
    }
}

/// An empty histogram.
pub(crate) fn empty() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("it can have three digits")
}

/// Adds a value: the histogram grows to hold any.
fn record(histogram: &mut Histogram<u64>, value: u64) {
    if histogram.record(value).is_err() {
        histogram.saturating_record(value);
    }
}

impl Values {
    pub(crate) fn add(&mut self, value: u64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        match &mut self.many {
            Some(many) => record(many, value),
            None => {
                self.few.push(value);
                if self.few.len() > FEW {
                    self.many = Some(Box::new(self.histogram()));
                    self.few = Vec::new();
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.min > self.max
    }

    fn merge(&mut self, other: &Values) {
        if let Some(many) = &other.many {
            let mut sum = self.histogram();
            add(&mut sum, many);
            self.few = Vec::new();
            self.many = Some(Box::new(sum));
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
        }
        other.few.iter().for_each(|value| self.add(*value));
    }

    pub(crate) fn histogram(&self) -> Histogram<u64> {
        let mut histogram = match &self.many {
            Some(many) => Histogram::clone(many),
            None => empty(),
        };
        self.few
            .iter()
            .for_each(|value| record(&mut histogram, *value));
        histogram
    }
}

/// Adds all values of another histogram.
fn add(sum: &mut Histogram<u64>, other: &Histogram<u64>) {
    sum.add(other)
        .expect("a histogram that grows takes any value");
}

/// The values of a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The function or process.
    pub name: String,
    /// How many there were.
    pub count: u64,
    /// The sum of all, as near as the histogram knows it.
    pub sum: u64,
    /// The least.
    pub min: u64,
    /// Half of them are not above this.
    pub p50: u64,
    /// 90 of 100.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1000.
    pub p99_9: u64,
    /// 9,999 of 10,000.
    pub p99_99: u64,
    /// The greatest.
    pub max: u64,
}

impl Row {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a sum of three digits"
    )]
    pub(crate) fn of(name: &str, values: &Values) -> Row {
        let histogram = values.histogram();
        let at = |quantile| histogram.value_at_quantile(quantile);
        let (min, max) = (values.min.min(values.max), values.max);
        Row {
            name: name.to_owned(),
            count: histogram.len(),
            sum: (histogram.mean() * histogram.len() as f64) as u64,
            min,
            // What a bucket stands for may be above the greatest of its values.
            p50: at(0.5).min(max),
            p90: at(0.9).min(max),
            p99: at(0.99).min(max),
            p99_9: at(0.999).min(max),
            p99_99: at(0.9999).min(max),
            max,
        }
    }
}

/// Histograms of the functions or processes of one recording or several.
#[derive(Clone, Debug)]
pub struct Histograms {
    of: Of,
    by: By,
    losses: Vec<Losses>,
    rows: BTreeMap<String, Values>,
    /// What had begun and did not end, so that it has no value.
    open: u64,
}

impl Histograms {
    /// Adds those of another recording: rows of one name become one.
    ///
    /// # Errors
    /// One line when they are not of the same.
    pub fn merge(&mut self, other: Histograms) -> Result<(), String> {
        if (self.of, self.by) != (other.of, other.by) {
            return Err("histograms of different things cannot be put together".into());
        }
        self.losses.extend(other.losses);
        self.open += other.open;
        for (name, values) in other.rows {
            self.rows.entry(name).or_default().merge(&values);
        }
        Ok(())
    }

    /// All rows, the one with the greatest sum first.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let rows = self.rows.iter();
        let mut rows: Vec<Row> = rows.map(|(name, values)| Row::of(name, values)).collect();
        rows.sort_by(|a, b| b.sum.cmp(&a.sum).then_with(|| a.name.cmp(&b.name)));
        rows
    }

    /// All values of all rows.
    pub(crate) fn all(&self) -> Values {
        let mut all = Values::default();
        self.rows.values().for_each(|values| all.merge(values));
        all
    }

    /// The histogram of a row, if there is such a one.
    #[must_use]
    pub fn row(&self, name: &str) -> Option<Histogram<u64>> {
        self.rows.get(name).map(Values::histogram)
    }
}
