//! `beamline record` and `beamline report` on programs that run on OTP's libraries.

mod place;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use beamline_formats::ring::{Event, NameId, Recording, Why, part_of};
use beamline_needs::{Need, skipped};
use place::{Place, WORK, errors};
use serde_json::Value;

/// Calls of a function, as the report has them.
fn calls(report: &Value, function: &str) -> Option<u64> {
    let rows = report["by_own"].as_array()?;
    let row = rows.iter().find(|row| row["function"] == function)?;
    row["calls"].as_u64()
}

#[test]
fn a_recording_has_every_call() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    for (options, name) in [
        (&["--ring", "64MiB"][..], "a.ring"),
        (&["--stream", "--ring", "256KiB"], "b.stream"),
        (&[], "a.stream"),
    ] {
        let mut arguments = vec!["record", "--pattern", "work", "-o", name];
        arguments.extend(options);
        arguments.extend(["--", "work.erl"]);
        let output = place.run(&arguments);
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("610"));
        let told = errors(&output);
        assert_eq!(told.lines().count(), 1, "{told}");
        let expect = format!(" records, nothing lost; next: beamline report {name}\n");
        assert!(
            told.starts_with(&format!("beamline: {name}: ")) && told.ends_with(&expect),
            "{told}"
        );
        let report = place.report(name);
        assert_eq!(calls(&report, "work:fib/1"), Some(1973 + 177), "{name}");
        assert_eq!(report["losses"], Value::Array(Vec::new()));
        assert_eq!(report["has_ended"], Value::Bool(true));
        assert!(!place.file(&format!("{name}.part")).exists());
    }
    let output = place.run(&["flamegraph", "a.stream", "--width", "calls", "-o", "b.svg"]);
    assert!(output.status.success(), "{output:?}");
    let svg = fs::read_to_string(place.file("b.svg")).expect("it was drawn");
    assert!(svg.contains("work:fib/1 (1,973 calls"));
    let output = place.run(&["report", "a.ring", "--flamegraph", "a.svg"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("Nothing was lost.\n"));
    let svg = fs::read_to_string(place.file("a.svg")).expect("it was drawn");
    assert!(svg.contains("work:fib/1"));
}

#[test]
fn a_small_ring_says_what_it_lost() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    for (when_full, expect) in [
        ("overwrite", "overwritten by newer records"),
        ("stop", "for which there was no room"),
    ] {
        let arguments = ["record", "--ring", "64KiB", "--when-full", when_full];
        let output = place.run(&[&arguments[..], &["-o", "b.ring", "--", "work.erl"]].concat());
        assert!(output.status.success(), "{output:?}");
        assert!(errors(&output).contains(" records, LOST: "), "{output:?}");
        let output = place.run(&["report", "b.ring"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let first = text.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("LOST: ") && first.contains(expect),
            "{first}"
        );
    }
}

#[test]
fn system_events_are_recorded() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let program = "P = spawn(fun() -> receive go -> ok end, [receive m -> ok end || _ <- lists:seq(1, 50)] end),
        Ref = monitor(process, P), [P ! m || _ <- lists:seq(1, 50)], P ! go,
        receive {'DOWN', Ref, _, _, _} -> halt() end.";
    let mut arguments = vec![
        "record",
        "--system",
        "long_message_queue=1:40",
        "--events",
        "gc",
    ];
    arguments.extend(["-o", "g.ring", "--", "erl", "-noshell", "-eval", program]);
    let output = place.run(&arguments);
    assert!(output.status.success(), "{output:?}");
    let report = place.report("g.ring");
    let records = report["records"].as_array().expect("a list");
    let of = |kind: &str| {
        let row = records.iter().find(|row| row[0] == kind);
        row.and_then(|row| row[1].as_u64())
    };
    assert_eq!((of("long_message_queue"), of("call")), (Some(2), None));
    assert_eq!(report["system"][0]["what"], "messages in the queue");
}

