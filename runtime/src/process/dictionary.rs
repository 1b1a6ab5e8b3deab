//! The process dictionary: keys and values, which are terms of the heap, found by hash.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::heap::keeps;
use crate::term::Term;

/// Entries from which on a table of hashes finds a key.
const HASHED_FROM: usize = 9;

/// Hands the hash through, which is one already.
#[derive(Default)]
pub(crate) struct Through(u64);

impl Hasher for Through {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 << 8) ^ u64::from(*byte);
        }
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type Index = HashMap<u64, Vec<u32>, BuildHasherDefault<Through>>;

/// Keys and values. The caller says which keys are equal: the dictionary knows terms only.
#[derive(Default)]
pub(crate) struct Dictionary<'p> {
    entries: Vec<[Term<'p>; 2]>,
    /// For each entry the hash of its key, and by hash the places of entries; kept from
    /// [`HASHED_FROM`] entries on.
    hashed: Option<Box<(Vec<u64>, Index)>>,
}

keeps! { struct Dictionary { entries; hashed } }

impl<'p> Dictionary<'p> {
    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries: key and value.
    pub(crate) fn entries(&self) -> &[[Term<'p>; 2]] {
        &self.entries
    }

    /// The place of the key that `is_key` knows.
    pub(crate) fn find(
        &self,
        hash: impl FnOnce() -> u64,
        is_key: impl Fn(Term<'p>) -> bool,
    ) -> Option<usize> {
        let Some(hashed) = &self.hashed else {
            return self.entries.iter().position(|[key, _]| is_key(*key));
        };
        let places = hashed.1.get(&hash())?;
        let mut places = places.iter().map(|place| *place as usize);
        places.find(|place| is_key(self.entries[*place][0]))
    }

    /// The value at `place`.
    pub(crate) fn value(&self, place: usize) -> Term<'p> {
        self.entries[place][1]
    }

    /// Changes the value at `place`; the old one.
    pub(crate) fn replace(&mut self, place: usize, value: Term<'p>) -> Term<'p> {
        std::mem::replace(&mut self.entries[place][1], value)
    }

    /// Adds an entry whose key is in none.
    pub(crate) fn add(&mut self, key: Term<'p>, value: Term<'p>, hash: impl Fn(Term<'p>) -> u64) {
        let place = self.entries.len() as u32;
        self.entries.push([key, value]);
        if let Some(hashed) = &mut self.hashed {
            let hash = hash(key);
            hashed.0.push(hash);
            hashed.1.entry(hash).or_default().push(place);
        } else if self.entries.len() >= HASHED_FROM {
            let hashes: Vec<u64> = self.entries.iter().map(|[key, _]| hash(*key)).collect();
            let mut index = Index::default();
            for (place, hash) in hashes.iter().enumerate() {
                index.entry(*hash).or_default().push(place as u32);
            }
            self.hashed = Some(Box::new((hashes, index)));
        }
    }

    /// Removes the entry at `place`; its value. The last one takes its place.
    pub(crate) fn remove(&mut self, place: usize) -> Term<'p> {
        let [_, value] = self.entries.swap_remove(place);
        if let Some(hashed) = &mut self.hashed {
            let (hashes, index) = &mut **hashed;
            let moved = hashes.len() as u32 - 1;
            let gone = hashes.swap_remove(place);
            forget(index, gone, place as u32);
            if moved != place as u32 {
                let hash = hashes[place];
                forget(index, hash, moved);
                index.entry(hash).or_default().push(place as u32);
            }
        }
        if self.entries.is_empty() {
            *self = Dictionary::default();
        }
        value
    }

    /// Removes all entries.
    pub(crate) fn take(&mut self) -> Vec<[Term<'p>; 2]> {
        std::mem::take(self).entries
    }
}

fn forget(index: &mut Index, hash: u64, place: u32) {
    if let Some(places) = index.get_mut(&hash) {
        places.retain(|at| *at != place);
        if places.is_empty() {
            index.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_changed_and_removed() {
        let hash = |key: Term<'_>| key.raw().0 % 7;
        let mut dictionary = Dictionary::default();
        let find = |d: &Dictionary<'_>, n: i64| {
            let key = Term::small(n);
            d.find(|| hash(key), |other| other.same(key))
        };
        for n in 0..100 {
            assert_eq!(find(&dictionary, n), None);
            dictionary.add(Term::small(n), Term::small(n * 2), hash);
        }
        for n in (0..100).step_by(3) {
            let at = find(&dictionary, n).expect("added above");
            assert_eq!(dictionary.remove(at).as_small(), Some(n * 2));
        }
        for n in 0..100 {
            let found = find(&dictionary, n).and_then(|at| dictionary.value(at).as_small());
            let expect = (n % 3 != 0).then_some(n * 2);
            assert_eq!(found, expect, "{n}");
        }
        assert_eq!(dictionary.take().len(), 66);
        assert_eq!(dictionary.len(), 0);
    }
}
