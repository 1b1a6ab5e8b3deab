//! The command line of `beamline`. It turns arguments into typed options.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_formats::profile::{Libraries, Pattern, Profile, Request, Scope, Type};
use beamline_reports::choice::Choice;
use beamline_reports::critical::Request as CriticalRequest;
use beamline_reports::flamegraph::Width;
use beamline_reports::table::{By, Sort};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::input::{self, Input};
use crate::launch::{self, What};
use crate::options::{RunArgs, SpanArgs, named};
use crate::report::Top;
use crate::{
    ci, critical, defaults, disasm, doctor, env, epmd, explore, export, flamegraph, histogram,
    html, manual, races, record, replay, report, sample, spans, top, trace,
};

const EXAMPLES: &str = "\
EXAMPLES:
  Count every call that an escript makes:
    beamline profile -- escript prime.escript 100
  Measure the own time of each function of a compilation, and draw a flame graph:
    beamline profile --type call_time --flamegraph out.svg -- erlc lists.erl
  Count the words that two modules allocate, in a table for each process, the largest first:
    beamline profile --type call_memory --pattern json --pattern lists:map/2 \\
        --by process --sort words:desc -- mix test
  Measure one call of a function, with all that it calls:
    beamline profile --type call_time --from my_server:init/1 --until my_server:init/1 -- mix test
  Run a program on Beamline's runtime, and measure nothing:
    beamline run -- elixir -e 'IO.puts(1 + 1)'
";

const REPORT_EXAMPLES: &str = "\
EXAMPLES:
  Where did time and memory go in a recorded run?
    beamline report run.stream
  Why did the checkout of a shop on three nodes take so long?
    beamline record -o run/ --events calls,returns,processes,scheduling,messages -- COMMAND
    beamline report run/ --critical-path shop:checkout/1 shop:checkout/1
";

const RECORD_EXAMPLES: &str = "\
EXAMPLES:
  Record the calls, returns, processes, time slices and collections of a test run, and report them:
    beamline record -o run.stream -- mix test
    beamline report run.stream --flamegraph run.svg
  Record messages, and keep only the newest 1 GiB of records:
    beamline record --events messages,processes --ring 1GiB -o run.ring -- erl -s server
  Keep what happened in the ten seconds before a process failed:
    beamline record --dump-on exit:_ --keep 10s -o failed.ring -- erl -s server
  Record all nodes of a cluster, and report them with the calls between them:
    beamline record --events calls,returns,scheduling,messages -o run/ -- ./start_cluster.sh
    beamline report run/
";

/// Profile Erlang and Elixir programs on a BEAM runtime that has tracing built in.
#[derive(Debug, Parser)]
#[command(name = "beamline", version = version(), after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    /// Take no defaults of options from beamline.toml. Its tables [profile] and [record] have the long options of these
    /// commands as keys.
    #[arg(long = defaults::NO_CONFIG, global = true)]
    no_config: bool,
    #[command(subcommand)]
    command: Verb,
}

