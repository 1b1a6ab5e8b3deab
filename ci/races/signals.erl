%% Exit signals that could have come earlier: before a message was sent, before an end, before exits were trapped. And a process that
%% could have been gone before it was monitored.
-module(signals).
-export([main/0]).

main() ->
    io:format("~w~n", [[stopped(), finished(), trapped(), watched()]]).

%% The worker has sent its result when it is stopped.
stopped() ->
    Me = self(),
    {Worker, Monitor} = spawn_monitor(fun() -> Me ! {result, self()}, receive never -> ok end end),
    spawn(fun() -> receive after 50 -> exit(Worker, stopped) end end),
    Why = down(Monitor),
    receive {result, Worker} -> {done, Why} after 0 -> Why end.

%% The worker has ended when it is stopped.
finished() ->
    {Worker, Monitor} = spawn_monitor(fun() -> finished end),
    spawn(fun() -> receive after 50 -> exit(Worker, stopped) end end),
    Why = down(Monitor),
    receive after 100 -> Why end.

%% The server traps exits when its linked process fails.
trapped() ->
    {_, Monitor} = spawn_monitor(fun server/0),
    down(Monitor).

server() ->
    Client = spawn_link(fun() -> receive after 50 -> exit(failed) end end),
    process_flag(trap_exit, true),
    receive {'EXIT', Client, failed} -> exit(told) end.

%% The process is there when it is monitored.
watched() ->
    Pid = spawn(fun() -> receive after 50 -> exit(seen) end end),
    down(monitor(process, Pid)).

down(Monitor) ->
    receive {'DOWN', Monitor, process, _, Why} -> Why end.
