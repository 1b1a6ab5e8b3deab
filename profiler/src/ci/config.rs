//! Reads `beamline.toml`, which names the workloads of a project and their limits.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use beamline_formats::gate::{FunctionLimits, Limits, WorkloadLimits};
use beamline_formats::profile::Pattern;
use serde::Deserialize;

/// The file, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// The file of the accepted results, relative to this file.
    #[serde(default = "default_baseline")]
    baseline: PathBuf,
    #[serde(default)]
    limits: WorkloadLimits,
    #[serde(default)]
    functions: Vec<FunctionLimits>,
    #[serde(default)]
    workload: Vec<WorkloadWritten>,
}

fn default_baseline() -> PathBuf {
    PathBuf::from("beamline-baseline.json")
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadWritten {
    name: String,
    command: Vec<String>,
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

/// The contents of `beamline.toml`.
#[derive(Debug)]
pub(crate) struct Config {
    /// The folder it is in: commands run there.
    pub(crate) folder: PathBuf,
    /// Where the accepted results are.
    pub(crate) baseline: PathBuf,
    /// At least one; no two have the same name.
    pub(crate) workloads: Vec<Workload>,
}

/// A workload that is to be run.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    /// The functions whose calls and words are counted. An empty list means all.
    pub(crate) patterns: Vec<Pattern>,
    /// Runs whose time does not count, before the others.
    pub(crate) warm_up: u32,
    /// Runs whose time counts.
    pub(crate) runs: u32,
    pub(crate) limits: Limits,
}

impl Config {
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
        for workload in written.workload {
            if !names.insert(workload.name.clone()) {
                return Err(format!(": two workloads are named '{}'", workload.name));
            }
            let limits = Limits {
                common: written.limits.clone(),
                own: workload.limits.clone(),
                functions: [&workload.functions[..], &written.functions[..]].concat(),
            };
            let name = workload.name.clone();
            let workload = Workload::new(workload, limits);
            workloads.push(workload.map_err(|e| format!(": the workload {name}: {e}"))?);
        }
        Ok(Config {
            baseline: folder.join(written.baseline),
            folder: folder.to_owned(),
            workloads,
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
        Ok(Workload {
            name: written.name,
            command: written.command,
            patterns,
            warm_up: written.warm_up,
            runs: written.runs,
            limits,
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
    use super::*;
    use beamline_formats::gate::{Metric, Percent};

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
    "#;

    #[test]
    fn a_file_says_what_to_run_and_what_is_allowed() {
        let config = Config::parse(EXAMPLE, Path::new("x")).unwrap();
        assert_eq!(config.baseline, Path::new("x/beamline-baseline.json"));
        let [sort, build] = &config.workloads[..] else {
            panic!("two workloads");
        };
        assert_eq!((sort.runs, sort.warm_up, build.runs), (5, 1, 0));
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
