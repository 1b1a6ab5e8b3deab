//! Call paths as a tree. A call of a function that is on the path already goes back to that function's place: recursion
//! folds.
//!
//! [`Paths`] is a tree. [`Known`] has the rule alone, for callers that keep the tree elsewhere.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// The empty path: outside of all calls.
pub const ROOT: u32 = u32::MAX;

/// The paths that calls lead to, as far as they were looked up in a tree that is kept elsewhere.
pub struct Known<F>(FxHashMap<(u32, F), u32>);

impl<F> Default for Known<F> {
    fn default() -> Known<F> {
        Known(FxHashMap::default())
    }
}

impl<F: Copy + Eq + Hash> Known<F> {
    /// The path that a call of `function` from the path `from` leads to. `node` gives the last function of a path and
    /// the path without it, and `None` for the empty path; `add` makes a path.
    pub fn call(
        &mut self,
        from: u32,
        function: F,
        node: impl Fn(u32) -> Option<(F, u32)>,
        add: impl FnOnce() -> u32,
    ) -> u32 {
        *self.0.entry((from, function)).or_insert_with(|| {
            let mut at = from;
            while let Some((last, parent)) = node(at) {
                if last == function {
                    return at;
                }
                at = parent;
            }
            add()
        })
    }
}

/// The last function of a path.
#[derive(Clone, Copy)]
struct Node<F> {
    /// The path without it, which is always made before.
    parent: u32,
    function: F,
    /// What was called from here last, and where that led.
    last: (F, u32),
}

/// A tree of call paths. A path is known by the number of its last node; [`ROOT`] is the empty path.
pub struct Paths<F> {
    nodes: Vec<Node<F>>,
    known: Known<F>,
    /// What was called from the empty path last.
    last: (F, u32),
}

impl<F: Copy + Default> Default for Paths<F> {
    fn default() -> Paths<F> {
        Paths {
            nodes: Vec::new(),
            known: Known::default(),
            last: (F::default(), ROOT),
        }
    }
}

impl<F: Copy + Default + Eq + Hash> Paths<F> {
    /// The path that a call of `function` from the path `from` leads to.
    #[inline]
    pub fn call(&mut self, from: u32, function: F) -> u32 {
        let last = match self.nodes.get(from as usize) {
            Some(node) if node.function == function => return from,
            Some(node) => node.last,
            None => self.last,
        };
        if last.0 == function && last.1 != ROOT {
            return last.1;
        }
        self.find(from, function)
    }

    fn find(&mut self, from: u32, function: F) -> u32 {
        let nodes = &self.nodes;
        let node = |at: u32| {
            nodes
                .get(at as usize)
                .map(|node| (node.function, node.parent))
        };
        // More paths than that do not fit into memory.
        let new = || u32::try_from(nodes.len()).unwrap_or(ROOT);
        let to = self.known.call(from, function, node, new);
        if to as usize == self.nodes.len() {
            self.nodes.push(Node {
                parent: from,
                function,
                last: (F::default(), ROOT),
            });
        }
        match self.nodes.get_mut(from as usize) {
            Some(node) => node.last = (function, to),
            None => self.last = (function, to),
        }
        to
    }

    /// How many paths there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Nothing was called.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// For each path the path without its last function, and that function. A path comes after the one it is made from.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Option<u32>, F)> + '_ {
        let nodes = self.nodes.iter();
        nodes.map(|node| ((node.parent != ROOT).then_some(node.parent), node.function))
    }

    /// The functions of a path, the newest first.
    pub fn path(&self, mut at: u32) -> impl Iterator<Item = F> + '_ {
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            at = node.parent;
            Some(node.function)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_folds() {
        let mut paths = Paths::default();
        let [a, b] = [1, 2];
        let one = paths.call(ROOT, a);
        let two = paths.call(one, b);
        assert_eq!(paths.call(two, a), one);
        assert_eq!(paths.call(two, b), two);
        assert_ne!(paths.call(ROOT, b), two);
        assert_eq!(paths.call(ROOT, a), one);
        assert_eq!(paths.path(two).collect::<Vec<_>>(), [b, a]);
        let all: Vec<_> = paths.iter().collect();
        assert_eq!(all, [(None, a), (Some(one), b), (None, b)]);
        assert_eq!((paths.len(), paths.is_empty()), (3, false));
    }
}
