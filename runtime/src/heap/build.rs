//! Builds terms on a heap. Nothing here collects.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use super::off_heap::OffHeap;
use super::{Binary, Heap, MagicBinary, Node, SharedBytes, heap_bits_words};
use crate::num::wide::Wide;
use crate::term::entry::{Export, FunEntry};
use crate::term::tag::{self, size};
use crate::term::{Bits, Map, ORDINARY_REF_MARKER, Pid, RawTerm, Term, Tuple};

impl Heap {
    /// # Safety
    /// H1: the words at `ptr` are a complete thing of this heap.
    #[inline]
    unsafe fn boxed(&self, ptr: *mut u64) -> Term<'_> {
        // SAFETY: T1: by contract.
        unsafe { Term::new(RawTerm::boxed(ptr)) }
    }

    /// `[head | tail]`. 2 words.
    #[inline]
    pub fn cons<'h>(&'h self, head: Term<'h>, tail: Term<'h>) -> Term<'h> {
        let ptr = self.alloc(2);
        // SAFETY: H1: two fresh words.
        unsafe {
            *ptr = head.raw().0;
            *ptr.add(1) = tail.raw().0;
            Term::new(RawTerm::list(ptr))
        }
    }

    /// A list of `elements` that ends in `tail`. 2 words an element.
    pub(crate) fn list_with_tail<'h>(&'h self, elements: &[Term<'h>], tail: Term<'h>) -> Term<'h> {
        let Some(last) = elements.len().checked_sub(1) else {
            return tail;
        };
        let ptr = self.alloc(2 * elements.len());
        for (at, element) in elements.iter().enumerate() {
            // SAFETY: H1: two fresh words for each element.
            unsafe {
                let cell = ptr.add(2 * at);
                let rest = match at == last {
                    true => tail.raw(),
                    false => RawTerm::list(cell.add(2)),
                };
                *cell = element.raw().0;
                *cell.add(1) = rest.0;
            }
        }
        // SAFETY: H1: they are filled.
        unsafe { Term::new(RawTerm::list(ptr)) }
    }

    /// A proper list. 2 words an element.
    pub fn list<'h>(&'h self, elements: &[Term<'h>]) -> Term<'h> {
        self.list_with_tail(elements, Term::NIL)
    }

    /// A list of small integers, one for each byte.
    pub(crate) fn byte_list<'h>(&'h self, bytes: &[u8]) -> Term<'h> {
        self.byte_list_with_tail(bytes, Term::NIL)
    }

    /// A list of small integers, one for each byte, before `tail`.
    pub(crate) fn byte_list_with_tail<'h>(&'h self, bytes: &[u8], tail: Term<'h>) -> Term<'h> {
        if bytes.is_empty() {
            return tail;
        }
        let ptr = self.alloc(2 * bytes.len());
        let mut rest = tail.raw();
        // SAFETY: H1: two fresh words for each byte; the last cell comes first, as in ERTS.
        unsafe {
            for (at, byte) in bytes.iter().rev().enumerate() {
                let cell = ptr.add(2 * at);
                *cell = Term::small(i64::from(*byte)).raw().0;
                *cell.add(1) = rest.0;
                rest = RawTerm::list(cell);
            }
            Term::new(rest)
        }
    }

    /// A string: a list of code points.
    pub fn string<'h>(&'h self, text: &str) -> Term<'h> {
        if text.is_ascii() {
            return self.byte_list(text.as_bytes());
        }
        text.chars().rev().fold(Term::NIL, |rest, c| {
            self.cons(Term::small(i64::from(u32::from(c))), rest)
        })
    }

    /// A thing of `header` with `words` behind it.
    #[inline]
    fn thing(&self, header: u64, words: impl ExactSizeIterator<Item = u64>) -> Term<'_> {
        let ptr = self.alloc(1 + words.len());
        // SAFETY: H1: as many fresh words as are written.
        unsafe { self.write_thing(ptr, header, words) }
    }

    /// As [`Heap::thing`], in a fragment beside the block: for what operators give, between whose instructions nothing
    /// may be collected.
    fn thing_beside(&self, header: u64, words: impl ExactSizeIterator<Item = u64>) -> Term<'_> {
        let ptr = self.alloc_in_fragment(1 + words.len());
        // SAFETY: H1: as many fresh words as are written.
        unsafe { self.write_thing(ptr, header, words) }
    }

    /// # Safety
    /// H1: `ptr` is of fresh words of this heap, one more than `words`.
    #[inline]
    unsafe fn write_thing(
        &self,
        ptr: *mut u64,
        header: u64,
        words: impl ExactSizeIterator<Item = u64>,
    ) -> Term<'_> {
        // SAFETY: by contract.
        unsafe {
            *ptr = header;
            for (i, word) in words.enumerate() {
                *ptr.add(1 + i) = word;
            }
            self.boxed(ptr)
        }
    }

    /// A tuple. 1 word and one an element; the empty tuple is one literal for all.
    #[inline]
    pub fn tuple<'h>(&'h self, elements: &[Term<'h>]) -> Term<'h> {
        if elements.is_empty() {
            return super::literal::empty_tuple();
        }
        let header = tag::make_header(elements.len(), tag::ARITYVAL);
        self.thing(header, elements.iter().map(|e| e.raw().0))
    }

    /// A tuple of these elements but for the one at `index`, which becomes `value`.
    #[inline]
    pub(crate) fn tuple_with<'h>(
        &'h self,
        elements: &[Term<'h>],
        index: usize,
        value: Term<'h>,
    ) -> Term<'h> {
        let ptr = self.alloc(1 + elements.len());
        // SAFETY: H1: as many fresh words as are written.
        unsafe {
            *ptr = tag::make_header(elements.len(), tag::ARITYVAL);
            std::ptr::copy_nonoverlapping(elements.as_ptr().cast(), ptr.add(1), elements.len());
            *ptr.add(1 + index) = value.raw().0;
            self.boxed(ptr)
        }
    }

    /// A tuple of these elements, with `value` before the one at `index`.
    pub(crate) fn tuple_and<'h>(
        &'h self,
        elements: &[Term<'h>],
        index: usize,
        value: Term<'h>,
    ) -> Term<'h> {
        let ptr = self.alloc(2 + elements.len());
        // SAFETY: H1: as many fresh words as are written.
        unsafe {
            *ptr = tag::make_header(1 + elements.len(), tag::ARITYVAL);
            write_with_another(ptr.add(1), elements, index, value);
            self.boxed(ptr)
        }
    }

    /// A float. 2 words.
    #[inline]
    pub fn float(&self, value: f64) -> Term<'_> {
        self.thing(
            tag::make_header(size::FLOAT - 1, tag::FLOAT),
            [value.to_bits()].into_iter(),
        )
    }

    /// A float in a fragment.
    pub(crate) fn float_beside(&self, value: f64) -> Term<'_> {
        self.thing_beside(
            tag::make_header(size::FLOAT - 1, tag::FLOAT),
            [value.to_bits()].into_iter(),
        )
    }

    /// An integer: small where it fits, else big (2 words).
    #[inline]
    pub fn integer(&self, value: i64) -> Term<'_> {
        if (tag::MIN_SMALL..=tag::MAX_SMALL).contains(&value) {
            return Term::immed(RawTerm::small(value));
        }
        self.big(value < 0, &[value.unsigned_abs()])
    }

    /// An integer that is not negative.
    #[inline]
    pub fn unsigned(&self, value: u64) -> Term<'_> {
        if value <= tag::MAX_SMALL as u64 {
            return Term::immed(RawTerm::small(value as i64));
        }
        self.big(false, &[value])
    }

    /// The integer with these limbs, least significant first (leading zeros allowed): small where it
    /// fits, else big (1 word and one a limb).
    pub fn big(&self, negative: bool, limbs: &[u64]) -> Term<'_> {
        match Heap::integer_parts(negative, limbs) {
            Ok(small) => Term::small(small),
            Err((header, limbs)) => self.thing(header, limbs.iter().copied()),
        }
    }

    /// As [`Heap::big`], in a fragment.
    pub(crate) fn big_beside(&self, negative: bool, limbs: &[u64]) -> Term<'_> {
        match Heap::integer_parts(negative, limbs) {
            Ok(small) => Term::small(small),
            Err((header, limbs)) => self.thing_beside(header, limbs.iter().copied()),
        }
    }

    /// An integer of at most two limbs, a big one in a fragment.
    #[inline]
    pub(crate) fn wide_beside(&self, value: Wide) -> Term<'_> {
        let (negative, magnitude) = (value.is_negative(), value.mag());
        let limit = tag::MAX_SMALL as u64 + u64::from(negative);
        let (low, high) = (magnitude as u64, (magnitude >> 64) as u64);
        if high == 0 && low <= limit {
            let value = low as i64;
            return Term::small(if negative {
                value.wrapping_neg()
            } else {
                value
            });
        }
        let kind = if negative { tag::NEG_BIG } else { tag::POS_BIG };
        let limbs = 1 + usize::from(high != 0);
        let ptr = self.alloc_in_fragment(1 + limbs);
        // SAFETY: H1: as many fresh words as are written.
        unsafe {
            *ptr = tag::make_header(limbs, kind);
            *ptr.add(1) = low;
            if high != 0 {
                *ptr.add(2) = high;
            }
            self.boxed(ptr)
        }
    }

    /// A small integer, or header and limbs of a big one.
    fn integer_parts(negative: bool, limbs: &[u64]) -> Result<i64, (u64, &[u64])> {
        let used = limbs
            .iter()
            .rposition(|&limb| limb != 0)
            .map_or(0, |last| last + 1);
        let limbs = &limbs[..used];
        if used == 0 {
            return Ok(0);
        }
        if used == 1 {
            let limit = tag::MAX_SMALL as u64 + u64::from(negative);
            if limbs[0] <= limit {
                let value = (limbs[0] as i64).wrapping_neg();
                return Ok(if negative { value } else { limbs[0] as i64 });
            }
        }
        let kind = if negative { tag::NEG_BIG } else { tag::POS_BIG };
        Err((tag::make_header(used, kind), limbs))
    }

    /// A binary of `bytes`: on the heap up to 64 bytes, else off-heap.
    pub fn binary(&self, bytes: &[u8]) -> Term<'_> {
        self.bitstring(bytes, bytes.len() * 8)
    }

    /// A bitstring of the first `bit_len` bits of `bytes`.
    pub fn bitstring(&self, bytes: &[u8], bit_len: usize) -> Term<'_> {
        let bytes = &bytes[..bit_len.div_ceil(8)];
        if bytes.len() <= tag::ONHEAP_BINARY_LIMIT {
            let mut hp = self.alloc(heap_bits_words(bit_len));
            // SAFETY: H1: as many fresh words as such a bitstring takes.
            return unsafe { Term::new(write_heap_bits(&mut hp, bytes, bit_len)) };
        }
        let binary = Binary::with_capacity(bytes, bytes.len());
        // SAFETY: H4: made just now, of as many bytes as have the bits.
        unsafe { self.off_heap_bits(binary, bit_len) }
    }

    /// A binary that takes over `bytes` without a copy where it is off-heap.
    pub(crate) fn binary_from_vec(&self, bytes: Vec<u8>) -> Term<'_> {
        if bytes.len() <= tag::ONHEAP_BINARY_LIMIT {
            return self.binary(&bytes);
        }
        self.off_heap_binary(bytes)
    }

    /// A binary that takes over `bytes` and is off-heap whatever its size. 8 words.
    pub(crate) fn off_heap_binary(&self, bytes: Vec<u8>) -> Term<'_> {
        let size = bytes.len();
        // SAFETY: H4: made just now.
        unsafe { self.off_heap_bits(Binary::from_vec(bytes, size), size * 8) }
    }

    /// The first `bit_len` bits of `binary`, whose one count this takes over. 8 words.
    ///
    /// # Safety
    /// H4: the caller gives the count of a binary that is there, and has `bit_len` bits.
    pub(crate) unsafe fn off_heap_bits(&self, binary: NonNull<Binary>, bit_len: usize) -> Term<'_> {
        // SAFETY: by contract.
        unsafe { self.off_heap_part(binary, 0, bit_len) }
    }

    /// The `size` bytes at `data`, which belong to `object` and do not change as long as that lives. 8 words.
    ///
    /// # Safety
    /// T1: the bytes are readable as long as the object lives.
    pub(crate) unsafe fn object_bits(
        &self,
        object: Arc<MagicBinary>,
        data: *const u8,
        size: usize,
    ) -> Term<'_> {
        let (binary, before) = Binary::of_object(object, data, size);
        // SAFETY: H4: made just now, and the bytes are those behind what is before them.
        unsafe { self.off_heap_part(binary, before * 8, (before + size) * 8) }
    }

    /// Bits `start..end` of `binary`, whose one count this takes over. 8 words.
    ///
    /// # Safety
    /// As [`Heap::off_heap_bits`].
    unsafe fn off_heap_part(&self, binary: NonNull<Binary>, start: usize, end: usize) -> Term<'_> {
        let ptr = self.alloc(size::REFC_BITS);
        // SAFETY: H1: eight fresh words; H4: the count moves to the thing listed here.
        unsafe {
            let bin_ref = ptr.add(size::SUB_BITS);
            write_bin_ref(bin_ref, binary.as_ptr(), self.off_heap());
            let data = binary.as_ref().data() as u64;
            write_sub_bits(ptr, data, start, end, RawTerm::boxed(bin_ref));
            self.boxed(ptr)
        }
    }

    /// Keeps a binary, whose one count this takes over, until the next collection, for whoever reads its bytes. 3 words.
    ///
    /// # Safety
    /// H4: the caller gives the count.
    pub(crate) unsafe fn hold(&self, binary: NonNull<Binary>) {
        let ptr = self.alloc(size::BIN_REF);
        // SAFETY: H1: three fresh words; H4: by contract.
        unsafe { write_bin_ref(ptr, binary.as_ptr(), self.off_heap()) };
    }

    /// The parts of `bytes` that end at these indices, each from where the one before ends, in one binary
    /// off-heap whatever its size. 3 words and 5 a part.
    pub(crate) fn off_heap_parts<'h>(&'h self, bytes: Vec<u8>, ends: &[usize]) -> Vec<Term<'h>> {
        let mut from = 0;
        let mut whole: Option<Term<'h>> = None;
        let mut bytes = Some(bytes);
        let parts = ends.iter().map(|&to| {
            let (start, end) = (from * 8, to * 8);
            from = to;
            if let Some(bits) = whole.and_then(Term::as_bits) {
                let binary = bits.binary().expect("off-heap");
                return self.refer(bits, binary, start, end);
            }
            // The first part stands for all: what others refer to is behind it.
            let bytes = bytes.take().expect("once");
            let size = bytes.len();
            assert!(end <= size * 8, "a part of the bytes");
            // SAFETY: H4: made just now, and as long.
            let first = unsafe { self.off_heap_bits(Binary::from_vec(bytes, size), end) };
            whole = Some(first);
            first
        });
        parts.collect()
    }

    /// The bytes from index `from` on, shared where they are too many for the heap.
    pub fn shared_bytes(&self, bytes: &SharedBytes, from: usize) -> Term<'_> {
        self.shared_part(bytes, from..bytes.as_slice().len())
    }

    /// The bytes in `range`, shared where they are too many for the heap.
    pub(crate) fn shared_part(&self, bytes: &SharedBytes, range: Range<usize>) -> Term<'_> {
        let part = &bytes.as_slice()[range.clone()];
        if part.len() <= tag::ONHEAP_BINARY_LIMIT {
            return self.binary(part);
        }
        // SAFETY: H4: a count of its own, for bytes that are there.
        unsafe { self.off_heap_part(bytes.retained(), range.start * 8, range.end * 8) }
    }

    /// A binary of these bytes on the heap.
    #[inline]
    pub(crate) fn heap_bits(&self, bytes: &[u8]) -> Term<'_> {
        let bit_len = bytes.len() * 8;
        let mut hp = self.alloc(heap_bits_words(bit_len));
        // SAFETY: H1: as many fresh words as such a bitstring takes.
        unsafe { Term::new(write_heap_bits(&mut hp, bytes, bit_len)) }
    }

    /// Bits `from..to` of `bits`: a copy on the heap where that is small, else a sub-bitstring
    /// (5 words) that shares the bytes.
    pub(crate) fn sub_bits<'h>(&'h self, bits: Bits<'h>, from: usize, to: usize) -> Term<'h> {
        assert!(
            from <= to && to <= bits.bit_len(),
            "a part of the bitstring"
        );
        let start = bits.bit_offset() + from;
        let Some(binary) = bits
            .binary()
            .filter(|_| to - from > tag::ONHEAP_BINARY_LIMIT * 8)
        else {
            let mut hp = self.alloc(heap_bits_words(to - from));
            // SAFETY: H1: as many fresh words as such a bitstring takes; T1 for the source bits.
            return unsafe { Term::new(copy_to_heap_bits(&mut hp, bits.base(), start, to - from)) };
        };
        self.refer(bits, binary, start, start + to - from)
    }

    /// Bits `start..end` of `binary`, which `bits` refers to. 5 words.
    fn refer<'h>(&'h self, bits: Bits<'h>, binary: &Binary, start: usize, end: usize) -> Term<'h> {
        let ptr = self.alloc(size::SUB_BITS);
        // SAFETY: T1: a sub-bitstring's `orig` is its `BIN_REF`; H1: five fresh words.
        unsafe {
            let orig = RawTerm(*bits.ptr().add(4));
            let volatile = *bits.ptr().add(1) & crate::term::sub_bits_volatile();
            write_sub_bits(ptr, binary.data() as u64 | volatile, start, end, orig);
            self.boxed(ptr)
        }
    }

    /// A copy of `bits` that starts `offset` bits into a byte, off-heap whatever its size. 13 words.
    pub(crate) fn unaligned_bits<'h>(&'h self, bits: Bits<'h>, offset: usize) -> Term<'h> {
        let end = offset + bits.bit_len();
        let size = end.div_ceil(8).max(tag::ONHEAP_BINARY_LIMIT + 1);
        let mut bytes = vec![0u8; size];
        // SAFETY: T1 for the source bits; the target has room for as many behind `offset`.
        unsafe {
            super::copy_bits(
                bits.base(),
                bits.bit_offset(),
                bytes.as_mut_ptr(),
                offset,
                bits.bit_len(),
            );
        }
        let whole = self.off_heap_binary(bytes);
        let whole = whole.as_bits().expect("just made");
        let binary = whole.binary().expect("off-heap");
        self.refer(whole, binary, offset, end)
    }

    /// A reference with these numbers. 3 words.
    pub fn reference(&self, numbers: [u32; 3]) -> Term<'_> {
        self.thing(
            tag::make_header(size::REF - 1, tag::REF),
            ref_words(numbers).into_iter(),
        )
    }

    /// The reference with these numbers, which have come from outside: to the object they stand for, where
    /// they are those of one. 3 words.
    pub(crate) fn known_reference(&self, numbers: [u32; 3]) -> Term<'_> {
        match MagicBinary::find(numbers) {
            Some(magic) => self.magic_reference(magic),
            None => self.reference(numbers),
        }
    }

    /// A reference that names a process too (aliases). 4 words.
    pub(crate) fn pid_reference(&self, numbers: [u32; 3], pid: Pid) -> Term<'_> {
        let [a, b] = ref_words(numbers);
        self.thing(
            tag::make_header(size::PID_REF - 1, tag::REF),
            [a, b, pid.0].into_iter(),
        )
    }

    /// A reference that keeps an object of the runtime's alive. 3 words.
    pub(crate) fn magic_reference(&self, magic: Arc<MagicBinary>) -> Term<'_> {
        let words = [Arc::into_raw(magic) as u64, 0];
        let term = self.thing(tag::make_header(size::REF - 1, tag::REF), words.into_iter());
        // SAFETY: H4: the count moves to the thing listed here.
        unsafe { self.off_heap().push(term.raw().ptr()) };
        term
    }

    /// Pid, port or reference of another node: `kind` is the header's tag; for `data` see
    /// [`crate::term::External::data`]. 3 words and the data.
    pub fn external(&self, kind: u64, node: Arc<Node>, data: &[u64]) -> Term<'_> {
        let ptr = self.alloc(size::EXTERNAL_HEAD + data.len());
        // SAFETY: H1: as many fresh words; H4: the count moves to the thing listed here.
        unsafe {
            *ptr = tag::make_header(size::EXTERNAL_HEAD - 1 + data.len(), kind);
            *ptr.add(1) = Arc::into_raw(node) as u64;
            data.iter()
                .enumerate()
                .for_each(|(i, word)| *ptr.add(size::EXTERNAL_HEAD + i) = *word);
            self.off_heap().push(ptr);
            self.boxed(ptr)
        }
    }

    /// A local fun. 2 words and one a free variable.
    pub fn local_fun<'h>(&'h self, entry: &'static FunEntry, env: &[Term<'h>]) -> Term<'h> {
        let header = tag::fun::make_header(entry.arity - env.len() as u8, env.len() as u8, false);
        let first = std::iter::once(std::ptr::from_ref(entry) as u64);
        let words: Vec<u64> = first.chain(env.iter().map(|t| t.raw().0)).collect();
        self.thing(header, words.into_iter())
    }

    /// `fun M:F/A`. 2 words.
    pub fn external_fun(&self, export: &'static Export) -> Term<'_> {
        let header = tag::fun::make_header(export.arity, 0, true);
        self.thing(header, [std::ptr::from_ref(export) as u64].into_iter())
    }

    /// A native record of `definition` (a literal). 2 words and one a value.
    pub fn record<'h>(&'h self, definition: Term<'h>, values: &[Term<'h>]) -> Term<'h> {
        let ptr = self.alloc(2 + values.len());
        // SAFETY: H1: as many fresh words as are written.
        unsafe {
            *ptr = tag::make_header(1 + values.len(), tag::RECORD);
            *ptr.add(1) = definition.raw().0;
            values
                .iter()
                .enumerate()
                .for_each(|(i, v)| *ptr.add(2 + i) = v.raw().0);
            self.boxed(ptr)
        }
    }

    /// A flat map of these sorted, distinct keys (a tuple) and their values. 3 words and the values.
    /// `maps` keeps the order; see `term::map`.
    pub(crate) fn flat_map<'h>(&'h self, keys: Term<'h>, values: &[Term<'h>]) -> Term<'h> {
        self.flat_map_of(keys, values.iter().copied())
    }

    /// A flat map of these values but for those at the indices of `changes`, which become what stands there.
    #[inline]
    pub(crate) fn flat_map_with<'h>(
        &'h self,
        keys: Term<'h>,
        values: &[Term<'h>],
        changes: &[(usize, Term<'h>)],
    ) -> Term<'h> {
        let ptr = self.alloc(tag::map::FLAT_WORDS + values.len());
        // SAFETY: H1: as many fresh words as are written.
        unsafe {
            let first = write_flat_map_head(ptr, keys, values.len());
            copy_terms(values, first);
            for (index, value) in changes {
                assert!(*index < values.len(), "a place in the map");
                *first.add(*index) = value.raw().0;
            }
            self.boxed(ptr)
        }
    }

    /// A flat map of these values, with `value` before the one at `index`.
    pub(crate) fn flat_map_and<'h>(
        &'h self,
        keys: Term<'h>,
        values: &[Term<'h>],
        index: usize,
        value: Term<'h>,
    ) -> Term<'h> {
        let ptr = self.alloc(tag::map::FLAT_WORDS + values.len() + 1);
        // SAFETY: H1: as many fresh words as are written.
        unsafe {
            let first = write_flat_map_head(ptr, keys, values.len() + 1);
            write_with_another(first, values, index, value);
            self.boxed(ptr)
        }
    }

    /// The map of at most 32 pairs whose keys ascend.
    pub(crate) fn flat_map_of_ascending<'h>(&'h self, pairs: &[(Term<'h>, Term<'h>)]) -> Term<'h> {
        let keys = match pairs {
            [] => super::literal::empty_tuple(),
            _ => {
                let header = tag::make_header(pairs.len(), tag::ARITYVAL);
                self.thing(header, pairs.iter().map(|(key, _)| key.raw().0))
            }
        };
        self.flat_map_of(keys, pairs.iter().map(|(_, value)| *value))
    }

    fn flat_map_of<'h>(
        &'h self,
        keys: Term<'h>,
        values: impl ExactSizeIterator<Item = Term<'h>>,
    ) -> Term<'h> {
        let ptr = self.alloc(tag::map::FLAT_WORDS + values.len());
        // SAFETY: H1: as many fresh words as are written.
        unsafe {
            let first = write_flat_map_head(ptr, keys, values.len());
            values
                .enumerate()
                .for_each(|(i, v)| *first.add(i) = v.raw().0);
            self.boxed(ptr)
        }
    }

    /// Gives `map`, a flat map of this heap, the literal tuple `keys` in place of its equal own one, so
    /// that more maps share it. Its words are changed in place; what it is stays the same.
    pub(crate) fn share_keys(&self, map: Map<'_>, keys: Tuple<'_>) {
        debug_assert!(self.is_literal(keys.term()), "what moves is not shared");
        if !self.is_literal(map.keys_term()) {
            let ptr = map.term().raw().ptr();
            // SAFETY: H3, H6: a map with keys that are no literal is no literal itself, but the heap's;
            // no slice of its words has the third one, and the literal never moves.
            unsafe { *ptr.add(2) = keys.term().raw().0 };
        }
    }

    /// `words` that hold nothing: where ERTS leaves a hole, so that counts of words agree.
    pub(crate) fn filler(&self, words: usize) {
        if words > 0 {
            let ptr = self.alloc(words);
            // SAFETY: H1: as many fresh words; what is behind such a header is never looked at.
            unsafe { *ptr = tag::make_header(words - 1, tag::POS_BIG) };
        }
    }

    /// A node of a hash trie: a root where `size` is given. 1 word (a root: 2) and the children.
    pub(crate) fn trie_node<'h>(
        &'h self,
        size: Option<usize>,
        bitmap: u32,
        children: &[Term<'h>],
    ) -> Term<'h> {
        self.trie_node_of(size, bitmap, [children])
    }

    /// As [`Heap::trie_node`], of children that lie apart.
    #[inline]
    pub(crate) fn trie_node_of<'h, const PARTS: usize>(
        &'h self,
        size: Option<usize>,
        bitmap: u32,
        parts: [&[Term<'h>]; PARTS],
    ) -> Term<'h> {
        let count = bitmap.count_ones() as usize;
        let given = parts.iter().map(|part| part.len()).sum::<usize>();
        assert_eq!(count, given, "a child for each bit");
        let kind = match size {
            None => tag::map::NODE_BITMAP,
            Some(_) if bitmap == 0xffff => tag::map::HEAD_ARRAY,
            Some(_) => tag::map::HEAD_BITMAP,
        };
        let from = 1 + usize::from(size.is_some());
        let ptr = self.alloc(from + count);
        // SAFETY: H1: as many fresh words as are written.
        unsafe {
            *ptr = tag::map::node_header(kind, bitmap);
            if let Some(size) = size {
                *ptr.add(1) = size as u64;
            }
            let mut at = ptr.add(from);
            for child in parts.into_iter().flatten() {
                *at = child.raw().0;
                at = at.add(1);
            }
            self.boxed(ptr)
        }
    }
}

