//! Tests that terms survive collections and copies unchanged.

use std::sync::Arc;

use super::{
    Heap, Literals, MagicBinary, Message, RESERVED_WORDS, Roots, Visit, build_literal, size,
};
use crate::hash::HashSet;
use crate::term::{Atom, RawTerm, Term, View, am};

/// Slots of a test, in which it keeps terms of the heap that it collects.
pub(super) struct Slots<'s>(pub(super) &'s mut [RawTerm]);

// SAFETY: H8: as said.
unsafe impl Roots for Slots<'_> {
    fn for_each(&mut self, visit: &mut Visit<'_>) {
        visit(self.0);
    }
}

/// A text of a term's whole structure, for comparisons across heaps.
fn shape_of(term: Term<'_>) -> String {
    match term.view() {
        View::Small(n) => n.to_string(),
        View::Big(b) => format!(
            "big{}{:?}",
            if b.is_negative() { "-" } else { "" },
            b.limbs()
        ),
        View::Float(f) => format!("{f:?}"),
        View::Atom(a) => a.name().to_string(),
        View::Nil => "[]".into(),
        View::Cons(c) => format!("[{}|{}]", shape_of(c.head()), shape_of(c.tail())),
        View::Tuple(t) => {
            let parts: Vec<_> = t.elements().iter().map(|e| shape_of(*e)).collect();
            format!("{{{}}}", parts.join(","))
        }
        View::Bits(b) => format!("<<{:?}:{}>>", b.to_vec(), b.bit_len()),
        View::Ref(r) => format!("#{:?}", r.numbers()),
        View::Map(m) => {
            let (keys, values) = m.flat().expect("tests make flat maps");
            let keys: Vec<_> = keys.elements().iter().map(|k| shape_of(*k)).collect();
            let values: Vec<_> = values.iter().map(|v| shape_of(*v)).collect();
            format!("#{{{keys:?}=>{values:?}}}")
        }
        _ => panic!("not made here"),
    }
}

fn sample<'h>(heap: &'h Heap, seed: u64) -> Term<'h> {
    let bytes: Vec<u8> = (0..200u64).map(|i| (i * seed) as u8).collect();
    let long = heap.binary(&bytes);
    let bits = long.as_bits().expect("a binary");
    let key = heap.tuple(&[am::value.term(), Term::small(1)]);
    let map = heap.flat_map(
        heap.tuple(&[am::ok.term(), key]),
        &[heap.float(1.5), Term::NIL],
    );
    heap.list(&[
        Term::small(seed as i64),
        heap.integer(i64::MIN),
        heap.big(true, &[1, 2, seed]),
        heap.binary(b"short"),
        long,
        heap.sub_bits(bits, 3, 1203),
        heap.sub_bits(bits, 5, 22),
        heap.tuple(&[heap.string("text"), Term::NIL, heap.tuple(&[])]),
        map,
        heap.reference([1, 2, seed as u32]),
        Atom::new("an atom of the test").term(),
    ])
}

#[test]
fn terms_survive_collections() {
    let mut heap = Heap::new(233);
    let mut slots: Vec<RawTerm> = Vec::new();
    let mut expect = Vec::new();
    for round in 0..60 {
        for i in 0..5 {
            let term = sample(&heap, round * 5 + i + 1);
            expect.push(shape_of(term));
            slots.push(term.raw());
        }
        // Every third term dies.
        if round % 3 == 0 {
            slots.remove(round as usize);
            expect.remove(round as usize);
        }
        heap.need_fullsweep = round % 7 == 0;
        heap.collect(300, &mut Slots(&mut slots))
            .expect("no limit is set");
        assert!(heap.free_words() >= 300);
        assert_eq!(heap.fragment_words(), 0);
        for (slot, expect) in slots.iter().zip(&expect) {
            // SAFETY: T1: the collector has updated the slot, which roots the term.
            let term: Term<'_> = unsafe { Term::new(*slot) };
            assert!(heap.owns(term));
            assert_eq!(&shape_of(term), expect);
        }
    }
    heap.need_fullsweep = true;
    heap.collect(0, &mut ()).expect("no limit is set");
    assert_eq!(heap.used_words(), 0);
    assert_eq!(heap.bin_vheap()[0], 0);
}

