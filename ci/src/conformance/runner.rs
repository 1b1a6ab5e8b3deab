//! Running one suite, in a runtime instance of its own.
//!
//! The runner in the instance appends its lines to a file as it goes (`START`, `CASE`, `CONF`,
//! `SUITE`). When the instance dies or hangs, the case that had begun is reported as `crash`, and the
//! suite goes on in a new instance without the cases that are done.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::build::OS_MON;
use super::{Nodes, Setup, Suite};
use crate::instance::{Instance, shown};
use crate::outside;

/// How often a suite is started again after its instance has died.
const RESTARTS: usize = 20;

/// The end of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    Pass,
    Fail,
    Skip,
    Timeout,
    Crash,
}

impl Status {
    /// Reads it as it stands in a `CASE` line.
    pub(super) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "pass" => Self::Pass,
            "fail" => Self::Fail,
            "skip" => Self::Skip,
            "timeout" => Self::Timeout,
            "crash" => Self::Crash,
            _ => return None,
        })
    }

    /// As it stands in a `CASE` line.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skip => "skip",
            Self::Timeout => "timeout",
            Self::Crash => "crash",
        }
    }
}

/// What a case did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    /// `SUITE:GROUP/CASE`.
    pub(super) name: String,
    pub(super) status: Status,
    /// The reason, cut to one line.
    pub(super) why: String,
}

/// What a suite did.
pub(super) struct Outcome {
    pub(super) cases: Vec<Case>,
    /// What the first try of cases gave that passed at the second: a line each.
    pub(super) unsteady: Vec<String>,
    pub(super) took: Duration,
}

/// Runs `suite`. `skips` is the text of `skip.txt`.
pub(super) fn run(setup: &Setup, suite: &Suite, skips: &str) -> Result<Outcome> {
    let logs = setup.logs();
    fs::create_dir_all(&logs)?;
    let log = File::create(logs.join(format!("{}.log", suite.module)))?;
    let outcome = run_but(setup, suite, skips, Vec::new(), &log)?;
    save(
        &logs.join(format!("{}.cases", suite.module)),
        &outcome.cases,
    )?;
    Ok(outcome)
}

/// Runs the cases `again` of `outcome` once more. Those that pass now are counted as passed and called unsteady.
pub(super) fn try_again(
    setup: &Setup,
    suite: &Suite,
    skips: &str,
    outcome: &mut Outcome,
    again: &[String],
) -> Result<()> {
    let logs = setup.logs();
    let log = logs.join(format!("{}.log", suite.module));
    let log = OpenOptions::new().append(true).open(log)?;
    let done = outcome
        .cases
        .iter()
        .filter(|case| !again.contains(&case.name));
    let second = run_but(setup, suite, skips, done.cloned().collect(), &log)?;
    outcome.take_second_try(&second, again);
    save(
        &logs.join(format!("{}.cases", suite.module)),
        &outcome.cases,
    )
}

impl Outcome {
    fn take_second_try(&mut self, second: &Outcome, again: &[String]) {
        for case in self
            .cases
            .iter_mut()
            .filter(|case| again.contains(&case.name))
        {
            let now = second.cases.iter().find(|now| now.name == case.name);
            if let Some(now) = now.filter(|now| now.status == Status::Pass) {
                let first = std::mem::replace(case, now.clone());
                let line = format!("{} {}: {}", first.name, first.status.word(), first.why);
                self.unsteady.push(line);
            }
        }
        self.took += second.took;
    }
}

/// Runs the cases of `suite` that are not among `cases`; the outcome has these as well.
fn run_but(
    setup: &Setup,
    suite: &Suite,
    skips: &str,
    mut cases: Vec<Case>,
    log: &File,
) -> Result<Outcome> {
    let module = suite.module.as_str();
    let began = outside::now();
    for _ in 0..=RESTARTS {
        let scratch = Scratch::new(setup, module)?;
        let left = suite.limits.suite.saturating_sub(began.elapsed());
        let left = left.max(Duration::from_secs(1));
        let mut command = command(setup, suite, &scratch, left)?;
        let done = cases.iter().map(|case| &case.name);
        let done = done.chain(&suite.elsewhere).map(|name| path_in_suite(name));
        let done: Vec<_> = done.collect();
        command.env("CTLITE_EXCLUDE", done.join(","));
        command.env("CTLITE_SKIP", skipped(skips, module).join(","));
        command.stdout(log.try_clone()?).stderr(log.try_clone()?);
        let end = outside::now() + left + suite.limits.case + Duration::from_secs(60);
        let status = Instance::start(command)?.wait(|| outside::now() > end)?;
        let printed = fs::read(&scratch.out)?;
        let printed = parse(&String::from_utf8_lossy(&printed));
        let last = printed.cases.last().map(|case| case.name.clone());
        let progress = last.is_some();
        cases.extend(printed.cases);
        if printed.ended {
            break;
        }
        let why = format!("the runtime ended: {}", shown(status));
        let blamed = printed
            .started
            .filter(|started| Some(started) != last.as_ref());
        let between = blamed.is_none();
        let name = blamed.unwrap_or_else(|| format!("{module}:suite"));
        cases.push(Case {
            name,
            status: Status::Crash,
            why,
        });
        if between && !progress {
            break;
        }
    }
    Ok(Outcome {
        cases,
        unsteady: Vec::new(),
        took: began.elapsed(),
    })
}

/// An empty working directory and private directory for one instance; removed when dropped.
struct Scratch {
    dir: PathBuf,
    out: PathBuf,
}

