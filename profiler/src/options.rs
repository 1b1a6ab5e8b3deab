//! The options that several commands of `beamline` share.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::launch::{Launch, Mode, What};

/// A command to be run on Beamline's runtime.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Use the libraries of this Erlang/OTP [default: $BEAMLINE_OTP, erl on PATH, target/otp].
    #[arg(long, value_name = "DIR")]
    pub(crate) otp: Option<PathBuf>,
    /// Run with one scheduler, virtual time and fixed random bytes, so that each run does the same.
    #[arg(long)]
    pub(crate) deterministic: bool,
    /// The command to run, with its arguments: any command that starts erl, or a .erl, .beam or .exs file.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<String>,
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
                ..Mode::default()
            },
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
