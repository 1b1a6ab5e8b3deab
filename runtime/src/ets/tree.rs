//! Tables whose keys are in order: `ordered_set`. Keys that compare equal are one key (`1` and `1.0`).

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use crate::heap::Stored;
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

/// An object, ordered by its key.
struct Keyed {
    object: Stored,
    /// Index of the key, from 0.
    key: usize,
}

impl Place for Keyed {
    fn at(&self) -> At<'_> {
        At::Key(self.object.elements()[self.key])
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
impl PartialEq for Keyed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Keyed {}
impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Keyed {
    fn cmp(&self, other: &Self) -> Ordering {
        cmp(
            self.object.elements()[self.key],
            other.object.elements()[other.key],
        )
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
pub(crate) struct Tree {
    key: usize,
    objects: BTreeSet<Keyed>,
    object_words: usize,
}

/// Words of an empty table.
const TABLE_WORDS: usize = 140;
/// Words an object takes beside its own.
const OBJECT_WORDS: usize = 5;

type Objects<'a> = std::collections::btree_set::Range<'a, Keyed>;

/// Objects in a range of keys, from either end.
pub(super) struct Range<'a>(Objects<'a>);

impl<'a> Iterator for Range<'a> {
    type Item = &'a Stored;
    fn next(&mut self) -> Option<&'a Stored> {
        self.0.next().map(|keyed| &keyed.object)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|keyed| &keyed.object)
    }
}

impl Tree {
    pub(super) fn new(keypos: usize) -> Tree {
        Tree {
            key: keypos - 1,
            objects: BTreeSet::new(),
            object_words: 0,
        }
    }

    /// Index of the key in an object, from 0.
    pub(super) fn key_index(&self) -> usize {
        self.key
    }

    pub(super) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(super) fn words(&self) -> usize {
        TABLE_WORDS + self.object_words + self.len() * OBJECT_WORDS
    }

    #[inline]
    pub(super) fn get(&self, key: Term<'_>) -> Option<&Stored> {
        self.objects
            .get(&key as &dyn Place)
            .map(|keyed| &keyed.object)
    }

    pub(super) fn insert(&mut self, object: Stored) {
        self.object_words += object.words();
        let key = self.key;
        if let Some(old) = self.objects.replace(Keyed { object, key }) {
            self.object_words -= old.object.words();
        }
    }

    pub(super) fn update(&mut self, key: Term<'_>, change: impl FnOnce(&mut Stored)) -> bool {
        let Some(mut keyed) = self.objects.take(&key as &dyn Place) else {
            return false;
        };
        self.object_words -= keyed.object.words();
        change(&mut keyed.object);
        self.object_words += keyed.object.words();
        self.objects.insert(keyed);
        true
    }

    pub(super) fn remove(&mut self, key: Term<'_>) -> Option<Stored> {
        let keyed = self.objects.take(&key as &dyn Place)?;
        self.object_words -= keyed.object.words();
        Some(keyed.object)
    }

    pub(super) fn remove_object(&mut self, object: Term<'_>, key: Term<'_>) {
        if self
            .get(key)
            .is_some_and(|other| eq_exact(other.term(), object))
        {
            self.remove(key);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Tree::new(self.key + 1);
    }

    pub(super) fn first(&self) -> Option<&Stored> {
        self.objects.first().map(|keyed| &keyed.object)
    }

    pub(super) fn last(&self) -> Option<&Stored> {
        self.objects.last().map(|keyed| &keyed.object)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Stored> {
        self.objects.iter().map(|keyed| &keyed.object)
    }

    pub(super) fn after(&self, key: Term<'_>) -> Option<&Stored> {
        let from = Bound::Excluded(&key as &dyn Place);
        self.range(from, Bound::Unbounded).next()
    }

    pub(super) fn before(&self, key: Term<'_>) -> Option<&Stored> {
        let to = Bound::Excluded(&key as &dyn Place);
        self.range(Bound::Unbounded, to).next_back()
    }

    fn range<'a>(&'a self, from: Bound<&dyn Place>, to: Bound<&dyn Place>) -> Range<'a> {
        Range(self.objects.range::<dyn Place, _>((from, to)))
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
                return Range(self.objects.range::<dyn Place, _>((
                    Bound::Excluded(last as &dyn Place),
                    Bound::Included(last as &dyn Place),
                )));
            }
        }
        self.range(from, to)
    }
}
