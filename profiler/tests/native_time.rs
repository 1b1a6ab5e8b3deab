//! What profiles and recordings tell of native code: NIFs that spin for times that they measure themselves.

mod library;
mod place;

use library::compile;
use place::Place;
use serde_json::Value;

/// The program: one dirty CPU scheduler, for which three of four callers wait.
const PROGRAM: [&str; 9] = [
    "--",
    "erl",
    "+SDcpu",
    "1:1",
    "-noshell",
    "-pa",
    ".",
    "-eval",
    "times:main([\".\"]), halt().",
];

/// A place with the module `times` and its library.
fn times() -> Option<Place> {
    let headers = library::headers("erl_nif.h")?;
    let place = library::place_of("nif", "times")?;
    let source = library::tests("nif").join("times.c");
    compile(&place, &headers, &source, "times.so", &[]);
    Some(place)
}

fn run(place: &Place, options: &[&str]) -> String {
    let printed = place.printed(&[options, &PROGRAM].concat());
    assert!(printed.starts_with("done\n"), "{printed}");
    printed
}

fn json(place: &Place, file: &str) -> Value {
    let text = std::fs::read_to_string(place.file(file)).expect("it was written");
    serde_json::from_str(&text).expect("JSON")
}

/// The row of a function, which has these numbers or more: calls and nanoseconds at work, and of waiting.
fn check(rows: &Value, function: &str, kind: &str, [calls, ran, waited]: [u64; 3]) {
    let rows = rows.as_array().expect("an array");
    let is_it = |row: &&Value| match row["module"].as_str() {
        Some(module) => format!("{module}:{}/{}", text(&row["function"]), row["arity"]) == function,
        None => row["function"] == function,
    };
    let row = rows.iter().find(is_it);
    let row = row.unwrap_or_else(|| panic!("no {function}"));
    assert_eq!(row["native"], kind, "{row}");
    assert_eq!(row["calls"], calls, "{row}");
    let own = row["own_ns"].as_u64().or(row["time_ns"].as_u64());
    assert!(own.expect("a number") >= ran * 1_000_000, "{row}");
    let wait = row["dirty_wait_ns"].as_u64().unwrap_or(0);
    assert!(wait >= waited * 1_000_000, "{row}");
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

/// Functions, kinds, calls, milliseconds of work and of waiting: the last of four callers waits for three calls of 20 ms,
/// the one before for two.
const FUNCTIONS: [(&str, &str, [u64; 3]); 4] = [
    ("times:dirty_cpu/1", "dirty_cpu", [4, 80, 120]),
    ("times:dirty_io/1", "dirty_io", [1, 10, 0]),
    ("times:goes_on/1", "dirty_io", [1, 10, 0]),
    ("times:spin/1", "ordinary", [53, 16, 0]),
];

#[test]
fn a_profile_tells_native_code_and_its_waits() {
    let Some(place) = times() else { return };
    let options = [
        "profile",
        "--type",
        "call_time",
        "--json",
        "p.json",
        "--flamegraph",
        "f.svg",
    ];
    run(&place, &options);
    let profile = json(&place, "p.json");
    for (function, kind, numbers) in FUNCTIONS {
        check(&profile["functions"], function, kind, numbers);
    }
    let graph = std::fs::read_to_string(place.file("f.svg")).expect("it was written");
    for kind in [
        "NIF on a dirty CPU scheduler",
        "NIF on a dirty I/O scheduler",
    ] {
        assert!(graph.contains(kind), "{kind}");
    }
}

#[test]
fn a_recording_tells_native_code_its_waits_and_what_blocks_a_scheduler() {
    let Some(place) = times() else { return };
    run(&place, &["record", "-o", "r.stream"]);
    place.printed(&["report", "r.stream", "--json", "r.json"]);
    let report = json(&place, "r.json");
    for (function, kind, numbers) in FUNCTIONS {
        check(&report["natives"], function, kind, numbers);
    }
    let cpu = &report["dirty_schedulers"][0];
    assert_eq!(
        (&cpu["kind"], &cpu["calls"]),
        (&"dirty_cpu".into(), &4.into())
    );
    assert!(cpu["wait_ns"].as_u64() >= Some(120_000_000), "{cpu}");
    let blocks = report["blocks"].as_array().expect("an array");
    let block = blocks
        .iter()
        .find(|block| block["function"] == "times:spin/1");
    let block = block.expect("it blocks its scheduler");
    assert!(block["times"].as_u64() >= Some(3), "{block}");
    assert!(block["longest_ns"].as_u64() >= Some(6_000_000), "{block}");
    assert_eq!(block["callers"][0]["function"], "times:blocks/0", "{block}");
    let is_dirty = |block: &Value| text(&block["function"]).starts_with("times:dirty");
    assert!(!blocks.iter().any(is_dirty), "{blocks:?}");
}
