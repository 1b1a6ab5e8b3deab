//! Writes a module's specific instructions, which the interpreter runs, as text.
//!
//! A line is an offset in words, the instruction's name, and its operands as `name=value`. Operands, their kinds and
//! their lengths come from the table of instructions (`code/op.rs`).
#![expect(unsafe_code, reason = "constant operands are words")]

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::mem::offset_of;
use std::sync::atomic::Ordering;

use super::module::Module;
use crate::code::bif::Bif;
use crate::code::op::{Op, entry as head};
use crate::code::operand::{Kind, Operand};
use crate::code::{Export, FunEntry, record};
use crate::term::{CodeAddress, RawTerm, Term, am};

/// A module's code as text, made by [`Display`].
pub struct Specific<'a> {
    module: &'a Module,
    words: Vec<u64>,
}

/// An instruction: where it stands, and its operands with their words.
struct Line {
    offset: usize,
    op: Op,
    operands: Vec<(&'static Operand, Vec<u64>)>,
    /// Where the next one stands.
    next: usize,
}

impl<'a> Specific<'a> {
    /// The text of a prepared module.
    #[must_use]
    pub fn new(module: &'a Module) -> Self {
        let words = module.code().iter();
        Self {
            module,
            words: words.map(|word| word.load(Ordering::Relaxed)).collect(),
        }
    }

    /// Takes another word for the one at `offset`.
    pub(crate) fn set_word(&mut self, offset: u32, word: u64) {
        self.words[offset as usize] = word;
    }

    /// The text of the instruction at `offset`.
    pub(crate) fn instruction(&self, offset: u32) -> impl Display {
        let line = self.line(offset as usize);
        fmt::from_fn(move |f| self.instruction_to(f, &line))
    }

    /// The name of the instruction at `offset`.
    pub(crate) fn name(&self, offset: u32) -> &'static str {
        Op::of(self.words[offset as usize]).name()
    }

