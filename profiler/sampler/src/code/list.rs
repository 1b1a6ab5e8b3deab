//! The list of machine code that BeamAsm keeps for debuggers: an entry for each module, with the names and the lines of its
//! functions.
//!
//! Source: the layout is that of `beam_jit_metadata.cpp`, the same in OTP 25 to 29, behind the interface that GDB documents
//! for compilers at run time.

use std::fmt;
use std::ops::ControlFlow;

use crate::memory::{Mapping, Memory, words_of};

/// The most entries that a list may have: there are fewer modules in any node.
pub(super) const ENTRIES_MAX: usize = 1 << 17;

/// The most bytes that the names and lines of one module take.
const INFO_MAX: u64 = 64 << 20;

/// The most bytes of data that are searched for the list.
const DATA_MAX: usize = 256 << 20;

/// Bytes of data that are searched at once.
const CHUNK: usize = 1 << 20;

/// Words of an entry.
const ENTRY_WORDS: usize = 4;

/// Words of the descriptor.
const DESCRIPTOR_WORDS: usize = 3;

/// The words at the head of an entry's information that tell it from another one: kind, base, counts.
pub(super) const HEAD_WORDS: usize = 3;

/// Bytes before the texts of a module, of a function, of a line.
const MODULE_HEAD: usize = 32;
const RANGE_HEAD: usize = 16;
const LINE_HEAD: usize = 12;

/// Why a list cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Its memory cannot be read.
    Unreadable,
    /// It has no end.
    Endless,
    /// An entry is none.
    Entry,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Damage::Unreadable => "the list of its machine code cannot be read",
            Damage::Endless => "the list of its machine code has no end",
            Damage::Entry => "the list of its machine code is damaged",
        })
    }
}

/// The address of a list's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListAt(pub u64);

/// An entry of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    at: u64,
    info: u64,
    bytes: u64,
}

/// A function, as the list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its first byte.
    pub start: u64,
    /// Behind its last byte.
    pub end: u64,
    /// Its name.
    pub name: String,
    /// Where lines begin.
    pub lines: Vec<(u64, u32)>,
}

/// What an entry tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Info {
    /// Of the emulator.
    Emulator {
        /// Where it returns to when a process ends.
        normal_exit: u64,
    },
    /// Of a module, or of the fragments that all modules share.
    Module {
        /// Its name.
        name: String,
        /// Its functions.
        ranges: Vec<Range>,
    },
}

/// Reads numbers and texts from bytes, and never past their end.
struct Bytes<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<u64> {
        let bytes = self.take(N)?.iter().rev();
        Some(bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number::<4>()?).ok()
    }

    /// A text of `bytes` bytes, of which the last is zero.
    fn text(&mut self, bytes: u64) -> Option<String> {
        let bytes = self.take(usize::try_from(bytes).ok()?)?;
        let (zero, text) = bytes.split_last()?;
        let text = std::str::from_utf8(text).ok()?;
        let is_text = *zero == 0 && !text.chars().any(|c| c == '\0');
        is_text.then(|| text.to_owned())
    }
}

/// Reads what an entry points to.
fn parse(bytes: &[u8]) -> Option<Info> {
    let mut head = Bytes { bytes, at: 0 };
    let kind = head.small()?;
    head.at = 8;
    match kind {
        0 => {
            head.at = 16;
            let normal_exit = head.number::<8>()?;
            Some(Info::Emulator { normal_exit })
        }
        1 => {
            let base = head.number::<8>()?;
            let count = head.small()?;
            let size = head.number::<4>()?;
            let length = head.number::<2>()?;
            let name = head.text(length)?;
            let at = MODULE_HEAD.checked_add(usize::try_from(length).ok()?)?;
            let mut rest = Bytes { bytes, at };
            let code = base..base.checked_add(size)?;
            let ranges = (0..count).map(|_| range(&mut rest, &code));
            let ranges: Option<Vec<Range>> = ranges.collect();
            Some(Info::Module {
                name,
                ranges: ranges?,
            })
        }
        _ => None,
    }
}

/// Reads a function of code that is there.
fn range(bytes: &mut Bytes<'_>, code: &std::ops::Range<u64>) -> Option<Range> {
    let begin = bytes.at;
    let (start, end) = (bytes.number::<4>()?, bytes.number::<4>()?);
    let count = bytes.small()?;
    let length = bytes.number::<2>()?;
    let name = bytes.text(length)?;
    bytes.at = begin + RANGE_HEAD + usize::try_from(length).ok()?;
    let (start, end) = (code.start.checked_add(start)?, code.start.checked_add(end)?);
    if start > end || end > code.end {
        return None;
    }
    let mut lines = Vec::new();
    for _ in 0..count {
        let begin = bytes.at;
        let (at, line) = (bytes.number::<4>()?, bytes.small()?);
        let length = bytes.number::<2>()?;
        bytes.at = begin + LINE_HEAD;
        bytes.at = bytes.at.checked_add(usize::try_from(length).ok()?)?;
        if bytes.at > bytes.bytes.len() {
            return None;
        }
        lines.push((code.start.checked_add(at)?, line));
    }
    lines.sort_unstable();
    Some(Range {
        start,
        end,
        name,
        lines,
    })
}

