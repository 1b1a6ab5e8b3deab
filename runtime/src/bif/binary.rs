//! The BIFs on binaries and bitstrings: conversion from and to lists, parts, sizes. `binary_search` searches in
//! binaries, and `checksum` has the checksums.

use super::{BifResult, GuardResult, Raise, badarg, bifs, system_limit};
use crate::num::limbs::{Endian, Int, IntRef};
use crate::process::{CONTEXT_REDS, Due, PauseWords, Process, work};
use crate::sys::memory;
use crate::term::{Bits, Term, View, am};
use crate::value::iolist::{self, Joined, NotIolist, Part, Visited, Walk, Walked};
use crate::value::number;

bifs! {
    all own;
    bif erlang:"binary_to_list"/1 => binary_to_list_1;
    bif erlang:"binary_to_list"/3 => binary_to_list_3;
    bif erlang:"bitstring_to_list"/1 => bitstring_to_list_1;
    bif erlang:"list_to_binary"/1 => list_to_binary_1;
    bif erlang:"list_to_bitstring"/1 => list_to_bitstring_1;
    bif erlang:"iolist_to_binary"/1 => iolist_to_binary_1;
    bif erlang:"iolist_size"/1 => iolist_size_1;
    bif erlang:"iolist_to_iovec"/1 => iolist_to_iovec_1;
    bif erlang:"split_binary"/2 => split_binary_2;
    ubif erlang:"byte_size"/1 => byte_size_1;
    ubif erlang:"bit_size"/1 => bit_size_1;
    ubif erlang:"binary_part"/2 => part_2;
    ubif erlang:"binary_part"/3 => part_3;
    bif binary:"part"/2 => part_2;
    bif binary:"part"/3 => part_3;
    bif binary:"first"/1 => first_1;
    bif binary:"last"/1 => last_1;
    bif binary:"at"/2 => at_2;
    bif binary:"list_to_bin"/1 => list_to_binary_1;
    bif binary:"copy"/1 => copy_1;
    bif binary:"copy"/2 => copy_2;
    bif binary:"referenced_byte_size"/1 => referenced_byte_size_1;
    bif binary:"encode_unsigned"/1 => encode_unsigned_1;
    bif binary:"encode_unsigned"/2 => encode_unsigned_2;
    bif binary:"decode_unsigned"/1 => decode_unsigned_1;
    bif binary:"decode_unsigned"/2 => decode_unsigned_2;
    bif binary:"longest_common_prefix"/1 => longest_common_prefix_1;
    bif binary:"longest_common_suffix"/1 => longest_common_suffix_1;
}

impl From<NotIolist> for Raise<'static> {
    fn from(_: NotIolist) -> Self {
        badarg()
    }
}

fn bits(term: Term<'_>) -> Result<Bits<'_>, Raise<'static>> {
    term.as_bits().ok_or_else(badarg)
}

pub(super) fn binary(term: Term<'_>) -> Result<Bits<'_>, Raise<'static>> {
    term.as_binary().ok_or_else(badarg)
}

