//! `cargo xtask replays`: programs whose output depends on the order of messages (`ci/races`) are recorded with two
//! schedulers, and replayed. Each replay has the output and the exit code of its own recording, and so has each process
//! its reductions and words.

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
}

/// Records and replays so many runs.
pub(crate) fn main(options: &Options) -> Result<()> {
    let otp = fetch::otp()?.root;
    let beamline = binary::beamline()?;
    let dir = paths::target().join("replays");
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let programs = programs()?;
    let erlc = binary::words_of(&beamline, &["run"], &otp, &["erlc"])?;
    run::output(Place::new(None)?.command(&dir, &erlc)?.args(&programs))?;
    let mut outputs: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    let mut failed = 0;
    for program in programs.iter().cycle().take(options.rounds) {
        let name = program.file_stem().unwrap_or_default().to_string_lossy();
        let (recorded, replayed) = once(&dir, &beamline, &otp, &name)?;
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
            .entry(name.into_owned())
            .or_default()
            .insert(recorded.out);
    }
    for (name, outputs) in &outputs {
        println!("{name}: {} different outputs", outputs.len());
    }
    if failed > 0 {
        bail!("{failed} of {} replays differ", options.rounds);
    }
    println!("{} replays, all as recorded", options.rounds);
    Ok(())
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

/// The programs.
fn programs() -> Result<Vec<PathBuf>> {
    let folder = paths::workspace().join("ci/races");
    let files = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut files = files
        .map(|file| Ok(file?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// Records a program and replays it: how both ended.
fn once(dir: &Path, beamline: &Path, otp: &Path, name: &str) -> Result<(Ended, Ended)> {
    let program = ["erl", "-noshell", "-s", name, "main", "-s", "init", "stop"];
    let record = ["record", "--events", "order", "-o", RECORDING];
    let recorded = end(dir, &binary::words_of(beamline, &record, otp, &program)?)?;
    let replay = ["run", "--replay", RECORDING];
    let replayed = end(dir, &binary::words_of(beamline, &replay, otp, &program)?)?;
    Ok((recorded, replayed))
}

fn end(dir: &Path, words: &[String]) -> Result<Ended> {
    let ended = Place::new(None)?.command(dir, words)?.output()?;
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
