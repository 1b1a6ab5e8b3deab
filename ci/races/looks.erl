%% Processes go through tables while others insert into them and delete from them, many objects at once, too.
-module(looks).
-export([main/0]).

main() ->
    Tables = [ets:new(looks, [public, Type]) || Type <- [set, ordered_set, bag]],
    Writers = [spawn_monitor(fun() -> receive go -> write(Table, N, 30) end end) || Table <- Tables, N <- [1, 2]],
    [Pid ! go || {Pid, _} <- Writers],
    Seen = [look(Table, 12) || Table <- Tables],
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Writers],
    io:format("~w ~w~n", [erlang:phash2(Seen), [[sizes(L) || L <- Looks] || Looks <- Seen]]).

sizes({L, Count, Folded, _}) -> {length(L), Count, Folded}.

write(_, _, 0) -> ok;
write(Table, N, Left) ->
    ets:insert(Table, [{{N, Left, I}, Left} || I <- lists:seq(1, 70)]),
    ets:delete(Table, {N, Left + 2, 7}),
    Left rem 10 =:= 0 andalso ets:match_delete(Table, {{N, '_', 3}, '_'}),
    erlang:yield(),
    write(Table, N, Left - 1).

look(_, 0) -> [];
look(Table, Left) ->
    erlang:yield(),
    All = ets:select(Table, [{{{'$1', '$2', '$3'}, '_'}, [{'>', '$3', 20}], ['$_']}]),
    Count = ets:select_count(Table, [{{{1, '_', '_'}, '_'}, [], [true]}]),
    Folded = ets:foldl(fun(_, Sum) -> Sum + 1 end, 0, Table),
    [{All, Count, Folded, ets:info(Table, size)} | look(Table, Left - 1)].
