//! Encodes terms to bytes, byte for byte as `term_to_binary` of OTP 29 writes them.

mod compress;
mod header;
mod pause;
mod pieces;

use super::tags::*;
use super::{VERSION_MAGIC, local, this_node};
use crate::copy::append;
use crate::num::float::{FloatFormat, format_float};
use crate::num::limbs::IntRef;
use crate::term::{Atom, Bits, External, Fun, Map, Pid, Ref, Term, View, compare, tag};

pub(crate) use compress::{Compressing, Compression};
pub(crate) use header::{CACHE_SIZE, HeaderAtoms, slot_of};
pub(crate) use pause::PausedEncoder;
pub(crate) use pieces::Pieces;

/// How to encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EncodeOptions {
    /// Level of compression, 0 (none) to 9; -1 stands for the usual one.
    pub level: i32,
    /// 0 writes floats as text, 0 and 1 write atoms in Latin-1 where they can; 2 neither.
    pub minor_version: u8,
    /// Writes maps in the order of their keys.
    pub deterministic: bool,
    /// For this machine alone.
    pub local: bool,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        EncodeOptions {
            level: 0,
            minor_version: 2,
            deterministic: false,
            local: false,
        }
    }
}

/// A bitstring of four gigabytes or more, which the format cannot hold: `system_limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// The bytes of `term`, version included.
///
/// # Errors
/// [`TooLarge`].
pub(crate) fn encode(term: Term<'_>, options: EncodeOptions) -> Result<Vec<u8>, TooLarge> {
    let mut encoder = Encoder::with_version(term, options, None);
    encoder.run(usize::MAX)?;
    let plain = encoder.out;
    if options.level == 0 {
        return Ok(plain);
    }
    Ok(match Compression::begin(plain, options.level) {
        Compressing::More(mut compression) => {
            compression.run(usize::MAX);
            compression.finish()
        }
        Compressing::Plain(plain) => plain,
    })
}

/// The bytes that `term` takes, version included, not compressed. No memory is taken for them.
///
/// # Errors
/// [`TooLarge`].
pub(crate) fn external_size(term: Term<'_>, options: EncodeOptions) -> Result<usize, TooLarge> {
    let mut encoder = Encoder::with_version(term, options, Some(tag::ONHEAP_BINARY_LIMIT));
    encoder.counted = Some(0);
    encoder.run(usize::MAX)?;
    Ok(encoder.counted.unwrap_or(0) + encoder.len())
}

/// The bytes of `term` without the version, as they stand within other terms.
///
/// # Errors
/// [`TooLarge`].
pub(crate) fn encode_bare(term: Term<'_>, options: EncodeOptions) -> Result<Vec<u8>, TooLarge> {
    let mut encoder = Encoder::new(options, None);
    encoder.begin(term);
    encoder.run(usize::MAX)?;
    Ok(encoder.out)
}

/// The atoms in the header of a signal, and the bytes of its terms.
#[cfg(test)]
pub(crate) fn encode_signal(
    control: Term<'_>,
    payload: Option<Term<'_>>,
) -> (HeaderAtoms, Vec<u8>) {
    let mut encoder = Encoder::of_signal(control, true).expect("small");
    payload
        .into_iter()
        .for_each(|payload| encoder.begin_in_signal(payload));
    encoder.run(usize::MAX).expect("small");
    let (atoms, pieces) = encoder.into_signal();
    let mut bytes = Vec::new();
    pieces.copy_to(&mut bytes);
    (atoms.expect("it has a header"), bytes)
}

/// Steps of an encoding that a reduction pays for. Source: `TERM_TO_BINARY_LOOP_FACTOR`.
pub(crate) const STEPS_PER_REDUCTION: usize = 32;

/// Bytes that are copied into a message between nodes, at most. More are shared with the binary that they are of.
pub(crate) const COPIED_BYTES: usize = 1023;

/// Bytes that are kept while they are only counted.
const COUNTED_AT_ONCE: usize = 4096;

