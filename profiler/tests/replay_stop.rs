//! Replays that stop in the middle, or read what the recorded run read.

mod place;

use std::io::Write as _;
use std::process::{Output, Stdio};

use place::{Place, RECORD_ORDER, errors};

/// Processes that count in a table, and tell how far they are. What the first one gets depends on chance.
const COUNTS: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    Me = self(),
    counts = ets:new(counts, [named_table, public]),
    ets:insert(counts, {hits, 0}),
    Pids = [spawn_link(fun() -> count(Me, 5) end) || _ <- [1, 2, 3]],
    Ref = monitor(process, hd(Pids)),
    Seen = [receive {hit, N} -> N end || _ <- lists:seq(1, 15)],
    receive {'DOWN', Ref, _, _, _} -> ok end,
    io:format(\"~w~n\", [Seen]),
    halt(3).
count(_, 0) -> ok;
count(To, N) ->
    [{hits, Hits}] = ets:lookup(counts, hits),
    ets:insert(counts, {hits, Hits + 1}),
    To ! {hit, Hits + 1},
    count(To, N - 1).
";

/// Prints the lines that it reads until there is no more.
const READS: &str = "\
-module(work).
-export([main/1]).
main(_) -> read(io:get_line(\"\")).
read(eof) -> io:format(\"end~n\"), halt(0);
read(Line) -> io:format(\"~w~n\", [Line]), read(io:get_line(\"\")).
";

/// Prints the tables that there are while others make and delete some, and the time that is left of timers.
const REQUESTS: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    [spawn(fun() -> tables(300) end) || _ <- [1, 2, 3]],
    io:format(\"~w~n\", [[length([T || T <- ets:all(), T =:= a orelse is_reference(T)]) || _ <- lists:seq(1, 20)]]),
    io:format(\"~w~n\", [[left() || _ <- [1, 2, 3]]]),
    halt(0).
tables(0) -> ok;
tables(N) -> T = ets:new(a, []), erlang:yield(), ets:delete(T), tables(N - 1).
left() ->
    Timer = erlang:start_timer(1000000, self(), over),
    timer:sleep(rand:uniform(20)),
    ok = erlang:read_timer(Timer, [{async, true}]),
    Read = receive {read_timer, Timer, R} -> R end,
    ok = erlang:cancel_timer(Timer, [{async, true}]),
    {Read, receive {cancel_timer, Timer, C} -> C end}.
";

fn record_work() -> Vec<&'static str> {
    [&RECORD_ORDER[..], &["work.erl"]].concat()
}

/// What a recorded run prints.
fn record(place: &Place) -> Vec<u8> {
    place.run(&record_work()).stdout
}

fn trace(place: &Place) -> String {
    place.printed(&["trace", "run.stream"])
}

/// The line of a process in which this stands.
fn line_with<'t>(trace: &'t str, text: &str) -> &'t str {
    let line = trace.lines().find(|line| line.contains(text));
    line.unwrap_or_else(|| panic!("{text} is not in the trace"))
}

/// The reference of the process of a line: `p0.4.7`.
fn reference(line: &str) -> &str {
    &line[1..line.find(',').expect("a comma")]
}

fn stop(place: &Place, at: &str) -> Output {
    place.run(&["replay", "run.stream", "--stop-at", at])
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_replay_stops_where_it_is_told_to() {
    let Some(place) = Place::new(COUNTS) else {
        return;
    };
    record(&place);
    let trace = trace(&place);
    // Each process has steps of its own: the main one gets the exit of another.
    let child = reference(line_with(&trace, "-main/1-fun-"));
    let main = child.rsplit_once('.').expect("a parent").0;
    let number = &child[1..];
    let told = format!("t{}:1", &main[1..]);
    for (at, says) in [
        (
            format!("l{number}:2"),
            format!(" is about to send(l{number}:2)"),
        ),
        (
            format!("a{number}:3"),
            format!(" is about to make a{number}:3"),
        ),
        (child.to_owned(), " is about to begin".to_owned()),
        (told.clone(), format!(" has got {told} into its queue")),
    ] {
        let stopped = stop(&place, &at);
        let out = printed(&stopped);
        assert_eq!(stopped.status.code(), Some(0), "{at}: {}", errors(&stopped));
        let who = if at.starts_with('t') { main } else { child };
        let mut lines = out.lines();
        let first = lines.next().expect("a line");
        assert!(
            first.starts_with(&format!("stopped: {who} (")) && first.ends_with(&says),
            "{at}: {out}"
        );
        let one = lines.next().expect("a process");
        assert!(one.starts_with(&format!("{who} ")), "{at}: {out}");
        assert!(
            out.lines().any(|line| line.contains("work:")),
            "{at}: {out}"
        );
        assert!(lines.count() > 20, "all processes are told: {out}");
    }
}

#[test]
fn the_steps_before_the_stop_are_made_and_those_behind_it_are_not() {
    let Some(place) = Place::new(COUNTS) else {
        return;
    };
    record(&place);
    let child = reference(line_with(&trace(&place), "-main/1-fun-")).to_owned();
    let out = printed(&stop(&place, &format!("l{}:2", &child[1..])));
    let row = out.lines().nth(1).expect("the process");
    assert!(row.contains("work:count/2, line 1"), "{row}");
    // What it prints behind is not printed.
    assert!(!out.contains('['), "{out}");
}

#[test]
fn a_replay_stops_at_a_time_of_the_recorded_run() {
    let Some(place) = Place::new(COUNTS) else {
        return;
    };
    record(&place);
    let stopped = stop(&place, "20ms");
    assert_eq!(stopped.status.code(), Some(0), "{}", errors(&stopped));
    // Which process is about to make a step then depends on the machine.
    assert!(
        printed(&stopped).starts_with("stopped: p"),
        "{}",
        printed(&stopped)
    );
    let late = stop(&place, "10h");
    assert_eq!(late.status.code(), Some(2));
    assert!(
        errors(&late).contains("was over by then"),
        "{}",
        errors(&late)
    );
    place.write("run.log", &place.printed(&["trace", "--log", "run.stream"]));
    let log = place.run(&["replay", "run.log", "--stop-at", "1ms", "--", "work.erl"]);
    assert_eq!(log.status.code(), Some(2));
    assert!(
        errors(&log).contains("a trace has none"),
        "{}",
        errors(&log)
    );
}

#[test]
fn a_wrong_reference_is_said_in_a_line_and_nothing_runs() {
    let Some(place) = Place::new(COUNTS) else {
        return;
    };
    record(&place);
    let child = reference(line_with(&trace(&place), "-main/1-fun-")).to_owned();
    for (at, why) in [
        ("x", "neither a reference"),
        ("l0.4:0", "neither a reference"),
        ("p0.4.99", "there is no process p0.4.99"),
        (
            &format!("l{}:999999", &child[1..]),
            "ends before: the last one is ",
        ),
        ("5 s", "is not a unit of time"),
    ] {
        let wrong = stop(&place, at);
        assert_eq!(wrong.status.code(), Some(2), "{at}");
        assert!(errors(&wrong).contains(why), "{at}: {}", errors(&wrong));
        assert_eq!(errors(&wrong).lines().count(), 1, "{}", errors(&wrong));
        assert!(wrong.stdout.is_empty(), "nothing is run");
    }
}

#[test]
fn a_place_that_never_comes_is_said_at_the_end() {
    let Some(place) = Place::new(COUNTS) else {
        return;
    };
    let first = record(&place);
    let trace = trace(&place);
    let child = reference(line_with(&trace, "-main/1-fun-"));
    let main = child.rsplit_once('.').expect("a parent").0;
    let at = format!("l{}:999999", &main[1..]);
    let missed = stop(&place, &at);
    assert_eq!(missed.status.code(), Some(3), "{}", errors(&missed));
    assert_eq!(missed.stdout, first);
    let says = format!("the replay did not come to {at} before its end");
    assert!(errors(&missed).contains(&says), "{}", errors(&missed));
}

/// Runs a command whose standard input gives this, and stays open.
fn with_input(place: &Place, arguments: &[&str], input: &str, ends: bool) -> Output {
    let mut command = place.beamline(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    let open = (!ends).then_some(stdin);
    let output = child.wait_with_output().expect("it ends");
    drop(open);
    output
}

#[test]
fn standard_input_is_what_it_was_in_the_recorded_run() {
    let Some(place) = Place::new(READS) else {
        return;
    };
    let first = with_input(&place, &record_work(), "one\ntwo\nthree\n", true);
    let out = printed(&first);
    assert_eq!(out.lines().count(), 4, "{out}");
    assert!(out.ends_with("end\n"), "{out}");
    let replay = ["replay", "run.stream"];
    for (input, ends) in [("", false), ("", true), ("four\n", false), ("four\n", true)] {
        let again = with_input(&place, &replay, input, ends);
        assert_eq!(again.status.code(), Some(0), "{}", errors(&again));
        assert_eq!(printed(&again), out, "{input:?} {ends}");
    }
}

#[test]
fn answers_to_requests_that_are_messages_are_the_same_again() {
    let Some(place) = Place::new(REQUESTS) else {
        return;
    };
    let first = record(&place);
    assert_eq!(String::from_utf8_lossy(&first).lines().count(), 2);
    for _ in 0..3 {
        let again = place.run(&["replay", "run.stream"]);
        assert_eq!(again.status.code(), Some(0), "{}", errors(&again));
        assert_eq!(printed(&again), String::from_utf8_lossy(&first));
    }
}

/// A server that has counted when the others are done, and processes that wait, compute, or trap exits.
const SERVER: &str = "\
-module(work).
-behaviour(gen_server).
-export([main/1, init/1, handle_call/3, handle_cast/2]).
init(_) -> process_flag(trap_exit, true), {ok, 0}.
handle_call({add, N}, _, Sum) -> {reply, ok, Sum + N}.
handle_cast(_, Sum) -> {noreply, Sum}.
main(_) ->
    {ok, _} = gen_server:start_link({local, server}, work, [], []),
    seen = ets:new(seen, [named_table, public]),
    Me = self(),
    Ref = make_ref(),
    [spawn(fun() -> add(20), Me ! Ref end) || _ <- [1, 2, 3]],
    [receive Ref -> ok end || _ <- [1, 2, 3]],
    Me ! over,
    io:format(\"over~n\"),
    halt(3).
add(0) -> ok;
add(N) -> ok = gen_server:call(server, {add, N}), ets:insert(seen, {N, N}), add(N - 1).
";

#[test]
fn a_shell_looks_at_what_stands_still() {
    let Some(place) = Place::new(SERVER) else {
        return;
    };
    record(&place);
    let trace = trace(&place);
    let main = reference(line_with(&trace, "-main/1-fun-"));
    let main = main.rsplit_once('.').expect("a parent").0;
    // The last of the main process's messages before the output: all others have added.
    let over = sendings(line_with(&trace, &format!("{{{main}, ")), main);
    let input = "\
        sys:get_state(server).\n\
        lists:sum([N || {N, _} <- ets:tab2list(seen)]).\n\
        element(2, process_info(whereis(server), message_queue_len)).\n\
        sys:get_state(server) + 1.\n\
        whereis(server) ! {'$gen_call', {self(), make_ref()}, {add, 5}}, sys:get_state(server) + 2.\n\
        q().\n";
    let at = format!("l{}:{over}", &main[1..]);
    let arguments = ["replay", "run.stream", "--stop-at", &at, "--shell"];
    let looked = with_input(&place, &arguments, input, false);
    let out = printed(&looked);
    assert_eq!(looked.status.code(), Some(0), "{out}{}", errors(&looked));
    let is_prompt = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let prompts = out.lines().filter_map(|line| line.split_once("> "));
    let answers = prompts.filter(|(prompt, _)| is_prompt(prompt));
    let answers: Vec<&str> = answers.map(|(_, answer)| answer).collect();
    assert_eq!(
        answers.get(..5),
        Some(&["630", "210", "0", "631", "632"][..]),
        "{out}"
    );
    assert!(!out.lines().any(|line| line == "over"), "{out}");
}

/// Which of the sendings of a process is the last one to itself.
fn sendings(line: &str, process: &str) -> u32 {
    let own = format!("receive(l{}:", &process[1..]);
    let sent = format!("send(l{}:", &process[1..]);
    assert!(!line.contains(&own), "it takes none of its own");
    let delivered = format!("deliver(l{}:", &process[1..]);
    let number = |from: &str| -> Option<u32> {
        let (_, rest) = line.rsplit_once(from)?;
        rest[..rest.find(')')?].parse().ok()
    };
    number(&delivered)
        .or_else(|| number(&sent))
        .expect("it sends to itself")
}
