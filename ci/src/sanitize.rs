//! `cargo xtask sanitize`: the runtime's tests, and those of libraries in C, under AddressSanitizer; the latter also with
//! `nif_checks`.

use anyhow::Result;

use crate::{fetch, paths, run};

/// Options of `cargo xtask sanitize`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run only tests that have this in their names
    filter: Option<String>,
}

/// Bytes of stack for the thread of a test: frames are larger than they are without the sanitizer.
const STACK_BYTES: &str = "33554432";

/// What is not looked for: memory that is not given back, as the tables of atoms, exports and funs live as long as the
/// process; and uses of frames that are left, as their stand-ins off the stack have PCRE2's guard take it for full.
pub(crate) const ASAN_OPTIONS: &str = "detect_leaks=0:detect_stack_use_after_return=0";

/// Builds the tests in a folder of their own, and runs them.
pub(crate) fn main(options: &Options) -> Result<()> {
    sanitized(&["--package", "beamline-runtime*", "--lib"], options)?;
    // These run programs, for which the machine is built in the same way.
    fetch::otp()?;
    sanitized(
        &["--package", "beamline", "--test", "nif", "--test", "driver"],
        options,
    )?;
    // Once more with a check of what they give.
    let checked = ["--package", "beamline", "--features", "nif_checks"];
    let libraries = ["--test", "nif", "--test", "driver"];
    run::cargo(&[&["test"], &checked[..], &libraries].concat())?;
    println!(
        "ThreadSanitizer was not run: it needs a standard library that is built with it; \
         `cargo xtask loom` has models of the lock-free code"
    );
    Ok(())
}

fn sanitized(which: &[&str], options: &Options) -> Result<()> {
    let mut tests = run::cargo_command(&["test"]);
    tests.args(which);
    // With a name for the machine, build scripts are built without the sanitizer.
    tests.args(["--target", &run::host()?]);
    tests.args(&options.filter);
    // The stable compiler has the sanitizer, and takes the flag only so.
    tests.env("RUSTC_BOOTSTRAP", "1");
    tests.env("RUSTFLAGS", "-Zsanitizer=address");
    tests.env("CARGO_TARGET_DIR", paths::target().join("asan"));
    tests.env("RUST_MIN_STACK", STACK_BYTES);
    run::status(tests.env("ASAN_OPTIONS", ASAN_OPTIONS))
}
