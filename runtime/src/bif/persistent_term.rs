//! `persistent_term`: values that are read far more often than written.
//!
//! A table of literals `{Key, Value}` with open addressing. Readers take no lock: a slot is one word,
//! and a table that has become too small stays as it is while its successor is filled. Writers take
//! turns. Literals are never freed, so a value stays good in the hands of whoever read it.

use parking_lot::{Mutex, MutexGuard};

use super::{BifResult, badarg, bifs};
use crate::heap::{Literal, LiteralCell, Literals, size};
use crate::process::Process;
use crate::sys::static_cell::StaticCell;
use crate::term::compare::eq_exact;
use crate::term::hash::internal_hash;
use crate::term::{Term, am, map};

bifs! {
    bif persistent_term:"put"/2 => put_2;
    bif persistent_term:"put_new"/2 => put_new_2;
    bif persistent_term:"get"/0 => get_0;
    bif persistent_term:"get"/1 => get_1;
    bif persistent_term:"get"/2 => get_2;
    bif persistent_term:"erase"/1 => erase_1;
    bif persistent_term:"info"/0 => info_0;
    bif erts_internal:"erase_persistent_terms"/0 => erase_persistent_terms_0;
}

/// Slots a table has at first; always a power of two.
const INITIAL_SLOTS: usize = 1024;

/// A slot holds nothing, a pair, or (where a pair was erased) the empty list.
struct Table {
    slots: Box<[LiteralCell]>,
}

/// What writers know beside the table.
#[derive(Default)]
struct Used {
    /// Pairs.
    live: usize,
    /// Slots that hold a pair or the mark of an erased one.
    taken: usize,
}

static TERMS: StaticCell<Table> = StaticCell::empty();
static USED: Mutex<Used> = Mutex::new(Used { live: 0, taken: 0 });

impl Table {
    fn leak(slots: usize) -> &'static Table {
        let mut cells = Vec::new();
        cells.resize_with(slots, LiteralCell::default);
        let slots = cells.into_boxed_slice();
        Box::leak(Box::new(Table { slots }))
    }

    /// The slot that holds `key`, or else the one where it would go.
    fn find(&self, key: Term<'_>) -> Result<(&LiteralCell, Literal), &LiteralCell> {
        let mask = self.slots.len() - 1;
        let mut at = internal_hash(key) as usize & mask;
        let mut free = None;
        loop {
            let slot = &self.slots[at];
            match slot.get() {
                None => return Err(free.unwrap_or(slot)),
                Some(pair) => match pair.term().as_tuple() {
                    Some(tuple) if eq_exact(tuple.get(0), key) => return Ok((slot, pair)),
                    Some(_) => {}
                    None => {
                        free.get_or_insert(slot);
                    }
                },
            }
            at = (at + 1) & mask;
        }
    }

    fn pairs(&self) -> impl Iterator<Item = Term<'static>> {
        self.slots
            .iter()
            .filter_map(|slot| slot.get().map(Literal::term))
            .filter(|pair| !pair.is_nil())
    }
}

fn value_of(key: Term<'_>) -> Option<Term<'static>> {
    let (_, pair) = TERMS.get()?.find(key).ok()?;
    pair.term().as_tuple().map(|pair| pair.get(1))
}

/// The table with room for one pair more, under the writers' lock.
fn table_to_write(used: &mut MutexGuard<'_, Used>) -> &'static Table {
    let Some(table) = TERMS.get() else {
        let table = Table::leak(INITIAL_SLOTS);
        TERMS.set(table);
        return table;
    };
    if (used.taken + 1) * 4 <= table.slots.len() * 3 {
        return table;
    }
    let slots = (used.live * 2 + 2)
        .next_power_of_two()
        .max(table.slots.len());
    let next = Table::leak(slots);
    for pair in table.pairs() {
        let key = pair.as_tuple().map(|pair| pair.get(0));
        let free = key.and_then(|key| next.find(key).err());
        free.expect("keys differ").set(Some(Literal::new(pair)));
    }
    used.taken = used.live;
    TERMS.set(next);
    next
}

fn store<'p>(p: &'p Process, key: Term<'p>, value: Term<'p>, replace: bool) -> BifResult<'p> {
    let mut used = USED.lock();
    let table = table_to_write(&mut used);
    let slot = match table.find(key) {
        Ok((slot, pair)) => {
            let old = pair.term().as_tuple().map(|pair| pair.get(1));
            if old.is_some_and(|old| eq_exact(old, value)) {
                return Ok(am::ok.term());
            }
            if !replace {
                return Err(badarg());
            }
            slot
        }
        Err(slot) => {
            used.live += 1;
            used.taken += usize::from(slot.get().is_none());
            slot
        }
    };
    slot.set(Some(Literal::new(p.tuple(&[key, value]))));
    Ok(am::ok.term())
}

