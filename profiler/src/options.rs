//! The options that several commands of `beamline` share.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use beamline_formats::profile::{Pattern, Span};
use beamline_formats::ring::Recording;
use beamline_orders::Trace;
use beamline_settings::engine::Engine;
use beamline_settings::perf::Perf;
use beamline_settings::variable::Variable as _;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::launch::{Launch, Mode, What};
use crate::report;
use crate::units::{ms, span, time};

/// A command to be run on Beamline's runtime.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    environment: EnvironmentArgs,
    #[command(flatten)]
    replay: ReplayOf,
    /// The command to run, with its arguments: any command that starts erl, or a .erl, .beam, .exs or .escript file.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// On what a command runs.
#[derive(Debug, Args)]
pub(crate) struct EnvironmentArgs {
    /// Use the libraries of this Erlang/OTP [default: $BEAMLINE_OTP, erl on PATH, target/otp].
    #[arg(long, value_name = "DIR")]
    otp: Option<PathBuf>,
    /// Run with one scheduler, virtual time and fixed random bytes, so that each run does the same.
    #[arg(long)]
    deterministic: bool,
    /// Compile each function to machine code when it is first called, or interpret code [default: $BEAMLINE_ENGINE, jit on
    /// x86-64, interpreter elsewhere].
    #[arg(long, value_name = "ENGINE", value_parser = engine())]
    engine: Option<Engine>,
    /// Tell the profiler perf of Linux the Erlang function of each piece of compiled code [default: $BEAMLINE_PERF, nothing].
    #[arg(long, value_name = "WHAT", value_parser = named(Perf::ALL, Perf::name, Perf::about))]
    perf: Option<Perf>,
}

/// The run that is to happen again.
#[derive(Debug, Args)]
pub(crate) struct ReplayOf {
    /// Follow a recorded run: each process gets its messages in the order that FILE has, a recording made with --events order
    /// or a trace as `beamline trace` prints it. Behind its last recorded step, a process runs free.
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// With --replay, have a process that cannot follow run free, instead of ending the emulator with exit code 1.
    #[arg(long, requires = "replay")]
    pub(crate) go_on: bool,
    /// With --replay, run on this many schedulers. The program does the same on any number of them.
    #[arg(
        long,
        value_name = "N",
        requires = "replay",
        conflicts_with = "deterministic",
        value_parser = schedulers()
    )]
    pub(crate) schedulers: Option<u16>,
    /// Where it stops: the option of `beamline replay` alone.
    #[arg(skip)]
    pub(crate) stop: Option<beamline_orders::Halt>,
}

/// The flags that erl reads behind all others.
const LAST_FLAGS: &str = "ERL_ZFLAGS";

/// The variable that has each emulator of a command run on `count` schedulers.
fn on_schedulers(count: u16) -> (String, String) {
    let others = std::env::var(LAST_FLAGS).unwrap_or_default();
    // The others may have an -extra, so they come last.
    let flags = format!("+S {count}:{count} {others}");
    (LAST_FLAGS.to_owned(), flags)
}

/// Reads a number of schedulers.
pub(crate) fn schedulers() -> impl TypedValueParser<Value = u16> {
    clap::value_parser!(u16).range(1..=1024)
}

/// Reads the name of an engine.
fn engine() -> impl TypedValueParser<Value = Engine> {
    PossibleValuesParser::new(Engine::ALL.map(Engine::name))
        .map(|name| Engine::from_variable(&name).expect("one of the names"))
}

impl RunArgs {
    /// The launch of this command.
    ///
    /// # Errors
    /// One line when the run that is to be followed cannot be.
    pub(crate) fn launch(&self, what: What) -> Result<Launch, String> {
        self.environment.launch(what, &self.command, &self.replay)
    }

    /// Does each run do the same?
    pub(crate) fn is_deterministic(&self) -> bool {
        self.environment.deterministic
    }
}

impl EnvironmentArgs {
    /// The options, as they are written.
    pub(crate) fn written(&self) -> Vec<OsString> {
        let mut written: Vec<OsString> = Vec::new();
        if let Some(otp) = &self.otp {
            written.extend(["--otp".into(), otp.into()]);
        }
        if self.deterministic {
            written.push("--deterministic".into());
        }
        if let Some(engine) = self.engine {
            written.extend(["--engine".into(), engine.name().into()]);
        }
        if let Some(perf) = self.perf {
            written.extend(["--perf".into(), perf.name().into()]);
        }
        written
    }

