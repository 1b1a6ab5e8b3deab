//! The native functions of `zstd`: contexts that compress and expand, and dictionaries. Source: `zstd_nif.c`, OTP 29.
//!
//! Only the process that made a context may use it. Dictionaries belong to all.

use std::sync::Arc;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use super::{atom, error, int, new_object, object, ok, uint64};
use crate::bif::{BifResult, Raise, badarg, bifs};
use crate::heap::Heap;
use crate::process::Process;
use crate::sys::zstd::{
    self as z, CompressDictionary, CompressParameter as C, Compressor, DecompressDictionary,
    DecompressParameter, Decompressor, EndDirective,
};
use crate::term::{Pid, Term, am};
use crate::value::{iolist, map};

bifs! {
    all own;
    bif zstd:"init_compress_nif"/0 => init_compress_nif_0;
    bif zstd:"init_decompress_nif"/0 => init_decompress_nif_0;
    bif zstd:"load_compress_dictionary_nif"/2 => load_compress_dictionary_nif_2;
    bif zstd:"load_decompress_dictionary_nif"/2 => load_decompress_dictionary_nif_2;
    bif zstd:"ref_compress_dictionary_nif"/2 => ref_compress_dictionary_nif_2;
    bif zstd:"ref_decompress_dictionary_nif"/2 => ref_decompress_dictionary_nif_2;
    bif zstd:"set_compress_parameter_nif"/3 => set_compress_parameter_nif_3;
    bif zstd:"get_compress_parameter_nif"/2 => get_compress_parameter_nif_2;
    bif zstd:"set_decompress_parameter_nif"/3 => set_decompress_parameter_nif_3;
    bif zstd:"get_decompress_parameter_nif"/2 => get_decompress_parameter_nif_2;
    bif zstd:"set_pledged_src_size_nif"/2 => set_pledged_src_size_nif_2;
    bif zstd:"compress_stream_nif"/3 => compress_stream_nif_3;
    bif zstd:"decompress_stream_nif"/3 => decompress_stream_nif_3;
    bif zstd:"compress_reset_nif"/1 => compress_reset_nif_1;
    bif zstd:"decompress_reset_nif"/1 => decompress_reset_nif_1;
    bif zstd:"compress_close_nif"/1 => compress_close_nif_1;
    bif zstd:"decompress_close_nif"/1 => decompress_close_nif_1;
    bif zstd:"create_cdict_nif"/2 => create_cdict_nif_2;
    bif zstd:"create_ddict_nif"/1 => create_ddict_nif_1;
    bif zstd:"getDictId_fromCDict_nif"/1 => get_dict_id_from_cdict_nif_1;
    bif zstd:"getDictId_fromDDict_nif"/1 => get_dict_id_from_ddict_nif_1;
    bif zstd:"getDictId_fromDict_nif"/1 => get_dict_id_from_dict_nif_1;
    bif zstd:"getDictId_fromFrame_nif"/1 => get_dict_id_from_frame_nif_1;
    bif zstd:"get_frame_header_nif"/1 => get_frame_header_nif_1;
}

/// A context, which one process may use.
struct Context<T> {
    owner: Pid,
    /// `None` when it is closed.
    codec: Mutex<Option<T>>,
}

/// What expands, and whether it has begun.
struct Expander {
    decompressor: Decompressor,
    in_use: bool,
}

impl Expander {
    fn reset(&mut self) {
        self.decompressor.reset();
        self.in_use = false;
    }
}

/// `{zstd_error, Text}`.
fn zstd_error<'p>(p: &'p Heap, text: z::Error) -> Raise<'p> {
    let text = p.binary(text.as_bytes());
    Raise::Error(p.tuple(&[atom("zstd_error"), text]))
}

/// `{badarg, {What, Term}}`.
fn invalid<'p>(p: &'p Heap, what: &str, term: Term<'p>) -> Raise<'p> {
    let why = p.tuple(&[atom(what), term]);
    Raise::Error(p.tuple(&[am::badarg.term(), why]))
}

fn new_context<T: Send + 'static>(p: &Process, codec: Option<T>) -> Term<'_> {
    let (owner, codec) = (p.pid(), Mutex::new(codec));
    new_object(p, Context { owner, codec })
}

