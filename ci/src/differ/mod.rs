//! `cargo xtask differ`: random cases (`ci/differ/*.erl`) on several runtimes. What each gives is compared; a case whose
//! answers differ is made as small as it gets, and printed as a function.

mod allow;
mod extremes;
mod shrink;
mod side;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cases::{self, Cases};
use crate::place::{Place, words};
use crate::{binary, fetch, paths, run};
use side::{Build, Side};

/// Options of `cargo xtask differ`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Campaigns to run [default: all]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(CAMPAIGNS))]
    campaigns: Vec<String>,
    /// The command that starts OTP [default: compare Beamline's engines, also where each safepoint is a collection]
    #[arg(long, value_name = "COMMAND")]
    erl: Option<String>,
    /// Run OTP with this directory as its root; the build folder must be below it
    #[arg(long, value_name = "DIR", requires = "erl")]
    chroot: Option<PathBuf>,
    /// Run the cases in this folder [default: differ/ in the build folder]
    #[arg(long, value_name = "DIR")]
    build: Option<PathBuf>,
    /// Test this beamline binary [default: a new optimised build]
    #[arg(long, value_name = "FILE")]
    beamline: Option<PathBuf>,
    /// The binary that collects at every safepoint [default: a new build]
    #[arg(long, value_name = "FILE", conflicts_with = "erl")]
    zeal: Option<PathBuf>,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Cases of each campaign
    #[arg(long, default_value_t = 1000)]
    cases: usize,
    /// Number of the first case
    #[arg(long, default_value_t = 1)]
    first: usize,
    /// Differences of each campaign to shrink; the task prints the others as they are
    #[arg(long, default_value_t = 10)]
    shrink: usize,
    /// Differences with the same subject to print
    #[arg(long, default_value_t = 3)]
    alike: usize,
}

/// Random modules that are part of `cargo xtask test`.
const TESTED: usize = 200;

impl Options {
    /// What `cargo xtask test` runs: other modules at each commit, and the same ones whenever it is tested.
    pub(crate) fn of_test() -> Result<Self> {
        Ok(Self {
            campaigns: vec!["modules".to_owned()],
            erl: None,
            chroot: None,
            build: None,
            beamline: None,
            zeal: None,
            seed: run::commits()?,
            cases: TESTED,
            first: 1,
            shrink: 3,
            alike: 3,
        })
    }
}

/// The modules `differ_NAME` that make cases, and `extremes`, which makes as many as there are functions.
const CAMPAIGNS: [&str; 9] = [
    "modules",
    "instructions",
    "calls",
    "tables",
    "specs",
    "programs",
    "traces",
    "formats",
    EXTREMES,
];

const EXTREMES: &str = "extremes";

/// Cases run by one instance.
const BATCH: usize = 500;

/// The runtimes, and the folder of the cases.
struct Runtimes {
    dir: PathBuf,
    /// The first one is believed.
    sides: Vec<Side>,
    /// Is it one of Beamline's? Then all run what one has compiled, and tell what a case has cost.
    is_ours: bool,
}

/// A case whose answers differ.
struct Finding {
    campaign: String,
    number: usize,
    /// Its line: campaign, number, and what it is about.
    name: String,
    /// What each side gave.
    answers: Vec<Vec<String>>,
}

