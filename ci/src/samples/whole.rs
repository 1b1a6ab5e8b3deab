//! Whole runs, boot included: each sample, and programs that `erl`, `escript`, `elixir`, `mix test` and a release start,
//! give the same profile every time, but for the number and the time of the run. Rounds take turns with two folders and
//! with two environments.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::{paths, run};

/// Where the programs lie, below the folder of this task.
const PLACES: [&str; 2] = ["here", "another/place/with/a/longer/name"];

/// What the environments say besides, and the name of the home folder in each.
const ENVIRONMENTS: [&[(&str, &str)]; 2] = [
    &[("LANG", "C"), ("TZ", "UTC")],
    &[
        ("LANG", "de_DE.UTF-8"),
        ("TZ", "Asia/Tokyo"),
        (
            "LS_COLORS",
            "a variable that another machine has, and that is long",
        ),
    ],
];
const HOMES: [&str; 2] = ["home", "home-of-another-user"];

/// The time of all files before the first round, in seconds since 1970: programs may look at it.
const WRITTEN: Duration = Duration::from_secs(1_577_836_800);

/// A program, where it runs, and how it is started.
#[derive(Deserialize)]
struct Program {
    name: String,
    #[serde(default)]
    folder: String,
    command: Vec<String>,
}

/// The samples, as their own gate lists them.
#[derive(Deserialize)]
struct Samples {
    workload: Vec<Program>,
}

/// Runs all programs `rounds` times with this `beamline` on this OTP.
pub(super) fn main(beamline: &Path, otp: &Path, rounds: u32) -> Result<()> {
    let dir = paths::target().join("samples/whole");
    let _ = fs::remove_dir_all(&dir);
    let runs = Runs {
        beamline,
        otp,
        dir: &dir,
    };
    for place in PLACES {
        runs.prepare(&dir.join(place))
            .with_context(|| format!("making {}", dir.join(place).display()))?;
    }
    let programs = programs()?;
    let mut firsts: Vec<Option<Value>> = programs.iter().map(|_| None).collect();
    for round in 1..=rounds {
        for (program, first) in programs.iter().zip(&mut firsts) {
            let (file, profile) = runs
                .profile(program, round)
                .with_context(|| format!("{}, round {round}", program.name))?;
            match first {
                None => *first = Some(profile),
                Some(first) if *first == profile => {}
                Some(_) => bail!(
                    "{} did not do in round {round} what it did in the first: compare {} with that of round 1",
                    program.name,
                    file.display()
                ),
            }
        }
    }
    eprintln!("{} whole runs did the same {rounds} times", programs.len());
    Ok(())
}

/// The samples, and a program for each way to start one.
fn programs() -> Result<Vec<Program>> {
    let samples = fs::read_to_string(paths::workspace().join("samples/beamline.toml"))?;
    let samples: Samples = toml::from_str(&samples)?;
    let mut programs = samples.workload;
    for (name, folder, command) in [
        (
            "erl",
            "",
            "erl -noshell -pa . -run chance main -s init stop",
        ),
        ("escript", "", "escript chance.escript"),
        ("elixir", "", "elixir chance.exs"),
        ("mix", "mixed", "mix test"),
        (
            "release",
            "mixed",
            "_build/prod/rel/mixed/bin/mixed eval :chance.main()",
        ),
    ] {
        programs.push(Program {
            name: name.to_owned(),
            folder: folder.to_owned(),
            command: command.split(' ').map(str::to_owned).collect(),
        });
    }
    Ok(programs)
}

/// What runs the programs.
struct Runs<'a> {
    beamline: &'a Path,
    otp: &'a Path,
    dir: &'a Path,
}

