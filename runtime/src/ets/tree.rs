//! Tables whose keys are in order: `ordered_set`. Keys that compare equal are one key (`1` and `1.0`).

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use smallvec::SmallVec;

use crate::hash::internal::mix64;
use crate::heap::{Key, Keyed, Stored};
use crate::term::compare::{cmp, eq_exact};
use crate::term::{Term, View};

use crate::matchspec::is_wild;

/// A place in the order.
enum At<'a> {
    /// At a key.
    Key(Term<'a>),
    /// Before all keys that match a pattern as far as its first variable.
    Before(Term<'a>),
    /// Behind them.
    Behind(Term<'a>),
}

trait Place {
    fn at(&self) -> At<'_>;
}

impl Place for Keyed {
    fn at(&self) -> At<'_> {
        At::Key(self.key().term())
    }
}

impl Place for Term<'_> {
    fn at(&self) -> At<'_> {
        At::Key(*self)
    }
}

struct Edge<'a> {
    pattern: Term<'a>,
    behind: bool,
}

impl Place for Edge<'_> {
    fn at(&self) -> At<'_> {
        if self.behind {
            At::Behind(self.pattern)
        } else {
            At::Before(self.pattern)
        }
    }
}

fn order(a: &At<'_>, b: &At<'_>) -> Ordering {
    match (a, b) {
        (At::Key(a), At::Key(b)) => cmp(*a, *b),
        (At::Before(pattern), At::Key(key)) => partly(*pattern, *key)
            .unwrap_or(Ordering::Equal)
            .then(Ordering::Less),
        (At::Behind(pattern), At::Key(key)) => partly(*pattern, *key)
            .unwrap_or(Ordering::Equal)
            .then(Ordering::Greater),
        (At::Key(_), _) => order(b, a).reverse(),
        (At::Before(_), At::Behind(_)) => Ordering::Less,
        (At::Behind(_), At::Before(_)) => Ordering::Greater,
        (At::Before(_), At::Before(_)) | (At::Behind(_), At::Behind(_)) => Ordering::Equal,
    }
}

impl PartialEq for dyn Place + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for dyn Place + '_ {}
impl PartialOrd for dyn Place + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for dyn Place + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.at(), &other.at())
    }
}
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Key {}
impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        cmp(self.term(), other.term())
    }
}
impl PartialEq for Keyed {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Keyed {}
impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Keyed {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key())
    }
}
impl Borrow<Key> for Keyed {
    #[inline]
    fn borrow(&self) -> &Key {
        self.key()
    }
}
impl<'a> Borrow<dyn Place + 'a> for Keyed {
    fn borrow(&self) -> &(dyn Place + 'a) {
        self
    }
}

/// The order of `pattern` and `key` where it can be told before the pattern's first variable (or map);
/// `Some(Equal)` where they are equal, `None` where the variable comes first.
fn partly(pattern: Term<'_>, key: Term<'_>) -> Option<Ordering> {
    match (pattern.view(), key.view()) {
        (View::Atom(atom), _) if is_wild(atom) => None,
        (View::Map(_), View::Map(_)) => None,
        (View::Cons(_), View::Cons(_)) => {
            let (mut a, mut b) = (pattern, key);
            while let (View::Cons(x), View::Cons(y)) = (a.view(), b.view()) {
                match partly(x.head(), y.head())? {
                    Ordering::Equal => (a, b) = (x.tail(), y.tail()),
                    unequal => return Some(unequal),
                }
            }
            partly(a, b)
        }
        (View::Tuple(a), View::Tuple(b)) if a.arity() == b.arity() => {
            for (a, b) in a.elements().iter().zip(b.elements()) {
                match partly(*a, *b)? {
                    Ordering::Equal => {}
                    unequal => return Some(unequal),
                }
            }
            Some(Ordering::Equal)
        }
        _ => Some(cmp(pattern, key)),
    }
}

/// A table in the order of its keys.
///
/// As ERTS's contention adapting tree, it is made of base nodes, one beside the other in the order of
/// keys, and of routes that say where each but the first begins. It has one base node until it is told
/// to split: changes hold the whole table's lock, so that no contention asks for it.
pub(crate) struct Tree {
    key: usize,
    bases: Vec<BTreeSet<Keyed>>,
    /// The least key of every base node but the first, as tuples of that key.
    routes: Vec<Stored>,
    /// Whether changes split the base node they are made in, or join it to the next one.
    adapt: Adapt,
    objects: usize,
    node_bytes: usize,
    /// How many bytes an object takes.
    size: fn(&Stored, usize) -> usize,
}

