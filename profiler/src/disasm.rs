//! `beamline disasm` prints the code of a `.beam` file, or the machine code of functions.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use beamline_formats::machine_code::Request;
use beamline_formats::profile::Pattern;
use beamline_runtime::{Specific, native_code, prepare};
use beamline_runtime_beam::BeamModule;
use beamline_runtime_beam::disasm::Disasm;
use beamline_runtime_otp_home::{self as otp_home, Lookup};
use beamline_settings::engine::Engine;
use beamline_settings::variable::Variable as _;
use clap::Args;

use crate::launch::{self, Launch, Mode, What};
use crate::report;

pub(crate) const USAGE: &str = "beamline disasm [--specific] FILE.beam
       beamline disasm --native FUNCTION [OPTIONS] [FILE.beam]
       beamline disasm --native FUNCTION [OPTIONS] -- COMMAND...";

pub(crate) const EXAMPLES: &str = "\
EXAMPLES:
  Print the generic instructions of a module, as the file has them:
    beamline disasm ebin/my_module.beam
  Print the machine code of a function of OTP's libraries:
    beamline disasm --native lists:reverse/1
  Print the machine code of all functions of a module:
    beamline disasm --native my_module ebin/my_module.beam
  Print the machine code that a function has in a run of the program:
    beamline disasm --native my_module:fib/1 -- my_module.erl
";

/// See the module.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The .beam file. With --native, the default is the module's file in the libraries of OTP.
    #[arg(value_name = "FILE.beam", required_unless_present = "native")]
    file: Option<PathBuf>,
    /// Print the specific instructions that the runtime makes of them.
    #[arg(long, conflicts_with = "native")]
    specific: bool,
    /// Print the machine code that --engine jit makes of these functions, below the specific instructions that it is made of:
    /// M:F/A, M:F or M, or as Elixir writes it Mod.fun/1, Mod.fun or Mod. Addresses of jumps and of calls of the runtime
    /// are shown by name.
    #[arg(long, value_name = "FUNCTION")]
    native: Option<Pattern>,
    /// Use the libraries of this Erlang/OTP [default: $BEAMLINE_OTP, erl on PATH, target/otp].
    #[arg(long, value_name = "DIR", requires = "native")]
    otp: Option<PathBuf>,
    /// A command to run with --engine jit: the machine code of the functions that it calls is printed at its end. It reads
    /// nothing, and what it prints is not shown.
    #[arg(
        last = true,
        value_name = "COMMAND",
        requires = "native",
        conflicts_with = "file"
    )]
    command: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Arguments) -> Result<ExitCode, String> {
    match (&args.native, &args.file) {
        (None, Some(file)) => of_file(file, args.specific)?,
        (None, None) => unreachable!("the command line requires one of them"),
        (Some(pattern), _) if !args.command.is_empty() => return of_run(pattern, args),
        (Some(pattern), Some(file)) => native_of_file(pattern, file)?,
        (Some(pattern), None) => {
            let file = file_of_otp(pattern, args.otp.clone())?;
            native_of_file(pattern, &file)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn named(file: &Path) -> impl Fn(&dyn std::fmt::Display) -> String {
    move |error| format!("{}: {error}", file.display())
}

/// Prints all instructions of a file.
fn of_file(file: &Path, specific: bool) -> Result<(), String> {
    let named = named(file);
    let bytes = std::fs::read(file).map_err(|error| named(&error))?;
    if specific {
        beamline_runtime::hooks::install();
        let module = prepare(&bytes).map_err(|error| named(&error))?;
        report::print(&Specific::new(&module).to_string())
    } else {
        let module = BeamModule::decode(&bytes).map_err(|error| named(&error))?;
        report::print(&Disasm::new(&module).to_string())
    }
}

/// Prints the machine code of a file's functions.
fn native_of_file(pattern: &Pattern, file: &Path) -> Result<(), String> {
    let named = named(file);
    let bytes = std::fs::read(file).map_err(|error| named(&error))?;
    beamline_runtime::hooks::install();
    let module = prepare(&bytes).map_err(|error| named(&error))?;
    let name = module.name.to_string();
    let is_meant = |function: &str, arity: u8| pattern.matches(&name, function, arity.into());
    let text: String = native_code(&module, is_meant).collect();
    if text.is_empty() {
        return Err(named(&format!("{name} has no function {pattern}")));
    }
    report::print(&text)
}

/// The file of the module that is meant, in the libraries of OTP.
fn file_of_otp(pattern: &Pattern, otp: Option<PathBuf>) -> Result<PathBuf, String> {
    let module = pattern
        .module()
        .ok_or("--native: name one module, or give a file or a command")?;
    let home = otp_home::find(&Lookup::of_process(otp)).map_err(|error| error.to_string())?;
    let lib = home.root.join("lib");
    let folders = std::fs::read_dir(&lib).map_err(|error| named(&lib)(&error))?;
    let files = folders
        .flatten()
        .map(|folder| folder.path().join("ebin").join(format!("{module}.beam")));
    let found = files.filter(|file| file.is_file()).max();
    found.ok_or_else(|| {
        format!(
            "{} has no module {module}: give its file, or after -- a command that loads it",
            lib.display()
        )
    })
}

/// Runs the command, and prints the machine code of what it has called.
fn of_run(pattern: &Pattern, args: &Arguments) -> Result<ExitCode, String> {
    let folder = tempfile::Builder::new().prefix("beamline-").tempdir();
    let folder = folder.map_err(|error| format!("a temporary folder: {error}"))?;
    let request = Request {
        pattern: pattern.clone(),
        folder: folder.path().to_owned(),
    };
    let ended = launch::run(&Launch {
        otp: args.otp.clone(),
        what: What::Run,
        command: args.command.clone(),
        mode: Mode {
            engine: Some(Engine::Jit),
            quiet: true,
            variables: vec![(Request::VARIABLE.to_owned(), request.to_variable()?)],
            ..Mode::default()
        },
    })?;
    let files = std::fs::read_dir(folder.path()).map_err(|error| named(folder.path())(&error))?;
    let mut files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    files.sort();
    for file in &files {
        let text = std::fs::read_to_string(file).map_err(|error| named(file)(&error))?;
        report::print(&text)?;
    }
    if files.is_empty() && ended.status.success() {
        return Err(format!("the command called no function {pattern}"));
    }
    Ok(ended.exit_code())
}
