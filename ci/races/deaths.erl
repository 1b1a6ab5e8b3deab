%% Monitors and links of processes that end at once: noproc or the reason, and in which order.
-module(deaths).
-export([main/0]).

main() ->
    process_flag(trap_exit, true),
    Pids = [spawn(fun() -> exit({ended, N}) end) || N <- lists:seq(1, 20)],
    Numbers = maps:from_list(lists:zip(Pids, lists:seq(1, 20))),
    [monitor(process, Pid) || Pid <- Pids],
    Linked = [spawn_link(fun() -> exit(N) end) || N <- lists:seq(101, 110)],
    Downs = [receive {'DOWN', _, process, Pid, Why} -> {maps:get(Pid, Numbers), Why} end || _ <- Pids],
    Exits = [receive {'EXIT', Pid, Why} when is_integer(Why) -> true = lists:member(Pid, Linked), Why end || _ <- Linked],
    io:format("~w~n~w~n", [Downs, Exits]).
