//! Starts the runtime. No other module does.

use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the emulator in this process: `arguments` are those `erlexec` gives `beam.smp`, the
/// program's name first. Returns the program's exit code.
pub(crate) fn start(arguments: &[String]) -> ExitCode {
    let Some(root) = std::env::var_os("ROOTDIR").map(PathBuf::from) else {
        crate::report::error("ROOTDIR is not set: start the emulator through `erl`");
        return ExitCode::from(1);
    };
    match beamline_runtime::start::start(&root, arguments.get(1..).unwrap_or_default()) {
        // Threads of the machine may be running still; the process ends here with all of them.
        Ok(code) => std::process::exit(code),
        Err(error) => {
            crate::report::error(&error.to_string());
            ExitCode::from(1)
        }
    }
}
