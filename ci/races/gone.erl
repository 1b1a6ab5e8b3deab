%% A process is monitored that may have ended before.
-module(gone).
-export([main/0]).

main() ->
    Pid = spawn(fun() -> exit(oops) end),
    receive after 50 -> ok end,
    Ref = monitor(process, Pid),
    receive {'DOWN', Ref, process, Pid, Why} -> io:format("~w~n", [Why]) end.
