//! `cargo xtask engines`: what runs programs on Beamline does so on each engine.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::engine::{ENGINES, VARIABLE};
use crate::{conformance, outside, paths, run};

/// Options of `cargo xtask engines`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Engines that run everything [default: all]
    #[arg(long = "engine", value_name = "ENGINE", value_parser = clap::builder::PossibleValuesParser::new(ENGINES))]
    engines: Vec<String>,
    /// Tests to run [default: all]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(PARTS))]
    parts: Vec<String>,
    /// Leave out the tests that need Chromium
    #[arg(long)]
    no_browser: bool,
}

/// The tests: of the binary, and tasks.
const PARTS: [&str; 7] = [
    BINARY, "golden", SAMPLES, "stress", "traces", "natives", SUITES,
];

const BINARY: &str = "binary";
const SAMPLES: &str = "samples";
const SUITES: &str = "suites";

/// Runs every test on every engine, and tells how long each took and which ones failed.
pub(crate) fn main(options: &Options) -> Result<()> {
    let chosen = |given: &[String], all: &[&str]| match given {
        [] => all.iter().map(|&name| name.to_owned()).collect(),
        given => given.to_vec(),
    };
    let mut failed = Vec::new();
    for engine in chosen(&options.engines, &ENGINES) {
        for part in chosen(&options.parts, &PARTS) {
            let began = outside::now();
            let ended = part_on(&engine, &part, options.no_browser);
            let seconds = began.elapsed().as_secs();
            let how = match &ended {
                Ok(()) => "passes".to_owned(),
                Err(error) => format!("fails: {error:#}"),
            };
            eprintln!("{part} on {engine}: {how} ({seconds} s)");
            if ended.is_err() {
                failed.push(format!("{part} on {engine}"));
            }
        }
    }
    if !failed.is_empty() {
        bail!("{}", failed.join(", "));
    }
    Ok(())
}

/// What `cargo xtask test` runs on the interpreter besides: the tests of the binary and the golden cases.
pub(crate) fn of_test(no_browser: bool) -> Result<()> {
    for part in [BINARY, "golden"] {
        part_on("interpreter", part, no_browser)
            .with_context(|| format!("{part} on the interpreter"))?;
    }
    Ok(())
}

fn part_on(engine: &str, part: &str, no_browser: bool) -> Result<()> {
    let mut command = match part {
        BINARY => tests_of_binary(no_browser),
        SUITES => task("conformance", &conformance::suites_of_gate()?),
        // Ten rounds are for what differs by chance.
        SAMPLES => task(part, &["--rounds".to_owned(), "2".to_owned()]),
        part => task(part, &[]),
    };
    run::status(command.env(VARIABLE, engine))
}

/// The tests of the `beamline` package, most of which start the binary.
fn tests_of_binary(no_browser: bool) -> Command {
    let mut command = match run::on_path("cargo-nextest") {
        true => run::cargo_command(&["nextest", "run", "--package", "beamline"]),
        false => run::cargo_command(&["test", "--package", "beamline"]),
    };
    if no_browser {
        command.args(["--", "--skip", "in_a_browser"]);
    }
    command
}

/// Another task of this program. The program is run by its open file: building the tests may have put another one in its
/// place.
fn task(name: &str, arguments: &[String]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("xtask").arg(name).args(arguments);
    command.current_dir(paths::workspace());
    command
}
