//! Chance: everything that a run takes from outside of its program and that differs from run to run.
//!
//! | source | module |
//! |---|---|
//! | clocks, time of the processor, accounts of the system | [`clock`] |
//! | the counter that calls are stamped with | [`ticks`] |
//! | random bytes, salts of hashes and of the local external format | [`random`] |
//! | which descriptors are ready, and whom that wakes | [`poll`] |
//! | processors | [`processors`] |
//! | files: times, inodes, the order of folders | [`files`] |
//! | the current folder, names of the folder of the run | [`paths`] |
//! | the number of this process, addresses told to programs | [`names`] |
//! | what else comes from outside, by name | [`outside`] |
//!
//! Nothing else of the runtime asks the system for these: `clippy.toml` forbids it. Each source gives what the form of
//! the run says, by a `match` that names every form of [`Chance`], so the compiler asks all of them what they give in a
//! new one. Tables of the runtime's own (`hash.rs`) have one order in every form.

pub mod clock;
mod file_times;
pub mod files;
pub mod names;
mod os;
pub mod outside;
pub mod paths;
pub mod poll;
pub mod processors;
pub mod random;
pub mod ticks;

use std::sync::OnceLock;

use beamline_settings::chance::Chance;

static FORM: OnceLock<Chance> = OnceLock::new();

/// Says where the run takes chance from. Only before anything is taken; the first call counts.
pub fn begin(chance: Chance) {
    let _ = FORM.set(chance);
}

/// Where the run takes chance from.
#[inline]
#[must_use]
pub fn form() -> &'static Chance {
    FORM.get().unwrap_or(&Chance::Live)
}

/// The machine is about to end. The caller waits here if chance would decide what else it does, or if nothing is left to
/// chance (`is_decided`).
pub fn stop_here(is_decided: bool) {
    if is_decided || matches!(form(), Chance::Virtual { .. }) {
        loop {
            std::thread::park();
        }
    }
}
