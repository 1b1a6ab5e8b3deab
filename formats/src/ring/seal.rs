//! Corrects the checks in rings and streams that a fuzzer has damaged. It does not trust the numbers in them.

use super::model::frame::{self, FIRST_MAX, HEAD, Part};
use super::model::layout::{BLOCK_SLOTS, Check, MAGIC, PAGE, block, header, row, words_of};
use super::model::names;
use super::write::stream::Packer;

/// A frame of a stream, with its payload decompressed.
pub struct Frame {
    /// What it holds, of which segment, and from where on; lengths and check are not looked at.
    pub head: [u64; 3],
    /// What it holds.
    pub payload: Vec<u8>,
}

/// The whole frames of a stream; an empty list for another file.
#[must_use]
pub fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut at = frame::MAGIC.len() + 8;
    while bytes.starts_with(&frame::MAGIC) && at + HEAD <= bytes.len() {
        let [part, index, sequence, length, packed] =
            [0, 1, 2, 3, 4].map(|i| word(&bytes[at..], i));
        let start = at + HEAD;
        let end = start.saturating_add(packed);
        let packed = bytes.get(start..end);
        let length = length.min(FIRST_MAX);
        let Some(Ok(payload)) = packed.map(|packed| zstd::bulk::decompress(packed, length)) else {
            break;
        };
        let head = [part, index, sequence].map(|word| word as u64);
        frames.push(Frame { head, payload });
        at = end.next_multiple_of(8);
    }
    frames
}

/// A stream of frames, the checks within them put right.
///
/// # Panics
/// When there is no memory to compress in.
#[must_use]
pub fn stream(frames: &mut [Frame]) -> Vec<u8> {
    let mut out = frame::MAGIC.to_vec();
    out.extend(1_u64.to_le_bytes());
    let mut packer = Packer::new().expect("there is memory");
    for frame in frames {
        match Part::of(frame.head[0]) {
            Some(Part::First) => seal_header(&mut frame.payload),
            Some(Part::Names) => seal_names(&mut frame.payload, 0, usize::MAX),
            Some(Part::Blocks) => {
                for page in 0..frame.payload.len() / PAGE {
                    seal_block(&mut frame.payload, page * PAGE);
                }
            }
            Some(Part::Last) | None => {}
        }
        packer
            .put_frame(frame.head, &frame.payload, &mut out)
            .expect("there is memory");
    }
    out
}

/// Puts the checks of a ring right.
pub fn seal(bytes: &mut [u8]) {
    if !bytes.starts_with(&MAGIC) || bytes.len() < PAGE {
        return;
    }
    seal_header(bytes);
    let at = word(bytes, header::NAMES);
    let end = at.saturating_add(word(bytes, header::NAMES_USED));
    seal_names(bytes, at, end);
    for (offset, blocks) in places(bytes) {
        let pages = (bytes.len() / PAGE).min(blocks);
        for page in 1..=pages {
            seal_block(bytes, offset.saturating_add(page * PAGE));
        }
    }
}

fn word(bytes: &[u8], at: usize) -> usize {
    let word = bytes.get(at * 8..at * 8 + 8).map(words_of);
    let word = word.and_then(|mut words| words.next()).unwrap_or(0);
    usize::try_from(word).unwrap_or(usize::MAX)
}

fn put(bytes: &mut [u8], at: usize, word: u64) {
    if let Some(place) = bytes.get_mut(at..at.saturating_add(8)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

/// The check of a part of the file, of the part's own words.
fn check_of(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let part = bytes.get(at..at.checked_add(length)?)?;
    Some(Check::of(words_of(part)).word())
}

fn seal_header(bytes: &mut [u8]) {
    let (text, text_bytes) = (
        word(bytes, header::DESCRIPTION),
        word(bytes, header::DESCRIPTION_BYTES),
    );
    let rows = word(bytes, header::SEGMENT_COUNT).saturating_mul(row::WORDS * 8);
    let of_text = check_of(bytes, text, text_bytes);
    let of_rows = check_of(bytes, word(bytes, header::SEGMENTS), rows);
    put(bytes, header::DESCRIPTION_CHECK * 8, of_text.unwrap_or(0));
    put(bytes, header::SEGMENTS_CHECK * 8, of_rows.unwrap_or(0));
    let of_header = check_of(bytes, 0, header::CHECK * 8);
    put(bytes, header::CHECK * 8, of_header.unwrap_or(0));
}

/// Where segments begin, and their blocks.
fn places(bytes: &[u8]) -> Vec<(usize, usize)> {
    let (table, rows) = (
        word(bytes, header::SEGMENTS),
        word(bytes, header::SEGMENT_COUNT),
    );
    let end = table.saturating_add(rows.saturating_mul(row::WORDS * 8));
    let table = bytes.get(table..end).unwrap_or_default();
    table
        .chunks_exact(row::WORDS * 8)
        .map(|row| (word(row, row::OFFSET), word(row, row::BLOCKS)))
        .collect()
}

fn seal_names(bytes: &mut [u8], mut at: usize, end: usize) {
    let end = end.min(bytes.len());
    while at < end && at + 8 <= bytes.len() {
        let first = word(&bytes[at..], 0) as u64 & ((1 << 40) - 1);
        let next = at + 8 + ((first & 0xffff_ffff) as usize).next_multiple_of(8);
        let Some(payload) = bytes.get(at + 8..next) else {
            return;
        };
        let payload: Vec<u64> = words_of(payload).collect();
        put(bytes, at, first | names::check(first, &payload));
        at = next;
    }
}

/// Has the block at byte `at` committed as it stands there.
pub fn seal_block(bytes: &mut [u8], at: usize) {
    let Some(page) = bytes.get(at..at.saturating_add(PAGE)) else {
        return;
    };
    let words: Vec<u64> = words_of(page).collect();
    let slots = (words[block::COMMIT] & 0xffff) as usize;
    if slots <= BLOCK_SLOTS {
        let check = Check::of_block(&words, slots);
        put(bytes, at, check.commit(words[block::SEQUENCE], slots));
    }
}
