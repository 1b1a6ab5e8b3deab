//! Tests of BIFs against OTP 29. `tests/golden/bifs.erl` calls them there and writes the tables.
//!
//! A line has module, function, arguments and outcome. The last two are external terms in hex. The outcome is
//! `{ok, Result}` or `{Class, Reason}`.

use super::{Control, Leave, Raise, find};
use crate::external::{DecodeOptions, EncodeOptions, decode, encode};
use crate::process::Process;
use crate::term::{Atom, Term, am};

fn from_hex(text: &str) -> Vec<u8> {
    let digits = (0..text.len()).step_by(2);
    digits
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hex"))
        .collect()
}

fn call<'p>(p: &'p Process, module: &str, function: &str, args: &[Term<'p>]) -> Term<'p> {
    let (module, function) = (Atom::new(module), Atom::new(function));
    let index = find(module, function, args.len() as u8)
        .unwrap_or_else(|| panic!("{module}:{function}/{} is no BIF", args.len()));
    let Some(result) = super::all()[index].call.plain(p, args) else {
        panic!("{module}:{function} wants the process to itself");
    };
    let (tag, value) = match result {
        Ok(value) => (am::ok, value),
        Err(Leave::Raise(Raise::Error(reason) | Raise::ErrorCause(reason, _))) => {
            (am::error, reason)
        }
        Err(Leave::Raise(Raise::Tagged(tag, value))) => (am::error, p.tuple(&[tag.term(), value])),
        Err(Leave::Control(Control::Trap(export, args))) => {
            return call(p, export.module.name(), export.function.name(), &args);
        }
        Err(_) => panic!("{module}:{function} waits"),
    };
    p.tuple(&[tag.term(), value])
}

fn check(table: &str) {
    let mut failures = Vec::new();
    for line in table.lines() {
        let p = Process::new(233);
        let columns: Vec<_> = line.split(' ').collect();
        let decoded = |hex: &str| {
            let bytes = from_hex(hex);
            decode(&p, &bytes, DecodeOptions::default())
                .unwrap_or_else(|e| panic!("{e}: {line}"))
                .0
        };
        let args: Vec<_> = decoded(columns[2])
            .list_iter()
            .map(|a| a.unwrap_or_else(|_| panic!("a list")))
            .collect();
        let outcome = call(&p, columns[0], columns[1], &args);
        let got = encode(outcome, EncodeOptions::default()).expect("small");
        if got != from_hex(columns[3]) {
            failures.push(format!("{line}\n    got {}", hex(&got)));
        }
    }
    assert!(
        failures.is_empty(),
        "{} lines fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(table.lines().count() > 10, "the table is there");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

macro_rules! golden {
    ($($family:ident)*) => {
        $(#[test]
        fn $family() {
            check(include_str!(concat!("../../tests/golden/bifs/", stringify!($family), ".txt")));
        })*
    };
}
golden! { arith binary binary_search calendar compare convert decode_packet external lists maps matchspec re tuples unicode }
