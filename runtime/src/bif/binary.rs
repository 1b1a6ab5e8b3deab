//! Binaries and bitstrings: conversion from and to lists, parts, sizes, checksums. Searching is in
//! `binary_search`.

use super::{BifResult, Raise, badarg, bifs, system_limit};
use crate::hash::checksum::{adler32, adler32_combine, crc32, crc32_combine};
use crate::hash::md5::Md5;
use crate::num::limbs::{Endian, Int, IntRef};
use crate::process::{CONTEXT_REDS, Process, Work};
use crate::term::iolist::{self, Joined, NotIolist, Part, Walk};
use crate::term::{Atom, Bits, RawTerm, Term, View, am, number, tag};

bifs! {
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
    bif erlang:"crc32"/1 => crc32_1;
    bif erlang:"crc32"/2 => crc32_2;
    bif erlang:"crc32_combine"/3 => crc32_combine_3;
    bif erlang:"adler32"/1 => adler32_1;
    bif erlang:"adler32"/2 => adler32_2;
    bif erlang:"adler32_combine"/3 => adler32_combine_3;
    bif erlang:"md5"/1 => md5_1;
    bif erlang:"md5_init"/0 => md5_init_0;
    bif erlang:"md5_update"/2 => md5_update_2;
    bif erlang:"md5_final"/1 => md5_final_1;
}

impl From<NotIolist> for Raise<'static> {
    fn from(_: NotIolist) -> Self {
        badarg()
    }
}

/// Bytes worked on for one reduction.
const BYTES_PER_RED: usize = 1024;
/// Bytes of a checksum for one reduction. Source: `BYTES_PER_REDUCTION` in `erl_bif_chksum.c`.
const SUMMED_PER_RED: usize = 10;

fn bump(p: &Process, bytes: usize) {
    p.bump_reds((bytes / BYTES_PER_RED) as i64);
}

fn bits(term: Term<'_>) -> Result<Bits<'_>, Raise<'static>> {
    term.as_bits().ok_or_else(badarg)
}

fn binary(term: Term<'_>) -> Result<Bits<'_>, Raise<'static>> {
    term.as_binary().ok_or_else(badarg)
}

/// A small integer that is not negative, or a big one, which is larger than any size.
fn size_argument(term: Term<'_>) -> Result<usize, Raise<'static>> {
    term.as_index().ok_or_else(badarg)
}

fn binary_to_list_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let bits = binary(a)?;
    bump(p, bits.byte_len());
    Ok(p.byte_list(&bits.bytes()))
}

fn binary_to_list_3<'p>(p: &'p Process, [a, start, stop]: [Term<'p>; 3]) -> BifResult<'p> {
    let bits = binary(a)?;
    let (start, stop) = (size_argument(start)?, size_argument(stop)?);
    if start < 1 || stop < start || stop > bits.byte_len() {
        return Err(badarg());
    }
    Ok(p.byte_list(&bits.bytes()[start - 1..stop]))
}

fn bitstring_to_list_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let bits = bits(a)?;
    let bytes = bits.bytes();
    let rest = bits.bit_len() % 8;
    bump(p, bytes.len());
    if rest == 0 {
        return Ok(p.byte_list(&bytes));
    }
    let (last, whole) = bytes.split_last().expect("a part of a byte is a byte");
    let mut elements: Vec<_> = whole.iter().map(|&b| Term::small(b.into())).collect();
    elements.push(p.bitstring(&[*last], rest));
    Ok(p.list(&elements))
}

fn is_list(term: Term<'_>) -> bool {
    matches!(term.view(), View::Nil | View::Cons(_))
}

/// Cells of an I/O list walked for one reduction.
const CELLS_PER_RED: usize = 4;

/// A binary in the making.
struct Building {
    joined: Joined,
    /// What is left of the list.
    rest: Vec<RawTerm>,
}

impl Work for Building {
    fn visit(&mut self, visit: &mut dyn FnMut(&mut [RawTerm])) {
        visit(&mut self.rest);
    }
    fn shown_as(&self) -> Option<(Atom, u8)> {
        Some((am::list_to_bitstring_continue, 1))
    }
}

