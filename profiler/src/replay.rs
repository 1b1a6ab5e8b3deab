//! `beamline replay` runs a recorded command again, in the recorded order.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_formats::profile::Libraries;
use beamline_orders::{Halt, Stop, Trace};
use clap::Args;

use crate::launch::{self, What};
use crate::options::{EnvironmentArgs, ReplayOf, schedulers};
use crate::units::moment;
use crate::{again, explore, report};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Record the order of a run, and run it again as it was:
    beamline record --events order -o run.stream -- erl -noshell -s my_app -s init stop
    beamline replay run.stream
  Profile the run that was recorded, or record its calls:
    beamline profile --type call_time --replay run.stream -- erl -noshell -s my_app -s init stop
  Stop where a process is about to send a message, or at a time of the recorded run, and see where all processes are:
    beamline replay run.stream --stop-at l0.4.7:2
    beamline replay run.stream --stop-at 1.5s
  Follow a prefix, and then run free:
    beamline trace run.stream --log > prefix.log
    beamline replay prefix.log -- erl -noshell -s my_app -s init stop
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The recording, made with --events order, or a trace as `beamline trace` prints it.
    file: PathBuf,
    /// If a process cannot follow the recording, let it run freely, instead of ending the emulator with exit code 1.
    #[arg(long)]
    go_on: bool,
    /// Stop, print where all processes are, and end with exit code 0: before the message l0.4.7:2 is sent, when the message
    /// t0.4.7:3 is in its queue, before the access a0.4.7:5, when the process p0.4.7 begins, or at a time of the recorded
    /// run, such as 1.5s.
    #[arg(long, value_name = "REF|TIME")]
    stop_at: Option<String>,
    /// With --stop-at, open an Erlang shell there, to look at the processes of the program, which are stopped.
    #[arg(long, requires = "stop_at")]
    shell: bool,
    /// Run on this many schedulers [default: as the command says, one for each processor]. The program does the same on
    /// any number of them.
    #[arg(long, value_name = "N", conflicts_with = "deterministic", value_parser = schedulers())]
    schedulers: Option<u16>,
    #[command(flatten)]
    environment: EnvironmentArgs,
    /// The command to run [default: the one that was recorded].
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    if explore::is_finding(&args.file) {
        if let Some(line) = not_of_finding(args) {
            report::error(line);
            return Ok(ExitCode::from(2));
        }
        return explore::replay(&args.file, &args.environment, &args.command);
    }
    let stop = match &args.stop_at {
        None => None,
        Some(text) => match halt(&args.file, text, args.shell)? {
            Ok(halt) => Some(halt),
            Err(wrong) => {
                report::error(&format!("--stop-at {text}: {wrong}"));
                return Ok(ExitCode::from(2));
            }
        },
    };
    let replay = ReplayOf {
        replay: Some(args.file.clone()),
        go_on: args.go_on,
        schedulers: args.schedulers,
        stop,
    };
    let command = match args.command.is_empty() {
        false => args.command.clone(),
        true => again::recorded_command(&args.file)?.ok_or_else(|| {
            let shown = args.file.display();
            format!("{shown}: it does not say of which command it is: give the command behind --")
        })?,
    };
    let launch = args.environment.launch(What::Run, &command, &replay)?;
    Ok(launch::run(&launch)?.exit_code())
}

/// What is asked for that the finding of an exploration does not do.
fn not_of_finding(args: &Arguments) -> Option<&'static str> {
    if args.stop_at.is_some() {
        return Some(
            "--stop-at: the finding of an exploration is one run, and does not stop in it",
        );
    }
    if args.schedulers.is_some() {
        return Some("--schedulers: the finding of an exploration runs on one scheduler");
    }
    None
}

/// Where the replay of a file is to stop; what is wrong with that, in one line.
///
/// # Errors
/// One line: the file cannot be followed.
fn halt(file: &Path, text: &str, shell: bool) -> Result<Result<Halt, String>, String> {
    let trace = Trace::load(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let is_time = text.starts_with(|first: char| first.is_ascii_digit());
    let at = match is_time {
        true => moment(text).and_then(|time| Stop::at_time(file, time)),
        false => trace.stop_at(text),
    };
    Ok(at.map(|at| Halt {
        at,
        text: text.to_owned(),
        shell,
        libraries: Libraries::default(),
    }))
}
