//! Decodes bytes to terms.
//!
//! The decoder takes one pass, with a stack of what is being built. Every element takes at least one byte of input, and
//! nothing is reserved by a count alone. So memory stays within a constant factor of the input's size (of the stated
//! size where it is compressed, itself bounded by what compression can reach).

mod error;

use std::sync::Arc;

use smallvec::SmallVec;

use super::functions::{self, FunIdentity};
use super::tags::*;
use super::{VERSION_MAGIC, local, this_node};
use crate::code::record::{Definition, definition};
use crate::heap::{Heap, Node, SharedBytes, keeps};
use crate::num::limbs::{Endian, Int};
use crate::term::{Atom, Pid, Port, Term, atom, record, tag};
use crate::value::map;

pub(crate) use error::{DecodeError, Reason};

/// How to decode.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DecodeOptions {
    /// Makes no new atoms and refers to no function that is not loaded.
    pub safe: bool,
}

/// Decodes one term from the start of `bytes`, its version byte included, on `heap`; with it the number
/// of bytes it took. What follows them is not looked at.
///
/// # Errors
/// [`DecodeError`]; what was built of the term is garbage on the heap.
pub(crate) fn decode<'h>(
    heap: &'h Heap,
    bytes: &[u8],
    options: DecodeOptions,
) -> Result<(Term<'h>, usize), DecodeError> {
    match decode_some(heap, bytes, options, &mut i64::MAX.clone(), None)? {
        Decoded::Whole(term, used) => Ok((term, used)),
        Decoded::Part(_) => unreachable!("there are not as many bytes"),
    }
}

/// Whether what follows the version byte is compressed.
#[must_use]
pub(crate) fn is_compressed(bytes: &[u8]) -> bool {
    matches!(bytes, [VERSION_MAGIC, COMPRESSED, ..])
}

/// The result of [`decode_some`].
pub(crate) enum Decoded<'h> {
    /// The term, and the number of bytes it took.
    Whole(Term<'h>, usize),
    /// As far as it has got.
    Part(Paused<'h>),
}

/// As [`decode`], but pauses when `steps`, which is lessened, are made: those that ERTS counts. `paused` is where
/// it goes on, with the same bytes and options.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_some<'h>(
    heap: &'h Heap,
    bytes: &[u8],
    options: DecodeOptions,
    steps: &mut i64,
    paused: Option<Paused<'h>>,
) -> Result<Decoded<'h>, DecodeError> {
    let at = |reason, offset| DecodeError { reason, offset };
    let (rest, header) = match bytes {
        [] => return Err(at(Reason::Truncated, 0)),
        [VERSION_MAGIC, rest @ ..] => (rest, 1),
        _ => return Err(at(Reason::Version, 0)),
    };
    let mut paused = paused.unwrap_or_default();
    if paused.inner.is_none()
        && let [COMPRESSED, rest @ ..] = rest
    {
        let inner = decompress(rest).map_err(|reason| at(reason, 2))?;
        *steps -= inner.0.len() as i64;
        paused.inner = Some(inner);
    }
    let inner = paused.inner.take();
    let source = inner.as_ref().map_or(rest, |(inner, _)| inner);
    let mut decoder = Decoder::resume(heap, source, options, paused);
    decoder.steps += *steps;
    let ended = decoder.run();
    *steps = decoder.steps;
    match ended {
        Ok(Some(term)) => {
            let used = inner.as_ref().map_or(decoder.at, |(_, used)| 1 + used);
            Ok(Decoded::Whole(term, header + used))
        }
        Ok(None) => {
            let mut paused = decoder.pause();
            paused.inner = inner;
            Ok(Decoded::Part(paused))
        }
        Err(reason) => {
            let header = if inner.is_some() { 0 } else { header };
            Err(at(reason, header + decoder.at))
        }
    }
}

/// A decoder at rest. Its values are roots of collections that come meanwhile.
#[derive(Default)]
pub(crate) struct Paused<'h> {
    /// What was compressed, and how many bytes it took.
    inner: Option<(Vec<u8>, usize)>,
    at: usize,
    local: bool,
    values: Vec<Term<'h>>,
    frames: Vec<Frame>,
    /// Less than none: made before they were paid for.
    steps: i64,
}

keeps! { struct Paused { values; inner, at, local, frames, steps } }

