//! Terms, and what the bits of a word mean.
//!
//! - [`RawTerm`]: a word at rest, in a register, on a heap, in a message. It knows no owner.
//! - [`Term<'h>`]: a word in hand. It lives as long as the borrow `'h` of the heap that holds it, so that it cannot
//!   live across a collection, which needs the heap exclusively.
//!
//! Not here: where terms live (`heap`), who owns a heap (`process`).
//!
//! Invariants:
//! - T1: the pointer of a boxed or list term points to a live thing whose header tells its shape ([`tag::shape`]), or
//!   to a live cons cell, for as long as `'h`.
//! - T2: a thing's words are initialised before a term points to it, and do not change while a `Term<'h>` is out, but
//!   for off-heap links, which only the heap reads.
//! - T3: a function that is compiled for an instruction of its own runs where the processor has that.
#![expect(
    unsafe_code,
    reason = "a term is a tagged pointer; reading it is what this folder is for"
)]

pub mod atom;
mod atom_order;
mod atoms;
pub mod compare;
pub mod counted;
pub mod entry;
pub mod hash;
pub mod map;
pub mod print;
pub mod tag;
mod view;

use std::marker::PhantomData;

pub use atom::Atom;
pub use atoms::am;
pub use entry::CodeAddress;
pub use view::{Big, Bits, Cons, External, Fun, Map, Pid, Port, Record, Ref, Tuple, View, record};

/// Stands for the owner of the memory that a term lies in. One thread at a time uses it.
pub struct Owner(std::cell::Cell<()>);

/// A word at rest. `0` (a header of nothing) is no term: ERTS's `THE_NON_VALUE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct RawTerm(pub u64);

impl RawTerm {
    /// No term.
    pub const NONE: RawTerm = RawTerm(0);
    /// The empty list.
    pub const NIL: RawTerm = RawTerm(tag::NIL);

    /// An immediate: nothing behind it.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn is_immed(self) -> bool {
        self.0 & tag::PRIMARY_MASK == tag::IMMED1
    }
    /// A pointer to a header.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn is_boxed(self) -> bool {
        self.0 & tag::PRIMARY_MASK == tag::BOXED
    }
    /// A pointer to a cons cell.
    #[inline(always)]
    #[must_use]
    pub const fn is_list(self) -> bool {
        self.0 & tag::PRIMARY_MASK == tag::LIST
    }
    /// A header word (or a code address, or no term).
    #[inline(always)]
    #[must_use]
    pub(crate) const fn is_header(self) -> bool {
        self.0 & tag::PRIMARY_MASK == tag::HEADER
    }
    /// Where a boxed or list term points.
    #[inline(always)]
    #[must_use]
    pub const fn ptr(self) -> *mut u64 {
        (self.0 & !tag::PRIMARY_MASK) as *mut u64
    }
    /// A boxed term for the header at `ptr`.
    #[inline(always)]
    #[must_use]
    pub fn boxed(ptr: *const u64) -> RawTerm {
        RawTerm(ptr as u64 | tag::BOXED)
    }
    /// A list term for the cell at `ptr`.
    #[inline(always)]
    #[must_use]
    pub fn list(ptr: *const u64) -> RawTerm {
        RawTerm(ptr as u64 | tag::LIST)
    }
    /// A small integer; the caller knows that it fits.
    #[inline(always)]
    #[must_use]
    pub const fn small(value: i64) -> RawTerm {
        RawTerm(((value as u64) << 4) | tag::SMALL)
    }
    /// Is a small integer.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn is_small(self) -> bool {
        self.0 & tag::IMMED1_MASK == tag::SMALL
    }
    /// The value of a small integer; meaningless for others.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn small_value(self) -> i64 {
        (self.0 as i64) >> 4
    }
}

/// A term in hand, as long as the heap that holds it is borrowed.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Term<'h>(RawTerm, PhantomData<&'h Owner>);

impl<'h> Term<'h> {
    /// The empty list.
    pub const NIL: Term<'static> = Term::immed(RawTerm::NIL);

