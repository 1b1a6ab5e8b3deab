//! Copies terms deeply between heaps, and computes their sizes. Sharing is not kept, as in ERTS.

use std::ops::Range;

use smallvec::SmallVec;

use crate::hash::{HashMap, HashSet};

use super::Heap;
use super::collect::copy_words;
use super::literal;
use super::off_heap::{self, OffHeap};
use crate::term::tag::{self, size};
use crate::term::{Bits, RawTerm, Term, View};

/// How copies and their sizes treat literals.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Literals {
    /// They are shared, and count nothing.
    Share,
    /// They count as any term.
    Count,
    /// So do the definitions of records, which no copy takes along (`erts_debug:flat_size/1`).
    CountDefinitions,
}

/// Terms that are still to be counted: most messages are small, and no memory is taken for theirs.
type Rest = SmallVec<[RawTerm; 16]>;

/// Words that a copy of `term` takes.
#[must_use]
pub fn size(term: Term<'_>, literals: Literals) -> usize {
    if term.raw().is_immed() {
        return 0;
    }
    let mut words = 0;
    let mut rest = Rest::new();
    rest.push(term.raw());
    while let Some(raw) = rest.pop() {
        // SAFETY: T1: reached from `term`, which is in hand.
        words += unsafe { size_one(raw, literals, &mut rest) };
    }
    words
}

/// Words of `term` where each part counts once however often it is referred to. Literals count nothing.
#[must_use]
pub(crate) fn size_shared(term: Term<'_>) -> usize {
    size_sharing(term, Literals::Share)
}

/// As [`size_shared`], with literals, but for those that every copy shares.
#[must_use]
pub(crate) fn size_shared_all(term: Term<'_>) -> usize {
    size_sharing(term, Literals::Count)
}

fn size_sharing(term: Term<'_>, literals: Literals) -> usize {
    let mut words = 0;
    let mut seen = HashSet::default();
    let mut rest = Rest::new();
    rest.push(term.raw());
    while let Some(raw) = rest.pop() {
        let shared = literals == Literals::Share;
        let stays = raw.is_immed() || (shared && literal::contains(raw.ptr()));
        if stays || !seen.insert(raw.ptr()) {
            continue;
        }
        // SAFETY: T1: reached from `term`, which is in hand.
        unsafe {
            if raw.is_list() {
                words += 2;
                rest.extend([RawTerm(*raw.ptr()), RawTerm(*raw.ptr().add(1))]);
            } else {
                words += size_one(raw, literals, &mut rest);
            }
        }
    }
    words
}

/// The things that have been copied, by where they were.
type Done = HashMap<*mut u64, RawTerm>;

/// A thing whose slots `from..to` still hold what they held where it was copied from.
struct Copied {
    ptr: *mut u64,
    from: usize,
    to: usize,
}

impl Heap {
    /// A copy of `term` in which parts that are shared stay shared. Literals without terms inside are not
    /// copied in any case.
    pub(crate) fn copy_shared<'h>(&'h self, term: Term<'_>, literals: Literals) -> Term<'h> {
        self.copy_sharing(term, literals, false, &mut HashMap::default())
    }

    /// A copy of `term` that refers to no literal but those that stay for ever, its parts shared with what `done`
    /// says is copied already.
    pub(super) fn copy_whole<'h>(&'h self, term: Term<'_>, done: &mut Done) -> Term<'h> {
        self.copy_sharing(term, Literals::Count, true, done)
    }

