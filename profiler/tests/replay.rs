//! Runs that are recorded with their order, and happen again.

mod place;

use std::fs;

use place::{Place, RECORD_ORDER, errors};

/// Figure 1 of the text: `p3` gets `l1` from its parent and `l2` from `p2`, and then `l4` and `l5`.
const FIGURE: &str = "\
-module(work).
-export([main/1]).
main([Order]) ->
    Self = self(),
    P3 = spawn(fun() -> p3(Order, Self) end),
    P2 = spawn(fun() -> p2(Order, P3) end),
    P4 = spawn(fun() -> receive after until(Order, 200) -> ok end, P3 ! l5 end),
    P3 ! {l1, P2},
    receive {done, Seen} -> io:format(\"~w~n\", [Seen]) end,
    false = is_process_alive(P4).
until(\"slow\", Time) -> Time;
until(_, _) -> 0.
p2(Order, P3) ->
    receive after until(Order, 50) -> ok end,
    P3 ! l2,
    receive l3 -> P3 ! l4 end.
p3(Order, Parent) ->
    receive after until(Order, 100) -> ok end,
    receive {l1, P2} -> P2 ! l3 end,
    receive l2 -> ok end,
    Seen = [receive M -> M end || _ <- [1, 2]],
    Parent ! {done, Seen}.
";

const RACES: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    Me = self(),
    Pids = [spawn(fun() -> [Me ! {N, I} || I <- lists:seq(1, 20)], exit(N) end) || N <- lists:seq(1, 8)],
    Refs = [monitor(process, Pid) || Pid <- Pids],
    io:format(\"~w~n\", [all(160, [])]),
    io:format(\"~w~n\", [[receive {'DOWN', Ref, _, _, Why} -> Why end || Ref <- Refs]]),
    halt(3).
all(0, Seen) -> lists:reverse(Seen);
all(N, Seen) -> receive {_, _} = M -> all(N - 1, [M | Seen]) after 0 -> all(N, Seen) end.
";

/// Sleeps while messages come, and while timers run.
const WAITS: &str = "\
-module(work).
-export([main/1]).
main([Time]) ->
    Me = self(),
    spawn(fun() -> Me ! early end),
    erlang:send_after(list_to_integer(Time), Me, late),
    timer:sleep(list_to_integer(Time)),
    receive late -> ok end,
    receive early -> io:format(\"~w~n\", [self()]) end,
    halt(3).
";

/// Prints what is chance: times, random numbers, pids, references, what programs say.
const CHANCE: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    Me = self(),
    Pids = [spawn(fun() -> Me ! {self(), make_ref(), erlang:monotonic_time(), rand:uniform(1 bsl 40)} end) || _ <- lists:seq(1, 5)],
    io:format(\"~w~n\", [[receive {_, _, _, _} = Word -> Word end || _ <- Pids]]),
    io:format(\"~w ~w ~w~n\", [erlang:system_time(), erlang:monotonic_time(17), erlang:unique_integer([monotonic])]),
    io:format(\"~w ~w ~w~n\", [crypto:strong_rand_bytes(50), processes(), process_info(whereis(init), reductions)]),
    io:format(\"~s~s~n\", [os:cmd(\"date +%N; echo $$\"), os:getpid()]).
";

/// A process hibernates, and is woken. In a replay, which waits for no time, the message comes before.
const HIBERNATES: &str = "\
-module(work).
-export([main/1, woken/1]).
main(_) ->
    Me = self(),
    Pid = spawn(fun() -> sleeps(Me) end),
    receive after 100 -> ok end,
    Pid ! wake,
    receive woken -> halt(3) end.
sleeps(Me) -> receive never -> ok after 50 -> proc_lib:hibernate(?MODULE, woken, [Me]) end.
woken(Me) -> receive wake -> Me ! woken end.
";

/// An exit signal kills a process that does not trap exits yet, or becomes a message, and the second one ends the process.
/// A replay does not wait for time, so nothing but the recorded order says when they come.
const TRAPS: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    Me = self(),
    [begin
         {Pid, Ref} = spawn_monitor(fun() -> Me ! {N, told(N)} end),
         Why = receive {'DOWN', Ref, process, Pid, Reason} -> Reason end,
         io:format(\"~w ~w~n\", [Why, receive {N, Told} -> Told after 0 -> nothing end])
     end || N <- lists:seq(0, 7)],
    halt(3).
told(N) ->
    Me = self(),
    spawn_link(fun() -> pause(N band 1) end),
    Calls = spawn(fun() -> exit(Me, normal), pause(1), exit(Me, second) end),
    spawn(fun() -> receive after 10 -> exit(Me, first) end end),
    [pause(1) || N band 4 =:= 0],
    process_flag(trap_exit, true),
    [pause(1) || N band 2 =:= 0],
    {Calls, [receive {'EXIT', _, Why} -> Why after 40 -> none end || _ <- lists:seq(1, 4)]}.
pause(0) -> ok;
pause(1) -> receive after 20 -> ok end.
";

/// Prints what a file holds.
const READS: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    {ok, Text} = file:read_file(\"data.txt\"),
    io:format(\"~s ~s~n\", [Text, os:getpid()]).
";

/// The steps of a process in a trace, as text.
fn steps<'t>(trace: &'t str, process: &str) -> &'t str {
    let begin = format!("{{{process}, [");
    let line = trace
        .lines()
        .find_map(|line| line.strip_prefix(begin.as_str()));
    let line = line.unwrap_or_else(|| panic!("{process} is not in the trace"));
    &line[..line.find("]}").expect("the end of a list")]
}

/// Steps without those that say how far another process had got by an access: that depends on when it is made.
fn own(steps: &str) -> String {
    let mut parts = steps.split("after(");
    let first = parts.next().unwrap_or_default();
    let rest = parts.filter_map(|part| part.split_once(')'));
    rest.fold(first.to_owned(), |own, (_, rest)| own + rest)
}

fn record(place: &Place, arguments: &[&str]) -> Vec<u8> {
    place.run(&[&RECORD_ORDER[..], arguments].concat()).stdout
}

#[test]
fn a_racy_run_happens_again() {
    let Some(place) = Place::new(RACES) else {
        return;
    };
    let first = record(&place, &["work.erl"]);
    assert!(!first.is_empty());
    for replay in [
        vec!["replay", "run.stream"],
        vec!["run", "--replay", "run.stream", "--", "work.erl"],
        vec![
            "run",
            "--engine",
            "interpreter",
            "--replay",
            "run.stream",
            "--",
            "work.erl",
        ],
        vec!["replay", "run.stream", "--schedulers", "1"],
        vec![
            "run",
            "--replay",
            "run.stream",
            "--schedulers",
            "5",
            "--",
            "work.erl",
        ],
    ] {
        let again = place.run(&replay);
        assert_eq!(again.status.code(), Some(3), "{}", errors(&again));
        assert_eq!(
            String::from_utf8_lossy(&again.stdout),
            String::from_utf8_lossy(&first),
            "{replay:?}"
        );
    }
}

#[test]
fn a_log_is_followed_as_its_recording_is() {
    let Some(place) = Place::new(RACES) else {
        return;
    };
    let first = record(&place, &["work.erl"]);
    for (file, options) in [
        ("run.log", &["--log"][..]),
        ("run.trace", &[]),
        ("run.json", &["--json"]),
    ] {
        let printed = place.run(&[&["trace", "run.stream"], options].concat());
        fs::write(place.file(file), &printed.stdout).expect("writable");
        let again = place.run(&["run", "--replay", file, "--", "work.erl"]);
        assert_eq!(again.status.code(), Some(3), "{file}: {}", errors(&again));
        assert_eq!(again.stdout, first, "{file}");
    }
}

#[test]
fn a_replay_is_recorded_as_the_run_was() {
    let Some(place) = Place::new(RACES) else {
        return;
    };
    record(&place, &["work.erl"]);
    let recorded = [
        "record",
        "--events",
        "order",
        "-o",
        "again.stream",
        "--replay",
        "run.stream",
        "--",
        "work.erl",
    ];
    let again = place.run(&recorded);
    assert_eq!(again.status.code(), Some(3), "{}", errors(&again));
    let log = |file| String::from_utf8(place.run(&["trace", "--log", file]).stdout).expect("text");
    let (first, again) = (log("run.stream"), log("again.stream"));
    let me = first
        .lines()
        .find(|line| line.contains("work:main/1") || line.contains("work,main"));
    let name = |line: &str| line[1..line.find(',').expect("a comma")].to_owned();
    let workload = me.map_or_else(|| "p0.4".to_owned(), name);
    let of = |log| own(steps(log, &workload));
    assert_eq!(of(&first), of(&again));
}

/// The steps that tell what processes spent, of all processes, in their order.
fn spent(trace: &str) -> Vec<&str> {
    let all = trace.lines().filter_map(|line| {
        let (_, spent) = line.split_once("spent(")?;
        spent.split_once(')').map(|(spent, _)| spent)
    });
    all.collect()
}

/// What a replay tells of processes that spent another number.
fn told_of_spent(output: &std::process::Output) -> Option<String> {
    let errors = errors(output);
    let line = errors
        .lines()
        .find(|line| line.contains("in the recorded run"))?;
    Some(line.to_owned())
}

#[test]
fn a_process_hibernates_in_a_replay_where_it_did() {
    let Some(place) = Place::new(HIBERNATES) else {
        return;
    };
    record(&place, &["work.erl"]);
    let again = place.run(&["replay", "run.stream"]);
    assert_eq!(again.status.code(), Some(3), "{}", errors(&again));
    assert_eq!(told_of_spent(&again), None);
}

#[test]
fn a_replay_waits_for_no_timer() {
    let Some(place) = Place::new(WAITS) else {
        return;
    };
    let printed = record(&place, &["work.erl", "20"]);
    // Nobody reads how long: a process goes on when what came first has come.
    let again = place.run(&["replay", "run.stream", "--", "work.erl", "3600000"]);
    assert_eq!(again.status.code(), Some(3), "{}", errors(&again));
    assert_eq!(again.stdout, printed);
}

#[test]
fn exit_signals_come_before_who_traps_exits_or_behind_as_they_did() {
    let Some(place) = Place::new(TRAPS) else {
        return;
    };
    let first = record(&place, &["work.erl"]);
    let trace = place.run(&["trace", "run.stream"]);
    let trace = String::from_utf8_lossy(&trace.stdout);
    for step in ["lost(", ", signal, p", ", exit)"] {
        assert!(trace.contains(step), "{step}");
    }
    fs::write(place.file("run.trace"), trace.as_bytes()).expect("writable");
    for replay in [
        ["run.stream", "--schedulers", "1"],
        ["run.stream", "--schedulers", "3"],
        ["run.trace", "--", "work.erl"],
    ] {
        let again = place.run(&[&["replay"], &replay[..]].concat());
        let said = errors(&again);
        assert_eq!(again.status.code(), Some(3), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let (again, first) = (again.stdout, first.as_slice());
        assert_eq!(
            String::from_utf8_lossy(&again),
            String::from_utf8_lossy(first)
        );
    }
}

/// Processes that exit with the reason of whoever is gone already, and one that is.
const NOPROC: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    Noproc = fun() -> exit(noproc) end,
    {Short, Watch} = spawn_monitor(Noproc),
    receive {'DOWN', Watch, _, _, noproc} -> ok end,
    {_, Dies} = spawn_monitor(fun() -> spawn_link(Noproc), receive after infinity -> ok end end),
    receive {'DOWN', Dies, _, _, noproc} -> ok end,
    process_flag(trap_exit, true),
    Linked = spawn_link(Noproc),
    receive {'EXIT', Linked, noproc} -> ok end,
    Main = self(),
    Sends = spawn(fun() -> exit(Main, noproc) end),
    receive {'EXIT', Sends, noproc} -> ok end,
    Gone = monitor(process, Short),
    receive {'DOWN', Gone, _, _, noproc} -> ok end,
    io:format(\"~w~n\", [ended]),
    halt(3).
";

/// `gone` says that a process was not there any more; a process that exits with `noproc` was.
#[test]
fn who_exits_with_noproc_was_not_gone() {
    let Some(place) = Place::new(NOPROC) else {
        return;
    };
    let first = record(&place, &["work.erl"]);
    let trace = place.run(&["trace", "run.stream"]);
    let trace = String::from_utf8_lossy(&trace.stdout);
    let receives = |line: &&str| line.contains(", exit), ");
    let main = trace.lines().find(receives).expect("who traps exits");
    let told: Vec<bool> = main
        .match_indices("receive(t")
        .map(|(at, _)| main[at..].split(')').next().unwrap_or_default())
        .map(|told| told.ends_with(", gone"))
        .collect();
    let last = told.len().saturating_sub(5);
    assert_eq!(told[last..], [false, false, false, false, true], "{main}");
    let of_gone = spent(&trace).into_iter().find(|it| it.ends_with("gone"));
    assert_eq!(of_gone, None);
    for schedulers in ["1", "3"] {
        let again = place.run(&["replay", "run.stream", "--schedulers", schedulers]);
        assert_eq!(again.status.code(), Some(3), "{}", errors(&again));
        assert_eq!(again.stdout, first);
    }
}

#[test]
fn processes_spend_the_same_in_a_replay() {
    let Some(place) = Place::new(RACES) else {
        return;
    };
    record(&place, &["work.erl"]);
    let trace = |file| String::from_utf8(place.run(&["trace", file]).stdout).expect("text");
    let first = trace("run.stream");
    assert!(spent(&first).len() > 8, "the workload's processes end");
    let begin = ["record", "--events", "order", "-o", "again.stream"];
    let again = place.run(&[&begin[..], &["--replay", "run.stream", "--", "work.erl"]].concat());
    assert_eq!(again.status.code(), Some(3), "{}", errors(&again));
    assert_eq!(told_of_spent(&again), None);
    assert_eq!(spent(&trace("again.stream")), spent(&first));

    let log = place.run(&["trace", "--log", "run.stream"]).stdout;
    let log = String::from_utf8(log).expect("text");
    let one = spent(&log).last().copied().expect("one ends").to_owned();
    let (reductions, words) = one.split_once(", ").expect("two numbers");
    let fewer = reductions.parse::<u64>().expect("a number") - 5;
    place.write(
        "other.log",
        &log.replace(
            &format!("spent({one})"),
            &format!("spent({fewer}, {words})"),
        ),
    );
    let other = place.run(&["run", "--replay", "other.log", "--", "work.erl"]);
    assert_eq!(other.status.code(), Some(3), "{}", errors(&other));
    let told = told_of_spent(&other).expect("a line");
    assert!(
        told.contains(&format!(" made {reductions} reductions, and {fewer} in")),
        "{told}"
    );

    let without: Vec<String> = log.lines().map(without_spent).collect();
    place.write("old.log", &without.join("\n"));
    let old = place.run(&["run", "--replay", "old.log", "--", "work.erl"]);
    assert_eq!(old.status.code(), Some(3), "{}", errors(&old));
    assert_eq!(told_of_spent(&old), None);
}

/// A process as it was recorded before processes told what they spent.
fn without_spent(line: &str) -> String {
    match line.split_once("spent(") {
        None => line.to_owned(),
        Some((before, spent)) => {
            let (_, after) = spent.split_once(')').expect("its end");
            format!("{before}{}", after.trim_start_matches(", "))
        }
    }
}

/// Calls of its own function whose number depends on which messages come first.
const COUNTED: &str = "\
-module(work).
-export([main/1, step/1]).
main(_) ->
    Me = self(),
    [spawn(fun() -> [Me ! {N, I} || I <- lists:seq(1, 30)] end) || N <- lists:seq(1, 6)],
    io:format(\"~w~n\", [all(180, 1)]).
all(0, Sum) -> Sum;
all(Left, Sum) -> receive {N, I} -> all(Left - 1, step((Sum * N + I) rem 50)) end.
step(0) -> 0;
step(N) -> 1 + step(N - 1).
";

#[test]
fn counts_of_two_replays_are_equal() {
    let Some(place) = Place::new(COUNTED) else {
        return;
    };
    record(&place, &["work.erl"]);
    let counts = |file: &str| {
        let begin = ["profile", "--type", "call_count", "--json", file];
        let replay = ["--replay", "run.stream", "--", "work.erl"];
        place.printed(&[&begin[..], &replay].concat());
        let profile = place.json(file);
        let functions = profile["functions"].as_array().expect("functions");
        // What else runs when the program ends gets as far as it gets.
        let own = functions.iter().filter(|row| row["module"] == "work");
        let functions: Vec<_> = own.cloned().collect();
        assert!(
            functions.iter().any(|row| row.to_string().contains("step")),
            "{functions:?}"
        );
        functions
    };
    assert_eq!(counts("first.json"), counts("second.json"));
}

#[test]
fn a_replay_is_profiled_in_each_way() {
    let Some(place) = Place::new(COUNTED) else {
        return;
    };
    record(&place, &["work.erl"]);
    let counts = |kind: &str| {
        let begin = ["profile", "--type", kind, "--json", "profile.json"];
        let replay = ["--replay", "run.stream", "--", "work.erl"];
        place.printed(&[&begin[..], &replay].concat());
        let profile = place.json("profile.json");
        let functions = profile["functions"].as_array().expect("functions");
        let own = functions.iter().filter(|row| row["module"] == "work");
        let counted = own.map(|row| (row["function"].to_string(), row["calls"].to_string()));
        counted.collect::<std::collections::BTreeMap<_, _>>()
    };
    let counted = counts("call_count");
    assert!(counted.len() > 3, "{counted:?}");
    for kind in ["call_memory", "call_time"] {
        assert_eq!(counts(kind), counted, "{kind}");
    }
}

#[test]
fn the_figure_is_traced_as_the_text_has_it() {
    let Some(place) = Place::new(FIGURE) else {
        return;
    };
    let out = record(&place, &["work.erl", "slow"]);
    assert_eq!(String::from_utf8_lossy(&out), "[l4,l5]\n");
    let trace = String::from_utf8(place.run(&["trace", "run.stream"]).stdout).expect("text");
    // The first process of the workload makes three, one of which takes l1, l2, l4 and l5.
    let p3 = trace
        .lines()
        .find(|line| line.contains("p3/2") || line.contains("-main/1-fun-0-"))
        .expect("the process p3");
    let p3 = &p3[1..p3.find(',').expect("a comma")];
    let p1 = p3.rsplit_once('.').expect("a parent").0;
    let number = |n: usize| {
        let first: usize = p3
            .rsplit_once('.')
            .expect("a number")
            .1
            .parse()
            .expect("a number");
        format!("{p1}.{}", first + n)
    };
    let (p2, p4) = (number(1), number(2));
    let label = |process: &str, n: usize| format!("l{}:{n}", &process[1..]);
    let sends = steps(&trace, p1);
    let l1 = sends
        .split("spawn(")
        .last()
        .expect("spawns")
        .split("send(")
        .nth(1)
        .expect("a sending");
    let l1 = &l1[..l1.find(')').expect("an end")];
    let (l2, l3, l4, l5) = (label(&p2, 1), label(p3, 1), label(&p2, 2), label(&p4, 1));
    assert_eq!(
        without_spent(steps(&trace, p3)).replace("timeout, ", ""),
        format!(
            "deliver({l1}), deliver({l2}), receive({l1}), send({l3}), receive({l2}), deliver({l4}), receive({l4}), \
             deliver({l5}), receive({l5}), send({}), exit",
            label(p3, 2)
        )
    );
    assert_eq!(
        without_spent(steps(&trace, &p2)),
        format!("timeout, send({l2}), deliver({l3}), receive({l3}), send({l4}), exit")
    );
    assert_eq!(
        without_spent(steps(&trace, &p4)),
        format!("timeout, send({l5}), exit")
    );
    let log = String::from_utf8(place.run(&["trace", "--log", "run.stream"]).stdout).expect("text");
    assert!(!log.contains("deliver("));
}

#[test]
fn what_cannot_be_followed_is_said_in_a_line() {
    let Some(place) = Place::new(RACES) else {
        return;
    };
    record(&place, &["work.erl"]);
    place.write("other.erl", "-module(other).\n-export([main/1]).\nmain(_) -> self() ! 1, self() ! 2, receive 2 -> halt(4) end.\n");
    let other = place.run(&["run", "--replay", "run.stream", "--", "other.erl"]);
    assert_eq!(other.status.code(), Some(1), "{}", errors(&other));
    assert!(
        errors(&other).contains("the replay cannot follow: ")
            && errors(&other).contains("other.beam differs from what p"),
        "{}",
        errors(&other)
    );
    let goes_on = place.run(&[
        "run",
        "--replay",
        "run.stream",
        "--go-on",
        "--",
        "other.erl",
    ]);
    assert_eq!(goes_on.status.code(), Some(4), "{}", errors(&goes_on));
}

#[test]
fn a_deterministic_run_is_replayed_as_one() {
    let Some(place) = Place::new(RACES) else {
        return;
    };
    let begin = ["record", "--deterministic", "--events", "order"];
    let recorded = place.run(&[&begin[..], &["-o", "run.stream", "--", "work.erl"]].concat());
    assert_eq!(recorded.status.code(), Some(3), "{}", errors(&recorded));
    let again = place.run(&["replay", "run.stream"]);
    assert_eq!(again.status.code(), Some(3), "{}", errors(&again));
    assert_eq!(again.stdout, recorded.stdout);
    assert_eq!(told_of_spent(&again), None);
    let refused = place.run(&["replay", "--schedulers", "2", "run.stream"]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        errors(&refused),
        "beamline: --schedulers: run.stream is of a run with --deterministic, which has one scheduler\n"
    );
}

#[test]
fn schedulers_that_cannot_be_are_refused() {
    let Some(place) = Place::new(RACES) else {
        return;
    };
    for arguments in [
        "replay run.stream --schedulers 0",
        "run --replay run.stream --schedulers 0 -- work.erl",
        "run --replay run.stream --schedulers 2 --deterministic -- work.erl",
        "run --schedulers 2 -- work.erl",
    ] {
        let refused = place.run(&arguments.split(' ').collect::<Vec<_>>());
        let said = errors(&refused);
        assert_eq!(refused.status.code(), Some(2), "{arguments}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
    }
}

#[test]
fn what_can_be_no_replay_is_refused_before_anything_runs() {
    let Some(place) = Place::new(RACES) else {
        return;
    };
    record(&place, &["work.erl"]);
    let late = [
        "record",
        "--events",
        "order",
        "--delay",
        "1s",
        "-o",
        "late.stream",
        "--",
        "work.erl",
    ];
    let late = place.run(&late);
    assert_eq!(late.status.code(), Some(2));
    assert!(
        errors(&late).contains("from the start"),
        "{}",
        errors(&late)
    );

    let log = place.run(&["trace", "--log", "run.stream"]).stdout;
    let log = String::from_utf8(log).expect("text");
    place.write(
        "wrong.log",
        &log.replacen("receive(l0.4", "receive(l0.99", 1),
    );
    fs::write(
        place.file("cut.stream"),
        &fs::read(place.file("run.stream")).expect("a file")[..5000],
    )
    .expect("writable");
    place.run(&[
        "record",
        "--events",
        "messages",
        "-o",
        "messages.stream",
        "--",
        "work.erl",
    ]);
    for (file, error) in [
        ("wrong.log", "nobody sends this message"),
        ("messages.stream", "record it with --events order"),
        ("cut.stream", "is missing"),
        ("work.erl", "is expected"),
        ("nothing", "No such file"),
    ] {
        let refused = place.run(&["run", "--replay", file, "--", "work.erl"]);
        assert_eq!(refused.status.code(), Some(1), "{file}");
        assert!(
            errors(&refused).contains(error),
            "{file}: {}",
            errors(&refused)
        );
        assert_eq!(errors(&refused).lines().count(), 1, "{}", errors(&refused));
        assert!(refused.stdout.is_empty(), "nothing is run");
    }
}

#[test]
fn what_is_chance_is_the_same_again() {
    let Some(place) = Place::new(CHANCE) else {
        return;
    };
    let first = String::from_utf8(record(&place, &["work.erl"])).expect("text");
    assert_eq!(first.lines().count(), 6, "{first}");
    fs::write(
        place.file("run.log"),
        place.run(&["trace", "run.stream", "--log"]).stdout,
    )
    .expect("writable");
    for file in ["run.stream", "run.log"] {
        let again = place.run(&["run", "--replay", file, "--", "work.erl"]);
        let out = String::from_utf8_lossy(&again.stdout);
        assert_eq!(out, first, "{file}: {}", errors(&again));
        assert_eq!(again.status.code(), Some(0));
    }
}

#[test]
fn an_answer_can_be_another_one_and_a_file_cannot() {
    let Some(place) = Place::new(READS) else {
        return;
    };
    place.write("data.txt", "before");
    let first = String::from_utf8(record(&place, &["work.erl"])).expect("text");
    let pid = first.trim().rsplit(' ').next().expect("a pid");
    let log = place.run(&["trace", "run.stream", "--log"]).stdout;
    let log = String::from_utf8(log).expect("text");
    let answer = format!("answer(os:getpid/0, \"{pid}\")");
    assert!(log.contains(&answer), "{log}");
    place.write(
        "other.log",
        &log.replace(&answer, "answer(os:getpid/0, \"none\")"),
    );
    let other = place.run(&["run", "--replay", "other.log", "--", "work.erl"]);
    assert_eq!(other.stdout, b"before none\n", "{}", errors(&other));

    place.write("data.txt", "after!");
    let differs = place.run(&["run", "--replay", "run.stream", "--", "work.erl"]);
    assert_eq!(differs.status.code(), Some(1));
    assert!(
        errors(&differs).contains("cannot follow: data.txt differs from what p"),
        "{}",
        errors(&differs)
    );
    assert_eq!(differs.stdout, b"", "nothing is done behind that place");
}

/// Processes share a table, a name, an array of atomics and a persistent term; one of them is killed in its loop.
const SHARED: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    Table = ets:new(work, [public, named_table]),
    ets:insert(work, [{balance, 0}, {loops, 0}]),
    Atomics = atomics:new(1, []),
    persistent_term:put(work, 0),
    Loops = spawn(fun Loop() -> ets:update_counter(work, loops, 1), Loop() end),
    Pids = [spawn_monitor(fun() -> change(N, Atomics, 300, 0) end) || N <- lists:seq(1, 3)],
    Took = [receive {'DOWN', Ref, process, Pid, Took} -> Took end || {Pid, Ref} <- Pids],
    Ref = monitor(process, Loops),
    exit(Loops, kill),
    receive {'DOWN', Ref, process, Loops, killed} -> ok end,
    io:format(\"~w ~w~n\", [Took, ets:tab2list(Table)]),
    io:format(\"~w ~w~n\", [atomics:get(Atomics, 1), persistent_term:get(work)]),
    halt(3).
change(_, _, 0, Took) -> exit(Took);
change(N, Atomics, Left, Took) ->
    [{_, Balance}] = ets:lookup(work, balance),
    Word = atomics:get(Atomics, 1),
    Term = persistent_term:get(work),
    erlang:phash2({N, Left}, 9) =:= 0 andalso erlang:yield(),
    ets:insert(work, {balance, Balance + 1}),
    atomics:put(Atomics, 1, Word + 1),
    Left rem 30 =:= 0 andalso persistent_term:put(work, Term + 1),
    Got = try register(work, self()) of true -> unregister(work), 1 catch error:badarg -> 0 end,
    change(N, Atomics, Left - 1, Took + Got).
";

#[test]
fn what_processes_share_is_accessed_in_the_recorded_order() {
    let Some(place) = Place::new(SHARED) else {
        return;
    };
    let first = record(&place, &["work.erl"]);
    assert!(!first.is_empty());
    let trace = place.run(&["trace", "run.stream", "--log"]);
    let trace = String::from_utf8_lossy(&trace.stdout).into_owned();
    assert!(trace.contains("after(") && trace.contains("accesses("));
    fs::write(place.file("run.log"), &trace).expect("writable");
    for file in ["run.stream", "run.log"] {
        let again = place.run(&["run", "--replay", file, "--", "work.erl"]);
        assert_eq!(again.status.code(), Some(3), "{file}: {}", errors(&again));
        let (first, again) = (
            String::from_utf8_lossy(&first),
            String::from_utf8_lossy(&again.stdout),
        );
        assert_eq!(again, first, "{file}");
    }
}

/// The main process makes a process with a table, and looks at the table when it hears of it.
const OWNED: &str = "\
-module(work).
-export([main/1]).
main(_) ->
    Me = self(),
    spawn(fun() -> ets:new(work, [named_table]), Me ! ready, receive after infinity -> ok end end),
    receive ready -> ok end,
    io:format(\"~w~n\", [ets:info(work, size)]).
";

#[test]
fn an_access_that_waits_for_what_never_comes_is_named() {
    let Some(place) = Place::new(OWNED) else {
        return;
    };
    record(&place, &["work.erl"]);
    let trace = place.run(&["trace", "run.stream", "--log"]);
    let trace = String::from_utf8_lossy(&trace.stdout).into_owned();
    let line = trace.lines().find(|line| line.starts_with("{p0.4, "));
    let line = line.expect("the process that runs main/1");
    let after = line
        .split("after(")
        .last()
        .and_then(|rest| rest.split(')').next())
        .expect("it looks at the table after another process");
    let (access, _) = after.rsplit_once(':').expect("a number");
    let edited = trace.replace(after, &format!("{access}:77"));
    fs::write(place.file("run.log"), edited).expect("writable");
    let again = place.run(&["run", "--replay", "run.log", "--", "work.erl"]);
    assert_eq!(again.status.code(), Some(1));
    let told = errors(&again);
    let (own, other) = after.split_once(", ").expect("two accesses");
    let (other, _) = other.rsplit_once(':').expect("a number");
    assert!(told.contains(&format!("waits with {own} until ")), "{told}");
    assert!(told.contains(&format!(" has made {other}:77")), "{told}");
}
