//! The `beamline` command.

use std::process::ExitCode;

use beamline_runtime_sys::memory::OrEnd;

/// Most of what one scheduler allocates for a message, another one frees; here neither waits for the other.
#[global_allocator]
static ALLOCATOR: OrEnd<mimalloc::MiMalloc> = OrEnd(mimalloc::MiMalloc);

fn main() -> ExitCode {
    beamline::main()
}
