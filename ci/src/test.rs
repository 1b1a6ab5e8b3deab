//! `cargo xtask test`: everything that must pass before a change goes in.

use anyhow::Result;

use crate::{
    conformance, differ, engines, fetch, golden, natives, orders, replays, run, samples, stress,
};

/// Options of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leave the conformance suites out
    #[arg(long)]
    quick: bool,
    /// Leave out the tests that need Chromium
    #[arg(long)]
    no_browser: bool,
}

/// The workspace's own tests, the runtime's under `gc_zeal`, then the samples' counts, trace sessions under stress, the
/// golden cases, these and the binary's tests on the interpreter, random modules on both engines, random programs in all
/// their orders, recordings of others and their replays, libraries of others, and OTP's suites that are in the gate.
pub(crate) fn main(options: &Options) -> Result<()> {
    if !options.quick {
        // The tests of `beamline` itself run programs on it, and are skipped where it is not there.
        fetch::otp()?;
    }
    let skip: &[&str] = if options.no_browser {
        &["--", "--skip", "in_a_browser"]
    } else {
        &[]
    };
    if run::on_path("cargo-nextest") {
        let nextest = ["nextest", "run", "--workspace", "--no-tests=pass"];
        run::cargo(&[&nextest, skip].concat())?;
        // nextest runs no documentation tests.
        run::cargo(&["test", "--workspace", "--doc"])?;
    } else {
        run::cargo(&[&["test", "--workspace"], skip].concat())?;
    }
    // Once more with a collection, and a check of the heap, at every safepoint.
    let zeal = ["--package", "beamline-runtime", "--lib", "--features"];
    run::cargo(&[&["test"], &zeal[..], &["gc_zeal"]].concat())?;
    if options.quick {
        return Ok(());
    }
    samples::main(&samples::Options::of_test())?;
    stress::main(&stress::Options::of_test())?;
    golden::main(&golden::Options::of_test())?;
    engines::of_test(options.no_browser)?;
    differ::main(&differ::Options::of_test()?)?;
    orders::main(&orders::Options::of_test()?)?;
    for options in replays::Options::of_test()? {
        replays::main(&options)?;
    }
    if natives::has_debian() {
        natives::main(&natives::Options::of_test())?;
    } else {
        eprintln!("libraries of others: skipped, there is no Debian mirror to fetch them from");
    }
    conformance::gate()
}
