//! `cargo xtask truth`: a program whose functions measure themselves (`ci/truth/truth_work.erl`), and what profiles of it
//! say: call_time, and the call paths of a recording, as folded stacks and as a flame graph.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{binary, fetch, paths, run};

/// Options of `cargo xtask truth`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Test this beamline binary [default: a new optimised build]
    #[arg(long, value_name = "FILE")]
    beamline: Option<PathBuf>,
    /// Allow a function's share, and the sum of all, to be so many percent wrong
    #[arg(long, default_value_t = 1.0)]
    percent: f64,
    /// Runs of each kind on each engine; the best one of each function counts
    #[arg(long, default_value_t = 3)]
    rounds: u32,
}

/// Nanoseconds by function.
type Times = BTreeMap<String, f64>;

const MODULE: &str = "truth_work";
const ENGINES: [&str; 2] = ["interpreter", "jit"];

/// The name of how long all functions ran.
const RUN: &str = "run";

/// It starts the run, and prints afterwards what was measured.
const OUTSIDE: &str = "main/0";

/// Runs the program under each engine and each kind of profile, and compares.
pub(crate) fn main(options: &Options) -> Result<()> {
    let dir = paths::target().join("truth");
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let beamline = match &options.beamline {
        Some(file) => file.canonicalize().context("looking for the binary")?,
        None => binary::beamline()?,
    };
    let runs = Runs {
        beamline,
        otp: fetch::otp()?.root,
        dir,
    };
    runs.compile()?;
    let mut wrong = 0;
    for engine in ENGINES {
        for (kind, run) in KINDS {
            let mut errors = Errors::new();
            for _ in 0..options.rounds.max(1) {
                let (truth, said) = run(&runs, engine)?;
                keep_least(&mut errors, compare(&truth, said)?);
            }
            println!("\n{kind}, {engine}");
            wrong += tell(&errors, options.percent);
        }
    }
    match wrong {
        0 => Ok(()),
        _ => bail!("{wrong} are more than {} % wrong", options.percent),
    }
}

/// What the program measured, and what a profile says.
type Profiled = (Times, Times);

/// Runs the program on an engine, and profiles it.
type Kind = fn(&Runs, &str) -> Result<Profiled>;

/// The kinds of profiles.
const KINDS: [(&str, Kind); 2] = [("call_time", Runs::profile), ("recording", Runs::recording)];

/// The percents that a profile says too much of each function's share and of all of them.
type Errors = BTreeMap<String, f64>;

/// The least errors of several runs. Between two time slices another program may take the processor: a function sees that
/// as its own time, and a profile rightly does not. What a profile has wrong is so in every run.
fn keep_least(errors: &mut Errors, of_run: Errors) {
    for (name, error) in of_run {
        let least = errors.entry(name).or_insert(error);
        if error.abs() < least.abs() {
            *least = error;
        }
    }
}

/// Prints errors; gives how many are more than `percent`.
fn tell(errors: &Errors, percent: f64) -> usize {
    let is_wrong = |error: f64| error.abs() > percent;
    for (name, error) in errors {
        let sign = if is_wrong(*error) { "  wrong" } else { "" };
        println!("  {name:<12} {error:+7.3} %{sign}");
    }
    errors.values().filter(|error| is_wrong(**error)).count()
}

struct Runs {
    beamline: PathBuf,
    otp: PathBuf,
    dir: PathBuf,
}

