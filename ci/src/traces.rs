//! `cargo xtask traces`: what the trace interface says, message by message and error by error
//! (`ci/traces/trace_shapes.erl`, with `trace_running.erl` for what is read of a function that runs and `trace_errors.erl`
//! for what is wrong), beside what OTP 29 says (`ci/traces/otp29.txt`).

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::place::{OtpOptions, Place, words};
use crate::{binary, cases, fetch, paths, run};

/// Options of `cargo xtask traces`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names of the groups of cases to run [default: all]
    groups: Vec<String>,
    #[command(flatten)]
    otp: OtpOptions,
    /// Run the cases on OTP and write its answers to ci/traces/otp29.txt
    #[arg(long)]
    bless: bool,
    /// Command that runs the program [default: erl on Beamline]
    #[arg(long, value_name = "COMMAND", conflicts_with = "bless")]
    ours: Option<String>,
}

impl Options {
    /// What `cargo xtask test` runs.
    pub(crate) fn of_test() -> Self {
        Self {
            groups: Vec::new(),
            otp: OtpOptions::of_test(),
            bless: false,
            ours: None,
        }
    }
}

/// The program's modules.
const PROGRAM: [&str; 3] = ["trace_shapes.erl", "trace_running.erl", "trace_errors.erl"];

/// Runs the program and compares.
pub(crate) fn main(options: &Options) -> Result<()> {
    let dir = options.otp.folder("traces")?;
    put_program(&dir)?;
    if options.bless {
        let place = options.otp.place()?;
        run::output(
            place
                .command(&dir, &words(&options.otp.erlc))?
                .args(PROGRAM),
        )?;
        let said = run::output(place.command(&dir, &words(&options.otp.erl))?.args([
            "-noshell",
            "-run",
            "trace_shapes",
            "main",
        ]))?;
        return fs::write(expected_file(), said).context("writing what OTP says");
    }
    match &options.ours {
        Some(erl) => compare_in(
            &dir,
            &options.groups,
            &words(&options.otp.erlc),
            &words(erl),
        ),
        None => on_beamline(&dir, &options.groups),
    }
}

fn on_beamline(dir: &Path, groups: &[String]) -> Result<()> {
    let otp = fetch::otp()?.root;
    let run = |command| binary::beamline_run(&otp, &[command]);
    compare_in(dir, groups, &run("erlc")?, &run("erl")?)
}

fn put_program(dir: &Path) -> Result<()> {
    for name in PROGRAM {
        let source = paths::workspace().join("ci/traces").join(name);
        fs::copy(&source, dir.join(name))
            .with_context(|| format!("copying {}", source.display()))?;
    }
    Ok(())
}

/// Runs the program in `dir`, and compares what it says of `groups` with what OTP says.
fn compare_in(dir: &Path, groups: &[String], erlc: &[String], erl: &[String]) -> Result<()> {
    let place = Place::new(None)?;
    run::output(place.command(dir, erlc)?.args(PROGRAM))?;
    let mut program = place.command(dir, erl)?;
    program
        .args(["-noshell", "-run", "trace_shapes", "main"])
        .args(groups);
    let said = cases::parse(&run::output(&mut program)?);
    let expected = fs::read_to_string(expected_file()).context("reading what OTP says")?;
    let mut expected = cases::parse(&expected);
    expected.retain(|name, _| {
        let group = name.split(' ').next().unwrap_or_default();
        groups.is_empty() || groups.iter().any(|wanted| wanted == group)
    });
    cases::report(&expected, &said)
}

fn expected_file() -> PathBuf {
    paths::workspace().join("ci/traces/otp29.txt")
}