    /// What operands of the instruction at `offset` point to: addresses, and what is there.
    pub(crate) fn pointers(&self, offset: u32) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        for (operand, words) in self.line(offset as usize).operands {
            let address = match operand.kind {
                Kind::BifRow | Kind::Lambda => words[0],
                // Compiled code loads the address of the code from there.
                Kind::ExportEntry => words[0] + offset_of!(Export, addresses) as u64,
                _ => continue,
            };
            let name = fmt::from_fn(|f| self.word(f, operand.kind, words[0]));
            all.push((address, name.to_string()));
        }
        all
    }

    /// Where instructions stand, from one of them on.
    #[cfg(test)]
    pub(crate) fn offsets(&self, from: u32) -> impl Iterator<Item = u32> {
        self.lines_from(from as usize)
            .map(|line| line.offset as u32)
    }

    /// All instructions, one behind the other.
    fn lines(&self) -> impl Iterator<Item = Line> {
        self.lines_from(0)
    }

    fn lines_from(&self, offset: usize) -> impl Iterator<Item = Line> {
        let first = (offset < self.words.len()).then(|| self.line(offset));
        std::iter::successors(first, |line| {
            (line.next < self.words.len()).then(|| self.line(line.next))
        })
    }

    fn line(&self, offset: usize) -> Line {
        let word = self.words[offset];
        let op = Op::of(word);
        let mut packed = (1..4).map(|at| (word >> (16 * at)) & 0xffff);
        let mut next = offset + 1;
        let mut operands: Vec<(&Operand, Vec<u64>)> = Vec::new();
        for operand in op.operands() {
            if operand.is_packed {
                operands.push((operand, packed.by_ref().take(1).collect()));
                continue;
            }
            let words = operand.count.map_or(1, |count| {
                let counts = operands.iter().find(|(other, _)| other.name == count);
                counts.map_or(0, |(_, words)| words[0] as usize)
            });
            operands.push((operand, self.words[next..next + words].to_vec()));
            next += words;
        }
        Line {
            offset,
            op,
            operands,
            next,
        }
    }

    /// The offset of a label's address.
    fn offset(&self, address: u64) -> Option<u32> {
        self.module.offset_of(CodeAddress::of_word(address))
    }

    /// The offsets that instructions lead to.
    fn targets(&self) -> BTreeSet<u32> {
        let mut targets = BTreeSet::new();
        for (operand, words) in self.lines().flat_map(|line| line.operands) {
            let labels = words
                .iter()
                .enumerate()
                .filter(|(at, word)| **word != 0 && is_label(operand.kind, *at, words.len()));
            targets.extend(labels.filter_map(|(_, word)| self.offset(*word)));
        }
        targets
    }

    fn word(&self, f: &mut Formatter<'_>, kind: Kind, word: u64) -> fmt::Result {
        match kind {
            Kind::Reg | Kind::Dst => write_register(f, word),
            Kind::FReg => write!(f, "fr{word}"),
            Kind::Moves => {
                write_register(f, word & 0xffff)?;
                f.write_str("->")?;
                write_register(f, word >> 16)
            }
            Kind::Src if word & 3 == 0 => write_register(f, word),
            Kind::Src | Kind::Const => {
                // SAFETY: H6: a constant operand is an immediate or a literal of the module.
                let term: Term<'_> = unsafe { Term::new(RawTerm(word)) };
                constant(f, term)
            }
            Kind::Label | Kind::Labels => match self.offset(word) {
                Some(offset) if word != 0 => write!(f, "@{offset}"),
                _ => f.write_str("none"),
            },
            Kind::BifRow => {
                // SAFETY: I1: the loader has put the address of a row there, which lives for ever.
                let bif = unsafe { &*(word as *const Bif) };
                write!(f, "{}:{}/{}", bif.module, bif.function, bif.arity)
            }
            Kind::ExportEntry => {
                // SAFETY: I1: the loader has put the address of an entry there, which lives for ever.
                let export = unsafe { &*(word as *const Export) };
                write!(f, "{}:{}/{}", export.module, export.function, export.arity)
            }
            Kind::Lambda => {
                // SAFETY: I1: the loader has put the address of an entry there, which lives for ever.
                let entry = unsafe { &*(word as *const FunEntry) };
                write!(f, "{}#{}/{}", entry.module, entry.index, entry.arity)
            }
            Kind::Bytes => match self.module.string_offset(word as *const u8) {
                Some(offset) => write!(f, "string+{offset}"),
                None => f.write_str("none"),
            },
            _ => write!(f, "{word}"),
        }
    }

    fn instruction_to(&self, f: &mut Formatter<'_>, line: &Line) -> fmt::Result {
        f.write_str(line.op.name())?;
        for (operand, words) in &line.operands {
            write!(f, " {}=", operand.name)?;
            match (operand.kind, operand.count) {
                (Kind::Table, _) => {
                    let (terms, labels) = words.split_at(words.len() / 2);
                    self.list(f, Kind::Srcs, terms)?;
                    self.list(f, Kind::Labels, labels)?;
                }
                (kind, Some(_)) => self.list(f, kind, words)?,
                (kind, None) => self.word(f, kind, words[0])?,
            }
        }
        Ok(())
    }

    fn list(&self, f: &mut Formatter<'_>, kind: Kind, words: &[u64]) -> fmt::Result {
        f.write_str("[")?;
        let mut rest = words;
        while !rest.is_empty() {
            let kinds = item(kind, rest[0]);
            let (first, behind) = rest.split_at(kinds.len().min(rest.len()));
            for (at, (&word, &kind)) in first.iter().zip(kinds).enumerate() {
                f.write_str(if at == 0 { "" } else { " " })?;
                self.word(f, kind, word)?;
            }
            rest = behind;
            f.write_str(if rest.is_empty() { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

/// What the next words of a list are, of which this is the first.
fn item(list: Kind, first: u64) -> &'static [Kind] {
    use Kind::{Bytes, Const, Dst, Label, Num, Src};
    const ENSURE_AT_LEAST: u64 = am::ensure_at_least.raw().0;
    const INTEGER: u64 = am::integer.raw().0;
    const BINARY: u64 = am::binary.raw().0;
    const GET_TAIL: u64 = am::get_tail.raw().0;
    const EQUALS: u64 = am::exactly_equal.raw().0;
    const STRING: u64 = am::string.raw().0;
    match list {
        Kind::Srcs => &[Src],
        Kind::KeyValues => &[Src, Src],
        Kind::KeyDsts => &[Src, Dst],
        Kind::Updates => &[Num, Src],
        Kind::TermLabels => &[Const, Label],
        Kind::ArityLabels => &[Num, Label],
        Kind::Labels => &[Label],
        Kind::Segments if first == STRING => &[Const, Num, Num, Src, Bytes, Const],
        Kind::Segments => &[Const, Num, Num, Src, Src, Src],
        Kind::Commands => match first {
            ENSURE_AT_LEAST => &[Const, Num, Num],
            INTEGER | BINARY => &[Const, Num, Src, Num, Num, Dst],
            GET_TAIL => &[Const, Num, Num, Dst],
            EQUALS => &[Const, Src, Num, Num],
            _ => &[Const, Num],
        },
        _ => &[Num],
    }
}

/// Is word `at` of an operand of `words` words the address of an instruction?
fn is_label(kind: Kind, at: usize, words: usize) -> bool {
    match kind {
        Kind::Label | Kind::Labels => true,
        Kind::TermLabels | Kind::ArityLabels => at % 2 == 1,
        Kind::Table => at >= words / 2,
        _ => false,
    }
}

/// Writes a constant. A new map is made of one that has no values yet, which are no terms.
fn constant(f: &mut Formatter<'_>, term: Term<'_>) -> fmt::Result {
    let values = term
        .as_map()
        .map(|map| map.iter().map(|(_, value)| value.raw()));
    if !values.is_some_and(|mut values| values.any(|value| value == record::NO_DEFAULT)) {
        return write!(f, "{term:?}");
    }
    f.write_str("#{")?;
    for (n, (key, _)) in term
        .as_map()
        .into_iter()
        .flat_map(|map| map.iter())
        .enumerate()
    {
        f.write_str(if n == 0 { "" } else { "," })?;
        write!(f, "{key:?}=>_")?;
    }
    f.write_str("}")
}

fn write_register(f: &mut Formatter<'_>, code: u64) -> fmt::Result {
    let kind = if code & 4 == 0 { 'x' } else { 'y' };
    write!(f, "{kind}{}", code / 8)
}

impl Display for Specific<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{{module,{}}}.", self.module.name)?;
        let targets = self.targets();
        for line in self.lines() {
            let offset = line.offset as u32;
            if line.op == Op::FuncInfo {
                let entry = offset + head::WORDS as u32;
                let called = self.module.mfa(entry);
                writeln!(f, "\n{}/{}:", called.function, called.arity)?;
            }
            let mark = if targets.contains(&offset) { '@' } else { ' ' };
            write!(f, " {mark}{offset:<6} ")?;
            self.instruction_to(f, &line)?;
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use beamline_needs::{Need, skipped};

    use super::*;
    use crate::loader::load::prepare;

    /// Lengths add up: from the first word on, instructions follow each other to the last, and each function's head and
    /// each label is one of them.
    #[test]
    fn lengths_of_all_instructions_add_up() {
        let files = crate::beam::samples::real_files();
        if files.is_empty() {
            return skipped(Need::Otp, "there is no OTP; BEAMLINE_OTP names one");
        }
        for path in files {
            let file = std::fs::read(&path).expect("a real file is readable");
            let module = prepare(&file).expect("a real file loads");
            let code = Specific::new(&module);
            let starts: BTreeSet<u32> = code.lines().map(|line| line.offset as u32).collect();
            let heads = module
                .functions
                .iter()
                .map(|entry| entry - head::WORDS as u32);
            for offset in heads.chain(code.targets()) {
                assert!(starts.contains(&offset), "{}: {offset}", path.display());
            }
            for line in code.lines() {
                let at = module.address(line.offset as u32);
                // SAFETY: I1: the loader has put the code there.
                let words = unsafe { Op::words_at(at, *at.code()) };
                assert_eq!(
                    words,
                    line.next - line.offset,
                    "{}: {}",
                    path.display(),
                    line.offset
                );
            }
            assert!(
                code.to_string().starts_with("{module,"),
                "{}",
                path.display()
            );
            let end = code.lines().last().map(|line| line.next);
            assert_eq!(end, Some(module.code().len()), "{}", path.display());
        }
    }
}
