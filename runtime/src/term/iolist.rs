//! I/O lists: bytes, binaries and lists of them, nested to any depth. The one walker that all of the
//! runtime uses: BIFs, ports, files, ETS.

use super::{Bits, Term, View, tag};
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

/// Visits the leaves of `term` (an I/O list, or a bitstring by itself) in order. Bitstrings that are no
/// binaries are visited too.
///
/// # Errors
/// [`NotIolist`], of the walk or of `visit`.
pub fn walk<'h>(
    term: Term<'h>,
    visit: &mut impl FnMut(Part<'h>) -> Result<(), NotIolist>,
) -> Result<(), NotIolist> {
    let mut tails = Vec::new();
    let mut rest = term;
    loop {
        match rest.view() {
            View::Cons(cell) => {
                rest = cell.tail();
                match cell.head().view() {
                    View::Small(value) => {
                        visit(Part::Byte(u8::try_from(value).map_err(|_| NotIolist)?))?;
                    }
                    View::Bits(bits) => visit(Part::Bits(bits))?,
                    View::Cons(_) => {
                        tails.push(rest);
                        rest = cell.head();
                    }
                    View::Nil => {}
                    _ => return Err(NotIolist),
                }
                continue;
            }
            View::Nil => {}
            View::Bits(bits) => visit(Part::Bits(bits))?,
            _ => return Err(NotIolist),
        }
        match tails.pop() {
            Some(tail) => rest = tail,
            None => return Ok(()),
        }
    }
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

/// Its bits, bitstrings of any size included: the bytes they take, and how many they are.
///
/// # Errors
/// [`NotIolist`].
pub fn to_bits(term: Term<'_>) -> Result<(Vec<u8>, usize), NotIolist> {
    let mut out = Vec::new();
    let mut bit_len = 0usize;
    walk(term, &mut |part| {
        match part {
            Part::Byte(byte) => push_bits(&mut out, &mut bit_len, &[byte], 8),
            Part::Bits(bits) => push_bits(&mut out, &mut bit_len, &bits.bytes(), bits.bit_len()),
        }
        Ok(())
    })?;
    Ok((out, bit_len))
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
