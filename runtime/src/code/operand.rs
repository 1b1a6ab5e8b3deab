//! The kinds of operands of specific instructions: how each stands in code, and how it is read and put there.
//!
//! An instruction is a word (the number of its row in the low 16 bits, then three packed operands of 16 bits) and the
//! words behind it. A list is the last operand of its row; another operand counts it.
#![expect(unsafe_code, reason = "operands are read from code words")]

use std::marker::PhantomData;

use crate::code::bif::Bif;
use crate::code::{Export, FunEntry};
use crate::term::{CodeAddress, RawTerm};

/// The kind of an operand, for code that prints or checks code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// See [`Reg`].
    Reg,
    /// See [`FReg`].
    FReg,
    /// See [`Count`].
    Count,
    /// See [`Live`].
    Live,
    /// See [`Need`].
    Need,
    /// See [`Src`].
    Src,
    /// See [`Dst`].
    Dst,
    /// See [`Moves`].
    Moves,
    /// See [`Label`].
    Label,
    /// See [`Const`].
    Const,
    /// See [`Num`].
    Num,
    /// See [`BifRow`].
    BifRow,
    /// See [`ExportEntry`].
    ExportEntry,
    /// See [`Lambda`].
    Lambda,
    /// See [`Bytes`].
    Bytes,
    /// See [`Srcs`].
    Srcs,
    /// See [`KeyValues`].
    KeyValues,
    /// See [`KeyDsts`].
    KeyDsts,
    /// See [`Updates`].
    Updates,
    /// See [`TermLabels`].
    TermLabels,
    /// See [`ArityLabels`].
    ArityLabels,
    /// See [`Table`].
    Table,
    /// See [`Labels`].
    Labels,
    /// See [`Commands`].
    Commands,
    /// See [`Segments`].
    Segments,
}

/// An operand of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// What it means.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Does it stand in the instruction's first word?
    pub is_packed: bool,
    /// Of a list: the name of the operand that counts it.
    pub count: Option<&'static str>,
}

/// A specific instruction in code, to be run or printed.
pub(crate) trait Instruction: Copy {
    /// Its row.
    #[cfg(test)]
    const OP: super::op::Op;
    /// The instruction at `pc`, whose first word is, or was before a breakpoint was set on it, `word`.
    ///
    /// # Safety
    /// I1: the loader has put an instruction of this row at `pc`.
    unsafe fn at(pc: CodeAddress, word: u64) -> Self;
    /// Words that it takes.
    fn words(self) -> usize;
    /// The next one.
    fn next(self) -> CodeAddress;
    /// Where it leads if not to the next one, a test that fails for one; null for nowhere.
    fn second_next(self) -> CodeAddress;
}

/// Code being made.
pub(crate) trait Sink {
    /// Puts a word.
    fn word(&mut self, word: u64);
    /// Puts the address of a label; 0 for none.
    fn label(&mut self, label: u32);
    /// Puts the address of a byte of the module's strings.
    fn string(&mut self, offset: u64);
}

/// A specific instruction to be put in code.
pub(crate) trait Put {
    /// Puts it there.
    fn put(self, sink: &mut impl Sink);
}

/// An operand in the first word of its instruction.
pub(crate) trait Packed {
    /// The type that running code sees.
    type Value;
    /// Reads it.
    fn unpack(bits: u16) -> Self::Value;
}

/// An operand that takes a word.
pub(crate) trait Word {
    /// The type that running code sees.
    type Value;
    /// The type of an operand to be put.
    type Given;
    /// Reads it.
    fn read(word: u64) -> Self::Value;
    /// Puts it.
    fn put(given: Self::Given, sink: &mut impl Sink);
}

/// A list, of as many words as another operand says.
pub(crate) trait List {
    /// The type that running code sees.
    type Value;
    /// The type of an operand to be put.
    type Given;
    /// Reads it.
    ///
    /// # Safety
    /// I1: `count` words stand at `at`.
    unsafe fn read(at: *const u64, count: usize) -> Self::Value;
    /// Puts it.
    fn put(given: Self::Given, sink: &mut impl Sink);
}

/// A register: its byte offset, plus 4 for a y register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reg(pub u64);

impl Reg {
    /// What tells a y register.
    const Y_BIT: u64 = 4;

    /// Is it a y register?
    #[inline(always)]
    #[must_use]
    pub(crate) fn is_y(self) -> bool {
        self.0 & Self::Y_BIT != 0
    }

    /// Where it is, for these x registers and this stack top.
    #[inline(always)]
    #[must_use]
    pub(crate) fn address(self, x: *mut u64, stop: *mut u64) -> *mut u64 {
        let base = if self.is_y() {
            stop.cast::<u8>().wrapping_sub(Self::Y_BIT as usize)
        } else {
            x.cast::<u8>()
        };
        base.wrapping_add(self.0 as usize).cast()
    }
}