/// A small integer that is not negative, or a big one, which is larger than any size.
fn size_argument(term: Term<'_>) -> Result<usize, Raise<'static>> {
    term.as_index().ok_or_else(badarg)
}

/// A number of the size of a word.
fn word_argument(term: Term<'_>) -> Result<usize, Raise<'static>> {
    let word = term.as_u64().ok_or_else(badarg)?;
    Ok(word as usize)
}

/// A list in the making, from its end.
struct Listing<'p> {
    /// What is made of it.
    list: Term<'p>,
    /// Bytes that are still to be put before it.
    left: usize,
}

work! { struct Listing { list; left } shown as |_| Some((am::binary_to_list_continue, 1)) }

/// The whole bytes of `bits` as a list that ends in `tail()`; `cells` are those of the whole list. Source:
/// `binary_to_list()` in `binary.c`.
fn listed<'p>(
    p: &'p Process,
    bits: Bits<'p>,
    cells: usize,
    tail: impl FnOnce() -> Term<'p>,
) -> BifResult<'p> {
    const BYTES_PER_RED: usize = 256;
    const FEW_REDS: usize = CONTEXT_REDS as usize / 40;
    const ENOUGH_REDS: usize = CONTEXT_REDS as usize / 4;
    let reds = p.reds_left();
    let (mut list, left, most) = match p.take_work::<Listing>() {
        Some(listing) => (listing.list, listing.left, (reds + 1) * BYTES_PER_RED),
        None => {
            let most = if cells < reds * BYTES_PER_RED {
                usize::MAX
            } else if cells >= ENOUGH_REDS * BYTES_PER_RED {
                (reds + 1) * BYTES_PER_RED
            } else if reds <= FEW_REDS {
                return Err(p.try_again().into());
            } else {
                usize::MAX
            };
            if most < bits.byte_len() {
                p.trap_state();
            }
            (tail(), bits.byte_len(), most)
        }
    };
    let now = left.min(most);
    let part = bits.skip((left - now) * 8).first(now * 8);
    list = p.byte_list_with_tail(&part.bytes(), list);
    p.bump_reds(now.div_ceil(BYTES_PER_RED) as i64);
    if now == left {
        return Ok(list);
    }
    let left = left - now;
    Err(p.yield_with(Listing { list, left }).into())
}

fn binary_to_list_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let bits = binary(a)?;
    if bits.bit_len() == 0 {
        return Ok(Term::NIL);
    }
    listed(p, bits, bits.byte_len(), || Term::NIL)
}

fn binary_to_list_3<'p>(p: &'p Process, [a, start, stop]: [Term<'p>; 3]) -> BifResult<'p> {
    let bits = binary(a)?;
    let (start, stop) = (size_argument(start)?, size_argument(stop)?);
    if start < 1 || stop < start || stop > bits.byte_len() {
        return Err(badarg().into());
    }
    let part = bits.first(stop * 8).skip((start - 1) * 8);
    listed(p, part, part.byte_len(), || Term::NIL)
}

fn bitstring_to_list_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let bits = bits(a)?;
    if bits.bit_len() == 0 {
        return Ok(Term::NIL);
    }
    let whole = bits.first(bits.byte_len() * 8);
    let rest = bits.skip(whole.bit_len());
    listed(p, whole, bits.bit_len().div_ceil(8), || {
        match rest.bit_len() {
            0 => Term::NIL,
            len => p.cons(p.bitstring(&rest.bytes(), len), Term::NIL),
        }
    })
}

/// A binary in the making.
struct Building<'p> {
    joined: Joined,
    /// Bits of the list as far as it is walked, before any is copied.
    bit_len: usize,
    is_counted: bool,
    /// Bits of the next leaf that are copied already.
    copied_of_leaf: usize,
    /// What is left of the list, to be counted or to be copied.
    rest: Vec<Term<'p>>,
}

work! {
    struct Building { rest; joined, bit_len, is_counted, copied_of_leaf }
    shown as |_| Some((am::list_to_bitstring_continue, 1))
}

/// Steps of a walk over an I/O list that are made for one reduction.
const STEPS_PER_RED: i64 = 8;

/// A walk over what is left of an I/O list, with the steps that `reds` pay for. Source:
/// `generic_iolist_size()` in `erl_iolist.c`.
struct PaidWalk<'p> {
    walk: Walk<'p>,
    most: i64,
    steps: i64,
}