/// Writes the head of a flat map; where its first value goes.
///
/// # Safety
/// H1: as many words as the map takes are free at `ptr`.
#[inline]
unsafe fn write_flat_map_head(ptr: *mut u64, keys: Term<'_>, len: usize) -> *mut u64 {
    // SAFETY: by contract.
    unsafe {
        *ptr = tag::map::FLAT_HEADER;
        *ptr.add(1) = len as u64;
        *ptr.add(2) = keys.raw().0;
        ptr.add(tag::map::FLAT_WORDS)
    }
}

/// Writes `terms` with `another` before the one at `index`.
///
/// # Safety
/// H1: one word more than there are terms is free at `ptr`.
#[inline]
unsafe fn write_with_another(ptr: *mut u64, terms: &[Term<'_>], index: usize, another: Term<'_>) {
    let (before, behind) = terms.split_at(index);
    // SAFETY: by contract.
    unsafe {
        copy_terms(before, ptr);
        *ptr.add(index) = another.raw().0;
        copy_terms(behind, ptr.add(index + 1));
    }
}

/// # Safety
/// H1: as many words as there are terms are free at `to`.
#[inline(always)]
unsafe fn copy_terms(terms: &[Term<'_>], to: *mut u64) {
    // SAFETY: by contract: what is free is nobody's term.
    unsafe { super::collect::copy_words(terms.as_ptr().cast(), to, terms.len()) };
}

fn ref_words(numbers: [u32; 3]) -> [u64; 2] {
    [
        (u64::from(numbers[0]) << 32) | ORDINARY_REF_MARKER,
        u64::from(numbers[1]) | (u64::from(numbers[2]) << 32),
    ]
}

/// Writes a bitstring of `bit_len` bits to `*hp`, bits behind the last cleared.
///
/// # Safety
/// H1: `heap_bits_words(bit_len)` words are free at `*hp`.
pub(crate) unsafe fn write_heap_bits(hp: &mut *mut u64, bytes: &[u8], bit_len: usize) -> RawTerm {
    // SAFETY: by contract; `bytes` has the bits.
    unsafe { copy_to_heap_bits(hp, bytes.as_ptr(), 0, bit_len) }
}

/// Copies `bit_len` bits that start `bit_offset` bits into `base` to a new bitstring at `*hp`.
///
/// # Safety
/// H1: as [`write_heap_bits`]; T1: the source bits are readable.
unsafe fn copy_to_heap_bits(
    hp: &mut *mut u64,
    base: *const u8,
    bit_offset: usize,
    bit_len: usize,
) -> RawTerm {
    let words = heap_bits_words(bit_len);
    let ptr = *hp;
    // SAFETY: by contract.
    unsafe {
        *hp = ptr.add(words);
        *ptr = tag::make_header(words - 1, tag::HEAP_BITS);
        *ptr.add(1) = bit_len as u64;
        if words > 2 {
            *ptr.add(words - 1) = 0;
        }
        let to: *mut u8 = ptr.add(2).cast();
        let n = bit_len.div_ceil(8);
        super::copy_bits(base, bit_offset, to, 0, bit_len);
        if !bit_len.is_multiple_of(8) {
            *to.add(n - 1) &= 0xffu8 << (8 - bit_len % 8);
        }
    }
    RawTerm::boxed(ptr)
}

/// Writes a handle to `binary`, one count of which it takes over, and lists it.
///
/// # Safety
/// H1: three words are free at `ptr`; H4: the caller gives the count.
pub(crate) unsafe fn write_bin_ref(ptr: *mut u64, binary: *const Binary, off_heap: &OffHeap) {
    // SAFETY: by contract.
    unsafe {
        *ptr = tag::make_header(size::BIN_REF - 1, tag::BIN_REF);
        *ptr.add(1) = binary as u64;
        off_heap.push(ptr);
    }
}

/// Writes a sub-bitstring of bits `start..end` counted from `base` (flags in its low bits), which
/// `orig` keeps alive.
///
/// # Safety
/// H1: five words are free at `ptr`; T1: the bits are readable as long as `orig` lives.
pub(crate) unsafe fn write_sub_bits(
    ptr: *mut u64,
    base: u64,
    start: usize,
    end: usize,
    orig: RawTerm,
) {
    // SAFETY: by contract.
    unsafe {
        *ptr = tag::make_header(size::SUB_BITS - 1, tag::SUB_BITS);
        *ptr.add(1) = base;
        *ptr.add(2) = start as u64;
        *ptr.add(3) = end as u64;
        *ptr.add(4) = orig.0;
    }
}