    fn copy_sharing<'h>(
        &'h self,
        term: Term<'_>,
        literals: Literals,
        leaves: bool,
        done: &mut Done,
    ) -> Term<'h> {
        let mut rest = Vec::new();
        // SAFETY: T1: reached from `term`, which is in hand; H1: what is copied is whole, and each slot
        // that `rest` names is set before the copy is handed out.
        unsafe {
            let root = self.copy_one(term.raw(), (literals, leaves), done, &mut rest);
            while let Some(Copied { ptr, from, to }) = rest.pop() {
                for slot in from..to {
                    let old = RawTerm(*ptr.add(slot));
                    *ptr.add(slot) = self.copy_one(old, (literals, leaves), done, &mut rest).0;
                }
            }
            Term::new(root)
        }
    }

    /// The copy of one thing, without what its slots refer to. With `leaves`, literals without terms inside are
    /// copied too.
    ///
    /// # Safety
    /// T1 holds for `raw`.
    unsafe fn copy_one(
        &self,
        raw: RawTerm,
        (literals, leaves): (Literals, bool),
        done: &mut Done,
        rest: &mut Vec<Copied>,
    ) -> RawTerm {
        // SAFETY: by contract.
        let remains = unsafe {
            match literals {
                Literals::Share => stays::<true>(raw),
                Literals::Count | Literals::CountDefinitions => stays::<false>(raw),
            }
        };
        if remains {
            return raw;
        }
        if let Some(copy) = done.get(&raw.ptr()) {
            return *copy;
        }
        let old = raw.ptr();
        // SAFETY: T1: a list term points to a cell, a boxed term to a header and its shape's words; H1:
        // as many fresh words as are copied.
        let copy = unsafe {
            let (words, from) = if raw.is_list() {
                (2, 0)
            } else {
                let shape = tag::shape(*old, *old.add(1));
                // A record's definition is a literal of its module and is shared always.
                let is_record = *old & tag::HEADER_MASK == tag::RECORD;
                (shape.words, shape.terms_from + usize::from(is_record))
            };
            let is_bits = raw.is_boxed() && *old & tag::HEADER_MASK == tag::SUB_BITS;
            if is_bits || from >= words {
                // No terms inside: a deep copy is one.
                let term = Term::new(raw);
                if leaves {
                    self.copy_in_all(term).raw()
                } else {
                    self.copy_in(term).raw()
                }
            } else {
                let ptr = self.alloc(words);
                std::ptr::copy_nonoverlapping(old, ptr, words);
                let to = words;
                rest.push(Copied { ptr, from, to });
                if raw.is_list() {
                    RawTerm::list(ptr)
                } else {
                    RawTerm::boxed(ptr)
                }
            }
        };
        done.insert(old, copy);
        copy
    }
}

/// Header of the empty tuple, a literal that is shared always.
const EMPTY_TUPLE: u64 = tag::make_header(0, tag::ARITYVAL);

/// Is `raw` what a copy leaves as it is?
///
/// # Safety
/// T1 holds for `raw`.
#[inline]
unsafe fn stays<const SHARE: bool>(raw: RawTerm) -> bool {
    if raw.is_immed() {
        return true;
    }
    if SHARE {
        return literal::contains(raw.ptr());
    }
    // SAFETY: T1: a boxed term points to a header.
    raw.is_boxed() && unsafe { *raw.ptr() } == EMPTY_TUPLE
}

/// Words of `raw` itself, its children pushed to `rest`. A list is walked to its end.
///
/// # Safety
/// T1 holds for `raw`.
unsafe fn size_one(mut raw: RawTerm, literals: Literals, rest: &mut Rest) -> usize {
    let mut words = 0;
    while raw.is_list() {
        if literals == Literals::Share && literal::contains(raw.ptr()) {
            return words;
        }
        // SAFETY: T1: a list term points to a cell.
        let (head, tail) = unsafe { (RawTerm(*raw.ptr()), RawTerm(*raw.ptr().add(1))) };
        words += 2;
        if !head.is_immed() {
            rest.push(head);
        }
        raw = tail;
    }
    if !raw.is_boxed() || (literals == Literals::Share && literal::contains(raw.ptr())) {
        return words;
    }
    let ptr = raw.ptr();
    // SAFETY: T1: a boxed term points to a header, behind which its shape's words stand.
    unsafe {
        let header = *ptr;
        if header == EMPTY_TUPLE {
            return words;
        }
        if header & tag::HEADER_MASK == tag::SUB_BITS {
            return words + size_of_sub_bits(raw);
        }
        if header & tag::HEADER_MASK == tag::RECORD {
            // The definition is a literal of its module.
            let from = if literals == Literals::CountDefinitions {
                1
            } else {
                2
            };
            let arity = tag::header_arity(header);
            push_pointers(ptr, from..1 + arity, rest);
            return words + 1 + arity;
        }
        let shape = tag::shape(header, *ptr.add(1));
        push_pointers(ptr, shape.terms_from..shape.words, rest);
        words + shape.words
    }
}

