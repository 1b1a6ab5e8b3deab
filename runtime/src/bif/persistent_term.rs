//! The BIFs of `persistent_term`, whose values are read far more often than written.
//!
//! The table of literals `{Key, Value}` uses open addressing. Readers take no lock: a slot is one word, and a table
//! that has become too small stays as it is while its successor is filled. Writers take turns. Each pair is a literal in
//! an area of its own. A value that is replaced or erased stays good for the processes that have read it, and they get a
//! copy before it is freed (`heap::release`).

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use super::{BifResult, badarg, bifs};
use crate::heap::{self, Counted, Heap, LiteralSlot, LoneLiteral};
use crate::process::order::access::{Access, OrderedGuard, OrderedLock, Part, Shared};
use crate::process::{Control, Process};
use crate::sys::static_cell::StaticCell;
use crate::term::compare::eq_exact;
use crate::term::hash::internal_hash;
use crate::term::{Term, Tuple, am};
use crate::value::map;

bifs! {
    all shared;
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
const INITIAL_SLOTS: usize = 8;

/// A slot holds nothing, a pair, or (where a pair was erased) the empty list.
struct Table {
    slots: Box<[LiteralSlot]>,
}

/// The data that only writers use, beside the table.
#[derive(Default)]
struct Used {
    /// Slots that hold a pair.
    pairs: usize,
    /// Slots that hold a pair or the mark of an erased one.
    taken: usize,
}

static TERMS: StaticCell<Table> = StaticCell::empty();
static USED: Mutex<Option<Used>> = Mutex::new(None);

/// Readers take no lock; in the order of accesses they have turns.
static TURNS: OrderedLock = OrderedLock::new();

/// The turn of `p` to access these terms.
fn turn(
    p: &Process,
    access: Access,
    part: Part<'_>,
) -> Result<OrderedGuard<'static>, Control<'static>> {
    TURNS.take(p, access, Shared::PersistentTerms, part)
}

/// The writers' lock.
fn write() -> MappedMutexGuard<'static, Used> {
    MutexGuard::map(USED.lock(), |used| used.get_or_insert_default())
}

/// Tables that nobody reads any more.
static SPARE: Mutex<Vec<&'static Table>> = Mutex::new(Vec::new());

impl Table {
    /// An empty table.
    fn with(slots: usize) -> &'static Table {
        let mut spare = SPARE.lock();
        let fits = spare.iter().position(|table| table.slots.len() == slots);
        match fits {
            Some(at) => spare.swap_remove(at),
            None => Table::leak(slots),
        }
    }

    /// It is current no more, and may be used again when nobody can be reading it.
    fn retire(&'static self) {
        crate::sched::thread_progress().later(move || {
            self.slots.iter().for_each(|slot| slot.set(None));
            SPARE.lock().push(self);
        });
    }

    fn leak(slots: usize) -> &'static Table {
        let mut cells = Vec::new();
        cells.resize_with(slots, LiteralSlot::default);
        let slots = cells.into_boxed_slice();
        Box::leak(Box::new(Table { slots }))
    }

    /// The slot that holds `key`, or else the one where it would go.
    fn find<'h>(
        &self,
        key: Term<'_>,
        heap: &'h Heap,
    ) -> Result<(&LiteralSlot, Tuple<'h>), &LiteralSlot> {
        let mask = self.slots.len() - 1;
        let mut at = internal_hash(key) as usize & mask;
        let mut free = None;
        loop {
            let slot = &self.slots[at];
            match slot.get(heap) {
                None => return Err(free.unwrap_or(slot)),
                Some(pair) => match pair.as_tuple() {
                    Some(pair) if eq_exact(pair.get(0), key) => return Ok((slot, pair)),
                    Some(_) => {}
                    None => {
                        free.get_or_insert(slot);
                    }
                },
            }
            at = (at + 1) & mask;
        }
    }

    fn pairs<'h>(&self, heap: &'h Heap) -> impl Iterator<Item = (&LiteralSlot, Tuple<'h>)> {
        let pair = |slot: &LiteralSlot| slot.get(heap).and_then(Term::as_tuple);
        let slots = self.slots.iter();
        slots.filter_map(move |slot| pair(slot).map(|pair| (slot, pair)))
    }
}

fn value_of<'p>(p: &'p Process, key: Term<'_>) -> Option<Term<'p>> {
    let (_, pair) = TERMS.get()?.find(key, p).ok()?;
    Some(pair.get(1))
}

/// Is there a term of this key, and is it `true`?
pub(super) fn is_true(p: &Process, key: Term<'_>) -> bool {
    value_of(p, key).is_some_and(|value| value.as_bool() == Some(true))
}

