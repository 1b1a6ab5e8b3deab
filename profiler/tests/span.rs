//! The part of a run that is measured: from a function to a function, and between signals.

mod place;

use std::process::Stdio;
use std::time::Duration;

use beamline_formats::ring::Recording;
use place::{Place, errors};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// `early/0` calls `leaf/1` 5 times, each `part/1` 10 times, `late/0` 3 times. The second `part/1` ends by an exception.
const PARTS: &str = "\
-module(parts).
-export([main/1, early/0, part/1, again/1, late/0, leaf/1]).
main([]) ->
    early(),
    part(1),
    catch part(bad),
    late();
main([File]) ->
    early(),
    file:write_file(File, []),
    wait(File ++ \".on\"),
    part(1),
    file:write_file(File ++ \".ran\", []),
    wait(File ++ \".off\"),
    late(),
    io:format(\"went on~n\").
early() -> calls(5).
part(N) -> again(10), 1 = N.
again(0) -> ok;
again(N) -> leaf(N), again(N - 1).
late() -> calls(3).
calls(N) -> [leaf(I) || I <- lists:seq(1, N)].
leaf(N) -> N.
wait(File) -> filelib:is_regular(File) orelse begin timer:sleep(1), wait(File) end.
";

/// Calls of a function in a profile, or in the report of a recording.
fn calls(json: &Value, name: &str) -> u64 {
    let rows = match json["by_own"].as_array() {
        Some(rows) => rows.iter().filter(|row| row["function"] == name),
        None => {
            let (function, _) = name.split_once('/').expect("an arity");
            let (module, function) = function.split_once(':').expect("a module");
            let rows = json["functions"].as_array().expect("a list");
            let row = rows
                .iter()
                .find(|row| row["module"] == module && row["function"] == function);
            return row.map_or(0, |row| row["calls"].as_u64().expect("a number"));
        }
    };
    rows.map(|row| row["calls"].as_u64().expect("a number"))
        .sum()
}

#[test]
fn functions_begin_and_end_what_is_measured() {
    let Some(place) = Place::new("-module(work).\n") else {
        return;
    };
    place.write("parts.erl", PARTS);
    for (options, leaves, parts) in [
        (&[][..], 28, 2),
        (&["--from", "parts:part/1"], 23, 2),
        (&["--until", "parts:part/1"], 15, 1),
        (
            &["--from", "parts:part/1", "--until", "parts:part/1"],
            10,
            1,
        ),
        (&["--from", "parts:late", "--until", "parts:part/1"], 3, 0),
        // A call that calls itself ends when the first one does.
        (
            &["--from", "parts:again/1", "--until", "parts:again/1"],
            10,
            0,
        ),
        (&["--from", "parts:part/1", "--deterministic"], 23, 2),
    ] {
        for kind in ["call_count", "call_time"] {
            let verb = ["profile", "--type", kind, "--json", "a.json"];
            let output = place.run(&[&verb[..], options, &["--", "parts.erl"]].concat());
            assert!(output.status.success(), "{output:?}");
            let json = place.json("a.json");
            let measured = ["parts:leaf/1", "parts:part/1"].map(|name| calls(&json, name));
            assert_eq!(measured, [leaves, parts], "{kind} {options:?}");
        }
        let verb = ["record", "--pattern", "parts", "-o", "a.stream"];
        let output = place.run(&[&verb[..], options, &["--", "parts.erl"]].concat());
        assert!(output.status.success(), "{output:?}");
        let report = place.report("a.stream");
        let measured = ["parts:leaf/1", "parts:part/1"].map(|name| calls(&report, name));
        assert_eq!(measured, [leaves, parts], "{options:?}");
    }
}

#[test]
fn functions_that_do_not_come_are_told() {
    let Some(place) = Place::new("-module(work).\n") else {
        return;
    };
    place.write("parts.erl", PARTS);
    for (options, code, expect) in [
        (&["--from", "parts:prat/1"][..], 2, "similar: parts:part/1"),
        (&["--until", "parts:prat/1"], 2, "similar: parts:part/1"),
        (
            &["--from", "lists:nth/2"],
            0,
            "no function that lists:nth/2 matches was called",
        ),
        (&["--from", "a:b/c"], 2, "the arity 'c'"),
        (&["--from", "a", "--delay", "1s"], 2, "cannot be used with"),
        (
            &["--by-signal", "--deterministic"],
            2,
            "use --from and --until",
        ),
    ] {
        let output = place.run(&[&["profile"], options, &["--", "parts.erl"]].concat());
        let told = errors(&output);
        assert_eq!(output.status.code(), Some(code), "{options:?} {told}");
        assert!(told.contains(expect), "{options:?} {told}");
    }
}

#[test]
fn signals_begin_and_end_what_is_measured() {
    let Some(place) = Place::new("-module(work).\n") else {
        return;
    };
    place.write("parts.erl", PARTS);
    let wait_for = |name: &str| {
        while !place.file(name).exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    for (verb, mark) in [
        (&["profile", "--json", "a.json"][..], "p"),
        (
            &[
                "record",
                "--pattern",
                "parts",
                "-o",
                "a.ring",
                "--ring",
                "1MiB",
            ],
            "r",
        ),
    ] {
        let words = [verb, &["--by-signal", "--", "parts.erl", mark]].concat();
        let child = place.beamline(&words).stdout(Stdio::piped()).spawn();
        let child = child.expect("it starts");
        let signal = || kill_process(Pid::from_child(&child), Signal::USR2).expect("it runs");
        wait_for(mark);
        signal();
        // The emulator looks every two milliseconds.
        std::thread::sleep(Duration::from_secs(1));
        place.write(&format!("{mark}.on"), "");
        wait_for(&format!("{mark}.ran"));
        signal();
        std::thread::sleep(Duration::from_secs(1));
        place.write(&format!("{mark}.off"), "");
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).starts_with("went on\n"));
        let json = match mark {
            "p" => place.json("a.json"),
            _ => place.report("a.ring"),
        };
        assert_eq!(calls(&json, "parts:leaf/1"), 10, "{verb:?}");
    }
}

/// A shell's command with an emulator in the background, which has called `early/0` when `then` runs.
fn behind(place: &Place, then: &str) -> String {
    place.write("parts.erl", PARTS);
    place.printed(&["run", "--", "erlc", "parts.erl"]);
    let program = "erl -noshell -eval 'parts:main([\"there\"])' > out 2>&1 & echo $! > pid";
    let wait = "while [ ! -e there ]; do sleep 0.01; done";
    format!("{program}; {wait}; {then}")
}

#[test]
fn who_outlives_the_command_has_a_profile_up_to_its_end() {
    let Some(place) = Place::new("-module(work).\n") else {
        return;
    };
    let command = behind(&place, "true");
    let profile = ["profile", "--json", "a.json", "--pattern", "parts", "--"];
    let output = place.run(&[&profile[..], &["sh", "-c", &command]].concat());
    assert!(output.status.success(), "{output:?}");
    let pid = std::fs::read_to_string(place.file("pid")).expect("it runs");
    let told = errors(&output);
    let line = format!(
        "process {} goes on: the profile has what it did until the command ended; ",
        pid.trim()
    );
    assert!(told.contains(&line), "{told}");
    assert_eq!(calls(&place.json("a.json"), "parts:leaf/1"), 5);
    // It goes on without breakpoints.
    place.write("there.on", "");
    place.write("there.off", "");
    let pid = pid
        .trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .expect("a number");
    while !std::fs::read_to_string(place.file("out"))
        .expect("a file")
        .contains("went on")
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    kill_process(pid, Signal::KILL).expect("it runs");
}

#[test]
fn who_outlives_the_command_has_a_recording_up_to_its_end() {
    let Some(place) = Place::new("-module(work).\n") else {
        return;
    };
    let command = behind(&place, "true");
    let record = ["record", "-o", "a.stream", "--pattern", "parts", "--"];
    let output = place.run(&[&record[..], &["sh", "-c", &command]].concat());
    assert!(output.status.success(), "{output:?}");
    let pid = std::fs::read_to_string(place.file("pid")).expect("it runs");
    let line = format!(
        "process {} goes on: the recording has what it did until the command ended; ",
        pid.trim()
    );
    let told = errors(&output);
    assert!(told.contains(&line), "{told}");
    let recording = Recording::open(&place.file("a.stream")).expect("a recording");
    let lost = recording.tally().expect("readable").lost;
    assert!(recording.has_ended() && lost.is_none(), "{lost:?}");
    assert_eq!(calls(&place.report("a.stream"), "parts:leaf/1"), 5);
    let pid = pid.trim().parse().ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a number"), Signal::KILL).expect("it runs");
}

/// The command, which is `erl` itself, ends before the emulator has booted.
#[test]
fn who_starts_in_the_background_is_named() {
    let Some(place) = Place::new("-module(work).\n") else {
        return;
    };
    let program = "file:write_file(\"new\", os:getpid()), file:rename(\"new\", \"pid\")";
    let profile = ["profile", "--json", "a.json", "--pattern", "lists", "--"];
    let command = ["erl", "-detached", "-noinput", "-eval", program];
    let output = place.run(&[&profile[..], &command].concat());
    let pid = loop {
        match std::fs::read_to_string(place.file("pid")) {
            Ok(pid) => break pid,
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let number = pid.parse().ok().and_then(Pid::from_raw);
    kill_process(number.expect("a number"), Signal::KILL).expect("it runs");
    let told = errors(&output);
    let line =
        format!("process {pid} goes on: the profile has what it did until the command ended; ");
    assert!(told.contains(&line), "{told}");
    assert!(place.file("a.json").exists());
}

#[test]
fn who_is_killed_before_it_writes_its_profile_is_named() {
    let Some(place) = Place::new("-module(work).\n") else {
        return;
    };
    let then = "kill -9 $!; exec erl -noshell -eval 'parts:early(), halt()'";
    let command = behind(&place, then);
    let profile = ["profile", "--json", "a.json", "--pattern", "parts", "--"];
    let output = place.run(&[&profile[..], &["sh", "-c", &command]].concat());
    assert!(output.status.success(), "{output:?}");
    let pid = std::fs::read_to_string(place.file("pid")).expect("it ran");
    let line = format!(
        "process {} ended without writing its profile: what it did is missing\n",
        pid.trim()
    );
    let told = errors(&output);
    assert!(told.contains(&line), "{told}");
    assert_eq!(calls(&place.json("a.json"), "parts:leaf/1"), 5);
}
