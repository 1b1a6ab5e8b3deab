//! The internal hash of terms, by which tries of maps, ETS tables and the process dictionary find keys.
//!
//! Terms that are `=:=` hash alike. The values are those of ERTS's release build for all terms that have no address or
//! atom number in them, so that large maps iterate in OTP's own order.
//! Source: `make_internal_hash()` in `erl_term_hashing.c`, OTP 29.
//!
//! The number of an atom depends on what the emulator has seen before, such as names of folders. In a deterministic run
//! atoms therefore hash by their names, and large maps iterate in the same order on every machine.

use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use crate::hash::internal::{InternalHash, mix64};
use crate::term::{Atom, Bits, Cons, External, Fun, Map, Record, Term, View, tag};

/// The type of a word, which is fed before the word.
#[derive(Clone, Copy)]
enum Type {
    Immediate = 1,
    ArrayElement,
    Car,
    Cdr,
    String,
    Tuple,
    Record,
    FlatMap,
    HeadArray,
    HeadBitmap,
    Node,
    Bits,
    LocalFun,
    ExternalFun,
    NegBig,
    PosBig,
    Ref,
    ExternalRef,
    ExternalPid,
    ExternalPort,
    Float,
}

static ATOMS_BY_NAME: AtomicBool = AtomicBool::new(false);

/// From now on, atoms hash by their names: call before any term is hashed.
pub(crate) fn hash_atoms_by_name() {
    ATOMS_BY_NAME.store(true, Ordering::Relaxed);
}

/// What is hashed of an immediate.
#[inline]
fn word(immediate: Term<'_>) -> u64 {
    let word = immediate.raw().0;
    if !ATOMS_BY_NAME.load(Ordering::Relaxed) {
        return word;
    }
    immediate.as_atom().map_or(word, Atom::name_word)
}

/// The internal hash of a term.
#[inline]
#[must_use]
pub(crate) fn internal_hash(term: Term<'_>) -> u64 {
    salted_hash(term, 0)
}

/// The internal hash of a term, one of many.
#[inline]
#[must_use]
pub(crate) fn salted_hash(term: Term<'_>, salt: u64) -> u64 {
    if term.raw().is_immed() {
        return mix64(word(term).wrapping_add(salt));
    }
    let mut walker = Walker {
        hash: InternalHash::new(salt),
        pending: SmallVec::new(),
    };
    walker.walk(term);
    walker.hash.finish()
}

