//! `beamline histogram` prints percentiles of the durations of calls, collections, time slices and messages.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_reports::choice::Choice;
use beamline_reports::histogram::{By, Histograms, Of, Request};
use clap::Args;

use crate::options::named;
use crate::{input, report};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Print percentiles of a function's call times, and draw them:
    beamline histogram run.ring my_server:handle_call/3 --svg calls.svg
  Merge the collections of three runs, with a row for each process:
    beamline histogram a.ring b.ring c.ring --of gc-pause
  Write a file for HdrHistogram's plotter:
    beamline histogram run.ring --of run-slice --hgrm > slices.hgrm
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// One or more recordings, which are merged. A PATTERN after them chooses functions: M:F/A, M:F or M, or as
    /// Elixir writes it Mod.fun/1, Mod.fun, Mod or Mod.*; _ or * stand for any. With --by process, it can also be a pid or a
    /// registered name.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Choose what to measure.
    #[arg(long, value_name = "OF", default_value = "call-time", value_parser = named(&Of::ALL, Of::name, Of::about))]
    of: Of,
    /// Choose what a row is [default: function for calls, process for the others].
    #[arg(long, value_parser = named(By::ALL, By::name, By::about))]
    by: Option<By>,
    /// Print one percentile table in HdrHistogram's format over all rows, with times in microseconds.
    #[arg(long, conflicts_with = "json")]
    hgrm: bool,
    /// Print JSON, with times in nanoseconds.
    #[arg(long)]
    json: bool,
    /// Draw the histograms to this file.
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
}

/// Splits the arguments into files and the pattern, if the last argument is one.
fn split(arguments: &[String]) -> (&[String], Option<&String>) {
    match arguments {
        [files @ .., last] if !files.is_empty() && !Path::new(last).exists() => (files, Some(last)),
        files => (files, None),
    }
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let (files, pattern) = split(&args.files);
    let of = args.of;
    let request = Request {
        of,
        by: args.by.unwrap_or(of.by()),
        only: pattern.map(|text| Choice::from(text.as_str())),
    };
    let paths: Vec<&Path> = files.iter().map(Path::new).collect();
    input::keep(&paths, args.svg.as_deref())?;
    let mut all: Option<Histograms> = None;
    for file in files {
        let recording = input::recording(Path::new(file), "a histogram")?;
        let read = Histograms::read(&recording, &request).map_err(|e| format!("{file}: {e}"))?;
        match &mut all {
            Some(all) => all.merge(read)?,
            None => all = Some(read),
        }
    }
    let all = all.ok_or("give at least one file")?;
    if let Some(path) = &args.svg {
        let title = args.files.join(" ");
        report::write(path, |out| all.draw(&title, out).map_err(|e| e.to_string()))?;
    }
    let mut text = Vec::new();
    let written = match (args.json, args.hgrm) {
        (true, _) => all.write_json(&mut text),
        (_, true) => all.write_hgrm(&mut text),
        _ => {
            text = all.to_text(report::columns()).into_bytes();
            Ok(())
        }
    };
    written.map_err(|e| e.to_string())?;
    report::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_argument_may_be_a_pattern() {
        let file = env!("CARGO_MANIFEST_DIR");
        for (arguments, expect) in [
            (vec![file], (1, None)),
            (vec!["no/file"], (1, None)),
            (vec![file, "m:f/1"], (1, Some("m:f/1"))),
            (vec![file, file], (2, None)),
            (vec!["no/file", file, "<0.9.0>"], (2, Some("<0.9.0>"))),
        ] {
            let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
            let (files, pattern) = split(&arguments);
            assert_eq!((files.len(), pattern.map(String::as_str)), expect);
        }
    }
}
