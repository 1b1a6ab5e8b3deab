//! `beamline spans` prints every occurrence of a part of a recorded run, and what was done in it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_reports::choice::Choice;
use beamline_reports::occurrences::{Nth, Occurrences, Request};
use clap::Args;

use crate::ending::quoted;
use crate::input;
use crate::report::{self, Top};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  How long did each call of a function take, which were the slowest, and what did they do?
    beamline spans run.stream --from my_server:handle_call/3
  From a call of one function to the end of a call of another, in the same process:
    beamline spans run.stream --from Shop.checkout/1 --until Shop.confirm/1
  What did the slowest one do?
    beamline spans run.stream --from my_server:handle_call/3 --nth slowest
";

/// Rows of the table of functions, unless `--top` says it.
const ROWS: usize = 20;

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A call of this function begins an occurrence: M:F/A, M:F or M, or as Elixir writes it Mod.fun/1, Mod.fun, Mod or Mod.*;
    /// _ or * stand for any. A call that it makes of itself belongs to it.
    #[arg(long, value_name = "PATTERN")]
    from: Choice,
    /// The next call of this function in the same process ends the occurrence when it returns [default: the call of --from
    /// does].
    #[arg(long, value_name = "PATTERN")]
    until: Option<Choice>,
    /// Print what was done in this occurrence only: its number, counted from 1 by when it began, or slowest [default: what
    /// was done in all of them].
    #[arg(long, value_name = "N|slowest")]
    nth: Option<Nth>,
    /// Show at most this many functions. A row has the sums of the others [default: 20].
    #[arg(long, value_name = "N|all")]
    top: Option<Top>,
    /// Print JSON, with all functions and times in nanoseconds.
    #[arg(long, conflicts_with = "top")]
    json: bool,
    /// The recording, or a folder with the recordings of several nodes.
    file: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let request = Request {
        from: args.from.clone(),
        until: args.until.clone(),
        nth: args.nth,
    };
    let recording = input::recording(&args.file, "a list of spans")?;
    let all = Occurrences::read(&recording, &request);
    let all = all.map_err(|e| format!("{}: {e}", args.file.display()))?;
    if args.json {
        let text = serde_json::to_string_pretty(&all).map_err(|e| e.to_string())?;
        report::print(&format!("{text}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let view = report::view_of(args.top, ROWS);
    report::print(&all.to_text(&view))?;
    report::print(&picture(&all, &args.file))?;
    Ok(ExitCode::SUCCESS)
}

/// How to look at the chosen occurrence alone, if one was chosen.
fn picture(all: &Occurrences, file: &Path) -> String {
    let Some(chosen) = all.chosen() else {
        return String::new();
    };
    let file = quoted(file);
    let us = |ns: u64| format!("{}.{:03}us", ns / 1000, ns % 1000);
    format!(
        "\nTo look at it in Perfetto:\n  beamline export {file} --to perfetto --only '{}' --begin {} --end {} -o span.perfetto-trace\n",
        chosen.process,
        us(chosen.start_ns),
        us(chosen.start_ns + chosen.time_ns),
    )
}
