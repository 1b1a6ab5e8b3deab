//! The entries that funs refer to: those of functions and of funs, through which calls find their code.
//!
//! An entry is made once and lives for ever, so that terms and code may point to it. `code/entry.rs` makes, finds and
//! changes entries.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::Atom;

/// Code generations: one active, one being staged, one that some thread may still read.
pub(crate) const GENERATIONS: usize = 3;

/// The active one.
pub(crate) static ACTIVE: AtomicUsize = AtomicUsize::new(0);

/// The code generation that calls use.
#[inline(always)]
#[must_use]
pub fn active() -> usize {
    ACTIVE.load(Ordering::Acquire)
}

/// Words of a function's head, which stand before its first instruction.
pub(crate) const HEAD_WORDS: usize = 7;

/// Words of an export's stub: a function's head and one instruction.
pub(crate) const STUB_WORDS: usize = HEAD_WORDS + 3;

/// An address in code: an entry, a label, a return address. Only the engine that made the code knows what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CodeAddress(u64);

impl CodeAddress {
    /// Nowhere.
    pub(crate) const NULL: CodeAddress = CodeAddress(0);

    /// As it stands in a word: of a stack, of an entry, of code.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn of_word(word: u64) -> CodeAddress {
        CodeAddress(word)
    }

    /// The address of a word of specific instructions.
    #[inline(always)]
    #[must_use]
    pub fn of(code: *const u64) -> CodeAddress {
        CodeAddress(code as u64)
    }

    /// Is it nowhere?
    #[inline(always)]
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// As a word.
    #[inline(always)]
    #[must_use]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The specific instructions that are there, for whoever knows that they are.
    #[inline(always)]
    #[must_use]
    pub const fn code(self) -> *const u64 {
        self.0 as *const u64
    }

    /// Where a call is that returns here: a place within its instruction.
    #[inline(always)]
    #[must_use]
    pub const fn call(self) -> CodeAddress {
        CodeAddress(self.0.wrapping_sub(8))
    }

    /// A return address that such a call at this place would have.
    #[inline(always)]
    #[must_use]
    pub const fn behind(self) -> CodeAddress {
        CodeAddress(self.0.wrapping_add(8))
    }
}

/// A term that stays for ever, once it is there. How it comes there: `heap/literal.rs`.
#[derive(Default)]
pub struct LiteralCell(pub(crate) AtomicU64);

/// `M:F/A` as others call it.
#[repr(C)]
pub struct Export {
    /// Where calls go, for each code generation.
    pub addresses: [AtomicU64; GENERATIONS],
    /// A function's head and one instruction, for exports without code of their own; for one under a
    /// breakpoint the code's address.
    pub(crate) stub: [AtomicU64; STUB_WORDS],
    /// Module.
    pub module: Atom,
    /// Function.
    pub function: Atom,
    /// Arity.
    pub arity: u8,
    /// The BIF it is, as an index into the table of BIFs.
    pub bif: Option<u32>,
    /// A BIF under a breakpoint: calls go through its entry.
    pub is_bif_traced: AtomicBool,
    /// Its fun, made when it is first asked for.
    pub(crate) lambda: LiteralCell,
    /// How many there were before it.
    pub number: u32,
}

impl Export {
    /// Where a call goes now.
    #[inline(always)]
    #[must_use]
    pub fn address(&self) -> CodeAddress {
        CodeAddress::of_word(self.addresses[active()].load(Ordering::Acquire))
    }
}

/// A fun of a module: identity and where its code is.
#[repr(C)]
pub struct FunEntry {
    /// Where calls go, for each code generation; 0 while its module is not loaded.
    pub addresses: [AtomicU64; GENERATIONS],
    /// Module it was made in.
    pub module: Atom,
    /// MD5 of that module's code.
    pub uniq: [u8; 16],
    /// Hash of its source, as the compiler gave it.
    pub old_uniq: u32,
    /// Its place among the module's funs.
    pub index: u32,
    /// Arguments its code takes: those of a call and the free variables.
    pub arity: u8,
}

impl FunEntry {
    /// Where a call goes now; null while its module is not loaded.
    #[inline(always)]
    #[must_use]
    pub fn address(&self) -> CodeAddress {
        CodeAddress::of_word(self.addresses[active()].load(Ordering::Acquire))
    }
}