impl Runs {
    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.beamline);
        command.arg(verb).current_dir(&self.dir);
        command
    }

    fn compile(&self) -> Result<()> {
        let source = format!("{MODULE}.erl");
        fs::copy(
            paths::workspace().join("ci/truth").join(&source),
            self.dir.join(&source),
        )
        .context("copying the program")?;
        let mut command = self.command("run");
        command.arg("--otp").arg(&self.otp);
        run::output(command.args(["--", "erlc", &source])).map(drop)
    }

    /// What the program measured under a command, which gets the program's own.
    fn truth(&self, mut command: Command, engine: &str) -> Result<Times> {
        command.args(["--pattern", MODULE, "--engine", engine, "--otp"]);
        command.arg(&self.otp);
        // One function runs at a time, without waiting for another scheduler.
        command.args(["--", "erl", "+S", "1", "-noshell", "-run", MODULE, "main"]);
        measured(&run::output(&mut command)?)
    }

    fn profile(&self, engine: &str) -> Result<(Times, Times)> {
        let file = self.dir.join(format!("{engine}.json"));
        let mut command = self.command("profile");
        command.args(["--type", "call_time", "--json"]).arg(&file);
        let truth = self.truth(command, engine)?;
        Ok((truth, of_profile(&read(&file)?)?))
    }

    fn recording(&self, engine: &str) -> Result<(Times, Times)> {
        let [file, folded] =
            ["stream", "folded"].map(|end| self.dir.join(format!("{engine}.{end}")));
        let mut command = self.command("record");
        command.arg("-o").arg(&file);
        let truth = self.truth(command, engine)?;
        let mut export = self.command("export");
        export
            .args(["--to", "folded", "-o"])
            .arg(&folded)
            .arg(&file);
        run::output(&mut export)?;
        let picture = self.dir.join(format!("{engine}.svg"));
        let mut draw = self.command("flamegraph");
        run::output(draw.arg("-o").arg(&picture).arg(&file))?;
        let stacks = read(&folded)?;
        check_drawn(&with_callees(&stacks)?, &drawn(&read(&picture)?))?;
        Ok((truth, of_folded(&stacks)?))
    }
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

/// What the program prints.
fn measured(text: &str) -> Result<Times> {
    let mut times = Times::new();
    for line in text.lines() {
        if let Some((name, time)) = line
            .strip_prefix("truth ")
            .and_then(|line| line.split_once(' '))
        {
            times.insert(name.to_owned(), time.parse().context("a time")?);
        }
    }
    ensure!(times.contains_key(RUN), "the program did not end: {text}");
    Ok(times)
}

/// Own times in a profile file.
fn of_profile(text: &str) -> Result<Times> {
    let profile: serde_json::Value = serde_json::from_str(text)?;
    let functions = profile["functions"].as_array().context("functions")?;
    let own = functions.iter().filter(|row| row["module"] == MODULE);
    own.map(|row| {
        let name = row["function"].as_str().context("a name")?;
        let time = row["time_ns"].as_f64().context("a time")?;
        Ok((format!("{name}/{}", row["arity"]), time))
    })
    .collect()
}

/// Own times in folded stacks: of the last frames.
fn of_folded(text: &str) -> Result<Times> {
    let mut times = Times::new();
    for line in text.lines() {
        let (stack, time) = line.rsplit_once(' ').context("a stack and its time")?;
        let last = stack.rsplit(';').next().unwrap_or_default();
        if let Some(name) = last
            .strip_prefix(MODULE)
            .and_then(|name| name.strip_prefix(':'))
        {
            *times.entry(name.to_owned()).or_default() += time.parse::<f64>().context("a time")?;
        }
    }
    Ok(times)
}

/// Times with those of what is called, in folded stacks: a call path counts for its last function, also where that calls
/// itself.
fn with_callees(text: &str) -> Result<Times> {
    let mut times = Times::new();
    let mut seen = BTreeMap::new();
    for line in text.lines() {
        let (stack, time) = line.rsplit_once(' ').context("a stack and its time")?;
        let time: f64 = time.parse().context("a time")?;
        let ends = stack.match_indices(';').map(|(at, _)| at);
        for end in ends.chain([stack.len()]) {
            *seen.entry(&stack[..end]).or_insert(0.0) += time;
        }
    }
    for (path, time) in seen {
        let last = path.rsplit(';').next().unwrap_or_default();
        *times.entry(last.to_owned()).or_default() += time;
    }
    Ok(times)
}

/// Microseconds in a flame graph, from the titles of its frames.
fn drawn(svg: &str) -> Times {
    let mut times = Times::new();
    let titles = svg.split("<title>").skip(1);
    for title in titles.filter_map(|text| text.split("</title>").next()) {
        let Some((name, width)) = title.split_once(" (") else {
            continue;
        };
        let number = width
            .split_once(" µs")
            .map(|(number, _)| number.replace(',', ""));
        if let Some(Ok(microseconds)) = number.map(|number| number.parse::<f64>()) {
            *times.entry(name.to_owned()).or_default() += microseconds * 1e3;
        }
    }
    times
}

