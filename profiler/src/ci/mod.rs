//! `beamline ci`: runs the workloads of a project, compares their counts with a baseline, and fails on a regression.

pub(crate) mod config;
mod links;
mod measure;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_reports::flamegraph::Width;
use beamline_reports::gate::{
    Comparison, Limits, Picture, Results, compare, draw_difference, output,
};
use clap::{Args, Subcommand};

use crate::launch::Guard;
use crate::{input, report};
use config::Config;
use links::Links;
use measure::Runner;

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
    /// Draw a differential flame graph of each workload by call path, as FOLDER/WORKLOAD.svg: of the metric that exceeds
    /// a limit, else of words.
    #[arg(long, value_name = "FOLDER")]
    flamegraphs: Option<PathBuf>,
    /// Have the Markdown link to URL/FILE for each of these files [default: to the artifacts of the job, in jobs of GitHub and
    /// GitLab; else to the file].
    #[arg(long, value_name = "URL", requires = "flamegraphs")]
    flamegraphs_url: Option<String>,
    /// Print annotations for GitHub workflows.
    #[arg(long)]
    github: bool,
}

impl Outputs {
    fn has_files(&self) -> bool {
        let files = [
            &self.markdown,
            &self.json,
            &self.junit,
            &self.benchmark_action,
            &self.flamegraphs,
        ];
        files.into_iter().any(Option::is_some)
    }
}

/// Runs the subcommand that the arguments name.
///
/// # Errors
/// One line: what failed.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let guard = Guard::new().map_err(|e| format!("signals: {e}"))?;
    let done = run_verb(&args.verb, &guard);
    if let (Err(line), Some(signal)) = (&done, guard.signal()) {
        report::error(line);
        // Returns for a signal that ends nothing; the shell's number stands for it then.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)));
    }
    done
}

fn run_verb(verb: &Verb, guard: &Guard) -> Result<ExitCode, String> {
    match verb {
        Verb::Run { run, output } => {
            let config = Config::read(&run.config)?;
            let results = runner(&config, run, guard)?.run()?;
            match output {
                Some(path) => results.write(path)?,
                None => {
                    let text = serde_json::to_string_pretty(&results);
                    report::print(&(text.map_err(|e| e.to_string())? + "\n"))?;
                }
            }
            Ok(match tell_failures(&results) {
                true => ExitCode::from(1),
                false => ExitCode::SUCCESS,
            })
        }
        Verb::Compare {
            base,
            new,
            config,
            outputs,
        } => compare_files([base, new], config.as_deref(), outputs),
        Verb::Check {
            run,
            output,
            outputs,
        } => check(run, output.as_deref(), outputs, guard),
        Verb::Accept { run, result } => accept(run, result.as_deref(), guard),
    }
}

/// Says which workloads failed, and how. Returns whether there are any.
fn tell_failures(results: &Results) -> bool {
    let mut any = false;
    for workload in &results.workloads {
        if let Some(failure) = &workload.failure {
            report::error(&format!("the workload {}: {failure}", workload.name));
            any = true;
        }
    }
    any
}

fn compare_files(
    [base, new]: [&Path; 2],
    config: Option<&Path>,
    outputs: &Outputs,
) -> Result<ExitCode, String> {
    let file = config.unwrap_or(Path::new("beamline.toml"));
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
    let config = config.map(Config::read).transpose()?;
    let (base, new) = (Results::read(base)?, Results::read(new)?);
    let limits = |name: Option<&str>| {
        let config = config.as_ref();
        config.map_or_else(Limits::default, |config| config.limits(name))
    };
    let told = Told {
        comparison: compare(&base, &new, limits),
        base,
        new,
    };
    tell(&told, outputs, file)
}

fn runner<'a>(config: &'a Config, args: &RunArgs, guard: &Guard) -> Result<Runner<'a>, String> {
    if let Some(base) = args.base.as_deref().filter(|base| !base.is_dir()) {
        return Err(format!("{}: no such folder", base.display()));
    }
    Ok(Runner {
        config,
        otp: args.otp.clone(),
        base: args.base.clone(),
        guard: guard.clone(),
    })
}

