//! Writes a comparison for people (a table, Markdown) and for programs (JSON, JUnit, annotations, benchmark-action).

use std::fmt::Write as _;

use serde_json::json;

use super::compare::{Change, Compared, Comparison, TimeChange, Verdict, growth};
use super::results::Results;

/// Functions that moved, listed of each workload; the rest is counted.
const MOVED: usize = 20;

/// What is told of a verdict.
fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "same",
        Verdict::Better => "better",
        Verdict::Allowed => "allowed",
        Verdict::Regression(_) => "REGRESSION",
    }
}

fn what(change: &Change) -> String {
    match &change.function {
        Some(function) => format!("{function} {}", change.metric.name()),
        None => change.metric.name().to_owned(),
    }
}

/// Groups of three digits: `1_234_567`.
fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

/// A row of a table: what, before, now, change, verdict.
type Row = [String; 5];

fn count_row(change: &Change) -> Row {
    let verdict = match &change.verdict {
        Verdict::Regression(why) => format!("REGRESSION: {why}"),
        other => word(other).to_owned(),
    };
    [
        what(change),
        number(change.base),
        number(change.new),
        growth(change.base, change.new),
        verdict,
    ]
}

fn time_row(time: &TimeChange) -> Row {
    let ms = |ns: u64| format!("{:.1} ms", ns as f64 / 1e6);
    let mut verdict = match &time.verdict {
        Verdict::Regression(why) if time.gates => format!("REGRESSION: {why}"),
        Verdict::Regression(why) => format!("slower: {why}"),
        other => word(other).to_owned(),
    };
    let _ = write!(verdict, " (p = {:.2})", time.p);
    if !time.gates {
        verdict.push_str(", advice only");
    }
    if !time.interleaved {
        verdict.push_str(", not measured in turns");
    }
    [
        "time, median".to_owned(),
        ms(time.base_ns),
        ms(time.new_ns),
        growth(time.base_ns, time.new_ns),
        verdict,
    ]
}

/// The rows of a workload, and how many functions are not among them.
fn rows(workload: &Compared) -> (Vec<Row>, usize) {
    let told = |change: &&Change| change.verdict != Verdict::Same;
    let moved: Vec<&Change> = workload.functions.iter().filter(told).collect();
    let listed = moved.iter().take(MOVED).copied();
    let mut rows: Vec<Row> = workload
        .totals
        .iter()
        .chain(listed)
        .map(count_row)
        .collect();
    rows.extend(workload.time.as_ref().map(time_row));
    (rows, moved.len().saturating_sub(MOVED))
}

/// The last line: yes or no.
#[must_use]
pub fn summary(comparison: &Comparison) -> String {
    let count: usize = comparison
        .workloads
        .iter()
        .map(|workload| workload.regressions().count())
        .sum();
    match count {
        0 => format!("{} workloads, no regression", comparison.workloads.len()),
        1 => "1 regression".to_owned(),
        n => format!("{n} regressions"),
    }
}

/// Tables for a terminal.
#[must_use]
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for remark in &comparison.remarks {
        let _ = writeln!(out, "note: {remark}");
    }
    for workload in &comparison.workloads {
        let (rows, more) = rows(workload);
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths = [width(0), width(1), width(2), width(3)];
        let _ = writeln!(out, "{}", workload.name);
        for [what, base, new, growth, verdict] in &rows {
            let [a, b, c, d] = widths;
            let _ = writeln!(
                out,
                "  {what:<a$}  {base:>b$} → {new:>c$}  {growth:>d$}  {verdict}"
            );
        }
        if more > 0 {
            let _ = writeln!(out, "  and {more} more counts of functions changed");
        }
        if !workload.outside.is_empty() {
            let _ = writeln!(out, "  from outside: {}", workload.outside.join(", "));
        }
    }
    let _ = writeln!(out, "{}", summary(comparison));
    out
}

/// Markdown for a pull request; `pictures` are files with a differential flame graph, by workload.
#[must_use]
pub fn markdown(comparison: &Comparison, pictures: &[(String, String)]) -> String {
    let mut out = String::new();
    let verdict = match comparison.is_regression() {
        true => "❌",
        false => "✅",
    };
    let _ = writeln!(out, "### {verdict} Beamline: {}\n", summary(comparison));
    for remark in &comparison.remarks {
        let _ = writeln!(out, "> {}\n", escaped(remark));
    }
    for workload in &comparison.workloads {
        let (rows, more) = rows(workload);
        let _ = writeln!(out, "#### {}\n", escaped(&workload.name));
        let _ = writeln!(out, "| what | base | now | change | |");
        let _ = writeln!(out, "|---|---:|---:|---:|---|");
        for [what, base, new, growth, verdict] in &rows {
            let bold = |text: &str| match text.strip_prefix("REGRESSION") {
                Some(rest) => format!("**regression**{}", escaped(rest)),
                None => escaped(text),
            };
            let (what, verdict) = (escaped(what), bold(verdict));
            let _ = writeln!(out, "| {what} | {base} | {new} | {growth} | {verdict} |");
        }
        let _ = writeln!(out);
        if more > 0 {
            let _ = writeln!(out, "{more} more counts of functions changed.\n");
        }
        if !workload.outside.is_empty() {
            let taken: Vec<String> = workload.outside.iter().map(|o| escaped(o)).collect();
            let _ = writeln!(out, "Taken from outside: {}.\n", taken.join(", "));
        }
        for (_, file) in pictures.iter().filter(|(name, _)| *name == workload.name) {
            let _ = writeln!(out, "[Differential flame graph]({file})\n");
        }
    }
    out
}

