//! A cluster in one recording: `record -o FOLDER/`, and what reads the folder.

mod daemon;
mod library;
mod place;

use daemon::Nodes;
use place::errors;
use serde_json::Value;

const EVENTS: &str = "calls,returns,processes,scheduling,messages";

/// A place with the folder `run`, in which there are the recordings of the program's three nodes.
fn recorded() -> Option<Nodes> {
    let nodes = Nodes::new("cluster", "cluster")?;
    let record = [
        "record",
        "-o",
        "run/",
        "--events",
        EVENTS,
        "--pattern",
        "cluster",
    ];
    let output = nodes.beamline(&command(&record)).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(printed, "gone\n3\n");
    assert!(errors(&output).contains("run/: 3 recordings; next: beamline report run/\n"));
    Some(nodes)
}

/// The program, behind these arguments.
fn command<'a>(before: &[&'a str]) -> Vec<&'a str> {
    let node = [
        "-name",
        "one@127.0.0.1",
        "-setcookie",
        "monster",
        "-pa",
        ".",
    ];
    let eval = ["-eval", "cluster:main(), halt()."];
    let program = ["--", "erl", "-noshell"]
        .into_iter()
        .chain(node)
        .chain(eval);
    before.iter().copied().chain(program).collect()
}

/// The sum of a number of the calls of a kind to a node; calls of `gen_server` are those to the program's own server.
fn sum(report: &Value, asked: &str, to: &str, number: &str) -> u64 {
    let all = report["remote_calls"].as_array().into_iter().flatten();
    let meant = all.filter(|row| row["asked"] == asked && row["to"] == to);
    let meant = meant.filter(|row| asked != "call" || row["callee"] == "server");
    meant.filter_map(|row| row[number].as_u64()).sum()
}

#[test]
fn a_folder_has_each_node_their_clocks_connections_and_calls() {
    let Some(nodes) = recorded() else { return };
    let place = &nodes.place;
    let files = std::fs::read_dir(place.file("run")).expect("it is there");
    let names = files.map(|file| file.expect("readable").file_name());
    let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
    names.sort();
    let all = ["one", "three", "two"].map(|name| format!("{name}@127.0.0.1"));
    assert_eq!(names, all.clone().map(|name| format!("{name}.stream")));

    let report = place.report("run");
    let listed = report["nodes"].as_array().expect("there are nodes");
    let listed: Vec<&str> = listed.iter().filter_map(|it| it["node"].as_str()).collect();
    assert_eq!(listed, all);
    for (at, node) in all.iter().enumerate() {
        let clock = &report["nodes"][at]["clock"];
        let error = clock["error_ns"].as_i64().expect("messages tell it");
        // They are on one machine, whose clock is the truth.
        let began = |at: usize| report["nodes"][at]["start_monotonic_ns"].as_i64();
        let truth = began(at).expect("a time") - began(0).expect("a time");
        let offset = clock["offset_ns"].as_i64().expect("a number");
        // What stamps records is not that clock, and may differ from it by a little.
        let apart = offset.abs_diff(truth);
        assert!(
            apart <= error.unsigned_abs() + 20_000,
            "{node}: {offset} {truth} {error}"
        );
        assert_eq!(clock["by"], if at == 0 { "itself" } else { "messages" });
    }

    let [_, three, two] = &all;
    assert_eq!(sum(&report, "call", two, "calls"), 22);
    assert!(sum(&report, "erpc", three, "calls") >= 5);
    assert_eq!(sum(&report, "spawn", two, "calls"), 1);
    let took = |number| sum(&report, "call", two, number);
    assert_eq!(took("both_sides"), 22);
    assert_eq!(took("total_ns"), took("there_ns") + took("way_ns"));
    let all = report["connections"].as_array().expect("there are some");
    let to_two = all
        .iter()
        .find(|row| row["from"] == "one@127.0.0.1" && row["to"] == *two);
    let to_two = to_two.expect("it was connected");
    assert!(to_two["bytes"].as_u64() > Some(300_000), "{to_two}");
    assert_eq!(to_two["signals"], to_two["came"], "all of them have come");
}

