%% Processes read, compute and write back in a table: updates are lost.
-module(table).
-export([main/0]).

main() ->
    Table = ets:new(table, [public, set]),
    ets:insert(Table, {balance, 0}),
    Clients = [spawn_monitor(fun() -> receive go -> deposit(Table, N, 1000) end end) || N <- [1, 2, 3]],
    [Pid ! go || {Pid, _} <- Clients],
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Clients],
    io:format("~w~n", [ets:lookup_element(Table, balance, 2)]).

deposit(_, _, 0) -> ok;
deposit(Table, N, Left) ->
    [{balance, Balance}] = ets:lookup(Table, balance),
    erlang:phash2({N, Left}, 5) =:= 0 andalso erlang:yield(),
    ets:insert(Table, {balance, Balance + 1}),
    deposit(Table, N, Left - 1).
