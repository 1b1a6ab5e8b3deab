//! Maps.

use smallvec::SmallVec;

use super::{BifResult, Raise, badarg, bifs, tagged};
use crate::process::{CONTEXT_REDS, Due, PauseWords, Process, Work};
use crate::term::tag::map::SMALL_LIMIT;
use crate::term::{Atom, Map, RawTerm, Term, Tuple, am};
use crate::value::map;
use crate::value::map::{Changed, Leaf, Leaves};

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

fn of_map(t: Term<'_>) -> Result<Map<'_>, Raise<'_>> {
    t.as_map().ok_or_else(|| tagged(am::badmap, t))
}

/// A map, and no inner node of a trie, which only `erts_debug` has in hand.
fn whole(t: Term<'_>) -> Result<Map<'_>, Raise<'_>> {
    of_map(t).and_then(|map| match Map::inner(t) {
        None => Ok(map),
        Some(_) => Err(tagged(am::badmap, t)),
    })
}

fn no_key(key: Term<'_>) -> Raise<'_> {
    tagged(am::badkey, key)
}

fn map_size_1<'p>(_p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(Term::small(of_map(t)?.len() as i64))
}

fn get_2<'p>(_p: &'p Process, [key, t]: [Term<'p>; 2]) -> BifResult<'p> {
    of_map(t)?.get(key).ok_or_else(|| no_key(key))
}

fn find_2<'p>(p: &'p Process, [key, t]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(match of_map(t)?.get(key) {
        Some(value) => p.tuple(&[am::ok.term(), value]),
        None => am::error.term(),
    })
}

fn is_key_2<'p>(_p: &'p Process, [key, t]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(Term::bool(of_map(t)?.contains_key(key)))
}

/// Keys or values one reduction pays for where they are listed.
const LISTED_PER_RED: usize = 15;

fn from_list_1<'p>(p: &'p Process, [list]: [Term<'p>; 1]) -> BifResult<'p> {
    from_elements(p, list, |t| match t.as_tuple().map(Tuple::elements) {
        Some(&[key, value]) => Some((key, value)),
        _ => None,
    })
}

fn from_keys_2<'p>(p: &'p Process, [list, value]: [Term<'p>; 2]) -> BifResult<'p> {
    from_elements(p, list, |key| Some((key, value)))
}

/// Pairs of a map in the making.
struct Making {
    /// For each the place of its key in a trie, key and value.
    pairs: Vec<(u64, [RawTerm; 2])>,
    /// What is left of the list.
    rest: [RawTerm; 1],
}

impl Work for Making {
    fn visit(&mut self, visit: &mut dyn FnMut(&mut [RawTerm])) {
        visit(&mut self.rest);
        for (_, pair) in &mut self.pairs {
            visit(pair);
        }
    }
}

/// Steps for one reduction where a map is made of a list.
const MADE_PER_RED: usize = 40;

/// What is due for a map of `n` elements beside going through them twice. ERTS sorts them by their hashes with
/// pivots it draws by chance, so that no two of its runs count the same: this is the mean of what they count.
fn sorting(n: usize) -> Due {
    const TENTHS_EACH: usize = 95;
    const TENTHS_EACH_DOUBLING: usize = 14;
    let doublings = n.max(1).ilog2() as usize;
    // Between two powers of two, in a straight line.
    let between = ((n - (1 << doublings)) * TENTHS_EACH_DOUBLING) >> doublings;
    let tenths = n * (TENTHS_EACH + TENTHS_EACH_DOUBLING * doublings + between);
    Due::new(tenths / 10, MADE_PER_RED * CONTEXT_REDS as usize)
}

/// The map of the elements of `list`, of which `pair` gives key and value. That of a small map costs no more than
/// the list's elements.
fn from_elements<'p>(
    p: &'p Process,
    list: Term<'p>,
    pair: impl Fn(Term<'p>) -> Option<(Term<'p>, Term<'p>)>,
) -> BifResult<'p> {
    if let Some(result) = p.pay_on(PauseWords::Once) {
        return result;
    }
    let begun = p.take_work::<Making>();
    let is_first_turn = begun.is_none();
    if is_first_turn && list.list_iter().nth(SMALL_LIMIT).is_none() {
        let pairs = list.list_iter().map(|t| t.ok().and_then(&pair));
        let pairs: SmallVec<[_; SMALL_LIMIT]> = pairs.collect::<Option<_>>().ok_or_else(badarg)?;
        return Ok(map::from_pairs(p, &pairs));
    }
    let mut making = begun.unwrap_or_else(|| {
        let (pairs, rest) = (Vec::new(), [list.raw()]);
        Box::new(Making { pairs, rest })
    });
    let mut rest = p.own(making.rest[0]);
    let budget = p.reds_left() * MADE_PER_RED;
    let mut left = budget;
    while let Some(cell) = rest.as_cons() {
        let (key, value) = pair(cell.head()).ok_or_else(badarg)?;
        if left == 0 {
            making.rest = [rest.raw()];
            if is_first_turn {
                p.trap_state();
            }
            return Err(p.yield_with(*making));
        }
        left = left.saturating_sub(2);
        let raw = [key.raw(), value.raw()];
        making.pairs.push((map::trie_order_of(key), raw));
        rest = cell.tail();
    }
    p.bump_reds(((budget - left) / MADE_PER_RED) as i64);
    if !rest.is_nil() {
        return Err(badarg());
    }
    let due = sorting(making.pairs.len());
    let pairs = making.pairs.iter();
    let pairs: Vec<_> = pairs
        .map(|&(order, [key, value])| (order, p.own(key), p.own(value)))
        .collect();
    let map = map::from_placed(p, &pairs);
    match is_first_turn {
        true => p.pay(map, &[due], PauseWords::Once),
        false => p.pay(map, &[due], PauseWords::Each(0)),
    }
}

/// Keys or values of a trie, as far as they have been listed.
struct Listing {
    parts: Vec<RawTerm>,
    left: SmallVec<[u8; 16]>,
}

impl Work for Listing {
    fn visit(&mut self, visit: &mut dyn FnMut(&mut [RawTerm])) {
        visit(&mut self.parts);
    }
}

fn listed<'p>(p: &'p Process, t: Term<'p>, part: fn(Leaf<'p>) -> Term<'p>) -> BifResult<'p> {
    let map = whole(t)?;
    let (mut leaves, mut parts) = match p.take_work::<Listing>() {
        Some(listing) => (Leaves::resume(map, &listing.left), listing.parts),
        None => (Leaves::of(map), Vec::with_capacity(map.len())),
    };
    let budget = p.reds_left() * LISTED_PER_RED;
    let before = parts.len();
    parts.extend(leaves.by_ref().take(budget).map(|leaf| part(leaf).raw()));
    if parts.len() < map.len() {
        if before == 0 {
            p.trap_state();
        }
        let left = leaves.pause();
        return Err(p.yield_with(Listing { parts, left }));
    }
    p.bump_reds(((parts.len() - before) / LISTED_PER_RED) as i64);
    let parts: Vec<_> = parts.into_iter().map(|raw| p.own(raw)).collect();
    Ok(p.list(&parts))
}

