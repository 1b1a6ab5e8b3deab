//! The `beamline` command.

use std::process::ExitCode;

use beamline_runtime_sys::memory::OrEnd;

/// One scheduler frees most of what another one allocates for a message. With this allocator neither waits for the
/// other.
#[global_allocator]
static ALLOCATOR: OrEnd<mimalloc::MiMalloc> = OrEnd(mimalloc::MiMalloc);

fn main() -> ExitCode {
    beamline::main()
}
