//! The machine code of an emulator: its functions and their lines, by address.
//!
//! [`list`] reads the list that BeamAsm keeps for debuggers, and [`find_list`] finds it. Modules come and go while it is read,
//! so [`Code::refresh`] reads again what has changed, and an address that is unknown is a reason to do so.

mod list;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

pub use list::{Damage, Info, ListAt, find_list};
use list::{ENTRIES_MAX, Entry, head, info, walk};

use crate::memory::Memory;

/// A piece of machine code with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its first byte.
    pub start: u64,
    /// Behind its last byte.
    pub end: u64,
    /// The module, as text.
    pub module: Arc<str>,
    /// The function, as text; of a fragment that all modules share, its name.
    pub name: Arc<str>,
    /// The number of arguments; none of what is no Erlang function.
    pub arity: Option<u8>,
    /// Where lines begin, in order.
    pub lines: Vec<(u64, u32)>,
}

impl Function {
    /// The line of an address in it; 0 where that is not known.
    #[must_use]
    pub fn line(&self, address: u64) -> u32 {
        let after = self.lines.partition_point(|(start, _)| *start <= address);
        after.checked_sub(1).map_or(0, |at| self.lines[at].1)
    }

    /// Whether it is an Erlang function, not a fragment of the emulator's own.
    #[must_use]
    pub fn is_erlang(&self) -> bool {
        self.arity.is_some()
    }
}

/// What BeamAsm adds to the name of a function for what stands before its first instruction.
const PROLOGUE: &str = "-CodeInfoPrologue";

/// What a name of the list is: BeamAsm writes `module:function/arity`; other names are those of fragments.
fn parts<'n>(module: &str, name: &'n str) -> (&'n str, Option<u8>) {
    let name = name.strip_suffix(PROLOGUE).unwrap_or(name);
    let of_module = name
        .strip_prefix(module)
        .and_then(|rest| rest.strip_prefix(':'));
    let parts = of_module.and_then(|rest| {
        let (function, arity) = rest.rsplit_once('/')?;
        Some((function, arity.parse().ok()?))
    });
    parts.map_or((name, None), |(function, arity)| (function, Some(arity)))
}

/// The text of an atom that is written as Erlang writes it: in quotes where it needs them.
fn unquoted(atom: &str) -> String {
    let quoted = atom
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    let Some(quoted) = quoted else {
        return atom.to_owned();
    };
    let mut text = String::new();
    let mut rest = quoted.chars();
    while let Some(c) = rest.next() {
        let c = match c {
            '\\' => match rest.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(c) => c,
                None => '\\',
            },
            c => c,
        };
        text.push(c);
    }
    text
}

/// The functions of one entry of the list.
type Part = Arc<Vec<Function>>;

/// What is known of an entry: when all this is the same, its functions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    entry: Entry,
    head: [u64; list::HEAD_WORDS],
}

/// All machine code of an emulator, as of the last reading.
#[derive(Debug, Default)]
pub struct Code {
    parts: BTreeMap<Key, Part>,
    /// By address: the part, and the index in it.
    sorted: Vec<(u64, Part, u32)>,
    /// Where the emulator returns to when a process ends: the oldest word of every stack.
    normal_exit: Option<u64>,
    /// A stack has led to code that is not here: it was loaded later.
    has_missed: Cell<bool>,
}

/// How often a list that changes meanwhile is read at most.
const TRIES: usize = 8;

impl Code {
    /// Reads the list.
    ///
    /// # Errors
    /// When it is damaged, or changes all the time.
    pub fn read(memory: &impl Memory, list: ListAt) -> Result<Code, Damage> {
        let mut code = Code::default();
        code.refresh(memory, list)?;
        Ok(code)
    }

    /// Reads what has changed since. Where that fails, the code stays as it was.
    ///
    /// # Errors
    /// When the list is damaged, or changes all the time.
    pub fn refresh(&mut self, memory: &impl Memory, list: ListAt) -> Result<(), Damage> {
        let mut last = Damage::Unreadable;
        for _ in 0..TRIES {
            match self.read_again(memory, list) {
                Ok(parts) => {
                    self.set(parts);
                    return Ok(());
                }
                Err(damage) => last = damage,
            }
        }
        Err(last)
    }

