//! Dirty schedulers: how many there are, and what statistics and traces say of them.

mod library;
mod place;

use std::process::Command;

use place::{Place, errors};

/// Has processes run on dirty schedulers, and prints what statistics and traces say meanwhile.
const PROGRAM: &str = r#"
-module(work).
-compile(nowarn_deprecated_catch).
-export([main/0]).

main() ->
    Numbers = [dirty_cpu_schedulers, dirty_cpu_schedulers_online, dirty_io_schedulers],
    io:format("~w~n", [[erlang:system_info(I) || I <- Numbers]]),
    false = erlang:system_flag(scheduler_wall_time, true),
    Kinds = lists:duplicate(5, dirty_io) ++ lists:duplicate(2, dirty_cpu),
    Me = self(),
    Pids = [spawn(fun() -> erts_debug:Kind(alive_waitexitingonly, Me) end) || Kind <- Kinds],
    %% As many are alive as have a scheduler: the others have never begun.
    Alive = [receive {alive, Pid} -> Pid end || _ <- [1, 2, 3]],
    Waiting = waiting(4),
    [_, _ | Active] = erlang:statistics(active_tasks_all),
    {Length, Length} = {length(erlang:statistics(run_queue_lengths)), length(erlang:statistics(active_tasks))},
    io:format("~w ~w ~w~n", [Waiting, Active, Length]),
    Times = lists:sort(erlang:statistics(scheduler_wall_time_all)),
    io:format("~w ~w~n", [length(Times), length([I || {I, Worked, _} <- Times, I > 2, Worked > 0])]),
    running = status(hd(Alive)),
    [runnable = status(Pid) || Pid <- Pids -- Alive],
    Refs = [monitor(process, Pid) || Pid <- Pids],
    %% Those that wait go first: the end of one that is alive makes room.
    [exit(Pid, kill) || Pid <- (Pids -- Alive) ++ Alive],
    [receive {'DOWN', Ref, process, _, killed} -> ok end || Ref <- Refs],
    receive {alive, _} -> error(has_begun) after 0 -> ok end,
    2 = erlang:system_flag(schedulers_online, 1),
    {'EXIT', {badarg, _}} = (catch erlang:system_flag(dirty_cpu_schedulers_online, 2)),
    1 = erlang:system_flag(schedulers_online, 2),
    %% It has followed.
    2 = erlang:system_flag(dirty_cpu_schedulers_online, 2),
    ok = erts_debug:dirty_cpu(reschedule, 1000),
    halt().

%% The lengths of the dirty queues, once so many processes wait in them.
waiting(Number) ->
    [_, _ | Lengths] = erlang:statistics(run_queue_lengths_all),
    case lists:sum(Lengths) of
        Number -> Lengths;
        _ -> erlang:yield(), waiting(Number)
    end.

status(Pid) -> {status, Status} = process_info(Pid, status), Status.
"#;

#[test]
fn there_are_as_many_dirty_schedulers_as_flags_say() {
    let Some(place) = Place::new(PROGRAM) else {
        return;
    };
    library::erlc(&place, "work.erl");
    let flags = ["+S", "2:2", "+SDcpu", "2:1", "+SDio", "2"];
    let program = ["-noshell", "-pa", ".", "-run", "work", "main"];
    let arguments = [&["run", "--", "erl"][..], &flags, &program].concat();
    let output = place.run(&arguments);
    assert!(output.status.success(), "{}", errors(&output));
    let told = "[2,1,2]\n[1,3] [2,5] 3\n6 3\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), told);
}

#[test]
fn flags_of_dirty_schedulers_are_checked() {
    let Some(place) = Place::new(PROGRAM) else {
        return;
    };
    let output = place.run(&[
        "run", "--", "erl", "+SDio", "0", "-noshell", "-eval", "halt().",
    ]);
    assert!(!output.status.success());
    assert!(errors(&output).contains("bad number of dirty I/O schedulers 0"));
}

/// Each call on a dirty scheduler is hit by a message at some moment, after which nothing comes.
const HIT: &str = r#"
-module(work).
-export([main/0]).

