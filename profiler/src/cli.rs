//! The command line of `beamline`: arguments become typed options.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_formats::flamegraph::Width;
use beamline_formats::profile::{Pattern, Profile, Request, Type};
use beamline_formats::table::{By, Sort};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::flamegraph::{self, WidthArg};
use crate::input::{self, Input};
use crate::launch::{self, Launch, Mode, What};
use crate::{ci, export, histogram, html, record, report};

const EXAMPLES: &str = "\
EXAMPLES:
  Count the calls of everything an escript does:
    beamline profile -- escript prime.escript 100
  Own time per function of a compilation, and a flame graph:
    beamline profile --type call_time --flamegraph out.svg -- erlc lists.erl
  Words allocated by two modules, a table for each process, the largest first:
    beamline profile --type call_memory --pattern json --pattern lists:map/2 \\
        --by process --sort words:desc -- mix test
  Run a program on Beamline's runtime without a profile:
    beamline run -- elixir -e 'IO.puts(1 + 1)'
";

const RECORD_EXAMPLES: &str = "\
EXAMPLES:
  Record calls, returns, turns, processes and collections of a test run, and look at it:
    beamline record -o run.ring -- mix test
    beamline report run.ring --flamegraph run.svg
  Record what is sent and received, the newest 1 GiB of it:
    beamline record --events messages,processes --ring 1GiB -o run.ring -- erl -s server
";

/// A low-overhead profiler for Erlang and Elixir.
#[derive(Debug, Parser)]
#[command(name = "beamline", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a command and profile every emulator it starts.
    #[command(after_help = EXAMPLES)]
    Profile(ProfileArgs),
    /// Run a command on Beamline's runtime, without a profile.
    Run(RunArgs),
    /// Run a command and record what happens in every emulator it starts, event by event.
    #[command(after_help = RECORD_EXAMPLES)]
    Record(record::Arguments),
    /// Print a report of profile files or recordings made before.
    Report(ReportArgs),
    /// Draw the flame graph of a profile file with call paths, or of a recording with calls and returns.
    #[command(after_help = flamegraph::EXAMPLES)]
    Flamegraph(flamegraph::Arguments),
    /// Show what got better and what got worse between two recordings, or two profile files.
    #[command(after_help = flamegraph::DIFF_EXAMPLES)]
    Diff(flamegraph::DiffArguments),
    /// Write a recording in the format of another program.
    #[command(after_help = export::EXAMPLES)]
    Export(export::Arguments),
    /// Show how long single calls, collections, turns or messages took: percentiles of recordings.
    #[command(
        after_help = histogram::EXAMPLES,
        override_usage = "beamline histogram [OPTIONS] FILE... [PATTERN]"
    )]
    Histogram(histogram::Arguments),
    /// Run workloads, compare what they do with a baseline, and say yes or no.
    Ci(ci::Arguments),
    /// Write a page for a browser: report, flame graph, timeline, messages and histograms of a recording.
    #[command(after_help = html::EXAMPLES)]
    Html(html::Arguments),
    /// Print the generic instructions of a .beam file.
    Disasm {
        /// The .beam file.
        file: PathBuf,
    },
    /// Show the built-in functions of the runtime.
    Bifs {
        /// Print them, one to a line.
        #[arg(long, required = true)]
        list: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The Erlang/OTP whose libraries are run [default: $BEAMLINE_OTP, erl on PATH, target/otp].
    #[arg(long, value_name = "DIR")]
    pub(crate) otp: Option<PathBuf>,
    /// Run with one scheduler, in virtual time and without chance, so that two runs do the same.
    #[arg(long)]
    pub(crate) deterministic: bool,
    /// What to run: a command that starts erl, or a .erl, .beam or .exs file, and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<String>,
}

impl RunArgs {
    /// Its command, to be run so.
    pub(crate) fn launch(&self, what: What) -> Launch {
        Launch {
            otp: self.otp.clone(),
            what,
            command: self.command.clone(),
            mode: Mode {
                deterministic: self.deterministic,
                ..Mode::default()
            },
        }
    }
}

#[derive(Debug, Args)]
struct ProfileArgs {
    /// What to measure.
    #[arg(long = "type", value_enum, default_value = "call_count")]
    kind: Kind,
    /// Functions to trace, as M:F/A, M:F or M, with _ for any; may be repeated [default: all].
    #[arg(long = "pattern", value_name = "M:F/A")]
    patterns: Vec<Pattern>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct ReportArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Profile files, of which those of several runs of one type are put together; or one recording.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct OutputArgs {
    /// The order of rows: module, function, calls, measurement (or time, words), per_call,
    /// percent; with :desc the largest first.
    #[arg(long, value_name = "COLUMN[:asc|:desc]", default_value = "percent")]
    sort: Sort,
    /// One table, or one for each process.
    #[arg(long, value_enum, default_value = "total")]
    by: ByArg,
    /// Write a flame graph of the call paths.
    #[arg(long, value_name = "FILE.svg")]
    flamegraph: Option<PathBuf>,
    /// What the widths of the flame graph show [default: what was measured].
    #[arg(long, value_enum)]
    width: Option<WidthArg>,
    /// Write the profile, or the report of a recording, as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the profile itself, for `beamline report`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    #[value(name = "call_count")]
    Count,
    #[value(name = "call_time")]
    Time,
    #[value(name = "call_memory")]
    Memory,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ByArg {
    Total,
    Process,
}

impl From<&OutputArgs> for report::Options {
    fn from(args: &OutputArgs) -> Self {
        report::Options {
            title: None,
            sort: args.sort,
            by: args.by.into(),
            flamegraph: args.flamegraph.clone(),
            width: args.width.map(Width::from),
            json: args.json.clone(),
            output: args.output.clone(),
        }
    }
}

impl From<ByArg> for By {
    fn from(by: ByArg) -> Self {
        match by {
            ByArg::Total => By::Total,
            ByArg::Process => By::Process,
        }
    }
}

impl From<Kind> for Type {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Count => Type::CallCount,
            Kind::Time => Type::CallTime,
            Kind::Memory => Type::CallMemory,
        }
    }
}