/// Runs the campaigns.
pub(crate) fn main(options: &Options) -> Result<()> {
    let runtimes = runtimes(options)?;
    let campaigns: Vec<&str> = match &options.campaigns[..] {
        [] => CAMPAIGNS.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    let (mut all, mut cases) = (0, 0);
    for campaign in campaigns {
        if campaign == EXTREMES {
            let (differ, calls) = extremes::run(&runtimes.sides, options.seed)?;
            all += differ;
            cases += calls;
            continue;
        }
        let findings = run_all(&runtimes, options, campaign)?;
        all += findings.len();
        cases += options.cases;
        tell(&runtimes, options, findings)?;
    }
    if all > 0 {
        bail!("{all} of {cases} cases differ");
    }
    println!("{cases} cases, no difference");
    Ok(())
}

fn runtimes(options: &Options) -> Result<Runtimes> {
    let dir = options.build.clone();
    let dir = dir.unwrap_or_else(|| paths::target().join("differ"));
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let dir = dir.canonicalize()?;
    let otp = fetch::otp()?.root;
    let binary = |given: &Option<PathBuf>, build: fn() -> Result<PathBuf>| match given {
        Some(file) => file.canonicalize().context("looking for the binary"),
        None => build(),
    };
    let beamline = binary(&options.beamline, binary::beamline)?;
    let is_ours = options.erl.is_none();
    let side = |name, binary: &Path, engine, build| -> Result<Side> {
        let mut run = vec!["run", "--engine", engine];
        if is_ours {
            // Else what a process costs depends on when time slices of others begin and end.
            run.push("--deterministic");
        }
        let erl = binary::words_of(binary, &run, &otp, &["erl"])?;
        Side::new(name, Place::new(None)?, erl, &dir, build)
    };
    let [interpreter, jit] = [
        side("interpreter", &beamline, "interpreter", Build::Plain)?,
        side("jit", &beamline, "jit", Build::Plain)?,
    ];
    let sides = match &options.erl {
        Some(erl) => {
            let place = Place::new(options.chroot.as_deref())?;
            let otp = Side::new("OTP", place, words(erl), &dir, Build::Otp)?;
            vec![otp, interpreter, jit]
        }
        None => {
            let zeal = binary(&options.zeal, binary::zealous)?;
            let reference = side("interpreter, zeal", &zeal, "interpreter", Build::Zealous)?;
            let compiled = side("jit, zeal", &zeal, "jit", Build::Zealous)?;
            vec![interpreter, jit, reference, compiled]
        }
    };
    let runtimes = Runtimes {
        dir,
        sides,
        is_ours,
    };
    runtimes.maker().compile()?;
    Ok(runtimes)
}

/// Files of cases in the folder, as they are made and with their code compiled.
const MADE: &str = "made";
const COMPILED: &str = "compiled";

impl Runtimes {
    /// The runtime that makes and compiles cases.
    fn maker(&self) -> &Side {
        &self.sides[0]
    }

    /// What all give of cases of a campaign.
    fn run_campaign(&self, campaign: &str, seed: &str, numbers: [usize; 2]) -> Result<Vec<Cases>> {
        let [first, last] = numbers;
        if !self.is_ours {
            return self.run(&["run", campaign, seed], first, last);
        }
        self.make(campaign, seed, numbers, MADE)?;
        self.run_file(MADE, 1, last + 1 - first)
    }

    /// Writes cases of a campaign to a file.
    fn make(&self, campaign: &str, seed: &str, numbers: [usize; 2], file: &str) -> Result<()> {
        let [first, last] = numbers.map(|number| number.to_string());
        let make = ["make", campaign, seed, &first, &last, file];
        self.maker().ask(&make).map(drop)
    }

    /// The number of a case among those that `first` begins, of the one that a side calls `number`.
    fn number_in(&self, number: usize, first: usize) -> usize {
        match self.is_ours {
            true => number + first - 1,
            false => number,
        }
    }

    /// A finding among cases that `first` begins, with the number and the name that its campaign gives it.
    fn as_made(&self, finding: Finding, first: usize) -> Finding {
        if !self.is_ours {
            return finding;
        }
        let number = self.number_in(finding.number, first);
        let about = finding.name.splitn(3, ' ').nth(2).unwrap_or_default();
        let name = format!("{} {number} {about}", finding.campaign);
        Finding {
            number,
            name,
            ..finding
        }
    }

    /// What all give of cases of a file. Ours count those that they run from 1 on.
    fn run_file(&self, file: &str, first: usize, last: usize) -> Result<Vec<Cases>> {
        if !self.is_ours {
            return self.run(&["try", &format!("../{file}")], first, last);
        }
        let [from, to] = [first, last].map(|number| number.to_string());
        self.maker().ask(&["compile", file, &from, &to, COMPILED])?;
        self.run(&["measure", &format!("../{COMPILED}")], 1, last + 1 - first)
    }

    /// What all give, in the order of the names, of what `arguments` ask `differ:main` for. The numbers of the first and
    /// the last case stand between `before` and the file that is written.
    fn run(&self, before: &[&str], first: usize, last: usize) -> Result<Vec<Cases>> {
        let texts = on_all(&self.sides, |side| side.run(before, first, last));
        let cases = texts.into_iter().map(|text| Ok(cases::parse(&text?)));
        cases.collect()
    }

    /// The cases of texts, one of each side, that are not allowed to differ as they do.
    fn differing(&self, campaign: &str, given: &[Cases]) -> Result<Vec<Finding>> {
        differing(campaign, &self.builds(), given)
    }

    fn builds(&self) -> Vec<Build> {
        self.sides.iter().map(|side| side.build).collect()
    }
}

/// What each side gives; all run at the same time.
fn on_all<T: Send>(sides: &[Side], run: impl Fn(&Side) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = sides
            .iter()
            .map(|side| scope.spawn(move || run(side)))
            .collect();
        let given = threads.into_iter().map(|thread| thread.join());
        given
            .map(|given| given.expect("a side's thread panicked"))
            .collect()
    })
}