/// Shows what the literals hold counts of, those that wait for their release included.
pub(super) fn each_counted(show: &mut dyn FnMut(Counted<'_>)) {
    let slots = TERMS.get().into_iter().flat_map(|table| &table.slots);
    for literal in slots.filter_map(LiteralSlot::held) {
        literal.counted().for_each(&mut *show);
    }
    heap::release::each_counted(show);
}

/// How many slots there are.
pub(super) fn slots() -> usize {
    TERMS.get().map_or(0, |table| table.slots.len())
}

/// The table with room for one pair more, under the writers' lock.
fn table_to_write(used: &mut Used, heap: &Heap) -> &'static Table {
    let Some(table) = TERMS.get() else {
        let table = Table::leak(INITIAL_SLOTS);
        TERMS.set(table);
        return table;
    };
    // Not more than half full, as in ERTS, and a free slot for every search to end at.
    let (live, slots) = (used.pairs, table.slots.len());
    if (live + 1) * 2 <= slots && (used.taken + 1) * 4 <= slots * 3 {
        return table;
    }
    rebuild(used, table, heap)
}

/// Has a table of the size that fits take the place of `table`.
fn rebuild(used: &mut Used, table: &'static Table, heap: &Heap) -> &'static Table {
    let slots = (used.pairs * 2 + 2).next_power_of_two().max(INITIAL_SLOTS);
    let next = Table::with(slots);
    for (slot, pair) in table.pairs(heap) {
        let free = next.find(pair.get(0), heap).err();
        free.expect("keys differ").set(slot.held());
    }
    used.taken = used.pairs;
    TERMS.set(next);
    table.retire();
    next
}

fn store<'p>(p: &'p Process, key: Term<'p>, value: Term<'p>, replace: bool) -> BifResult<'p> {
    let _turn = turn(p, Access::Write, Part::Key(key))?;
    let mut used = write();
    let table = table_to_write(&mut used, p);
    let slot = match table.find(key, p) {
        Ok((slot, pair)) => {
            if eq_exact(pair.get(1), value) {
                return Ok(am::ok.term());
            }
            if !replace {
                return Err(badarg().into());
            }
            slot
        }
        Err(slot) => {
            used.taken += usize::from(slot.get(p).is_none());
            used.pairs += 1;
            slot
        }
    };
    slot.set(Some(LoneLiteral::new(p.tuple(&[key, value]))));
    Ok(am::ok.term())
}

fn put_2<'p>(p: &'p Process, [key, value]: [Term<'p>; 2]) -> BifResult<'p> {
    store(p, key, value, true)
}

fn put_new_2<'p>(p: &'p Process, [key, value]: [Term<'p>; 2]) -> BifResult<'p> {
    store(p, key, value, false)
}

fn get_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let _turn = turn(p, Access::Read, Part::All)?;
    let pairs = TERMS.get().into_iter().flat_map(|table| table.pairs(p));
    Ok(pairs.fold(Term::NIL, |rest, (_, pair)| p.cons(pair.term(), rest)))
}

fn get_1<'p>(p: &'p Process, [key]: [Term<'p>; 1]) -> BifResult<'p> {
    let _turn = turn(p, Access::Read, Part::Key(key))?;
    Ok(value_of(p, key).ok_or_else(badarg)?)
}

fn get_2<'p>(p: &'p Process, [key, default]: [Term<'p>; 2]) -> BifResult<'p> {
    let _turn = turn(p, Access::Read, Part::Key(key))?;
    Ok(value_of(p, key).unwrap_or(default))
}

fn erase_1<'p>(p: &'p Process, [key]: [Term<'p>; 1]) -> BifResult<'p> {
    let _turn = turn(p, Access::Write, Part::Key(key))?;
    let mut used = write();
    let Some(table) = TERMS.get() else {
        return Ok(Term::bool(false));
    };
    let Ok((slot, _)) = table.find(key, p) else {
        return Ok(Term::bool(false));
    };
    slot.set(Some(LoneLiteral::new(Term::NIL)));
    used.pairs -= 1;
    if table.slots.len() > INITIAL_SLOTS && used.pairs * 4 < table.slots.len() {
        rebuild(&mut used, table, p);
    }
    Ok(Term::bool(true))
}

fn info_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let _turn = turn(p, Access::Read, Part::All)?;
    let (mut count, mut bytes) = (0u64, slots() * 8);
    for (slot, _) in TERMS.get().into_iter().flat_map(|table| table.pairs(p)) {
        count += 1;
        bytes += slot.held().map_or(0, |pair| pair.words()) * 8;
    }
    Ok(map::from_pairs(
        p,
        &[
            (am::count.term(), p.unsigned(count)),
            (am::memory.term(), p.unsigned(bytes as u64)),
        ],
    ))
}

fn erase_persistent_terms_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let _turn = turn(p, Access::Write, Part::All)?;
    let mut used = write();
    let old = TERMS.get();
    TERMS.set(Table::with(INITIAL_SLOTS));
    if let Some(table) = old {
        table.slots.iter().for_each(|slot| slot.set(None));
        table.retire();
    }
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
        ok(put_2(&p, [p.float(7.5), am::ok.term()]));
        ok(put_2(&p, [p.float(8.0), am::error.term()]));
        assert!(ok(get_2(&p, [Term::small(8), am::none.term()])) == am::none);
        assert!(ok(get_2(&p, [p.float(8.0), am::none.term()])) == am::error);
    }
}
