//! Views of terms: what kind of term a word is, and the parts of each kind.

mod bits;

use std::marker::PhantomData;

use super::counted::{MagicBinary, Node};
use super::entry::{Export, FunEntry};
use super::{Atom, Owner, RawTerm, Term, tag};

pub use bits::Bits;
pub(crate) use bits::sub_bits;

/// A term looked at.
#[derive(Clone, Copy)]
pub enum View<'h> {
    /// Integer of at most 60 bits.
    Small(i64),
    /// Larger integer.
    Big(Big<'h>),
    /// Float.
    Float(f64),
    /// Atom.
    Atom(Atom),
    /// Pid of this node.
    Pid(Pid),
    /// Port of this node.
    Port(Port),
    /// Reference of this node.
    Ref(Ref<'h>),
    /// Pid, port or reference of another node.
    External(External<'h>),
    /// Fun.
    Fun(Fun<'h>),
    /// Tuple.
    Tuple(Tuple<'h>),
    /// Native record.
    Record(Record<'h>),
    /// The empty list.
    Nil,
    /// Cons cell.
    Cons(Cons<'h>),
    /// Map.
    Map(Map<'h>),
    /// Bitstring (binary or not), or a match context.
    Bits(Bits<'h>),
}

macro_rules! thing {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name<'h>(*const u64, PhantomData<&'h Owner>);

        impl<'h> $name<'h> {
            #[inline(always)]
            fn word(self, index: usize) -> u64 {
                // SAFETY: T1: callers stay within the shape that the header tells.
                unsafe { *self.0.add(index) }
            }
            /// Where it lies, for code that walks words.
            #[inline(always)]
            #[must_use]
            pub fn ptr(self) -> *const u64 {
                self.0
            }
        }
    };
}

thing! {
    /// A cons cell.
    Cons
}
thing! {
    /// A tuple.
    Tuple
}
thing! {
    /// A native record: definition and values.
    Record
}
thing! {
    /// A big integer: limbs, least significant first.
    Big
}
thing! {
    /// A map.
    Map
}
thing! {
    /// A fun.
    Fun
}
thing! {
    /// A reference made by this node.
    Ref
}
thing! {
    /// A pid, port or reference of another node.
    External
}

impl<'h> Term<'h> {
    /// Looks at the term.
    #[inline]
    #[must_use]
    pub fn view(self) -> View<'h> {
        let word = self.raw().0;
        match word & tag::PRIMARY_MASK {
            tag::LIST => View::Cons(Cons(self.raw().ptr(), PhantomData)),
            tag::BOXED => self.view_boxed(),
            _ => match word & tag::IMMED1_MASK {
                tag::SMALL => View::Small(self.raw().small_value()),
                tag::PID => View::Pid(Pid(word >> 4)),
                tag::PORT => View::Port(Port(word >> 4)),
                _ if word == tag::NIL => View::Nil,
                _ => View::Atom(
                    self.as_atom()
                        .expect("catch tags and headers are never in hand"),
                ),
            },
        }
    }

    #[inline]
    fn view_boxed(self) -> View<'h> {
        let ptr: *const u64 = self.raw().ptr();
        // SAFETY: T1: a boxed term points to a header.
        let header = unsafe { *ptr };
        match header & tag::HEADER_MASK {
            tag::ARITYVAL => View::Tuple(Tuple(ptr, PhantomData)),
            tag::POS_BIG | tag::NEG_BIG => View::Big(Big(ptr, PhantomData)),
            // SAFETY: T1: a float's second word is its double.
            tag::FLOAT => View::Float(f64::from_bits(unsafe { *ptr.add(1) })),
            tag::REF => View::Ref(Ref(ptr, PhantomData)),
            tag::FUN => View::Fun(Fun(ptr, PhantomData)),
            tag::RECORD => View::Record(Record(ptr, PhantomData)),
            // SAFETY: T1: the header tells that a bitstring lies there.
            tag::HEAP_BITS | tag::SUB_BITS => View::Bits(unsafe { Bits::at(ptr) }),
            tag::MAP => View::Map(Map(ptr, PhantomData)),
            tag::EXTERNAL_PID | tag::EXTERNAL_PORT | tag::EXTERNAL_REF => {
                View::External(External(ptr, PhantomData))
            }
            other => unreachable!("header {other:#x} is no term's"),
        }
    }
}

macro_rules! as_kind {
    ($($method:ident $variant:ident $out:ty, $what:literal;)*) => {
        impl<'h> Term<'h> {
            $(
                #[doc = concat!("The ", $what, " it is.")]
                #[inline]
                #[must_use]
                pub fn $method(self) -> Option<$out> {
                    match self.view() {
                        View::$variant(it) => Some(it),
                        _ => None,
                    }
                }
            )*
        }
    };
}

/// What one header alone tells.
macro_rules! as_boxed {
    ($($method:ident $kind:ident $header:path, $what:literal;)*) => {
        impl<'h> Term<'h> {
            $(
                #[doc = concat!("The ", $what, " it is.")]
                #[inline]
                #[must_use]
                pub fn $method(self) -> Option<$kind<'h>> {
                    if !self.raw().is_boxed() {
                        return None;
                    }
                    let ptr = self.raw().ptr();
                    // SAFETY: T1: a boxed term's header can be read.
                    let header = unsafe { *ptr };
                    (header & tag::HEADER_MASK == $header).then_some($kind(ptr, PhantomData))
                }
            )*
        }
    };
}

as_boxed! {
    as_ref Ref tag::REF, "reference of this node";
    as_fun Fun tag::FUN, "fun";
    as_tuple Tuple tag::ARITYVAL, "tuple";
    as_record Record tag::RECORD, "native record";
    as_map Map tag::MAP, "map";
}

as_kind! {
    as_float Float f64, "float";
    as_pid Pid Pid, "pid of this node";
    as_port Port Port, "port of this node";
    as_external External External<'h>, "thing of another node";
}

impl<'h> Term<'h> {
    /// The cons cell it is.
    #[inline]
    #[must_use]
    pub(crate) fn as_cons(self) -> Option<Cons<'h>> {
        let raw = self.raw();
        raw.is_list().then(|| Cons(raw.ptr(), PhantomData))
    }

    /// The bitstring it is. Not by [`Term::view`], which is slow for what is large.
    #[inline]
    #[must_use]
    pub(crate) fn as_bits(self) -> Option<Bits<'h>> {
        if !self.raw().is_boxed() {
            return None;
        }
        let ptr: *const u64 = self.raw().ptr();
        // SAFETY: T1: a boxed term points to a header, which tells whether a bitstring lies there.
        unsafe {
            let is_bits = matches!(*ptr & tag::HEADER_MASK, tag::HEAP_BITS | tag::SUB_BITS);
            is_bits.then(|| Bits::at(ptr))
        }
    }

    /// The big integer it is.
    #[inline]
    #[must_use]
    pub(crate) fn as_big(self) -> Option<Big<'h>> {
        if !self.raw().is_boxed() {
            return None;
        }
        let ptr: *const u64 = self.raw().ptr();
        // SAFETY: T1: a boxed term's header can be read.
        let header = unsafe { *ptr };
        let is_big = matches!(header & tag::HEADER_MASK, tag::POS_BIG | tag::NEG_BIG);
        is_big.then_some(Big(ptr, PhantomData))
    }

    /// The bitstring it is, where its size is a whole number of bytes.
    #[inline]
    #[must_use]
    pub(crate) fn as_binary(self) -> Option<Bits<'h>> {
        self.as_bits()
            .filter(|bits| bits.bit_len().is_multiple_of(8))
    }

    /// The elements of a proper list of this term, lazily: ends with `Err(tail)` on an improper tail.
    #[must_use]
    pub(crate) fn list_iter(self) -> ListIter<'h> {
        ListIter {
            rest: self,
            done: false,
        }
    }
}

