//! Reports, pictures and exports of recordings of programs that run on OTP's libraries.

mod place;

use std::fs;

use place::{Place, WORK, errors};
use serde_json::Value;

/// Records the program's own calls.
fn record(place: &Place, events: &str, name: &str) {
    let options = [
        "record",
        "--events",
        events,
        "--pattern",
        "work",
        "-o",
        name,
    ];
    let output = place.run(&[&options[..], &["--", "work.erl"]].concat());
    assert!(output.status.success(), "{output:?}");
}

const MOST: &str = "calls,returns,messages,processes,scheduling,gc";

#[test]
fn histograms_are_made_of_recordings() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    record(&place, MOST, "a.ring");
    let json = [
        "histogram",
        "a.ring",
        "work:fib/1",
        "--json",
        "--svg",
        "h.svg",
    ];
    let json: Value = serde_json::from_str(&place.printed(&json)).expect("JSON");
    assert_eq!(json["all"]["count"], 1973 + 177);
    let svg = fs::read_to_string(place.file("h.svg")).expect("it was drawn");
    assert!(svg.contains("work:fib/1"));
    let both = place.printed(&["histogram", "a.ring", "a.ring", "work:fib/1"]);
    assert!(
        both.contains("4300") && both.starts_with("Nothing was lost.\n"),
        "{both}"
    );
    for of in ["own-time", "run-slice", "queue-wait", "message-latency"] {
        let hgrm = place.printed(&["histogram", "a.ring", "--of", of, "--hgrm"]);
        assert!(hgrm.contains("1/(1-Percentile)"), "{hgrm}");
    }
}

