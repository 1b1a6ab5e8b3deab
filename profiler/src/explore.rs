//! `beamline explore` runs a call, or a whole program, in every order of its messages and accesses, and finds those in which it fails.

mod answer;
mod chart;
mod drawn;
mod finding;
mod machine;
mod search;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use beamline_orders::{Call, Draw, Explorer};
use beamline_settings::chance;
use clap::{Args, ValueEnum};

use crate::options::EnvironmentArgs;
use crate::report;
use crate::units::time;
use drawn::{Drawn, Verified};
use finding::Saved;
use machine::Machine;
use search::{Criteria, Limits, Search};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Run a test in every order of its messages and of its accesses to tables and names, and write down how it fails:
    beamline explore --call bank_test:deposits -o found -- erl -noshell -pa ebin
  Run a whole program in every order, and demand that it prints the same in each:
    beamline explore --same-result -- erl -noshell -pa ebin -s bank main -s init stop
  See one of the findings happen:
    beamline replay found/finding-1.prefix
  Find out whether any of them is left, in CI:
    beamline explore --check found
  Look for what needs three steps in an order, in a program with too many orders, for ten minutes:
    beamline explore --call bank_test:load --strategy pct --depth 3 --time 10m -- erl -noshell -pa ebin
  Also demand that the call returns the same in every order, for a minute at most:
    beamline explore --call bank_test:deposits --same-result --time 1m -- erl -noshell -pa ebin
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Explore this call of a function without arguments: M:F, or as Elixir writes it Mod.fun. Each run makes it in a process of
    /// its own, and ends when no process can continue [default: all that the command makes the emulator do after it has booted].
    #[arg(long, value_name = "M:F")]
    call: Option<Call>,
    /// Choose how the next run is found: dpor runs each order of messages and accesses once, and ends when it has run all of
    /// them. For programs with too many orders, the others choose at random which process makes the next step: pct finds bugs
    /// that need as many steps in one order as --depth says, pos gives all orders of steps that depend on each other the same
    /// chance, random takes any process.
    #[arg(long, value_enum, default_value_t = How::Dpor)]
    strategy: How,
    /// Choose the random numbers of pct, pos and random. The same seed gives the same runs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Look for bugs that need this many pairs of steps in one order, with pct.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    depth: u32,
    /// Make all runs, however many there are.
    #[arg(long, conflicts_with_all = ["runs"])]
    all: bool,
    /// Make at most this many runs [default: 10000].
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    /// End after this time, such as 30s or 5m, even in the middle of a run.
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// Report a run of more reductions as a livelock.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    reductions: u64,
    /// Do not report processes that exit with this reason, as Erlang writes it, or that end the emulator, such as erlang:halt(2).
    /// Can be repeated. normal, shutdown, {shutdown,_} and killed are always expected.
    #[arg(long = "expect", value_name = "REASON")]
    expected: Vec<String>,
    /// Report also a call that returns something else than in the first run, or a whole program that prints something else. Pids,
    /// references and ports may differ.
    #[arg(long)]
    same_result: bool,
    /// Report also processes that are left when the call has returned and no process can continue. A whole program has none.
    #[arg(long)]
    leaks: bool,
    /// Let receives time out and timers expire only when no process can continue: a gen_server:call does not time out while its
    /// server works. There are fewer orders, and they are not all there are.
    #[arg(long)]
    late_timeouts: bool,
    /// When all orders were run, make this many random runs as well: if one has an order that no run before had, the exploration
    /// says that it has not all of them.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["late_timeouts", "check"])]
    verify: u64,
    /// Make this many runs at a time [default: one for each processor].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: Option<u32>,
    /// Write what was found as JSON to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the prefix of each finding, and its chart as an HTML page, to files in this folder [default: beamline-findings].
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Run the findings of this folder again: the exit code is 3 if one of them still happens.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["call", "all", "runs", "output"])]
    check: Option<PathBuf>,
    #[command(flatten)]
    environment: EnvironmentArgs,
    /// The command that runs the program, or that only starts the emulator, such as erl -noshell -pa ebin, for --call [default with
    /// --check: that of the finding].
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "check")]
    command: Vec<String>,
}

/// How the next run is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum How {
    Dpor,
    Pct,
    Pos,
    Random,
}

impl How {
    /// The strategy of one that draws.
    fn draws(self) -> Option<Draw> {
        match self {
            How::Dpor => None,
            How::Pct => Some(Draw::Pct),
            How::Pos => Some(Draw::Pos),
            How::Random => Some(Draw::Random),
        }
    }
}

/// Runs without an end of their number take this option.
const RUNS: u64 = 10_000;

/// Where findings go.
const FOLDER: &str = "beamline-findings";

