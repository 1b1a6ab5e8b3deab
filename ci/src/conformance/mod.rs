//! `cargo xtask conformance`: OTP's own test suites on our runtime.
//!
//! The suites are compiled from OTP's source, run one runtime instance a suite by the runner in
//! `ci/conformance/src`, and compared case by case with what OTP 29 reaches under that runner.

mod build;
mod c_libraries;
mod compare;
mod runner;

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::place::{Place, words};
use crate::{binary, engine, fetch, paths, run};
use compare::{Expected, Table, Verdict};
use runner::Outcome;

/// Options of `cargo xtask conformance`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Suites to run, with or without _SUITE [default: all of ci/conformance/suites.txt]
    suites: Vec<String>,
    /// Run the suites that are not in the gate
    #[arg(long, conflicts_with = "suites")]
    rest: bool,
    /// Run suites on the binary that collects, and checks the heap, at every safepoint [default: those of
    /// ci/conformance/zeal.txt]
    #[arg(long, conflicts_with_all = ["rest", "erl", "chroot"])]
    zeal: bool,
    /// Run suites on a node that starts others [default: those of ci/conformance/peers.txt]
    #[arg(long, conflicts_with_all = ["rest", "zeal"])]
    peers: bool,
    /// Command that compiles the suites [default: erlc on Beamline]
    #[arg(long, value_name = "COMMAND")]
    erlc: Option<String>,
    /// Command that runs the suites [default: erl on Beamline]
    #[arg(long, value_name = "COMMAND")]
    erl: Option<String>,
    /// Run both commands with this directory as their root; the build folder must be below it
    #[arg(long, value_name = "DIR")]
    chroot: Option<PathBuf>,
    /// OTP's source tree [default: fetched]
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// Write compiled suites, logs and results to this folder [default: conformance/ in the build folder]
    #[arg(long, value_name = "DIR")]
    build: Option<PathBuf>,
    /// Number of suites that run at the same time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Time limit of a case in seconds [default: the limit in ci/conformance/limits.txt, or 60]
    #[arg(long)]
    case_seconds: Option<u64>,
    /// Time limit of a suite in seconds; cases that have not begun by then are skipped [default: the limit in
    /// ci/conformance/limits.txt, or 180]
    #[arg(long)]
    suite_seconds: Option<u64>,
}

impl Options {
    /// What `cargo xtask test` runs: the suites of the gate, all by default.
    fn of_gate(suites: Vec<String>) -> Self {
        Self {
            suites,
            rest: false,
            zeal: false,
            peers: false,
            erlc: None,
            erl: None,
            chroot: None,
            source: None,
            build: None,
            jobs: 2,
            case_seconds: None,
            suite_seconds: None,
        }
    }
}

/// Whether cases that ask for other nodes get them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nodes {
    /// They are skipped.
    One,
    /// They start peers.
    Peers,
}

impl Nodes {
    fn of(options: &Options) -> Self {
        match options.peers {
            true => Self::Peers,
            false => Self::One,
        }
    }

    /// The files with the suites, OTP's results, the cases that do not end as on OTP, and those that do not run.
    fn files(self) -> [&'static str; 4] {
        match self {
            Self::One => [
                "suites.txt",
                "otp29.txt",
                "expected_failures.toml",
                "skip.txt",
            ],
            Self::Peers => [
                "peers.txt",
                "otp29_peers.txt",
                "expected_failures_peers.toml",
                "skip_peers.txt",
            ],
        }
    }

    /// The folder of logs below the build folder.
    fn logs(self) -> &'static str {
        match self {
            Self::One => "logs",
            Self::Peers => "logs_peers",
        }
    }
}

/// Where suites are compiled and run, and by which commands.
struct Setup {
    /// Compiled suites, and below it their data, logs and scratch directories.
    dir: PathBuf,
    nodes: Nodes,
    place: Place,
    erlc: Vec<String>,
    erl: Vec<String>,
    jobs: usize,
}

/// Compiles and runs the suites, prints the table, and fails if a case did what is not expected.
pub(crate) fn main(options: &Options) -> Result<()> {
    let suites = chosen(options)?;
    let source = match &options.source {
        Some(dir) => dir.clone(),
        None => fetch::source(false)?,
    };
    let setup = setup(options)?;
    build::build(&setup, &source, &suites)?;
    let [_, table, expected, skips] = setup.nodes.files().map(read);
    let table = Table::parse(&table?)?;
    let expected = Expected::parse(&expected?, &engine::running())?;
    let verdicts = run_all(&setup, &suites, &skips?, &table, &expected)?;
    print!("{}", compare::render(&verdicts));
    let wrong = verdicts
        .iter()
        .map(|verdict| verdict.unexpected.len())
        .sum::<usize>();
    if wrong > 0 {
        bail!(
            "{wrong} cases did what is not expected; logs are in {}",
            setup.logs().display()
        );
    }
    Ok(())
}

/// The names of the gate's suites.
pub(crate) fn suites_of_gate() -> Result<Vec<String>> {
    Ok(names(&read("gate.txt")?))
}