/// Work of an encoding that is still to be done.
#[derive(Clone, Copy)]
enum Todo<'h> {
    Term(Term<'h>),
    /// These elements in turn, the last ones of a tuple's or of a fun's environment.
    Elements {
        of: Term<'h>,
        rest: &'h [Term<'h>],
    },
    /// The rest of a list of `len` elements so far, whose length belongs at `at`.
    Tail {
        rest: Term<'h>,
        at: usize,
        len: u32,
    },
    /// Keys and values in turn, the last ones of a flat map's.
    Pairs {
        of: Term<'h>,
        keys: &'h [Term<'h>],
        values: &'h [Term<'h>],
    },
    /// A leaf or a node of a map's trie.
    Node(Term<'h>),
    /// The size of a fun belongs at `at`; `shared_bytes` were shared before it.
    FunSize {
        at: usize,
        shared_bytes: usize,
    },
}

/// An encoding, whole or in parts: a part ends after a number of steps.
pub(crate) struct Encoder<'h> {
    options: EncodeOptions,
    out: Vec<u8>,
    /// Where the term itself begins.
    from: usize,
    todo: Vec<Todo<'h>>,
    /// Where bytes that are not copied belong; in order.
    shared: Vec<(usize, Bits<'h>)>,
    shared_bytes: usize,
    /// Binaries of more bytes are not copied.
    share_above: Option<usize>,
    steps: usize,
    /// Where bytes are only counted: how many there were before those of `out`.
    counted: Option<usize>,
    /// Atoms that stand in the header of a message between nodes.
    atoms: Option<HeaderAtoms>,
}

/// How far an encoding has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// To its end.
    Whole,
    /// To the end of the steps that were to be made.
    Part,
}

impl<'h> Encoder<'h> {
    fn new(options: EncodeOptions, share_above: Option<usize>) -> Self {
        Encoder {
            options,
            out: Vec::new(),
            from: 0,
            todo: Vec::new(),
            shared: Vec::new(),
            shared_bytes: 0,
            share_above,
            steps: 0,
            counted: None,
            atoms: None,
        }
    }

    /// Begins with the version and `term`. Binaries of more than `share_above` bytes are not copied.
    #[must_use]
    pub(crate) fn with_version(
        term: Term<'h>,
        options: EncodeOptions,
        share_above: Option<usize>,
    ) -> Self {
        let mut this = Encoder::new(options, share_above);
        this.out.push(VERSION_MAGIC);
        this.begin(term);
        this
    }

