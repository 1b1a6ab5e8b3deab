//! The BIFs of `atomics`, and those of `counters` with `write_concurrency`.
//!
//! Source of limits, errors and reported sizes: `erl_bif_atomics.c`, `erl_bif_counters.c`, OTP 29.

use std::sync::atomic::{AtomicI64, Ordering};

use super::{BifResult, Raise, badarg, bifs, system_limit};
use crate::heap::MagicBinary;
use crate::process::order::access::{Access, OrderedGuard, OrderedLock, Part, Shared};
use crate::process::{Control, Process, refs};
use crate::sched;
use crate::sys::memory;
use crate::term::{Term, View, am};
use crate::value::map;

bifs! {
    all shared;
    bif erts_internal:"atomics_new"/2 => atomics_new_2;
    bif atomics:"get"/2 => get_2;
    bif atomics:"put"/3 => put_3;
    bif atomics:"add"/3 => add_3;
    bif atomics:"add_get"/3 => add_get_3;
    bif atomics:"exchange"/3 => exchange_3;
    bif atomics:"compare_exchange"/4 => compare_exchange_4;
    bif atomics:"info"/1 => info_1;
    bif erts_internal:"counters_new"/1 => counters_new_1;
    bif erts_internal:"counters_get"/2 => counters_get_2;
    bif erts_internal:"counters_add"/3 => counters_add_3;
    bif erts_internal:"counters_put"/3 => counters_put_3;
    bif erts_internal:"counters_info"/1 => counters_info_1;
}

/// An array of 64-bit words, read as signed or unsigned.
struct Atomics {
    signed: bool,
    turns: OrderedLock,
    words: Box<[AtomicI64]>,
}

/// An array of counters. Counts from several schedulers go to one word each, as `atomics`.
struct Counters {
    turns: OrderedLock,
    words: Box<[AtomicI64]>,
}

/// Bit of the options of `atomics_new/2`.
const OPT_SIGNED: u64 = 1;
/// Bytes of an `AtomicsRef` before its words, its magic binary included.
const ATOMICS_HEAD_BYTES: u64 = 40;

fn as_i64(term: Term<'_>) -> Option<i64> {
    match term.view() {
        View::Small(value) => Some(value),
        View::Big(big) if big.limbs().len() == 1 => {
            let magnitude = big.limbs()[0];
            if big.is_negative() {
                0i64.checked_sub_unsigned(magnitude)
            } else {
                i64::try_from(magnitude).ok()
            }
        }
        _ => None,
    }
}

/// A number to add: of either 64-bit kind.
fn increment(term: Term<'_>) -> Result<i64, Raise<'static>> {
    as_i64(term)
        .or_else(|| term.as_u64().map(u64::cast_signed))
        .ok_or_else(badarg)
}

/// A number of words; a positive one that is no machine word is beyond a limit.
fn word(term: Term<'_>) -> Result<u64, Raise<'static>> {
    term.as_u64().ok_or_else(|| match term.view() {
        View::Big(big) if !big.is_negative() => system_limit(),
        _ => badarg(),
    })
}

/// `count` zeroed words.
fn zeroed(count: u64, max: u64) -> Result<Box<[AtomicI64]>, Raise<'static>> {
    if count == 0 {
        return Err(badarg());
    }
    if count > max {
        return Err(system_limit());
    }
    memory::check(memory::ATOMICS, count.saturating_mul(8) as usize);
    let zero = |_| AtomicI64::default();
    Ok(memory::kept_for(memory::ATOMICS, || {
        (0..count).map(zero).collect()
    }))
}

fn index(words: &[AtomicI64], ix: Term<'_>) -> Result<usize, Raise<'static>> {
    ix.as_u64()
        .and_then(|ix| ix.checked_sub(1))
        .and_then(|ix| usize::try_from(ix).ok())
        .filter(|&ix| ix < words.len())
        .ok_or_else(badarg)
}

/// The turn of `p` to access the word at `ix` of an array.
fn turn<'t>(
    turns: &'t OrderedLock,
    p: &Process,
    access: Access,
    shared: Shared,
    ix: Term<'_>,
) -> Result<OrderedGuard<'t>, Control<'static>> {
    turns.take(p, access, shared, Part::Place(ix.as_u64().unwrap_or(0)))
}

impl Atomics {
    fn of<'p>(reference: Term<'p>) -> Result<&'p Atomics, Raise<'static>> {
        reference
            .as_ref()
            .and_then(|r| r.magic())
            .and_then(MagicBinary::get)
            .ok_or_else(badarg)
    }

    fn word<'p>(
        reference: Term<'p>,
        ix: Term<'_>,
    ) -> Result<(&'p Atomics, &'p AtomicI64), Raise<'static>> {
        let atomics = Atomics::of(reference)?;
        let ix = index(&atomics.words, ix)?;
        Ok((atomics, &atomics.words[ix]))
    }

    fn value(&self, term: Term<'_>) -> Result<i64, Raise<'static>> {
        if self.signed {
            as_i64(term).ok_or_else(badarg)
        } else {
            term.as_u64().map(u64::cast_signed).ok_or_else(badarg)
        }
    }

    fn build<'p>(&self, p: &'p Process, value: i64) -> Term<'p> {
        if self.signed {
            p.integer(value)
        } else {
            p.unsigned(value.cast_unsigned())
        }
    }
}