/// The version, the commit that it is built from, and the releases of Erlang/OTP that it runs.
fn version() -> String {
    let commit = match env!("BEAMLINE_COMMIT") {
        "" => String::new(),
        commit => format!("commit {commit}, "),
    };
    let (oldest, tested) = (
        beamline_runtime_otp_home::OLDEST_RELEASE,
        beamline_runtime_otp_home::TESTED_RELEASE,
    );
    let number = env!("CARGO_PKG_VERSION");
    format!("{number} ({commit}Erlang/OTP {oldest} or later, tested with {tested})")
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a command and profile every emulator it starts.
    #[command(after_help = EXAMPLES)]
    Profile(ProfileArgs),
    /// Run a command on Beamline's runtime, and measure nothing.
    Run(RunArgs),
    /// Print what makes erl, erlc, mix and iex run on Beamline in a shell.
    #[command(after_help = env::EXAMPLES)]
    Env(env::Arguments),
    /// Run a command and record the events of every emulator it starts in a file.
    #[command(after_help = RECORD_EXAMPLES)]
    Record(record::Arguments),
    /// Run a recorded command again, in the recorded order of messages.
    #[command(after_help = replay::EXAMPLES, override_usage = "beamline replay [OPTIONS] FILE [-- COMMAND...]")]
    Replay(replay::Arguments),
    /// Print what processes did to each other in a recorded run.
    #[command(after_help = trace::EXAMPLES)]
    Trace(trace::Arguments),
    /// Print which messages, accesses and exit signals of a recorded run could have come first.
    #[command(after_help = races::EXAMPLES, override_usage = "beamline races [OPTIONS] FILE [-- COMMAND...]")]
    Races(races::Arguments),
    /// Run a call or a program in every order of its messages and accesses to tables and names, and find those in which it fails.
    #[command(after_help = explore::EXAMPLES, override_usage = "beamline explore [--call M:F] [OPTIONS] -- COMMAND...\n       beamline explore --check FOLDER")]
    Explore(explore::Arguments),
    /// Sample a running emulator of OTP from outside, or one that a command starts, and record what its threads do.
    #[command(after_help = sample::EXAMPLES, override_usage = "beamline sample [OPTIONS] PID|NAME\n       beamline sample [OPTIONS] -- COMMAND...")]
    Sample(sample::Arguments),
    /// Show live where the time of a running emulator of OTP goes.
    #[command(after_help = top::EXAMPLES, override_usage = "beamline top [OPTIONS] PID|NAME\n       beamline top [OPTIONS] -- COMMAND...")]
    Top(top::Arguments),
    /// Print the stack of each thread of a running emulator of OTP.
    #[command(after_help = doctor::DUMP_EXAMPLES)]
    Dump(doctor::DumpArguments),
    /// Say whether this user can sample emulators of OTP, and what would make it possible.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(doctor::Arguments),
    /// Run the daemon by which Erlang nodes find each other, as OTP's epmd does.
    #[command(after_help = epmd::EXAMPLES)]
    Epmd(epmd::Arguments),
    /// Print a report of profile files, or of a recording.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Draw a flame graph of a recording or a profile file.
    #[command(after_help = flamegraph::EXAMPLES)]
    Flamegraph(flamegraph::Arguments),
    /// Compare two recordings or two profile files: print what got worse and what got better.
    #[command(after_help = flamegraph::DIFF_EXAMPLES)]
    Diff(flamegraph::DiffArguments),
    /// Convert a recording to the format of another tool.
    #[command(after_help = export::EXAMPLES)]
    Export(export::Arguments),
    /// Print percentiles of the durations of calls, collections, time slices or messages.
    #[command(
        after_help = histogram::EXAMPLES,
        override_usage = "beamline histogram [OPTIONS] FILE... [PATTERN]"
    )]
    Histogram(histogram::Arguments),
    /// Print how long each call of a function took in a recording, or each way from one function to another, and what was done
    /// in them.
    #[command(after_help = spans::EXAMPLES)]
    Spans(spans::Arguments),
    /// Run workloads, compare their counts with a baseline, and fail on a regression.
    Ci(ci::Arguments),
    /// Write a recording as one HTML page: report, flame graph, timeline, messages and histograms.
    #[command(after_help = html::EXAMPLES)]
    Html(html::Arguments),
    /// Print what a shell needs to complete commands and options.
    #[command(after_help = manual::COMPLETIONS_EXAMPLES)]
    Completions(manual::CompletionsArguments),
    /// Write manual pages.
    #[command(after_help = manual::MAN_EXAMPLES)]
    Man(manual::ManArguments),
    /// Print the code of a .beam file, or the machine code of functions.
    #[command(after_help = disasm::EXAMPLES, override_usage = disasm::USAGE)]
    Disasm(disasm::Arguments),
    /// List the built-in functions of the runtime.
    Bifs {
        /// Print one function per line.
        #[arg(long, required = true)]
        list: bool,
    },
}

#[derive(Debug, Args)]
struct ProfileArgs {
    /// Choose what to measure for each function: its calls, its own time, or the words it allocates.
    #[arg(long = "type", value_name = "TYPE", default_value = "call_count",
        value_parser = named(Type::ALL, Type::name, Type::about))]
    kind: Type,
    /// Trace only these functions: M:F/A, M:F or M, or as Elixir writes it Mod.fun/1, Mod.fun, Mod or Mod.* (with the modules
    /// below it); _ or * stand for any. Can be repeated [default: all]. If a pattern means no function of any module that was
    /// loaded, the exit code is 2.
    #[arg(long = "pattern", value_name = "PATTERN")]
    patterns: Vec<Pattern>,
    /// Measure no call paths, and print the table as OTP's tprof does: without the column of costs with callees. Costs less
    /// where a program has many call paths.
    #[arg(long, conflicts_with_all = ["flamegraph", "json", "output"])]
    flat: bool,
    #[command(flatten)]
    span: SpanArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