impl Runs<'_> {
    /// A command of `beamline`, deterministic, in an environment of its own.
    fn command(&self, verb: &str, environment: usize) -> Command {
        let mut command = Command::new(self.beamline);
        command
            .args([verb, "--deterministic", "--otp"])
            .arg(self.otp);
        command
            .env("HOME", self.dir.join(HOMES[environment]))
            .envs(ENVIRONMENTS[environment].iter().copied());
        command
    }

    /// Puts the programs into a folder, and compiles them.
    fn prepare(&self, place: &Path) -> Result<()> {
        for home in HOMES {
            fs::create_dir_all(self.dir.join(home))?;
        }
        copy(&paths::workspace().join("samples"), place)?;
        copy(&paths::workspace().join("ci/chance"), place)?;
        let mixed = place.join("mixed");
        fs::create_dir_all(mixed.join("src"))?;
        fs::rename(place.join("chance.erl"), mixed.join("src/chance.erl"))?;
        fs::create_dir_all(place.join("folder"))?;
        for name in ["b", "c", "a"] {
            File::create(place.join("folder").join(name))?;
        }
        let compile = |folder: &Path, words: &[&str]| {
            let mut command = self.command("run", 0);
            run::output(command.arg("--").args(words).current_dir(folder))
        };
        compile(place, &["erlc", "+deterministic", "mixed/src/chance.erl"])?;
        compile(&mixed, &["mix", "test"])?;
        compile(&mixed, &["env", "MIX_ENV=prod", "mix", "release"])?;
        age(place)
    }

    /// Runs a program; its profile, and the file that it is in.
    fn profile(&self, program: &Program, round: u32) -> Result<(PathBuf, Value)> {
        let file = self.dir.join(format!("{}-{round}.json", program.name));
        self.run(program, round, &file)?;
        let text = fs::read_to_string(&file);
        let text = text.with_context(|| format!("reading {}", file.display()))?;
        Ok((file, without_own(&text)?))
    }

    fn run(&self, program: &Program, round: u32, file: &Path) -> Result<()> {
        let turn = round as usize - 1;
        let place = self.dir.join(PLACES[turn % 2]).join(&program.folder);
        let printed = File::create(file.with_extension("out"))?;
        let mut command = self.command("profile", turn / 2 % 2);
        command.args(["--type", "call_memory", "--json"]).arg(file);
        command.arg("--").args(&program.command).current_dir(place);
        command.stdin(Stdio::null()).stderr(printed.try_clone()?);
        run::status(command.stdout(printed))
    }
}

/// A profile without what every run has of its own.
fn without_own(text: &str) -> Result<Value> {
    let mut profile: Value = serde_json::from_str(text)?;
    let runs = profile["runs"].as_array_mut();
    let runs = runs.context("a profile has runs")?;
    ensure!(!runs.is_empty(), "no emulator was profiled");
    for run in runs {
        let run = run.as_object_mut().context("a run is an object")?;
        for own in ["os_pid", "run_ns"] {
            run.remove(own)
                .with_context(|| format!("a run has {own}"))?;
        }
    }
    Ok(profile)
}
/// Copies what is in a folder into another one.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to)?,
            false => drop(fs::copy(entry.path(), to)?),
        }
    }
    Ok(())
}

/// Gives everything in a folder, and the folder, the same time.
fn age(path: &Path) -> Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        return Ok(());
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            age(&entry?.path())?;
        }
    }
    File::open(path)?.set_modified(SystemTime::UNIX_EPOCH + WRITTEN)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_every_run_has_of_its_own_is_left_out() {
        let profile = r#"{"type": "t", "runs": [{"os_pid": 1, "run_ns": 2, "otp": "29"}]}"#;
        let left = serde_json::json!({"type": "t", "runs": [{"otp": "29"}]});
        assert_eq!(without_own(profile).unwrap(), left);
        assert!(without_own(r#"{"runs": []}"#).is_err());
    }

    #[test]
    fn every_sample_and_every_way_to_start_a_program_is_run() {
        let names: Vec<String> = programs().unwrap().into_iter().map(|p| p.name).collect();
        for name in [
            "sort", "collatz", "erl", "escript", "elixir", "mix", "release",
        ] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
    }
}
