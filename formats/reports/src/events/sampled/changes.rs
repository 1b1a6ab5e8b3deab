//! What is different between the samples of two runs: the shares of functions that moved by more than chance explains.

use std::collections::BTreeMap;
use std::fmt;

use beamline_formats::name;
use beamline_formats::profile::View;
use serde::Serialize;

use super::{Row, Sampled, Share};

/// A change counts where it is more than this many of its error bars: of so many functions, some are beyond one by chance.
const BARS: f64 = 2.0;

/// The share of a function before and after.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Before.
    pub before: Share,
    /// After.
    pub after: Share,
    /// The difference, in percent of all samples.
    pub change: f64,
    /// In 95 of 100 pairs of runs the true difference is no farther from that than this.
    pub plus_minus: f64,
    /// It is more than chance explains.
    pub is_sure: bool,
}

impl Moved {
    fn of([before, after]: [Share; 2]) -> Moved {
        let change = after.percent - before.percent;
        let plus_minus = before.plus_minus.hypot(after.plus_minus);
        Moved {
            before,
            after,
            change,
            plus_minus,
            is_sure: change.abs() > BARS * plus_minus,
        }
    }
}

/// A function of one of the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Its name.
    pub function: String,
    /// The share of samples in which it was the newest.
    pub own: Moved,
    /// The share in which it, or what it called, was.
    pub total: Moved,
}

/// All functions of two versions.
#[derive(Clone, Debug, Serialize)]
pub struct Changes {
    /// Samples before and after, of all runs of each.
    pub samples: [u64; 2],
    /// What these stand for: the time that threads ran, in nanoseconds.
    pub ran_ns: [u64; 2],
    /// In order of names.
    pub functions: Vec<Change>,
}

/// The samples of each function: as the newest, and altogether.
type Seen<'s> = BTreeMap<&'s str, [[u64; 2]; 2]>;

fn add<'s>(seen: &mut Seen<'s>, rows: &'s [Row], side: usize) {
    for row in rows {
        let [own, total] = seen.entry(&row.what).or_default();
        own[side] += row.samples;
        total[side] += row.total.map_or(row.samples, |total| total.samples);
    }
}

impl Changes {
    /// From the runs of one version to those of another.
    #[must_use]
    pub fn of(sides: [&[Sampled]; 2]) -> Changes {
        let mut seen = Seen::new();
        for (side, runs) in sides.into_iter().enumerate() {
            runs.iter()
                .for_each(|run| add(&mut seen, &run.functions, side));
        }
        let samples = sides.map(|runs| runs.iter().map(|run| run.samples).sum());
        let ran = |run: &Sampled| run.samples.saturating_mul(run.sampling.period_ns());
        let shares = |counts: [u64; 2]| {
            let shares = [0, 1].map(|side| Share::of(counts[side], samples[side]));
            Moved::of(shares)
        };
        let functions = seen.into_iter().map(|(function, [own, total])| Change {
            function: function.to_owned(),
            own: shares(own),
            total: shares(total),
        });
        Changes {
            samples,
            ran_ns: sides.map(|runs| runs.iter().map(ran).sum()),
            functions: functions.collect(),
        }
    }

    /// As text: at most so many functions in each table.
    #[must_use]
    pub fn shown<'s>(&'s self, view: &'s View) -> impl fmt::Display + 's {
        Shown {
            changes: self,
            view,
        }
    }
}

/// Of a change the share that a table is about.
type Which = fn(&Change) -> &Moved;

struct Shown<'s> {
    changes: &'s Changes,
    view: &'s View,
}

impl Shown<'_> {
    fn write_table(&self, f: &mut fmt::Formatter<'_>, title: &str, which: Which) -> fmt::Result {
        let mut rows: Vec<&Change> = self.changes.functions.iter().collect();
        rows.retain(|row| which(row).is_sure);
        rows.sort_by(|a, b| which(b).change.abs().total_cmp(&which(a).change.abs()));
        writeln!(f, "\n{title}")?;
        if rows.is_empty() {
            return writeln!(f, "  No difference is more than chance explains.");
        }
        writeln!(f, " BEFORE         AFTER        CHANGE         FUNCTION")?;
        let shown = self.view.top.unwrap_or(rows.len());
        for row in rows.iter().take(shown) {
            let of = which(row);
            super::share(f, of.before.percent, of.before.plus_minus)?;
            super::share(f, of.after.percent, of.after.plus_minus)?;
            write!(f, " {:>+6.1} ±{:<4.1} ", of.change, of.plus_minus)?;
            writeln!(f, " {}", self.view.cut(&row.function, 43))?;
        }
        match rows.len().saturating_sub(shown) {
            0 => Ok(()),
            more => writeln!(f, "  {more} more; --top all shows them"),
        }
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (side, name) in ["Before", "After"].into_iter().enumerate() {
            let samples = name::thousands(self.changes.samples[side]);
            let ran = name::time(self.changes.ran_ns[side]);
            writeln!(f, "{name:<7} {samples} samples, which stand for {ran}")?;
        }
        writeln!(
            f,
            "Shares are percent of all samples; ± is the 95 % error bar. Nobody counted calls."
        )?;
        self.write_table(f, "Own share", |change| &change.own)?;
        self.write_table(f, "Share with all that was called", |change| &change.total)
    }
}
