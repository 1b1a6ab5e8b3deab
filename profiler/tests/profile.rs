//! `beamline profile` on programs that run on OTP's libraries.

mod place;

use place::{Place, errors};
use serde_json::Value;

/// What is counted of `source`'s `main/0` with `--pattern` each of `patterns`; none where there is no OTP.
fn profiled(source: &str, patterns: &[&str]) -> Option<Value> {
    let place = Place::new(source)?;
    let mut arguments = vec!["profile", "--type", "call_count", "--json", "out.json"];
    for pattern in patterns {
        arguments.extend(["--pattern", pattern]);
    }
    arguments.extend(["--", "work.erl"]);
    place.printed(&arguments);
    Some(place.json("out.json"))
}

fn calls(profile: &Value, module: &str, function: &str, arity: u64) -> Option<u64> {
    let functions = profile["functions"].as_array()?;
    let row = functions.iter().find(|row| {
        row["module"] == module && row["function"] == function && row["arity"] == arity
    });
    row?["calls"].as_u64()
}

/// The module `binary` is there before any code has named this function of it.
#[test]
fn a_bif_is_counted_that_is_called_by_code_loaded_later() {
    let source = "\
-module(work).
-export([main/0]).
main() ->
    {module, binary} = code:ensure_loaded(binary),
    Parts = [binary:copy(<<N>>, 3) || N <- lists:seq(1, 100)],
    600 = 2 * iolist_size(Parts).
";
    let Some(profile) = profiled(source, &["binary", "work"]) else {
        return;
    };
    assert_eq!(calls(&profile, "work", "main", 0), Some(1));
    assert_eq!(calls(&profile, "binary", "copy", 2), Some(100));
}

#[test]
fn a_function_that_begins_with_a_bif_is_counted_once_a_call() {
    let source = "\
-module(work).
-export([main/0]).
main() ->
    Binary = binary:copy(<<1>>, 20000),
    [sum(Binary) || _ <- lists:seq(1, 2000)].
sum(Binary) -> erlang:adler32(Binary).
";
    let Some(profile) = profiled(source, &["work"]) else {
        return;
    };
    assert_eq!(calls(&profile, "work", "sum", 1), Some(2000));
}

const CALLS: &str = "\
-module(work).
-export([main/0, never/0]).
main() -> [one(N) || N <- lists:seq(1, 30)].
one(N) -> N.
never() -> never.
";

/// What is printed, and the exit code.
fn tables(place: &Place, options: &[&str], program: &[&str]) -> (String, String, Option<i32>) {
    let output = place.run(&[&["profile"], options, &["--"], program].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, errors(&output), output.status.code())
}

#[test]
fn tables_have_the_program_and_files_have_all() {
    let Some(place) = Place::new(CALLS) else {
        return;
    };
    let (text, error, code) = tables(&place, &["--json", "a.json", "-o", "p"], &["work.erl"]);
    assert_eq!((error.as_str(), code), ("", Some(0)), "{text}");
    let rows: Vec<&str> = text.lines().collect();
    assert!(
        rows[1].contains("functions out of scope: see --scope all)"),
        "{text}"
    );
    assert!(rows[rows.len() - 2].starts_with("work:'-main/0-"), "{text}");
    assert!(!text.contains("\nlists:"), "{text}");
    let json = place.json("a.json");
    assert!(calls(&json, "lists", "seq", 2).is_some());
    for (module, origin) in [("work", "app"), ("lists", "otp"), ("erlang", "otp")] {
        let mut functions = json["functions"].as_array().expect("a list").iter();
        let of = functions.find(|of| of["module"] == module).expect(module);
        assert_eq!(of["origin"], origin, "{module}");
    }
    let all = place.printed(&["report", "p", "--scope", "all"]);
    assert!(
        all.contains("lists:seq/2") && !all.contains("out of scope"),
        "{all}"
    );
    assert_eq!(place.printed(&["report", "p"]), text);
    let one = place.printed(&["report", "p", "--scope", "lists", "--top", "1"]);
    assert_eq!(one.lines().count(), 8, "{one}");
    assert!(one.contains("functions more: see --top all)"), "{one}");

    // A user that has chosen functions sees them, wherever they are from.
    let (text, _, _) = tables(&place, &["--pattern", "lists:seq/2"], &["work.erl"]);
    assert!(
        text.contains("lists:seq/2") && !text.contains("out of scope"),
        "{text}"
    );
}

