//! `beamline trace` prints what processes did to each other in a recorded run.

use std::path::PathBuf;
use std::process::ExitCode;

use beamline_orders::Trace;
use clap::Args;

use crate::report;

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Record the order of a run, and print each process's steps:
    beamline record --events order -o run.stream -- erl -noshell -s my_app -s init stop
    beamline trace run.stream
  Print the log (the trace without deliveries), to keep a part of it as a prefix:
    beamline trace run.stream --log > prefix.log
  Print the steps of one process:
    beamline trace run.stream --process my_server
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print the log: the trace without its deliveries.
    #[arg(long)]
    log: bool,
    /// Print only this process: its reference such as p0.4, its registered name, or the function that it began in. Can be
    /// repeated [default: all].
    #[arg(long = "process", value_name = "PROCESS")]
    processes: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// A recording with the events order, or a trace.
    file: PathBuf,
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let shown = args.file.display();
    let trace = Trace::load(&args.file).map_err(|error| format!("{shown}: {error}"))?;
    let trace = match args.log {
        true => trace.log(),
        false => trace,
    };
    let mut places = Vec::new();
    for name in &args.processes {
        let found = trace.select(name);
        if found.is_empty() {
            return Err(format!("{shown}: no process is {name}"));
        }
        places.extend(found);
    }
    if args.processes.is_empty() {
        places.extend(trace.processes.indexes());
    }
    let text = match args.json {
        true => trace.to_json(&places) + "\n",
        false => places.iter().map(|at| trace.line(*at) + "\n").collect(),
    };
    report::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