/// # Safety
/// T1: terms lie at these words behind `ptr`.
#[inline(always)]
unsafe fn push_pointers(ptr: *const u64, words: Range<usize>, rest: &mut Rest) {
    for i in words {
        // SAFETY: by contract.
        let term = RawTerm(unsafe { *ptr.add(i) });
        if !term.is_immed() {
            rest.push(term);
        }
    }
}

/// # Safety
/// T1 holds for `raw`, a `SUB_BITS`.
unsafe fn size_of_sub_bits(raw: RawTerm) -> usize {
    // SAFETY: by contract.
    let bits = unsafe { Term::new(raw) }
        .as_bits()
        .expect("a sub-bitstring");
    match bits.binary() {
        // However few its bits are: one that grows by appending is a part of a binary from the first byte on.
        Some(_) => size::REFC_BITS,
        None => heap_bits_words(bits.bit_len()),
    }
}

/// Words of a bitstring of `bit_len` bits on a heap.
#[inline]
#[must_use]
pub fn heap_bits_words(bit_len: usize) -> usize {
    2 + bit_len.div_ceil(64)
}

/// Copies `raw` to `*hp`, which moves up behind the copy; counts go to `off_heap`.
///
/// # Safety
/// T1 holds for `raw`; `*hp` has the words free that [`size`] with [`Literals::Share`] tells.
pub(crate) unsafe fn copy(raw: RawTerm, hp: &mut *mut u64, off_heap: &OffHeap) -> RawTerm {
    // SAFETY: by contract.
    unsafe { copy_as::<true>(raw, hp, off_heap) }
}

/// As [`copy`], but copies literals as any term; sized with [`Literals::Count`].
///
/// # Safety
/// As [`copy`].
pub(crate) unsafe fn copy_all(raw: RawTerm, hp: &mut *mut u64, off_heap: &OffHeap) -> RawTerm {
    // SAFETY: by contract.
    unsafe { copy_as::<false>(raw, hp, off_heap) }
}

/// # Safety
/// As [`copy`], or as [`copy_all`] where literals are not shared.
unsafe fn copy_as<const SHARE: bool>(
    raw: RawTerm,
    hp: &mut *mut u64,
    off_heap: &OffHeap,
) -> RawTerm {
    // SAFETY: by contract.
    if unsafe { stays::<SHARE>(raw) } {
        return raw;
    }
    let mut scan = *hp;
    // SAFETY: by contract; every word of the copy is written before it is scanned.
    unsafe {
        let top = copy_one::<SHARE>(raw, hp, off_heap);
        while scan < *hp {
            scan = copy_children::<SHARE>(scan, hp, off_heap);
        }
        top
    }
}

/// Copies the children of the thing (or cell word) at `scan`; returns where the next one starts.
///
/// # Safety
/// As [`copy`]; `scan` is the start of a thing, or a word of a cell, in the copy.
unsafe fn copy_children<const SHARE: bool>(
    scan: *mut u64,
    hp: &mut *mut u64,
    off_heap: &OffHeap,
) -> *mut u64 {
    // SAFETY: by contract.
    unsafe {
        let word = RawTerm(*scan);
        if !word.is_header() {
            // A tail that was copied with its list points just here and is copied once.
            if !word.is_immed() && !is_own_tail(scan, word) {
                *scan = copy_one::<SHARE>(word, hp, off_heap).0;
            }
            return scan.add(1);
        }
        let shape = tag::shape(word.0, *scan.add(1));
        if word.0 & tag::HEADER_MASK == tag::SUB_BITS {
            return scan.add(shape.words);
        }
        // A record's definition is a literal of its module and is shared always.
        let from = match word.0 & tag::HEADER_MASK {
            tag::RECORD => 2,
            _ => shape.terms_from,
        };
        for i in from..shape.words {
            let child = RawTerm(*scan.add(i));
            if !child.is_immed() {
                *scan.add(i) = copy_one::<SHARE>(child, hp, off_heap).0;
            }
        }
        scan.add(shape.words)
    }
}

