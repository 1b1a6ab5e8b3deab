//! `cargo xtask fuzz`: coverage-guided fuzzing of the readers of foreign bytes, with libFuzzer under AddressSanitizer.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{outside, paths, run, sanitize};

/// Options of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The reader: a row of `ci/fuzz/src/lib.rs`; without one, all of them in turn
    target: Option<String>,
    /// Seconds for each reader
    #[arg(long, value_name = "SECS", default_value_t = 60)]
    time: u64,
}

/// What the compiler puts in, as cargo-fuzz has it do: counters of all edges, and calls before comparisons.
const COVERAGE: [&str; 8] = [
    "-Zsanitizer=address",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
    // Each object has counters of its own, and the linker drops none of them alone.
    "-Ccodegen-units=1",
];

/// libFuzzer's own options: seconds for one file, and megabytes for all that a process reads.
const LIMITS: [&str; 2] = ["-timeout=20", "-rss_limit_mb=3072"];

/// Seconds after which a process is replaced by a new one: atoms, exports and entries of funs stay as long as it lives.
const ROUND_SECONDS: u64 = 60;

/// Builds the fuzzer in a folder of its own, and runs it on one reader or on each.
pub(crate) fn main(options: &Options) -> Result<()> {
    if !run::on_path("c++") {
        bail!("libFuzzer is C++: there is no `c++` on PATH (Debian: `apt-get install g++`)");
    }
    let folder = paths::target().join("fuzz");
    let host = run::host()?;
    let mut build = run::cargo_command(&["build", "--package", "beamline-fuzz"]);
    build.args(["--features", "coverage", "--bins"]);
    // With a name for the machine, build scripts are built without the coverage.
    build.args(["--target", &host]);
    build.env("RUSTC_BOOTSTRAP", "1");
    build.env("RUSTFLAGS", COVERAGE.join(" "));
    run::status(build.env("CARGO_TARGET_DIR", &folder))?;
    let built = folder.join(host).join("debug");
    let all = run::output(Command::new(built.join("beamline-fuzz")).arg("--list"))?;
    let all: Vec<_> = all.lines().collect();
    let chosen: Vec<_> = match &options.target {
        None => all,
        Some(name) if all.contains(&name.as_str()) => vec![name.as_str()],
        Some(name) => bail!("`{name}` is no reader; there are {}", all.join(", ")),
    };
    for target in chosen {
        fuzz(&built.join("coverage"), &folder, target, options.time)?;
    }
    Ok(())
}

/// Runs the fuzzer on one reader. What it has found before is where it begins, beside whole files.
fn fuzz(fuzzer: &Path, folder: &Path, target: &str, seconds: u64) -> Result<()> {
    let [corpus, seeds, found] =
        ["corpus", "seeds", "found"].map(|it| folder.join(it).join(target));
    for folder in [&corpus, &seeds, &found] {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    println!(
        "{target}: {seconds} s; what it finds is in {}",
        found.display()
    );
    let end = outside::now() + std::time::Duration::from_secs(seconds);
    loop {
        let left = end.saturating_duration_since(outside::now()).as_secs();
        if left == 0 {
            return Ok(());
        }
        let mut fuzzer = Command::new(fuzzer);
        fuzzer.args([&corpus, &seeds]).args(LIMITS);
        fuzzer.arg(format!("-max_total_time={}", left.min(ROUND_SECONDS)));
        fuzzer.arg(format!("-artifact_prefix={}/", found.display()));
        fuzzer.arg("-print_final_stats=1");
        fuzzer.env("BEAMLINE_FUZZ_TARGET", target);
        fuzzer.env("BEAMLINE_FUZZ_SEEDS", &seeds);
        run::status(fuzzer.env("ASAN_OPTIONS", sanitize::ASAN_OPTIONS))?;
    }
}
