//! `beamline ci`: runs the workloads of a project, compares their counts with a baseline, and fails on a regression.

pub(crate) mod config;
mod measure;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_formats::flamegraph::Width;
use beamline_formats::gate::{
    Comparison, Limits, Results, before, compare, draw_difference, output,
};
use clap::{Args, Subcommand};

use config::Config;
use measure::Runner;

use crate::{input, report};

/// Exit code of a regression.
const REGRESSION: u8 = 3;

const EXAMPLES: &str = "\
EXAMPLES:
  Make a baseline of what the workloads of beamline.toml do now, and commit it:
    beamline ci accept && git add beamline-baseline.json
  In CI, fail with exit code 3 when they do more, and write a comment for the pull request:
    beamline ci check --markdown comment.md
  Measure the times of this checkout and of another one in turns:
    beamline ci run --base ../main -o new.json
EXIT CODES: 0 no regression, 1 Beamline or a workload failed, 2 wrong command line, 3 regression
";

/// See the module.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the workloads and write their counts and times as a result file.
    Run {
        #[command(flatten)]
        run: RunArgs,
        /// Write the result to this file [default: standard output].
        #[arg(short, long, value_name = "FILE.json")]
        output: Option<PathBuf>,
    },
    /// Compare two result files.
    Compare {
        /// The older result.
        base: PathBuf,
        /// The newer result.
        new: PathBuf,
        /// Take the limits from this file [default: every metric of a workload may grow by 1 %].
        #[arg(long, value_name = "FILE.toml")]
        config: Option<PathBuf>,
        #[command(flatten)]
        outputs: Outputs,
    },
    /// Run the workloads and compare the result with the baseline.
    Check {
        #[command(flatten)]
        run: RunArgs,
        /// Write the result to this file.
        #[arg(short, long, value_name = "FILE.json")]
        output: Option<PathBuf>,
        #[command(flatten)]
        outputs: Outputs,
    },
    /// Run the workloads and write the result as the new baseline.
    Accept {
        #[command(flatten)]
        run: RunArgs,
        /// Use this result of 'run' or 'check' instead of running the workloads.
        #[arg(long, value_name = "FILE.json", conflicts_with = "base")]
        result: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The file that names the workloads and their limits.
    #[arg(default_value = "beamline.toml", value_name = "FILE.toml")]
    config: PathBuf,
    /// Use the libraries of this Erlang/OTP [default: $BEAMLINE_OTP, erl on PATH, target/otp].
    #[arg(long, value_name = "DIR")]
    otp: Option<PathBuf>,
    /// Measure times in turns with the older version of the project in this folder.
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Outputs {
    /// Write the comparison as Markdown, for a pull request.
    #[arg(long, value_name = "FILE.md")]
    markdown: Option<PathBuf>,
    /// Write the comparison as JSON.
    #[arg(long, value_name = "FILE.json")]
    json: Option<PathBuf>,
    /// Write the comparison as JUnit XML.
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,
    /// Write the new result for benchmark-action (its tool customSmallerIsBetter).
    #[arg(long, value_name = "FILE.json")]
    benchmark_action: Option<PathBuf>,
    /// Draw a differential flame graph of each workload's words by call path, as FOLDER/WORKLOAD.svg.
    #[arg(long, value_name = "FOLDER")]
    flamegraphs: Option<PathBuf>,
    /// Print annotations for GitHub workflows.
    #[arg(long)]
    github: bool,
}

/// Runs the subcommand that the arguments name.
///
/// # Errors
/// One line: what failed.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    match &args.verb {
        Verb::Run { run, output } => {
            let config = Config::read(&run.config)?;
            let results = runner(&config, run)?.run()?;
            match output {
                Some(path) => results.write(path)?,
                None => {
                    let text = serde_json::to_string_pretty(&results);
                    report::print(&(text.map_err(|e| e.to_string())? + "\n"))?;
                }
            }
            Ok(ExitCode::SUCCESS)
        }
        Verb::Compare {
            base,
            new,
            config,
            outputs,
        } => {
            let file = config.as_deref().unwrap_or(Path::new("beamline.toml"));
            let written = [
                &outputs.markdown,
                &outputs.json,
                &outputs.junit,
                &outputs.benchmark_action,
            ];
            input::keep(
                &[base, new],
                written.into_iter().flatten().map(PathBuf::as_path),
            )?;
            let config = config.as_deref().map(Config::read).transpose()?;
            let (base, new) = (Results::read(base)?, Results::read(new)?);
            let limits = |name: &str| {
                config
                    .as_ref()
                    .map_or_else(Limits::default, |c| limits(c, name))
            };
            let comparison = compare(&base, &new, limits)?;
            let told = Told {
                comparison,
                base,
                new,
            };
            tell(&told, outputs, file)
        }
        Verb::Check {
            run,
            output,
            outputs,
        } => check(run, output.as_deref(), outputs),
        Verb::Accept { run, result } => accept(run, result.as_deref()),
    }
}

