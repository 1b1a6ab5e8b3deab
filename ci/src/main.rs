//! `cargo xtask`: the project's tasks. Each subcommand is a module.

mod apt;
mod bifs;
mod binary;
mod book;
mod cases;
mod compare;
mod conformance;
mod costs;
mod counts;
mod demo;
mod differ;
mod engine;
mod engines;
mod fetch;
mod fidelity;
mod fuzz;
mod golden;
mod headers;
mod instance;
mod kills;
mod libraries;
mod loom;
mod natives;
mod needs;
mod nightly;
mod orders;
mod outside;
mod parts;
mod paths;
mod pictures;
mod place;
mod programs;
mod replays;
mod run;
mod samples;
mod sanitize;
mod shares;
mod stress;
mod test;
mod traces;
mod truth;

use beamline_runtime_otp_home as otp_home;
use clap::{Parser, Subcommand};

/// Run a task of the project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Fetch OTP 29 and Elixir into the build folder, from the mirror that apt uses on this machine
    Fetch(fetch::Options),
    /// Profile a sample: print its table and write its flame graph under target/demo
    Demo(demo::Options),
    /// Make a site of docs/ with mdBook, under target/book
    Book,
    /// Make the pictures of the README, in light and dark; needs Chromium
    Pictures(pictures::Options),
    /// Run all tests of the workspace, then the conformance suites of the gate
    Test(test::Options),
    /// Run everything that tests, for as long as it takes, and go on after a failure
    Nightly(nightly::Options),
    /// Run OTP's own test suites and compare each case's result with OTP's
    Conformance(conformance::Options),
    /// Count how many of OTP 29's BIFs the runtime has
    Bifs(bifs::Options),
    /// Run the same programs on OTP and on Beamline, in turns, and print the ratios
    Compare(compare::Options),
    /// Run samples and whole programs several times in deterministic mode, and compare the samples' counts with the baseline
    Samples(samples::Options),
    /// Call functions while trace sessions come and go, and check every count
    Stress(stress::Options),
    /// Compare each answer of the trace interface with OTP 29's
    Traces(traces::Options),
    /// Compare what profiles say of functions with what these measure themselves
    Truth(truth::Options),
    /// Compare the shares of own time in profiles with what perf sees of undisturbed runs
    Fidelity(fidelity::Options),
    /// Compare the shares that samples of OTP's emulator tell with what the workloads themselves know
    Shares(shares::Options),
    /// Run random cases on OTP and on Beamline, and compare the answers
    Differ(differ::Options),
    /// Run the binary's tests, the golden cases, samples and suites on each engine
    Engines(engines::Options),
    /// Run the golden cases and compare each answer with OTP 29's
    Golden(golden::Options),
    /// Run libraries of others in C, C++ and Rust, and compare what they do with OTP 29
    Natives(natives::Options),
    /// Kill recorded programs and check every record that is left
    Kills(kills::Options),
    /// Record programs whose output is chance, replay them, and compare the output
    Replays(replays::Options),
    /// Explore random programs in all their orders, and look for others by chance
    Orders(orders::Options),
    /// Run the models of lock-free code under loom
    Loom,
    /// Run the runtime's tests under AddressSanitizer
    Sanitize(sanitize::Options),
    /// Fuzz the readers of foreign bytes, led by coverage, under AddressSanitizer
    Fuzz(fuzz::Options),
    /// Compare the samples' calls and words per function with what tprof counts on OTP
    Counts(counts::Options),
}

/// Does this program know a command line?
#[cfg(test)]
fn parse<'w>(words: impl Iterator<Item = &'w str>) -> Result<(), clap::Error> {
    Cli::try_parse_from(words).map(drop)
}

fn main() -> std::process::ExitCode {
    let done = match Cli::parse().task {
        Task::Fetch(options) => fetch::main(&options),
        Task::Demo(options) => demo::main(&options),
        Task::Book => book::main(),
        Task::Pictures(options) => pictures::main(&options),
        Task::Test(options) => test::main(&options),
        Task::Nightly(options) => nightly::main(&options),
        Task::Conformance(options) => conformance::main(&options),
        Task::Bifs(options) => bifs::main(&options),
        Task::Compare(options) => compare::main(&options),
        Task::Samples(options) => samples::main(&options),
        Task::Stress(options) => stress::main(&options),
        Task::Traces(options) => traces::main(&options),
        Task::Truth(options) => truth::main(&options),
        Task::Fidelity(options) => fidelity::main(&options),
        Task::Shares(options) => shares::main(&options),
        Task::Differ(options) => differ::main(&options),
        Task::Engines(options) => engines::main(&options),
        Task::Golden(options) => golden::main(&options),
        Task::Natives(options) => natives::main(&options),
        Task::Kills(options) => kills::main(&options),
        Task::Replays(options) => replays::main(&options),
        Task::Orders(options) => orders::main(&options),
        Task::Loom => loom::main(),
        Task::Sanitize(options) => sanitize::main(&options),
        Task::Fuzz(options) => fuzz::main(&options),
        Task::Counts(options) => counts::main(&options),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