/// As [`decode`] for a term without its version byte.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_bare<'h>(
    heap: &'h Heap,
    bytes: &[u8],
    options: DecodeOptions,
) -> Result<(Term<'h>, usize), DecodeError> {
    decode_whole(&mut Decoder::resume(
        heap,
        bytes,
        options,
        Paused::default(),
    ))
}

/// A term of a message between nodes.
pub(crate) struct OfMessage<'h> {
    pub(crate) term: Term<'h>,
    /// Bytes that it took.
    pub(crate) used: usize,
    /// The heap has got nothing but the term.
    pub(crate) is_compact: bool,
}

/// As [`decode_bare`] for a term of a message between nodes, the header of which has these atoms. A binary that is much of
/// `shared`, the end of which the bytes are, becomes a part of that.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_with_header<'h>(
    heap: &'h Heap,
    bytes: &[u8],
    atoms: &[Atom],
    shared: Option<&SharedBytes>,
) -> Result<OfMessage<'h>, DecodeError> {
    let mut decoder = Decoder::resume(heap, bytes, DecodeOptions::default(), Paused::default());
    (decoder.atoms, decoder.shared) = (atoms, shared);
    let (term, used) = decode_whole(&mut decoder)?;
    Ok(OfMessage {
        term,
        used,
        is_compact: decoder.is_compact,
    })
}

/// As [`decode_with_header`] for a node that takes no headers: each term has its version.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_with_version<'h>(
    heap: &'h Heap,
    bytes: &[u8],
) -> Result<OfMessage<'h>, DecodeError> {
    let (term, used) = decode(heap, bytes, DecodeOptions::default())?;
    // Those nodes are old and few.
    let is_compact = false;
    Ok(OfMessage {
        term,
        used,
        is_compact,
    })
}

fn decode_whole<'h>(decoder: &mut Decoder<'h, '_>) -> Result<(Term<'h>, usize), DecodeError> {
    decoder.steps = i64::MAX;
    match decoder.run() {
        Ok(term) => Ok((term.expect("there are not as many bytes"), decoder.at)),
        Err(reason) => Err(DecodeError {
            reason,
            offset: decoder.at,
        }),
    }
}

/// Are these many bytes of `of`, all of which they keep where they are kept?
fn is_much(bytes: usize, of: &SharedBytes) -> bool {
    bytes >= of.as_slice().len() / 4
}

/// No zlib stream expands by more than this factor.
const MAX_EXPANSION: usize = 1032;

/// Size and compressed bytes to what was compressed, and how many bytes of `bytes` that took.
fn decompress(bytes: &[u8]) -> Result<(Vec<u8>, usize), Reason> {
    let (size, stream) = bytes.split_first_chunk().ok_or(Reason::Truncated)?;
    let size = u32::from_be_bytes(*size) as usize;
    if size / MAX_EXPANSION > stream.len() {
        return Err(Reason::BadCompression);
    }
    let mut out = Vec::with_capacity(size + 1);
    let mut zlib = flate2::Decompress::new(true);
    let status = zlib
        .decompress_vec(stream, &mut out, flate2::FlushDecompress::Finish)
        .map_err(|_| Reason::BadCompression)?;
    if status != flate2::Status::StreamEnd || out.len() != size {
        return Err(Reason::BadCompression);
    }
    Ok((out, 4 + zlib.total_in() as usize))
}

/// What a finished run of values becomes.
#[derive(Clone, Copy)]
enum Shape {
    /// The elements and the tail.
    List,
    Tuple,
    /// Keys and values in turn.
    Map,
    /// Values in the order of the source; the definition, a literal, is known.
    Record(Definition),
    /// The environment; the entry is known.
    Fun(&'static crate::code::FunEntry),
    /// A term of the local format, the bytes of which start at `from`; `outer` says whether what
    /// holds it is in that format too.
    Local {
        outer: bool,
        check_number: u32,
        from: usize,
    },
}

/// A thing under construction: its values are on the value stack from `first` on.
struct Frame {
    shape: Shape,
    first: usize,
    missing: usize,
}

struct Decoder<'h, 'b> {
    heap: &'h Heap,
    bytes: &'b [u8],
    at: usize,
    safe: bool,
    local: bool,
    /// Those of the header of a message between nodes.
    atoms: &'b [Atom],
    /// What the bytes are the last ones of, where terms may share it.
    shared: Option<&'b SharedBytes>,
    values: Vec<Term<'h>>,
    frames: Vec<Frame>,
    /// Steps left, as ERTS counts them: one for each term, for its size, and one or more for itself.
    steps: i64,
    /// All that was built is part of the term, and the term has no part elsewhere.
    is_compact: bool,
}

type Step<T> = Result<T, Reason>;

impl<'h, 'b> Decoder<'h, 'b> {
    fn resume(heap: &'h Heap, bytes: &'b [u8], options: DecodeOptions, paused: Paused<'h>) -> Self {
        Decoder {
            heap,
            bytes,
            at: paused.at,
            safe: options.safe,
            local: paused.local,
            atoms: &[],
            shared: None,
            values: paused.values,
            frames: paused.frames,
            steps: paused.steps,
            is_compact: true,
        }
    }

