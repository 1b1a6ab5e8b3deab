//! Maps, and iterators over them.

use std::ffi::{c_int, c_uint};
use std::ptr;

use smallvec::SmallVec;

use super::{Env, api, env, term};
use crate::term::tag::map::SMALL_LIMIT;
use crate::term::{Map, RawTerm, Term};
use crate::value::map::{self, Changed};

/// `ErlNifMapIterator`. An iterator stands on a pair, before the first one or behind the last one.
#[repr(C)]
pub(super) struct Iterator {
    map: RawTerm,
    /// Pairs.
    size: u64,
    /// Where it stands: 0 before the first pair, `size + 1` behind the last one.
    index: u64,
    /// The pairs of a large map, in order; null for a flat one.
    pairs: *mut Pairs,
    unused: [*mut (); 3],
}

type Pairs = Vec<[RawTerm; 2]>;

fn pairs(map: Map<'_>) -> *mut Pairs {
    if map.flat().is_some() {
        return ptr::null_mut();
    }
    let pairs = map.iter().map(|(key, value)| [key.raw(), value.raw()]);
    Box::into_raw(Box::new(pairs.collect()))
}

impl Iterator {
    /// # Safety
    /// NF1: it has been created and not destroyed.
    unsafe fn pair(&self) -> Option<[RawTerm; 2]> {
        let at = usize::try_from(self.index).ok()?.checked_sub(1)?;
        // SAFETY: by contract; N1: the map lives.
        let (pairs, map) = unsafe { (self.pairs.as_ref(), term(self.map).as_map()?) };
        if let Some(pairs) = pairs {
            return pairs.get(at).copied();
        }
        let (keys, values) = map.flat()?;
        let key = keys.elements().get(at)?;
        Some([key.raw(), values.get(at)?.raw()])
    }
}

/// Writes the map that a change gives; whether there is one.
///
/// # Safety
/// NF1.
unsafe fn give(out: *mut RawTerm, map: Option<Term<'_>>) -> c_int {
    let Some(map) = map else { return 0 };
    // SAFETY: by contract.
    unsafe { out.write(map.raw()) };
    1
}

api! {
    /// Pairs of a map.
    fn enif_get_map_size(_e: *mut Env, t: RawTerm, size: *mut usize) -> c_int {
        let Some(map) = term(t).as_map() else { return 0 };
        size.write(map.len());
        1
    }
    /// The value of a key.
    fn enif_get_map_value(_e: *mut Env, t: RawTerm, key: RawTerm, value: *mut RawTerm) -> c_int {
        let found = term(t).as_map().and_then(|map| map.get(term(key)));
        give(value, found)
    }
    /// The empty map.
    fn enif_make_new_map(e: *mut Env) -> RawTerm { map::from_pairs(env(e).heap(), &[]).raw() }
    /// A map with another pair, or another value.
    fn enif_make_map_put(e: *mut Env, t: RawTerm, key: RawTerm, value: RawTerm, out: *mut RawTerm) -> c_int {
        let heap = env(e).heap();
        give(out, term(t).as_map().map(|map| map::put(heap, map, term(key), term(value))))
    }
    /// A map with another value of a key that it has.
    fn enif_make_map_update(e: *mut Env, t: RawTerm, key: RawTerm, value: RawTerm, out: *mut RawTerm) -> c_int {
        let Some(map) = term(t).as_map() else { return 0 };
        match map::update(env(e).heap(), map, term(key), term(value)) {
            Changed::To(map) => give(out, Some(map)),
            Changed::NoKey => 0,
        }
    }
    /// A map without a key, if it has that.
    fn enif_make_map_remove(e: *mut Env, t: RawTerm, key: RawTerm, out: *mut RawTerm) -> c_int {
        let Some(map) = term(t).as_map() else { return 0 };
        let rest = map::take(env(e).heap(), map, term(key)).map(|(rest, _)| rest);
        give(out, Some(rest.unwrap_or(map.term())))
    }
    /// A map of these keys and values; not if a key is there twice.
    fn enif_make_map_from_arrays(
        e: *mut Env, keys: *const RawTerm, values: *const RawTerm, count: usize, out: *mut RawTerm,
    ) -> c_int {
        let pair = |i| (term(*keys.add(i)), term(*values.add(i)));
        let pairs: SmallVec<[_; SMALL_LIMIT]> = (0..count).map(pair).collect();
        let map = map::from_pairs(env(e).heap(), &pairs);
        give(out, Some(map).filter(|map| map.as_map().is_some_and(|map| map.len() == count)))
    }

    /// An iterator at the first (1) or the last (2) pair.
    fn enif_map_iterator_create(_e: *mut Env, t: RawTerm, iterator: *mut Iterator, entry: c_uint) -> c_int {
        let Some(map) = term(t).as_map() else { return 0 };
        let size = map.len() as u64;
        let index = match entry {
            1 => 1,
            2 => size,
            _ => return 0,
        };
        iterator.write(Iterator {
            map: t,
            size,
            index,
            pairs: pairs(map),
            unused: [ptr::null_mut(); 3],
        });
        1
    }
    /// Its end.
    fn enif_map_iterator_destroy(_e: *mut Env, iterator: *mut Iterator) {
        let pairs = ptr::replace(&raw mut (*iterator).pairs, ptr::null_mut());
        if !pairs.is_null() {
            drop(Box::from_raw(pairs));
        }
    }
    /// Does it stand before the first pair?
    fn enif_map_iterator_is_head(_e: *mut Env, iterator: *mut Iterator) -> c_int {
        c_int::from((*iterator).index == 0 || (*iterator).size == 0)
    }
    /// Does it stand behind the last pair?
    fn enif_map_iterator_is_tail(_e: *mut Env, iterator: *mut Iterator) -> c_int {
        c_int::from((*iterator).index > (*iterator).size || (*iterator).size == 0)
    }
    /// Goes to the next pair; whether there is one.
    fn enif_map_iterator_next(_e: *mut Env, iterator: *mut Iterator) -> c_int {
        let it = &mut *iterator;
        it.index = (it.index + 1).min(it.size + 1);
        c_int::from(it.index <= it.size)
    }
    /// Goes to the pair before; whether there is one.
    fn enif_map_iterator_prev(_e: *mut Env, iterator: *mut Iterator) -> c_int {
        let it = &mut *iterator;
        it.index = it.index.saturating_sub(1);
        c_int::from(it.index > 0)
    }
    /// The pair that it stands on.
    fn enif_map_iterator_get_pair(
        _e: *mut Env, iterator: *mut Iterator, key: *mut RawTerm, value: *mut RawTerm,
    ) -> c_int {
        let Some([k, v]) = (*iterator).pair() else { return 0 };
        key.write(k);
        value.write(v);
        1
    }
}
