//! What runs code in an emulator.

/// What `--engine` takes.
pub(crate) const ENGINES: [&str; 2] = ["interpreter", "jit"];

/// The engine of a machine whose command line names none.
pub(crate) const VARIABLE: &str = "BEAMLINE_ENGINE";

/// The name of the engine that such a machine has here.
pub(crate) fn running() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| {
        let [interpreter, jit] = ENGINES;
        let best = match cfg!(target_arch = "x86_64") {
            true => jit,
            false => interpreter,
        };
        best.to_owned()
    })
}
