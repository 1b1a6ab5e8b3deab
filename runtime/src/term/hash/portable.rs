//! Computes `erlang:phash2` and `erlang:phash` of terms. [`crate::hash::portable`] says what is fed, and how it is
//! mixed. This module walks terms in the order that it asks for.

use smallvec::SmallVec;

use crate::hash::portable::{Bits as HashBits, Hash1, Hash2, LocalFun};
use crate::num::limbs::IntRef;
use crate::term::{Bits, Cons, External, Fun, Map, Term, View, tag};

/// The hash of `erlang:phash2/1,2` before it is cut to its range.
#[must_use]
pub fn phash2(term: Term<'_>) -> u32 {
    let mut walker = Walk2::of(term, i64::MAX);
    walker.walk();
    walker.hash.value()
}

/// As [`phash2`], for a term that is so short that it makes fewer steps than [`BRIEF_STEPS`], without a stack of its
/// own; `None` for others.
#[must_use]
pub(crate) fn brief_phash2(term: Term<'_>) -> Option<u32> {
    let (mut hash, mut steps) = (Hash2::new(), BRIEF_STEPS - 1);
    if let Some(value) = term.as_small() {
        hash.small(value);
        return Some(hash.value());
    }
    brief(&mut hash, term, &mut steps)?;
    Some(hash.value())
}

/// Steps of a term that is not brief.
pub(crate) const BRIEF_STEPS: usize = 64;

/// Feeds a term whose parts make no more than these steps, which are lessened, by no fewer than [`Walk2`] makes.
fn brief(hash: &mut Hash2, term: Term<'_>, steps: &mut usize) -> Option<()> {
    let view = term.view();
    match view {
        View::Bits(bits) => {
            *steps = steps.checked_sub(bit_steps(bits))?;
            with_bits(bits, |bits| hash.bits(bits));
        }
        View::Cons(mut cell) => loop {
            *steps = steps.checked_sub(2)?;
            match byte_of(cell.head()) {
                Some(byte) => hash.string_byte(byte),
                None => {
                    hash.string_end();
                    brief(hash, cell.head(), steps)?;
                }
            }
            match cell.tail().as_cons() {
                Some(next) => cell = next,
                None => {
                    hash.string_end();
                    return brief(hash, cell.tail(), steps);
                }
            }
        },
        View::Tuple(tuple) => {
            *steps = steps.checked_sub(2 * tuple.arity() + 1)?;
            hash.tuple(tuple.arity() as u32);
            for element in tuple.elements() {
                brief(hash, *element, steps)?;
            }
        }
        _ => return leaf(hash, view).then_some(()),
    }
    Some(())
}

/// Feeds a term that is one step, whatever its size.
#[inline]
fn leaf(hash: &mut Hash2, view: View<'_>) -> bool {
    match view {
        View::Atom(atom) => hash.atom(atom.hash()),
        View::Nil => hash.nil(),
        View::Small(value) => hash.small(value),
        View::Big(big) => hash.integer(IntRef::new(big.is_negative(), big.limbs())),
        View::Float(value) => hash.float(value),
        View::Pid(pid) => hash.pid(pid.number() as u32),
        View::Port(port) => hash.port(port.0),
        View::Ref(r) => hash.reference(r.numbers()[0]),
        View::External(it) => match external(it) {
            Identifier::Pid(number) => hash.pid(number),
            Identifier::Port(number) => hash.port(number),
            Identifier::Ref(number) => hash.reference(number),
        },
        _ => return false,
    }
    true
}

/// Steps that a bitstring is besides the one that every term is.
#[inline]
fn bit_steps(bits: Bits<'_>) -> usize {
    /// Bytes of a binary that are one step; a binary is one, too.
    const BYTES_PER_STEP: usize = 12;
    match bits.bit_len() {
        0 => 0,
        _ => (bits.byte_len() / BYTES_PER_STEP).max(1),
    }
}

