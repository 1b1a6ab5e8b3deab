//! What a suite did, against what OTP does and what we expect of ourselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::runner::{Case, Outcome, Status};

/// Cases by name (`SUITE:GROUP/CASE`), as OTP ends them under our runner.
pub(super) struct Table {
    cases: BTreeMap<String, Status>,
}

impl Table {
    /// Reads the `CASE` lines of `otp29.txt`.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut cases = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with("CASE ")) {
            let words: Vec<_> = line.split_whitespace().collect();
            let status = words.get(2).and_then(|word| Status::parse(word));
            let status = status.with_context(|| format!("no status in `{line}`"))?;
            cases.insert(words[1].to_owned(), status);
        }
        Ok(Self { cases })
    }

    /// Does the table have cases of this suite?
    #[cfg(test)]
    pub(super) fn has_suite(&self, module: &str) -> bool {
        self.of(module).next().is_some()
    }

    /// How OTP ends this case.
    pub(super) fn status(&self, case: &str) -> Option<Status> {
        self.cases.get(case).copied()
    }

    /// The names of the cases of a suite that are not skipped.
    pub(super) fn cases_run(&self, module: &str) -> Vec<String> {
        let run = self
            .of(module)
            .filter(|(_, status)| *status != Status::Skip);
        run.map(|(name, _)| name.to_owned()).collect()
    }

    fn of<'a>(&'a self, module: &'a str) -> impl Iterator<Item = (&'a str, Status)> {
        let cases = self
            .cases
            .iter()
            .map(|(name, status)| (name.as_str(), *status));
        cases.filter(move |(name, _)| name.split(':').next() == Some(module))
    }
}

/// The cases that we do not pass although OTP does, with the reasons.
pub(super) struct Expected {
    reasons: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    expected: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    suite: String,
    cases: Vec<String>,
    reason: String,
    /// The engine that they fail on, if they pass on others.
    engine: Option<String>,
}

impl Expected {
    /// Reads `expected_failures.toml`, as it is where this engine runs the cases.
    pub(super) fn parse(text: &str, engine: &str) -> Result<Self> {
        let file: File = toml::from_str(text).context("expected_failures.toml")?;
        let mut reasons = BTreeMap::new();
        for group in file.expected {
            if group.reason.trim().is_empty() {
                bail!(
                    "expected_failures.toml: no reason for {} {:?}",
                    group.suite,
                    group.cases
                );
            }
            if group.engine.is_some_and(|other| other != engine) {
                continue;
            }
            for case in group.cases {
                let name = format!("{}:{case}", group.suite);
                if reasons.insert(name.clone(), group.reason.clone()).is_some() {
                    bail!("expected_failures.toml: {name} is there twice");
                }
            }
        }
        Ok(Self { reasons })
    }

    /// The names of all cases in the file.
    #[cfg(test)]
    pub(super) fn cases(&self) -> impl Iterator<Item = &str> {
        self.reasons.keys().map(String::as_str)
    }
}

/// Cases counted by how they end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    pass: usize,
    /// Failures, time-outs and crashes.
    fail: usize,
    skip: usize,
}

impl Counts {
    fn of(statuses: impl Iterator<Item = Status>) -> Self {
        let mut counts = Self::default();
        for status in statuses {
            match status {
                Status::Pass => counts.pass += 1,
                Status::Skip => counts.skip += 1,
                Status::Fail | Status::Timeout | Status::Crash => counts.fail += 1,
            }
        }
        counts
    }
}

/// One suite, judged.
pub(super) struct Verdict {
    module: String,
    otp: Counts,
    ours: Counts,
    /// Cases that `expected_failures.toml` explains.
    expected: usize,
    /// Cases that did what is not expected.
    pub(super) unexpected: Vec<Surprise>,
    /// Cases that did what is expected at the second try only: a line each.
    unsteady: Vec<String>,
    took: Duration,
}

/// A case that did what is not expected.
pub(super) struct Surprise {
    case: String,
    /// How the case ended, if it ran.
    status: Option<Status>,
    /// What was expected, and what came.
    text: String,
}

impl Verdict {
    /// One line about the suite.
    pub(super) fn line(&self) -> String {
        let Self { ours, otp, .. } = self;
        let verdict = match (self.unexpected.is_empty(), self.unsteady.is_empty()) {
            (true, true) => "ok",
            (true, false) => "ok at the second try",
            (false, _) => "NOT AS EXPECTED",
        };
        format!(
            "{}: {} of {} passed, {verdict}",
            self.module, ours.pass, otp.pass
        )
    }

