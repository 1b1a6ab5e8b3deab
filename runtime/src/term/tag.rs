//! The tag scheme, which says what the low bits of a word mean. It is ERTS's own, so that sizes in words agree.
//!
//! Primary tags: `00` header (or a code address on the stack), `01` cons, `10` boxed, `11` immediate.
//! Source: `erl_term.h`, OTP 29.

/// Mask of the primary tag.
pub(crate) const PRIMARY_MASK: u64 = 0x3;
/// A header word, or a code address on a stack.
pub(crate) const HEADER: u64 = 0x0;
/// A pointer to a cons cell.
pub(crate) const LIST: u64 = 0x1;
/// A pointer to a header word.
pub(crate) const BOXED: u64 = 0x2;
/// An immediate.
pub(crate) const IMMED1: u64 = 0x3;

/// Mask of a first-level immediate tag.
pub(crate) const IMMED1_MASK: u64 = 0xF;
/// Local pid.
pub const PID: u64 = 0x3;
/// Local port.
pub const PORT: u64 = 0x7;
/// Small integer.
pub(crate) const SMALL: u64 = 0xF;

/// Mask of a second-level immediate tag.
pub(crate) const IMMED2_MASK: u64 = 0x3F;
/// Atom.
pub const ATOM: u64 = 0x0B;
/// Catch tag on a stack.
pub(crate) const CATCH: u64 = 0x1B;
/// The empty list.
pub const NIL: u64 = 0x3B;

/// Mask of a header's tag (subtag and primary tag).
pub(crate) const HEADER_MASK: u64 = 0x3F;
/// Where a header's arity starts.
pub(crate) const ARITY_SHIFT: u32 = 6;

/// Tuple header.
pub(crate) const ARITYVAL: u64 = 0x0 << 2;
/// Positive big integer.
pub(crate) const POS_BIG: u64 = 0x2 << 2;
/// Negative big integer.
pub(crate) const NEG_BIG: u64 = 0x3 << 2;
/// Reference made by this node.
pub(crate) const REF: u64 = 0x4 << 2;
/// Fun, local or external.
pub const FUN: u64 = 0x5 << 2;
/// Float.
pub const FLOAT: u64 = 0x6 << 2;
/// Native record.
pub const RECORD: u64 = 0x7 << 2;
/// Bitstring whose bytes follow the header.
pub const HEAP_BITS: u64 = 0x8 << 2;
/// Part of another bitstring, or a match context.
pub const SUB_BITS: u64 = 0x9 << 2;
/// Handle to an off-heap binary; never a user's term by itself.
pub const BIN_REF: u64 = 0xA << 2;
/// Map: flat, or head or node of a hash trie.
pub const MAP: u64 = 0xB << 2;
/// Pid of another node (or of another incarnation of this one).
pub(crate) const EXTERNAL_PID: u64 = 0xC << 2;
/// Port of another node.
pub(crate) const EXTERNAL_PORT: u64 = 0xD << 2;
/// Reference of another node.
pub(crate) const EXTERNAL_REF: u64 = 0xE << 2;

/// The header word of a thing with `arity` words behind it.
#[inline(always)]
#[must_use]
pub(crate) const fn make_header(arity: usize, tag: u64) -> u64 {
    ((arity as u64) << ARITY_SHIFT) | tag
}

/// The arity field of a header word.
#[inline(always)]
#[must_use]
pub(crate) const fn header_arity(header: u64) -> usize {
    (header >> ARITY_SHIFT) as usize
}

/// Map kinds, in the two bits above the header's tag.
pub mod map {
    use super::{ARITY_SHIFT, MAP};
    /// Mask of the map kind and the header's tag.
    pub(crate) const KIND_MASK: u64 = (3 << ARITY_SHIFT) | super::HEADER_MASK;
    /// Flat map: size, key tuple, values.
    pub(crate) const FLAT: u64 = MAP;
    /// The whole header of a flat map.
    pub(crate) const FLAT_HEADER: u64 = FLAT | (1 << (ARITY_SHIFT + 2));
    /// Inner node of a hash trie.
    pub(crate) const NODE_BITMAP: u64 = (1 << ARITY_SHIFT) | MAP;
    /// Root with all sixteen children.
    pub(crate) const HEAD_ARRAY: u64 = (2 << ARITY_SHIFT) | MAP;
    /// Root with a bitmap of its children.
    pub(crate) const HEAD_BITMAP: u64 = (3 << ARITY_SHIFT) | MAP;
    /// Where the bitmap of a trie node starts.
    pub(crate) const BITMAP_SHIFT: u32 = ARITY_SHIFT + 2 + 8;
    /// Words of a flat map before its values: header, size, key tuple.
    pub(crate) const FLAT_WORDS: usize = 3;
    /// A map of more keys is a hash trie.
    pub(crate) const SMALL_LIMIT: usize = 32;

