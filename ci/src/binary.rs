//! The `beamline` binary: building it, and the words of commands that run programs on it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{paths, programs, run};

/// Builds the `beamline` binary with optimisation and gives its path.
pub(crate) fn beamline() -> Result<PathBuf> {
    built("release")
}

/// Builds it as users get it, which takes minutes, and gives its path.
pub(crate) fn distributed() -> Result<PathBuf> {
    built("dist")
}

fn built(profile: &str) -> Result<PathBuf> {
    run::cargo(&["build", "--profile", profile, "--package", "beamline"])
        .context("building the beamline binary")?;
    Ok(paths::target().join(profile).join("beamline"))
}

/// Builds the binary that collects at every safepoint, beside the ordinary one: what both need is built once.
pub(crate) fn zealous() -> Result<PathBuf> {
    // With a program of tests beside it, which is a small one, cargo takes the features that tests have: only the runtime,
    // and what is built on it, is compiled again.
    let build = [
        "build",
        "--workspace",
        "--bin",
        "beamline",
        "--test",
        "tidy",
    ];
    run::cargo(&[&build[..], &programs::ZEAL].concat())
        .context("building beamline with gc_zeal")?;
    let target = paths::target();
    let zealous = target.join("debug/beamline-zealous");
    // The ordinary build has the same name.
    fs::rename(target.join("debug/beamline"), &zealous).context("setting the binary aside")?;
    Ok(zealous)
}

/// The words of a command that runs `command` on Beamline with the OTP in `otp`.
pub(crate) fn beamline_run(otp: &Path, command: &[&str]) -> Result<Vec<String>> {
    beamline_words(&["run"], otp, command)
}

/// The words of a `beamline` command (`run`, or `profile` with its options) on `command`.
pub(crate) fn beamline_words(verb: &[&str], otp: &Path, command: &[&str]) -> Result<Vec<String>> {
    words_of(&beamline()?, verb, otp, command)
}

/// The words of a command of another `beamline` binary.
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
