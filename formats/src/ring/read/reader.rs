//! Reads a ring file, even while it is being written or after its writer was killed.
//!
//! The reader believes nothing in the file before a check says that it was written so. Only the names make the memory
//! in use depend on the length of the recording.

mod joined;
mod merged;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rayon::prelude::*;

use super::frames::{Frames, Run};
use crate::ring::model::description::Description;
use crate::ring::model::error::Error;
use crate::ring::model::event::{Event, FIELDS_MAX, KINDS, Kind};
use crate::ring::model::frame;
use crate::ring::model::id::Id;
use crate::ring::model::kept::Kept;
use crate::ring::model::layout::{
    BLOCK_HEAD, BLOCK_WORDS, Check, Header, MAGIC, PAGE, Place, SLOT_WORDS, TABLE_MAX, WhenFull,
    block, block_is_whole, header, kind, read_places, row, segment, words_of,
};
use crate::ring::model::names::Names;
use crate::ring::model::time::{Anchor, Timebase};

pub use merged::Merged;

/// A number for each kind of event.
pub type Counts = [u64; KINDS];

/// Blocks that are read at once.
const READ_BLOCKS: u64 = 16;

/// The records of one kind that a segment has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The scheduler; `None` stands for all other threads.
    pub scheduler: Option<u64>,
    /// What was lost.
    pub kind: Kind,
    /// Overwritten by newer records.
    pub overwritten: u64,
    /// Not written for want of room.
    pub dropped: u64,
}

/// A recording.
#[derive(Debug)]
pub struct Recording {
    file: File,
    header: Header,
    description: Description,
    names: Names,
    segments: Vec<SegmentInfo>,
    time: Timebase,
    /// It is a stream without its last part.
    is_cut: bool,
    /// The ring beside the stream that its newest records are in.
    ring: Option<File>,
}

#[derive(Clone, Debug)]
struct SegmentInfo {
    place: Place,
    head: u64,
    written: Box<Counts>,
    dropped: Box<Counts>,
    /// In a stream, where the blocks are.
    runs: Option<Vec<Run>>,
}

impl SegmentInfo {
    /// From the first page of a segment of a ring.
    fn of_ring(place: Place, page: &[u8]) -> Result<SegmentInfo, Error> {
        let head = words_of(page).nth(segment::HEAD).unwrap_or(0);
        // No machine gets so far.
        if head >= 1 << 56 {
            return Err(Error::Corrupt {
                what: "the newest block of a segment",
                at: place.offset,
            });
        }
        Ok(SegmentInfo {
            place,
            head,
            written: counts(page, segment::WRITTEN),
            dropped: counts(page, segment::DROPPED),
            runs: None,
        })
    }

    /// From the blocks of a stream, and the segment's first page at the end, if that was reached.
    fn of_stream(place: Place, runs: Vec<Run>, page: Option<&[u8]>) -> SegmentInfo {
        let page = page.unwrap_or_default();
        SegmentInfo {
            place,
            head: runs.last().map_or(0, |run| run.first + run.blocks - 1),
            written: counts(page, segment::WRITTEN),
            dropped: counts(page, segment::DROPPED),
            runs: Some(runs),
        }
    }

    /// The oldest block there may be.
    fn first(&self) -> u64 {
        match &self.runs {
            Some(runs) => runs.first().map_or(1, |run| run.first),
            None => self.head.saturating_sub(self.place.blocks - 1).max(1),
        }
    }

    /// The oldest block after which no block is missing.
    fn whole_from(&self) -> u64 {
        let Some(runs) = &self.runs else {
            return self.first();
        };
        let mut from = self.first();
        for pair in runs.windows(2) {
            if pair[0].first + pair[0].blocks != pair[1].first {
                from = pair[1].first;
            }
        }
        from
    }

    /// The oldest block that has at least this sequence, where it is not after the newest.
    fn at_least(&self, sequence: u64) -> u64 {
        let Some(runs) = &self.runs else {
            return sequence;
        };
        let at = runs.partition_point(|run| run.first + run.blocks <= sequence);
        runs.get(at).map_or(sequence, |run| run.first.max(sequence))
    }
}