#[test]
fn tokens_are_recorded() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let arguments = ["record", "--events", "seq", "-o", "t.ring", "--"];
    let output = place.run(&[&arguments[..], &["work.erl", "tokens"]].concat());
    assert!(output.status.success(), "{output:?}");
    let lines = place.printed(&["export", "t.ring", "--to", "jsonl"]);
    let values = lines.lines().map(serde_json::from_str);
    let values: Vec<Value> = values.collect::<Result<_, _>>().expect("JSON");
    let columns = &values[0]["columns"];
    // The values of a line, by their columns.
    let named = |line: &Value| -> Option<BTreeMap<String, Value>> {
        let names = columns[line[0].as_str()?].as_array()?.iter();
        let names = names.filter_map(|name| name.as_str().map(str::to_owned));
        Some(names.zip(line.as_array()?.iter().cloned()).collect())
    };
    let values: Vec<BTreeMap<String, Value>> = values.iter().filter_map(named).collect();
    let seen = |event: &'static str| values.iter().filter(move |value| value["event"] == event);
    let (sent, received) = (seen("seq_send"), seen("seq_receive"));
    let pairs: Vec<_> = sent.zip(received).collect();
    assert_eq!(pairs.len(), 2, "{lines}");
    for (sent, received) in pairs {
        assert_eq!(sent["label"], "{order,7}");
        for key in ["label", "last", "serial", "text"] {
            assert_eq!(sent[key], received[key], "{lines}");
        }
        let (from, to) = (&received["from"], &sent["to"]);
        assert_eq!((&sent["who"], &received["who"]), (from, to), "{lines}");
    }
    let printed: Vec<_> = seen("seq_print").collect();
    assert_eq!(printed.len(), 1, "{lines}");
    assert_eq!(printed[0]["text"], "here");
    let serials: Vec<_> = values
        .iter()
        .filter_map(|v| v.get("serial")?.as_u64())
        .collect();
    assert_eq!(serials, [1, 1, 2, 3, 3], "{lines}");
}

/// What a report says of a recording that was kept.
fn kept(place: &Place, name: &str) -> String {
    let text = place.printed(&["report", name]);
    let line = text.lines().nth(1).unwrap_or_default();
    assert!(text.starts_with("Nothing was lost.\n"), "{text}");
    line.to_owned()
}

#[test]
fn a_flight_recorder_keeps_what_was_before_something() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let options = [
        "record",
        "--dump-on",
        "exit:oops",
        "--pattern",
        "work",
        "--keep-after",
        "0s",
    ];
    let arguments = ["-o", "k.ring", "--", "work.erl", "crash", "k-2.ring"];
    let output = place.run(&[&options[..], &arguments].concat());
    assert!(output.status.success(), "{output:?}");
    let told = errors(&output);
    for name in ["k.ring", "k-2.ring"] {
        assert!(
            told.contains(&format!("next: beamline report {name}\n")),
            "{told}"
        );
        let line = kept(&place, name);
        assert!(line.starts_with("Kept around exit of <0."), "{line}");
        assert!(
            calls(&place.report(name), "work:fib/1") >= Some(15),
            "{name}"
        );
    }
    assert!(!place.file("k.ring.part").exists());
    let none = ["record", "--dump-on", "long_gc", "--system", "long_gc=1h"];
    let output = place.run(&[&none[..], &["-o", "n.ring", "--", "work.erl"]].concat());
    assert!(output.status.success(), "{output:?}");
    assert!(
        errors(&output).contains("no recording was written"),
        "{output:?}"
    );
    assert!(!place.file("n.ring").exists() && !place.file("n.ring.part").exists());
}

