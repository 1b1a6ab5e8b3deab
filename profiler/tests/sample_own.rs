//! Samples of Beamline's own runtime, by `--on beamline` and by the number of its process. Where performance events are refused,
//! threads are stopped.

mod library;
mod place;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use beamline_needs::{Need, skipped};
use place::{Place, errors};
use serde_json::Value;

/// `a/1` takes three times as many rounds as `b/1`, both of the same kind. `c/1` calls a BIF by its name and `by_entry/1` one by
/// its entry, which take most of their time; `d/1` collects. `other/1` is of another process. `late` is a module that is loaded
/// when half of the work is done, and takes as many rounds as `e/1`, which runs beside it: a machine may be slower by then.
const PROGRAM: &str = r#"
-module(work).
-export([main/0, ever/0]).

main() ->
    begins(),
    rounds(20, none),
    Forms = [form(Text) || Text <- ["-module(late).", "-export(['f g'/1]).",
        "'f g'(0) -> ok; 'f g'(N) -> X = N * 7 rem 13, 'f g'(N - 1 + X - X)."]],
    {ok, Late, Code} = compile:forms(Forms),
    {module, Late} = code:load_binary(Late, "late.erl", Code),
    rounds(20, Late),
    halt().

ever() ->
    begins(),
    io:format("begins~n"),
    rounds(-1, none).

begins() ->
    register(worker, self()),
    put(list, lists:seq(1, 300)),
    put(live, lists:seq(1, 100000)),
    spawn_link(fun other/0).

