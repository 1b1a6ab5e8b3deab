//! Maps.

use smallvec::SmallVec;

use super::{BifResult, Raise, badarg, bifs, tagged};
use crate::process::Process;
use crate::term::map::{self, Changed};
use crate::term::{Atom, Map, Term, Tuple, am};

mod next;

bifs! {
    ubif erlang:"map_size"/1 => map_size_1;
    ubif erlang:"map_get"/2 => get_2;
    ubif erlang:"is_map_key"/2 => is_key_2;
    bif maps:"get"/2 => get_2;
    bif maps:"find"/2 => find_2;
    bif maps:"is_key"/2 => is_key_2;
    bif maps:"from_list"/1 => from_list_1;
    bif maps:"from_keys"/2 => from_keys_2;
    bif maps:"keys"/1 => keys_1;
    bif maps:"values"/1 => values_1;
    bif maps:"put"/3 => put_3;
    bif maps:"update"/3 => update_3;
    bif maps:"remove"/2 => remove_2;
    bif maps:"take"/2 => take_2;
    bif maps:"merge"/2 => merge_2;
    bif erts_internal:"map_next"/3 => next::map_next_3;
    bif erts_internal:"map_to_tuple_keys"/1 => map_to_tuple_keys_1;
    bif erts_internal:"map_hashmap_children"/1 => map_hashmap_children_1;
    bif erts_debug:"map_info"/1 => map_info_1;
}

fn of_map<'p>(p: &'p Process, t: Term<'p>) -> Result<Map<'p>, Raise<'p>> {
    t.as_map().ok_or_else(|| tagged(p, am::badmap, t))
}

fn no_key<'p>(p: &'p Process, key: Term<'p>) -> Raise<'p> {
    tagged(p, am::badkey, key)
}

fn map_size_1<'p>(p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(Term::small(of_map(p, t)?.len() as i64))
}

fn get_2<'p>(p: &'p Process, [key, t]: [Term<'p>; 2]) -> BifResult<'p> {
    of_map(p, t)?.get(key).ok_or_else(|| no_key(p, key))
}

fn find_2<'p>(p: &'p Process, [key, t]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(match of_map(p, t)?.get(key) {
        Some(value) => p.tuple(&[am::ok.term(), value]),
        None => am::error.term(),
    })
}

fn is_key_2<'p>(p: &'p Process, [key, t]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(Term::bool(of_map(p, t)?.contains_key(key)))
}

/// List elements one reduction pays for where a map is made.
const MADE_PER_RED: usize = 40;
/// Keys or values one reduction pays for where they are listed.
const LISTED_PER_RED: usize = 15;

fn from_list_1<'p>(p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    let pair = |t: Term<'p>| match t.as_tuple().map(Tuple::elements) {
        Some(&[key, value]) => Some((key, value)),
        _ => None,
    };
    let pairs = list.list_iter().map(|t| t.ok().and_then(pair));
    let pairs: Vec<_> = pairs.collect::<Option<_>>().ok_or_else(badarg)?;
    Ok(from_pairs(p, &pairs))
}

fn from_keys_2<'p>(p: &'p Process, [list, value]: [Term<'p>; 2]) -> BifResult<'p> {
    let pairs = list.list_iter().map(|t| Some((t.ok()?, value)));
    let pairs: Vec<_> = pairs.collect::<Option<_>>().ok_or_else(badarg)?;
    Ok(from_pairs(p, &pairs))
}

fn from_pairs<'p>(p: &'p Process, pairs: &[(Term<'p>, Term<'p>)]) -> Term<'p> {
    p.bump_reds((pairs.len() / MADE_PER_RED) as i64);
    map::from_pairs(p, pairs)
}

fn listed<'p>(
    p: &'p Process,
    t: Term<'p>,
    part: fn((Term<'p>, Term<'p>)) -> Term<'p>,
) -> BifResult<'p> {
    let parts: Vec<_> = of_map(p, t)?.iter().map(part).collect();
    p.bump_reds((parts.len() / LISTED_PER_RED) as i64);
    Ok(p.list(&parts))
}

fn keys_1<'p>(p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    listed(p, t, |(key, _)| key)
}

fn values_1<'p>(p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    listed(p, t, |(_, value)| value)
}

