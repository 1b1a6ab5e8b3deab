//! `beamline html` writes a recording as one HTML page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_formats::ring::{Error, Recording};
use beamline_reports::html::Page;
use clap::Args;

use crate::{input, report};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Show everything about a run in one file:
    beamline record --events calls,returns,messages,processes,scheduling,gc,system \\
        -o run.stream -- mix test
    beamline html run.stream -o run.html
  Show where the time of a running node goes:
    beamline sample my_node --duration 10s -o node.samples
    beamline html node.samples -o node.html
";

/// The most of each kind of thing, if nobody says how many.
const MOST: u32 = 100_000;

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Write the page to this file.
    #[arg(short, long, value_name = "FILE.html")]
    output: PathBuf,
    /// Show at most this many call paths, calls, time slices, collections, messages and other events each. The page
    /// keeps the largest call paths, the longest calls, time slices and collections, and the newest of the others.
    #[arg(long, value_name = "NUMBER", default_value_t = MOST,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    most: u32,
    /// The recording, or a folder with the recordings of several nodes, which are shown together.
    file: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let shown = args.file.display().to_string();
    let fail = |error: Error| format!("{shown}: {error}");
    input::keep(&[&args.file], [args.output.as_path()])?;
    let recording = input::recording(&args.file, "a page")?;
    write(&recording, &shown, args.most, &args.output).map_err(fail)??;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a recording that is called so. The outer error is one of reading.
fn write(
    recording: &Recording,
    name: &str,
    most: u32,
    to: &Path,
) -> Result<Result<(), String>, Error> {
    let page = Page::read(recording, name, most as usize)?;
    Ok(report::write(to, |out| {
        page.write(out).map_err(|e| e.to_string())
    }))
}

/// Writes the page of samples.
pub(crate) fn of_samples(
    recording: &Recording,
    name: &str,
    to: &Path,
) -> Result<Result<(), String>, Error> {
    write(recording, name, MOST, to)
}
