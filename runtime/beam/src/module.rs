//! A `.beam` file that was read and checked, as one value.

use std::ops::Range;

use super::genop::Op;
use super::operand::{Arg, AtomIndex};

/// A module as its `.beam` file gives it.
///
/// Invariants, checked by [`BeamModule::decode`]: every atom, import, literal, lambda, type, line,
/// string and label that anything here refers to exists; label 0 is never defined; each function
/// is `label`, perhaps `line`, `func_info`, `label`, then its code; exports, locals and lambdas
/// name a function's entry label of the right arity; an instruction that takes a list has one, of a
/// length that fits its groups, and no other instruction has.
#[derive(Debug)]
pub struct BeamModule {
    /// The module's name.
    pub name: AtomIndex,
    /// The module's own atom table.
    pub atoms: AtomTable,
    /// Functions that the module calls elsewhere.
    pub imports: Vec<Import>,
    /// Functions that others may call.
    pub exports: Vec<Export>,
    /// Functions that are not exported; empty where the file was stripped.
    pub locals: Vec<Export>,
    /// Funs that the module makes.
    pub lambdas: Vec<Lambda>,
    /// Literals in the external term format, each with its version byte.
    pub literals: ByteTable,
    /// The string table: bytes that binaries are matched with and built of.
    pub strings: Vec<u8>,
    /// Source lines; `None` where the file was stripped or has an unknown version of them.
    pub lines: Option<LineTable>,
    /// What the compiler knows of operands; `None` where the file has none of a known version, and
    /// then no operand refers to it.
    pub types: Option<Vec<BeamType>>,
    /// Definitions of native records.
    pub records: Vec<RecordDef>,
    /// Attributes in the external term format; empty where there are none.
    pub attributes: Vec<u8>,
    /// Compile information in the external term format; empty where there is none.
    pub compile_info: Vec<u8>,
    /// Where a debugger may stop and what it then sees; `debug_line` instructions refer to it by row, from 1.
    pub debug: Vec<DebugItem>,
    /// What `module_info(md5)` gives.
    pub md5: [u8; 16],
    /// Labels are below this.
    pub label_count: u32,
    /// The functions in the order of the code, which they cover up to `int_code_end`.
    pub functions: Vec<Function>,
    /// The instructions, the last of them `int_code_end`.
    pub code: Vec<Instr>,
    /// All operands; see [`BeamModule::args`].
    pub(super) args: Vec<Arg>,
    /// Integers of more than 64 bits; see [`BeamModule::big`].
    pub(super) bigs: ByteTable,
    /// Index into `code` of each label, or `u32::MAX` where it stands nowhere.
    pub(super) labels: Vec<u32>,
    /// Index into `functions` for each entry label, else `u32::MAX`.
    pub(super) entries: Vec<u32>,
}

/// Atoms, numbered from 1; 0 is the empty string and stands for no atom.
#[derive(Debug, Default)]
pub struct AtomTable {
    pub(super) text: String,
    /// Where each atom ends in `text`.
    pub(super) ends: Vec<u32>,
}

impl AtomTable {
    /// The number of rows, row 0 included.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True where there is no atom at all, which no module has.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.len() <= 1
    }

    /// An atom's text.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    #[must_use]
    pub fn get(&self, index: AtomIndex) -> &str {
        let i = index as usize;
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.text[start as usize..self.ends[i] as usize]
    }

    /// All atoms with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (AtomIndex, &str)> {
        (1..self.len() as AtomIndex).map(|i| (i, self.get(i)))
    }

    /// The number of an atom, where the module has it.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<AtomIndex> {
        self.iter().find(|(_, atom)| *atom == text).map(|(i, _)| i)
    }
}

/// Rows of bytes in one block.
#[derive(Debug, Default)]
pub struct ByteTable {
    pub(super) bytes: Vec<u8>,
    pub(super) rows: Vec<Range<u32>>,
}

impl ByteTable {
    /// The number of rows.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True where there are no rows.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One row.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u32) -> &[u8] {
        let row = &self.rows[index as usize];
        &self.bytes[row.start as usize..row.end as usize]
    }

    /// All rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.rows
            .iter()
            .map(|row| &self.bytes[row.start as usize..row.end as usize])
    }
}

/// A function of another module (or of this one, called from outside).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import {
    /// Module.
    pub module: AtomIndex,
    /// Function.
    pub function: AtomIndex,
    /// Arity.
    pub arity: u8,
}

/// A function of this module with its entry label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Function.
    pub function: AtomIndex,
    /// Arity.
    pub arity: u8,
    /// Entry label.
    pub label: u32,
}

/// A fun that the module makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lambda {
    /// The function that holds its code.
    pub function: AtomIndex,
    /// Arity of that function: the fun's own plus `num_free`.
    pub arity: u8,
    /// Entry label.
    pub label: u32,
    /// The fun's number in its module.
    pub index: u32,
    /// How many terms its environment has.
    pub num_free: u8,
    /// 27 bits of the module's checksum, kept for the external format of funs.
    pub old_uniq: u32,
}

