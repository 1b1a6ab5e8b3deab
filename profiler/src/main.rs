//! The `beamline` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    beamline::main()
}