/// What changes do to the base nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Adapt {
    Not,
    Split,
    /// At random, from this state.
    Random(u64),
}

/// Words of the stack that traversals of an ordered set without fine-grained locks use.
const STACK_WORDS: usize = 90;
/// Words a node takes beside its tuple.
const NODE_WORDS: usize = 5;
/// Base nodes that forced splits may make.
const MAX_BASES: usize = 1024;

type Objects<'a> = std::collections::btree_set::Range<'a, Keyed>;

/// Objects in a range of keys, from either end.
pub(super) struct Range<'a>(std::iter::Flatten<smallvec::IntoIter<[Objects<'a>; 1]>>);

impl<'a> Iterator for Range<'a> {
    type Item = &'a Stored;
    fn next(&mut self) -> Option<&'a Stored> {
        self.0.next().map(Keyed::object)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(Keyed::object)
    }
}

impl Tree {
    pub(super) fn new(keypos: usize, size: fn(&Stored, usize) -> usize) -> Tree {
        Tree {
            key: keypos - 1,
            bases: vec![BTreeSet::new()],
            routes: Vec::new(),
            adapt: Adapt::Not,
            objects: 0,
            node_bytes: 0,
            size,
        }
    }

    /// Index of the key in an object, from 0.
    pub(super) fn key_index(&self) -> usize {
        self.key
    }

    pub(super) fn len(&self) -> usize {
        self.objects
    }

    /// Bytes it takes, as ERTS counts them, beside those of the table itself.
    pub(super) fn bytes(&self, fine_locks: bool) -> usize {
        let stack = if fine_locks { 0 } else { STACK_WORDS * 8 };
        stack + self.node_bytes
    }

    /// Routes, base nodes, and how deep a balanced tree of such routes is.
    pub(crate) fn splits(&self) -> (usize, usize, usize) {
        let depth = self.bases.len().next_power_of_two().trailing_zeros();
        (self.routes.len(), self.bases.len(), depth as usize)
    }

    /// Whether every change is to split the base node it is made in.
    pub(super) fn force_split(&mut self, yes: bool) {
        self.adapt = if yes { Adapt::Split } else { Adapt::Not };
    }

    /// Whether every change is to split the base node it is made in or to join it to the next one.
    pub(super) fn random_split_join(&mut self, yes: bool) {
        self.adapt = if yes { Adapt::Random(1) } else { Adapt::Not };
    }

    /// Splits or joins the base node of a change, where that was asked for.
    #[cold]
    fn adapt(&mut self, base: usize) {
        match &mut self.adapt {
            Adapt::Not => {}
            Adapt::Split => self.split_base(base),
            Adapt::Random(state) => {
                *state = mix64(*state);
                match *state % 8 {
                    0 => self.split_base(base),
                    1 => self.join_base(base),
                    _ => {}
                }
            }
        }
    }

    /// The base node of `key`.
    #[inline]
    fn base_of(&self, key: Term<'_>) -> usize {
        if self.routes.is_empty() {
            return 0;
        }
        self.routes
            .partition_point(|route| cmp(route.elements()[0], key).is_le())
    }

    /// Joins a base node to the next one.
    fn join_base(&mut self, base: usize) {
        if base + 1 < self.bases.len() {
            let mut right = self.bases.remove(base + 1);
            self.routes.remove(base);
            self.bases[base].append(&mut right);
        }
    }

    /// Splits a base node in the middle.
    fn split_base(&mut self, base: usize) {
        let half = self.bases[base].len() / 2;
        if half == 0 || self.bases.len() >= MAX_BASES {
            return;
        }
        let Some(middle) = self.bases[base].iter().nth(half) else {
            return;
        };
        let route = Stored::of_elements(&[middle.key().term()]);
        let right = self.bases[base].split_off(Key::of(&route.elements()[0]));
        self.bases.insert(base + 1, right);
        self.routes.insert(base, route);
    }

    #[inline]
    pub(super) fn get(&self, key: Term<'_>) -> Option<&Stored> {
        self.bases[self.base_of(key)]
            .get(Key::of(&key))
            .map(Keyed::object)
    }

    fn node_size(&self, object: &Stored) -> usize {
        (self.size)(object, self.key) + NODE_WORDS * 8
    }

    pub(super) fn insert(&mut self, object: Stored) {
        let key = self.key;
        self.node_bytes += self.node_size(&object);
        let base = self.base_of(object.elements()[key]);
        match self.bases[base].replace(Keyed::new(object, key)) {
            Some(old) => self.node_bytes -= self.node_size(old.object()),
            None => self.objects += 1,
        }
        if self.adapt != Adapt::Not {
            self.adapt(base);
        }
    }

