//! Tests of tables, operands and refusals, one row each.

use crate::chunks::{find_chunk, unpack};
use crate::disasm::Disasm;
use crate::module::{BeamType, DebugCall, FrameSize, LineItem};
use crate::samples::{
    ATOMS, Sample, a, ext, f, file, gzip, i, list, lit, long_atoms, long_term, op, short_atoms,
    term, u, with_code, words, x, y, zlib,
};
use crate::{Arg, BeamErrorKind as Kind, BeamModule, Op};

fn sample() -> BeamModule {
    BeamModule::decode(&Sample::new().file()).expect("the sample")
}

fn refusal(sample: &Sample) -> String {
    let error = BeamModule::decode(&sample.file()).expect_err("a refusal");
    error.to_string()
}

#[test]
fn disassembly_is_as_recorded() {
    let module = sample();
    let text = Disasm::new(&module)
        .with_literals(&|bytes| format!("{bytes:?}"))
        .to_string();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/sample.S");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &text).expect("a writable source folder");
    }
    let expected = std::fs::read_to_string(path).expect("the recorded text");
    assert!(
        text == expected,
        "differs from {path} (BLESS=1 rewrites it):\n{text}"
    );
}

#[test]
fn tables_of_the_sample() {
    let m = sample();
    assert_eq!(m.atoms.iter().map(|(_, t)| t).collect::<Vec<_>>(), ATOMS);
    assert_eq!(
        (m.imports.len(), m.exports.len(), m.locals.len()),
        (2, 1, 2)
    );
    assert_eq!((m.lambdas[0].num_free, m.lambdas[0].old_uniq), (1, 12345));
    assert_eq!(m.literals.get(0), b"\x83k\x00\x02hi");
    assert_eq!(m.big(0), (1i128 << 90).to_be_bytes().split_at(4).1);
    let lines = m.lines.as_ref().expect("lines");
    assert!(lines.executable_line && !lines.force_line_counters);
    assert_eq!(lines.files, ["sample.erl", "inc/x.hrl"]);
    let item = |file, line| LineItem { file, line };
    assert_eq!(
        lines.items,
        [item(0, 0), item(0, 7), item(1, 300), item(1, 70_000)]
    );
    let types = m.types.as_ref().expect("types");
    assert_eq!((types[1].min, types[1].max), (Some(0), Some(255)));
    assert_eq!(
        (types[2].union, types[2].unit),
        (BeamType::ATOM | BeamType::BITSTRING, Some(8))
    );
    let age = (12, Some(Arg::I(-1)));
    assert_eq!(
        (m.records[0].exported, &m.records[0].fields),
        (true, &vec![(11, None), age])
    );
    assert_eq!(
        m.functions
            .iter()
            .map(|f| f.entry_label)
            .collect::<Vec<_>>(),
        [2, 4, 6]
    );
    assert_eq!(m.function_at(4), Some(1));
    assert_eq!(
        (m.function_at(7), m.label(7), m.label(0)),
        (None, Some(10), None)
    );
    assert_eq!(m.code[m.code.len() - 1].op, Op::IntCodeEnd);
}

#[test]
fn forms_of_older_releases() {
    let s = Sample::new().set(b"AtU8", short_atoms(ATOMS));
    let m = BeamModule::decode(&s.file()).expect("short atom lengths");
    assert_eq!(m.atoms.get(8), "Ünïted 'atom'");

    let plain = s.get(b"LitT")[4..].to_vec();
    let packed = [words(&[plain.len() as i32]), zlib(&plain)].concat();
    let m = BeamModule::decode(&s.set(b"LitT", packed).file()).expect("packed literals");
    assert_eq!(m.literals.get(0), b"\x83k\x00\x02hi");

    // Version 3: 12 bits of types, the flags from bit 12 on.
    let bounds = [0i64.to_be_bytes(), 255i64.to_be_bytes()].concat();
    let v3 = [
        words(&[3, 3]),
        vec![0x0f, 0xff, 0x30, 0x20],
        bounds,
        vec![0x40, 2, 7],
    ]
    .concat();
    let m = BeamModule::decode(&Sample::new().set(b"Type", v3).file()).expect("types 3");
    assert_eq!(
        m.types,
        sample().types.map(|mut t| {
            t[2].union = BeamType::BITSTRING;
            t
        })
    );

    let m = BeamModule::decode(&Sample::new().set(b"Type", words(&[2, 9])).file());
    let m = m.expect("types of an unknown version count as none");
    assert!(m.types.is_none());
    assert_eq!(m.args(&m.code[5])[3], Arg::X(0));
}

