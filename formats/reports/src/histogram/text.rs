//! Writes histograms as text: for people, as JSON, and in the formats of HdrHistogram.

use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use beamline_formats::profile::View;
use beamline_formats::ring::Losses;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use serde::Serialize;

use super::{By, Histograms, Of, Row};

/// Rows that are shown.
const ROWS: usize = 20;

/// The longest bar of the plot, in characters.
const BAR: u64 = 50;

/// Ranges of the plot for each doubling of the value.
const STEPS: u32 = 2;

/// Lines of a plot; where there would be more, a line is a doubling.
const LINES: usize = 24;

/// Steps of the percentile output in each half of the way that is left to 100 %.
const TICKS: u32 = 5;

/// Histograms with the losses of their recordings.
#[derive(Serialize)]
struct Json<'a> {
    of: Of,
    by: By,
    unit: &'static str,
    recordings: &'a [Losses],
    open: u64,
    all: Row,
    rows: Vec<Row>,
}

/// Columns of numbers: their heads, and the value of a row.
type Number = (&'static str, fn(&Row) -> u64);

const NUMBERS: [Number; 6] = [
    ("50 %", |row| row.p50),
    ("90 %", |row| row.p90),
    ("99 %", |row| row.p99),
    ("99.9 %", |row| row.p99_9),
    ("99.99 %", |row| row.p99_99),
    ("MAX", |row| row.max),
];

/// A terminal with fewer columns than this has no room for all percentiles beside the names.
const WIDE: usize = 100;

/// The table of percentiles on a terminal, or in a file.
struct Table {
    view: View,
}

impl Table {
    fn numbers(&self) -> impl Iterator<Item = &'static Number> {
        let is_narrow = self.view.columns.is_some_and(|columns| columns < WIDE);
        let is_shown =
            move |(name, _): &&Number| !is_narrow || !matches!(*name, "99.9 %" | "99.99 %");
        NUMBERS.iter().filter(is_shown)
    }

    fn head(&self, f: &mut impl fmt::Write, what: &str) -> fmt::Result {
        write!(f, "{:>10}", "COUNT")?;
        for (name, _) in self.numbers() {
            write!(f, " {name:>10}")?;
        }
        writeln!(f, "  {what}")
    }

    fn line(&self, f: &mut impl fmt::Write, of: Of, row: &Row) -> fmt::Result {
        write!(f, "{:>10}", row.count)?;
        let mut before = 12;
        for (_, value) in self.numbers() {
            write!(f, " {:>10}", of.text(value(row)))?;
            before += 11;
        }
        writeln!(f, "  {}", self.view.cut(&row.name, before))
    }
}

/// The plot's range that a value is in, and the least value of a range.
fn range_of(value: u64) -> u32 {
    let bits = value.max(1).ilog2();
    let half = u64::from(bits > 0) << bits.saturating_sub(1);
    STEPS * bits + u32::from(bits > 0 && value & half != 0)
}

fn start_of(range: u32) -> u64 {
    let bits = range / STEPS;
    let low = 1_u64 << bits;
    if range.is_multiple_of(STEPS) {
        low
    } else {
        low + low / 2
    }
}

/// How many values there are in each range: a bar for each.
fn plot(f: &mut impl fmt::Write, of: Of, histogram: &Histogram<u64>) -> fmt::Result {
    let mut counts: Vec<u64> = vec![0; 64 * STEPS as usize];
    for value in histogram.iter_recorded() {
        let at = range_of(value.value_iterated_to()) as usize;
        counts[at] += value.count_since_last_iteration();
    }
    let ends = |counts: &[u64]| {
        let first = counts.iter().position(|count| *count > 0).unwrap_or(0);
        let last = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
        (first, last)
    };
    let (first, last) = ends(&counts);
    if last - first >= LINES {
        for pair in counts.chunks_exact_mut(STEPS as usize) {
            pair[0] = pair.iter().sum();
            pair[1..].fill(0);
        }
    }
    let step = if last - first >= LINES {
        STEPS as usize
    } else {
        1
    };
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let (first, last) = ends(&counts);
    for (at, count) in counts
        .iter()
        .enumerate()
        .take(last + 1)
        .skip(first)
        .step_by(step)
    {
        let from = match (of, at) {
            // Most calls allocate nothing.
            (Of::Words, 0) => 0,
            _ => start_of(u32::try_from(at).unwrap_or(0)),
        };
        let eighths = u128::from(*count) * u128::from(BAR * 8) / u128::from(most);
        let eighths = usize::try_from(eighths).unwrap_or(0);
        let mut bar = "█".repeat(eighths / 8);
        bar.extend(" ▏▎▍▌▋▊▉".chars().nth(eighths % 8).filter(|c| *c != ' '));
        if *count > 0 && eighths == 0 {
            bar.push('▏');
        }
        let line = format!("{:>12} │{bar} {count}", of.text(from));
        writeln!(
            f,
            "{}",
            if *count == 0 {
                line.trim_end_matches(" 0")
            } else {
                &line
            }
        )?;
    }
    Ok(())
}

impl fmt::Display for Histograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_text(f, None)
    }
}

