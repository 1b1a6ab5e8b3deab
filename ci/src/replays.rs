//! `cargo xtask replays`: programs whose output depends on the order of messages (`ci/races`), or random ones
//! (`ci/replays`), are recorded with two schedulers, and replayed. Each replay has the output and the exit code of its own
//! recording, and so has each process its reductions and words.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::place::Place;
use crate::{binary, fetch, paths, run};

/// Options of `cargo xtask replays`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of recordings, of one program after the other
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    /// Record random programs, four in each recording
    #[arg(long)]
    random: bool,
    /// Number of the first random programs
    #[arg(long, default_value_t = 0, requires = "random")]
    seed: u64,
}

impl Options {
    /// What `cargo xtask test` records: each program once, and random ones, others at each commit.
    pub(crate) fn of_test() -> Result<[Self; 2]> {
        const PROGRAMS: u32 = 10;
        let each = Self {
            rounds: files(FIXED)?.len(),
            random: false,
            seed: 0,
        };
        let random = Self {
            rounds: PROGRAMS as usize,
            random: true,
            seed: run::commits()? * u64::from(PROGRAMS),
        };
        Ok([each, random])
    }
}

/// Where the programs are, and the one that makes random programs.
const FIXED: &str = "ci/races";
const RANDOM: &str = "ci/replays";

/// A program that is recorded: its module, and the arguments of `erl` that choose it.
struct Program {
    module: String,
    arguments: Vec<String>,
}

/// Records and replays as many runs as the options say.
pub(crate) fn main(options: &Options) -> Result<()> {
    let otp = fetch::otp()?.root;
    let beamline = binary::beamline()?;
    let dir = paths::target().join("replays");
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let files = files(if options.random { RANDOM } else { FIXED })?;
    let erlc = binary::words_of(&beamline, &["run"], &otp, &["erlc"])?;
    run::output(Place::new(None)?.command(&dir, &erlc)?.args(&files))?;
    let mut outputs: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    let mut failed = 0;
    for (number, file) in (options.seed..).zip(files.iter().cycle().take(options.rounds)) {
        let module = file.file_stem().unwrap_or_default().to_string_lossy();
        let program = match options.random {
            true => Program::random(module.into_owned(), number),
            false => Program::fixed(module.into_owned()),
        };
        let name = program.name();
        let (recorded, replayed) = once(&dir, &beamline, &otp, &program)?;
        if recorded != replayed {
            failed += 1;
            let kept = dir.join(format!("failed-{failed}-{name}.stream"));
            fs::copy(dir.join(RECORDING), &kept)?;
            println!(
                "{name}: {recorded:?}, and in the replay {replayed:?}; {}",
                kept.display()
            );
        }
        outputs
            .entry(program.module)
            .or_default()
            .insert(recorded.out);
    }
    for (module, outputs) in &outputs {
        println!("{module}: {} different outputs", outputs.len());
    }
    if failed > 0 {
        bail!("{failed} of {} replays differ", options.rounds);
    }
    println!("{} replays, all as recorded", options.rounds);
    Ok(())
}

impl Program {
    fn fixed(module: String) -> Program {
        let arguments = Vec::new();
        Program { module, arguments }
    }

    fn random(module: String, number: u64) -> Program {
        let arguments = ["-kernel", "race_seed", &number.to_string()].map(str::to_owned);
        let arguments = arguments.into();
        Program { module, arguments }
    }

    /// What its failed recordings are called.
    fn name(&self) -> String {
        let number = self.arguments.last().map(|number| format!("-{number}"));
        format!("{}{}", self.module, number.unwrap_or_default())
    }
}

const RECORDING: &str = "run.stream";

/// The end of a program.
#[derive(PartialEq)]
struct Ended {
    code: Option<i32>,
    out: Vec<u8>,
    errors: String,
}

impl std::fmt::Debug for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let out = String::from_utf8_lossy(&self.out);
        write!(
            f,
            "exit code {:?}, {:?} {}",
            self.code,
            out.trim_end(),
            self.errors
        )
    }
}

/// The files of programs.
fn files(folder: &str) -> Result<Vec<PathBuf>> {
    let folder = paths::workspace().join(folder);
    let files = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files = files
        .map(|file| Ok(file?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// Records a program and replays it: how both ended.
fn once(dir: &Path, beamline: &Path, otp: &Path, program: &Program) -> Result<(Ended, Ended)> {
    let arguments = program.arguments.iter().map(String::as_str);
    let starts = ["-s", &program.module, "main", "-s", "init", "stop"];
    let program: Vec<&str> = ["erl", "-noshell", "-pa", ".."]
        .into_iter()
        .chain(arguments)
        .chain(starts)
        .collect();
    let recording = dir.join(RECORDING).display().to_string();
    let record = ["record", "--events", "order", "-o", &recording];
    let recorded = end(dir, &binary::words_of(beamline, &record, otp, &program)?)?;
    let replay = ["run", "--replay", &recording];
    let replayed = end(dir, &binary::words_of(beamline, &replay, otp, &program)?)?;
    Ok((recorded, replayed))
}

/// The end of a program that finds no files in its working directory.
fn end(dir: &Path, words: &[String]) -> Result<Ended> {
    let works_in = dir.join("files");
    if works_in.exists() {
        fs::remove_dir_all(&works_in)?;
    }
    fs::create_dir(&works_in).with_context(|| format!("making {}", works_in.display()))?;
    let ended = Place::new(None)?.command(&works_in, words)?.output()?;
    let told = String::from_utf8_lossy(&ended.stderr);
    let differs =
        |line: &&str| line.contains("cannot follow") || line.contains("in the recorded run");
    let errors = told.lines().filter(differs);
    Ok(Ended {
        code: ended.status.code(),
        out: ended.stdout,
        errors: errors.collect::<Vec<_>>().join("; "),
    })
}