/// The context behind a reference, for its owner.
fn context<'p, T: Send + 'static>(
    p: &'p Process,
    term: Term<'p>,
) -> Result<MappedMutexGuard<'p, T>, Raise<'p>> {
    let context = object::<Context<T>>(term)?;
    let codec = MutexGuard::try_map(context.codec.lock(), Option::as_mut);
    let codec = codec.map_err(|_| badarg())?;
    if context.owner != p.pid() {
        return Err(Raise::Error(atom("not_on_controlling_process")));
    }
    Ok(codec)
}

fn compressor<'p>(
    p: &'p Process,
    term: Term<'p>,
) -> Result<MappedMutexGuard<'p, Compressor>, Raise<'p>> {
    context(p, term)
}

fn expander<'p>(
    p: &'p Process,
    term: Term<'p>,
) -> Result<MappedMutexGuard<'p, Expander>, Raise<'p>> {
    context(p, term)
}

/// `ok`, or zstd's error.
fn done<'p>(p: &'p Process, result: Result<(), z::Error>) -> BifResult<'p> {
    result.map_err(|text| zstd_error(p, text))?;
    Ok(am::ok.term())
}

fn init_compress_nif_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    Ok(new_context(p, Compressor::new()))
}

fn init_decompress_nif_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let expander = |decompressor| Expander {
        decompressor,
        in_use: false,
    };
    Ok(new_context(p, Decompressor::new().map(expander)))
}

fn load_compress_dictionary_nif_2<'p>(
    p: &'p Process,
    [context, bytes]: [Term<'p>; 2],
) -> BifResult<'p> {
    let mut compressor = compressor(p, context)?;
    done(p, compressor.load(&iolist::to_vec(bytes)?))
}

fn load_decompress_dictionary_nif_2<'p>(
    p: &'p Process,
    [context, bytes]: [Term<'p>; 2],
) -> BifResult<'p> {
    let mut expander = expander(p, context)?;
    done(p, expander.decompressor.load(&iolist::to_vec(bytes)?))
}

fn ref_compress_dictionary_nif_2<'p>(
    p: &'p Process,
    [context, dictionary]: [Term<'p>; 2],
) -> BifResult<'p> {
    let mut compressor = compressor(p, context)?;
    done(p, compressor.refer(object(dictionary)?))
}

fn ref_decompress_dictionary_nif_2<'p>(
    p: &'p Process,
    [context, dictionary]: [Term<'p>; 2],
) -> BifResult<'p> {
    let mut expander = expander(p, context)?;
    done(p, expander.decompressor.refer(object(dictionary)?))
}

/// What a value of a parameter is in Erlang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer,
    Flag,
    Strategy,
}

/// The parameters of compression.
const PARAMETERS: [(&str, C, Kind); 17] = [
    (
        "compressionLevel",
        C::ZSTD_c_compressionLevel,
        Kind::Integer,
    ),
    ("windowLog", C::ZSTD_c_windowLog, Kind::Integer),
    ("hashLog", C::ZSTD_c_hashLog, Kind::Integer),
    ("chainLog", C::ZSTD_c_chainLog, Kind::Integer),
    ("searchLog", C::ZSTD_c_searchLog, Kind::Integer),
    ("minMatch", C::ZSTD_c_minMatch, Kind::Integer),
    ("targetLength", C::ZSTD_c_targetLength, Kind::Integer),
    ("strategy", C::ZSTD_c_strategy, Kind::Strategy),
    (
        "targetCBlockSize",
        C::ZSTD_c_targetCBlockSize,
        Kind::Integer,
    ),
    (
        "enableLongDistanceMatching",
        C::ZSTD_c_enableLongDistanceMatching,
        Kind::Flag,
    ),
    ("ldmHashLog", C::ZSTD_c_ldmHashLog, Kind::Integer),
    ("ldmMinMatch", C::ZSTD_c_ldmMinMatch, Kind::Integer),
    (
        "ldmBucketSizeLog",
        C::ZSTD_c_ldmBucketSizeLog,
        Kind::Integer,
    ),
    ("ldmHashRateLog", C::ZSTD_c_ldmHashRateLog, Kind::Integer),
    ("contentSizeFlag", C::ZSTD_c_contentSizeFlag, Kind::Flag),
    ("checksumFlag", C::ZSTD_c_checksumFlag, Kind::Flag),
    ("dictIDFlag", C::ZSTD_c_dictIDFlag, Kind::Flag),
];

/// Names of the strategies, which are numbers from 0.
const STRATEGIES: [&str; 10] = [
    "default", "fast", "dfast", "greedy", "lazy", "lazy2", "btlazy2", "btopt", "btultra",
    "btultra2",
];