impl ProfileArgs {
    /// Whether call paths are measured: for files, and for the costs with callees, which calls alone do not have.
    fn needs_call_tree(&self) -> bool {
        let output = &self.output;
        let files = [&output.flamegraph, &output.json, &output.output];
        let has_file = files.into_iter().any(Option::is_some);
        has_file || (self.kind != Type::CallCount && !self.flat)
    }
}

#[derive(Debug, Args)]
struct ReportArgs {
    /// Print what made the time from the first call of FROM to the end of the next call of TO as long as it was, in whichever
    /// processes these are: who ran, which messages were on their way, and who waited for what. --top and --json apply to it.
    #[arg(
        long,
        num_args = 2,
        value_names = ["FROM", "TO"],
        conflicts_with_all = ["scope", "sort", "by", "corrected", "flamegraph", "width", "output"]
    )]
    critical_path: Option<Vec<Choice>>,
    #[command(flatten)]
    output: OutputArgs,
    /// Profile files of one type, which are merged into one profile, or a single recording, or a folder with the recordings of
    /// several nodes.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct OutputArgs {
    /// Show these functions in tables: all, app (no functions of Erlang/OTP, Elixir, Rebar3 or Mix's archives) or those of a pattern,
    /// such as Demo.*. A row has the sums of the others. Files have all functions [default: app; all if --pattern chose
    /// functions, or if no function of app was called].
    #[arg(long, value_name = "all|app|PATTERN")]
    scope: Option<Scope>,
    /// Show at most this many functions in a table: the dearest. A row has the sums of the others. Files have all functions
    /// [default: 30 on a terminal, else all].
    #[arg(long, value_name = "N|all")]
    top: Option<Top>,
    /// Sort the table by module, function, calls, measurement (or time, words), per_call, percent, or total (the measurement
    /// with that of all callees). The largest row comes last, where a terminal shows it. With :desc, it comes first [default:
    /// percent; total where --scope leaves functions out; a recording has its functions as this table only with --sort or
    /// --by; samples have one order].
    #[arg(long, value_name = "COLUMN[:asc|:desc]")]
    sort: Option<Sort>,
    /// Print one table for all processes, or a table for each process or kind of process, or for each node [default: total].
    #[arg(long, value_parser = named(By::ALL, By::name, By::about))]
    by: Option<By>,
    /// Take out of own times what the tracing of calls took of them, as it is measured when a run begins. A line below the table
    /// says how much that is. Saved profiles have both numbers.
    #[arg(long)]
    corrected: bool,
    /// Draw a flame graph of the call paths to this file.
    #[arg(long, value_name = "FILE.svg")]
    flamegraph: Option<PathBuf>,
    /// Choose what the width of a frame of the flame graph shows [default: what the profile measured; for a recording, time].
    #[arg(long, requires = "flamegraph", value_parser = named(Width::ALL, Width::name, Width::about))]
    width: Option<Width>,
    /// Write the profile, or the report of a recording, as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Save the profile to this file, for `beamline report` and other commands. Of a recording, these are the call paths
    /// with their calls, time and words.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl From<&OutputArgs> for report::Options {
    fn from(args: &OutputArgs) -> Self {
        report::Options {
            title: None,
            scope: args.scope.clone(),
            top: args.top,
            sort: args.sort,
            by: args.by,
            corrected: args.corrected,
            flamegraph: args.flamegraph.clone(),
            width: args.width,
            json: args.json.clone(),
            output: args.output.clone(),
            samples: None,
        }
    }
}

