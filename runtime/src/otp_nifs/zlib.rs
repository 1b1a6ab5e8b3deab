//! The native functions of `zlib`: compression streams. Source: `zlib_nif.c`, OTP 29.
//!
//! `enqueue_nif/2` queues input, and `deflate_nif/4` and `inflate_nif/4` work it off in chunks. Only the controlling
//! process may call them.

use std::collections::VecDeque;

use parking_lot::{Mutex, MutexGuard};

use super::{atom, inspect_iovec, int, new_object, object, ok};
use crate::bif::{BifResult, Raise, badarg, bifs};
use crate::heap::Message;
use crate::process::Process;
use crate::sys::zlib::{self as z, Direction, Stream};
use crate::term::{Pid, Term, View, am};
use crate::value::iolist;

bifs! {
    all own;
    bif zlib:"open_nif"/0 => open_nif_0;
    bif zlib:"close_nif"/1 => close_nif_1;
    bif zlib:"set_controller_nif"/2 => set_controller_nif_2;
    bif zlib:"deflateInit_nif"/6 => deflate_init_nif_6;
    bif zlib:"deflateSetDictionary_nif"/2 => deflate_set_dictionary_nif_2;
    bif zlib:"deflateReset_nif"/1 => deflate_reset_nif_1;
    bif zlib:"deflateEnd_nif"/1 => deflate_end_nif_1;
    bif zlib:"deflateParams_nif"/3 => deflate_params_nif_3;
    bif zlib:"deflate_nif"/4 => deflate_nif_4;
    bif zlib:"inflateInit_nif"/3 => inflate_init_nif_3;
    bif zlib:"inflateSetDictionary_nif"/2 => inflate_set_dictionary_nif_2;
    bif zlib:"inflateGetDictionary_nif"/1 => inflate_get_dictionary_nif_1;
    bif zlib:"inflateReset_nif"/1 => inflate_reset_nif_1;
    bif zlib:"inflateEnd_nif"/1 => inflate_end_nif_1;
    bif zlib:"inflate_nif"/4 => inflate_nif_4;
    bif zlib:"getStash_nif"/1 => get_stash_nif_1;
    bif zlib:"clearStash_nif"/1 => clear_stash_nif_1;
    bif zlib:"setStash_nif"/2 => set_stash_nif_2;
    bif zlib:"enqueue_nif"/2 => enqueue_nif_2;
}

/// What happens to input behind the end of a stream that was expanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AtEnd {
    /// `data_error`.
    Error,
    /// A new stream begins.
    Reset,
    /// It is dropped.
    #[default]
    Cut,
}

#[derive(Default)]
enum Codec {
    #[default]
    None,
    Open(Stream),
    Closed,
}

#[derive(Default)]
struct Zlib {
    controller: Option<Pid>,
    codec: Codec,
    at_end: AtEnd,
    is_raw: bool,
    end_seen: bool,
    input: Queue,
    /// A term that `zlib.erl` keeps between calls.
    stash: Option<Message>,
}

type Shared = Mutex<Zlib>;

/// Input that has not been worked off.
#[derive(Default)]
struct Queue {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that have been.
    head_done: usize,
    size: usize,
}

impl Queue {
    fn push(&mut self, piece: Vec<u8>) {
        if !piece.is_empty() {
            self.size += piece.len();
            self.pieces.push_back(piece);
        }
    }

    fn consume(&mut self, n: usize) {
        self.size -= n;
        self.head_done += n;
        if self
            .pieces
            .front()
            .is_some_and(|head| head.len() == self.head_done)
        {
            self.pieces.pop_front();
            self.head_done = 0;
        }
    }
}

fn raise<T>(reason: &str) -> Result<T, Raise<'static>> {
    Err(Raise::Error(atom(reason)))
}

/// What a function of `zlib` answers for one of zlib's codes.
fn code_result(code: z::Code) -> BifResult<'static> {
    Ok(match code {
        z::Z_OK => am::ok.term(),
        z::Z_STREAM_END => atom("stream_end"),
        z::Z_STREAM_ERROR => raise("stream_error")?,
        z::Z_DATA_ERROR => raise("data_error")?,
        z::Z_MEM_ERROR => atom("mem_error"),
        z::Z_BUF_ERROR => atom("buf_error"),
        z::Z_VERSION_ERROR => atom("version_error"),
        _ => atom("unknown_error"),
    })
}