#[test]
fn a_flight_recorder_keeps_the_end_of_who_is_killed() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let options = [
        "record",
        "--dump-on",
        "SIGUSR1",
        "--pattern",
        "work",
        "--keep-after",
        "0s",
    ];
    let arguments = ["-o", "s.ring", "--", "work.erl", "ever"];
    let mut command = place.beamline(&[&options[..], &arguments].concat());
    let mut running = command.spawn().expect("it starts");
    let is_called = |ring: Recording| ring.names().functions().any(|f| f.name == "fib");
    while !Recording::open(&place.file("s.ring.part")).is_ok_and(is_called) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let pid = rustix::process::Pid::from_child(&running);
    rustix::process::kill_process(pid, rustix::process::Signal::USR1).expect("it runs");
    // What is kept is whole when the next thing can be kept.
    while Recording::open(&place.file("s.ring")).map_or(true, |kept| kept.kept().is_none()) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    kill_emulator(&place.file("s.ring.part"));
    running.wait().expect("it ends");
    for (name, why) in [("s.ring", Why::Signal), ("s-2.ring", Why::Killed)] {
        let recording = Recording::open(&place.file(name)).expect("a recording");
        assert_eq!(recording.kept().map(|kept| kept.why), Some(why), "{name}");
    }
    let recording = Recording::open(&place.file("s-2.ring")).expect("a recording");
    assert!(check_calls(&recording) > 0);
}

#[test]
fn slices_are_counted() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let options = [
        "record",
        "--counters",
        "task-clock,page-faults",
        "--pattern",
        "work",
    ];
    let output = place.run(&[&options[..], &["-o", "u.ring", "--", "work.erl"]].concat());
    assert!(output.status.success(), "{output:?}");
    let report = place.report("u.ring");
    let counters = &report["counters"];
    assert_eq!(counters["names"].as_array().map(Vec::len), Some(2));
    let clock = |counted: &Value| counted[0].as_u64().expect("a number");
    let (run, slices) = (clock(&counters["run"]), clock(&counters["slices"]));
    assert!(run > slices && slices > 0, "{counters}");
    let rows = counters["by_path"].as_array().expect("a list");
    let paths: u64 = rows.iter().map(|row| clock(&row["counted"])).sum();
    assert!(0 < paths && paths <= slices, "{counters}");
    let path = "work:main/1;work:fib/1";
    assert!(rows.iter().any(|row| row["what"] == path), "{counters}");
    let text = place.printed(&["report", "u.ring"]);
    assert!(text.contains("TASK-CLOCK      PAGE-FAULTS"), "{text}");
}

#[test]
fn counters_are_there_on_every_machine() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let options = ["record", "--counters", "instructions,cycles,cache-misses"];
    let output = place.run(&[&options[..], &["-o", "v.ring", "--", "work.erl"]].concat());
    assert!(output.status.success(), "{output:?}");
    let names = &place.report("v.ring")["counters"]["names"];
    let text = errors(&output);
    let counted: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("next: "))
        .collect();
    let text = counted.join("\n");
    let expect = match counted.len() {
        0 => ["instructions", "cycles", "cache-misses"],
        _ => ["task-clock", "page-faults", "context-switches"],
    };
    assert_eq!(*names, Value::from(expect.to_vec()), "{text}");
    assert!(
        text.is_empty() || text.ends_with("are counted instead"),
        "{text}"
    );
}

