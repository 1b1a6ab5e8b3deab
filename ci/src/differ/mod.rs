//! `cargo xtask differ`: random cases (`ci/differ/*.erl`) on two runtimes. What each gives is compared; a case whose
//! answers differ is made as small as it gets, and printed as a function.

mod allow;
mod extremes;
mod shrink;
mod side;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cases::{self, Cases};
use crate::place::{Place, words};
use crate::{binary, fetch, paths};
use side::Side;

/// Options of `cargo xtask differ`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Campaigns to run [default: all]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(CAMPAIGNS))]
    campaigns: Vec<String>,
    /// The command that starts OTP [default: compare Beamline with a build that collects at every safepoint]
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

/// The modules `differ_NAME` that make cases, and `extremes`, which makes as many as there are functions.
const CAMPAIGNS: [&str; 8] = [
    "modules", "calls", "tables", "specs", "programs", "traces", "formats", EXTREMES,
];

const EXTREMES: &str = "extremes";

/// So many cases are run by one instance.
const BATCH: usize = 500;

/// The two runtimes, and the folder of the cases.
struct Pair {
    dir: PathBuf,
    /// What is believed.
    truth: Side,
    ours: Side,
    /// Is the one that is believed too slow to make and compile cases? Then both run what the other has compiled.
    shares_code: bool,
}

/// A case whose answers differ.
struct Finding {
    campaign: String,
    number: usize,
    /// Its line: campaign, number, and what it is about.
    name: String,
    truth: Vec<String>,
    ours: Vec<String>,
}

/// Runs the campaigns.
pub(crate) fn main(options: &Options) -> Result<()> {
    let pair = pair(options)?;
    let campaigns: Vec<&str> = match &options.campaigns[..] {
        [] => CAMPAIGNS.to_vec(),
        named => named.iter().map(String::as_str).collect(),
    };
    let (mut all, mut cases) = (0, 0);
    for campaign in campaigns {
        if campaign == EXTREMES {
            let (differ, calls) = extremes::run(&pair, options.seed)?;
            all += differ;
            cases += calls;
            continue;
        }
        let findings = run(&pair, options, campaign)?;
        all += findings.len();
        cases += options.cases;
        tell(&pair, options, findings)?;
    }
    if all > 0 {
        bail!("{all} of {cases} cases differ");
    }
    println!("{cases} cases, no difference");
    Ok(())
}

fn pair(options: &Options) -> Result<Pair> {
    let dir = options.build.clone();
    let dir = dir.unwrap_or_else(|| paths::target().join("differ"));
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let dir = dir.canonicalize()?;
    let otp = fetch::otp()?.root;
    let beamline = match &options.beamline {
        Some(file) => file.canonicalize().context("looking for the binary")?,
        None => binary::beamline()?,
    };
    let here = |name, binary: &Path| -> Result<Side> {
        let erl = binary::words_of(binary, &["run"], &otp, &["erl"])?;
        Side::new(name, Place::new(None)?, erl, &dir)
    };
    let truth = match &options.erl {
        Some(erl) => {
            let place = Place::new(options.chroot.as_deref())?;
            Side::new("OTP", place, words(erl), &dir)?
        }
        None => here("zeal", &binary::zealous()?)?,
    };
    let ours = here("here", &beamline)?;
    let pair = Pair {
        dir,
        truth,
        ours,
        shares_code: options.erl.is_none(),
    };
    pair.maker().compile()?;
    Ok(pair)
}

/// Files of cases in the folder, as they are made and with their code compiled.
const MADE: &str = "made";
const COMPILED: &str = "compiled";

impl Pair {
    /// The runtime that makes cases.
    fn maker(&self) -> &Side {
        match self.shares_code {
            true => &self.ours,
            false => &self.truth,
        }
    }

    /// What both give of cases of a campaign.
    fn run_campaign(&self, campaign: &str, seed: &str, numbers: [usize; 2]) -> Result<[Cases; 2]> {
        let [first, last] = numbers;
        if !self.shares_code {
            return self.run(&["run", campaign, seed], first, last);
        }
        self.make(campaign, seed, numbers, MADE)?;
        self.run_file(self.with_code(MADE)?, 1, last + 1 - first)
    }