/// The stream behind a reference, for its controlling process.
fn zlib<'p>(p: &'p Process, t: Term<'p>) -> Result<MutexGuard<'p, Zlib>, Raise<'static>> {
    let shared = object::<Shared>(t)?;
    // Held by another process only for the length of a call that this check then refuses.
    let zlib = shared.lock();
    if zlib.controller != Some(p.pid()) {
        return raise("not_on_controlling_process");
    }
    Ok(zlib)
}

impl Zlib {
    fn stream(&mut self, direction: Direction) -> Result<&mut Stream, Raise<'static>> {
        match &mut self.codec {
            Codec::Open(stream) if stream.direction() == direction => Ok(stream),
            _ => raise("not_initialized"),
        }
    }

    fn reset_input(&mut self) {
        self.input = Queue::default();
        self.stash = None;
    }

    fn init(&mut self, opened: Result<Stream, z::Code>, window_bits: i32) -> BifResult<'static> {
        match opened {
            Ok(stream) => {
                self.codec = Codec::Open(stream);
                self.end_seen = false;
                self.is_raw = window_bits < 0;
                Ok(am::ok.term())
            }
            Err(code) => code_result(code),
        }
    }

    fn reset(&mut self, direction: Direction) -> BifResult<'static> {
        let code = self.stream(direction)?.reset();
        self.end_seen = false;
        self.reset_input();
        code_result(code)
    }
}

fn open_nif_0<'p>(p: &'p Process, []: [Term<'p>; 0]) -> BifResult<'p> {
    let zlib = Zlib {
        controller: Some(p.pid()),
        ..Zlib::default()
    };
    Ok(new_object(p, Shared::new(zlib)))
}

fn close_nif_1<'p>(p: &'p Process, [stream]: [Term<'p>; 1]) -> BifResult<'p> {
    let mut zlib = zlib(p, stream)?;
    if matches!(zlib.codec, Codec::Closed) {
        raise("not_initialized")?;
    }
    zlib.codec = Codec::Closed;
    zlib.stash = None;
    Ok(am::ok.term())
}

fn set_controller_nif_2<'p>(p: &'p Process, [stream, pid]: [Term<'p>; 2]) -> BifResult<'p> {
    object::<Shared>(stream)?;
    let pid = pid.as_pid().ok_or_else(badarg)?;
    zlib(p, stream)?.controller = Some(pid);
    Ok(am::ok.term())
}

/// C integers, or `badarg`; the reference is looked at first, as ERTS does.
fn ints<const N: usize>(
    stream: Term<'_>,
    numbers: [Term<'_>; N],
) -> Result<[i32; N], Raise<'static>> {
    object::<Shared>(stream)?;
    let mut out = [0; N];
    for (out, number) in out.iter_mut().zip(numbers) {
        *out = int(number)?;
    }
    Ok(out)
}

fn deflate_init_nif_6<'p>(
    p: &'p Process,
    [stream, level, method, window_bits, mem_level, strategy]: [Term<'p>; 6],
) -> BifResult<'p> {
    let numbers = [level, method, window_bits, mem_level, strategy];
    let [level, method, window_bits, mem_level, strategy] = ints(stream, numbers)?;
    let mut zlib = zlib(p, stream)?;
    if !matches!(zlib.codec, Codec::None) {
        raise("already_initialized")?;
    }
    let opened = Stream::deflate(level, method, window_bits, mem_level, strategy);
    zlib.init(opened, window_bits)
}

fn deflate_set_dictionary_nif_2<'p>(
    p: &'p Process,
    [stream, dictionary]: [Term<'p>; 2],
) -> BifResult<'p> {
    object::<Shared>(stream)?;
    let dictionary = iolist::to_vec(dictionary)?;
    let mut zlib = zlib(p, stream)?;
    let is_raw = zlib.is_raw;
    let stream = zlib.stream(Direction::Deflate)?;
    match stream.set_dictionary(&dictionary) {
        // A raw stream keeps no checksum.
        z::Z_OK if is_raw => Ok(p.unsigned(z::adler32(0, &dictionary))),
        z::Z_OK => Ok(p.unsigned(stream.adler())),
        code => code_result(code),
    }
}

fn deflate_reset_nif_1<'p>(p: &'p Process, [stream]: [Term<'p>; 1]) -> BifResult<'p> {
    zlib(p, stream)?.reset(Direction::Deflate)
}

fn deflate_end_nif_1<'p>(p: &'p Process, [stream]: [Term<'p>; 1]) -> BifResult<'p> {
    end(p, stream, Direction::Deflate)
}

fn end<'p>(p: &'p Process, stream: Term<'p>, direction: Direction) -> BifResult<'p> {
    let mut zlib = zlib(p, stream)?;
    zlib.stream(direction)?;
    let Codec::Open(stream) = std::mem::take(&mut zlib.codec) else {
        return Ok(raise("not_initialized")?);
    };
    let unfinished = zlib.input.size > 0 || (direction == Direction::Inflate && !zlib.end_seen);
    let code = match stream.end() {
        z::Z_OK if unfinished => z::Z_DATA_ERROR,
        code => code,
    };
    zlib.reset_input();
    code_result(code)
}

fn deflate_params_nif_3<'p>(
    p: &'p Process,
    [stream, level, strategy]: [Term<'p>; 3],
) -> BifResult<'p> {
    let [level, strategy] = ints(stream, [level, strategy])?;
    let mut zlib = zlib(p, stream)?;
    let stream = zlib.stream(Direction::Deflate)?;
    code_result(
        stream
            .set_params(level, strategy)
            .unwrap_or(z::Z_STREAM_ERROR),
    )
}

fn deflate_nif_4<'p>(
    p: &'p Process,
    [stream, input, output, flush]: [Term<'p>; 4],
) -> BifResult<'p> {
    let sizes = ints(stream, [input, output, flush])?;
    let mut zlib = zlib(p, stream)?;
    zlib.stream(Direction::Deflate)?;
    codec(p, &mut zlib, sizes)
}

fn inflate_init_nif_3<'p>(
    p: &'p Process,
    [stream, window_bits, at_end]: [Term<'p>; 3],
) -> BifResult<'p> {
    let [window_bits, at_end] = ints(stream, [window_bits, at_end])?;
    let mut zlib = zlib(p, stream)?;
    if !matches!(zlib.codec, Codec::None) {
        raise("already_initialized")?;
    }
    zlib.at_end = match at_end {
        0 => AtEnd::Error,
        1 => AtEnd::Reset,
        _ => AtEnd::Cut,
    };
    zlib.init(Stream::inflate(window_bits), window_bits)
}

