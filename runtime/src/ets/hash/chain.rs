//! Iterates over the objects of a slot, or of a key.

use super::{Hash, Keyed, NONE, Stored};

/// Objects along a chain, but for deleted ones.
#[derive(Clone)]
pub(crate) struct Chain<'a> {
    pub(super) hash: &'a Hash,
    pub(super) at: u32,
    /// Only objects with the key of this node.
    pub(super) group: Option<u32>,
}

impl<'a> Iterator for Chain<'a> {
    type Item = &'a Stored;

    #[inline]
    fn next(&mut self) -> Option<&'a Stored> {
        let hash = self.hash;
        while self.at != NONE {
            let at = self.at;
            let node = &hash.nodes[at as usize];
            if let Some(first) = self.group.filter(|first| *first != at) {
                let other = &hash.nodes[first as usize];
                if hash.is_set() || !hash.has_key(at, hash.key_at(first), other.hash) {
                    self.at = NONE;
                    return None;
                }
            }
            self.at = node.next;
            if !node.deleted {
                return node.object.as_ref().map(Keyed::object);
            }
        }
        None
    }
}