#[test]
fn every_call_of_a_function_is_found() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    record(&place, MOST, "a.ring");
    let spans = ["spans", "a.ring", "--from", "work:fib/1"];
    let json = place.printed(&[&spans[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let functions = json["functions"].as_array().expect("a list");
    let fib = functions.iter().find(|row| row["function"] == "work:fib/1");
    assert_eq!(fib.expect("it was called")["calls"], 1973 + 177, "{json}");
    assert_eq!(json["times"]["count"], 2, "calls of itself belong to it");
    let slowest = json["slowest"].as_array().expect("a list");
    let taken = slowest.iter().map(|row| row["time_ns"].as_u64());
    let taken: Option<u64> = taken.sum();
    let done = functions
        .iter()
        .flat_map(|row| [&row["run_ns"], &row["wait_ns"]]);
    let done: Option<u64> = done.map(Value::as_u64).sum();
    assert_eq!(taken, done, "{json}");
    let one = place.printed(&[&spans[..], &["--nth", "slowest"]].concat());
    let export = one.lines().last().expect("a command").trim();
    let export: Vec<&str> = export.split(' ').skip(1).collect();
    let export: Vec<&str> = export.iter().map(|word| word.trim_matches('\'')).collect();
    assert_eq!(export[0], "export", "{one}");
    assert!(place.run(&export).status.success(), "{one}");
    assert!(place.file("span.perfetto-trace").exists());
    let output = place.run(&["spans", "a.ring", "--from", "work:fibb/1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains("similar: work:fib/1"),
        "{output:?}"
    );
}

/// `slow/1` answers calls, each after `work/1`.
const SERVER: &str = "\
-module(server).
-behaviour(gen_server).
-export([main/1, init/1, handle_call/3, handle_cast/2, work/1]).
main(_) ->
    {ok, Pid} = gen_server:start_link({local, slow}, ?MODULE, [], []),
    [gen_server:call(Pid, {work, 200000}) || _ <- lists:seq(1, 5)].
init([]) -> {ok, 0}.
handle_call({work, N}, _, S) -> {reply, work(N), S}.
handle_cast(_, S) -> {noreply, S}.
work(0) -> ok;
work(N) -> work(N - 1).
";

/// The sum of the widths of all frames whose title begins so, in microseconds.
fn width_of(svg: &str, name: &str) -> u64 {
    let titles = svg.split("<title>").skip(1);
    let titles = titles.filter_map(|title| title.strip_prefix(name)?.strip_prefix(" ("));
    let widths = titles.filter_map(|rest| rest.split(' ').next());
    let widths = widths.filter_map(|text| text.replace(',', "").parse::<u64>().ok());
    widths.sum()
}

#[test]
fn a_wait_shows_what_the_server_did() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    place.write("server.erl", SERVER);
    let record = [
        "record",
        "--events",
        MOST,
        "-o",
        "s.stream",
        "--",
        "server.erl",
    ];
    assert!(place.run(&record).status.success());
    let draw = ["flamegraph", "s.stream", "--only", "server:main/1"];
    place.printed(&[&draw[..], &["--width", "wait", "-o", "plain.svg"]].concat());
    place.printed(&[&draw[..], &["--meanwhile", "-o", "opened.svg"]].concat());
    let read = |name| fs::read_to_string(place.file(name)).expect("it was drawn");
    let (plain, opened) = (read("plain.svg"), read("opened.svg"));
    assert_eq!(width_of(&plain, "server:work/1"), 0);
    assert_eq!(width_of(&plain, "all"), width_of(&opened, "all"));
    let meanwhile = width_of(&opened, "(meanwhile in slow)");
    let worked = width_of(&opened, "server:work/1");
    // The server does little else.
    assert!(worked > 0 && worked <= meanwhile, "{worked} of {meanwhile}");
    for wrong in ["--chart", "--width=wait"] {
        let output = place.run(&[&draw[..], &["--meanwhile", wrong, "-o", "x.svg"]].concat());
        assert!(
            errors(&output).contains("cannot be used with"),
            "{output:?}"
        );
    }
    let few = ["record", "-o", "few.stream", "--", "server.erl"];
    assert!(place.run(&few).status.success());
    let output = place.run(&["flamegraph", "few.stream", "--meanwhile", "-o", "x.svg"]);
    let needs = "the recording has no messages: record with --events";
    assert!(errors(&output).contains(needs), "{output:?}");
}

#[test]
fn recordings_are_written_for_other_programs() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    record(&place, MOST, "a.ring");
    for target in [
        "folded",
        "speedscope",
        "perfetto",
        "firefox",
        "callgrind",
        "pprof",
        "hdr",
        "jsonl",
    ] {
        place.printed(&["export", "a.ring", "--to", target, "-o", target]);
        let file = fs::metadata(place.file(target));
        assert!(file.is_ok_and(|file| file.len() > 0), "{target}");
    }
    let lines = place.printed(&["export", "a.ring", "--to", "jsonl"]);
    let is_call =
        |line: &&str| line.starts_with(r#"["call","#) && line.ends_with(r#""work:fib/1"]"#);
    assert_eq!(lines.lines().filter(is_call).count(), 1973 + 177);
    let dash = place.printed(&["export", "a.ring", "--to", "jsonl", "-o", "-"]);
    assert!(dash == lines && !place.file("-").exists());
    // A name that ends in .gz asks for compression, and a part of the recording can be chosen.
    let to = ["export", "a.ring", "--to", "jsonl", "-o", "a.jsonl.gz"];
    place.printed(&[&to[..], &["--only", "work:exit_later"]].concat());
    let file = fs::File::open(place.file("a.jsonl.gz")).expect("it was written");
    let mut part = String::new();
    let mut gunzip = flate2::read::GzDecoder::new(file);
    std::io::Read::read_to_string(&mut gunzip, &mut part).expect("gzip");
    assert!(part.len() < lines.len() && part.contains("work:exit_later"));
}

#[test]
fn processes_are_known_by_what_they_do() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let record = ["record", "--events", "calls,returns", "--pattern", "work"];
    let rest = ["-o", "a.ring", "--", "work.erl", "names"];
    let output = place.run(&[&record[..], &rest].concat());
    assert!(output.status.success(), "{output:?}");
    // Of times, those of a busy machine make frames too narrow to be drawn.
    let by = ["--by", "name", "--width", "calls"];
    let graph = [&["flamegraph", "a.ring", "-o", "g.svg"][..], &by].concat();
    place.printed(&graph);
    let svg = fs::read_to_string(place.file("g.svg")).expect("it was drawn");
    for name in ["work:begin_it/1", "work:&apos;-main/1-fun-0-&apos;/0"] {
        assert!(svg.contains(&format!("<title>{name}")), "no {name}: {svg}");
    }
}

#[test]
fn pictures_are_made_of_recordings() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    record(&place, MOST, "a.ring");
    for options in [
        &["--chart"][..],
        &["--width", "wait"],
        &["--by", "module", "--reverse"],
        &["--only", "work:exit_later", "--hide-below", "work:fib"],
    ] {
        let arguments = [&["flamegraph", "a.ring", "-o", "g.svg"], options].concat();
        place.printed(&arguments);
        let svg = fs::read_to_string(place.file("g.svg")).expect("it was drawn");
        assert!(svg.contains("work"), "{options:?}");
        fs::remove_file(place.file("g.svg")).expect("it is there");
    }
    let mut ranked = vec!["diff", "a.ring", "a.ring", "--top", "3", "--before"];
    ranked.extend(["a.ring"; 4]);
    ranked.push("--after");
    ranked.extend(["a.ring"; 4]);
    assert!(place.printed(&ranked).contains("Nothing has changed."));
    let same = place.printed(&["diff", "a.ring", "a.ring", "-o", "d.svg"]);
    assert!(same.contains("Nothing has changed."), "{same}");
    assert!(place.file("d.svg").exists());
}

