//! The BIFs on maps.

use smallvec::SmallVec;

use super::{BifResult, GuardResult, Raise, badarg, bifs, tagged};
use crate::heap::keeps;
use crate::process::{Process, work};
use crate::term::tag::map::SMALL_LIMIT;
use crate::term::{Atom, Map, Term, Tuple, am};
use crate::value::map::{self, Changed, Leaf, Leaves, Pair, TrieParts};

mod next;

bifs! {
    all own;
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

fn map_size_1<'p>(_p: &'p Process, [t]: [Term<'p>; 1]) -> GuardResult<'p> {
    Ok(Term::small(of_map(t)?.len() as i64))
}

fn get_2<'p>(_p: &'p Process, [key, t]: [Term<'p>; 2]) -> GuardResult<'p> {
    of_map(t)?.get(key).ok_or_else(|| no_key(key))
}

fn find_2<'p>(p: &'p Process, [key, t]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(match of_map(t)?.get(key) {
        Some(value) => p.tuple(&[am::ok.term(), value]),
        None => am::error.term(),
    })
}

fn is_key_2<'p>(_p: &'p Process, [key, t]: [Term<'p>; 2]) -> GuardResult<'p> {
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

/// A map in the making.
enum Making<'p> {
    Reading {
        parts: TrieParts<'p>,
        /// Pairs read so far.
        count: usize,
        /// What is left of the list.
        rest: Term<'p>,
    },
    Building {
        building: Building<'p>,
    },
}

work! { enum Making { Reading { parts, rest; count } Building { building; } } }

/// Steps for one reduction where a map is made of a list.
const MADE_PER_RED: usize = 40;

/// What is due for a map of `n` elements beside going through them twice. ERTS sorts them by their hashes with
/// pivots it draws by chance, so that no two of its runs count the same: this is the mean of what they count.
fn sorting_steps(n: usize) -> usize {
    const TENTHS_EACH: usize = 95;
    const TENTHS_EACH_DOUBLING: usize = 14;
    let doublings = n.max(1).ilog2() as usize;
    // Between two powers of two, in a straight line.
    let between = ((n - (1 << doublings)) * TENTHS_EACH_DOUBLING) >> doublings;
    let tenths = n * (TENTHS_EACH + TENTHS_EACH_DOUBLING * doublings + between);
    tenths / 10
}

/// The map of the elements of `list`, of which `pair` gives key and value. That of a small map costs no more than
/// the list's elements.
fn from_elements<'p>(
    p: &'p Process,
    list: Term<'p>,
    pair: impl Fn(Term<'p>) -> Option<(Term<'p>, Term<'p>)>,
) -> BifResult<'p> {
    let begun = p.take_work::<Making>().map(|work| *work);
    let is_first_slice = begun.is_none();
    if is_first_slice && list.list_iter().nth(SMALL_LIMIT).is_none() {
        let pairs = list.list_iter().map(|t| t.ok().and_then(&pair));
        let pairs: SmallVec<[_; SMALL_LIMIT]> = pairs.collect::<Option<_>>().ok_or_else(badarg)?;
        return Ok(map::from_pairs(p, &pairs));
    }
    let put_off = |making| {
        if is_first_slice {
            p.trap_state();
        }
        p.yield_with(making)
    };
    let (parts, count, list) = match begun {
        Some(Making::Building { building }) => {
            return building.run(p).map_err(|making| put_off(making).into());
        }
        Some(Making::Reading { parts, count, rest }) => (Some(parts), count, rest),
        None => (None, 0, list),
    };
    let (pairs, rest) = read_pairs(p, list, pair)?;
    let count = count + pairs.len();
    if rest.as_cons().is_some() {
        let mut parts = parts.unwrap_or_default();
        parts.add(pairs);
        return Err(put_off(Making::Reading { parts, count, rest }).into());
    }
    let due = sorting_steps(count);
    if parts.is_none() && due <= p.reds_left() * MADE_PER_RED {
        p.bump_reds((due / MADE_PER_RED) as i64);
        let placed = |(order, [key, value]): Pair<'p>| (order, key, value);
        return Ok(map::from_placed(p, pairs.into_iter().map(placed)));
    }
    let mut parts = parts.unwrap_or_default();
    parts.add(pairs);
    let building = Building {
        parts,
        count,
        made: 0,
        paid: 0,
    };
    building.run(p).map_err(|making| put_off(making).into())
}

/// The pairs of as many elements as the reductions left pay for, each behind the place of its key, and what is left
/// of the list.
fn read_pairs<'p>(
    p: &'p Process,
    list: Term<'p>,
    pair: impl Fn(Term<'p>) -> Option<(Term<'p>, Term<'p>)>,
) -> Result<(Vec<Pair<'p>>, Term<'p>), Raise<'p>> {
    let budget = p.reds_left() * MADE_PER_RED;
    let mut left = budget;
    let mut pairs = Vec::new();
    let mut rest = list;
    while let Some(cell) = rest.as_cons() {
        let (key, value) = pair(cell.head()).ok_or_else(badarg)?;
        if left == 0 {
            return Ok((pairs, rest));
        }
        left = left.saturating_sub(2);
        pairs.push((map::trie_order_of(key), [key, value]));
        rest = cell.tail();
    }
    p.bump_reds(((budget - left) / MADE_PER_RED) as i64);
    match rest.is_nil() {
        true => Ok((pairs, rest)),
        false => Err(badarg()),
    }
}

/// A map whose pairs are all known.
struct Building<'p> {
    parts: TrieParts<'p>,
    /// Pairs in all, and those that parts have been made of.
    count: usize,
    made: usize,
    /// Steps paid for.
    paid: usize,
}