    fn read_again(
        &mut self,
        memory: &impl Memory,
        list: ListAt,
    ) -> Result<BTreeMap<Key, Part>, Damage> {
        let mut parts = BTreeMap::new();
        for entry in walk(memory, list)? {
            let head = head(memory, &entry)?;
            let key = Key { entry, head };
            let part = match self.parts.get(&key) {
                Some(known) => known.clone(),
                None => match info(memory, &entry)? {
                    Info::Emulator { normal_exit } => {
                        self.normal_exit = Some(normal_exit);
                        Part::default()
                    }
                    Info::Module { name, ranges } => Arc::new(functions(&name, ranges)),
                },
            };
            parts.insert(key, part);
        }
        debug_assert!(parts.len() <= ENTRIES_MAX);
        Ok(parts)
    }

    fn set(&mut self, parts: BTreeMap<Key, Part>) {
        self.sort(parts.values().cloned());
        self.parts = parts;
    }

    /// Has these parts, and no others.
    pub(crate) fn replace(&mut self, parts: Vec<Arc<Vec<Function>>>, normal_exit: u64) {
        self.sort(parts.into_iter());
        self.normal_exit = Some(normal_exit);
    }

    fn sort(&mut self, parts: impl Iterator<Item = Part>) {
        self.sorted.clear();
        for part in parts {
            let places = part.iter().zip(0..);
            self.sorted
                .extend(places.map(|(of, at)| (of.start, part.clone(), at)));
        }
        self.sorted.sort_unstable_by_key(|(start, ..)| *start);
    }

    /// The function that an address is in.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<&Function> {
        let after = self.sorted.partition_point(|(start, ..)| *start <= address);
        let (_, part, index) = self.sorted.get(after.checked_sub(1)?)?;
        let function = &part[*index as usize];
        (address < function.end).then_some(function)
    }

    /// The function that a return address leads to. If there is none, code has been loaded since the last reading.
    #[must_use]
    pub fn caller(&self, back: u64) -> Option<&Function> {
        let found = self.at(back.checked_sub(1)?);
        if found.is_none() {
            self.miss();
        }
        found
    }

    /// A stack has led to code that is not here.
    pub fn miss(&self) {
        self.has_missed.set(true);
    }

    /// Whether a stack has led to code that is not here, since this was asked last.
    #[must_use]
    pub fn take_missed(&self) -> bool {
        self.has_missed.take()
    }

    /// From the first byte of code to behind the last one.
    #[must_use]
    pub fn bounds(&self) -> std::ops::Range<u64> {
        let first = self.sorted.first().map_or(0, |(start, ..)| *start);
        let last = self.sorted.last();
        let end = last.map_or(0, |(_, part, index)| part[*index as usize].end);
        first..end
    }

    /// Where the emulator returns to when a process ends.
    #[must_use]
    pub fn normal_exit(&self) -> Option<u64> {
        self.normal_exit
    }

    /// All functions, in order of address.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.sorted
            .iter()
            .map(|(_, part, index)| &part[*index as usize])
    }

    /// How many modules there are, the emulator's own fragments included.
    #[must_use]
    pub fn modules(&self) -> usize {
        let modules = self.functions().map(|of| &*of.module);
        modules.collect::<FxHashSet<&str>>().len()
    }
}

fn functions(module: &str, ranges: Vec<list::Range>) -> Vec<Function> {
    let text: Arc<str> = unquoted(module).into();
    let function = |range: list::Range| {
        let (name, arity) = parts(module, &range.name);
        Function {
            start: range.start,
            end: range.end,
            module: text.clone(),
            name: unquoted(name).into(),
            arity,
            lines: range.lines,
        }
    };
    ranges.into_iter().map(function).collect()
}

#[cfg(test)]
pub(crate) mod tests;