/// Characters with a meaning in Markdown's tables are told as they are.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '[' | ']' | '\\' | '~') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// One JSON object: everything that was compared.
#[must_use]
pub fn json(comparison: &Comparison) -> serde_json::Value {
    let reason = |verdict: &Verdict| match verdict {
        Verdict::Regression(why) => Some(why.clone()),
        _ => None,
    };
    let change = |change: &Change| {
        json!({
            "function": change.function,
            "metric": change.metric.name(),
            "base": change.base,
            "new": change.new,
            "verdict": word(&change.verdict).to_lowercase(),
            "reason": reason(&change.verdict),
        })
    };
    let time = |time: &TimeChange| {
        json!({
            "base_ns": time.base_ns,
            "new_ns": time.new_ns,
            "p": time.p,
            "interleaved": time.interleaved,
            "gates": time.gates,
            "verdict": word(&time.verdict).to_lowercase(),
            "reason": reason(&time.verdict),
        })
    };
    let workload = |workload: &Compared| {
        json!({
            "name": workload.name,
            "totals": workload.totals.iter().map(change).collect::<Vec<_>>(),
            "functions": workload.functions.iter().map(change).collect::<Vec<_>>(),
            "time": workload.time.as_ref().map(time),
            "outside": workload.outside,
        })
    };
    json!({
        "regression": comparison.is_regression(),
        "summary": summary(comparison),
        "remarks": comparison.remarks,
        "workloads": comparison.workloads.iter().map(workload).collect::<Vec<_>>(),
    })
}

/// JUnit's XML: a suite for each workload, a case for each count that a limit or a change speaks of.
#[must_use]
pub fn junit(comparison: &Comparison) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for workload in &comparison.workloads {
        let changes: Vec<&Change> = workload.totals.iter().chain(&workload.functions).collect();
        let mut cases: Vec<(String, Option<String>)> = changes
            .iter()
            .map(|change| (what(change), failure(&change.verdict, change)))
            .collect();
        if let Some(time) = &workload.time {
            let [_, base, new, growth, verdict] = time_row(time);
            let fails = time.gates && time.verdict.is_regression();
            let why = fails.then(|| format!("{base} → {new}, {growth}: {verdict}"));
            cases.push(("time".to_owned(), why));
        }
        let failures = cases.iter().filter(|(_, why)| why.is_some()).count();
        let name = xml(&workload.name);
        let _ = writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failures}\">",
            cases.len()
        );
        for (case, why) in &cases {
            let case = xml(case);
            let _ = match why {
                None => writeln!(out, "    <testcase classname=\"{name}\" name=\"{case}\"/>"),
                Some(why) => writeln!(
                    out,
                    "    <testcase classname=\"{name}\" name=\"{case}\"><failure message=\"{}\"/></testcase>",
                    xml(why)
                ),
            };
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn failure(verdict: &Verdict, change: &Change) -> Option<String> {
    match verdict {
        Verdict::Regression(why) => Some(format!("{} → {}: {why}", change.base, change.new)),
        _ => None,
    }
}

/// Text in an attribute; what XML does not allow at all is shown as a replacement.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => out.push(' '),
            c if u32::from(c) < 0x20 => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// GitHub's workflow commands: an error for each regression, in `file`.
#[must_use]
pub fn github(comparison: &Comparison, file: &str) -> String {
    let mut out = String::new();
    // Source: "Workflow commands for GitHub Actions": what is escaped in data and in properties.
    let data = |text: &str| {
        let text = text.replace('%', "%25").replace('\r', "%0D");
        text.replace('\n', "%0A")
    };
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    for workload in &comparison.workloads {
        for regression in workload.regressions() {
            let _ = writeln!(
                out,
                "::error file={},title={}::{}",
                property(file),
                property(&format!("{} regressed", workload.name)),
                data(&regression)
            );
        }
    }
    for remark in &comparison.remarks {
        let _ = writeln!(out, "::notice file={}::{}", property(file), data(remark));
    }
    out
}

/// What benchmark-action reads with its tool `customSmallerIsBetter`: each metric of each workload.
#[must_use]
pub fn benchmark_action(results: &Results) -> serde_json::Value {
    let mut rows = Vec::new();
    for workload in &results.workloads {
        for (metric, value) in workload.totals.metrics() {
            rows.push(json!({
                "name": format!("{}: {metric}", workload.name),
                "unit": metric,
                "value": value,
            }));
        }
        let runs = &workload.times.runs_ns;
        if let (Some(least), Some(most)) = (runs.iter().min(), runs.iter().max()) {
            rows.push(json!({
                "name": format!("{}: time", workload.name),
                "unit": "ms",
                "value": *least as f64 / 1e6,
                "range": format!("{:.1}", (most - least) as f64 / 1e6),
                "extra": format!("the least of {} runs", runs.len()),
            }));
        }
    }
    json!(rows)
}