const CALLS_LIBRARIES: &str = "\
-module(work).
-export([main/0]).
main() -> inner(200), outer(200).
outer(N) -> [lists:sort(lists:seq(N, 1, -1)) || _ <- lists:seq(1, N)].
inner(N) -> lists:seq(1, N), ok.
";

#[test]
fn the_program_s_functions_have_what_their_callees_cost() {
    let Some(place) = Place::new(CALLS_LIBRARIES) else {
        return;
    };
    for kind in ["call_time", "call_memory"] {
        let (text, _, _) = tables(&place, &["--type", kind], &["work.erl"]);
        let rows: Vec<&str> = text.lines().collect();
        let head = rows.first().expect("a head");
        assert!(head.contains("  TOTAL ("), "{text}");
        // The function in which libraries do the work is the last but one, behind those that cost less.
        let whole = rows
            .iter()
            .position(|row| row.starts_with(' ') && row.contains("100.0]"));
        let last = rows[whole.expect("a row of all") - 1];
        assert!(last.starts_with("work:main/0 "), "{text}");
        let number = |row: &str| {
            row.rsplit_once(' ')
                .and_then(|(_, last)| last.parse::<u64>().ok())
        };
        let total = number(last).expect("a number");
        let outer = rows.iter().find(|row| row.starts_with("work:outer/1 "));
        let of_outer = outer.and_then(|row| number(row)).expect("a number");
        assert!(of_outer > total / 2 && of_outer <= total, "{text}");
        // The functions out of scope that cost most are named.
        assert!(text.contains("\n  of these, "), "{text}");
        let (flat, _, _) = tables(&place, &["--type", kind, "--flat"], &["work.erl"]);
        assert!(!flat.contains("TOTAL"), "{flat}");
    }
}

#[test]
fn a_module_of_the_program_may_be_named_as_one_of_a_library() {
    let Some(place) = Place::new(CALLS) else {
        return;
    };
    let own = CALLS.replace("-module(work)", "-module(lcnt)");
    place.write("lcnt.erl", &own);
    let (text, _, _) = tables(&place, &[], &["lcnt.erl"]);
    assert!(text.contains("\nlcnt:one/1 "), "{text}");
}

#[test]
fn without_functions_of_the_program_all_are_shown() {
    let Some(place) = Place::new(CALLS) else {
        return;
    };
    let (text, error, code) = tables(&place, &[], &["erl", "-noshell", "-s", "init", "stop"]);
    assert!(text.contains("\ninit:boot_loop/2 "), "{text}");
    let told = "beamline: no function of the program's own modules was called: the tables have all functions\n";
    assert_eq!((error.as_str(), code), (told, Some(0)));
}

#[test]
fn recordings_have_the_same_scope() {
    let Some(place) = Place::new(CALLS) else {
        return;
    };
    place.printed(&["record", "-o", "a.ring", "--", "work.erl"]);
    let text = place.printed(&["report", "a.ring"]);
    assert!(
        text.contains("  work:one/1\n") && !text.contains("  lists:seq/2\n"),
        "{text}"
    );
    assert!(
        text.contains("functions out of scope: see --scope all)"),
        "{text}"
    );
    let all = place.printed(&["report", "a.ring", "--scope", "all", "--json", "a.json"]);
    assert!(
        all.contains("  lists:seq/2\n") && !all.contains("out of scope"),
        "{all}"
    );
    let json = place.json("a.json");
    let rows = json["by_own"].as_array().expect("a list");
    let seq = rows.iter().find(|row| row["function"] == "lists:seq/2");
    assert_eq!(seq.expect("it is there")["origin"], "otp");
}