    fn pause(self) -> Paused<'h> {
        Paused {
            inner: None,
            at: self.at,
            local: self.local,
            values: self.values,
            frames: self.frames,
            steps: self.steps,
        }
    }

    /// `None` when its steps are made and it is not done.
    fn run(&mut self) -> Step<Option<Term<'h>>> {
        loop {
            if self.steps <= 0 {
                return Ok(None);
            }
            self.steps -= 2;
            if let Some(term) = self.term()? {
                self.values.push(term);
                if let Some(frame) = self.frames.last_mut() {
                    frame.missing -= 1;
                }
            }
            while let Some(frame) = self.frames.pop_if(|frame| frame.missing == 0) {
                let term = self.finish(frame.shape, frame.first)?;
                self.values.truncate(frame.first);
                self.values.push(term);
                if let Some(frame) = self.frames.last_mut() {
                    frame.missing -= 1;
                }
            }
            if self.frames.is_empty() {
                return Ok(Some(self.values[0]));
            }
        }
    }

    fn take(&mut self, n: usize) -> Step<&'b [u8]> {
        let bytes: &'b [u8] = self.bytes;
        let taken = bytes[self.at..].get(..n).ok_or(Reason::Truncated)?;
        self.at += n;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("as many as were asked for"))
    }
    fn u8(&mut self) -> Step<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }
    fn u16(&mut self) -> Step<usize> {
        Ok(u16::from_be_bytes(self.array()?).into())
    }
    fn u32(&mut self) -> Step<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// A count of elements, each of which takes at least one byte.
    fn count(&mut self) -> Step<usize> {
        let n = self.u32()? as usize;
        if n > self.bytes.len() - self.at {
            return Err(Reason::Truncated);
        }
        Ok(n)
    }

    fn open(&mut self, shape: Shape, missing: usize) -> Step<Option<Term<'h>>> {
        self.frames.push(Frame {
            shape,
            first: self.values.len(),
            missing,
        });
        Ok(None)
    }

    /// The next term, or `None` where one was opened.
    fn term(&mut self) -> Step<Option<Term<'h>>> {
        let tag = self.u8()?;
        Ok(Some(match tag {
            SMALL_INTEGER_EXT => Term::small(self.u8()?.into()),
            INTEGER_EXT => Term::small(i32::from_be_bytes(self.array()?).into()),
            SMALL_BIG_EXT => {
                let n = self.u8()?.into();
                self.big(n)?
            }
            LARGE_BIG_EXT => {
                let n = self.count()?;
                self.big(n)?
            }
            ATOM_EXT | SMALL_ATOM_EXT | ATOM_UTF8_EXT | SMALL_ATOM_UTF8_EXT | ATOM_CACHE_REF => {
                self.atom_of(tag)?.term()
            }
            NEW_FLOAT_EXT => self.float(f64::from_be_bytes)?,
            FLOAT_EXT => self.old_float()?,
            NIL_EXT => Term::NIL,
            STRING_EXT => {
                let n = self.u16()?;
                let bytes = self.take(n)?;
                self.steps -= n as i64;
                self.heap.byte_list(bytes)
            }
            LIST_EXT => {
                let n = self.count()?;
                self.steps -= (n as i64 - 1).max(0);
                return self.open(Shape::List, n + 1);
            }
            SMALL_TUPLE_EXT => {
                let n = self.u8()?.into();
                self.steps -= n as i64;
                return self.open(Shape::Tuple, n);
            }
            LARGE_TUPLE_EXT => {
                let n = self.count()?;
                if n >= 1 << 24 {
                    return Err(Reason::TooLarge);
                }
                self.steps -= n as i64;
                return self.open(Shape::Tuple, n);
            }
            MAP_EXT => {
                let n = self.count()?;
                return self.open(Shape::Map, 2 * n);
            }
            BINARY_EXT | BIT_BINARY_EXT => self.bits(tag == BIT_BINARY_EXT)?,
            PID_EXT | NEW_PID_EXT => self.pid(tag == PID_EXT)?,
            PORT_EXT | NEW_PORT_EXT | V4_PORT_EXT => self.port(tag)?,
            REFERENCE_EXT | NEW_REFERENCE_EXT | NEWER_REFERENCE_EXT => self.reference(tag)?,
            EXPORT_EXT => self.export()?,
            NEW_FUN_EXT => return self.fun(),
            LOCAL_EXT => return self.local(),
            RECORD_EXT => return self.record(),
            _ => {
                self.at -= 1;
                return Err(Reason::Tag(tag));
            }
        }))
    }

    /// Builds a thing of the values from `first` on.
    fn finish(&mut self, shape: Shape, first: usize) -> Step<Term<'h>> {
        let values = &self.values[first..];
        Ok(match shape {
            Shape::List => {
                let (&tail, elements) = values.split_last().expect("a list has a tail");
                self.heap.list_with_tail(elements, tail)
            }
            Shape::Tuple => self.heap.tuple(values),
            Shape::Map => self.map(values)?,
            Shape::Record(definition) => {
                // The definition is a literal, which messages have a copy of.
                self.is_compact = false;
                let definition = definition.term();
                let order = definition.as_tuple().map(|t| t.get(record::FIELD_ORDER));
                let order = order.and_then(Term::as_tuple).expect("made of an order");
                let mut sorted = values.to_vec();
                for (place, &value) in order.elements().iter().zip(values) {
                    sorted[place.as_index().expect("a place")] = value;
                }
                self.heap.record(definition, &sorted)
            }
            Shape::Fun(entry) => self.heap.local_fun(entry, values),
            Shape::Local {
                outer,
                check_number,
                from,
            } => {
                if local::check_number(&self.bytes[from..self.at]) != check_number {
                    return Err(Reason::NotLocal);
                }
                self.local = outer;
                values[0]
            }
        })
    }

    /// Whether it is exported, module, name and fields; its values are yet to come.
    fn record(&mut self) -> Step<Option<Term<'h>>> {
        let n = self.count()?;
        let exported = match self.u8()? {
            0 => false,
            1 => true,
            _ => return Err(Reason::BadRecord),
        };
        let (module, name) = (self.atom()?, self.atom()?);
        let mut fields = Vec::with_capacity(n);
        for _ in 0..n {
            fields.push(self.atom()?);
        }
        let mut sorted: Vec<_> = fields.iter().map(|field| field.index()).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Reason::DuplicateKey);
        }
        let definition = definition(module, name, exported, &fields);
        self.open(Shape::Record(definition), n)
    }

    fn map(&self, pairs: &[Term<'h>]) -> Step<Term<'h>> {
        let pairs = pairs.chunks_exact(2).map(|kv| (kv[0], kv[1]));
        let pairs: SmallVec<[_; 16]> = pairs.collect();
        map::from_unique_pairs(self.heap, &pairs).ok_or(Reason::DuplicateKey)
    }

    fn big(&mut self, n: usize) -> Step<Term<'h>> {
        /// Limbs of the largest integer.
        const MAX_LIMBS: usize = 0xffff;
        if n > MAX_LIMBS * 8 {
            return Err(Reason::BadInteger);
        }
        let negative = self.u8()? != 0;
        let magnitude = Int::from_bits(self.take(n)?, n * 8, Endian::Little, false);
        Ok(self.heap.big(negative, magnitude.mag()))
    }

    fn float(&mut self, read: fn([u8; 8]) -> f64) -> Step<Term<'h>> {
        let value = read(self.array()?);
        if !value.is_finite() {
            return Err(Reason::BadFloat);
        }
        Ok(self.heap.float(value))
    }

    /// 31 bytes of text, ended by a zero.
    fn old_float(&mut self) -> Step<Term<'h>> {
        let text: [u8; 31] = self.array()?;
        let len = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        crate::num::float::parse_float(&text[..len])
            .map(|value| self.heap.float(value))
            .ok_or(Reason::BadFloat)
    }

    fn bits(&mut self, partial: bool) -> Step<Term<'h>> {
        let n = self.u32()? as usize;
        let mut bit_len = n * 8;
        if partial {
            // Eight bits in the last byte are one too many but were written once.
            let last = usize::from(self.u8()?);
            if !(1..=8).contains(&last) || n == 0 {
                return Err(Reason::BadBits);
            }
            bit_len -= 8 - last;
        }
        /// Bytes copied for one step.
        const BYTES_PER_STEP: usize = 8;
        let bytes = self.take(n)?;
        self.steps -= (n / BYTES_PER_STEP) as i64;
        if let Some(shared) = self.shared.filter(|shared| is_much(n, shared) && !partial) {
            let end = shared.as_slice().len() - (self.bytes.len() - self.at);
            return Ok(self.heap.shared_part(shared, end - n..end));
        }
        Ok(self.heap.bitstring(bytes, bit_len))
    }

    /// An atom, where only an atom may stand.
    fn atom(&mut self) -> Step<Atom> {
        let tag = self.u8()?;
        self.atom_of(tag)
    }

    fn atom_of(&mut self, tag: u8) -> Step<Atom> {
        if tag == ATOM_CACHE_REF {
            let place = usize::from(self.u8()?);
            return self.atoms.get(place).copied().ok_or(Reason::BadAtom);
        }
        let (long, utf8) = match tag {
            ATOM_EXT => (true, false),
            SMALL_ATOM_EXT => (false, false),
            ATOM_UTF8_EXT => (true, true),
            SMALL_ATOM_UTF8_EXT => (false, true),
            _ => return Err(Reason::AtomExpected),
        };
        let n = if long { self.u16()? } else { self.u8()?.into() };
        let bytes = self.take(n)?;
        if utf8 && let Some(atom) = Atom::recent(bytes) {
            return Ok(atom);
        }
        let latin1;
        let name = if utf8 {
            std::str::from_utf8(bytes).map_err(|_| Reason::BadAtom)?
        } else {
            latin1 = crate::text::unicode::latin1_to_string(bytes);
            &latin1
        };
        if name.len() > atom::MAX_ATOM_CHARS && name.chars().count() > atom::MAX_ATOM_CHARS {
            return Err(Reason::BadAtom);
        }
        if self.safe {
            return Atom::existing(name).ok_or(Reason::NotExisting);
        }
        Ok(Atom::new(name))
    }

    /// The name of a node; `None` for this one in the local format.
    fn node_name(&mut self) -> Step<Option<Atom>> {
        if self.local && self.bytes.get(self.at) == Some(&NIL_EXT) {
            self.at += 1;
            return Ok(None);
        }
        self.atom().map(Some)
    }

    /// A creation; `tiny` ones are one byte and below four.
    fn creation(&mut self, tiny: bool) -> Step<u32> {
        if !tiny {
            return self.u32();
        }
        let creation = self.u8()?;
        if creation > 3 {
            return Err(Reason::BadIdentifier);
        }
        Ok(creation.into())
    }

    fn pid(&mut self, tiny: bool) -> Step<Term<'h>> {
        let name = self.node_name()?;
        let (number, serial) = (u64::from(self.u32()?), u64::from(self.u32()?));
        let creation = self.creation(tiny)?;
        match other_node(name, creation) {
            None if number >> 28 != 0 => Err(Reason::BadIdentifier),
            None => Ok(Pid(number | serial << 28).term()),
            Some(node) => {
                let data = [number | serial << 32];
                Ok(self.heap.external(tag::EXTERNAL_PID, node, &data))
            }
        }
    }

    fn port(&mut self, port_tag: u8) -> Step<Term<'h>> {
        let name = self.node_name()?;
        let number = if port_tag == V4_PORT_EXT {
            u64::from_be_bytes(self.array()?)
        } else {
            self.u32()?.into()
        };
        let creation = self.creation(port_tag == PORT_EXT)?;
        match other_node(name, creation) {
            None if number >> 60 != 0 => Err(Reason::BadIdentifier),
            None => Ok(Port(number).term()),
            Some(node) => Ok(self.heap.external(tag::EXTERNAL_PORT, node, &[number])),
        }
    }

    fn reference(&mut self, ref_tag: u8) -> Step<Term<'h>> {
        let oldest = ref_tag == REFERENCE_EXT;
        let n = if oldest { 1 } else { self.u16()? };
        if n > MAX_REF_NUMBERS {
            return Err(Reason::BadIdentifier);
        }
        let name = self.node_name()?;
        let mut numbers = [0u32; MAX_REF_NUMBERS];
        if oldest {
            numbers[0] = self.u32()?;
        }
        let creation = self.creation(ref_tag != NEWER_REFERENCE_EXT)?;
        if !oldest {
            for number in &mut numbers[..n] {
                *number = self.u32()?;
            }
        }
        let old = ref_tag != NEWER_REFERENCE_EXT;
        match other_node(name, creation) {
            _ if old && numbers[0] >= MAX_REFERENCE => Err(Reason::BadIdentifier),
            None if numbers[0] >= MAX_REFERENCE => Err(Reason::BadIdentifier),
            None => local_ref(self.heap, &numbers[..n]).ok_or(Reason::BadIdentifier),
            Some(node) => Ok(external_ref(self.heap, node, &numbers[..n])),
        }
    }

    fn export(&mut self) -> Step<Term<'h>> {
        let (module, function) = (self.atom()?, self.atom()?);
        let arity = u8::try_from(self.small()?).map_err(|_| Reason::BadFun)?;
        let export = functions::export(module, function, arity, self.safe)?;
        // A literal, of which messages have a copy.
        self.is_compact = false;
        Ok(export.lambda())
    }

    /// A small integer, where only one may stand.
    fn small(&mut self) -> Step<i64> {
        let tag = self.u8()?;
        match tag {
            SMALL_INTEGER_EXT => Ok(self.u8()?.into()),
            INTEGER_EXT => Ok(i32::from_be_bytes(self.array()?).into()),
            SMALL_BIG_EXT => {
                let n = self.u8()?.into();
                self.big(n)?.as_small().ok_or(Reason::BadFun)
            }
            _ => Err(Reason::BadFun),
        }
    }

    fn fun(&mut self) -> Step<Option<Term<'h>>> {
        // The pid that made it is of no use.
        self.is_compact = false;
        self.u32()?;
        let call_arity = self.u8()?;
        let uniq = self.array()?;
        let index = self.u32()?;
        let num_free = u8::try_from(self.u32()?).map_err(|_| Reason::BadFun)?;
        let module = self.atom()?;
        let _old_index = self.small()?;
        let old_uniq = self.small()? as u32;
        match self.u8()? {
            tag @ (PID_EXT | NEW_PID_EXT) => self.pid(tag == PID_EXT)?,
            _ => return Err(Reason::BadFun),
        };
        let arity = call_arity.checked_add(num_free).ok_or(Reason::BadFun)?;
        let entry = functions::fun_entry(&FunIdentity {
            module,
            uniq,
            old_uniq,
            index,
            arity,
        });
        self.open(Shape::Fun(entry), num_free.into())
    }

    fn local(&mut self) -> Step<Option<Term<'h>>> {
        let check_number = self.u32()?;
        let shape = Shape::Local {
            outer: std::mem::replace(&mut self.local, true),
            check_number,
            from: self.at,
        };
        self.open(shape, 1)
    }
}

