//! Finds what is in a stream.

use std::fs::File;

use crate::ring::model::error::Error;
use crate::ring::model::frame::{FIRST_MAX, FRAME_MAX, HEAD, Part, read_at};
use crate::ring::model::layout::{
    BLOCK_WORDS, Check, PAGE, TABLE_MAX, check_version, whole_words, words_of,
};

/// Blocks of a segment that follow each other in a stream.
#[derive(Clone, Copy, Debug)]
pub(in crate::ring) struct Run {
    /// The sequence of the first.
    pub(in crate::ring) first: u64,
    /// How many.
    pub(in crate::ring) blocks: u64,
    pub(in crate::ring) found: Found,
}

/// Where the blocks of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ring) enum Found {
    /// In the frame that begins at this byte of the stream, with a payload of this length.
    Frame { at: u64, packed: u64 },
    /// In the ring beside the stream, from this byte on.
    Ring { at: u64 },
}

/// The contents of a stream.
#[derive(Debug)]
pub(in crate::ring) struct Frames {
    /// The ring file up to its names.
    pub(in crate::ring) first: Vec<u8>,
    pub(in crate::ring) names: Vec<u8>,
    /// Of each segment, in order.
    pub(in crate::ring) runs: Vec<Vec<Run>>,
    /// Header and first pages of segments at the end, if it was reached.
    pub(in crate::ring) last: Option<Vec<u8>>,
}

/// The head of a frame.
struct Head {
    part: Option<Part>,
    index: u64,
    sequence: u64,
    bytes: u64,
    packed: u64,
    check: u64,
}

impl Head {
    fn read(file: &File, at: u64) -> Result<Head, Error> {
        let words: Vec<u64> = words_of(&read_at(file, at, HEAD as u64)?).collect();
        Ok(Head {
            part: Part::of(words[0]),
            index: words[1],
            sequence: words[2],
            bytes: words[3],
            packed: words[4],
            check: words[5],
        })
    }

    fn limit(&self) -> usize {
        match self.part {
            Some(Part::First | Part::Last) => FIRST_MAX,
            _ => FRAME_MAX,
        }
    }
}

fn corrupt(at: u64) -> Error {
    let what = "a frame";
    Error::Corrupt { what, at }
}

/// The payload of the frame at `at` as it is in the file, checked.
fn packed(file: &File, at: u64, head: &Head) -> Result<Vec<u8>, Error> {
    let packed = read_at(file, at + HEAD as u64, head.packed)?;
    let words = read_at(file, at, HEAD as u64 - 8)?;
    let check = Check::of(words_of(&words).chain(words_of(&packed)));
    match check.word() == head.check {
        true => Ok(packed),
        false => Err(corrupt(at)),
    }
}

/// The payload of the frame at `at`.
fn payload(file: &File, at: u64, head: &Head) -> Result<Vec<u8>, Error> {
    let packed = packed(file, at, head)?;
    if head.bytes > head.limit() as u64 {
        return Err(corrupt(at));
    }
    let bytes = zstd::bulk::decompress(&packed, head.bytes as usize).map_err(|_| corrupt(at))?;
    if bytes.len() as u64 != head.bytes {
        return Err(corrupt(at));
    }
    Ok(bytes)
}

impl Frames {
    /// Looks through a stream. What comes after the last whole frame was never written: whoever drained was
    /// killed then.
    pub(in crate::ring) fn find(file: &File) -> Result<Frames, Error> {
        let length = file.metadata()?.len();
        let start = read_at(file, 0, length.min(16))?;
        let version = start.get(8..16).map(|bytes| words_of(bytes).next());
        match version.flatten() {
            Some(version) => check_version(version)?,
            None => return Err(Error::Empty),
        }
        let mut frames = Frames {
            first: Vec::new(),
            names: Vec::new(),
            runs: Vec::new(),
            last: None,
        };
        let mut at = 16;
        while at + HEAD as u64 <= length {
            let head = Head::read(file, at)?;
            let end = head.packed.checked_next_multiple_of(8);
            let end = end.and_then(|bytes| bytes.checked_add(at + HEAD as u64));
            let Some(end) = end.filter(|end| *end <= length) else {
                break;
            };
            frames.add(file, at, &head)?;
            at = end;
        }
        if frames.first.is_empty() {
            return Err(Error::Empty);
        }
        Ok(frames)
    }

    fn add(&mut self, file: &File, at: u64, head: &Head) -> Result<(), Error> {
        match head.part {
            Some(Part::First) => self.first = payload(file, at, head)?,
            Some(Part::Last) => self.last = Some(payload(file, at, head)?),
            Some(Part::Names) => {
                let names = self.names.len() as u64;
                if head.sequence != names || names.saturating_add(head.bytes) > TABLE_MAX {
                    return Err(corrupt(at));
                }
                self.names.extend(payload(file, at, head)?);
            }
            Some(Part::Blocks) => {
                let index = usize::try_from(head.index)
                    .ok()
                    .filter(|index| *index < 1 << 16);
                let index = index.ok_or_else(|| corrupt(at))?;
                let blocks = head.bytes / PAGE as u64;
                if self.runs.len() <= index {
                    self.runs.resize_with(index + 1, Vec::new);
                }
                let runs = &mut self.runs[index];
                let after = runs.last().map_or(1, |run| run.first + run.blocks);
                if blocks == 0 || head.sequence < after || head.sequence >= 1 << 56 {
                    return Err(corrupt(at));
                }
                runs.push(Run {
                    first: head.sequence,
                    blocks,
                    found: Found::Frame {
                        at,
                        packed: head.packed,
                    },
                });
            }
            // It may be one of a newer version, or a damaged one.
            None => drop(packed(file, at, head)?),
        }
        Ok(())
    }

    /// Takes the runs of each of the segments.
    ///
    /// # Errors
    /// When there are blocks of others.
    pub(in crate::ring) fn take_runs(&mut self, segments: usize) -> Result<Vec<Vec<Run>>, Error> {
        let mut runs = std::mem::take(&mut self.runs);
        let mut beyond = runs.iter().skip(segments).flatten();
        let beyond = beyond.find_map(|run| match run.found {
            Found::Frame { at, .. } => Some(at),
            Found::Ring { .. } => None,
        });
        if let Some(at) = beyond {
            return Err(corrupt(at));
        }
        runs.resize_with(segments, Vec::new);
        Ok(runs)
    }

    /// Reads this many blocks of the frame at `at` into `buffer`.
    pub(in crate::ring) fn load(
        file: &File,
        (at, packed): (u64, u64),
        blocks: u64,
        buffer: &mut Vec<u64>,
    ) -> Result<(), Error> {
        let head = Head::read(file, at)?;
        if head.packed != packed {
            return Err(corrupt(at));
        }
        let bytes = payload(file, at, &head)?;
        whole_words(&bytes, buffer);
        if buffer.len() as u64 != blocks * BLOCK_WORDS as u64 {
            return Err(corrupt(at));
        }
        Ok(())
    }
}
