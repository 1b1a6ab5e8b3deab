//! `beamline html` writes a recording as one HTML page.

use std::path::PathBuf;
use std::process::ExitCode;

use beamline_formats::ring::Error;
use beamline_reports::html::Page;
use clap::Args;

use crate::{input, report};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Show everything about a run in one file:
    beamline record --events calls,returns,messages,processes,scheduling,gc,system \\
        -o run.stream -- mix test
    beamline html run.stream -o run.html
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Write the page to this file.
    #[arg(short, long, value_name = "FILE.html")]
    output: PathBuf,
    /// Show at most this many call paths, calls, time slices, collections, messages and other events each. The page
    /// keeps the largest call paths, the longest calls, time slices and collections, and the newest of the others.
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    most: u32,
    /// The recording.
    file: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let shown = args.file.display().to_string();
    let fail = |error: Error| format!("{shown}: {error}");
    input::keep(&[&args.file], [args.output.as_path()])?;
    let recording = input::recording(&args.file, "a page")?;
    if recording.sampling().is_some() {
        return Err(format!(
            "{shown}: a page counts calls, which samples do not have: use beamline report and beamline flamegraph"
        ));
    }
    let page = Page::read(&recording, &shown, args.most as usize).map_err(fail)?;
    report::write(&args.output, |out| {
        page.write(out).map_err(|e| e.to_string())
    })?;
    Ok(ExitCode::SUCCESS)
}