#[test]
fn compressed_file() {
    let plain = Sample::new().file();
    let packed = gzip(&plain);
    assert_eq!(*unpack(&packed).expect("gzip"), *plain);
    assert_eq!(BeamModule::decode(&packed).expect("gzip").md5, sample().md5);
    for end in 2..packed.len() - 1 {
        let error = BeamModule::decode(&packed[..end]).expect_err("a truncated file");
        assert_eq!(error.kind, Kind::BadCompression, "{end} bytes");
    }
}

#[test]
fn md5_leaves_out_old_uniq() {
    let with = |uniq| Sample::new().set(b"FunT", words(&[1, 6, 2, 6, 0, 1, uniq]));
    let md5 = |s: &Sample| BeamModule::decode(&s.file()).expect("a module").md5;
    assert_eq!(md5(&with(1)), md5(&with(2)));
    assert_ne!(
        md5(&with(1)),
        md5(&with(1).set(b"StrT", b"abc\x01\xfe".to_vec()))
    );
    assert_eq!(
        md5(&with(1)),
        md5(&with(1).set(b"Attr", b"\x83a\x01".to_vec()))
    );
}

#[test]
fn any_chunk_can_be_found() {
    let file = file(&[(b"Abcd", vec![1, 2, 3]), (b"Efgh", vec![])]);
    assert_eq!(find_chunk(&file, *b"Abcd"), Ok(Some(&[1, 2, 3][..])));
    assert_eq!(find_chunk(&file, *b"Efgh"), Ok(Some(&[][..])));
    assert_eq!(find_chunk(&file, *b"Ijkl"), Ok(None));
}

#[test]
fn operands() {
    let check = |bytes: Vec<u8>, expect: Arg| {
        let file = with_code(op(64, &[bytes.clone(), x(0)])).file();
        let module = BeamModule::decode(&file).unwrap_or_else(|e| panic!("{bytes:02x?}: {e}"));
        assert_eq!(module.args(&module.code[3])[0], expect, "{bytes:02x?}");
    };
    check(u(15), Arg::U(15));
    check(u(16), Arg::U(16));
    check(u(2047), Arg::U(2047));
    check(u(2048), Arg::U(2048));
    check(u(i64::MAX.into()), Arg::U(i64::MAX as u64));
    check(u(1 << 63), Arg::Overflow);
    check(long_term(0, &[0xff; 8]), Arg::Overflow);
    check(i(0), Arg::I(0));
    check(i(-1), Arg::I(-1));
    check(i(-32769), Arg::I(-32769));
    check(i(i64::MIN.into()), Arg::I(i64::MIN));
    check(i(i64::MAX.into()), Arg::I(i64::MAX));
    check(i(1 << 63), Arg::Big(0));
    check(term(1, i128::MIN), Arg::Big(0));
    check(a(0), Arg::Nil);
    check(a(14), Arg::Atom(14));
    check(x(1023), Arg::X(1023));
    check(y(3), Arg::Y(3));
    check(f(0), Arg::Label(0));
    check(f(2), Arg::Label(2));
    check(lit(0), Arg::Literal(0));
    check(ext(2, &[u(1023)]), Arg::FReg(1023));
    check(ext(5, &[x(4), u(2)]), Arg::TypedX(4, 2));
    check(ext(5, &[y(4), u(0)]), Arg::TypedY(4, 0));
    let need = [u(3), u(0), u(9), u(1), u(2), u(2), u(1)];
    check(
        ext(3, &need),
        Arg::Alloc {
            words: 9,
            floats: 2,
            funs: 1,
        },
    );
}

