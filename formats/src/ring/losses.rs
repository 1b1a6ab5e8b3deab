//! What is missing in a recording: every report begins with it.

use std::fmt;

use serde::Serialize;

use super::Error;
use super::event::KINDS;
use super::reader::{Counts, Record, Recording};
use crate::name::time;

/// Records of one kind that are not in the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// The scheduler; none for all other threads.
    pub scheduler: Option<u64>,
    /// The kind.
    pub kind: &'static str,
    /// Overwritten by newer ones.
    pub overwritten: u64,
    /// Not written for want of room.
    pub dropped: u64,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// What was lost.
    pub losses: Vec<Lost>,
    /// Names that did not fit.
    pub names_lost: u64,
    /// The emulator has ended the recording; otherwise it was killed, or runs still.
    pub has_ended: bool,
    /// Since when nothing is missing.
    pub since_ns: u64,
}

impl Losses {
    /// What is missing when these are the records in each segment.
    ///
    /// # Errors
    /// When a block is damaged.
    pub fn of(recording: &Recording, found: &[Counts]) -> Result<Losses, Error> {
        let losses = recording.losses(found).into_iter().map(|loss| Lost {
            scheduler: loss.scheduler,
            kind: loss.kind.name(),
            overwritten: loss.overwritten,
            dropped: loss.dropped,
        });
        Ok(Losses {
            losses: losses.collect(),
            names_lost: recording.names_lost(),
            has_ended: recording.has_ended(),
            since_ns: recording.whole_since_ns()?,
        })
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.losses.is_empty() && self.names_lost == 0 {
            writeln!(f, "Nothing was lost.")?;
        }
        for lost in &self.losses {
            let who = lost.scheduler.map_or("other threads".to_owned(), |number| {
                format!("scheduler {number}")
            });
            let (kind, overwritten, dropped) = (lost.kind, lost.overwritten, lost.dropped);
            if overwritten > 0 {
                writeln!(
                    f,
                    "LOST: {overwritten} {kind} of {who}, overwritten by newer records"
                )?;
            }
            if dropped > 0 {
                writeln!(
                    f,
                    "LOST: {dropped} {kind} of {who}, for which there was no room"
                )?;
            }
        }
        if self.names_lost > 0 {
            writeln!(f, "LOST: {} names, shown as ?", self.names_lost)?;
        }
        if self.since_ns > 0 {
            let since = time(self.since_ns);
            writeln!(
                f,
                "Calls and times are those from {since} on, since when nothing is missing."
            )?;
        }
        if !self.has_ended {
            writeln!(
                f,
                "The recording has no end: the emulator was killed, or runs still."
            )?;
        }
        Ok(())
    }
}

impl Recording {
    /// Hands over all records since when nothing is missing, in order of time; what is missing is told.
    ///
    /// # Errors
    /// When a block is damaged, or the first error of `each`.
    pub fn scan<E: From<Error>>(
        &self,
        mut each: impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<Losses, E> {
        let since = self.whole_since_ns()?;
        let mut found = vec![[0; KINDS]; self.segments()];
        let mut merged = self.merged()?;
        while let Some(record) = merged.read()? {
            if let Some(kind) = record.event.kind() {
                found[record.segment][kind as usize] += 1;
            }
            if record.time_ns >= since {
                each(&record)?;
            }
        }
        Ok(Losses::of(self, &found)?)
    }
}
