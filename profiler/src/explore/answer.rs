//! The report at the end of an exploration.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use beamline_formats::name::{self, thousands};
use serde::Serialize;

use super::finding::{Finding, Kind};
use super::search::Outcome;
use crate::report;

/// Prints what an exploration did and what it found.
pub(super) fn table(what: &str, outcome: &Outcome, files: &[PathBuf]) -> Result<(), String> {
    let mut out = String::new();
    let time = name::time(u64::try_from(outcome.time.as_nanos()).unwrap_or(u64::MAX));
    let impossible = match outcome.impossible {
        0 => String::new(),
        some => format!(", of which {} were impossible", thousands(some)),
    };
    let _ = writeln!(
        out,
        "{what}: {} orders in {} runs{impossible}, in {time}: {}",
        thousands(outcome.orders),
        thousands(outcome.runs),
        match (outcome.complete, outcome.by_chance) {
            (true, _) => "all there are",
            (false, true) => "by chance",
            (false, false) => "not all there are",
        }
    );
    if let Some(left) = outcome.left {
        let _ = writeln!(out, "about {} orders are left (estimate)", rounded(left));
    }
    if outcome.verified > 0 {
        let _ = writeln!(
            out,
            "verified by {} runs by chance",
            thousands(outcome.verified)
        );
    }
    if !outcome.beyond.is_empty() {
        let beyond: Vec<&str> = outcome.beyond.iter().map(String::as_str).collect();
        let _ = writeln!(out, "not explored: {}", beyond.join("; "));
    }
    if outcome.findings.is_empty() {
        let _ = writeln!(out, "nothing found");
    }
    for (finding, file) in outcome.findings.iter().zip(files) {
        let file = file.display();
        let _ = writeln!(out, "{file}: {finding}");
    }
    if let Some(first) = files.first() {
        let _ = writeln!(out, "see one with: beamline replay {}", first.display());
    }
    report::print(&out)
}

/// An estimate has two digits.
fn rounded(number: u64) -> String {
    let digits = number.checked_ilog10().unwrap_or(0);
    let unit = 10u64.pow(digits.saturating_sub(1));
    thousands((number / unit).saturating_mul(unit))
}

#[derive(Serialize)]
struct File<'a> {
    schema: &'static str,
    version: u32,
    runs: u64,
    by_chance: bool,
    orders: u64,
    impossible: u64,
    strays: u64,
    complete: bool,
    orders_left: Option<u64>,
    not_explored: Vec<&'a str>,
    time_ns: u64,
    findings: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    kind: Kind,
    process: &'a str,
    known_as: &'a str,
    reason: &'a str,
    prefix: String,
}

/// What came of an exploration, as JSON: `docs/internals/ExploreJson.md`.
pub(super) fn json(outcome: &Outcome, files: &[PathBuf]) -> String {
    let findings = outcome.findings.iter().zip(files);
    let file = File {
        schema: "beamline-explore",
        version: 1,
        runs: outcome.runs,
        by_chance: outcome.by_chance,
        orders: outcome.orders,
        impossible: outcome.impossible,
        strays: outcome.strays,
        complete: outcome.complete,
        orders_left: outcome.left,
        not_explored: outcome.beyond.iter().map(String::as_str).collect(),
        time_ns: u64::try_from(outcome.time.as_nanos()).unwrap_or(u64::MAX),
        findings: findings.map(|(finding, file)| of(finding, file)).collect(),
    };
    // Nothing in it can fail to be JSON.
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

fn of<'a>(finding: &'a Finding, file: &Path) -> FindingJson<'a> {
    FindingJson {
        kind: finding.kind,
        process: &finding.process,
        known_as: &finding.known_as,
        reason: &finding.reason,
        prefix: file.display().to_string(),
    }
}