#[test]
fn a_pattern_of_nothing_is_named() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let patterns = [
        "--pattern",
        "work:fob/1",
        "--pattern",
        "work:ever",
        "--pattern",
        "work:fib",
    ];
    for command in [
        &["record", "-o", "h.stream"][..],
        &["profile", "--type", "call_count"],
        &["profile", "--type", "call_time"],
    ] {
        let output = place.run(&[command, &patterns, &["--", "work.erl"]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let nothing = "matches no function of any loaded module; similar";
        let expect = format!(
            "beamline: work:fob/1 {nothing}: work:fib/1\nbeamline: no function that work:ever matches was called\n"
        );
        let told = errors(&output);
        let told: Vec<&str> = told.split_inclusive('\n').collect();
        let told = told.iter().filter(|line| !line.contains("next: beamline"));
        assert_eq!(told.copied().collect::<String>(), expect);
    }
}

#[test]
fn the_exit_code_says_whether_something_was_recorded() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let not_started = "; the program was not started\n";
    let nothing = "nothing was recorded";
    let mark = [
        "erl",
        "-noshell",
        "-eval",
        "file:write_file(\"ran\", []), halt(3).",
    ];
    for (options, command, code, expect, runs) in [
        // A file that cannot be opened.
        (
            &["-o", "no/such/folder"][..],
            &mark[..],
            1,
            not_started,
            false,
        ),
        (&["-o", "no/such/folder/"], &mark, 1, not_started, false),
        (&["-o", "/dev/null"], &mark, 1, not_started, false),
        (
            &["-o", "c.ring", "--ring", "1048576TiB"],
            &mark,
            1,
            not_started,
            false,
        ),
        (&["-o", "/dev/stdout"], &mark, 2, "give a file", false),
        // A program that failed keeps its own code.
        (&["-o", "c.ring"], &mark, 3, " records, ", true),
        (
            &["-o", "c.ring"],
            &["sh", "-c", "exit 4"],
            4,
            nothing,
            false,
        ),
        // One that succeeded does not, if nothing was recorded.
        (&["-o", "c.ring"], &["true"], 1, nothing, false),
        (
            &["-o", "c.ring", "--delay", "1h"],
            &["work.erl"],
            1,
            nothing,
            false,
        ),
        (
            &["-o", "c.ring", "--dump-on", "SIGUSR1"],
            &["true"],
            0,
            "no event",
            false,
        ),
    ] {
        let _ = fs::remove_file(place.file("ran"));
        let output = place.run(&[&["record"], options, &["--"], command].concat());
        let told = errors(&output);
        assert_eq!(output.status.code(), Some(code), "{options:?} {told}");
        // Of a program that failed, nobody need be told that it was not recorded.
        assert!(code == 4 || told.contains(expect), "{options:?} {told}");
        assert_eq!(place.file("ran").exists(), runs, "{options:?}");
        let is_left = |name: &str| place.file(name).exists();
        assert!(!is_left("c.ring.part"), "{options:?}");
        let _ = fs::remove_file(place.file("c.ring"));
    }
}

/// Runs a command where the folder `small` is a file system of its own; none where that cannot be.
fn run_in_small(place: &Place, mounted: &str, command: &[&str]) -> Option<Output> {
    let script = "mount -t tmpfs -o \"$1\" none small || exit 99; shift; exec \"$@\"";
    let mut unshare = Command::new("unshare");
    unshare.args([
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        mounted,
    ]);
    unshare.args(command).current_dir(place.file(""));
    let output = unshare.stdin(Stdio::null()).output();
    output
        .ok()
        .filter(|output| output.status.code() != Some(99))
}

#[test]
fn with_a_full_disk_or_a_read_only_folder_no_program_is_started() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    fs::create_dir(place.file("small")).expect("writable");
    if run_in_small(&place, "ro", &["true"]).is_none_or(|output| !output.status.success()) {
        return skipped(Need::Mount, "nothing can be mounted here");
    }
    for (mounted, option, expect) in [
        ("size=64k", "--ring=1MiB", "No space left on device"),
        ("size=64k", "--stream", "No space left on device"),
        ("ro", "--ring=1MiB", "Read-only file system"),
        ("ro", "--stream", "Read-only file system"),
        ("ro", "--dump-on=SIGUSR1", "Read-only file system"),
    ] {
        let beamline = env!("CARGO_BIN_EXE_beamline");
        let command = [beamline, "record", option, "-o", "small/a.ring", "--"];
        let halt = ["erl", "-noshell", "-eval", "halt(3)."];
        let output = run_in_small(&place, mounted, &[&command[..], &halt].concat());
        let output = output.expect("it was mounted before");
        let text = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{mounted} {option}: {text}");
        let is_said = text.contains(expect) && text.contains("the program was not started");
        assert!(
            is_said && text.lines().count() == 1,
            "{mounted} {option}: {text}"
        );
    }
}

