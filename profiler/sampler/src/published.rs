//! Reads what our own machine publishes in its memory: its machine code, its threads, its processes and names.
//! `beamline_settings::published` says what its words are.

use std::cell::RefCell;
use std::sync::Arc;

use beamline_settings::published::{
    CALL_MARK, CHUNK, CHUNKS, Call, Kind, MAGIC, PIECE_HEAD, PIECE_MAX, Piece, Published, Thread,
    VERSION,
};
use rustc_hash::FxHashMap;

use crate::code::{Code, Function};
use crate::memory::{Ahead, Mapping, Memory, words_of};
use crate::process::Pid;

/// The most bytes of data that are searched.
const DATA_MAX: u64 = 256 << 20;

/// Bytes of data that are searched at once, and that may lie over the end of a part.
const PART: u64 = 1 << 20;
const OVERLAP: u64 = 8 * MAGIC.len() as u64;

/// The most records of threads that there may be.
const THREADS_MAX: usize = 1 << 16;

/// The most bytes of a name.
const NAME_MAX: u64 = 4 * 255;

/// How often code that changes meanwhile is read at most.
const TRIES: usize = 8;

/// A heap with more words than this is none.
const HEAP_WORDS_MAX: u64 = 1 << 37;

/// A process of more words than this is none.
const PROCESS_WORDS_MAX: usize = 1 << 10;

/// Of a deeper stack, so many words are read.
const STACK_WORDS: u64 = 8 << 10;

/// Tags of terms: a local pid, an atom.
const PID_TAG: u64 = 0x3;
const PID_BITS: u32 = 4;
const ATOM_TAG: u64 = 0xb;
const ATOM_BITS: u32 = 6;

/// Module, name and arity.
pub(crate) type Mfa = (Arc<str>, Arc<str>, u8);

/// Why nothing can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lacks {
    /// There is no machine code.
    Code,
    /// It is of another version.
    Version,
}

/// Searches the writable data of a program for what it publishes: its address.
fn find(memory: &impl Memory, data: &[Mapping]) -> Option<u64> {
    let mut left = DATA_MAX;
    for mapping in data {
        let mut at = mapping.start;
        while at < mapping.end {
            let bytes = (mapping.end - at).min(PART + OVERLAP);
            left = left.checked_sub(bytes)?;
            let mut part = vec![0; usize::try_from(bytes).ok()?];
            if memory.read(at, &mut part) {
                let words = words_of(&part);
                let mut pairs = words.array_windows::<2>();
                if let Some(index) = pairs.position(|pair| *pair == MAGIC) {
                    return Some(at + 8 * index as u64);
                }
            }
            at += PART;
        }
    }
    None
}

/// A call of a native function that a thread makes for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirtyCall {
    /// The pid of the process.
    pub(crate) pid: Pid,
    /// What the thread publishes of it.
    pub(crate) words: Call<u64>,
}

impl DirtyCall {
    /// The call that these words tell of, if one is made.
    pub(crate) fn of_words(words: [u64; Call::<u64>::WORDS]) -> Option<DirtyCall> {
        let words = Call::of_words(words);
        let pid = pid_of_term(words.pid).filter(|_| words.mark == CALL_MARK)?;
        Some(DirtyCall { pid, words })
    }
}

/// The pid that is a term, if it is one.
fn pid_of_term(term: u64) -> Option<Pid> {
    (term & 0xf == PID_TAG).then(|| Pid::of_data(term >> PID_BITS))
}

/// A process of the machine, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// Its address.
    pub(crate) at: u64,
    /// Its pid.
    pub(crate) pid: Pid,
    /// Its heap, with the stack at the end.
    pub(crate) heap: std::ops::Range<u64>,
    /// The top of its stack when it was last saved.
    pub(crate) stop: u64,
    /// It is being collected.
    pub(crate) collects: bool,
    /// Its shared part.
    pub(crate) shared: u64,
}

/// What the machine tells of a piece of code besides its function.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) kind: Kind,
    /// Behind which calls of BIFs: addresses, and the BIFs.
    pub(crate) calls: Vec<(u64, u64)>,
}

/// A piece that is known.
#[derive(Clone, Debug)]
struct Known(Arc<Vec<Function>>, Arc<About>);

/// What a machine publishes, as far as it has been read.
#[derive(Debug)]
pub(crate) struct Machine {
    /// The address of that.
    pub(crate) at: u64,
    words: Published<u64>,
    pieces: FxHashMap<u64, Known>,
    /// By the first byte of the piece.
    about: FxHashMap<u64, Arc<About>>,
    threads: FxHashMap<u32, u64>,
    atoms: RefCell<FxHashMap<u32, Option<Arc<str>>>>,
    bifs: RefCell<FxHashMap<u64, Option<Mfa>>>,
}

