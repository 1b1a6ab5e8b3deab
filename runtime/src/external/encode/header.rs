//! Atoms that stand in the header of a message between nodes, once for each message, and mostly as a number that the
//! receiver knows. Source: `insert_acache_map()` in `external.c`, OTP 29.

use crate::term::Atom;

/// Atoms that a node remembers of another one. Source: `ERTS_ATOM_CACHE_SIZE`.
pub(crate) const CACHE_SIZE: usize = 2048;

/// Atoms in one header. Source: `ERTS_MAX_INTERNAL_ATOM_CACHE_ENTRIES`.
const MAX_ATOMS: usize = 255;

/// Where an atom is remembered.
pub(crate) fn slot_of(atom: Atom) -> usize {
    atom.index() as usize % CACHE_SIZE
}

/// The atoms of a message, by their places.
#[derive(Debug, Default)]
pub(crate) struct HeaderAtoms(Vec<Atom>);

impl HeaderAtoms {
    /// The place of `atom`, which it is given if it has none yet. `None` where there is no room: no two atoms of a header
    /// may be remembered in one place.
    pub(super) fn place(&mut self, atom: Atom) -> Option<u8> {
        let slot = slot_of(atom);
        match self.0.iter().position(|other| slot_of(*other) == slot) {
            Some(place) if self.0[place] == atom => u8::try_from(place).ok(),
            Some(_) => None,
            None if self.0.len() == MAX_ATOMS => None,
            None => {
                self.0.push(atom);
                u8::try_from(self.0.len() - 1).ok()
            }
        }
    }

    /// The atoms, in the order of their places.
    pub(crate) fn as_slice(&self) -> &[Atom] {
        &self.0
    }
}