/// The suites of the gate that are not in its core are in this many groups, of which `cargo xtask test` runs one at
/// each commit.
const TURNS: usize = 3;

/// What `cargo xtask test` runs of the gate: its core, and of the others those whose turn it is at this commit.
pub(crate) fn gate() -> Result<()> {
    let core = names(&read("core.txt")?);
    let turn = usize::try_from(run::commits()?)? % TURNS;
    let suites = of_turn(suites_of_gate()?, &core, turn);
    eprintln!(
        "{} suites: {} of the core, and of the others part {} of {TURNS}",
        suites.len(),
        core.len(),
        turn + 1
    );
    main(&Options::of_gate(suites))
}

/// The suites of `gate` that are in `core`, or have this turn. Each part has long and short ones: those that take longest
/// stand first in the gate.
fn of_turn(gate: Vec<String>, core: &[String], turn: usize) -> Vec<String> {
    let mut others = 0;
    let mut suites = gate;
    suites.retain(|suite| {
        if core.contains(suite) {
            return true;
        }
        others += 1;
        others % TURNS == turn
    });
    suites
}

/// What runs a suite.
const ERL: [&str; 2] = ["erl", "-noinput"];

fn setup(options: &Options) -> Result<Setup> {
    let command = |given: &Option<String>, ours: &[&str]| match given {
        Some(command) => Ok(words(command)),
        None => binary::beamline_run(&fetch::otp()?.root, ours),
    };
    let erl = match options.zeal {
        true => binary::words_of(&binary::zealous()?, &["run"], &fetch::otp()?.root, &ERL)?,
        false => command(&options.erl, &ERL)?,
    };
    let dir = options.build.clone();
    let dir = dir.unwrap_or_else(|| paths::target().join("conformance"));
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    Ok(Setup {
        dir: dir.canonicalize()?,
        place: Place::new(options.chroot.as_deref())?,
        erlc: command(&options.erlc, &["erlc"])?,
        erl,
        jobs: options.jobs.max(1),
        nodes: Nodes::of(options),
    })
}

impl Setup {
    /// The folder of the logs.
    fn logs(&self) -> PathBuf {
        self.dir.join(self.nodes.logs())
    }
}

fn run_all(
    setup: &Setup,
    suites: &[Suite],
    skips: &str,
    table: &Table,
    expected: &Expected,
) -> Result<Vec<Verdict>> {
    let waiting = Mutex::new(suites.iter().enumerate());
    let done = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        loop {
            let next = waiting.lock().expect("no thread panics with it").next();
            let Some((index, suite)) = next else {
                return Ok(());
            };
            let judge = |outcome: &Outcome| compare::judge(&suite.module, outcome, table, expected);
            let mut outcome = runner::run(setup, suite, skips)?;
            let mut verdict = judge(&outcome);
            let again = verdict.worth_a_second_try();
            if !again.is_empty() {
                runner::try_again(setup, suite, skips, &mut outcome, &again)?;
                verdict = judge(&outcome);
            }
            eprintln!("{}", verdict.line());
            done.lock()
                .expect("no thread panics with it")
                .push((index, verdict));
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..setup.jobs).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a suite's thread panicked"))
    })?;
    let mut done = done.into_inner().expect("no thread panics with it");
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, verdict)| verdict).collect())
}

/// A suite of `suites.txt` or `peers.txt`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Suite {
    /// Such as `lists_SUITE`.
    module: String,
    /// Its directory in OTP's source tree.
    dir: String,
    limits: Limits,
    /// Cases that do not run: they need no other node, and run where there is none.
    elsewhere: Vec<String>,
}

/// The longest times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    case: Duration,
    suite: Duration,
}

impl Limits {
    const DEFAULT: Limits = Limits {
        case: Duration::from_secs(60),
        suite: Duration::from_secs(180),
    };
}

/// The suites of `limits.txt`, without _SUITE, and their limits.
fn limits(text: &str) -> Result<Vec<(String, Limits)>> {
    let rows = listed(text);
    let rows = rows.chunk_by(|a, b| a.0 == b.0).map(|row| {
        let seconds = |at: usize| {
            let number = row.get(at).and_then(|(_, word)| word.parse().ok());
            let name = &row[0].0;
            number.with_context(|| format!("limits.txt: {name} needs two numbers of seconds"))
        };
        let (case, suite) = (seconds(0)?, seconds(1)?);
        let [case, suite] = [case, suite].map(Duration::from_secs);
        Ok((row[0].0.clone(), Limits { case, suite }))
    });
    rows.collect()
}