impl<'p> PaidWalk<'p> {
    fn resume(rest: &mut Vec<Term<'p>>, reds: i64) -> PaidWalk<'p> {
        let most = reds * STEPS_PER_RED;
        PaidWalk {
            walk: Walk::resume(std::mem::take(rest)),
            most,
            steps: most,
        }
    }

    fn run(
        &mut self,
        visit: &mut impl FnMut(Part<'p>, &mut i64) -> Result<Visited, NotIolist>,
    ) -> Result<Walked, NotIolist> {
        self.walk.run(&mut self.steps, visit)
    }

    /// Charges for the steps made; the reductions.
    fn pay(&self, p: &Process) -> i64 {
        let reds = (self.most - self.steps - 1) / STEPS_PER_RED + 1;
        p.bump_reds(reds);
        reds
    }

    /// What is left to walk in another slice: this one is used up.
    fn pause(self, p: &Process) -> Vec<Term<'p>> {
        p.bump_all_reds();
        self.walk.rest()
    }
}

/// Reductions that the making of a binary may take in its first time slice; none where it is not worth to begin.
fn reds_to_begin(p: &Process) -> Option<i64> {
    const FEW: i64 = CONTEXT_REDS / 40;
    const ENOUGH: i64 = CONTEXT_REDS / 4;
    let left = p.fcalls.get();
    (left > FEW).then_some(left.max(ENOUGH))
}

/// The bits of an I/O list; with `binaries_only`, it may have no other bitstrings.
fn join<'p>(p: &'p Process, list: Term<'p>, binaries_only: bool) -> BifResult<'p> {
    let is_whole = |bits: Bits<'p>| !binaries_only || bits.bit_len().is_multiple_of(8);
    let begun = p.take_work::<Building>();
    let is_first_slice = begun.is_none();
    let (mut building, mut reds) = match begun {
        Some(building) => (building, p.fcalls.get()),
        None => {
            let Some(reds) = reds_to_begin(p) else {
                return Err(p.try_again().into());
            };
            if list.is_nil() {
                return Ok(p.binary(&[]));
            }
            let cell = list.as_cons().ok_or_else(badarg)?;
            match cell.head().as_bits() {
                Some(bits) if cell.tail().is_nil() && is_whole(bits) => return Ok(cell.head()),
                _ => {}
            }
            let building = Building {
                joined: Joined::default(),
                bit_len: 0,
                is_counted: false,
                copied_of_leaf: 0,
                rest: vec![list],
            };
            (Box::new(building), reds)
        }
    };
    let put_off = |building: Box<Building>| {
        if is_first_slice {
            p.trap_state();
        }
        p.yield_with(*building)
    };
    if !building.is_counted {
        if let Walked::Some = count_bits(p, &mut building, &mut reds, is_whole)? {
            return Err(put_off(building).into());
        }
        building.is_counted = true;
        if building.bit_len == 0 {
            return Ok(p.binary(&[]));
        }
        building.rest = vec![list];
        if reds <= 0 {
            return Err(put_off(building).into());
        }
    }
    if let Walked::Some = copy_bits(p, &mut building, reds)? {
        return Err(put_off(building).into());
    }
    let (bytes, bit_len) = building.joined.finish();
    Ok(match bit_len % 8 {
        0 => p.binary_from_vec(bytes),
        _ => p.bitstring(&bytes, bit_len),
    })
}

fn count_bits<'p>(
    p: &'p Process,
    building: &mut Building<'p>,
    reds: &mut i64,
    is_whole: impl Fn(Bits<'p>) -> bool,
) -> Result<Walked, Raise<'static>> {
    let Building { rest, bit_len, .. } = building;
    let mut walk = PaidWalk::resume(rest, *reds);
    let walked = walk.run(&mut |part, _| {
        *bit_len += match part {
            Part::Byte(_) => 8,
            Part::Bits(bits) if is_whole(bits) => bits.bit_len(),
            Part::Bits(_) => return Err(NotIolist),
        };
        Ok(Visited::Whole)
    });
    match walked {
        Ok(Walked::Some) => *rest = walk.pause(p),
        _ => *reds -= walk.pay(p),
    }
    Ok(walked?)
}

