//! What ends a machine for want of something: OTP's message, one line, and OTP's exit status.

mod place;

use std::os::unix::process::ExitStatusExt;

use place::{Place, WORK, errors};

/// What `abort()` ends a process with.
const SIGABRT: i32 = 6;

/// Runs an expression that is to end the machine, with `words` before it: the last line on standard error, and the status.
fn end(place: &Place, words: &[&str], expression: &str) -> (String, std::process::ExitStatus) {
    let halts = format!("{expression}, halt(7).");
    let erl = ["run", "--", "erl", "-noshell"];
    let output = place.run(&[&erl[..], words, &["-eval", &halts]].concat());
    let last = errors(&output).lines().last().map(str::to_owned);
    (last.unwrap_or_default(), output.status)
}

#[test]
fn memory_that_cannot_be_had_ends_the_machine() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    for (expression, message) in [
        (
            "byte_size(<<0:(1 bsl 45)>>)",
            "binary_alloc: Cannot allocate 4398046511104 bytes of memory (of type \"binary\").",
        ),
        (
            "binary:copy(<<1>>, 1 bsl 50)",
            "binary_alloc: Cannot allocate 1125899906842624 bytes of memory (of type \"binary\").",
        ),
        (
            "try exit(binary:copy(<<1>>, 1 bsl 50)) catch _:_ -> halt(8) end",
            "binary_alloc: Cannot allocate 1125899906842624 bytes of memory (of type \"binary\").",
        ),
    ] {
        let (last, status) = end(&place, &[], expression);
        assert_eq!(
            (last.as_str(), status.code()),
            (message, Some(1)),
            "{expression}"
        );
    }
}

#[test]
fn a_heap_size_that_is_none_aborts_the_machine() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let spawn = "spawn_opt(fun() -> ok end, [{min_heap_size, 1 bsl 50}])";
    let (last, status) = end(&place, &[], spawn);
    assert_eq!(last, "no next heap size found: 1125899906842624, offset 0");
    assert_eq!(status.signal(), Some(SIGABRT), "{status:?}");
}

#[test]
fn a_full_table_of_atoms_ends_the_machine() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let fill = "[list_to_atom(integer_to_list(N)) || N <- lists:seq(1, 20000)]";
    let (last, status) = end(&place, &["+t", "16000"], fill);
    assert_eq!(last, "no more index entries in atom_tab (max=16000)");
    assert_eq!(status.code(), Some(1), "{status:?}");
}
