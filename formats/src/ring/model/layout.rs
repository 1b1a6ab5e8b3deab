//! The layout of a ring file, which the writer and the reader share. `docs/FORMAT.md` describes it in words.
//!
//! All numbers are 64-bit words, least significant byte first, unless said otherwise.

use beamline_settings::names;

use super::error::Error;
use super::event::Kind;

/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 2;

/// First bytes of a ring file.
pub(in crate::ring) const MAGIC: [u8; 8] = *b"BLRING\r\n";

/// Bytes of a page: header, tables and segments start at multiples of it.
pub(in crate::ring) const PAGE: usize = 4096;
/// Words of a page.
pub(in crate::ring) const PAGE_WORDS: usize = PAGE / 8;

/// The most memory that description or names may take, whatever the file says.
pub(in crate::ring) const TABLE_MAX: u64 = 1 << 30;

/// Words of a block: it is a page.
pub(in crate::ring) const BLOCK_WORDS: usize = PAGE_WORDS;
/// Words of a slot: each record begins with one.
pub(in crate::ring) const SLOT_WORDS: usize = 2;
/// Words of a block before its first slot.
pub(in crate::ring) const BLOCK_HEAD: usize = 8;
/// Slots of a block.
pub(in crate::ring) const BLOCK_SLOTS: usize = (BLOCK_WORDS - BLOCK_HEAD) / SLOT_WORDS;

/// Words of a block's head.
pub(in crate::ring) mod block {
    /// Check (high 32 bits), low 16 bits of the sequence, slots that count; 0: nothing does.
    pub(in crate::ring) const COMMIT: usize = 0;
    /// How many blocks came before it in its segment, and 1.
    pub(in crate::ring) const SEQUENCE: usize = 1;
    /// Ticks that the first record's difference is added to.
    pub(in crate::ring) const TICKS: usize = 2;
    /// Whom the first record is of.
    pub(in crate::ring) const SUBJECT: usize = 3;
    /// Ticks when it was begun.
    pub(in crate::ring) const ANCHOR_TICKS: usize = 4;
    /// Monotonic nanoseconds at the same time.
    pub(in crate::ring) const ANCHOR_NS: usize = 5;
}

/// Kinds of records that are part of the format and no event.
pub(in crate::ring) mod kind {
    /// The next records are of another subject.
    pub(in crate::ring) const SUBJECT: u8 = 254;
    /// The next record is this many ticks later than the last, and what its own difference says.
    pub(in crate::ring) const TIME: u8 = 255;
}

/// Words of the header.
pub(in crate::ring) mod header {
    pub(in crate::ring) const MAGIC: usize = 0;
    pub(in crate::ring) const VERSION: usize = 1;
    pub(in crate::ring) const LENGTH: usize = 2;
    pub(in crate::ring) const WHEN_FULL: usize = 3;
    pub(in crate::ring) const CLOCK: usize = 4;
    pub(in crate::ring) const NS_PER_4G: usize = 5;
    pub(in crate::ring) const START_TICKS: usize = 6;
    pub(in crate::ring) const START_NS: usize = 7;
    pub(in crate::ring) const START_UNIX_NS: usize = 8;
    pub(in crate::ring) const TOKEN: usize = 9;
    pub(in crate::ring) const OS_PID: usize = 10;
    pub(in crate::ring) const DESCRIPTION: usize = 11;
    pub(in crate::ring) const DESCRIPTION_BYTES: usize = 12;
    pub(in crate::ring) const NAMES: usize = 13;
    pub(in crate::ring) const NAMES_BYTES: usize = 14;
    pub(in crate::ring) const SEGMENTS: usize = 15;
    pub(in crate::ring) const SEGMENT_COUNT: usize = 16;
    /// Of the description.
    pub(in crate::ring) const DESCRIPTION_CHECK: usize = 17;
    /// Of the segment table.
    pub(in crate::ring) const SEGMENTS_CHECK: usize = 18;
    /// Of all words before this one.
    pub(in crate::ring) const CHECK: usize = 19;
    /// Bytes of names that count. This word and those after it change while the recording is made.
    pub(in crate::ring) const NAMES_USED: usize = 64;
    pub(in crate::ring) const NAMES_LOST: usize = 65;
    /// Set when the recording has ended.
    pub(in crate::ring) const END_TICKS: usize = 72;
    pub(in crate::ring) const END_NS: usize = 73;
    /// 1 when the two words before it count.
    pub(in crate::ring) const ENDED: usize = 74;
    /// How often something happened that is waited for; then what it was last: kind, id, monotonic nanoseconds.
    pub(in crate::ring) const TRIGGERS: usize = 80;
    /// In what was kept of a ring: why, kind, id, monotonic nanoseconds of when, since when, until when, and whether
    /// it was cut.
    pub(in crate::ring) const KEPT: usize = 88;
}

