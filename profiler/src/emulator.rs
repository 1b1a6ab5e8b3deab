//! Starts the runtime. No other module does.

use std::path::PathBuf;
use std::process::ExitCode;

/// The variable that says to an emulator that it runs in the background.
pub(crate) const DETACHED: &str = "BEAMLINE_DETACHED";

/// Runs the emulator in this process: `arguments` are those `erlexec` gives `beam.smp`, the
/// program's name first. Returns the program's exit code.
pub(crate) fn start(arguments: &[String]) -> ExitCode {
    if std::env::var_os(DETACHED).is_some() {
        // It leads no process group yet, and so this does not fail.
        let _ = rustix::process::setsid();
    }
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