#[test]
fn a_wrong_command_line_is_refused() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    for (options, expect) in [
        (&["--events", "returns"][..], "ask for both"),
        (
            &["--events", "gc", "--pattern", "lists"],
            "add calls to --events",
        ),
        (
            &["--when-full", "wait", "--ring", "1MiB"],
            "excludes --ring",
        ),
        (&["--dump-on", "SIGUSR1", "--stream"], "exclude each other"),
        (
            &["--dump-on", "long_gc", "--when-full", "stop"],
            "which keeps the newest",
        ),
        (&["--dump-on", "rain"], "use long_gc, "),
        (&["--keep", "3s"], "--dump-on"),
        (&["--counters", "heat"], "the counters are instructions, "),
        (&["--counters", "cycles,cycles"], "cycles twice"),
        (&["--events", "speed"], "'speed' is not a group of events"),
        (&["--ring", "much"], "whole number"),
        (&["--duration", "3"], "has no unit"),
        (&["--system", "long_gc"], "whole number"),
        (&["--system", "long_message_queue=9:3"], "two numbers"),
        (&["--system", "heat=3"], "not a system event"),
    ] {
        let mut arguments = vec!["record", "-o", "d.ring"];
        arguments.extend(options);
        arguments.extend(["--", "erl", "-noshell", "-eval", "halt(3)."]);
        let output = place.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(errors(&output).contains(expect), "{output:?}");
        assert!(!place.file("d.ring").exists());
    }
}

#[test]
fn a_recording_ends_and_the_program_goes_on() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let program = "Wait = fun Wait() -> {ok, Page} = file:open(\"w.ring\", [read, raw, binary]),
            {ok, <<_:592/binary, Ended:64/little, _/binary>>} = file:read(Page, 4096), file:close(Page),
            Ended =:= 1 orelse Wait() end,
        Wait(), erlang:display(after_it), halt(4).";
    let options = [
        "record",
        "--ring",
        "1MiB",
        "--events",
        "processes",
        "--duration",
        "50ms",
    ];
    let arguments = ["-o", "w.ring", "--", "erl", "-noshell", "-eval", program];
    let output = place.run(&[&options[..], &arguments].concat());
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("after_it"));
    let recording = Recording::open(&place.file("w.ring")).expect("a recording");
    assert!(recording.has_ended());
    assert!(recording.end_ns() >= Some(50_000_000));
}

#[test]
fn two_recordings_into_one_file_are_refused() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    for (ring, options) in [("e.ring", &["--ring", "1MiB"][..]), ("e.ring.part", &[])] {
        let command = [&["record", "-o", "e.ring"], options, &["--", "work.erl"]].concat();
        let mut first = place.beamline(&[&command[..], &["ever"]].concat());
        let mut first = first.spawn().expect("it starts");
        wait_for(&place.file(ring));
        let output = place.run(&command);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(errors(&output).contains("another recording"), "{output:?}");
        kill_emulator(&place.file(ring));
        first.wait().expect("it ends");
        fs::remove_file(place.file("e.ring")).expect("it is there");
    }
}

/// Waits until a recording is there.
fn wait_for(file: &Path) {
    while Recording::open(file).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Whether a recording that is being made has a call.
fn has_calls(file: &Path) -> bool {
    let recording = Recording::open(file).ok();
    let merged = recording.as_ref().and_then(|of| of.merged().ok());
    merged.is_some_and(|mut merged| {
        std::iter::from_fn(|| {
            merged
                .read()
                .ok()
                .flatten()
                .map(|record| is_call(&record.event))
        })
        .any(|is_call| is_call)
    })
}

fn is_call(event: &Event<'_>) -> bool {
    matches!(event, Event::Call { .. })
}

fn kill_emulator(file: &Path) {
    kill(Recording::open(file).expect("a recording").os_pid());
}

/// Calls and returns of each process are those of `ever`, which calls `fib(5)` again and again.
fn check_calls(recording: &Recording) -> u64 {
    let mut merged = recording.merged().expect("whole");
    let (mut stack, mut records): (Vec<NameId>, u64) = (Vec::new(), 0);
    let names = recording.names();
    let since = recording.whole_since_ns().expect("whole");
    while let Some(record) = merged.read().expect("whole") {
        match record.event {
            _ if record.time_ns < since => continue,
            Event::Call { function } | Event::TailCall { function } => {
                let name = names.function(function).expect("it has a name");
                assert_eq!(name.module, "work");
                if matches!(record.event, Event::Call { .. }) {
                    stack.push(function);
                }
                // `main`, `ever`, and `fib(5)` to `fib(1)`.
                assert!(stack.len() <= 7, "{stack:?}");
            }
            Event::Return { function } => {
                let called = stack.pop();
                assert!(called.is_none_or(|called| called == function));
            }
            _ => continue,
        }
        records += 1;
    }
    records
}

/// What is killed while a program is recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Killed {
    Program,
    Recorder,
    Both,
}