/// Reads an entry at an address: the next one, and itself.
fn entry(memory: &impl Memory, at: u64) -> Result<(u64, Entry), Damage> {
    let words = memory.words::<ENTRY_WORDS>(at);
    let [next, _, info, bytes] = words.ok_or(Damage::Unreadable)?;
    if at & 7 != 0 || info == 0 || !(16..=INFO_MAX).contains(&bytes) {
        return Err(Damage::Entry);
    }
    Ok((next, Entry { at, info, bytes }))
}

/// What is at the head of an entry's information.
pub(super) fn head(memory: &impl Memory, entry: &Entry) -> Result<[u64; HEAD_WORDS], Damage> {
    let words = memory.words::<HEAD_WORDS>(entry.info);
    words.ok_or(Damage::Unreadable)
}

/// Reads what an entry points to.
pub(super) fn info(memory: &impl Memory, entry: &Entry) -> Result<Info, Damage> {
    let mut bytes = vec![0; usize::try_from(entry.bytes).map_err(|_| Damage::Entry)?];
    if !memory.read(entry.info, &mut bytes) {
        return Err(Damage::Unreadable);
    }
    parse(&bytes).ok_or(Damage::Entry)
}

/// All entries of a list.
pub(super) fn walk(memory: &impl Memory, list: ListAt) -> Result<Vec<Entry>, Damage> {
    let words = memory.words::<DESCRIPTOR_WORDS>(list.0);
    let [_, _, mut next] = words.ok_or(Damage::Unreadable)?;
    let mut entries = Vec::new();
    while next != 0 {
        if entries.len() == ENTRIES_MAX {
            return Err(Damage::Endless);
        }
        let (after, entry) = entry(memory, next)?;
        entries.push(entry);
        next = after;
    }
    Ok(entries)
}

/// Whether three words are a descriptor, by their shape and by what they lead to.
fn is_descriptor(memory: &impl Memory, [version, relevant, first]: [u64; 3]) -> bool {
    let (version, action) = (version & 0xffff_ffff, version >> 32);
    let is_address = |word: u64| word > 0xffff && word & 7 == 0;
    if version != 1 || action > 2 || !is_address(first) || (relevant != 0 && !is_address(relevant))
    {
        return false;
    }
    let Some([_, before, ..]) = memory.words::<ENTRY_WORDS>(first) else {
        return false;
    };
    let is_good = |at: u64| {
        let (next, entry) = entry(memory, at).ok()?;
        info(memory, &entry).ok().map(|_| next)
    };
    // The newest two entries are read: nothing else has two such in a row.
    before == 0 && is_good(first).is_some_and(|next| next == 0 || is_good(next).is_some())
}

/// Finds the list in the writable data of a program. Packages strip its symbol, not its shape.
#[must_use]
pub fn find_list(memory: &impl Memory, data: &[Mapping]) -> Option<ListAt> {
    let mut left = DATA_MAX;
    for mapping in data {
        let found = search(memory, mapping, &mut left);
        if let ControlFlow::Break(found) = found {
            return found;
        }
    }
    None
}

/// Searches a mapping; breaks with the list, or with nothing when no more may be read.
fn search(
    memory: &impl Memory,
    mapping: &Mapping,
    left: &mut usize,
) -> ControlFlow<Option<ListAt>> {
    let mut at = mapping.start;
    while at < mapping.end {
        let bytes = usize::try_from(mapping.end - at).unwrap_or(usize::MAX);
        // A descriptor may lie over the end of a chunk.
        let overlap = DESCRIPTOR_WORDS * 8;
        let take = bytes.min(CHUNK + overlap);
        if *left < take {
            return ControlFlow::Break(None);
        }
        *left -= take;
        let mut chunk = vec![0; take];
        if memory.read(at, &mut chunk) {
            let words = words_of(&chunk);
            let rows = words.array_windows::<DESCRIPTOR_WORDS>();
            let found = rows
                .enumerate()
                .find(|(_, words)| is_descriptor(memory, **words));
            if let Some((index, _)) = found {
                return ControlFlow::Break(Some(ListAt(at + index as u64 * 8)));
            }
        }
        at += CHUNK.min(take) as u64;
    }
    ControlFlow::Continue(())
}