/// Walks a list. Yields `Ok(element)`, and `Err(tail)` once where the tail is neither cell nor nil.
#[derive(Clone)]
pub(crate) struct ListIter<'h> {
    rest: Term<'h>,
    done: bool,
}

impl<'h> Iterator for ListIter<'h> {
    type Item = Result<Term<'h>, Term<'h>>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if let Some(cell) = self.rest.as_cons() {
            self.rest = cell.tail();
            return Some(Ok(cell.head()));
        }
        if self.rest.is_nil() {
            return None;
        }
        self.done = true;
        Some(Err(self.rest))
    }
}

impl<'h> Cons<'h> {
    /// First element.
    #[inline(always)]
    #[must_use]
    pub fn head(self) -> Term<'h> {
        // SAFETY: T1: a cell's first word is a term.
        unsafe { Term::new(RawTerm(self.word(0))) }
    }
    /// The rest.
    #[inline(always)]
    #[must_use]
    pub fn tail(self) -> Term<'h> {
        // SAFETY: T1: a cell's second word is a term.
        unsafe { Term::new(RawTerm(self.word(1))) }
    }
    /// Head and tail.
    #[inline(always)]
    #[must_use]
    pub fn words(self) -> &'h [Term<'h>; 2] {
        // SAFETY: T1, T2: a cons cell is two terms; `Term` is a word.
        unsafe { &*self.0.cast() }
    }
}

