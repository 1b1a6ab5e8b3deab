//! `beamline export`: recordings for other programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_formats::export::{self, Target};
use beamline_formats::profile::Profile;
use beamline_formats::ring::Recording;
use clap::Args;

use crate::cli::named;
use crate::report;

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  For ui.perfetto.dev: turns of schedulers, calls and collections of processes, messages as arrows:
    beamline export run.ring --to perfetto -o run.perfetto-trace
  For `go tool pprof -http=: run.pb.gz`:
    beamline export run.ring --to pprof -o run.pb.gz
  Every record as a line of JSON:
    beamline export run.ring --to jsonl | grep '\"event\":\"exit\"'
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Who is to read it.
    #[arg(long, value_name = "TARGET", value_parser = named(&Target::ALL, Target::name, Target::about))]
    to: Target,
    /// Where it goes [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A recording; for folded, callgrind and pprof also a profile with call paths.
    file: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let target = args.to;
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", args.file.display());
    let export = |out: &mut dyn std::io::Write| {
        let result = if is_profile(&args.file) {
            export::write_profile(&Profile::read(&args.file)?, target, out)
        } else {
            let recording = Recording::open(&args.file).map_err(|e| fail(&e))?;
            export::write(&recording, target, out)
        };
        match result {
            // Of what is written where, the caller tells.
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

/// A profile is asked for its paths; whatever else it is, the recording's reader says what is wrong with it.
fn is_profile(path: &Path) -> bool {
    !Recording::is_one(path) && Profile::is_one(path)
}
