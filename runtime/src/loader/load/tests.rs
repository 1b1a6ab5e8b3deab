//! Tests of what the loader refuses in files that the reader accepts: operands that no instruction can have, and bytes
//! that are no terms.

use super::prepare;
use crate::beam::samples::{
    ATOMS, Sample, a, f, i, list, long_term, op, short_atoms, u, with_code, words, x,
};

fn refusal(sample: &Sample) -> String {
    match prepare(&sample.file()) {
        Ok(_) => panic!("it was loaded"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn refused_operands() {
    let check = |code: Vec<u8>, expect: &str| {
        let expect = format!("chunk Code, offset 28: {expect} was expected as operand");
        assert_eq!(refusal(&with_code(code)), expect);
    };
    // As many registers as no machine has: the fun stands in the one after the arguments.
    check(op(75, &[u(0xffff)]), "call_fun: an arity");
    check(op(75, &[u(256)]), "call_fun: an arity");
    check(op(178, &[a(1), u(256), x(0)]), "call_fun2: an arity");
    check(op(112, &[u(256)]), "apply: an arity");
    check(op(113, &[u(256), u(0)]), "apply_last: an arity");
    // Of more than 65535 words, as in ERTS.
    let large = long_term(1, &[[1].as_slice(), &[0; 8 * 65_535]].concat());
    check(op(64, &[large, x(0)]), "move: a source");
    check(op(64, &[x(0), a(1)]), "move: a destination");
    check(op(12, &[u(0x1_0000), u(0)]), "allocate: a smaller number");
}

/// More live registers than there are, or words than sums of such numbers can tell; BIFs that guards cannot call; funs
/// of another environment. Operands behind those that are looked at are left out where they are not reached.
#[test]
fn refused_counts() {
    let check = |code: Vec<u8>, expect: &str| {
        let expect = format!("chunk Code, offset 28: {expect}");
        assert_eq!(refusal(&with_code(code)), expect);
    };
    let live = "fewer live registers was expected as operand";
    check(op(12, &[u(0), u(1024)]), &format!("allocate: {live}"));
    check(op(16, &[u(0), u(1024)]), &format!("test_heap: {live}"));
    check(
        op(125, &[f(0), u(1024), u(0), x(0), x(1), x(0)]),
        &format!("gc_bif2: {live}"),
    );
    let need = "a smaller need of heap was expected as operand";
    check(op(16, &[u(1 << 32), u(0)]), &format!("test_heap: {need}"));
    let segment =
        |kind: i128, value: i128, size: Vec<u8>| [a(kind), u(1), u(8), a(0), u(value), size];
    let create = |need: i128, live: i128, segment: &[Vec<u8>]| {
        op(177, &[f(0), u(need), u(live), u(8), x(0), list(segment)])
    };
    let text = segment(7, 0, i(3));
    check(create(1 << 32, 0, &text), &format!("bs_create_bin: {need}"));
    check(create(0, 1024, &text), &format!("bs_create_bin: {live}"));
    check(
        create(0, 0, &segment(7, 0, u(3))),
        "bs_create_bin: a segment of an unknown type",
    );
    check(
        op(117, &[f(0), x(0), u(1024), i(8), u(1), u(0), x(0)]),
        &format!("bs_get_integer2: {live}"),
    );
    let integer = [a(13), u(1024), a(0), u(8), u(1), x(0)];
    check(
        op(182, &[f(0), x(0), list(&integer)]),
        "bs_match: more live registers than there are",
    );
}

#[test]
fn refused_bifs_of_guards() {
    let check = |imports: &[i32], code: Vec<u8>| {
        let sample = with_code(code).set(b"ImpT", words(imports));
        let error = refusal(&sample);
        let expect = "a BIF for guards, of as many arguments, was expected as operand";
        assert!(error.ends_with(expect), "{error}");
    };
    // `+/2` with one argument and with three; `erlang:f/1`, which is no BIF, with two.
    check(&[1, 4, 5, 2], op(124, &[f(0), u(0), u(0), x(0), x(0)]));
    check(
        &[1, 4, 5, 2],
        op(152, &[f(0), u(0), u(0), x(0), x(0), x(0), x(0)]),
    );
    check(
        &[1, 4, 2, 1],
        op(125, &[f(0), u(0), u(0), x(0), x(0), x(0)]),
    );
    // `user:copy/1` is none here; `binary:copy/1` is one, and not for guards.
    let mut atoms = ATOMS.to_vec();
    atoms[9] = "binary";
    let sample = with_code(op(10, &[f(0), u(0), x(0), x(0)]))
        .set(b"AtU8", short_atoms(&atoms))
        .set(b"ImpT", words(&[1, 10, 14, 1]));
    assert!(refusal(&sample).contains("a BIF for guards"));
}

#[test]
fn refused_funs() {
    let fun = |free: &[Vec<u8>]| op(171, &[u(0), x(0), list(free)]);
    let check = |free: &[Vec<u8>]| {
        let sample = with_code(fun(free)).set(b"FunT", words(&[1, 2, 1, 2, 0, 1, 12345]));
        match prepare(&sample.file()) {
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        }
    };
    let expect = "chunk Code, offset 28: make_fun3: as many terms as the fun has free was expected as operand";
    assert_eq!(check(&[x(0)]), None);
    assert_eq!(check(&[]).as_deref(), Some(expect));
    assert_eq!(check(&[x(0), x(1)]).as_deref(), Some(expect));
}

#[test]
fn refused_records() {
    let check = |fields: &[Vec<u8>]| {
        let record = [vec![5], a(10), a(9), list(fields)].concat();
        let count = fields.len() as i32 / 2;
        let chunk = [words(&[0, 1, count]), record].concat();
        let expect = "chunk Recs: record user: impossible fields";
        assert_eq!(refusal(&Sample::new().set(b"Recs", chunk)), expect);
    };
    check(&[a(11), u(0), a(11), i(1)]);
    let large = long_term(1, &[[1].as_slice(), &[0; 8 * 65_535]].concat());
    check(&[a(11), large]);
}

#[test]
fn refused_terms() {
    let check = |id: &'static [u8; 4], data: Vec<u8>, expect: &str| {
        let error = refusal(&Sample::new().set(id, data));
        assert!(error.starts_with(expect), "{error}");
    };
    let literal = |bytes: &[u8]| [words(&[0, 1, bytes.len() as i32]), bytes.to_vec()].concat();
    check(
        b"LitT",
        literal(b"\x83h\x02a\x01"),
        "chunk LitT: literal 0: ",
    );
    check(
        b"LitT",
        literal(b"\x83P\xff\xff\xff\xff"),
        "chunk LitT: literal 0: ",
    );
    check(b"Attr", b"\x83l\xff\xff\xff\xff".to_vec(), "chunk Attr: ");
    check(b"CInf", b"no term".to_vec(), "chunk CInf: ");
}