/// Runs the command that the arguments (the program's name first) ask for.
///
/// The exit code is the profiled program's own, 1 if Beamline itself failed, or 2 for a wrong
/// command line.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let command = match defaults::with_defaults(Cli::command(), arguments) {
        Ok(command) => command,
        Err(message) => {
            report::error(&message);
            return ExitCode::from(2);
        }
    };
    let cli = match command
        .try_get_matches_from(arguments)
        .and_then(|found| Cli::from_arg_matches(&found))
    {
        Ok(cli) => cli,
        Err(e) => {
            match usage_error(&e) {
                Some(line) => report::error(&line),
                // Help goes to standard output. If that is closed, nobody reads it.
                None => drop(e.print()),
            }
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2));
        }
    };
    let done = match cli.command {
        Verb::Profile(args) => profile(&args),
        Verb::Record(args) => record::run(&args),
        Verb::Run(args) => plain(&args),
        Verb::Env(args) => env::run(&args),
        Verb::Replay(args) => replay::run(&args),
        Verb::Trace(args) => trace::run(&args),
        Verb::Races(args) => races::run(&args),
        Verb::Explore(args) => explore::run(&args),
        Verb::Sample(args) => sample::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::Dump(args) => doctor::dump(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Epmd(args) => Ok(epmd::command(&args)),
        Verb::Report(args) => from_files(&args),
        Verb::Flamegraph(args) => flamegraph::run(&args),
        Verb::Diff(args) => flamegraph::diff(&args),
        Verb::Export(args) => export::run(&args),
        Verb::Histogram(args) => histogram::run(&args),
        Verb::Spans(args) => spans::run(&args),
        Verb::Ci(args) => ci::run(&args),
        Verb::Html(args) => html::run(&args),
        Verb::Completions(args) => manual::completions(&args, Cli::command()),
        Verb::Man(args) => manual::man(&args, Cli::command()),
        Verb::Disasm(args) => disasm::run(&args),
        Verb::Bifs { list: _ } => bifs(),
    };
    done.unwrap_or_else(|message| {
        report::error(&message);
        ExitCode::from(1)
    })
}

/// Says in one line what is wrong with a command line; `None` when the user asked for help.
fn usage_error(error: &clap::Error) -> Option<String> {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        ErrorKind::UnknownArgument => return Some(unknown_option(error)),
        _ => {}
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .collect();
    let line = lines.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    Some(format!("{line}; see --help"))
}

/// Names an option that there is not, and what was meant by it, if something is near.
fn unknown_option(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue};
    let texts = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(all)) => all.clone(),
        _ => Vec::new(),
    };
    let option = texts(ContextKind::InvalidArg).join(" ");
    let near = texts(ContextKind::SuggestedArg);
    let near: Vec<String> = near.iter().map(|one| format!("'{one}'")).collect();
    let what = match option.starts_with('-') {
        true => "unknown option",
        false => "unexpected argument",
    };
    match near.is_empty() {
        true => format!("{what} '{option}'; see --help"),
        false => format!(
            "{what} '{option}'; there is {}; see --help",
            near.join(", ")
        ),
    }
}

/// Prints and writes the report, prints an error for each part that failed, and returns whether none did.
fn reported(profile: Profile, options: &report::Options) -> bool {
    let errors = report::report(profile, options).err();
    for error in errors.iter().flatten() {
        report::error(error);
    }
    errors.is_none()
}

fn profile(args: &ProfileArgs) -> Result<ExitCode, String> {
    if let Err(message) = args.span.check(&args.run) {
        report::error(&message);
        return Ok(ExitCode::from(2));
    }
    let request = Request {
        kind: args.kind,
        patterns: args.patterns.clone(),
        call_tree: args.needs_call_tree(),
        span: args.span.span(),
        folder: PathBuf::new(),
        libraries: Libraries::default(),
    };
    let mut ended = launch::run(&args.run.launch(What::Profile(Box::new(request)))?)?;
    ended.tell_outlived();
    let all_written = match ended.profile.take() {
        Some(profile) => {
            let options = report::Options {
                title: Some(args.run.command.join(" ")),
                ..report::Options::from(&args.output)
            };
            reported(profile, &options)
        }
        None => {
            report::error(
                "no profile was written: no emulator that the command started ran to its end",
            );
            false
        }
    };
    if ended.status.success() && !all_written {
        return Ok(ExitCode::from(1));
    }
    Ok(ended.exit_code_of_patterns())
}

fn plain(args: &RunArgs) -> Result<ExitCode, String> {
    Ok(launch::run(&args.launch(What::Run)?)?.exit_code())
}

