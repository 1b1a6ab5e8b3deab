//! Tests the handlers with operands as the loader emits them.

use proptest::prelude::*;

use super::{create, get, match_, start};
use crate::code::operand::Instruction;
use crate::interp::slow::Flow;
use crate::interp::testing::{Handler, LABEL, Machine, NIL, atom, small, x};
use crate::term::{Atom, Term, View, am};
use crate::value::number::MAX_LIMBS;

/// A segment's operands.
fn segment(kind: Atom, unit: u64, flags: u64, src: u64, size: u64) -> [u64; 6] {
    [atom(kind), 1, unit, flags, src, size]
}

/// Operands of `bs_create_bin` that sets `x(0)`.
fn create_operands(live: u64, segments: &[[u64; 6]]) -> Vec<u64> {
    let mut operands = vec![0, 0, live, 1, x(0), segments.len() as u64 * 6];
    operands.extend(segments.iter().flatten());
    operands
}

fn flag_list(flags: &[Atom]) -> u64 {
    let terms: Vec<_> = flags.iter().map(|f| f.term()).collect();
    crate::heap::build_literal(|heap| heap.list(&terms)).raw().0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn integers_survive(
        value in any::<i128>(),
        before in 0u64..70,
        len in 0u64..200,
        little in any::<bool>(),
        signed in any::<bool>(),
    ) {
        let mut m = Machine::new();
        let mut limbs = [0u64; 2];
        let magnitude = value.unsigned_abs();
        limbs[0] = magnitude as u64;
        limbs[1] = (magnitude >> 64) as u64;
        m.p.set_x(1, m.p.big(value < 0, &limbs));
        let flags = flag_list(if little { &[am::little] } else { &[] });
        m.ok(create::bs_create_bin, &create_operands(2, &[
            segment(am::integer, 1, NIL, small(-1), small(before as i64)),
            segment(am::integer, 1, flags, x(1), small(len as i64)),
            segment(am::integer, 1, NIL, small(0), small(3)),
        ]));
        let (bytes, total) = m.bits(0);
        prop_assert_eq!(total as u64, before + len + 3);
        let all: Vec<bool> = (0..total).map(|i| bytes[i / 8] >> (7 - i % 8) & 1 == 1).collect();
        let (head, rest) = all.split_at(before as usize);
        let (field, tail) = rest.split_at(len as usize);
        prop_assert!(head.iter().all(|b| *b) && tail.iter().all(|b| !*b));
        prop_assert_eq!(field, &model(value, len as usize, little)[..]);
        // And back.
        m.ok(start::bs_start_match, &[LABEL, x(0), 1, x(0)]);
        m.ok(get::bs_skip_bits2, &[LABEL, x(0), small(before as i64), 1, 0]);
        let number = u64::from(little) * 2 + u64::from(signed) * 4;
        m.ok(get::bs_get_integer2, &[LABEL, x(0), 1, small(len as i64), 1, number, x(1)]);
        m.ok(start::bs_test_tail2, &[LABEL, x(0), 3]);
        m.jumps(get::bs_get_integer2, &[LABEL, x(0), 1, small(4), 1, number, x(2)]);
        let expect = expected(value, len as u32, signed);
        prop_assert_eq!(integer(m.p.x(1)), expect);
    }
}

/// The bits of a field, one by one: byte by byte from the end that comes first.
fn model(value: i128, len: usize, little: bool) -> Vec<bool> {
    let bit = |i: usize| (value >> i.min(127)) & 1 == 1;
    if !little {
        return (0..len).rev().map(bit).collect();
    }
    let mut out = Vec::new();
    let mut low = 0;
    while low < len {
        let n = (len - low).min(8);
        out.extend((low..low + n).rev().map(bit));
        low += n;
    }
    out
}

/// Sign, high and low limbs of the magnitude of a field read back.
fn expected(value: i128, len: u32, signed: bool) -> (bool, Vec<u64>) {
    if len == 0 {
        return (false, vec![]);
    }
    let limbs = |m: [u64; 4]| {
        let used = m.iter().rposition(|l| *l != 0).map_or(0, |i| i + 1);
        m[..used].to_vec()
    };
    if len <= 127 {
        let mask = ((1u128 << len) - 1) as i128;
        let low = value & mask;
        let negative = signed && low >> (len - 1) & 1 == 1;
        let read = if negative { low - mask - 1 } else { low };
        let m = read.unsigned_abs();
        return (negative, limbs([m as u64, (m >> 64) as u64, 0, 0]));
    }
    if signed || value >= 0 {
        let m = value.unsigned_abs();
        return (value < 0, limbs([m as u64, (m >> 64) as u64, 0, 0]));
    }
    let mut words = [value as u64, (value >> 64) as u64, u64::MAX, u64::MAX];
    for (i, word) in words.iter_mut().enumerate() {
        let here = len.saturating_sub(i as u32 * 64);
        if here < 64 {
            *word &= (1u64 << here) - 1;
        }
    }
    (false, limbs(words))
}