impl<'h> Tuple<'h> {
    /// The tuple as a term.
    #[inline]
    #[must_use]
    pub fn term(self) -> Term<'h> {
        // SAFETY: T1: a live tuple lies there.
        unsafe { Term::new(RawTerm::boxed(self.0)) }
    }
    /// Number of elements.
    #[inline(always)]
    #[must_use]
    pub fn arity(self) -> usize {
        tag::header_arity(self.word(0))
    }
    /// Element `index`, from 0.
    #[inline(always)]
    #[must_use]
    pub fn get(self, index: usize) -> Term<'h> {
        self.elements()[index]
    }
    /// The elements.
    #[inline(always)]
    #[must_use]
    pub fn elements(self) -> &'h [Term<'h>] {
        // SAFETY: T1, T2: `arity` terms stand behind the header; `Term` is a word.
        unsafe { std::slice::from_raw_parts(self.0.add(1).cast(), self.arity()) }
    }
}

/// Elements of a record's definition tuple, counted from 0. Source: `erl_record.h`, OTP 29.
pub mod record {
    /// Tuple that maps the source's order of fields to that of keys and values.
    pub(crate) const FIELD_ORDER: usize = 0;
    /// Hash of what follows, as a small integer.
    pub(crate) const HASH: usize = 1;
    /// Module.
    pub(crate) const MODULE: usize = 2;
    /// Name.
    pub const NAME: usize = 3;
    /// `true` or `false`.
    pub(crate) const IS_EXPORTED: usize = 4;
    /// The first of the keys, which are sorted by atom index.
    pub(crate) const KEYS: usize = 5;
}

impl<'h> Record<'h> {
    /// The definition (a literal tuple of the runtime's own; see [`record`]).
    #[must_use]
    pub fn definition(self) -> Tuple<'h> {
        Tuple(RawTerm(self.word(1)).ptr(), PhantomData)
    }
    /// The definition as a term.
    #[must_use]
    pub(crate) fn definition_term(self) -> Term<'h> {
        // SAFETY: T1: a cell's second word is a term.
        unsafe { Term::new(RawTerm(self.word(1))) }
    }
    /// The module that defines it.
    #[must_use]
    pub fn module(self) -> Atom {
        self.definition_atom(record::MODULE)
    }
    /// Its name.
    #[must_use]
    pub fn name(self) -> Atom {
        self.definition_atom(record::NAME)
    }
    /// May be used outside its module.
    #[must_use]
    pub(crate) fn is_exported(self) -> bool {
        self.definition().get(record::IS_EXPORTED) == super::am::true_
    }
    /// The hash of its definition, a part of its `phash2`.
    #[must_use]
    pub fn definition_hash(self) -> u32 {
        self.definition().get(record::HASH).as_small().unwrap_or(0) as u32
    }
    /// Names of the fields, in the order of [`Record::values`].
    #[must_use]
    pub fn keys(self) -> &'h [Term<'h>] {
        &self.definition().elements()[record::KEYS..]
    }
    /// For each field in the order of its source, its place among keys and values.
    pub(crate) fn field_order(self) -> impl DoubleEndedIterator<Item = usize> + 'h {
        let order = self.definition().get(record::FIELD_ORDER).as_tuple();
        let order = order.map_or(&[][..], Tuple::elements);
        order.iter().map(|i| i.as_index().unwrap_or(0))
    }
    fn definition_atom(self, index: usize) -> Atom {
        let atom = self.definition().get(index).as_atom();
        atom.expect("a definition names its module and itself")
    }
    /// Values, in the definition's order.
    #[must_use]
    pub fn values(self) -> &'h [Term<'h>] {
        let n = tag::header_arity(self.word(0)) - 1;
        // SAFETY: T1, T2: the header counts the definition and the values.
        unsafe { std::slice::from_raw_parts(self.0.add(2).cast(), n) }
    }
}

