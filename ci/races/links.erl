%% Processes that link to each other and unlink, begin to trap exits and cease to, while the others do the same and end.
-module(links).
-export([main/0]).

main() ->
    Workers = [spawn_monitor(fun() -> receive {all, All} -> exit({seen, link_on(N, All, 14)}) end end) || N <- lists:seq(1, 6)],
    All = [Pid || {Pid, _} <- Workers],
    [Pid ! {all, All} || Pid <- All],
    io:format("~p~n", [[receive {'DOWN', Monitor, process, Pid, Why} -> reason(Why) end || {Pid, Monitor} <- Workers]]).

link_on(_, _, 0) -> [];
link_on(N, All, Left) ->
    Other = lists:nth((N * Left) rem length(All) + 1, All),
    Traps = process_flag(trap_exit, Left rem 4 > 0),
    Linked = try link(Other) catch error:Why -> Why end,
    Seen = receive {'EXIT', _, Reason} -> reason(Reason) after 0 -> none end,
    Left rem 3 =:= 0 orelse unlink(lists:nth((N + Left) rem length(All) + 1, All)),
    [{Traps, Linked, Seen} | link_on(N, All, Left - 1)].

reason({seen, Seen}) -> {seen, Seen};
reason(Why) -> Why.