/// A hash of `erlang:phash2/1,2` in the making, without the terms that are still to be walked.
pub struct Paused {
    hash: Hash2,
    kinds: Vec<Kind>,
    /// Steps made before they were paid for.
    owed: i64,
}

/// As [`phash2`], but pauses when `steps`, which is lessened, are made. `paused` is where it goes on.
///
/// # Errors
/// What it has come to where it pauses, and the terms that are still to be walked.
pub(crate) fn phash2_some<'h>(
    term: Term<'h>,
    paused: Option<(Paused, Vec<Term<'h>>)>,
    steps: &mut i64,
) -> Result<u32, (Paused, Vec<Term<'h>>)> {
    let mut walker = match paused {
        // The first term is there without a step.
        None => Walk2::of(term, *steps + 1),
        Some((paused, terms)) => {
            *steps -= paused.owed;
            Walk2 {
                hash: paused.hash,
                pending: paused.kinds.into_iter().zip(terms).collect(),
                steps: *steps,
            }
        }
    };
    walker.walk();
    *steps = walker.steps;
    if walker.pending.is_empty() && walker.steps >= 0 {
        return Ok(walker.hash.value());
    }
    let (kinds, terms) = walker.pending.into_iter().unzip();
    let (hash, owed) = (walker.hash, -walker.steps);
    Err((Paused { hash, kinds, owed }, terms))
}

/// The hash of `erlang:phash/2` before it is cut to its range.
#[must_use]
pub fn phash(term: Term<'_>) -> u32 {
    let mut walker = Walk1 {
        hash: Hash1::new(),
        pending: SmallVec::new(),
    };
    walker.walk(term);
    walker.hash.value()
}

/// Feeds the whole bytes and the tail of a bitstring.
#[inline]
fn with_bits(bits: Bits<'_>, feed: impl FnOnce(HashBits<'_>)) {
    if let Some(bytes) = bits.whole_bytes() {
        return feed(HashBits::bytes(bytes));
    }
    let (bytes, whole) = (bits.bytes(), bits.byte_len());
    feed(HashBits {
        bytes: &bytes[..whole],
        tail_bits: (bits.bit_len() % 8) as u32,
        tail: bytes.get(whole).copied().unwrap_or(0),
    });
}

/// The byte that an element of a list is.
fn byte_of(term: Term<'_>) -> Option<u8> {
    term.as_small().and_then(|n| u8::try_from(n).ok())
}

/// The numbers that hashes of identifiers are made from.
enum Identifier {
    Pid(u32),
    Port(u64),
    Ref(u32),
}

fn external(external: External<'_>) -> Identifier {
    match external.kind() {
        tag::EXTERNAL_PID => Identifier::Pid(external.data()[0] as u32),
        tag::EXTERNAL_PORT => Identifier::Port(external.data()[0]),
        _ => Identifier::Ref(external.ref_numbers().first().copied().unwrap_or(0)),
    }
}

fn local_fun(fun: Fun<'_>) -> Option<LocalFun> {
    fun.entry().map(|entry| LocalFun {
        module_hash: entry.module.hash(),
        index: entry.index,
        old_uniq: entry.old_uniq,
        num_free: fun.env().len() as u32,
    })
}

/// The pending work on a term.
#[derive(Clone, Copy)]
enum Kind {
    Term,
    /// The rest of a string that has been begun.
    String,
    /// Of the trie of a large map.
    Node,
    /// Behind a pair of a map, and behind the map: the term is none.
    PairEnd,
    MapEnd,
}

