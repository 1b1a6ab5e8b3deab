//! The `beamline` binary: building it, and the words of commands that run programs on it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{paths, run};

/// Builds the `beamline` binary with optimisation and gives its path.
pub(crate) fn beamline() -> Result<PathBuf> {
    run::cargo(&["build", "--release", "--package", "beamline"])
        .context("building the beamline binary")?;
    Ok(paths::target().join("release/beamline"))
}

/// Builds the binary that collects at every safepoint, in a folder of its own.
pub(crate) fn zealous() -> Result<PathBuf> {
    let target = paths::target().join("zeal");
    let mut cargo = run::cargo_command(&["build", "--package", "beamline"]);
    cargo.args(["--features", "beamline-runtime/gc_zeal"]);
    cargo.arg("--target-dir").arg(&target);
    run::status(&mut cargo).context("building beamline with gc_zeal")?;
    Ok(target.join("debug/beamline"))
}

/// The words of a command that runs `command` on Beamline with the OTP in `otp`.
pub(crate) fn beamline_run(otp: &Path, command: &[&str]) -> Result<Vec<String>> {
    beamline_words(&["run"], otp, command)
}

/// The words of a `beamline` command (`run`, or `profile` with its options) on `command`.
pub(crate) fn beamline_words(verb: &[&str], otp: &Path, command: &[&str]) -> Result<Vec<String>> {
    words_of(&beamline()?, verb, otp, command)
}

/// The same of another `beamline` binary.
pub(crate) fn words_of(
    binary: &Path,
    verb: &[&str],
    otp: &Path,
    command: &[&str],
) -> Result<Vec<String>> {
    let binary = binary
        .to_str()
        .context("the build folder's name is not UTF-8")?;
    let otp = otp.to_str().context("OTP's directory is not UTF-8")?;
    let words = [&[binary][..], verb, &["--otp", otp, "--"], command].concat();
    Ok(words.into_iter().map(str::to_owned).collect())
}
