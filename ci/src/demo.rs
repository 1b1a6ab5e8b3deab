//! `cargo xtask demo`: the main job on a real workload.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{binary, fetch, paths, run};

/// Options of `cargo xtask demo`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Choose what to measure: call_count, call_time or call_memory
    #[arg(long = "type", value_name = "TYPE", default_value = "call_time")]
    kind: String,
}

/// Profiles a sample; the table goes to standard output, the flame graph under `target/demo/`.
pub(crate) fn main(options: &Options) -> Result<()> {
    let otp = fetch::otp()?;
    let beamline = binary::beamline()?;
    let dir = paths::target().join("demo");
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let graph = dir.join("json_service.svg");
    // One of an earlier run would pass for this run's.
    if graph.exists() {
        fs::remove_file(&graph)?;
    }
    let mut profile = Command::new(beamline);
    profile.arg("profile").arg("--otp").arg(&otp.root);
    profile
        .args(["--type", &options.kind])
        .arg("--flamegraph")
        .arg(&graph);
    profile
        .arg("--")
        .arg(paths::workspace().join("samples/json_service.erl"));
    run::status(&mut profile)?;
    if !graph.is_file() {
        bail!("`beamline profile` has written no flame graph");
    }
    eprintln!("flame graph: {}", graph.display());
    Ok(())
}
