//! One of the runtimes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::instance::run_to_end;
use crate::place::Place;
use crate::{paths, run};

/// Longest time in which an instance says nothing: more than `differ` gives to a case.
const SILENCE: Duration = Duration::from_secs(40);

/// What a side is built of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Build {
    Otp,
    Plain,
    /// Beamline with a collection at every safepoint.
    Zealous,
}

/// A runtime, and where it runs.
pub(super) struct Side {
    /// What it is called beside its answers.
    pub(super) name: &'static str,
    place: Place,
    erl: Vec<String>,
    dir: PathBuf,
    pub(super) build: Build,
}

impl Side {
    /// The runtime that `erl` starts; `dir` has the modules.
    pub(super) fn new(
        name: &'static str,
        place: Place,
        erl: Vec<String>,
        dir: &Path,
        build: Build,
    ) -> Result<Self> {
        let cwd = dir.join(name);
        fs::create_dir_all(&cwd).with_context(|| format!("making {}", cwd.display()))?;
        Ok(Self {
            name,
            place,
            erl,
            dir: dir.to_owned(),
            build,
        })
    }

    /// Compiles the modules that make and run cases.
    pub(super) fn compile(&self) -> Result<()> {
        let from = paths::workspace().join("ci/differ");
        for entry in fs::read_dir(&from)? {
            let source = entry?.path();
            if let Some(name) = source
                .file_name()
                .filter(|_| source.extension().is_some_and(|e| e == "erl"))
            {
                fs::copy(&source, self.dir.join(name))
                    .with_context(|| format!("copying {}", source.display()))?;
            }
        }
        let mut command = self.place.command(&self.dir, &self.erl)?;
        let compile = "[{ok, _} = compile:file(File, [report]) || File <- filelib:wildcard(\"*.erl\")], halt().";
        command.args(["-noshell", "-eval", compile]);
        run::output(&mut command).context("compiling the campaigns")?;
        Ok(())
    }

    /// The folder of its own in which it runs cases, and the command that starts it there.
    pub(super) fn command(&self) -> Result<(PathBuf, Command)> {
        let cwd = self.dir.join(self.name);
        let mut command = self.place.command(&cwd, &self.erl)?;
        command.args(["-noshell", "-pa", ".."]);
        Ok((cwd, command))
    }

    /// Has `differ:main` do what `arguments` say; gives what it prints.
    pub(super) fn ask(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.place.command(&self.dir, &self.erl)?;
        command
            .args(["-noshell", "-run", "differ", "main"])
            .args(arguments);
        run::output(&mut command)
    }

    /// Has `differ:main` run cases. A case that ends or hangs the instance is said to do so.
    pub(super) fn run(&self, before: &[&str], first: usize, last: usize) -> Result<String> {
        let cwd = self.dir.join(self.name);
        let out = cwd.join("given");
        let log = File::create(cwd.join("log")).context("making a log")?;
        let done = run_to_end(&out, SILENCE, |done| {
            let (_, mut command) = self.command()?;
            command.args(["-run", "differ", "main"]).args(before);
            command.args([(first + done).to_string(), last.to_string()]);
            command.arg(self.place.inside(&out)?);
            command.stdout(log.try_clone()?).stderr(log.try_clone()?);
            Ok(command)
        });
        done.with_context(|| {
            format!(
                "running {} {first}..{last} on {}; see {}",
                before.join(" "),
                self.name,
                cwd.display()
            )
        })
    }
}
