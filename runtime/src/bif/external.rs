//! The external term format's BIFs.

use super::{BifResult, Raise, badarg, badopt, bifs, system_limit};
use crate::external;
use crate::external::{
    DecodeOptions, Decoded, EncodeOptions, EncodeWork, Paused, Piece, TooLarge, encode_counted,
    encode_pieces, external_size,
};
use crate::process::{CONTEXT_REDS, Due, PauseWords, Process, Work};
use crate::term::{Atom, RawTerm, Term, am, tag};

bifs! {
    bif erlang:"term_to_binary"/1 => term_to_binary_1;
    bif erlang:"term_to_binary"/2 => term_to_binary_2;
    bif erlang:"term_to_iovec"/1 => term_to_iovec_1;
    bif erlang:"term_to_iovec"/2 => term_to_iovec_2;
    bif erlang:"external_size"/1 => external_size_1;
    bif erlang:"external_size"/2 => external_size_2;
    bif erlang:"binary_to_term"/1 => binary_to_term_1;
    bif erlang:"binary_to_term"/2 => binary_to_term_2;
}

impl From<TooLarge> for Raise<'static> {
    fn from(_: TooLarge) -> Self {
        system_limit()
    }
}

fn encode_options(list: Term<'_>) -> Result<EncodeOptions, Raise<'static>> {
    let mut options = EncodeOptions::default();
    for option in list.list_iter() {
        let option = option.map_err(|_| badarg())?;
        match option.as_atom() {
            Some(am::compressed) => options.level = -1,
            Some(am::deterministic) => options.deterministic = true,
            Some(am::local) => options.local = true,
            Some(_) => return Err(badarg()),
            None => {
                let pair = option.as_tuple().map(|t| t.elements());
                let Some([name, value]) = pair else {
                    return Err(badarg());
                };
                let value = value.as_small().ok_or_else(badarg)?;
                match (name.as_atom(), value) {
                    (Some(am::minor_version), 0..=2) => options.minor_version = value as u8,
                    (Some(am::compressed), 0..=9) => options.level = value as i32,
                    _ => return Err(badarg()),
                }
            }
        }
    }
    if options.deterministic && options.local {
        return Err(badarg());
    }
    Ok(options)
}

/// Bytes of compression in a time slice. Source: `TERM_TO_BINARY_COMPRESS_CHUNK` in `external.c`.
const COMPRESSED_PER_SLICE: usize = 1 << 18;
/// Steps of counting and of writing in a time slice.
const STEPS_PER_SLICE: usize = 32 * CONTEXT_REDS as usize;
/// Words of what ERTS makes each time it traps.
const STATE_WORDS: PauseWords = PauseWords::Each(8);

/// What an encoding costs: a step for each term, to count its bytes, and another to write it.
fn bill(work: EncodeWork) -> [Due; 2] {
    let steps = 2 * work.terms - 1 + work.looked_at + work.written;
    [
        Due::new(steps, STEPS_PER_SLICE),
        Due::new(work.compressed_bytes, COMPRESSED_PER_SLICE),
    ]
}

fn to_binary<'p>(p: &'p Process, term: Term<'p>, options: EncodeOptions) -> BifResult<'p> {
    if let Some(result) = p.pay_on(STATE_WORDS) {
        return result;
    }
    let (bytes, work) = encode_counted(term, options)?;
    let is_small = work.plain_bytes <= tag::ONHEAP_BINARY_LIMIT;
    let binary = p.binary_from_vec(bytes);
    if is_small {
        p.bump_reds(1);
        return Ok(binary);
    }
    p.pay(binary, &bill(work), STATE_WORDS)
}

fn term_to_binary_1<'p>(p: &'p Process, [term]: [Term<'p>; 1]) -> BifResult<'p> {
    to_binary(p, term, EncodeOptions::default())
}

fn term_to_binary_2<'p>(p: &'p Process, [term, options]: [Term<'p>; 2]) -> BifResult<'p> {
    to_binary(p, term, encode_options(options)?)
}

fn term_to_iovec_1<'p>(p: &'p Process, [term]: [Term<'p>; 1]) -> BifResult<'p> {
    to_iovec(p, term, EncodeOptions::default())
}

fn term_to_iovec_2<'p>(p: &'p Process, [term, options]: [Term<'p>; 2]) -> BifResult<'p> {
    to_iovec(p, term, encode_options(options)?)
}

fn to_iovec<'p>(p: &'p Process, term: Term<'p>, options: EncodeOptions) -> BifResult<'p> {
    if options.level != 0 {
        return Ok(p.list(&[to_binary(p, term, options)?]));
    }
    if let Some(result) = p.pay_on(STATE_WORDS) {
        return result;
    }
    let (pieces, work) = encode_pieces(term, options)?;
    let (mut written, mut ends) = (Vec::new(), Vec::new());
    for piece in &pieces {
        if let Piece::Bytes(bytes) = piece {
            written.extend_from_slice(bytes);
            ends.push(written.len());
        }
    }
    let mut parts = p.off_heap_parts(written, &ends).into_iter();
    let list = pieces.into_iter().map(|piece| match piece {
        Piece::Bytes(_) => parts.next().expect("as many parts"),
        Piece::Shared(bits) if bits.bit_len().is_multiple_of(8) => bits.term(),
        Piece::Shared(bits) => p.sub_bits(bits, 0, bits.byte_len() * 8),
    });
    let list: Vec<_> = list.collect();
    p.pay(p.list(&list), &bill(work), STATE_WORDS)
}

fn external_size_1<'p>(p: &'p Process, [term]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(p.unsigned(external_size(term, EncodeOptions::default())? as u64))
}

fn external_size_2<'p>(p: &'p Process, [term, options]: [Term<'p>; 2]) -> BifResult<'p> {
    Ok(p.unsigned(external_size(term, encode_options(options)?)? as u64))
}

fn binary_to_term_1<'p>(p: &'p Process, [a]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(from_binary(p, a, DecodeOptions::default())?.0)
}

fn binary_to_term_2<'p>(p: &'p Process, [a, list]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut options = DecodeOptions::default();
    let mut used = false;
    for option in list.list_iter() {
        match option.map_err(|_| badopt())?.as_atom() {
            Some(am::safe) => options.safe = true,
            Some(am::used) => used = true,
            _ => return Err(badopt()),
        }
    }
    let (term, size) = from_binary(p, a, options)?;
    if used {
        return Ok(p.tuple(&[term, p.unsigned(size as u64)]));
    }
    Ok(term)
}

/// A term in the making.
struct Decoding(Paused);

impl Work for Decoding {
    fn visit(&mut self, visit: &mut dyn FnMut(&mut [RawTerm])) {
        visit(self.0.values());
    }
    fn shown_as(&self) -> Option<(Atom, u8)> {
        Some((am::binary_to_term_trap, 1))
    }
}

fn from_binary<'p>(
    p: &'p Process,
    a: Term<'p>,
    options: DecodeOptions,
) -> Result<(Term<'p>, usize), Raise<'p>> {
    let bytes = a.as_binary().ok_or_else(badarg)?.bytes();
    const STEPS_PER_RED: i64 = 128;
    let paused = p.take_work::<Decoding>().map(|work| work.0);
    let is_first_turn = paused.is_none();
    let is_compressed = external::is_compressed(&bytes);
    let most = p.fcalls.get() * STEPS_PER_RED;
    let mut steps = most;
    match external::decode_some(p, &bytes, options, &mut steps, paused).map_err(|_| badarg())? {
        Decoded::Whole(term, used) => {
            // ERTS keeps a state as soon as it might pause: about half of the steps were made to size the term.
            let left = most - (most - steps) / 2;
            if is_first_turn && (is_compressed || used as i64 > left) {
                p.trap_state();
            }
            p.bump_reds((most - steps) / STEPS_PER_RED);
            Ok((term, used))
        }
        Decoded::Part(paused) => {
            if is_first_turn {
                p.trap_state();
            }
            Err(p.yield_with(Decoding(paused)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::external::encode;
    use crate::process::in_small_steps;
    use crate::term::compare::eq_exact;

    #[test]
    fn a_large_term_is_decoded_in_many_slices() {
        let heap = crate::heap::Heap::detached();
        let numbers: Vec<_> = (0..20_000).map(Term::small).collect();
        let tuple = heap.tuple(&[heap.list(&numbers), heap.binary(&[7; 100]), am::ok.term()]);
        let term = heap.list_with_tail(&[tuple, tuple], heap.big(true, &[1, 2, 3]));
        for (level, slices) in [(0, 100), (9, 200)] {
            let options = EncodeOptions {
                level,
                ..EncodeOptions::default()
            };
            let bytes = encode(term, options).expect("it fits");
            let mut p = Process::new(233);
            let binary = p.root(p.binary(&bytes));
            let turns = in_small_steps(
                &mut p,
                &binary,
                |p, binary| binary_to_term_1(p, [binary]),
                |found| eq_exact(found, term),
            );
            assert!(turns >= slices, "{turns} of {} bytes", bytes.len());
        }
    }
}
