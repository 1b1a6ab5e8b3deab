//! The BIFs that convert terms to the external term format, and back.

use super::{BifResult, Control, Leave, Raise, badarg, badopt, bifs, system_limit};
use crate::external::{
    self, Compressing, Compression, DecodeOptions, Decoded, EncodeOptions, Encoder, Paused,
    PausedEncoder, Progress, STEPS_PER_REDUCTION, TooLarge, external_size,
};
use crate::heap::keeps;
use crate::process::{CONTEXT_REDS, Process, work};
use crate::term::{Term, am, tag};

bifs! {
    all own;
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

pub(super) fn encode_options(list: Term<'_>) -> Result<EncodeOptions, Raise<'static>> {
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
const STEPS_PER_SLICE: usize = STEPS_PER_REDUCTION * CONTEXT_REDS as usize;

/// A binary in the making.
struct Encoding<'p> {
    stage: Stage<'p>,
    /// Steps paid for.
    paid: usize,
}

enum Stage<'p> {
    Writing { encoder: PausedEncoder<'p> },
    Compressing { compression: Compression },
}

keeps! { enum Stage { Writing { encoder; } Compressing { ; compression } } }
work! { struct Encoding { stage; paid } }

impl<'p> Encoding<'p> {
    /// Puts the rest off to the next slice.
    fn put_off(self, p: &'p Process) -> Control<'static> {
        /// Words of what ERTS makes each time it traps.
        const STATE_WORDS: usize = 8;
        p.trap_words(STATE_WORDS);
        p.yield_with(self)
    }
}

/// Units of which `per_slice` are worth a time slice, as many as the reductions left pay for.
fn payable(p: &Process, per_slice: usize) -> usize {
    p.reds_left() * per_slice / CONTEXT_REDS as usize
}

fn pay(p: &Process, units: usize, per_slice: usize) {
    p.bump_reds((units * CONTEXT_REDS as usize / per_slice) as i64);
}

/// Writes on until all is written and paid for.
fn write_on<'p>(
    p: &'p Process,
    mut encoder: Encoder<'p>,
    paid: usize,
) -> Result<Encoder<'p>, Leave<'static>> {
    let payable = paid + payable(p, STEPS_PER_SLICE);
    let progress = encoder.run(payable)?;
    if progress == Progress::Whole && encoder.is_small() {
        p.bump_reds(1);
    } else if encoder.steps() > payable {
        let encoder = encoder.pause();
        let stage = Stage::Writing { encoder };
        let paid = payable;
        return Err(Encoding { stage, paid }.put_off(p).into());
    } else {
        pay(p, encoder.steps() - paid, STEPS_PER_SLICE);
    }
    Ok(encoder)
}

/// Compresses on until all is compressed.
fn compress_on<'p>(p: &'p Process, mut compression: Compression) -> BifResult<'p> {
    let before = compression.written_bytes();
    if !compression.run(payable(p, COMPRESSED_PER_SLICE)) {
        let (stage, paid) = (Stage::Compressing { compression }, 0);
        return Err(Encoding { stage, paid }.put_off(p).into());
    }
    let written = compression.written_bytes() - before;
    pay(p, written, COMPRESSED_PER_SLICE);
    Ok(p.binary_from_vec(compression.finish()))
}

