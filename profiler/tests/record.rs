//! `beamline record` and `beamline report` on programs that run on OTP's libraries.

mod place;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use beamline_formats::ring::{Event, NameId, Recording, Why};
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
        (&["--stream", "--ring", "256KiB"], "a.stream"),
    ] {
        let mut arguments = vec!["record", "--pattern", "work", "-o", name];
        arguments.extend(options);
        arguments.extend(["--", "work.erl"]);
        let output = place.run(&arguments);
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("610"));
        let report = place.report(name);
        assert_eq!(calls(&report, "work:fib/1"), Some(1973 + 177), "{name}");
        assert_eq!(report["losses"], Value::Array(Vec::new()));
        assert_eq!(report["has_ended"], Value::Bool(true));
        assert!(!place.file("a.stream.part").exists());
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
    let serials: Vec<_> = values.iter().filter_map(|v| v["serial"].as_u64()).collect();
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
    let arguments = ["-o", "k.ring", "--", "work.erl", "crash", "k.ring-2"];
    let output = place.run(&[&options[..], &arguments].concat());
    assert!(output.status.success(), "{output:?}");
    for name in ["k.ring", "k.ring-2"] {
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
    for (name, why) in [("s.ring", Why::Signal), ("s.ring-2", Why::Killed)] {
        let recording = Recording::open(&place.file(name)).expect("a recording");
        assert_eq!(recording.kept().map(|kept| kept.why), Some(why), "{name}");
    }
    let recording = Recording::open(&place.file("s.ring-2")).expect("a recording");
    assert!(check_calls(&recording) > 0);
}

#[test]
fn turns_are_counted() {
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
    let (run, turns) = (clock(&counters["run"]), clock(&counters["turns"]));
    assert!(run > turns && turns > 0, "{counters}");
    let rows = counters["by_path"].as_array().expect("a list");
    let paths: u64 = rows.iter().map(|row| clock(&row["counted"])).sum();
    assert!(0 < paths && paths <= turns, "{counters}");
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
    let expect = match text.lines().count() {
        0 => ["instructions", "cycles", "cache-misses"],
        _ => ["task-clock", "page-faults", "context-switches"],
    };
    assert_eq!(*names, Value::from(expect.to_vec()), "{text}");
    assert!(
        text.is_empty() || text.contains("are counted instead\n"),
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
        &["record", "-o", "h.ring"][..],
        &["profile", "--type", "call_count"],
        &["profile", "--type", "call_time"],
    ] {
        let output = place.run(&[command, &patterns, &["--", "work.erl"]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let nothing = "is no function of a module that was loaded; near it";
        let expect = format!(
            "beamline: work:fob/1 {nothing}: work:fib/1\nbeamline: no function of work:ever was called\n"
        );
        assert_eq!(errors(&output), expect);
    }
}

#[test]
fn what_cannot_be_recorded_runs_all_the_same() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let halt = ["--", "erl", "-noshell", "-eval", "halt(3)."];
    for arguments in [
        &["record", "-o", "no/such/folder"][..],
        &["record", "--ring", "1048576TiB", "-o", "c.ring"],
    ] {
        let output = place.run(&[arguments, &halt].concat());
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(errors(&output).contains("the program runs and is not recorded"));
        assert!(!place.file("c.ring").exists());
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
fn a_full_disk_and_a_read_only_folder_stop_no_program() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    fs::create_dir(place.file("small")).expect("writable");
    if run_in_small(&place, "ro", &["true"]).is_none_or(|output| !output.status.success()) {
        println!("skipped: nothing can be mounted here");
        return;
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
        assert_eq!(output.status.code(), Some(3), "{mounted} {option}: {text}");
        let is_said =
            text.contains(expect) && text.contains("the program runs and is not recorded");
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
        (&["--when-full", "wait"], "needs --stream"),
        (&["--dump-on", "SIGUSR1", "--stream"], "exclude each other"),
        (
            &["--dump-on", "long_gc", "--when-full", "stop"],
            "which keeps the newest",
        ),
        (&["--dump-on", "rain"], "there are long_gc, "),
        (&["--keep", "3s"], "--dump-on"),
        (&["--counters", "heat"], "there are instructions, "),
        (&["--counters", "cycles,cycles"], "cycles twice"),
        (&["--events", "speed"], "'speed' is no kind of event"),
        (&["--ring", "much"], "whole number"),
        (&["--duration", "3"], "not a unit of time"),
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
    let options = ["record", "--events", "processes", "--duration", "50ms"];
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
    let arguments = ["record", "-o", "e.ring", "--", "work.erl", "ever"];
    let mut first = place.beamline(&arguments);
    let mut first = first.spawn().expect("it starts");
    wait_for(&place.file("e.ring"));
    let output = place.run(&["record", "-o", "e.ring", "--", "work.erl"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(errors(&output).contains("another recording"), "{output:?}");
    kill_emulator(&place.file("e.ring"));
    first.wait().expect("it ends");
}

/// Waits until a recording is there.
fn wait_for(file: &Path) {
    while Recording::open(file).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn kill_emulator(file: &Path) {
    let pid = Recording::open(file).expect("a recording").os_pid();
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let pid = pid.expect("a process number");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
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

#[test]
fn who_is_killed_leaves_a_recording() {
    let Some(place) = Place::new(WORK) else {
        return;
    };
    let mut records = 0;
    for round in 0..6_u64 {
        let name = ["f.ring", "f.stream"][round as usize % 2];
        let mut arguments = vec!["record", "--events", "calls,returns", "--pattern", "work"];
        arguments.extend(["--ring", "1MiB", "-o", name]);
        if name == "f.stream" {
            arguments.push("--stream");
        }
        arguments.extend(["--", "work.erl", "ever"]);
        let _ = fs::remove_file(place.file(name));
        let mut command = place.beamline(&arguments);
        let mut running = command.spawn().expect("it starts");
        let ring = if name == "f.stream" {
            "f.stream.part"
        } else {
            name
        };
        wait_for(&place.file(ring));
        std::thread::sleep(std::time::Duration::from_millis(300 + 37 * round));
        kill_emulator(&place.file(ring));
        running.wait().expect("it ends");
        let recording = Recording::open(&place.file(name)).expect("a recording");
        assert!(!recording.has_ended());
        records += check_calls(&recording);
    }
    assert!(records > 1000, "{records}");
}
