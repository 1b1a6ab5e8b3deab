%% Processes take a lock, which is an object of a named table, and try again where another one has it.
-module(locks).
-export([main/0]).

main() ->
    locks = ets:new(locks, [public, named_table, {write_concurrency, true}]),
    Takers = [spawn_monitor(fun() -> receive go -> exit({took, take(N, 300, 0)}) end end) || N <- [1, 2, 3, 4]],
    [Pid ! go || {Pid, _} <- Takers],
    Tries = [receive {'DOWN', Ref, process, Pid, {took, Tries}} -> Tries end || {Pid, Ref} <- Takers],
    io:format("~w ~w~n", [Tries, ets:lookup(locks, log)]).

take(_, 0, Tries) -> Tries;
take(N, Left, Tries) ->
    case ets:insert_new(locks, {lock, N}) of
        true ->
            ets:update_element(locks, log, {2, N}, {log, N}),
            erlang:phash2({N, Left}, 5) =:= 0 andalso erlang:yield(),
            ets:delete(locks, lock),
            take(N, Left - 1, Tries);
        false ->
            erlang:yield(),
            take(N, Left, Tries + 1)
    end.