fn inflate_set_dictionary_nif_2<'p>(
    p: &'p Process,
    [stream, dictionary]: [Term<'p>; 2],
) -> BifResult<'p> {
    object::<Shared>(stream)?;
    let dictionary = iolist::to_vec(dictionary)?;
    let mut zlib = zlib(p, stream)?;
    code_result(zlib.stream(Direction::Inflate)?.set_dictionary(&dictionary))
}

fn inflate_get_dictionary_nif_1<'p>(p: &'p Process, [stream]: [Term<'p>; 1]) -> BifResult<'p> {
    let mut zlib = zlib(p, stream)?;
    match zlib.stream(Direction::Inflate)?.dictionary() {
        Ok(dictionary) => Ok(p.binary_from_vec(dictionary)),
        Err(code) => code_result(code),
    }
}

fn inflate_reset_nif_1<'p>(p: &'p Process, [stream]: [Term<'p>; 1]) -> BifResult<'p> {
    zlib(p, stream)?.reset(Direction::Inflate)
}

fn inflate_end_nif_1<'p>(p: &'p Process, [stream]: [Term<'p>; 1]) -> BifResult<'p> {
    end(p, stream, Direction::Inflate)
}

fn inflate_nif_4<'p>(
    p: &'p Process,
    [stream, input, output, flush]: [Term<'p>; 4],
) -> BifResult<'p> {
    let sizes = ints(stream, [input, output, flush])?;
    let mut zlib = zlib(p, stream)?;
    zlib.stream(Direction::Inflate)?;
    if zlib.end_seen && zlib.input.size > 0 {
        match zlib.at_end {
            AtEnd::Error => raise("data_error")?,
            AtEnd::Reset => {
                let code = zlib.stream(Direction::Inflate)?.reset();
                if code != z::Z_OK {
                    return code_result(code);
                }
                zlib.end_seen = false;
            }
            AtEnd::Cut => zlib.reset_input(),
        }
    }
    codec(p, &mut zlib, sizes)
}

/// The result of a round of [`work`].
struct Round {
    code: z::Code,
    consumed: usize,
    produced: usize,
}

/// Works off queued input, at most some `limit` bytes of it, until `output` is full.
fn work(p: &Process, zlib: &mut Zlib, limit: usize, output: &mut [u8], flush: i32) -> Round {
    let mut round = Round {
        code: z::Z_OK,
        consumed: 0,
        produced: 0,
    };
    let Zlib {
        codec: Codec::Open(stream),
        input,
        ..
    } = zlib
    else {
        unreachable!("the caller has looked");
    };
    while round.code == z::Z_OK && round.consumed < limit && round.produced < output.len() {
        let Some(piece) = input.pieces.front() else {
            break;
        };
        let rest = &piece[input.head_done..];
        let block = &rest[..rest.len().min(limit)];
        let step = stream.step(block, &mut output[round.produced..], z::Z_NO_FLUSH);
        round.code = step.code;
        round.consumed += step.consumed;
        round.produced += step.produced;
        input.consume(step.consumed);
        // A limit's worth of input is a time slice.
        let percent = 100 * step.consumed / limit.max(1);
        p.consume_percent(percent.max(1));
    }
    if round.code == z::Z_OK && input.size == 0 && round.produced < output.len() {
        // Even without a flush: there may be output that did not fit before.
        let step = stream.step(&[], &mut output[round.produced..], flush);
        round.code = step.code;
        round.produced += step.produced;
    }
    round
}

fn codec<'p>(p: &'p Process, zlib: &mut Zlib, sizes: [i32; 3]) -> BifResult<'p> {
    let [limit, size, flush] = sizes;
    let limit = usize::try_from(limit).map_err(|_| badarg())?;
    let mut output = vec![0; usize::try_from(size).map_err(|_| badarg())?];
    let round = work(p, zlib, limit, &mut output, flush);
    if round.code < 0 && round.code != z::Z_BUF_ERROR {
        return code_result(round.code);
    }
    zlib.end_seen |= round.code == z::Z_STREAM_END;
    let full = round.produced == output.len();
    if round.consumed == 0 && round.produced == 0 && zlib.input.size != 0 {
        // No progress: the input is damaged.
        raise("data_error")?;
    }
    output.truncate(round.produced);
    output.shrink_to_fit();
    let flushed = if output.is_empty() {
        Term::NIL
    } else {
        p.list(&[p.binary_from_vec(output)])
    };
    if zlib.input.size == 0 && !full {
        return Ok(p.tuple(&[atom("finished"), flushed]));
    }
    match &zlib.codec {
        Codec::Open(stream) if round.code == z::Z_NEED_DICT => {
            let checksum = p.unsigned(stream.adler());
            Ok(p.tuple(&[atom("need_dictionary"), checksum, flushed]))
        }
        _ => Ok(p.tuple(&[atom("continue"), flushed])),
    }
}

