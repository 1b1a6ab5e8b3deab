//! Call paths as a tree, in which recursion folds and everything else stays whole.
//!
//! A path is the stack: the functions that have called each other, the oldest first. A call adds its function. Where the
//! newest functions then repeat the ones right before them, one of the two periods goes: `a b c` and then `b c` is `a b c`
//! again. The period may have any length, and the shortest one that repeats is taken. `a b a c` is four functions: nothing
//! in it repeats.
//!
//! A path has at most [`FRAMES_MAX`] functions. What is called from deeper down stands behind a mark that says where the
//! path was cut, and is never counted for another path. A tree with very many paths cuts new ones earlier, so that its size
//! has a bound ([`frames_max`]).
//!
//! A tail call leaves its caller on the path, so that a reader sees who called. The functions of a row of tail calls share
//! one frame of the stack, so a tail call of a function of its row goes back to the path that it had: a server's loop does
//! not grow with what it handles. [`Rows`] keeps the rows of a process. A call of the function that runs opens no row: its
//! tail calls are taken for calls by that function, because a meter sees no difference.
//!
//! [`Paths`] is a tree. [`Known`] has the rule alone, for callers that keep the tree elsewhere.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// The empty path: outside of all calls.
pub const ROOT: u32 = u32::MAX;

/// How many functions a path has at most, the mark of a cut not counted.
pub const FRAMES_MAX: u32 = 512;

/// Each time that a tree has grown by this many paths, new ones are cut at half as many functions.
const PATHS_UNTIL_CUT: u32 = 1 << 16;

/// Where a tree that has this many paths cuts new ones. So a tree of `f` functions has at most some 600,000 paths, and
/// `f`² more that consist of a function, a mark and a function.
#[must_use]
pub fn frames_max(paths: u32) -> u32 {
    FRAMES_MAX >> (paths / PATHS_UNTIL_CUT).min(FRAMES_MAX.ilog2())
}

/// What paths consist of: a function, or the mark behind which a path was cut.
pub trait Frame: Copy + Eq + Hash {
    /// The mark of a path that was cut at `frames` functions, which are a power of two.
    fn cut_at(frames: u32) -> Self;

    /// Whether it is a mark.
    fn is_cut(self) -> bool;

    /// Whether both stand for the same function, so that one may repeat the other.
    fn is_same_function(self, other: Self) -> bool;
}

/// A tree of paths that is kept elsewhere. A path has a number, and is made after the path without its last frame.
pub trait Tree<F> {
    /// The last frame of a path, and the path without it; `None` of the empty one.
    fn end(&self, path: u32) -> Option<(F, u32)>;

    /// Adds a path: a frame behind the path `parent`. Returns its number.
    fn add(&mut self, parent: u32, frame: F) -> u32;

    /// How many paths there are.
    fn count(&self) -> u32;
}

/// The paths that calls lead to, as far as they were looked up.
pub struct Known<F> {
    ways: FxHashMap<(u32, F), u32>,
    /// The path that is looked at, the newest frame first. Kept to save an allocation each time.
    path: Vec<(u32, F)>,
}

impl<F> Default for Known<F> {
    fn default() -> Known<F> {
        Known {
            ways: FxHashMap::default(),
            path: Vec::new(),
        }
    }
}

impl<F: Frame> Known<F> {
    /// The path that a call of `frame` from the path `from` leads to. Costs a lookup, and at the first time up to the
    /// square of the path's length.
    pub fn call(&mut self, tree: &mut impl Tree<F>, from: u32, frame: F) -> u32 {
        if let Some(known) = self.ways.get(&(from, frame)) {
            return *known;
        }
        let to = self.find(tree, from, frame);
        self.ways.insert((from, frame), to);
        to
    }

    fn find(&mut self, tree: &mut impl Tree<F>, from: u32, frame: F) -> u32 {
        self.path.clear();
        let mut at = from;
        while let Some((last, parent)) = tree.end(at) {
            self.path.push((at, last));
            at = parent;
        }
        let cut = self.path.iter().find(|(_, frame)| frame.is_cut());
        if let Some((mark, _)) = cut.copied() {
            return self.child(tree, mark, frame);
        }
        if let Some(period) = period(&self.path, frame) {
            return self.fold(tree, period, at, frame);
        }
        let most = frames_max(tree.count()) as usize;
        if self.path.len() < most {
            return self.child(tree, from, frame);
        }
        let (last_whole, _) = self.path[self.path.len() - most];
        let mark = self.child(tree, last_whole, F::cut_at(most as u32));
        self.child(tree, mark, frame)
    }

    /// The path whose newest `period` frames, `frame` the last of them, take the place of as many before them. They are the
    /// same functions, but frames may say more of a function, and what they say of the newest ones is true now.
    fn fold(&mut self, tree: &mut impl Tree<F>, period: usize, root: u32, frame: F) -> u32 {
        let before = self.path.get(2 * period - 1);
        let mut to = before.map_or(root, |(path, _)| *path);
        for at in (0..period - 1).rev() {
            let (_, again) = self.path[at];
            to = self.child(tree, to, again);
        }
        self.child(tree, to, frame)
    }

    fn child(&mut self, tree: &mut impl Tree<F>, parent: u32, frame: F) -> u32 {
        let add = || tree.add(parent, frame);
        *self.ways.entry((parent, frame)).or_insert_with(add)
    }
}