main() ->
    Workers = [spawn_monitor(fun() -> work(spawn_link(fun sender/0), 20000) end) || _ <- [1, 2]],
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Workers],
    halt().

work(_Sender, 0) -> ok;
work(Sender, Left) ->
    Sender ! {self(), Left band 63},
    erts_debug:dirty_cpu(wait, 0),
    receive hit -> ok end,
    work(Sender, Left - 1).

sender() ->
    receive {Worker, Delay} -> spin(Delay), Worker ! hit, sender() end.

spin(0) -> ok;
spin(Left) -> erlang:phash2(Left), spin(Left - 1).
"#;

#[test]
fn a_call_that_ends_while_a_message_comes_is_not_forgotten() {
    let Some(place) = Place::new(HIT) else {
        return;
    };
    library::erlc(&place, "work.erl");
    place.printed(&[
        "run", "--", "erl", "-noshell", "-pa", ".", "-run", "work", "main",
    ]);
}

/// On the one scheduler, processes work while others open pipes that nobody writes to, again and again.
const PIPES: &str = r#"
-module(work).
-export([main/0]).

main() ->
    Names = [integer_to_list(N) ++ ".pipe" || N <- lists:seq(1, 3)],
    Me = self(),
    Readers = [spawn(fun() -> reader(Me, Name) end) || Name <- Names],
    {Unique, Ref} = spawn_monitor(fun() -> exit({made, [erlang:unique_integer() || _ <- lists:seq(1, 10000)]}) end),
    Made = receive {'DOWN', Ref, process, Unique, {made, Integers}} -> Integers end,
    [wait_until_running(Pid) || Pid <- Readers],
    io:format("~w ~w~n", [lists:nthtail(1, erlang:statistics(active_tasks_all)), process_info(hd(Readers), current_function)]),
    Later = [erlang:unique_integer() || _ <- lists:seq(1, 10000)],
    20000 = length(lists:usort(Made ++ Later)),
    [write(Pid, Name, 20) || {Pid, Name} <- lists:zip(Readers, Names)],
    killed(hd(Readers), hd(Names)),
    halt().

reader(Main, Name) ->
    {ok, File} = file:open(Name, [read, raw, binary]),
    {ok, Data} = file:read(File, 10),
    ok = file:close(File),
    Main ! {self(), Data},
    %% Not before the writer has closed its end.
    receive next -> ok end,
    reader(Main, Name).

wait_until_running(Pid) ->
    case process_info(Pid, [status, current_function]) of
        [{status, running}, {current_function, {prim_file, open_nif, 2}}] -> ok;
        _ -> receive after 1 -> wait_until_running(Pid) end
    end.

write(_Pid, _Name, 0) -> ok;
write(Pid, Name, Left) ->
    receive after Left rem 4 -> ok end,
    ok = file:write_file(Name, [Left + 64], [raw]),
    receive {Pid, Data} -> true = Data =:= <<(Left + 64)>> end,
    Pid ! next,
    write(Pid, Name, Left - 1).

%% It is gone at once, and its call goes on.
killed(Pid, Name) ->
    wait_until_running(Pid),
    Ref = monitor(process, Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, killed} -> ok end,
    ok = file:write_file(Name, "", [raw]).
"#;

#[test]
fn a_file_operation_that_waits_holds_no_scheduler_up() {
    let Some(place) = Place::new(PIPES) else {
        return;
    };
    let pipes = ["1.pipe", "2.pipe", "3.pipe"].map(|name| place.file(name));
    let made = Command::new("mkfifo").args(pipes).status();
    assert!(made.is_ok_and(|status| status.success()));
    place.printed(&["run", "--", "erlc", "work.erl"]);
    let flags = ["+S", "1", "+SDio", "4", "-noshell", "-pa", "."];
    let program = ["-run", "work", "main"];
    let told = place.printed(&[&["run", "--", "erl"][..], &flags, &program].concat());
    assert_eq!(told, "[0,3] {current_function,{prim_file,open_nif,2}}\n");
}