    /// The cases that failed or took too long against expectation. Many cases of OTP's suites wait a fixed time, or
    /// take the order of two processes for granted, and fail now and then on a busy machine: a second try tells. A
    /// crash of the runtime gets none.
    pub(super) fn worth_a_second_try(&self) -> Vec<String> {
        let failed =
            |surprise: &&Surprise| matches!(surprise.status, Some(Status::Fail | Status::Timeout));
        let failed = self.unexpected.iter().filter(failed);
        failed.map(|surprise| surprise.case.clone()).collect()
    }
}

impl Surprise {
    fn of(case: &Case, between: &str, text: &str) -> Self {
        Self {
            case: case.name.clone(),
            status: Some(case.status),
            text: format!("{} {}{between}{text}", case.name, case.status.word()),
        }
    }
}

/// Compares a suite's cases with OTP's and with what is expected.
pub(super) fn judge(
    module: &str,
    outcome: &Outcome,
    table: &Table,
    expected: &Expected,
) -> Verdict {
    let mut unexpected = Vec::new();
    let mut explained = 0;
    let mut seen = BTreeSet::new();
    for case in &outcome.cases {
        seen.insert(case.name.as_str());
        let otp = table.status(&case.name);
        // OTP's failures under the runner are the runner's; passing those is no surprise.
        let as_otp = case.status == Status::Pass
            || otp.is_some_and(|otp| {
                otp != Status::Pass && (otp == Status::Skip) == (case.status == Status::Skip)
            });
        match (as_otp, expected.reasons.get(&case.name)) {
            (true, None) => {}
            (false, Some(_)) => explained += 1,
            (true, Some(reason)) => {
                let text = format!("but it is expected not to: {reason}");
                unexpected.push(Surprise::of(case, ", ", &text));
            }
            (false, None) => {
                let otp = otp.map_or("unknown", Status::word);
                let text = format!("(OTP: {otp}): {}", case.why);
                unexpected.push(Surprise::of(case, " ", &text));
            }
        }
    }
    for (name, otp) in table.of(module).filter(|(name, _)| !seen.contains(name)) {
        match expected.reasons.get(name) {
            Some(_) => explained += 1,
            None => unexpected.push(Surprise {
                case: name.to_owned(),
                status: None,
                text: format!("{name} was not run (OTP: {})", otp.word()),
            }),
        }
    }
    Verdict {
        module: module.to_owned(),
        otp: Counts::of(table.of(module).map(|(_, status)| status)),
        ours: Counts::of(outcome.cases.iter().map(|case| case.status)),
        expected: explained,
        unexpected,
        unsteady: outcome.unsteady.clone(),
        took: outcome.took,
    }
}

