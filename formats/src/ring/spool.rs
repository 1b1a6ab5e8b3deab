//! Calls of each process apart, in order of time: for formats that have one process after the other. They go through a
//! temporary file, so that the memory in use does not depend on how many there are.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{Error, Event, Id, NameId, Names, Recording, Stacks, Step};

/// Bytes of an item.
const ITEM: usize = 12;

/// Bytes of a process that are kept in memory.
const BUFFER: usize = 512 * ITEM;

/// The process does not run.
pub(crate) const WAITS: NameId = NameId(END - 1);

/// What this stands for as a frame.
pub(crate) const WAITS_TEXT: &str = "(does not run)";

const END: u32 = 1 << 31;

/// A function begins, or the newest that has begun ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) at_ns: u64,
    pub(crate) function: NameId,
    pub(crate) is_end: bool,
}

impl Item {
    fn to_bytes(self) -> [u8; ITEM] {
        let mut bytes = [0; ITEM];
        let what = self.function.0 & !END | if self.is_end { END } else { 0 };
        bytes[..8].copy_from_slice(&self.at_ns.to_le_bytes());
        bytes[8..].copy_from_slice(&what.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; ITEM]) -> Item {
        let [a, b, c, d, e, f, g, h, what @ ..] = *bytes;
        let what = u32::from_le_bytes(what);
        Item {
            at_ns: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            function: NameId(what & !END),
            is_end: what & END != 0,
        }
    }
}

/// The items of a process.
#[derive(Default)]
struct Part {
    buffer: Vec<u8>,
    /// Where the full buffers before it are in the file.
    blocks: Vec<u64>,
    /// Calls that have begun and not ended, and those of them that are too deep.
    open: usize,
    hidden: usize,
}

impl Part {
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

/// See the module.
pub(crate) struct Spool {
    file: File,
    length: u64,
    deepest: usize,
    parts: HashMap<Id, Part>,
}

impl Spool {
    fn new(deepest: usize) -> io::Result<Spool> {
        Ok(Spool {
            deepest,
            file: tempfile::tempfile()?,
            length: 0,
            parts: HashMap::new(),
        })
    }

    fn push(&mut self, id: Id, item: Item) -> io::Result<()> {
        let part = self.parts.entry(id).or_default();
        if !part.is_shown(item.is_end, self.deepest) {
            return Ok(());
        }
        part.buffer.extend(item.to_bytes());
        if part.buffer.len() >= BUFFER {
            self.file.write_all_at(&part.buffer, self.length)?;
            part.blocks.push(self.length);
            self.length += part.buffer.len() as u64;
            part.buffer.clear();
        }
        Ok(())
    }

    /// All processes that called something.
    pub(crate) fn processes(&self) -> Vec<Id> {
        let mut all: Vec<Id> = self.parts.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// Hands over the items of a process.
    pub(crate) fn read<E: From<io::Error>>(
        &self,
        id: Id,
        mut each: impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(part) = self.parts.get(&id) else {
            return Ok(());
        };
        let mut items = |bytes: &[u8]| {
            let (items, _) = bytes.as_chunks::<ITEM>();
            items
                .iter()
                .try_for_each(|item| each(Item::from_bytes(item)))
        };
        let mut bytes = vec![0; BUFFER];
        for block in &part.blocks {
            self.file.read_exact_at(&mut bytes, *block)?;
            items(&bytes)?;
        }
        items(&part.buffer)
    }
}

/// The calls of each process, and when the last record was.
///
/// Calls that are deeper in the stack than `deepest` are part of the one at that depth.
pub(crate) fn calls(recording: &Recording, deepest: usize) -> Result<(Spool, u64), Error> {
    let mut spool = Spool::new(deepest)?;
    let mut stacks = Stacks::new(recording);
    let mut waiting: HashSet<Id> = HashSet::new();
    let mut last = 0;
    recording.scan(|record| {
        let (id, at_ns) = (record.subject, record.time_ns);
        last = at_ns;
        let wait = |is_end| Item {
            at_ns,
            function: WAITS,
            is_end,
        };
        let (is_in, is_out) = match record.event {
            Event::Call { .. }
            | Event::TailCall { .. }
            | Event::Return { .. }
            | Event::Unwind { .. }
            | Event::Exit { .. }
            | Event::In { .. } => (!waiting.is_empty(), false),
            Event::Out { .. } => (false, true),
            _ => (false, false),
        };
        if is_in && waiting.remove(&id) {
            spool.push(id, wait(true))?;
        }
        if is_out && stacks.top(id).is_some() && waiting.insert(id) {
            spool.push(id, wait(false))?;
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
    let mut waiting: Vec<Id> = waiting.into_iter().collect();
    waiting.sort_unstable();
    for id in waiting {
        spool.push(id, end(WAITS))?;
    }
    for (id, call) in stacks.open(last) {
        spool.push(id, end(call.function))?;
    }
    Ok((spool, last))
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
    let module = names.function(function);
    let module = module.map_or_else(String::new, |function| function.module.clone());
    (names.function_text(function), module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_as_they_were_written() {
        let mut spool = Spool::new(usize::MAX).expect("a temporary file");
        let item = |number: u64| Item {
            at_ns: number << 33,
            function: NameId(number as u32 * 7),
            is_end: number.is_multiple_of(3),
        };
        for number in 0..10_000 {
            spool
                .push(Id::Process(number % 3), item(number))
                .expect("it is written");
        }
        assert_eq!(spool.processes().len(), 3);
        let mut read = Vec::new();
        let done: Result<(), io::Error> = spool.read(Id::Process(1), |item| {
            read.push(item);
            Ok(())
        });
        done.expect("it is read");
        let expect: Vec<Item> = (0..10_000).filter(|n| n % 3 == 1).map(item).collect();
        assert_eq!(read, expect);
    }
}