/// Copies on; a large bitstring may be copied in more than one time slice. Source: `generic_iolist_copy()`.
fn copy_bits<'p>(
    p: &'p Process,
    building: &mut Building<'p>,
    reds: i64,
) -> Result<Walked, Raise<'static>> {
    const BITS_PER_STEP: usize = 32 * 8;
    let Building {
        joined,
        copied_of_leaf,
        rest,
        ..
    } = building;
    let mut walk = PaidWalk::resume(rest, reds);
    let walked = walk.run(&mut |part, steps| {
        let Part::Bits(bits) = part else {
            joined.push(part);
            return Ok(Visited::Whole);
        };
        let copied = std::mem::take(copied_of_leaf);
        let bits = bits.skip(copied);
        let most = (*steps as usize + 1).saturating_mul(BITS_PER_STEP);
        if bits.bit_len() > most {
            joined.push(Part::Bits(bits.first(most)));
            *copied_of_leaf = copied + most;
            return Ok(Visited::Part);
        }
        joined.push(Part::Bits(bits));
        *steps -= (bits.bit_len() / BITS_PER_STEP) as i64;
        Ok(Visited::Whole)
    })?;
    // What is left has nothing to copy.
    if walked == Walked::All || joined.bit_len() == building.bit_len {
        walk.pay(p);
        return Ok(Walked::All);
    }
    *rest = walk.pause(p);
    Ok(Walked::Some)
}

fn list_to_binary_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    join(p, a, true)
}

fn list_to_bitstring_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    join(p, a, false)
}

fn iolist_to_binary_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    match a.as_bits() {
        Some(bits) if bits.bit_len().is_multiple_of(8) => Ok(a),
        Some(_) => Err(badarg().into()),
        None => list_to_binary_1(p, [a]),
    }
}

/// A size in the making.
struct Sizing<'p> {
    bytes: usize,
    rest: Vec<Term<'p>>,
}

work! { struct Sizing { rest; bytes } shown as |_| Some((am::iolist_size_continue, 1)) }

fn iolist_size_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let begun = p.take_work::<Sizing>();
    let is_first_slice = begun.is_none();
    let (mut bytes, mut rest) = match begun {
        Some(sizing) => (sizing.bytes, sizing.rest),
        None => (0, vec![a]),
    };
    let mut walk = PaidWalk::resume(&mut rest, p.fcalls.get());
    let walked = walk.run(&mut |part, _| {
        bytes += match part {
            Part::Byte(_) => 1,
            Part::Bits(bits) => iolist::whole(bits)?.byte_len(),
        };
        Ok(Visited::Whole)
    });
    if let Ok(Walked::Some) = walked {
        if is_first_slice {
            p.trap_state();
        }
        let rest = walk.pause(p);
        return Err(p.yield_with(Sizing { bytes, rest }).into());
    }
    walk.pay(p);
    walked?;
    Ok(p.unsigned(bytes as u64))
}

/// An I/O vector in the making.
struct Vectoring<'p> {
    iovec: iolist::Iovec<'p>,
    /// Steps made, of which reductions for some have been paid.
    steps: i64,
    rest: Vec<Term<'p>>,
}

work! { struct Vectoring { iovec, rest; steps } }

