//! Streams: recordings of any length, which take the contents out of a ring file while it is written, and compress
//! them.
//!
//! [`Drain`] writes the frames that `model/frame.rs` describes, and `read/frames.rs` finds what is in them.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::ring::model::error::Error;
use crate::ring::model::frame::{FRAME_BLOCKS, FRAME_MAX, MAGIC, Part, read_at};
use crate::ring::model::layout::{
    Check, Header, PAGE, Place, VERSION, block, block_is_whole, header, read_places, row, segment,
    whole_words, words_of,
};

/// How often is looked at most whether the newest block of a segment is whole.
const TRIES: usize = 1000;

/// How well frames are compressed: the fastest.
const LEVEL: i32 = 1;

/// Makes frames, in memory that it keeps.
pub(in crate::ring) struct Packer {
    compressor: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
}

impl Packer {
    pub(in crate::ring) fn new() -> io::Result<Packer> {
        Ok(Packer {
            compressor: zstd::bulk::Compressor::new(LEVEL)?,
            packed: Vec::new(),
        })
    }

    /// Appends a frame: the part it is, of which segment, from where on, and what it holds.
    pub(in crate::ring) fn put_frame(
        &mut self,
        head: [u64; 3],
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let packed = &mut self.packed;
        packed.clear();
        packed.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        self.compressor.compress_to_buffer(bytes, packed)?;
        let [part, index, sequence] = head;
        let words = [
            part,
            index,
            sequence,
            bytes.len() as u64,
            packed.len() as u64,
        ];
        let check = Check::of(words.iter().copied().chain(words_of(packed)));
        let words = words.into_iter().chain([check.word()]);
        out.extend(words.flat_map(u64::to_le_bytes));
        out.extend_from_slice(packed);
        out.resize(out.len().next_multiple_of(8), 0);
        Ok(())
    }
}

/// How much of a ring was taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Took {
    /// There was nothing new.
    Nothing,
    /// So little that the writers can go on for a while: a small frame costs more for each record than a large one.
    Little,
    /// Enough that more should be taken at once.
    Much,
}

impl Took {
    fn of_some(any: bool) -> Took {
        if any { Took::Little } else { Took::Nothing }
    }
}

/// Takes the contents of a ring while they are written, and writes a stream.
pub struct Drain {
    ring: File,
    header: Header,
    places: Vec<Place>,
    /// Of each segment, the next block to be taken.
    next: Vec<u64>,
    names: u64,
    out: File,
    packer: Packer,
    buffer: Vec<u8>,
    /// Blocks that are taken, and their words.
    blocks: Vec<u8>,
    words: Vec<u64>,
    /// Nothing is taken after a gap; and there has been one.
    keeps_whole: bool,
    is_cut: bool,
}

impl Drain {
    /// Takes from the ring at `ring`, and writes to `out`, what it held is lost.
    ///
    /// # Errors
    /// When the ring is none, or cannot be drained, or `out` not written.
    pub fn begin(ring: &Path, out: &Path) -> Result<Drain, Error> {
        let ring = File::options().read(true).write(true).open(ring)?;
        let header = Header::read(&read_at(&ring, 0, PAGE as u64)?)?;
        let rows = header.word(header::SEGMENT_COUNT) * row::WORDS as u64 * 8;
        let table = read_at(&ring, header.word(header::SEGMENTS), rows)?;
        let places = read_places(&header, &table)?;
        let mut drain = Drain {
            next: vec![1; places.len()],
            names: 0,
            out: File::create(out)?,
            packer: Packer::new()?,
            buffer: Vec::new(),
            blocks: Vec::new(),
            words: Vec::new(),
            keeps_whole: false,
            is_cut: false,
            ring,
            header,
            places,
        };
        let mut head = MAGIC.to_vec();
        head.extend(u64::from(VERSION).to_le_bytes());
        drain.out.write_all(&head)?;
        let first = read_at(&drain.ring, 0, drain.header.word(header::NAMES))?;
        drain.write(Part::First, 0, 0, &first)?;
        Ok(drain)
    }

    /// Writes a frame.
    fn write(&mut self, part: Part, index: u64, sequence: u64, bytes: &[u8]) -> io::Result<()> {
        self.buffer.clear();
        let head = [part as u64, index, sequence];
        self.packer.put_frame(head, bytes, &mut self.buffer)?;
        self.out.write_all(&self.buffer)
    }

