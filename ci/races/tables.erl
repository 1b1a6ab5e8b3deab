%% Tables without names, by their identifiers: which ones there are is chance.
-module(tables).
-export([main/0]).

main() ->
    Keepers = [spawn(fun() -> keep(N) end) || N <- lists:seq(1, 8)],
    erlang:yield(),
    Found = [{Table, ets:lookup(Table, key)} || Table <- ets:all(), ets:info(Table, name) =:= ?MODULE],
    Counters = counters:new(1, []),
    put(counters, Counters),
    {dictionary, Own} = process_info(self(), dictionary),
    counters:add(proplists:get_value(counters, Own), 1, length(Found)),
    [Keeper ! stop || Keeper <- Keepers],
    io:format("~w~n~w~n", [lists:sort(Found), counters:get(Counters, 1)]).

keep(N) ->
    Table = ets:new(?MODULE, []),
    ets:insert(Table, {key, N}),
    receive stop -> ok end.
