//! Tests printing against OTP 29's `erlang:display/1`.

use super::{fun_text, identifier_text};
use crate::external::{DecodeOptions, decode};
use crate::heap::Heap;
use crate::term::{Atom, Pid, Port, Term, am};
use crate::value::map;

/// A line has a term as external format in hex, and in hex what `erlang:display/1` wrote of it.
const TABLE: &str = include_str!("../../../tests/golden/display.txt");

fn from_hex(text: &str) -> Vec<u8> {
    let digits = (0..text.len()).step_by(2);
    digits
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hex"))
        .collect()
}

#[test]
fn terms_print_as_in_otp() {
    let mut wrong = Vec::new();
    for line in TABLE.lines() {
        let (term, text) = line.split_once(' ').expect("two columns");
        let heap = Heap::new(4096);
        let decoded = decode(&heap, &from_hex(term), DecodeOptions::default());
        let term = decoded.unwrap_or_else(|e| panic!("{e}: {line}")).0;
        let (got, want) = (term.display().to_bytes(), from_hex(text));
        if got != want {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            wrong.push(format!("{}\n  instead of {}", text(&got), text(&want)));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(TABLE.lines().count() > 100, "the table is there");
}

#[test]
fn identifiers_and_funs() {
    let heap = Heap::new(233);
    let pid = Pid(5 << 28 | 81).term();
    assert_eq!(identifier_text(pid).as_deref(), Some("<0.81.5>"));
    assert_eq!(
        identifier_text(Port(7).term()).as_deref(),
        Some("#Port<0.7>")
    );
    let reference = heap.reference([1, 2, 3]);
    assert_eq!(identifier_text(reference).as_deref(), Some("#Ref<0.3.2.1>"));
    assert_eq!(identifier_text(am::ok.term()), None);
    let fun = heap.external_fun(crate::code::entry::export(Atom::new("a-b"), am::ok, 2));
    assert_eq!(fun_text(fun.as_fun().expect("a fun")), "fun 'a-b':ok/2");
}

#[test]
fn long_terms_are_cut() {
    let heap = Heap::new(233);
    let list = heap.list(&[
        Term::small(1),
        Term::small(2),
        am::ok.term(),
        Term::small(4),
    ]);
    assert_eq!(list.display_cut(3).to_string(), "[1,2,... ");
    assert_eq!(heap.string("hello").display_cut(3).to_string(), "\"he... ");
    assert_eq!(
        heap.binary(b"hello").display_cut(3).to_string(),
        "<<\"hel... "
    );
    let map = map::from_pairs(&heap, &[(am::ok.term(), list)]);
    assert_eq!(map.display().to_string(), "#{ok=>[1,2,ok,4]}");
}
