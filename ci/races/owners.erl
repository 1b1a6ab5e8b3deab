%% The owners of tables end while others use these: named ones and nameless ones, with heirs and without.
-module(owners).
-export([main/0]).

main() ->
    Me = self(),
    Results = [round(Me, Heir, Named) || _ <- lists:seq(1, 12), Heir <- [true, false], Named <- [true, false]],
    io:format("~w ~w~n", [erlang:phash2(Results), Results]).

round(Me, Heir, Named) ->
    Options = [public] ++ [named_table || Named] ++ [{heir, Me, here} || Heir],
    {Owner, Ref} = spawn_monitor(fun() ->
        Table = ets:new(owners, Options),
        ets:insert(Table, {n, 0}),
        Me ! {table, Table},
        receive go -> ok end,
        [ets:update_counter(Table, n, 1) || _ <- lists:seq(1, 200), erlang:yield()]
    end),
    Table = receive {table, T} -> T end,
    Owner ! go,
    Uses = use(Table, 400),
    receive {'DOWN', Ref, process, Owner, _} -> ok end,
    Again = Named andalso catch_new(),
    Got = receive {'ETS-TRANSFER', Table, Owner, here} -> ets:lookup(Table, n) after 0 -> none end,
    (Got =/= none) andalso ets:delete(Table),
    {Uses, Again, Got}.

catch_new() ->
    try ets:new(owners, [named_table]) of Table -> ets:delete(Table), true
    catch error:badarg -> false
    end.

use(_, 0) -> left;
use(Table, N) ->
    erlang:yield(),
    try ets:update_counter(Table, n, 1) of _ -> use(Table, N - 1)
    catch error:badarg -> {gone, N}
    end.