    /// Takes what there is, a frame full of each segment at most. Blocks in which records are written, or grow, are left.
    ///
    /// # Errors
    /// When the stream cannot be written; nothing more is to be taken then.
    pub fn take(&mut self) -> Result<Took, Error> {
        let mut took = Took::of_some(self.take_names()?);
        for index in 0..self.places.len() {
            let before = self.next[index];
            let end = self.ready(index)?;
            let any = Took::of_some(self.take_blocks(index, end)?);
            let blocks = self.next[index] - before;
            let is_much = blocks >= FRAME_BLOCKS.min(self.places[index].blocks / 4).max(1);
            took = took.max(if is_much { Took::Much } else { any });
        }
        Ok(took)
    }

    /// Takes all that is left, when the ring is written no more.
    ///
    /// # Errors
    /// When the stream cannot be written.
    pub fn finish(mut self) -> Result<(), Error> {
        for index in 0..self.places.len() {
            let end = self.there(index)?.1 + 1;
            while self.take_blocks(index, end)? {}
        }
        self.end([])
    }

    /// Writes the last frame, with other words in the header.
    pub(in crate::ring) fn end(
        mut self,
        words: impl IntoIterator<Item = (usize, u64)>,
    ) -> Result<(), Error> {
        self.take_names()?;
        let mut last = read_at(&self.ring, 0, PAGE as u64)?;
        for (at, word) in words {
            last[at * 8..(at + 1) * 8].copy_from_slice(&word.to_le_bytes());
        }
        for place in &self.places {
            last.extend(read_at(&self.ring, place.offset, PAGE as u64)?);
        }
        self.write(Part::Last, 0, 0, &last)?;
        self.out.sync_data()?;
        Ok(())
    }

    fn take_names(&mut self) -> Result<bool, Error> {
        let used = self.word_at(header::NAMES_USED as u64 * 8)?;
        let used = used.min(self.header.word(header::NAMES_BYTES));
        let mut any = false;
        while self.names < used {
            let bytes = (used - self.names).min(FRAME_MAX as u64);
            let at = self.header.word(header::NAMES) + self.names;
            let names = read_at(&self.ring, at, bytes)?;
            self.write(Part::Names, 0, self.names, &names)?;
            self.names += bytes;
            any = true;
        }
        Ok(any)
    }