#[test]
fn an_escript_of_this_folder_has_one_name_in_every_run() {
    let Some(place) = Place::new(CALLS) else {
        return;
    };
    let script = "#!/usr/bin/env escript\nmain([N]) -> [one() || _ <- lists:seq(1, list_to_integer(N))].\none() -> 1.\n";
    place.write("load.escript", script);
    for (file, calls) in [("a", "5"), ("b", "9")] {
        let options = [
            "--pattern",
            "load_escript:one/0",
            "--type",
            "call_time",
            "-o",
            file,
        ];
        let (text, error, code) = tables(&place, &options, &["load.escript", calls]);
        assert_eq!((error.as_str(), code), ("", Some(0)), "{text}");
        assert!(
            text.contains("load_escript:one/0") && !text.contains("__escript__"),
            "{text}"
        );
    }
    let difference = place.printed(&["diff", "a", "b", "--width", "calls"]);
    let row = difference
        .lines()
        .find(|line| line.contains("load_escript:one/0"));
    let words: Vec<&str> = row.expect("it has changed").split_whitespace().collect();
    assert_eq!(words[..2], ["5", "9"], "{difference}");
}

#[test]
fn modules_of_elixir_are_written_as_elixir_does() {
    let Some(place) = Place::new(CALLS) else {
        return;
    };
    if !place::has_elixir() {
        return;
    }
    let source = "defmodule Demo.Deep do
  def twice(list), do: Enum.map(list, fn x -> x * 2 end)
  def again?(n), do: n
end
Demo.Deep.twice([1, 2, 3])
Demo.Deep.again?(1)
";
    place.write("demo.exs", source);
    let (text, error, code) = tables(&place, &[], &["demo.exs"]);
    assert_eq!((error.as_str(), code), ("", Some(0)), "{text}");
    for row in [
        "Demo.Deep.twice/1 ",
        "Demo.Deep.again?/1 ",
        "Demo.Deep.\"-twice/1-fun-0-\"/1 ",
    ] {
        assert!(text.contains(&format!("\n{row}")), "{row}: {text}");
    }
    assert!(
        !text.contains("\nEnum") && !text.contains("elixir_compiler"),
        "{text}"
    );
    for (pattern, rows) in [
        ("Demo.*", 3),
        ("Demo.Deep", 3),
        ("Demo.Deep.twice/1", 1),
        ("Demo.Deep:twice/1", 1),
        ("'Elixir.Demo.Deep':_/1", 3),
        ("Demo.Deep.*fun*", 1),
        (":lists.foldl/3", 1),
    ] {
        let (text, error, code) = tables(&place, &["--pattern", pattern], &["demo.exs"]);
        assert_eq!((error.as_str(), code), ("", Some(0)), "{pattern}: {text}");
        assert_eq!(text.lines().count(), rows + 2, "{pattern}: {text}");
    }
    let (_, error, code) = tables(&place, &["--pattern", "Demo.Deep.twice/2"], &["demo.exs"]);
    let told = "beamline: Demo.Deep.twice/2 matches no function of any loaded module; similar: Demo.Deep.twice/1\n";
    assert_eq!((error.as_str(), code), (told, Some(2)));
}