impl Scratch {
    fn new(setup: &Setup, module: &str) -> Result<Self> {
        let dir = setup.dir.join("run").join(module);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("cwd"))?;
        fs::create_dir_all(dir.join("priv"))?;
        let out = dir.join("out");
        File::create(&out)?;
        Ok(Self { dir, out })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn command(setup: &Setup, suite: &Suite, scratch: &Scratch, left: Duration) -> Result<Command> {
    let dir = setup.place.inside(&setup.dir)?;
    let mut command = setup.place.command(&scratch.dir.join("cwd"), &setup.erl)?;
    command.args(["-pa", &dir]);
    match setup.nodes {
        Nodes::One => command.args(["-pa", &format!("{dir}/nopeer")]),
        Nodes::Peers => command.args([
            "-pa",
            &format!("{dir}/{OS_MON}"),
            "-sname",
            &format!("ctlite_{}", suite.module),
        ]),
    };
    command.args(["-run", "ctlite", "main", &suite.module]);
    command.env("CTLITE_DIR", &dir);
    command.env(
        "CTLITE_PRIV",
        setup.place.inside(&scratch.dir.join("priv"))?,
    );
    command.env("CTLITE_OUT", setup.place.inside(&scratch.out)?);
    let case_ms = suite.limits.case.as_millis();
    command.env("CTLITE_CAP_MS", case_ms.to_string());
    command.env("CTLITE_SUITE_MS", left.as_millis().to_string());
    command.env("CTLITE_START", "1");
    let peers = setup.nodes == Nodes::Peers;
    command.env("CTLITE_PEER", if peers { "1" } else { "0" });
    Ok(command)
}

/// What an instance has printed.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    cases: Vec<Case>,
    /// The case of the last `START` line.
    started: Option<String>,
    /// The suite has been run to its end.
    ended: bool,
}

fn parse(text: &str) -> Printed {
    let mut printed = Printed {
        cases: Vec::new(),
        started: None,
        ended: false,
    };
    for line in text.lines() {
        let mut words = line.splitn(5, ' ');
        match (words.next(), words.next()) {
            (Some("START"), Some(name)) => printed.started = Some(name.to_owned()),
            (Some("SUITE"), Some(_)) => printed.ended = true,
            (Some("CASE"), Some(name)) => {
                // A line cut short by the instance's death counts as not printed.
                let status = words.next().and_then(Status::parse);
                let (Some(status), Some(why)) = (status, words.nth(1)) else {
                    continue;
                };
                printed.cases.push(Case {
                    name: name.to_owned(),
                    status,
                    why: why.to_owned(),
                });
            }
            _ => {}
        }
    }
    printed
}

/// `GROUP/CASE` of `SUITE:GROUP/CASE`.
fn path_in_suite(name: &str) -> &str {
    name.split_once(':').map_or(name, |(_, path)| path)
}

/// The cases of `module` that `skip.txt` names.
fn skipped<'a>(skips: &'a str, module: &str) -> Vec<&'a str> {
    let lines = skips.lines().filter(|line| !line.starts_with('#'));
    let names = lines.filter_map(|line| line.split_whitespace().next()?.split_once(':'));
    names
        .filter(|(suite, _)| *suite == module)
        .map(|(_, path)| path)
        .collect()
}

fn save(file: &Path, cases: &[Case]) -> Result<()> {
    use std::io::Write;
    let mut out = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .open(file)?;
    for case in cases {
        writeln!(
            out,
            "CASE {} {} {}",
            case.name,
            case.status.word(),
            case.why
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_instance_that_died() {
        let printed = parse(
            "START a_SUITE:g/x\nCASE a_SUITE:g/x fail 12 [L3] {badmatch, 1}\n\
             CONF a_SUITE:g/end_per_group fail why\nSTART a_SUITE:y\nCASE a_SUITE:y pa",
        );
        let case = Case {
            name: "a_SUITE:g/x".to_owned(),
            status: Status::Fail,
            why: "[L3] {badmatch, 1}".to_owned(),
        };
        assert_eq!(printed.cases, [case]);
        assert_eq!(printed.started.as_deref(), Some("a_SUITE:y"));
        assert!(!printed.ended);
        assert!(parse("SUITE a_SUITE 1 passed, 0 failed, 0 skipped\n").ended);
    }

    #[test]
    fn second_tries_that_pass_count_and_are_told() {
        let case = |name: &str, status| Case {
            name: format!("a_SUITE:{name}"),
            status,
            why: "[L3] late".to_owned(),
        };
        let outcome = |cases: &[Case]| Outcome {
            cases: cases.to_vec(),
            unsteady: Vec::new(),
            took: Duration::from_secs(1),
        };
        let (x, y, z) = (
            case("x", Status::Fail),
            case("y", Status::Fail),
            case("z", Status::Pass),
        );
        let mut first = outcome(&[x.clone(), y.clone(), z.clone()]);
        let again = [x.name.clone(), y.name.clone()];
        let second = outcome(&[z.clone(), case("x", Status::Pass), y.clone()]);
        first.take_second_try(&second, &again);
        assert_eq!(first.cases, [case("x", Status::Pass), y, z]);
        assert_eq!(first.unsteady, ["a_SUITE:x fail: [L3] late"]);
        assert_eq!(first.took, Duration::from_secs(2));
    }

    #[test]
    fn skips_of_a_suite() {
        let skips = "# SUITE:case why\na_SUITE:g/x  slow\nb_SUITE:y  odd\n";
        assert_eq!(skipped(skips, "a_SUITE"), ["g/x"]);
        assert_eq!(path_in_suite("a_SUITE:g/x"), "g/x");
    }
}
