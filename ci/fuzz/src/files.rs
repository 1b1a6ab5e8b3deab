//! Files with checks, and texts: taken apart, damaged within, and made whole again.

use std::io::{Read, Write};

use beamline_reports::fuzz;

use crate::damage::damage;
use crate::random::Random;

/// Bytes that are damaged where nothing may move.
const WINDOW: usize = 16;

/// Damages bytes that are not zero, and moves nothing: what is far behind stays where others look for it.
fn damage_in_place(bytes: &mut [u8], random: &mut Random) {
    let mut at = 0;
    for _ in 0..32 {
        at = random.below(bytes.len()) / 8 * 8;
        if bytes[at..].iter().take(8).any(|byte| *byte != 0) {
            break;
        }
    }
    let end = bytes.len().min(at + WINDOW);
    let window = &mut bytes[at..end];
    let mut new = window.to_vec();
    damage(&mut new, window, random);
    new.resize(window.len(), 0);
    window.copy_from_slice(&new);
}

/// Damages a ring; mostly its checks are right again after it.
#[must_use]
pub(crate) fn ring(file: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut file = file.to_vec();
    if file.is_empty() || random.once_in(16) {
        damage(&mut file, other, random);
    } else {
        damage_in_place(&mut file, random);
    }
    if !random.once_in(8) {
        fuzz::seal(&mut file);
    }
    file
}

/// Damages a stream: what is in its frames, their order and number, or the file.
#[must_use]
pub(crate) fn stream(file: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut frames = fuzz::frames(file);
    if frames.is_empty() || random.once_in(8) {
        let mut file = file.to_vec();
        damage(&mut file, other, random);
        return file;
    }
    let (at, to) = (random.below(frames.len()), random.below(frames.len()));
    match random.below(8) {
        0 => frames.swap(at, to),
        1 => drop(frames.remove(at)),
        2 => {
            let mut more = fuzz::frames(other);
            let from = random.below(more.len());
            frames.extend(more.drain(from..).take(1));
        }
        3 => {
            let mut head: Vec<u8> = frames[at]
                .head
                .iter()
                .flat_map(|w| w.to_le_bytes())
                .collect();
            damage_in_place(&mut head, random);
            for (word, bytes) in frames[at].head.iter_mut().zip(head.as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
        4 => damage(&mut frames[at].payload, &[], random),
        _ if frames[at].payload.is_empty() => {}
        _ => damage_in_place(&mut frames[at].payload, random),
    }
    fuzz::stream(&mut frames)
}

/// Damages a profile: what is in its sections, their order and number, or the file.
#[must_use]
pub(crate) fn profile(file: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let (mut sections, others) = (sections(file), sections(other));
    if sections.is_empty() || random.once_in(16) {
        let mut file = file.to_vec();
        damage(&mut file, other, random);
        return file;
    }
    let (at, to) = (random.below(sections.len()), random.below(sections.len()));
    let another = others.get(random.below(others.len()));
    match random.below(12) {
        0 => sections.swap(at, to),
        1 => drop(sections.remove(at)),
        2 => sections.extend(another.cloned()),
        3 => sections[at].0 = sections[to].0,
        _ => {
            let another = another.map_or(&[][..], |(_, data)| data);
            damage(&mut sections[at].1, another, random);
        }
    }
    let mut file = file[..START].to_vec();
    for (tag, payload) in sections {
        file.extend(tag);
        file.extend((payload.len() as u32).to_le_bytes());
        file.extend([0; 4]);
        file.extend(payload);
    }
    fuzz::seal(&mut file);
    file
}

/// Bytes of a profile before its first section.
const START: usize = 12;

/// Tag and payload of each section.
fn sections(file: &[u8]) -> Vec<([u8; 4], Vec<u8>)> {
    let (mut sections, mut rest) = (Vec::new(), file.get(START..).unwrap_or_default());
    while let Some((&head, after)) = rest.split_first_chunk::<12>() {
        let [tag @ .., a, b, c, d, _, _, _, _] = head;
        let size = u32::from_le_bytes([a, b, c, d]) as usize;
        let Some((payload, after)) = after.split_at_checked(size) else {
            break;
        };
        sections.push((tag, payload.to_vec()));
        rest = after;
    }
    sections
}

/// Damages a term; some are compressed after it, and then the size may be wrong.
#[must_use]
pub(crate) fn term(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut plain = bytes.to_vec();
    if let [131, b'P', _, _, _, _, packed @ ..] = bytes
        && !random.once_in(4)
    {
        let mut inner = vec![131];
        let unpacked = flate2::read::ZlibDecoder::new(packed).read_to_end(&mut inner);
        if unpacked.is_ok() {
            plain = inner;
        }
    }
    damage(&mut plain, other, random);
    if !random.once_in(6) || plain.is_empty() {
        return plain;
    }
    let size = plain.len() - 1 + random.below(8) / 7;
    let mut packed = vec![131, b'P'];
    packed.extend((size as u32).to_be_bytes());
    let mut zlib = flate2::write::ZlibEncoder::new(packed, flate2::Compression::fast());
    zlib.write_all(&plain[1..]).expect("a Vec takes all");
    zlib.finish().expect("a Vec takes all")
}

/// What stands in the place of a word or a number of a text.
const WORDS: [&str; 16] = [
    "0",
    "-1",
    "1e999",
    "-0.0",
    "1.5",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "nan",
    "inf",
    "true",
    "null",
    "\"\"",
    "\"100%\"",
    "[]",
    "{}",
];

/// Damages a text: its words and marks, or its bytes.
#[must_use]
pub(crate) fn text(text: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut words = words(text);
    if words.is_empty() || random.once_in(4) {
        let mut text = text.to_vec();
        damage(&mut text, other, random);
        return text;
    }
    let (at, to) = (random.below(words.len()), random.below(words.len()));
    let end = words.len().min(at + 1 + random.below(12));
    match random.below(6) {
        0 => drop(words.drain(at..end)),
        1 => {
            let copy = words[at..end].to_vec();
            words.splice(to..to, copy);
        }
        2 => words.swap(at, to),
        3 => words[at] = words[to],
        _ => words[at] = random.one(&WORDS).as_bytes(),
    }
    words.concat()
}

/// Words, strings and single marks.
fn words(text: &[u8]) -> Vec<&[u8]> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let (mut words, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.first() {
        let length = match first {
            b'"' => 2 + rest[1..].iter().take_while(|byte| **byte != b'"').count(),
            _ => rest.iter().take_while(|byte| is_part(byte)).count().max(1),
        };
        let (word, after) = rest.split_at(length.min(rest.len()));
        words.push(word);
        rest = after;
    }
    words
}