#[test]
fn who_is_killed_leaves_a_recording() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let mut records = 0;
    for (round, (who, options)) in [
        (Killed::Program, &["--ring", "1MiB"][..]),
        (Killed::Both, &["--ring", "1MiB"]),
        (Killed::Program, &["--stream", "--ring", "1MiB"]),
        (Killed::Recorder, &["--stream", "--ring", "1MiB"]),
        (Killed::Both, &["--stream", "--ring", "1MiB"]),
        (Killed::Program, &[]),
        (Killed::Recorder, &[]),
        (Killed::Both, &[]),
        (Killed::Both, &["--dump-on", "SIGUSR1"]),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("f{round}.ring");
        let mut arguments = vec!["record", "--events", "calls,returns", "--pattern", "work"];
        arguments.extend(options);
        arguments.extend(["-o", &name, "--", "work.erl", "ever"]);
        let mut command = place.beamline(&arguments);
        let mut running = command.spawn().expect("it starts");
        let file = place.file(&name);
        let ring = match options {
            ["--ring", ..] => file.clone(),
            _ => part_of(&file),
        };
        wait_for(&ring);
        while !has_calls(&ring) && !has_calls(&file) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // It is killed at another moment of its work in each round.
        std::thread::sleep(std::time::Duration::from_millis(37 * round as u64));
        let killed = Recording::open(&ring).expect("a ring").os_pid();
        if who != Killed::Program {
            running.kill().expect("it runs");
            running.wait().expect("it ends");
        }
        kill(killed);
        running.wait().expect("it ends");
        while who != Killed::Program && Path::new(&format!("/proc/{killed}")).exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let recording = Recording::open(&file).expect("a recording");
        assert!(!recording.has_ended(), "{who:?} {options:?}");
        records += check_calls(&recording);
        let told = place.printed(&["report", &name]);
        let is_stream = matches!(options, ["--stream", ..] | []);
        let is_whole = told.starts_with("Nothing was lost.\n");
        assert!(is_whole || !is_stream, "{who:?} {options:?} {told}");
    }
    assert!(records > 1000, "{records}");
}

fn kill(pid: u64) {
    let pid = i32::try_from(pid).ok();
    let pid = pid.and_then(rustix::process::Pid::from_raw);
    let pid = pid.expect("a process number");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
}

#[test]
fn further_files_are_numbered_and_told() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let program = "os:cmd(\"erl -noshell -eval 'halt().'\"), halt().";
    let command = ["--", "erl", "-noshell", "-eval", program];
    let run = |options: &[&str]| {
        let output = place.run(&[&["record", "-o", "m.stream"], options, &command].concat());
        assert!(output.status.success(), "{output:?}");
        errors(&output)
    };
    place.write("m-2.stream", "mine");
    for options in [&[][..], &["--ring", "1MiB"]] {
        let told = run(options);
        assert_eq!(told.lines().count(), 2, "{told}");
        for name in ["m.stream", "m-3.stream"] {
            assert!(told.contains(&format!("beamline: {name}: ")), "{told}");
            Recording::open(&place.file(name)).expect("a recording");
        }
        assert!(
            !place.file("m-4.stream").exists(),
            "the earlier ones are replaced"
        );
        assert!(!place.file("m.stream.part").exists());
        let kept = fs::read(place.file("m-2.stream")).expect("it stays");
        assert_eq!(kept, b"mine");
    }
}