#[test]
fn refused_code() {
    let check = |code: Vec<u8>, expect: &str| {
        assert_eq!(
            refusal(&with_code(code)),
            format!("chunk Code, offset {expect}")
        );
    };
    check(vec![192], "28: unknown opcode 192");
    check(vec![0], "28: unknown opcode 0");
    check(op(64, &[a(15), x(0)]), "29: index 15 into atoms of 15");
    check(op(64, &[a(-1), x(0)]), "29: index 65535 into atoms of 15");
    check(
        op(64, &[x(1024), x(0)]),
        "29: register number 1024 is too high",
    );
    check(op(64, &[f(8), x(0)]), "29: impossible label 8");
    check(op(61, &[f(7)]), "28: label 7 is used but not defined");
    check(op(1, &[u(2)]), "28: label 2 is defined twice");
    check(op(1, &[u(0)]), "28: impossible label 0");
    check(op(1, &[u(8)]), "28: impossible label 8");
    check(op(64, &[lit(1), x(0)]), "29: index 1 into literals of 1");
    check(
        op(64, &[ext(5, &[x(0), u(3)]), x(0)]),
        "29: index 3 into types of 3",
    );
    check(op(64, &[ext(0, &[]), x(0)]), "29: unexpected operand tag 7");
    check(op(64, &[term(6, 0), x(0)]), "29: unexpected operand tag 6");
    check(
        op(64, &[list(&[]), x(0)]),
        "29: operand 0 of move is of the wrong kind",
    );
    check(
        op(64, &[x(0), list(&[])]),
        "28: operand 1 of move is of the wrong kind",
    );
    check(
        op(59, &[x(0), f(2), x(0)]),
        "28: operand 2 of select_val is of the wrong kind",
    );
    let odd = list(&[i(1), f(2), i(3)]);
    check(
        op(59, &[x(0), f(2), odd]),
        "28: operand 2 of select_val is of the wrong kind",
    );
    check(op(7, &[u(1), u(2)]), "28: index 2 into imports of 2");
    check(
        op(7, &[u(1), x(2)]),
        "28: operand 1 of call_ext is of the wrong kind",
    );
    check(
        op(171, &[u(0), x(0), list(&[])]),
        "28: index 0 into lambdas of 0",
    );
    check(op(153, &[u(4)]), "28: index 4 into lines of 4");
    check(
        op(132, &[f(0), x(0), u(17), u(3)]),
        "28: index 3 into strings of 5",
    );
    let outside = list(&[a(7), u(1), u(8), a(0), u(3), i(3)]);
    check(
        op(177, &[f(0), u(0), u(2), u(8), x(0), outside.clone()]),
        "28: index 3 into strings of 5",
    );
    check(
        op(2, &[a(1), a(3), u(2)]),
        "28: code that belongs to no well-formed function",
    );
}

/// The first one of that name is not the only one.
#[test]
fn an_atom_that_stands_there_twice_is_one() {
    let atoms = [ATOMS, &["string"]].concat();
    let outside = list(&[a(15), u(1), u(8), a(0), u(3), i(3)]);
    let code = op(177, &[f(0), u(0), u(2), u(8), x(0), outside]);
    let sample = with_code(code).set(b"AtU8", long_atoms(&atoms));
    let expect = "chunk Code, offset 28: index 3 into strings of 5";
    assert_eq!(refusal(&sample), expect);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn refused_files() {
    let check = |id: &'static [u8; 4], data: Vec<u8>, expect: &str| {
        assert_eq!(refusal(&Sample::new().set(id, data)), expect);
    };
    check(
        b"Code",
        vec![],
        "chunk Code, offset 0: the chunk is missing",
    );
    check(
        b"AtU8",
        vec![],
        "chunk AtU8, offset 0: the chunk is missing",
    );
    check(
        b"AtU8",
        words(&[i32::MIN]),
        "chunk AtU8, offset 0: impossible count 2147483648",
    );
    check(
        b"AtU8",
        words(&[0]),
        "chunk AtU8, offset 0: impossible count 0",
    );
    let atom = "é".repeat(256);
    let text = "an atom is not UTF-8 or too long";
    check(
        b"AtU8",
        long_atoms(&[&atom]),
        &format!("chunk AtU8, offset 4: {text}"),
    );
    check(
        b"AtU8",
        vec![0, 0, 0, 1, 1, 0xff],
        &format!("chunk AtU8, offset 4: {text}"),
    );
    check(
        b"ImpT",
        words(&[1 << 30]),
        "chunk ImpT, offset 0: impossible count 1073741824",
    );
    check(
        b"ImpT",
        words(&[-1]),
        "chunk ImpT, offset 0: impossible count -1",
    );
    check(
        b"ImpT",
        words(&[1, 4, 0, 1]),
        "chunk ImpT, offset 8: index 0 into atoms of 15",
    );
    check(
        b"ImpT",
        words(&[1, 4, 5, 256]),
        "chunk ImpT, offset 12: impossible arity 256",
    );
    check(
        b"ExpT",
        words(&[1, 2, 1, 8]),
        "chunk ExpT, offset 12: impossible label 8",
    );
    let text = "chunk ExpT, offset 12: label 7 is not the entry of a function of this arity";
    check(b"ExpT", words(&[1, 2, 1, 7]), text);
    check(
        b"FunT",
        words(&[1, 6, 2, 6, 0, 3, 0]),
        "chunk FunT, offset 20: impossible arity 3",
    );
    let long = words(&[1, 6, 2, 6, 0, 1, 0, 0]);
    check(b"FunT", long, "chunk FunT, offset 28: ends too early");
    let text = "chunk LitT, offset 8: a literal is not in the external term format";
    check(b"LitT", [words(&[0, 1, 2]), vec![130, 106]].concat(), text);
    let bomb = [words(&[16]), zlib(&vec![0; 1 << 20])].concat();
    check(
        b"LitT",
        bomb,
        "chunk LitT, offset 4: unpacks to 17 bytes, more than is allowed",
    );
    let cut = [words(&[1 << 20]), zlib(&vec![7; 1 << 20])[..200].to_vec()].concat();
    check(
        b"LitT",
        cut,
        "chunk LitT, offset 4: compressed data is damaged",
    );
    let lines = [words(&[0, 0, 0, 1, 0]), a(1), i(1)].concat();
    check(
        b"Line",
        lines,
        "chunk Line, offset 20: index 1 into files of 1",
    );
    let types = [words(&[4, 1]), vec![0, 1]].concat();
    check(b"Type", types, "chunk Type, offset 4: an impossible type");
    check(
        b"Recs",
        words(&[1, 0, 0]),
        "chunk Recs, offset 0: unknown format version 1",
    );
    check(
        b"Recs",
        words(&[0, 0, 1]),
        "chunk Recs, offset 8: impossible count 1",
    );
    let old = Sample::new().set(b"AtU8", vec![]).set(b"Atom", vec![1]);
    let text = "please re-compile this module with an Erlang/OTP 29 compiler or update your Erlang/OTP version";
    assert_eq!(refusal(&old), text);
}

