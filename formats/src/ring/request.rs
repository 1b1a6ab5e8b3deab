//! The request that tells an emulator what to record. The command hands it over in an environment variable.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::counter::Counter;
use super::event::Group;
use super::layout::WhenFull;
use super::trigger::Trigger;
use super::{Error, Host, Recording};
use crate::profile::{Libraries, Pattern};
use crate::variable::Variable;

/// Which system events are recorded: from these limits on; 0 is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Collections of more milliseconds.
    pub long_gc_ms: u64,
    /// Time slices of more milliseconds.
    pub long_schedule_ms: u64,
    /// Heaps of as many words.
    pub large_heap_words: u64,
    /// Message queues of as many messages (the second number), until there are no more than the first.
    pub long_message_queue: Option<(u64, u64)>,
    /// Processes that wait for a busy port.
    pub busy_port: bool,
}

/// What an emulator is asked to record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Where the recording goes.
    pub file: PathBuf,
    /// Marks what is recorded in one run.
    pub token: u64,
    /// What is recorded.
    pub events: Vec<Group>,
    /// Which system events, if they are recorded.
    pub system: System,
    /// The functions whose calls are recorded; an empty list means all.
    pub patterns: Vec<Pattern>,
    /// Bytes for records.
    pub ring_bytes: u64,
    /// What becomes of records that find no room.
    pub when_full: WhenFull,
    /// The counters of time slices.
    pub counters: Vec<Counter>,
    /// The triggers of a flight recorder. The emulator notes in the ring's header that one has happened.
    pub triggers: Vec<Trigger>,
    /// Nothing is recorded before this many milliseconds.
    pub delay_ms: u64,
    /// The recording ends after so many milliseconds more; `None` ends it with the emulator.
    pub duration_ms: Option<u64>,
    /// The folder for what is told of patterns.
    pub folder: PathBuf,
    /// Where modules are that are not the program's own.
    pub libraries: Libraries,
    /// The machine.
    pub host: Host,
    /// Version of the program that records.
    pub beamline: String,
    /// The command that is recorded, as it was given.
    pub command: Vec<String>,
}

impl Variable for Request {
    const VARIABLE: &'static str = "BEAMLINE_RECORD";
}

impl Request {
    /// Where the emulator with this process number records: into the file, or beside it, where another of
    /// the same run has taken that.
    #[must_use]
    pub fn free_file(&self, os_pid: u32) -> PathBuf {
        let taken = Recording::token_of(&self.file) == Some(self.token);
        if taken {
            self.file_beside(os_pid)
        } else {
            self.file.clone()
        }
    }

    /// Where the emulator with this process number records when another has the file.
    #[must_use]
    pub fn file_beside(&self, os_pid: u32) -> PathBuf {
        self.beside(&os_pid.to_string())
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.file.clone().into_os_string();
        name.push(".");
        name.push(suffix);
        PathBuf::from(name)
    }

    /// All recordings of this run: the file, and those beside it in order of their names.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let ours = |path: &Path| Recording::token_of(path) == Some(self.token);
        let mut files: Vec<PathBuf> = Vec::new();
        let folder = match self.file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let prefix = self.beside("");
        let prefix = prefix.file_name().map(|name| name.to_os_string());
        for entry in std::fs::read_dir(folder)? {
            let name = entry?.file_name();
            let is_beside = prefix.as_ref().is_some_and(|prefix| {
                let (name, prefix) = (name.as_encoded_bytes(), prefix.as_encoded_bytes());
                name.starts_with(prefix) && name[prefix.len()..].iter().all(u8::is_ascii_digit)
            });
            let path = self.file.with_file_name(&name);
            if is_beside && ours(&path) {
                files.push(path);
            }
        }
        files.sort();
        if ours(&self.file) {
            files.insert(0, self.file.clone());
        }
        Ok(files)
    }
}