form(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Form.

rounds(0, _) -> ok;
rounds(N, Late) ->
    a(3000000),
    b(1000000),
    c(600),
    d(20),
    by_entry(term_to_binary, 600),
    Late =:= none orelse {e(2000000), Late:'f g'(2000000)},
    rounds(N - 1, Late).

a(0) -> ok;
a(N) -> X = N * 7 rem 13, a(N - 1 + X - X).

b(0) -> ok;
b(N) -> X = N * 7 rem 13, b(N - 1 + X - X).

e(0) -> ok;
e(N) -> X = N * 7 rem 13, e(N - 1 + X - X).

c(0) -> ok;
c(N) -> true = is_binary(term_to_binary(get(list))), c(N - 1).

d(0) -> ok;
d(N) -> erlang:garbage_collect(), d(N - 1).

by_entry(_, 0) -> ok;
by_entry(F, N) -> true = is_binary(erlang:F(get(list))), by_entry(F, N - 1).

other() -> other(1).
other(N) -> other(N * 3 rem 7 + 1).
"#;

/// A folder with the program; none where threads cannot be looked at in this way.
fn place_for(way: &str) -> Option<Place> {
    let place = Place::new(PROGRAM)?;
    let allowed = text(&place.run(&["doctor"]));
    if !allowed
        .lines()
        .any(|line| line.starts_with("yes: ") && line.contains(way))
    {
        skipped(Need::Events, &format!("{way} is refused here"));
        return None;
    }
    library::erlc(&place, "work.erl");
    Some(place)
}

/// As [`place_for`], in any way.
fn place() -> Option<Place> {
    place_for("--how")
}

/// The command that runs the program from a function.
fn erl(function: &str) -> [&str; 7] {
    ["erl", "-noshell", "-pa", ".", "-run", "work", function]
}

/// Samples by function: own ones and all.
type Functions = BTreeMap<String, (f64, f64)>;

fn functions(report: &Value) -> Functions {
    let rows = report["functions"].as_array().expect("a list");
    let number = |value: &Value| value.as_f64().expect("a number");
    let row = |row: &Value| {
        let what = row["what"].as_str().expect("a name").to_owned();
        let own = number(&row["samples"]);
        (what, (own, number(&row["total"]["samples"])))
    };
    rows.iter().map(row).collect()
}

/// A report of samples as JSON.
fn report(place: &Place, file: &str) -> Value {
    let output = place.run(&["report", file, "--scope", "all", "--json", "report.json"]);
    assert!(output.status.success(), "{}", errors(&output));
    let json = fs::read_to_string(place.file("report.json")).expect("it was written");
    serde_json::from_str(&json).expect("it is JSON")
}

/// Whether the first of two counts is `part` of both, but for chance: once in 16,000 runs it is farther away.
fn has_share(one: f64, other: f64, part: f64) -> bool {
    let both = one + other;
    let deviation = (part * (1.0 - part) / both).sqrt();
    both > 50.0 && (one / both - part).abs() < 4.0 * deviation
}

fn assert_is_the_program(report: &Value) {
    let all = functions(report);
    let of = |name: &str| all.get(name).copied().unwrap_or((0.0, 0.0));
    let (a, b) = (of("work:a/1").0, of("work:b/1").0);
    assert!(has_share(a, b, 0.75), "{all:?}");
    let late = of("late:'f g'/1").0;
    assert!(has_share(late, of("work:e/1").0, 0.5), "{all:?}");
    // Almost all of the time of their callers.
    let (c, by_entry) = (of("work:c/1"), of("work:by_entry/2"));
    let bif = of("erlang:term_to_binary/1");
    assert!(bif.0 > 50.0, "{all:?}");
    assert!(c.0 + by_entry.0 < bif.0, "{all:?}");
    assert!(has_share(c.1, by_entry.1, 0.5), "{all:?}");
    assert!(of("work:other/1").0 > a, "a process beside it: {all:?}");
    // Stacks are whole: nearly all lead to the first function.
    let worker = of("work:main/0").1;
    let parts = [
        "work:a/1",
        "work:b/1",
        "work:c/1",
        "work:d/1",
        "work:by_entry/2",
    ];
    let parts: f64 = parts.iter().map(|name| of(name).1).sum();
    assert!(worker > 0.9 * parts, "{worker} of {parts}: {all:?}");
    let does = report["does"].as_array().expect("a list");
    let samples = |what: &str| {
        let row = does.iter().find(|row| row["what"] == *what);
        row.map_or(0.0, |row| row["samples"].as_f64().expect("a number"))
    };
    assert!(samples("garbage collections") > 20.0, "{does:?}");
    assert!(samples("Erlang code") > a, "{does:?}");
}

#[test]
fn shares_are_those_of_the_program() {
    for way in ["perf", "stop"] {
        let Some(place) = place_for(&format!("--how {way}")) else {
            continue;
        };
        let options = [
            "sample",
            "--on",
            "beamline",
            "--rate",
            "997",
            "-o",
            "x.samples",
        ];
        let command = erl("main");
        let output = place.run(&[&options[..], &["--how", way, "--"], &command[..]].concat());
        assert!(output.status.success(), "{}", errors(&output));
        assert_is_the_program(&report(&place, "x.samples"));
    }
}

/// A command, and the process of the runtime that it has started, which work until this value ends.
struct Running(Child, Option<String>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(pid) = &self.1 {
            let _ = Command::new("kill").args(["-9", pid]).status();
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program, and waits until it works. `erl` becomes the emulator, and so does `run` wait for that process.
fn ever(place: &Place, options: &[&str]) -> (Running, String) {
    let arguments = [&["run"], options, &["--"], &erl("ever")[..]].concat();
    let mut running = Running(
        place
            .beamline(&arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts"),
        None,
    );
    let output = running.0.stdout.take().expect("a pipe");
    let mut said = String::new();
    let read = BufReader::new(output).read_line(&mut said);
    assert_eq!((read.expect("text"), said.as_str()), (7, "begins\n"));
    let run = running.0.id();
    let children = fs::read_to_string(format!("/proc/{run}/task/{run}/children"));
    let children = children.expect("it has started one");
    let pid = children.split_whitespace().next().expect("a number");
    running.1 = Some(pid.to_owned());
    (running, pid.to_owned())
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Both processes of the program are in a dump. On a busy machine a thread may wait for its turn while one is taken.
fn assert_is_dumped(place: &Place, pid: &str) {
    let expect = ["> worker: ", "work:other/1, line ", "work:rounds/2, line 3"];
    let dumps = (0..10).map(|_| {
        let output = place.run(&["dump", pid]);
        assert!(output.status.success(), "{}", errors(&output));
        text(&output)
    });
    let mut missed = Vec::new();
    for dumped in dumps {
        if expect.iter().all(|part| dumped.contains(part)) {
            return;
        }
        missed.push(dumped);
    }
    panic!("no dump has all of {expect:?}: {missed:#?}");
}

#[test]
fn a_process_that_runs_is_dumped_watched_and_sampled() {
    let Some(place) = place() else {
        return;
    };
    let (_running, pid) = ever(&place, &[]);
    let doctor = place.run(&["doctor", &pid]);
    let printed = text(&doctor);
    assert!(
        printed.contains("is Beamline's runtime, with the libraries of OTP"),
        "{printed}"
    );
    assert_is_dumped(&place, &pid);
    let top = [
        "top", &pid, "--on", "beamline", "--once", "--json", "--rate", "499",
    ];
    let output = place.run(&top);
    let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let rows = json["functions"].as_array().expect("a list");
    let other = rows.iter().find(|row| row["name"] == "work:other/1");
    let other = other.expect("it runs all the time");
    assert!(other["total"]["percent"].as_f64() > Some(30.0), "{other}");
    let processes = json["processes"].to_string();
    assert!(processes.contains("worker"), "{processes}");
    let output = place.run(&["sample", &pid, "--duration", "1s", "-o", "x.samples"]);
    assert!(output.status.success(), "{}", errors(&output));
    let all = functions(&report(&place, "x.samples"));
    assert!(all["work:other/1"].0 > 20.0, "{all:?}");
}

/// Whether a process is gone, or waits for its parent to notice.
fn has_ended(pid: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest.trim_start());
    state.is_empty() || state.starts_with('Z')
}

#[test]
fn top_watches_a_command_on_the_runtime_and_ends_it() {
    let Some(place) = place() else {
        return;
    };
    // On a busy machine the emulator may need more than the first of these to start.
    let has_watched = ["1s", "5s", "25s"].into_iter().any(|duration| {
        let top = [
            "top", "--on", "beamline", "--once", "--json", "--rate", "499",
        ];
        let options = ["--duration", duration, "--"];
        let output = place.run(&[&top[..], &options, &erl("ever")].concat());
        let json: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let pid = json["pid"].as_u64().expect("a number");
        // A process that was killed may still be on its way there.
        let ends = (0..6000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            has_ended(pid)
        });
        assert!(ends, "process {pid} goes on");
        let rows = json["functions"].as_array().expect("a list");
        rows.iter().any(|row| row["name"] == "work:other/1")
    });
    assert!(has_watched, "work:other/1 is in no view");
}

/// One line that says this, and exit code 1.
fn assert_refused(output: &Output, expect: &str) {
    let error = errors(output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains(expect), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn what_runs_on_something_else_is_refused() {
    let Some(place) = place() else {
        return;
    };
    let (_running, pid) = ever(&place, &[]);
    let output = place.run(&["sample", "--on", "otp", &pid, "-o", "never.samples"]);
    assert_refused(&output, "runs on Beamline's runtime: leave out --on otp");
    // A double of OTP's emulator: its file name is what tells them apart.
    let program = place.file("beam.smp");
    fs::copy("/bin/sh", &program).expect("there is a shell");
    let child = Command::new(&program)
        .args(["-c", "read line"])
        .stdin(Stdio::piped())
        .spawn();
    let otp = Running(child.expect("it starts"), None);
    let otp_pid = otp.0.id().to_string();
    let output = place.run(&["top", "--on", "beamline", "--once", &otp_pid]);
    assert_refused(
        &output,
        "runs on OTP's own emulator: leave out --on beamline",
    );
    let output = place.run(&["sample", "--on", "nothing", &pid, "-o", "never.samples"]);
    assert!(!output.status.success());
    assert!(
        errors(&output).contains("otp, beamline"),
        "{}",
        errors(&output)
    );
    let (_running, pid) = ever(&place, &["--engine", "interpreter"]);
    let output = place.run(&["dump", &pid]);
    assert_refused(&output, "runs with --engine interpreter");
    let watch = [
        "top", "--on", "beamline", "--once", "--", "erl", "-s", "never",
    ];
    let mut watch = place.beamline(&watch);
    let output = watch.env("BEAMLINE_ENGINE", "interpreter").output();
    let output = output.expect("it runs");
    assert_refused(&output, "the interpreter has no machine code to sample");
    assert!(!place.file("never.samples").exists());
}

#[test]
fn a_command_that_starts_no_emulator_is_told() {
    let Some(place) = place() else {
        return;
    };
    let command = [
        "sample",
        "--on",
        "beamline",
        "-o",
        "never.samples",
        "--",
        "true",
    ];
    assert_refused(&place.run(&command), "the command started no emulator");
    assert!(!place.file("never.samples").exists());
}
