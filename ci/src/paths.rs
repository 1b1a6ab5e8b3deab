//! Where things are: the clone, the build folder, the `beamline` binary.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::run;

/// The top of the clone.
pub(crate) fn workspace() -> PathBuf {
    // Cargo sets the variable for `cargo run`; the value at compile time serves a bare executable.
    let ci = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    ci.parent().map(Path::to_owned).unwrap_or(ci)
}

/// Cargo's build folder, absolute.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => workspace().join(dir),
        None => workspace().join("target"),
    }
}

/// Builds the `beamline` binary with optimisation and gives its path.
pub(crate) fn beamline() -> Result<PathBuf> {
    run::cargo(&["build", "--release", "--package", "beamline"])
        .context("building the beamline binary")?;
    Ok(target().join("release/beamline"))
}

/// Builds the binary that collects at every safepoint, in a folder of its own.
pub(crate) fn zealous() -> Result<PathBuf> {
    let target = target().join("zeal");
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
