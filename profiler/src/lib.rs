//! The `beamline` command, and under other names `erl` (`erlexec`), `erlc`, `escript` and `epmd`.
//!
//! [`cli`] makes typed options of arguments, [`launch`] runs a command, and [`report`] prints and writes the contents
//! of files.
//!
//! The modules are in layers. Each imports only those before it:
//! `report` `units` ◀ `emulator` `epmd` `nodes` ◀ `defaults` `drains` `ending` `input` `launch` `manual` ◀ `flight` `options` ◀ `again`
//! `doctor` `explore` `origins` ◀ `ci` `critical` `disasm` `env` `export` `flamegraph` `histogram` `html` `races` `record` `replay`
//! `spans` `trace` ◀ `samples` ◀ `sample` ◀ `top` ◀ `cli` `fuzz`

mod again;
mod ci;
pub mod cli;
mod critical;
mod defaults;
mod disasm;
mod doctor;
mod drains;
mod emulator;
mod ending;
mod env;
mod epmd;
mod explore;
mod export;
mod flamegraph;
mod flight;
pub mod fuzz;
mod histogram;
mod html;
mod input;
pub mod launch;
mod manual;
mod nodes;
mod options;
mod origins;
mod races;
mod record;
mod replay;
pub mod report;
mod sample;
mod samples;
mod spans;
mod top;
mod trace;
mod units;

use std::path::Path;
use std::process::ExitCode;

/// Does what the name and the arguments of this process say.
#[must_use]
pub fn main() -> ExitCode {
    let mut arguments = Vec::new();
    for argument in std::env::args_os() {
        match argument.into_string() {
            Ok(argument) => arguments.push(argument),
            Err(argument) => {
                report::error(&format!("an argument is not UTF-8: {}", argument.display()));
                return ExitCode::from(2);
            }
        }
    }
    let name = arguments.first().map_or("", String::as_str);
    let name = Path::new(name).file_name().and_then(|n| n.to_str());
    match name {
        Some(name @ ("erl" | "werl" | "erlexec" | "erlc" | "escript")) => {
            launch::as_program(name, &arguments)
        }
        Some("epmd") => epmd::run(&arguments[1..]),
        Some(launch::EMULATOR) => emulator::start(&arguments),
        _ => cli::run(&arguments),
    }
}