/// The cases of a campaign that differ.
fn run_all(runtimes: &Runtimes, options: &Options, campaign: &str) -> Result<Vec<Finding>> {
    let seed = options.seed.to_string();
    let end = options.first + options.cases;
    let (mut findings, mut slow) = (Vec::new(), 0);
    for first in (options.first..end).step_by(BATCH) {
        let last = (first + BATCH).min(end) - 1;
        let given = runtimes.run_campaign(campaign, &seed, [first, last])?;
        let found = runtimes.differing(campaign, &given)?;
        slow += without_answer(&runtimes.builds(), &given);
        findings.extend(
            found
                .into_iter()
                .map(|finding| runtimes.as_made(finding, first)),
        );
        eprintln!(
            "{campaign} --seed {seed}: {} cases, {} differ",
            last + 1 - options.first,
            findings.len()
        );
    }
    if slow > 0 {
        eprintln!("{slow} of them got no answer in time where each safepoint is a collection");
    }
    Ok(findings)
}

/// What stands before the line that tells what a case has cost.
const COST: &str = "costs ";

/// The cases that the sides, of these builds, answer differently. What a case costs is the same on the sides of one build.
fn differing(campaign: &str, builds: &[Build], given: &[Cases]) -> Result<Vec<Finding>> {
    let none = Vec::new();
    let names: BTreeSet<_> = given.iter().flat_map(Cases::keys).collect();
    let mut findings = Vec::new();
    for name in names {
        let answers: Vec<_> = given
            .iter()
            .map(|cases| cases.get(name).unwrap_or(&none))
            .collect();
        let are_same = (1..answers.len()).all(|side| {
            let alike = builds.iter().position(|build| *build == builds[side]);
            let alike = alike.expect("the side itself");
            let [first, other] = [0, side].map(|side| parts(answers[side]).0);
            let is_same = allow::is_same(name, first, other)
                || is_too_slow(builds[side], other) && answers[alike] == answers[side];
            is_same && parts(answers[alike]).1 == parts(answers[side]).1
        });
        if are_same {
            continue;
        }
        let number = name.split(' ').nth(1).and_then(|word| word.parse().ok());
        findings.push(Finding {
            campaign: campaign.to_owned(),
            number: number.with_context(|| format!("a case without number: {name}"))?,
            name: name.clone(),
            answers: answers.into_iter().cloned().collect(),
        });
    }
    findings.sort_by_key(|finding| finding.number);
    Ok(findings)
}

