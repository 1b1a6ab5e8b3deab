//! What the structure of an Erlang process tells. Its layout differs between versions, so it is found by its shape.
//!
//! Shape, by which fields are found: `[pid | … | htop │ stop | … | heap │ hend | … | module │ function │ arity of the initial
//! call | current function | …]`, where `heap <= htop <= stop <= hend`.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::code::{Code, Function};
use crate::memory::{Ahead, Memory};

/// Words of a structure that are read: what is looked for lies within them.
const WORDS: usize = 72;

/// A heap with more bytes than this is none.
const HEAP_MAX: u64 = 1 << 40;

/// The most bytes of stack that are read: more would take longer than a sample may.
const STACK_MAX: u64 = 64 << 10;

/// Tags of terms: a local pid, an atom.
const PID_TAG: u64 = 0x3;
const PID_BITS: u32 = 4;
const ATOM_TAG: u64 = 0xb;
const ATOM_MASK: u64 = 0x3f;

/// A pid: the two numbers that Erlang writes, `<0.N.S>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pid {
    number: u64,
    serial: u64,
}

/// Of a number, the bits that are in the place in the table within a line of the processor's cache: eight places fill one.
const IN_LINE_BITS: u32 = 3;

impl Pid {
    /// The pid of a term, in an emulator whose table of processes has 2 to the power of `table_bits` places.
    ///
    /// The lowest bits are the place, and the others those of the numbers: up to OTP 25 in the upper half of the word, 15 bits and
    /// the rest, and since then behind the tag, 28 bits and the rest; so the upper half is empty until a node has had thousands of
    /// millions of processes. Numbers that follow each other have places in different lines of the cache. Source:
    /// `erts_ptab_pixdata2data`.
    fn of(word: u64, table_bits: u32) -> Option<Pid> {
        if word & 0xf != PID_TAG || word >> PID_BITS == 0 {
            return None;
        }
        let (word, number_bits) = match word >> 32 {
            0 => (word >> PID_BITS, 28),
            upper => (upper, 15),
        };
        let table = (1 << table_bits) - 1;
        let lines_bits = table_bits.saturating_sub(IN_LINE_BITS);
        let (line, in_line) = (word >> IN_LINE_BITS, word & ((1 << IN_LINE_BITS) - 1));
        let data = word & !table | line & ((1 << lines_bits) - 1) | in_line << lines_bits;
        Some(Pid {
            number: data & ((1 << number_bits) - 1),
            serial: data >> number_bits,
        })
    }

    /// The pid whose numbers are together a number, as our own machine has them.
    pub(crate) fn of_data(data: u64) -> Pid {
        const NUMBER_BITS: u32 = 28;
        Pid {
            number: data & ((1 << NUMBER_BITS) - 1),
            serial: data >> NUMBER_BITS,
        }
    }

    /// The two numbers that Erlang writes.
    #[must_use]
    pub fn numbers(self) -> (u64, u64) {
        (self.number, self.serial)
    }
}

fn is_atom(word: u64) -> bool {
    word & ATOM_MASK == ATOM_TAG
}

fn is_address(word: u64) -> bool {
    word > 0xffff && word < 1 << 47 && word & 7 == 0
}

/// Where the fields of a structure are, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    htop: usize,
    heap: usize,
    /// The initial call; the current function follows it.
    initial: usize,
}

/// What was read of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structure {
    /// Its address.
    pub at: u64,
    /// Its pid.
    pub pid: Pid,
    /// The top of its stack when it was last saved.
    pub stop: u64,
    /// The end of its stack and heap.
    pub hend: u64,
    /// The start of its heap.
    pub heap: u64,
    /// The function that it starts in, as terms.
    pub initial: [u64; 3],
    /// Where the module, name and arity of the native function are that it is in, or was last in.
    pub current: u64,
    /// Words behind the heap's end, of which one is where it goes on.
    behind: [u64; BEHIND],
}

/// Words behind the heap's end: where a process goes on is one of them.
const BEHIND: usize = 8;

impl Structure {
    /// Where it goes on in an Erlang function, if it does: then it has not been suspended by a call of a native one.
    #[must_use]
    pub fn goes_on(&self, code: &Code) -> Option<u64> {
        let mut words = self.behind.iter().copied();
        words.find(|word| code.at(*word).is_some_and(Function::is_erlang))
    }
}

