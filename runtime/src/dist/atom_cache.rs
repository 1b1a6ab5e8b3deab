//! Headers of messages, with their atoms, and the atoms that both ends of a connection remember. Source:
//! `erts_encode_ext_dist_header_finalize()`, `erts_prepare_dist_ext()` in `external.c`, OTP 29.

use crate::external::{CACHE_SIZE, HeaderAtoms, VERSION_MAGIC, slot_of};
use crate::term::Atom;

/// A header with atoms follows.
pub(super) const DIST_HEADER: u8 = b'D';
/// The first fragment of a message: a header with atoms follows its numbers.
pub(super) const FIRST_FRAGMENT: u8 = b'E';
/// Another fragment.
pub(super) const FRAGMENT: u8 = b'F';
/// A message without a header: its terms have versions.
pub(super) const PASS_THROUGH: u8 = b'p';

/// An atom is new at its place: it follows.
const NEW: u8 = 8;
/// Bits of a flag that are the high ones of a place.
const SEGMENT: u8 = 7;

/// Which fragment of which message a packet has.
#[derive(Clone, Copy)]
pub(super) struct FragmentNumber {
    pub(super) sequence: u64,
    /// It, and those that are to come.
    pub(super) missing: u64,
}

impl FragmentNumber {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.missing.to_be_bytes());
    }
}

/// Atoms by the numbers that stand for them.
pub(super) struct AtomCache(Vec<Option<Atom>>);

impl Default for AtomCache {
    fn default() -> Self {
        AtomCache(vec![None; CACHE_SIZE])
    }
}

impl AtomCache {
    /// Appends the header of a message with these atoms, or of its first fragment: those that the receiver does not know are
    /// in it by name.
    pub(super) fn write_header(
        &mut self,
        atoms: &HeaderAtoms,
        first: Option<FragmentNumber>,
        out: &mut Vec<u8>,
    ) {
        let atoms = atoms.as_slice();
        out.push(VERSION_MAGIC);
        match first {
            None => out.push(DIST_HEADER),
            Some(number) => {
                out.push(FIRST_FRAGMENT);
                number.write(out);
            }
        }
        out.push(atoms.len() as u8);
        if atoms.is_empty() {
            return;
        }
        let has_long = atoms.iter().any(|atom| atom.name().len() > 255);
        let flags_at = out.len();
        out.resize(flags_at + atoms.len() / 2 + 1, 0);
        let flag = |out: &mut [u8], place: usize, flag: u8| {
            out[flags_at + place / 2] |= flag << (4 * (place % 2));
        };
        for (place, atom) in atoms.iter().enumerate() {
            let slot = slot_of(*atom);
            let is_new = self.0[slot] != Some(*atom);
            let segment = (slot >> 8) as u8;
            flag(out, place, if is_new { segment | NEW } else { segment });
            out.push(slot as u8);
            if is_new {
                self.0[slot] = Some(*atom);
                let name = atom.name().as_bytes();
                match has_long {
                    true => out.extend((name.len() as u16).to_be_bytes()),
                    false => out.push(name.len() as u8),
                }
                out.extend_from_slice(name);
            }
        }
        flag(out, atoms.len(), has_long.into());
    }

    /// As [`AtomCache::write_header`], alone.
    #[cfg(test)]
    pub(super) fn header(&mut self, atoms: &HeaderAtoms, first: Option<FragmentNumber>) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_header(atoms, first, &mut out);
        out
    }

    /// The atoms of a header, which begins with their number, and what follows it. `None` where it is none.
    pub(super) fn read<'b>(&mut self, bytes: &'b [u8]) -> Option<(Vec<Atom>, &'b [u8])> {
        let (&count, rest) = bytes.split_first()?;
        let count = usize::from(count);
        if count == 0 {
            return Some((Vec::new(), rest));
        }
        let (flags, mut rest) = rest.split_at_checked(count / 2 + 1)?;
        let flag = |place: usize| flags[place / 2] >> (4 * (place % 2)) & 0xf;
        let has_long = flag(count) & 1 == 1;
        let mut atoms = Vec::with_capacity(count);
        for place in 0..count {
            let (&low, after) = rest.split_first()?;
            rest = after;
            let slot = usize::from(flag(place) & SEGMENT) << 8 | usize::from(low);
            if flag(place) & NEW != 0 {
                let (atom, after) = read_atom(rest, has_long)?;
                rest = after;
                self.0[slot] = Some(atom);
            }
            atoms.push(self.0[slot]?);
        }
        Some((atoms, rest))
    }
}

fn read_atom(bytes: &[u8], has_long: bool) -> Option<(Atom, &[u8])> {
    let (length, rest) = if has_long {
        let (length, rest) = bytes.split_first_chunk()?;
        (usize::from(u16::from_be_bytes(*length)), rest)
    } else {
        let (&length, rest) = bytes.split_first()?;
        (usize::from(length), rest)
    };
    let (name, rest) = rest.split_at_checked(length)?;
    let name = std::str::from_utf8(name).ok()?;
    let is_short = name.len() <= 255 || name.chars().count() <= 255;
    is_short.then(|| (Atom::new(name), rest))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::external::{decode_with_header, encode_signal};
    use crate::heap::Heap;
    use crate::term::Term;
    use crate::term::compare::eq_exact;

    proptest! {
        /// What one end writes the other reads, whatever was written before.
        #[test]
        fn atoms_are_what_they_were(messages in prop::collection::vec(prop::collection::vec(0_u32..3000, 0..300), 1..8)) {
            let (mut sender, mut receiver) = (AtomCache::default(), AtomCache::default());
            for message in messages {
                let heap = Heap::detached();
                let atoms: Vec<Term<'_>> = message
                    .iter()
                    .map(|number| Atom::new(&format!("{}_{number}", "é".repeat(*number as usize % 140))).term())
                    .collect();
                let list = heap.list(&atoms);
                let (atoms, written) = encode_signal(list, None);
                let mut bytes = sender.header(&atoms, None);
                bytes.extend(written);
                prop_assert_eq!(&bytes[..2], &[VERSION_MAGIC, DIST_HEADER]);
                let (atoms, rest) = receiver.read(&bytes[2..]).unwrap();
                let read = decode_with_header(&heap, rest, &atoms, None).unwrap();
                prop_assert!(eq_exact(read.term, list) && read.used == rest.len());
            }
        }

        #[test]
        fn no_bytes_are_read_beyond_the_end(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = AtomCache::default().read(&bytes);
        }
    }
}