fn check(
    args: &RunArgs,
    output: Option<&Path>,
    outputs: &Outputs,
    guard: &Guard,
) -> Result<ExitCode, String> {
    let config = Config::read(&args.config)?;
    let lacks_baseline = !config.baseline.exists();
    let no_baseline = || {
        let baseline = config.baseline.display();
        format!("{baseline}: there is no baseline yet: make one with 'beamline ci accept'")
    };
    if lacks_baseline && output.is_none() && !outputs.has_files() {
        return Err(no_baseline());
    }
    let runner = runner(&config, args, guard)?;
    let baseline = (!lacks_baseline).then(|| Results::read(&config.baseline));
    let baseline = baseline.transpose()?;
    let mut new = runner.run()?;
    let base = baseline.unwrap_or_else(|| {
        let (beamline, machine) = (new.beamline.clone(), new.machine.clone());
        Results::new(beamline, machine, Vec::new())
    });
    let limits = |name: Option<&str>| config.limits(name);
    let mut comparison = compare(&base, &new, limits);
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
        comparison = compare(&base, &new, limits);
    }
    if let Some(path) = output {
        new.write(path)?;
    }
    let told = Told {
        comparison,
        base,
        new,
    };
    let code = tell(&told, outputs, &args.config)?;
    match lacks_baseline {
        true => Err(no_baseline()),
        false => Ok(code),
    }
}

fn accept(args: &RunArgs, result: Option<&Path>, guard: &Guard) -> Result<ExitCode, String> {
    let config = Config::read(&args.config)?;
    let results = match result {
        Some(path) => Results::read(path)?,
        None => runner(&config, args, guard)?.run()?,
    };
    for workload in &config.workloads {
        if results.workload(&workload.name).is_none() {
            return Err(format!(
                "the workload {} is not in the result: run the workloads again, without --result",
                workload.name
            ));
        }
    }
    if tell_failures(&results) {
        return Err("nothing was accepted: a baseline needs workloads that succeed".to_owned());
    }
    for workload in &results.workloads {
        if let Some(why) = &workload.unsteady {
            report::error(&format!("the workload {}: {why}", workload.name));
        }
    }
    results.write(&config.baseline)?;
    let accepted = match results.workloads.len() {
        1 => "1 workload".to_owned(),
        many => format!("{many} workloads"),
    };
    report::print(&format!(
        "{}: accepted {accepted}\n",
        config.baseline.display()
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
    report::print(&output::text(comparison, report::columns()))?;
    if outputs.github {
        let file = config.display().to_string();
        report::print(&output::github(comparison, &file))?;
    }
    let pictures = match &outputs.flamegraphs {
        Some(folder) => draw(
            told,
            folder,
            &Links::new(outputs.flamegraphs_url.as_deref()),
        )?,
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
    Ok(match (comparison.failed(), comparison.is_regression()) {
        (0, false) => ExitCode::SUCCESS,
        (0, true) => ExitCode::from(REGRESSION),
        _ => ExitCode::from(1),
    })
}

/// Draws what changed in each workload that has call paths on both sides.
fn draw(told: &Told, folder: &Path, links: &Links) -> Result<Vec<Picture>, String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut pictures = Vec::new();
    for compared in &told.comparison.workloads {
        let name = &compared.name;
        let both = [&told.base, &told.new].map(|results| results.workload(name));
        let [Some(base), Some(new)] = both else {
            continue;
        };
        let any = |of: fn(&beamline_reports::gate::PathCount) -> u64| {
            [base, new].map(|side| side.paths.iter().any(|path| of(path) > 0))
        };
        let width = match compared.width().unwrap_or(Width::Words) {
            // A baseline of an older version has none.
            Width::Reductions if any(|path| path.reductions) == [true; 2] => Width::Reductions,
            Width::Calls => Width::Calls,
            _ if any(|path| path.words) == [false; 2] => Width::Calls,
            _ => Width::Words,
        };
        if base.paths.is_empty() || new.paths.is_empty() {
            continue;
        }
        let path = folder.join(format!("{name}.svg"));
        report::write(&path, |out| {
            draw_difference(&told.base, &told.new, name, width, out)
        })?;
        let link = links.to(&path);
        pictures.push(Picture::new(&told.base, &told.new, name, width, link));
    }
    Ok(pictures)
}
