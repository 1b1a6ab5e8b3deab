//! The options that several commands of `beamline` share.

use std::path::PathBuf;
use std::time::Duration;

use beamline_formats::engine::Engine;
use beamline_formats::perf::Perf;
use beamline_formats::profile::{Pattern, Span};
use beamline_formats::variable::Variable as _;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::launch::{Launch, Mode, What};
use crate::units::{ms, span, time};

/// A command to be run on Beamline's runtime.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Use the libraries of this Erlang/OTP [default: $BEAMLINE_OTP, erl on PATH, target/otp].
    #[arg(long, value_name = "DIR")]
    pub(crate) otp: Option<PathBuf>,
    /// Run with one scheduler, virtual time and fixed random bytes, so that each run does the same.
    #[arg(long)]
    pub(crate) deterministic: bool,
    /// Compile each function to machine code when it is first called, or interpret code [default: $BEAMLINE_ENGINE, jit on
    /// x86-64, interpreter elsewhere].
    #[arg(long, value_name = "ENGINE", value_parser = engine())]
    pub(crate) engine: Option<Engine>,
    /// Tell the profiler perf of Linux which Erlang function each compiled code is of [default: $BEAMLINE_PERF, nothing].
    #[arg(long, value_name = "WHAT", value_parser = named(Perf::ALL, Perf::name, Perf::about))]
    pub(crate) perf: Option<Perf>,
    /// The command to run, with its arguments: any command that starts erl, or a .erl, .beam, .exs or .escript file.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Reads the name of an engine.
fn engine() -> impl TypedValueParser<Value = Engine> {
    PossibleValuesParser::new(Engine::ALL.map(Engine::name))
        .map(|name| Engine::from_variable(&name).expect("one of the names"))
}

impl RunArgs {
    /// The launch of this command.
    pub(crate) fn launch(&self, what: What) -> Launch {
        Launch {
            otp: self.otp.clone(),
            what,
            command: self.command.clone(),
            mode: Mode {
                deterministic: self.deterministic,
                engine: self.engine,
                perf: self.perf,
                ..Mode::default()
            },
        }
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
    /// Begin with the first call of this function, in whichever process: M:F/A, or as Elixir writes it Mod.fun/1.
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
        match run.deterministic && is_outside {
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