impl Layout {
    /// The layout that a structure has by its shape.
    #[must_use]
    pub fn of(words: &[u64]) -> Option<Layout> {
        // Any table: it is a pid, or not.
        Pid::of(*words.first()?, 0)?;
        let pairs = |from: usize| from..words.len().saturating_sub(1);
        let is_row = |row: &[u64]| {
            row.iter().all(|word| is_address(*word))
                && row.is_sorted()
                && row[3] - row[0] < HEAP_MAX
        };
        for htop in pairs(1) {
            for heap in pairs(htop + 2) {
                let row = [words[heap], words[htop], words[htop + 1], words[heap + 1]];
                if row[0] != row[3] && is_row(&row) {
                    let initial = Layout::initial(words, heap + 2)?;
                    return Some(Layout {
                        htop,
                        heap,
                        initial,
                    });
                }
            }
        }
        None
    }

    fn initial(words: &[u64], from: usize) -> Option<usize> {
        let rows = words.array_windows::<4>().enumerate().skip(from);
        let mut found = rows.filter(|(_, [module, function, arity, current])| {
            let is_current = *current == 0 || is_address(*current);
            is_atom(*module) && is_atom(*function) && !is_atom(*arity) && is_current
        });
        found.next().map(|(at, _)| at)
    }

    /// Reads a structure, if the words fit this layout.
    fn read(&self, at: u64, words: &[u64], table_bits: u32) -> Option<Structure> {
        let pid = Pid::of(*words.first()?, table_bits)?;
        let word = |at: usize| words.get(at).copied();
        let (htop, stop) = (word(self.htop)?, word(self.htop + 1)?);
        let (heap, hend) = (word(self.heap)?, word(self.heap + 1)?);
        let initial = words.get(self.initial..self.initial + 3)?;
        let is_initial = is_atom(initial[0]) && is_atom(initial[1]);
        let row = [heap, htop, stop, hend];
        let is_one = row.is_sorted() && row.iter().all(|word| is_address(*word));
        (is_one && is_initial && hend - heap < HEAP_MAX).then_some(Structure {
            at,
            pid,
            stop,
            hend,
            heap,
            initial: [initial[0], initial[1], initial[2]],
            current: word(self.initial + 3)?,
            behind: *words.get(self.heap + 2..)?.first_chunk()?,
        })
    }
}

/// A layout is believed when this many structures in a row have had it.
const SURE: u32 = 3;

/// Reads structures of processes.
#[derive(Debug)]
pub struct Processes {
    /// Bits of a place in the emulator's table of processes.
    table_bits: u32,
    layout: Option<(Layout, u32)>,
    /// Texts of atoms, as far as code tells them.
    atoms: FxHashMap<u64, Arc<str>>,
    /// The functions that have told theirs.
    learnt: FxHashSet<(u64, usize)>,
    /// Where structures were, so many at most.
    seen: FxHashSet<u64>,
}

/// More addresses are not kept.
const SEEN_MAX: usize = 1 << 16;

impl Processes {
    /// Of an emulator whose table of processes has 2 to the power of `table_bits` places.
    #[must_use]
    pub fn new(table_bits: u32) -> Processes {
        Processes {
            table_bits,
            layout: None,
            atoms: FxHashMap::default(),
            learnt: FxHashSet::default(),
            seen: FxHashSet::default(),
        }
    }

    /// Reads the structure at an address; `None` when there is none.
    pub fn at(&mut self, memory: &impl Memory, at: u64) -> Option<Structure> {
        if !is_address(at) {
            return None;
        }
        let found = self.read(memory, at);
        if found.is_some() && self.seen.len() < SEEN_MAX {
            self.seen.insert(at);
        }
        found
    }

    /// Whether a structure was at an address before.
    #[must_use]
    pub fn has_seen(&self, at: u64) -> bool {
        self.seen.contains(&at)
    }

    fn read(&mut self, memory: &impl Memory, at: u64) -> Option<Structure> {
        let words = memory.words::<WORDS>(at)?;
        match self.layout {
            Some((layout, seen)) if seen >= SURE => layout.read(at, &words, self.table_bits),
            known => {
                let layout = Layout::of(&words)?;
                let seen = known.filter(|(known, _)| *known == layout);
                self.layout = Some((layout, 1 + seen.map_or(0, |(_, seen)| seen)));
                layout.read(at, &words, self.table_bits)
            }
        }
    }

    /// The words of its stack from an address to its end, if the address lies in it.
    #[must_use]
    pub fn stack(memory: &impl Memory, of: &Structure, from: u64) -> Option<Vec<u64>> {
        let is_in = from >= of.heap && from <= of.hend && from & 7 == 0;
        let bytes = of.hend.checked_sub(from).filter(|_| is_in)?;
        // Of a deeper one, the newest frames.
        let count = bytes.min(STACK_MAX) / 8;
        memory.row(from, usize::try_from(count).ok()?)
    }

