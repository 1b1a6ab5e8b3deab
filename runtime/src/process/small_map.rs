//! A map for what a process has few of, most often none or one, and seldom thousands.

use std::collections::{BTreeMap, btree_map};
use std::slice;

/// Entries up to which they lie in one row.
const ROW: usize = 16;

/// A map in the order of its keys. While it has few entries it keeps the memory of those that have gone, so that an
/// entry that comes and goes allocates nothing.
pub(crate) enum Few<K, V> {
    /// In order.
    Row(Vec<(K, V)>),
    /// More than [`ROW`], or some of so many.
    Many(BTreeMap<K, V>),
}

impl<K, V> Default for Few<K, V> {
    fn default() -> Self {
        Few::Row(Vec::new())
    }
}

impl<K: Ord, V> Few<K, V> {
    /// Where a row has `key`, or where it belongs. New keys are greater than old ones most often.
    #[inline]
    fn place(row: &[(K, V)], key: &K) -> Result<usize, usize> {
        match row.iter().rposition(|(known, _)| known <= key) {
            Some(at) if row[at].0 == *key => Ok(at),
            Some(at) => Err(at + 1),
            None => Err(0),
        }
    }

    /// The value of `key`.
    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        match self {
            Few::Row(row) => Few::place(row, key).ok().map(|at| &row[at].1),
            Few::Many(map) => map.get(key),
        }
    }

    /// Maps `key` to `value`; the value it had.
    #[inline]
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self {
            Few::Row(row) => match Few::place(row, &key) {
                Ok(at) => Some(std::mem::replace(&mut row[at].1, value)),
                Err(at) => {
                    row.insert(at, (key, value));
                    if row.len() > ROW {
                        *self = Few::Many(std::mem::take(row).into_iter().collect());
                    }
                    None
                }
            },
            Few::Many(map) => map.insert(key, value),
        }
    }

    /// Takes `key` out; the value it had.
    #[inline]
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        match self {
            Few::Row(row) => {
                let at = Few::place(row, key).ok()?;
                Some(row.remove(at).1)
            }
            Few::Many(map) => {
                let removed = map.remove(key);
                if map.is_empty() {
                    *self = Few::default();
                }
                removed
            }
        }
    }
}

impl<K, V> Few<K, V> {
    /// Entries.
    pub(crate) fn len(&self) -> usize {
        match self {
            Few::Row(row) => row.len(),
            Few::Many(map) => map.len(),
        }
    }

    /// The values, in the order of their keys.
    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.into_iter().map(|(_, value)| value)
    }
}

/// The entries of a [`Few`], in order.
pub(crate) enum Iter<'a, K, V> {
    /// Of a row.
    Row(slice::Iter<'a, (K, V)>),
    /// Of many.
    Many(btree_map::Iter<'a, K, V>),
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        match self {
            Iter::Row(row) => row.next().map(|(key, value)| (key, value)),
            Iter::Many(map) => map.next(),
        }
    }
}

impl<'a, K, V> IntoIterator for &'a Few<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        match self {
            Few::Row(row) => Iter::Row(row.iter()),
            Few::Many(map) => Iter::Many(map.iter()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Few;
    use proptest::prelude::*;

    proptest! {
        /// It does what a `BTreeMap` does, while it is a row, when it grows, and when it shrinks.
        #[test]
        fn it_is_a_map(changes in prop::collection::vec((any::<bool>(), 0u8..40, any::<u16>()), 0..200)) {
            let (mut few, mut model) = (Few::default(), BTreeMap::new());
            for (is_put, key, value) in changes {
                prop_assert_eq!(few.get(&key), model.get(&key));
                if is_put {
                    prop_assert_eq!(few.insert(key, value), model.insert(key, value));
                } else {
                    prop_assert_eq!(few.remove(&key), model.remove(&key));
                }
                prop_assert_eq!(few.len(), model.len());
                prop_assert!(few.into_iter().eq(model.iter()));
                prop_assert!(few.values().eq(model.values()));
            }
        }
    }
}
