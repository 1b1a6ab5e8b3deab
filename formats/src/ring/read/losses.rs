//! What is missing in a recording. Every report begins with it.

use std::fmt;

use serde::Serialize;

use super::reader::{Counts, Recording};
use crate::name::time;
use crate::ring::model::error::Error;
use crate::ring::model::kept::{Kept, Why};

/// The number of records of one kind that are not in the recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// The scheduler; `None` stands for all other threads.
    pub scheduler: Option<u64>,
    /// The kind.
    pub kind: &'static str,
    /// Overwritten by newer ones.
    pub overwritten: u64,
    /// Not written for want of room.
    pub dropped: u64,
}

/// What is missing in a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// What was lost.
    pub losses: Vec<Lost>,
    /// Names that did not fit.
    pub names_lost: u64,
    /// The emulator has ended the recording; otherwise it was killed, or runs still.
    pub has_ended: bool,
    /// It is a stream that nobody ended: more may have come.
    pub is_cut: bool,
    /// Since when nothing is missing.
    pub since_ns: u64,
    /// What it was kept around, if it is what a flight recorder kept.
    pub kept: Option<Kept>,
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
        let all = Losses {
            losses: losses.collect(),
            names_lost: recording.names_lost(),
            has_ended: recording.has_ended(),
            is_cut: recording.is_cut(),
            since_ns: recording.whole_since_ns()?,
            kept: recording.kept(),
        };
        Ok(all.without_what_was_let_go())
    }

    /// What is older than what was to be kept is not lost.
    fn without_what_was_let_go(mut self) -> Losses {
        if self.kept.is_some_and(|kept| !self.misses(&kept)) {
            self.losses.retain_mut(|lost| {
                lost.overwritten = 0;
                lost.dropped > 0
            });
        }
        self
    }

    fn misses(&self, kept: &Kept) -> bool {
        kept.is_cut || self.since_ns > kept.from_ns
    }

    fn write_kept(&self, f: &mut fmt::Formatter<'_>, kept: &Kept) -> fmt::Result {
        let (at, from, to) = (time(kept.at_ns), time(kept.from_ns), time(kept.to_ns));
        let what = match kept.why {
            Why::Event { kind, who } => format!("{} of {who}", kind.name()),
            Why::Signal => "a signal".to_owned(),
            Why::Killed => "the end of the emulator, which was killed".to_owned(),
        };
        writeln!(f, "Kept around {what} at {at}: from {from} to {to}.")?;
        if self.since_ns > kept.from_ns {
            let since = time(self.since_ns);
            writeln!(
                f,
                "LOST: everything from {from} to {since}, for which the ring had no room; use a larger --ring"
            )?;
        }
        if kept.is_cut {
            writeln!(
                f,
                "LOST: everything after {to}, which was overwritten before it could be kept"
            )?;
        }
        Ok(())
    }

    /// In a few words, if any record was lost.
    #[must_use]
    pub fn short(&self) -> Option<String> {
        let records = self.losses.iter();
        let records: u64 = records.map(|lost| lost.overwritten + lost.dropped).sum();
        let since = match self.since_ns {
            0 => String::new(),
            since => format!(", calls are those from {} on", time(since)),
        };
        (records > 0).then(|| format!("LOST: {records} records{since}"))
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let misses = self.kept.is_some_and(|kept| self.misses(&kept));
        if self.is_cut {
            writeln!(
                f,
                "LOST: everything after the end of this recording: its disk was full, or its recorder was killed"
            )?;
        } else if self.losses.is_empty() && self.names_lost == 0 && !misses {
            writeln!(f, "Nothing was lost.")?;
        }
        if let Some(kept) = &self.kept {
            self.write_kept(f, kept)?;
        }
        let overwritten = match self.kept {
            Some(_) => "overwritten by newer records, those before that time included",
            None => "overwritten by newer records",
        };
        for lost in self.losses.chunk_by(|a, b| a.scheduler == b.scheduler) {
            write_lost(f, lost, overwritten, |lost| lost.overwritten)?;
            write_lost(f, lost, "for which there was no room", |lost| lost.dropped)?;
        }
        if self.names_lost > 0 {
            writeln!(f, "LOST: {} names, shown as ?", self.names_lost)?;
        }
        if self.since_ns > 0 {
            let since = time(self.since_ns);
            let advice = match self.kept {
                Some(_) => "",
                None => "; a larger --ring keeps more, and without --ring all is kept",
            };
            writeln!(
                f,
                "Calls and times count from {since} on; nothing is missing since then{advice}."
            )?;
        }
        let runs = self.kept.is_some_and(|kept| kept.why != Why::Killed);
        if !self.has_ended && !runs && !self.is_cut {
            writeln!(
                f,
                "The recording has no end: the emulator was killed, or is still running."
            )?;
        }
        Ok(())
    }
}

/// Writes what one scheduler lost in one way, if anything.
fn write_lost(
    f: &mut fmt::Formatter<'_>,
    lost: &[Lost],
    why: &str,
    number: impl Fn(&Lost) -> u64,
) -> fmt::Result {
    let kinds = lost.iter().filter(|lost| number(lost) > 0);
    let kinds: Vec<String> = kinds
        .map(|lost| format!("{} {}", number(lost), lost.kind))
        .collect();
    let who = match lost.first().and_then(|lost| lost.scheduler) {
        Some(scheduler) => format!("scheduler {scheduler}"),
        None => "other threads".to_owned(),
    };
    match kinds.is_empty() {
        true => Ok(()),
        false => writeln!(f, "LOST: {} of {who}, {why}", kinds.join(", ")),
    }
}