    /// An immediate: nothing behind it, so it lives for ever.
    ///
    /// # Panics
    /// When it is none.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn immed(raw: RawTerm) -> Term<'static> {
        assert!(raw.is_immed(), "not an immediate");
        Term(raw, PhantomData)
    }

    /// The term a word at rest stands for.
    ///
    /// # Safety
    /// T1 holds for `raw` and the chosen lifetime.
    #[inline(always)]
    #[must_use]
    pub const unsafe fn new(raw: RawTerm) -> Term<'h> {
        Term(raw, PhantomData)
    }

    /// The word, to be put to rest where the collector finds it.
    #[inline(always)]
    #[must_use]
    pub const fn raw(self) -> RawTerm {
        self.0
    }

    /// A small integer.
    ///
    /// # Panics
    /// When it does not fit in 60 bits: use [`crate::heap::Heap::integer`] for any value.
    #[inline(always)]
    #[must_use]
    pub const fn small(value: i64) -> Term<'static> {
        assert!(
            value >= tag::MIN_SMALL && value <= tag::MAX_SMALL,
            "not a small integer"
        );
        Term::immed(RawTerm::small(value))
    }

    /// `true` or `false`.
    #[inline(always)]
    #[must_use]
    pub const fn bool(value: bool) -> Term<'static> {
        Atom::from_bool(value).term()
    }

    /// Whether both are the same word: identity, which for immediates is equality.
    #[inline(always)]
    #[must_use]
    pub fn same(self, other: Term<'_>) -> bool {
        self.0 == other.0
    }

    /// The small integer it is.
    #[inline(always)]
    #[must_use]
    pub(crate) fn as_small(self) -> Option<i64> {
        self.0.is_small().then(|| self.0.small_value())
    }

    /// The non-negative small integer it is.
    #[inline(always)]
    #[must_use]
    pub(crate) fn as_index(self) -> Option<usize> {
        self.as_small().and_then(|n| usize::try_from(n).ok())
    }

    /// The integer it is, if that fits into 64 bits without a sign.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        match self.view() {
            View::Small(n) => u64::try_from(n).ok(),
            View::Big(big) if !big.is_negative() => match *big.limbs() {
                [limb] => Some(limb),
                _ => None,
            },
            _ => None,
        }
    }

    /// The integer it is, if that fits into 64 bits with a sign.
    #[must_use]
    pub(crate) fn as_i64(self) -> Option<i64> {
        match self.view() {
            View::Small(n) => Some(n),
            View::Big(big) => match *big.limbs() {
                [limb] if big.is_negative() => 0i64.checked_sub_unsigned(limb),
                [limb] => i64::try_from(limb).ok(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The atom it is.
    #[inline(always)]
    #[must_use]
    pub(crate) fn as_atom(self) -> Option<Atom> {
        (self.0.0 & tag::IMMED2_MASK == tag::ATOM).then(|| Atom::from_index((self.0.0 >> 6) as u32))
    }

    /// `true` or `false`.
    #[inline(always)]
    #[must_use]
    pub(crate) fn as_bool(self) -> Option<bool> {
        if self == am::true_ {
            Some(true)
        } else if self == am::false_ {
            Some(false)
        } else {
            None
        }
    }

    /// Is the empty list.
    #[inline(always)]
    #[must_use]
    pub fn is_nil(self) -> bool {
        self.0 == RawTerm::NIL
    }

    /// The header word of a boxed term.
    #[inline(always)]
    #[must_use]
    pub fn header(self) -> Option<u64> {
        // SAFETY: T1: a boxed term points to a header.
        self.0.is_boxed().then(|| unsafe { *self.0.ptr() })
    }
}

impl PartialEq<Atom> for Term<'_> {
    #[inline(always)]
    fn eq(&self, other: &Atom) -> bool {
        self.0 == other.raw()
    }
}

impl From<Atom> for Term<'static> {
    fn from(atom: Atom) -> Self {
        atom.term()
    }
}

impl From<bool> for Term<'static> {
    fn from(value: bool) -> Self {
        Term::bool(value)
    }
}

pub(crate) use view::{ORDINARY_REF_MARKER, sub_bits};

/// The flag of a sub-bitstring whose bytes may move.
pub(crate) const fn sub_bits_volatile() -> u64 {
    sub_bits::VOLATILE
}