/// A process blocks all other schedulers while of each kind of dirty ones, of which there is one, a call runs and another
/// waits; then takes turns with calls; then blocks ordinary schedulers only.
const BLOCKS: &str = r#"
-module(work).
-export([main/0]).

main() ->
    false = erlang:system_flag(scheduler_wall_time, true),
    Kinds = [dirty_cpu, dirty_io],
    Early = [calls(Kind, 1000) || Kind <- Kinds] ++ [calls(Kind, 100) || Kind <- Kinds],
    waiting(2, Early),
    blocked = erlang:system_flag(multi_scheduling, block),
    %% None of them runs now, and the one scheduler makes what has waited.
    none_runs(Early),
    [ended(Call) || Call <- Early],
    %% It makes one call at a time.
    Before = erlang:monotonic_time(millisecond),
    Late = [calls(Kind, 100) || Kind <- Kinds],
    [ended(Call) || Call <- Late],
    true = erlang:monotonic_time(millisecond) - Before >= 200,
    %% Calls of the process that blocks the others have a turn, too, and those on files.
    erts_debug:dirty_io(wait, 1),
    {ok, _} = file:read_file("work.erl"),
    none_runs(Late),
    blocked = erlang:system_flag(multi_scheduling, block),
    blocked = erlang:system_flag(multi_scheduling, unblock),
    Me = self(),
    [Me] = erlang:system_info(multi_scheduling_blockers),
    enabled = erlang:system_flag(multi_scheduling, unblock),
    both_run(),
    %% The dirty ones are not blocked here: a call runs beside this process.
    blocked_normal = erlang:system_flag(multi_scheduling, block_normal),
    both_run(),
    enabled = erlang:system_flag(multi_scheduling, unblock_normal),
    %% Who blocks the others and exits does so no more.
    {Pid, Ref} = spawn_monitor(fun() -> erlang:system_flag(multi_scheduling, block) end),
    receive {'DOWN', Ref, process, Pid, normal} -> ok end,
    enabled = erlang:system_info(multi_scheduling),
    both_run(),
    io:format("done~n"),
    halt().

calls(Kind, Ms) ->
    spawn_monitor(fun() -> erts_debug:Kind(wait, Ms) end).

ended({Pid, Ref}) ->
    receive {'DOWN', Ref, process, Pid, normal} -> ok end.

none_runs(Calls) ->
    [] = [Pid || {Pid, _} <- Calls, erts_internal:is_process_executing_dirty(Pid)].

%% Two calls run at once, as each of them would until its process exits.
both_run() ->
    Me = self(),
    Pids = [spawn(fun() -> erts_debug:Kind(alive_waitexitingonly, Me) end) || Kind <- [dirty_cpu, dirty_io]],
    [receive {alive, Pid} -> ok end || Pid <- Pids],
    Refs = [monitor(process, Pid) || Pid <- Pids],
    [exit(Pid, kill) || Pid <- Pids],
    [receive {'DOWN', Ref, process, _, killed} -> ok end || Ref <- Refs].

%% So many processes wait for dirty schedulers, or a slow machine has made all calls before that was seen.
waiting(Number, Calls) ->
    [_, _ | Lengths] = erlang:statistics(run_queue_lengths_all),
    case lists:sum(Lengths) =:= Number orelse not lists:any(fun({Pid, _}) -> is_process_alive(Pid) end, Calls) of
        true -> ok;
        false -> erlang:yield(), waiting(Number, Calls)
    end.
"#;

#[test]
fn a_block_of_all_schedulers_has_dirty_calls_take_turns() {
    let Some(place) = Place::new(BLOCKS) else {
        return;
    };
    library::erlc(&place, "work.erl");
    let flags = ["+S", "2:2", "+SDcpu", "1:1", "+SDio", "1"];
    let program = ["-noshell", "-pa", ".", "-run", "work", "main"];
    let arguments = [&["run", "--", "erl"][..], &flags, &program].concat();
    let output = place.run(&arguments);
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!((&*told, &*errors(&output)), ("done\n", ""));
}