fn atomics_new_2<'p>(p: &'p Process, [count, options]: [Term<'p>; 2]) -> BifResult<'p> {
    let count = word(count)?;
    if count == 0 {
        return Err(badarg().into());
    }
    let signed = word(options)? & OPT_SIGNED != 0;
    let words = zeroed(count, u64::MAX / 8)?;
    let atomics = Box::new(Atomics {
        signed,
        turns: OrderedLock::new(),
        words,
    });
    Ok(p.magic_reference(MagicBinary::new(refs::make_ref(), atomics)))
}

fn get_2<'p>(p: &'p Process, [reference, ix]: [Term<'p>; 2]) -> BifResult<'p> {
    let (atomics, word) = Atomics::word(reference, ix)?;
    let _turn = turn(&atomics.turns, p, Access::Read, Shared::Atomics, ix)?;
    Ok(atomics.build(p, word.load(Ordering::SeqCst)))
}

fn put_3<'p>(p: &'p Process, [reference, ix, value]: [Term<'p>; 3]) -> BifResult<'p> {
    let (atomics, word) = Atomics::word(reference, ix)?;
    let value = atomics.value(value)?;
    let _turn = turn(&atomics.turns, p, Access::Write, Shared::Atomics, ix)?;
    word.store(value, Ordering::SeqCst);
    Ok(am::ok.term())
}

fn add_3<'p>(p: &'p Process, [reference, ix, by]: [Term<'p>; 3]) -> BifResult<'p> {
    let (atomics, word) = Atomics::word(reference, ix)?;
    let by = increment(by)?;
    let _turn = turn(&atomics.turns, p, Access::Write, Shared::Atomics, ix)?;
    word.fetch_add(by, Ordering::SeqCst);
    Ok(am::ok.term())
}

fn add_get_3<'p>(p: &'p Process, [reference, ix, by]: [Term<'p>; 3]) -> BifResult<'p> {
    let (atomics, word) = Atomics::word(reference, ix)?;
    let by = increment(by)?;
    let _turn = turn(&atomics.turns, p, Access::Write, Shared::Atomics, ix)?;
    let was = word.fetch_add(by, Ordering::SeqCst);
    Ok(atomics.build(p, was.wrapping_add(by)))
}

fn exchange_3<'p>(p: &'p Process, [reference, ix, value]: [Term<'p>; 3]) -> BifResult<'p> {
    let (atomics, word) = Atomics::word(reference, ix)?;
    let value = atomics.value(value)?;
    let _turn = turn(&atomics.turns, p, Access::Write, Shared::Atomics, ix)?;
    let was = word.swap(value, Ordering::SeqCst);
    Ok(atomics.build(p, was))
}

fn compare_exchange_4<'p>(
    p: &'p Process,
    [reference, ix, expected, desired]: [Term<'p>; 4],
) -> BifResult<'p> {
    let (atomics, word) = Atomics::word(reference, ix)?;
    let (expected, desired) = (atomics.value(expected)?, atomics.value(desired)?);
    let _turn = turn(&atomics.turns, p, Access::Write, Shared::Atomics, ix)?;
    match word.compare_exchange(expected, desired, Ordering::SeqCst, Ordering::SeqCst) {
        Ok(_) => Ok(am::ok.term()),
        Err(actual) => Ok(atomics.build(p, actual)),
    }
}

fn info_1<'p>(p: &'p Process, [reference]: [Term<'p>; 1]) -> BifResult<'p> {
    let atomics = Atomics::of(reference)?;
    let (min, max) = if atomics.signed {
        (p.integer(i64::MIN), p.integer(i64::MAX))
    } else {
        (Term::small(0), p.unsigned(u64::MAX))
    };
    let size = atomics.words.len() as u64;
    Ok(map::from_pairs(
        p,
        &[
            (am::max.term(), max),
            (am::min.term(), min),
            (am::size.term(), p.unsigned(size)),
            (am::memory.term(), p.unsigned(ATOMICS_HEAD_BYTES + size * 8)),
        ],
    ))
}

impl Counters {
    fn of<'p>(reference: Term<'p>) -> Result<&'p Counters, Raise<'static>> {
        reference
            .as_ref()
            .and_then(|r| r.magic())
            .and_then(MagicBinary::get)
            .ok_or_else(badarg)
    }

    fn word<'p>(
        reference: Term<'p>,
        ix: Term<'_>,
    ) -> Result<(&'p Counters, &'p AtomicI64), Raise<'static>> {
        let counters = Counters::of(reference)?;
        let ix = index(&counters.words, ix)?;
        Ok((counters, &counters.words[ix]))
    }
}

fn counters_new_1<'p>(p: &'p Process, [count]: [Term<'p>; 1]) -> BifResult<'p> {
    let counters = Counters {
        turns: OrderedLock::new(),
        words: zeroed(word(count)?, u64::MAX / 64)?,
    };
    Ok(p.magic_reference(MagicBinary::new(refs::make_ref(), Box::new(counters))))
}

fn counters_get_2<'p>(p: &'p Process, [reference, ix]: [Term<'p>; 2]) -> BifResult<'p> {
    let (counters, word) = Counters::word(reference, ix)?;
    let _turn = turn(&counters.turns, p, Access::Read, Shared::Counters, ix)?;
    Ok(p.integer(word.load(Ordering::Relaxed)))
}

fn counters_add_3<'p>(p: &'p Process, [reference, ix, by]: [Term<'p>; 3]) -> BifResult<'p> {
    let (counters, word) = Counters::word(reference, ix)?;
    let by = increment(by)?;
    let _turn = turn(&counters.turns, p, Access::Write, Shared::Counters, ix)?;
    word.fetch_add(by, Ordering::Relaxed);
    Ok(am::ok.term())
}

fn counters_put_3<'p>(p: &'p Process, [reference, ix, value]: [Term<'p>; 3]) -> BifResult<'p> {
    let (counters, word) = Counters::word(reference, ix)?;
    let value = as_i64(value).ok_or_else(badarg)?;
    let _turn = turn(&counters.turns, p, Access::Write, Shared::Counters, ix)?;
    word.store(value, Ordering::Relaxed);
    Ok(am::ok.term())
}

fn counters_info_1<'p>(p: &'p Process, [reference]: [Term<'p>; 1]) -> BifResult<'p> {
    let counters = Counters::of(reference)?;
    let size = counters.words.len() as u64;
    // As ERTS counts: eight counters share a line of the cache, of which each scheduler has one, and others one more.
    let lines = size.div_ceil(8) * (sched::schedulers() as u64 + 1);
    Ok(map::from_pairs(
        p,
        &[
            (am::size.term(), p.unsigned(size)),
            (am::memory.term(), p.unsigned(32 + lines * 64)),
        ],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_around_and_keep_their_kind() {
        let p = Process::new(233);
        for (signed, top) in [(1, p.integer(i64::MAX)), (0, p.unsigned(u64::MAX))] {
            let array = atomics_new_2(&p, [Term::small(2), Term::small(signed)])
                .unwrap_or_else(|_| panic!("an array of two"));
            let one = Term::small(1);
            assert!(put_3(&p, [array, Term::small(2), top]).is_ok());
            let Ok(sum) = add_get_3(&p, [array, Term::small(2), one]) else {
                panic!("the index is right")
            };
            assert_eq!(as_i64(sum), Some(if signed == 1 { i64::MIN } else { 0 }));
            assert!(get_2(&p, [array, Term::small(3)]).is_err());
            assert!(get_2(&p, [array, Term::small(0)]).is_err());
        }
    }

    #[test]
    fn a_compare_exchange_that_fails_tells_the_value() {
        let p = Process::new(233);
        let Ok(array) = atomics_new_2(&p, [Term::small(1), Term::small(1)]) else {
            panic!("an array of one")
        };
        let n = Term::small;
        let Ok(done) = compare_exchange_4(&p, [array, n(1), n(0), n(7)]) else {
            panic!("the index is right")
        };
        assert!(done == am::ok);
        let Ok(found) = compare_exchange_4(&p, [array, n(1), n(0), n(8)]) else {
            panic!("the index is right")
        };
        assert_eq!(found.as_small(), Some(7));
        assert!(Counters::of(array).is_err(), "an array is no counter");
    }
}
