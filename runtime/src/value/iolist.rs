//! Walks I/O lists: bytes, binaries and lists of them, nested to any depth. All of the runtime uses this one walker:
//! BIFs, ports, files, ETS.

mod output;

use crate::copy::append;
use crate::heap::{Heap, keeps};
use crate::term::{Bits, Term, tag};
pub(crate) use output::{Bytes, Output};

/// A term that is no I/O list: `badarg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotIolist;

/// A leaf of an I/O list.
#[derive(Clone, Copy)]
pub(crate) enum Part<'h> {
    /// A byte.
    Byte(u8),
    /// A bitstring (a binary, unless the walk allows others).
    Bits(Bits<'h>),
}

/// A walk over the leaves of an I/O list (or a bitstring by itself) in order, which may pause. Bitstrings
/// that are no binaries are visited too.
pub(crate) struct Walk<'h> {
    /// What is still to be walked, the next one last.
    rest: Vec<Term<'h>>,
}

impl<'h> Walk<'h> {
    /// The walk over `term`.
    #[must_use]
    pub(crate) fn of(term: Term<'h>) -> Walk<'h> {
        Walk { rest: vec![term] }
    }

    /// A walk that goes on with what was left of one, as [`Walk::rest`] gave it.
    #[must_use]
    pub(crate) fn resume(rest: Vec<Term<'h>>) -> Walk<'h> {
        Walk { rest }
    }

    /// What is left to walk; nothing at the end.
    #[must_use]
    pub(crate) fn rest(self) -> Vec<Term<'h>> {
        self.rest
    }

    /// Visits leaves as far as `steps` go, which is lessened: by 1 for each cell and each end of a list, and by
    /// what `visit` takes. The step that would leave none pauses the walk. Source: `generic_iolist_size()`.
    ///
    /// # Errors
    /// [`NotIolist`], of the walk or of `visit`.
    pub(crate) fn run(
        &mut self,
        steps: &mut i64,
        visit: &mut impl FnMut(Part<'h>, &mut i64) -> Result<Visited, NotIolist>,
    ) -> Result<Walked, NotIolist> {
        while let Some(mut rest) = self.rest.pop() {
            while let Some(cell) = rest.as_cons() {
                *steps -= 1;
                if *steps <= 0 {
                    self.rest.push(rest);
                    return Ok(Walked::Some);
                }
                let (head, list) = (cell.head(), rest);
                rest = cell.tail();
                if let Some(value) = head.as_small() {
                    let byte = u8::try_from(value).map_err(|_| NotIolist)?;
                    if let Visited::Part = visit(Part::Byte(byte), steps)? {
                        self.rest.push(list);
                        return Ok(Walked::Some);
                    }
                } else if head.as_cons().is_some() {
                    self.rest.push(rest);
                    rest = head;
                } else if let Visited::Part = visit_leaf(head, steps, visit)? {
                    self.rest.extend([rest, head]);
                    return Ok(Walked::Some);
                }
            }
            *steps -= 1;
            if *steps <= 0 {
                self.rest.push(rest);
                return Ok(Walked::Some);
            }
            if let Visited::Part = visit_leaf(rest, steps, visit)? {
                self.rest.push(rest);
                return Ok(Walked::Some);
            }
        }
        Ok(Walked::All)
    }
}

/// How far a walk has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walked {
    /// To its end.
    All,
    /// There is something left.
    Some,
}

/// How far a visit of a leaf has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visited {
    /// It is done.
    Whole,
    /// The walk is to pause, and to visit this leaf again when it goes on.
    Part,
}

/// A bitstring, or the end of a list.
fn visit_leaf<'h>(
    leaf: Term<'h>,
    steps: &mut i64,
    visit: &mut impl FnMut(Part<'h>, &mut i64) -> Result<Visited, NotIolist>,
) -> Result<Visited, NotIolist> {
    if leaf.is_nil() {
        return Ok(Visited::Whole);
    }
    visit(Part::Bits(leaf.as_bits().ok_or(NotIolist)?), steps)
}

/// Visits all leaves of `term`.
///
/// # Errors
/// As [`Walk::run`].
pub(crate) fn walk<'h>(
    term: Term<'h>,
    visit: &mut impl FnMut(Part<'h>) -> Result<(), NotIolist>,
) -> Result<(), NotIolist> {
    let mut steps = i64::MAX;
    let mut whole = |part, _: &mut i64| visit(part).map(|()| Visited::Whole);
    Walk::of(term).run(&mut steps, &mut whole).map(|_| ())
}

