//! `cargo xtask engines`: what runs programs on Beamline does so on each engine.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Result;

use crate::engine::{ENGINES, VARIABLE};
use crate::needs::Needs;
use crate::parts::{self, AfterFailure, Part, part};
use crate::{conformance, paths, programs, run};

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

/// The programs of tests that the interpreter does not run for `cargo xtask test`: they choose the engine themselves, look at
/// machine code, or test what is done with a recording, a profile or a command line, which is the same whatever ran the program.
const WITHOUT_ENGINE: [&str; 14] = [
    "bad_input",
    "ci",
    "disasm",
    "engine",
    "html",
    "input",
    "outputs",
    "perf",
    "replay_faults",
    "reports",
    "sample_own",
    "settings",
    "tutorials",
    "viewers",
];

/// Runs every test on every engine, and tells how long each took and which ones failed.
pub(crate) fn main(options: &Options) -> Result<()> {
    let chosen = |given: &[String], all: &[&str]| match given {
        [] => all.iter().map(|&name| name.to_owned()).collect(),
        given => given.to_vec(),
    };
    let needs = &Needs::of_machine()?;
    let mut all = Vec::new();
    for engine in chosen(&options.engines, &ENGINES) {
        for name in chosen(&options.parts, &PARTS) {
            let engine = engine.clone();
            all.push(part(&format!("{name} on {engine}"), move || {
                run_on(&engine, &name, options.no_browser, needs)
            }));
        }
    }
    parts::run_all(all, AfterFailure::GoOn, &needs.missing())
}

/// What `cargo xtask test` runs on the interpreter besides: the golden cases, and the tests of the binary whose answers may
/// depend on the engine.
pub(crate) fn of_test(needs: &Needs) -> [Part<'_>; 2] {
    const ENGINE: &str = ENGINES[0];
    [
        part("golden cases on the interpreter", || {
            run::status(task("golden", &[]).env(VARIABLE, ENGINE))
        }),
        part("programs on the interpreter", move || {
            let mut names = programs::of_beamline()?;
            names.retain(|name| !WITHOUT_ENGINE.contains(&name.as_str()));
            let mut tests = programs::tests(&names, true);
            needs.require(&mut tests);
            run::status(tests.env(VARIABLE, ENGINE))
        }),
    ]
}

fn run_on(engine: &str, part: &str, no_browser: bool, needs: &Needs) -> Result<()> {
    let mut command = match part {
        BINARY => {
            let mut tests = programs::tests(&programs::of_beamline()?, no_browser);
            needs.require(&mut tests);
            tests
        }
        SUITES => task("conformance", &conformance::suites_of_gate()?),
        // More rounds are for what differs by chance.
        SAMPLES => task(part, &["--gate", "--rounds", "2"].map(str::to_owned)),
        part => task(part, &[]),
    };
    run::status(command.env(VARIABLE, engine))
}

/// Another task of this program. The program is run by its open file: building the tests may have put another one in its
/// place.
pub(crate) fn task(name: &str, arguments: &[String]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("xtask").arg(name).args(arguments);
    command.current_dir(paths::workspace());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_are_left_out_are_there() {
        let all = programs::of_beamline().unwrap();
        for name in WITHOUT_ENGINE {
            assert!(all.iter().any(|known| known == name), "{name}");
        }
    }
}
