//! Hashes of terms: the walkers that feed [`crate::hash`].

mod internal;
mod portable;
#[cfg(test)]
mod tests;

pub(crate) use internal::{hash_atoms_by_name, internal_hash, salted_hash};
pub(crate) use portable::{BRIEF_STEPS, brief_phash2, phash2_some};
pub use portable::{Paused, phash, phash2};

/// The hash under which a map's trie keeps a key.
#[inline]
#[must_use]
pub fn map_key_hash(key: super::Term<'_>) -> u64 {
    internal_hash(key)
}