/// The parameter of compression that a key names.
fn parameter<'p>(p: &'p Process, key: Term<'p>) -> Result<(C, Kind), Raise<'p>> {
    let name = key.as_atom().map(|key| key.name());
    let row = PARAMETERS.iter().find(|row| Some(row.0) == name);
    let (_, parameter, kind) = row.ok_or_else(|| invalid(p, "invalid_key", key))?;
    Ok((*parameter, *kind))
}

fn set_compress_parameter_nif_3<'p>(
    p: &'p Process,
    [context, key, value]: [Term<'p>; 3],
) -> BifResult<'p> {
    let mut compressor = compressor(p, context)?;
    let (parameter, kind) = parameter(p, key)?;
    let number = match kind {
        Kind::Integer => int(value).ok(),
        Kind::Flag => value.as_bool().map(i32::from),
        Kind::Strategy => {
            let name = value.as_atom().map(|value| value.name());
            let at = STRATEGIES.iter().position(|known| Some(*known) == name);
            at.map(|at| at as i32)
        }
    };
    let number = number.ok_or_else(|| invalid(p, "invalid_value", value))?;
    done(p, compressor.set(parameter, number))
}

fn get_compress_parameter_nif_2<'p>(
    p: &'p Process,
    [context, key]: [Term<'p>; 2],
) -> BifResult<'p> {
    let compressor = compressor(p, context)?;
    let (parameter, kind) = parameter(p, key)?;
    let value = compressor.get(parameter);
    let value = value.map_err(|text| zstd_error(p, text))?;
    Ok(match kind {
        Kind::Integer => Term::small(value.into()),
        // As in OTP: it looks at the result of the call, which is 0, and not at the value.
        Kind::Flag => Term::bool(false),
        Kind::Strategy => {
            let name = usize::try_from(value)
                .ok()
                .and_then(|at| STRATEGIES.get(at));
            atom(name.ok_or_else(badarg)?)
        }
    })
}

fn window_log<'p>(p: &'p Process, key: Term<'p>) -> Result<DecompressParameter, Raise<'p>> {
    if key.same(atom("windowLogMax")) {
        return Ok(DecompressParameter::ZSTD_d_windowLogMax);
    }
    Err(invalid(p, "invalid_key", key))
}

fn set_decompress_parameter_nif_3<'p>(
    p: &'p Process,
    [context, key, value]: [Term<'p>; 3],
) -> BifResult<'p> {
    let mut expander = expander(p, context)?;
    let value = int(value)?;
    let parameter = window_log(p, key)?;
    done(p, expander.decompressor.set(parameter, value))
}

fn get_decompress_parameter_nif_2<'p>(
    p: &'p Process,
    [context, key]: [Term<'p>; 2],
) -> BifResult<'p> {
    let expander = expander(p, context)?;
    let value = expander.decompressor.get(window_log(p, key)?);
    let value = value.map_err(|text| zstd_error(p, text))?;
    Ok(Term::small(value.into()))
}

fn set_pledged_src_size_nif_2<'p>(
    p: &'p Process,
    [context, bytes]: [Term<'p>; 2],
) -> BifResult<'p> {
    let mut compressor = compressor(p, context)?;
    done(p, compressor.pledge(uint64(bytes).ok_or_else(badarg)?))
}

/// What ends with the input: `stream/2`, `flush/1` and `finish/2`.
fn directive(term: Term<'_>) -> Result<EndDirective, Raise<'static>> {
    match term.as_small() {
        Some(0) => Ok(EndDirective::ZSTD_e_continue),
        Some(1) => Ok(EndDirective::ZSTD_e_flush),
        Some(2) => Ok(EndDirective::ZSTD_e_end),
        _ => Err(badarg()),
    }
}

/// Bytes of input that cost a percent of a time slice.
const PERCENT_BYTES: usize = 1024;

/// Has `step` take `input`, until there is no more of it or `bytes` bytes of output are full.
fn codec<'p>(
    p: &'p Process,
    input: Term<'p>,
    end: EndDirective,
    bytes: usize,
    mut step: impl FnMut(&[u8], &mut [u8]) -> Result<z::Step, z::Error>,
) -> BifResult<'p> {
    let bits = input.as_binary().ok_or_else(badarg)?;
    let text = bits.bytes();
    let mut output = vec![0; bytes];
    let (mut consumed, mut produced) = (0, 0);
    let remaining = loop {
        let step = step(&text[consumed..], &mut output[produced..]);
        let step = step.map_err(|text| zstd_error(p, text))?;
        consumed += step.consumed;
        produced += step.produced;
        if consumed == text.len() || produced == output.len() {
            break step.remaining;
        }
    };
    p.consume_percent((consumed / PERCENT_BYTES).clamp(1, 100));
    let is_full = produced == output.len();
    output.truncate(produced);
    output.shrink_to_fit();
    let output = p.binary_from_vec(output);
    if consumed < text.len() {
        let rest = p.sub_bits(bits, consumed * 8, text.len() * 8);
        return Ok(p.tuple(&[atom("continue"), rest, output]));
    }
    let tag = match end {
        EndDirective::ZSTD_e_continue => "continue",
        _ if is_full && remaining > 0 => "flush",
        _ => "done",
    };
    Ok(p.tuple(&[atom(tag), output]))
}

