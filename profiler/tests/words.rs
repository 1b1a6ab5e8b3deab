//! Words and reductions of recordings, beside what `beamline profile` counts.

mod place;

use std::fs;

use place::Place;
use serde_json::Value;

const SOURCE: &str = "\
-module(work).
-export([main/0]).
main() -> 5000 = length(build(5000, [])), own(100).
build(0, All) -> All;
build(N, All) -> build(N - 1, [pair(N) | All]).
pair(N) -> {N, twice(N)}.
twice(N) -> [N, N].
own(N) -> self() ! {own, lists:seq(1, N)}, receive {own, _} -> ok end.
";

/// Of each function of the program: calls and words.
fn words(rows: &Value, name: impl Fn(&Value) -> String, words: &str) -> Vec<(String, u64, u64)> {
    let number = |row: &Value, key: &str| row[key].as_u64().unwrap_or(u64::MAX);
    let rows = rows.as_array().expect("a list").iter();
    let mut rows: Vec<_> = rows
        .map(|row| (name(row), number(row, "calls"), number(row, words)))
        .collect();
    rows.sort();
    rows
}

#[test]
fn words_are_those_of_call_memory() {
    let Some(place) = Place::new(SOURCE) else {
        return;
    };
    let program = ["--pattern", "work", "--", "work.erl"];
    let profile = ["profile", "--type", "call_memory", "--json", "p.json"];
    place.printed(&[&profile[..], &program].concat());
    let profile = place.json("p.json");
    let name = |row: &Value| {
        let part = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        format!("{}:{}/{}", part("module"), part("function"), row["arity"])
    };
    let counted = words(&profile["functions"], name, "words");
    // A message counts as it is made, and as it is received.
    for (function, calls, words) in [("work:twice/1", 5000, 20_000), ("work:own/1", 1, 406)] {
        let row = (function.to_owned(), calls, words);
        assert!(counted.contains(&row), "{counted:?}");
    }

    let record = ["record", "--events", "words,reductions", "-o", "w.ring"];
    place.printed(&[&record[..], &program].concat());
    place.printed(&["report", "w.ring", "--json", "r.json"]);
    let report = place.json("r.json");
    assert_eq!(
        report["events"],
        serde_json::json!(["calls", "returns", "words", "reductions"])
    );
    let name = |row: &Value| row["function"].as_str().unwrap_or_default().to_owned();
    assert_eq!(words(&report["by_words"], name, "own_words"), counted);
    for (options, expect) in [
        (
            &["flamegraph", "w.ring", "--width", "words", "-o", "w.svg"][..],
            "20,000 words",
        ),
        (
            &[
                "flamegraph",
                "w.ring",
                "--width",
                "reductions",
                "-o",
                "w.svg",
            ],
            "work:twice/1 (",
        ),
        (
            &[
                "report",
                "w.ring",
                "--width",
                "words",
                "--flamegraph",
                "w.svg",
            ],
            "20,000 words",
        ),
        (
            &["histogram", "w.ring", "--of", "words", "--svg", "w.svg"],
            "5000 times, 50 %: 4",
        ),
        (
            &[
                "diff", "w.ring", "w.ring", "--width", "words", "-o", "w.svg",
            ],
            "work:twice/1",
        ),
    ] {
        place.printed(options);
        let svg = fs::read_to_string(place.file("w.svg")).expect("it was drawn");
        assert!(svg.contains(expect), "{options:?}: {svg}");
    }
}