    /// The bitmap of a trie node's header; a full array has all bits set.
    #[inline(always)]
    #[must_use]
    pub const fn bitmap(header: u64) -> u32 {
        ((header >> BITMAP_SHIFT) & 0xffff) as u32
    }

    /// Header of a trie node of `kind` with `bitmap`.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn node_header(kind: u64, bitmap: u32) -> u64 {
        let head = if kind == NODE_BITMAP {
            0
        } else {
            1 << (ARITY_SHIFT + 2)
        };
        kind | head | ((bitmap as u64) << BITMAP_SHIFT)
    }
}

/// Fields of a fun's header.
pub mod fun {
    use super::{ARITY_SHIFT, FUN};
    /// Words of a fun before its environment: header, entry.
    pub(crate) const FIXED_WORDS: usize = 2;
    const ARITY: u32 = ARITY_SHIFT + 2;
    const ENV: u32 = ARITY + 8;
    const EXTERNAL: u32 = ENV + 8;

    /// Header of a fun.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn make_header(arity: u8, num_free: u8, external: bool) -> u64 {
        FUN | ((arity as u64) << ARITY)
            | ((num_free as u64) << ENV)
            | ((external as u64) << EXTERNAL)
    }
    /// Arguments a call takes.
    #[inline(always)]
    #[must_use]
    pub const fn arity(header: u64) -> u8 {
        (header >> ARITY) as u8
    }
    /// Words of environment.
    #[inline(always)]
    #[must_use]
    pub const fn num_free(header: u64) -> u8 {
        (header >> ENV) as u8
    }
    /// `fun M:F/A`.
    #[inline(always)]
    #[must_use]
    pub(crate) const fn is_external(header: u64) -> bool {
        (header >> EXTERNAL) & 1 == 1
    }
}

/// Sizes in words of things with a fixed layout.
pub mod size {
    /// Header and the double.
    pub const FLOAT: usize = 2;
    /// Header, base and flags, start, end, orig.
    pub const SUB_BITS: usize = 5;
    /// Header, binary, next.
    pub const BIN_REF: usize = 3;
    /// An off-heap binary as a term.
    pub(crate) const REFC_BITS: usize = SUB_BITS + BIN_REF;
    /// Header and two words of numbers.
    pub(crate) const REF: usize = 3;
    /// Header, three ordinary words of numbers and the pid.
    pub(crate) const PID_REF: usize = 4;
    /// Header, node, next: then the data.
    pub(crate) const EXTERNAL_HEAD: usize = 3;
}

/// A bitstring up to this many bytes lives on the heap.
pub(crate) const ONHEAP_BINARY_LIMIT: usize = 64;
/// Smallest and largest small integer.
pub(crate) const SMALL_BITS: u32 = 60;
/// Largest small integer.
pub(crate) const MAX_SMALL: i64 = (1 << (SMALL_BITS - 1)) - 1;
/// Smallest small integer.
pub(crate) const MIN_SMALL: i64 = -(1 << (SMALL_BITS - 1));

/// What stands behind a header: all words, and which of them are terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Words of the whole thing, header included.
    pub words: usize,
    /// Index of the first word that is a term; the rest up to the end are terms too.
    pub terms_from: usize,
}

/// The shape of the thing whose header is `header` and whose second word is `second`
/// (looked at for flat maps only).
#[inline]
#[must_use]
pub fn shape(header: u64, second: u64) -> Shape {
    let arity = header_arity(header);
    match header & HEADER_MASK {
        ARITYVAL | RECORD => Shape {
            words: 1 + arity,
            terms_from: 1,
        },
        FUN => {
            let words = fun::FIXED_WORDS + fun::num_free(header) as usize;
            Shape {
                words,
                terms_from: fun::FIXED_WORDS,
            }
        }
        SUB_BITS => Shape {
            words: size::SUB_BITS,
            terms_from: size::SUB_BITS - 1,
        },
        MAP => match header & map::KIND_MASK {
            map::FLAT => Shape {
                words: map::FLAT_WORDS + second as usize,
                terms_from: 2,
            },
            map::NODE_BITMAP => Shape {
                words: 1 + map::bitmap(header).count_ones() as usize,
                terms_from: 1,
            },
            _ => Shape {
                words: 2 + map::bitmap(header).count_ones() as usize,
                terms_from: 2,
            },
        },
        _ => Shape {
            words: 1 + arity,
            terms_from: 1 + arity,
        },
    }
}
