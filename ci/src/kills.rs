//! `cargo xtask kills`: programs are killed while they are recorded, at random moments, and each record of their
//! recordings is checked against what they wrote down themselves (`ci/kills/kill_work.erl`).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::place::Place;
use crate::{binary, fetch, outside, paths, run};

/// Options of `cargo xtask kills`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of programs to kill
    #[arg(long, default_value_t = 200)]
    rounds: u32,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// How a program is recorded, and which process is killed.
#[derive(Clone, Copy, Debug)]
struct Case {
    is_streamed: bool,
    killed: Killed,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Killed {
    Program,
    /// `beamline record` dies, and its program goes on for a while.
    Recorder,
    Both,
}

const CASES: [Case; 5] = {
    const fn case(is_streamed: bool, killed: Killed) -> Case {
        Case {
            is_streamed,
            killed,
        }
    }
    [
        case(false, Killed::Program),
        case(true, Killed::Program),
        case(false, Killed::Both),
        case(true, Killed::Both),
        case(true, Killed::Recorder),
    ]
};

/// The program writes down its calls when their number is a multiple of this.
const EVERY: usize = 256;

/// Calls of a process, as numbers of the functions.
type Calls = Vec<u8>;

/// Kills as many programs as the options say.
pub(crate) fn main(options: &Options) -> Result<()> {
    let otp = fetch::otp()?.root;
    let beamline = binary::beamline()?;
    let dir = paths::target().join("kills");
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let source = paths::workspace().join("ci/kills/kill_work.erl");
    fs::copy(&source, dir.join("kill_work.erl"))
        .with_context(|| format!("copying {}", source.display()))?;
    let erlc = binary::words_of(&beamline, &["run"], &otp, &["erlc"])?;
    run::output(Place::new(None)?.command(&dir, &erlc)?.arg("kill_work.erl"))?;
    let mut random = options.seed;
    let mut checked = 0;
    for round in 0..options.rounds {
        let case = CASES[round as usize % CASES.len()];
        random = next(random);
        let after = Duration::from_micros((random >> 33) % 400_000);
        let victim = Victim::start(&dir, &beamline, &otp, case)?;
        let seen = victim
            .kill(after)
            .and_then(|file| check(&dir, &beamline, &file, case));
        checked += seen.with_context(|| format!("round {round}, {case:?}, after {after:?}"))?;
    }
    println!(
        "{} programs killed, {checked} calls checked, all right",
        options.rounds
    );
    Ok(())
}

/// Knuth's numbers.
fn next(random: u64) -> u64 {
    random
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}

/// A program that is recorded.
struct Victim {
    child: Child,
    os_pid: u32,
    file: PathBuf,
    case: Case,
}

impl Victim {
    fn start(dir: &Path, beamline: &Path, otp: &Path, case: Case) -> Result<Victim> {
        let logs = dir.join("logs");
        if logs.exists() {
            fs::remove_dir_all(&logs).context("removing old logs")?;
        }
        fs::create_dir_all(&logs).context("making a folder for logs")?;
        let (name, pause) = match case.is_streamed {
            true => ("kill_work.stream", "1"),
            false => ("kill_work.ring", "0"),
        };
        let mut verb = vec!["record", "--events", "calls,returns", "--ring", "512KiB"];
        verb.extend(["--pattern", "kill_work:_/1", "--output", name]);
        if case.is_streamed {
            verb.push("--stream");
        }
        let words = binary::words_of(beamline, &verb, otp, &["erl", "-noshell"])?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(dir);
        command.args(["-run", "kill_work", "main", "logs", pause]);
        command.process_group(0).stdin(Stdio::null());
        let child = command.spawn().context("starting beamline")?;
        let os_pid = wait_for(&logs.join("os_pid"), |text| text.parse().ok())?;
        Ok(Victim {
            child,
            os_pid,
            file: dir.join(name),
            case,
        })
    }