/// Does what the arguments say (the program's name first).
///
/// The exit code is the profiled program's own; 1 where Beamline itself failed, 2 for a command
/// line that is wrong.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(e) => {
            match usage_error(&e) {
                Some(line) => report::error(&line),
                // Help asked for goes to standard output; where that is closed, nobody reads it.
                None => drop(e.print()),
            }
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(2));
        }
    };
    let done = match cli.command {
        Verb::Profile(args) => profile(&args),
        Verb::Record(args) => record::run(&args),
        Verb::Run(args) => plain(&args),
        Verb::Report(args) => from_files(&args),
        Verb::Flamegraph(args) => flamegraph::run(&args),
        Verb::Diff(args) => flamegraph::diff(&args),
        Verb::Export(args) => export::run(&args),
        Verb::Histogram(args) => histogram::run(&args),
        Verb::Ci(args) => ci::run(&args),
        Verb::Html(args) => html::run(&args),
        Verb::Disasm { file } => disasm(&file),
        Verb::Bifs { list: _ } => bifs(),
    };
    done.unwrap_or_else(|message| {
        report::error(&message);
        ExitCode::from(1)
    })
}

/// A parser of one of `all`, which have a name and a line of help each.
pub(crate) fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
    about: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let values = all
        .iter()
        .map(move |one| PossibleValue::new(name(*one)).help(about(*one)));
    PossibleValuesParser::new(values).try_map(move |text| {
        let mut all = all.iter();
        all.find(|one| name(**one) == text)
            .copied()
            .ok_or("no such value")
    })
}

/// What is wrong with a command line, in a line; none where help was asked for.
fn usage_error(error: &clap::Error) -> Option<String> {
    use clap::error::ErrorKind;
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        _ => {}
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .collect();
    let line = lines.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    Some(format!("{line}; --help tells more"))
}

/// Whether all was written; says what was not.
fn reported(profile: &Profile, options: &report::Options) -> bool {
    let errors = report::report(profile, options).err();
    for error in errors.iter().flatten() {
        report::error(error);
    }
    errors.is_none()
}

fn profile(args: &ProfileArgs) -> Result<ExitCode, String> {
    let request = Request {
        kind: args.kind.into(),
        patterns: args.patterns.clone(),
        call_tree: args.output.flamegraph.is_some()
            || args.output.json.is_some()
            || args.output.output.is_some(),
        folder: PathBuf::new(),
    };
    let ended = launch::run(&args.run.launch(What::Profile(request)))?;
    let all_written = match &ended.profile {
        Some(profile) => {
            let options = report::Options {
                title: Some(args.run.command.join(" ")),
                ..report::Options::from(&args.output)
            };
            reported(profile, &options)
        }
        None => {
            report::error("no profile was written: the command started no emulator to its end");
            false
        }
    };
    if ended.status.success() && !all_written {
        return Ok(ExitCode::from(1));
    }
    Ok(ended.exit_code())
}

fn plain(args: &RunArgs) -> Result<ExitCode, String> {
    Ok(launch::run(&args.launch(What::Run))?.exit_code())
}

fn from_files(args: &ReportArgs) -> Result<ExitCode, String> {
    let options = report::Options::from(&args.output);
    let files: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
    let written = [&options.flamegraph, &options.json, &options.output];
    input::keep(&files, written.into_iter().flatten().map(PathBuf::as_path))?;
    let mut profiles = Vec::new();
    for file in &files {
        match input::open(file)? {
            Input::Profile(profile) => profiles.push(profile),
            Input::Recording(_) if files.len() == 1 => return record::report(file, &options),
            Input::Recording(_) => {
                return Err("a recording is reported alone: name one file".into());
            }
        }
    }
    let profile = Profile::merge(profiles)?;
    let all_written = reported(&profile, &options);
    Ok(if all_written {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

fn disasm(file: &PathBuf) -> Result<ExitCode, String> {
    use beamline_runtime::beam::BeamModule;
    use beamline_runtime::beam::disasm::Disasm;
    let bytes = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let module = BeamModule::decode(&bytes).map_err(|e| format!("{}: {e}", file.display()))?;
    report::print(&Disasm::new(&module).to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn bifs() -> Result<ExitCode, String> {
    let mut lines: Vec<String> = beamline_runtime::bif::all()
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
    use clap::CommandFactory as _;

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
                    --sort words:desc --by process --width time -o p -- erl -noshell -- --by";
        let Ok(Verb::Profile(args)) = parse(line).map(|cli| cli.command) else {
            panic!("not parsed");
        };
        assert_eq!(Type::from(args.kind), Type::CallMemory);
        let patterns: Vec<String> = args.patterns.iter().map(ToString::to_string).collect();
        assert_eq!(patterns, ["'lists':'seq'/2", "'m':_/_"]);
        assert_eq!(args.run.command, ["erl", "-noshell", "--", "--by"]);
        let options = report::Options::from(&args.output);
        assert!(options.sort.descending && options.by == By::Process);
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
            ("beamline profile --sort x -- erl", "'x' is no column"),
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
                    "the following required arguments were not provided: --output <FILE.svg>; --help tells more",
                ),
            ),
            (
                "beamline profil",
                Some(
                    "unrecognized subcommand 'profil' tip: a similar subcommand exists: 'profile'; --help tells more",
                ),
            ),
            ("beamline profile --sort x -- erl", Some("'x' is no column")),
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
