//! I/O lists: bytes, binaries and lists of them, nested to any depth. The one walker that all of the
//! runtime uses: BIFs, ports, files, ETS.

use super::{Bits, Term, tag};
use crate::heap::Heap;

/// A term that is no I/O list: `badarg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotIolist;

/// A leaf of an I/O list.
#[derive(Clone, Copy)]
pub enum Part<'h> {
    /// A byte.
    Byte(u8),
    /// A bitstring (a binary, unless the walk allows others).
    Bits(Bits<'h>),
}

/// A walk over the leaves of an I/O list (or a bitstring by itself) in order, which may pause. Bitstrings
/// that are no binaries are visited too.
pub struct Walk<'h> {
    /// What is still to be walked, the next one last.
    rest: Vec<Term<'h>>,
}

impl<'h> Walk<'h> {
    /// The walk over `term`.
    #[must_use]
    pub fn of(term: Term<'h>) -> Walk<'h> {
        Walk { rest: vec![term] }
    }

    /// A walk that goes on with what was left of one, as [`Walk::rest`] gave it.
    #[must_use]
    pub fn resume(rest: Vec<Term<'h>>) -> Walk<'h> {
        Walk { rest }
    }

    /// What is left to walk; nothing at the end.
    #[must_use]
    pub fn rest(self) -> Vec<Term<'h>> {
        self.rest
    }

    /// Visits leaves until about `budget` cells have been walked; what is left of the budget, 0 where the
    /// walk has not come to its end.
    ///
    /// # Errors
    /// [`NotIolist`], of the walk or of `visit`.
    pub fn run(
        &mut self,
        mut budget: usize,
        visit: &mut impl FnMut(Part<'h>) -> Result<(), NotIolist>,
    ) -> Result<usize, NotIolist> {
        while let Some(mut rest) = self.rest.pop() {
            while let Some(cell) = rest.as_cons() {
                if budget == 0 {
                    self.rest.push(rest);
                    return Ok(0);
                }
                budget -= 1;
                rest = cell.tail();
                let head = cell.head();
                if let Some(value) = head.as_small() {
                    visit(Part::Byte(u8::try_from(value).map_err(|_| NotIolist)?))?;
                } else if head.as_cons().is_some() {
                    self.rest.push(rest);
                    rest = head;
                } else {
                    visit_leaf(head, visit)?;
                }
            }
            visit_leaf(rest, visit)?;
        }
        Ok(budget.max(1))
    }
}

/// A bitstring, or the end of a list.
fn visit_leaf<'h>(
    leaf: Term<'h>,
    visit: &mut impl FnMut(Part<'h>) -> Result<(), NotIolist>,
) -> Result<(), NotIolist> {
    if leaf.is_nil() {
        return Ok(());
    }
    visit(Part::Bits(leaf.as_bits().ok_or(NotIolist)?))
}

/// Visits all leaves of `term`.
///
/// # Errors
/// As [`Walk::run`].
pub fn walk<'h>(
    term: Term<'h>,
    visit: &mut impl FnMut(Part<'h>) -> Result<(), NotIolist>,
) -> Result<(), NotIolist> {
    Walk::of(term).run(usize::MAX, visit).map(|_| ())
}

fn whole(bits: Bits<'_>) -> Result<Bits<'_>, NotIolist> {
    if bits.bit_len().is_multiple_of(8) {
        Ok(bits)
    } else {
        Err(NotIolist)
    }
}

/// Size in bytes.
///
/// # Errors
/// [`NotIolist`].
pub fn size(term: Term<'_>) -> Result<usize, NotIolist> {
    let mut size = 0;
    walk(term, &mut |part| {
        size += match part {
            Part::Byte(_) => 1,
            Part::Bits(bits) => whole(bits)?.byte_len(),
        };
        Ok(())
    })?;
    Ok(size)
}

/// Its bytes, appended to `out`.
///
/// # Errors
/// [`NotIolist`]; a part may have been appended.
pub fn append_to(term: Term<'_>, out: &mut Vec<u8>) -> Result<(), NotIolist> {
    walk(term, &mut |part| {
        match part {
            Part::Byte(byte) => out.push(byte),
            Part::Bits(bits) => out.extend_from_slice(&whole(bits)?.bytes()),
        }
        Ok(())
    })
}

/// Its bytes.
///
/// # Errors
/// [`NotIolist`].
pub fn to_vec(term: Term<'_>) -> Result<Vec<u8>, NotIolist> {
    let mut out = Vec::new();
    append_to(term, &mut out)?;
    Ok(out)
}

/// Bits put together from bytes and bitstrings.
#[derive(Default)]
pub struct Joined {
    bytes: Vec<u8>,
    bit_len: usize,
}

impl Joined {
    /// Appends a leaf.
    pub fn push(&mut self, part: Part<'_>) {
        match part {
            Part::Byte(byte) if self.bit_len.is_multiple_of(8) => {
                self.bytes.push(byte);
                self.bit_len += 8;
            }
            Part::Byte(byte) => push_bits(&mut self.bytes, &mut self.bit_len, &[byte], 8),
            Part::Bits(bits) => {
                push_bits(
                    &mut self.bytes,
                    &mut self.bit_len,
                    &bits.bytes(),
                    bits.bit_len(),
                );
            }
        }
    }

    /// The bytes they take, and how many they are.
    #[must_use]
    pub fn finish(self) -> (Vec<u8>, usize) {
        (self.bytes, self.bit_len)
    }
}

/// Appends the first `n` bits of `bytes`, whose other bits are zero, to `out` of `*bit_len` bits.
fn push_bits(out: &mut Vec<u8>, bit_len: &mut usize, bytes: &[u8], n: usize) {
    let shift = *bit_len % 8;
    if shift == 0 {
        out.extend_from_slice(bytes);
    } else {
        for &byte in bytes {
            *out.last_mut().expect("a part of a byte is there") |= byte >> shift;
            out.push(byte << (8 - shift));
        }
    }
    *bit_len += n;
    out.truncate(bit_len.div_ceil(8));
}

/// Binaries up to this size are copied together rather than kept apart in an I/O vector.
const SMALL_BINARY: usize = tag::ONHEAP_BINARY_LIMIT * 4;

/// Its bytes as a list of binaries, in which large binaries are not copied.
///
/// # Errors
/// [`NotIolist`].
pub fn to_iovec<'h>(heap: &'h Heap, term: Term<'h>) -> Result<Term<'h>, NotIolist> {
    let mut pieces = Vec::new();
    let mut small = Vec::new();
    walk(term, &mut |part| {
        match part {
            Part::Byte(byte) => small.push(byte),
            Part::Bits(bits) => {
                let bits = whole(bits)?;
                if bits.byte_len() <= SMALL_BINARY || !bits.bit_offset().is_multiple_of(8) {
                    small.extend_from_slice(&bits.bytes());
                } else {
                    if !small.is_empty() {
                        pieces.push(heap.binary_from_vec(std::mem::take(&mut small)));
                    }
                    pieces.push(heap.sub_bits(bits, 0, bits.bit_len()));
                }
            }
        }
        Ok(())
    })?;
    if !small.is_empty() {
        pieces.push(heap.binary_from_vec(small));
    }
    Ok(heap.list(&pieces))
}
