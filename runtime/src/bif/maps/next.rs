//! `erts_internal:map_next/3`, which gives the next part of a map, for iterators and `maps:to_list/1`.
//!
//! A place in a trie is a path of four bits a level, with the lowest ones for the root. It is an integer of 15 levels
//! in a small one and 16 levels a limb in a big one. An iterator goes forward. A list is built from its end, with a
//! path that counts from the last child.
//! Source: `erts_internal_map_next_3()` in `erl_map.c`, OTP 29.

use smallvec::SmallVec;

use crate::bif::{BifResult, badarg};
use crate::process::Process;
use crate::term::map::MAX_LEVEL;
use crate::term::{Map, Term, Tuple, View, am};

/// Elements an iterator gives at most at its start, lest it takes much for what is never looked at.
const FIRST_ELEMENTS: usize = 32;
/// Reductions an element of an ordered iterator costs.
const ORDERED_REDS: i64 = 32;
/// Levels in a limb of a path.
const LEVELS_PER_LIMB: usize = 16;

/// The result that the caller asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `{K1, V1, {K2, V2, ... [Path | Map]}}`, forward.
    Iterator,
    /// `[Path, Map, {K1, V1}, ... | Rest]`, built from the end.
    List,
}

/// A node on the way to the place, and which of its children comes next in the order of the walk.
struct Level<'p> {
    children: &'p [Term<'p>],
    next: usize,
}

/// A place among the leaves of a trie.
struct Walk<'p> {
    kind: Kind,
    path: SmallVec<[Level<'p>; 16]>,
}

fn children_of(node: Term<'_>) -> &[Term<'_>] {
    match Map::inner(node) {
        Some((_, children)) => children,
        None => node.as_tuple().map_or(&[], Tuple::elements),
    }
}

impl<'p> Walk<'p> {
    /// The child that is `at`-th in the order of the walk.
    fn child(&self, children: &'p [Term<'p>], at: usize) -> Option<Term<'p>> {
        let at = match self.kind {
            Kind::Iterator => at,
            Kind::List => children.len().checked_sub(at + 1)?,
        };
        children.get(at).copied()
    }

    /// The place that `path` names; `None` where the map has no such place.
    fn at(kind: Kind, map: Map<'p>, path: &[u64]) -> Option<Walk<'p>> {
        let (_, mut children) = map.root()?;
        let mut walk = Walk {
            kind,
            path: SmallVec::new(),
        };
        for level in 0.. {
            let limb = path.get(level / LEVELS_PER_LIMB).copied().unwrap_or(0);
            let at = (limb >> (4 * (level % LEVELS_PER_LIMB))) as usize & 0xf;
            let child = walk.child(children, at)?;
            if child.as_cons().is_some() {
                walk.path.push(Level { children, next: at });
                break;
            }
            let next = at + 1;
            walk.path.push(Level { children, next });
            children = children_of(child);
        }
        Some(walk)
    }

    /// The next leaf, unless `elements` are used up; these are raised to take all of a collision.
    fn next(&mut self, elements: &mut usize) -> Option<Term<'p>> {
        loop {
            let depth = self.path.len();
            let level = self.path.last()?;
            let (children, at) = (level.children, level.next);
            if at >= children.len() {
                self.path.pop();
                continue;
            }
            if *elements == 0 {
                return None;
            }
            let child = self.child(children, at)?;
            let level = self.path.last_mut()?;
            level.next += 1;
            if child.as_cons().is_some() {
                if at == 0 && depth > MAX_LEVEL as usize {
                    // A place within a collision could not be named.
                    *elements = (*elements).max(children.len());
                }
                return Some(child);
            }
            let children = children_of(child);
            self.path.push(Level { children, next: 0 });
        }
    }

    /// The path of the place, once nodes that are done with are gone; `None` at the end.
    fn encode(&self) -> Option<SmallVec<[u64; 2]>> {
        let mut limbs: SmallVec<[u64; 2]> = SmallVec::new();
        let deepest = self
            .path
            .iter()
            .rposition(|level| level.next < level.children.len())?;
        for (level, node) in self.path[..=deepest].iter().enumerate() {
            // Above the deepest, the walk is within the child before the next one.
            let at = node.next - usize::from(level < deepest);
            if level % LEVELS_PER_LIMB == 0 {
                limbs.push(0);
            }
            let limb = limbs.last_mut()?;
            *limb |= (at as u64) << (4 * (level % LEVELS_PER_LIMB));
        }
        Some(limbs)
    }
}

