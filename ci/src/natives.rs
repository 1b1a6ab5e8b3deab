//! `cargo xtask natives`: libraries of others in C, C++ and Rust, as they come, do their work on Beamline as on OTP.
//!
//! Those in C and C++ are binary packages of this machine's Debian, unpacked and not installed; the one in Rust is a
//! sample. `ci/natives/otp29.txt` is what `natives.erl` prints on OTP 29.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::apt::{self, Apt};
use crate::{binary, fetch, paths, run};

/// Options of `cargo xtask natives`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run this beamline binary [default: a new optimised build]
    #[arg(long, value_name = "FILE")]
    beamline: Option<PathBuf>,
}

impl Options {
    /// What `cargo xtask test` runs.
    pub(crate) fn of_test() -> Self {
        Self { beamline: None }
    }
}

/// The libraries, and the shared ones that they need.
const PACKAGES: [&str; 10] = [
    "erlang-jiffy",
    "erlang-p1-mqtree",
    "erlang-p1-sqlite3",
    "erlang-p1-stringprep",
    "erlang-p1-tls",
    "erlang-p1-utils",
    "erlang-p1-xml",
    "erlang-p1-yaml",
    "libexpat1",
    "libyaml-0-2",
];

/// The sample in Rust.
const RUST: &str = "word_count_rust";

/// Has this machine an apt that fetches packages of Debian?
pub(crate) fn has_debian() -> bool {
    apt::machine_mirror().is_ok()
}

/// Fetches, builds, runs and compares.
pub(crate) fn main(options: &Options) -> Result<()> {
    let otp = fetch::otp()?.root;
    let beamline = match &options.beamline {
        Some(file) => file.canonicalize().context("looking for the binary")?,
        None => binary::beamline()?,
    };
    let unpacked = packages()?;
    run::cargo(&["build", "--release", "--package", RUST])?;
    let dir = paths::target().join("natives/run");
    fs::create_dir_all(&dir)?;
    let sources = paths::workspace().join("ci/natives");
    let samples = paths::workspace().join("samples").join(RUST);
    let on_beamline = |words: &[&str]| -> Result<Command> {
        let words = binary::words_of(&beamline, &["run"], &otp, words)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&dir);
        command.env("ERL_LIBS", unpacked.join("usr/lib/erlang/lib"));
        command.env("LD_LIBRARY_PATH", shared(&unpacked)?);
        Ok(command)
    };
    let mut compile = on_beamline(&["erlc"])?;
    compile.arg(sources.join("natives.erl"));
    compile.arg(samples.join(format!("{RUST}.erl")));
    run::output(&mut compile)?;
    let mut natives = on_beamline(&["erl", "-noshell", "-run", "natives", "main"])?;
    natives.arg(paths::target().join(format!("release/lib{RUST}")));
    natives.args(["-s", "init", "stop"]);
    let printed = run::output(&mut natives)?;
    compare(&printed, &sources.join("otp29.txt"))
}

/// The packages, unpacked.
fn packages() -> Result<PathBuf> {
    unpacked("natives", &PACKAGES)
}

/// Packages of this machine's Debian, unpacked in a folder of the build folder.
pub(crate) fn unpacked(folder: &str, packages: &[&str]) -> Result<PathBuf> {
    let suite = codename()?;
    let dir = paths::target().join(folder).join(&suite);
    if dir.is_dir() {
        return Ok(dir);
    }
    eprintln!("fetching {} of Debian {suite}", packages.join(", "));
    let lists = paths::target().join("apt").join(&suite);
    let apt = Apt::update(&lists, &apt::machine_mirror()?, &suite, false)?;
    fetch::staged(&dir, |stage| fetch::unpack(&apt, packages, stage))?;
    Ok(dir)
}

/// The library of `jiffy`, and of nothing else: its module is for an old OTP.
pub(crate) fn jiffy() -> Result<PathBuf> {
    let lib = packages()?.join("usr/lib/erlang/lib");
    let entries = fs::read_dir(&lib).with_context(|| format!("listing {}", lib.display()))?;
    let mut files = entries
        .flatten()
        .map(|entry| entry.path().join("priv/jiffy.so"));
    let file = files.find(|file| file.is_file());
    file.with_context(|| format!("no jiffy.so in {}", lib.display()))
}

/// This machine's release of Debian, by name.
fn codename() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").context("reading /etc/os-release")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(line.context("/etc/os-release names no release")?.to_owned())
}

/// The folders of shared libraries in `unpacked`.
pub(crate) fn shared(unpacked: &Path) -> Result<OsString> {
    let mut folders = Vec::new();
    for lib in ["lib", "usr/lib"] {
        let entries = fs::read_dir(unpacked.join(lib)).into_iter().flatten();
        folders.extend(entries.flatten().map(|entry| entry.path()));
    }
    std::env::join_paths(folders).context("the build folder's name has a colon")
}

fn compare(printed: &str, expected: &Path) -> Result<()> {
    let expected =
        fs::read_to_string(expected).with_context(|| format!("reading {}", expected.display()))?;
    let mut lines = expected.lines().zip(printed.lines());
    let other = lines.find(|(otp, ours)| otp != ours);
    if let Some((otp, ours)) = other {
        anyhow::bail!("OTP prints {otp:?}, Beamline {ours:?}");
    }
    let count = |text: &str| text.lines().count();
    ensure!(
        count(&expected) == count(printed),
        "OTP prints {} lines, Beamline {}",
        count(&expected),
        count(printed)
    );
    eprintln!("{} lines as on OTP", count(printed));
    Ok(())
}