fn compress_stream_nif_3<'p>(
    p: &'p Process,
    [context, input, end]: [Term<'p>; 3],
) -> BifResult<'p> {
    let mut compressor = compressor(p, context)?;
    let work = directive(end).map_err(Into::into).and_then(|end| {
        let step = |from: &[u8], into: &mut [u8]| compressor.step(from, into, end);
        codec(p, input, end, z::output_bytes().0, step)
    });
    if work.is_err() {
        compressor.reset();
    }
    work
}

/// Bytes of output of the first step: all that there will be, if that is known and little.
fn first_output_bytes(input: Term<'_>) -> Result<usize, Raise<'static>> {
    let input = input.as_binary().ok_or_else(badarg)?.bytes();
    let known = z::decompressed_bytes(&input).and_then(|bytes| usize::try_from(bytes).ok());
    let most = z::output_bytes().1;
    Ok(known.map_or(most, |known| known.min(most)))
}

fn decompress_stream_nif_3<'p>(
    p: &'p Process,
    [context, input, end]: [Term<'p>; 3],
) -> BifResult<'p> {
    let mut expander = expander(p, context)?;
    let bytes = if expander.in_use {
        z::output_bytes().1
    } else {
        first_output_bytes(input)?
    };
    expander.in_use = true;
    let work = directive(end).map_err(Into::into).and_then(|end| {
        let step = |from: &[u8], into: &mut [u8]| expander.decompressor.step(from, into);
        codec(p, input, end, bytes, step)
    });
    if work.is_err() {
        expander.reset();
    }
    work
}