fn put_3<'p>(p: &'p Process, [key, value, t]: [Term<'p>; 3]) -> BifResult<'p> {
    Ok(map::put(p, of_map(p, t)?, key, value))
}

fn update_3<'p>(p: &'p Process, [key, value, t]: [Term<'p>; 3]) -> BifResult<'p> {
    match map::update(p, of_map(p, t)?, key, value) {
        Changed::To(map) => Ok(map),
        Changed::NoKey => Err(no_key(p, key)),
    }
}

fn remove_2<'p>(p: &'p Process, [key, t]: [Term<'p>; 2]) -> BifResult<'p> {
    let taken = map::take(p, of_map(p, t)?, key);
    Ok(taken.map_or(t, |(rest, _)| rest))
}

fn take_2<'p>(p: &'p Process, [key, t]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(match map::take(p, of_map(p, t)?, key) {
        Some((rest, value)) => p.tuple(&[value, rest]),
        None => am::error.term(),
    })
}

/// Nodes one reduction pays for where tries are merged.
const MERGED_PER_RED: usize = 8;

fn merge_2<'p>(p: &'p Process, [a, b]: [Term<'p>; 2]) -> BifResult<'p> {
    let (merged, visited) = map::merge(p, of_map(p, a)?, of_map(p, b)?);
    p.bump_reds((visited / MERGED_PER_RED) as i64);
    Ok(merged)
}

fn map_to_tuple_keys_1<'p>(p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    let (keys, _) = of_map(p, t)?.flat().ok_or_else(badarg)?;
    Ok(keys.term())
}

/// Children of a trie's node, the last one first; what they are is for `erts_debug` alone.
fn map_hashmap_children_1<'p>(p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    let children = match Map::inner(t) {
        Some((_, children)) => children,
        None => of_map(p, t)?.root().ok_or_else(badarg)?.1,
    };
    let reversed: SmallVec<[_; 16]> = children.iter().rev().copied().collect();
    Ok(p.list(&reversed))
}

/// What `erts_debug:map_info/1` counts.
#[derive(Default)]
struct Counts {
    leaves: i64,
    bitmaps: i64,
    arrays: i64,
    collisions: i64,
    depth: usize,
    leaves_at: [i64; 18],
    bitmaps_of: [i64; 16],
    collisions_of: [i64; 16],
}

impl Counts {
    fn node(&mut self, node: Term<'_>, level: usize) {
        if node.as_cons().is_some() {
            self.leaves += 1;
            self.leaves_at[level] += 1;
        } else if let Some((_, children)) = Map::inner(node) {
            self.bitmaps += 1;
            self.bitmaps_of[children.len() - 1] += 1;
            self.children(children, level);
        } else if let Some(tuple) = node.as_tuple() {
            self.collisions += 1;
            self.collisions_of[tuple.arity().min(16) - 1] += 1;
            self.children(tuple.elements(), level);
        }
    }

    fn children(&mut self, children: &[Term<'_>], level: usize) {
        self.depth = self.depth.max(level + 1);
        children
            .iter()
            .for_each(|child| self.node(*child, level + 1));
    }
}

fn map_info_1<'p>(p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    let (_, children) = of_map(p, t)?.root().ok_or_else(badarg)?;
    let mut counts = Counts::default();
    if children.len() == 16 {
        counts.arrays += 1;
    } else {
        counts.bitmaps += 1;
        counts.bitmaps_of[children.len() - 1] += 1;
    }
    counts.children(children, 0);
    let usage = |counts: &[i64]| {
        let counts: SmallVec<[_; 18]> = counts.iter().map(|n| Term::small(*n)).collect();
        p.tuple(&counts)
    };
    let row = |name: Atom, n, usage| p.tuple(&[name.term(), Term::small(n), usage]);
    Ok(p.list(&[
        p.tuple(&[am::depth.term(), Term::small(counts.depth as i64)]),
        row(am::arrays, counts.arrays, Term::NIL),
        row(
            am::collisions,
            counts.collisions,
            usage(&counts.collisions_of),
        ),
        row(am::bitmaps, counts.bitmaps, usage(&counts.bitmaps_of)),
        row(am::leafs, counts.leaves, usage(&counts.leaves_at)),
    ]))
}