fn iolist_to_iovec_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    const PER_SLICE: usize = (STEPS_PER_RED * CONTEXT_REDS) as usize;
    const BYTES_PER_STEP: usize = 32;
    if let Some(result) = p.pay_on(PauseWords::Once) {
        return result;
    }
    let only = match a.as_cons() {
        Some(cell) if cell.tail().is_nil() => cell.head().as_bits(),
        _ => a.as_bits(),
    };
    if let Some(bits) = only {
        return match iolist::whole(bits)?.bit_len() {
            0 => Ok(Term::NIL),
            _ if a.as_cons().is_some() => Ok(a),
            _ => Ok(p.cons(a, Term::NIL)),
        };
    }
    if a.is_nil() {
        return Ok(a);
    }
    let begun = p.take_work::<Vectoring>();
    let is_first_slice = begun.is_none();
    let mut work = begun.unwrap_or_else(|| {
        let (iovec, rest) = (iolist::Iovec::default(), vec![a]);
        Box::new(Vectoring {
            iovec,
            steps: 0,
            rest,
        })
    });
    let mut walk = PaidWalk::resume(&mut work.rest, p.fcalls.get());
    let walked = walk.run(&mut |part, _| work.iovec.push(part).map(|()| Visited::Whole))?;
    work.steps += walk.most - walk.steps;
    if walked == Walked::Some {
        if is_first_slice {
            p.trap_state();
        }
        work.rest = walk.pause(p);
        return Err(p.yield_with(*work).into());
    }
    walk.pay(p);
    // It is walked twice, and each walk is charged for to the next whole reduction.
    let copied = (work.iovec.copied_of_binaries() / BYTES_PER_STEP) as i64;
    let reds = (work.steps + copied - 1) / STEPS_PER_RED + 1;
    let due = Due::new((reds * STEPS_PER_RED) as usize, PER_SLICE);
    let words = match is_first_slice {
        true => PauseWords::Once,
        false => PauseWords::Each(0),
    };
    p.pay(work.iovec.finish(p), &[due], words)
}

fn split_binary_2<'p>(p: &'p Process, [a, at]: [Term<'p>; 2]) -> BifResult<'p> {
    let bits = bits(a)?;
    let at = size_argument(at)?;
    if at > bits.byte_len() {
        return Err(badarg().into());
    }
    let (first, rest) = (
        p.sub_bits(bits, 0, at * 8),
        p.sub_bits(bits, at * 8, bits.bit_len()),
    );
    Ok(p.tuple(&[first, rest]))
}

fn byte_size_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    Ok(p.unsigned(bits(a)?.bit_len().div_ceil(8) as u64))
}

fn bit_size_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> GuardResult<'p> {
    Ok(p.unsigned(bits(a)?.bit_len() as u64))
}

/// Start and end of the part of `size` bytes that `position` and `length` (which may be negative) name.
pub(super) fn part_range(
    size: usize,
    position: Term<'_>,
    length: Term<'_>,
) -> Result<(usize, usize), Raise<'static>> {
    let position = size_argument(position)?;
    let length = length.as_small().ok_or_else(badarg)?;
    let other = i64::try_from(position)
        .ok()
        .and_then(|from| from.checked_add(length));
    let other = other
        .and_then(|n| usize::try_from(n).ok())
        .ok_or_else(badarg)?;
    if position.max(other) > size {
        return Err(badarg());
    }
    Ok((position.min(other), position.max(other)))
}

fn part_3<'p>(p: &'p Process, [a, position, length]: [Term<'p>; 3]) -> GuardResult<'p> {
    let bits = binary(a)?;
    let (from, to) = part_range(bits.byte_len(), position, length)?;
    Ok(p.sub_bits(bits, from * 8, to * 8))
}

fn part_2<'p>(p: &'p Process, [a, part]: [Term<'p>; 2]) -> GuardResult<'p> {
    match part.as_tuple().map(|t| t.elements()) {
        Some([position, length]) => part_3(p, [a, *position, *length]),
        _ => Err(badarg()),
    }
}

fn byte_at<'p>(a: Term<'p>, at: impl FnOnce(usize) -> Option<usize>) -> BifResult<'p> {
    let bits = binary(a)?;
    let at = at(bits.byte_len())
        .filter(|&at| at < bits.byte_len())
        .ok_or_else(badarg)?;
    let byte = match bits.as_bytes() {
        Some(bytes) => bytes[at],
        None => bits.to_vec()[at],
    };
    Ok(Term::small(byte.into()))
}

fn first_1<'p>(_p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    byte_at(a, |_| Some(0))
}

fn last_1<'p>(_p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    byte_at(a, |size| size.checked_sub(1))
}

