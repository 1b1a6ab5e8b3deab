%% Processes that give tables and names to each other, inherit tables, make and delete those of the same name, and end.
-module(heirs).
-export([main/0]).

main() ->
    Workers = [spawn_monitor(fun() -> receive {all, All} -> exit({seen, give(N, All, 9)}) end end) || N <- lists:seq(1, 6)],
    All = [Pid || {Pid, _} <- Workers],
    [Pid ! {all, All} || Pid <- All],
    Seen = [receive {'DOWN', Monitor, process, Pid, Why} -> Why end || {Pid, Monitor} <- Workers],
    io:format("~p~n~p~n", [Seen, [{Name, whereis(Name), ets:info(Name, size)} || Name <- [one, two]]]).

give(_, _, 0) -> [];
give(N, All, Left) ->
    Other = lists:nth((N * Left) rem length(All) + 1, All),
    Name = case Left rem 2 of 0 -> one; 1 -> two end,
    Own = ets:new(own, [{heir, Other, {from, N}}]),
    Made = refused(fun() -> ets:new(Name, [named_table, public]) end),
    Given = refused(fun() -> ets:give_away(Own, Other, {given, N}) end),
    Named = refused(fun() -> register(Name, Other) end),
    Deleted = refused(fun() -> ets:delete(Name) end),
    Got = receive {'ETS-TRANSFER', Table, _, Data} -> {Data, ets:info(Table, size)} after 0 -> none end,
    Freed = Left rem 3 =:= 0 andalso refused(fun() -> unregister(Name) end),
    [{Made, Given, Named, Deleted, Got, Freed} | give(N, All, Left - 1)].

refused(Do) -> try Do() catch error:badarg -> refused end.
