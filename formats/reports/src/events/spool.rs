//! Collects what a recording tells of each process apart, in order of time, for formats that have one process after the
//! other. It goes through a temporary file, so the memory in use does not depend on its size.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use beamline_formats::profile::{Function, WAITS_FOR_DIRTY};
use beamline_formats::ring::{Error, Event, Id, NameId, Names, Recording};
use rustc_hash::FxHashMap;

use crate::events::calls::{Does, does_after};
use crate::events::{Stacks, Step, part};

/// Bytes of an item.
const ITEM: usize = 12;

/// Bytes of a process that are kept in memory.
const BUFFER: usize = 512 * ITEM;

/// Two numbers. The caller that writes and reads them knows what they are.
type Pair = (u64, u32);

fn to_bytes((long, short): Pair) -> [u8; ITEM] {
    let mut bytes = [0; ITEM];
    bytes[..8].copy_from_slice(&long.to_le_bytes());
    bytes[8..].copy_from_slice(&short.to_le_bytes());
    bytes
}

fn from_bytes(bytes: &[u8; ITEM]) -> Pair {
    let [a, b, c, d, e, f, g, h, short @ ..] = *bytes;
    let long = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    (long, u32::from_le_bytes(short))
}

/// The items of a process.
#[derive(Default)]
struct Part {
    buffer: Vec<u8>,
    /// Where the full buffers before it are in the file.
    blocks: Vec<u64>,
}

/// Pairs of numbers of each process, in a temporary file.
pub(crate) struct Spool {
    file: File,
    length: u64,
    parts: Vec<(Id, Part)>,
    known: FxHashMap<Id, usize>,
    /// Whose item came last.
    last: usize,
}

impl Spool {
    pub(crate) fn new() -> io::Result<Spool> {
        Ok(Spool {
            file: tempfile::tempfile()?,
            length: 0,
            parts: Vec::new(),
            known: FxHashMap::default(),
            last: 0,
        })
    }

    pub(crate) fn push(&mut self, id: Id, item: Pair) -> io::Result<()> {
        if self
            .parts
            .get(self.last)
            .is_none_or(|(last, _)| *last != id)
        {
            let new = self.parts.len();
            self.last = *self.known.entry(id).or_insert(new);
            if self.last == new {
                self.parts.push((id, Part::default()));
            }
        }
        let (_, part) = &mut self.parts[self.last];
        part.buffer.extend(to_bytes(item));
        if part.buffer.len() >= BUFFER {
            self.file.write_all_at(&part.buffer, self.length)?;
            part.blocks.push(self.length);
            self.length += part.buffer.len() as u64;
            part.buffer.clear();
        }
        Ok(())
    }

    /// All processes that have items.
    pub(crate) fn processes(&self) -> Vec<Id> {
        let mut all: Vec<Id> = self.parts.iter().map(|(id, _)| *id).collect();
        all.sort_unstable();
        all
    }

    /// Hands over the items of a process.
    pub(crate) fn read<E: From<io::Error>>(
        &self,
        id: Id,
        mut each: impl FnMut(Pair) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(at) = self.known.get(&id) else {
            return Ok(());
        };
        let (_, part) = &self.parts[*at];
        let mut items = |bytes: &[u8]| {
            let (items, _) = bytes.as_chunks::<ITEM>();
            items.iter().try_for_each(|item| each(from_bytes(item)))
        };
        let mut bytes = vec![0; BUFFER];
        for block in &part.blocks {
            self.file.read_exact_at(&mut bytes, *block)?;
            items(&bytes)?;
        }
        items(&part.buffer)
    }
}

/// The process does not run.
pub(crate) const WAITS: NameId = NameId(END - 1);

/// What this stands for as a frame.
pub(crate) const WAITS_TEXT: &str = "(does not run)";

/// The process waits for a dirty scheduler.
pub(crate) const WAITS_DIRTY: NameId = NameId(END - 2);

const END: u32 = 1 << 31;

/// A function begins, or the newest that has begun ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) at_ns: u64,
    pub(crate) function: NameId,
    pub(crate) is_end: bool,
}

impl Item {
    fn to_pair(self) -> Pair {
        let what = self.function.0 & !END | if self.is_end { END } else { 0 };
        (self.at_ns, what)
    }

    fn from_pair((at_ns, what): Pair) -> Item {
        Item {
            at_ns,
            function: NameId(what & !END),
            is_end: what & END != 0,
        }
    }
}

/// Calls that have begun and not ended, and those of them that are too deep.
#[derive(Default)]
struct Depth {
    open: usize,
    hidden: usize,
}

impl Depth {
    fn is_shown(&mut self, is_end: bool, deepest: usize) -> bool {
        match (is_end, self.hidden) {
            (false, 0) if self.open < deepest => {
                self.open += 1;
                true
            }
            (false, _) => {
                self.hidden += 1;
                false
            }
            (true, 0) => {
                self.open = self.open.saturating_sub(1);
                true
            }
            (true, _) => {
                self.hidden -= 1;
                false
            }
        }
    }
}