fn at_2<'p>(_p: &'p Process, [a, at]: [Term<'p>; 2]) -> BifResult<'p> {
    byte_at(a, |_| at.as_index())
}

fn copy_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    copy_2(p, [a, Term::small(1)])
}

fn copy_2<'p>(p: &'p Process, [a, n]: [Term<'p>; 2]) -> BifResult<'p> {
    let bits = binary(a)?;
    let n = word_argument(n)?;
    if bits.bit_len() == 0 || n == 0 {
        return Ok(p.binary(&[]));
    }
    // Source: `do_binary_copy()`.
    if n >= usize::MAX / bits.bit_len() {
        return Err(system_limit().into());
    }
    copied(p, bits, n)
}

/// A binary in the making that repeats another.
struct Copying(Vec<u8>);

work! { Copying without terms shown as |_| Some((am::binary_copy_trap, 3)) }

/// As many bits are copied as the reductions left pay for; what is not copied then, in the next slice. Source:
/// `do_binary_copy()`.
fn copied<'p>(p: &'p Process, bits: Bits<'p>, n: usize) -> BifResult<'p> {
    const BITS_PER_RED: usize = 64 * 8;
    let size = bits.byte_len() * n;
    let bytes = bits.bytes();
    let fill = |out: &mut Vec<u8>, size: usize| {
        while out.len() < size {
            let rest = &bytes[out.len() % bytes.len()..];
            out.extend_from_slice(&rest[..rest.len().min(size - out.len())]);
        }
    };
    let (mut out, begun) = match p.take_work::<Copying>() {
        Some(copying) => (copying.0, true),
        None => (memory::room_for_bytes(size), false),
    };
    let before = out.len();
    let most = p.reds_left() * BITS_PER_RED / 8;
    if !begun && size > most {
        fill(&mut out, most);
        p.give_up_slice();
        return Err(p.put_off(Copying(out)).into());
    }
    fill(&mut out, size);
    p.bump_reds(((size - before) * 8 / BITS_PER_RED) as i64);
    Ok(p.binary_from_vec(out))
}

fn referenced_byte_size_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let bits = bits(a)?;
    let size = bits
        .binary()
        .map_or(bits.byte_len(), crate::heap::Binary::capacity);
    Ok(p.unsigned(size as u64))
}

fn endian(term: Term<'_>) -> Result<Endian, Raise<'static>> {
    match term.as_atom() {
        Some(am::big) => Ok(Endian::Big),
        Some(am::little) => Ok(Endian::Little),
        _ => Err(badarg()),
    }
}

fn encode_unsigned_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    encode_unsigned_2(p, [a, am::big.term()])
}

fn encode_unsigned_2<'p>(p: &'p Process, [a, order]: [Term<'p>; 2]) -> BifResult<'p> {
    let order = endian(order)?;
    let mut limb = [0];
    let value = match a.view() {
        View::Small(value) if value >= 0 => IntRef::of_i64(value, &mut limb),
        View::Big(big) if !big.is_negative() => IntRef::new(false, big.limbs()),
        _ => return Err(badarg().into()),
    };
    let mut bytes: Vec<u8> = value.mag_le_bytes().collect();
    if bytes.is_empty() {
        bytes.push(0);
    }
    if order == Endian::Big {
        bytes.reverse();
    }
    Ok(p.binary_from_vec(bytes))
}

fn decode_unsigned_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    decode_unsigned_2(p, [a, am::big.term()])
}

