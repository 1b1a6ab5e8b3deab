//! `erlang:phash2` and `erlang:phash` of terms. What is fed, and how it is mixed, is
//! [`crate::hash::portable`]'s business; here terms are walked in the order it asks for.

use smallvec::SmallVec;

use crate::hash::portable::{Bits as HashBits, Hash1, Hash2, LocalFun};
use crate::num::limbs::IntRef;
use crate::term::map::Entries;
use crate::term::{Bits, Cons, External, Fun, Term, View, tag};

/// The hash of `erlang:phash2/1,2` before it is cut to its range.
#[must_use]
pub fn phash2(term: Term<'_>) -> u32 {
    let mut walker = Walk2 {
        hash: Hash2::new(),
        pending: SmallVec::new(),
    };
    walker.walk(term);
    walker.hash.value()
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
fn with_bits(bits: Bits<'_>, feed: impl FnOnce(HashBits<'_>)) {
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

/// What hashes of identifiers are made from.
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

enum Pending2<'h> {
    Term(Term<'h>),
    Terms(&'h [Term<'h>]),
    /// The rest of a list.
    Rest(Term<'h>),
    Pairs(Entries<'h>),
    PairEnd,
}

struct Walk2<'h> {
    hash: Hash2,
    pending: SmallVec<[Pending2<'h>; 8]>,
}

impl<'h> Walk2<'h> {
    fn walk(&mut self, term: Term<'h>) {
        self.term(term);
        while let Some(next) = self.pending.pop() {
            match next {
                Pending2::Term(term) => self.term(term),
                Pending2::Terms([]) => {}
                Pending2::Terms([first, rest @ ..]) => {
                    self.pending.push(Pending2::Terms(rest));
                    self.term(*first);
                }
                Pending2::Rest(rest) => match rest.as_cons() {
                    Some(cell) => self.list(cell),
                    None => self.term(rest),
                },
                Pending2::Pairs(mut pairs) => match pairs.next() {
                    Some((key, value)) => {
                        self.pending.push(Pending2::Pairs(pairs));
                        self.pending.push(Pending2::PairEnd);
                        self.pending.push(Pending2::Term(value));
                        self.pending.push(Pending2::Term(key));
                    }
                    None => self.hash.map_end(),
                },
                Pending2::PairEnd => self.hash.map_pair_end(),
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
                self.hash.tuple(tuple.arity() as u32);
                self.pending.push(Pending2::Terms(tuple.elements()));
            }
            View::Record(record) => {
                let values = record.values();
                self.hash
                    .record(values.len() as u32, record.definition_hash());
                self.pending.push(Pending2::Terms(values));
            }
            View::Map(map) => {
                self.hash.map_start(map.len() as u32);
                if !map.is_empty() {
                    self.pending.push(Pending2::Pairs(map.iter()));
                }
            }
            View::Fun(fun) => {
                if let Some(local) = local_fun(fun) {
                    self.hash.local_fun(local);
                    self.pending.push(Pending2::Terms(fun.env()));
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
                self.hash.string_end();
                self.pending.push(Pending2::Rest(tail));
                return self.pending.push(Pending2::Term(head));
            };
            self.hash.string_byte(byte);
            match tail.as_cons() {
                Some(next) => cell = next,
                None => {
                    self.hash.string_end();
                    return self.pending.push(Pending2::Term(tail));
                }
            }
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
