//! Running other programs.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};

use crate::paths;

/// Runs cargo in the workspace, with this process's standard streams.
pub(crate) fn cargo(arguments: &[&str]) -> Result<()> {
    status(&mut cargo_command(arguments))
}

/// A command that runs cargo in the workspace.
pub(crate) fn cargo_command(arguments: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(arguments).current_dir(paths::workspace());
    command
}

/// Runs `command` with this process's standard streams; anything but exit code 0 is an error.
pub(crate) fn status(command: &mut Command) -> Result<()> {
    let shown = show(command);
    let status = command
        .status()
        .map_err(|error| not_started(&shown, error))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Runs `command` silently and gives its standard output. The error carries the last line that it
/// printed on standard error, which for the programs used here is the one that says what is wrong.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| not_started(&shown, error))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().rfind(|line| !line.trim().is_empty());
        bail!(
            "`{shown}` failed ({}): {}",
            output.status,
            last.unwrap_or("no message")
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed no UTF-8"))
}

/// The number of commits: the seed of what is tested with other random numbers at each of them.
pub(crate) fn commits() -> Result<u64> {
    let count = output(Command::new("git").args(["rev-list", "--count", "HEAD"]));
    let count = count.context("the number of commits is the seed")?;
    count.trim().parse().context("git counts commits")
}

/// Is there a program of this name on PATH?
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// This machine, as compilers call it.
pub(crate) fn host() -> Result<String> {
    let told = output(Command::new("rustc").arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV tells no host")
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

fn not_started(shown: &str, error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow!("`{shown}`: no such program"),
        _ => anyhow!("`{shown}`: {error}"),
    }
}