    fn word_at(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.ring.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Takes blocks of a segment before `end`, a frame full at most.
    fn take_blocks(&mut self, index: usize, end: u64) -> Result<bool, Error> {
        let place = self.places[index];
        let (oldest, head) = self.there(index)?;
        self.is_cut |= self.keeps_whole && oldest > self.next[index];
        if self.is_cut {
            return Ok(false);
        }
        // What has been overwritten is gone.
        let mut sequence = self.next[index].max(oldest);
        let (first, mut whole) = (sequence, 0);
        let most = FRAME_BLOCKS.min(place.before_wrap(first));
        self.read_run(place.block_at(first), most.min(end.saturating_sub(first)))?;
        for words in self.words.chunks_exact(PAGE / 8) {
            if !block_is_whole(words, sequence) {
                if sequence == head {
                    // It is being written, or was just begun.
                    break;
                }
                if self.keeps_whole {
                    self.is_cut = true;
                    break;
                }
                // Overwritten just now, or never filled: those after it are another run.
                sequence += 1;
                break;
            }
            whole += PAGE;
            sequence += 1;
        }
        let moved = self.next[index] < sequence;
        self.next[index] = sequence;
        if whole > 0 {
            let blocks = std::mem::take(&mut self.blocks);
            self.write(Part::Blocks, index as u64, first, &blocks[..whole])?;
            self.blocks = blocks;
        }
        if moved {
            self.drained(index)?;
        }
        Ok(moved)
    }

    /// Reads `pages` pages of the ring from `at` on.
    fn read_run(&mut self, at: u64, pages: u64) -> io::Result<()> {
        self.blocks.resize(pages as usize * PAGE, 0);
        self.ring.read_exact_at(&mut self.blocks, at)?;
        whole_words(&self.blocks, &mut self.words);
        Ok(())
    }

    /// Says how far blocks of a segment have been taken.
    fn drained(&self, index: usize) -> io::Result<()> {
        // A writer that waits for room sees this in its mapping of the file.
        let drained = (self.next[index] - 1).to_le_bytes();
        let at = self.places[index].offset + segment::DRAINED as u64 * 8;
        self.ring.write_all_at(&drained, at)
    }

    /// The oldest block there is of a segment, and the newest.
    fn there(&self, index: usize) -> io::Result<(u64, u64)> {
        let place = self.places[index];
        let head = self.word_at(place.offset)?;
        Ok((head.saturating_sub(place.blocks - 1).max(1), head))
    }

    /// The first block of a segment that is not to be taken yet: it is being filled, or records may grow in it.
    fn ready(&self, index: usize) -> io::Result<u64> {
        // In this order: what grows is said before the newest block is another one.
        let (_, head) = self.there(index)?;
        let grows = self.word_at(self.places[index].offset + segment::GROWS as u64 * 8)?;
        Ok(if grows == 0 { head } else { grows.min(head) })
    }

    /// Has something been overwritten that was to be taken next, after [`Drain::take_since`]?
    pub(in crate::ring) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Takes what was written since this monotonic time, but for blocks that are not ready: all of it is read before
    /// any of it is written, since it is being overwritten. From then on nothing is taken after a gap.
    pub(in crate::ring) fn take_since(&mut self, since_ns: u64) -> Result<(), Error> {
        self.keeps_whole = true;
        let mut taken = Vec::new();
        for index in 0..self.places.len() {
            let end = self.ready(index)?;
            let (oldest, head) = self.there(index)?;
            let first = self.first_since(index, oldest, head, since_ns)?;
            self.next[index] = end.max(first);
            taken.push((first, self.read_blocks(index, first, end)?));
        }
        self.take_names()?;
        for (index, (first, blocks)) in taken.into_iter().enumerate() {
            let mut first = first;
            // Those before one that was overwritten meanwhile are gone too.
            let whole = blocks.chunks_exact(PAGE).zip(first..);
            let torn = whole.filter(|(block, sequence)| {
                let words: Vec<u64> = words_of(block).collect();
                !block_is_whole(&words, *sequence)
            });
            let skipped = torn.last().map_or(0, |(_, sequence)| sequence + 1 - first);
            first += skipped;
            for frame in blocks[skipped as usize * PAGE..].chunks(FRAME_MAX) {
                self.write(Part::Blocks, index as u64, first, frame)?;
                first += (frame.len() / PAGE) as u64;
            }
        }
        Ok(())
    }

    /// The block of a segment in which this monotonic time is, or the oldest.
    fn first_since(&self, index: usize, oldest: u64, head: u64, ns: u64) -> io::Result<u64> {
        let (mut low, mut high) = (oldest, head);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let at = self.places[index].block_at(middle) + block::ANCHOR_NS as u64 * 8;
            match self.word_at(at)? > ns {
                true => high = middle - 1,
                false => low = middle,
            }
        }
        Ok(low)
    }

    /// Blocks of a segment from `first` to before `end`.
    fn read_blocks(&self, index: usize, first: u64, end: u64) -> io::Result<Vec<u8>> {
        let place = self.places[index];
        let (mut next, mut bytes) = (first, Vec::new());
        while next < end {
            let blocks = place.before_wrap(next).min(end - next);
            bytes.extend(read_at(
                &self.ring,
                place.block_at(next),
                blocks * PAGE as u64,
            )?);
            next += blocks;
        }
        Ok(bytes)
    }

    /// Takes all there is, with the newest blocks as far as they are filled. A record of an earlier block may grow
    /// meanwhile, and what its process does then is in the newest block: that one is read first.
    pub(in crate::ring) fn take_rest(&mut self) -> Result<(), Error> {
        for index in 0..self.places.len() {
            let newest = self.newest(index)?;
            let end = match &newest {
                Some((sequence, _)) => *sequence,
                None => self.there(index)?.1,
            };
            while self.take_blocks(index, end)? {}
            if let Some((sequence, block)) = newest
                && !self.is_cut
            {
                self.write(Part::Blocks, index as u64, sequence, &block)?;
                self.next[index] = sequence + 1;
            }
        }
        Ok(())
    }

    /// The newest block of a segment, and its sequence; `None` where it has been taken, or is not whole for long.
    fn newest(&self, index: usize) -> Result<Option<(u64, Vec<u8>)>, Error> {
        for _ in 0..TRIES {
            let (_, head) = self.there(index)?;
            if head < self.next[index] {
                break;
            }
            let block = read_at(&self.ring, self.places[index].block_at(head), PAGE as u64)?;
            let words: Vec<u64> = words_of(&block).collect();
            if block_is_whole(&words, head) {
                return Ok(Some((head, block)));
            }
        }
        Ok(None)
    }
}