/// Is each function of the program as wide in the flame graph as its call paths took?
///
/// # Errors
/// The first that is not. Frames are drawn in whole microseconds.
fn check_drawn(times: &Times, drawn: &Times) -> Result<()> {
    let names = of_names(times.keys());
    for name in names {
        let function = format!("{MODULE}:{name}");
        let width = drawn.get(&function).copied().unwrap_or_default();
        let time = times[&function];
        ensure!(
            (width - time).abs() <= time / 1000.0,
            "{function} took {time} ns, and is {width} ns wide in the flame graph"
        );
    }
    Ok(())
}

/// The names of the program's functions that spin, and are frames of some width.
fn of_names<'a>(functions: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let prefix = format!("{MODULE}:");
    let names = functions.filter_map(|name| name.strip_prefix(&prefix));
    names.filter(|name| !name.starts_with('\'')).collect()
}

/// How wrong a profile is.
fn compare(truth: &Times, mut said: Times) -> Result<Errors> {
    said.remove(OUTSIDE);
    let all: f64 = said.values().sum();
    let functions = || truth.iter().filter(|(name, _)| *name != RUN);
    let true_all: f64 = functions().map(|(_, time)| time).sum();
    let percent = |told: f64, time: f64| (told / time - 1.0) * 100.0;
    let mut errors = Errors::from([("all".to_owned(), percent(all, truth[RUN]))]);
    for (name, time) in functions() {
        let told = said.get(name);
        let told = told.with_context(|| format!("nothing is said of {name}"))?;
        errors.insert(name.clone(), percent(told / all, time / true_all));
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let truth = measured("truth a/1 100\ntruth b/2 300\ntruth run 400\n").unwrap();
        assert_eq!(truth.len(), 3);
        assert!(measured("truth a/1 1\n").is_err());
        let said = of_folded(
            "p;truth_work:a/1 60\np;truth_work:a/1;truth_work:b/2 300\np;x:y/1 7\np;truth_work:a/1 40\n",
        );
        let said = said.unwrap();
        assert_eq!((said["a/1"], said["b/2"], said.len()), (100.0, 300.0, 2));
        let json = r#"{"functions": [{"module": "truth_work", "function": "a", "arity": 1, "time_ns": 5}, {"module": "x"}]}"#;
        assert_eq!(
            of_profile(json).unwrap(),
            Times::from([("a/1".to_owned(), 5.0)])
        );
        let errors = compare(&truth, said).unwrap();
        assert_eq!(
            (errors["a/1"], errors["b/2"], errors["all"]),
            (0.0, 0.0, 0.0)
        );
    }

    #[test]
    fn wrong_shares_and_sums_are_counted() {
        let truth = measured("truth a/1 100\ntruth b/2 300\ntruth run 400\n").unwrap();
        let said = |a, b| Times::from([("a/1".to_owned(), a), ("b/2".to_owned(), b)]);
        let wrong = |a, b| tell(&compare(&truth, said(a, b)).unwrap(), 1.0);
        assert_eq!(wrong(101.0, 301.0), 0);
        assert_eq!(wrong(103.0, 297.0), 1);
        assert_eq!(wrong(103.0, 309.0), 1);
        assert!(compare(&truth, Times::new()).is_err());
    }

    #[test]
    fn flame_graphs_are_as_wide_as_their_call_paths() {
        let stacks =
            "truth_work:a/1 1000000\ntruth_work:a/1;truth_work:a/1 500000\np;truth_work:b/2 9000\n";
        let times = with_callees(stacks).unwrap();
        assert_eq!((times["truth_work:a/1"], times["p"]), (2e6, 9e3));
        let svg = |a: &str| {
            format!(
                "<title>truth_work:a/1 ({a} µs, 9%)</title><title>truth_work:a/1 (500 µs)</title><title>truth_work:b/2 (9 µs)</title>"
            )
        };
        assert!(check_drawn(&times, &drawn(&svg("1,500"))).is_ok());
        assert!(check_drawn(&times, &drawn(&svg("1,400"))).is_err());
        assert!(check_drawn(&times, &Times::new()).is_err());
    }

    #[test]
    fn what_is_wrong_in_every_run_is_wrong() {
        let errors = |a, b| Errors::from([("a".to_owned(), a), ("b".to_owned(), b)]);
        let mut all = errors(-5.0, 3.0);
        keep_least(&mut all, errors(0.5, 2.0));
        assert_eq!(all, errors(0.5, 2.0));
        assert_eq!(tell(&all, 1.0), 1);
    }
}
