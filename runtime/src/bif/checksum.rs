//! The BIFs that give checksums and digests of I/O lists: CRC-32, Adler-32 and MD5.

use super::binary::binary;
use super::{BifResult, Control, Leave, Raise, badarg, bifs};
use crate::hash::checksum::{adler32, adler32_combine, crc32, crc32_combine};
use crate::hash::md5::Md5;
use crate::process::{CONTEXT_REDS, Process, work};
use crate::term::Term;
use crate::value::iolist::{self, Part, Visited, Walk, Walked};

bifs! {
    all own;
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

/// Bytes of a checksum for one reduction. Source: `BYTES_PER_REDUCTION` in `erl_bif_chksum.c`.
const SUMMED_PER_RED: usize = 10;

/// An integer of 32 bits without a sign.
fn u32_argument(term: Term<'_>) -> Result<u32, Raise<'static>> {
    term.as_small()
        .and_then(|n| u32::try_from(n).ok())
        .ok_or_else(badarg)
}

/// A sum over the bytes of an I/O list in the making.
struct Summing<'p, S> {
    sum: S,
    /// Bytes of the next leaf that are summed already.
    summed_of_leaf: usize,
    rest: Vec<Term<'p>>,
}

work! { struct Summing<S> { rest; sum, summed_of_leaf } }

/// Sums at most `most` bytes in this time slice, for which it charges one reduction each `per_red`; where there
/// are more, the time slice is over and ERTS makes a list of what is left. Source: `do_chksum()` in `erl_bif_chksum.c`.
fn sum_some<'p, S: Send + 'static>(
    p: &'p Process,
    data: Term<'p>,
    first: impl FnOnce() -> S,
    (most, per_red): (usize, usize),
    add: impl Fn(&mut S, &[u8]),
) -> Result<S, Leave<'static>> {
    let Summing {
        mut sum,
        mut summed_of_leaf,
        rest,
    } = match p.take_work::<Summing<'_, S>>() {
        Some(summing) => *summing,
        None => Summing {
            sum: first(),
            summed_of_leaf: 0,
            rest: vec![data],
        },
    };
    let mut walk = Walk::resume(rest);
    let (mut left, mut steps) = (most, i64::MAX);
    let walked = walk.run(&mut steps, &mut |part, _| {
        match part {
            _ if left == 0 => return Ok(Visited::Part),
            Part::Byte(byte) => {
                add(&mut sum, &[byte]);
                left -= 1;
            }
            Part::Bits(bits) => {
                let bytes = iolist::whole(bits)?.bytes();
                let now = &bytes[std::mem::take(&mut summed_of_leaf)..];
                if now.len() > left {
                    add(&mut sum, &now[..left]);
                    summed_of_leaf = bytes.len() - now.len() + left;
                    left = 0;
                    return Ok(Visited::Part);
                }
                add(&mut sum, now);
                left -= now.len();
            }
        }
        Ok(Visited::Whole)
    });
    p.bump_reds(((most - left) / per_red) as i64);
    if walked? == Walked::All {
        return Ok(sum);
    }
    let rest = walk.rest();
    const CELL_WORDS: usize = 2;
    const PART_WORDS: usize = 5;
    p.trap_words(CELL_WORDS * (rest.len() - 1));
    if summed_of_leaf > 0 {
        p.trap_words(PART_WORDS);
    }
    let summing = Summing {
        sum,
        summed_of_leaf,
        rest,
    };
    Err(p.yield_with(summing).into())
}

fn checksum<'p>(
    p: &'p Process,
    before: u32,
    data: Term<'p>,
    add: fn(u32, &[u8]) -> u32,
) -> BifResult<'p> {
    /// Source: `CHUNK_PER_SCHEDULE` in `erl_bif_chksum.c`.
    const MOST: usize = SUMMED_PER_RED * CONTEXT_REDS as usize;
    let add = |sum: &mut u32, bytes: &[u8]| *sum = add(*sum, bytes);
    let sum = sum_some(p, data, || before, (MOST, SUMMED_PER_RED), add)?;
    Ok(p.unsigned(sum.into()))
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

/// A digest costs a reduction a byte, but no more than is left of a slice for four bytes each.
fn digest<'p>(
    p: &'p Process,
    data: Term<'p>,
    first: impl FnOnce() -> Md5,
) -> Result<Md5, Leave<'static>> {
    const BLOCK: usize = 64;
    let most = 4 * p.reds_left() / BLOCK * BLOCK;
    let digest = sum_some(p, data, first, (most, 1), Md5::update);
    if let Err(Leave::Control(Control::Yield)) = digest {
        p.binary(&Md5::new().to_bytes());
    }
    digest
}

fn md5_1<'p>(p: &'p Process, [data]: [Term<'p>; 1]) -> BifResult<'p> {
    let md5 = digest(p, data, Md5::new)?;
    Ok(p.binary(&md5.finish()))
}

fn md5_init_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(p.binary(&Md5::new().to_bytes()))
}

fn md5_context(term: Term<'_>) -> Result<Md5, Raise<'static>> {
    Md5::from_bytes(&binary(term)?.bytes()).ok_or_else(badarg)
}

fn md5_update_2<'p>(p: &'p Process, [context, data]: [Term<'p>; 2]) -> BifResult<'p> {
    let before = md5_context(context)?;
    let md5 = digest(p, data, || before)?;
    Ok(p.binary(&md5.to_bytes()))
}

fn md5_final_1<'p>(p: &'p Process, [context]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(p.binary(&md5_context(context)?.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reductions are those that `process_info/2` tells in OTP 29, to the few of the call itself.
    #[test]
    fn digests_cost_what_they_cost_in_otp() {
        let cost = |bif: for<'p> fn(&'p Process, [Term<'p>; 1]) -> BifResult<'p>, bytes| {
            let p = Process::new(233);
            let data = p.binary(&vec![1; bytes]);
            while let Err(raise) = bif(&p, [data]) {
                assert!(matches!(raise, Leave::Control(Control::Yield)));
                p.new_slice();
            }
            p.reductions()
        };
        for (bytes, md5, crc) in [(10, 10, 1), (1000, 1000, 100), (10_000, 4000, 1000)] {
            assert_eq!((cost(md5_1, bytes), cost(crc32_1, bytes)), (md5, crc));
        }
        assert_eq!(cost(md5_1, 100_000), 28_000);
    }
}