    /// Learns the texts of atoms: the information of a function stands before its code, with its module and name as terms.
    pub fn learn(&mut self, memory: &impl Memory, code: &Code) {
        let memory = Ahead::new(memory);
        for function in code.functions() {
            // While an entry of the list is the same, its texts stay where they are.
            let key = (function.start, Arc::as_ptr(&function.module).addr());
            let arity = function.arity.filter(|_| !self.learnt.contains(&key));
            let known = arity.and_then(|arity| information(&memory, function.start, arity));
            if let Some([module, name, _]) = known {
                self.learnt.insert(key);
                self.atoms.insert(module, function.module.clone());
                self.atoms.insert(name, function.name.clone());
            }
        }
    }

    /// The text of an atom, if code has told it.
    #[must_use]
    pub fn atom(&self, term: u64) -> Option<&Arc<str>> {
        self.atoms.get(&term)
    }

    /// How many atoms are known.
    #[must_use]
    pub fn atoms(&self) -> usize {
        self.atoms.len()
    }

    /// The function whose module, name and arity are three words, if both atoms are known.
    #[must_use]
    pub fn function(&self, [module, name, arity]: [u64; 3]) -> Option<(Arc<str>, Arc<str>, u8)> {
        let arity = u8::try_from(arity & ARITY_MASK).ok()?;
        Some((self.atom(module)?.clone(), self.atom(name)?.clone(), arity))
    }

    /// The function whose words are at an address.
    #[must_use]
    pub fn function_at(&self, memory: &impl Memory, at: u64) -> Option<(Arc<str>, Arc<str>, u8)> {
        let words = is_address(at).then(|| memory.words::<3>(at))??;
        self.function(words)
    }

    /// The function of an export entry: it is near the entry's begin.
    #[must_use]
    pub fn exported(&self, memory: &impl Memory, at: u64) -> Option<(Arc<str>, Arc<str>, u8)> {
        let words = is_address(at).then(|| memory.words::<EXPORT_WORDS>(at))??;
        let mut rows = words.array_windows::<3>();
        rows.find_map(|row| self.function(*row))
    }

    /// The registered name of a process: a name points to its process, and the process to its name.
    #[must_use]
    pub fn registered(&self, memory: &impl Memory, of: &Structure) -> Option<Arc<str>> {
        let words = memory.words::<REGISTERED_WITHIN>(of.at)?;
        let mut names = words.iter().filter(|word| is_address(**word));
        names.find_map(|word| {
            let name = memory.words::<5>(*word)?;
            let leads_back = name[2] == of.at;
            self.atom(name[4]).filter(|_| leads_back).cloned()
        })
    }
}

/// Words of an export entry in which its function is.
const EXPORT_WORDS: usize = 24;

/// Words of a process in which the pointer to its name is.
const REGISTERED_WITHIN: usize = 16;

/// Words before a function's code, and of it, in which its information is: which of them depends on the version.
const INFORMATION_BEFORE: u64 = 6;
const INFORMATION_WORDS: usize = 12;

/// The number of arguments is a byte of its word.
const ARITY_MASK: u64 = 0xff;

/// The module, name and arity of a function, which stand where its code begins.
fn information(memory: &impl Memory, start: u64, arity: u8) -> Option<[u64; 3]> {
    let from = start.checked_sub(8 * INFORMATION_BEFORE)?;
    let words = memory.words::<INFORMATION_WORDS>(from & !7)?;
    let mut rows = words.array_windows::<3>();
    let is_one = |row: &&[u64; 3]| {
        let [module, name, count] = **row;
        is_atom(module) && is_atom(name) && count & ARITY_MASK == u64::from(arity)
    };
    rows.find(is_one).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_are_read_as_their_version_has_them() {
        for (word, table_bits, numbers) in [
            // OTP 29 on x86-64, with its default, with +P 5000, and the last place of a line.
            (0x503, 20, Some((10, 0))),
            (712 << 4 | 3, 20, Some((89, 0))),
            (80 << 4 | 3, 13, Some((10, 0))),
            (7 << 4 | 3, 13, Some((7 << 10, 0))),
            // A number above those of the table's places.
            ((1 << 20 | 712) << 4 | 3, 20, Some((1 << 20 | 89, 0))),
            // OTP 25.
            (72 << 32 | 0x93, 18, Some((9, 0))),
            ((5 << 3 | 3) << 32 | 0x13, 18, Some((5, 3))),
            // With +P 5000.
            ((61 << 3 | 1) << 32 | 0x13, 13, Some((1085, 0))),
            (0x50b, 20, None),
            (3, 20, None),
        ] {
            let pid = Pid::of(word, table_bits);
            assert_eq!(pid.map(Pid::numbers), numbers, "{word:x}");
        }
    }
}