/// A `DbgB` chunk that says it has `items` items and `terms` terms.
fn debug_chunk(items: i32, terms: i32, entries: &[Vec<u8>]) -> Vec<u8> {
    [words(&[1, items, terms]), entries.concat()].concat()
}

fn debug_entry(kind: i128, second: Vec<u8>) -> Vec<u8> {
    op(4, &[u(kind), second])
}

#[test]
fn debug_information_is_read() {
    let decode = |data| BeamModule::decode(&Sample::new().set(b"DbgB", data).file());
    let literals = [b"\x83k\x00\x02hi".as_slice(), b"\x83m\0\0\0\x01X"];
    let row = |bytes: &[u8]| [words(&[bytes.len() as i32]), bytes.to_vec()].concat();
    let table = [words(&[0, 2]), row(literals[0]), row(literals[1])].concat();
    let entries = [
        debug_entry(0, u(3)),
        debug_entry(1, list(&[lit(1), y(2), i(7), a(2)])),
        debug_entry(2, list(&[u(1), a(4), a(2), u(257), a(3), lit(1)])),
        debug_entry(3, list(&[])),
        debug_entry(0, a(0)),
    ];
    let sample = Sample::new()
        .set(b"LitT", table)
        .set(b"DbgB", debug_chunk(2, 10, &entries));
    let module = BeamModule::decode(&sample.file()).expect("it is whole");
    let [first, second] = module.debug.as_slice() else {
        panic!("two items");
    };
    assert_eq!(first.frame, FrameSize::Words(3));
    let name = Arg::Literal(1);
    assert_eq!(first.vars, [(name, Arg::Y(2)), (Arg::I(7), Arg::Atom(2))]);
    let calls = [
        DebugCall::Remote(Arg::Atom(4), Arg::Atom(2), 1),
        DebugCall::Local(Arg::Atom(3), 1),
        DebugCall::Variable(name),
    ];
    assert_eq!(first.calls, calls);
    assert_eq!((second.frame, second.vars.len()), (FrameSize::None, 0));
    let other = decode(words(&[2, 9, 9])).expect("of another version");
    assert_eq!(other.debug, []);
}