fn get_stash_nif_1<'p>(p: &'p Process, [stream]: [Term<'p>; 1]) -> BifResult<'p> {
    Ok(match &zlib(p, stream)?.stash {
        Some(stash) => ok(p, p.copy_in(stash.term())),
        None => atom("empty"),
    })
}

fn clear_stash_nif_1<'p>(p: &'p Process, [stream]: [Term<'p>; 1]) -> BifResult<'p> {
    match zlib(p, stream)?.stash.take() {
        Some(_) => Ok(am::ok.term()),
        None => Err(Raise::Error(am::error.term()).into()),
    }
}

fn set_stash_nif_2<'p>(p: &'p Process, [stream, term]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut zlib = zlib(p, stream)?;
    if zlib.stash.is_some() {
        return Err(Raise::Error(am::error.term()).into());
    }
    zlib.stash = Some(Message::copy_of(term));
    Ok(am::ok.term())
}

fn enqueue_nif_2<'p>(p: &'p Process, [stream, iovec]: [Term<'p>; 2]) -> BifResult<'p> {
    let mut zlib = zlib(p, stream)?;
    if !matches!(zlib.codec, Codec::Open(_)) {
        raise("not_initialized")?;
    }
    let (pieces, tail) = inspect_iovec(iovec)?;
    for piece in pieces {
        zlib.input.push(piece.bytes().into_owned());
    }
    Ok(match tail.view() {
        View::Nil => am::ok.term(),
        _ => p.tuple(&[atom("continue"), tail]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'p>(result: BifResult<'p>) -> Term<'p> {
        result.ok().expect("no exception")
    }

    fn reason(result: BifResult<'_>) -> String {
        match result {
            Err(crate::process::Leave::Raise(Raise::Error(reason))) => {
                reason.as_atom().unwrap().to_string()
            }
            _ => "none".into(),
        }
    }

    fn n(value: i64) -> Term<'static> {
        Term::small(value)
    }

    /// Enqueues `input` and works it off; gives the output.
    fn run<'p>(
        p: &'p Process,
        stream: Term<'p>,
        input: &[u8],
        deflate: bool,
    ) -> Result<Vec<u8>, String> {
        let pieces: Vec<_> = input.chunks(1000).map(|piece| p.binary(piece)).collect();
        let mut rest = p.list(&pieces);
        while !rest.is_nil() {
            rest = match value(enqueue_nif_2(p, [stream, rest])).as_tuple() {
                Some(more) => more.get(1),
                None => Term::NIL,
            };
        }
        let mut out = Vec::new();
        loop {
            let args = [stream, n(300), n(512), n(if deflate { 4 } else { 0 })];
            let result = if deflate {
                deflate_nif_4(p, args)
            } else {
                inflate_nif_4(p, args)
            };
            let Ok(result) = result else {
                return Err(reason(result));
            };
            let result = result.as_tuple().unwrap();
            let last = result.get(result.arity() - 1);
            for piece in last.list_iter() {
                out.extend(piece.ok().unwrap().as_binary().unwrap().to_vec());
            }
            match result.get(0).as_atom().unwrap().name() {
                "continue" => {}
                "finished" => return Ok(out),
                other => return Err(other.into()),
            }
        }
    }

    fn opened<'p>(p: &'p Process, deflate: bool, window_bits: i64) -> Term<'p> {
        let stream = value(open_nif_0(p, []));
        let init = if deflate {
            deflate_init_nif_6(p, [stream, n(-1), n(8), n(window_bits), n(8), n(0)])
        } else {
            inflate_init_nif_3(p, [stream, n(window_bits), n(0)])
        };
        assert!(value(init) == am::ok);
        stream
    }

    #[test]
    fn what_is_deflated_inflates_to_the_same() {
        let p = &Process::new(233);
        let text: Vec<u8> = (0..50_000u32)
            .flat_map(|i| (i * i % 977).to_le_bytes())
            .collect();
        for window_bits in [15, -15, 31] {
            let (deflate, inflate) = (opened(p, true, window_bits), opened(p, false, window_bits));
            let packed = run(p, deflate, &text, true).unwrap();
            assert!(packed.len() < text.len() / 2);
            assert_eq!(run(p, inflate, &packed, false).unwrap(), text);
            assert!(value(deflate_end_nif_1(p, [deflate])) == am::ok);
            assert!(value(inflate_end_nif_1(p, [inflate])) == am::ok);
            assert!(value(close_nif_1(p, [inflate])) == am::ok);
            assert_eq!(reason(close_nif_1(p, [inflate])), "not_initialized");
        }
    }

    #[test]
    fn damaged_or_unfinished_data_is_an_error() {
        let p = &Process::new(233);
        let inflate = opened(p, false, 15);
        assert_eq!(
            run(p, inflate, b"this is no zlib stream", false).unwrap_err(),
            "data_error"
        );
        assert!(value(inflate_reset_nif_1(p, [inflate])) == am::ok);
        let packed = run(p, opened(p, true, 15), b"some text", true).unwrap();
        assert!(run(p, inflate, &packed[..packed.len() - 2], false).is_ok());
        assert_eq!(reason(inflate_end_nif_1(p, [inflate])), "data_error");
        let trailing = opened(p, false, 15);
        assert_eq!(run(p, trailing, &packed, false).unwrap(), b"some text");
        assert_eq!(run(p, trailing, b"more", false).unwrap_err(), "data_error");
        let bad_level = [value(open_nif_0(p, [])), n(77), n(8), n(15), n(8), n(0)];
        assert_eq!(reason(deflate_init_nif_6(p, bad_level)), "stream_error");
    }

    #[test]
    fn a_dictionary_is_asked_for() {
        let p = &Process::new(233);
        let dictionary = p.binary(b"hello world");
        let deflate = opened(p, true, 15);
        let checksum = value(deflate_set_dictionary_nif_2(p, [deflate, dictionary]));
        let packed = run(p, deflate, b"hello world hello world", true).unwrap();
        let inflate = opened(p, false, 15);
        assert_eq!(
            run(p, inflate, &packed, false).unwrap_err(),
            "need_dictionary"
        );
        let set = inflate_set_dictionary_nif_2(p, [inflate, dictionary]);
        assert!(value(set) == am::ok);
        assert_eq!(
            run(p, inflate, &[], false).unwrap(),
            b"hello world hello world"
        );
        assert_eq!(
            checksum.as_small(),
            Some(z::adler32(1, b"hello world") as i64)
        );
        let set = value(set_stash_nif_2(p, [inflate, dictionary]));
        assert!(set == am::ok);
        assert_eq!(
            value(get_stash_nif_1(p, [inflate]))
                .as_tuple()
                .unwrap()
                .arity(),
            2
        );
        assert!(value(clear_stash_nif_1(p, [inflate])) == am::ok);
        assert!(value(get_stash_nif_1(p, [inflate])).same(atom("empty")));
    }
}