    /// Writes cases of a campaign to a file.
    fn make(&self, campaign: &str, seed: &str, numbers: [usize; 2], file: &str) -> Result<()> {
        let [first, last] = numbers.map(|number| number.to_string());
        let make = ["make", campaign, seed, &first, &last, file];
        self.maker().ask(&make).map(drop)
    }

    /// The file that has the cases of `file` as both run them.
    fn with_code<'a>(&self, file: &'a str) -> Result<&'a str> {
        if !self.shares_code {
            return Ok(file);
        }
        self.maker().ask(&["compile", file, COMPILED])?;
        Ok(COMPILED)
    }

    /// A finding among cases that `first` begins, with the number and the name that its campaign gives it.
    fn as_made(&self, finding: Finding, first: usize) -> Finding {
        if !self.shares_code {
            return finding;
        }
        let number = finding.number + first - 1;
        let about = finding.name.splitn(3, ' ').nth(2).unwrap_or_default();
        let name = format!("{} {number} {about}", finding.campaign);
        Finding {
            number,
            name,
            ..finding
        }
    }

    /// What both give of cases of a file.
    fn run_file(&self, file: &str, first: usize, last: usize) -> Result<[Cases; 2]> {
        self.run(&["try", &format!("../{file}")], first, last)
    }

    /// What both give, in the order of the names, of what `arguments` ask `differ:main` for. The numbers of the first and the
    /// last case stand between `before` and the file that is written.
    fn run(&self, before: &[&str], first: usize, last: usize) -> Result<[Cases; 2]> {
        let [truth, ours] = std::thread::scope(|scope| {
            let run = |side| scope.spawn(move || Side::run(side, before, first, last));
            [run(&self.truth), run(&self.ours)]
                .map(|thread| thread.join().expect("a side's thread panicked"))
        });
        Ok([cases::parse(&truth?), cases::parse(&ours?)])
    }
}

/// The cases of a campaign that differ.
fn run(pair: &Pair, options: &Options, campaign: &str) -> Result<Vec<Finding>> {
    let seed = options.seed.to_string();
    let end = options.first + options.cases;
    let mut findings = Vec::new();
    for first in (options.first..end).step_by(BATCH) {
        let last = (first + BATCH).min(end) - 1;
        let [truth, ours] = pair.run_campaign(campaign, &seed, [first, last])?;
        let found = differing(campaign, &truth, &ours)?;
        findings.extend(
            found
                .into_iter()
                .map(|finding| pair.as_made(finding, first)),
        );
        eprintln!(
            "{campaign} --seed {seed}: {} cases, {} differ",
            last + 1 - options.first,
            findings.len()
        );
    }
    Ok(findings)
}

/// The cases of two texts that are not allowed to differ as they do.
fn differing(campaign: &str, truth: &Cases, ours: &Cases) -> Result<Vec<Finding>> {
    let none = Vec::new();
    let names: std::collections::BTreeSet<_> = truth.keys().chain(ours.keys()).collect();
    let mut findings = Vec::new();
    for name in names {
        let [truth, ours] = [truth, ours].map(|cases| cases.get(name).unwrap_or(&none));
        if allow::is_same(name, truth, ours) {
            continue;
        }
        let number = name.split(' ').nth(1).and_then(|word| word.parse().ok());
        findings.push(Finding {
            campaign: campaign.to_owned(),
            number: number.with_context(|| format!("a case without number: {name}"))?,
            name: name.clone(),
            truth: truth.clone(),
            ours: ours.clone(),
        });
    }
    findings.sort_by_key(|finding| finding.number);
    Ok(findings)
}

/// Prints findings: of each thing that they are about the first ones, small.
fn tell(pair: &Pair, options: &Options, findings: Vec<Finding>) -> Result<()> {
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
            print_answers(pair, &finding.truth, &finding.ours);
            continue;
        }
        small += 1;
        match shrink::shrink(pair, options.seed, &finding)? {
            Some(shrunk) => {
                print!("{}", shrunk.source);
                print_answers(pair, &shrunk.truth, &shrunk.ours);
            }
            None => {
                println!("  alone, it gives the same on both; among others:");
                print_answers(pair, &finding.truth, &finding.ours);
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

fn print_answers(pair: &Pair, truth: &[String], ours: &[String]) {
    for (side, lines) in [(&pair.truth, truth), (&pair.ours, ours)] {
        for line in lines {
            println!(
                "  {:4} {}",
                side.name,
                line.chars().take(ANSWER).collect::<String>()
            );
        }
    }
}