/// The suites that `options` ask for, each with its limits.
fn chosen(options: &Options) -> Result<Vec<Suite>> {
    let file = match options.zeal {
        true => "zeal.txt",
        false => "limits.txt",
    };
    let known = limits(&read(file)?)?;
    let zealous: Vec<String> = known.iter().map(|(suite, _)| suite.clone()).collect();
    let limits = |name: &str| {
        let known = known.iter().find(|(suite, _)| suite == name);
        let mut limits = known.map_or(Limits::DEFAULT, |(_, limits)| *limits);
        for (limit, given) in [
            (&mut limits.case, options.case_seconds),
            (&mut limits.suite, options.suite_seconds),
        ] {
            *limit = given.map_or(*limit, Duration::from_secs);
        }
        limits
    };
    let [listing, ..] = Nodes::of(options).files();
    let elsewhere = match Nodes::of(options) {
        Nodes::One => None,
        Nodes::Peers => Some(Table::parse(&read("otp29.txt")?)?),
    };
    let elsewhere = |module: &str| {
        let table = elsewhere.as_ref();
        table.map_or_else(Vec::new, |table| table.cases_run(module))
    };
    let mut all: Vec<_> = listed(&read(listing)?)
        .into_iter()
        .map(|(dir, name)| {
            let module = format!("{name}_SUITE");
            Suite {
                limits: limits(&name),
                elsewhere: elsewhere(&module),
                module,
                dir,
            }
        })
        .collect();
    if options.rest {
        let gate = names(&read("gate.txt")?);
        all.retain(|suite| {
            !gate
                .iter()
                .any(|name| suite.module == format!("{name}_SUITE"))
        });
    }
    let named = match options.zeal && options.suites.is_empty() {
        true => &zealous,
        false => &options.suites,
    };
    if named.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| {
        let module = format!("{}_SUITE", name.trim_end_matches("_SUITE"));
        let found = all.iter().find(|suite| suite.module == module).cloned();
        found.with_context(|| format!("{module} is not in ci/conformance/{listing}"))
    };
    named.iter().map(find).collect()
}

/// Reads lines of a directory and the names in it; `#` begins a comment.
fn listed(text: &str) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    for line in text.lines() {
        let mut words = line
            .split('#')
            .next()
            .unwrap_or_default()
            .split_whitespace();
        let Some(dir) = words.next() else { continue };
        rows.extend(words.map(|name| (dir.to_owned(), name.to_owned())));
    }
    rows
}

/// The words of a file whose comments begin with `#`.
fn names(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    lines
        .flat_map(str::split_whitespace)
        .map(str::to_owned)
        .collect()
}

fn read(file: &str) -> Result<String> {
    let path = paths::workspace().join("ci/conformance").join(file);
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_suites_and_of_names() {
        let text = "# where, what\na/test x y # and\n\nb/test z\n";
        let row = |dir: &str, name: &str| (dir.to_owned(), name.to_owned());
        assert_eq!(
            listed(text),
            [row("a/test", "x"), row("a/test", "y"), row("b/test", "z")]
        );
        assert_eq!(names("# none\nx y\nz # w\n"), ["x", "y", "z"]);
    }

    #[test]
    fn each_suite_of_the_gate_has_its_turn() {
        let suites = |text: &str| names(text);
        let gate = suites("a x b c y d e");
        let core = suites("x y");
        let turns = [0, 1, 2].map(|turn| of_turn(gate.clone(), &core, turn));
        assert_eq!(turns, ["x c y", "a x y d", "x b y e"].map(suites));
    }

    #[test]
    fn the_core_is_a_part_of_the_gate() {
        let gate = suites_of_gate().unwrap();
        for suite in names(&read("core.txt").unwrap()) {
            assert!(gate.contains(&suite), "{suite}");
        }
    }

    #[test]
    fn the_committed_files_fit_each_other() {
        let table = Table::parse(&read("otp29.txt").unwrap()).unwrap();
        let of = |suites| chosen(&Options::of_gate(suites)).unwrap();
        let suites = of(Vec::new());
        for suite in &suites {
            assert!(
                table.has_suite(&suite.module),
                "{} is not in otp29.txt",
                suite.module
            );
        }
        let gate = of(names(&read("gate.txt").unwrap()));
        let rest = Options {
            rest: true,
            ..Options::of_gate(Vec::new())
        };
        assert_eq!(gate.len() + chosen(&rest).unwrap().len(), suites.len());
        let with_peers = chosen(&Options {
            peers: true,
            ..Options::of_gate(Vec::new())
        });
        let with_peers = with_peers.unwrap();
        for (name, limits) in limits(&read("limits.txt").unwrap()).unwrap() {
            let mut all = suites.iter().chain(&with_peers);
            let suite = all.find(|s| s.module == format!("{name}_SUITE"));
            assert_eq!(suite.map(|suite| suite.limits), Some(limits), "{name}");
        }
        let expected =
            Expected::parse(&read("expected_failures.toml").unwrap(), "interpreter").unwrap();
        for case in expected.cases() {
            assert!(table.status(case).is_some(), "{case} is not in otp29.txt");
        }
        let [_, table, expected, _] = Nodes::Peers.files().map(|file| read(file).unwrap());
        let table = Table::parse(&table).unwrap();
        for suite in &with_peers {
            assert!(table.has_suite(&suite.module), "{}", suite.module);
        }
        for case in Expected::parse(&expected, "jit").unwrap().cases() {
            assert!(table.status(case).is_some(), "{case}");
        }
    }
}
