//! Reads `beamline.toml`, which names the workloads of a project and their limits.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use beamline_formats::profile::Pattern;
use beamline_reports::gate::{FunctionLimits, Limits, Missing, WorkloadLimits};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::units::time;

/// The file, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// The file of the accepted results, relative to this file.
    #[serde(default = "default_baseline")]
    baseline: PathBuf,
    /// What follows where something is missing that the baseline or a limit speaks of.
    #[serde(default)]
    missing: Missing,
    #[serde(default)]
    limits: WorkloadLimits,
    #[serde(default)]
    functions: Vec<FunctionLimits>,
    #[serde(default)]
    workload: Vec<WorkloadWritten>,
    /// Defaults of options (`crate::defaults`).
    #[serde(default, rename = "profile")]
    _profile: IgnoredAny,
    /// Defaults of options (`crate::defaults`).
    #[serde(default, rename = "record")]
    _record: IgnoredAny,
}

fn default_baseline() -> PathBuf {
    PathBuf::from("beamline-baseline.json")
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadWritten {
    name: String,
    command: Vec<String>,
    setup: Option<Setup>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    timeout: Option<String>,
    cwd: Option<PathBuf>,
    #[serde(default)]
    patterns: Vec<Pattern>,
    #[serde(default)]
    warm_up: u32,
    #[serde(default)]
    runs: u32,
    #[serde(default)]
    limits: WorkloadLimits,
    #[serde(default)]
    functions: Vec<FunctionLimits>,
}

/// One command, or several.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "setup is a command such as [\"mix\", \"compile\"], or a list of commands"
)]
enum Setup {
    One(Vec<String>),
    Several(Vec<Vec<String>>),
}

impl Setup {
    fn commands(self) -> Vec<Vec<String>> {
        match self {
            Setup::One(command) => vec![command],
            Setup::Several(commands) => commands,
        }
    }
}

/// The contents of `beamline.toml`.
#[derive(Debug)]
pub(crate) struct Config {
    /// The folder it is in: commands run there.
    pub(crate) folder: PathBuf,
    /// Where the accepted results are.
    pub(crate) baseline: PathBuf,
    /// At least one; no two have the same name.
    pub(crate) workloads: Vec<Workload>,
    /// The limits of what is no workload of this file.
    pub(crate) common: Limits,
}

/// A workload that is to be run.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    /// What is run before it, and not counted.
    pub(crate) setup: Vec<Vec<String>>,
    /// Variables of its environment, and of its setup's.
    pub(crate) env: Vec<(String, String)>,
    /// How long one run may take.
    pub(crate) timeout: Option<Duration>,
    /// Where it runs, from the folder of the file.
    pub(crate) cwd: PathBuf,
    /// The functions that are counted. An empty list means all.
    pub(crate) patterns: Vec<Pattern>,
    /// Runs whose time does not count, before the others.
    pub(crate) warm_up: u32,
    /// Runs whose time counts.
    pub(crate) runs: u32,
    pub(crate) limits: Limits,
}

impl Config {
    /// The limits of a workload, or those that are common to all.
    pub(crate) fn limits(&self, name: Option<&str>) -> Limits {
        let mut workloads = self.workloads.iter();
        let found = workloads.find(|workload| Some(workload.name.as_str()) == name);
        found.map_or_else(|| self.common.clone(), |workload| workload.limits.clone())
    }

    /// Reads the file.
    ///
    /// # Errors
    /// One line that says what is wrong, and where.
    pub(crate) fn read(path: &Path) -> Result<Config, String> {
        let text = std::fs::read_to_string(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => format!(
                "{}: no such file; this file names the workloads, and docs/ci.md has an example",
                path.display()
            ),
            std::io::ErrorKind::InvalidData => {
                format!(
                    "{}: not a text file, so not a beamline.toml",
                    path.display()
                )
            }
            _ => format!("{}: {e}", path.display()),
        })?;
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        Self::parse(&text, folder).map_err(|e| format!("{}{e}", path.display()))
    }

    pub(crate) fn parse(text: &str, folder: &Path) -> Result<Config, String> {
        let written: Written = toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            let line = text[..at.min(text.len())].matches('\n').count() + 1;
            format!(
                ":{line}: {}",
                e.message().lines().next().unwrap_or_default()
            )
        })?;
        if written.workload.is_empty() {
            return Err(": it has no workload; add one under [[workload]]".to_owned());
        }
        let mut names = HashSet::new();
        let mut workloads = Vec::new();
        let common = Limits {
            common: written.limits,
            common_functions: written.functions,
            missing: written.missing,
            ..Limits::default()
        };
        for workload in written.workload {
            if !names.insert(workload.name.clone()) {
                return Err(format!(": two workloads are named '{}'", workload.name));
            }
            let limits = Limits {
                own: workload.limits.clone(),
                functions: workload.functions.clone(),
                ..common.clone()
            };
            let name = workload.name.clone();
            let workload = Workload::new(workload, limits);
            workloads.push(workload.map_err(|e| format!(": the workload {name}: {e}"))?);
        }
        Ok(Config {
            baseline: folder.join(written.baseline),
            folder: folder.to_owned(),
            workloads,
            common,
        })
    }
}