#[test]
fn refused_debug_information() {
    let check = |items, terms, entries: &[Vec<u8>]| {
        let data = debug_chunk(items, terms, entries);
        let text = refusal(&Sample::new().set(b"DbgB", data));
        assert!(text.starts_with("chunk DbgB, offset"), "{text}");
    };
    let frame = || debug_entry(0, u(3));
    check(1, 0, &[]);
    check(9, 0, &[frame()]);
    check(-1, 0, &[frame()]);
    check(1, 0, &[op(5, &[u(0), u(3), u(0)])]);
    check(1, 0, &[debug_entry(0, a(2))]);
    check(0, 1, &[frame()]);
    check(1, 2, &[debug_entry(1, list(&[i(1), x(0)])), frame()]);
    check(1, 1, &[frame(), debug_entry(1, list(&[i(1)]))]);
    check(1, 2, &[frame(), debug_entry(1, list(&[lit(0), x(0)]))]);
    check(1, 2, &[frame(), debug_entry(1, list(&[i(1), f(1)]))]);
    check(1, 1, &[frame(), debug_entry(1, list(&[i(1), x(0)]))]);
    check(1, 1, &[frame(), debug_entry(2, list(&[u(1)]))]);
    check(1, 2, &[frame(), debug_entry(2, list(&[u(256), u(1)]))]);
    check(1, 2, &[frame(), debug_entry(2, list(&[u(600), a(1)]))]);
    check(1, 1, &[frame(), debug_entry(2, list(&[i(1)]))]);
    let late = [
        frame(),
        debug_entry(2, list(&[])),
        debug_entry(1, list(&[i(1), x(0)])),
    ];
    check(1, 2, &late);
}

#[test]
fn files_of_other_releases_are_refused_in_the_words_of_otp() {
    let check = |highest: i32, expect: Option<&str>| {
        let code = [words(&[16, 0, highest, 1, 0]), op(3, &[])].concat();
        let s = Sample::new().set(b"Code", code);
        let s = s
            .set(b"ExpT", words(&[0]))
            .set(b"FunT", vec![])
            .set(b"LocT", vec![]);
        match expect {
            Some(expect) => assert_eq!(refusal(&s), expect),
            None => {
                drop(BeamModule::decode(&s.file()).expect("compiled by a release that is known"))
            }
        }
    };
    check(
        168,
        Some(
            "This BEAM file was compiled for an old version of the runtime system.\n  \
             To fix this, please re-compile this module with Erlang/OTP 25 or later.",
        ),
    );
    check(169, None);
    check(191, None);
    check(
        192,
        Some(
            "This BEAM file was compiled for a later version of the runtime system than the current (Erlang/OTP 29).\n  \
             To fix this, please re-compile this module with an Erlang/OTP 29 compiler or update your Erlang/OTP version.\n  \
             (Use of opcode 192; this emulator supports only up to 191.)",
        ),
    );
}

#[test]
fn refused_code_headers() {
    let check = |header: [i32; 5], expect: &str| {
        let code = [words(&header), op(3, &[])].concat();
        let s = Sample::new().set(b"Code", code);
        let s = s
            .set(b"ExpT", words(&[0]))
            .set(b"FunT", vec![])
            .set(b"LocT", vec![]);
        assert_eq!(refusal(&s), format!("chunk Code, offset {expect}"));
    };
    check([16, 1, 191, 1, 0], "4: unknown format version 1");
    check([16, 0, 191, i32::MAX, 0], "12: impossible count 2147483647");
    check([16, 0, 191, -1, 0], "12: impossible count -1");
    check([16, 0, 191, 1, 7], "16: 7 functions announced, 0 found");
    check([99, 0, 191, 1, 0], "0: impossible count 99");
    check([15, 0, 191, 1, 0], "0: impossible count 15");
    check([17, 0, 191, 1, 0], "21: the code has no end mark");
}

#[test]
fn refused_containers() {
    let check = |file: &[u8], expect: &str| {
        let error = BeamModule::decode(file).expect_err("a refusal");
        assert_eq!(error.to_string(), format!("chunk FOR1, offset {expect}"));
    };
    check(b"", "0: not a BEAM file");
    check(b"FOR2\0\0\0\x04BEAM", "0: not a BEAM file");
    check(b"FOR1\0\0\0\x04BEAN", "8: not a BEAM file");
    check(b"FOR1\0\0\0\x05BEAM", "4: impossible count 5");
    check(b"FOR1\0\0\0\x0bBEAMCode\0\0\0", "16: ends too early");
    check(b"FOR1\0\0\0\x0dBEAMCode\0\0\0\x01a", "21: ends too early");
}

/// A nest of sizes of sizes must not use up the stack.
#[test]
fn nested_sizes_are_refused() {
    let code = op(64, &[vec![0xf8; 1 << 20]]);
    assert_eq!(
        refusal(&with_code(code)),
        "chunk Code, offset 30: ends too early"
    );
}