/// Counters of a segment's first page; none of an empty one.
fn counts(page: &[u8], at: usize) -> Box<Counts> {
    let mut counts = Box::new([0; KINDS]);
    for (count, word) in counts.iter_mut().zip(words_of(page).skip(at)) {
        *count = word;
    }
    counts
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record<'a> {
    /// Since the recording was begun.
    pub time_ns: u64,
    /// The index of the segment it is from.
    pub segment: usize,
    /// The process or port it is of.
    pub subject: Id,
    /// What happened.
    pub event: Event<'a>,
}

/// A record as its segment has it, for a reader that makes an event of it elsewhere.
pub struct RawRecord<'a> {
    /// When, in nanoseconds since the recording began.
    pub time_ns: u64,
    /// The number of its segment.
    pub segment: usize,
    /// Whose it is.
    pub subject: Id,
    /// The number of its kind, which a newer version may have made.
    pub kind: u8,
    /// Its fields; those that its kind does not have are 0.
    pub fields: &'a [u64; FIELDS_MAX],
    /// Its text, if its kind has one.
    pub text: &'a str,
}

fn read_at(file: &File, at: u64, bytes: u64) -> Result<Vec<u8>, Error> {
    let mut buffer = vec![0; usize::try_from(bytes).map_err(|_| Error::Foreign)?];
    file.read_exact_at(&mut buffer, at)?;
    Ok(buffer)
}

impl Recording {
    /// Does this file begin as a recording?
    #[must_use]
    pub fn is_one(path: &Path) -> bool {
        let mut start = [0; MAGIC.len()];
        let file = File::open(path).and_then(|file| file.read_exact_at(&mut start, 0));
        file.is_ok() && (start == MAGIC || start == frame::MAGIC)
    }

    /// The mark of a ring file, if it is one.
    pub(in crate::ring) fn token_of(path: &Path) -> Option<u64> {
        let file = File::open(path).ok()?;
        let header = Header::read(&read_at(&file, 0, PAGE as u64).ok()?).ok()?;
        Some(header.word(header::TOKEN))
    }

    /// Opens a recording.
    ///
    /// # Errors
    /// See [`Error`]: no recording, a damaged one, one of a newer version.
    pub fn open(path: &Path) -> Result<Recording, Error> {
        let file = File::open(path)?;
        let mut start = [0; frame::MAGIC.len()];
        if file.read_exact_at(&mut start, 0).is_ok() && start == frame::MAGIC {
            return Recording::of_stream(file)?.joined(path);
        }
        match file.metadata()?.len() {
            // The writer was killed before it could fill it.
            0 => Recording::of_ring(joined::beside(path).unwrap_or(file)),
            _ => Recording::of_ring(file),
        }
    }

    fn of_ring(file: File) -> Result<Recording, Error> {
        let length = file.metadata()?.len();
        let header = Header::read(&read_at(&file, 0, length.min(PAGE as u64))?)?;
        let expected = header.word(header::LENGTH);
        if length < expected {
            return Err(Error::Truncated { length, expected });
        }
        let first = part(&file, &header, 0, header.word(header::NAMES))?;
        let names = read_names(&file, &header)?;
        let (description, places) = read_first(&header, &first)?;
        let segments = places.into_iter().map(|place| {
            let page = read_at(&file, place.offset, PAGE as u64)?;
            SegmentInfo::of_ring(place, &page)
        });
        let segments = segments.collect::<Result<Vec<_>, _>>()?;
        Recording::new(file, header, description, names, segments)
    }