/// How many frames, with `frame` as the newest, repeat those before them, if any do.
fn period<F: Frame>(path: &[(u32, F)], frame: F) -> Option<usize> {
    let is_same = |at: usize, frame: F| path[at].1.is_same_function(frame);
    let repeats = |period: &usize| {
        is_same(period - 1, frame) && (0..period - 1).all(|at| is_same(at + period, path[at].1))
    };
    (1..=path.len().div_ceil(2)).find(repeats)
}

/// The last frame of a path.
#[derive(Clone, Copy)]
struct Node<F> {
    frame: F,
    /// The path without it.
    parent: u32,
    /// What was called from here last, and where that led.
    last: Option<(F, u32)>,
}

/// The paths of a tree; see [`Paths`].
struct Nodes<F>(Vec<Node<F>>);

impl<F: Frame> Tree<F> for Nodes<F> {
    fn end(&self, path: u32) -> Option<(F, u32)> {
        let node = self.0.get(path as usize)?;
        Some((node.frame, node.parent))
    }

    fn add(&mut self, parent: u32, frame: F) -> u32 {
        let path = self.count();
        let last = None;
        self.0.push(Node {
            frame,
            parent,
            last,
        });
        path
    }

    fn count(&self) -> u32 {
        u32::try_from(self.0.len()).expect("more paths do not fit into memory")
    }
}

/// A tree of call paths. A path is known by the number of its last node; [`ROOT`] is the empty path.
pub struct Paths<F> {
    nodes: Nodes<F>,
    known: Known<F>,
    /// What was called from the empty path last.
    last: Option<(F, u32)>,
}

impl<F> Default for Paths<F> {
    fn default() -> Paths<F> {
        Paths {
            nodes: Nodes(Vec::new()),
            known: Known::default(),
            last: None,
        }
    }
}

impl<F: Frame> Paths<F> {
    /// The path that a call of `frame` from the path `from` leads to.
    #[inline]
    pub fn call(&mut self, from: u32, frame: F) -> u32 {
        let last = match self.nodes.0.get(from as usize) {
            Some(node) if node.frame == frame => return from,
            Some(node) => node.last,
            None => self.last,
        };
        match last {
            Some((last, to)) if last == frame => to,
            _ => self.find(from, frame),
        }
    }

    fn find(&mut self, from: u32, frame: F) -> u32 {
        let to = self.known.call(&mut self.nodes, from, frame);
        match self.nodes.0.get_mut(from as usize) {
            Some(node) => node.last = Some((frame, to)),
            None => self.last = Some((frame, to)),
        }
        to
    }

    /// The last frame of a path; `None` of the empty one.
    #[inline]
    #[must_use]
    pub fn last(&self, path: u32) -> Option<F> {
        self.nodes.0.get(path as usize).map(|node| node.frame)
    }

    /// How many paths there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.0.len()
    }

    /// Nothing was called.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.0.is_empty()
    }

    /// For each path the path without its last frame, and that frame. A path comes after the one it is made from.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Option<u32>, F)> + '_ {
        let nodes = self.nodes.0.iter();
        nodes.map(|node| ((node.parent != ROOT).then_some(node.parent), node.frame))
    }

    /// The frames of a path, the newest first.
    pub fn path(&self, mut at: u32) -> impl Iterator<Item = F> + '_ {
        std::iter::from_fn(move || {
            let (frame, parent) = self.nodes.end(at)?;
            at = parent;
            Some(frame)
        })
    }
}

/// A row of tail calls: they share one frame of the stack.
struct Row {
    /// The path that the row was called from.
    below: u32,
    /// Where the row's paths begin in [`Rows::paths`].
    first: usize,
}

/// The calls of a process that have not returned, as rows of tail calls, and the path that it is in.
pub struct Rows {
    rows: Vec<Row>,
    /// Of all rows, the paths that their calls led to.
    paths: Vec<u32>,
    current: u32,
}

impl Default for Rows {
    fn default() -> Rows {
        Rows {
            rows: Vec::new(),
            paths: Vec::new(),
            current: ROOT,
        }
    }
}

impl Rows {
    /// The path that the process is in.
    #[inline]
    #[must_use]
    pub fn current(&self) -> u32 {
        self.current
    }

    /// A call, which will return.
    #[inline]
    pub fn call<F: Frame>(&mut self, paths: &mut Paths<F>, frame: F) {
        let (below, first) = (self.current, self.paths.len());
        self.rows.push(Row { below, first });
        self.go_on(paths, frame);
    }

    /// A call in tail position: it returns where its caller would have returned.
    #[inline]
    pub fn tail_call<F: Frame>(&mut self, paths: &mut Paths<F>, frame: F) {
        let first = self.rows.last().map_or(0, |row| row.first);
        let row = &self.paths[first..];
        let again = row
            .iter()
            .rposition(|path| paths.last(*path) == Some(frame));
        match again {
            Some(at) => {
                self.paths.truncate(first + at + 1);
                self.current = self.paths[first + at];
            }
            None => self.go_on(paths, frame),
        }
    }

    #[inline]
    fn go_on<F: Frame>(&mut self, paths: &mut Paths<F>, frame: F) {
        if paths.last(self.current) != Some(frame) {
            self.current = paths.call(self.current, frame);
            self.paths.push(self.current);
        }
    }

    /// The newest `calls` calls end, or all there are.
    #[inline]
    pub fn leave(&mut self, calls: u64) {
        for _ in 0..calls {
            let Some(row) = self.rows.pop() else {
                self.paths.clear();
                self.current = ROOT;
                break;
            };
            self.paths.truncate(row.first);
            self.current = row.below;
        }
    }
}

#[cfg(test)]
mod tests;