impl<'h> Big<'h> {
    /// Is below zero.
    #[inline]
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.word(0) & tag::HEADER_MASK == tag::NEG_BIG
    }
    /// The magnitude's limbs, least significant first, the last one not zero.
    #[inline]
    #[must_use]
    pub fn limbs(self) -> &'h [u64] {
        // SAFETY: T1, T2: `arity` limbs stand behind the header.
        unsafe { std::slice::from_raw_parts(self.0.add(1), tag::header_arity(self.word(0))) }
    }
}

/// A pid of this node: index and serial of its slot in the process table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Pid(pub u64);

/// A port of this node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Port(pub u64);

impl Pid {
    /// The pid as a term.
    #[inline(always)]
    #[must_use]
    pub const fn term(self) -> Term<'static> {
        Term::immed(RawTerm((self.0 << 4) | tag::PID))
    }
    /// The second number of `<0.N.S>`.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0 & 0xfff_ffff
    }
    /// The third number of `<0.N.S>`.
    #[must_use]
    pub const fn serial(self) -> u64 {
        self.0 >> 28
    }
}

impl Port {
    /// The port as a term.
    #[inline(always)]
    #[must_use]
    pub const fn term(self) -> Term<'static> {
        Term::immed(RawTerm((self.0 << 4) | tag::PORT))
    }
}

/// In the low half of an ordinary reference's second word; a magic one has a pointer there, whose
/// low half is never this.
pub(crate) const ORDINARY_REF_MARKER: u64 = 0xffff_ffff;

impl<'h> Ref<'h> {
    /// The object of a magic reference.
    #[inline]
    #[must_use]
    pub fn magic(self) -> Option<&'h MagicBinary> {
        let word = self.word(1);
        // SAFETY: T1: without the marker the word is a counted pointer that this thing keeps alive.
        (word & ORDINARY_REF_MARKER != ORDINARY_REF_MARKER)
            .then(|| unsafe { &*(word as *const MagicBinary) })
    }
    /// Its three numbers, least significant first, as `phash2`, comparison and printing use them.
    #[must_use]
    pub fn numbers(self) -> [u32; 3] {
        match self.magic() {
            Some(magic) => magic.ref_numbers(),
            None => {
                let low = self.word(2);
                [(self.word(1) >> 32) as u32, low as u32, (low >> 32) as u32]
            }
        }
    }
    /// All its numbers, least significant first: a reference with a pid has five, of which the last
    /// two are the pid's word.
    #[must_use]
    pub(crate) fn all_numbers(self) -> smallvec::SmallVec<[u32; 5]> {
        let mut numbers = smallvec::SmallVec::from_slice(&self.numbers());
        if let Some(pid) = self.pid() {
            let word = pid.term().raw().0;
            numbers.extend([word as u32, (word >> 32) as u32]);
        }
        numbers
    }
    /// The pid in a reference made by `alias` and the like.
    #[must_use]
    pub fn pid(self) -> Option<Pid> {
        let is_pid_ref = tag::header_arity(self.word(0)) == tag::size::PID_REF - 1;
        is_pid_ref.then(|| Pid(self.word(3)))
    }
}

impl<'h> Fun<'h> {
    /// Arguments a call takes.
    #[inline]
    #[must_use]
    pub fn arity(self) -> u8 {
        tag::fun::arity(self.word(0))
    }
    /// `fun M:F/A`.
    #[inline]
    #[must_use]
    pub(crate) fn is_external(self) -> bool {
        tag::fun::is_external(self.word(0))
    }
    /// The environment.
    #[inline]
    #[must_use]
    pub fn env(self) -> &'h [Term<'h>] {
        let n = tag::fun::num_free(self.word(0)) as usize;
        // SAFETY: T1, T2: the header counts the environment's words.
        unsafe { std::slice::from_raw_parts(self.0.add(tag::fun::FIXED_WORDS).cast(), n) }
    }
    /// The entry of a local fun.
    #[must_use]
    pub fn entry(self) -> Option<&'static FunEntry> {
        // SAFETY: T1: a local fun's second word is a fun entry; entries are never freed.
        (!self.is_external()).then(|| unsafe { &*(self.word(1) as *const FunEntry) })
    }
    /// The export of an external fun.
    #[must_use]
    pub fn export(self) -> Option<&'static Export> {
        // SAFETY: T1: an external fun's second word is an export entry; entries are never freed.
        self.is_external()
            .then(|| unsafe { &*(self.word(1) as *const Export) })
    }
}