#[test]
fn a_hibernating_heap_has_room_for_what_is_alive_alone() {
    let mut heap = Heap::new(233);
    let kept = sample(&heap, 7);
    let expect = shape_of(kept);
    let mut slots = [kept.raw()];
    for seed in 0..50 {
        sample(&heap, seed);
    }
    let mut roots = Slots(&mut slots);
    heap.need_fullsweep = true;
    heap.collect(0, &mut roots).expect("no limit is set");
    let words = heap.used_words();
    heap.collect_hibernate(&mut roots);
    assert_eq!((heap.used_words(), heap.free_words()), (words, 0));
    assert_eq!(heap.block_words(), words + RESERVED_WORDS);
    // SAFETY: T1: the collector has updated the slot, which roots the term.
    assert_eq!(shape_of(unsafe { Term::new(slots[0]) }), expect);
}

#[test]
fn roots_move_with_their_terms() {
    let mut heap = Heap::new(0);
    let kept = heap.root(sample(&heap, 3));
    let expect = shape_of(heap.get(&kept));
    for _ in 0..4 {
        heap.collect(10, &mut ()).expect("no limit is set");
        assert_eq!(shape_of(heap.get(&kept)), expect);
    }
}

#[test]
fn messages_and_literals_hold_copies() {
    let heap = Heap::new(233);
    let term = sample(&heap, 9);
    let expect = shape_of(term);
    let message = Message::copy_of(term);
    assert_eq!(message.words(), size(term, Literals::Share));
    assert_eq!(shape_of(message.term()), expect);
    let literal = build_literal(|scratch| sample(scratch, 9));
    assert_eq!(shape_of(literal), expect);
    let other = Heap::new(233);
    assert_eq!(size(literal, Literals::Share), 0);
    assert_eq!(other.copy_in(literal).raw(), literal.raw());
    let taken = other.attach(message);
    drop(heap);
    assert_eq!(shape_of(taken), expect);
}

/// The cells of a list, of the lists in it, and of those in these.
fn cells_of(term: Term<'_>, cells: &mut HashSet<RawTerm>) {
    let mut rest = term;
    while let View::Cons(cell) = rest.view()
        && cells.insert(rest.raw())
    {
        cells_of(cell.head(), cells);
        rest = cell.tail();
    }
}

/// Lists with a common end and with any elements, the end old and the beginning new.
#[test]
fn a_list_is_moved_once_whoever_leads_there() {
    for kinds in 0..27 {
        let mut heap = Heap::new(233);
        let mut slots = [RawTerm::NIL; 3];
        for round in 0..5 {
            let before = {
                // SAFETY: T1: the collector has updated the slots, which root the terms.
                let [end, first, _] = slots.map(|slot| unsafe { Term::new(slot) });
                let element = |i: usize| match kinds / [1, 3, 9][i % 3] % 3 {
                    0 => Term::small(round),
                    1 => first,
                    _ => end,
                };
                let elements: Vec<_> = (0..6).map(element).collect();
                let list = heap.list_with_tail(&elements, end);
                let first = heap.cons(Term::small(-1), list);
                let terms = [list, first, heap.cons(first, list)];
                slots = terms.map(Term::raw);
                terms.map(shape_of)
            };
            heap.need_fullsweep = round == 3;
            heap.collect(0, &mut Slots(&mut slots))
                .expect("no limit is set");
            // SAFETY: T1: as above.
            let after = slots.map(|slot| shape_of(unsafe { Term::new(slot) }));
            assert!(after == before, "kinds {kinds}, round {round}");
        }
        heap.need_fullsweep = true;
        heap.collect(0, &mut Slots(&mut slots))
            .expect("no limit is set");
        let mut cells = HashSet::default();
        for slot in slots {
            // SAFETY: T1: as above.
            cells_of(unsafe { Term::new(slot) }, &mut cells);
        }
        assert_eq!(heap.used_words(), 2 * cells.len(), "kinds {kinds}");
    }
}