#[test]
fn a_part_of_a_run_is_profiled() {
    let source = "\
-module(work).
-export([main/0]).
main() ->
    {match, [Folder]} = re:run(os:getenv(\"BEAMLINE_PROFILE\"), \"\\\"folder\\\":\\\"([^\\\"]*)\",
                               [{capture, all_but_first, list}]),
    wait(Folder ++ \"/*.blprof\"),
    late(),
    io:format(\"went on~n\").
wait(Files) -> filelib:wildcard(Files) =/= [] orelse begin timer:sleep(5), wait(Files) end.
late() -> ok.
";
    let Some(place) = Place::new(source) else {
        return;
    };
    for kind in ["call_count", "call_time"] {
        // The program waits until this time is over.
        let options = ["--duration", "500ms", "--type", kind, "--json", "a.json"];
        let (text, error, code) = tables(&place, &options, &["work.erl"]);
        assert_eq!(code, Some(0), "{error}");
        assert!(text.starts_with("went on\n"), "{text}");
        let json = place.json("a.json");
        assert!(calls(&json, "init", "boot", 1).is_some());
        assert_eq!(calls(&json, "work", "late", 0), None);
    }
    place.write("work.erl", CALLS);
    for kind in ["call_count", "call_time", "call_memory"] {
        let options = ["--delay", "1h", "--type", kind, "--json", "a.json"];
        let (text, _, code) = tables(&place, &options, &["work.erl"]);
        assert_eq!((text.as_str(), code), ("Trace is empty\n", Some(0)));
        assert_eq!(place.json("a.json")["functions"], serde_json::json!([]));
    }
    let record = ["record", "--delay", "1h", "-o", "a.ring", "--", "work.erl"];
    assert_eq!(place.run(&record).status.code(), Some(1));
    let report = place.report("a.ring");
    assert_eq!(report["records"], serde_json::json!([]));
}

#[test]
fn a_command_that_is_none_is_one_line() {
    let Some(place) = Place::new(CALLS) else {
        return;
    };
    for (options, program, expect, code) in [
        (&[][..], "nothing", "nothing: no such command", 1),
        (
            &[],
            "nothing.escript",
            "nothing.escript: no such command",
            1,
        ),
        (&["--top", "0"], "work.erl", "is not a number of rows", 2),
        (&["--scope", "a:b/c"], "work.erl", "the arity 'c'", 2),
        (&["--delay", "3"], "work.erl", "has no unit", 2),
        (&["--duration", "0s"], "work.erl", "is too short", 2),
        (
            &["--deterministic", "--delay", "1s"],
            "work.erl",
            "leave out --deterministic",
            2,
        ),
    ] {
        let (text, error, ended) = tables(&place, options, &[program]);
        assert_eq!((text.as_str(), ended), ("", Some(code)), "{error}");
        assert!(
            error.contains(expect) && error.lines().count() == 1,
            "{error}"
        );
    }
}

#[test]
fn a_file_without_main_is_one_line() {
    let Some(place) = Place::new("-module(work).\n-export([go/0]).\ngo() -> ok.\n") else {
        return;
    };
    for words in [&["run"][..], &["profile"], &["record", "-o", "run.stream"]] {
        let output = place.run(&[words, &["--", "work.erl"]].concat());
        let told = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(
            told.starts_with("beamline: work.erl: the module exports neither main/0 nor main/1"),
            "{told}"
        );
        assert_eq!(told.trim_end().lines().count(), 1, "{told}");
    }
}

#[test]
fn a_table_is_of_all_processes_unless_it_is_said_otherwise() {
    let source = "\
-module(work).
-export([main/0, task/2]).
main() ->
    Pids = [spawn(work, task, [self(), N]) || N <- lists:seq(1, 40)],
    [receive Pid -> ok end || Pid <- Pids].
task(Parent, N) -> add(N, 0), Parent ! self().
add(0, Sum) -> Sum;
add(N, Sum) -> add(N - 1, Sum + N).
";
    let Some(place) = Place::new(source) else {
        return;
    };
    let table = |options: &[&str]| {
        let (text, error, code) = tables(&place, options, &["work.erl"]);
        assert_eq!((error.as_str(), code), ("", Some(0)), "{text}");
        text
    };
    let total = table(&["--type", "call_time", "--pattern", "work:task/2"]);
    assert_eq!(total.lines().count(), 3, "{total}");
    assert!(total.contains("work:task/2     40"), "{total}");
    let kinds = table(&[
        "--type",
        "call_time",
        "--pattern",
        "work:task/2",
        "--by",
        "process",
    ]);
    assert_eq!(kinds.lines().count(), 5, "{kinds}");
    assert!(
        kinds.contains("****** 40 processes work:task/2  --  100.00% of total"),
        "{kinds}"
    );
}

const LEAVES: &str = "\
-module(work).
-export([main/0, request/1, tracer/0, holder/1]).
main() ->
    [request(N) || N <- lists:seq(1, 50)],
    Holder = spawn(?MODULE, holder, [self()]),
    receive {Holder, ready} -> ok end,
    ets:new(things, [named_table]),
    ets:insert(things, [{N, N} || N <- lists:seq(1, 1000)]).
request(_) ->
    Tracer = spawn(fun tracer/0),
    Tracer ! seen,
    {Pid, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.
tracer() -> receive seen -> tracer(); stop -> ok end.
holder(Parent) ->
    Heads = [binary:part(binary:copy(<<N>>, 100000), 0, 80) || N <- lists:seq(1, 5)],
    garbage_collect(),
    Parent ! {self(), ready},
    receive stop -> Heads end.
";

#[test]
fn a_report_says_who_is_left_at_the_end_and_holds_which_memory() {
    let Some(place) = Place::new(LEAVES) else {
        return;
    };
    place.printed(&["record", "-o", "a.stream", "--", "work.erl"]);
    place.printed(&["report", "a.stream", "--json", "a.json"]);
    let json = place.json("a.json");
    let left = |started_in: &str| {
        let mut rows = json["left"].as_array().expect("a list").iter();
        let row = rows.find(|row| row["started_in"] == started_in);
        row.unwrap_or_else(|| panic!("{started_in}: {}", json["left"]))
    };
    let tracers = left("work:request/1");
    assert_eq!(
        (&tracers["processes"], &tracers["kind"]),
        (&50.into(), &"work:tracer/0".into())
    );
    let holder = left("work:main/0");
    assert_eq!(holder["kind"], "work:holder/1");
    assert_eq!(
        (&holder["binaries"], &holder["largest_binary"]),
        (&5.into(), &100_000.into())
    );
    assert_eq!(holder["binary_bytes"], 500_000);
    let mut tables = json["tables"].as_array().expect("a list").iter();
    let things = tables.find(|table| table["name"] == "things");
    assert_eq!(things.expect("it is there")["objects"], 1000);
}

const OFTEN: &str = "\
-module(work).
-export([main/0]).
main() -> outer(100000).
outer(0) -> ok;
outer(N) -> inner(N), outer(N - 1).
inner(N) -> leaf(N), leaf(N).
leaf(N) -> N.
";

/// Of a profile: its time and what was taken out of it, of all functions and of all paths.
fn times(profile: &Value) -> [[u64; 2]; 2] {
    ["counts", "call_tree"].map(|rows| {
        let rows = profile[rows].as_array().expect("a list");
        let sum = |field: &str| {
            rows.iter()
                .map(|row| row[field].as_u64().expect("ns"))
                .sum()
        };
        [sum("time_ns"), sum("tracing_ns")]
    })
}

#[test]
fn what_tracing_took_can_be_taken_out_of_own_times() {
    let Some(place) = Place::new(OFTEN) else {
        return;
    };
    let options = [
        "--type",
        "call_time",
        "--corrected",
        "--json",
        "a.json",
        "-o",
        "p",
    ];
    let (text, error, code) = tables(&place, &options, &["work.erl"]);
    assert_eq!((error.as_str(), code), ("", Some(0)), "{text}");
    let last = text.lines().last().expect("a line");
    assert!(last.starts_with("tracing cost taken out: "), "{text}");
    let profile = place.json("a.json");
    let cost = &profile["runs"][0]["tracing"];
    assert!(cost["inside_ps"].as_u64() > Some(0), "{cost}");
    let measured = times(&profile);
    let [[_, taken], [_, of_paths]] = measured;
    assert!(taken > 0 && taken == of_paths, "{measured:?}");

    let raw = place.printed(&["report", "p", "--json", "raw.json"]);
    assert!(!raw.contains("taken out"), "{raw}");
    let together = measured.map(|[time, taken]| [time + taken, 0]);
    assert_eq!(times(&place.json("raw.json")), together);
    assert_eq!(place.printed(&["report", "p", "--corrected"]), text);
}

#[test]
fn virtual_time_is_told_as_it_passes() {
    let Some(place) = Place::new(OFTEN) else {
        return;
    };
    let options = ["--deterministic", "--type", "call_time", "--json", "a.json"];
    let (text, error, code) = tables(&place, &options, &["work.erl"]);
    assert_eq!((error.as_str(), code), ("", Some(0)), "{text}");
    assert!(!text.contains("taken out"), "{text}");
    let profile = place.json("a.json");
    assert_eq!(profile["runs"][0]["tracing"]["inside_ps"], 0);
    assert_eq!(times(&profile)[0][1], 0);
}