/// Walks a term; the steps are those that ERTS counts. Source: `make_hash2_helper()` in `erl_term_hashing.c`.
struct Walk2<'h> {
    hash: Hash2,
    pending: SmallVec<[(Kind, Term<'h>); 8]>,
    steps: i64,
}

impl<'h> Walk2<'h> {
    fn of(term: Term<'h>, steps: i64) -> Walk2<'h> {
        Walk2 {
            hash: Hash2::new(),
            pending: smallvec::smallvec![(Kind::Term, term)],
            steps,
        }
    }

    fn walk(&mut self) {
        while self.steps > 0
            && let Some((kind, term)) = self.pending.pop()
        {
            self.steps -= 1;
            match kind {
                Kind::Term => self.term(term),
                Kind::String => {
                    let cell = term.as_cons().expect("a string goes on");
                    self.list(cell);
                }
                Kind::Node => self.node(term),
                Kind::PairEnd => self.hash.map_pair_end(),
                Kind::MapEnd => self.hash.map_end(),
            }
        }
    }

    fn terms(&mut self, terms: &[Term<'h>]) {
        let terms = terms.iter().rev().map(|term| (Kind::Term, *term));
        self.pending.extend(terms);
    }

    fn pair(&mut self, key: Term<'h>, value: Term<'h>) {
        self.pending.push((Kind::PairEnd, Term::NIL));
        self.pending.push((Kind::Term, value));
        self.pending.push((Kind::Term, key));
    }

    /// The children of a node.
    fn children(&mut self, children: &[Term<'h>]) {
        self.steps -= children.len() as i64;
        for child in children {
            match child.view() {
                View::Cons(leaf) => self.pair(leaf.head(), leaf.tail()),
                View::Tuple(leaves) => {
                    for leaf in leaves.elements() {
                        let leaf = leaf.as_cons().expect("a leaf is a pair");
                        self.pair(leaf.head(), leaf.tail());
                    }
                }
                _ => self.pending.push((Kind::Node, *child)),
            }
        }
    }

    fn node(&mut self, node: Term<'h>) {
        let (_, children) = Map::inner(node).expect("the third kind of node");
        self.children(children);
    }

    fn map(&mut self, map: Map<'h>) {
        self.hash.map_start(map.len() as u32);
        if map.is_empty() {
            return;
        }
        self.pending.push((Kind::MapEnd, Term::NIL));
        if let Some((keys, values)) = map.flat() {
            self.steps -= map.len() as i64;
            for (key, value) in keys.elements().iter().zip(values).rev() {
                self.pair(*key, *value);
            }
        } else if let Some((_, children)) = map.root() {
            self.children(children);
        }
    }

    fn bits(&mut self, bits: Bits<'h>) {
        self.steps -= bit_steps(bits) as i64;
        with_bits(bits, |bits| self.hash.bits(bits));
    }

    fn term(&mut self, term: Term<'h>) {
        match term.view() {
            View::Bits(bits) => self.bits(bits),
            View::Cons(cell) => self.list(cell),
            View::Tuple(tuple) => {
                self.hash.tuple(tuple.arity() as u32);
                self.steps -= (tuple.arity() as i64 - 1).max(0);
                self.terms(tuple.elements());
            }
            View::Record(record) => {
                let values = record.values();
                self.hash
                    .record(values.len() as u32, record.definition_hash());
                self.steps -= (values.len() as i64 - 1).max(0);
                self.terms(values);
            }
            View::Map(map) => self.map(map),
            View::Fun(fun) => self.fun(fun),
            other => {
                let is_leaf = leaf(&mut self.hash, other);
                debug_assert!(is_leaf, "all others have parts");
            }
        }
    }

    fn fun(&mut self, fun: Fun<'h>) {
        if let Some(local) = local_fun(fun) {
            self.hash.local_fun(local);
            self.steps -= (fun.env().len() as i64 - 1).max(0);
            self.terms(fun.env());
        } else if let Some(export) = fun.export() {
            let (module, function) = (export.module.hash(), export.function.hash());
            self.hash
                .external_fun(module, function, export.arity.into());
        }
    }

    fn list(&mut self, mut cell: Cons<'h>) {
        loop {
            let [head, tail] = *cell.words();
            let Some(byte) = byte_of(head) else {
                self.hash.string_end();
                self.pending.push((Kind::Term, tail));
                return self.pending.push((Kind::Term, head));
            };
            self.hash.string_byte(byte);
            match tail.as_cons() {
                Some(_) if self.steps <= 1 => {
                    return self.pending.push((Kind::String, tail));
                }
                Some(next) => cell = next,
                None => {
                    self.hash.string_end();
                    return self.pending.push((Kind::Term, tail));
                }
            }
            self.steps -= 1;
        }
    }
}

enum Pending1<'h> {
    Term(Term<'h>),
    Terms(&'h [Term<'h>]),
    Rest(Term<'h>),
    ListEnd,
    TupleEnd(u32),
    RecordEnd(u32),
}

struct Walk1<'h> {
    hash: Hash1,
    pending: SmallVec<[Pending1<'h>; 8]>,
}

impl<'h> Walk1<'h> {
    fn walk(&mut self, term: Term<'h>) {
        self.term(term);
        while let Some(next) = self.pending.pop() {
            match next {
                Pending1::Term(term) => self.term(term),
                Pending1::Terms([]) => {}
                Pending1::Terms([first, rest @ ..]) => {
                    self.pending.push(Pending1::Terms(rest));
                    self.term(*first);
                }
                Pending1::Rest(rest) => match rest.as_cons() {
                    Some(cell) => self.list(cell),
                    None => {
                        self.pending.push(Pending1::ListEnd);
                        self.term(rest);
                    }
                },
                Pending1::ListEnd => self.hash.list_end(),
                Pending1::TupleEnd(arity) => self.hash.tuple(arity),
                Pending1::RecordEnd(arity) => self.hash.record(arity),
            }
        }
    }

    fn term(&mut self, term: Term<'h>) {
        match term.view() {
            View::Atom(atom) => self.hash.atom(atom.hash()),
            View::Nil => self.hash.nil(),
            View::Small(value) => self.hash.small(value),
            View::Big(big) => self
                .hash
                .integer(IntRef::new(big.is_negative(), big.limbs())),
            View::Float(value) => self.hash.float(value),
            View::Bits(bits) => with_bits(bits, |bits| self.hash.bits(bits)),
            View::Cons(cell) => self.list(cell),
            View::Tuple(tuple) => {
                self.pending.push(Pending1::TupleEnd(tuple.arity() as u32));
                self.pending.push(Pending1::Terms(tuple.elements()));
            }
            View::Record(record) => {
                let values = record.values();
                self.pending
                    .push(Pending1::RecordEnd(values.len() as u32 + 1));
                self.pending.push(Pending1::Terms(values));
                self.pending
                    .push(Pending1::Term(record.definition().term()));
            }
            View::Map(_) => self.hash.map(phash2(term)),
            View::Fun(fun) => {
                if let Some(local) = local_fun(fun) {
                    self.hash.local_fun(local);
                    self.pending.push(Pending1::Terms(fun.env()));
                } else if let Some(export) = fun.export() {
                    let (module, function) = (export.module.hash(), export.function.hash());
                    self.hash
                        .external_fun(module, function, export.arity.into());
                }
            }
            View::Pid(pid) => self.hash.pid(pid.number() as u32),
            View::Port(port) => self.hash.port(port.0),
            View::Ref(r) => self.hash.reference(r.numbers()[0]),
            View::External(it) => match external(it) {
                Identifier::Pid(number) => self.hash.pid(number),
                Identifier::Port(number) => self.hash.port(number),
                Identifier::Ref(number) => self.hash.reference(number),
            },
        }
    }

    fn list(&mut self, mut cell: Cons<'h>) {
        loop {
            let [head, tail] = *cell.words();
            let Some(byte) = byte_of(head) else {
                self.pending.push(Pending1::Rest(tail));
                return self.pending.push(Pending1::Term(head));
            };
            self.hash.string_byte(byte);
            match tail.as_cons() {
                Some(next) => cell = next,
                None => return self.pending.push(Pending1::Rest(tail)),
            }
        }
    }
}
