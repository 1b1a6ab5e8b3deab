//! Writes a comparison for people (a table, Markdown) and for programs (JSON, JUnit, annotations, benchmark-action).

use std::fmt::Write as _;

use beamline_formats::name;
use beamline_formats::profile::View;
use serde_json::json;

use super::change::{Change, Verdict};
use super::compare::{Compared, Comparison, TimeChange, growth};
use super::missing::{Kind, Note};
use super::picture::Picture;
use super::results::Results;

/// Functions that moved, listed of each workload; the rest is counted.
const MOVED: usize = 20;

/// The word for a verdict.
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
pub(super) fn number(n: u64) -> String {
    name::grouped(n, '_')
}

/// A row of a table: what, before, now, change, verdict.
type Row = [String; 5];

fn count_row(change: &Change) -> Row {
    let verdict = match (&change.verdict, &change.cause) {
        (Verdict::Regression(why), None) => format!("REGRESSION: {why}"),
        (Verdict::Regression(why), Some(cause)) => format!("follows from {cause}: {why}"),
        (other, _) => word(other).to_owned(),
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

/// The verdict that a note stands for.
fn note_verdict(note: &Note) -> String {
    let kind = note.kind.name();
    match (note.kind, note.fails) {
        (Kind::Failed, _) => format!("FAILED: {}", note.why),
        (_, true) => format!("NOT COMPARED: {kind}: {}", note.why),
        (_, false) => format!("{kind}: {}", note.why),
    }
}

fn note_row(note: &Note) -> Row {
    let none = String::new;
    [
        note.what.clone(),
        none(),
        none(),
        none(),
        note_verdict(note),
    ]
}

/// The rows of a workload, and how many functions are not among them.
fn rows(workload: &Compared) -> (Vec<Row>, usize) {
    let told = |change: &&Change| change.verdict != Verdict::Same;
    let moved: Vec<&Change> = workload.functions.iter().filter(told).collect();
    let listed = moved.iter().take(MOVED).copied();
    let mut rows: Vec<Row> = workload.notes.iter().map(note_row).collect();
    rows.extend(workload.totals.iter().chain(listed).map(count_row));
    rows.extend(workload.time.as_ref().map(time_row));
    (rows, moved.len().saturating_sub(MOVED))
}

/// A number of things, in English.
fn count(n: usize, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    }
}

/// The last line: yes or no.
#[must_use]
pub fn summary(comparison: &Comparison) -> String {
    let workloads = &comparison.workloads;
    let regressions: usize = workloads.iter().map(|w| w.regressions().count()).sum();
    let (failed, uncompared) = (comparison.failed(), comparison.uncompared());
    let mut parts = Vec::new();
    if regressions > 0 {
        parts.push(count(regressions, "regression"));
    }
    if uncompared > 0 {
        parts.push(format!("{uncompared} not compared"));
    }
    if failed > 0 {
        parts.push(format!("{} failed", count(failed, "workload")));
    }
    if parts.is_empty() {
        parts.push(format!(
            "{}, no regression",
            count(workloads.len(), "workload")
        ));
    }
    let is_unsteady = |workload: &&Compared| {
        let mut notes = workload.notes.iter();
        notes.any(|note| note.kind == Kind::Unsteady)
    };
    let unsteady = workloads.iter().filter(is_unsteady).count();
    if unsteady > 0 {
        // What it does more may be chance.
        parts.push(format!("{} unsteady", count(unsteady, "workload")));
    }
    parts.join(", ")
}

/// Tables, for a terminal with `columns` columns or for none.
#[must_use]
pub fn text(comparison: &Comparison, columns: Option<usize>) -> String {
    let view = View {
        columns,
        ..View::default()
    };
    let mut out = String::new();
    for remark in &comparison.remarks {
        let _ = writeln!(out, "note: {remark}");
    }
    for note in &comparison.notes {
        let _ = writeln!(out, "{}  {}", note.what, note_verdict(note));
    }
    for workload in &comparison.workloads {
        text_of(&mut out, workload, &view);
    }
    let _ = writeln!(out, "{}", summary(comparison));
    out
}

fn text_of(out: &mut String, workload: &Compared, view: &View) {
    let (rows, more) = rows(workload);
    let width = |column: usize| {
        let cells = rows.iter().filter(|row| !row[1].is_empty());
        let cells = cells.map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let (b, c, d) = (width(1), width(2), width(3));
    let others = b + c + d + "    →    ".chars().count() + "  allowed".len();
    let names = rows.iter().map(|row| view.cut(&row[0], others));
    let names: Vec<String> = names.collect();
    let a = names.iter().map(|name| name.chars().count()).max();
    let a = a.unwrap_or(0);
    let _ = writeln!(out, "{}", workload.name);
    for (what, [_, base, new, growth, verdict]) in names.iter().zip(&rows) {
        let line = match base.is_empty() {
            true => format!("  {what:<a$}"),
            false => format!("  {what:<a$}  {base:>b$} → {new:>c$}  {growth:>d$}"),
        };
        let fits = line.chars().count() + 2 + verdict.chars().count();
        let _ = match view.columns.is_some_and(|columns| columns < fits) {
            true => writeln!(out, "{}\n    {verdict}", line.trim_end()),
            false => writeln!(out, "{line}  {verdict}"),
        };
    }
    if more > 0 {
        let _ = writeln!(out, "  and {more} more counts of functions changed");
    }
    if !workload.outside.is_empty() {
        let _ = writeln!(out, "  from outside: {}", workload.outside.join(", "));
    }
}

/// Markdown for a pull request, with the pictures of its workloads.
#[must_use]
pub fn markdown(comparison: &Comparison, pictures: &[Picture]) -> String {
    let mut out = String::new();
    let verdict = match comparison.is_regression() {
        true => "❌",
        false => "✅",
    };
    let _ = writeln!(out, "### {verdict} Beamline: {}\n", summary(comparison));
    for remark in &comparison.remarks {
        let _ = writeln!(out, "> {}\n", escaped(remark));
    }
    for note in &comparison.notes {
        let _ = writeln!(
            out,
            "- {}: {}",
            escaped(&note.what),
            bold(&note_verdict(note))
        );
    }
    if !comparison.notes.is_empty() {
        out.push('\n');
    }
    for workload in &comparison.workloads {
        let mut pictures = pictures.iter();
        let picture = pictures.find(|picture| picture.workload == workload.name);
        markdown_of(&mut out, workload, picture);
    }
    out
}

/// A verdict, with what fails in bold.
fn bold(verdict: &str) -> String {
    for (word, shown) in [
        ("REGRESSION", "**regression**"),
        ("NOT COMPARED", "**not compared**"),
        ("FAILED", "**failed**"),
    ] {
        if let Some(rest) = verdict.strip_prefix(word) {
            return format!("{shown}{}", escaped(rest));
        }
    }
    escaped(verdict)
}

fn markdown_of(out: &mut String, workload: &Compared, picture: Option<&Picture>) {
    let (rows, more) = rows(workload);
    let _ = writeln!(out, "#### {}\n", escaped(&workload.name));
    let _ = writeln!(out, "| what | base | now | change | |");
    let _ = writeln!(out, "|---|---:|---:|---:|---|");
    for [what, base, new, growth, verdict] in &rows {
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
    let Some(picture) = picture else { return };
    let unit = picture.width.title().to_lowercase();
    if !picture.paths.is_empty() {
        let _ = writeln!(
            out,
            "<details><summary>Call paths whose own {unit} changed most</summary>\n\n{}\n</details>\n",
            picture.mermaid()
        );
    }
    let _ = writeln!(
        out,
        "[Differential flame graph of {unit}]({})\n",
        picture.link
    );
}

/// The text, in which characters with a meaning in Markdown's tables stand for themselves.
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
            "cause": change.cause,
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
    let note = |note: &Note| {
        json!({
            "kind": note.kind,
            "what": note.what,
            "why": note.why,
            "fails": note.fails,
        })
    };
    let workload = |workload: &Compared| {
        json!({
            "name": workload.name,
            "notes": workload.notes.iter().map(note).collect::<Vec<_>>(),
            "totals": workload.totals.iter().map(change).collect::<Vec<_>>(),
            "functions": workload.functions.iter().map(change).collect::<Vec<_>>(),
            "time": workload.time.as_ref().map(time),
            "outside": workload.outside,
        })
    };
    json!({
        "regression": comparison.is_regression(),
        "summary": summary(comparison),
        "failed": comparison.failed(),
        "remarks": comparison.remarks,
        "notes": comparison.notes.iter().map(note).collect::<Vec<_>>(),
        "workloads": comparison.workloads.iter().map(workload).collect::<Vec<_>>(),
    })
}

/// JUnit's XML: a suite for each workload, a case for each count that a limit or a change speaks of.
#[must_use]
pub fn junit(comparison: &Comparison) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for workload in &comparison.workloads {
        suite(&mut out, &workload.name, &cases(workload));
    }
    if !comparison.notes.is_empty() {
        let cases: Vec<Case> = comparison.notes.iter().map(note_case).collect();
        suite(&mut out, "limits", &cases);
    }
    out.push_str("</testsuites>\n");
    out
}

/// A test case: its name, and the element and the text of what failed.
type Case = (String, Option<(&'static str, String)>);

fn note_case(note: &Note) -> Case {
    let element = match note.kind {
        Kind::Failed => "error",
        _ => "failure",
    };
    let name = match note.kind {
        Kind::Failed => format!("{} runs", note.what),
        kind => format!("{} {}", note.what, kind.name()),
    };
    (name, note.fails.then(|| (element, note.why.clone())))
}

fn cases(workload: &Compared) -> Vec<Case> {
    let mut cases: Vec<Case> = workload.notes.iter().map(note_case).collect();
    let changes = workload.totals.iter().chain(&workload.functions);
    cases.extend(changes.map(|change| {
        let why = failure(&change.verdict, change);
        (what(change), why.map(|why| ("failure", why)))
    }));
    if let Some(time) = &workload.time {
        let [_, base, new, growth, verdict] = time_row(time);
        let fails = time.gates && time.verdict.is_regression();
        let why = fails.then(|| format!("{base} → {new}, {growth}: {verdict}"));
        cases.push(("time".to_owned(), why.map(|why| ("failure", why))));
    }
    cases
}

fn suite(out: &mut String, name: &str, cases: &[Case]) {
    let count = |element: &str| {
        let failed = cases.iter().filter_map(|(_, why)| why.as_ref());
        failed.filter(|(of, _)| *of == element).count()
    };
    let (failures, errors) = (count("failure"), count("error"));
    let name = xml(name);
    let _ = writeln!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\">",
        cases.len()
    );
    for (case, why) in cases {
        let case = xml(case);
        let _ = match why {
            None => writeln!(out, "    <testcase classname=\"{name}\" name=\"{case}\"/>"),
            Some((element, why)) => writeln!(
                out,
                "    <testcase classname=\"{name}\" name=\"{case}\"><{element} message=\"{}\"/></testcase>",
                xml(why)
            ),
        };
    }
    out.push_str("  </testsuite>\n");
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
        for failure in workload.failures() {
            let _ = writeln!(
                out,
                "::error file={},title={}::{}",
                property(file),
                property(&format!("{} regressed", workload.name)),
                data(&failure)
            );
        }
    }
    let notes = comparison.workloads.iter().flat_map(|w| &w.notes);
    let warnings = notes
        .filter(|note| !note.fails)
        .map(|note| ("warning", note));
    let common = comparison.notes.iter().map(|note| match note.fails {
        true => ("error", note),
        false => ("warning", note),
    });
    for (level, note) in common.chain(warnings) {
        let _ = writeln!(
            out,
            "::{level} file={}::{}",
            property(file),
            data(&note.told())
        );
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
    let ran = results.workloads.iter();
    for workload in ran.filter(|workload| workload.failure.is_none()) {
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
