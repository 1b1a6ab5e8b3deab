//! Tests both hashes against values that OTP 29 gave.

use super::*;

/// As much of a term as the hashes tell apart.
enum T {
    Int(&'static str),
    Float(f64),
    Atom(&'static str),
    Nil,
    Bits(&'static [u8], u32, u8),
    Cons(Vec<T>, Box<T>),
    Tuple(Vec<T>),
    Map(Vec<(T, T)>),
    Fun(&'static str, &'static str, u32),
}

use T::{Atom, Cons, Float, Fun, Map, Nil, Tuple};

fn list(elements: Vec<T>) -> T {
    Cons(elements, Box::new(Nil))
}

fn string(text: &str) -> T {
    let digits = ["97", "98", "99", "100", "101", "102", "103", "104"];
    list(
        text.bytes()
            .map(|b| T::Int(digits[usize::from(b - b'a')]))
            .collect(),
    )
}

fn int(text: &str) -> Int {
    Int::parse(text.as_bytes(), 10).expect("digits")
}

/// The element as a byte of a string, if it is one.
fn byte(t: &T) -> Option<u8> {
    match t {
        T::Int(text) => int(text).to_i64().and_then(|v| u8::try_from(v).ok()),
        _ => None,
    }
}

fn feed2(h: &mut Hash2, t: &T) {
    match t {
        T::Int(text) => h.integer(int(text).as_ref()),
        Float(f) => h.float(*f),
        Atom(name) => h.atom(atom_hash(name.as_bytes())),
        Nil => h.nil(),
        T::Bits(bytes, tail_bits, tail) => {
            h.bits(Bits {
                bytes,
                tail_bits: *tail_bits,
                tail: *tail,
            });
        }
        Cons(elements, tail) => {
            for element in elements {
                match byte(element) {
                    Some(byte) => h.string_byte(byte),
                    None => {
                        h.string_end();
                        feed2(h, element);
                    }
                }
            }
            h.string_end();
            feed2(h, tail);
        }
        Tuple(elements) => {
            h.tuple(elements.len() as u32);
            elements.iter().for_each(|e| feed2(h, e));
        }
        Map(pairs) => {
            h.map_start(pairs.len() as u32);
            for (key, value) in pairs {
                feed2(h, key);
                feed2(h, value);
                h.map_pair_end();
            }
            if !pairs.is_empty() {
                h.map_end();
            }
        }
        Fun(module, function, arity) => {
            h.external_fun(
                atom_hash(module.as_bytes()),
                atom_hash(function.as_bytes()),
                *arity,
            );
        }
    }
}

fn feed1(h: &mut Hash1, t: &T) {
    match t {
        T::Int(text) => h.integer(int(text).as_ref()),
        Float(f) => h.float(*f),
        Atom(name) => h.atom(atom_hash(name.as_bytes())),
        Nil => h.nil(),
        T::Bits(bytes, tail_bits, tail) => {
            h.bits(Bits {
                bytes,
                tail_bits: *tail_bits,
                tail: *tail,
            });
        }
        Cons(elements, tail) => {
            for element in elements {
                match byte(element) {
                    Some(byte) => h.string_byte(byte),
                    None => feed1(h, element),
                }
            }
            feed1(h, tail);
            h.list_end();
        }
        Tuple(elements) => {
            elements.iter().for_each(|e| feed1(h, e));
            h.tuple(elements.len() as u32);
        }
        Map(_) => {
            let mut inner = Hash2::new();
            feed2(&mut inner, t);
            h.map(inner.value());
        }
        Fun(module, function, arity) => {
            h.external_fun(
                atom_hash(module.as_bytes()),
                atom_hash(function.as_bytes()),
                *arity,
            );
        }
    }
}

/// Checks rows of a term, `phash2(T, 1 bsl 32)` and `phash(T, 1 bsl 32) - 1`.
fn check(rows: Vec<(T, u32, u32)>) {
    for (i, (t, want2, want1)) in rows.iter().enumerate() {
        let (mut h2, mut h1) = (Hash2::new(), Hash1::new());
        feed2(&mut h2, t);
        feed1(&mut h1, t);
        assert_eq!((h2.value(), h1.value()), (*want2, *want1), "row {i}");
    }
}

#[test]
fn integers() {
    check(vec![
        (T::Int("0"), 3_175_731_469, 0),
        (T::Int("1"), 539_485_162, 2_788_898_427),
        (T::Int("-1"), 1_117_813_597, 1_680_185_269),
        (T::Int("255"), 715_823_293, 2_499_495_045),
        (T::Int("134217727"), 4_273_352_567, 1_192_343_452),
        (T::Int("134217728"), 2_562_491_755, 2_147_483_672),
        (T::Int("-134217728"), 874_979_335, 2_147_489_128),
        (T::Int("-134217729"), 1_418_916_782, 3_827_674_397),
        (T::Int("4294967296"), 2_108_323_275, 2_788_898_427),
        (T::Int("-4294967296"), 2_586_067_094, 1_680_185_269),
        (T::Int("576460752303423488"), 2_442_888_721, 2_147_483_672),
        (T::Int("18446744073709551616"), 2_519_041_713, 2_788_898_427),
        (
            T::Int("-18446744073709551616"),
            2_563_594_619,
            1_680_185_269,
        ),
        (
            T::Int("1606938044258990275541962092341162602522202993782792835313721"),
            2_722_349_351,
            4_056_881_478,
        ),
        (T::Int("-9223372036854775808"), 1_736_826_119, 87_680),
        (T::Int("9223372036854775808"), 710_941_318, 384),
    ]);
}

#[test]
fn floats_atoms_and_nil() {
    check(vec![
        (Float(1.5), 2_023_646_235, 1_073_217_536),
        (Float(0.0), 423_528_920, 0),
        (Float(-0.0), 423_528_920, 0),
        (Float(-1.0e300), 3_171_779_656, 1_983_353_248),
        (Atom("a"), 97, 97),
        (Atom("hello"), 7_258_927, 7_258_927),
        (Atom(""), 0, 0),
        (Atom("åäö"), 62_518, 62_518),
        (Atom("€"), 60_108, 60_108),
        (Atom("a\u{7f}\u{80}¿Àÿ"), 110_611_455, 110_611_455),
        (
            Atom("a_rather_long_atom_name_that_wraps_the_hash"),
            50_894_152,
            50_894_152,
        ),
        (Nil, 3_468_870_702, 1),
    ]);
}

#[test]
fn bit_strings() {
    check(vec![
        (T::Bits(b"", 0, 0), 147_926_629, 0),
        (T::Bits(&[1], 0, 0), 881_997_586, 268_436_142),
        (T::Bits(b"hell", 0, 0), 1_470_573_769, 3_898_146_709),
        (T::Bits(b"hello", 0, 0), 1_658_093_459, 476_327_963),
        (T::Bits(b"hello wo", 0, 0), 3_495_644_853, 1_872_562_718),
        (T::Bits(b"hello wor", 0, 0), 458_441_298, 3_027_346_325),
        (T::Bits(b"hello worl", 0, 0), 1_299_795_062, 1_165_178_922),
        (T::Bits(b"hello world", 0, 0), 2_583_687_111, 897_712_127),
        (T::Bits(b"hello world!", 0, 0), 965_223_795, 625_310_645),
        (
            T::Bits(b"hello world, this is a test", 0, 0),
            1_645_972_714,
            1_753_992_132,
        ),
        (T::Bits(b"", 3, 5 << 5), 3_354_768_668, 3_507_216_108),
        (
            T::Bits(&[1, 2, 3], 4, 7 << 4 | 3),
            3_449_828_899,
            898_623_124,
        ),
    ]);
}

#[test]
fn lists_and_tuples() {
    let nested = list(vec![list(vec![Nil])]);
    let numbers = ["1", "2", "300", "4", "5"].map(T::Int).into();
    check(vec![
        (string("abc"), 519_996_486, 3_654_580_165),
        (string("abcd"), 1_752_753_207, 1_938_728_201),
        (string("abcdefgh"), 914_094_510, 766_997_083),
        (string("abcde"), 2_487_089_008, 721_934_914),
        (
            Cons(vec![Atom("a")], Box::new(Atom("b"))),
            2_356_411_656,
            4_159_696_707,
        ),
        (list(numbers), 328_551_261, 521_434_060),
        (
            Cons(vec![T::Int("97")], Box::new(Atom("a"))),
            3_207_813_212,
            3_891_259_196,
        ),
        (nested, 67_164_138, 50_678_355),
        (
            list(vec![T::Int("300"), string("ab"), Atom("c")]),
            3_493_605_231,
            1_593_089_237,
        ),
        (Tuple(vec![]), 221_703_996, 0),
        (Tuple(vec![Atom("a")]), 2_853_905_094, 268_840_044),
        (Tuple(vec![Nil, Atom("a"), Nil]), 330_476_676, 2_744_471_186),
    ]);
}

#[test]
fn maps_and_funs() {
    let d = T::Int("100");
    let inner = Map(vec![(Atom("c"), list(vec![d]))]);
    let map = Map(vec![
        (Atom("b"), inner),
        (T::Int("3"), Tuple(vec![Atom("x")])),
        (Atom("a"), T::Int("1")),
    ]);
    let in_tuple = Tuple(vec![Map(vec![(Atom("a"), Atom("b"))]), Atom("c")]);
    check(vec![
        (Map(vec![]), 844_985_373, 1_113_425_984),
        (
            Map(vec![(Atom("a"), T::Int("1"))]),
            1_401_795_262,
            1_670_235_873,
        ),
        (map, 1_230_367_406, 1_498_808_017),
        (in_tuple, 3_034_996_071, 2_164_300_742),
        (Fun("lists", "map", 2), 840_287_883, 904_024_395),
        (
            list(vec![Fun("erlang", "self", 0), Atom("x")]),
            4_056_261_748,
            669_263_268,
        ),
    ]);
}
