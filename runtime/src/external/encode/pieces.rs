//! The bytes of a message between nodes: what an encoder has written, and between that the binaries that it has not copied.

use std::ops::Range;

use smallvec::SmallVec;

use crate::heap::SharedBytes;
use crate::term::Bits;

/// Bytes that others may have too.
type Piece = (SharedBytes, Range<usize>);

/// Bytes in pieces.
#[derive(Default)]
pub(crate) struct Pieces {
    /// The last one first, as they are taken from the front. None is empty.
    reversed: SmallVec<[Piece; 1]>,
    len: usize,
}

impl Pieces {
    /// What was written, with what is shared at its places, which are in order.
    pub(super) fn of(written: Vec<u8>, shared: Vec<(usize, Bits<'_>)>) -> Pieces {
        let end = written.len();
        let written = SharedBytes::from_vec(written);
        let mut from = 0;
        let mut pieces = Pieces::default();
        for (at, bits) in shared {
            pieces.push((written.clone(), from..at));
            pieces.push(piece_of(bits.first(8 * bits.byte_len())));
            from = at;
        }
        pieces.push((written, from..end));
        pieces.reversed.reverse();
        pieces
    }

    /// Adds what comes before all others in the reversed order.
    fn push(&mut self, piece: Piece) {
        if !piece.1.is_empty() {
            self.len += piece.1.len();
            self.reversed.push(piece);
        }
    }

    /// Bytes in all of them.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Takes the first bytes off.
    ///
    /// # Panics
    /// If there are not as many.
    pub(crate) fn split_to(&mut self, len: usize) -> Pieces {
        self.len -= len;
        let mut first = Pieces::default();
        while first.len < len {
            let (bytes, range) = self.reversed.pop().expect("their number is checked above");
            let end = range.end.min(range.start + (len - first.len));
            if end < range.end {
                self.reversed.push((bytes.clone(), end..range.end));
            }
            first.push((bytes, range.start..end));
        }
        first.reversed.reverse();
        first
    }

    /// Copies all behind what is in `to`.
    pub(crate) fn copy_to(&self, to: &mut Vec<u8>) {
        for (bytes, range) in self.reversed.iter().rev() {
            to.extend_from_slice(&bytes.as_slice()[range.clone()]);
        }
    }
}

impl From<Vec<u8>> for Pieces {
    fn from(bytes: Vec<u8>) -> Pieces {
        Pieces::of(bytes, Vec::new())
    }
}

impl IntoIterator for Pieces {
    type Item = Piece;
    type IntoIter = std::iter::Rev<smallvec::IntoIter<[Piece; 1]>>;

    fn into_iter(self) -> Self::IntoIter {
        self.reversed.into_iter().rev()
    }
}

/// Whole bytes: a count of the binary that they are in, or a copy, if they are in none that can be shared.
fn piece_of(bits: Bits<'_>) -> Piece {
    bits.share().unwrap_or_else(|| {
        let copy = bits.to_vec();
        let all = 0..copy.len();
        (SharedBytes::from_vec(copy), all)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::heap::Heap;

    proptest! {
        /// Cut anywhere, the bytes are those of all in their order.
        #[test]
        fn what_is_taken_off_is_the_beginning(
            written in prop::collection::vec(any::<u8>(), 0..50),
            binaries in prop::collection::vec((any::<prop::sample::Index>(), 65..90_usize, any::<bool>()), 0..5),
            cuts in prop::collection::vec(1..40_usize, 1..20),
        ) {
            let heap = Heap::detached();
            let place = |(at, size, _): &(prop::sample::Index, usize, bool)| (at.index(written.len() + 1), *size);
            let mut places: Vec<_> = binaries.iter().map(place).collect();
            places.sort_unstable();
            let mut expected = written.clone();
            for (at, size) in places.iter().rev() {
                expected.splice(at..at, (0..*size).map(|byte| byte as u8));
            }
            let bits = |size: usize| {
                let bytes: Vec<u8> = (0..size).map(|byte| byte as u8).collect();
                heap.binary(&bytes).as_bits().expect("a binary")
            };
            let shared = places.iter().map(|(at, size)| (*at, bits(*size))).collect();
            let mut rest = Pieces::of(written, shared);
            prop_assert_eq!(rest.len(), expected.len());
            let (mut copied, mut taken) = (Vec::new(), Vec::new());
            rest.copy_to(&mut copied);
            prop_assert_eq!(&copied, &expected);
            for cut in cuts {
                let first = rest.split_to(cut.min(rest.len()));
                prop_assert_eq!(first.len(), cut.min(expected.len() - taken.len()));
                for (bytes, range) in first {
                    prop_assert!(!range.is_empty());
                    taken.extend_from_slice(&bytes.as_slice()[range]);
                }
            }
            rest.copy_to(&mut taken);
            prop_assert_eq!(taken, expected);
        }
    }
}