impl Machine {
    /// Finds a machine in the writable data of its program, and reads its code.
    pub(crate) fn find(memory: &impl Memory, data: &[Mapping]) -> Result<(Machine, Code), Lacks> {
        let at = find(memory, data).ok_or(Lacks::Version)?;
        let words = published(memory, at).ok_or(Lacks::Code)?;
        if words.version != VERSION {
            return Err(Lacks::Version);
        }
        let mut machine = Machine {
            at,
            words,
            pieces: FxHashMap::default(),
            about: FxHashMap::default(),
            threads: FxHashMap::default(),
            atoms: RefCell::default(),
            bifs: RefCell::default(),
        };
        let mut code = Code::default();
        let has_code = words.code_start != 0 && machine.refresh(memory, &mut code);
        match has_code {
            true => Ok((machine, code)),
            false => Err(Lacks::Code),
        }
    }

    /// Where machine code may be.
    pub(crate) fn code(&self) -> std::ops::Range<u64> {
        self.words.code_start..self.words.code_end
    }

    /// Whether pieces of code have gone since it was read: others may be in their place.
    pub(crate) fn has_lost(&self, memory: &impl Memory) -> bool {
        published(memory, self.at).is_some_and(|now| now.gone != self.words.gone)
    }

    /// Reads the code that has come since; whether it was read.
    pub(crate) fn refresh(&mut self, memory: &impl Memory, code: &mut Code) -> bool {
        for _ in 0..TRIES {
            let Some(words) = published(memory, self.at) else {
                return false;
            };
            if words.gone != self.words.gone {
                // Another piece may be where one was.
                self.pieces.clear();
            }
            self.words = words;
            let Some(pieces) = self.read(memory) else {
                continue;
            };
            if published(memory, self.at).is_some_and(|now| now.gone == words.gone) {
                self.set(pieces, code);
                return true;
            }
        }
        false
    }

    fn read(&self, memory: &impl Memory) -> Option<FxHashMap<u64, Known>> {
        let count = usize::try_from(self.words.count).ok()?;
        let chunks = count.div_ceil(CHUNK);
        if chunks > CHUNKS {
            return None;
        }
        let chunks = memory.row(self.words.chunks, chunks)?;
        let mut pieces = FxHashMap::default();
        let ahead = Ahead::new(memory);
        for (at, chunk) in chunks.into_iter().enumerate() {
            let all = memory.row(chunk, CHUNK.min(count - at * CHUNK))?;
            for address in all.into_iter().filter(|address| *address != 0) {
                let known = match self.pieces.get(&address) {
                    Some(known) => known.clone(),
                    // One that has just gone: whoever compares the counts sees that.
                    None => match self.piece(&ahead, address) {
                        Some(read) => read,
                        None => continue,
                    },
                };
                pieces.insert(address, known);
            }
        }
        Some(pieces)
    }

    fn piece(&self, memory: &impl Memory, address: u64) -> Option<Known> {
        let [count] = memory.words::<1>(address)?;
        let count = usize::try_from(count).ok()?;
        let words = (PIECE_HEAD..=PIECE_MAX)
            .contains(&count)
            .then(|| memory.row(address, count))??;
        let piece = Piece::of_words(&words)?;
        let start = piece.start;
        let end = start.checked_add(piece.bytes.into())?;
        let range = self.code();
        if !range.contains(&start) || end > range.end {
            return None;
        }
        let (module, name, arity) = match piece.kind {
            Kind::Function => {
                let (module, name, arity) = piece.function;
                (
                    self.atom(memory, module)?,
                    self.atom(memory, name)?,
                    Some(arity),
                )
            }
            _ => ("global".into(), piece.name.into(), None),
        };
        let lines = piece
            .lines
            .iter()
            .map(|&(at, line)| (start.wrapping_add(at.into()), line));
        let function = Function {
            start,
            end,
            module,
            name,
            arity,
            lines: lines.collect(),
        };
        let calls = piece
            .calls
            .iter()
            .map(|&(at, bif)| (start.wrapping_add(at.into()), bif));
        let about = About {
            kind: piece.kind,
            calls: calls.collect(),
        };
        Some(Known(Arc::new(vec![function]), Arc::new(about)))
    }

    fn set(&mut self, pieces: FxHashMap<u64, Known>, code: &mut Code) {
        let about = |Known(part, about): &Known| Some((part.first()?.start, about.clone()));
        self.about = pieces.values().filter_map(about).collect();
        let parts = pieces.values().map(|Known(part, _)| part.clone());
        code.replace(parts.collect(), self.words.normal_exit);
        self.pieces = pieces;
    }