impl Packed for Reg {
    type Value = Reg;
    #[inline(always)]
    fn unpack(bits: u16) -> Reg {
        Reg(u64::from(bits))
    }
}

/// Operands that are numbers, in the first word or in one of their own.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])* $name:ident $(packed $packed:tt)? $(word $given:ty)?;)*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        $(numbers! { @packed $name $packed })?
        $(numbers! { @word $name $given })?
    )* };
    (@packed $name:ident ()) => {
        impl Packed for $name {
            type Value = usize;
            #[inline(always)]
            fn unpack(bits: u16) -> usize {
                usize::from(bits)
            }
        }
    };
    (@word $name:ident $given:ty) => {
        impl Word for $name {
            type Value = usize;
            type Given = $given;
            #[inline(always)]
            fn read(word: u64) -> usize {
                word as usize
            }
            fn put(given: $given, sink: &mut impl Sink) {
                sink.word(u64::from(given));
            }
        }
    };
}

numbers! {
    /// A float register.
    FReg packed ();
    /// A small number: of arguments, words of a frame, elements.
    Count packed ();
    /// How many x registers are live: fewer than there are, as the loader keeps the last for itself. A BIF that cannot
    /// collect has as many as there are.
    Live packed () word u16;
    /// Words of heap that are needed, so few that sums with it fit a word.
    Need word u32;
}

/// A register that is read (coded as in [`Reg`], primary tag 00), or else the term itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Src(pub u64);

impl Src {
    /// A register as a source.
    #[must_use]
    pub(crate) fn of(reg: Reg) -> Src {
        Src(reg.0)
    }

    /// The register, where it is one.
    #[inline(always)]
    #[must_use]
    pub(crate) fn reg(self) -> Option<Reg> {
        (self.0 & 3 == 0).then_some(Reg(self.0))
    }
}

impl Word for Src {
    type Value = Src;
    type Given = u64;
    #[inline(always)]
    fn read(word: u64) -> Src {
        Src(word)
    }
    fn put(given: u64, sink: &mut impl Sink) {
        sink.word(given);
    }
}

/// A register that is written, in a word of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dst;

impl Word for Dst {
    type Value = Reg;
    type Given = u16;
    #[inline(always)]
    fn read(word: u64) -> Reg {
        Reg(word)
    }
    fn put(given: u16, sink: &mut impl Sink) {
        sink.word(u64::from(given));
    }
}

/// A second move: from which register to which, as two packed operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moves;

impl Word for Moves {
    type Value = (Reg, Reg);
    type Given = (u16, u16);
    #[inline(always)]
    fn read(word: u64) -> (Reg, Reg) {
        (Reg(word & 0xffff), Reg(word >> 16))
    }
    fn put((from, to): (u16, u16), sink: &mut impl Sink) {
        sink.word(u64::from(from) | u64::from(to) << 16);
    }
}

/// The address of an instruction; null for none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label;

impl Word for Label {
    type Value = CodeAddress;
    type Given = u32;
    #[inline(always)]
    fn read(word: u64) -> CodeAddress {
        CodeAddress::of_word(word)
    }
    fn put(given: u32, sink: &mut impl Sink) {
        sink.label(given);
    }
}

/// A term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Const;

impl Word for Const {
    type Value = RawTerm;
    type Given = RawTerm;
    #[inline(always)]
    fn read(word: u64) -> RawTerm {
        RawTerm(word)
    }
    fn put(given: RawTerm, sink: &mut impl Sink) {
        sink.word(given.0);
    }
}

/// A plain number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Num;

impl Word for Num {
    type Value = u64;
    type Given = u64;
    #[inline(always)]
    fn read(word: u64) -> u64 {
        word
    }
    fn put(given: u64, sink: &mut impl Sink) {
        sink.word(given);
    }
}

/// What lives for ever and is put as its address.
macro_rules! entries {
    ($($(#[doc = $doc:literal])* $name:ident: $entry:ty;)*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl Word for $name {
            type Value = &'static $entry;
            type Given = &'static $entry;
            #[inline(always)]
            fn read(word: u64) -> &'static $entry {
                // SAFETY: I1: the loader has put the address of one there, and it lives for ever.
                unsafe { &*(word as *const $entry) }
            }
            fn put(given: &'static $entry, sink: &mut impl Sink) {
                sink.word(std::ptr::from_ref(given) as u64);
            }
        }
    )* };
}

entries! {
    /// A row of the table of BIFs.
    BifRow: Bif;
    /// An export entry.
    ExportEntry: Export;
    /// A fun entry.
    Lambda: FunEntry;
}

/// The address of bytes among the module's strings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes;

impl Word for Bytes {
    type Value = *const u8;
    type Given = u64;
    #[inline(always)]
    fn read(word: u64) -> *const u8 {
        word as *const u8
    }
    fn put(given: u64, sink: &mut impl Sink) {
        sink.string(given);
    }
}

