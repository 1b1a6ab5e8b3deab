//! Where the blocks of a recording are: in its ring, in the frames of its stream, or in both. If a stream's recorder was
//! killed, what it had not yet taken is in the ring beside the stream.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::{READ_BLOCKS, Recording, SegmentInfo, read_at};
use crate::ring::model::error::Error;
use crate::ring::model::file_names::part_of;
use crate::ring::model::layout::{PAGE, WhenFull, block, header, whole_words, words_of};
use crate::ring::read::frames::{Found, Frames, Run};

/// Whether another process holds a file's lock.
pub(super) fn is_locked(file: &File) -> bool {
    match file.try_lock_shared() {
        Ok(()) => {
            // It stays locked until the file is closed if this fails, which is soon.
            let _ = file.unlock();
            false
        }
        Err(error) => matches!(error, TryLockError::WouldBlock),
    }
}

/// The ring beside a recording, if there is one.
pub(super) fn beside(path: &Path) -> Option<File> {
    let ring = File::open(part_of(path)).ok()?;
    let length = ring.metadata().ok()?.len();
    (length > 0).then_some(ring)
}

impl Recording {
    /// This stream, with what its ring holds besides if nobody goes on to take that out.
    pub(super) fn joined(self, path: &Path) -> Result<Recording, Error> {
        if !self.is_cut || is_locked(&self.file) {
            return Ok(self);
        }
        let ring = beside(path).map(Recording::of_ring);
        match ring {
            Some(Ok(ring)) if ring.is_begun_as(&self) => self.with(ring),
            // It is the ring of something else.
            _ => Ok(self),
        }
    }

    /// Whether two files have the words that are written once, when a ring is begun.
    fn is_begun_as(&self, other: &Recording) -> bool {
        let words = 0..=header::CHECK;
        let mut same = words.map(|at| self.header.word(at) == other.header.word(at));
        same.all(|same| same)
    }

    fn with(self, ring: Recording) -> Result<Recording, Error> {
        let mut segments = Vec::new();
        for (taken, left) in self.segments.into_iter().zip(ring.segments) {
            let mut runs = taken.runs.unwrap_or_default();
            let next = runs.last().map_or(1, |run| run.first + run.blocks);
            runs.extend(left.rest(&ring.file, next)?);
            segments.push(SegmentInfo {
                head: runs.last().map_or(0, |run| run.first + run.blocks - 1),
                runs: Some(runs),
                ..left
            });
        }
        let mut joined = Recording {
            file: self.file,
            ring: Some(ring.file),
            segments,
            ..ring
        };
        joined.time = joined.timebase()?;
        Ok(joined)
    }

    /// Has blocks of a segment in `buffer`, among them the one with this sequence; gives that of the first.
    pub(super) fn load(
        &self,
        info: &SegmentInfo,
        sequence: u64,
        buffer: &mut Vec<u64>,
    ) -> Result<u64, Error> {
        if let Some(runs) = &info.runs {
            let at = runs.partition_point(|run| run.first + run.blocks <= sequence);
            let Some(run) = runs.get(at).filter(|run| run.first <= sequence) else {
                let what = "a frame";
                return Err(Error::Corrupt { what, at: 0 });
            };
            match (run.found, &self.ring) {
                (Found::Ring { at }, Some(ring)) => {
                    let bytes = read_at(ring, at, run.blocks * PAGE as u64)?;
                    whole_words(&bytes, buffer);
                }
                (Found::Ring { at } | Found::Frame { at, packed: 0 }, _) => {
                    let what = "a frame";
                    return Err(Error::Corrupt { what, at });
                }
                (Found::Frame { at, packed }, _) => {
                    Frames::load(&self.file, (at, packed), run.blocks, buffer)?;
                }
            }
            return Ok(run.first);
        }
        // As many as follow in the file.
        let to_wrap = info.place.blocks - (sequence - 1) % info.place.blocks;
        let blocks = READ_BLOCKS.min(to_wrap).min(info.head - sequence + 1);
        let at = info.place.block_at(sequence);
        let bytes = read_at(&self.file, at, blocks * PAGE as u64)?;
        whole_words(&bytes, buffer);
        Ok(sequence)
    }

    /// Whether somebody records into the file, newer records over older ones.
    pub(super) fn is_being_overwritten(&self) -> bool {
        if self.when_full() != Some(WhenFull::Overwrite) {
            return false;
        }
        is_locked(self.ring.as_ref().unwrap_or(&self.file))
    }
}

impl SegmentInfo {
    /// The blocks of a ring from the one with the sequence `next` on, as they follow each other in the file.
    fn rest(&self, ring: &File, next: u64) -> Result<Vec<Run>, Error> {
        let oldest = self.first();
        let mut first = next.max(oldest);
        if first == oldest && first <= self.head {
            let head = read_at(ring, self.place.block_at(first), PAGE as u64)?;
            let commit = words_of(&head).nth(block::COMMIT);
            // It was about to be overwritten when the program was killed.
            first += u64::from(commit == Some(0) && first < self.head);
        }
        let mut runs = Vec::new();
        while first <= self.head {
            let to_wrap = self.place.blocks - (first - 1) % self.place.blocks;
            let blocks = READ_BLOCKS.min(to_wrap).min(self.head - first + 1);
            let at = self.place.block_at(first);
            let found = Found::Ring { at };
            runs.push(Run {
                first,
                blocks,
                found,
            });
            first += blocks;
        }
        Ok(runs)
    }
}