/// The bits of an I/O list; with `binaries_only`, it may have no other bitstrings.
fn join<'p>(p: &'p Process, list: Term<'p>, binaries_only: bool) -> BifResult<'p> {
    if !is_list(list) {
        return Err(badarg());
    }
    let (mut joined, mut walk) = match p.take_work::<Building>() {
        Some(building) => {
            let rest = building.rest.into_iter().map(|raw| p.own(raw));
            (building.joined, Walk::resume(rest.collect()))
        }
        None => (Joined::default(), Walk::of(list)),
    };
    let budget = p.reds_left().max(1) * CELLS_PER_RED;
    let mut bytes = 0;
    let left = walk.run(budget, &mut |part| {
        if let Part::Bits(bits) = part {
            if binaries_only && !bits.bit_len().is_multiple_of(8) {
                return Err(NotIolist);
            }
            bytes += bits.byte_len();
        }
        joined.push(part);
        Ok(())
    })?;
    if left == 0 {
        let rest = walk.rest().into_iter().map(|term| term.raw()).collect();
        return Err(p.yield_with(Building { joined, rest }));
    }
    p.bump_reds(((budget - left) / CELLS_PER_RED) as i64);
    bump(p, bytes);
    let (bytes, bit_len) = joined.finish();
    Ok(match bit_len % 8 {
        0 => p.binary_from_vec(bytes),
        _ => p.bitstring(&bytes, bit_len),
    })
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
        Some(_) => Err(badarg()),
        None => list_to_binary_1(p, [a]),
    }
}

fn iolist_size_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(p.unsigned(iolist::size(a)? as u64))
}

fn iolist_to_iovec_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    match a.as_binary() {
        Some(bits) if bits.bit_len() == 0 => Ok(Term::NIL),
        Some(_) => Ok(p.list(&[a])),
        None => Ok(iolist::to_iovec(p, a)?),
    }
}

fn split_binary_2<'p>(p: &'p Process, [a, at]: [Term<'p>; 2]) -> BifResult<'p> {
    let bits = bits(a)?;
    let at = size_argument(at)?;
    if at > bits.byte_len() {
        return Err(badarg());
    }
    let (first, rest) = (
        p.sub_bits(bits, 0, at * 8),
        p.sub_bits(bits, at * 8, bits.bit_len()),
    );
    Ok(p.tuple(&[first, rest]))
}

fn byte_size_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(p.unsigned(bits(a)?.bit_len().div_ceil(8) as u64))
}

fn bit_size_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
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

fn part_3<'p>(p: &'p Process, [a, position, length]: [Term<'p>; 3]) -> BifResult<'p> {
    let bits = binary(a)?;
    let (from, to) = part_range(bits.byte_len(), position, length)?;
    Ok(p.sub_bits(bits, from * 8, to * 8))
}

fn part_2<'p>(p: &'p Process, [a, part]: [Term<'p>; 2]) -> BifResult<'p> {
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
    /// Largest binary in bits: a bit size is a small integer.
    const MAX_BITS: u128 = tag::MAX_SMALL as u128;
    let bits = binary(a)?;
    let n = size_argument(n)?;
    if bits.bit_len() as u128 * n as u128 > MAX_BITS {
        return Err(system_limit());
    }
    let bytes = bits.bytes().repeat(n);
    bump(p, bytes.len());
    Ok(p.binary_from_vec(bytes))
}

fn referenced_byte_size_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    let bits = bits(a)?;
    let size = bits
        .binary()
        .map_or(bits.bit_len().div_ceil(8), crate::heap::Binary::size);
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
        _ => return Err(badarg()),
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

/// The least, over all but the first of a list of binaries, of what `common` counts with the first.
fn longest_common<'p>(
    p: &'p Process,
    list: Term<'p>,
    common: fn(&[u8], &[u8]) -> usize,
) -> BifResult<'p> {
    let mut first = None;
    let mut least = usize::MAX;
    for element in list.list_iter() {
        let bytes = binary(element.map_err(|_| badarg())?)?.bytes();
        match &first {
            None => {
                least = bytes.len();
                first = Some(bytes);
            }
            Some(first) => least = least.min(common(first, &bytes)),
        }
    }
    if first.is_none() {
        return Err(badarg());
    }
    bump(p, least);
    Ok(p.unsigned(least as u64))
}

fn longest_common_prefix_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    longest_common(p, a, |a, b| {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    })
}

fn longest_common_suffix_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    longest_common(p, a, |a, b| {
        let pairs = a.iter().rev().zip(b.iter().rev());
        pairs.take_while(|(a, b)| a == b).count()
    })
}

/// An integer of 32 bits without a sign.
fn u32_argument(term: Term<'_>) -> Result<u32, Raise<'static>> {
    term.as_small()
        .and_then(|n| u32::try_from(n).ok())
        .ok_or_else(badarg)
}

fn checksum<'p>(
    p: &'p Process,
    before: u32,
    data: Term<'p>,
    sum: fn(u32, &[u8]) -> u32,
) -> BifResult<'p> {
    let bytes = iolist::to_vec(data)?;
    p.bump_reds((bytes.len() / SUMMED_PER_RED) as i64);
    Ok(p.unsigned(sum(before, &bytes).into()))
}

