//! Programs that are asked to end while they are measured.

mod place;

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use beamline_formats::ring::{Recording, part_of};
use rustix::process::{Pid, Signal, kill_process};

use place::{Place, WORK};

/// Writes a file when it runs, and goes on.
const GOES_ON: &str = "file:write_file(\"runs\", []), work:ever(0).";

/// As [`GOES_ON`], without a process that handles the request to end.
const IS_DEAF: &str =
    "sys:suspend(erl_signal_server), file:write_file(\"runs\", []), work:ever(0).";

fn start(place: &Place, command: &[&str], program: &str) -> Child {
    let _ = std::fs::remove_file(place.file("runs"));
    let erl = ["--", "erl", "-noshell", "-eval", program];
    let mut started = place.beamline(&[command, &erl].concat());
    let started = started
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let started = started.expect("it starts");
    while !place.file("runs").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    started
}

/// A place with the program, compiled.
fn work() -> Option<Place> {
    let place = Place::new(WORK)?;
    place.printed(&["run", "--", "erlc", "work.erl"]);
    Some(place)
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).expect("it runs");
}

#[test]
fn what_was_measured_is_there_after_an_interrupt() {
    let Some(place) = work() else { return };
    for (command, expect) in [
        (&["profile", "--scope", "all"][..], "work:fib/1"),
        (&["profile", "--type", "call_time"], "work:fib/1"),
        (&["record", "-o", "a.stream"], "nothing lost; next: "),
        (&["record", "-o", "a.ring", "--ring", "1MiB"], "; next: "),
    ] {
        let child = start(&place, command, GOES_ON);
        interrupt(&child);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        let printed = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&printed);
        assert!(text.contains(expect), "{text}");
    }
    for name in ["a.stream", "a.ring"] {
        assert!(Recording::open(&place.file(name)).is_ok_and(|read| read.has_ended()));
    }
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let Some(place) = work() else { return };
    let child = start(&place, &["record", "-o", "b.stream"], IS_DEAF);
    interrupt(&child);
    // The emulator must have the first signal before the second is sent: pending signals of one number merge.
    let os_pid = Recording::open(&part_of(&place.file("b.stream")))
        .expect("a ring")
        .os_pid();
    let is_told = || {
        let status = std::fs::read_to_string(format!("/proc/{os_pid}/status"));
        let status = status.expect("it runs");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        caught.expect("a set of signals") & 2 == 0
    };
    while !is_told() {
        std::thread::sleep(Duration::from_millis(1));
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    let signal = output.status.signal().or(output.status.code());
    assert!(!output.status.success() && signal.is_some(), "{output:?}");
    let recording = Recording::open(&place.file("b.stream")).expect("a recording");
    assert!(!recording.has_ended() && recording.tally().expect("readable").lost.is_none());
}

#[test]
fn a_run_that_sigterm_ended_is_replayed_to_its_end() {
    let Some(place) = work() else { return };
    let order = ["record", "--events", "order", "-o", "a.stream"];
    let child = start(
        &place,
        &order,
        "io:format(\"~w~n\", [self()]), file:write_file(\"runs\", []).",
    );
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let recorded = child.wait_with_output().expect("it ends");
    let printed = String::from_utf8_lossy(&recorded.stdout);
    assert!(printed.contains("SIGTERM received"), "{printed}");
    let replayed = place.run(&["replay", "a.stream"]);
    assert_eq!(replayed.status, recorded.status, "{replayed:?}");
    assert_eq!(String::from_utf8_lossy(&replayed.stdout), printed);
}

#[test]
fn sigterm_ends_a_replay_at_once() {
    let Some(place) = work() else { return };
    place.write("nothing.log", "{p0, []}\n");
    let child = start(&place, &["replay", "nothing.log"], GOES_ON);
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(
        output.status.signal(),
        Some(Signal::TERM.as_raw()),
        "{output:?}"
    );
}