/// Has a case got no answer in the time it has because each safepoint is a collection?
fn is_too_slow(build: Build, lines: &[String]) -> bool {
    build == Build::Zealous && (lines == ["no answer"] || lines == ["hangs"])
}

/// Cases of the zealous build that got no answer.
fn without_answer(builds: &[Build], given: &[Cases]) -> usize {
    let side = builds.iter().position(|build| *build == Build::Zealous);
    let cases = side.into_iter().flat_map(|side| given[side].values());
    cases
        .filter(|lines| is_too_slow(Build::Zealous, lines))
        .count()
}

/// What a case gave, and what it has cost.
fn parts(lines: &[String]) -> (&[String], &[String]) {
    let is_cost = |line: &String| line.starts_with(COST);
    let end = lines.iter().position(is_cost).unwrap_or(lines.len());
    lines.split_at(end)
}

/// Prints findings: of each thing that they are about the first ones, small.
fn tell(runtimes: &Runtimes, options: &Options, findings: Vec<Finding>) -> Result<()> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut small = 0;
    for finding in findings {
        let about = finding.name.splitn(3, ' ').nth(2).unwrap_or_default();
        let times = seen.entry(about.to_owned()).or_default();
        *times += 1;
        if *times > options.alike {
            continue;
        }
        println!("\n{}", finding.name);
        println!("  again: {}", again(options, &finding));
        if small >= options.shrink {
            print_answers(runtimes, &finding.answers);
            continue;
        }
        small += 1;
        match shrink::shrink(runtimes, options.seed, &finding)? {
            Some(shrunk) => {
                print!("{}", shrunk.source);
                print_answers(runtimes, &shrunk.answers);
            }
            None => {
                println!("  alone, it gives the same on all; among others:");
                print_answers(runtimes, &finding.answers);
            }
        }
    }
    for (about, times) in seen.iter().filter(|(_, times)| **times > options.alike) {
        println!("\n{} more about {about}", times - options.alike);
    }
    Ok(())
}

/// The command that runs a case again.
fn again(options: &Options, finding: &Finding) -> String {
    format!(
        "cargo xtask differ --seed {} --first {} --cases 1 {}",
        options.seed, finding.number, finding.campaign
    )
}

/// Longest text of an answer that is printed.
const ANSWER: usize = 1500;

fn print_answers(runtimes: &Runtimes, answers: &[Vec<String>]) {
    let width = runtimes.sides.iter().map(|side| side.name.len()).max();
    let width = width.unwrap_or_default();
    for (side, lines) in runtimes.sides.iter().zip(answers) {
        for line in lines {
            let line: String = line.chars().take(ANSWER).collect();
            println!("  {:width$} {line}", side.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_compared_within_a_build() {
        use Build::{Plain, Zealous};
        let found = |texts: [&str; 4]| {
            let given = texts.map(|text| cases::parse(&format!("x 7 y\n{text}")));
            let builds = [Plain, Plain, Zealous, Zealous];
            let findings = differing("x", &builds, &given).unwrap();
            findings
                .iter()
                .map(|finding| finding.number)
                .collect::<Vec<_>>()
        };
        let (one, two) = ("    a\n    costs 1\n", "    a\n    costs 2\n");
        assert!(found([one, one, two, two]).is_empty());
        assert_eq!(found([one, one, one, two]), [7]);
        assert_eq!(found([one, two, one, one]), [7]);
        assert_eq!(found([one, one, two, "    b\n    costs 2\n"]), [7]);
        assert_eq!(found([one, one, two, ""]), [7]);
        // What a collection at every safepoint makes too slow is the same on both engines of that build.
        let late = "    no answer\n";
        assert!(found([one, one, late, late]).is_empty());
        assert_eq!(found([one, one, one, late]), [7]);
        assert_eq!(found([one, late, one, one]), [7]);
    }
}