    /// The launch of a command there.
    ///
    /// # Errors
    /// One line when the run that is to be followed cannot be.
    pub(crate) fn launch(
        &self,
        what: What,
        command: &[String],
        replay: &ReplayOf,
    ) -> Result<Launch, String> {
        Ok(Launch {
            otp: self.otp.clone(),
            what,
            command: command.to_vec(),
            mode: Mode {
                deterministic: self.deterministic || replay.was_deterministic()?,
                engine: self.engine,
                perf: self.perf,
                replay: replay.request()?,
                variables: replay.schedulers.map(on_schedulers).into_iter().collect(),
                ..Mode::default()
            },
        })
    }
}

impl ReplayOf {
    /// Whether the run that is to happen again was deterministic: then so is this one.
    fn was_deterministic(&self) -> Result<bool, String> {
        let file = self.replay.as_deref();
        let Some(file) = file.filter(|file| Recording::is_one(file)) else {
            return Ok(false);
        };
        let shown = file.display();
        let recording = Recording::open(file).map_err(|error| format!("{shown}: {error}"))?;
        match (recording.description().deterministic, self.schedulers) {
            (true, Some(_)) => Err(format!(
                "--schedulers: {shown} is of a run with --deterministic, which has one scheduler"
            )),
            (was, _) => Ok(was),
        }
    }

    /// What the emulator is asked for, where that is a replay: the launch says where its claim is.
    fn request(&self) -> Result<Option<beamline_orders::Request>, String> {
        let Some(file) = &self.replay else {
            return Ok(None);
        };
        let shown = file.display();
        let trace = Trace::load(file).map_err(|error| format!("{shown}: {error}"))?;
        report::error(&format!(
            "replays {shown}: the order of messages, time-outs, code loading and accesses to tables and names of {} \
             processes, and their input from outside and from chance; libraries of native code run without a recording",
            trace.processes.len()
        ));
        let file = std::path::absolute(file).map_err(|error| format!("{shown}: {error}"))?;
        Ok(Some(beamline_orders::Request {
            file,
            claim: PathBuf::new(),
            goes_on: self.go_on,
            stop: self.stop.clone(),
        }))
    }
}

/// The part of a run that is measured.
#[derive(Debug, Args)]
pub(crate) struct SpanArgs {
    /// Begin this time after the emulator's start, such as 500ms, 30s or 5m.
    #[arg(long, value_name = "TIME", value_parser = span, default_value = "0s")]
    delay: Duration,
    /// End after this time. The program goes on.
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["until", "by_signal"])]
    duration: Option<Duration>,
    /// Begin with the first call of this function in any process: M:F/A, or as Elixir writes it Mod.fun/1.
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["delay", "by_signal"])]
    from: Option<Pattern>,
    /// End when the first call of this function returns that was made in the time measured. The program goes on. With the
    /// same function as --from, one call is measured.
    #[arg(long, value_name = "FUNCTION", conflicts_with = "by_signal")]
    until: Option<Pattern>,
    /// Begin when this program receives SIGUSR2 (kill -USR2 PID), and end at the next one. The program goes on.
    #[arg(long, conflicts_with = "delay")]
    by_signal: bool,
}

impl SpanArgs {
    /// What they ask for.
    pub(crate) fn span(&self) -> Span {
        Span {
            delay_ms: ms(self.delay),
            duration_ms: self.duration.map(ms),
            from: self.from.clone(),
            until: self.until.clone(),
            by_signal: self.by_signal,
        }
    }

    /// Says what is wrong with them, if anything.
    pub(crate) fn check(&self, run: &RunArgs) -> Result<(), String> {
        let is_outside = !self.delay.is_zero() || self.duration.is_some() || self.by_signal;
        match run.is_deterministic() && is_outside {
            true => Err(
                "--delay, --duration and --by-signal are times outside of the program: leave out --deterministic, or \
                 use --from and --until"
                    .into(),
            ),
            false => Ok(()),
        }
    }
}

/// A parser of one of `all`. Each of them has a name and a line of help.
pub(crate) fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
    about: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let values = all
        .iter()
        .map(move |one| PossibleValue::new(name(*one)).help(about(*one)));
    PossibleValuesParser::new(values).try_map(move |text| {
        let mut all = all.iter();
        all.find(|one| name(**one) == text)
            .copied()
            .ok_or("no such value")
    })
}