fn keys_1<'p>(p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    match of_map(t)?.flat() {
        Some((keys, _)) => Ok(p.list(keys.elements())),
        None => listed(p, t, |[key, _]| *key),
    }
}

fn values_1<'p>(p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    match of_map(t)?.flat() {
        Some((_, values)) => Ok(p.list(values)),
        None => listed(p, t, |[_, value]| *value),
    }
}

fn put_3<'p>(p: &'p Process, [key, value, t]: [Term<'p>; 3]) -> BifResult<'p> {
    Ok(map::put(p, of_map(t)?, key, value))
}

fn update_3<'p>(p: &'p Process, [key, value, t]: [Term<'p>; 3]) -> BifResult<'p> {
    match map::update(p, of_map(t)?, key, value) {
        Changed::To(map) => Ok(map),
        Changed::NoKey => Err(no_key(key)),
    }
}

fn remove_2<'p>(p: &'p Process, [key, t]: [Term<'p>; 2]) -> BifResult<'p> {
    let taken = map::take(p, of_map(t)?, key);
    Ok(taken.map_or(t, |(rest, _)| rest))
}

fn take_2<'p>(p: &'p Process, [key, t]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(match map::take(p, of_map(t)?, key) {
        Some((rest, value)) => p.tuple(&[value, rest]),
        None => am::error.term(),
    })
}

fn merge_2<'p>(p: &'p Process, [a, b]: [Term<'p>; 2]) -> BifResult<'p> {
    /// Nodes that a time slice pays for.
    const MERGED_PER_SLICE: usize = 8 * CONTEXT_REDS as usize;
    if let Some(result) = p.pay_on(PauseWords::Once) {
        return result;
    }
    let (merged, visited) = map::merge(p, whole(a)?, whole(b)?);
    p.pay(
        merged,
        &[Due::new(visited, MERGED_PER_SLICE)],
        PauseWords::Once,
    )
}

fn map_to_tuple_keys_1<'p>(_p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    let (keys, _) = of_map(t)?.flat().ok_or_else(badarg)?;
    Ok(keys.term())
}

/// Children of a trie's node, the last one first; what they are is for `erts_debug` alone.
fn map_hashmap_children_1<'p>(p: &'p Process, [t]: [Term<'p>; 1]) -> BifResult<'p> {
    let children = match Map::inner(t) {
        Some((_, children)) => children,
        None => of_map(t)?.root().ok_or_else(badarg)?.1,
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
    let (_, children) = whole(t)?.root().ok_or_else(badarg)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::in_small_steps;

    #[test]
    fn long_work_is_done_in_many_slices() {
        const N: i64 = 3000;
        let mut p = Process::new(233);
        let pairs: Vec<_> = (0..N)
            .map(|n| p.tuple(&[Term::small(n), p.tuple(&[Term::small(-n)])]))
            .collect();
        let list = p.root(p.list(&pairs));
        let is_all = |map: Term<'_>| {
            let map = map.as_map().expect("a map");
            let value = |n| map.get(Term::small(n)).and_then(Term::as_tuple);
            map.len() == N as usize
                && (0..N).all(|n| value(n).expect("a tuple").elements()[0].same(Term::small(-n)))
        };
        let turns = in_small_steps(&mut p, &list, |p, list| from_list_1(p, [list]), is_all);
        assert!(turns > 200, "{turns}");
        let map = p.root(map::from_pairs(
            &p,
            &(0..N)
                .map(|n| (Term::small(n), Term::NIL))
                .collect::<Vec<_>>(),
        ));
        let is_keys = |keys: Term<'_>| {
            let mut keys: Vec<_> = keys
                .list_iter()
                .map(|k| k.ok().and_then(Term::as_small))
                .collect();
            keys.sort_unstable();
            keys == (0..N).map(Some).collect::<Vec<_>>()
        };
        let turns = in_small_steps(&mut p, &map, |p, map| keys_1(p, [map]), is_keys);
        assert!(turns > 10, "{turns}");
    }
}
