//! The workspace's own tests: all of them, some programs of the `beamline` package, and the runtime's where each safepoint
//! is a collection.
//!
//! All selections have the features that the whole workspace has: with those of one package alone, cargo compiles the
//! runtime, and what lies below it, again.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{outside, paths, run};

/// The feature of the runtime, as the workspace names it.
pub(crate) const ZEAL: [&str; 2] = ["--features", "beamline-runtime/gc_zeal"];

/// The packages whose features are those of the workspace, as far as the runtime's dependencies go. Of these, only the
/// runtime and its base have libraries with tests.
const ZEALOUS: [&str; 8] = [
    "--package",
    "beamline-runtime",
    "--package",
    "beamline-runtime-base",
    "--package",
    "beamline-benches",
    "--package",
    "beamline-ci",
];

/// Tests that run at the same time, for each processor: most of those that start a program wait for it.
const THREADS: usize = 2;

/// Compiles all that `tests` and `zealous` run.
pub(crate) fn compile() -> Result<()> {
    run::cargo(&["test", "--workspace", "--no-run"])?;
    run::status(zealous().arg("--no-run"))
}

/// Runs the tests that stand in the documentation.
pub(crate) fn run_documentation() -> Result<()> {
    run::cargo(&["test", "--workspace", "--doc"])
}

/// The command that runs the runtime's unit tests with a collection, and a check of the heap, at every safepoint.
pub(crate) fn zealous() -> Command {
    run::cargo_command(&[&["test", "--lib"], &ZEALOUS[..], &ZEAL].concat())
}

/// The command that runs the programs of tests of these names; none: all.
pub(crate) fn tests(names: &[String], no_browser: bool) -> Command {
    let threads = outside::processors() * THREADS;
    let threads = threads.to_string();
    let mut command = match run::on_path("cargo-nextest") {
        true => run::cargo_command(&[
            "nextest",
            "run",
            "--no-tests=pass",
            "--test-threads",
            &threads,
        ]),
        false => {
            let mut command = run::cargo_command(&["test"]);
            command.env("RUST_TEST_THREADS", &threads);
            if names.is_empty() {
                // All but those of the documentation.
                command.arg("--tests");
            }
            command
        }
    };
    command.arg("--workspace");
    for name in names {
        command.args(["--test", name]);
    }
    if no_browser {
        command.args(["--", "--skip", "in_a_browser"]);
    }
    command
}

/// The names of the programs of tests of the `beamline` package.
pub(crate) fn of_beamline() -> Result<Vec<String>> {
    let folder = paths::workspace().join("profiler/tests");
    let files = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut names = Vec::new();
    for file in files {
        let name = file?.file_name().into_string().unwrap_or_default();
        names.extend(name.strip_suffix(".rs").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}