fn from_files(args: &ReportArgs) -> Result<ExitCode, String> {
    let options = report::Options::from(&args.output);
    let files: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
    let written = [&options.flamegraph, &options.json, &options.output];
    input::keep(&files, written.into_iter().flatten().map(PathBuf::as_path))?;
    if let Some([from, to]) = args.critical_path.as_deref() {
        let [file] = files.as_slice() else {
            return Err("a critical path is one of a single recording: give one file".into());
        };
        let request = CriticalRequest {
            from: from.clone(),
            to: to.clone(),
        };
        return critical::run(file, &request, &options);
    }
    if let Some(folder) = files.iter().find(|file| file.is_dir()) {
        return match files.len() {
            1 => record::report_folder(folder, &options),
            _ => Err("a report takes one folder only: give one".into()),
        };
    }
    let mut profiles = Vec::new();
    for file in &files {
        match input::open(file)? {
            Input::Profile(profile) => profiles.push(profile),
            Input::Recording(_) if files.len() == 1 => return record::report(file, &options),
            Input::Recording(_) => {
                return Err("a report takes one recording only: give one file".into());
            }
        }
    }
    let profile = Profile::merge(profiles)?;
    let all_written = reported(profile, &options);
    Ok(if all_written {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

fn bifs() -> Result<ExitCode, String> {
    beamline_runtime::hooks::install();
    let mut lines: Vec<String> = beamline_runtime::bifs()
        .iter()
        .map(|bif| beamline_formats::name::mfa(bif.module, bif.function, u32::from(bif.arity)))
        .collect();
    lines.sort();
    report::print(&lines.iter().map(|l| format!("{l}\n")).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    fn parse(line: &str) -> Result<Cli, String> {
        Cli::try_parse_from(line.split(' ')).map_err(|e| e.to_string())
    }

    #[test]
    fn arguments_become_options() {
        let line = "beamline profile --type call_memory --pattern lists:seq/2 --pattern m \
                    --sort words:desc --by process --flamegraph f --width time -o p -- erl -noshell -- --by";
        let Ok(Verb::Profile(args)) = parse(line).map(|cli| cli.command) else {
            panic!("not parsed");
        };
        assert_eq!(args.kind, Type::CallMemory);
        let patterns: Vec<String> = args.patterns.iter().map(ToString::to_string).collect();
        assert_eq!(patterns, ["lists:seq/2", "m"]);
        assert_eq!(args.run.command, ["erl", "-noshell", "--", "--by"]);
        let options = report::Options::from(&args.output);
        assert!(options.sort.is_some_and(|sort| sort.descending));
        assert_eq!(options.by, Some(By::Process));
        assert_eq!(options.width, Some(Width::Time));
        assert_eq!(options.output, Some("p".into()));
    }

    #[test]
    fn wrong_arguments_are_explained() {
        for (line, expect) in [
            ("beamline profile", "COMMAND"),
            (
                "beamline profile --type speed -- erl",
                "call_count, call_time, call_memory",
            ),
            (
                "beamline profile --pattern a:b/c -- erl",
                "the arity 'c' is not 0 to 255",
            ),
            ("beamline profile --sort x -- erl", "'x' is not a column"),
            ("beamline bifs", "--list"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(expect), "{line}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_command_line_is_one_line() {
        for (line, expect) in [
            (
                "beamline flamegraph a.ring",
                Some(
                    "the following required arguments were not provided: --output <FILE.svg>; see --help",
                ),
            ),
            (
                "beamline profil",
                Some(
                    "unrecognized subcommand 'profil' tip: a similar subcommand exists: 'profile'; see --help",
                ),
            ),
            (
                "beamline profile --sort x -- erl",
                Some("'x' is not a column"),
            ),
            ("beamline --help", None),
            ("beamline --version", None),
        ] {
            let error = Cli::try_parse_from(line.split(' ')).expect_err(line);
            let told = usage_error(&error);
            let is_right = match (&told, expect) {
                (Some(told), Some(expect)) => told.contains(expect) && !told.contains('\n'),
                (told, expect) => told.is_none() && expect.is_none(),
            };
            assert!(is_right, "{line}: {told:?}");
        }
    }
}