#[test]
fn reports_pictures_and_exports_have_all_nodes() {
    let Some(nodes) = recorded() else { return };
    let place = &nodes.place;
    let text = place.printed(&["report", "run/"]);
    for part in [
        " one@127.0.0.1, run/one@127.0.0.1.stream\n",
        " three@127.0.0.1 to one@127.0.0.1",
        ", call to server of two@127.0.0.1",
        ", erpc to ",
        " cluster:fib/1\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    place.printed(&["flamegraph", "run", "-o", "run.svg"]);
    let svg = std::fs::read_to_string(place.file("run.svg")).expect("it is written");
    assert!(svg.contains("(two@127.0.0.1)") && svg.contains("cluster:fib/1"));
    let folded = place.printed(&["export", "run", "--to", "folded"]);
    let is_of = |node: &str| {
        folded
            .lines()
            .any(|line| line.starts_with(&format!("({node}@127.0.0.1);cluster:")))
    };
    assert!(is_of("one") && is_of("two") && is_of("three"), "{folded}");
    place.printed(&["export", "run", "--to", "perfetto", "-o", "run.trace"]);
    let trace = std::fs::read(place.file("run.trace")).expect("it is written");
    let has = |text: &[u8]| trace.windows(text.len()).any(|part| part == text);
    assert!(has(b"three@127.0.0.1") && has(b"dist_out"));
    let diff = place.printed(&["diff", "run", "run"]);
    assert!(diff.contains("Nothing has changed."), "{diff}");
}

#[test]
fn what_reads_one_recording_reads_all_nodes_as_one() {
    let Some(nodes) = recorded() else { return };
    let place = &nodes.place;
    let lines = place.printed(&["export", "run", "--to", "jsonl"]);
    let records: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let of = |kind: &str, text: &str| {
        let found = records
            .iter()
            .filter(|it| it[0] == kind && it[3].is_string());
        let found = found.filter(|it| {
            it.as_array().is_some_and(|it| {
                it.iter()
                    .any(|field| field.as_str().is_some_and(|field| field.contains(text)))
            })
        });
        found.cloned().collect::<Vec<Value>>()
    };
    // The client is on the first node, and the server on the third.
    let (sent, received) = (of("send", "{fib,"), of("receive", "{fib,"));
    assert_eq!((sent.len(), received.len()), (21, 21));
    for (sent, received) in sent.iter().zip(&received) {
        assert!(
            sent[3].as_str().is_some_and(|pid| pid.starts_with("<1.")),
            "{sent}"
        );
        assert!(
            received[3]
                .as_str()
                .is_some_and(|pid| pid.starts_with("<3.")),
            "{received}"
        );
        assert_eq!(sent[4], received[3], "it goes to who receives it");
        assert!(sent[1].as_u64() < received[1].as_u64(), "{sent} {received}");
    }
    place.printed(&[
        "flamegraph",
        "run",
        "--meanwhile",
        "--min-width",
        "0",
        "-o",
        "waits.svg",
    ]);
    let waits = std::fs::read_to_string(place.file("waits.svg")).expect("it is written");
    assert!(
        waits.contains("(meanwhile in server of two@127.0.0.1)"),
        "the server works for another node"
    );
    let spans = place.printed(&["spans", "run", "--from", "cluster:handle_call/3"]);
    assert!(spans.contains("server of two@127.0.0.1"), "{spans}");
    place.printed(&["html", "run", "-o", "run.html"]);
    place.printed(&["export", "run", "--to", "speedscope", "-o", "run.json"]);
    place.printed(&["export", "run", "--to", "firefox", "-o", "firefox.json"]);
    place.printed(&["histogram", "run", "--of", "message-latency"]);
}

#[test]
fn what_a_folder_cannot_be_is_said_in_one_line() {
    let Some(nodes) = recorded() else { return };
    let place = &nodes.place;
    let refused = |arguments: &[&str], code: i32, part: &str| {
        let output = nodes.beamline(arguments).output().expect("it runs");
        let told = errors(&output);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(part) && told.lines().count() == 1, "{told}");
    };
    let again = command(&["record", "-o", "run"]);
    refused(
        &again,
        1,
        "the folder has recordings already (one@127.0.0.1.stream)",
    );
    let flight = command(&["record", "-o", "other/", "--dump-on", "exit:_"]);
    refused(&flight, 2, "--dump-on keeps files of events");
    std::fs::create_dir(place.file("empty")).expect("writable");
    refused(&["report", "empty"], 1, "a folder without recordings");
}

#[test]
fn nothing_is_recorded_of_signals_that_nobody_asked_for() {
    let Some(nodes) = Nodes::new("cluster", "cluster") else {
        return;
    };
    let record = ["record", "-o", "a.stream", "--events", "scheduling"];
    let output = nodes.beamline(&command(&record)).output();
    assert!(output.expect("it runs").status.success());
    let lines = nodes
        .place
        .printed(&["export", "a.stream", "--to", "jsonl"]);
    let has = |kind: &str| {
        lines
            .lines()
            .any(|line| line.starts_with(&format!("[\"{kind}\"")))
    };
    assert!(has("in") && !has("dist_up") && !has("dist_out") && !has("dist_in"));
}

#[test]
fn a_profile_has_a_table_and_a_frame_for_each_node() {
    let Some(nodes) = Nodes::new("cluster", "cluster") else {
        return;
    };
    let profile = [
        "profile",
        "--type",
        "call_count",
        "--pattern",
        "cluster",
        "--by",
        "node",
        "-o",
        "run.blprof",
    ];
    let output = nodes.beamline(&command(&profile)).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let tables = |printed: &str| {
        let titles = printed.lines().filter(|line| line.starts_with("******"));
        let names = titles.filter_map(|title| title.split_whitespace().nth(2));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names
    };
    // The third node is killed, and writes none.
    let expect = ["one@127.0.0.1", "two@127.0.0.1"];
    assert_eq!(tables(&String::from_utf8_lossy(&output.stdout)), expect);
    // What was saved knows the nodes, too.
    let again = nodes
        .place
        .printed(&["report", "run.blprof", "--by", "node"]);
    assert_eq!(tables(&again), expect);
}