/// What is printed on standard error when a command fails, which is to leave no file.
fn failed(place: &Place, line: &str, code: i32) -> String {
    let arguments: Vec<&str> = line.split(' ').collect();
    let output = place.run(&arguments);
    let text = errors(&output);
    assert_eq!(output.status.code(), Some(code), "{line}: {text}");
    assert!(code == 2 || text.lines().count() == 1, "{line}: {text}");
    for name in ["out", "out.tmp"] {
        assert!(!place.file(name).exists(), "{line}");
    }
    text
}

#[test]
fn what_cannot_be_made_is_one_line_and_no_file() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    record(&place, "calls", "calls.ring");
    record(&place, MOST, "a.ring");
    fs::write(place.file("text.ring"), "no recording").expect("writable");
    fs::write(place.file("empty.ring"), "").expect("writable");
    let returns = "needs calls and returns, but the recording has no returns: record with";
    for (line, expect) in [
        ("histogram calls.ring", returns),
        ("export calls.ring --to pprof -o out", returns),
        ("flamegraph calls.ring -o out", returns),
        ("histogram text.ring", "text.ring: not a recording"),
        ("histogram empty.ring", "empty.ring: the file is empty"),
        ("histogram none.ring", "none.ring: No such file"),
        ("export text.ring --to jsonl -o out", "neither a recording"),
        (
            "flamegraph a.ring --only work:fob -o out",
            "similar: work:fib",
        ),
        (
            "flamegraph a.ring --width words -o out",
            "a flame graph of words needs calls, returns and words, but the recording has no words: \
             record with --events calls,returns,words,messages,processes,scheduling,gc",
        ),
        (
            "diff a.ring a.ring --width reductions -o out",
            "the recording has no reductions",
        ),
        (
            "report a.ring --width words --flamegraph out",
            "a.ring: a flame graph of words needs",
        ),
        ("histogram a.ring --of words", "the recording has no words"),
        ("diff a.ring empty.ring -o out", "the file is empty"),
    ] {
        let text = failed(&place, line, 1);
        assert!(text.contains(expect), "{line}: {text}");
    }
    for (line, expect) in [
        ("histogram a.ring --of speed", "invalid value 'speed'"),
        (
            "flamegraph a.ring --min-width 200 -o out",
            "is not 0 to 100",
        ),
    ] {
        let text = failed(&place, line, 2);
        assert!(text.contains(expect), "{line}: {text}");
    }
}