enum Pending<'h> {
    Term(Term<'h>),
    /// The tail of a list, when it is no list itself.
    Cdr(Term<'h>),
    /// Root or inner node of a trie.
    Node(Term<'h>),
}

struct Walker<'h> {
    hash: InternalHash,
    pending: SmallVec<[Pending<'h>; 8]>,
}

const fn halves(low: u64, high: u64) -> u64 {
    low | high << 32
}

impl<'h> Walker<'h> {
    fn walk(&mut self, term: Term<'h>) {
        self.term(term);
        while let Some(next) = self.pending.pop() {
            match next {
                Pending::Term(term) => self.term(term),
                Pending::Cdr(term) => {
                    self.hash.beta(Type::Cdr as u64);
                    self.term(term);
                }
                Pending::Node(node) => self.node(node),
            }
        }
    }

    fn tag(&mut self, kind: Type, value: u64) {
        self.hash.pair(kind as u64, value);
    }

    /// An element: at once where it is an immediate, else when its turn comes.
    fn element(&mut self, term: Term<'h>) {
        if term.raw().is_immed() {
            self.tag(Type::Immediate, word(term));
        } else {
            self.hash.alpha(Type::ArrayElement as u64);
            self.pending.push(Pending::Term(term));
        }
    }

    /// Elements of which the last is hashed first where it is no immediate.
    fn elements(&mut self, terms: &'h [Term<'h>]) {
        if let Some((last, rest)) = terms.split_last() {
            rest.iter().for_each(|t| self.element(*t));
            self.pending.push(Pending::Term(*last));
        }
    }

    fn term(&mut self, term: Term<'h>) {
        match term.view() {
            View::Cons(cell) => self.list(cell),
            View::Tuple(tuple) => {
                self.tag(Type::Tuple, tuple.arity() as u64);
                self.elements(tuple.elements());
            }
            View::Record(record) => self.record(record),
            View::Map(map) => self.map(map),
            View::Fun(fun) => self.fun(fun),
            View::Bits(bits) => self.bits(bits),
            View::Big(big) => {
                let kind = if big.is_negative() {
                    Type::NegBig
                } else {
                    Type::PosBig
                };
                let limbs = big.limbs();
                self.hash.alpha(halves(kind as u64, limbs.len() as u64));
                for pair in limbs.chunks(2) {
                    match *pair {
                        [a, b] => self.hash.pair(a, b),
                        [limb, ..] => self.hash.beta(limb),
                        [] => {}
                    }
                }
            }
            View::Ref(r) => {
                let n = r.all_numbers();
                self.hash.alpha(halves(Type::Ref as u64, u64::from(n[0])));
                self.hash.beta(halves(u64::from(n[1]), u64::from(n[2])));
                if let [_, _, _, low, high] = n[..] {
                    self.hash.alpha(halves(u64::from(low), u64::from(high)));
                }
            }
            View::External(external) => self.external(external),
            View::Float(value) => self.tag(Type::Float, value.to_bits()),
            View::Small(_) | View::Atom(_) | View::Pid(_) | View::Port(_) | View::Nil => {
                self.tag(Type::Immediate, word(term));
            }
        }
    }

    fn list(&mut self, mut cell: Cons<'h>) {
        let (mut text, mut bytes) = (0u64, 0u64);
        loop {
            let [head, tail] = *cell.words();
            if let Some(byte) = head.as_small().filter(|n| (0..256).contains(n)) {
                text = text << 8 | byte as u64;
                bytes += 1;
                let next = tail.as_cons();
                if bytes == 4 || next.is_none() {
                    self.string(&mut text, &mut bytes);
                }
                match next {
                    Some(next) => cell = next,
                    None => return self.pending.push(Pending::Term(tail)),
                }
                continue;
            }
            self.string(&mut text, &mut bytes);
            if !head.raw().is_immed() {
                self.pending.push(match tail.as_cons() {
                    Some(_) => Pending::Term(tail),
                    None => Pending::Cdr(tail),
                });
                self.hash.alpha(Type::Car as u64);
                return self.pending.push(Pending::Term(head));
            }
            self.hash
                .alpha(halves(Type::Immediate as u64, Type::Car as u64));
            self.hash.beta(word(head));
            match tail.as_cons() {
                Some(next) => cell = next,
                None => {
                    self.hash.alpha(Type::Cdr as u64);
                    return self.pending.push(Pending::Term(tail));
                }
            }
        }
    }

    fn string(&mut self, text: &mut u64, bytes: &mut u64) {
        if *bytes > 0 {
            self.hash
                .alpha(halves(Type::String as u64 | *bytes << 8, *text));
            (*text, *bytes) = (0, 0);
        }
    }

    fn record(&mut self, record: Record<'h>) {
        let values = record.values();
        self.tag(Type::Record, values.len() as u64 + 1);
        self.element(Term::small(i64::from(record.definition_hash())));
        self.elements(values);
    }

    fn map(&mut self, map: Map<'h>) {
        let Some((keys, values)) = map.flat() else {
            let full = map.root().is_some_and(|(bitmap, _)| bitmap == 0xffff);
            let kind = if full {
                Type::HeadArray
            } else {
                Type::HeadBitmap
            };
            self.tag(kind, map.len() as u64);
            return self.children(map.root().map_or(&[], |(_, children)| children));
        };
        self.tag(Type::FlatMap, map.len() as u64);
        let keys = keys.elements();
        let (Some((last_key, keys)), Some((last_value, values))) =
            (keys.split_last(), values.split_last())
        else {
            return;
        };
        for (key, value) in keys.iter().zip(values) {
            self.element(*value);
            self.element(*key);
        }
        self.element(*last_value);
        self.pending.push(Pending::Term(*last_key));
    }

    fn node(&mut self, node: Term<'h>) {
        match Map::inner(node) {
            Some((_, children)) => {
                self.hash.alpha(Type::Node as u64);
                self.children(children);
            }
            // A collision: hashed as the tuple it is.
            None => self.term(node),
        }
    }

    fn children(&mut self, children: &'h [Term<'h>]) {
        for child in children {
            match child.as_cons().map(Cons::words) {
                Some([key, value]) => {
                    self.element(*value);
                    self.element(*key);
                }
                None => self.pending.push(Pending::Node(*child)),
            }
        }
    }

    fn fun(&mut self, fun: Fun<'h>) {
        if let Some(entry) = fun.entry() {
            let env = fun.env();
            self.hash
                .alpha(halves(Type::LocalFun as u64, env.len() as u64));
            self.hash
                .beta(halves(u64::from(entry.index), u64::from(entry.old_uniq)));
            self.tag(Type::Immediate, word(entry.module.term()));
            self.elements(env);
        } else if let Some(export) = fun.export() {
            // By names, not by the entry's address: the same in every run.
            self.tag(Type::ExternalFun, word(export.module.term()));
            self.tag(Type::Immediate, word(export.function.term()));
            self.hash.alpha(u64::from(export.arity));
        }
    }

    fn bits(&mut self, bits: Bits<'h>) {
        self.tag(Type::Bits, bits.bit_len() as u64);
        let bytes = bits.bytes();
        self.hash.bytes(&bytes[..bits.byte_len()]);
        let tail_bits = bits.bit_len() % 8;
        if tail_bits != 0 {
            self.hash
                .alpha(u64::from(bytes[bits.byte_len()] >> (8 - tail_bits)));
        }
    }

    fn external(&mut self, external: External<'h>) {
        let node = external.node();
        let node = mix64(word(node.name.term()) ^ u64::from(node.creation) << 32);
        match external.kind() {
            tag::EXTERNAL_PID => {
                self.tag(Type::ExternalPid, node);
                self.hash.alpha(external.data()[0]);
            }
            tag::EXTERNAL_PORT => {
                self.tag(Type::ExternalPort, node);
                self.hash.alpha(external.data()[0]);
            }
            _ => {
                // Zeros at the end make no difference to equality.
                let mut numbers = external.ref_numbers();
                while numbers.last() == Some(&0) {
                    numbers.pop();
                }
                self.hash
                    .alpha(halves(Type::ExternalRef as u64, numbers.len() as u64));
                numbers.iter().for_each(|n| self.hash.beta(u64::from(*n)));
                self.hash.alpha(node);
            }
        }
    }
}
