%% Two processes read a counter in a table, and write one more: an update is lost where both read first.
-module(updates).
-export([main/0]).

main() ->
    Table = ets:new(counters, [public]),
    ets:insert(Table, [{hits, 0}, {own, 0}]),
    First = spawn_monitor(fun() -> hit(Table) end),
    Second = spawn_monitor(fun() ->
                               ets:insert(Table, {own, 1}),
                               receive after 50 -> ok end,
                               hit(Table)
                           end),
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- [First, Second]],
    io:format("~w~n", [ets:lookup_element(Table, hits, 2)]).

hit(Table) ->
    [{hits, Hits}] = ets:lookup(Table, hits),
    ets:insert(Table, {hits, Hits + 1}).
