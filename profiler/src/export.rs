//! `beamline export` converts recordings for other tools.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use beamline_reports::choice::Choice;
use beamline_reports::cluster::Cluster;
use beamline_reports::export::{self, Selection, Target};
use clap::Args;

use crate::input::{self, Input};
use crate::nodes;
use crate::options::named;
use crate::report;
use crate::units::moment;

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  For ui.perfetto.dev (time slices of schedulers, calls and collections of processes, messages as arrows):
    beamline export run.ring --to perfetto -o run.perfetto-trace
  For `go tool pprof -http=: run.pb.gz`:
    beamline export run.ring --to pprof -o run.pb.gz
  One process, from 2 s to 2.5 s after the recording was begun, compressed:
    beamline export run.ring --to speedscope --only my_server --begin 2s --end 2.5s -o run.speedscope.json.gz
  Write every record as a line of JSON:
    beamline export run.ring --to jsonl | jq -c 'select(.[0] == \"exit\")'
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Choose the format.
    #[arg(long, value_name = "TARGET", value_parser = named(&Target::ALL, Target::name, Target::about))]
    to: Target,
    /// Export only these functions and what they call: M:F/A, M:F or M, or as Elixir writes it Mod.fun/1, Mod.fun, Mod or Mod.*;
    /// _ or * stand for any. Or one process: give its pid, its registered name or the function that it began in.
    #[arg(long, value_name = "PATTERN")]
    only: Option<Choice>,
    /// Export what happened from this time on, such as 500ms, 2.5s or 1m. It counts from the begin of the recording.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    begin: Option<Duration>,
    /// Export what happened up to this time.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    end: Option<Duration>,
    /// Write to this file. If its name ends in .gz, the export is compressed with gzip [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The recording, or a folder with the recordings of several nodes. For folded, callgrind and pprof it can also be a profile file
    /// with call paths.
    file: PathBuf,
}

/// Nanoseconds.
fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether the file's name asks for compression. pprof's format has it inside.
fn is_compressed(path: &Path, target: Target) -> bool {
    target != Target::Pprof && path.extension().is_some_and(|extension| extension == "gz")
}

/// What is exported.
enum Read {
    One(Input),
    /// The recordings of a folder.
    Nodes(Box<Cluster>),
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let target = args.to;
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", args.file.display());
    input::keep(&[&args.file], args.output.as_deref())?;
    let selection = Selection {
        only: args.only.clone(),
        begin_ns: args.begin.map_or(0, ns),
        end_ns: args.end.map(ns),
    };
    let read = match args.file.is_dir() {
        true => Read::Nodes(Box::new(nodes::cluster(&args.file)?)),
        false => Read::One(input::open(&args.file)?),
    };
    let write = |out: &mut dyn Write| match &read {
        Read::One(Input::Profile(profile)) => {
            export::write_profile(profile, target, &selection, out)
        }
        Read::One(Input::Recording(recording)) => export::write(recording, target, &selection, out),
        Read::Nodes(cluster) => export::write_cluster(cluster, target, &selection, out),
    };
    let told = |result: Result<(), export::Error>| match result {
        // The caller adds the name of the file that was written.
        Err(export::Error::Io(error)) => Err(error.to_string()),
        Err(error) => Err(fail(&error)),
        Ok(()) => Ok(()),
    };
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    match target.is_binary() {
        _ if is_compressed(path, target) => {
            report::write_binary(path, "gzip", |out| told(export::compressed(out, write)))?;
        }
        true => report::write_binary(path, target.name(), |out| told(write(out)))?,
        false => report::write(path, |out| told(write(out)))?,
    }
    Ok(ExitCode::SUCCESS)
}