/// The exit code where something was found.
const FOUND: u8 = 3;

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    if let Some(folder) = &args.check {
        return check(args, folder);
    }
    if let Some(wrong) = args.contradiction() {
        report::error(wrong);
        return Ok(ExitCode::from(2));
    }
    let call = args.call.as_ref();
    let machine = Machine::start(
        &args.environment,
        &args.command,
        call,
        args.workers(),
        args.reductions,
    )?;
    let criteria = args.criteria();
    let search = Search::new(
        &criteria,
        args.limits(),
        args.explorer(),
        args.drawn(),
        args.verified(),
    );
    let done = search.run(machine)?;
    let folder = args.output.clone().unwrap_or_else(|| FOLDER.into());
    let saved = Saved {
        call: call.cloned(),
        command: args.command.clone(),
        reductions: args.reductions,
        modules: done.modules.clone(),
    };
    let files = saved.write_all(&done.findings, &folder)?;
    for ((finding, answer), file) in done.findings.iter().zip(&done.answers).zip(&files) {
        let page = file.with_extension(finding::PAGE);
        chart::write(&page, &args.command, answer, finding.to_string())?;
    }
    let what = call.map_or_else(|| args.command.join(" "), Call::to_string);
    answer::table(&what, &done, &files)?;
    if let Some(json) = &args.json {
        let text = answer::json(&done, &files);
        std::fs::write(json, text).map_err(|error| format!("{}: {error}", json.display()))?;
    }
    Ok(exit_code(!done.findings.is_empty()))
}

fn exit_code(is_found: bool) -> ExitCode {
    match is_found {
        true => ExitCode::from(FOUND),
        false => ExitCode::SUCCESS,
    }
}

impl Arguments {
    /// What the options ask for that cannot be.
    fn contradiction(&self) -> Option<&'static str> {
        if self.all && self.strategy.draws().is_some() {
            return Some("--all makes all runs that there are, which only --strategy dpor knows");
        }
        if self.late_timeouts && self.strategy.draws().is_some() {
            return Some("--late-timeouts leaves out orders that only --strategy dpor looks for");
        }
        let is_whole = self.call.is_none();
        (is_whole && self.leaks).then_some(
            "--leaks finds processes that are left when a call has returned, which --call names",
        )
    }

    fn workers(&self) -> u32 {
        let all = u32::try_from(chance::processors()).unwrap_or(1).max(1);
        self.workers.unwrap_or(all.min(64))
    }

    fn criteria(&self) -> Criteria {
        Criteria {
            expected: self.expected.clone(),
            same_result: self.same_result,
            leaks: self.leaks,
            is_whole: self.call.is_none(),
        }
    }

    fn explorer(&self) -> Explorer {
        match self.late_timeouts {
            true => Explorer::new().with_late_timeouts(),
            false => Explorer::new(),
        }
    }

    fn drawn(&self) -> Option<Drawn> {
        let strategy = self.strategy.draws()?;
        Some(Drawn::new(strategy, self.seed, self.depth))
    }

    fn verified(&self) -> Option<Verified> {
        (self.verify > 0).then(|| Verified::new(self.verify, self.seed))
    }

    fn limits(&self) -> Limits {
        let runs = match (self.runs, self.all || self.time.is_some()) {
            (Some(runs), _) => Some(runs),
            (None, true) => None,
            (None, false) => Some(RUNS),
        };
        Limits {
            runs,
            time: self.time,
        }
    }
}

/// Runs the findings of a folder again.
fn check(args: &Arguments, folder: &Path) -> Result<ExitCode, String> {
    let files = finding::files(folder)?;
    let mut is_found = false;
    let mut text = String::new();
    for file in files {
        let (saved, finding) = Saved::read(&file)?;
        let command = match args.command.is_empty() {
            true => &saved.command,
            false => &args.command,
        };
        let mut machine = Machine::start(
            &args.environment,
            command,
            saved.call.as_ref(),
            1,
            saved.reductions,
        )?;
        let criteria = Criteria {
            is_whole: saved.call.is_none(),
            ..args.criteria()
        };
        let still = search::still_finds(&mut machine, &finding, &saved.modules, &criteria)?;
        let shown = file.display();
        text += &match &still {
            search::Still::Found => format!("{shown}: still found: {finding}\n"),
            search::Still::Gone => format!("{shown}: gone: {finding}\n"),
            search::Still::Astray(line) => format!("{shown}: gone: {line}\n"),
        };
        is_found |= still == search::Still::Found;
    }
    report::print(&text)?;
    Ok(exit_code(is_found))
}

/// Whether a file is a finding.
pub(crate) fn is_finding(file: &Path) -> bool {
    Saved::is_one(file)
}

/// Has a finding happen once more, with what it prints. The exit code is 3 if it still does.
pub(crate) fn replay(
    file: &Path,
    environment: &EnvironmentArgs,
    command: &[String],
) -> Result<ExitCode, String> {
    let (saved, finding) = Saved::read(file)?;
    let command = match command.is_empty() {
        true => &saved.command,
        false => command,
    };
    report::error(&format!("replays {}: {finding}", file.display()));
    let mut machine =
        Machine::start_loud(environment, command, saved.call.as_ref(), saved.reductions)?;
    let criteria = Criteria::all_of(&finding, saved.call.is_none());
    let still = search::still_finds(&mut machine, &finding, &saved.modules, &criteria)?;
    let line = match &still {
        search::Still::Found => format!("found again: {finding}"),
        search::Still::Gone => "nothing of it was found".to_owned(),
        search::Still::Astray(line) => format!("it cannot be followed: {line}"),
    };
    report::error(&line);
    Ok(exit_code(still == search::Still::Found))
}