    pub(super) fn update(&mut self, key: Term<'_>, change: impl FnOnce(&mut Stored)) -> bool {
        let base = self.base_of(key);
        let Some(keyed) = self.bases[base].take(Key::of(&key)) else {
            return false;
        };
        let mut object = keyed.into_object();
        self.node_bytes -= self.node_size(&object);
        change(&mut object);
        self.node_bytes += self.node_size(&object);
        self.bases[base].insert(Keyed::new(object, self.key));
        true
    }

    pub(super) fn remove(&mut self, key: Term<'_>) {
        let base = self.base_of(key);
        if let Some(keyed) = self.bases[base].take(Key::of(&key)) {
            self.node_bytes -= self.node_size(keyed.object());
            self.objects -= 1;
        }
        if self.adapt != Adapt::Not {
            self.adapt(base);
        }
    }

    pub(super) fn remove_object(&mut self, object: Term<'_>, key: Term<'_>) {
        if self
            .get(key)
            .is_some_and(|other| eq_exact(other.term(), object))
        {
            self.remove(key);
        }
    }

    /// A table like this one without objects.
    pub(super) fn new_empty(&self) -> Tree {
        Tree {
            adapt: self.adapt,
            ..Tree::new(self.key + 1, self.size)
        }
    }

    /// Frees as many objects as `reds` pay for; what is left of them, less than none where it is not done.
    pub(super) fn free_some(&mut self, mut reds: i64) -> i64 {
        while let Some(base) = self.bases.last_mut() {
            if base.pop_last().is_none() {
                drop(self.bases.pop());
                continue;
            }
            reds -= 1;
            if reds < 0 {
                return reds;
            }
        }
        reds
    }

    pub(super) fn first(&self) -> Option<&Stored> {
        self.iter().next()
    }

    pub(super) fn last(&self) -> Option<&Stored> {
        self.iter().next_back()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Stored> {
        self.bases.iter().flatten().map(Keyed::object)
    }

    pub(super) fn after(&self, key: Term<'_>) -> Option<&Stored> {
        let base = self.base_of(key);
        let behind = (Bound::Excluded(Key::of(&key)), Bound::Unbounded);
        let found = self.bases[base].range::<Key, _>(behind).next();
        let mut others = self.bases[base + 1..].iter();
        let found = found.or_else(|| others.find_map(BTreeSet::first));
        found.map(Keyed::object)
    }

    pub(super) fn before(&self, key: Term<'_>) -> Option<&Stored> {
        let base = self.base_of(key);
        let before = (Bound::Unbounded, Bound::Excluded(Key::of(&key)));
        let found = self.bases[base].range::<Key, _>(before).next_back();
        let mut others = self.bases[..base].iter().rev();
        let found = found.or_else(|| others.find_map(BTreeSet::last));
        found.map(Keyed::object)
    }

    fn range<'a>(&'a self, from: Bound<&dyn Place>, to: Bound<&dyn Place>) -> Range<'a> {
        let range = |base: &'a BTreeSet<Keyed>| base.range::<dyn Place, _>((from, to));
        let ranges: SmallVec<[_; 1]> = self.bases.iter().map(range).collect();
        Range(ranges.into_iter().flatten())
    }

    /// The objects that a traversal has yet to visit: keys that `pattern` may match (all without
    /// one), behind `last` (before it, when going `back`).
    pub(super) fn rest(
        &self,
        pattern: Option<Term<'_>>,
        last: Option<Term<'_>>,
        back: bool,
    ) -> Range<'_> {
        let edges = pattern.map(|pattern| {
            let edge = |behind| Edge { pattern, behind };
            (edge(false), edge(true))
        });
        let (mut from, mut to) = match &edges {
            Some((before, behind)) => (
                Bound::Excluded(before as &dyn Place),
                Bound::Excluded(behind as &dyn Place),
            ),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        if let Some(last) = &last {
            let edge = if back { &mut to } else { &mut from };
            let beyond = match edge {
                Bound::Excluded(edge) => {
                    let order = (last as &dyn Place).cmp(*edge);
                    if back {
                        order == Ordering::Greater
                    } else {
                        order == Ordering::Less
                    }
                }
                _ => false,
            };
            if !beyond {
                *edge = Bound::Excluded(last as &dyn Place);
            }
            if let (Bound::Excluded(from), Bound::Excluded(to)) = (from, to)
                && from.cmp(to) != Ordering::Less
            {
                // Nothing is left between them.
                return Range(SmallVec::new().into_iter().flatten());
            }
        }
        self.range(from, to)
    }
}