    fn of_stream(file: File) -> Result<Recording, Error> {
        let mut frames = Frames::find(&file)?;
        let header = Header::read(&frames.first)?;
        let (description, places) = read_first(&header, &frames.first)?;
        let names = Names::read(&frames.names, 0)?;
        let runs = frames.take_runs(places.len())?;
        let last = frames.last.as_deref().unwrap_or_default();
        let mut segments = Vec::new();
        for (index, (place, runs)) in places.into_iter().zip(runs).enumerate() {
            let page = last.get((1 + index) * PAGE..(2 + index) * PAGE);
            segments.push(SegmentInfo::of_stream(place, runs, page));
        }
        // The header at the end tells of the end.
        let header = match last.get(..PAGE) {
            Some(page) => Header::read(page)?,
            None => header,
        };
        let mut recording = Recording::new(file, header, description, names, segments)?;
        recording.is_cut = frames.last.is_none();
        Ok(recording)
    }

    fn new(
        file: File,
        header: Header,
        description: Description,
        names: Names,
        segments: Vec<SegmentInfo>,
    ) -> Result<Recording, Error> {
        let mut recording = Recording {
            time: Timebase::new(Anchor::default(), 0, None),
            is_cut: false,
            ring: None,
            file,
            header,
            description,
            names,
            segments,
        };
        recording.time = recording.timebase()?;
        Ok(recording)
    }

    fn timebase(&self) -> Result<Timebase, Error> {
        let word = |at| self.header.word(at);
        let start = Anchor {
            ticks: word(header::START_TICKS),
            ns: word(header::START_NS),
        };
        let mut last = (word(header::ENDED) == 1).then(|| Anchor {
            ticks: word(header::END_TICKS),
            ns: word(header::END_NS),
        });
        if last.is_none() {
            let mut head = Vec::new();
            for info in self.segments.iter().filter(|info| info.head > 0) {
                let start = self.load(info, info.head, &mut head)?;
                let head = &head[(info.head - start) as usize * BLOCK_WORDS..];
                let anchor = Anchor {
                    ticks: head[block::ANCHOR_TICKS],
                    ns: head[block::ANCHOR_NS],
                };
                if last.is_none_or(|last: Anchor| last.ns < anchor.ns) {
                    last = Some(anchor);
                }
            }
        }
        Ok(Timebase::new(start, word(header::NS_PER_4G), last))
    }

    /// What is known besides records.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The names.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Names that did not fit.
    #[must_use]
    pub(crate) fn names_lost(&self) -> u64 {
        self.header.word(header::NAMES_LOST)
    }

    /// The emulator's process number in the operating system.
    #[must_use]
    pub fn os_pid(&self) -> u64 {
        self.header.word(header::OS_PID)
    }

    /// Marks what was recorded in the same run.
    #[must_use]
    pub fn token(&self) -> u64 {
        self.header.word(header::TOKEN)
    }

    /// Nanoseconds since 1970 when it was begun.
    #[must_use]
    pub fn unix_ns(&self) -> u64 {
        self.header.word(header::START_UNIX_NS)
    }

