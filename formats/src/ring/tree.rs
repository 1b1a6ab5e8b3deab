//! Call paths as a tree, in which a function that is on the path already goes back to its place: recursion folds.

use std::collections::HashMap;

use super::id::NameId;

/// See the module. A path is known by the number of its last node; none is the empty path.
#[derive(Default)]
pub(crate) struct Tree {
    /// What each node is on top of, always one before it, and its function.
    pub(crate) nodes: Vec<(Option<usize>, NameId)>,
    known: HashMap<(Option<usize>, NameId), usize>,
}

impl Tree {
    /// The path that a call of `function` from the path `from` leads to.
    pub(crate) fn call(&mut self, from: Option<usize>, function: NameId) -> usize {
        if let Some(known) = self.known.get(&(from, function)) {
            return *known;
        }
        let mut at = from;
        let to = loop {
            let Some(node) = at else {
                self.nodes.push((from, function));
                break self.nodes.len() - 1;
            };
            if self.nodes[node].1 == function {
                break node;
            }
            at = self.nodes[node].0;
        };
        self.known.insert((from, function), to);
        to
    }

    /// The functions of a path, the newest first.
    pub(crate) fn path(&self, mut at: Option<usize>) -> impl Iterator<Item = NameId> + '_ {
        std::iter::from_fn(move || {
            let (below, function) = self.nodes[at?];
            at = below;
            Some(function)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_folds() {
        let mut tree = Tree::default();
        let [a, b] = [NameId(1), NameId(2)];
        let one = tree.call(None, a);
        let two = tree.call(Some(one), b);
        assert_eq!(tree.call(Some(two), a), one);
        assert_eq!(tree.call(Some(two), b), two);
        assert_ne!(tree.call(None, b), two);
        assert_eq!(tree.path(Some(two)).collect::<Vec<_>>(), [b, a]);
        assert_eq!(tree.nodes.len(), 3);
    }
}