/// The node of that name and creation, unless it is this one.
fn other_node(name: Option<Atom>, creation: u32) -> Option<Arc<Node>> {
    let name = name?;
    ((name, creation) != this_node()).then(|| Node::known_as(name, creation))
}

/// A reference of this node; the fourth and fifth number of one that names a process are the pid's word.
fn local_ref<'h>(heap: &'h Heap, numbers: &[u32]) -> Option<Term<'h>> {
    let number = |i| numbers.get(i).copied().unwrap_or(0);
    let first = [number(0), number(1), number(2)];
    if numbers.len() < MAX_REF_NUMBERS {
        return Some(heap.known_reference(first));
    }
    let word = u64::from(number(3)) | u64::from(number(4)) << 32;
    (word & tag::IMMED1_MASK == tag::PID).then(|| heap.pid_reference(first, Pid(word >> 4)))
}

/// A reference of another node: a count and the numbers, in halves of words.
pub(crate) fn external_ref<'h>(heap: &'h Heap, node: Arc<Node>, numbers: &[u32]) -> Term<'h> {
    let mut data = vec![0u64; numbers.len() / 2 + 1];
    data[0] = numbers.len() as u64;
    for (i, &number) in (1..).zip(numbers) {
        data[i / 2] |= u64::from(number) << (32 * (i % 2));
    }
    heap.external(tag::EXTERNAL_REF, node, &data)
}
