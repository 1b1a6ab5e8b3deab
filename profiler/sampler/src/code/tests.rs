use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::memory::Mapping;

/// Memory of a test: rows of bytes by address. What is read is counted.
#[derive(Clone, Default)]
pub(crate) struct Made {
    pub(crate) rows: BTreeMap<u64, Vec<u8>>,
    reads: std::cell::Cell<usize>,
    bytes: std::cell::Cell<usize>,
}

impl Memory for Made {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + 1);
        self.bytes.set(self.bytes.get() + buffer.len());
        let Some((start, row)) = self.rows.range(..=address).next_back() else {
            return false;
        };
        let from = usize::try_from(address - start).expect("it is near");
        let Some(end) = from.checked_add(buffer.len()) else {
            return false;
        };
        let Some(bytes) = row.get(from..end) else {
            return false;
        };
        buffer.copy_from_slice(bytes);
        true
    }
}

pub(crate) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Puts a text where it begins within a head.
fn text(out: &mut Vec<u8>, at: usize, text: &str) {
    out.truncate(at);
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// What BeamAsm writes of a module whose functions have 16 bytes each, with a line each.
fn module(name: &str, base: u64, functions: &[&str]) -> Vec<u8> {
    let count = functions.len() as u32;
    let mut out = words(&[1, base]);
    out.extend(count.to_le_bytes());
    out.extend((16 * count).to_le_bytes());
    out.extend((name.len() as u16 + 1).to_le_bytes());
    text(&mut out, 26, name);
    out.resize(32 + name.len() + 1, 0xaa);
    for (at, function) in (0_u32..).zip(functions) {
        let begin = out.len();
        for number in [16 * at, 16 * at + 16, 1] {
            out.extend(number.to_le_bytes());
        }
        out.extend((function.len() as u16 + 1).to_le_bytes());
        text(&mut out, begin + 14, function);
        out.resize(begin + 16 + function.len() + 1, 0xaa);
        let begin = out.len();
        out.extend((16 * at + 4).to_le_bytes());
        out.extend((100 + at).to_le_bytes());
        out.extend(6_u16.to_le_bytes());
        text(&mut out, begin + 10, "a.erl");
        out.resize(begin + 12 + 6, 0xaa);
    }
    out
}

pub(crate) const LIST: u64 = 0x10_0010;
pub(crate) const CODE: u64 = 0x7000_0000;

/// An emulator with two modules and its own entry.
pub(crate) fn made() -> Made {
    let infos = [
        module("lists", CODE, &["lists:map/2", "lists:'-f/1-fun-0-'/1"]),
        module("global", CODE + 0x1000, &["garbage_collect"]),
        words(&[0, 0, CODE + 0x1004, 0]),
    ];
    let mut memory = Made::default();
    let mut data = words(&[7, 7, 1, 0]);
    data.extend(words(&[0x20_0000, 0, 9]));
    memory.rows.insert(0x10_0000, data);
    let count = infos.len() as u64;
    for (at, info) in (0..).zip(infos) {
        let entry = 0x20_0000 + at * 0x100;
        let next = if at + 1 < count { entry + 0x100 } else { 0 };
        let before = if at == 0 { 0 } else { entry - 0x100 };
        let symbols = 0x30_0000 + at * 0x1000;
        let bytes = info.len() as u64;
        memory
            .rows
            .insert(entry, words(&[next, before, symbols, bytes]));
        memory.rows.insert(symbols, info);
    }
    memory
}

fn data(memory: &Made) -> Vec<Mapping> {
    let start = 0x10_0000;
    vec![Mapping {
        start,
        end: start + memory.rows[&start].len() as u64,
        is_writable: true,
        is_executable: false,
        offset: 0,
        path: String::new(),
    }]
}

#[test]
fn a_list_is_found_by_its_shape_and_read() {
    let memory = made();
    let list = find_list(&memory, &data(&memory)).expect("it is there");
    assert_eq!(list, ListAt(LIST));
    let code = Code::read(&memory, list).expect("it is whole");
    assert_eq!(code.modules(), 2);
    assert_eq!(code.normal_exit(), Some(CODE + 0x1004));
    for (address, name, arity, line) in [
        (CODE, "map", Some(2), 0),
        (CODE + 4, "map", Some(2), 100),
        (CODE + 15, "map", Some(2), 100),
        (CODE + 16, "-f/1-fun-0-", Some(1), 0),
        (CODE + 31, "-f/1-fun-0-", Some(1), 101),
        (CODE + 0x1000, "garbage_collect", None, 0),
    ] {
        let of = code.at(address).expect("it is in code");
        let found = (&*of.name, of.arity, of.line(address));
        assert_eq!(found, (name, arity, line));
    }
    for address in [0, CODE - 1, CODE + 32, CODE + 0x1010, u64::MAX] {
        assert_eq!(code.at(address), None, "{address:x}");
    }
}

#[test]
fn what_has_changed_is_read_again() {
    let mut memory = made();
    let list = ListAt(LIST);
    let mut code = Code::read(&memory, list).expect("it is whole");
    memory.bytes.set(0);
    code.refresh(&memory, list).expect("it is whole");
    assert!(memory.bytes.get() < 250, "{:?}", memory.bytes);
    // The module is loaded again at another address of this memory.
    let again = module(
        "lists",
        CODE + 64,
        &["lists:map/2", "lists:'-f/1-fun-0-'/1"],
    );
    memory.rows.insert(0x30_0000, again);
    code.refresh(&memory, list).expect("it is whole");
    assert_eq!(code.at(CODE), None);
    assert!(code.at(CODE + 64).is_some());
    // A damaged list leaves what is known.
    memory.rows.insert(0x20_0000, words(&[0x20_0000, 0, 0, 0]));
    assert_eq!(code.refresh(&memory, list), Err(Damage::Entry));
    assert!(code.at(CODE + 64).is_some());
}

#[test]
fn a_list_without_an_end_is_refused() {
    let mut memory = made();
    let bytes = memory.rows[&0x30_0000].len() as u64;
    memory
        .rows
        .insert(0x20_0000, words(&[0x20_0000, 0, 0x30_0000, bytes]));
    assert_eq!(
        Code::read(&memory, ListAt(LIST)).err(),
        Some(Damage::Endless)
    );
}

#[test]
fn names_are_of_functions_or_of_fragments() {
    for (module, name, expect) in [
        ("lists", "lists:map/2", ("map", Some(2))),
        ("a:b", "a:b:c/d/255", ("c/d", Some(255))),
        ("lists", "lists:map/2-CodeInfoPrologue", ("map", Some(2))),
        ("lists", "lists::codeHeader", ("lists::codeHeader", None)),
        ("lists", "lists:map/256", ("lists:map/256", None)),
        ("lists", "other:map/2", ("other:map/2", None)),
        ("global", "call_bif_shared", ("call_bif_shared", None)),
        ("", "", ("", None)),
    ] {
        assert_eq!(parts(module, name), expect);
    }
}

#[test]
fn atoms_are_read_without_their_quotes() {
    for (atom, expect) in [
        ("lists", "lists"),
        ("'Elixir.Enum'", "Elixir.Enum"),
        (r"'it\'s \\'", r"it's \"),
        ("'", "'"),
        ("''", ""),
        ("", ""),
    ] {
        assert_eq!(unquoted(atom), expect);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_damaged_list_is_read_within_bounds(
        damage in proptest::collection::vec((0_usize..6, 0_usize..512, any::<u8>()), 1..12)
    ) {
        let mut memory = made();
        let places = [0x20_0000, 0x20_0100, 0x20_0200, 0x30_0000, 0x30_1000, 0x30_2000];
        for (row, at, byte) in damage {
            let row = memory.rows.get_mut(&places[row]).expect("a row");
            let at = at % row.len();
            row[at] = byte;
        }
        let code = Code::read(&memory, ListAt(LIST));
        // Endless lists are cut at their limit, and nothing else is read often.
        prop_assert!(memory.reads.get() <= TRIES * (ENTRIES_MAX + 16));
        if let Ok(code) = code {
            for function in code.functions() {
                prop_assert!(function.start <= function.end);
            }
        }
        let found = find_list(&memory, &data(&memory));
        prop_assert!(found.is_none_or(|found| found == ListAt(LIST)));
    }
}
