//! `beamline disasm --native`: machine code below the instructions that it was made of.

mod place;

use place::{Place, errors};

const WORK: &str = "\
-module(work).
-export([main/1, fib/1]).
main(_) -> io:format(\"~p~n\", [fib(10)]).
fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
";

/// The names of the instructions of a text, in order, without those of code behind the rest.
fn instructions(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| line.starts_with('@'));
    let lines = lines.filter(|line| !line.ends_with("behind the rest"));
    lines
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect()
}

#[test]
fn a_file_s_functions_are_shown_with_their_machine_code() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    place.printed(&["run", "--", "erlc", "work.erl"]);
    let fib = place.printed(&["disasm", "--native", "work:fib/1", "work.beam"]);
    assert!(fib.starts_with("work:fib/1: "), "{fib}");
    // The instructions, and in their order, are those that the runtime makes of the file.
    let all = place.printed(&["disasm", "--specific", "work.beam"]);
    let (_, wanted) = all.split_once("\nfib/1:\n").expect("the function");
    let (wanted, _) = wanted.split_once("\n\n").expect("another one behind it");
    let mut wanted: Vec<&str> = wanted
        .lines()
        .filter_map(|line| line[9..].split_whitespace().next())
        .collect();
    // What raises `function_clause` stands last.
    wanted.rotate_left(1);
    assert_eq!(instructions(&fib), wanted, "{fib}");
    for name in [
        "mov rax, work:fib/1",
        "[r12+AddRR]",
        "[r12+yield_at_entry]",
        "jge @",
    ] {
        assert!(fib.contains(name), "{name}: {fib}");
    }
    let module = place.printed(&["disasm", "--native", "work", "work.beam"]);
    assert!(module.contains("work:main/1: ") && module.contains("work:module_info/0: "));
    assert!(module.contains("io:format/2"), "{module}");
}

#[test]
fn a_run_shows_what_it_has_called() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let run = ["disasm", "--native", "work", "--", "work.erl"];
    let text = place.printed(&run);
    assert!(text.contains("work:fib/1: ") && text.contains("work:main/1: "));
    assert!(
        !text.contains("work:module_info/0: ") && !text.lines().any(|line| line == "610"),
        "{text}"
    );
}

#[test]
fn a_function_of_otp_is_found_in_its_libraries() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let text = place.printed(&["disasm", "--native", "lists:member/2"]);
    assert!(text.starts_with("lists:member/2: "), "{text}");
}

#[test]
fn what_is_not_there_is_an_error() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    place.printed(&["run", "--", "erlc", "work.erl"]);
    for (arguments, code, says) in [
        (
            &["--native", "work:fob/1", "work.beam"][..],
            1,
            "work has no function work:fob/1",
        ),
        (
            &["--native", "work:fob/1", "--", "work.erl"],
            1,
            "called no function work:fob/1",
        ),
        (&["--native", "nowhere:f/0"], 1, "has no module nowhere"),
        (&["--native", "_:f/0"], 1, "name one module"),
        (&[], 2, "FILE.beam"),
        (&["work.beam", "--otp", "/"], 2, "--native"),
    ] {
        let output = place.run(&[&["disasm"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(errors(&output).contains(says), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}
