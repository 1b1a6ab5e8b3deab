//! `cargo xtask loom`: every interleaving of the models of lock-free code.

use std::process::Command;

use anyhow::Result;

use crate::{paths, run};

/// Builds the runtime on loom's primitives, in a build folder of its own, and runs the models.
pub(crate) fn main() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    let models = [
        "test",
        "--release",
        "--package",
        "beamline-runtime",
        "--lib",
    ];
    command
        .args(models)
        .arg("loom_")
        .current_dir(paths::workspace())
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", paths::target().join("loom"));
    run::status(&mut command)
}
