//! What is known of registers where an instruction begins: which hold small integers, and between which numbers.
//!
//! It is known from the `Type` chunk, or from instructions whose results are so whichever way they take, their helpers'
//! included (`templates/effects.rs`). It holds until the register gets another value, or to the next place that a jump leads to.

use smallvec::SmallVec;

use super::compile::Compiler;
use super::templates;
use crate::code::operand::{Reg, Src};
use crate::hash::HashMap;
use crate::loader::module::Module;
use crate::loader::types::{Range, Read, Types};
use crate::term::RawTerm;

/// Which registers an instruction changes.
pub(super) enum Forgets {
    /// These.
    Written(SmallVec<[Reg; 4]>),
    /// All x registers.
    X,
    /// All y registers: they have other names.
    Y,
    /// All.
    All,
}

/// What an instruction does to registers.
pub(super) struct Effect {
    pub(super) forgets: Forgets,
    /// What is known of those that it sets.
    pub(super) learns: SmallVec<[(Reg, Range); 4]>,
}

/// What is known where an instruction begins.
pub(super) struct Known<'m> {
    types: &'m Types,
    /// What the chunk has for this instruction and those behind it.
    reads: &'m [Read],
    /// Offsets of instructions that jumps may lead to: how many words name them.
    targets: HashMap<u32, u32>,
    now: Facts,
}

/// Registers that hold small integers.
pub(super) type Facts = SmallVec<[(Reg, Range); 8]>;

/// Most registers that facts are kept of.
const MOST: usize = 32;

impl<'m> Known<'m> {
    /// Of a function between these offsets, of which nothing is known where it begins.
    pub(super) fn new(module: &'m Module, entry: u32, end: u32) -> Known<'m> {
        Known {
            types: &module.types,
            reads: module.types.reads_from(entry),
            targets: targets(module, entry, end),
            now: Facts::new(),
        }
    }

    /// The next instruction is the one at this offset. Where only one jump leads to it, this was known there.
    pub(super) fn go_on(&mut self, offset: u32, known_there: Option<Facts>) {
        if self.is_target(offset) {
            self.now = known_there.unwrap_or_default();
        }
        while let Some((read, rest)) = self
            .reads
            .split_first()
            .filter(|(read, _)| read.at <= offset)
        {
            self.reads = rest;
            if let Some(range) = self.types.range(*read).filter(|_| read.at == offset) {
                self.set(Reg(read.reg.into()), range);
            }
        }
    }

    /// May a jump lead to the instruction at this offset?
    pub(super) fn is_target(&self, offset: u32) -> bool {
        self.targets.contains_key(&offset)
    }

    /// Leads at most one jump to the instruction at this offset?
    pub(super) fn is_target_once(&self, offset: u32) -> bool {
        self.targets.get(&offset).is_none_or(|&count| count == 1)
    }

    /// What is known now.
    pub(super) fn facts(&self) -> Facts {
        self.now.clone()
    }

    fn set(&mut self, reg: Reg, range: Range) {
        self.forget(reg);
        if self.now.len() < MOST {
            self.now.push((reg, range));
        }
    }

    fn forget(&mut self, reg: Reg) {
        self.now.retain(|(known, _)| *known != reg);
    }

    /// The instruction has been compiled.
    pub(super) fn take(&mut self, effect: Effect) {
        match effect.forgets {
            Forgets::Written(written) => written.into_iter().for_each(|reg| self.forget(reg)),
            Forgets::X => self.now.retain(|(reg, _)| reg.is_y()),
            Forgets::Y => self.now.retain(|(reg, _)| !reg.is_y()),
            Forgets::All => self.now.clear(),
        }
        for (reg, range) in effect.learns {
            self.set(reg, range);
        }
    }

    /// Between which numbers the small integer is that this source has; `None` where it may be something else.
    pub(super) fn range(&self, src: Src) -> Option<Range> {
        match src.reg() {
            Some(reg) => self
                .now
                .iter()
                .find(|(known, _)| *known == reg)
                .map(|(_, range)| *range),
            None => number_of(src).and_then(|number| Range::of(number.into(), number.into())),
        }
    }
}

/// The number of a constant that is a small integer.
pub(super) fn number_of(src: Src) -> Option<i64> {
    let is_small = src.reg().is_none() && templates::is_small(src.0);
    is_small.then(|| RawTerm(src.0).small_value())
}

/// Offsets that words of this function name, be they labels or not, and how many do.
fn targets(module: &Module, entry: u32, end: u32) -> HashMap<u32, u32> {
    let words = &module.code()[entry as usize..end as usize];
    let base = module.address(entry).word();
    let offset_of = |word: u64| {
        let bytes = word.checked_sub(base)?;
        let is_inside = bytes < 8 * words.len() as u64 && bytes % 8 == 0;
        is_inside.then(|| entry + (bytes / 8) as u32)
    };
    let words = words
        .iter()
        .map(|word| word.load(std::sync::atomic::Ordering::Relaxed));
    let mut counts = HashMap::default();
    for offset in words.filter_map(offset_of) {
        *counts.entry(offset).or_insert(0) += 1;
    }
    counts
}

impl Compiler<'_> {
    /// See [`Known::range`].
    pub(super) fn range(&self, src: Src) -> Option<Range> {
        self.known.range(src)
    }

    /// Between which numbers the instruction's result is, where that is known.
    pub(super) fn result(&self, dst: Reg) -> Option<Range> {
        let mut learnt = self.effect.learns.iter();
        learnt.find(|(reg, _)| *reg == dst).map(|(_, range)| *range)
    }
}
