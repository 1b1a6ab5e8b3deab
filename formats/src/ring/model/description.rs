//! The description of a recording, which the file holds as JSON: the machine, the command and the settings.

use serde::{Deserialize, Serialize};

use super::layout::WhenFull;
use crate::profile::Pattern;

/// The machine that the emulator ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// The operating system, with its version.
    pub system: String,
    /// The kernel's version.
    pub kernel: String,
    /// The processor.
    pub processor: String,
    /// Processors that can be used.
    pub cores: u64,
    /// Main memory.
    pub memory_bytes: u64,
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Groups of events, by name.
    pub events: Vec<String>,
    /// Functions whose calls are recorded; an empty list means all.
    pub patterns: Vec<Pattern>,
    /// The counters of time slices, by name.
    pub counters: Vec<String>,
    /// What became of records for which there was no room.
    pub when_full: WhenFull,
    /// How an emulator was looked at from outside, if it was.
    pub sampling: Option<Sampling>,
}

/// How samples were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sampling {
    /// Samples of a second of a thread's time.
    pub rate_hz: u64,
    /// By what means, in a few words.
    pub means: String,
    /// Samples are of threads that run; otherwise they are of all threads, whatever these do.
    pub of_running: bool,
    /// The emulator: the name of its node or release, if it has one, and the number of its process.
    pub emulator: String,
}

impl Sampling {
    /// The time that a sample stands for.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        1_000_000_000 / self.rate_hz.max(1)
    }
}

/// The description of a recording. A field that an older version did not write is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Description {
    /// Version of the program that recorded.
    pub beamline: String,
    /// The OTP release whose libraries ran.
    pub otp: String,
    /// The command that was recorded, as it was given, program first.
    pub command: Vec<String>,
    /// The emulator's own command line, program first.
    pub emulator: Vec<String>,
    /// The machine.
    pub host: Host,
    /// It ran with `--deterministic`.
    pub deterministic: bool,
    /// What was asked for.
    pub settings: Settings,
}

impl Description {
    /// What to call the run: the command that was recorded; or the emulator, where samples are of one that ran already.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.settings.sampling {
            Some(sampling) if self.command == self.emulator && !sampling.emulator.is_empty() => {
                sampling.emulator.clone()
            }
            _ => self.command.join(" "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_called_by_its_command_or_its_emulator() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let beam = "beam.smp -- -sname one";
        for (command, is_sampled, expect) in [
            ("mix test", false, "mix test"),
            // Started by the command that samples it.
            ("mix test", true, "mix test"),
            (beam, true, "one (process 7)"),
            (beam, false, beam),
        ] {
            let sampling = is_sampled.then(|| Sampling {
                emulator: "one (process 7)".into(),
                ..Sampling::default()
            });
            let description = Description {
                command: words(command),
                emulator: words(beam),
                settings: Settings {
                    sampling,
                    ..Settings::default()
                },
                ..Description::default()
            };
            assert_eq!(description.title(), expect, "{command} {is_sampled}");
        }
    }
}
