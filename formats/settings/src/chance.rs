//! Chooses where a run takes what no program determines: clocks, random bytes, the order of what the system lists.

use std::hash::{BuildHasher as _, Hasher as _};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use crate::variable::Variable;

/// Where emulators take it from. Whoever starts an emulator tells it, except where it is [`Chance::Live`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Chance {
    /// From the system, as it comes.
    #[default]
    Live,
    /// From the system, but for the names of folders: what prepares a virtual run leaves the names behind that it has
    /// seen.
    Linked {
        /// As of a virtual run.
        folder: PathBuf,
        /// As of a virtual run.
        links: Vec<PathBuf>,
    },
    /// From rules that give the same in every run (`--deterministic`).
    Virtual {
        /// When the run began, in nanoseconds since 1970: files that are newer were written by it.
        begun_ns: u64,
        /// The run's own folder: one of [`folder_of_run`].
        folder: PathBuf,
        /// Links in it with fixed names to folders that lie elsewhere on other machines: programs see these by the links.
        links: Vec<PathBuf>,
    },
}

impl Chance {
    /// Is it the same in every run?
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        match self {
            Chance::Live | Chance::Linked { .. } => false,
            Chance::Virtual { .. } => true,
        }
    }
}

/// The names of folders of virtual runs at the same time, all of one length. Programs see the first one in every run,
/// as what they do with a path depends on its text.
#[must_use]
pub fn folder_of_run(number: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/beamline-deterministic-{number:03}"))
}

impl Variable for Chance {
    const VARIABLE: &'static str = "BEAMLINE_CHANCE";
}

/// A point of time, for tools that wait and measure.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of formats and of the tools above it that reads this clock"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Nanoseconds since 1970.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "as for `now`")]
pub fn system_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ns = since.unwrap_or(Duration::ZERO).as_nanos();
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// The number of this process, for the names of its files.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "as for `now`")]
pub fn os_pid() -> u32 {
    std::process::id()
}

/// Processors that this process may use; 1 where the system does not say.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "as for `now`")]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A number that no other run has.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "as for `now`"
)]
pub fn token() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_read_as_it_was_written() {
        let virtual_one = Chance::Virtual {
            begun_ns: system_ns(),
            folder: "/run-012".into(),
            links: vec!["/run-012/here".into()],
        };
        let linked = Chance::Linked {
            folder: "/run-012".into(),
            links: Vec::new(),
        };
        for chance in [Chance::Live, linked, virtual_one] {
            let value = chance.to_variable().unwrap();
            assert_eq!(Chance::from_variable(&value), Ok(chance));
        }
        let error = Chance::from_variable("\"other\"").unwrap_err();
        assert!(error.starts_with("BEAMLINE_CHANCE: "), "{error}");
    }
}
