//! What is sent to a port: the bytes of an I/O list, the large binaries of which are referred to and not copied.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use smallvec::SmallVec;

use super::{NotIolist, Part, walk, whole};
use crate::copy::append;
use crate::heap::SharedBytes;
use crate::term::{Bits, Term, tag};

/// Small binaries are copied together where there are this many elements or more, and a binary of [`LARGE_ELEMENT`]
/// bytes is not small. Source: `SMALL_WRITE_VEC`, `ERL_SMALL_IO_BIN_LIMIT`.
const MANY_ELEMENTS: usize = 16;
const LARGE_ELEMENT: usize = 4 * tag::ONHEAP_BINARY_LIMIT;

/// A binary that is off the heap and has as many bytes is not copied to be sent. To copy fewer costs no more than another
/// part in a vector does.
const SHARED_BYTES: usize = 1024;

/// Bytes of an I/O list in one place.
#[derive(Clone, Debug)]
pub(crate) enum Bytes {
    /// Copied together.
    Own(Vec<u8>),
    /// Those of a binary, or some of them.
    Shared(SharedBytes, Range<usize>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Own(bytes) => bytes,
            Bytes::Shared(bytes, range) => &bytes.as_slice()[range.clone()],
        }
    }
}

/// The bytes of an I/O list, and the elements that drivers get which take vectors: a binary that is off the heap is an
/// element, and so is all that lies between two of them. Each element is in one part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    pub(crate) parts: SmallVec<[Bytes; 3]>,
    /// Where each element ends, counted from the first byte of all.
    ends: SmallVec<[usize; 4]>,
    len: usize,
}

impl Output {
    /// Of an I/O list.
    ///
    /// # Errors
    /// [`NotIolist`].
    pub(crate) fn of(term: Term<'_>) -> Result<Output, NotIolist> {
        let mut output = Output::default();
        // Where each element ends, and whether it is a binary of its own.
        let mut elements = Elements::new();
        walk(term, &mut |part| {
            let is_binary = match part {
                Part::Byte(byte) => {
                    output.own().push(byte);
                    output.len += 1;
                    false
                }
                Part::Bits(bits) => output.push(whole(bits)?),
            };
            push_element(&mut elements, output.len, is_binary);
            Ok(())
        })?;
        if elements.len() >= MANY_ELEMENTS {
            elements = packed(&elements);
        }
        output.ends = elements.into_iter().map(|(end, _)| end).collect();
        Ok(output)
    }

    /// The last part, which bytes are copied to.
    fn own(&mut self) -> &mut Vec<u8> {
        if !matches!(self.parts.last(), Some(Bytes::Own(_))) {
            self.parts.push(Bytes::Own(Vec::new()));
        }
        match self.parts.last_mut() {
            Some(Bytes::Own(bytes)) => bytes,
            _ => unreachable!("it is there"),
        }
    }

    /// Appends a binary: whether it is one off the heap.
    fn push(&mut self, bits: Bits<'_>) -> bool {
        self.len += bits.byte_len();
        let is_binary = bits.binary().is_some() && bits.bit_offset().is_multiple_of(8);
        if bits.byte_len() >= SHARED_BYTES
            && let Some((bytes, range)) = bits.share()
        {
            self.parts.push(Bytes::Shared(bytes, range));
        } else {
            append(self.own(), &bits.bytes());
        }
        is_binary
    }

    /// How many bytes they are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// All of them in one place.
    pub(crate) fn bytes(&self) -> Cow<'_, [u8]> {
        match &*self.parts {
            [] => Cow::Borrowed(&[]),
            [part] => Cow::Borrowed(part),
            parts => {
                let mut bytes = Vec::with_capacity(self.len);
                parts.iter().for_each(|part| append(&mut bytes, part));
                Cow::Owned(bytes)
            }
        }
    }

    /// As [`Output::bytes`], without the parts.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        if let [Bytes::Own(bytes)] = &mut *self.parts {
            return std::mem::take(bytes);
        }
        self.bytes().into_owned()
    }

    /// Its elements.
    pub(crate) fn elements(&self) -> impl Iterator<Item = &[u8]> {
        let mut parts = self.parts.iter();
        let (mut part, mut start): (&[u8], usize) = (&[], 0);
        self.ends.iter().map(move |&end| {
            while part.is_empty() && start < end {
                part = parts.next().expect("an element is in a part");
            }
            let (element, rest) = part.split_at(end - start);
            (part, start) = (rest, end);
            element
        })
    }
}

impl From<SmallVec<[Bytes; 3]>> for Output {
    /// Each part is an element.
    fn from(parts: SmallVec<[Bytes; 3]>) -> Output {
        let mut len = 0;
        let ends = parts.iter().map(|part| {
            len += part.len();
            len
        });
        Output {
            ends: ends.collect(),
            parts,
            len,
        }
    }
}

impl From<Vec<u8>> for Output {
    fn from(bytes: Vec<u8>) -> Output {
        let len = bytes.len();
        let some = (len > 0).then(|| Bytes::Own(bytes));
        Output {
            ends: some.iter().map(|_| len).collect(),
            parts: some.into_iter().collect(),
            len,
        }
    }
}

type Elements = SmallVec<[(usize, bool); 4]>;

/// Appends what ends at `end`: to the last element, if neither is a binary of its own.
fn push_element(elements: &mut Elements, end: usize, is_binary: bool) {
    let start = elements.last().map_or(0, |last| last.0);
    match elements.last_mut() {
        Some((last, false)) if !is_binary => *last = end,
        _ if is_binary || start < end => elements.push((end, is_binary)),
        _ => {}
    }
}

/// These elements, with small binaries copied together.
fn packed(elements: &[(usize, bool)]) -> Elements {
    let mut all = Elements::new();
    let mut start = 0;
    for &(end, is_binary) in elements {
        push_element(&mut all, end, is_binary && end - start >= LARGE_ELEMENT);
        start = end;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Heap;

    /// The sizes of the elements of a list of binaries of these sizes.
    fn elements(sizes: &[usize]) -> Vec<usize> {
        let heap = Heap::detached();
        let binaries: Vec<_> = sizes.iter().map(|n| heap.binary(&vec![1; *n])).collect();
        let output = Output::of(heap.list(&binaries)).expect("an I/O list");
        assert_eq!(output.bytes().len(), sizes.iter().sum::<usize>());
        assert_eq!(output.len(), output.bytes().len());
        output.elements().map(<[u8]>::len).collect()
    }

    #[test]
    fn binaries_off_the_heap_are_elements_until_there_are_many() {
        assert_eq!(elements(&[]), [0; 0]);
        assert_eq!(elements(&[0]), [0; 0]);
        assert_eq!(elements(&[64]), [64]);
        assert_eq!(elements(&[1, 64]), [65]);
        assert_eq!(elements(&[1, 65, 66, 2, 3]), [1, 65, 66, 5]);
        let few = [100; MANY_ELEMENTS - 1];
        assert_eq!(elements(&few), few);
        let mut many = vec![100; MANY_ELEMENTS];
        many.extend([256, 1, 255]);
        assert_eq!(elements(&many), [1600, 256, 256]);
    }
}