fn runner<'a>(config: &'a Config, args: &RunArgs) -> Result<Runner<'a>, String> {
    if let Some(base) = args.base.as_deref().filter(|base| !base.is_dir()) {
        return Err(format!("{}: no such folder", base.display()));
    }
    Ok(Runner {
        config,
        otp: args.otp.clone(),
        base: args.base.clone(),
    })
}

fn limits(config: &Config, name: &str) -> Limits {
    let mut workloads = config.workloads.iter();
    let found = workloads.find(|workload| workload.name == name);
    found.map_or_else(Limits::default, |workload| workload.limits.clone())
}

fn check(args: &RunArgs, output: Option<&Path>, outputs: &Outputs) -> Result<ExitCode, String> {
    let config = Config::read(&args.config)?;
    if !config.baseline.exists() {
        return Err(format!(
            "{}: there is no baseline yet: make one with 'beamline ci accept'",
            config.baseline.display()
        ));
    }
    let base = Results::read(&config.baseline)?;
    // A workload that cannot be compared need not run.
    for workload in &config.workloads {
        before(&base, &workload.name, &workload.command)?;
    }
    let runner = runner(&config, args)?;
    let mut new = runner.run()?;
    let limits = |name: &str| limits(&config, name);
    let mut comparison = compare(&base, &new, limits)?;
    let slower: Vec<String> = comparison
        .workloads
        .iter()
        .filter(|workload| workload.is_slower())
        .map(|workload| workload.name.clone())
        .collect();
    if !slower.is_empty() {
        // A time may be slower by chance, so it must be slower twice.
        report::progress(&format!("slower, measured again: {}", slower.join(", ")));
        runner.time(&mut new, |name| slower.iter().any(|slow| slow == name))?;
        comparison = compare(&base, &new, limits)?;
    }
    if let Some(path) = output {
        new.write(path)?;
    }
    let told = Told {
        comparison,
        base,
        new,
    };
    tell(&told, outputs, &args.config)
}

fn accept(args: &RunArgs, result: Option<&Path>) -> Result<ExitCode, String> {
    let config = Config::read(&args.config)?;
    let results = match result {
        Some(path) => Results::read(path)?,
        None => runner(&config, args)?.run()?,
    };
    for workload in &config.workloads {
        if results.workload(&workload.name).is_none() {
            return Err(format!(
                "the workload {} is not in the result: run the workloads again, without --result",
                workload.name
            ));
        }
    }
    results.write(&config.baseline)?;
    report::print(&format!(
        "{}: {} workloads accepted\n",
        config.baseline.display(),
        results.workloads.len()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Two results and their comparison.
struct Told {
    comparison: Comparison,
    base: Results,
    new: Results,
}

/// Prints the comparison and writes the files that `outputs` names. The exit code says whether there is a regression.
fn tell(told: &Told, outputs: &Outputs, config: &Path) -> Result<ExitCode, String> {
    let comparison = &told.comparison;
    report::print(&output::text(comparison))?;
    if outputs.github {
        let file = config.display().to_string();
        report::print(&output::github(comparison, &file))?;
    }
    let pictures = match &outputs.flamegraphs {
        Some(folder) => draw(told, folder)?,
        None => Vec::new(),
    };
    let json = |value: serde_json::Value| format!("{value:#}\n");
    let files: [(&Option<PathBuf>, &dyn Fn() -> String); 4] = [
        (&outputs.markdown, &|| {
            output::markdown(comparison, &pictures)
        }),
        (&outputs.json, &|| json(output::json(comparison))),
        (&outputs.junit, &|| output::junit(comparison)),
        (&outputs.benchmark_action, &|| {
            json(output::benchmark_action(&told.new))
        }),
    ];
    for (path, text) in files {
        if let Some(path) = path {
            let write = |out: &mut dyn std::io::Write| {
                out.write_all(text().as_bytes()).map_err(|e| e.to_string())
            };
            report::write(path, write)?;
        }
    }
    Ok(match comparison.is_regression() {
        true => ExitCode::from(REGRESSION),
        false => ExitCode::SUCCESS,
    })
}

/// Draws what changed in each workload that has call paths. Returns each workload's name and picture.
fn draw(told: &Told, folder: &Path) -> Result<Vec<(String, String)>, String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut pictures = Vec::new();
    for workload in &told.new.workloads {
        if workload.paths.iter().all(|path| path.words == 0) {
            continue;
        }
        let name = &workload.name;
        let path = folder.join(format!("{name}.svg"));
        report::write(&path, |out| {
            draw_difference(&told.base, &told.new, name, Width::Words, out)
        })?;
        pictures.push((name.clone(), path.display().to_string()));
    }
    Ok(pictures)
}