fn integer(term: Term<'_>) -> (bool, Vec<u64>) {
    match term.view() {
        View::Small(0) => (false, vec![]),
        View::Small(n) => (n < 0, vec![n.unsigned_abs()]),
        View::Big(big) => (big.is_negative(), big.limbs().to_vec()),
        _ => panic!("no integer"),
    }
}

#[test]
fn bitstrings_are_taken_whole_or_in_part() {
    let bytes: Vec<u8> = (0..200).collect();
    let mut m = Machine::new();
    m.set_bits(0, &bytes, 4, 1596);
    m.ok(start::bs_start_match, &[LABEL, x(0), 1, x(1)]);
    m.ok(start::bs_get_position, &[x(1), x(5), 2]);
    // A context is used on.
    m.ok(start::bs_start_match, &[LABEL, x(1), 2, x(2)]);
    assert!(m.p.x(1).same(m.p.x(2)));
    m.jumps(
        get::bs_get_binary2,
        &[LABEL, x(1), 2, atom(am::all), 5, 0, x(3)],
    );
    m.ok(
        get::bs_get_binary2,
        &[LABEL, x(1), 2, small(12), 1, 0, x(3)],
    );
    assert_eq!(m.bits(3), (vec![0x00, 0x10], 12));
    m.ok(
        get::bs_get_binary2,
        &[LABEL, x(1), 2, small(100), 8, 0, x(3)],
    );
    assert_eq!(m.bits(3), ((2..102).collect(), 800));
    m.ok(start::bs_get_tail, &[x(1), x(4), 2]);
    let tail = m.bits(4);
    assert_eq!(tail.1, 780);
    m.ok(
        get::bs_get_binary2,
        &[LABEL, x(1), 2, atom(am::all), 1, 0, x(3)],
    );
    assert_eq!(m.bits(3), tail);
    m.ok(start::bs_test_unit, &[LABEL, x(1), 8]);
    m.ok(start::bs_set_position, &[x(1), x(5)]);
    m.jumps(get::bs_skip_bits2, &[LABEL, x(1), small(200), 8, 0]);
    m.jumps(get::bs_skip_bits2, &[LABEL, x(1), small(-1), 8, 0]);
    let text = [0x00u8, 0x10, 0x20];
    m.ok(
        start::bs_match_string,
        &[LABEL, x(1), 20, text.as_ptr() as u64],
    );
    m.jumps(
        start::bs_match_string,
        &[LABEL, x(1), 20, text.as_ptr() as u64],
    );
    m.jumps(start::bs_start_match, &[LABEL, NIL, 1, x(1)]);
}

#[test]
fn a_context_survives_collections() {
    let mut m = Machine::new();
    m.set_bits(0, b"a short text on the heap", 0, 192);
    m.ok(start::bs_start_match, &[LABEL, x(0), 1, x(0)]);
    for expect in b"a short text on the heap" {
        let need = m.p.free_words() + 1;
        m.p.garbage_collect(need, 1).expect("no limit is set");
        m.ok(
            get::bs_get_integer2,
            &[LABEL, x(0), 1, small(8), 1, 0, x(1)],
        );
        assert_eq!(m.p.x(1).as_small(), Some(i64::from(*expect)));
    }
}

#[test]
fn floats_of_three_sizes() {
    for (value, len) in [(1.5f64, 16), (-0.1, 64), (3.25, 32), (0.0, 64), (1e300, 64)] {
        for (flags, number) in [
            (NIL, 0),
            (flag_list(&[am::little]), 2),
            (flag_list(&[am::native]), 16),
        ] {
            let mut m = Machine::new();
            m.p.set_x(1, m.p.float(value));
            m.ok(
                create::bs_create_bin,
                &create_operands(
                    2,
                    &[
                        segment(am::integer, 1, NIL, small(1), small(3)),
                        segment(am::float, 1, flags, x(1), small(len)),
                    ],
                ),
            );
            m.ok(start::bs_start_match, &[LABEL, x(0), 1, x(0)]);
            m.ok(get::bs_skip_bits2, &[LABEL, x(0), small(3), 1, 0]);
            m.ok(
                get::bs_get_float2,
                &[LABEL, x(0), 1, small(len), 1, number, x(1)],
            );
            assert_eq!(m.p.x(1).as_float(), Some(value));
        }
    }
    let mut m = Machine::new();
    m.set_bits(0, &[0x7f, 0xf0, 0, 0, 0, 0, 0, 0], 0, 64);
    m.ok(start::bs_start_match, &[LABEL, x(0), 1, x(0)]);
    m.jumps(get::bs_get_float2, &[LABEL, x(0), 1, small(64), 1, 0, x(1)]);
    m.jumps(get::bs_get_float2, &[LABEL, x(0), 1, small(63), 1, 0, x(1)]);
}