keeps! { struct Building { parts; count, made, paid } }

impl<'p> Building<'p> {
    /// Makes as many parts as the reductions left pay for; what is put off, if not all.
    fn run(mut self, p: &'p Process) -> Result<Term<'p>, Making<'p>> {
        let due = sorting_steps(self.count);
        let payable = p.reds_left() * MADE_PER_RED;
        if due - self.paid > payable {
            self.paid += payable;
            // As large a share of the pairs as is paid for.
            while self.made * due < self.paid * self.count
                && let Some(made) = self.parts.make_next(p)
            {
                self.made += made;
            }
            return Err(Making::Building { building: self });
        }
        while self.parts.make_next(p).is_some() {}
        p.bump_reds(((due - self.paid) / MADE_PER_RED) as i64);
        Ok(map::from_parts(p, &self.parts))
    }
}

/// Keys or values of a trie, as far as they have been listed.
struct Listing<'p> {
    parts: Vec<Term<'p>>,
    left: SmallVec<[u8; 16]>,
}

work! { struct Listing { parts; left } }

fn listed<'p>(p: &'p Process, t: Term<'p>, part: fn(Leaf<'p>) -> Term<'p>) -> BifResult<'p> {
    let map = whole(t)?;
    let (mut leaves, mut parts) = match p.take_work::<Listing>() {
        Some(listing) => (Leaves::resume(map, &listing.left), listing.parts),
        None => (Leaves::of(map), Vec::with_capacity(map.len())),
    };
    let budget = p.reds_left() * LISTED_PER_RED;
    let before = parts.len();
    parts.extend(leaves.by_ref().take(budget).map(part));
    if parts.len() < map.len() {
        if before == 0 {
            p.trap_state();
        }
        let left = leaves.pause();
        return Err(p.yield_with(Listing { parts, left }).into());
    }
    p.bump_reds(((parts.len() - before) / LISTED_PER_RED) as i64);
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
        Changed::NoKey => Err(no_key(key).into()),
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

/// A map of two in the making.
struct Merging<'p> {
    merge: map::Merge<'p>,
    /// Nodes paid for.
    paid: usize,
}

work! { struct Merging { merge; paid } }

fn merge_2<'p>(p: &'p Process, [a, b]: [Term<'p>; 2]) -> BifResult<'p> {
    /// Nodes that one reduction pays for.
    const MERGED_PER_RED: usize = 8;
    let begun = p.take_work::<Merging>();
    let is_first_slice = begun.is_none();
    let mut work = match begun {
        Some(work) => work,
        None => match map::merge(p, whole(a)?, whole(b)?) {
            map::Merging::Done(map) => return Ok(map),
            map::Merging::More(merge) => Box::new(Merging { merge, paid: 0 }),
        },
    };
    let most = work.paid + p.reds_left() * MERGED_PER_RED;
    if let Some(map) = work.merge.run(p, most) {
        p.bump_reds(((work.merge.visited() - work.paid) / MERGED_PER_RED) as i64);
        return Ok(map);
    }
    if is_first_slice {
        p.trap_state();
    }
    work.paid = most;
    Err(p.yield_with(*work).into())
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

    fn merge<'p>(p: &'p Process, maps: Term<'p>) -> BifResult<'p> {
        let maps = maps.as_tuple().expect("both");
        merge_2(p, [maps.get(0), maps.get(1)])
    }

    #[test]
    fn large_maps_are_merged_in_many_slices() {
        const N: i64 = 3000;
        let mut p = Process::new(233);
        let map = |keys: std::ops::Range<i64>, value: Atom| {
            let pairs: Vec<_> = keys.map(|n| (Term::small(n), value.term())).collect();
            map::from_pairs(&p, &pairs)
        };
        let maps = [map(0..2 * N, am::true_), map(N..3 * N, am::false_)];
        let maps = p.root(p.tuple(&maps));
        let is_merged = |map: Term<'_>| {
            let map = map.as_map().expect("a map");
            let value = |n| if n < N { am::true_ } else { am::false_ };
            map.len() == 3 * N as usize
                && (0..3 * N).all(|n| {
                    map.get(Term::small(n))
                        .is_some_and(|found| found == value(n))
                })
        };
        let turns = in_small_steps(&mut p, &maps, merge, is_merged);
        assert!(turns > 50, "{turns}");
    }
}