fn crc32_1<'p>(p: &'p Process, [data]: [Term<'p>; 1]) -> BifResult<'p> {
    checksum(p, 0, data, crc32)
}

fn crc32_2<'p>(p: &'p Process, [before, data]: [Term<'p>; 2]) -> BifResult<'p> {
    checksum(p, u32_argument(before)?, data, crc32)
}

fn adler32_1<'p>(p: &'p Process, [data]: [Term<'p>; 1]) -> BifResult<'p> {
    checksum(p, 1, data, adler32)
}

fn adler32_2<'p>(p: &'p Process, [before, data]: [Term<'p>; 2]) -> BifResult<'p> {
    checksum(p, u32_argument(before)?, data, adler32)
}

fn crc32_combine_3<'p>(p: &'p Process, [a, b, len]: [Term<'p>; 3]) -> BifResult<'p> {
    let sum = crc32_combine(
        u32_argument(a)?,
        u32_argument(b)?,
        u32_argument(len)?.into(),
    );
    Ok(p.unsigned(sum.into()))
}

fn adler32_combine_3<'p>(p: &'p Process, [a, b, len]: [Term<'p>; 3]) -> BifResult<'p> {
    let sum = adler32_combine(
        u32_argument(a)?,
        u32_argument(b)?,
        u32_argument(len)?.into(),
    );
    Ok(p.unsigned(sum.into()))
}

/// A digest costs a reduction a byte, but no more than a time slice for as many bytes as ERTS digests in one.
fn bump_md5(p: &Process, bytes: usize) {
    const BYTES_PER_SLICE: usize = 4 * CONTEXT_REDS as usize;
    let slices = (bytes / BYTES_PER_SLICE) as i64;
    let rest = (bytes % BYTES_PER_SLICE) as i64;
    p.bump_reds(slices * CONTEXT_REDS + rest.min(CONTEXT_REDS));
}

fn md5_1<'p>(p: &'p Process, [data]: [Term<'p>; 1]) -> BifResult<'p> {
    let bytes = iolist::to_vec(data)?;
    bump_md5(p, bytes.len());
    Ok(p.binary(&Md5::digest(&bytes)))
}

fn md5_init_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.binary(&Md5::new().to_bytes()))
}

fn md5_context(term: Term<'_>) -> Result<Md5, Raise<'static>> {
    Md5::from_bytes(&binary(term)?.bytes()).ok_or_else(badarg)
}

fn md5_update_2<'p>(p: &'p Process, [context, data]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut md5 = md5_context(context)?;
    let bytes = iolist::to_vec(data)?;
    bump_md5(p, bytes.len());
    md5.update(&bytes);
    Ok(p.binary(&md5.to_bytes()))
}

fn md5_final_1<'p>(p: &'p Process, [context]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(p.binary(&md5_context(context)?.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::in_small_steps;

    #[test]
    fn a_long_list_is_joined_in_many_slices() {
        let mut p = Process::new(233);
        let bytes: Vec<_> = (0..=255).map(Term::small).collect();
        let part = p.list_with_tail(&bytes, p.bitstring(&[0b1010_0000], 3));
        let list = p.list(&[part, p.list(&[p.binary(b"some"), part]), Term::small(7)]);
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
        assert_eq!(turns, 18);
        p.fcalls.set(CONTEXT_REDS);
        let is_refused = matches!(list_to_binary_1(&p, [p.get(&list)]), Err(Raise::Error(_)));
        assert!(is_refused, "a part of a byte");
    }
    /// Reductions are those that `process_info/2` tells in OTP 29, to the few of the call itself.
    #[test]
    fn digests_cost_what_they_cost_in_otp() {
        let cost = |bif: for<'p> fn(&'p Process, [Term<'p>; 1]) -> BifResult<'p>, bytes| {
            let p = Process::new(233);
            let data = p.binary(&vec![1; bytes]);
            assert!(bif(&p, [data]).is_ok());
            p.reductions()
        };
        for (bytes, md5, crc) in [(10, 10, 1), (1000, 1000, 100), (10_000, 4000, 1000)] {
            assert_eq!((cost(md5_1, bytes), cost(crc32_1, bytes)), (md5, crc));
        }
        assert_eq!(cost(md5_1, 100_000), 28_000);
    }
}