    /// What is known of the piece of code that begins at an address.
    pub(crate) fn about(&self, start: u64) -> Option<&About> {
        self.about.get(&start).map(|about| &**about)
    }

    /// The text of an atom.
    pub(crate) fn atom(&self, memory: &impl Memory, index: u32) -> Option<Arc<str>> {
        if let Some(known) = self.atoms.borrow().get(&index) {
            return known.clone();
        }
        let (at, row) = (u64::from(index), self.words.atoms_row.max(1));
        let [row_at] = memory.words::<1>(self.words.atoms.checked_add(8 * (at / row))?)?;
        let within = (at % row).checked_mul(self.words.atom_bytes)?;
        let atom = row_at.checked_add(within)?;
        let text = text(memory, atom.checked_add(self.words.atom_name)?);
        self.atoms.borrow_mut().insert(index, text.clone());
        text
    }

    /// How many atoms are known.
    pub(crate) fn atoms(&self) -> usize {
        self.atoms.borrow().len()
    }

    /// The atom of a term.
    fn atom_of(&self, memory: &impl Memory, term: u64) -> Option<Arc<str>> {
        let is_atom = term & ((1 << ATOM_BITS) - 1) == ATOM_TAG;
        let index = u32::try_from(term >> ATOM_BITS).ok()?;
        is_atom.then(|| self.atom(memory, index))?
    }

    /// A BIF, by its address.
    pub(crate) fn bif(&self, memory: &impl Memory, at: u64) -> Option<Mfa> {
        if let Some(known) = self.bifs.borrow().get(&at) {
            return known.clone();
        }
        let read = || {
            let mut arity = [0];
            let module = text(memory, at.checked_add(self.words.bif_module)?)?;
            let name = text(memory, at.checked_add(self.words.bif_function)?)?;
            let has_arity = memory.read(at.checked_add(self.words.bif_arity)?, &mut arity);
            has_arity.then_some((module, name, arity[0]))
        };
        let bif = (at != 0).then(read).flatten();
        self.bifs.borrow_mut().insert(at, bif.clone());
        bif
    }

    /// The BIF or NIF whose function has this entry; none of a function of another kind.
    pub(crate) fn native_entry(&self, memory: &impl Memory, entry: u64) -> Option<Mfa> {
        let [first] = memory.words::<1>(entry)?;
        let native = [self.words.op_bif_entry, self.words.op_nif_entry];
        native.contains(&(first & 0xffff)).then(|| {
            let word = |offset: u64| Some(memory.words::<1>(entry.wrapping_add(offset))?[0]);
            let module = self.atom_of(memory, word(self.words.entry_module)?)?;
            let name = self.atom_of(memory, word(self.words.entry_function)?)?;
            let [arity, ..] = word(self.words.entry_arity)?.to_le_bytes();
            Some((module, name, arity))
        })?
    }

    /// The record of a thread, if it runs processes.
    pub(crate) fn thread(&mut self, memory: &impl Memory, tid: u32) -> Option<Thread<u64>> {
        if !self.threads.contains_key(&tid) {
            let [mut next] = memory.words::<1>(self.at.wrapping_add(THREADS))?;
            for _ in 0..THREADS_MAX {
                let Some(thread) = thread(memory, next) else {
                    break;
                };
                if let Ok(tid) = u32::try_from(thread.tid) {
                    self.threads.insert(tid, next);
                }
                next = thread.next;
            }
        }
        thread(memory, *self.threads.get(&tid)?)
    }

    /// The words of a thread's frame: the address that its stub was called from, the entry, the process, and the top of its
    /// stack.
    pub(crate) fn frame(&self) -> [u64; 4] {
        [
            self.words.frame_back,
            self.words.frame_entry,
            self.words.frame_process,
            self.words.frame_stop,
        ]
    }

    /// Reads a process; `None` where there is none.
    pub(crate) fn process(&self, memory: &impl Memory, at: u64) -> Option<Process> {
        if at == 0 || at & 7 != 0 {
            return None;
        }
        let words = &self.words;
        let fields = [
            words.process_heap,
            words.process_heap_words,
            words.process_stop,
            words.process_pid,
            words.process_collects,
            words.process_shared,
        ];
        let last = fields.into_iter().max()?;
        let count = usize::try_from(last / 8 + 1).ok()?;
        let all = (count <= PROCESS_WORDS_MAX).then(|| memory.row(at, count))??;
        let word = |offset: u64| all.get(usize::try_from(offset / 8).ok()?).copied();
        let start = word(words.process_heap)?;
        let count = word(words.process_heap_words)?;
        let stop = word(words.process_stop)?;
        let end = start.checked_add(count.checked_mul(8)?)?;
        // While it is collected, its stack may be in another heap for a moment: then it has none.
        let is_one = count < HEAP_WORDS_MAX;
        is_one.then_some(Process {
            at,
            pid: pid_of_term(word(words.process_pid)?)?,
            heap: start..end,
            stop,
            collects: word(words.process_collects)? >> (8 * (words.process_collects % 8)) & 0xff
                != 0,
            shared: word(words.process_shared)?.wrapping_add(words.shared_within),
        })
    }