    /// When it was begun, by the monotonic clock of its machine, in nanoseconds: recordings of one machine share it.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.header.word(header::START_NS)
    }

    /// What became of records for which there was no room; `None` where this version does not know the word.
    #[must_use]
    pub fn when_full(&self) -> Option<WhenFull> {
        WhenFull::from_word(self.header.word(header::WHEN_FULL))
    }

    /// The emulator has ended it; otherwise it was killed, or runs still.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.header.word(header::ENDED) == 1
    }

    /// What a flight recorder kept the recording for; `None` for a recording that has all there was room for.
    #[must_use]
    pub fn kept(&self) -> Option<Kept> {
        Kept::read(&self.header)
    }

    /// It is a stream that nobody ended: what came after it is not known.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// When it ended, in nanoseconds since it was begun.
    #[must_use]
    pub fn end_ns(&self) -> Option<u64> {
        let ticks = self.header.word(header::END_TICKS);
        self.has_ended().then(|| self.time.ns(ticks))
    }

    /// How many segments there are.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The scheduler that wrote a segment; `None` stands for all other threads.
    #[must_use]
    pub fn scheduler(&self, segment: usize) -> Option<u64> {
        let label = self.segments.get(segment)?.place.label;
        (label != 0).then_some(label)
    }

    /// The oldest records of a segment have been overwritten.
    #[must_use]
    pub(crate) fn is_wrapped(&self, segment: usize) -> bool {
        self.segments
            .get(segment)
            .is_some_and(|info| info.whole_from() > 1)
    }

    /// The records of a segment, from the oldest to the newest.
    ///
    /// # Panics
    /// When there is no such segment.
    #[must_use]
    pub fn segment(&self, index: usize) -> SegmentReader<'_> {
        SegmentReader::new(self, index, self.segments[index].first())
    }

    /// The records of a segment after which none is missing, from the oldest to the newest.
    fn whole_segment(&self, index: usize) -> SegmentReader<'_> {
        SegmentReader::new(self, index, self.segments[index].whole_from())
    }

    /// Since when nothing is missing, in nanoseconds: 0 unless the oldest records were overwritten.
    ///
    /// # Errors
    /// When a block is damaged.
    pub fn whole_since_ns(&self) -> Result<u64, Error> {
        let mut since = 0;
        for index in (0..self.segments()).filter(|index| self.is_wrapped(*index)) {
            if let Some(record) = self.whole_segment(index).read()? {
                since = since.max(record.time_ns);
            }
        }
        Ok(since)
    }

    /// When it ended, or the last record was, whichever is later.
    pub fn whole_end_ns(&self) -> Result<u64, Error> {
        let last = self.last_ns()?;
        Ok(self.end_ns().map_or(last, |end| end.max(last)))
    }

    /// When the last record of all was, in nanoseconds since it was begun.
    fn last_ns(&self) -> Result<u64, Error> {
        let mut last = 0;
        for (index, info) in self.segments.iter().enumerate() {
            // The newest block may hold no record yet.
            for from in [info.head, info.head.saturating_sub(1), 0] {
                let mut reader = SegmentReader::new(self, index, from.max(info.first()));
                let mut newest = None;
                while let Some(record) = reader.read()? {
                    newest = Some(record.time_ns);
                }
                if let Some(newest) = newest {
                    last = last.max(newest);
                    break;
                }
            }
        }
        Ok(last)
    }

    /// All records in order of time.
    ///
    /// # Errors
    /// When a block is damaged.
    pub fn merged(&self) -> Result<Merged<'_>, Error> {
        Merged::new(self)
    }

    /// The records of each segment as its writer has counted them.
    pub fn written(&self) -> Vec<Counts> {
        self.segments.iter().map(|info| *info.written).collect()
    }

    /// Has each segment read by `read`, on all cores; the results are in the order of the segments.
    ///
    /// # Errors
    /// The first error of `read`.
    pub fn in_parallel<T: Send>(
        &self,
        read: impl Fn(SegmentReader<'_>) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let all = (0..self.segments()).into_par_iter();
        all.map(|index| read(self.segment(index))).collect()
    }

    /// What was lost, of each segment and kind: `found` are the records in each segment.
    #[must_use]
    pub fn losses(&self, found: &[Counts]) -> Vec<Loss> {
        let mut losses = Vec::new();
        for (info, found) in self.segments.iter().zip(found) {
            for kind in Kind::ALL {
                let at = *kind as usize;
                let overwritten = info.written[at].saturating_sub(found[at]);
                let dropped = info.dropped[at];
                if overwritten > 0 || dropped > 0 {
                    losses.push(Loss {
                        scheduler: (info.place.label != 0).then_some(info.place.label),
                        kind: *kind,
                        overwritten,
                        dropped,
                    });
                }
            }
        }
        losses
    }
}

/// A part of the file that the header speaks of.
fn part(file: &File, header: &Header, at: u64, bytes: u64) -> Result<Vec<u8>, Error> {
    let end = at.checked_add(bytes);
    if bytes > TABLE_MAX || end.is_none_or(|end| end > header.word(header::LENGTH)) {
        let what = "the header";
        return Err(Error::Corrupt { what, at: 0 });
    }
    read_at(file, at, bytes)
}