impl Workload {
    fn new(written: WorkloadWritten, limits: Limits) -> Result<Workload, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if written.name.is_empty() || !written.name.chars().all(plain) {
            return Err(
                "its name may only have letters, digits, '-', '_' and '.', because files get this name"
                    .to_owned(),
            );
        }
        let Some(file) = written.command.first() else {
            return Err("its command is empty".to_owned());
        };
        let mut patterns = written.patterns;
        if patterns.is_empty() {
            patterns.extend(own_module(file));
        }
        let setup = written.setup.map_or(Vec::new(), Setup::commands);
        if setup.iter().any(Vec::is_empty) {
            return Err("a command of its setup is empty".to_owned());
        }
        let timeout = written.timeout.as_deref().map(time).transpose();
        Ok(Workload {
            name: written.name,
            command: written.command,
            setup,
            env: written.env.into_iter().collect(),
            timeout: timeout.map_err(|e| format!("its timeout: {e}"))?,
            cwd: written.cwd.unwrap_or_default(),
            limits: Limits {
                gated: patterns.clone(),
                ..limits
            },
            patterns,
            warm_up: written.warm_up,
            runs: written.runs,
        })
    }
}

/// The module of a `.erl` or `.beam` file.
fn own_module(file: &str) -> Option<Pattern> {
    let path = Path::new(file);
    let extension = path.extension()?.to_str()?;
    let module = path.file_stem()?.to_str()?;
    matches!(extension, "erl" | "beam").then(|| Pattern::of_module(module))
}

#[cfg(test)]
mod tests {
    use beamline_reports::gate::{Metric, Percent};

    use super::*;

    const EXAMPLE: &str = r#"
        [limits]
        reductions = "2%"
        time = { soft = "10%", gate = true }

        [[functions]]
        pattern = "json"
        calls = "0%"

        [[workload]]
        name = "sort"
        command = ["samples/sort.erl", "10"]
        runs = 5
        warm_up = 1
        [workload.limits]
        words = { hard = 5_000 }
        [[workload.functions]]
        pattern = "json:encode/1"
        calls = { soft = "5%", hard = 9 }

        [[workload]]
        name = "build"
        command = ["mix", "compile"]
        patterns = ["'Elixir.Enum':map/2"]
        setup = ["mix", "deps.compile"]
        env = { MIX_ENV = "prod" }
        timeout = "90s"
        cwd = "apps/web"
    "#;

    #[test]
    fn a_file_says_what_to_run_and_what_is_allowed() {
        let config = Config::parse(EXAMPLE, Path::new("x")).unwrap();
        assert_eq!(config.baseline, Path::new("x/beamline-baseline.json"));
        let [sort, build] = &config.workloads[..] else {
            panic!("two workloads");
        };
        assert_eq!((sort.runs, sort.warm_up, build.runs), (5, 1, 0));
        assert_eq!(build.setup, [["mix", "deps.compile"]]);
        assert_eq!(build.env, [("MIX_ENV".into(), "prod".into())]);
        assert_eq!(build.timeout, Some(Duration::from_secs(90)));
        assert_eq!(build.cwd, Path::new("apps/web"));
        assert_eq!(config.limits(Some("sort")).gated, sort.patterns);
        assert_eq!(config.limits(None).missing, Missing::Fail);
        assert_eq!(sort.patterns[0].to_string(), "sort");
        assert_eq!(build.patterns[0].to_string(), "Enum.map/2");
        assert_eq!(
            sort.limits.total(Metric::Reductions).soft,
            Some(Percent(2.0))
        );
        assert_eq!(sort.limits.total(Metric::Words).hard, Some(5000));
        assert_eq!(
            build.limits.total(Metric::Words).soft,
            Some(Percent(1.0)),
            "the default"
        );
        assert!(sort.limits.time().gate);
        let calls = |function| sort.limits.function(function, Metric::Calls);
        assert_eq!(calls("json:encode/1").unwrap().hard, Some(9));
        assert_eq!(calls("json:decode/1").unwrap().soft, Some(Percent(0.0)));
        assert_eq!(calls("lists:map/2"), None);
        assert_eq!(calls("sort:main/1").unwrap().soft, Some(Percent(1.0)));
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (text, expect) in [
            ("", ": it has no workload"),
            ("a = 1", ":1: unknown field `a`"),
            ("[[workload]]\nname = \"x\"", ":1: missing field `command`"),
            (
                "[limits]\nwords = 3\n[[workload]]\nname=\"x\"\ncommand=[\"a\"]",
                ":2: a limit is a percent such as",
            ),
            (
                "[limits]\nwords = \"3\"\n[[workload]]\nname=\"x\"\ncommand=[\"a\"]",
                ":2: a limit is a percent such as",
            ),
            (
                "[[workload]]\nname=\"x\"\ncommand=[]",
                ": the workload x: its command is empty",
            ),
            (
                "[[workload]]\nname=\"x\"\ncommand=[\"a\"]\nsetup=[[]]",
                ": the workload x: a command of its setup is empty",
            ),
            (
                "[[workload]]\nname=\"x\"\ncommand=[\"a\"]\nsetup=\"mix\"",
                ":4: setup is a command such as",
            ),
            (
                "[[workload]]\nname=\"x\"\ncommand=[\"a\"]\ntimeout=\"5\"",
                "its timeout: '5' has no unit; add us, ms, s, m or h",
            ),
            (
                "missing = \"no\"\n[[workload]]\nname=\"x\"\ncommand=[\"a\"]",
                ":1: unknown variant `no`, expected `fail` or `warn`",
            ),
            (
                "[[workload]]\nname=\"../x\"\ncommand=[\"a\"]",
                "its name may only have letters",
            ),
            (
                "[[workload]]\nname=\"x\"\ncommand=[\"a\"]\npatterns=[\"a:b/c\"]",
                ":4: the arity 'c'",
            ),
            (
                "[[workload]]\nname=\"x\"\ncommand=[\"a\"]\n[[workload]]\nname=\"x\"\ncommand=[\"a\"]",
                ": two workloads are named 'x'",
            ),
        ] {
            let error = Config::parse(text, Path::new(".")).unwrap_err();
            assert!(error.contains(expect), "{text}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
