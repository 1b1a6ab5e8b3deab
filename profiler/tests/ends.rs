//! Ends. What ends a machine for want of something: OTP's message, one line, and OTP's exit status. What the end of a
//! process tells.

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

/// As soon as a process has ended, one that is linked to it asks one that monitors it whether it knows. Of two monitors, the
/// one of high priority gets its message first.
const TOLD: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    process_flag(trap_exit, true),
    High = spawn_link(fun() -> process_flag(priority, high), monitors(0) end),
    Other = spawn_link(fun() -> monitors(0) end),
    io:format(\"~w~n\", [lists:sum([asked(High, Other) || _ <- lists:seq(1, 20000)])]),
    halt(0).
monitors(Told) ->
    receive
        {monitor, From, Pid} -> monitor(process, Pid), From ! monitored, monitors(Told);
        {'DOWN', _, process, _, normal} -> monitors(Told + 1);
        {asks, From} -> From ! {told, Told}, monitors(0)
    end.
asked(High, Other) ->
    Pid = spawn_link(fun() -> receive go -> ok end end),
    [begin To ! {monitor, self(), Pid}, receive monitored -> ok end end || To <- [High, Other]],
    Pid ! go,
    receive {'EXIT', Pid, normal} -> ok end,
    Other ! {asks, self()},
    receive {told, Told} -> Told end.
";

#[test]
fn all_are_told_of_an_end_before_one_of_them_acts() {
    let Some(place) = Place::new(TOLD) else {
        return;
    };
    let output = place.run(&["run", "--", "work.erl"]);
    assert_eq!(output.stdout, b"20000\n", "{}", errors(&output));
}