impl Histograms {
    /// As text for a terminal of `columns` columns; with none, for a file.
    #[must_use]
    pub fn to_text(&self, columns: Option<usize>) -> String {
        let mut text = String::new();
        // A String takes all.
        let _ = self.write_text(&mut text, columns);
        text
    }

    fn write_text(&self, f: &mut impl fmt::Write, columns: Option<usize>) -> fmt::Result {
        let table = Table {
            view: View {
                columns,
                ..View::default()
            },
        };
        for losses in &self.losses {
            write!(f, "{losses}")?;
        }
        if self.open > 0 {
            let are = if self.open == 1 { "is" } else { "are" };
            writeln!(f, "{} had not ended, and {are} left out.", self.open)?;
        }
        let rows = self.rows();
        let all = self.all();
        writeln!(f, "\n{}", self.of.title())?;
        table.head(f, &self.by.name().to_uppercase())?;
        for row in rows.iter().take(ROWS) {
            table.line(f, self.of, row)?;
        }
        if rows.len() > ROWS {
            let before = 10 + 11 * table.numbers().count();
            writeln!(f, "{:>before$}  and {} more", "", rows.len() - ROWS)?;
        }
        if rows.len() > 1 {
            table.line(f, self.of, &Row::of("all", &all))?;
        }
        let name = match rows.as_slice() {
            [row] => &row.name,
            _ => "all",
        };
        let what = match self.of {
            Of::Words => "allocated at least this many words",
            _ => "took at least this long",
        };
        writeln!(
            f,
            "\nNumber that {what}, and less than the next line: {name}"
        )?;
        plot(f, self.of, &all.histogram())
    }
}

impl Histograms {
    /// Writes them as JSON: times are in nanoseconds, words are words.
    ///
    /// # Errors
    /// What `out` returns.
    pub fn write_json<W: Write>(&self, mut out: W) -> io::Result<()> {
        let json = Json {
            of: self.of,
            by: self.by,
            unit: self.of.unit(),
            recordings: &self.losses,
            open: self.open,
            all: Row::of("all", &self.all()),
            rows: self.rows(),
        };
        serde_json::to_writer_pretty(&mut out, &json)?;
        out.write_all(b"\n")
    }

    /// Writes all values together as the percentile output of HdrHistogram: times in microseconds.
    ///
    /// # Errors
    /// What `out` returns.
    #[expect(clippy::cast_precision_loss, reason = "the format has three places")]
    pub fn write_hgrm<W: Write>(&self, mut out: W) -> io::Result<()> {
        let all = self.all().histogram();
        let scaled = |value: f64| match self.of {
            Of::Words => value,
            _ => value / 1000.0,
        };
        writeln!(
            out,
            "       Value     Percentile TotalCount 1/(1-Percentile)\n"
        )?;
        let mut total = 0;
        for value in all.iter_quantiles(TICKS) {
            total += value.count_since_last_iteration();
            let us = scaled(value.value_iterated_to().min(all.max()) as f64);
            let quantile = value.quantile_iterated_to();
            write!(out, "{us:12.3} {quantile:2.12} {total:10}")?;
            if quantile < 1.0 {
                write!(out, " {:14.2}", 1.0 / (1.0 - quantile))?;
            }
            writeln!(out)?;
        }
        writeln!(
            out,
            "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]",
            scaled(all.mean()),
            scaled(all.stdev())
        )?;
        writeln!(
            out,
            "#[Max     = {:12.3}, Total count    = {:12}]",
            scaled(all.max() as f64),
            all.len()
        )?;
        writeln!(
            out,
            "#[Buckets = {:12}, SubBuckets     = {:12}]",
            all.buckets(),
            2048
        )
    }

    /// Writes each row as an interval of an HdrHistogram log, with the row's name for its tag. Values are in
    /// nanoseconds.
    ///
    /// # Errors
    /// One line: what `out` returns, or a histogram too large for the format.
    pub(crate) fn write_log<W: Write>(
        &self,
        mut out: W,
        start: SystemTime,
        length: Duration,
    ) -> Result<(), String> {
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        builder
            .with_start_time(start)
            .with_base_time(start)
            // Whoever reads it is to show what is in it.
            .with_max_value_divisor(1.0);
        let mut log = builder
            .begin_log_with(&mut out, &mut serializer)
            .map_err(|e| e.to_string())?;
        for (name, values) in &self.rows {
            // A tag ends at a comma, a space or the end of the line.
            let tag: String = name
                .chars()
                .map(|c| {
                    if c == ',' || c.is_whitespace() {
                        '_'
                    } else {
                        c
                    }
                })
                .collect();
            let tag = Tag::new(&tag);
            let histogram = values.histogram();
            log.write_histogram(&histogram, Duration::ZERO, length, tag)
                .map_err(|e| format!("{e:?}"))?;
        }
        drop(log);
        out.flush().map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_each_other() {
        let mut last = 0;
        for value in 0..100_000 {
            let range = range_of(value);
            assert!(range >= last, "{value}");
            assert!(value == 0 || start_of(range) <= value, "{value}");
            assert!(range == 1 || value < start_of(range + 1).max(2), "{value}");
            last = range;
        }
        assert_eq!(start_of(range_of(u64::MAX)), 3 << 62);
    }
}
