//! `cargo xtask loom`: every interleaving of the models of lock-free code.

use anyhow::Result;

use crate::{paths, run};

/// Builds the runtime and its crates on loom's primitives, in a build folder of their own, and runs the models.
pub(crate) fn main() -> Result<()> {
    let package = ["--package", "beamline-runtime*", "--lib", "loom_"];
    let mut models = run::cargo_command(&[&["test", "--release"], &package[..]].concat());
    models.env("RUSTFLAGS", "--cfg loom");
    run::status(models.env("CARGO_TARGET_DIR", paths::target().join("loom")))
}