fn decode_unsigned_2<'p>(p: &'p Process, [a, order]: [Term<'p>; 2]) -> BifResult<'p> {
    let order = endian(order)?;
    let bits = binary(a)?;
    let value = Int::from_bits(&bits.bytes(), bits.bit_len(), order, false);
    Ok(number::make_integer(p, &value)?)
}

/// How far the comparison of binaries has come.
struct Comparing {
    /// The next one to be compared with the first.
    index: usize,
    /// Bytes that may yet be common.
    most: usize,
    /// Bytes that are common to all.
    common: usize,
}

work! { Comparing without terms shown as |_| Some((am::binary_longest_prefix_trap, 4)) }

/// The number of bytes that all of a list of binaries begin (or, `from_end`, end) with. They are compared a cache
/// line at a time, and each bit costs. Source: `continue_longest_common()`.
fn longest_common<'p>(p: &'p Process, list: Term<'p>, from_end: bool) -> BifResult<'p> {
    const STRIDE: usize = 64;
    const BITS_PER_RED: i64 = 10;
    let mut binaries = Vec::new();
    for element in list.list_iter() {
        binaries.push(binary(element.map_err(|_| badarg())?)?.bytes());
    }
    let least = binaries.iter().map(|b| b.len()).min().ok_or_else(badarg)?;
    if least == 0 || binaries.len() == 1 {
        return Ok(p.unsigned(least as u64));
    }
    let begun = p.take_work::<Comparing>().map(|work| *work);
    if begun.is_none() {
        p.trap_words(1 + binaries.len());
    }
    let mut at = begun.unwrap_or(Comparing {
        index: 1,
        most: least,
        common: 0,
    });
    let budget = (p.fcalls.get() * BITS_PER_RED).max(1);
    let mut left = budget;
    while at.common < at.most {
        if left < 0 {
            return Err(p.yield_with(at).into());
        }
        let mut stride = STRIDE.min(at.most - at.common);
        while left >= 0 && at.common < at.most {
            let part = |binary: &[u8]| match from_end {
                true => binary.len() - at.common - stride..binary.len() - at.common,
                false => at.common..at.common + stride,
            };
            let (a, b) = (&binaries[0], &binaries[at.index]);
            let pairs = a[part(a)].iter().zip(&b[part(b)]);
            let differs = match from_end {
                true => pairs.rev().position(|(a, b)| a != b),
                false => pairs.into_iter().position(|(a, b)| a != b),
            };
            if let Some(differs) = differs {
                at.most = at.common + differs;
                stride = differs;
            }
            left -= 8 * stride as i64;
            at.index += 1;
            if at.index == binaries.len() {
                at.common += stride;
                at.index = 1;
                break;
            }
        }
    }
    p.bump_reds((budget - left) / BITS_PER_RED);
    Ok(p.unsigned(at.common as u64))
}

fn longest_common_prefix_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    longest_common(p, a, false)
}

fn longest_common_suffix_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    longest_common(p, a, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Leave;
    use crate::process::in_small_steps;

    #[test]
    fn a_long_list_is_joined_in_many_slices() {
        let mut p = Process::new(233);
        let bytes: Vec<_> = (0..=255).map(Term::small).collect();
        let part = p.list_with_tail(&bytes, p.bitstring(&[0b1010_0000], 3));
        let inner = p.list(&[p.binary(b"some"), part]);
        let list = p.list(&[&[part, inner][..], &[part; 38], &[Term::small(7)]].concat());
        let list = p.root(list);
        let mut whole = Joined::default();
        iolist::walk(p.get(&list), &mut |leaf| {
            whole.push(leaf);
            Ok(())
        })
        .expect("an I/O list");
        let whole = whole.finish();
        let is_whole = |joined: Term<'_>| {
            let bits = joined.as_bits().expect("a bitstring");
            (bits.to_vec(), bits.bit_len()) == whole
        };
        let turns = in_small_steps(
            &mut p,
            &list,
            |p, list| list_to_bitstring_1(p, [list]),
            is_whole,
        );
        // In the first time slice it may do as much as a thousand reductions pay for.
        assert!(turns > 200, "{turns}");
        p.fcalls.set(CONTEXT_REDS);
        let is_refused = matches!(
            list_to_binary_1(&p, [p.get(&list)]),
            Err(Leave::Raise(Raise::Error(_)))
        );
        assert!(is_refused, "a part of a byte");
    }
}