#[test]
fn code_points_in_three_encodings() {
    code_points(am::utf8, get::bs_get_utf8, get::bs_skip_utf8);
    code_points(am::utf16, get::bs_get_utf16, get::bs_skip_utf16);
    code_points(am::utf32, get::bs_get_utf32, get::bs_skip_utf32);
}

fn code_points<G: Instruction, S: Instruction>(kind: Atom, get: Handler<G>, skip: Handler<S>) {
    for (flags, number) in [(NIL, 0), (flag_list(&[am::little]), 2)] {
        for c in [
            0, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff,
        ] {
            let mut m = Machine::new();
            m.ok(
                create::bs_create_bin,
                &create_operands(
                    0,
                    &[
                        segment(am::integer, 1, NIL, small(1), small(3)),
                        segment(kind, 0, flags, small(c), atom(am::undefined)),
                    ],
                ),
            );
            m.ok(start::bs_start_match, &[LABEL, x(0), 1, x(0)]);
            m.ok(get::bs_skip_bits2, &[LABEL, x(0), small(3), 1, 0]);
            m.ok(start::bs_get_position, &[x(0), x(2), 1]);
            m.ok(get, &[LABEL, x(0), 1, number, x(1)]);
            assert_eq!(m.p.x(1).as_small(), Some(c), "{kind:?}");
            m.ok(start::bs_test_tail2, &[LABEL, x(0), 0]);
            m.ok(start::bs_set_position, &[x(0), x(2)]);
            m.ok(skip, &[LABEL, x(0), 1, number]);
            m.jumps(get, &[LABEL, x(0), 1, number, x(1)]);
        }
        for c in [-1, 0xd800, 0xdfff, 0x110000] {
            let mut m = Machine::new();
            let mut operands = create_operands(0, &[segment(kind, 0, flags, small(c), NIL)]);
            operands[0] = LABEL;
            m.jumps(create::bs_create_bin, &operands);
        }
    }
}
#[test]
fn what_is_no_utf8_does_not_match() {
    for bad in [
        &[0x80u8][..],
        b"\xc1\x81",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc3",
    ] {
        let mut m = Machine::new();
        m.set_bits(0, bad, 0, bad.len() * 8);
        m.ok(start::bs_start_match, &[LABEL, x(0), 1, x(0)]);
        m.jumps(get::bs_get_utf8, &[LABEL, x(0), 1, 0, x(1)]);
    }
}

#[test]
fn appending_in_place_keeps_what_others_see() {
    let mut m = Machine::new();
    m.p.set_x(0, m.p.binary(b"start"));
    let append = |src| {
        create_operands(
            6,
            &[
                segment(am::append, 8, NIL, src, atom(am::all)),
                segment(am::binary, 8, NIL, x(1), atom(am::all)),
            ],
        )
    };
    m.p.set_x(1, m.p.binary(b"+word"));
    m.ok(create::bs_create_bin, &append(x(0)));
    let first =
        m.p.x(0)
            .as_bits()
            .expect("bits")
            .binary()
            .map(std::ptr::from_ref);
    assert!(first.is_some(), "what is appended to is off-heap");
    m.p.set_x(2, m.p.x(0));
    let mut expect = b"start+word".to_vec();
    for round in 0..300 {
        m.ok(create::bs_create_bin, &append(x(0)));
        expect.extend_from_slice(b"+word");
        assert_eq!(m.bits(0), (expect.clone(), expect.len() * 8));
        if round % 50 == 0 {
            let need = m.p.free_words() + 1;
            m.p.garbage_collect(need, 3).expect("no limit is set");
        }
    }
    let now =
        m.p.x(0)
            .as_bits()
            .expect("bits")
            .binary()
            .map(std::ptr::from_ref);
    assert_eq!(now, first, "grown in place");
    assert_eq!(m.bits(2), (b"start+word".to_vec(), 80));
    // The old value is no writer any more: appending to it copies.
    m.p.set_x(3, m.p.x(0));
    m.ok(create::bs_create_bin, &append(x(2)));
    assert_eq!(m.bits(0), (b"start+word+word".to_vec(), 120));
    assert_eq!(m.bits(3).0, expect);
    // Matching pins the bytes: the next append copies.
    m.ok(start::bs_start_match, &[LABEL, x(3), 4, x(4)]);
    m.ok(create::bs_create_bin, &append(x(3)));
    let copied =
        m.p.x(0)
            .as_bits()
            .expect("bits")
            .binary()
            .map(std::ptr::from_ref);
    assert_ne!(copied, first);
    m.ok(
        get::bs_get_integer2,
        &[LABEL, x(4), 5, small(8), 1, 0, x(5)],
    );
    assert_eq!(m.p.x(5).as_small(), Some(i64::from(b's')));
}

