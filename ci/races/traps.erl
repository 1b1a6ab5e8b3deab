%% Exit signals that come before their receiver traps exits, or behind that: they end it, are lost, or become messages, and two of them
%% come from one process.
-module(traps).
-export([main/0]).

main() ->
    io:format("~w~n", [[watched(N) || N <- lists:seq(1, 40)]]).

watched(N) ->
    Me = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> Me ! {N, told(N)} end),
    Why = receive {'DOWN', Monitor, process, Pid, Reason} -> Reason end,
    receive {N, Told} -> {Why, Told} after 0 -> Why end.

told(N) ->
    Me = self(),
    Ends = spawn_link(fun() -> spin(1500 * (N * 7 rem 13)) end),
    Calls = spawn(fun() -> spin(1100 * (N * 3 rem 13)), exit(Me, normal), exit(Me, N rem 2) end),
    Fails = spawn_link(fun() -> spin(2000 * (N * 2 rem 13)), exit(shutdown) end),
    spin(1300 * (N * 5 rem 11)),
    process_flag(trap_exit, true),
    [receive {'EXIT', Pid, Why} -> Why after 2 -> none end || Pid <- [Ends, Calls, Calls, Fails]].

spin(0) -> ok;
spin(N) -> spin(N - 1).
