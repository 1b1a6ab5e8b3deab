//! `beamline replay` runs a recorded command again, in the recorded order.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::again;
use crate::explore;
use crate::launch::{self, What};
use crate::options::{EnvironmentArgs, ReplayOf};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Record the order of a run, and run it again as it was:
    beamline record --events order -o run.stream -- erl -noshell -s my_app -s init stop
    beamline replay run.stream
  Profile the run that was recorded, or record its calls:
    beamline profile --type call_time --replay run.stream -- erl -noshell -s my_app -s init stop
  Follow a prefix, and then run free:
    beamline trace run.stream --log > prefix.log
    beamline replay prefix.log -- erl -noshell -s my_app -s init stop
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The recording, made with --events order, or a trace as `beamline trace` prints it.
    file: PathBuf,
    /// Have a process that cannot follow run free, instead of ending the emulator with exit code 1.
    #[arg(long)]
    go_on: bool,
    #[command(flatten)]
    environment: EnvironmentArgs,
    /// The command to run [default: the one that was recorded].
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    if explore::is_finding(&args.file) {
        return explore::replay(&args.file, &args.environment, &args.command);
    }
    let replay = ReplayOf {
        replay: Some(args.file.clone()),
        go_on: args.go_on,
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