fn to_binary<'p>(p: &'p Process, term: Term<'p>, options: EncodeOptions) -> BifResult<'p> {
    let begun = p.take_work::<Encoding>().map(|work| *work);
    let encoder = match begun {
        None => write_on(p, Encoder::with_version(term, options, None), 0)?,
        Some(Encoding { stage, paid }) => match stage {
            Stage::Writing { encoder } => write_on(p, encoder.resume(), paid)?,
            Stage::Compressing { compression } => return compress_on(p, compression),
        },
    };
    let bytes = encoder.into_bytes();
    if options.level == 0 {
        return Ok(p.binary_from_vec(bytes));
    }
    let is_small = bytes.len() <= tag::ONHEAP_BINARY_LIMIT;
    match Compression::begin(bytes, options.level) {
        Compressing::More(mut compression) if is_small => {
            compression.run(usize::MAX);
            Ok(p.binary_from_vec(compression.finish()))
        }
        Compressing::More(compression) => compress_on(p, compression),
        Compressing::Plain(bytes) => Ok(p.binary_from_vec(bytes)),
    }
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
    let begun = p.take_work::<Encoding>().map(|work| *work);
    let (encoder, paid) = match begun {
        Some(Encoding {
            stage: Stage::Writing { encoder },
            paid,
        }) => (encoder.resume(), paid),
        _ => {
            let most = Some(tag::ONHEAP_BINARY_LIMIT);
            (Encoder::with_version(term, options, most), 0)
        }
    };
    let (written, shared) = write_on(p, encoder, paid)?.into_parts();
    let mut ends: Vec<_> = shared.iter().map(|(at, _)| *at).collect();
    ends.push(written.len());
    ends.dedup();
    let mut parts = p
        .off_heap_parts(written, &ends)
        .into_iter()
        .zip(ends)
        .peekable();
    let mut list = Vec::new();
    for (at, bits) in shared {
        list.extend(parts.next_if(|(_, end)| *end == at).map(|(part, _)| part));
        list.push(match bits.bit_len() % 8 {
            0 => bits.term(),
            _ => p.sub_bits(bits, 0, bits.byte_len() * 8),
        });
    }
    list.extend(parts.map(|(part, _)| part));
    Ok(p.list(&list))
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
            _ => return Err(badopt().into()),
        }
    }
    let (term, size) = from_binary(p, a, options)?;
    if used {
        return Ok(p.tuple(&[term, p.unsigned(size as u64)]));
    }
    Ok(term)
}

/// A term in the making.
struct Decoding<'p> {
    paused: Paused<'p>,
}

work! { struct Decoding { paused; } shown as |_| Some((am::binary_to_term_trap, 1)) }

fn from_binary<'p>(
    p: &'p Process,
    a: Term<'p>,
    options: DecodeOptions,
) -> Result<(Term<'p>, usize), Leave<'p>> {
    let bytes = a.as_binary().ok_or_else(badarg)?.bytes();
    const STEPS_PER_RED: i64 = 128;
    let paused = p.take_work::<Decoding>().map(|work| work.paused);
    let is_first_slice = paused.is_none();
    let is_compressed = external::is_compressed(&bytes);
    let most = p.fcalls.get() * STEPS_PER_RED;
    let mut steps = most;
    match external::decode_some(p, &bytes, options, &mut steps, paused).map_err(|_| badarg())? {
        Decoded::Whole(term, used) => {
            // ERTS keeps a state as soon as it might pause: about half of the steps were made to size the term.
            let left = most - (most - steps) / 2;
            if is_first_slice && (is_compressed || used as i64 > left) {
                p.trap_state();
            }
            p.bump_reds((most - steps) / STEPS_PER_RED);
            Ok((term, used))
        }
        Decoded::Part(paused) => {
            if is_first_slice {
                p.trap_state();
            }
            Err(p.yield_with(Decoding { paused }).into())
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

    #[test]
    fn a_large_term_is_encoded_in_many_slices() {
        let mut p = Process::new(233);
        let numbers: Vec<_> = (0..5000).map(Term::small).collect();
        let pairs: Vec<_> = (0..200).map(|n| (Term::small(n), am::ok.term())).collect();
        let shared = p.binary(&[7; 100]);
        let parts = [
            p.list(&numbers),
            p.tuple(&numbers),
            crate::value::map::from_pairs(&p, &pairs),
            crate::value::map::from_pairs(&p, &pairs[..30]),
            p.list(&[shared, p.big(true, &[1, 2, 3]), shared]),
        ];
        let term = p.root(p.list(&parts));
        for level in [0, 6] {
            let options = EncodeOptions {
                level,
                ..EncodeOptions::default()
            };
            let whole = encode(p.get(&term), options).expect("it fits");
            let turns = in_small_steps(
                &mut p,
                &term,
                |p, term| to_binary(p, term, options),
                |found| found.as_binary().expect("a binary").bytes() == whole,
            );
            assert!(turns > 60, "{turns} of {} bytes", whole.len());
        }
        let whole = encode(p.get(&term), EncodeOptions::default()).expect("it fits");
        let turns = in_small_steps(
            &mut p,
            &term,
            |p, term| to_iovec(p, term, EncodeOptions::default()),
            |found| crate::value::iolist::to_vec(found).as_ref() == Ok(&whole),
        );
        assert!(turns > 60, "{turns}");
    }
}