/// The places in source files that instructions come from.
#[derive(Debug, Default)]
pub struct LineTable {
    /// How many `line` instructions there are, as the compiler counted.
    pub instruction_count: u32,
    /// The code has `executable_line` instructions.
    pub executable_line: bool,
    /// The compiler asks for line counters.
    pub force_line_counters: bool,
    /// File names; the first is the module's name with `.erl`, whatever the source was called.
    pub files: Vec<String>,
    /// Places; the first is the unknown place.
    pub items: Vec<LineItem>,
}

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LineItem {
    /// Row of [`LineTable::files`].
    pub file: u32,
    /// Line number from 1; 0 where unknown.
    pub line: u32,
}

/// The type of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeamType {
    /// A set of `BeamType::ATOM` and so on.
    pub union: u16,
    /// Least value, for numbers.
    pub min: Option<i64>,
    /// Greatest value, for numbers.
    pub max: Option<i64>,
    /// For bitstrings: the size in bits is a multiple of this.
    pub unit: Option<u16>,
}

#[expect(missing_docs, reason = "the names are the types")]
#[allow(dead_code, reason = "the format's whole set")]
impl BeamType {
    pub const ATOM: u16 = 1;
    pub(crate) const BITSTRING: u16 = 1 << 1;
    pub(crate) const CONS: u16 = 1 << 2;
    pub const FLOAT: u16 = 1 << 3;
    pub const FUN: u16 = 1 << 4;
    pub const INTEGER: u16 = 1 << 5;
    pub const MAP: u16 = 1 << 6;
    pub const NIL: u16 = 1 << 7;
    pub const PID: u16 = 1 << 8;
    pub const PORT: u16 = 1 << 9;
    pub(crate) const REFERENCE: u16 = 1 << 10;
    pub(crate) const TUPLE: u16 = 1 << 11;
    pub const RECORD: u16 = 1 << 12;
    pub const ANY: u16 = (1 << 13) - 1;
}

/// The definition of a native record.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordDef {
    /// Its name.
    pub name: AtomIndex,
    /// Whether other modules may use it.
    pub exported: bool,
    /// Fields in the order of the source: name, and default value where it has one (`Nil`, `Atom`,
    /// `I`, `Big` or `Literal`).
    pub fields: Vec<(AtomIndex, Option<Arg>)>,
}

/// A function of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its module, as `func_info` says.
    pub module: AtomIndex,
    /// Its name.
    pub name: AtomIndex,
    /// Its arity.
    pub arity: u8,
    /// The label before `func_info`.
    pub info_label: u32,
    /// The label after it.
    pub entry_label: u32,
    /// Index into `code` of the label before `func_info`.
    pub first: u32,
    /// Index into `code` after the function's last instruction.
    pub end: u32,
}

/// One instruction; its operands come from [`BeamModule::args`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instr {
    /// What it does.
    pub op: Op,
    /// Where it lies in the `Code` chunk, in bytes.
    pub offset: u32,
    pub(super) first_arg: u32,
    pub(super) arg_count: u32,
}

/// The debug information of one `debug_line` instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct DebugItem {
    /// The stack frame there.
    pub frame: FrameSize,
    /// Variables, and what they are bound to. A name is a small integer or a literal; a value is a register
    /// or a constant.
    pub vars: Vec<(Arg, Arg)>,
    /// What is called from there.
    pub calls: Vec<DebugCall>,
}

/// The stack frame of a function where it may be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSize {
    /// At the function's entry.
    Entry,
    /// There is none.
    None,
    /// This many words.
    Words(u32),
}

/// A call. Names are atoms, or literals: the names of variables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DebugCall {
    /// Function and arity.
    Local(Arg, u8),
    /// Module, function and arity.
    Remote(Arg, Arg, u8),
    /// Of a variable's fun.
    Variable(Arg),
}

impl BeamModule {
    /// The operands of an instruction of this module: as many as the arity of its `op`, then the
    /// elements of its list, where it has one.
    #[inline]
    #[must_use]
    pub fn args(&self, instr: &Instr) -> &[Arg] {
        &self.args[instr.first_arg as usize..][..instr.arg_count as usize]
    }

    /// The elements of an instruction's list; empty where it has none.
    #[inline]
    #[must_use]
    pub fn list(&self, instr: &Instr) -> &[Arg] {
        &self.args(instr)[instr.op.arity()..]
    }

    /// An integer of more than 64 bits: two's complement, big-endian, perhaps with more leading
    /// bytes than needed.
    #[inline]
    #[must_use]
    pub fn big(&self, index: u32) -> &[u8] {
        self.bigs.get(index)
    }

    /// Where a label stands, as an index into `code`.
    #[inline]
    #[must_use]
    pub fn label(&self, label: u32) -> Option<u32> {
        self.labels
            .get(label as usize)
            .copied()
            .filter(|at| *at != u32::MAX)
    }

    /// The function whose entry label this is, as an index into `functions`.
    #[inline]
    #[must_use]
    pub fn function_at(&self, label: u32) -> Option<u32> {
        self.entries
            .get(label as usize)
            .copied()
            .filter(|f| *f != u32::MAX)
    }
}
