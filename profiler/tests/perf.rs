//! `--perf`: the profiler `perf` of Linux shows Erlang functions.

mod place;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use beamline_needs::{Need, skipped};
use place::{Place, errors};

/// Spends its time in one function.
const WORK: &str = "\
-module(work).
-export([main/1, 'the fib'/1]).
main(_) -> io:format(\"~p~n\", ['the fib'(27)]).
'the fib'(N) when N < 2 -> N;
'the fib'(N) -> 'the fib'(N - 1) + 'the fib'(N - 2).
";

const FIB: &str = "work:'the fib'/1";

/// The one file whose name begins and ends so.
fn file(place: &Place, begin: &str, end: &str) -> PathBuf {
    let all = fs::read_dir(place.file(".")).expect("a folder").flatten();
    let mut found = all.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(begin) && name.ends_with(end))
    });
    let one = found.next().expect("a file");
    assert_eq!(found.next(), None);
    one
}

/// Runs the program with this option of `beamline run`, and these flags of the emulator.
fn run(place: &Place, options: &[&str], flags: &[&str]) -> String {
    place.printed(&["run", "--", "erlc", "work.erl"]);
    let erl = ["--", "erl", "+JPperfdirectory", "."];
    let main = ["-noshell", "-eval", "work:main(x), halt()."];
    let all = [&["run"], options, &erl[..], flags, &main[..]].concat();
    let output = place.run(&all);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"196418\n");
    errors(&output)
}

#[test]
fn a_map_names_functions_and_stubs() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    assert_eq!(run(&place, &["--engine", "jit"], &["+JPperf", "true"]), "");
    let map = fs::read_to_string(file(&place, "perf-", ".map")).expect("text");
    let mut all: Vec<(u64, u64, &str)> = Vec::new();
    for line in map.lines() {
        let mut words = line.splitn(3, ' ');
        let mut number = || u64::from_str_radix(words.next().unwrap(), 16).unwrap();
        let (start, size) = (number(), number());
        all.push((start, size, words.next().unwrap()));
    }
    for wanted in [
        &format!("${FIB}"),
        "$global::collect",
        "$global::CallBif",
        "$lists:reverse/1",
    ] {
        let found = all.iter().filter(|(_, _, name)| *name == wanted);
        assert_eq!(found.count(), 1, "{wanted}");
    }
    // No code has been unloaded: nothing is twice.
    all.sort_unstable();
    for two in all.windows(2) {
        assert!(two[0].0 + two[0].1 <= two[1].0, "{two:x?}");
    }
}

#[test]
fn a_dump_has_the_code_of_functions() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let options = ["--engine", "jit", "--perf", "jitdump"];
    assert_eq!(run(&place, &options, &[]), "");
    let dump = fs::read(file(&place, "jit-", ".dump")).expect("a file");
    let u32_at = |at: usize| u32::from_ne_bytes(dump[at..at + 4].try_into().unwrap()) as usize;
    let mut names = Vec::new();
    let mut at = u32_at(8);
    while at < dump.len() {
        let (id, size) = (u32_at(at), u32_at(at + 4));
        if id == 0 {
            let name = dump[at + 56..].split(|&byte| byte == 0).next().unwrap();
            assert_eq!(size, 56 + name.len() + 1 + u32_at(at + 40), "{name:?}");
            names.push(String::from_utf8_lossy(name).into_owned());
        }
        at += size;
    }
    assert_eq!(at, dump.len());
    for wanted in [FIB, "global::collect", "lists:reverse/1"] {
        assert!(names.iter().any(|name| name == wanted), "{wanted}");
    }
}

#[test]
fn where_code_is_interpreted_there_is_nothing_to_tell() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let told = "beamline: code is interpreted, so there is nothing to tell perf of; --engine jit compiles it\n";
    let interpreter = ["--engine", "interpreter"];
    assert_eq!(run(&place, &interpreter, &["+JPperf", "true"]), told);
    let options = [&interpreter[..], &["--perf", "map"]].concat();
    assert_eq!(run(&place, &options, &[]), told);
    let written = fs::read_dir(place.file(".")).expect("a folder").flatten();
    let mut names = written.map(|entry| entry.file_name().into_string().unwrap());
    assert!(names.all(|name| name.starts_with("work.")));
}

#[test]
fn frame_pointers_are_refused() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let output = place.run(&["run", "--", "erl", "+JPperf", "fp", "-noshell"]);
    assert_eq!(output.status.code(), Some(1));
    let wanted = "beamline: +JPperf fp is not supported: compiled code keeps no frame pointers\n";
    assert_eq!(errors(&output), wanted);
}

/// Runs `perf`; gives what it prints, if all goes well.
fn perf(place: &Place, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("perf");
    command.args(arguments).current_dir(place.file("."));
    // What it finds out about programs stays in the folder.
    command.env("HOME", place.file(".")).stdin(Stdio::null());
    let output = command.output().ok()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(printed)
}

/// Has `perf` record the program, with this option; the number of the process that has most samples. None where `perf`
/// does not record.
fn recorded(place: &Place, what: &str) -> Option<String> {
    place.printed(&["run", "--", "erlc", "work.erl"]);
    let record = ["record", "-q", "-k", "mono", "-e", "cpu-clock", "-o"];
    if perf(place, &[&record[..], &["probe.data", "true"]].concat()).is_none() {
        skipped(Need::Perf, "perf records nothing here");
        return None;
    }
    let beamline = env!("CARGO_BIN_EXE_beamline");
    let run = [beamline, "run", "--engine", "jit", "--perf", what, "--"];
    let erl = ["erl", "-noshell", "-eval", "work:main(x), halt()."];
    let all = [&record[..], &["run.data"], &run[..], &erl[..]].concat();
    perf(place, &all).expect("perf records");
    let pids = perf(place, &["script", "-i", "run.data", "-F", "pid"]).expect("samples");
    let mut pids: Vec<&str> = pids.split_whitespace().collect();
    pids.sort_unstable();
    let runs = pids.chunk_by(|one, other| one == other);
    let most = runs.max_by_key(|run| run.len()).expect("samples");
    Some(most[0].to_owned())
}

#[test]
fn perf_shows_functions_of_a_map() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let Some(pid) = recorded(&place, "map") else {
        return;
    };
    let script = ["script", "-i", "run.data", "-F", "ip,sym"];
    let shown = perf(&place, &script).expect("samples");
    fs::remove_file(format!("/tmp/perf-{pid}.map")).expect("the map was written");
    assert!(shown.contains(&format!("${FIB}")), "{shown}");
}

#[test]
fn perf_shows_functions_of_a_dump() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let Some(pid) = recorded(&place, "jitdump") else {
        return;
    };
    // It writes a file for each function beside the dump.
    let injected = perf(
        &place,
        &["inject", "--jit", "-i", "run.data", "-o", "in.data"],
    );
    let script = ["script", "-i", "in.data", "-F", "ip,sym"];
    let shown = perf(&place, &script);
    fs::remove_file(format!("/tmp/jit-{pid}.dump")).expect("the dump was written");
    for entry in fs::read_dir("/tmp").expect("a folder").flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        if name.starts_with(&format!("jitted-{pid}-")) {
            fs::remove_file(entry.path()).expect("a file of perf");
        }
    }
    assert!(injected.is_some());
    let shown = shown.expect("samples");
    assert!(shown.contains(FIB), "{shown}");
}
