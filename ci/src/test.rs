//! `cargo xtask test`: everything that must pass before a change goes in.

use std::process::Command;

use anyhow::Result;

use crate::needs::Needs;
use crate::parts::{self, AfterFailure, Part, part};
use crate::{
    binary, conformance, differ, engines, golden, natives, orders, programs, replays, run, samples,
    stress, traces,
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

/// Runs the parts, and stops at the first one that fails. Those of OTP have libraries of others behind them, where they can
/// be fetched.
pub(crate) fn main(options: &Options) -> Result<()> {
    let needs = match options.quick {
        true => Needs::without_otp(),
        false => Needs::of_machine()?,
    };
    let mut all = own(options, &needs);
    let mut notes = needs.missing();
    if !options.quick {
        all.extend(of_otp(&needs)?);
        if natives::has_debian() {
            let natives = || natives::main(&natives::Options::of_test());
            all.push(part("libraries of others", natives));
        } else {
            notes.push("libraries of others: no Debian mirror to fetch them from".to_owned());
        }
    }
    parts::run_all(all, AfterFailure::Stop, &notes)
}

/// The workspace's own tests, and the runtime's once more with a collection, and a check of the heap, at every safepoint.
fn own<'p>(options: &'p Options, needs: &'p Needs) -> Vec<Part<'p>> {
    let run = move |mut tests: Command| {
        needs.require(&mut tests);
        run::status(&mut tests)
    };
    vec![
        part("compiling the tests", programs::compile),
        part("tests", move || {
            run(programs::tests(&[], options.no_browser))
        }),
        part("tests of the documentation", programs::run_documentation),
        part("unit tests, gc_zeal", move || run(programs::zealous())),
    ]
}

/// What runs programs on OTP's libraries: the samples' counts, trace sessions under stress, the answers of the trace
/// interface, the golden cases, these and the binary's tests on the interpreter, random modules on both engines, random
/// programs in all their orders, recordings of others and their replays, and OTP's suites.
fn of_otp(needs: &Needs) -> Result<Vec<Part<'_>>> {
    let mut parts = vec![
        part("compiling beamline", || {
            binary::beamline().and_then(|_| binary::zealous()).map(drop)
        }),
        part("samples", || samples::main(&samples::Options::of_test())),
        part("trace sessions", || {
            stress::main(&stress::Options::of_test())
        }),
        part("trace messages", || {
            traces::main(&traces::Options::of_test())
        }),
        part("golden cases", || golden::main(&golden::Options::of_test())),
    ];
    parts.extend(engines::of_test(needs));
    parts.extend([
        part("random modules", || {
            differ::main(&differ::Options::of_test()?)
        }),
        part("orders of random programs", || {
            orders::main(&orders::Options::of_test())
        }),
    ]);
    let [each, random] = replays::Options::of_test()?;
    parts.extend([
        part("replays", move || replays::main(&each)),
        part("replays of random programs", move || replays::main(&random)),
        part("suites", conformance::gate),
    ]);
    Ok(parts)
}
