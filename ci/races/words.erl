%% Words that processes share without a lock: atomics, counters, and terms that persist.
-module(words).
-export([main/0]).

main() ->
    Atomics = atomics:new(2, []),
    Counters = counters:new(1, [write_concurrency]),
    persistent_term:put(words, 0),
    Workers = [spawn_monitor(fun() -> receive go -> work(N, 400, Atomics, Counters) end end) || N <- [1, 2, 3]],
    [Pid ! go || {Pid, _} <- Workers],
    Seen = look(100, Atomics, Counters),
    [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Workers],
    End = {atomics:get(Atomics, 1), atomics:get(Atomics, 2), counters:get(Counters, 1), persistent_term:get(words)},
    io:format("~w ~w~n", [erlang:phash2(Seen), End]).

work(_, 0, _, _) -> ok;
work(N, Left, Atomics, Counters) ->
    Value = atomics:get(Atomics, 1),
    Count = counters:get(Counters, 1),
    Term = persistent_term:get(words),
    erlang:phash2({N, Left}, 6) =:= 0 andalso erlang:yield(),
    atomics:put(Atomics, 1, Value + 1),
    counters:put(Counters, 1, Count + 1),
    Left rem 10 =:= 0 andalso persistent_term:put(words, Term + 1),
    atomics:compare_exchange(Atomics, 2, Value, Left) =:= ok andalso atomics:add(Atomics, 2, Value),
    work(N, Left - 1, Atomics, Counters).

look(0, _, _) -> [];
look(Left, Atomics, Counters) ->
    erlang:yield(),
    Seen = {atomics:get(Atomics, 2), counters:get(Counters, 1), persistent_term:get(words)},
    [Seen | look(Left - 1, Atomics, Counters)].