#[test]
fn private_append_grows_the_thing_itself() {
    let mut m = Machine::new();
    m.p.set_x(0, Term::small(3));
    m.ok(create::bs_init_writable, &[]);
    let thing = m.p.x(0).raw();
    for i in 0..1000 {
        let mut operands = create_operands(
            1,
            &[
                segment(am::private_append, 1, NIL, x(0), atom(am::all)),
                segment(am::integer, 1, NIL, small(i), small(11)),
            ],
        );
        operands[3] = 1;
        m.ok(create::bs_create_bin, &operands);
    }
    let collected = cfg!(feature = "gc_zeal");
    assert!(collected || m.p.x(0).raw() == thing);
    m.ok(start::bs_start_match, &[LABEL, x(0), 1, x(0)]);
    for i in 0..1000 {
        m.ok(
            get::bs_get_integer2,
            &[LABEL, x(0), 1, small(11), 1, 0, x(1)],
        );
        assert_eq!(m.p.x(1).as_small(), Some(i));
    }
}

/// Cause of the exception that was raised: segment, type, what, value.
fn cause(m: &Machine) -> (i64, Atom, Atom, String) {
    // SAFETY: T1: the exception keeps its terms.
    let info: Term<'_> = unsafe { Term::new(m.p.exception.info) };
    let map = info.as_map().expect("a map");
    let (keys, values) = map.flat().expect("small");
    let at = keys.elements().iter().position(|k| *k == am::cause);
    let cause = values[at.expect("a cause")].as_tuple().expect("a tuple");
    let atom_at = |i: usize| cause.get(i).as_atom().expect("an atom");
    let value = match cause.get(3).view() {
        View::Small(n) => n.to_string(),
        View::Atom(a) => a.name().to_string(),
        View::Bits(b) => format!("{:?}", b.to_vec()),
        _ => "other".into(),
    };
    (
        cause.get(0).as_small().expect("a number"),
        atom_at(1),
        atom_at(2),
        value,
    )
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn construction_says_what_is_wrong() {
    let bytes = crate::heap::build_literal(|heap| heap.binary(b"ab"))
        .raw()
        .0;
    let big = crate::heap::build_literal(|heap| heap.big(false, &[1, 1]))
        .raw()
        .0;
    let huge = crate::heap::build_literal(|heap| heap.big(false, &[1; 17]))
        .raw()
        .0;
    let all = atom(am::all);
    for (segment, reason, kind, what, value) in [
        (
            segment(am::integer, 1, NIL, atom(am::ok), small(8)),
            am::badarg,
            am::integer,
            am::type_,
            "ok",
        ),
        (
            segment(am::integer, 1, NIL, small(1), small(-1)),
            am::badarg,
            am::integer,
            am::size,
            "-1",
        ),
        (
            segment(am::integer, 1, NIL, small(1), big),
            am::system_limit,
            am::integer,
            am::size,
            "other",
        ),
        (
            segment(am::integer, 32, NIL, small(1), small(1 << 58)),
            am::system_limit,
            am::integer,
            am::size,
            "288230376151711744",
        ),
        (
            segment(am::binary, 1, NIL, atom(am::ok), all),
            am::badarg,
            am::binary,
            am::type_,
            "ok",
        ),
        (
            segment(am::binary, 3, NIL, bytes, all),
            am::badarg,
            am::binary,
            am::unit,
            "[97, 98]",
        ),
        (
            segment(am::binary, 8, NIL, bytes, small(3)),
            am::badarg,
            am::binary,
            am::short,
            "[97, 98]",
        ),
        (
            segment(am::binary, 8, NIL, small(7), small(3)),
            am::badarg,
            am::binary,
            am::type_,
            "7",
        ),
        (
            segment(am::append, 8, NIL, small(7), all),
            am::badarg,
            am::binary,
            am::type_,
            "7",
        ),
        (
            segment(am::append, 3, NIL, bytes, all),
            am::badarg,
            am::binary,
            am::unit,
            "[97, 98]",
        ),
        (
            segment(am::float, 1, NIL, small(7), small(8)),
            am::badarg,
            am::float,
            am::invalid,
            "8",
        ),
        (
            segment(am::float, 1, NIL, huge, small(64)),
            am::badarg,
            am::float,
            am::no_float,
            "other",
        ),
        (
            segment(am::float, 1, NIL, atom(am::ok), small(64)),
            am::badarg,
            am::float,
            am::type_,
            "ok",
        ),
        (
            segment(am::utf8, 0, NIL, small(0xd800), NIL),
            am::badarg,
            am::utf8,
            am::type_,
            "55296",
        ),
        (
            segment(am::utf32, 0, NIL, atom(am::ok), NIL),
            am::badarg,
            am::utf32,
            am::type_,
            "ok",
        ),
    ] {
        let mut m = Machine::new();
        let flow = m.run(create::bs_create_bin, &create_operands(0, &[segment]));
        assert!(matches!(flow, Flow::Raise));
        assert_eq!(m.p.exception.value, reason.raw());
        assert_eq!(cause(&m), (1, kind, what, value.to_string()));
    }
}

#[test]
fn matching_several_fields_at_once() {
    let mut m = Machine::new();
    let bytes: Vec<u8> = (1..=120).collect();
    m.set_bits(0, &bytes, 0, 960);
    m.ok(start::bs_start_match, &[LABEL, x(0), 1, x(0)]);
    m.ok(start::bs_get_position, &[x(0), x(9), 1]);
    let signed = flag_list(&[am::little, am::signed]);
    let commands = [
        vec![atom(am::ensure_at_least), 200, 8],
        vec![atom(am::exactly_equal), NIL, 16, 0x0102],
        vec![atom(am::integer), 1, NIL, 4, 1, x(1)],
        vec![atom(am::integer), 2, NIL, 4, 1, x(2)],
        vec![atom(am::skip), 8],
        vec![atom(am::integer), 3, signed, 2, 8, x(3)],
        vec![atom(am::integer), 4, NIL, 80, 1, x(4)],
        vec![atom(am::binary), 5, NIL, 3, 8, x(5)],
        vec![atom(am::get_tail), 6, 8, x(6)],
    ]
    .concat();
    let mut operands = vec![LABEL, x(0), commands.len() as u64];
    operands.extend(&commands);
    m.ok(match_::bs_match, &operands);
    assert_eq!(
        (m.p.x(1).as_small(), m.p.x(2).as_small()),
        (Some(0), Some(3))
    );
    assert_eq!(m.p.x(3).as_small(), Some(0x0605));
    assert_eq!(
        integer(m.p.x(4)),
        (false, vec![0x090a_0b0c_0d0e_0f10, 0x0708])
    );
    assert_eq!(m.bits(5), (vec![17, 18, 19], 24));
    assert_eq!(m.bits(6), ((20..=120).collect(), 101 * 8));
    m.ok(start::bs_test_tail2, &[LABEL, x(0), 101 * 8]);
    m.jumps(match_::bs_match, &operands);
    m.ok(start::bs_set_position, &[x(0), x(9)]);
    m.jumps(
        match_::bs_match,
        &[LABEL, x(0), 2, atom(am::ensure_exactly), 961],
    );
    m.jumps(
        match_::bs_match,
        &[LABEL, x(0), 3, atom(am::ensure_at_least), 8, 9],
    );
    m.ok(
        match_::bs_match,
        &[LABEL, x(0), 2, atom(am::ensure_exactly), 960],
    );
}

#[test]
fn an_integer_above_the_largest_does_not_match() {
    let bits = MAX_LIMBS * 64;
    let mut m = Machine::new();
    for (first, len, matches) in [(1, bits, true), (0, bits + 8, true), (1, bits + 8, false)] {
        let mut bytes = vec![0; len / 8];
        bytes[0] = first;
        m.p.set_x(0, m.p.binary(&bytes));
        m.ok(start::bs_start_match, &[LABEL, x(0), 1, x(0)]);
        let operands = [LABEL, x(0), 1, small(len as i64), 1, 0, x(1)];
        if matches {
            m.ok(get::bs_get_integer2, &operands);
            continue;
        }
        m.jumps(get::bs_get_integer2, &operands);
        m.ok(
            get::bs_get_integer2,
            &[LABEL, x(0), 1, small(8), 1, 0, x(1)],
        );
        assert_eq!(m.p.x(1).as_small(), Some(first.into()), "nothing was taken");
    }
}