/// The table of all suites, then the cases that did what is not expected.
pub(super) fn render(verdicts: &[Verdict]) -> String {
    let mut text = String::from(
        "| suite | OTP pass | fail | skip | ours pass | fail | skip | explained | unexpected | seconds |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    let mut sum = (Counts::default(), Counts::default(), 0, 0);
    for verdict in verdicts {
        let Verdict {
            module,
            otp,
            ours,
            expected,
            unexpected,
            took,
            ..
        } = verdict;
        row(
            &mut text,
            module,
            (*otp, *ours, *expected, unexpected.len()),
            took.as_secs_f64(),
        );
        sum.0 = plus(sum.0, *otp);
        sum.1 = plus(sum.1, *ours);
        sum.2 += expected;
        sum.3 += unexpected.len();
    }
    let took: f64 = verdicts
        .iter()
        .map(|verdict| verdict.took.as_secs_f64())
        .sum();
    row(&mut text, "all", sum, took);
    for line in verdicts.iter().flat_map(|verdict| &verdict.unsteady) {
        let _ = writeln!(text, "passed at the second try: {line}");
    }
    for surprise in verdicts.iter().flat_map(|verdict| &verdict.unexpected) {
        let _ = writeln!(text, "unexpected: {}", surprise.text);
    }
    text
}

fn row(text: &mut String, name: &str, counts: (Counts, Counts, usize, usize), seconds: f64) {
    let (otp, ours, explained, unexpected) = counts;
    let _ = writeln!(
        text,
        "| {name} | {} | {} | {} | {} | {} | {} | {explained} | {unexpected} | {seconds:.1} |",
        otp.pass, otp.fail, otp.skip, ours.pass, ours.fail, ours.skip,
    );
}

fn plus(a: Counts, b: Counts) -> Counts {
    Counts {
        pass: a.pass + b.pass,
        fail: a.fail + b.fail,
        skip: a.skip + b.skip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unexpected(ours: &[(&str, Status)], otp: &str, expected: &str) -> Vec<String> {
        let verdict = judged(ours, otp, expected);
        let texts = verdict.unexpected.into_iter();
        texts.map(|surprise| surprise.text).collect()
    }

    fn judged(ours: &[(&str, Status)], otp: &str, expected: &str) -> Verdict {
        let cases = ours.iter().map(|&(name, status)| Case {
            name: format!("a_SUITE:{name}"),
            status,
            why: "-".to_owned(),
        });
        let outcome = Outcome {
            cases: cases.collect(),
            unsteady: Vec::new(),
            took: Duration::ZERO,
        };
        let (table, expected) = (
            Table::parse(otp).unwrap(),
            Expected::parse(expected, "jit").unwrap(),
        );
        judge("a_SUITE", &outcome, &table, &expected)
    }

    const OTP: &str =
        "CASE a_SUITE:x pass\nCASE a_SUITE:y skip\nCASE a_SUITE:z fail\nCASE b_SUITE:x pass\n";
    const X_FAILS: &str = "[[expected]]\nsuite = 'a_SUITE'\ncases = ['x']\nreason = 'no NIFs'\n";

    #[test]
    fn as_otp_is_as_expected() {
        let same = [
            ("x", Status::Pass),
            ("y", Status::Skip),
            ("z", Status::Timeout),
        ];
        assert!(unexpected(&same, OTP, "").is_empty());
        let better = [
            ("x", Status::Pass),
            ("y", Status::Pass),
            ("z", Status::Pass),
        ];
        assert!(unexpected(&better, OTP, "").is_empty());
    }

    #[test]
    fn failures_skips_and_missing_cases_need_an_explanation() {
        let rest = [("y", Status::Skip), ("z", Status::Fail)];
        for status in [Status::Fail, Status::Timeout, Status::Crash, Status::Skip] {
            let ours = [("x", status), rest[0], rest[1]];
            assert_eq!(unexpected(&ours, OTP, "").len(), 1, "{status:?}");
            assert!(unexpected(&ours, OTP, X_FAILS).is_empty(), "{status:?}");
        }
        assert_eq!(
            unexpected(&rest, OTP, ""),
            ["a_SUITE:x was not run (OTP: pass)"]
        );
        assert!(unexpected(&rest, OTP, X_FAILS).is_empty());
        let y_fails = [("x", Status::Pass), ("y", Status::Fail), rest[1]];
        assert_eq!(unexpected(&y_fails, OTP, "").len(), 1);
    }

    #[test]
    fn failures_get_a_second_try_and_crashes_none() {
        let rest = [("y", Status::Skip), ("z", Status::Fail)];
        for (status, again) in [
            (Status::Fail, true),
            (Status::Timeout, true),
            (Status::Crash, false),
            (Status::Skip, false),
            (Status::Pass, false),
        ] {
            let verdict = judged(&[("x", status), rest[0], rest[1]], OTP, "");
            let names: &[&str] = if again { &["a_SUITE:x"] } else { &[] };
            assert_eq!(verdict.worth_a_second_try(), names, "{status:?}");
        }
    }

    #[test]
    fn an_unexpected_pass_is_reported() {
        let same = [
            ("x", Status::Pass),
            ("y", Status::Skip),
            ("z", Status::Fail),
        ];
        assert_eq!(unexpected(&same, OTP, X_FAILS).len(), 1);
    }

    #[test]
    fn an_exception_without_a_reason_is_refused() {
        assert!(
            Expected::parse(
                "[[expected]]\nsuite = 'a'\ncases = ['x']\nreason = ' '\n",
                "jit"
            )
            .is_err()
        );
        assert!(Expected::parse(&format!("{X_FAILS}{X_FAILS}"), "jit").is_err());
    }

    #[test]
    fn an_exception_of_one_engine_is_none_on_another() {
        let text = format!("{X_FAILS}engine = 'interpreter'\n");
        let cases = |engine| Expected::parse(&text, engine).unwrap().reasons.len();
        assert_eq!((cases("interpreter"), cases("jit")), (1, 0));
    }
}