fn put_2<'p>(p: &'p Process, [key, value]: [Term<'p>; 2]) -> BifResult<'p> {
    store(p, key, value, true)
}

fn put_new_2<'p>(p: &'p Process, [key, value]: [Term<'p>; 2]) -> BifResult<'p> {
    store(p, key, value, false)
}

fn get_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let pairs = TERMS.get().into_iter().flat_map(Table::pairs);
    Ok(pairs.fold(Term::NIL, |rest, pair| p.cons(pair, rest)))
}

fn get_1<'p>(_p: &'p Process, [key]: [Term<'p>; 1]) -> BifResult<'p> {
    value_of(key).ok_or_else(badarg)
}

fn get_2<'p>(_p: &'p Process, [key, default]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(value_of(key).unwrap_or(default))
}

fn erase_1<'p>(_p: &'p Process, [key]: [Term<'p>; 1]) -> BifResult<'p> {
    let mut used = USED.lock();
    let found = TERMS.get().and_then(|table| table.find(key).ok());
    if let Some((slot, _)) = found {
        slot.set(Some(Literal::new(Term::NIL)));
        used.live -= 1;
    }
    Ok(Term::bool(found.is_some()))
}

fn info_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let (mut count, mut bytes) = (0u64, 0);
    if let Some(table) = TERMS.get() {
        bytes += table.slots.len() * 8;
        for pair in table.pairs() {
            count += 1;
            bytes += size(pair, Literals::Count) * 8;
        }
    }
    Ok(map::from_pairs(
        p,
        &[
            (am::count.term(), p.unsigned(count)),
            (am::memory.term(), p.unsigned(bytes as u64)),
        ],
    ))
}

fn erase_persistent_terms_0<'p>(_p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let mut used = USED.lock();
    TERMS.set(Table::leak(INITIAL_SLOTS));
    *used = Used::default();
    Ok(am::ok.term())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok<'p>(result: BifResult<'p>) -> Term<'p> {
        result.unwrap_or_else(|_| panic!("the arguments are right"))
    }

    #[test]
    fn many_keys_come_and_go() {
        let p = Process::new(233);
        let key = |i| p.tuple(&[am::count.term(), Term::small(i)]);
        for round in 0..3 {
            for i in 0..2000 {
                ok(put_2(&p, [key(i), Term::small(i + round)]));
            }
            for i in 0..2000 {
                let value = ok(get_1(&p, [key(i)]));
                assert_eq!(value.as_small(), Some(i + round));
            }
            assert!(put_new_2(&p, [key(1), Term::NIL]).is_err());
            assert!(put_new_2(&p, [key(1), Term::small(1 + round)]).is_ok());
            for i in 0..2000 {
                assert!(ok(erase_1(&p, [key(i)])) == am::true_);
                assert!(ok(erase_1(&p, [key(i)])) == am::false_);
                assert!(get_1(&p, [key(i)]).is_err());
            }
        }
    }

    #[test]
    fn integers_are_not_floats() {
        let p = Process::new(233);
        ok(put_2(&p, [p.float(7.5), am::a.term()]));
        ok(put_2(&p, [p.float(8.0), am::b.term()]));
        assert!(ok(get_2(&p, [Term::small(8), am::none.term()])) == am::none);
        assert!(ok(get_2(&p, [p.float(8.0), am::none.term()])) == am::b);
    }
}
