//! Schedulers: when one wakes another.

mod library;
mod place;

use place::{Place, errors};

/// Ends when two processes that compute have been on two schedulers at the same time.
const PROGRAM: &str = r#"
-module(work).
-export([main/0]).

main() ->
    Seen = atomics:new(3, []),
    Processes = [spawn_monitor(fun() -> compute(Seen, Mine, 3 - Mine) end) || Mine <- [1, 2]],
    [receive {'DOWN', Monitor, process, Process, normal} -> ok end || {Process, Monitor} <- Processes],
    io:format("shared~n"),
    halt().

compute(Seen, Mine, Other) ->
    Scheduler = erlang:system_info(scheduler_id),
    atomics:put(Seen, Mine, Scheduler),
    IsShared = not lists:member(atomics:get(Seen, Other), [0, Scheduler]),
    IsShared andalso atomics:put(Seen, 3, 1),
    case atomics:get(Seen, 3) of
        1 -> ok;
        0 -> compute(Seen, Mine, Other)
    end.
"#;

#[test]
fn two_that_compute_get_two_schedulers() {
    let Some(place) = Place::new(PROGRAM) else {
        return;
    };
    library::erlc(&place, "work.erl");
    for threshold in ["very_low", "medium", "very_high"] {
        let output = place.run(&[
            "run", "--", "erl", "+S", "2", "+swt", threshold, "+sbwt", "none", "-noshell", "-pa",
            ".", "-run", "work", "main",
        ]);
        assert!(output.status.success(), "{}", errors(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "shared\n");
    }
}

#[test]
fn thresholds_are_checked() {
    let Some(place) = Place::new(PROGRAM) else {
        return;
    };
    for (flag, value, why) in [
        ("+swt", "none", "scheduler wakeup threshold: none"),
        ("+sbwt", "low", "scheduler busy wait threshold: low"),
    ] {
        let output = place.run(&[
            "run", "--", "erl", flag, value, "-noshell", "-eval", "halt().",
        ]);
        assert!(!output.status.success());
        assert!(errors(&output).contains(why), "{}", errors(&output));
    }
}

/// Has each state of microstate accounting come up that a scheduler has.
const ACCOUNTED: &str = r#"
-module(work).
-export([main/0]).

main() ->
    io:format("~w~n", [lists:sort([{Type, Id} || #{type := Type, id := Id} <- accounts()])]),
    0 = lists:sum(maps:values(sums())),
    [false, true] = [erlang:system_flag(microstate_accounting, true) || _ <- [1, 2]],
    Port = open_port({spawn, "cat"}, [binary]),
    work(Port, 100),
    true = erlang:system_flag(microstate_accounting, false),
    Sums = sums(),
    work(Port, 1),
    io:format("~w ~w~n", [[State || State := Time <- Sums, State =/= aux, Time =:= 0], sums() =:= Sums]),
    false = erlang:system_flag(microstate_accounting, reset),
    io:format("~w~n", [sums()]),
    {'EXIT', {badarg, _}} = (catch erlang:system_flag(microstate_accounting, on)),
    halt().

work(_, 0) -> ok;
work(Port, N) ->
    port_command(Port, <<"a">>),
    receive {Port, {data, _}} -> ok end,
    lists:sum(lists:seq(1, 1000)),
    garbage_collect(),
    timer:sleep(1),
    work(Port, N - 1).

accounts() -> erlang:statistics(microstate_accounting).

sums() ->
    Add = fun(_, One, Two) -> One + Two end,
    [First | Others] = [Counters || #{counters := Counters} <- accounts()],
    lists:foldl(fun(Counters, Sum) -> maps:merge_with(Add, Counters, Sum) end, First, Others).
"#;

#[test]
fn states_of_threads_are_accounted_while_that_is_on() {
    let Some(place) = Place::new(ACCOUNTED) else {
        return;
    };
    library::erlc(&place, "work.erl");
    let output = place.run(&[
        "run", "--", "erl", "+S", "2", "+SDcpu", "1", "+SDio", "1", "+A", "1", "-noshell", "-pa",
        ".", "-run", "work", "main",
    ]);
    assert!(output.status.success(), "{}", errors(&output));
    let threads =
        "[{async,0},{dirty_cpu_scheduler,1},{dirty_io_scheduler,1},{scheduler,1},{scheduler,2}]";
    let zeros = "#{aux => 0,check_io => 0,emulator => 0,gc => 0,other => 0,port => 0,sleep => 0}";
    let told = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines[..2], [threads, "[] true"]);
    // Which order the keys have is chance.
    let sorted = |text: &str| {
        let text = text.trim_start_matches("#{").trim_end_matches('}');
        let mut pairs: Vec<_> = text.split(',').map(str::to_owned).collect();
        pairs.sort();
        pairs
    };
    assert_eq!(sorted(lines[2]), sorted(zeros));
}