    /// A signal to another node, with its control message and nothing behind that yet. Its atoms go by their places in a
    /// header; where there is none, each term has a version.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub(crate) fn of_signal(control: Term<'_>, has_header: bool) -> Result<Self, TooLarge> {
        let options = EncodeOptions::default();
        let mut first = Encoder::new(options, None);
        first.atoms = has_header.then(HeaderAtoms::default);
        first.begin_in_signal(control);
        first.run(usize::MAX)?;
        Ok(Encoder {
            out: first.out,
            atoms: first.atoms,
            ..Encoder::new(options, Some(COPIED_BYTES))
        })
    }

    /// Begins with the next term of a signal.
    pub(crate) fn begin_in_signal(&mut self, term: Term<'h>) {
        if self.atoms.is_none() {
            self.out.push(VERSION_MAGIC);
        }
        self.begin(term);
    }

    fn begin(&mut self, term: Term<'h>) {
        self.from = self.out.len();
        if self.options.local {
            self.out.extend_from_slice(&[LOCAL_EXT, 0, 0, 0, 0]);
        }
        self.todo.push(Todo::Term(term));
    }

    /// Bytes written or shared so far.
    pub(crate) fn len(&self) -> usize {
        self.out.len() + self.shared_bytes
    }

    /// Steps made so far, as ERTS counts them: for each term and each inner node of a map one to count its bytes
    /// and one to write it, but one in all; one for every other byte that a list begins with; those to write
    /// strings.
    #[must_use]
    pub(crate) fn steps(&self) -> usize {
        self.steps.saturating_sub(1)
    }

    /// Whether it makes a binary so small that ERTS neither pauses in it nor counts its steps.
    #[must_use]
    pub(crate) fn is_small(&self) -> bool {
        self.share_above.is_none() && self.out.len() <= tag::ONHEAP_BINARY_LIMIT
    }

    /// Whether this many steps have been made, and it may pause.
    #[inline]
    fn is_over(&self, steps: usize) -> bool {
        self.steps() > steps && !self.is_small()
    }

    /// Whether the bytes are to be counted and forgotten before there are more of them.
    #[inline]
    fn is_full(&self) -> bool {
        self.counted.is_some() && self.out.len() >= COUNTED_AT_ONCE
    }

    /// Goes on until `steps` have been made in all, but for a small binary.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub(crate) fn run(&mut self, steps: usize) -> Result<Progress, TooLarge> {
        while !self.todo.is_empty() {
            self.step(steps)?;
            if let Some(counted) = &mut self.counted {
                *counted += self.out.len();
                self.out.clear();
            }
            if self.is_over(steps) {
                break;
            }
        }
        if !self.todo.is_empty() {
            return Ok(Progress::Part);
        }
        if self.options.local && self.counted.is_none() {
            let at = self.from + 1;
            let check_number = self.local_check_number(at + 4);
            self.put_at(at, check_number);
        }
        Ok(Progress::Whole)
    }

    /// Writes a number where room was left for it.
    fn put_at(&mut self, at: usize, number: u32) {
        if self.counted.is_none() {
            self.out[at..at + 4].copy_from_slice(&number.to_be_bytes());
        }
    }

    /// The bytes written.
    #[must_use]
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    /// The bytes written, and what belongs between them, each at its place.
    #[must_use]
    pub(crate) fn into_parts(self) -> (Vec<u8>, Vec<(usize, Bits<'h>)>) {
        (self.out, self.shared)
    }

    /// The atoms that belong in the header of a signal, if it has one, and its terms one behind the other.
    #[must_use]
    pub(crate) fn into_signal(self) -> (Option<HeaderAtoms>, Pieces) {
        (self.atoms, Pieces::of(self.out, self.shared))
    }

    /// The check number of all from `from` on, what is shared included.
    fn local_check_number(&self, from: usize) -> u32 {
        if self.shared.is_empty() {
            return local::check_number(&self.out[from..]);
        }
        let mut all = Vec::new();
        let mut at = from;
        for (to, bits) in &self.shared {
            all.extend_from_slice(&self.out[at..*to]);
            all.extend_from_slice(bits.as_bytes().expect("only whole bytes are shared"));
            at = *to;
        }
        all.extend_from_slice(&self.out[at..]);
        local::check_number(&all)
    }

    /// Does the first of what is to be done, which stays where it is as long as there is more of it.
    fn step(&mut self, steps: usize) -> Result<(), TooLarge> {
        let Some(todo) = self.todo.last_mut() else {
            return Ok(());
        };
        match todo {
            Todo::Elements { of, rest } => {
                let (of, rest) = (*of, *rest);
                self.todo.pop();
                return self.elements(of, rest, steps);
            }
            Todo::Tail { rest, at, len } => {
                let (rest, at, len) = (*rest, *at, *len);
                self.todo.pop();
                return self.tail(rest, at, len, steps);
            }
            Todo::Pairs { keys, values, .. } => {
                if let ([key, other_keys @ ..], [value, other_values @ ..]) = (*keys, *values) {
                    (*keys, *values) = (other_keys, other_values);
                    if other_keys.is_empty() {
                        self.todo.pop();
                    }
                    self.todo.push(Todo::Term(*value));
                    return self.term(*key);
                }
                self.todo.pop();
            }
            Todo::Term(term) => {
                let term = *term;
                self.todo.pop();
                return self.term(term);
            }
            Todo::Node(node) => {
                let node = *node;
                self.todo.pop();
                return self.node(node);
            }
            Todo::FunSize { at, shared_bytes } => {
                let (at, shared_bytes) = (*at, *shared_bytes);
                self.todo.pop();
                let size = (self.out.len() + self.shared_bytes).wrapping_sub(at + shared_bytes);
                self.put_at(at, size as u32);
            }
        }
        Ok(())
    }

    /// Elements up to one that has terms in it, or is long.
    fn elements(
        &mut self,
        of: Term<'h>,
        mut rest: &'h [Term<'h>],
        steps: usize,
    ) -> Result<(), TooLarge> {
        while let Some((first, others)) = rest.split_first() {
            rest = others;
            let is_leaf = self.leaf(*first);
            if is_leaf && !self.is_over(steps) && !self.is_full() {
                continue;
            }
            if !rest.is_empty() {
                self.todo.push(Todo::Elements { of, rest });
            }
            return if is_leaf { Ok(()) } else { self.term(*first) };
        }
        Ok(())
    }

    /// The elements of a list up to one that has terms in it, or is long; behind the last one what the list ends with.
    fn tail(
        &mut self,
        mut rest: Term<'h>,
        at: usize,
        mut len: u32,
        steps: usize,
    ) -> Result<(), TooLarge> {
        while let Some(cell) = rest.as_cons() {
            (rest, len) = (cell.tail(), len + 1);
            let is_leaf = self.leaf(cell.head());
            if is_leaf && !self.is_over(steps) && !self.is_full() {
                continue;
            }
            self.todo.push(Todo::Tail { rest, at, len });
            return if is_leaf {
                Ok(())
            } else {
                self.term(cell.head())
            };
        }
        self.put_at(at, len);
        self.term(rest)
    }

    /// Writes a term that is one of the shortest. Returns whether it was one.
    #[inline]
    fn leaf(&mut self, term: Term<'h>) -> bool {
        if let Some(value) = term.as_small() {
            self.small(value);
        } else if let Some(atom) = term.as_atom() {
            self.atom(atom);
        } else {
            return false;
        }
        self.steps += 2;
        true
    }

    fn term(&mut self, term: Term<'h>) -> Result<(), TooLarge> {
        self.steps += 2;
        match term.view() {
            View::Nil => self.out.push(NIL_EXT),
            View::Atom(atom) => self.atom(atom),
            View::Small(value) => self.small(value),
            View::Big(big) => self.big(IntRef::new(big.is_negative(), big.limbs())),
            View::Float(value) => self.float(value),
            View::Pid(pid) => self.pid(pid),
            View::Port(port) => {
                self.out.push(V4_PORT_EXT);
                let creation = self.this_node();
                self.out.extend_from_slice(&port.0.to_be_bytes());
                self.u32(creation);
            }
            View::Ref(reference) => self.reference(reference),
            View::External(external) => self.external(external),
            View::Cons(_) => self.list(term),
            View::Tuple(tuple) => {
                match u8::try_from(tuple.arity()) {
                    Ok(arity) => self.out.extend_from_slice(&[SMALL_TUPLE_EXT, arity]),
                    Err(_) => self.tag_and_size(LARGE_TUPLE_EXT, tuple.arity()),
                }
                let rest = tuple.elements();
                self.todo.push(Todo::Elements { of: term, rest });
            }
            View::Map(map) => self.map(map),
            View::Bits(bits) => return self.bits(bits),
            View::Fun(fun) => self.fun(term, fun),
            View::Record(record) => self.record(record),
        }
        Ok(())
    }

    fn u32(&mut self, value: u32) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    fn tag_and_size(&mut self, tag: u8, size: usize) {
        let [a, b, c, d] = (size as u32).to_be_bytes();
        self.out.extend_from_slice(&[tag, a, b, c, d]);
    }

    fn atom(&mut self, atom: Atom) {
        if let Some(atoms) = &mut self.atoms
            && let Some(place) = atoms.place(atom)
        {
            self.out.extend_from_slice(&[ATOM_CACHE_REF, place]);
            return;
        }
        let name = atom.name();
        if self.options.minor_version < 2
            && let Some(latin1) = crate::text::unicode::latin1_from_str(name)
        {
            self.out.push(ATOM_EXT);
            self.out.extend((latin1.len() as u16).to_be_bytes());
            self.out.extend(latin1);
            return;
        }
        match u8::try_from(name.len()) {
            Ok(len) => self.out.extend_from_slice(&[SMALL_ATOM_UTF8_EXT, len]),
            Err(_) => {
                self.out.push(ATOM_UTF8_EXT);
                self.out.extend((name.len() as u16).to_be_bytes());
            }
        }
        self.out.extend_from_slice(name.as_bytes());
    }

    fn small(&mut self, value: i64) {
        if let Ok(byte) = u8::try_from(value) {
            self.out.extend_from_slice(&[SMALL_INTEGER_EXT, byte]);
        } else if let Ok(value) = i32::try_from(value) {
            let [a, b, c, d] = value.to_be_bytes();
            self.out.extend_from_slice(&[INTEGER_EXT, a, b, c, d]);
        } else {
            self.big(IntRef::of_i64(value, &mut [0]));
        }
    }

    fn big(&mut self, value: IntRef<'_>) {
        let size = value.bit_len().div_ceil(8) as usize;
        match u8::try_from(size) {
            Ok(size) => self.out.extend_from_slice(&[SMALL_BIG_EXT, size]),
            Err(_) => self.tag_and_size(LARGE_BIG_EXT, size),
        }
        self.out.push(value.is_negative().into());
        self.out.extend(value.mag_le_bytes());
    }

    fn float(&mut self, value: f64) {
        if self.options.minor_version > 0 {
            let [a, b, c, d, e, f, g, h] = value.to_be_bytes();
            self.out
                .extend_from_slice(&[NEW_FLOAT_EXT, a, b, c, d, e, f, g, h]);
            return;
        }
        let text = format_float(value, FloatFormat::DEFAULT).expect("twenty decimals fit");
        self.out.push(FLOAT_EXT);
        let end = self.out.len() + 31;
        self.out.extend_from_slice(text.as_bytes());
        self.out.resize(end, 0);
    }

    /// Writes the name of this node and returns its creation.
    fn this_node(&mut self) -> u32 {
        if self.options.local {
            self.out.push(NIL_EXT);
            return 0;
        }
        let (name, creation) = this_node();
        self.atom(name);
        creation
    }

    fn pid(&mut self, pid: Pid) {
        self.out.push(NEW_PID_EXT);
        let creation = self.this_node();
        self.u32(pid.number() as u32);
        self.u32(pid.serial() as u32);
        self.u32(creation);
    }

    fn reference(&mut self, reference: Ref<'_>) {
        let numbers = reference.numbers();
        if let Some(magic) = reference.magic() {
            magic.save();
        }
        self.out.push(NEWER_REFERENCE_EXT);
        match reference.pid() {
            // One that names a process carries the pid's word too.
            Some(pid) => {
                self.out.extend_from_slice(&5u16.to_be_bytes());
                let creation = self.this_node();
                self.u32(creation);
                numbers.iter().for_each(|n| self.u32(*n));
                let word = pid.term().raw().0;
                self.u32(word as u32);
                self.u32((word >> 32) as u32);
            }
            None => {
                self.out.extend_from_slice(&3u16.to_be_bytes());
                let creation = self.this_node();
                self.u32(creation);
                numbers.iter().for_each(|n| self.u32(*n));
            }
        }
    }

    fn external(&mut self, external: External<'_>) {
        let (node, data) = (external.node(), external.data());
        match external.kind() {
            tag::EXTERNAL_PID => {
                self.out.push(NEW_PID_EXT);
                self.atom(node.name);
                self.u32(data[0] as u32);
                self.u32((data[0] >> 32) as u32);
                self.u32(node.creation);
            }
            tag::EXTERNAL_PORT => {
                self.out.push(V4_PORT_EXT);
                self.atom(node.name);
                self.out.extend_from_slice(&data[0].to_be_bytes());
                self.u32(node.creation);
            }
            _ => {
                let n = data[0] as u32 as usize;
                self.out.push(NEWER_REFERENCE_EXT);
                self.out.extend_from_slice(&(n as u16).to_be_bytes());
                self.atom(node.name);
                self.u32(node.creation);
                for i in 1..=n {
                    self.u32((data[i / 2] >> (32 * (i % 2))) as u32);
                }
            }
        }
    }

    fn list(&mut self, list: Term<'h>) {
        let (bytes, is_string) = leading_bytes(list);
        // A string is looked at and written; of other lists the beginning is looked at twice.
        self.steps += bytes.len() / 2
            + if is_string {
                bytes.len()
            } else {
                bytes.len() / 2
            };
        if is_string {
            self.out.push(STRING_EXT);
            self.out.extend((bytes.len() as u16).to_be_bytes());
            self.out.extend_from_slice(&bytes);
            return;
        }
        let at = self.out.len() + 1;
        self.tag_and_size(LIST_EXT, 0);
        self.todo.push(Todo::Tail {
            rest: list,
            at,
            len: 0,
        });
    }

    fn map(&mut self, map: Map<'h>) {
        self.tag_and_size(MAP_EXT, map.len());
        if self.options.deterministic {
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by(|(a, _), (b, _)| compare::cmp_exact(*a, *b));
            for (key, value) in pairs.into_iter().rev() {
                self.todo.extend([Todo::Term(value), Todo::Term(key)]);
            }
            return;
        }
        if let Some((keys, values)) = map.flat() {
            let (of, keys) = (map.term(), keys.elements());
            self.todo.push(Todo::Pairs { of, keys, values });
        } else if let Some((_, children)) = map.root() {
            self.todo.extend(children.iter().copied().map(Todo::Node));
        }
    }

    /// Later children come first, as on ERTS's stack.
    fn node(&mut self, node: Term<'h>) -> Result<(), TooLarge> {
        match node.view() {
            View::Cons(leaf) => {
                self.todo.push(Todo::Term(leaf.tail()));
                return self.term(leaf.head());
            }
            View::Tuple(leaves) => {
                let leaves = leaves.elements().iter().copied();
                self.todo.extend(leaves.map(Todo::Node));
            }
            _ => {
                self.steps += 2;
                let (_, children) = Map::inner(node).expect("the third kind of node");
                self.todo.extend(children.iter().copied().map(Todo::Node));
            }
        }
        Ok(())
    }

    fn bits(&mut self, bits: Bits<'h>) -> Result<(), TooLarge> {
        let size = bits.bit_len().div_ceil(8);
        if size >= u32::MAX as usize {
            return Err(TooLarge);
        }
        let last = bits.bit_len() % 8;
        if last == 0 {
            self.tag_and_size(BINARY_EXT, size);
        } else {
            self.tag_and_size(BIT_BINARY_EXT, size);
            self.out.push(last as u8);
        }
        let is_long = |most: usize| bits.bit_len() > 8 * most;
        if self.share_above.is_some_and(is_long) && bits.bit_offset().is_multiple_of(8) {
            if self.counted.is_none() {
                self.shared.push((self.out.len(), bits));
            }
            self.shared_bytes += bits.byte_len();
            if last != 0 {
                self.out.extend(bits.to_vec().last());
            }
        } else {
            append(&mut self.out, &bits.bytes());
        }
        Ok(())
    }

    fn fun(&mut self, of: Term<'h>, fun: Fun<'h>) {
        if let Some(export) = fun.export() {
            self.out.push(EXPORT_EXT);
            self.atom(export.module);
            self.atom(export.function);
            self.small(export.arity.into());
            return;
        }
        let entry = fun.entry().expect("a fun is external or local");
        let at = self.out.len() + 1;
        self.tag_and_size(NEW_FUN_EXT, 0);
        self.out.push(fun.arity());
        self.out.extend(entry.uniq);
        self.u32(entry.index);
        self.u32(fun.env().len() as u32);
        self.atom(entry.module);
        self.small(entry.index.into());
        self.small(entry.old_uniq.into());
        // The process that made it is not known; the format has a place for it all the same.
        self.pid(Pid(0));
        let shared_bytes = self.shared_bytes;
        self.todo.push(Todo::FunSize { at, shared_bytes });
        let rest = fun.env();
        self.todo.push(Todo::Elements { of, rest });
    }

    /// Fields and values in the order of the definition in the source.
    fn record(&mut self, record: crate::term::Record<'h>) {
        /// Words of a definition before its keys: order, hash, module, name, is exported.
        const FIXED: usize = 5;
        let definition = record.definition().elements();
        let order = definition[0].as_tuple().expect("a definition has an order");
        let atom = |t: Term<'_>| t.as_atom().expect("names are atoms");
        let place = |t: &Term<'_>| t.as_index().expect("an order is of small integers");
        self.tag_and_size(RECORD_EXT, record.values().len());
        self.out
            .push((definition[4] == crate::term::am::true_).into());
        self.atom(atom(definition[2]));
        self.atom(atom(definition[3]));
        for at in order.elements() {
            self.atom(atom(definition[FIXED + place(at)]));
        }
        for at in order.elements().iter().rev() {
            self.todo.push(Todo::Term(record.values()[place(at)]));
        }
    }
}

/// The bytes that a list begins with, and whether that is all of it, and short enough for a string.
fn leading_bytes(list: Term<'_>) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let mut rest = list;
    while let Some(cell) = rest.as_cons() {
        let byte = cell.head().as_small().and_then(|n| u8::try_from(n).ok());
        let Some(byte) = byte else {
            return (bytes, false);
        };
        bytes.push(byte);
        if bytes.len() > MAX_STRING_LEN {
            return (bytes, false);
        }
        rest = cell.tail();
    }
    (bytes, rest.is_nil())
}
