//! The request that tells an emulator what to record. The command hands it over in an environment variable.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beamline_settings::counter::Counter;
use beamline_settings::variable::Variable;
use serde::{Deserialize, Serialize};

use super::trigger::Trigger;
use super::writer::{Ring, RingOptions, lock};
use crate::profile::{Libraries, Pattern, Span};
use crate::ring::model::description::Host;
use crate::ring::model::error::Error;
use crate::ring::model::event::Group;
use crate::ring::model::file_names::{number_of, numbered, part_of};
use crate::ring::model::layout::WhenFull;
use crate::ring::read::reader::Recording;

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
    /// The ring is no recording by itself: its records are taken out of it, and it is beside the recording
    /// ([`part_of`]).
    pub is_apart: bool,
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
    /// The part of the run that is recorded.
    pub span: Span,
    /// The folder for notes on patterns.
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
    /// Whether nobody keeps what is recorded behind the end of the command: it takes the records out of the ring, or those
    /// around a trigger.
    #[must_use]
    pub fn ends_with_command(&self) -> bool {
        self.is_apart || !self.triggers.is_empty()
    }

    /// Makes the ring of an emulator. The first emulator of a run has the file, and each other one a numbered file that
    /// was not there before.
    ///
    /// # Errors
    /// The ring's file, and why there can be no ring in it.
    pub fn create_ring(&self, options: &RingOptions) -> Result<Arc<Ring>, (PathBuf, Error)> {
        for number in 1..=FILES_MAX {
            let ring = self.ring(number);
            let made = match number {
                1 => self.lock_first(&ring),
                _ => self.create_new(&ring, number),
            };
            let made = made.and_then(|file| {
                file.map(|file| Ring::within(file, &ring, options))
                    .transpose()
            });
            match made {
                Ok(Some(ring)) => return Ok(ring),
                Ok(None) => {}
                Err(error) => return Err((ring, error)),
            }
        }
        Err((self.ring(FILES_MAX), Error::Busy))
    }

    /// The first ring's file; none where another emulator of this run has it.
    fn lock_first(&self, ring: &Path) -> Result<Option<std::fs::File>, Error> {
        let file = match lock(ring) {
            Ok(file) => file,
            Err(Error::Busy) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok((Recording::token_of(ring) != Some(self.token)).then_some(file))
    }

    /// Another ring's file; none where the number is taken.
    fn create_new(&self, ring: &Path, number: u32) -> Result<Option<std::fs::File>, Error> {
        let mut options = OpenOptions::new();
        let made = options.read(true).write(true).create_new(true).open(ring);
        let file = match made {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if self.is_apart && numbered(&self.file, number).exists() {
            std::fs::remove_file(ring)?;
            return Ok(None);
        }
        // Only a process that waits for it to appear could have it open now, and it waits until this is a ring.
        file.try_lock().map_err(|_| Error::Busy)?;
        Ok(Some(file))
    }

    /// The file of a ring.
    fn ring(&self, number: u32) -> PathBuf {
        let file = numbered(&self.file, number);
        match self.is_apart {
            true => part_of(&file),
            false => file,
        }
    }

    /// The rings of this run that are there, with their numbers, which begin at 1.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn rings(&self) -> Result<Vec<(u32, PathBuf)>, Error> {
        let folder = match self.file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let stem = self.file.file_stem().unwrap_or_default();
        let mut rings = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let name = entry?.file_name();
            // The folder may have thousands of others.
            if !name.as_encoded_bytes().starts_with(stem.as_encoded_bytes()) {
                continue;
            }
            let path = self.file.with_file_name(name);
            let number = number_of(&self.file, &path, self.is_apart);
            let number = number.filter(|_| Recording::token_of(&path) == Some(self.token));
            rings.extend(number.map(|number| (number, path)));
        }
        rings.sort();
        Ok(rings)
    }

    /// Removes what the run left whose recording is in the file now: its numbered files, and rings beside them.
    ///
    /// # Errors
    /// [`Error::Busy`] when somebody records into the file; or the folder cannot be read, or a file not be removed.
    pub fn remove_earlier(&self) -> Result<(), Error> {
        if !self.file.is_file() {
            return Ok(());
        }
        // Nobody records into them now, nor begins to.
        let _held = lock(&self.file)?;
        let token = |file: &Path| Recording::open(file).ok().map(|old| old.token());
        let (Some(earlier), Some(folder)) = (token(&self.file), self.file.parent()) else {
            return Ok(());
        };
        for entry in std::fs::read_dir(folder)? {
            let path = self.file.with_file_name(entry?.file_name());
            let number = |is_apart| number_of(&self.file, &path, is_apart);
            let is_other = path != self.file && (number(true).or(number(false))).is_some();
            if is_other && token(&path) == Some(earlier) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
    }
}

/// More files are not made for one run.
const FILES_MAX: u32 = 10_000;