fn compress_reset_nif_1<'p>(p: &'p Process, [context]: [Term<'p>; 1]) -> BifResult<'p> {
    compressor(p, context)?.reset();
    Ok(am::ok.term())
}

fn decompress_reset_nif_1<'p>(p: &'p Process, [context]: [Term<'p>; 1]) -> BifResult<'p> {
    expander(p, context)?.reset();
    Ok(am::ok.term())
}

fn close<'p, T: Send + 'static>(p: &'p Process, term: Term<'p>) -> BifResult<'p> {
    drop(context::<T>(p, term)?);
    *object::<Context<T>>(term)?.codec.lock() = None;
    Ok(am::ok.term())
}

fn compress_close_nif_1<'p>(p: &'p Process, [context]: [Term<'p>; 1]) -> BifResult<'p> {
    close::<Compressor>(p, context)
}

fn decompress_close_nif_1<'p>(p: &'p Process, [context]: [Term<'p>; 1]) -> BifResult<'p> {
    close::<Expander>(p, context)
}

/// A reference to a dictionary; `{error, Why}` for bytes that zstd refuses.
fn new_dictionary<'p, T: Send + Sync + 'static>(
    p: &'p Process,
    made: Option<T>,
    why: &str,
) -> Term<'p> {
    match made {
        Some(dictionary) => new_object(p, Arc::new(dictionary)),
        None => error(p, atom(why)),
    }
}

fn create_cdict_nif_2<'p>(p: &'p Process, [bytes, level]: [Term<'p>; 2]) -> BifResult<'p> {
    let bytes = bytes.as_binary().ok_or_else(badarg)?.bytes();
    let made = CompressDictionary::new(&bytes, int(level)?);
    Ok(new_dictionary(p, made, "invalid_compress_dict"))
}

fn create_ddict_nif_1<'p>(p: &'p Process, [bytes]: [Term<'p>; 1]) -> BifResult<'p> {
    let bytes = bytes.as_binary().ok_or_else(badarg)?.bytes();
    let made = DecompressDictionary::new(&bytes);
    Ok(new_dictionary(p, made, "invalid_decompress_dict"))
}

fn get_dict_id_from_cdict_nif_1<'p>(_p: &'p Process, [dictionary]: [Term<'p>; 1]) -> BifResult<'p> {
    let dictionary = object::<Arc<CompressDictionary>>(dictionary)?;
    Ok(Term::small(dictionary.id().into()))
}

fn get_dict_id_from_ddict_nif_1<'p>(_p: &'p Process, [dictionary]: [Term<'p>; 1]) -> BifResult<'p> {
    let dictionary = object::<Arc<DecompressDictionary>>(dictionary)?;
    Ok(Term::small(dictionary.id().into()))
}

fn get_dict_id_from_dict_nif_1<'p>(_p: &'p Process, [bytes]: [Term<'p>; 1]) -> BifResult<'p> {
    let id = z::dictionary_id(&iolist::to_vec(bytes)?);
    Ok(Term::small(id.into()))
}

fn get_dict_id_from_frame_nif_1<'p>(_p: &'p Process, [bytes]: [Term<'p>; 1]) -> BifResult<'p> {
    let id = z::frame_dictionary_id(&iolist::to_vec(bytes)?);
    Ok(Term::small(id.into()))
}

fn get_frame_header_nif_1<'p>(p: &'p Process, [frame]: [Term<'p>; 1]) -> BifResult<'p> {
    let header = z::frame_header(&iolist::to_vec(frame)?);
    let header = header.map_err(|text| zstd_error(p, text))?;
    let frame_type = if header.is_skippable {
        "ZSTD_skippableFrame"
    } else {
        "ZSTD_frame"
    };
    let number = |number: u32| Term::small(number.into());
    let content = header.content_bytes;
    let pairs = [
        (
            atom("frameContentSize"),
            content.map_or(am::undefined.term(), |bytes| p.unsigned(bytes)),
        ),
        (atom("windowSize"), p.unsigned(header.window_bytes)),
        (atom("blockSizeMax"), number(header.block_bytes_max)),
        (atom("frameType"), atom(frame_type)),
        (atom("headerSize"), number(header.header_bytes)),
        (atom("dictID"), number(header.dictionary_id)),
        (atom("checksumFlag"), Term::bool(header.has_checksum)),
    ];
    Ok(ok(p, map::from_pairs(p, &pairs)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'p>(result: BifResult<'p>) -> Term<'p> {
        result.ok().expect("no exception")
    }

    fn text(result: BifResult<'_>) -> String {
        match result {
            Ok(term) => term.display().to_string(),
            Err(crate::process::Leave::Raise(Raise::Error(reason))) => reason.display().to_string(),
            Err(_) => "leaves".to_owned(),
        }
    }

    #[test]
    fn a_stream_comes_back_in_parts() {
        let p = &Process::new(233);
        let whole: Vec<u8> = (0..300_000u32).map(|i| (i / 7) as u8).collect();
        let context = value(init_compress_nif_0(p, []));
        let packed = value(compress_stream_nif_3(
            p,
            [context, p.binary(&whole), Term::small(2)],
        ));
        let packed = packed.as_tuple().unwrap();
        assert!(packed.get(0).same(atom("done")));
        let context = value(init_decompress_nif_0(p, []));
        let (mut input, mut out) = (packed.get(1), Vec::new());
        loop {
            let step = value(decompress_stream_nif_3(p, [context, input, Term::small(2)]));
            let step = step.as_tuple().unwrap();
            let made = step.get(step.arity() - 1);
            out.extend(made.as_binary().unwrap().to_vec());
            match step.get(0).as_atom().unwrap().name() {
                "continue" => input = step.get(1),
                "flush" => input = p.binary(b""),
                _ => break,
            }
        }
        assert!(out == whole);
    }

    #[test]
    fn a_context_is_its_owners_until_it_is_closed() {
        let (p, other) = (&Process::new(233), &Process::new(233));
        let context = value(init_compress_nif_0(p, []));
        if other.pid() != p.pid() {
            let answer = text(compress_reset_nif_1(other, [context]));
            assert_eq!(answer, "not_on_controlling_process");
        }
        assert_eq!(text(decompress_reset_nif_1(p, [context])), "badarg");
        assert_eq!(text(compress_close_nif_1(p, [context])), "ok");
        assert_eq!(text(compress_close_nif_1(p, [context])), "badarg");
        assert_eq!(text(compress_reset_nif_1(p, [context])), "badarg");
    }
}
