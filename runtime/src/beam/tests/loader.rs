//! What the loader refuses of files that read well: operands that no instruction can have, terms that are none.

use super::encode::{Sample, a, i, list, long_term, op, u, words, x};
use super::units::with_code;
use crate::loader::load::prepare;

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
