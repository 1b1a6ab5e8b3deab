//! The `beamline` command.

use std::process::ExitCode;

/// Most of what one scheduler allocates for a message, another one frees; here neither waits for the other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    beamline::main()
}
