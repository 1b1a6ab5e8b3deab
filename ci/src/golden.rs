//! `cargo xtask golden`: functions that once gave another answer than on OTP (`ci/differ/golden/*.erl`), beside what they
//! give on OTP 29 (`ci/differ/golden/otp29.txt`). Each function without arguments that a module exports is a case.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::instance::run_to_end;
use crate::place::{OtpOptions, Place, words};
use crate::{binary, cases, fetch, paths, run};

/// Options of `cargo xtask golden`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names of the modules to run [default: all]
    #[arg(conflicts_with = "bless")]
    modules: Vec<String>,
    #[command(flatten)]
    otp: OtpOptions,
    /// Run the cases on OTP and write its answers to the golden files
    #[arg(long)]
    bless: bool,
    /// Test this beamline binary [default: a new optimised build]
    #[arg(long, value_name = "FILE", conflicts_with = "bless")]
    beamline: Option<PathBuf>,
}

impl Options {
    /// What `cargo xtask test` runs.
    pub(crate) fn of_test() -> Self {
        Self {
            modules: Vec::new(),
            otp: OtpOptions::of_test(),
            bless: false,
            beamline: None,
        }
    }
}

/// Longest time in which an instance says nothing: more than the runner gives to a case.
const SILENCE: Duration = Duration::from_secs(120);

/// The module that runs the cases.
const RUNNER: &str = "golden_cases";

/// The commands that compile and run, and where.
struct Side {
    place: Place,
    erlc: Vec<String>,
    erl: Vec<String>,
}

/// Compiles the modules, runs their cases, and compares or writes down what they give.
pub(crate) fn main(options: &Options) -> Result<()> {
    let dir = options.otp.folder("golden")?;
    let modules = modules(&options.modules)?;
    let side = side(options)?;
    let text = run_all(&side, &dir, &modules)?;
    if options.bless {
        return fs::write(expected_file(), text).context("writing what OTP gives");
    }
    let expected = fs::read_to_string(expected_file()).context("reading what OTP gives")?;
    let mut expected = cases::parse(&expected);
    expected.retain(|name, _| {
        let module = name.split(':').next().unwrap_or_default();
        modules.iter().any(|wanted| wanted == module)
    });
    cases::report(&expected, &cases::parse(&text))
}

fn side(options: &Options) -> Result<Side> {
    if options.bless {
        return Ok(Side {
            place: options.otp.place()?,
            erlc: words(&options.otp.erlc),
            erl: words(&options.otp.erl),
        });
    }
    let otp = fetch::otp()?.root;
    let beamline = match &options.beamline {
        Some(file) => file.canonicalize().context("looking for the binary")?,
        None => binary::beamline()?,
    };
    let command = |program| binary::words_of(&beamline, &["run"], &otp, &[program]);
    Ok(Side {
        place: Place::new(None)?,
        erlc: command("erlc")?,
        erl: command("erl")?,
    })
}

fn sources() -> PathBuf {
    paths::workspace().join("ci/differ")
}

fn expected_file() -> PathBuf {
    sources().join("golden/otp29.txt")
}

/// The modules of the folder that are `wanted`, in the order of their names.
fn modules(wanted: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(sources().join("golden"))? {
        let name = entry?.file_name().into_string().unwrap_or_default();
        all.extend(name.strip_suffix(".erl").map(str::to_owned));
    }
    all.sort();
    if let Some(unknown) = wanted.iter().find(|name| !all.contains(name)) {
        bail!("there is no ci/differ/golden/{unknown}.erl");
    }
    all.retain(|name| wanted.is_empty() || wanted.contains(name));
    Ok(all)
}

/// Compiles the modules in `dir`, runs every case, and gives what the instances have written. A case that ends its
/// instance is said to do so, and another instance goes on behind it.
fn run_all(side: &Side, dir: &Path, modules: &[String]) -> Result<String> {
    compile(side, dir, modules)?;
    let out = dir.join("given");
    let log = dir.join("log");
    let log_file = File::create(&log).context("making a log")?;
    let all = run_to_end(&out, SILENCE, |done| {
        let mut command = side.place.command(dir, &side.erl)?;
        command.args(["-noshell", "-run", RUNNER, "main", "given"]);
        command.arg(done.to_string()).args(modules);
        command.stdout(log_file.try_clone()?);
        command.stderr(log_file.try_clone()?);
        Ok(command)
    });
    all.with_context(|| format!("running the golden cases; see {}", log.display()))
}

fn compile(side: &Side, dir: &Path, modules: &[String]) -> Result<()> {
    let runner = format!("{RUNNER}.erl");
    let golden = modules.iter().map(|name| format!("golden/{name}.erl"));
    let mut command = side.place.command(dir, &side.erlc)?;
    for source in golden.chain([runner]) {
        let source = sources().join(source);
        let name = source.file_name().unwrap_or_default();
        fs::copy(&source, dir.join(name))
            .with_context(|| format!("copying {}", source.display()))?;
        command.arg(name);
    }
    run::output(&mut command).context("compiling the golden cases")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_cases_are_of_modules_that_are_there() {
        let modules = modules(&[]).unwrap();
        let expected = cases::parse(&fs::read_to_string(expected_file()).unwrap());
        for name in expected.keys() {
            let (module, _) = name.split_once(':').expect("a module and a function");
            assert!(modules.iter().any(|known| known == module), "{name}");
        }
        assert!(super::modules(&["no_such".to_owned()]).is_err());
    }
}
