//! `cargo xtask stress`: processes call functions while trace sessions come, change, are read and go, and every
//! count is checked against the program's own (`ci/stress/trace_stress.erl`).

use std::fs;

use anyhow::{Context, Result};

use crate::place::{Place, words};
use crate::{binary, fetch, paths, run};

/// Options of `cargo xtask stress`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Duration in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u32,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Collect, and check the heap, at every safepoint
    #[arg(long, conflicts_with = "erl")]
    zeal: bool,
    /// Command that compiles the program [default: erlc on Beamline]
    #[arg(long, value_name = "COMMAND")]
    erlc: Option<String>,
    /// Command that runs the program [default: erl on Beamline]
    #[arg(long, value_name = "COMMAND")]
    erl: Option<String>,
}

impl Options {
    /// What `cargo xtask test` runs.
    pub(crate) fn of_test() -> Self {
        Self {
            seconds: 20,
            seed: 1,
            zeal: false,
            erlc: None,
            erl: None,
        }
    }
}

/// Compiles the program and runs it.
pub(crate) fn main(options: &Options) -> Result<()> {
    let dir = paths::target().join("stress");
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let source = paths::workspace().join("ci/stress/trace_stress.erl");
    fs::copy(&source, dir.join("trace_stress.erl"))
        .with_context(|| format!("copying {}", source.display()))?;
    let otp = fetch::otp()?.root;
    let command = |given: &Option<String>, ours: &[&str]| match given {
        Some(command) => Ok(words(command)),
        None => binary::beamline_run(&otp, ours),
    };
    let place = Place::new(None)?;
    let erlc = command(&options.erlc, &["erlc"])?;
    let mut compile = place.command(&dir, &erlc)?;
    run::output(compile.arg("trace_stress.erl"))?;
    let erl = if options.zeal {
        binary::words_of(&binary::zealous()?, &["run"], &otp, &["erl", "-noshell"])?
    } else {
        command(&options.erl, &["erl", "-noshell"])?
    };
    let mut program = place.command(&dir, &erl)?;
    program.args(["-run", "trace_stress", "main"]);
    program.args([options.seconds.to_string(), options.seed.to_string()]);
    run::status(&mut program)
}
