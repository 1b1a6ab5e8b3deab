//! `cargo xtask samples`: the project's own gate on counts. The samples run again and again in deterministic mode,
//! each time with the same counts, which are those of the baseline; and whole runs, boot included, are the same each time.

mod whole;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{binary, fetch, paths, run};

/// Options of `cargo xtask samples`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Runs of the samples
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Fail if the baseline is of another OTP, with which nothing can be compared
    #[arg(long)]
    gate: bool,
    /// Write the counts as the new baseline
    #[arg(long)]
    accept: bool,
    /// Run this beamline binary [default: a new optimised build]
    #[arg(long, value_name = "FILE")]
    beamline: Option<PathBuf>,
}

impl Options {
    /// What `cargo xtask test` runs: a run, and one to compare it with. More of them are for what differs by chance.
    pub(crate) fn of_test() -> Self {
        Self {
            rounds: 2,
            gate: true,
            accept: false,
            beamline: None,
        }
    }
}

/// Runs the samples and compares.
pub(crate) fn main(options: &Options) -> Result<()> {
    let config = paths::workspace().join("samples/beamline.toml");
    let dir = paths::target().join("samples");
    std::fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let otp = fetch::otp()?.root;
    let beamline = match &options.beamline {
        Some(beamline) => beamline.canonicalize()?,
        None => binary::beamline()?,
    };
    let ci = |verb: &str| {
        let mut command = Command::new(&beamline);
        command
            .args(["ci", verb])
            .arg(&config)
            .arg("--otp")
            .arg(&otp);
        command
    };
    let rounds = options.rounds.max(1);
    let mut first: Option<(PathBuf, String)> = None;
    for round in 1..=rounds {
        let result = dir.join(format!("{round}.json"));
        run::status(ci("run").arg("-o").arg(&result))?;
        let text = std::fs::read_to_string(&result)
            .with_context(|| format!("reading {}", result.display()))?;
        match &first {
            None => first = Some((result, text)),
            Some((name, counts)) => ensure!(
                *counts == text,
                "two deterministic runs did not do the same: compare {} and {}",
                name.display(),
                result.display()
            ),
        }
    }
    eprintln!("the samples did the same {rounds} times");
    whole::main(&beamline, &otp, rounds)?;
    let Some((result, text)) = first else {
        return Ok(());
    };
    if options.accept {
        return run::status(ci("accept").arg("--result").arg(&result));
    }
    let baseline = paths::workspace().join("samples/baseline.json");
    let (now, before) = (
        otp_of(&text)?,
        otp_of(&std::fs::read_to_string(&baseline)?)?,
    );
    if now != before {
        // Other libraries do other things.
        let told = format!("the baseline is of OTP {before}, but this is OTP {now}");
        ensure!(
            !options.gate,
            "{told}: `cargo xtask samples --accept` makes one of this OTP"
        );
        eprintln!("skipped: {told}");
        return Ok(());
    }
    let mut compare = Command::new(&beamline);
    compare.args(["ci", "compare"]).arg(&baseline).arg(&result);
    run::status(compare.arg("--config").arg(&config))
}

/// The OTP release of a result's workloads.
fn otp_of(result: &str) -> Result<String> {
    let result: serde_json::Value = serde_json::from_str(result)?;
    let otp = result["workloads"][0]["otp"].as_str();
    Ok(otp.context("a result names its OTP")?.to_owned())
}