/// Words of a row of the segment table.
pub(in crate::ring) mod row {
    /// The scheduler that writes it; 0 for all other threads together.
    pub(in crate::ring) const LABEL: usize = 0;
    /// Byte at which it starts.
    pub(in crate::ring) const OFFSET: usize = 1;
    /// Its blocks.
    pub(in crate::ring) const BLOCKS: usize = 2;
    pub(in crate::ring) const WORDS: usize = 4;
}

/// Words of a segment's first page; its blocks follow it.
pub(in crate::ring) mod segment {
    /// Sequence of the newest block; 0: none.
    pub(in crate::ring) const HEAD: usize = 0;
    /// Sequence of the newest block that was taken out into a stream.
    pub(in crate::ring) const DRAINED: usize = 8;
    /// Sequence of the first block in which records may still grow; 0: none may. It is set before [`HEAD`] passes that block.
    pub(in crate::ring) const GROWS: usize = 16;
    /// Records written, for each kind.
    pub(in crate::ring) const WRITTEN: usize = 128;
    /// Records that were not written since there was no room, for each kind.
    pub(in crate::ring) const DROPPED: usize = 256;
}

/// What the recorder does with a record for which there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenFull {
    /// It takes the place of the oldest.
    #[default]
    Overwrite,
    /// It is not written, nor is any other after it.
    Stop,
    /// The program waits until there is room: somebody takes records out into a stream.
    Wait,
}

impl WhenFull {
    pub(in crate::ring) fn word(self) -> u64 {
        match self {
            WhenFull::Overwrite => 0,
            WhenFull::Stop => 1,
            WhenFull::Wait => 2,
        }
    }

    pub(in crate::ring) fn from_word(word: u64) -> Option<WhenFull> {
        let mut all = WhenFull::ALL.iter().copied();
        all.find(|when| when.word() == word)
    }
}

names!(WhenFull {
    Overwrite = "overwrite", "New records overwrite the oldest";
    Stop = "stop", "The recording stops";
    Wait = "wait", "The program waits until there is room again; not with --ring or --dump-on";
});

/// A running check of words: what follows depends on all that went before.
#[derive(Clone, Copy)]
pub(in crate::ring) struct Check(u64);

impl Check {
    pub(in crate::ring) fn new() -> Check {
        Check(0x9e37_79b9_7f4a_7c15)
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub(in crate::ring) fn add(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0xd6e8_feb8_6659_fd93_u128;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    /// That of the words of a block behind its commit word, of which so many slots count: all but numbers that grow in their
    /// place.
    pub(in crate::ring) fn of_block(words: &[u64], slots: usize) -> Check {
        let (head, rest) = words[1..BLOCK_HEAD + slots * SLOT_WORDS].split_at(BLOCK_HEAD - 1);
        let mut check = Check::of(head.iter().copied());
        let mut more_of_record = 0;
        for slot in rest.chunks(SLOT_WORDS) {
            let begins = more_of_record == 0;
            more_of_record = match begins {
                true => extra_slots(slot[0]),
                false => more_of_record - 1,
            };
            check.add(slot[0]);
            if !(begins && grows(slot[0])) {
                check.add(slot[1]);
            }
        }
        check
    }

    pub(in crate::ring) fn of(words: impl IntoIterator<Item = u64>) -> Check {
        let mut check = Check::new();
        words.into_iter().for_each(|word| check.add(word));
        check
    }

    pub(in crate::ring) fn word(self) -> u64 {
        self.0
    }

    /// The word that commits `slots` slots of the block with this sequence.
    #[inline(always)]
    pub(in crate::ring) fn commit(self, sequence: u64, slots: usize) -> u64 {
        (self.0 >> 32 << 32) | (sequence & 0xffff) << 16 | slots as u64
    }
}

/// The words of bytes, the last one filled up with zeros.
pub(in crate::ring) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}

/// The words of bytes that are whole words, in the place of what the buffer held.
pub(in crate::ring) fn whole_words(bytes: &[u8], words: &mut Vec<u64>) {
    let (chunks, _) = bytes.as_chunks::<8>();
    words.clear();
    words.extend(chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)));
}

/// Bytes in whole pages.
pub(in crate::ring) fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE as u64) * PAGE as u64
}

/// The first word of a record.
#[inline(always)]
pub(in crate::ring) fn first_word(kind: u8, extra_slots: usize, delta: u32) -> u64 {
    u64::from(kind) | (extra_slots as u64) << 8 | u64::from(delta) << 32
}

/// The slots of a record behind its first one.
pub(in crate::ring) fn extra_slots(first_word: u64) -> usize {
    (first_word >> 8 & 0xff) as usize
}