pub(super) fn map_next_3<'p>(p: &'p Process, [path, t, kind]: [Term<'p>; 3]) -> BifResult<'p> {
    let map = t.as_map().ok_or_else(badarg)?;
    let kind_is = match kind.view() {
        View::Atom(atom) if atom == am::iterator => Kind::Iterator,
        View::Nil | View::Cons(_) => Kind::List,
        _ => return Err(badarg().into()),
    };
    if kind_is == Kind::Iterator && (path.is_nil() || path.as_cons().is_some()) {
        return ordered(p, path, map);
    }
    if map.flat().is_some() {
        let at = path.as_index().ok_or_else(badarg)?;
        if at > map.len() {
            return Err(badarg().into());
        }
        let pairs: SmallVec<[_; 32]> = map.iter().collect();
        return Ok(built(p, kind_is, &pairs, am::none.term(), kind));
    }
    hashed(p, path, map, kind_is, kind)
}

/// What `pairs` are returned as, with `rest` or `tail` behind them.
fn built<'p>(
    p: &'p Process,
    kind: Kind,
    pairs: &[(Term<'p>, Term<'p>)],
    rest: Term<'p>,
    tail: Term<'p>,
) -> Term<'p> {
    let pairs = pairs.iter();
    match kind {
        Kind::Iterator => pairs
            .rev()
            .fold(rest, |rest, (k, v)| p.tuple(&[*k, *v, rest])),
        Kind::List => pairs
            .rev()
            .fold(tail, |tail, (k, v)| p.cons(p.tuple(&[*k, *v]), tail)),
    }
}

/// An iterator over keys that were sorted beforehand.
fn ordered<'p>(p: &'p Process, keys: Term<'p>, map: Map<'p>) -> BifResult<'p> {
    let elements = (p.fcalls.get() / ORDERED_REDS).max(1) as usize;
    let mut pairs = Vec::new();
    let mut rest = keys;
    while let (Some(cell), true) = (rest.as_cons(), pairs.len() < elements) {
        let key = cell.head();
        pairs.push((key, map.get(key).ok_or_else(badarg)?));
        rest = cell.tail();
    }
    let end = if rest.as_cons().is_some() {
        p.bump_reds(p.fcalls.get());
        p.cons(rest, map.term())
    } else if rest.is_nil() {
        p.bump_reds(ORDERED_REDS * pairs.len() as i64);
        am::none.term()
    } else {
        return Err(badarg().into());
    };
    Ok(built(p, Kind::Iterator, &pairs, end, Term::NIL))
}

fn hashed<'p>(
    p: &'p Process,
    path: Term<'p>,
    map: Map<'p>,
    kind: Kind,
    tail: Term<'p>,
) -> BifResult<'p> {
    let mut elements = usize::try_from(p.fcalls.get() / 4)
        .unwrap_or(0)
        .clamp(1, map.len());
    let limbs: SmallVec<[u64; 2]> = match path.view() {
        View::Small(at) => {
            if at == 0 {
                elements = elements.min(FIRST_ELEMENTS);
            }
            SmallVec::from_slice(&[u64::try_from(at).map_err(|_| badarg())?])
        }
        View::Big(at) if !at.is_negative() => SmallVec::from_slice(at.limbs()),
        _ => return Err(badarg().into()),
    };
    let mut walk = Walk::at(kind, map, &limbs).ok_or_else(badarg)?;
    let mut pairs = Vec::with_capacity(elements);
    while let Some(leaf) = walk.next(&mut elements) {
        let leaf = leaf.as_cons().ok_or_else(badarg)?;
        pairs.push((leaf.head(), leaf.tail()));
        elements -= 1;
    }
    // As there, even more than what is left.
    p.fcalls.set(p.fcalls.get() - 4 * pairs.len() as i64);
    let next = walk.encode().map(|limbs| p.big(false, &limbs));
    Ok(match (kind, next) {
        (Kind::Iterator, next) => {
            let rest = next.map_or(am::none.term(), |path| p.cons(path, map.term()));
            built(p, kind, &pairs, rest, tail)
        }
        (Kind::List, next) => {
            pairs.reverse();
            let list = built(p, kind, &pairs, Term::NIL, tail);
            next.map_or(list, |path| p.list_with_tail(&[path, map.term()], list))
        }
    })
}