/// The calls of each process.
pub(crate) struct Calls {
    spool: Spool,
    deepest: usize,
    depths: FxHashMap<Id, Depth>,
}

impl Calls {
    fn push(&mut self, id: Id, item: Item) -> io::Result<()> {
        let depth = self.depths.entry(id).or_default();
        if !depth.is_shown(item.is_end, self.deepest) {
            return Ok(());
        }
        self.spool.push(id, item.to_pair())
    }

    /// All processes that called something.
    pub(crate) fn processes(&self) -> Vec<Id> {
        self.spool.processes()
    }

    /// Hands over what a process called.
    pub(crate) fn read<E: From<io::Error>>(
        &self,
        id: Id,
        mut each: impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        self.spool.read(id, |pair| each(Item::from_pair(pair)))
    }
}

/// The calls of each process in a part of a recording, and when its last record was.
///
/// Calls that are deeper in the stack than `deepest` are part of the one at that depth.
pub(crate) fn calls(
    recording: &Recording,
    part: &part::Part<'_>,
    deepest: usize,
) -> Result<(Calls, u64), Error> {
    let mut spool = Calls {
        spool: Spool::new()?,
        deepest,
        depths: FxHashMap::default(),
    };
    let mut stacks = Stacks::new(recording);
    let mut waiting: FxHashMap<Id, NameId> = FxHashMap::default();
    let mut last = 0;
    part.scan(recording, |record, _| {
        let (id, at_ns) = (record.subject, record.time_ns);
        last = at_ns;
        let wait = |function, is_end| Item {
            at_ns,
            function,
            is_end,
        };
        if let Some(waits) = waits_after(&record.event) {
            let waits = waits.filter(|_| stacks.top(id).is_some());
            let before = waiting.get(&id).copied();
            if before != waits {
                if let Some(before) = before {
                    waiting.remove(&id);
                    spool.push(id, wait(before, true))?;
                }
                if let Some(waits) = waits {
                    waiting.insert(id, waits);
                    spool.push(id, wait(waits, false))?;
                }
            }
        }
        let mut done = Ok(());
        stacks.add(record, |step| {
            let (function, is_end) = match step {
                Step::Begin(call) => (call.function, false),
                Step::End(call) => (call.function, true),
            };
            let item = Item {
                at_ns,
                function,
                is_end,
            };
            if done.is_ok() {
                done = spool.push(id, item);
            }
        });
        done.map_err(Error::from)
    })?;
    let end = |function| Item {
        at_ns: last,
        function,
        is_end: true,
    };
    let mut waiting: Vec<(Id, NameId)> = waiting.into_iter().collect();
    waiting.sort_unstable_by_key(|(id, _)| *id);
    for (id, waits) in waiting {
        spool.push(id, end(waits))?;
    }
    for (id, call) in stacks.open(last) {
        spool.push(id, end(call.function))?;
    }
    Ok((spool, last))
}

/// What a process waits for after a record, as a frame; the outer `None` where the record tells nothing of that.
fn waits_after(event: &Event<'_>) -> Option<Option<NameId>> {
    // At its end nothing that it is in is left.
    if matches!(event, Event::Exit { .. } | Event::OutExited {}) {
        return Some(None);
    }
    does_after(event).map(|does| match does {
        Does::Runs | Does::RunsDirty => None,
        Does::Waits => Some(WAITS),
        Does::WaitsForDirty => Some(WAITS_DIRTY),
    })
}

/// What a process is called.
pub(crate) fn process_text(names: &Names, id: Id) -> String {
    let text = format!("{id} {}", names.process_text(id));
    text.trim_end().to_owned()
}

/// A frame's text, and the module it is of.
pub(crate) fn frame_text(names: &Names, function: NameId) -> (String, String) {
    if function == WAITS {
        return (WAITS_TEXT.to_owned(), String::new());
    }
    if function == WAITS_DIRTY {
        return (WAITS_FOR_DIRTY.to_owned(), String::new());
    }
    if let Some(frames) = function.cut_frames() {
        return (Function::cut_at(frames).to_string(), String::new());
    }
    let module = names.function(function);
    let module = module.map_or_else(String::new, |function| function.module.clone());
    (names.function_text(function), module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_as_they_were_written() {
        let mut spool = Spool::new().expect("a temporary file");
        let item = |number: u64| Item {
            at_ns: number << 33,
            function: NameId(number as u32 * 7),
            is_end: number.is_multiple_of(3),
        };
        for number in 0..10_000 {
            spool
                .push(Id::Process(number % 3), item(number).to_pair())
                .expect("it is written");
        }
        assert_eq!(spool.processes().len(), 3);
        let mut read = Vec::new();
        let done: Result<(), io::Error> = spool.read(Id::Process(1), |pair| {
            read.push(Item::from_pair(pair));
            Ok(())
        });
        done.expect("it is read");
        let expect: Vec<Item> = (0..10_000).filter(|n| n % 3 == 1).map(item).collect();
        assert_eq!(read, expect);
    }
}