impl<'h> External<'h> {
    /// Pid, port or reference: the header's tag.
    #[must_use]
    pub fn kind(self) -> u64 {
        self.word(0) & tag::HEADER_MASK
    }
    /// The node it belongs to.
    #[must_use]
    pub fn node(self) -> &'h Node {
        // SAFETY: T1: the second word is a counted pointer that this thing keeps alive.
        unsafe { &*(self.word(1) as *const Node) }
    }
    /// The data words: number and serial of a pid (low and high half), a port's number, or a
    /// reference's numbers as 32-bit halves behind a count in the first half.
    #[must_use]
    pub fn data(self) -> &'h [u64] {
        let n = tag::header_arity(self.word(0)) + 1 - tag::size::EXTERNAL_HEAD;
        // SAFETY: T1, T2: the header counts them.
        unsafe { std::slice::from_raw_parts(self.0.add(tag::size::EXTERNAL_HEAD), n) }
    }
    /// The numbers of a reference, least significant first.
    #[must_use]
    pub(crate) fn ref_numbers(self) -> smallvec::SmallVec<[u32; 5]> {
        let halves = self
            .data()
            .iter()
            .flat_map(|w| [*w as u32, (*w >> 32) as u32]);
        halves
            .skip(1)
            .take(self.data()[0] as u32 as usize)
            .collect()
    }
}

impl<'h> Map<'h> {
    /// The map as a term.
    #[inline]
    #[must_use]
    pub fn term(self) -> Term<'h> {
        // SAFETY: T1: a live map lies there.
        unsafe { Term::new(RawTerm::boxed(self.0)) }
    }
    /// Number of keys.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.word(1) as usize
    }
    /// Has no keys.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// Keys and values of a flat map, in the map's order; `None` for a trie.
    #[inline]
    #[must_use]
    pub fn flat(self) -> Option<(Tuple<'h>, &'h [Term<'h>])> {
        if self.word(0) & tag::map::KIND_MASK != tag::map::FLAT {
            return None;
        }
        let keys = Tuple(RawTerm(self.word(2)).ptr(), PhantomData);
        // SAFETY: T1, T2: a flat map of `len` keys has as many values behind its key tuple.
        let values = unsafe {
            std::slice::from_raw_parts(self.0.add(tag::map::FLAT_WORDS).cast(), self.len())
        };
        Some((keys, values))
    }
    /// The tuple of a flat map's keys, to be shared by another map with the same ones.
    #[inline]
    pub(crate) fn keys_term(self) -> Term<'h> {
        // SAFETY: T1: the keys of a flat map stand in its third word.
        unsafe { Term::new(RawTerm(self.word(2))) }
    }
    /// Bitmap and children of a trie's root, or of a node of it, which `erts_debug` has in hand; `None` for a flat map.
    #[must_use]
    pub fn root(self) -> Option<(u32, &'h [Term<'h>])> {
        match self.word(0) & tag::map::KIND_MASK {
            tag::map::FLAT => None,
            tag::map::NODE_BITMAP => Some(self.children(1)),
            _ => Some(self.children(2)),
        }
    }
    /// Bitmap and children of the inner trie node that `node` is; `None` if it is none (a leaf is a
    /// cons cell, a collision a tuple).
    #[inline(always)]
    #[must_use]
    pub fn inner(node: Term<'h>) -> Option<(u32, &'h [Term<'h>])> {
        let header = node.header()?;
        (header & tag::map::KIND_MASK == tag::map::NODE_BITMAP)
            .then(|| Map(node.raw().ptr(), PhantomData).children(1))
    }
    #[inline(always)]
    fn children(self, from: usize) -> (u32, &'h [Term<'h>]) {
        let bitmap = tag::map::bitmap(self.word(0));
        let n = bitmap.count_ones() as usize;
        // SAFETY: T1, T2: a trie node has one child for each bit.
        (bitmap, unsafe {
            std::slice::from_raw_parts(self.0.add(from).cast(), n)
        })
    }
}