/// Description and segments, from the file's first parts.
fn read_first(header: &Header, first: &[u8]) -> Result<(Description, Vec<Place>), Error> {
    let part = |at: usize, bytes: u64| {
        let at = header.word(at);
        let end = at.checked_add(bytes)?;
        first.get(usize::try_from(at).ok()?..usize::try_from(end).ok()?)
    };
    let outside = Error::Corrupt {
        what: "the header",
        at: 0,
    };
    let Some(text) = part(header::DESCRIPTION, header.word(header::DESCRIPTION_BYTES)) else {
        return Err(outside);
    };
    let corrupt = Error::Corrupt {
        what: "the description",
        at: header.word(header::DESCRIPTION),
    };
    if Check::of(words_of(text)).word() != header.word(header::DESCRIPTION_CHECK) {
        return Err(corrupt);
    }
    let description = serde_json::from_slice(text).map_err(|_| corrupt)?;
    let rows = header.word(header::SEGMENT_COUNT).min(TABLE_MAX / 64);
    let Some(table) = part(header::SEGMENTS, rows * row::WORDS as u64 * 8) else {
        return Err(outside);
    };
    Ok((description, read_places(header, table)?))
}

fn read_names(file: &File, header: &Header) -> Result<Names, Error> {
    let at = header.word(header::NAMES);
    let used = header.word(header::NAMES_USED);
    if used > header.word(header::NAMES_BYTES) || !used.is_multiple_of(8) {
        return Err(Error::Corrupt {
            what: "the length of the names",
            at: header::NAMES_USED as u64 * 8,
        });
    }
    Names::read(&part(file, header, at, used)?, at)
}

/// A record as a block holds it.
#[derive(Clone, Copy, Default)]
struct Raw {
    ticks: u64,
    subject: Id,
    kind: u8,
    fields: [u64; FIELDS_MAX],
}

/// Reads the records of one segment.
pub struct SegmentReader<'r> {
    recording: &'r Recording,
    index: usize,
    /// The sequence of the next block.
    next: u64,
    /// Blocks that were read, from the one with the sequence `start` on.
    buffer: Vec<u64>,
    start: u64,
    /// The word in `buffer` that the current block begins at, its slots, and those passed.
    block: usize,
    slots: usize,
    slot: usize,
    raw: Raw,
    text: String,
}

impl<'r> SegmentReader<'r> {
    fn new(recording: &'r Recording, index: usize, next: u64) -> Self {
        SegmentReader {
            recording,
            index,
            next,
            buffer: Vec::new(),
            start: 0,
            block: 0,
            slots: 0,
            slot: 0,
            raw: Raw::default(),
            text: String::new(),
        }
    }