/// `bits`, if they are a binary.
///
/// # Errors
/// [`NotIolist`].
pub(crate) fn whole(bits: Bits<'_>) -> Result<Bits<'_>, NotIolist> {
    if bits.bit_len().is_multiple_of(8) {
        Ok(bits)
    } else {
        Err(NotIolist)
    }
}

/// Its bytes, appended to `out`.
///
/// # Errors
/// [`NotIolist`]; a part may have been appended.
pub(crate) fn append_to(term: Term<'_>, out: &mut Vec<u8>) -> Result<(), NotIolist> {
    walk(term, &mut |part| {
        match part {
            Part::Byte(byte) => out.push(byte),
            Part::Bits(bits) => append(out, &whole(bits)?.bytes()),
        }
        Ok(())
    })
}

/// Its bytes.
///
/// # Errors
/// [`NotIolist`].
pub(crate) fn to_vec(term: Term<'_>) -> Result<Vec<u8>, NotIolist> {
    let mut out = Vec::new();
    append_to(term, &mut out)?;
    Ok(out)
}

/// Bits put together from bytes and bitstrings.
#[derive(Default)]
pub(crate) struct Joined {
    bytes: Vec<u8>,
    bit_len: usize,
}

impl Joined {
    /// Appends a leaf.
    pub(crate) fn push(&mut self, part: Part<'_>) {
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

    /// How many bits they are.
    #[must_use]
    pub(crate) fn bit_len(&self) -> usize {
        self.bit_len
    }

    /// The bytes they take, and how many bits they are.
    #[must_use]
    pub(crate) fn finish(self) -> (Vec<u8>, usize) {
        (self.bytes, self.bit_len)
    }
}

/// Appends the first `n` bits of `bytes`, whose other bits are zero, to `out` of `*bit_len` bits.
fn push_bits(out: &mut Vec<u8>, bit_len: &mut usize, bytes: &[u8], n: usize) {
    let shift = *bit_len % 8;
    if shift == 0 {
        append(out, bytes);
    } else {
        for &byte in bytes {
            *out.last_mut().expect("a part of a byte is there") |= byte >> shift;
            out.push(byte << (8 - shift));
        }
    }
    *bit_len += n;
    out.truncate(bit_len.div_ceil(8));
}

/// Binaries up to this size are copied together rather than kept apart in an I/O vector. Source:
/// `IOL2V_COPY_THRESHOLD`, which is in bits.
const SMALL_BINARY: usize = tag::ONHEAP_BINARY_LIMIT * 8;

/// A list of binaries, in which large binaries are not copied, in the making.
#[derive(Default)]
pub(crate) struct Iovec<'h> {
    copied: Vec<u8>,
    /// Where parts of the copied bytes end.
    ends: Vec<usize>,
    /// The binaries; a copied part is none until all are known.
    pieces: Vec<Option<Term<'h>>>,
    copied_of_binaries: usize,
}

keeps! { struct Iovec { pieces; copied, ends, copied_of_binaries } }

impl<'h> Iovec<'h> {
    /// Appends a leaf.
    ///
    /// # Errors
    /// [`NotIolist`].
    pub(crate) fn push(&mut self, part: Part<'h>) -> Result<(), NotIolist> {
        match part {
            Part::Byte(byte) => self.copied.push(byte),
            Part::Bits(bits) => {
                let bits = whole(bits)?;
                if bits.byte_len() <= SMALL_BINARY || !bits.bit_offset().is_multiple_of(8) {
                    self.copied.extend_from_slice(&bits.bytes());
                    self.copied_of_binaries += bits.byte_len();
                } else {
                    self.end_part();
                    self.pieces.push(Some(bits.term()));
                }
            }
        }
        Ok(())
    }

    fn end_part(&mut self) {
        let len = self.copied.len();
        if self.ends.last().copied().unwrap_or(0) < len {
            self.ends.push(len);
            self.pieces.push(None);
        }
    }

    /// Bytes of binaries that were copied.
    #[must_use]
    pub(crate) fn copied_of_binaries(&self) -> usize {
        self.copied_of_binaries
    }

    /// The list.
    #[must_use]
    pub(crate) fn finish(mut self, heap: &'h Heap) -> Term<'h> {
        self.end_part();
        let mut parts = heap.off_heap_parts(self.copied, &self.ends).into_iter();
        let mut part = || parts.next().expect("as many parts");
        let pieces = self.pieces.into_iter();
        let pieces = pieces.map(|piece| piece.unwrap_or_else(&mut part));
        heap.list(&pieces.collect::<Vec<_>>())
    }
}
