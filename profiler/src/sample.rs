//! `beamline sample` looks at a running emulator of OTP or at Beamline's runtime, or at one that it starts, and writes a recording of what it sees.

use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use beamline_formats::ring::{Error, Recording};
use beamline_reports::events::Sampled;
use beamline_sampler::emulator::{Emulator, Kind, Refusal};
use beamline_sampler::sampler::{How, Sampler, Target, Threads};
use beamline_settings::chance;
use beamline_settings::engine::Engine;
use beamline_settings::variable::Variable as _;
use clap::{Args, ValueEnum};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::samples::Recorder;
use crate::units::span;
use crate::{doctor, ending, html, report};

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  See where the time of a running node goes, for 10 seconds, as a flame graph and as a page:
    beamline sample my_node --duration 10s --flamegraph now.svg --html now.html
  Sample a command that runs on the OTP that it always runs on, and report it:
    beamline sample -o test.samples -- mix test
    beamline report test.samples
  Sample a command that runs on Beamline's runtime:
    beamline sample --on beamline -o test.samples -- mix test
";

/// The threads that are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    /// The ordinary schedulers.
    Normal,
    /// The ordinary and the dirty schedulers.
    Dirty,
    /// All threads of the emulator.
    All,
}

/// How threads are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    /// Use the kernel's performance events, which stop no thread.
    Perf,
    /// Stop each running thread for a moment.
    Stop,
}

/// What a command is run on, or a process has to run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    /// OTP's own emulator.
    Otp,
    /// Beamline's runtime.
    Beamline,
}

/// How an emulator is looked at.
#[derive(Debug, Args)]
pub(crate) struct Looking {
    /// Take this many samples in each second of a thread's running time [default: 199, or 49 if
    /// threads are stopped].
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: Option<u32>,
    /// Choose the threads.
    #[arg(long, value_enum, default_value = "dirty")]
    threads: Which,
    /// Choose how to take samples [default: perf, or stop if the system refuses that].
    #[arg(long, value_enum)]
    how: Option<Way>,
}

impl Looking {
    /// Begins to sample. Where threads are stopped and nobody has asked for that, a line says so.
    pub(crate) fn start(&self, target: Target) -> Result<Sampler, String> {
        let threads = match self.threads {
            Which::Normal => Threads::Normal,
            Which::Dirty => Threads::Dirty,
            Which::All => Threads::All,
        };
        let how = self.how.map(|way| match way {
            Way::Perf => How::Events,
            Way::Stop => How::Stops,
        });
        let rate_hz = |how| self.rate.map_or(default_rate_hz(how), u64::from);
        let sampler = Sampler::start(target, threads, how, rate_hz);
        let sampler = sampler.map_err(|e| doctor::told(&e))?;
        if how.is_none() && sampler.how == How::Stops {
            report::progress(
                "the system refuses performance events: running threads are stopped for each sample; see beamline doctor",
            );
        }
        Ok(sampler)
    }
}

/// Looks in a second, if nobody says how many.
pub(crate) fn default_rate_hz(how: How) -> u64 {
    match how {
        How::Events => 199,
        // A stop costs a thread some ten microseconds.
        How::Stops => 49,
    }
}

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The number of the emulator's process, or the name of its node or release.
    #[arg(value_name = "PID|NAME", required_unless_present = "command")]
    target: Option<String>,
    /// Write the recording to this file.
    #[arg(short, long, value_name = "FILE", default_value = "samples.stream")]
    output: PathBuf,
    /// End after this time [default: at Ctrl-C, or with the emulator].
    #[arg(long, value_name = "TIME", value_parser = span)]
    duration: Option<Duration>,
    /// Run the command on this [default: otp], or refuse a process that runs on another one.
    #[arg(long, value_enum)]
    on: Option<On>,
    #[command(flatten)]
    looking: Looking,
    /// Draw a flame graph to this file.
    #[arg(long, value_name = "FILE.svg")]
    flamegraph: Option<PathBuf>,
    /// Write a page to this file that shows the samples in a browser, over time too.
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
    /// Start this command with the `erl` that it uses without Beamline, or on Beamline's runtime, and sample the first emulator
    /// that it starts.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "target")]
    command: Vec<String>,
}