/// A term at each place among code addresses.
#[test]
fn a_stack_moves_with_its_heap() {
    const WORDS: usize = 19;
    for at in 0..WORDS {
        let mut heap = Heap::new(233);
        let mut stack = [0x1000; WORDS];
        stack[at] = sample(&heap, 4).raw().0;
        let stop = heap.stop.get().wrapping_sub(WORDS);
        heap.stop.set(stop);
        // SAFETY: H1: so many words of the block's free end.
        unsafe { stop.cast::<[u64; WORDS]>().write(stack) };
        heap.collect(5000, &mut ()).expect("no limit is set");
        let stop = heap.stop.get();
        assert_eq!(heap.hend() as usize - stop as usize, 8 * WORDS);
        // SAFETY: H1: the stack's words.
        let mut moved = unsafe { stop.cast::<[u64; WORDS]>().read() };
        // SAFETY: T1: the collector keeps the stack's terms up to date.
        let term = unsafe { Term::new(RawTerm(moved[at])) };
        assert_eq!(shape_of(term), shape_of(sample(&heap, 4)));
        moved[at] = stack[at];
        assert_eq!(moved, stack);
    }
}

#[test]
fn what_is_built_aside_leaves_the_heap_as_it_was() {
    for elements in [1, 1000] {
        let heap = Heap::new(233);
        let kept = heap.tuple(&[heap.binary(&[1; 100]), Term::small(2)]);
        // A fragment with room, too.
        heap.alloc_in_fragment(0);
        let measures = || (heap.used_words(), heap.fragment_words(), heap.bin_vheap());
        let before = measures();
        let build = || {
            let list = heap.list(&vec![Term::small(1); elements]);
            Message::copy_of(heap.tuple(&[heap.binary(&[7; 100]), list]))
        };
        // SAFETY: H1: what comes out is a copy.
        let made = unsafe { heap.aside(build) };
        assert_eq!(measures(), before);
        let bytes = |term: Term<'_>| term.as_tuple().unwrap().get(0).display().to_string();
        assert!(bytes(made.term()).starts_with("<<7,7,"));
        assert!(bytes(kept).starts_with("<<1,1,"));
        assert_eq!(
            made.term().as_tuple().unwrap().get(1).list_iter().count(),
            elements
        );
    }
}

/// Bytes of an object, wherever in a word they begin: the whole of them, a part of that, and copies of both.
#[test]
fn bytes_of_an_object_may_begin_anywhere_in_a_word() {
    let bytes: Arc<[u8]> = (0..200u8).collect();
    for (from, size) in (0..17).flat_map(|from| [0, 1, 65, 150].map(|size| (from, size))) {
        let heap = Heap::detached();
        let object = MagicBinary::new([0, 0, from as u32], Box::new(bytes.clone()));
        let expected = &bytes[from..from + size];
        // SAFETY: T1: the object has the bytes.
        let whole = unsafe { heap.object_bits(object, expected.as_ptr(), size) };
        let bits = whole.as_bits().expect("a binary");
        let part = heap.sub_bits(bits, size / 8 * 8, size * 8);
        for (term, expected) in [(whole, expected), (part, &expected[size / 8..])] {
            let copy = Message::copy_of(term);
            for bits in [term.as_bits(), copy.term().as_bits()] {
                let bits = bits.expect("a binary");
                assert_eq!(bits.bytes(), expected, "{size} bytes from {from}");
                assert_eq!(bits.bit_len(), expected.len() * 8);
            }
        }
    }
}