    /// The segment it reads.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// When the next block is damaged.
    pub fn read(&mut self) -> Result<Option<Record<'_>>, Error> {
        Ok(if self.advance()? {
            Some(self.record())
        } else {
            None
        })
    }

    /// Goes to the next record; `false` at the end.
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            while self.slot < self.slots {
                if self.decode()? {
                    return Ok(true);
                }
            }
            if !self.next_block()? {
                return Ok(false);
            }
        }
    }

    /// The record gone to.
    fn record(&self) -> Record<'_> {
        Record {
            time_ns: self.recording.time.ns(self.raw.ticks),
            segment: self.index,
            subject: self.raw.subject,
            event: Event::of(self.raw.kind, &self.raw.fields, &self.text),
        }
    }

    /// The current record, as the segment has it.
    #[inline]
    fn raw(&self) -> RawRecord<'_> {
        RawRecord {
            time_ns: self.recording.time.ns(self.raw.ticks),
            subject: self.raw.subject,
            segment: self.index,
            kind: self.raw.kind,
            fields: &self.raw.fields,
            text: &self.text,
        }
    }

    /// Counts the records from here to the end.
    pub fn counts(mut self) -> Result<Counts, Error> {
        let mut counts = [0; KINDS];
        while self.advance()? {
            if let Some(count) = counts.get_mut(usize::from(self.raw.kind)) {
                *count += 1;
            }
        }
        Ok(counts)
    }

    fn corrupt(&self, what: &'static str) -> Error {
        let info = &self.recording.segments[self.index];
        let at = info.place.block_at(self.next.saturating_sub(1).max(1));
        if self.recording.is_being_overwritten() {
            Error::Overwritten
        } else {
            Error::Corrupt { what, at }
        }
    }

    /// Takes a record apart; `false` for one that is no event.
    fn decode(&mut self) -> Result<bool, Error> {
        let at = self.block + BLOCK_HEAD + self.slot * SLOT_WORDS;
        let (first, second) = (self.buffer[at], self.buffer[at + 1]);
        let [kind, extra, ..] = first.to_le_bytes();
        let extra = usize::from(extra);
        if self.slot + extra >= self.slots {
            return Err(self.corrupt("a record's length"));
        }
        self.slot += 1 + extra;
        self.raw.ticks = self.raw.ticks.saturating_add(first >> 32);
        match kind {
            kind::SUBJECT => self.raw.subject = Id::from_word(second),
            kind::TIME => self.raw.ticks = self.raw.ticks.saturating_add(second),
            _ => {
                self.raw.kind = kind;
                let end = at + (1 + extra) * SLOT_WORDS;
                return self.decode_fields(kind, at + 1, end).map(|()| true);
            }
        }
        Ok(false)
    }

    fn decode_fields(&mut self, kind: u8, at: usize, end: usize) -> Result<(), Error> {
        self.raw.fields = [0; FIELDS_MAX];
        self.text.clear();
        let Some(known) = Kind::of(kind) else {
            return Ok(());
        };
        let words = known.words();
        if words <= 1 && !known.has_text() {
            self.raw.fields[0] = self.buffer[at];
            return Ok(());
        }
        let payload = &self.buffer[at..end];
        if payload.len() < words {
            return Err(self.corrupt("a record's fields"));
        }
        self.raw.fields[..words].copy_from_slice(&payload[..words]);
        if known.has_text() {
            // An event without a field leaves the first word empty.
            let text = &payload[words.max(1).min(payload.len())..];
            let length = text.first().map(|length| usize::try_from(*length));
            let Some(Ok(length)) = length else {
                return Err(self.corrupt("a record's text"));
            };
            let mut bytes: Vec<u8> = text[1..].iter().flat_map(|w| w.to_le_bytes()).collect();
            if bytes.len() < length {
                return Err(self.corrupt("a record's text"));
            }
            bytes.truncate(length);
            match String::from_utf8(bytes) {
                Ok(text) => self.text = text,
                Err(_) => return Err(self.corrupt("a record's text")),
            }
        }
        Ok(())
    }

    /// Goes to the next block that counts; `false` at the end.
    fn next_block(&mut self) -> Result<bool, Error> {
        let info = &self.recording.segments[self.index];
        while self.next <= info.head {
            let sequence = info.at_least(self.next);
            self.next = sequence + 1;
            self.load(sequence)?;
            self.block = usize::try_from(sequence - self.start).unwrap_or(0) * BLOCK_WORDS;
            let words = &self.buffer[self.block..self.block + BLOCK_WORDS];
            let commit = words[block::COMMIT];
            if commit == 0 && (sequence == info.head || sequence == info.first()) {
                // Just begun, or just about to be overwritten, when the writer was killed.
                continue;
            }
            if !block_is_whole(words, sequence) {
                return Err(self.corrupt("a block"));
            }
            let slots = (commit & 0xffff) as usize;
            self.raw.ticks = words[block::TICKS];
            self.raw.subject = Id::from_word(words[block::SUBJECT]);
            (self.slots, self.slot) = (slots, 0);
            return Ok(true);
        }
        Ok(false)
    }

    /// Has the block with this sequence in the buffer.
    fn load(&mut self, sequence: u64) -> Result<(), Error> {
        let loaded = (self.buffer.len() / BLOCK_WORDS) as u64;
        if self.start > 0 && (self.start..self.start + loaded).contains(&sequence) {
            return Ok(());
        }
        let info = &self.recording.segments[self.index];
        self.start = self.recording.load(info, sequence, &mut self.buffer)?;
        Ok(())
    }
}