/// How long it takes at most until somebody sees that a command has started an emulator.
const LOOK: Duration = Duration::from_millis(5);

/// Set when the user ends the sampling.
pub(crate) fn interrupted() -> Result<Arc<AtomicBool>, String> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let registered = signal_hook::flag::register(signal, flag.clone());
        registered.map_err(|e| format!("signals: {e}"))?;
    }
    Ok(flag)
}

/// A command that was started. It ends before this value does, with what it has started.
pub(crate) struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        // While it has not been waited for, no other process has its number.
        if let Ok(None) = self.0.try_wait() {
            let all = doctor::descendants(self.0.id()).into_iter();
            let all = all.filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
            for pid in all {
                // One that has ended meanwhile cannot be ended.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let _ = self.0.wait();
    }
}

/// The emulator that a command has started, when it has machine code.
fn of_command(child: &mut Child, stop: &AtomicBool) -> Result<Target, String> {
    while !stop.load(Ordering::Relaxed) {
        for pid in doctor::descendants(child.id()) {
            let target = Emulator::of(pid).and_then(Target::of);
            match target {
                Ok(target) if target.emulator.threads().is_ok_and(has_schedulers) => {
                    return Ok(target);
                }
                // It has just begun.
                Ok(_)
                | Err(
                    Refusal::NoList(_)
                    | Refusal::Unpublished(_)
                    | Refusal::Damaged(..)
                    | Refusal::Gone(_),
                ) => {}
                Err(Refusal::NoEmulator(..)) => {}
                Err(refusal) => return Err(doctor::told(&refusal)),
            }
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("the command started no emulator ({status})"));
        }
        thread::sleep(LOOK);
    }
    Err("it was interrupted before the command had started an emulator".into())
}

fn has_schedulers(threads: Vec<beamline_sampler::emulator::Thread>) -> bool {
    let mut kinds = threads.iter().map(|thread| thread.kind);
    kinds.any(|kind| kind == beamline_sampler::emulator::ThreadKind::Scheduler)
}

/// An emulator to look at, and the command that has started it, if we have run that.
pub(crate) struct Found {
    /// The command.
    pub(crate) child: Option<Started>,
    /// The emulator.
    pub(crate) target: Target,
}

/// Where a command's input and output are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Where ours are.
    Ours,
    /// Nowhere.
    Closed,
}

impl Output {
    fn stdio(self) -> Stdio {
        match self {
            Output::Ours => Stdio::inherit(),
            Output::Closed => Stdio::null(),
        }
    }
}

/// The program that runs a command there, and its arguments.
fn program_of(command: &[String], on: Option<On>) -> Result<Command, String> {
    let (program, rest) = command.split_first().ok_or("there is no command")?;
    match on {
        None | Some(On::Otp) => {
            let mut runs = Command::new(program);
            runs.args(rest);
            Ok(runs)
        }
        Some(On::Beamline) => {
            if Engine::from_environment()? == Some(Engine::Interpreter) {
                return Err(
                    "the interpreter has no machine code to sample: BEAMLINE_ENGINE must not choose it"
                        .into(),
                );
            }
            let own = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
            let mut runs = Command::new(own);
            runs.args(["run", "--"]).args(command);
            Ok(runs)
        }
    }
}

/// Refuses an emulator that is not of the kind that was asked for.
fn check(emulator: &Emulator, on: Option<On>) -> Result<(), String> {
    let pid = emulator.pid;
    match (on, emulator.kind) {
        (Some(On::Beamline), Kind::Otp) => Err(format!(
            "process {pid} runs on OTP's own emulator: leave out --on beamline"
        )),
        (Some(On::Otp), Kind::Beamline) => Err(format!(
            "process {pid} runs on Beamline's runtime: leave out --on otp"
        )),
        _ => Ok(()),
    }
}