/// Whether it begins a record whose number grows in its place.
#[inline(always)]
pub(in crate::ring) fn grows(first_word: u64) -> bool {
    first_word as u8 == Kind::OrderAgain as u8
}

/// A segment's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ring) struct Place {
    pub(in crate::ring) label: u64,
    /// Bytes from the start of the file.
    pub(in crate::ring) offset: u64,
    pub(in crate::ring) blocks: u64,
}

impl Place {
    /// Bytes with its first page.
    pub(in crate::ring) fn bytes(&self) -> u64 {
        (self.blocks + 1) * PAGE as u64
    }
    /// How many blocks, this one the first, lie behind each other.
    pub(in crate::ring) fn before_wrap(&self, sequence: u64) -> u64 {
        self.blocks - (sequence - 1) % self.blocks
    }
    /// Where the block with this sequence is.
    pub(in crate::ring) fn block_at(&self, sequence: u64) -> u64 {
        self.offset + PAGE as u64 * (1 + (sequence - 1) % self.blocks)
    }
}

/// # Errors
/// When this version is newer than [`VERSION`].
pub(in crate::ring) fn check_version(version: u64) -> Result<(), Error> {
    if version > u64::from(VERSION) {
        let version = u32::try_from(version).unwrap_or(u32::MAX);
        return Err(Error::Newer { version });
    }
    Ok(())
}

/// Are these the words of the block with this sequence, as its commit word says?
pub(in crate::ring) fn block_is_whole(words: &[u64], sequence: u64) -> bool {
    let commit = words[block::COMMIT];
    let slots = (commit & 0xffff) as usize;
    if words[block::SEQUENCE] != sequence || slots > BLOCK_SLOTS {
        return false;
    }
    Check::of_block(words, slots).commit(sequence, slots) == commit
}

/// The header's words, checked.
#[derive(Clone, Debug)]
pub(in crate::ring) struct Header {
    words: Vec<u64>,
}

impl Header {
    /// # Errors
    /// When the page is not a header this version reads.
    pub(in crate::ring) fn read(page: &[u8]) -> Result<Header, Error> {
        if page.is_empty() {
            return Err(Error::Empty);
        }
        if !page.starts_with(&MAGIC) {
            return Err(if page.len() < PAGE && page.iter().all(|byte| *byte == 0) {
                Error::Empty
            } else {
                Error::Foreign
            });
        }
        let words: Vec<u64> = words_of(page).collect();
        let version = words.get(header::VERSION).copied().unwrap_or(0);
        if page.len() >= 16 {
            check_version(version)?;
        }
        if words.len() < PAGE_WORDS {
            let (length, expected) = (page.len() as u64, PAGE as u64);
            return Err(Error::Truncated { length, expected });
        }
        let check = Check::of(words[..header::CHECK].iter().copied());
        if check.word() != words[header::CHECK] || version == 0 {
            return Err(Error::Corrupt {
                what: "the header",
                at: 0,
            });
        }
        Ok(Header { words })
    }

    pub(in crate::ring) fn word(&self, at: usize) -> u64 {
        self.words[at]
    }
}

/// The rows of the segment table, checked against the file's length.
pub(in crate::ring) fn read_places(header: &Header, table: &[u8]) -> Result<Vec<Place>, Error> {
    let at = header.word(header::SEGMENTS);
    let corrupt = || Error::Corrupt {
        what: "the table of segments",
        at,
    };
    let words: Vec<u64> = words_of(table).collect();
    if Check::of(words.iter().copied()).word() != header.word(header::SEGMENTS_CHECK) {
        return Err(corrupt());
    }
    let length = header.word(header::LENGTH);
    let mut places = Vec::new();
    for row in words.chunks_exact(row::WORDS) {
        let place = Place {
            label: row[row::LABEL],
            offset: row[row::OFFSET],
            blocks: row[row::BLOCKS],
        };
        let end = place
            .blocks
            .checked_add(1)
            .and_then(|pages| pages.checked_mul(PAGE as u64))
            .and_then(|bytes| bytes.checked_add(place.offset));
        if place.blocks == 0
            || !place.offset.is_multiple_of(PAGE as u64)
            || end.is_none_or(|end| end > length)
        {
            return Err(corrupt());
        }
        places.push(place);
    }
    Ok(places)
}

const _: () = {
    assert!(BLOCK_HEAD.is_multiple_of(SLOT_WORDS));
    assert!(
        BLOCK_SLOTS < 256,
        "a record's extra slots are counted in a byte"
    );
    assert!(segment::DROPPED + super::event::KINDS <= PAGE_WORDS);
    assert!(segment::WRITTEN + super::event::KINDS <= segment::DROPPED);
    assert!(header::CHECK < header::NAMES_USED);
};