/// Operands of one kind.
#[derive(Debug)]
pub(crate) struct All<A>(&'static [u64], PhantomData<A>);

/// Operands in twos.
#[derive(Debug)]
pub(crate) struct Pairs<A, B>(&'static [u64], PhantomData<(A, B)>);

/// Sources.
pub(crate) type Srcs = All<Src>;
/// Labels.
pub(crate) type Labels = All<Label>;
/// Keys and values.
pub(crate) type KeyValues = Pairs<Src, Src>;
/// Keys, and where their values go.
pub(crate) type KeyDsts = Pairs<Src, Dst>;
/// Indices from 1, and values.
pub(crate) type Updates = Pairs<Num, Src>;
/// Terms, and where each leads.
pub(crate) type TermLabels = Pairs<Const, Label>;
/// Arities, and where each leads.
pub(crate) type ArityLabels = Pairs<Num, Label>;

/// The words of a list.
///
/// # Safety
/// I1: so many words stand at `at`.
#[inline(always)]
unsafe fn slice(at: *const u64, words: usize) -> &'static [u64] {
    // SAFETY: by contract; nobody keeps them beyond their instruction, and code outlives what it runs (C2).
    unsafe { std::slice::from_raw_parts(at, words) }
}

impl<A> Clone for All<A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A> Copy for All<A> {}

impl<A: Word> All<A> {
    /// Number `index`.
    #[inline(always)]
    pub(crate) fn get(self, index: usize) -> A::Value {
        A::read(self.0[index])
    }
    /// One behind the other.
    #[inline(always)]
    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = A::Value> + ExactSizeIterator {
        self.0.iter().map(|&word| A::read(word))
    }
}

impl<A: Word> List for All<A> {
    type Value = Self;
    type Given = Vec<A::Given>;
    #[inline(always)]
    unsafe fn read(at: *const u64, count: usize) -> Self {
        // SAFETY: by contract.
        All(unsafe { slice(at, count) }, PhantomData)
    }
    fn put(given: Vec<A::Given>, sink: &mut impl Sink) {
        given.into_iter().for_each(|one| A::put(one, sink));
    }
}

impl<A, B> Clone for Pairs<A, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A, B> Copy for Pairs<A, B> {}

impl<A: Word, B: Word> Pairs<A, B> {
    /// How many pairs.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.0.len() / 2
    }
    /// One behind the other.
    #[inline(always)]
    pub(crate) fn iter(
        self,
    ) -> impl DoubleEndedIterator<Item = (A::Value, B::Value)> + ExactSizeIterator {
        let pairs = self.0.chunks_exact(2);
        pairs.map(|pair| (A::read(pair[0]), B::read(pair[1])))
    }
}

impl<A: Word, B: Word> List for Pairs<A, B> {
    type Value = Self;
    type Given = Vec<(A::Given, B::Given)>;
    #[inline(always)]
    unsafe fn read(at: *const u64, count: usize) -> Self {
        // SAFETY: by contract.
        Pairs(unsafe { slice(at, count) }, PhantomData)
    }
    fn put(given: Vec<(A::Given, B::Given)>, sink: &mut impl Sink) {
        for (first, second) in given {
            A::put(first, sink);
            B::put(second, sink);
        }
    }
}

/// Immediate terms in the order of their words, and behind them where each leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// The terms.
    pub terms: &'static [u64],
    /// Where they lead.
    pub labels: Labels,
}

impl List for Table {
    type Value = Table;
    type Given = Vec<(RawTerm, u32)>;
    #[inline(always)]
    unsafe fn read(at: *const u64, count: usize) -> Table {
        // SAFETY: by contract.
        let (terms, labels) = unsafe { slice(at, count) }.split_at(count / 2);
        Table {
            terms,
            labels: All(labels, PhantomData),
        }
    }
    fn put(given: Vec<(RawTerm, u32)>, sink: &mut impl Sink) {
        given.iter().for_each(|(term, _)| sink.word(term.0));
        given.iter().for_each(|&(_, label)| sink.label(label));
    }
}

/// Words that mean what the words before them say.
macro_rules! words {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => { $(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name(pub &'static [u64]);

        impl List for $name {
            type Value = $name;
            type Given = Vec<u64>;
            #[inline(always)]
            unsafe fn read(at: *const u64, count: usize) -> $name {
                // SAFETY: by contract.
                $name(unsafe { slice(at, count) })
            }
            fn put(given: Vec<u64>, sink: &mut impl Sink) {
                given.into_iter().for_each(|word| sink.word(word));
            }
        }
    )* };
}

words! {
    /// What `bs_match` does, command by command (`interp/bits/match_.rs`).
    Commands;
    /// What `bs_create_bin` puts together, six words each (`interp/bits/create.rs`).
    Segments;
}