/// Finds an emulator by its number or name, or starts a command and finds the emulator of that.
pub(crate) fn find(
    target: Option<&str>,
    command: &[String],
    on: Option<On>,
    output: Output,
    stop: &AtomicBool,
) -> Result<Found, String> {
    match (command.split_first(), target) {
        (Some((program, _)), _) => {
            let child = program_of(command, on)?
                .stdin(output.stdio())
                .stdout(output.stdio())
                .stderr(output.stdio())
                .spawn();
            let mut child = Started(child.map_err(|e| format!("{program}: {e}"))?);
            let target = of_command(&mut child.0, stop)?;
            check(&target.emulator, on)?;
            let child = Some(child);
            Ok(Found { child, target })
        }
        (None, Some(name)) => {
            let target = doctor::target(name, |emulator| check(emulator, on))?;
            let child = None;
            Ok(Found { child, target })
        }
        (None, None) => Err("give the number or the name of an emulator".into()),
    }
}

impl Started {
    /// Waits until it has ended; its exit code is ours.
    fn wait(&mut self) -> Result<ExitCode, String> {
        let status = self.0.wait().map_err(|e| e.to_string())?;
        let code = match status.success() {
            true => 0,
            false => status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(1),
        };
        Ok(ExitCode::from(code))
    }
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    let stop = interrupted()?;
    let target = args.target.as_deref();
    let Found { child, target } = find(target, &args.command, args.on, Output::Ours, &stop)?;
    sample(args, target, &stop, child.is_some())?;
    match child {
        Some(mut child) => child.wait(),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Samples until the end, and writes what was asked for.
fn sample(args: &Arguments, target: Target, stop: &AtomicBool, is_own: bool) -> Result<(), String> {
    let fail = |error: Error| format!("{}: {error}", args.output.display());
    let command = match is_own {
        true => args.command.clone(),
        false => target.emulator.command.clone(),
    };
    // Where it is refused, no file is left.
    let mut sampler = args.looking.start(target)?;
    let (how, rate) = (sampler.how, sampler.rate_hz);
    let emulator = &sampler.target().emulator;
    let pid = emulator.pid;
    let mut recorder = Recorder::begin(&args.output, emulator, command, how, rate).map_err(fail)?;
    report::progress(&format!("sampling the emulator {pid} at {rate} Hz"));
    let begin = chance::now();
    let goes_on = || {
        let is_time = args.duration.is_none_or(|time| begin.elapsed() < time);
        // A command of ours ends by the same Ctrl-C, and is sampled until then.
        is_time && (is_own || !stop.load(Ordering::Relaxed))
    };
    let ran = sampler.run(goes_on, |told| recorder.tell(told));
    let samples = recorder.finish().map_err(fail)?;
    ran.map_err(fail)?;
    ending::tell(&args.output);
    if samples == 0 {
        report::error("no thread ran while it was looked at: the emulator was idle");
    }
    pictures(args)
}

/// Writes the page and the picture that were asked for.
fn pictures(args: &Arguments) -> Result<(), String> {
    let fail = |error: Error| format!("{}: {error}", args.output.display());
    if args.flamegraph.is_none() && args.html.is_none() {
        return Ok(());
    }
    let recording = Recording::open(&args.output).map_err(fail)?;
    if let Some(page) = &args.html {
        let name = args.output.display().to_string();
        html::of_samples(&recording, &name, page).map_err(fail)??;
    }
    if let (Some(sampling), Some(_)) = (recording.sampling(), &args.flamegraph) {
        let (sampled, profile) = Sampled::of(&recording, sampling).map_err(fail)?;
        let options = report::Options {
            flamegraph: args.flamegraph.clone(),
            title: Some(sampled.command.join(" ")),
            samples: Some(sampled.short()),
            ..report::Options::default()
        };
        if let Some(error) = report::write_files(&profile, &options).into_iter().next() {
            return Err(error);
        }
    }
    Ok(())
}