    /// The process that a call is made for, at rest.
    pub(crate) fn caller(&self, memory: &impl Memory, call: &DirtyCall) -> Option<Process> {
        let home = call.words.shared.checked_add(self.words.shared_home)?;
        let [home] = memory.words::<1>(home)?;
        let process = self.process(memory, home);
        process.filter(|process| process.pid == call.pid)
    }

    /// The function that a process starts in.
    pub(crate) fn initial(&self, memory: &impl Memory, process: u64) -> Option<Mfa> {
        let [atoms] = memory.words::<1>(process.checked_add(self.words.process_initial)?)?;
        let mut arity = [0];
        let at = process.checked_add(self.words.process_initial_arity)?;
        let (module, name) = (atoms & 0xffff_ffff, atoms >> 32);
        let module = self.atom(memory, u32::try_from(module).ok()?)?;
        let name = self.atom(memory, u32::try_from(name).ok()?)?;
        memory
            .read(at, &mut arity)
            .then_some((module, name, arity[0]))
    }

    /// The name that a process is registered as.
    pub(crate) fn registered(&self, memory: &impl Memory, of: &Process) -> Option<Arc<str>> {
        let shared = of.shared;
        let [data] = memory.words::<1>(shared.checked_add(self.words.shared_pid)?)?;
        let mut index = [0; 4];
        let at = shared.checked_add(self.words.shared_name)?;
        let is_it = Pid::of_data(data) == of.pid && memory.read(at, &mut index);
        let index = is_it.then(|| u32::from_le_bytes(index).checked_sub(1))??;
        // One that exits has a number that no atom has.
        (index < u32::MAX - 1).then(|| self.atom(memory, index))?
    }

    /// The words of a process's stack from an address to its end that may be return addresses; whether these are all.
    pub(crate) fn stack(
        &self,
        memory: &impl Memory,
        of: &Process,
        from: u64,
    ) -> Option<(Vec<u64>, bool)> {
        let is_in = from >= of.heap.start && from <= of.heap.end && from & 7 == 0;
        let all = of.heap.end.checked_sub(from).filter(|_| is_in)? / 8;
        let count = usize::try_from(all.min(STACK_WORDS)).ok()?;
        let words = memory.row(from, count)?;
        Some((self.returns(&words), all <= STACK_WORDS))
    }

    /// Those of words that are in machine code.
    pub(crate) fn returns(&self, words: &[u64]) -> Vec<u64> {
        let code = self.code();
        let words = words.iter().copied();
        words
            .filter(|word| word & 3 == 0 && code.contains(word))
            .collect()
    }
}

/// From what is published to the first record of a thread.
const THREADS: u64 = std::mem::offset_of!(Published<u64>, threads) as u64;

/// What is published now.
fn published(memory: &impl Memory, at: u64) -> Option<Published<u64>> {
    let words = memory.words::<{ Published::<u64>::WORDS }>(at)?;
    let words = Published::of_words(words);
    ([words.magic, words.magic_end] == MAGIC).then_some(words)
}

fn thread(memory: &impl Memory, at: u64) -> Option<Thread<u64>> {
    let words = (at != 0).then(|| memory.words::<{ Thread::<u64>::WORDS }>(at))?;
    Some(Thread::of_words(words?))
}

/// The text whose address and length are at an address.
fn text(memory: &impl Memory, at: u64) -> Option<Arc<str>> {
    let [address, bytes] = memory.words::<2>(at)?;
    if bytes > NAME_MAX {
        return None;
    }
    let mut text = vec![0; usize::try_from(bytes).ok()?];
    if !text.is_empty() && !memory.read(address, &mut text) {
        return None;
    }
    Some(std::str::from_utf8(&text).ok()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_call_while_they_have_its_mark() {
        let call = Call {
            mark: CALL_MARK,
            pid: 9 << PID_BITS | PID_TAG,
            pc: 0x40,
            ..Call::default()
        };
        let words = call.words().map(|word| *word);
        let read = DirtyCall::of_words(words).expect("a call");
        assert_eq!((read.pid, read.words), (Pid::of_data(9), call));
        for other in [Call { mark: 0, ..call }, Call { pid: 9, ..call }] {
            assert_eq!(DirtyCall::of_words(other.words().map(|word| *word)), None);
        }
    }
}
