//! `cargo xtask test`: everything that must pass before a change goes in.

use anyhow::Result;

use crate::parts::{self, AfterFailure, Part, part};
use crate::{
    binary, conformance, differ, engines, fetch, golden, natives, orders, programs, replays, run,
    samples, stress,
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

/// Runs the parts, and stops at the first one that fails.
pub(crate) fn main(options: &Options) -> Result<()> {
    let mut all = own(options);
    if !options.quick {
        all.extend(of_otp()?);
    }
    parts::run_all(all, AfterFailure::Stop)
}

/// The workspace's own tests, and the runtime's once more with a collection, and a check of the heap, at every safepoint.
fn own(options: &Options) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    if !options.quick {
        // The tests of `beamline` itself run programs on it, and are skipped where it is not there.
        parts.push(part("fetching OTP", || fetch::otp().map(drop)));
    }
    parts.extend([
        part("compiling the tests", programs::compile),
        part("tests", || {
            run::status(&mut programs::tests(&[], options.no_browser))
        }),
        part("tests of the documentation", programs::run_documentation),
        part("unit tests, gc_zeal", programs::run_zealous),
    ]);
    parts
}

/// What runs programs on OTP's libraries: the samples' counts, trace sessions under stress, the golden cases, these and
/// the binary's tests on the interpreter, random modules on both engines, random programs in all their orders, recordings
/// of others and their replays, libraries of others, and OTP's suites.
fn of_otp<'p>() -> Result<Vec<Part<'p>>> {
    let mut parts = vec![
        part("compiling beamline", || {
            binary::beamline().and_then(|_| binary::zealous()).map(drop)
        }),
        part("samples", || samples::main(&samples::Options::of_test())),
        part("trace sessions", || {
            stress::main(&stress::Options::of_test())
        }),
        part("golden cases", || golden::main(&golden::Options::of_test())),
    ];
    parts.extend(engines::of_test());
    parts.extend([
        part("random modules", || {
            differ::main(&differ::Options::of_test()?)
        }),
        part("orders of random programs", || {
            orders::main(&orders::Options::of_test()?)
        }),
    ]);
    let [each, random] = replays::Options::of_test()?;
    parts.extend([
        part("replays", move || replays::main(&each)),
        part("replays of random programs", move || replays::main(&random)),
        part("libraries of others", || {
            if natives::has_debian() {
                return natives::main(&natives::Options::of_test());
            }
            eprintln!("skipped: there is no Debian mirror to fetch them from");
            Ok(())
        }),
        part("suites", conformance::gate),
    ]);
    Ok(parts)
}