/// A list's spine is copied in one go, each tail pointing to the next word.
#[inline]
fn is_own_tail(at: *mut u64, word: RawTerm) -> bool {
    word.is_list() && std::ptr::eq(word.ptr(), at.wrapping_add(1))
}

/// Copies one thing, or one list's whole spine, children left pointing to the source.
///
/// # Safety
/// As [`copy`].
unsafe fn copy_one<const SHARE: bool>(
    raw: RawTerm,
    hp: &mut *mut u64,
    off_heap: &OffHeap,
) -> RawTerm {
    // SAFETY: by contract.
    unsafe {
        if stays::<SHARE>(raw) {
            return raw;
        }
        if raw.is_list() {
            copy_spine::<SHARE>(raw, hp)
        } else {
            copy_boxed(raw, hp, off_heap)
        }
    }
}

/// # Safety
/// As [`copy`]; `raw` is a list.
unsafe fn copy_spine<const SHARE: bool>(raw: RawTerm, hp: &mut *mut u64) -> RawTerm {
    let start = *hp;
    let mut cell = raw;
    // SAFETY: by contract: `size` counted every cell of the spine that is not a literal.
    unsafe {
        loop {
            let (head, tail) = (*cell.ptr(), RawTerm(*cell.ptr().add(1)));
            let to = *hp;
            *to = head;
            *hp = to.add(2);
            if tail.is_list() && !stays::<SHARE>(tail) {
                *to.add(1) = RawTerm::list(*hp).0;
                cell = tail;
            } else {
                *to.add(1) = tail.0;
                return RawTerm::list(start);
            }
        }
    }
}

/// # Safety
/// As [`copy`]; `raw` is boxed.
unsafe fn copy_boxed(raw: RawTerm, hp: &mut *mut u64, off_heap: &OffHeap) -> RawTerm {
    let from = raw.ptr();
    let to = *hp;
    // SAFETY: by contract: the shape's words are there, and as many are free.
    unsafe {
        let header = *from;
        if header & tag::HEADER_MASK == tag::SUB_BITS {
            let View::Bits(bits) = Term::new(raw).view() else {
                unreachable!("a sub-bitstring")
            };
            return copy_sub_bits(bits, hp, off_heap);
        }
        let words = tag::shape(header, *from.add(1)).words;
        copy_words(from, to, words);
        *hp = to.add(words);
        if is_listed(to) {
            off_heap::retain(to);
            off_heap.push(to);
        }
    }
    RawTerm::boxed(to)
}

/// Does the thing at `ptr` hold a count and a link?
///
/// # Safety
/// `ptr` is the start of a complete thing.
pub(crate) unsafe fn is_listed(ptr: *const u64) -> bool {
    // SAFETY: by contract.
    unsafe {
        match *ptr & tag::HEADER_MASK {
            tag::BIN_REF | tag::EXTERNAL_PID | tag::EXTERNAL_PORT | tag::EXTERNAL_REF => true,
            tag::REF => {
                let marker = crate::term::ORDINARY_REF_MARKER;
                *ptr.add(1) & marker != marker
            }
            _ => false,
        }
    }
}

/// # Safety
/// As [`copy`].
unsafe fn copy_sub_bits(bits: Bits<'_>, hp: &mut *mut u64, off_heap: &OffHeap) -> RawTerm {
    let to = *hp;
    // SAFETY: by contract; the words written are those `size_of_sub_bits` counted.
    unsafe {
        let Some(binary) = bits.binary() else {
            return super::write_heap_bits(hp, &bits.to_vec(), bits.bit_len());
        };
        // The bytes may not move any more once another heap knows them.
        binary.set_writable(false);
        let bin_ref = to.add(size::SUB_BITS);
        *hp = bin_ref.add(size::BIN_REF);
        binary.retain();
        super::write_bin_ref(bin_ref, std::ptr::from_ref(binary), off_heap);
        super::write_sub_bits(
            to,
            binary.data() as u64,
            bits.bit_offset(),
            bits.bit_offset() + bits.bit_len(),
            RawTerm::boxed(bin_ref),
        );
    }
    RawTerm::boxed(to)
}
