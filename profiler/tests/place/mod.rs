//! A folder with a program in it, where the `beamline` binary runs.
#![allow(dead_code, reason = "each program of tests uses its part of it")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use beamline_needs::{Need, skipped};
use beamline_runtime_otp_home::{self as otp_home, Lookup};
use serde_json::Value;

/// `work.erl`: calls that can be counted by hand, and what goes on until it is killed.
pub(crate) const WORK: &str = "\
-module(work).
-export([main/1, fib/1, ever/1, begin_it/1]).
main([\"ever\"]) -> ever(0);
main([\"tokens\"]) -> tokens();
main([\"names\"]) ->
    {Pid, Ref} = spawn_monitor(fun() -> fib(3) end),
    receive {'DOWN', Ref, process, Pid, _} -> ok end,
    proc_lib:start(work, begin_it, [8]);
main([\"crash\" | Until]) -> crash(Until);
main(_) ->
    io:format(\"~p~n\", [fib(15)]),
    exit_later(),
    ok.
exit_later() ->
    {Pid, Ref} = spawn_monitor(fun() -> exit(fib(10)) end),
    receive {'DOWN', Ref, process, Pid, 55} -> ok end.
fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
ever(N) -> ever(N + fib(5)).
crash([File] = Until) ->
    {Pid, Ref} = spawn_monitor(fun() -> fib(5), exit({oops, [File]}) end),
    receive {'DOWN', Ref, process, Pid, {oops, _}} -> ok end,
    timer:sleep(5),
    filelib:is_regular(File) orelse crash(Until).
begin_it(N) -> fib(N), proc_lib:init_ack(ok).
tokens() ->
    Pid = spawn(fun() -> receive {From, Q} -> seq_trace:print(here), From ! {yes, Q} end end),
    seq_trace:set_token(label, {order, 7}),
    [seq_trace:set_token(What, true) || What <- [send, 'receive', print]],
    Pid ! {self(), q},
    receive {yes, q} -> ok end,
    seq_trace:set_token([]).
";

/// The words before a command whose order is recorded.
pub(crate) const RECORD_ORDER: [&str; 6] =
    ["record", "--events", "order", "-o", "run.stream", "--"];

pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// A folder with this in `work.erl`; none where there is no OTP to run it on.
    pub(crate) fn new(source: &str) -> Option<Place> {
        if otp_home::find(&Lookup::of_process(None)).is_err() {
            skipped(Need::Otp, "there is no OTP; BEAMLINE_OTP names one");
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = Place { folder };
        place.write("work.erl", source);
        Some(place)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).expect("writable");
    }

    pub(crate) fn beamline(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beamline"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.beamline(arguments).output().expect("it starts")
    }

    /// What a command prints that goes well.
    pub(crate) fn printed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A file of JSON.
    pub(crate) fn json(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.file(name)).expect("it was written");
        serde_json::from_str(&text).expect("JSON")
    }

    /// The report of a recording.
    pub(crate) fn report(&self, name: &str) -> Value {
        self.printed(&["report", name, "--json", "report.json"]);
        self.json("report.json")
    }
}

/// What was written to standard error.
pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Is there an Elixir beside the OTP? If not, the test is skipped.
pub(crate) fn has_elixir() -> bool {
    let home = otp_home::find(&Lookup::of_process(None));
    let is_there = home.is_ok_and(|home| home.root.join("../elixir/bin/elixir").exists());
    if !is_there {
        skipped(Need::Elixir, "there is no Elixir beside the OTP");
    }
    is_there
}
