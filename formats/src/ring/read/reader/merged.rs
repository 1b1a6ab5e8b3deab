//! Merges all segments of a recording into one sequence of records, in order of time.

use super::{Error, RawRecord, Record, Recording, SegmentReader};

/// Reads all segments in order of time.
pub struct Merged<'r> {
    /// The readers of segments that are at a record.
    readers: Vec<SegmentReader<'r>>,
    /// The reader whose record was given last.
    last: Option<usize>,
    /// The ticks of the earliest record of all others.
    others: u64,
}

impl<'r> Merged<'r> {
    pub(super) fn new(recording: &'r Recording) -> Result<Self, Error> {
        let mut readers = Vec::new();
        for index in 0..recording.segments() {
            let mut reader = recording.segment(index);
            if reader.advance()? {
                readers.push(reader);
            }
        }
        Ok(Merged {
            readers,
            last: None,
            others: 0,
        })
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// When the next block of a segment is damaged.
    pub fn read(&mut self) -> Result<Option<Record<'_>>, Error> {
        let next = self.advance()?;
        Ok(next.map(|at| self.readers[at].record()))
    }

    /// The next record, as its segment has it; `None` at the end.
    #[inline]
    pub fn read_raw(&mut self) -> Result<Option<RawRecord<'_>>, Error> {
        let next = self.advance()?;
        Ok(next.map(|at| self.readers[at].raw()))
    }

    /// Goes to the next record: that of which reader it is.
    #[inline]
    fn advance(&mut self) -> Result<Option<usize>, Error> {
        if let Some(last) = self.last {
            if !self.readers[last].advance()? {
                self.readers.remove(last);
            } else if self.readers[last].raw.ticks < self.others {
                return Ok(Some(last));
            }
        }
        let ticks = |at: usize| self.readers[at].raw.ticks;
        let earliest = (0..self.readers.len()).min_by_key(|at| ticks(*at));
        let others = (0..self.readers.len()).filter(|at| Some(*at) != earliest);
        self.others = others.map(ticks).min().unwrap_or(u64::MAX);
        self.last = earliest;
        Ok(earliest)
    }
}