    /// Kills it after this time, and gives the recording.
    fn kill(mut self, after: Duration) -> Result<PathBuf> {
        std::thread::sleep(after);
        let kill = |whom: &str| run::status(Command::new("kill").args(["-KILL", "--", whom]));
        let program = self.os_pid.to_string();
        match self.case.killed {
            Killed::Program => kill(&program)?,
            Killed::Both => kill(&format!("-{}", self.child.id()))?,
            Killed::Recorder => {
                kill(&self.child.id().to_string())?;
                std::thread::sleep(after / 2);
                kill(&program)?;
            }
        }
        self.child.wait().context("waiting for beamline")?;
        wait_for_end(self.os_pid)?;
        Ok(self.file)
    }
}

/// Waits until a process that was killed is no more.
fn wait_for_end(os_pid: u32) -> Result<()> {
    let status = PathBuf::from(format!("/proc/{os_pid}/status"));
    let since = outside::now();
    // Where nobody asks for its end, it stays as a zombie.
    while fs::read_to_string(&status).is_ok_and(|text| !text.contains("State:\tZ")) {
        if since.elapsed() > Duration::from_secs(60) {
            bail!("process {os_pid} did not end");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// What is in a file, as soon as it can be read.
fn wait_for<T>(path: &Path, read: impl Fn(&str) -> Option<T>) -> Result<T> {
    let since = outside::now();
    loop {
        if let Some(value) = fs::read_to_string(path).ok().as_deref().and_then(&read) {
            return Ok(value);
        }
        if since.elapsed() > Duration::from_secs(60) {
            bail!("{} did not appear", path.display());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Checks each call of a recording; gives how many there are.
fn check(dir: &Path, beamline: &Path, file: &Path, case: Case) -> Result<usize> {
    let mut all = 0;
    for (pid, calls) in read(beamline, file)? {
        let log = dir.join(format!("logs/calls.{pid}"));
        let Ok(log) = fs::read(&log) else {
            // The first process, which runs `main/1`.
            ensure!(calls.is_empty(), "{pid} has no log, and calls");
            continue;
        };
        let log = log.try_into().unwrap_or_default();
        let least = usize::try_from(u64::from_le_bytes(log)).context("a log")?;
        check_one(&calls, least, case).with_context(|| format!("process {pid}"))?;
        all += calls.len();
    }
    ensure!(all > 0, "no calls");
    Ok(all)
}

/// Checks the calls of one process, which had made `least` at least.
fn check_one(calls: &[u8], least: usize, case: Case) -> Result<()> {
    let most = least + EVERY + 1;
    let truth = truth(most);
    if case.is_streamed {
        ensure!(
            truth.starts_with(calls),
            "it called otherwise, or more than it can have"
        );
        ensure!(calls.len() >= least, "{} calls of {least}", calls.len());
        return Ok(());
    }
    let is_end = |end: &usize| truth[..*end].ends_with(calls);
    match (least..=most).find(is_end) {
        Some(_) => Ok(()),
        None => bail!("its last {} calls are not those it made", calls.len()),
    }
}

/// What a process calls.
fn truth(calls: usize) -> Calls {
    let mut x: u64 = 1;
    let mut call = || {
        let function = (x >> 16 & 15) as u8;
        x = (x * 1_103_515_245 + 12345) & 0x7fff_ffff;
        function
    };
    (0..calls).map(|_| call()).collect()
}

/// Calls of each process since the recording is whole: of `step/1`, which goes on in one of the functions and returns.
fn read(beamline: &Path, file: &Path) -> Result<BTreeMap<String, Calls>> {
    let mut export = Command::new(beamline);
    let text = run::output(export.args(["export", "--to", "jsonl"]).arg(file))?;
    let lines: Vec<&str> = text.lines().collect();
    let [_, records @ .., last] = &lines[..] else {
        bail!("{} lines of JSON", lines.len());
    };
    let losses: Value = serde_json::from_str(last)?;
    let since = losses["since_ns"].as_u64().context("since when?")?;
    let mut all: BTreeMap<String, Steps> = BTreeMap::new();
    for line in records {
        let record: Value = serde_json::from_str(line)?;
        // Event, time, scheduler, process, function.
        if record[1].as_u64().context("no time")? < since {
            continue;
        }
        let text = |column: usize| record[column].as_str().context("no such column");
        let steps = all.entry(text(3)?.to_owned()).or_default();
        let taken = steps.take(text(0)?, text(4)?);
        taken.with_context(|| line.to_string())?;
    }
    let calls = all.into_iter().map(|(pid, steps)| (pid, steps.calls));
    Ok(calls.collect())
}

/// What has been read of a process.
#[derive(Default)]
struct Steps {
    calls: Calls,
    /// The event that must be next, once there was one.
    next: Option<&'static str>,
}

impl Steps {
    fn take(&mut self, event: &str, function: &str) -> Result<()> {
        let is_next = self.next.is_none_or(|next| next == event);
        let number = function
            .strip_prefix("kill_work:f")
            .and_then(|rest| rest.strip_suffix("/1"));
        self.next = match (event, number) {
            _ if !is_next => bail!("a {event} in the wrong place"),
            ("call", None) if function == "kill_work:step/1" => Some("tail_call"),
            ("tail_call", Some(number)) => {
                self.calls.push(number.parse()?);
                Some("return")
            }
            ("return", None) if function == "kill_work:step/1" => Some("call"),
            // The process that starts the others.
            (_, None) if self.calls.is_empty() => None,
            _ => bail!("a {event} of {function}"),
        };
        Ok(())
    }
}
