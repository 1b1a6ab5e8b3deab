//! `beamline export` converts recordings for other tools.

use std::path::PathBuf;
use std::process::ExitCode;

use beamline_formats::export::{self, Target};
use clap::Args;

use crate::input::{self, Input};
use crate::options::named;
use crate::report;

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  For ui.perfetto.dev (time slices of schedulers, calls and collections of processes, messages as arrows):
    beamline export run.ring --to perfetto -o run.perfetto-trace
  For `go tool pprof -http=: run.pb.gz`:
    beamline export run.ring --to pprof -o run.pb.gz
  Write every record as a line of JSON:
    beamline export run.ring --to jsonl | grep '\"event\":\"exit\"'
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Choose the format.
    #[arg(long, value_name = "TARGET", value_parser = named(&Target::ALL, Target::name, Target::about))]
    to: Target,
    /// Write to this file [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The recording. For folded, callgrind and pprof it can also be a profile file with call paths.
    file: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let target = args.to;
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", args.file.display());
    input::keep(&[&args.file], args.output.as_deref())?;
    let read = input::open(&args.file)?;
    let export = |out: &mut dyn std::io::Write| {
        let result = match &read {
            Input::Profile(profile) => export::write_profile(profile, target, out),
            Input::Recording(recording) => export::write(recording, target, out),
        };
        match result {
            // The caller adds the name of the file that was written.
            Err(export::Error::Io(error)) => Err(error.to_string()),
            Err(error) => Err(fail(&error)),
            Ok(()) => Ok(()),
        }
    };
    match &args.output {
        Some(path) => report::write(path, export)?,
        None => report::stream(export)?,
    }
    Ok(ExitCode::SUCCESS)
}
